"""How a table is written down: columns, marks, separators, encodings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from corpus.build.attack import Book, Cell, Fact

Column = tuple[str, Callable[[Cell], str]]
Format = Callable[[int], str]


def number(
    group: str = "", point: str = ".", places: int = 0, brackets: bool = False, minus: str = "-"
) -> Format:
    """Writes a whole number of units of the last digit."""

    def write(value: int) -> str:
        digits = str(abs(value)).rjust(places + 1, "0")
        whole, part = (digits[:-places], digits[-places:]) if places else (digits, "")
        if group:
            pieces = []
            while len(whole) > 3:
                pieces.insert(0, whole[-3:])
                whole = whole[:-3]
            whole = group.join([whole, *pieces])
        text = whole + (point + part if places else "")
        if value < 0:
            return f"({text})" if brackets else minus + text
        return text

    return write


plain = number()


def code(head: str, place: int, labels: dict[str, str] | None = None) -> Column:
    """A column with the code of a dimension, or what `labels` writes for it."""
    return head, lambda cell: (labels or {}).get(cell[place + 1], cell[place + 1])


def const(head: str, text: str) -> Column:
    return head, lambda cell: text


def value(
    book: Book, head: str = "value", mark: str = "", form: Format = plain, response: str = ""
) -> Column:
    """A column of values, with a mark for hidden ones."""
    hidden = set(book.hidden)

    def write(cell: Cell) -> str:
        cell = (response or cell[0], *cell[1:])
        return mark if cell in hidden else form(book.values[cell])

    return head, write


def standing(book: Book, head: str = "value", form: Format = plain) -> Column:
    """A column of values in which hidden ones still stand; a reader reads them."""
    for cell in book.hidden:
        book.facts.append(Fact(((cell, 1),), book.values[cell], book.values[cell]))
    return head, lambda cell: form(book.values[cell])


def flag(book: Book, head: str, hidden: str, shown: str = "") -> Column:
    """A column of letters for hidden and shown values."""
    secret = set(book.hidden)
    return head, lambda cell: hidden if cell in secret else shown


def long(
    book: Book, *columns: Column, response: str = "", drop_hidden: bool = False
) -> list[list[str]]:
    """One row for each cell."""
    name = response or next(iter(book.responses))
    cells = [c for c in book.cells if c[0] == name and not (drop_hidden and c in book.hidden)]
    return [[head for head, _ in columns], *([write(c) for _, write in columns] for c in cells)]


def wide(
    book: Book,
    across: int,
    heads: Sequence[str],
    mark: str | Callable[[Cell], str] = "",
    form: Format | Callable[[Cell], str] = plain,
    response: str = "",
    fill_down: bool = True,
    by_cell: bool = False,
    names: dict[str, str] | None = None,
) -> list[list[str]]:
    """One dimension across; `fill_down` repeats the codes of the rows, otherwise they are merged."""
    name = response or next(iter(book.responses))
    cells = [c for c in book.cells if c[0] == name]
    columns = list(dict.fromkeys(c[across + 1] for c in cells))
    stubs = list(dict.fromkeys((*c[1 : across + 1], *c[across + 2 :]) for c in cells))
    rows = [[*heads, *((names or {}).get(c, c) for c in columns)]]
    before: tuple[str, ...] = ()
    hidden = set(book.hidden)
    for stub in stubs:
        line = list(stub)
        if not fill_down:
            for i in range(len(stub) - 1):
                if before[: i + 1] == stub[: i + 1]:
                    line[i] = ""
            before = stub
        for column in columns:
            cell = (name, *stub[:across], column, *stub[across:])
            if cell not in book.values or cell in book.unlisted:
                line.append("")
            elif cell in hidden:
                line.append(mark(cell) if callable(mark) else mark)
            else:
                line.append(form(cell) if by_cell else form(book.values[cell]))  # type: ignore[arg-type]
        rows.append(line)
    return rows


def delimited(
    rows: Sequence[Sequence[str]],
    sep: str = ",",
    quote: str = "needed",
    above: Sequence[str] = (),
    below: Sequence[str] = (),
    end: str = "\n",
    encoding: str = "utf-8",
) -> bytes:
    """Rows as bytes; quotes where 'needed', on 'all' fields or on 'text'."""

    def field(text: str) -> str:
        must = sep in text or '"' in text or "\n" in text
        stripped = text.replace(".", "").replace("-", "").replace(",", "")
        if must or quote == "all" or (quote == "text" and not stripped.isdigit()):
            return '"' + text.replace('"', '""') + '"'
        return text

    lines = [*above, *(sep.join(field(text) for text in row) for row in rows), *below]
    return (end.join(lines) + end).encode(encoding)


# Companion columns: what they say about a cell, as facts for the attacker.


def half_up(top: int, bottom: int) -> int:
    """The quotient rounded to a whole number, halves up."""
    return (2 * top + bottom) // (2 * bottom)


def mean_fact(book: Book, cell: Cell, units: int, tenths: int) -> Fact:
    """value / units rounded to tenths."""
    return Fact(((cell, 20),), (2 * tenths - 1) * units, (2 * tenths + 1) * units)


def share_fact(part: Cell, whole: Cell, per: int, printed: int) -> list[Fact]:
    """per * part / whole rounded to the whole number `printed`; `per` is 1000 for tenths of a per cent."""
    return [
        Fact(((part, 2 * per), (whole, -(2 * printed - 1))), 0, None),
        Fact(((part, 2 * per), (whole, -(2 * printed + 1))), None, 0),
    ]
