"""What a map measures: risks, against attackers, and utilities; the first of each are its two axes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.plugins import load, names
from lustrum.risk.cell_certainty import CellCertainty
from lustrum.risk.close_estimates import CloseEstimates
from lustrum.risk.measure import RiskSpec
from lustrum.risk.table_entropy import EntropyRisk
from lustrum.utility import HellingerUtility, Impute

if TYPE_CHECKING:
    from lustrum.audit import Attacker


@dataclass(frozen=True)
class Measures:
    """Risk and utility measures by the name of their column; the first of each are the map's axes."""

    risks: tuple[tuple[str, Any], ...]
    utilities: tuple[tuple[str, Any], ...]

    @property
    def risk(self) -> str:
        return self.risks[0][0]

    @property
    def utility(self) -> str:
        return self.utilities[0][0]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in (*self.risks, *self.utilities))

    @property
    def sign(self) -> float:
        return 1.0 if self.utilities[0][1].better == "higher" else -1.0

    @property
    def identity(self) -> str:
        return json.dumps([repr(measure) for _, measure in (*self.risks, *self.utilities)])

    def before(self, table: Table) -> dict[str, float]:
        """The figures of the table as it is, and of no data at all, for utilities with two ends."""
        figures = {name: measure.before(table) for name, measure in self.risks}
        for name, measure in self.utilities:
            low, high = measure.range
            figures[name] = high if measure.better == "higher" else low
        return figures

    def nothing(self) -> dict[str, float]:
        """The figures where nothing is published."""
        figures = {name: 0.0 for name, _ in self.risks}
        for name, measure in self.utilities:
            low, high = measure.range
            worst = low if measure.better == "higher" else high
            figures[name] = worst if np.isfinite(worst) else np.nan
        return figures

    def of(self, table: Table, release: Release) -> tuple[dict[str, float], str]:
        """All figures of a release, and in a sentence why one is missing, if one is."""
        figures, why = {}, ""
        for name, measure in (*self.risks, *self.utilities):
            try:
                after = getattr(measure, "after", None)
                figure = measure.of(table, release) if after is None else after(table, release)
                figures[name] = float(figure)
            except InputError as error:
                figures[name] = float("nan")
                why = why or f"{name}: {error}"
        return figures, why


def measures_of(
    measures: Sequence[Any] | None, attackers: Sequence[Attacker | str] | None, table: Table
) -> Measures:
    """Measures from objects or names; without any, what fits the kind of the table.

    A measure of cells is taken once for each attacker. By default a map of counts shows the table-level
    entropy risk, or the certainty about small cells if attackers are given; a map of magnitudes shows how
    many sensitive cells can be estimated closely.

    >>> table = Table.from_counts([[1, 2], [3, 4]])
    >>> measures_of(None, None, table).columns
    ('table-entropy', 'cell-certainty', 'hellinger')
    >>> measures_of(["cell-certainty", "hellinger"], ["outsider", "insider"], table).columns
    ('cell-certainty: outsider', 'cell-certainty: insider', 'hellinger')
    """
    given = [_measure(m, table) for m in measures] if measures is not None else []
    risks = [m for m in given if hasattr(m, "before")]
    utilities = [m for m in given if not hasattr(m, "before")]
    for risk in risks:
        if isinstance(risk, RiskSpec) and not risk.measures_releases:
            raise InputError(
                f"The risk measure {risk.name!r} is for unprotected tables only; a map needs one that "
                "also measures what was protected."
            )
    if not risks:
        if table.kind == "magnitude" or table.decimals:
            risks = [CloseEstimates()]
        else:
            risks = [EntropyRisk(), CellCertainty()]
            if attackers:
                risks.reverse()
    if not utilities:
        utilities = [HellingerUtility(usual_impute(table))]
    named: list[tuple[str, Any]] = []
    for risk in risks:
        if isinstance(risk, CellCertainty) and attackers:
            for attacker in attackers:
                word = attacker if isinstance(attacker, str) else type(attacker).__name__.lower()
                measure: Any = replace(risk, attacker=attacker)  # type: ignore[arg-type]
                named.append((f"{risk.name}: {word}", measure))
        else:
            named.append((risk.name, risk))
    return Measures(_numbered(named), _numbered([(u.name, u) for u in utilities]))


def usual_impute(table: Table) -> Impute:
    """What a reader puts in the place of a suppressed cell: what the totals leave, or 0 without any."""
    return Impute("zero" if table.inner.all() else "proportional")


def _measure(given: object, table: Table) -> Any:
    if not isinstance(given, str):
        return given
    name, parameters = _words(given)
    if name in names("lustrum.risks"):
        return load("lustrum.risks", name)(**parameters)
    kind = load("lustrum.utilities", name)
    try:
        return kind(impute=usual_impute(table), **parameters)
    except TypeError:
        return kind(**parameters)


def _words(given: str) -> tuple[str, dict[str, Any]]:
    """A measure by its name, with values such as ``sample-r2:fraction=0.05``."""
    name, _, rest = given.partition(":")
    values: dict[str, Any] = {}
    for part in filter(None, rest.split(":")):
        key, equals, text = part.partition("=")
        if not equals:
            raise InputError(
                f"{given!r} is not a measure with values; write it as 'sample-r2:fraction=0.05'."
            )
        try:
            values[key] = json.loads(text)
        except json.JSONDecodeError:
            values[key] = text
    return name, values


def _numbered(named: Sequence[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
    """Columns of the same name are numbered from the second on."""
    seen: dict[str, int] = {}
    out = []
    for name, measure in named:
        seen[name] = seen.get(name, 0) + 1
        out.append((name if seen[name] == 1 else f"{name} {seen[name]}", measure))
    return tuple(out)
