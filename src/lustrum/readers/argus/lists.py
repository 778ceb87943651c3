"""The smaller files of tau-ARGUS: a-priori changes, code lists, recodings, batch files and JJ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Mask
from lustrum.numeric.structure import Structure
from lustrum.readers.argus.metadata import exact_text, text_of_file

_CHANGES = {"S": 0, "U": 0, "P": 0, "M": 0, "ML": 0, "C": 1, "W": 1, "PL": 2, "AB": 2}
"""What an a-priori file can change, and with how many numbers."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.strip().startswith("//"):
            yield number, line.strip()


@dataclass(frozen=True)
class Apriori:
    """Changes of cells: their codes, what changes (``U``, ``P``, ``S``, ``C`` ...) and its numbers."""

    changes: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...]
    separator: str = ";"

    @classmethod
    def of_table(
        cls,
        table: Table | Release,
        primary: Mask,
        lower: Sequence[int] = (),
        upper: Sequence[int] = (),
    ) -> Apriori:
        """Primary cells (``U``) with the levels that they need; those of a release are ``~release.shown``.

        >>> Apriori.of_table(Table.from_counts([4, 9]), [True, False], [1, 0], [2, 0]).text
        '1;U\\n1;PL;1;2\\n'
        """
        names = list(product(*(axis.codes for axis in table.axes)))
        every = [code for axis in table.axes for code in axis.codes]
        wrong = ('"', ";", "\r", "\n", "//")
        if any(code != code.strip() or not code or any(w in code for w in wrong) for code in every):
            raise InputError(
                "An a-priori file cannot hold empty codes, nor codes with quotes, line breaks, blanks around "
                "them, '//' or ';'."
            )
        changes: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = []
        for cell in np.flatnonzero(primary).tolist():
            changes.append((names[cell], "U", ()))
            if len(lower) and len(upper):
                levels = (int(lower[cell]), int(upper[cell]))
                said = tuple(exact_text(level, table.decimals) for level in levels)
                changes.append((names[cell], "PL", said))
        return cls(tuple(changes))

    @property
    def text(self) -> str:
        """The file."""
        joined = (self.separator.join((*codes, kind, *said)) for codes, kind, said in self.changes)
        return "".join(f"{line}\n" for line in joined)


def read_apriori(path: Path | str, variables: int, separator: str = "") -> Apriori:
    """Read a ``.hst`` about cells of so many variables; the separator is found if none is said."""
    return parse_apriori(text_of_file(path), variables, str(path), separator)


def parse_apriori(text: str, variables: int, source: str, separator: str = "") -> Apriori:
    """The changes from their text.

    >>> parse_apriori("Nr;4;u\\nZd;6;pl;3;5\\n", 2, "a.hst").changes[1]
    (('Zd', '6'), 'PL', ('3', '5'))
    """
    changes = []
    for number, line in _lines(text):
        separator = separator or next((s for s in ";,\t" if s in line), ";")
        fields = [field.strip().strip('"') for field in line.split(separator)]
        codes, said = tuple(fields[:variables]), fields[variables + 1 :]
        kind = "".join(fields[variables : variables + 1]).upper()
        if kind not in _CHANGES:
            raise InputError(
                f"{source}, line {number}: after {variables} codes comes one of {', '.join(_CHANGES)}, not "
                f"{kind[:20]!r}."
            )
        if len(said) != _CHANGES[kind] or not all(map(_NUMBER.fullmatch, said)):
            raise InputError(f"{source}, line {number}: {kind} goes with {_CHANGES[kind]} numbers.")
        changes.append((codes, kind, tuple(said)))
    return Apriori(tuple(changes), separator or ";")


def read_code_list(path: Path | str) -> dict[str, str]:
    """Read a ``.cdl``: labels by code."""
    return parse_code_list(text_of_file(path), str(path))


def parse_code_list(text: str, source: str) -> dict[str, str]:
    """Labels by code from the text of a list.

    >>> parse_code_list(" 1,Groningen\\nNr,North, all of it\\n", "region.cdl")
    {'1': 'Groningen', 'Nr': 'North, all of it'}
    """
    found: dict[str, str] = {}
    for number, line in _lines(text):
        code, comma, label = line.partition("," if "," in line else ";")
        code = code.strip().strip('"')
        if not comma or code in found:
            why = (
                "the code stands twice"
                if code in found
                else "a code, a comma and a label are needed"
            )
            raise InputError(f"{source}, line {number}: {why}.")
        found[code] = label.strip().strip('"')
    return found


