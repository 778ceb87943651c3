"""A table-level measure row by row, column by column, or for any other slices of a table.

The risk of a whole table can hide a row in which everybody is alike. Slices without an entropy scale
(one cell, or nobody) have no risk figure: they are marked, not left out and not NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.errors import choices
from lustrum.risk.counts import CountsLike, NotMeasurableError, cells_of, check_scale


class TableMeasure(Protocol):
    """What slices need of a measure: its two verbs."""

    def before(self, table: Table) -> float: ...

    def after(self, table: Table, release: Any) -> float: ...


@dataclass(frozen=True)
class SliceRisk:
    """The risk of one slice; ``None`` where it cannot be measured, and then why."""

    codes: tuple[str, ...]
    risk: float | None
    reason: str = ""


@dataclass(frozen=True)
class SliceRisks:
    """The risk of every slice, in the order of the categories."""

    along: tuple[str, ...]
    slices: tuple[SliceRisk, ...]

    def __iter__(self) -> Iterator[SliceRisk]:
        return iter(self.slices)

    def __len__(self) -> int:
        return len(self.slices)

    def __str__(self) -> str:
        shown = [f"{', '.join(s.codes)}: {_number(s)}" for s in self.slices]
        return f"risk along {' x '.join(self.along)}\n" + "\n".join(shown)

    @property
    def highest(self) -> SliceRisk | None:
        """The riskiest slice, or ``None`` where none can be measured."""
        measured = [s for s in self.slices if s.risk is not None]
        return max(measured, key=lambda s: round(s.risk or 0.0, 9), default=None)

    def to_mapping(self) -> Mapping[tuple[str, ...], float | None]:
        return {s.codes: s.risk for s in self.slices}


def slice_risks(
    measure: TableMeasure,
    table: CountsLike,
    along: Sequence[str | int],
    release: Release | CountsLike | None = None,
) -> SliceRisks:
    """Apply a measure to every slice of a table along some axes, given by name or number.

    Without a release the measure's ``before`` is used, with one its ``after``. Slices of
    totals and subtotals are tables too and are measured like the others.

    >>> from lustrum.risk.r1 import R1
    >>> table = Table.from_counts([[9, 9], [18, 0], [0, 0]], names=["area", "faith"])
    >>> [s.risk and round(s.risk, 2) for s in slice_risks(R1(), table, along=["area"])]
    [0.06, 0.91, None]
    """
    source = table if isinstance(table, Table) else Table.from_counts(cells_of(table).counts)
    axes = _axes(along, source)
    if len(axes) == len(source.axes):
        raise InputError("Slices along all axes are single cells; leave out at least one axis.")
    shown = release if release is None or isinstance(release, Release) else _as_table(release)
    if shown is not None and shown.shape != source.shape:
        raise InputError("The release and its table have different shapes; they must be equal.")
    risks = []
    for positions in product(*(range(len(source.axes[a])) for a in axes)):
        picks = [np.arange(len(axis)) for axis in source.axes]
        for axis, position in zip(axes, positions, strict=True):
            picks[axis] = np.array([position])
        codes = tuple(source.axes[a].codes[p] for a, p in zip(axes, positions, strict=True))
        part = source.take(picks)
        try:
            check_scale(cells_of(part, "slice").measured, "slice")
            risk = measure.before(part)
            if shown is not None:
                risk = float(measure.after(part, shown.take(picks)))
        except NotMeasurableError as error:
            risks.append(SliceRisk(codes, None, str(error)))
        else:
            risks.append(SliceRisk(codes, risk))
    return SliceRisks(tuple(source.axes[a].name for a in axes), tuple(risks))


def _number(part: SliceRisk) -> str:
    return "not measurable" if part.risk is None else f"{part.risk:.4f}"


def _as_table(release: CountsLike) -> Table:
    return release if isinstance(release, Table) else Table.from_counts(cells_of(release).counts)


def _axes(along: Sequence[str | int], table: Table) -> tuple[int, ...]:
    names = [axis.name for axis in table.axes]
    given = [along] if isinstance(along, str | int) else list(along)
    numbers = []
    for axis in given:
        if isinstance(axis, str) and axis not in names:
            raise InputError(f"The table has no axis {axis!r}; {choices(axis, names)}.")
        number = names.index(axis) if isinstance(axis, str) else axis
        if not 0 <= number < len(names) or number in numbers:
            raise InputError(
                "Slices need different axes of the table, by name or by number from 0 on."
            )
        numbers.append(number)
    if not numbers:
        raise InputError("Slices need at least one axis to go along.")
    return tuple(numbers)
