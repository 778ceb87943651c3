"""A first draft of a dataset's description, from the columns of its data, for a person to complete."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.compute as pc

from lustrum.model import IngestError
from lustrum.model.errors import choices as choices_of
from lustrum.model.variable import RESERVED
from lustrum.tabulate.sources import FileSource

VARIABLE, MEASURE, WEIGHT, IDENTITY, LEFT_OUT = (
    "variable", "measure", "weight", "identity", "left out",
)  # fmt: skip
"""The roles that a column can have."""

MOST_CODES = 1000
MOST_NUMBERS = 60
OLDEST = 130
_AGE = re.compile(r"(^|_)(age|ages)($|_)", re.IGNORECASE)
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_IDENTITY = re.compile(r"(^|_)(id|ident|identifier|key|uuid|nr|no|number)$", re.IGNORECASE)
_WEIGHT = re.compile(r"(^|_)(weight|weights|wgt|wt)($|_)", re.IGNORECASE)
_PLAIN = re.compile(r"-?\d+(\.\d+)?\Z")


@dataclass
class _DraftColumn:
    """What a draft needs to know about one column."""

    name: str
    rows: int = 0
    empty: int = 0
    codes: set[str] = field(default_factory=set)
    many: bool = False  # more codes than a variable can have: they are no longer collected
    numeric: bool = True
    decimals: int = 0
    unique: bool = False

    def add(self, values: pa.ChunkedArray) -> None:
        try:
            text = pc.cast(values, pa.string())
        except pa.ArrowException:  # lists and the like
            self.rows, self.many, self.numeric = self.rows + len(values), True, False
            return
        self.rows += len(text)
        text = text.drop_null()
        self.empty += len(values) - len(text)
        new_codes = [str(code) for code in pc.unique(text).to_pylist()]
        for code in new_codes:
            if self.numeric and not _PLAIN.match(code):
                self.numeric = False
            self.decimals = max(
                self.decimals, len(code.partition(".")[2].rstrip("0")) if self.numeric else 0
            )
        if not self.many:
            self.codes.update(new_codes)
            self.many = len(self.codes) > MOST_CODES

    @property
    def is_number(self) -> bool:
        """Numbers of many kinds are a measure; a few whole numbers, and ages, are codes."""
        if not self.numeric or self.is_age:
            return False
        return self.many or self.decimals > 0 or len(self.codes) > MOST_NUMBERS

    @property
    def is_age(self) -> bool:
        """Whole numbers up to the age of the oldest, in a column that is called so."""
        whole = not self.many and all(code.isascii() and code.isdecimal() for code in self.codes)
        return bool(_AGE.search(self.name)) and whole and all(int(c) <= OLDEST for c in self.codes)

    @property
    def possible(self) -> tuple[str, ...]:
        """The roles that the column can have."""
        if self.empty == self.rows:
            return (LEFT_OUT,)
        can = {
            VARIABLE: self.has_codes,
            MEASURE: self.numeric,
            WEIGHT: self.numeric and not self.empty,
            IDENTITY: self.unique,
        }
        return (*(role for role, there in can.items() if there), LEFT_OUT)

    @property
    def guess(self) -> str:
        """The role that fits best, where another column is the identity of records."""
        if self.empty == self.rows:
            return LEFT_OUT
        if self.numeric and _WEIGHT.search(self.name):
            return WEIGHT
        if self.is_number:
            return MEASURE
        return VARIABLE if self.has_codes else LEFT_OUT

    @property
    def has_codes(self) -> bool:
        """Whether the values can be codes: few enough, and none that is kept for totals."""
        return not self.many and RESERVED.isdisjoint(self.codes)


@dataclass(frozen=True)
class ColumnChoice:
    """What a person said of a column; what is not said is guessed."""

    role: str | None = None
    label: str | None = None
    unit: str = ""
    missing: str = ""
    levels: bool = True


@dataclass(frozen=True)
class ColumnGuess:
    """What the data say of a column."""

    name: str
    label: str
    role: str
    possible: tuple[str, ...]
    values: int | None
    empty: int
    levels: tuple[int, ...]
    """How many groups each level has that the codes suggest, from fine to coarse."""


@dataclass(frozen=True)
class Draft:
    """The columns of a file, looked at once; a description follows from them and from what a person says."""

    name: str
    rows: int
    columns: tuple[_DraftColumn, ...] = field(repr=False)
    unusable: tuple[str, ...]

    def guesses(self) -> list[ColumnGuess]:
        identity = self._identity()
        return [
            ColumnGuess(
                c.name,
                _label(c.name),
                IDENTITY if c is identity else c.guess,
                c.possible,
                None if c.many else len(c.codes),
                c.empty,
                tuple(len(one.groups) for one in suggested_levels(sorted(c.codes, key=_order)))
                if VARIABLE in c.possible
                else (),
            )
            for c in self.columns
        ]

    def text(
        self,
        choices: Mapping[str, ColumnChoice] | None = None,
        *,
        name: str | None = None,
        title: str | None = None,
        unit: str = "person",
        units: str = "people",
    ) -> str:
        """The description as TOML; every key that only a person can complete is a comment."""
        name = name or self.name
        said = choices or {}
        lines = _head(name, title or _label(name), unit, units)
        return "\n".join([*lines, *self._lines(said)]) + "\n"

    def _identity(self) -> _DraftColumn | None:
        named = next((c for c in self.columns if c.unique and _IDENTITY.search(c.name)), None)
        return named or next((c for c in self.columns if c.unique and c.rows > MOST_NUMBERS), None)

    def _lines(self, said: Mapping[str, ColumnChoice]) -> Iterator[str]:
        guessed = {guess.name: guess.role for guess in self.guesses()}
        plain = ColumnChoice()
        roles = {c.name: said.get(c.name, plain).role or guessed[c.name] for c in self.columns}
        for column in self.columns:
            if roles[column.name] not in column.possible:
                raise IngestError(
                    f"{column.name!r} cannot be {roles[column.name]!r}; "
                    f"{choices_of(roles[column.name], column.possible)}."
                )
        identities = [name for name, role in roles.items() if role == IDENTITY]
        if len(identities) > 1:
            raise IngestError(
                f"{' and '.join(map(repr, identities))} cannot both be the identity of a record; choose one."
            )
        yield from (f"record_id = {_text(name)}" for name in identities)
        left = [f"{column!r} (its name)" for column in self.unusable]
        for column in self.columns:
            role, choice = roles[column.name], said.get(column.name, plain)
            if role == LEFT_OUT:
                why = (
                    "a code that is kept for totals"
                    if not column.many
                    else f"more than {MOST_CODES:,} values"
                )
                why = "empty" if column.empty == column.rows else why
                left.append(f"{column.name!r} ({why if column.guess == LEFT_OUT else 'chosen'})")
            elif role == WEIGHT:
                yield from ("", "[[weights]]", *_named(column, choice))
                yield f"decimals = {min(column.decimals, 9)}"
            elif role == MEASURE:
                yield from _measure(column, choice)
            elif role == VARIABLE:
                yield from _variable(column, choice)
        if left:
            yield ""
            yield f"# Left out: {', '.join(left)}."


def draft_description(source: FileSource, name: str | None = None) -> str:
    """The text of a description of a file, in which a person completes what the data cannot tell.

    A draft can be read as it is, except that measures without a unit have no tables of sums. The dataset
    is named after the file unless it is given a name.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "town.csv").write_text("sex,area\\n1,n\\n2,s\\n1,s\\n")
    ...     "[dataset]" in draft_description(FileSource(Path(folder, "town.csv")))
    True
    """
    return look_at(source).text(name=name)


def look_at(source: FileSource) -> Draft:
    """Look at the columns of a file, all of its rows once."""
    columns = source.columns()
    usable = [column for column in columns if _COLUMN.match(column)]
    if not usable:
        raise IngestError(
            f"{source.name} has no column that can be described; name columns by letters, digits and _."
        )
    draft_columns = [_DraftColumn(column) for column in usable]
    distinct = {column: _Distinct() for column in usable if _IDENTITY.search(column)}
    distinct.setdefault(usable[0], _Distinct())
    for table, _ in source.batches(usable):
        for column in draft_columns:
            column.add(table[column.name])
            if column.name in distinct:
                distinct[column.name].add(table[column.name])
    if not draft_columns[0].rows:
        raise IngestError(f"{source.name} has no rows; it needs at least one.")
    for column in draft_columns:
        if column.name in distinct and column.empty == 0 and column.decimals == 0:
            column.unique = distinct[column.name].all_differ
    return Draft(
        _dataset_name(source.path.name),
        draft_columns[0].rows,
        tuple(draft_columns),
        tuple(column for column in columns if column not in usable),
    )


class _Distinct:
    """Whether the values of a column differ, as far as its first million rows tell; ingest checks them all."""

    def __init__(self) -> None:
        self.seen: set[object] = set()
        self.all_differ = True

    def add(self, values: pa.ChunkedArray) -> None:
        if self.all_differ and len(self.seen) < 1_000_000:
            before = len(self.seen)
            self.seen.update(values.to_pylist())
            self.all_differ = len(self.seen) == before + len(values)


def _head(name: str, title: str, unit: str, units: str) -> Iterator[str]:
    yield "# A draft, made from the columns of the data. Check every line, and complete what only you can know."
    yield "# Labels and codes become public. Every key: docs/reference/dataset-description.md"
    yield "[dataset]"
    yield f"name = {_text(name)}"
    yield f"title = {_text(title)}"
    yield f"unit = {_text(unit)}      # what a record is"
    yield f"units = {_text(units)}"


def _measure(column: _DraftColumn, choice: ColumnChoice) -> Iterator[str]:
    yield from ("", "[[measures]]", *_named(column, choice))
    if choice.unit:
        yield f"unit = {_text(choice.unit)}"
    else:
        yield '# unit = "EUR"      # needed for tables of sums'
    yield f"decimals = {min(column.decimals, 9)}"
    if column.empty and choice.missing:
        yield f"missing = {_text(choice.missing)}"
    elif column.empty:
        yield '# missing = "0"     # some values are empty; say what that means, or correct them'


def _variable(column: _DraftColumn, choice: ColumnChoice) -> Iterator[str]:
    codes = sorted(column.codes, key=_order)
    yield from ("", "[[variables]]", *_named(column, choice))
    yield "# These codes occur in the data. Add those that could occur, so that the list itself tells nothing."
    yield "codes = ["
    for code in codes:
        yield f"  [{_text(code)}, {_text(code or '(empty)')}],"
    levels = suggested_levels(codes) if choice.levels else []
    if column.empty:
        taken = {*column.codes, *(code for level in levels for code in level.groups)}
        free = next(c for c in ("-", "missing", "not stated", "?!") if c not in taken)
        yield f'  [{_text(free)}, "Not stated"],'
        yield "]"
        yield f"missing = {_text(free)}       # some values are empty"
    else:
        yield "]"
    if levels:
        yield from ("", "[[variables.hierarchies]]", 'name = "coarser"', 'label = "Coarser levels"')
    for level in levels:
        yield from ("", "[[variables.hierarchies.levels]]", f"name = {_text(level.name)}")
        yield f"label = {_text(level.label)}"
        yield "groups = ["
        for code, members in level.groups.items():
            listed = ", ".join(map(_text, members))
            label = _text(level.label_of(code))
            yield f"  {{ code = {_text(code)}, label = {label}, members = [{listed}] }},"
        yield "]"


def _named(column: _DraftColumn, choice: ColumnChoice) -> tuple[str, str]:
    label = (choice.label or "").strip() or _label(column.name)
    return f"name = {_text(column.name)}", f"label = {_text(label)}"


def _dataset_name(file: str) -> str:
    plain = re.sub(r"[^a-z0-9_-]+", "-", file.partition(".")[0].lower()).strip("-_")
    return plain or "dataset"


def _label(name: str) -> str:
    return name.replace("_", " ").replace("-", " ").strip().capitalize() or name


def _order(code: str) -> tuple[int, Decimal, str]:
    try:
        return 0, Decimal(code), code
    except InvalidOperation:
        return 1, Decimal(0), code


def _text(value: str) -> str:
    """A string as TOML writes it; JSON writes the same, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


