"""What every sensitivity rule can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, Protocol, runtime_checkable

import numpy as np

from lustrum.model import InputError, Table
from lustrum.model.arrays import Ints, Mask
from lustrum.model.parameters import DeclaredSpec
from lustrum.sensitivity.result import Sensitivity

# What a judge of cells must know beside the table: who waived and who asked.


@dataclass(frozen=True, repr=False)
class Background:
    """Facts about contributors and data, apart from the rule's own parameters.

    A rule holds what an agency decides and may be written down in a policy file; who signed a waiver
    or asked for protection is confidential and stays here. Holdings are named by the numbers that
    :class:`~lustrum.model.Contributions` uses, and shown to nobody.

    >>> Background(waived=[17, 4])
    Background()
    """

    waived: frozenset[int] = frozenset()
    requested: frozenset[int] = frozenset()

    def __init__(self, waived: Iterable[int] = (), requested: Iterable[int] = ()) -> None:
        object.__setattr__(self, "waived", _holdings(waived, "waived"))
        object.__setattr__(self, "requested", _holdings(requested, "requested"))

    def __repr__(self) -> str:
        return "Background()"

    def has_waived(self, holding: Ints) -> Mask:
        """Which of these holdings gave a waiver."""
        return _among(holding, self.waived)

    def has_requested(self, holding: Ints) -> Mask:
        """Which of these holdings asked for protection and did not waive it."""
        return _among(holding, self.requested - self.waived)


def _holdings(given: Iterable[int], name: str) -> frozenset[int]:
    numbers = frozenset(int(h) for h in given)
    if any(h < 0 for h in numbers):
        raise InputError(f"The holdings in {name!r} must be numbers of 0 or more.")
    return numbers


def _among(holding: Ints, chosen: frozenset[int]) -> Mask:
    return np.isin(holding, np.fromiter(chosen, dtype=np.int64, count=len(chosen)))


NOTHING = Background()


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


def rules_within(rule: Rule | Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A rule and all rules inside it, in the words of policy files."""

    def inside(part: Any) -> list[Mapping[str, Any]]:
        if isinstance(part, Mapping):
            mine = [part] if "rule" in part else []
            return [*mine, *(one for value in part.values() for one in inside(value))]
        return (
            [one for value in part for one in inside(value)]
            if isinstance(part, list | tuple)
            else []
        )

    return inside(rule if isinstance(rule, Mapping) else rule.to_mapping())


def names_within(rule: Rule | Mapping[str, Any]) -> frozenset[str]:
    """The names of a rule and of all rules inside it."""
    return frozenset(str(one["rule"]) for one in rules_within(rule))


_OF_CONTRIBUTIONS = frozenset({"p-percent", "prior-posterior", "dominance", "request"})


def judges_contributions(rule: Rule | Mapping[str, Any]) -> bool:
    """Whether the rule, or a rule inside it, looks at the largest contributions of a cell."""
    return not names_within(rule).isdisjoint(_OF_CONTRIBUTIONS)


def ranks_of(*rules: Rule | Mapping[str, Any]) -> int:
    """How many of the largest contributions to keep: one more than any rule looks at, 3 at least."""
    looked_at = [2]
    for one in (one for rule in rules for one in rules_within(rule)):
        looked_at += [int(one[key]) for key in ("n", "minimum") if key in one]
        looked_at += [int(one["coalition"]) + 1] if "coalition" in one else []
        looked_at += [len(one["shares"])] if "shares" in one else []
    return max(looked_at) + 1


class RuleSpec(DeclaredSpec):
    """What rules share whose words are their declared parameters."""

    group: ClassVar[str] = "rule"

    def __or__(self, other: object) -> NoReturn:
        raise InputError(
            "Rules are joined by name: AnyOf((Threshold(3), PPercent(p=10))), or AllOf."
        )

    __and__ = __ror__ = __rand__ = __or__
