"""The cells of a file as its layout says, in one cube over all variables of its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import product
from math import prod

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask
from lustrum.model.errors import NotJudgedError, choices
from lustrum.numeric.structure import UNBOUNDED
from lustrum.readers.grids import MOST_CELLS, Container, FieldGrid
from lustrum.readers.layout import (
    CONFIDENTIAL,
    MEASURE,
    UNIT,
    Between,
    CodeRoles,
    DeclaredTable,
    Layout,
    bare,
)
from lustrum.readers.number_text import Style, decimals_of, printed, without_tails

_EXACT = 2**53
ALL = "(all)"
"""The code of a table that does not have a variable: all of it together."""
UNLISTED = "not listed"
"""The place of a combination of codes that a table does not list."""


@dataclass(frozen=True)
class ReadCell:
    """One cell of one table as it stands in the file.

    ``value`` is the number that is shown, ``low`` and ``high`` what the file says of the true one. ``asked``
    cells are those that were not published as they are. ``letter`` stands in the column of status, ``beside``
    are the texts of labels and of columns that only confidential files have.
    """

    key: dict[str, str]
    text: str
    value: Decimal | None
    low: Decimal | None
    high: Decimal | None
    place: str
    asked: bool = False
    letter: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Reading:
    """All cells of a file, and what in it has no role: symbols, letters, columns, lines, each with places."""

    cells: list[ReadCell] = field(default_factory=list)
    symbols: dict[str, list[str]] = field(default_factory=dict)
    letters: dict[str, list[str]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    standing: list[ReadCell] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)


def read_cells(container: Container, layout: Layout, *, listed_only: bool = False) -> Reading:
    """Read all tables of a file; every field outside of them is named.

    Combinations of codes that a table does not list are cells too, unless they are left out.
    """
    reading = Reading()
    covered: dict[str, set[int]] = {grid.name: set() for grid in container.grids}
    for table in layout.tables:
        first, grid = len(reading.cells), grid_of(container, table.sheet)
        _read_table(grid, table, layout, reading, covered[table.sheet], container.source)
        if not listed_only:
            _fill_up(reading, first, table, container.source)
    for grid in container.grids:
        for index, line in enumerate(grid.lines):
            if index not in covered[grid.name] and any(text.strip() for text in line):
                reading.lines.append(grid.places[index])
    return reading


def grid_of(container: Container, sheet: str) -> FieldGrid:
    """The sheet of that name; a clear error where there is none."""
    by_name = {grid.name: grid for grid in container.grids}
    if sheet not in by_name:
        raise InputError(
            f"{container.source}: there is no sheet {sheet!r}; {choices(sheet, by_name)}."
        )
    return by_name[sheet]


def names_of(grid: FieldGrid, table: DeclaredTable, source: str) -> tuple[list[str], list[int]]:
    """The names of all columns, and the lines of cells.

    A column without a name is called by its number, and of several with one name the later ones get theirs too.
    """
    for number in table.head:
        if number not in grid.numbers:
            raise InputError(f"{source}: there is no line {number} for the names of columns.")
    heads = [list(grid.numbers).index(number) for number in table.head]
    inside = [
        i
        for i in range(heads[-1] + 1, len(grid.lines))
        if (table.last is None or grid.numbers[i] <= table.last)
        and any(text.strip() for text in grid.lines[i])
    ]
    width = max((len(grid.lines[i]) for i in (*heads, *inside)), default=0)
    rows = []
    for row, head in enumerate(heads):
        line = [text.strip() for text in grid.lines[head]]
        if len(line) == width - 1 and inside and all(len(grid.lines[i]) == width for i in inside):
            line = ["", *line]  # R leaves out the name of its first column
        line += [""] * (width - len(line))
        if row < len(heads) - 1:
            for column in range(1, width):
                line[column] = line[column] or line[column - 1]
        rows.append(line)
    names: list[str] = []
    for column, parts in enumerate(zip(*rows, strict=True)):
        name = " / ".join(filter(None, parts)) or f"column {column + 1}"
        names.append(name if name not in names else f"{name} ({column + 1})")
    return names, inside


def _read_table(
    grid: FieldGrid,
    table: DeclaredTable,
    layout: Layout,
    reading: Reading,
    covered: set[int],
    source: str,
) -> None:
    names, body = names_of(grid, table, source)
    numbers = list(grid.numbers)
    covered |= {*(numbers.index(n) for n in table.head), *body}
    index_of = {name: i for i, name in enumerate(names)}
    for name in table.columns:
        if name not in index_of:
            raise InputError(f"{source}: there is no column {name!r}; {choices(name, index_of)}.")
    reading.columns += [
        n for i, n in enumerate(names) if n not in table.columns and _filled(grid, body, i)
    ]
    codes = {n: c.dimension or n for n, c in table.columns.items() if c.role == "code"}
    values = [n for n, c in table.columns.items() if c.role == "value"]
    if not values:
        raise InputError(f"{source}: no column has the role 'value'.")
    status = {c.of: n for n, c in table.columns.items() if c.role == "status"}
    kept = [n for n, c in table.columns.items() if c.role == "label" or c.role in CONFIDENTIAL]
    across = table.across or ((MEASURE,) if len(values) > 1 else ())
    fields_of = _Fields(layout)
    above: dict[str, str] = {}
    for i in body:
        fields = [text.strip() for text in grid.lines[i]] + [""] * (len(names) - len(grid.lines[i]))
        key = {name: fields[index_of[name]] for name in codes}
        if table.fill:
            key = {name: code or above.get(name, "") for name, code in key.items()}
        above = dict(key)
        if table.nested:
            key[table.nested[-1]] = " / ".join(filter(None, (key[n] for n in table.nested)))
        named = {codes[n]: code for n, code in key.items() if n not in table.nested[:-1]}
        beside = {name: fields[index_of[name]] for name in kept}
        for value in values:
            column = status.get(value, status.get(""))
            letter = fields[index_of[column]] if column is not None else ""
            place = f"{grid.places[i]}, {value}" if len(values) > 1 else grid.places[i]
            head = value.split(" / ", len(across) - 1) if across else []
            full = {**table.fixed, **named, **dict(zip(across, head, strict=True))}
            fields_of.read(fields[index_of[value]], letter, full, place, reading, beside)


def _fill_up(reading: Reading, first: int, table: DeclaredTable, source: str) -> None:
    """Every combination of codes that a table does not list, as what the layout says it is."""
    cells = reading.cells[first:]
    names = list(dict.fromkeys(name for cell in cells for name in cell.key))
    codes = [list(dict.fromkeys(cell.key.get(name, ALL) for cell in cells)) for name in names]
    if prod(map(len, codes)) > MOST_CELLS:
        raise NotJudgedError(
            f"{source}: all combinations of codes are {prod(map(len, codes)):,} cells, more than "
            f"{MOST_CELLS:,}; name nested columns in the layout."
        )
    listed = {tuple(cell.key.get(name, ALL) for name in names) for cell in cells}
    zero = Decimal(0) if table.missing in ("zero", "impossible") else None
    for key in product(*codes):
        if key in listed:
            continue
        named = dict(zip(names, key, strict=True))
        if zero is None:
            hidden = table.missing == "hidden"
            reading.cells.append(ReadCell(named, "", None, None, None, UNLISTED, hidden))
        else:
            reading.cells.append(ReadCell(named, "", zero, zero, zero, UNLISTED))
        if table.missing is None:
            reading.unlisted.append(", ".join(f"{n}={c}" for n, c in named.items()))


def _filled(grid: FieldGrid, body: Sequence[int], column: int) -> bool:
    return any(column < len(grid.lines[i]) and grid.lines[i][column].strip() for i in body)


class _Fields:
    """Reads single fields as a layout says: a number with its marks, or a symbol in its place."""

    def __init__(self, layout: Layout) -> None:
        self._symbols = {text.lower(): meaning for text, meaning in layout.symbols.items()}
        self._letters = layout.letters
        self._style = Style(layout.decimal)
        self._rounding = layout.rounding
        self._least = Decimal(1) if layout.zeros_shown else None
        self._signed = layout.signed

    def _ends(self, value: Decimal) -> tuple[Decimal, Decimal]:
        """What a shown number says of the true one."""
        if self._rounding is None:
            return value, value
        exponent = value.as_tuple().exponent
        unit = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)
        base = Decimal(self._rounding.base)
        room = {"nearest": base / 2, "adjacent": base - 1, "last digit": unit / 2}[
            self._rounding.how
        ]
        low = value - room
        return (low if self._signed or value < 0 else max(low, Decimal(0))), value + room

    def read(
        self,
        text: str,
        letter: str,
        key: dict[str, str],
        place: str,
        reading: Reading,
        beside: Mapping[str, str],
    ) -> None:
        """Put one cell into the reading."""
        low = high = value = None
        symbol = self._symbols.get(text.lower())
        number = (
            None if symbol is not None else printed(text.removesuffix("%").strip(), self._style)
        )
        if number is not None:
            value = number.value
            low, high = self._ends(value)
        elif symbol is None:
            reading.symbols.setdefault(text, []).append(place)
        elif symbol in ("zero", "impossible"):
            value = low = high = Decimal(0)
        elif isinstance(symbol, Between):
            low, high = symbol.low, symbol.high
        if value is None:
            low = self._least if low is None else low
        hidden = False
        if number is not None and number.value == 0 and self._letters.get(letter) == "hidden":
            # Offices print 0 beside the letter of a hidden value: it holds the place and says nothing.
            number, value, low, high = None, None, self._least, None
        for one in filter(None, (letter, number.mark if number else "")):
            meaning = self._letters.get(one)
            if meaning is None:
                reading.letters.setdefault(one, []).append(place)
            elif meaning == "hidden":
                hidden = True
            elif isinstance(meaning, Between) and value is None:
                low = max((end for end in (low, meaning.low) if end is not None), default=None)
                high = min((end for end in (high, meaning.high) if end is not None), default=None)
        rounded = self._rounding is not None and self._rounding.how != "last digit"
        asked = value is None or (rounded and number is not None)
        cell = ReadCell(key, text, value, low, high, place, asked, letter, beside)
        reading.cells.append(cell)
        if hidden and number is not None:
            reading.standing.append(cell)


@dataclass(frozen=True, eq=False)
class CellCube:
    """Every combination of codes of all variables, in units of the last decimal.

    ``known`` cells show a number, ``asked`` ones are not published as they are. ``low`` and ``high`` are
    what the file states. ``listed`` cells stand in the file; ``places`` say where. ``figures`` are numbers of
    codes that are computed from others; hidden ones are None. ``twice`` are numbers that two rows show alike,
    ``revealed`` cells that one row hides and another shows.
    """

    source: str
    names: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]
    value: Ints
    known: Mask
    low: Ints
    high: Ints
    listed: Mask
    asked: Mask
    places: dict[int, str]
    decimals: int
    signed: bool
    figures: Mapping[tuple[int, ...], Decimal | None] = field(default_factory=dict)
    twice: tuple[int, ...] = ()
    revealed: tuple[str, ...] = ()

    def name_of(self, flat: int) -> str:
        """A cell in words: the codes of its variables."""
        at = np.unravel_index(flat, self.value.shape)
        pairs = [
            (n, c[int(i)]) for n, c, i in zip(self.names, self.codes, at, strict=True) if len(c) > 1
        ]
        return ", ".join(f"{n}={c}" for n, c in pairs if c != ALL) or "all"

    def lines(self, axis: int) -> tuple[Ints, Mask]:
        """Values and which of them are known, a row for each code of a variable and a column for each line."""
        size = len(self.codes[axis])
        value = np.moveaxis(self.value, axis, 0).reshape(size, -1)
        return value, np.moveaxis(self.known, axis, 0).reshape(size, -1)


def whole_of(dimension: CodeRoles | None) -> str:
    """The code of a table without a variable: as declared, or the one total above all other codes."""
    if dimension is None or dimension.all:
        return ALL if dimension is None else dimension.all
    below = {part for parts in dimension.totals.values() for part in parts}
    below |= {code for group in dimension.subsets.values() for code in group.codes}
    below |= {*dimension.same, *dimension.differences, *dimension.units}
    tops = [code for code in dimension.totals if code not in below]
    alone = dimension.settled() - below - {*dimension.totals}
    return tops[0] if len(tops) == 1 and not alone else ALL


def cube_of(source: str, reading: Reading, layout: Layout, decimals: int = 0) -> CellCube:
    """The cells of a reading in one cube; a cell that stands twice must say the same.

    The unit is the last decimal of any shown number, or a finer one if ``decimals`` asks for it.
    """
    names = tuple(dict.fromkeys(name for cell in reading.cells for name in cell.key))
    lists: dict[str, dict[str, None]] = {name: {} for name in names}
    alls = {name: whole_of(layout.dimensions.get(name)) for name in names}
    for cell in reading.cells:
        for name in names:
            lists[name][cell.key.get(name, alls[name])] = None
    for name in names:
        if name in layout.dimensions:
            lists[name] |= dict.fromkeys(sorted(layout.dimensions[name].settled()))
    codes = tuple(tuple(lists[name]) for name in names)
    shape = tuple(map(len, codes))
    if prod(shape) > MOST_CELLS:
        raise NotJudgedError(
            f"{source}: all combinations of codes are {prod(shape):,} cells, more than {MOST_CELLS:,}; name "
            "nested columns in the layout, or audit fewer tables together."
        )
    exact = without_tails([cell.value for cell in reading.cells])[0]
    stated = [
        (v, v, v) if v is not None and c.low == c.high else (v, c.low, c.high)
        for v, c in zip(exact, reading.cells, strict=True)
    ]
    computed = {n: {*layout.dimensions[n].units} for n in names if n in layout.dimensions}
    figures_at = [
        any(c.key.get(n) in codes_ for n, codes_ in computed.items()) for c in reading.cells
    ]
    # A stated range has whole units inside; only shown numbers say how fine the units are.
    shown = [e for e, f in zip(stated, figures_at, strict=True) if not f and e[0] is not None]
    decimals = max([decimals, *(decimals_of(end) for ends in shown for end in ends)])
    signed = layout.signed or any(c.value is not None and c.value < 0 for c in reading.cells)
    index_of = [{code: i for i, code in enumerate(list_)} for list_ in codes]
    value, known = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
    low = np.full(shape, -UNBOUNDED if signed else 0, dtype=np.int64)
    high = np.full(shape, UNBOUNDED, dtype=np.int64)
    listed, asked = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    places: dict[int, str] = {}
    twice: list[int] = []
    revealed: list[str] = []
    figures: dict[tuple[int, ...], Decimal | None] = {}
    for cell, one, figure in zip(reading.cells, stated, figures_at, strict=True):
        at = tuple(i[cell.key.get(n, alls[n])] for n, i in zip(names, index_of, strict=True))
        if figure:
            # A computed figure is a statement about other cells, and no cell itself.
            if cell.value is not None or cell.asked:
                figures[at] = cell.value
                places.setdefault(int(np.ravel_multi_index(at, shape)), cell.place)
            continue
        ends = [
            None if e is None else int(e.scaleb(decimals).to_integral_value(rounding))
            for e, rounding in zip(one, (ROUND_CEILING, ROUND_CEILING, ROUND_FLOOR), strict=True)
        ]
        if any(e is not None and abs(e) > _EXACT for e in ends):
            raise InputError(
                f"{source}, {cell.place}: the number has more digits than can be computed with."
            )
        first = places.get(int(np.ravel_multi_index(at, shape)), "")
        if ends[0] is not None:
            if known[at] and value[at] != ends[0]:
                raise NotJudgedError(
                    f"{source}: a cell stands in {first} and in {cell.place} with different values; name all "
                    "columns of codes."
                )
            if known[at]:
                twice.append(ends[0])
            value[at], known[at] = ends[0], True
        if first and bool(known[at]) and bool(asked[at]) != cell.asked:
            revealed.append(f"{first} and {cell.place}")
        low[at] = low[at] if ends[1] is None else max(low[at], ends[1])
        high[at] = high[at] if ends[2] is None else min(high[at], ends[2])
        asked[at] = cell.asked and (asked[at] or not listed[at])
        listed[at] = True
        places.setdefault(int(np.ravel_multi_index(at, shape)), cell.place)
    for axis, name in enumerate(names):
        # What a share is computed from is judged, even if the file does not list it.
        roles = layout.dimensions.get(name, CodeRoles())
        for formula in filter(None, map(UNIT.fullmatch, roles.units.values())):
            code = bare(formula["value"])
            parts = (*roles.totals.get(code, ()), *roles.differences.get(code, ()))
            if parts and all(np.take(listed, index_of[axis][p], axis).any() for p in parts):
                continue  # a sum that only helps to say how others are computed: its parts are judged
            at_code = [slice(None)] * len(names)
            at_code[axis] = slice(index_of[axis][code], index_of[axis][code] + 1)
            if not listed[tuple(at_code)].any():
                listed[tuple(at_code)] = asked[tuple(at_code)] = True
                flats = np.arange(value.size).reshape(shape)[tuple(at_code)].ravel()
                places |= dict.fromkeys(flats.tolist(), UNLISTED)
    return CellCube(
        source=source,
        names=names,
        codes=codes,
        value=value,
        known=known,
        low=low,
        high=high,
        listed=listed,
        asked=asked,
        places=places,
        decimals=decimals,
        signed=signed,
        figures=figures,
        twice=tuple(twice),
        revealed=tuple(revealed),
    )
