"""Rules put together: any of several, all of several, one unless another.

Reasons of the parts stay with their cells, the letter is that of the first part that holds, and the levels
are the largest of the parts. For :class:`AllOf` that is more than is needed, since a cell is safe as
soon as one part finds it so; it is kept so that a cell is safe under each part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from lustrum.model import CellStatus, InputError, Reason, Table
from lustrum.model.arrays import Ints, Mask
from lustrum.model.errors import check_known, choices, kind_of
from lustrum.model.parameters import spec_from_words
from lustrum.model.plugins import load, names
from lustrum.model.table import check_table
from lustrum.sensitivity.result import Finding, Sensitivity
from lustrum.sensitivity.rule import NOTHING, Background, Rule


@dataclass(frozen=True, init=False)
class AnyOf:
    """Sensitive if any of the rules says so.

    >>> from lustrum.sensitivity import PPercent, Threshold
    >>> from lustrum.sensitivity.examples import table_of
    >>> rule = AnyOf(Threshold(3), PPercent(10))
    >>> rule.judge(table_of([[5, 5], [90, 8, 2], [4, 3, 3]])).status.tolist()
    ['A', 'M', 'F']
    """

    name: ClassVar[str] = "any-of"
    rules: tuple[Rule, ...]

    def __init__(self, *rules: Rule | Sequence[Rule]) -> None:
        object.__setattr__(self, "rules", _some(rules, self.name))

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        check_table(table, f"The rule {self.name!r}")
        parts = [rule.judge(table, background) for rule in self.rules]
        return _joined(table, self.to_mapping(), parts, np.ones(table.shape, dtype=np.bool_))

    def to_mapping(self) -> dict[str, Any]:
        return {"rule": self.name, "rules": [rule.to_mapping() for rule in self.rules]}


@dataclass(frozen=True, init=False)
class AllOf:
    """Sensitive if every one of the rules says so.

    >>> from lustrum.sensitivity import Dominance, Threshold
    >>> from lustrum.sensitivity.examples import table_of
    >>> rule = AllOf(Threshold(3), Dominance(n=1, k=60))
    >>> rule.judge(table_of([[5, 5], [9, 1], [90, 8, 2]])).mask.tolist()
    [False, True, False]
    """

    name: ClassVar[str] = "all-of"
    rules: tuple[Rule, ...]

    def __init__(self, *rules: Rule | Sequence[Rule]) -> None:
        object.__setattr__(self, "rules", _some(rules, self.name))

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        check_table(table, f"The rule {self.name!r}")
        parts = [rule.judge(table, background) for rule in self.rules]
        both = reduce(np.logical_and, [part.mask for part in parts])
        return _joined(table, self.to_mapping(), parts, both)

    def to_mapping(self) -> dict[str, Any]:
        return {"rule": self.name, "rules": [rule.to_mapping() for rule in self.rules]}


@dataclass(frozen=True)
class Unless:
    """Sensitive if ``rule`` says so, unless ``veto`` finds the cell too.

    A veto lets cells out that a law or a custom publishes: dominated cells of some kind, say, or
    those where few contribute.

    >>> from lustrum.sensitivity import Dominance, Threshold
    >>> from lustrum.sensitivity.examples import table_of
    >>> rule = Unless(Threshold(3), veto=Dominance(n=1, k=80))
    >>> rule.judge(table_of([[5, 5], [9, 1], [90, 8, 2]])).mask.tolist()
    [True, False, False]
    """

    name: ClassVar[str] = "unless"
    rule: Rule
    veto: Rule

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        """Judge by the rule, then take out what the veto finds."""
        check_table(table, f"The rule {self.name!r}")
        part = self.rule.judge(table, background)
        left = ~self.veto.judge(table, background).mask
        return _joined(table, self.to_mapping(), [part], left)

    def to_mapping(self) -> dict[str, Any]:
        """The rule in the words of a policy file."""
        return {"rule": self.name, "of": self.rule.to_mapping(), "veto": self.veto.to_mapping()}


def _some(rules: Sequence[Rule | Sequence[Rule]], name: str) -> tuple[Rule, ...]:
    """The parts of a rule, given one by one or as one list."""
    if len(rules) == 1 and isinstance(rules[0], (list, tuple)):
        rules = rules[0]
    if not rules:
        raise InputError(f"The rule {name!r} has no parts; it needs one rule at least.")
    parts = []
    for part in rules:
        if isinstance(part, type) or not isinstance(part, Rule):
            raise InputError(
                f"The parts of the rule {name!r} are rules, such as Threshold(3), not {kind_of(part)}."
            )
        parts.append(part)
    return tuple(parts)


def _joined(
    table: Table, rule: dict[str, Any], parts: Sequence[Sensitivity], cells: Mask
) -> Sensitivity:
    return Sensitivity.of(
        table,
        rule,
        [finding.within(cells) for part in parts for finding in part.findings],
        reduce(np.maximum, [part.lower for part in parts]),
        reduce(np.maximum, [part.upper for part in parts]),
        reduce(np.maximum, [part.sliding for part in parts]),
    )


# Rules from the words of a policy file; those of a third party come in by entry point.

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


def rule_of(given: object) -> Any:
    """The words of a rule in place of the rule, as ``read`` of a parameter."""
    return read_rule(given) if isinstance(given, Mapping) else given


def _only(name: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    check_known(given, known, f"The rule {name!r} has no parameter")


# Sensitive cells that somebody names, with the levels they ask for.


@dataclass(frozen=True, eq=False, repr=False)
class GivenCells:
    """The cells of one table that are sensitive, as its owner says, and how much protection each needs.

    Arrays have the shape of the table; levels are in its units. The rule belongs to that one table, so no
    policy can name it.

    >>> table = Table.from_counts([4, 9, 7])
    >>> GivenCells(np.array([True, False, False]), np.array([2, 0, 0])).judge(table).upper.tolist()
    [2, 0, 0]
    """

    name: ClassVar[str] = "given-cells"
    cells: Mask
    upper: Ints
    lower: Ints | None = None

    def __repr__(self) -> str:
        return "GivenCells()"

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        check_table(table, f"The rule {self.name!r}")
        if self.cells.shape != table.shape:
            raise InputError("The given cells are those of a table of another shape.")
        reason = Reason(
            self.name, "named as sensitive", "Merge categories, so that cells hold more."
        )
        finding = Finding(reason, CellStatus.CONCENTRATED, self.cells)
        upper = np.maximum(self.upper, 1)
        lower = upper if self.lower is None else self.lower
        if bool((table.values >= 0).all()):
            lower = np.minimum(lower, table.values)
        return Sensitivity.of(table, self.to_mapping(), [finding], lower, upper)

    def to_mapping(self) -> dict[str, Any]:
        return {"rule": self.name}
