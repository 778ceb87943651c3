"""JJ: the cells of a table with their levels of protection, and the equations between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lustrum.model import InputError, Table
from lustrum.model.arrays import Mask
from lustrum.numeric.structure import Structure
from lustrum.readers.argus.metadata import exact_text, text_of_file

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
