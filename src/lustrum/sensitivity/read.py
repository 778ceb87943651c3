"""Rules from the words of a policy file; those of a third party come in by entry point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lustrum.model import InputError
from lustrum.model.errors import choices
from lustrum.model.parameters import spec_from_words
from lustrum.model.plugins import load, names
from lustrum.sensitivity.rule import Rule
from lustrum.sensitivity.rules.combine import AllOf, AnyOf, Unless

_RULES = "lustrum.rules"
_JOINED: dict[str, type[Any]] = {kind.name: kind for kind in (AnyOf, AllOf)}


def read_rule(mapping: object) -> Rule:
    """The rule that ``to_mapping`` described; every mistake is one clear sentence.

    >>> read_rule({"rule": "any-of", "rules": [{"rule": "threshold"}, {"rule": "p-percent", "p": 10}]})
    AnyOf(rules=(Threshold(minimum=3, empty='safe', zeros='counted', margin=10), PPercent(p=10, \
coalition=1, weights='expanded')))
    """
    if not isinstance(mapping, Mapping) or not isinstance(mapping.get("rule"), str):
        raise InputError("A sensitivity rule needs 'rule', the name of a rule in quotes.")
    name = mapping["rule"]
    given = {key: value for key, value in mapping.items() if key != "rule"}
    if name in names(_RULES):
        kind = load(_RULES, name)
        plain: Rule = spec_from_words(kind, given, f"The rule {name!r}")
        return plain
    if name in _JOINED:
        _only(name, given, ["rules"])
        parts = given.get("rules", ())
        if isinstance(parts, str) or not isinstance(parts, Sequence):
            raise InputError(f"'rules' of the rule {name!r} must be a list of rules.")
        joined: Rule = _JOINED[name](*(read_rule(part) for part in parts))
        return joined
    if name == Unless.name:
        _only(name, given, ["of", "veto"])
        return Unless(read_rule(given.get("of", {})), veto=read_rule(given.get("veto", {})))
    raise InputError(
        f"There is no sensitivity rule {name!r}; {choices(name, [*names(_RULES), *_JOINED, Unless.name])}."
    )


def rule_of(given: Any) -> Any:
    """The words of a rule in place of the rule, as ``read`` of a parameter."""
    return read_rule(given) if isinstance(given, Mapping) else given


def _only(name: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in given:
        if key not in known:
            raise InputError(
                f"The rule {name!r} has no parameter {key!r}; {choices(str(key), known)}."
            )
