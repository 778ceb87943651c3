"""``.rda``: the variables of a file of records, or of a table, with what tau-ARGUS is told of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from lustrum.model import InputError
from lustrum.readers.grids import decoded

_TAG = re.compile(r"<([A-Z_]+)>([^<]*)", re.IGNORECASE)
_WORD = re.compile(r'"([^"]*)"|([^\s,"]+)')
_GLOBAL = ("SEPARATOR", "SPSS", "SAFE", "UNSAFE", "PROTECT")

Tag = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class ArgusVariable:
    """A variable: its name, where it stands in a line of fixed columns (from 1), and its tags in order."""

    name: str
    start: int | None = None
    width: int | None = None
    missing: tuple[str, ...] = ()
    tags: tuple[Tag, ...] = ()

    def has(self, tag: str) -> bool:
        """Whether it has a tag."""
        return any(name == tag for name, _ in self.tags)

    def said(self, tag: str) -> tuple[str, ...]:
        """The words behind a tag, none where it is not there."""
        return next((words for name, words in self.tags if name == tag), ())

    @property
    def decimals(self) -> int:
        """The decimals of its numbers."""
        words = self.said("DECIMALS")
        return int(words[0]) if words else 0

    @property
    def total(self) -> str:
        """The code of its total, by default the one that tau-ARGUS writes."""
        words = self.said("TOTCODE")
        return words[0] if words else "Total"


@dataclass(frozen=True)
class Metadata:
    """The variables in their order, and what holds for the whole file."""

    variables: tuple[ArgusVariable, ...]
    tags: tuple[Tag, ...] = ()

    def said(self, tag: str, otherwise: str = "") -> str:
        """What is said of the whole file."""
        return next((words[0] for name, words in self.tags if name == tag and words), otherwise)

    @property
    def separator(self) -> str:
        """What stands between fields, empty where columns are fixed."""
        return self.said("SEPARATOR")

    def of(self, tag: str) -> tuple[ArgusVariable, ...]:
        """The variables with a tag."""
        return tuple(variable for variable in self.variables if variable.has(tag))

    @property
    def text(self) -> str:
        """The file."""
        lines = [f"  {_written(tag)}" for tag in self.tags]
        for variable in self.variables:
            place = () if variable.start is None else (str(variable.start), str(variable.width))
            missing = tuple(f'"{m}"' for m in variable.missing)
            lines.append(" ".join((variable.name, *place, *missing)))
            lines += [f"  {_written(tag)}" for tag in variable.tags]
        return "".join(f"{line}\n" for line in lines)


def _written(tag: Tag) -> str:
    return " ".join((f"<{tag[0]}>", *(f'"{word}"' for word in tag[1])))


def read_metadata(path: Path | str) -> Metadata:
    """Read a file of metadata."""
    return parse_metadata(text_of_file(path), str(path))


def text_of_file(path: Path | str) -> str:
    """The text of a file, in whatever encoding it is."""
    try:
        return decoded(Path(path).read_bytes(), str(path))[0]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None


def exact_text(value: int, decimals: int) -> str:
    """A number in units of its last decimal, as it is written."""
    return f"{Decimal(value).scaleb(-decimals):f}"


def _words(text: str) -> tuple[str, ...]:
    return tuple(found[1] if found[2] is None else found[2] for found in _WORD.finditer(text))


def parse_metadata(text: str, source: str) -> Metadata:
    """Metadata from their text; a mistake is a sentence with its line.

    >>> text = 'Size 9 2 99\\n  <RECODEABLE>\\nVar2 19 9 9\\n <NUMERIC> <DECIMALS> 2\\n'
    >>> meta = parse_metadata(text, "a.rda")
    >>> [(v.name, v.start, v.decimals) for v in meta.variables]
    [('Size', 9, 0), ('Var2', 19, 2)]
    """
    tags: list[Tag] = []
    variables: list[tuple[ArgusVariable, list[Tag]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        plain = line.strip()
        if not plain or plain.startswith("//"):
            continue
        if not plain.startswith("<"):
            variables.append((_variable(plain, source, number), []))
            continue
        for name, words in _tags(plain, source, number):
            if (name in _GLOBAL and not variables) or name == "SEPARATOR":
                tags.append((name, words))
            elif variables:
                variables[-1][1].append((name, words))
            else:
                raise InputError(
                    f"{source}, line {number}: <{name}> stands before the first variable; put it below one."
                )
    named = [variable.name for variable, _ in variables]
    if not named or len(set(named)) < len(named):
        raise InputError(f"{source}: metadata need variables, each with a name of its own.")
    whole = Metadata(
        tuple(ArgusVariable(v.name, v.start, v.width, v.missing, tuple(t)) for v, t in variables),
        tuple(tags),
    )
    for variable in whole.variables:
        if not whole.separator and variable.start is None:
            raise InputError(
                f"{source}: {variable.name!r} has no column, and there is no <SEPARATOR>; one is needed."
            )
    return whole


def _tags(line: str, source: str, number: int) -> Iterator[Tag]:
    for found in _TAG.finditer(line):
        name, words = found[1].upper(), _words(found[2])
        if name == "DECIMALS" and not (
            len(words) == 1 and words[0].isdigit() and len(words[0]) < 3
        ):
            raise InputError(f"{source}, line {number}: <DECIMALS> needs one whole number.")
        yield name, words


def _variable(line: str, source: str, number: int) -> ArgusVariable:
    name, *rest = _words(line)
    quoted = re.search(r'"', line)
    bare = _words(line[: quoted.start()] if quoted else line)[1:]
    if len(bare) >= 2:
        if not all(word.isascii() and word.isdigit() and int(word[:9]) > 0 for word in bare[:2]):
            raise InputError(
                f"{source}, line {number}: {name!r} needs a first column and a width, such as '{name} 9 2'."
            )
        return ArgusVariable(name, int(bare[0]), int(bare[1]), tuple(rest[2:]))
    return ArgusVariable(name, missing=tuple(rest))
