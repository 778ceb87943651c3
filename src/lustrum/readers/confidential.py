"""Tables read from files as releases and as confidential tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np

from lustrum.model import InputError, Table, TableAxis
from lustrum.numeric.structure import Structure
from lustrum.readers.contributions import (
    CheckedContributions,
    check_totals,
    checked_contributions,
)
from lustrum.readers.recognition import Recognition
from lustrum.readers.table_file import TableFile


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
