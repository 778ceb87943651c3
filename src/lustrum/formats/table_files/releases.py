"""Tables read from files as releases and as confidential tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lustrum.arrays import Ints
from lustrum.formats.table_files.recognition import Recognition, recognise
from lustrum.formats.table_files.table_file import TableFile
from lustrum.model import CellStatus, Contributions, InputError, Release, Table, TableAxis
from lustrum.structure import UNBOUNDED, Structure

__all__ = ["confidential_table", "releases_of"]


def releases_of(
    files: Sequence[TableFile],
    recognition: Recognition | None = None,
    responses: Sequence[str] | None = None,
) -> list[Release]:
    """Published tables over one population, in one unit; ``responses`` picks a column of each file.

    A cell that is not published has no value in the release; where the file states an interval for it, the
    release has that interval.
    """
    found = recognise(files) if recognition is None else recognition
    picked = [f.responses[0] for f in files] if responses is None else list(responses)
    decimals = max((file.decimals for file in files), default=0)
    pairs = zip(files, picked, strict=True)
    return [_release(file, name, found, decimals) for file, name in pairs]


def _release(file: TableFile, response: str, found: Recognition, decimals: int) -> Release:
    values, known = file.dense(file.values[response], decimals)
    letters = {letter.value for letter in CellStatus}
    other = CellStatus.NOT_FOR_PUBLICATION.value
    status = np.full(file.shape, other)
    status[file.positions] = [s if s in letters else other for s in file.status[response]]
    status[~known & (status == CellStatus.FREE.value)] = other
    status[known] = CellStatus.FREE.value
    low: Ints | None = None
    high: Ints | None = None
    if file.interval is not None:
        (least, has_least), (most, has_most) = (file.dense(e, decimals) for e in file.interval)
        low = np.where(known, values, np.where(has_least, least, -UNBOUNDED))
        high = np.where(known, values, np.where(has_most, most, UNBOUNDED))
    return Release(
        found.axes(file),
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
    off = np.flatnonzero(relations.matrix @ values.ravel())
    if off.size:
        total = int(relations.totals[int(off[0])])
        words = "a relation" if total < 0 else _named(axes, total, file.shape)
        reason = "" if bool(rows.all()) else "; rows are missing, which would be 0"
        raise InputError(f"{file.source}: {words} is not the sum of its parts{reason}.")
    counted = file.count is not None
    contributors = _contributors(file) if counted or file.largest else None
    kind = (
        "magnitude" if contributors is not None or decimals or bool((values < 0).any()) else "count"
    )
    return Table(
        axes=axes,
        values=values,
        kind=kind,  # type: ignore[arg-type]
        decimals=decimals,
        contributors=values.copy() if kind == "count" else contributors,
        contributions=_contributions(file, decimals, holding_number) if file.largest else None,
        provenance={"source": file.source},
    )


def _named(axes: Sequence[TableAxis], cell: int, shape: tuple[int, ...]) -> str:
    place = np.unravel_index(cell, shape)
    return "the cell " + ", ".join(
        f"{axis.name}={axis.codes[int(i)]}" for axis, i in zip(axes, place, strict=True)
    )


def _contributors(file: TableFile) -> Ints:
    if file.count is not None:
        if any(n is None or n < 0 or n != int(n) for n in file.count):
            raise InputError(
                f"{file.source}: a number of contributors is missing or not a whole number of 0 or more."
            )
        return file.dense(file.count, 0)[0]
    filled = [sum(rank[row] is not None for rank in file.largest) for row in range(len(file.cells))]
    out = np.zeros(file.shape, dtype=np.int64)
    out[file.positions] = filled
    return out


def _contributions(
    file: TableFile, decimals: int, number: Callable[[str], int] | None
) -> Contributions:
    """The largest contributions; a rank is filled where the cell has this many contributors."""
    ranks = len(file.largest)
    count = _contributors(file)
    value = np.zeros((*file.shape, ranks), dtype=np.int64)
    holding = np.full((*file.shape, ranks), -1, dtype=np.int64)
    numbers: dict[str, int] = {}
    number_of = number or (lambda name: numbers.setdefault(name, len(numbers)))
    for rank in range(ranks):
        value[..., rank], known = file.dense(file.largest[rank], decimals)
        filled = known & (count > rank)
        if file.holdings:
            own = [number_of(name) if name else -1 for name in file.holdings[rank]]
            holding[..., rank][file.positions] = own
            if bool((filled & (holding[..., rank] < 0)).any()):
                raise InputError(f"{file.source}: a contribution has no holding; name it.")
        else:
            # Without names every contribution counts as that of another holding.
            each = np.arange(filled.size, dtype=np.int64).reshape(file.shape) * ranks + rank
            holding[..., rank] = np.where(filled, each, -1)
        value[..., rank] = np.where(filled, value[..., rank], 0)
        holding[..., rank] = np.where(filled, holding[..., rank], -1)
    if bool((np.diff(np.abs(value), axis=-1) > 0).any()):
        raise InputError(
            f"{file.source}: the contributions of a cell are not in falling order; put the largest first."
        )
    return Contributions(value, holding)