@dataclass(frozen=True)
class Recoding:
    """A recoding: groups of codes and ranges by their new code, or the codes at which a tree is cut."""

    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    closed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    code_list: str = ""

    @property
    def text(self) -> str:
        """The file."""
        lines = [f"{new}:{','.join(parts)}" for new, parts in self.groups]
        lines = ["<TREERECODE>", *self.closed] if self.closed else lines
        lines += [f"<MISSING> {' '.join(self.missing)}"] if self.missing else []
        lines += [f'<CODELIST> "{self.code_list}"'] if self.code_list else []
        return "".join(f"{line}\n" for line in lines)


def read_recoding(path: Path | str) -> Recoding:
    """Read a ``.grc``."""
    return parse_recoding(text_of_file(path), str(path))


def parse_recoding(text: str, source: str) -> Recoding:
    """A recoding from its text.

    >>> parse_recoding("1:1-5,8\\n", "GK.grc").groups
    (('1', ('1-5', '8')),)
    """
    groups: list[tuple[str, tuple[str, ...]]] = []
    closed: list[str] = []
    missing: tuple[str, ...] = ()
    code_list, tree = "", False
    for number, line in _lines(text):
        word, _, rest = line.partition(" ")
        new, colon, parts = line.partition(":")
        if word.upper() == "<TREERECODE>":
            tree = True
        elif word.upper() == "<MISSING>":
            missing = tuple(rest.split())
        elif word.upper() == "<CODELIST>":
            code_list = rest.strip().strip('"')
        elif tree:
            closed.append(line)
        elif colon and new.strip() and parts.strip():
            groups.append((new.strip(), tuple(part.strip() for part in parts.split(","))))
        else:
            raise InputError(
                f"{source}, line {number}: a new code, a colon and old codes are needed."
            )
    return Recoding(tuple(groups), tuple(closed), missing, code_list)


@dataclass(frozen=True)
class BatchCommand:
    """A command of a batch file, with what stands behind it."""

    name: str
    words: str
    line: int


def read_batch(path: Path | str) -> tuple[BatchCommand, ...]:
    """Read a ``.arb``: its commands in their order."""
    return parse_batch(text_of_file(path), str(path))


def parse_batch(text: str, source: str) -> tuple[BatchCommand, ...]:
    """The commands from their text.

    >>> parse_batch('//made\\n<SAFETYRULE>  NK(2,75)|\\n', "a.arb")
    (BatchCommand(name='SAFETYRULE', words='NK(2,75)|', line=2),)
    """
    commands = []
    for number, line in _lines(text):
        found = re.fullmatch(r"<([A-Z]+)>\s*(.*)", line, re.IGNORECASE)
        if found is None:
            raise InputError(
                f"{source}, line {number}: a command such as <READMICRODATA> is expected."
            )
        commands.append(BatchCommand(found[1].upper(), found[2], number))
    return tuple(commands)


_TERM = re.compile(r"(\d+)\s*\(\s*(-?\d+)\s*\)")
_STATUSES = "sumz"


@dataclass(frozen=True)
class JJCell:
    """A cell: value, cost, status (``s`` free, ``u`` primary, ``m`` secondary, ``z`` fixed), the ends between
    which everybody knows it to be, and how far an attacker must stay below, above and in all.

    Numbers are texts, exactly as they are written.
    """

    value: str
    cost: str = "1"
    status: str = "s"
    low: str = "0"
    high: str = "0"
    lower: str = "0"
    upper: str = "0"
    sliding: str = "0"


Equation = tuple[str, tuple[tuple[int, int], ...]]
"""What the terms add up to, and cells with their factors."""


