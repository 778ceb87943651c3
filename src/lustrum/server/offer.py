"""What a dataset offers under its policy: variables, the levels that may be asked for, and what may not."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from lustrum.model import Category, Dataset, Level, LustrumError, TableQuery, Variable
from lustrum.model.text import say
from lustrum.policy import Policy, Rules
from lustrum.release import Desk
from lustrum.server.errors import where_it_happened
from lustrum.server.problems import not_found

__all__ = ["Choice", "Offer", "Withheld", "catalogue", "find", "fits_form", "offered_levels"]

log = logging.getLogger("lustrum.server")


@dataclass(frozen=True)
class Choice:
    """One way to put a variable into a table: every category, or those of a level."""

    value: str
    text: str
    categories: int


@dataclass(frozen=True)
class Withheld:
    """A level that is described but may not be asked for, and why."""

    variable: str
    level: str
    why: str


@dataclass(frozen=True)
class Offer:
    """A dataset with the policy in force."""

    dataset: Dataset
    policy: Policy

    @property
    def rules(self) -> Rules:
        """What may be asked at all."""
        return self.policy.rules

    def levels(self, variable: Variable) -> tuple[Level, ...]:
        """The levels of a variable that the policy lets be asked for."""
        return offered_levels(variable, self.rules)

    def axes(self, variable: Variable) -> tuple[Choice, ...]:
        """The ways to put a variable into a table, finest first."""
        finest = Choice(
            variable.name, f"{variable.label} ({len(variable.codes)})", len(variable.codes)
        )
        return finest, *(
            Choice(
                f"{variable.name}:{level.name}",
                f"{variable.label}: {level.label} ({len(level.categories)})",
                len(level.categories),
            )
            for level in self.levels(variable)
        )

    def populations(self) -> tuple[tuple[str, tuple[Choice, ...]], ...]:
        """The single categories by which a population can be selected, in named groups, coarse first."""
        groups: list[tuple[str, tuple[Choice, ...]]] = []
        for variable in self.dataset.variables:
            for level in reversed(self.levels(variable)):
                if level.groups:
                    place = f"{variable.label}: {level.label}"
                    groups.append((place, _conditions(variable, level.groups, place)))
            place = variable.label
            groups.append((place, _conditions(variable, variable.finest, place)))
        return tuple(groups)

    def withheld(self) -> tuple[Withheld, ...]:
        """The levels that are described but not offered."""
        return tuple(
            Withheld(
                variable.label,
                level.label,
                say(
                    "Its categories overlap those of the levels that are offered; two tables could be "
                    "compared to single people out."
                ),
            )
            for variable in self.dataset.variables
            for level in variable.levels
            if level not in self.levels(variable)
        )


def offered_levels(variable: Variable, rules: Rules) -> tuple[Level, ...]:
    """The levels that may be asked for: those of the first hierarchy, or all where overlaps are allowed."""
    if not rules.nested_only:
        return variable.levels
    return variable.hierarchies[0].levels if variable.hierarchies else ()


def catalogue(desk: Desk) -> tuple[Dataset, ...]:
    """The datasets that can be asked about; one that cannot be read does not take the others with it."""
    found: list[Dataset] = []
    for name in desk.names():
        try:
            desk.policy(name)
            found.append(desk.dataset(name))
        except LustrumError as error:
            log.error("dataset left out: %s", where_it_happened(error))
    return tuple(found)


def find(desk: Desk, name: str) -> Offer:
    """The dataset of an address; a clear problem where there is none."""
    names = desk.names()
    if name not in names:
        there = ", ".join(names) or "none yet"
        raise not_found(f"There is no dataset {name!r}; there are: {there}.")
    return Offer(desk.dataset(name), desk.policy(name))


def fits_form(query: TableQuery) -> bool:
    """Whether the form of lists can show a question without losing a part of it."""
    return (
        all(axis.complete for axis in query.by)
        and all(len(item.codes) == 1 for item in query.where)
        and len({axis.total for axis in query.by}) < 2
        and query.measure is None
        and query.weight is None
    )


def _conditions(
    variable: Variable, categories: tuple[Category, ...], place: str
) -> tuple[Choice, ...]:
    # The label first, so that typing it finds it; the place after it, since a closed list shows no group.
    return tuple(Choice(f"{variable.name}:{c.code}", f"{c.label} ({place})", 1) for c in categories)
