"""Sensitivity rules in the words of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lustrum.model import InputError
from lustrum.sensitivity import AnyOf, Rule, read_rule

_SHORT: dict[str, tuple[str, tuple[str, ...]]] = {
    "p": ("p-percent", ("p", "coalition")),
    "pq": ("prior-posterior", ("p", "q")),
    "nk": ("dominance", ("n", "k")),
    "dominance": ("dominance", ("n", "k")),
    "threshold": ("threshold", ("minimum", "margin")),
}


def rule_of(rule_texts: Sequence[str]) -> Rule:
    """A rule from words such as ``p=10``, ``pq=10,50``, ``nk=2,85`` or ``threshold=3``; several mean any.

    The second number of a threshold is the margin of sums, in percent of the cell.

    >>> rule_of(["p=10"]), rule_of(["nk=2,85"]).to_mapping()["k"]
    (PPercent(p=10, coalition=1, weights='expanded'), 85)
    """
    rules = [_one(word) for word in rule_texts]
    return rules[0] if len(rules) == 1 else AnyOf(*rules)


def _one(word: str) -> Rule:
    name, equals, rest = word.partition("=")
    if not equals or name not in _SHORT:
        raise InputError(
            f"--rule is p=10, pq=10,50, nk=2,85 or threshold=3, not {word!r}; give it several times for "
            "several rules."
        )
    kind, fields = _SHORT[name]
    given = rest.split(",")
    if len(given) > len(fields):
        raise InputError(
            f"--rule {name} has at most {len(fields)} numbers, as in {_example(name)}."
        )
    mapping: dict[str, Any] = {"rule": kind}
    for field, text in zip(fields, given, strict=False):
        mapping[field] = _number(text, word)
    return read_rule(mapping)


def _number(text: str, word: str) -> int | float:
    try:
        number = float(text)
    except ValueError:
        raise InputError(f"--rule {word!r} needs numbers after '='.") from None
    return int(number) if number == int(number) else number


def _example(name: str) -> str:
    return {"p": "p=10", "pq": "pq=10,50", "threshold": "threshold=3"}.get(name, "nk=2,85")