# Coarser levels that the codes of a variable suggest: tens of whole numbers, and the beginnings of codes.


FEWEST = 21
"""A variable with fewer codes than this needs no coarser level."""

_SEPARATORS = ("-", ".", "/")


@dataclass(frozen=True)
class DraftLevel:
    """A level with its groups: a code, and the finest codes behind it. The label of a group is ``label_of``."""

    name: str
    label: str
    groups: dict[str, list[str]]
    label_of: Callable[[str], str] = str


def suggested_levels(codes: Sequence[str]) -> list[DraftLevel]:
    """Levels from fine to coarse; none where the codes say nothing about them.

    >>> [list(level.groups)[:2] for level in suggested_levels([str(age) for age in range(100)])]
    [['0-9', '10-19']]
    >>> places = [f"{a}-{b}-{c}" for a in "12" for b in "1234" for c in "123456"]
    >>> [list(level.groups)[:3] for level in suggested_levels(places)]
    [['1-1', '1-2', '1-3'], ['1', '2']]
    """
    if len(codes) < FEWEST:
        return []
    if all(code.isascii() and code.isdecimal() and str(int(code)) == code for code in codes):
        return _tens(codes)
    return _separated(codes) or _widths(codes)


def _tens(codes: Sequence[str]) -> list[DraftLevel]:
    groups: dict[str, list[str]] = {}
    for number in sorted(int(code) for code in codes):
        low = number - number % 10
        groups.setdefault(f"{low}-{low + 9}", []).append(str(number))
    if not _helps(groups, len(codes)):
        return []
    return [DraftLevel("tens", "In tens", groups, lambda code: code.replace("-", " to "))]


