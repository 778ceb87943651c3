"""A layout: what everything in a file is, in one TOML file.

A layout is declared by a person or proposed from the file. A proposal lists under ``open`` the roles for
which it has no evidence; a role counts as soon as somebody takes it off that list, or changes it.

.. code-block:: toml

    kind = "counts"
    notes = "nothing"                     # what lines outside the tables state about hidden values

    [symbols]
    x = "hidden"
    "-" = "zero"
    "<5" = { low = 1, high = 4 }

    [[tables]]
    head = [4]                            # the line of names
    [tables.columns]
    region = { role = "code" }
    name = { role = "label", of = "region" }
    value = { role = "value" }

    [dimensions.region]
    totals = { Total = ["North", "South"] }
    subsets = { North = { codes = ["of which: Capital"] } }

A layout of a confidential file also names columns of contributors and levels, and says under ``[suppress]``
how cells are suppressed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from lustrum.model import InputError
from lustrum.model.errors import choices

MEASURE = "measure"
"""The variable whose codes are columns of values, where nothing else is said."""

_NAME = r"(?:'[^']+'|`[^`]+`|[^\s*/\[\]+]+)"
UNIT = re.compile(
    rf"\s*(?P<end><=|>=)?\s*(?:(?P<factor>\d+(?:\.\d+)?)\s*\*\s*)?(?P<value>{_NAME})"
    rf"(?:\s*/\s*(?:(?P<divisor>\d+(?:\.\d+)?)|(?P<base>{_NAME})(?:\[(?P<codes>[^\]]*)\])?))?"
    r"(?:\s*(?P<sign>[+-])\s*(?P<constant>\d+(?:\.\d+)?))?"
    rf"(?:\s+running\s+over\s+(?P<along>{_NAME}))?\s*"
)
"""How a unit is computed from other codes, which end of another code it is, or its sum up to each code."""


def bare(name: str) -> str:
    """A code of a formula without its quotes."""
    return name[1:-1] if name[:1] in ("'", "`") and len(name) > 1 else name


class _LayoutPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Between(_LayoutPart):
    """A value between two ends, both included; an end that is left out says nothing."""

    low: Decimal | None = None
    high: Decimal | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Between:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError("the lower end is above the upper end")
        return self


Symbol = Literal["hidden", "zero", "impossible"] | Between
"""What stands in place of a number: an unknown value, 0, a cell that cannot exist, or a range."""

Letter = Literal["note", "hidden"] | Between
"""What stands beside a number: a remark, the claim that it is hidden, or a range of the hidden value."""


ConfidentialRole = Literal[
    "contributors", "contribution", "contributor", "holding", "lower", "upper", "primary"
]
"""What only a confidential file holds: the number of contributors, the largest contributions and who made them,
each from the first on, the levels of protection, and which cells are sensitive; or one contributor a line.
"""

CONFIDENTIAL: frozenset[str] = frozenset(get_args(ConfidentialRole))


class ColumnRole(_LayoutPart):
    """What a column holds. ``of`` names the codes of a label, or the values of a status."""

    role: Literal["code", "value", "label", "status", "note"] | ConfidentialRole
    of: str = ""
    dimension: str = ""


class DeclaredTable(_LayoutPart):
    """One table: where it stands, and what its columns are.

    ``head`` are the lines of names; with several, a column has the name ``upper / lower``, and a blank one that
    of its left neighbour. ``across`` are the variables whose codes are the names of the columns of values, one
    for each line of names. ``nested`` columns of codes are one variable, from the coarsest to the finest.
    ``fill`` says that a blank code is that of the line above. ``fixed`` are codes of the whole table, as of a
    file that holds one year. ``missing`` says what a combination of codes is that the table does not list.
    """

    sheet: str = ""
    head: tuple[int, ...] = (1,)
    last: Annotated[int, Field(ge=1)] | None = None
    columns: dict[str, ColumnRole]
    across: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    fill: bool = False
    fixed: dict[str, str] = {}
    missing: Literal["hidden", "zero", "impossible"] | None = None

    @model_validator(mode="after")
    def _fits(self) -> DeclaredTable:
        if not self.head or any(n < 1 for n in self.head):
            raise ValueError("the lines of names are numbers from 1 on")
        if self.across and len(self.across) != len(self.head):
            raise ValueError("there must be one variable across for each line of names")
        return self


class Subsets(_LayoutPart):
    """Codes that are inside another one: "of which". Whether they are all of it may be left open."""

    codes: tuple[str, ...] = Field(min_length=1)
    disjoint: bool = True
    complete: bool | None = None


class CodeRoles(_LayoutPart):
    """The roles of the codes of one variable.

    ``totals`` are sums of their parts, ``differences`` the first code less the others, ``units`` the same
    numbers in another unit or computed from them (``"100 * EUR / EUR[geo=Total]"``, or
    ``"EUR running over month"`` for the sum up to each month). ``independent`` codes
    add up along other variables and to nothing along this one; ``not_additive`` ones, such as an index or a
    mean, add up to nothing. ``all`` is the code of tables without this variable.
    """

    totals: dict[str, tuple[str, ...]] = {}
    differences: dict[str, Annotated[tuple[str, ...], Field(min_length=2)]] = {}
    subsets: dict[str, Subsets] = {}
    same: dict[str, str] = {}
    units: dict[str, str] = {}
    independent: tuple[str, ...] = ()
    not_additive: tuple[str, ...] = ()
    all: str = ""

    def settled(self) -> set[str]:
        """The codes that have a role."""
        codes = {*self.totals, *self.differences, *self.subsets, *self.same, *self.units}
        codes |= {*self.independent, *self.not_additive, *self.same.values()}
        for parts in (*self.totals.values(), *self.differences.values()):
            codes |= set(parts)
        for group in self.subsets.values():
            codes |= set(group.codes)
        for formula in filter(None, map(UNIT.fullmatch, self.units.values())):
            codes |= {bare(name) for name in formula.group("value", "base") if name}
        return codes


class Rounding(_LayoutPart):
    """Numbers that were rounded: to a base, to its nearest or an adjacent multiple; or each to its
    last digit.
    """

    base: int = Field(ge=1)
    how: Literal["nearest", "adjacent", "last digit"] = "nearest"


Words = Annotated[tuple[str, ...], BeforeValidator(lambda w: (w,) if isinstance(w, str) else w)]
"""One word, or a list of them."""


class SuppressSettings(_LayoutPart):
    """How cells of a confidential table are suppressed; what is left out is as usual.

    ``rule`` are the words of ``--rule``. ``frozen`` cells must be published and ``never`` ones must not, as
    ``"area=n,job=a"``. ``decimals`` are those that the numbers of the file are rounded to. The other keys are
    the parameters of the method ``suppression``.
    """

    rule: Words = ()
    cost: str | None = None
    power: float | None = None
    algorithm: str | None = None
    work: int | None = None
    attacker: str | None = None
    unions: bool | None = None
    keep: str | None = None
    zeros: bool | None = None
    partial: bool | None = None
    reasons: bool | None = None
    frozen: Words = ()
    never: Words = ()
    decimals: Annotated[int, Field(ge=0)] | None = None

    def method(self) -> dict[str, Any]:
        return self.model_dump(exclude={"rule", "frozen", "never", "decimals"}, exclude_none=True)


class DeclaredContributions(DeclaredTable):
    """The file of contributions, with which contributors are judged; without it, columns have plain names."""

    decimal: Literal[".", ","] = "."


class Layout(_LayoutPart):
    """What everything in a file is.

    ``zeros_shown`` says that a hidden count is not 0, ``signed`` that a hidden value may be negative.
    ``notes`` and ``parts`` are the word of a person that lines outside the tables, and parts of a workbook
    that are no cells, state nothing about hidden values.
    """

    format: Literal[1] = 1
    file: str = ""
    digest: str = ""
    kind: Literal["counts", "sums"] | None = None
    signed: bool = False
    decimal: Literal[".", ","] = "."
    zeros_shown: bool = False
    rounding: Rounding | None = None
    notes: Literal["nothing"] | None = None
    parts: Literal["nothing"] | None = None
    symbols: dict[str, Symbol] = {}
    letters: dict[str, Letter] = {}
    tables: tuple[DeclaredTable, ...] = ()
    dimensions: dict[str, CodeRoles] = {}
    suppress: SuppressSettings = SuppressSettings()
    contributions: DeclaredContributions | None = None
    open: tuple[str, ...] = ()


def read_layout(path: Path) -> Layout:
    """Read a layout; a mistake is one sentence with the key that is wrong."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8; save it in that encoding.") from None
    return layout_of_text(text, str(path))


