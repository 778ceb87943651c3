"""PX files, of PC-Axis and PxWeb: keywords with texts, then the cells in the order of stub and heading."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lustrum.model import InputError
from lustrum.model.errors import NotJudgedError
from lustrum.readers.grids import MOST_CELLS, FieldGrid, OwnStructure, Unread

_KEYWORD = re.compile(
    r'\s*([A-Z][A-Z0-9_-]*)\s*(?:\[([^\]]*)\])?\s*(?:\(((?:\s*"[^"]*"\s*,?)*)\))?\s*='
)
_SOMETHING = re.compile(r"\S")
_TEXT = re.compile(r'"([^"]*)"')
_CELL = re.compile(r'"([^"]*)"|([^\s,;"]+)')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_SYMBOLS = {"." * i: f"DATASYMBOL{i}" for i in range(1, 7)} | {"-": "DATASYMBOLNIL"}
_STRUCTURE = {
    "STUB", "HEADING", "VALUES", "CODES", "VARIABLECODE", "DECIMALS", "SHOWDECIMALS", "TIMEVAL", "CHARSET",
    "AXIS-VERSION", "CODEPAGE", "LANGUAGE", "CREATION-DATE", "PRECISION", "INFO",
}  # fmt: skip


@dataclass(frozen=True)
class PxFile:
    """The keywords of a file with their texts, by name and subkeys, and its cells as they are written."""

    source: str
    words: Mapping[tuple[str, ...], tuple[str, ...]]
    cells: tuple[tuple[str, int], ...]

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.words.get(("STUB",), ()), *self.words.get(("HEADING",), ()))

    def text(self, *key: str) -> str:
        return "".join(self.words.get(key, ()))

    def categories(self, variable: str) -> list[tuple[str, str]]:
        """Codes with labels; a file without codes has its labels for both."""
        labels = self.words.get(("VALUES", variable), ())
        codes = self.words.get(("CODES", variable), labels)
        if not codes or len(codes) != len(labels or codes):
            raise InputError(
                f"{self.source}: the variable {variable!r} has {len(labels)} VALUES and {len(codes)} CODES; it "
                "needs as many of both."
            )
        return [(c.strip(), v.strip()) for c, v in zip(codes, labels or codes, strict=True)]


def parse_px(text: str, source: str) -> PxFile:
    """The keywords and cells of a file; a mistake is a sentence with its line.

    >>> file = parse_px('STUB="sex";\\nVALUES("sex")="men","women";\\nDATA=\\n4 ".." \\n;', "a.px")
    >>> file.variables, [cell for cell, line in file.cells]
    (('sex',), ['4', '..'])
    """
    words: dict[tuple[str, ...], tuple[str, ...]] = {}
    for name, language, keys, value, line in _statements(text, source):
        if name == "KEYS":
            raise InputError(
                f"{source}, line {line}: cells with KEYS are not read; write all cells, without KEYS."
            )
        if name == "DATA":
            file = PxFile(source, words, tuple(_cells(value, line, source)))
            needed = math.prod(len(file.categories(v)) for v in file.variables)
            if not file.variables:
                raise InputError(
                    f"{source}: there is neither STUB nor HEADING; name the variables."
                )
            if needed != len(file.cells):
                raise InputError(
                    f"{source}, line {line}: DATA has {len(file.cells)} cells, but the variables have "
                    f"{needed} combinations."
                )
            return file
        key = (name, *(_TEXT.findall(keys or "")))
        if not language:
            words[key] = tuple(_texts(value)) if '"' in value else (value.strip(),)
    raise InputError(f"{source}: there is no DATA, so this is not a whole PX file.")


def _statements(text: str, source: str) -> Iterator[tuple[str, str, str, str, int]]:
    """Every keyword with its language, subkeys, value and line."""
    at, line = 0, 1
    while (here := _SOMETHING.search(text, at)) is not None:
        found = _KEYWORD.match(text, at)
        start = line + text.count("\n", at, here.start())
        if found is None:
            raise InputError(
                f'{source}, line {start}: this is not PX; a keyword such as TITLE="..."; is expected.'
            )
        end = _end(text, found.end())
        # What stands between texts names no keyword: an equals sign there is that of the next statement.
        if end < 0 or "=" in _TEXT.sub("", text[found.end() : end]):
            raise InputError(f"{source}, line {start}: {found[1]} does not end with a semicolon.")
        value_line = line + text.count("\n", at, found.end())
        yield (
            found[1],
            found[2],
            found[3],
            text[found.end() : end],
            (value_line if found[1] == "DATA" else start),
        )
        line += text.count("\n", at, end + 1)
        at = end + 1


def _end(text: str, at: int) -> int:
    """Where the semicolon stands that ends a value, outside of quotation marks."""
    while True:
        end, quote = text.find(";", at), text.find('"', at)
        if end < 0 or quote < 0 or end < quote:
            return end
        closing = text.find('"', quote + 1)
        if closing < 0:
            return -1
        at = closing + 1


def _texts(value: str) -> Iterator[str]:
    """Texts with commas between them; those without a comma between are one."""
    parts: list[str] = []
    last = 0
    for found in _TEXT.finditer(value):
        if parts and "," in value[last : found.start()]:
            yield "".join(parts)
            parts = []
        parts.append(found[1])
        last = found.end()
    yield "".join(parts)


def _cells(value: str, line: int, source: str) -> Iterator[tuple[str, int]]:
    for number, row in enumerate(value.split("\n"), line):
        for found in _CELL.finditer(row):
            cell = found[1] if found[2] is None else found[2]
            if cell not in _SYMBOLS and not _NUMBER.fullmatch(cell):
                raise InputError(
                    f"{source}, line {number}: {cell[:20]!r} is neither a number nor one of the symbols "
                    '"." to "......" and "-".'
                )
            yield cell, number


def px_grid(text: str, source: str) -> tuple[FieldGrid, list[Unread]]:
    """The cells, one a line, with the variables that the file names itself; symbols are the status."""
    file = parse_px(text, source)
    if len(file.cells) > MOST_CELLS:
        raise NotJudgedError(
            f"{source}: all combinations of codes are {len(file.cells):,} cells, more than {MOST_CELLS:,}; "
            "audit parts of it."
        )
    every = {v: file.categories(v) for v in file.variables}
    names = {v: file.text("VARIABLECODE", v) or v for v in every}
    head: list[str] = []
    labels: dict[str, str] = {}
    for variable, name in names.items():
        head.append(name)
        if any(code != label for code, label in every[variable]):
            labels[name] = f"{name}_label"
            head.append(labels[name])
    for fact in ("value", "status"):
        while fact in head:
            fact += "_"
        head.append(fact)
    lines = [tuple(head)]
    for combination, (cell, _) in zip(itertools.product(*every.values()), file.cells, strict=True):
        fields: list[str] = []
        for name, (code, label) in zip(names.values(), combination, strict=True):
            fields += [code, label] if name in labels else [code]
        lines.append((*fields, *(("", cell) if cell in _SYMBOLS else (cell, ""))))
    unread = [
        Unread("keyword", key[0])
        for key, said in file.words.items()
        if key[0] not in _STRUCTURE and any(letter.isdigit() for letter in "".join(said))
    ]
    structure = OwnStructure(tuple(names.values()), (head[-2],), labels, head[-1])
    numbers = [1, *(line for _, line in file.cells)]
    where = ["the keywords", *(f"line {line}" for line in numbers[1:])]
    return FieldGrid("", tuple(lines), numbers, where, structure), unread