def _separated(codes: Sequence[str]) -> list[DraftLevel]:
    """Codes such as 1-01-001: what stands before the last separator, and so on."""
    for sign in _SEPARATORS:
        depth = {code.count(sign) for code in codes}
        if len(depth) != 1 or 0 in depth:
            continue
        parts = depth.pop()
        cuts = [
            sign.join(code.split(sign)[:keep]) for keep in range(parts, 0, -1) for code in codes
        ]
        rows = [cuts[i : i + len(codes)] for i in range(0, len(cuts), len(codes))]
        return _nested(codes, rows)
    return []


def _widths(codes: Sequence[str]) -> list[DraftLevel]:
    """Codes of one length: their first characters."""
    widths = {len(code) for code in codes}
    if len(widths) != 1 or max(widths) < 2 or not all(code.isalnum() for code in codes):
        return []
    return _nested(
        codes, [[code[:keep] for code in codes] for keep in range(max(widths) - 1, 0, -1)]
    )


def _nested(codes: Sequence[str], rows: Sequence[Sequence[str]]) -> list[DraftLevel]:
    levels: list[DraftLevel] = []
    taken, before = set(codes), len(codes)
    for row in rows:
        groups: dict[str, list[str]] = {}
        for code, beginning in zip(codes, row, strict=True):
            groups.setdefault(beginning, []).append(code)
        if not _helps(groups, before) or "" in groups or taken & set(groups):
            continue
        number = len(levels) + 1
        levels.append(DraftLevel(f"level-{number}", f"Coarser level {number}", groups))
        taken |= set(groups)
        before = len(groups)
    return levels


def _helps(groups: dict[str, list[str]], before: int) -> bool:
    """Whether a level has at least two groups and at most half as many as there are below it."""
    return 2 <= len(groups) <= before / 2