def layouts_of(files: Sequence[Path], layouts: Sequence[Path]) -> list[Layout | None]:
    """The layout of each file: one for all, one for each, or none."""
    if not layouts:
        return [None] * len(files)
    if len(layouts) not in (1, len(files)):
        raise InputError(
            f"There are {len(files)} files and {len(layouts)} layouts; give one layout, or one for each."
        )
    read: list[Layout | None] = [read_layout(path) for path in layouts]
    return read * len(files) if len(read) == 1 else read


def layout_of_text(text: str, source: str) -> Layout:
    try:
        return Layout.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source} is not TOML: {error}.") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"] if not str(part).startswith("function-"))
        if first["type"] == "extra_forbidden":
            fields = _fields(first["loc"][:-1])
            raise InputError(
                f"{source}: there is no key {key!r}; {choices(str(first['loc'][-1]), fields)}."
            ) from None
        raise InputError(f"{source}: {key}: {first['msg'].lower()}.") from None


def _fields(location: tuple[int | str, ...]) -> list[str]:
    kinds: dict[str, type[BaseModel]] = {
        "tables": DeclaredTable, "columns": ColumnRole, "dimensions": CodeRoles, "subsets": Subsets,
        "suppress": SuppressSettings,
    }  # fmt: skip
    if location[:1] == ("contributions",):
        kinds |= {"contributions": DeclaredContributions}
    kind: type[BaseModel] = Layout
    for part in location:
        kind = kinds.get(str(part), kind)
    return list(kind.model_fields)