@dataclass(frozen=True)
class JJProblem:
    """A whole problem."""

    cells: tuple[JJCell, ...]
    equations: tuple[Equation, ...]

    @property
    def text(self) -> str:
        """The file."""
        lines = ["0", str(len(self.cells))]
        lines += [
            f"{at} {c.value} {c.cost} {c.status} {c.low} {c.high} {c.lower} {c.upper} {c.sliding}"
            for at, c in enumerate(self.cells)
        ]
        lines.append(str(len(self.equations)))
        for total, terms in self.equations:
            said = " ".join(f"{cell} ({factor})" for cell, factor in terms)
            lines.append(f"{total} {len(terms)} : {said}")
        return "".join(f"{line}\n" for line in lines)

    @classmethod
    def of_table(
        cls, table: Table, primary: Mask, lower: Sequence[int], upper: Sequence[int]
    ) -> JJProblem:
        """The problem of a table with its primary cells and, for every cell, the levels that these need."""
        values = table.values.ravel().tolist()
        most = 2 * max(map(abs, values), default=0) + 1
        cells = tuple(
            JJCell(
                exact_text(value, table.decimals),
                exact_text(abs(value) or 1, table.decimals),
                "u" if secret else "z" if not value else "s",
                "0",
                exact_text(most, table.decimals),
                exact_text(low if secret else 0, table.decimals),
                exact_text(high if secret else 0, table.decimals),
            )
            for value, secret, low, high in zip(
                values, primary.ravel().tolist(), lower, upper, strict=True
            )
        )
        rows = Structure.of_tables([table]).relations.matrix.tocsr()
        equations = []
        for row in range(rows.shape[0]):
            part = slice(rows.indptr[row], rows.indptr[row + 1])
            terms = zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True)
            equations.append(("0", tuple(sorted((cell, int(factor)) for cell, factor in terms))))
        return cls(cells, tuple(equations))


def read_jj(path: Path | str) -> JJProblem:
    """Read a problem."""
    return parse_jj(text_of_file(path), str(path))


def parse_jj(text: str, source: str) -> JJProblem:
    """A problem from its text; a mistake is a sentence with its line.

    >>> parse_jj("0\\n2\\n0 5 5 u 0 9 1 1 0\\n1 5 5 s 0 9 0 0 0\\n1\\n0 2 : 0 (-1) 1 (1)\\n", "a.jj").equations
    (('0', ((0, -1), (1, 1))),)
    """
    lines = [(n, line.split()) for n, line in enumerate(text.splitlines(), 1) if line.strip()]

    def count(place: int, what: str) -> int:
        number, words = lines[place] if place < len(lines) else (len(text.splitlines()), [])
        if len(words) != 1 or not words[0].isdigit() or len(words[0]) > 9:
            raise InputError(f"{source}, line {number}: the number of {what} is expected.")
        return int(words[0])

    if not lines or lines[0][1] != ["0"]:
        raise InputError(f"{source}, line 1: a JJ file begins with 0.")
    cells = []
    many = count(1, "cells")
    for at, (number, words) in enumerate(lines[2 : 2 + many]):
        numbers = [w for i, w in enumerate(words) if i != 3]
        right = len(words) == 9 and words[0] == str(at) and words[3] in [*_STATUSES]
        if not right or not all(map(_is_number, numbers)):
            raise InputError(
                f"{source}, line {number}: cell {at} needs its number, value, cost, status (one of "
                f"{', '.join(_STATUSES)}), two bounds and three levels."
            )
        cells.append(JJCell(*words[1:]))
    start = 2 + many
    sums = count(start, "equations")
    equations: list[Equation] = []
    for number, words in lines[start + 1 :]:
        head, colon, rest = " ".join(words).partition(":")
        said = head.split()
        terms = tuple((int(cell), int(factor)) for cell, factor in _TERM.findall(rest))
        whole = colon and len(said) == 2 and _is_number(said[0]) and said[1] == str(len(terms))
        if not whole or _TERM.sub("", rest).strip() or any(cell >= many for cell, _ in terms):
            raise InputError(
                f"{source}, line {number}: an equation is a total, a number of terms, a colon and terms such "
                f"as 3 (-1), of cells below {many}."
            )
        equations.append((said[0], terms))
    if len(cells) != many or len(equations) != sums:
        raise InputError(
            f"{source}: there are {len(cells)} of {many} cells and {len(equations)} of {sums} equations."
        )
    return JJProblem(tuple(cells), tuple(equations))


def _is_number(word: str) -> bool:
    try:
        return bool(np.isfinite(float(word)))
    except ValueError:
        return False
