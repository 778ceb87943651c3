"""Tables read from files as releases and as confidential tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np

from lustrum.model import CellStatus, InputError, Release, Table, TableAxis
from lustrum.model.arrays import Ints
from lustrum.model.errors import NotJudgedError
from lustrum.numeric.structure import UNBOUNDED, Structure
from lustrum.readers.contributions import (
    CheckedContributions,
    check_totals,
    checked_contributions,
)
from lustrum.readers.recognition import Recognition, recognise
from lustrum.readers.table_file import TableFile


def releases_of(
    files: Sequence[TableFile],
    recognition: Recognition | None = None,
    responses: Sequence[str] | None = None,
) -> list[Release]:
    """Published tables over one population, in one unit; ``responses`` picks a column of each file.

    A cell that is not published has no value in the release; where the file states an interval for it, the
    release has that interval.
    """
    recognised = recognise(files) if recognition is None else recognition
    picked = [f.responses[0] for f in files] if responses is None else list(responses)
    decimals = max((file.decimals for file in files), default=0)
    pairs = zip(files, picked, strict=True)
    return [_release(file, name, recognised, decimals) for file, name in pairs]


def _release(file: TableFile, response: str, recognition: Recognition, decimals: int) -> Release:
    values, known = file.dense(file.values[response], decimals)
    letters = {letter.value for letter in CellStatus}
    other = CellStatus.NOT_FOR_PUBLICATION.value
    status = np.full(file.shape, other)
    status[file.positions] = [s if s in letters else other for s in file.status[response]]
    status[~known & (status == CellStatus.FREE.value)] = other
    status[known] = CellStatus.FREE.value
    low: Ints | None = None
    high: Ints | None = None
    bounds = file.bounds.get(response, ())
    stated = any(end is not None for bound in bounds for end in bound)
    if file.interval is not None or stated or file.signed:
        ends = [] if file.interval is None else [file.interval]
        if stated:
            ends.append((tuple(b[0] for b in bounds), tuple(b[1] for b in bounds)))
        # An end that is left blank says nothing: a hidden value is not negative unless others can be.
        below = any(end is not None and end < 0 for pair in ends for one in pair for end in one)
        negative = file.signed or below or bool((known & (values < 0)).any())
        low = np.where(known, values, -UNBOUNDED if negative else 0)
        high = np.where(known, values, UNBOUNDED)
        for pair in ends:
            (least, has_least), (most, has_most) = (file.dense(e, decimals) for e in pair)
            low = np.where(~known & has_least, np.maximum(low, least), low)
            high = np.where(~known & has_most, np.minimum(high, most), high)
        crossed = low[file.positions] > high[file.positions]
        if crossed.any():
            raise NotJudgedError(
                f"{file.source}, {file.places[int(np.argmax(crossed))]}: what the file states about the hidden "
                "value cannot all be true; its interval has the lower end above the upper one."
            )
    return Release(
        recognition.axes(file),
        values,
        status,
        {"method": "unknown"},
        low=low,
        high=high,
        decimals=decimals,
    )


def confidential_table(
    file: TableFile,
    recognition: Recognition,
    response: str | None = None,
    *,
    holding_number: Callable[[str], int] | None = None,
) -> Table:
    """A confidential table with its contributors; cells without a row are 0 where the totals agree with that.

    Every value must be known, and every total must be the exact sum of its parts. ``holding_number`` gives
    the number of a holding by its name, so that it is the same in every file; by default they are counted.
    """
    name = file.responses[0] if response is None else response
    decimals = file.decimals
    values, known = file.dense(file.values[name], decimals)
    rows = np.zeros(file.shape, dtype=np.bool_)
    rows[file.positions] = True
    if bool((rows & ~known).any()):
        row = next(i for i, v in enumerate(file.values[name]) if v is None)
        raise InputError(
            f"{file.source}, {file.places[row]}: the value is missing; suppression starts from true values."
        )
    axes = recognition.axes(file)
    relations = Structure.of_tables([axes]).relations
    less = relations.matrix @ values.ravel()
    off = np.flatnonzero(less)
    if off.size:
        total = int(relations.totals[int(off[0])])
        cell_name = "a relation" if total < 0 else _named(axes, total, file.shape)
        reason = "" if bool(rows.all()) else "; rows are missing, which would be 0"
        by = f"{Decimal(abs(int(less[int(off[0])]))).scaleb(-decimals):,f}"
        raise InputError(
            f"{file.source}: {cell_name} is not the sum of its parts, by {by}{reason}."
        )
    contributed = file.count is not None or bool(file.largest)
    checked = checked_contributions(file, name, decimals, holding_number) if contributed else None
    if contributed:
        check_totals(file, relations, name)
    kind = "magnitude" if contributed or decimals or bool((values < 0).any()) else "count"
    contributors = values.copy() if kind == "count" else None
    return Table(
        axes=axes,
        values=values,
        kind=kind,  # type: ignore[arg-type]
        decimals=decimals,
        contributors=contributors if checked is None else checked.contributors,
        contributions=None if checked is None else checked.contributions,
        provenance={"source": file.source, **_assumed(file, checked)},
    )


def _named(axes: Sequence[TableAxis], cell: int, shape: tuple[int, ...]) -> str:
    indices = np.unravel_index(cell, shape)
    return "the cell " + ", ".join(
        f"{axis.name}={axis.codes[int(i)]}" for axis, i in zip(axes, indices, strict=True)
    )


def _assumed(file: TableFile, checked: CheckedContributions | None) -> dict[str, str]:
    """A sentence where blank contributions were filled with the worst case."""
    if checked is None or not checked.assumed:
        return {}
    number = len(checked.assumed)
    cells = "1 cell has" if number == 1 else f"{number:,} cells have"
    first = file.places[checked.assumed[0]]
    return {
        "assumed": f"{file.source}: {cells} blank contributions (first: {first}); each is taken to be as large "
        "as it can be."
    }
