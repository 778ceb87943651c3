"""What every sensitivity rule can do."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Protocol, runtime_checkable

from lustrum.model import InputError, Table
from lustrum.model.parameters import DeclaredSpec
from lustrum.sensitivity.background import NOTHING, Background
from lustrum.sensitivity.result import Sensitivity

# Percentages of rules, kept as given and computed with exactly.

Percent = int | float


def exact(percent: Percent) -> Fraction:
    """The number that was written, not its nearest binary fraction: 0.1 is one tenth.

    >>> exact(12.5), exact(0.1)
    (Fraction(25, 2), Fraction(1, 10))
    """
    return Fraction(str(percent))


def check_whole(value: object, what: str, least: int) -> None:
    """A whole number of at least so much."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{what} must be a whole number of {least} or more.")
    if value < least:
        raise InputError(f"{what} is {value}; it must be {least} or more.")


@runtime_checkable
class Rule(Protocol):
    """An a-priori rule: a frozen spec that judges the cells of a table before anything is published."""

    @property
    def name(self) -> str:
        """The word for the rule in policy files."""
        ...

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        """Which cells are sensitive, why, and how wide an interval must hide each."""
        ...

    def to_mapping(self) -> dict[str, Any]:
        """The rule in the words of a policy file."""
        ...


def names_within(rule: Rule) -> frozenset[str]:
    """The names of a rule and of all rules inside it."""

    def inside(part: Any) -> frozenset[str]:
        if isinstance(part, Mapping):
            rule_names = frozenset({part["rule"]} if "rule" in part else ())
            return rule_names.union(*map(inside, part.values()))
        return (
            frozenset().union(*map(inside, part)) if isinstance(part, list | tuple) else frozenset()
        )

    return inside(rule.to_mapping())


class RuleSpec(DeclaredSpec):
    """What rules share whose words are their declared parameters."""

    group: ClassVar[str] = "rule"
