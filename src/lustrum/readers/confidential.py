"""True tables from confidential files, read by a layout or by a proposal that leaves nothing open.

Without a layout only what is certain is taken: the documented names of columns, the totals of a hierarchy, and
those that every line of the file shows. Whatever else there is, is asked about, and the answer is a line of a
layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Ints
from lustrum.model.errors import NotJudgedError
from lustrum.readers.cells import ReadCell, grid_of, names_of, read_cells
from lustrum.readers.container import read_container
from lustrum.readers.grids import Container, FieldGrid
from lustrum.readers.layout import CONFIDENTIAL, DeclaredTable, Layout, layout_text
from lustrum.readers.number_text import Style, decimals_of, printed, style_of, without_tails
from lustrum.readers.propose import Proposal, propose_true

Kind = Literal["counts", "sums"]
Number = Decimal | None

_MARKS = {"": False, "0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}
_MARKS |= {
    "u": True,
    "s": False,
    "x": False,
    "z": False,
}  # of sdcTable; what is secondary is found anew
_EXACT = 2**53
_EXACTLY = Context(prec=1000, rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True, eq=False, repr=False)
class TrueFile:
    """The rows of a confidential file, as its layout says. Nothing of its values is in the ``repr``.

    ``codes`` are the codes of each variable in the order in which they are first met. A number that is None is
    blank: it is not known, and never 0. ``notes`` say how the file was read.
    """

    source: str
    layout: Layout
    names: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    places: tuple[str, ...]
    labels: Mapping[tuple[str, str], str]
    values: tuple[Decimal, ...]
    count: tuple[Number, ...] | None
    largest: tuple[tuple[Number, ...], ...]
    holdings: tuple[tuple[str, ...], ...]
    lower: tuple[Number, ...] | None
    upper: tuple[Number, ...] | None
    primary: tuple[bool, ...] | None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"TrueFile({self.source!r}, {' x '.join(self.names)}, {len(self.keys)} cells)"

    @cached_property
    def codes(self) -> tuple[tuple[str, ...], ...]:
        return tuple(
            tuple(dict.fromkeys(key[i] for key in self.keys)) for i in range(len(self.names))
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.codes))

    @cached_property
    def positions(self) -> tuple[Ints, ...]:
        """For each variable, the position of the code of every row."""
        index_of = [{code: k for k, code in enumerate(codes)} for codes in self.codes]
        return tuple(
            np.array([index[key[i]] for key in self.keys], dtype=np.int64)
            for i, index in enumerate(index_of)
        )

    @cached_property
    def decimals(self) -> int:
        """The most decimals that a value or contribution is written with."""
        return max(decimals_of(v) for column in (self.values, *self.largest) for v in column)

    def where(self, row: int) -> str:
        return f"{self.source}, {self.places[row]}"

    def units(self, row: int, number: Decimal) -> int:
        """A number in units of the last decimal, if that can be computed with."""
        scaled = int(number.scaleb(self.decimals))
        if abs(scaled) > _EXACT:
            raise InputError(
                f"{self.where(row)}: a number has more digits than can be computed with exactly; write "
                "'decimals' under [suppress] of a layout to round them."
            )
        return scaled

    @cached_property
    def dense(self) -> Ints:
        """The values in the shape of the table, in units of the last decimal; a cell without a row is 0."""
        out = np.zeros(self.shape, dtype=np.int64)
        out[self.positions] = [self.units(row, v) for row, v in enumerate(self.values)]
        return out

    def rounded(self, decimals: int) -> TrueFile:
        """The file with values and contributions rounded to so many decimals, half to even."""
        unit = Decimal(1).scaleb(-decimals)

        def rounded(v: Decimal) -> Decimal:
            return v if decimals_of(v) <= decimals else v.quantize(unit, context=_EXACTLY)

        largest = tuple(tuple(None if v is None else rounded(v) for v in c) for c in self.largest)
        return replace(self, values=tuple(map(rounded, self.values)), largest=largest)


def read_true(path: Path, layout: Layout | None = None) -> TrueFile:
    """Read a confidential file: CSV, Parquet, a workbook or JSON-stat."""
    container = read_container(path)
    layout = layout or Layout()
    source = container.source
    if layout.open:
        raise InputError(f"{source}: the layout leaves {layout.open[0]!r} open; settle it.")
    if layout.digest and layout.digest != container.digest:
        raise InputError(f"{source}: the layout is of a file with other bytes; correct 'digest'.")
    if len(layout.tables) > 1 or layout.rounding is not None:
        raise InputError(
            f"{source}: a confidential file holds one table, of numbers that are exact."
        )
    proposed = not layout.tables
    if proposed:
        proposal = propose_true(container)
        if proposal.questions:
            raise NotJudgedError(_asked(container, proposal, layout))
        layout = layout.model_copy(update={"tables": proposal.layout.tables})
    (table,) = layout.tables
    grid = grid_of(container, table.sheet)
    decimal, notes = _decimal(grid, table, layout, source)
    layout = layout.model_copy(update={"decimal": decimal})
    file, lines = _true_file(container, grid, layout, (*container.notes, *notes))
    if proposed and lines:
        raise NotJudgedError(
            f"{source}: are the lines outside the table ({', '.join(lines[:3])}) cells? Say in a layout where "
            "it begins ('head') and ends ('last')."
        )
    return file


def _asked(container: Container, proposal: Proposal, layout: Layout) -> str:
    """The questions that a file leaves open, and the layout that would answer them once they are settled."""
    proposed = layout.model_copy(update={"tables": proposal.layout.tables})
    text = layout_text(proposed, proposal.reasons)
    asked = " ".join(question.text for question in proposal.questions)
    return f"{container.source}: {asked} Answer in a layout (--layout), such as this one:\n{text}"


def _decimal(
    grid: FieldGrid, table: DeclaredTable, layout: Layout, source: str
) -> tuple[str, tuple[str, ...]]:
    """The sign that separates decimals in all columns of numbers: as the layout says, or as they show."""
    names, body = names_of(grid, table, source)
    numeric = ("value", "contribution", "lower", "upper")
    columns = [
        i for i, name in enumerate(names)
        if name in table.columns and table.columns[name].role in numeric
    ]  # fmt: skip
    texts = [grid.lines[i][c].strip() for i in body for c in columns if c < len(grid.lines[i])]
    if "decimal" in layout.model_fields_set:
        return layout.decimal, ()
    style = style_of(texts)
    if style.doubt:
        raise InputError(
            f'{source}: do {style.doubt} separate thousands or decimals? Write decimal = "." or decimal = "," '
            "in a layout."
        )
    return style.decimal, () if style.decimal == "." else ("read with decimal commas.",)


# Rows


def _true_file(
    container: Container, grid: FieldGrid, layout: Layout, notes: tuple[str, ...]
) -> tuple[TrueFile, list[str]]:
    """The rows of a table, and the lines outside of it."""
    source, (table,) = container.source, layout.tables
    _check_width(grid, table, source)
    reading = read_cells(container, layout, listed_only=True)
    rows = reading.cells
    by_role: dict[str, list[str]] = {}
    for name, column in table.columns.items():
        by_role.setdefault(column.role, []).append(name)
    _check_reading(source, table, rows, by_role)
    for what, found in (("symbols", reading.symbols), ("letters", reading.letters)):
        unknown = next(filter(None, found), None)
        if unknown is not None:
            raise InputError(
                f"{source}, {found[unknown][0]}: {unknown!r} is not a number; correct it, or say under "
                f"[{what}] of a layout what it means."
            )
    if reading.columns:
        raise InputError(
            f"{source}: the layout does not say what the column {reading.columns[0]!r} is; a column that is "
            "not used is a note."
        )
    missing = next((cell for cell in rows if cell.value is None), None)
    if missing is not None:
        raise InputError(
            f"{source}, {missing.place}: the value is missing; suppression starts from true values."
        )
    names = tuple(rows[0].key)
    facts = _Facts(source, layout, rows)
    largest = [facts.numbers(name) for name in by_role.get("contribution", ())]
    values, *largest = _without_noise([[cell.value for cell in rows], *largest])
    labels = {
        (
            table.columns[code].dimension or code,
            cell.key[table.columns[code].dimension or code],
        ): cell.beside[name]
        for name in by_role.get("label", ())
        for code in [table.columns[name].of]
        for cell in rows
        if code in table.columns
    }

    def one(role: str) -> tuple[Number, ...] | None:
        return facts.numbers(by_role[role][0], least=0) if role in by_role else None

    file = TrueFile(
        source=source,
        layout=layout,
        names=names,
        keys=tuple(tuple(cell.key[name] for name in names) for cell in rows),
        places=tuple(cell.place for cell in rows),
        labels=labels,
        values=values,  # type: ignore[arg-type]
        count=one("contributors"),
        largest=tuple(largest),
        holdings=tuple(facts.texts(name) for name in by_role.get("holding", ())),
        lower=one("lower"),
        upper=one("upper"),
        primary=facts.marks(by_role["primary"][0]) if "primary" in by_role else None,
        notes=notes,
    )
    _check_once(file)
    decimals = layout.suppress.decimals
    return file if decimals is None else file.rounded(decimals), reading.lines


def _check_width(grid: FieldGrid, table: DeclaredTable, source: str) -> None:
    """Every line has as many fields as there are names."""
    body = names_of(grid, table, source)[1]
    width = max(len(grid.lines[list(grid.numbers).index(n)]) for n in table.head)
    for i in body:
        if len(grid.lines[i]) != width:
            raise InputError(
                f"{source}, {grid.places[i]}: there are {len(grid.lines[i])} fields, but the line of names has "
                f"{width}."
            )
    if not body:
        raise InputError(f"{source}: there is no cell; a table needs at least one.")


def _check_reading(
    source: str,
    table: DeclaredTable,
    rows: Sequence[ReadCell],
    by_role: Mapping[str, Sequence[str]],
) -> None:
    """One column of values, as many holdings as contributions, and no role twice that is one column."""
    wide = table.across and not CONFIDENTIAL & by_role.keys()
    for role in ("value", "contributors", "lower", "upper", "primary"):
        if len(by_role.get(role, ())) > 1 and not (role == "value" and wide):
            raise InputError(
                f"{source}: the columns {', '.join(by_role[role])} all have the role {role!r}; a table has "
                "one, and the others are notes."
            )
    if "contributor" in by_role:
        raise InputError(
            f"{source}: the column {by_role['contributor'][0]!r} names one contributor a line; a table to "
            "suppress has a line for each cell."
        )
    holdings, largest = (len(by_role.get(role, ())) for role in ("holding", "contribution"))
    if holdings and holdings != largest:
        raise InputError(
            f"{source}: there are {holdings} columns of holdings but {largest} of largest contributions; each "
            "contribution needs the holding that made it."
        )
    if table.missing == "hidden":
        raise InputError(f"{source}: in a confidential file no combination of codes is hidden.")


def _check_once(file: TrueFile) -> None:
    seen: dict[tuple[str, ...], int] = {}
    for row, key in enumerate(file.keys):
        if key in seen:
            raise InputError(
                f"{file.where(row)}: the cell stands in {file.places[seen[key]]} already."
            )
        seen[key] = row


@dataclass(frozen=True)
class _Facts:
    """What stands beside the values of a confidential file."""

    source: str
    layout: Layout
    rows: Sequence[ReadCell]

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(cell.beside[name] for cell in self.rows)

    def numbers(self, name: str, least: int | None = None) -> tuple[Number, ...]:
        """The numbers of a column; a blank is not known."""
        style = Style(self.layout.decimal)
        out: list[Number] = []
        for cell in self.rows:
            text = cell.beside[name]
            if not text or self.layout.symbols.get(text) == "hidden":
                out.append(None)
                continue
            number = printed(text, style)
            if number is None or number.mark or number.value.adjusted() > 15:
                raise InputError(
                    f"{self.source}, {cell.place}: {name!r} is not a number below 10**15; leave it blank if it "
                    "is not known."
                )
            if least is not None and number.value < least:
                raise InputError(f"{self.source}, {cell.place}: {name!r} is below {least}.")
            out.append(number.value)
        return tuple(out)

    def marks(self, name: str) -> tuple[bool, ...]:
        for cell in self.rows:
            if cell.beside[name].lower() not in _MARKS:
                raise InputError(
                    f"{self.source}, {cell.place}: {name!r} must be 0 or 1, or u, s, x or z as sdcTable has it."
                )
        return tuple(_MARKS[text.lower()] for text in self.texts(name))


def _without_noise(columns: Sequence[Sequence[Number]]) -> list[tuple[Number, ...]]:
    """Numbers without the tails of binary floats, all columns alike."""
    flat = iter(without_tails([v for column in columns for v in column])[0])
    return [tuple(next(flat) for _ in column) for column in columns]
