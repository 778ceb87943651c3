"""A layout proposed from a file, with the reason for each role; what only a name suggests stays open.

Proposals may be as clever as they like, because nothing rests on them: a role counts by evidence in the
numbers, by the file's own description, or by the word of a person.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Mask
from lustrum.model.errors import NotJudgedError
from lustrum.readers.cells import ALL, CellCube, Reading, cube_of, names_of, read_cells
from lustrum.readers.code_sums import TOTAL_NAMES, SumSearch
from lustrum.readers.grids import Container, FieldGrid
from lustrum.readers.layout import (
    MEASURE,
    CodeRoles,
    ColumnRole,
    DeclaredTable,
    Layout,
    Subsets,
    Symbol,
)
from lustrum.readers.number_text import Style, bound_of_words, printed, style_of
from lustrum.readers.relations import evidence

_VALUES = re.compile(
    r"(obs_?)?values?|v4_\d|wert|valeur|valor|anzahl|count|n|amount|number", re.IGNORECASE
)
_STATUS = re.compile(r".*(status|flag|marking|conf|symbol|footnote|vlag|statut).*", re.IGNORECASE)
_INSIDE = re.compile(
    r"(of which|of whom|darunter|davon|dont|waarvan|herav|heraf|varav|memo|including|incl\.|thereof|di cui)\b",
    re.IGNORECASE,
)
_PLAIN: Mapping[str, tuple[str, ...]] = {
    "contributors": ("n", "contributors"),
    "lower": ("lower", "lpl"),
    "upper": ("upper", "upl"),
    "primary": ("primary",),
    "note": ("status", "CONF_STATUS", "conf_status", "OBS_STATUS", "obs_status"),
}
"""What columns of confidential files are called, beside ``value``, ``x1``, ``x2`` ... and ``h1``, ``h2`` ..."""
_RANKED = {"contribution": re.compile(r"x([1-9]\d*)"), "holding": re.compile(r"h([1-9]\d*)")}
_OF_R: Mapping[str, Mapping[str, str]] = {
    "sdcTable": {"strID": "note", "sdcStatus": "primary"},
    "GaussSuppression": {"primary": "primary", "suppressed": "note"},
}
"""What tables of these packages are known by, beside ``freq`` for their counts."""
_STATED = 0.05  # by what chance a sum that the file itself states may fit where it is wrong
_SYMBOL = 6  # letters of a symbol that stands in place of a number


@dataclass(frozen=True)
class RoleQuestion:
    """A role that nothing in the file settles: where it stands in the layout, and what to say about it."""

    role: str
    text: str
    cells: int = 0


@dataclass
class Proposal:
    """A layout, why each role was chosen, and the questions that are left, most useful first."""

    layout: Layout
    reasons: dict[str, str] = field(default_factory=dict)
    questions: list[RoleQuestion] = field(default_factory=list)


def propose(container: Container) -> Proposal:
    reasons: dict[str, str] = {}
    questions: list[RoleQuestion] = []
    tables, decimal = [], "."
    for grid in container.grids:
        table, decimal = _table(grid, reasons, questions, decimal)
        if table is not None:
            tables.append(table)
    if not tables:
        raise NotJudgedError(
            f"{container.source}: no table was recognised; say with a layout where it stands."
        )
    if len(tables) > 1:
        tables = [table.model_copy(update={"fixed": {"sheet": table.sheet}}) for table in tables]
    layout = Layout(
        tables=tuple(tables), decimal="," if decimal == "," else ".", digest=container.digest
    )
    reading = read_cells(container, layout)
    symbols, letters = _symbols(reading, questions)
    layout = layout.model_copy(update={"symbols": symbols, "letters": letters})
    reading = read_cells(container, layout)
    cube = cube_of(container.source, reading, layout)
    dimensions = {}
    structures = [grid.structure for grid in container.grids if grid.structure is not None]
    stated = structures[0].parts if len(container.grids) == len(structures) == 1 else {}
    for axis, name in enumerate(cube.names):
        dimensions[name] = _dimension(cube, axis, stated.get(name, {}), reasons, questions)
    _outside(container, reading, questions)
    _signs(cube, dimensions, questions)
    if reasons.keys() & {
        f"code:{n}:{t}"
        for n, d in dimensions.items()
        for t in d.totals
        if "chance" in reasons[f"code:{n}:{t}"]
    }:
        questions = [
            q for q in questions if q.role != "decimal"
        ]  # sums hold with the numbers as they were read
    order = sorted(questions, key=lambda q: -q.cells)
    layout = layout.model_copy(
        update={"dimensions": dimensions, "open": tuple(q.role for q in order)}
    )
    return Proposal(layout, reasons, order)


def propose_true(container: Container) -> Proposal:
    """Propose what the columns of a confidential file are; roles of codes follow from all files together."""
    reasons: dict[str, str] = {}
    questions: list[RoleQuestion] = []
    tables = [
        _table(grid, reasons, questions, ".", container.source)[0] for grid in container.grids
    ]
    found = [table for table in tables if table is not None]
    if len(found) != 1:
        raise NotJudgedError(
            f"{container.source}: {len(found)} tables were recognised, and a confidential file has one; say in "
            "a layout where it stands."
        )
    if not questions and not any(one.role == "code" for one in found[0].columns.values()):
        raise InputError(
            f"{container.source}: there is no column of codes; a table needs a variable."
        )
    questions = [question for question in questions if question.role != "decimal"]
    return Proposal(Layout(tables=tuple(found)), reasons, questions)


def _true_columns(names: Sequence[str], source: str) -> tuple[dict[str, ColumnRole], str]:
    """The columns of a confidential file that its names make known, and what the value would be called."""

    def fact(name: str) -> str:
        """A variable keeps its own name in files that this project writes, and a fact gives way."""
        while f"{name}_" in names:
            name += "_"
        return name

    columns = {
        name: ColumnRole(role=role)  # type: ignore[arg-type]
        for role, usual in _PLAIN.items()
        for name in [n for n in map(fact, usual) if n in names][:1]
    }
    for role, pattern in _RANKED.items():
        ranked = {int(match[1]): match[0] for match in map(pattern.fullmatch, names) if match}
        missing = next((n for n in range(1, max(ranked, default=0)) if n not in ranked), None)
        if missing is not None:
            last = ranked[max(ranked)]
            raise InputError(
                f"{source}: there is a column {last!r} but no column {last[0]}{missing}; the largest "
                "contributions are numbered from 1 without a gap."
            )
        columns |= {ranked[n]: ColumnRole(role=role) for n in sorted(ranked)}  # type: ignore[arg-type]
    labels = {name: name.removesuffix("_label") for name in names if name.endswith("_label")}
    columns |= {n: ColumnRole(role="label", of=of) for n, of in labels.items() if of in names}
    called = fact("value")
    for package in _OF_R.values():
        if package.keys() <= set(names):
            columns |= {n: ColumnRole(role=role) for n, role in package.items()}  # type: ignore[arg-type]
            called = called if called in names else "freq"
    return columns, called


def _table(
    grid: FieldGrid,
    reasons: dict[str, str],
    questions: list[RoleQuestion],
    decimal: str,
    source: str = "",
) -> tuple[DeclaredTable | None, str]:
    """The table of a sheet: the line of names, the last line, and what each column is.

    In a table of a confidential ``source`` some columns are known by their names, the value among them.
    """
    true = bool(source)
    block = _block(grid)
    if block is None:
        return None, decimal
    head, last = block
    place = DeclaredTable(sheet=grid.name, head=(grid.numbers[head],), last=last, columns={})
    names, body = names_of(grid, place, "")
    texts = {
        name: [grid.lines[i][c].strip() if c < len(grid.lines[i]) else "" for i in body]
        for c, name in enumerate(names)
    }
    own = grid.structure
    known, called = _true_columns(names, source) if true and own is None else ({}, "")
    texts = {name: column for name, column in texts.items() if any(column) and name not in known}
    if true:
        # Numbers could be contributors, so that only what rows need to be told apart is a code.
        styles = dict.fromkeys(texts, Style())
        unnamed = [name for name in texts if f"{name}_label" not in known]
        numeric = [name for name in unnamed if all(map(_in_some_style, filter(None, texts[name])))]
    else:
        styles = {name: style_of(column) for name, column in texts.items()}
        numeric = [name for name in texts if _is_numeric(texts[name], styles[name])]
        numeric = [name for name in numeric if not _is_code(name, texts, numeric)]
    if called in texts and called not in numeric:
        numeric.append(called)  # what is no number in it is a mistake
    fill = False
    if own is not None:
        codes, values = list(own.variables), list(own.values)
        columns = {name: ColumnRole(role="code") for name in codes}
        columns |= {label: ColumnRole(role="label", of=code) for code, label in own.labels.items()}
        columns |= {name: ColumnRole(role="value") for name in values}
        if own.status is not None:
            columns[own.status] = ColumnRole(role="note" if true else "status")
        reasons |= {f"column:{name}": "the file says so" for name in columns}
    else:
        named = [name for name in numeric if _VALUES.fullmatch(name)]
        named = [called] if called in texts else named
        status = [n for n in texts if n not in numeric and not true and _is_status(n, texts[n])]
        others = [name for name in texts if name not in numeric and name not in status]
        if not _unique(texts, others) and _unique(texts, [*others, *status]):
            status = []  # what tells rows apart is a code, however short
        words = [name for name in texts if name not in numeric and name not in status]
        values = named or numeric
        if true and values != [called]:
            listed = ", ".join(map(repr, values))
            questions.append(RoleQuestion("values", f"Is {listed} the value?", len(body)))
        labels = {} if true else _labels({name: texts[name] for name in words})
        codes = [name for name in words if name not in labels]
        # Numbers that tell rows apart, such as years, are codes.
        for name in [n for n in numeric if n not in named or len(named) > 1]:
            if _unique(texts, codes) or (name in values and len(values) == 1):
                break
            codes.append(name)
            values = [v for v in values if v != name]
        if true and len(codes) > 1:
            # What no row needs could be anything, and a code is published.
            without = {name: [code for code in codes if code != name] for name in codes}
            codes = [n for n in names if n in without and not _unique(texts, without[n])]
        fill = not _unique(texts, codes) and any("" in texts[c] and texts[c][0] for c in codes)
        columns = {name: ColumnRole(role="code") for name in codes}
        columns |= {name: ColumnRole(role="label", of=of) for name, of in labels.items()}
        columns |= {name: ColumnRole(role="value") for name in values}
        columns |= {name: ColumnRole(role="status") for name in status[:1]}
        columns |= known
        if true and fill:
            questions.append(RoleQuestion("fill", "Is a blank code that of the line above?"))
        reasons |= {f"column:{name}": "by its contents" for name in columns}
        for name in texts:
            if name not in columns or (
                name in labels and _numbers_in(texts[name]) - _numbers_in(texts[labels[name]])
            ):
                questions.append(
                    RoleQuestion(f"column:{name}", f"What is the column {name!r}?", len(body))
                )
                columns.setdefault(name, ColumnRole(role="note"))
    if not values:
        return None, decimal
    for name in values:
        if styles[name].decimal == ",":
            decimal = ","
        if styles[name].doubt:
            questions.append(
                RoleQuestion(
                    "decimal",
                    f"Do {styles[name].doubt} in {name!r} separate thousands or decimals?",
                    len(body),
                )
            )
    across = (MEASURE,) if len(values) > 1 else ()
    return place.model_copy(update={"columns": columns, "across": across, "fill": fill}), decimal


def _block(grid: FieldGrid) -> tuple[int, int | None] | None:
    """The index of the line of names, and the number of the last line of cells: the lines of the usual
    width.
    """
    filled = [sum(bool(text.strip()) for text in line) for line in grid.lines]
    wide = Counter(len(line) for line, n in zip(grid.lines, filled, strict=True) if n > 1)
    if not wide:
        return None
    width = max(wide.items(), key=lambda item: (item[1], item[0]))[0]
    usual = max(n for line, n in zip(grid.lines, filled, strict=True) if len(line) == width)
    inside = [
        i
        for i, line in enumerate(grid.lines)
        if len(line) == width and filled[i] > min(usual, 3) // 2
    ]
    if len(inside) < 2:
        return None
    head, last = inside[0], inside[-1]
    data = any(printed(text.strip(), Style()) for text in grid.lines[head][1:])
    if head and data and len(grid.lines[head - 1]) == width - 1 == filled[head - 1]:
        head -= 1  # R leaves out the name of its first column
    return head, grid.numbers[last] if last + 1 < len(grid.lines) else None


def _is_numeric(texts: Sequence[str], style: Style) -> bool:
    """Whether a column holds numbers, and beside them nothing longer than a symbol."""
    numbers = 0
    for text in filter(None, texts):
        if printed(text.removesuffix("%").strip(), style) is not None:
            numbers += 1
        elif len(text) > _SYMBOL and bound_of_words(text) is None:
            return False
    return numbers > 0


def _in_some_style(text: str) -> bool:
    return any(printed(text, Style(sign)) is not None for sign in ".,")


def _is_code(name: str, texts: dict[str, list[str]], numeric: Sequence[str]) -> bool:
    """Whether a column of numbers holds codes: one throughout, years, or each beside one word of
    another column.
    """
    column = texts[name]
    if len(numeric) < 2 or _VALUES.fullmatch(name):
        return False
    if len(set(column)) == 1 or all(re.fullmatch(r"(19|20)\d\d", text) for text in column):
        return True
    return any(
        1
        < len(set(zip(column, other, strict=True)))
        == len(set(column))
        == len(set(other))
        < len(column)
        for word, other in texts.items()
        if word not in numeric
    )


def _is_status(name: str, texts: Sequence[str]) -> bool:
    words = {text for text in texts if text}
    short = max(map(len, words)) <= 3 and len(words) < 8
    return short and ("" in texts or bool(_STATUS.fullmatch(name)))


def _labels(texts: dict[str, Sequence[str]]) -> dict[str, str]:
    """Columns that name the codes of another one: the same text beside the same code, and only there."""
    labels: dict[str, str] = {}
    for name, column in texts.items():
        for code in texts:
            pairs = set(zip(texts[code], column, strict=True))
            if code == name or code in labels or name in labels.values():
                continue
            if len(pairs) == len(set(texts[code])) == len(set(column)) > 1:
                shorter = sum(map(len, set(texts[code]))) <= sum(map(len, set(column)))
                labels.update({name: code} if shorter else {code: name})
                break
    return labels


def _unique(texts: dict[str, list[str]], codes: Sequence[str]) -> bool:
    rows = list(zip(*(texts[code] for code in codes), strict=True))
    return bool(codes) and len(set(rows)) == len(rows)


def _numbers_in(texts: Sequence[str]) -> set[str]:
    return {number for text in texts for number in re.findall(r"\d+", text)}


def _symbols(
    reading: Reading, questions: list[RoleQuestion]
) -> tuple[dict[str, Symbol], dict[str, str]]:
    """Everything that stands in place of a number or beside one, with the meaning that its name suggests."""
    symbols: dict[str, Symbol] = {}
    for text in reading.symbols:
        stated = bound_of_words(text)
        symbols[text] = "hidden" if stated is None else {"low": stated[0], "high": stated[1]}  # type: ignore[assignment]
    if symbols:
        cells = sum(map(len, reading.symbols.values()))
        listed = ", ".join(f"{text!r} (cells: {len(reading.symbols[text])})" for text in symbols)
        questions.append(
            RoleQuestion(
                "symbols",
                f"What do these stand for: {listed}? A hidden value, 0, or a range?",
                cells,
            )
        )
    letters = dict.fromkeys(reading.letters, "note")
    if letters:
        cells = sum(map(len, reading.letters.values()))
        listed = ", ".join(f"{text!r} ({len(reading.letters[text])})" for text in letters)
        questions.append(
            RoleQuestion("letters", f"What do these say beside a number: {listed}?", cells)
        )
    return Layout(symbols=symbols).symbols, letters


def _signs(
    cube: CellCube, dimensions: Mapping[str, CodeRoles], questions: list[RoleQuestion]
) -> None:
    """Hidden parts of a sum that the shown ones reach already are 0, unless some are negative."""
    cells = 0
    for axis, roles in enumerate(dimensions.values()):
        value, known = cube.lines(axis)
        at = {code: i for i, code in enumerate(cube.codes[axis])}
        for total, parts in roles.totals.items():
            rows = [at[part] for part in parts]
            rest = value[at[total]] - (value[rows] * known[rows]).sum(axis=0)
            cells += int((~known[rows])[:, known[at[total]] & (rest == 0)].sum())
    if cells and not cube.signed:
        text = "Can numbers be negative? If not, hidden ones that add up to 0 are 0."
        questions.append(RoleQuestion("signed", text, cells))


def _outside(container: Container, reading: Reading, questions: list[RoleQuestion]) -> None:
    """Lines and parts that no table holds."""
    if reading.lines:
        first = ", ".join(reading.lines[:3]) + (", ..." if len(reading.lines) > 3 else "")
        questions.append(
            RoleQuestion(
                "notes",
                f"Do the lines outside the table ({first}) say anything about hidden cells?",
            )
        )
    if reading.unlisted:
        questions.append(RoleQuestion("missing", unlisted_words(reading), len(reading.unlisted)))
    if container.unread:
        first = "; ".join(map(str, container.unread[:3])) + (
            "; ..." if len(container.unread) > 3 else ""
        )
        questions.append(
            RoleQuestion(
                "parts",
                f"The file holds more than its cells: {first}. Does it say anything about hidden cells?",
            )
        )


def unlisted_words(reading: Reading) -> str:
    """A question about combinations of codes that a table does not list."""
    number, first = len(reading.unlisted), reading.unlisted[0]
    return f"{number:,} combinations are not listed, such as {first}: are they hidden, 0 or impossible?"


def _dimension(
    cube: CellCube,
    axis: int,
    stated: Mapping[str, tuple[str, ...]],
    reasons: dict[str, str],
    questions: list[RoleQuestion],
) -> CodeRoles:
    """The roles of the codes of one variable, as far as numbers or names tell."""
    name, codes = cube.names[axis], cube.codes[axis]
    value, known = cube.lines(axis)
    listed: Mask = np.asarray(np.moveaxis(cube.listed, axis, 0).reshape(len(codes), -1).any(axis=1))
    search = SumSearch(codes, value, known)
    totals = search.totals()
    for total, parts_ in stated.items():
        places = [codes.index(code) for code in (total, *parts_) if code in codes]
        held = evidence(value, known, places[0], places[1:]) if len(places) > 2 else None
        if (
            total not in totals
            and held is not None
            and held[1] < _STATED
            and len(places) > len(parts_)
        ):
            totals[total] = parts_
            reasons[f"code:{name}:{total}"] = f"the file says so, and so do {held[0]} lines"
    shown = dict(totals)
    for total, (parts_, lines) in search.weak.items():
        if total not in totals and not {total, *parts_} & {
            p for one in totals.values() for p in one
        }:
            totals[total] = parts_
            reasons[f"code:{name}:{total}"] = (
                f"sum of {len(parts_)} codes in {lines} of {lines} lines, too few to show it"
            )
    for total, (lines, chance) in search.found.items():
        reasons[f"code:{name}:{total}"] = (
            f"sum of {len(totals[total])} codes in {lines} of {lines} lines; by chance {chance:.0e}"
        )
    subsets: dict[str, Subsets] = {}
    parts = {part for one in totals.values() for part in one}
    for index, code in enumerate(codes):
        if _INSIDE.search(code) and code not in parts and index:
            head = next((c for c in reversed(codes[:index]) if not _INSIDE.search(c)), None)
            if head is not None:
                group = subsets.get(head)
                subsets[head] = Subsets(codes=(*(group.codes if group else ()), code))
                reasons[f"code:{name}:{head}"] = "by name only"
    inside = {c for group in subsets.values() for c in group.codes}
    left = [c for c in codes if c not in totals and c not in parts and c not in inside]
    named = [c for c in left if c.casefold().strip() in TOTAL_NAMES or c == ALL]
    for total in named[:1]:
        rest = [c for c in (*left, *(t for t in totals if t not in parts)) if c != total]
        if len(rest) > 1:
            totals[total] = tuple(dict.fromkeys(rest))
            reasons[f"code:{name}:{total}"] = "by name only"
    settled = {*shown, *(p for one in shown.values() for p in one)}
    unsettled = [c for c in codes if c not in settled]
    if unsettled and len(codes) > 1:
        first = ", ".join(repr(c) for c in unsettled[:5]) + (", ..." if len(unsettled) > 5 else "")
        hidden = int((~known & listed[:, None]).sum())
        questions.append(
            RoleQuestion(
                f"codes:{name}",
                f"Which codes of {name!r} add up to which? Nothing shows it for {first}.",
                hidden,
            )
        )
    return CodeRoles(totals=totals, subsets=subsets)