def layout_text(layout: Layout, reasons: Mapping[str, str]) -> str:
    """A layout as TOML, with the reason for each role behind it as a comment."""
    data = layout.model_dump(exclude_defaults=True, mode="json")
    apart = ("tables", "symbols", "letters", "dimensions", "suppress")
    lines = [f"{_key(name)} = {_value(data.pop(name))}" for name in list(data) if name not in apart]
    for table in data.pop("tables", []):
        columns = table.pop("columns")
        lines += ["", "[[tables]]", *(f"{_key(k)} = {_value(v)}" for k, v in table.items())]
        lines.append("[tables.columns]")
        lines += [_line(k, v, reasons.get(f"column:{k}")) for k, v in columns.items()]
    for section in ("symbols", "letters", "suppress"):
        if section in data:
            lines += ["", f"[{section}]"]
            entries = data.pop(section).items()
            lines += [_line(k, v, reasons.get(f"{section[:-1]}:{k}")) for k, v in entries]
    for name, dimension in data.pop("dimensions", {}).items():
        lines += ["", f"[dimensions.{_key(name)}]"]
        for role, content in dimension.items():
            if not isinstance(content, dict):
                lines.append(f"{role} = {_value(content)}")
                continue
            lines += [
                _line(
                    f"{role}.{_key(code)}", parts, reasons.get(f"code:{name}:{code}"), quoted=True
                )
                for code, parts in content.items()
            ]
    return "\n".join(lines) + "\n"


def _line(key: str, value: Any, reason: str | None, *, quoted: bool = False) -> str:
    written = f"{key if quoted else _key(key)} = {_value(value)}"
    return f"{written}  # {reason}" if reason else written


def _key(name: str) -> str:
    plain = name and all(c.isascii() and (c.isalnum() or c in "_-") for c in name)
    return name if plain else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        return "".join(_escaped(value))
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    return "[" + ", ".join(_value(item) for item in value) + "]"


def _escaped(text: str) -> Iterator[str]:
    yield '"'
    for character in text:
        if character in '"\\':
            yield "\\" + character
        elif ord(character) < 32 or ord(character) == 127:
            yield f"\\u{ord(character):04x}"
        else:
            yield character
    yield '"'
