"""Whether codes add up in the numbers of a file, by how much they do not, and in which column."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask
from lustrum.readers.dimensions import Dimension
from lustrum.readers.table_file import TableFile

_UNLISTED = "\0"  # stands for codes that no file lists


def may_be_negative(values: Ints) -> bool:
    """Whether a value is below 0, so that a part can be larger than its total."""
    return bool((values < 0).any())


def add_up(
    name: str,
    files: Sequence[TableFile],
    code: str,
    parts: Sequence[str],
) -> str:
    """Whether a code is the sum of others in the files: 'agrees', 'more' or 'less' parts, or 'open'."""
    verdict = "open"
    for file in files:
        codes = file.codes[file.dimensions.index(name)]
        at = [codes.index(part) for part in parts if part in codes]
        if code not in codes or not at:
            continue
        values, known = along(file, name)
        row = codes.index(code)
        sums = np.where(known[at], values[at], 0).sum(axis=0)
        every = known[at].all(axis=0) & known[row] & (len(at) == len(parts))
        room = (len(at) + 1) // 2
        if not may_be_negative(values) and bool((known[row] & (sums > values[row] + room)).any()):
            return "more"
        if bool((every & (np.abs(sums - values[row]) > room)).any()):
            return "less"
        if bool((every & (values[row] != 0)).any()):
            verdict = "agrees"
    return verdict


def worst_difference(file: TableFile, dimension: Dimension, code: str) -> tuple[int, str]:
    """By how much a group differs from the sum of its parts, at most, and in which column.

    The parts are the finest codes, or the largest subtotals where a finest code is hidden.
    """
    codes = file.codes[file.dimensions.index(dimension.name)]
    row = {c: i for i, c in enumerate(codes)}
    if code not in row:
        return 0, ""
    values, known = along(file, dimension.name)
    less = np.zeros(values.shape[1], dtype=np.int64)
    for cover in _covers(dimension, code):
        inside = [row[c] for c in cover if c in row]
        sums = np.where(known[inside], values[inside], 0).sum(axis=0)
        whole = len(inside) == len(cover)
        every = known[inside].all(axis=0) & known[row[code]] & whole
        differences = np.where(every, sums - values[row[code]], 0)
        if not may_be_negative(values):
            over = np.where(known[row[code]], np.maximum(sums - values[row[code]], 0), 0)
            differences = np.where(every, differences, over)
        less = np.where(np.abs(differences) > np.abs(less), differences, less)
    if not less.size:
        return 0, ""
    at = int(np.argmax(np.abs(less)))
    others = [d for d in file.dimensions if d != dimension.name]
    shape = [len(file.codes[file.dimensions.index(d)]) for d in others]
    size = int(np.prod(shape, dtype=np.int64))
    response = file.responses[at // size]
    spots = np.unravel_index(at % size, shape) if shape else ()
    categories = [
        f"{d}={file.codes[file.dimensions.index(d)][int(i)]}"
        for d, i in zip(others, spots, strict=True)
    ]
    return int(less[at]), ", ".join([response, *categories])


def _covers(dimension: Dimension, code: str) -> list[list[str]]:
    """The finest codes of a group, and its largest disjoint subtotals with what they leave."""
    names = (*dimension.finest, _UNLISTED)
    parts = dimension.groups[code]
    finest = [names[p] for p in sorted(parts)]
    inner = sorted(
        (c for c, members in dimension.groups.items() if members < parts),
        key=lambda c: (-len(dimension.groups[c]), c),
    )
    left, chosen = set(parts), list[str]()
    for other in inner:
        if dimension.groups[other] <= left:
            chosen.append(other)
            left -= dimension.groups[other]
    if not chosen:
        return [finest]
    chosen += [names[p] for p in sorted(left)]
    return [finest, chosen]


def is_largest(file: TableFile, name: str, code: str) -> bool:
    """Whether no value of another code is larger, in any column."""
    codes = file.codes[file.dimensions.index(name)]
    if code not in codes:
        return True
    values, known = along(file, name)
    row = codes.index(code)
    return len(codes) > 2 and not bool(((values > values[row]) & known & known[row]).any())


def along(file: TableFile, name: str) -> tuple[Ints, Mask]:
    """All values of a file with a row for each code of one dimension, and where they are known."""
    axis = file.dimensions.index(name)
    rows = []
    for pair in file.known_values:
        rows.append([np.moveaxis(a, axis, 0).reshape(a.shape[axis], -1) for a in pair])
    return np.hstack([r[0] for r in rows]), np.hstack([r[1] for r in rows])


def check_sums(file: TableFile, dimension: Dimension) -> None:
    """Every group of a file must be the sum of its parts where all of them are known."""
    codes = file.codes[file.dimensions.index(dimension.name)]
    row = {code: i for i, code in enumerate(codes)}
    values, known = along(file, dimension.name)
    for code, parts in dimension.groups.items():
        if code not in row:
            continue
        inside = [
            row[dimension.finest[p]]
            for p in parts
            if p < len(dimension.finest) and dimension.finest[p] in row
        ]
        whole = len(inside) == len(parts)
        sums = np.where(known[inside], values[inside], 0).sum(axis=0)
        every = known[inside].all(axis=0) & known[row[code]]
        wrong = every & (sums != values[row[code]]) if whole else np.zeros(0, bool)
        if not bool((values < 0).any()):
            over = known[row[code]] & (sums > values[row[code]])
            wrong = over | wrong if whole else over
        if bool(wrong.any()):
            kind = "total" if parts == dimension.everything else "subtotal"
            off, column = worst_difference(file, dimension, code)
            by = f"{Decimal(abs(off)).scaleb(-file.decimals):,f} {'more' if off < 0 else 'less'}"
            raise SumsError(
                dimension,
                _in_columns(file, dimension.name, [row[code], *inside], wrong),
                f"{file.source}: the {kind} {code!r} of {dimension.name!r} ({dimension.how[code]}) is not the "
                f"sum of its parts: in {column} it is {by} than they are"
                f"{_if_rounded(file, dimension, off, len(inside))}; name subtotals with "
                f"--hierarchy {dimension.name}=FILE, say --rest {dimension.name} if codes are missing from the "
                f"file, or --no-totals {dimension.name} if {code!r} is not a {kind}.",
            )


class SumsError(InputError):
    """A total is not the sum of its parts; ``cells`` are all that stand in a sum that is off."""

    def __init__(
        self, dimension: Dimension, cells: frozenset[tuple[str, ...]], message: str
    ) -> None:
        super().__init__(message)
        self.dimension, self.cells = dimension, cells


def _in_columns(
    file: TableFile, name: str, rows: Sequence[int], columns: Mask
) -> frozenset[tuple[str, ...]]:
    """The cells of some codes of a dimension, in some columns of the others."""
    axis = file.dimensions.index(name)
    shape = [n for i, n in enumerate(file.shape) if i != axis]
    size = int(np.prod(shape, dtype=np.int64))
    cells = set()
    for column in np.flatnonzero(columns).tolist():
        spots = [int(i) for i in np.unravel_index(column % size, shape)] if shape else []
        for row in rows:
            spot = [*spots[:axis], row, *spots[axis:]]
            cells.add(tuple(codes[i] for codes, i in zip(file.codes, spot, strict=True)))
    return frozenset(cells)


def row_that_is_off(file: TableFile, errors: Sequence[SumsError]) -> str:
    """The one row that stands in every sum that is off, along two variables and more; empty if none does."""
    cells = frozenset.intersection(*(error.cells for error in errors))
    if len(errors) < 2 or len(cells) != 1:
        return ""
    (cell,) = cells
    if cell not in file.cells:
        return ""
    cell_name = ", ".join(f"{d}={c}" for d, c in zip(file.dimensions, cell, strict=True))
    location = file.places[file.cells.index(cell)] if file.places else ""
    return f"{location} ({cell_name})" if location else cell_name


def _if_rounded(file: TableFile, dimension: Dimension, off: int, parts: int) -> str:
    """What would help where numbers were rounded one by one, or carry the noise of binary fractions."""
    for decimals in range(file.decimals - 1, -1, -1):
        fewer = file.rounded(decimals)
        if all(worst_difference(fewer, dimension, code)[0] == 0 for code in dimension.groups):
            return f", which --decimals {decimals} would round away"
    if 2 * abs(off) > parts + 1:
        return ""
    return ", as if each number had been rounded on its own: add up the rounded parts, or give exact numbers"


def check_same_cover(files: Sequence[TableFile], dimension: Dimension) -> None:
    """Files with different finest codes must not each add up to the total on their own."""
    total = next(iter(dimension.totals), None)
    if total is None or dimension.hidden_rest or len(files) == 1:
        return
    for file in files:
        codes = file.codes[file.dimensions.index(dimension.name)]
        inside = [i for i, code in enumerate(codes) if code in dimension.finest]
        if total not in codes or len(inside) == len(dimension.finest) or len(inside) < 2:
            continue
        values, known = along(file, dimension.name)
        row = codes.index(total)
        every = known[inside].all(axis=0) & known[row]
        sums = values[inside].sum(axis=0)
        filled = every & (values[row] != 0)
        if bool(filled.any()) and bool((sums[filled] == values[row][filled]).all()):
            raise InputError(
                f"{file.source}: the codes of {dimension.name!r} add up to {total!r} without those of the "
                f"other files; say how the codes relate with --hierarchy {dimension.name}=FILE."
            )
