"""Statistics in the words of a dataset: what each is called, its unit and its decimals."""

from __future__ import annotations

from dataclasses import dataclass

from lustrum.model.dataset import Dataset
from lustrum.model.errors import QueryError, choices
from lustrum.model.query import TableQuery
from lustrum.model.release import DescribedStatistic
from lustrum.model.statistic import TOTAL_SHARE, Period, Statistic
from lustrum.model.text import lowered, say
from lustrum.model.variable import Measure, Variable

PERCENT = "%"
_RATIO_DECIMALS = 2


def describe_statistics(query: TableQuery, dataset: Dataset) -> tuple[DescribedStatistic, ...]:
    """All statistics of a question; one that the dataset does not have is one clear sentence.

    >>> from lustrum.model.variable import Variable
    >>> sex = Variable("sex", "Sex", ("1", "2"), ("Male", "Female"))
    >>> firms = Dataset("firms", "Firms", (sex,), (Measure("turnover", "Turnover", "euro"),), units="firms")
    >>> described = describe_statistics(TableQuery("firms", (), measure="turnover"), firms)
    >>> described[0].label, described[0].unit
    ('Turnover', 'euro')
    """
    weight = 0 if query.weight is None else dataset.weight(query.weight).decimals
    wording = _Words(query, dataset, weight)
    return tuple(wording.described(statistic) for statistic in query.asked)


@dataclass(frozen=True)
class _Words:
    query: TableQuery
    dataset: Dataset
    weight_decimals: int

    def described(self, statistic: Statistic) -> DescribedStatistic:
        if statistic.variable is not None:
            return self._quantile(statistic, self.dataset.variable(statistic.variable))
        measure = None if statistic.measure is None else self.dataset.measure(statistic.measure)
        what = self._what(measure)
        inside = lowered(what) if measure is None or self.query.weight is None else what
        label, unit, decimals = what, self._unit(measure), self._decimals(measure)
        if statistic.kind == "mean":
            assert measure is not None
            label = say("Mean {what} per {unit}", what=inside, unit=self.dataset.unit)
            decimals = measure.decimals + 1
        elif statistic.kind == "ratio":
            label, unit, decimals = self._ratio(statistic, measure)
        elif statistic.kind == "share":
            unit, decimals = PERCENT, 1
            part = self.dataset.units if measure is None else inside
            label = say("Share of {what} in the total", what=part)
            if statistic.of not in (None, TOTAL_SHARE):
                within = self.dataset.variable(statistic.of or "").label
                label = say(
                    "Share of {what} within {variable}", what=part, variable=lowered(within)
                )
        elif statistic.kind == "growth":
            unit, decimals = PERCENT, 1
            earlier = self._earlier(statistic, measure)
            label = say("Growth of {what} since {earlier}", what=inside, earlier=lowered(earlier))
            if measure is not None and statistic.since == measure.earlier:
                label = say("Growth of {what} since the period before", what=inside)
        if statistic.decimals is not None:
            decimals = statistic.decimals
        return DescribedStatistic(statistic.text, label, unit, decimals)

    def _quantile(self, statistic: Statistic, variable: Variable) -> DescribedStatistic:
        if not variable.edges:
            there = [v.name for v in self.dataset.variables if v.edges]
            raise QueryError(
                say(
                    "{name!r} has no classes of a number ('edges'), so it has no quantiles; {choices}.",
                    name=variable.name,
                    choices=choices(variable.name, there),
                )
            )
        if variable.name in {axis.variable for axis in self.query.by}:
            raise QueryError(
                say(
                    "{name!r} is in the table already; leave it out to have its quantiles.",
                    name=variable.name,
                )
            )
        if self.query.weight is not None:
            raise QueryError(say("Quantiles are of counts; leave the weight out."))
        inside = lowered(variable.label)
        label = say("Median {variable}", variable=inside)
        if statistic.at is not None:
            percent = round(100 * statistic.at, 1)
            label = say("{percent:g} % quantile of {variable}", percent=percent, variable=inside)
        decimals = 1 if statistic.decimals is None else statistic.decimals
        return DescribedStatistic(statistic.text, label, variable.unit, decimals)

    def _what(self, measure: Measure | None) -> str:
        if measure is None and self.query.weight is None:
            return say("Number of {units}", units=self.dataset.units)
        if measure is None:
            return say("Weighted number of {units}", units=self.dataset.units)
        if self.query.weight is None:
            return measure.label
        return say("{measure}, weighted", measure=measure.label)

    def _unit(self, measure: Measure | None) -> str:
        return self.dataset.units if measure is None else measure.unit

    def _decimals(self, measure: Measure | None) -> int:
        return (0 if measure is None else measure.decimals) + self.weight_decimals

    def _ratio(self, statistic: Statistic, over: Measure | None) -> tuple[str, str, int]:
        assert over is not None
        under = self.dataset.measure(statistic.per or "")
        if under == over:
            raise QueryError(
                say(
                    "The ratio of {name!r} to itself is 1; name another measure as 'per'.",
                    name=over.name,
                )
            )
        label = say("{what} per {other}", what=over.label, other=lowered(under.label))
        if over.unit == under.unit:
            return label, PERCENT, 1
        return label, f"{over.unit} / {under.unit}", _RATIO_DECIMALS

    def _earlier(self, statistic: Statistic, later: Measure | None) -> str:
        """What a number has grown since; the two must be comparable."""
        since = statistic.since
        if isinstance(since, Period):
            return self._period(since)
        earlier = self.dataset.measure(since or "")
        if later is None:
            raise QueryError(
                say(
                    "A count cannot have grown since the measure {name!r}; name an earlier period of a "
                    "variable, such as growth:count:year=2023.",
                    name=earlier.name,
                )
            )
        if earlier == later or earlier.unit != later.unit:
            raise QueryError(
                say(
                    "The growth of {name!r} since {earlier!r} has no meaning: name the same measure of an "
                    "earlier period, in the same unit.",
                    name=later.name,
                    earlier=earlier.name,
                )
            )
        return earlier.label

    def _period(self, since: Period) -> str:
        variable = self.dataset.variable(since.variable)
        category = variable.category(since.code)
        later = next((f for f in self.query.where if f.variable == since.variable), None)
        if later is None:
            raise QueryError(
                say(
                    "To compare with {code!r}, select the later period by a filter on {variable!r}.",
                    code=since.code,
                    variable=since.variable,
                )
            )
        if later.members(variable) & category.member_set:
            raise QueryError(
                say(
                    "The earlier period {code!r} is part of the selected one; name another one.",
                    code=since.code,
                )
            )
        return category.label
