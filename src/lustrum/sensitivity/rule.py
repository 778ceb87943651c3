"""What every sensitivity rule can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

from lustrum.model import Table
from lustrum.model.parameters import DeclaredSpec
from lustrum.sensitivity.background import NOTHING, Background
from lustrum.sensitivity.result import Sensitivity


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
