"""What a dataset offers under its policy: variables, the levels that may be asked for, and what may not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from lustrum.answer import Snapshot, TableService
from lustrum.model import Dataset, Level, Measure, TableQuery, Variable, Weight
from lustrum.model.text import listed, say, say_many
from lustrum.policy import Policy, Rules
from lustrum.server.http.errors import not_found


@dataclass(frozen=True)
class LevelChoice:
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
class ServedDataset:
    """A dataset under its policy, with the snapshot that answers about it."""

    dataset: Dataset
    policy: Policy
    snapshot: Snapshot | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, snapshot: Snapshot) -> ServedDataset:
        return cls(snapshot.dataset, snapshot.policy, snapshot)

    @property
    def rules(self) -> Rules:
        return self.policy.rules

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures with protected sums, weighted or not."""
        return tuple(
            m for m in self.dataset.measures if m in self.summed(None) + self.summed("weight")
        )

    def summed(self, weight: str | None) -> tuple[Measure, ...]:
        """The measures with protected sums, with a weight or without one."""
        if self.snapshot is None or not self.dataset.measures:
            return ()
        numbers = self.snapshot.numbers
        there = numbers.measures if weight is None else numbers.weighted_measures
        return tuple(m for m in self.dataset.measures if m.name in there)

    @property
    def weights(self) -> tuple[Weight, ...]:
        if self.snapshot is None or not self.dataset.weights:
            return ()
        there = self.snapshot.numbers.weights
        return tuple(w for w in self.dataset.weights if w.name in there)

    @property
    def area(self) -> Variable | None:
        """The variable whose categories are judged one by one, where the policy names one."""
        names = {v.name for v in self.dataset.variables}
        area = self.rules.per_area
        return self.dataset.variable(area) if area in names else None

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that may be asked for at all."""
        alone = {group[0] for group in self.rules.disallowed if len(set(group)) == 1}
        return tuple(v for v in self.dataset.variables if v.name not in alone)

    def levels(self, variable: Variable) -> tuple[Level, ...]:
        return offered_levels(variable, self.rules)

    def axes(self, variable: Variable) -> tuple[LevelChoice, ...]:
        """The ways to put a variable into a table, finest first."""
        finest = LevelChoice(
            variable.name,
            say("{variable} ({number:,})", variable=variable.label, number=len(variable.codes)),
            len(variable.codes),
        )
        return finest, *(
            LevelChoice(
                f"{variable.name}:{level.name}",
                say(
                    "{variable}: {level} ({number:,})",
                    variable=variable.label,
                    level=level.label,
                    number=len(level.categories),
                ),
                len(level.categories),
            )
            for level in self.levels(variable)
        )

    def conflict(self, name: str, chosen: Collection[str]) -> str:
        """Why a variable cannot join those that are chosen already; empty where it can."""
        others = set(chosen) - {name}
        for group in self.rules.disallowed:
            if name in group and len(set(group)) > 1 and set(group) - {name} <= others:
                rest = [other for other in group if other != name]
                return say("not together with {names}", names=self._labels(rest))
        for group in self.rules.at_most_one:
            if name in group and others.intersection(group):
                rest = [other for other in group if other in others]
                return say("not beside {names}", names=self._labels(rest))
        return ""

    def sentences(self) -> tuple[str, ...]:
        """The rules in plain words."""
        rules, units = self.rules, self.dataset.units
        said: list[str] = [
            say_many(
                "At most {number} variable and {cells:,} cells in a table.",
                "At most {number} variables and {cells:,} cells in a table.",
                rules.max_dimensions,
                cells=rules.max_cells,
            )
        ]
        if rules.max_filters:
            said.append(
                say_many(
                    "At most {number} variable selects who is counted.",
                    "At most {number} variables select who is counted.",
                    rules.max_filters,
                )
            )
        else:
            said.append(say("All {units} are counted; no selection is possible.", units=units))
        if rules.min_population:
            said.append(
                say(
                    "At least {least:,} {units} in the population.",
                    least=rules.min_population,
                    units=units,
                )
            )
        if rules.min_mean_cell_size:
            said.append(
                say(
                    "At least {least:g} {units} in a cell, on average.",
                    least=rules.min_mean_cell_size,
                    units=units,
                )
            )
        if rules.max_small_share < 1:
            said.append(
                say(
                    "At most {share:.0%} of the cells between 1 and {small}.",
                    share=rules.max_small_share,
                    small=rules.small_up_to,
                )
            )
        said.extend(self._about_areas())
        if self.policy.risk.limit < 1:
            said.append(
                say(
                    "A risk of disclosure of at most {limit:g} after protection, on a scale from 0 to 1.",
                    limit=self.policy.risk.limit,
                )
            )
        if not rules.nested_only:
            said.append(say("Own groups of categories are allowed."))
        return tuple(said)

    def _about_areas(self) -> list[str]:
        if self.area is None:
            return []
        said: list[str] = [
            say(
                "Each category of {area} is judged by itself; those too small are left out.",
                area=self.area.label,
            )
        ]
        if self.rules.min_area_population:
            said.append(
                say(
                    "At least {least:,} {units} in each category of {area} that is shown.",
                    least=self.rules.min_area_population,
                    units=self.dataset.units,
                    area=self.area.label,
                )
            )
        return said

    def unavailable(self) -> tuple[str, ...]:
        """What cannot be asked for, and why, in plain words."""
        said: list[str] = []
        for group in self.rules.disallowed:
            names = list(dict.fromkeys(group))
            if len(names) == 1:
                said.append(
                    say("{name} is not available under the policy.", name=self._labels(names))
                )
            elif names:
                said.append(
                    say("{names} may not be asked for together.", names=self._labels(names))
                )
        said += [
            say("Only one of {names} may be in a question.", names=self._labels(group))
            for group in self.rules.at_most_one
        ]
        if self.rules.nested_only:
            said.append(
                say(
                    "Own groups of categories: two tables could be compared to single {units} out, so "
                    "only single categories and the published levels are offered.",
                    units=self.dataset.units,
                )
            )
        return tuple(said)

    def withheld(self) -> tuple[Withheld, ...]:
        """The levels that are described but not offered."""
        return tuple(
            Withheld(
                variable.label,
                level.label,
                say(
                    "Its categories overlap those of the levels that are offered; two tables could be "
                    "compared to single {units} out.",
                    units=self.dataset.units,
                ),
            )
            for variable in self.dataset.variables
            for level in variable.levels
            if level not in self.levels(variable)
        )

    def _labels(self, names: Collection[str]) -> str:
        there = {v.name: v.label for v in self.dataset.variables}
        labels = [there.get(name, name) for name in names]
        if len(labels) < 2:
            return labels[0] if labels else ""
        return say("{some} and {last}", some=listed(labels[:-1]), last=labels[-1])


def offered_levels(variable: Variable, rules: Rules) -> tuple[Level, ...]:
    """The levels that may be asked for: those of the first hierarchy, or all where overlaps are allowed."""
    if not rules.nested_only:
        return variable.levels
    return variable.hierarchies[0].levels if variable.hierarchies else ()


def find(service: TableService, name: str) -> ServedDataset:
    """The dataset of an address; a clear problem where there is none."""
    snapshot = service.published(name)
    if snapshot is None:
        there = ", ".join(service.names()) or "none yet"
        raise not_found(
            say("There is no dataset {name!r}; there are: {there}.", name=name, there=there)
        )
    return ServedDataset.of(snapshot)


def fitted(query: TableQuery) -> TableQuery:
    """The question as the form can show it: totals on all variables or on none, and no codes for own groups."""
    total = any(axis.total for axis in query.by)
    by = tuple(
        replace(axis, total=total, groups=tuple(replace(g, code="") for g in axis.groups))
        for axis in query.by
    )
    return replace(query, by=by)
