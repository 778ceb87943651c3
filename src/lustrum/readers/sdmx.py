"""SDMX-CSV 2.0: which column is what stands in its first line, and codes are identifiers."""

from __future__ import annotations

import csv
import io

from lustrum.formats.sdmx import ATTRIBUTES, sdmx_text
from lustrum.model import InputError
from lustrum.readers.grids import FieldGrid, OwnStructure

_FIRST = ("STRUCTURE", "STRUCTURE_ID")
_ABOUT = ("STRUCTURE", "STRUCTURE_ID", "STRUCTURE_NAME", "ACTION", "SERIES_KEY", "OBS_KEY")
_MORE = ("DECIMALS", "UNIT_MULT", "UNIT", "OBS_PRE_BREAK", "COMMENT_OBS", "COMMENT_DSET")
VALUE, NOT_A_NUMBER = "OBS_VALUE", "NaN"


def is_sdmx(text: str) -> bool:
    """Whether a text is SDMX-CSV 2.0, by the names that it must begin with."""
    return text.startswith(f"{','.join(_FIRST)},")


def sdmx_grid(text: str, source: str) -> FieldGrid:
    """The observations, one a line; columns that say the same of every one of them are left out.

    >>> text = "STRUCTURE,STRUCTURE_ID,ACTION,sex,OBS_VALUE\\ndataflow,A:B(1),I,a$2E$b,NaN\\n"
    >>> grid = sdmx_grid(text, "a.csv")
    >>> grid.lines
    (('sex', 'OBS_VALUE'), ('a.b', ''))
    """
    reader = csv.reader(io.StringIO(text, newline=""))
    head = next(reader)
    if head.count(VALUE) != 1:
        raise InputError(f"{source}, line 1: SDMX-CSV needs one column {VALUE}.")
    variables = [n for n in head if n not in (*_ABOUT, *ATTRIBUTES, *_MORE, VALUE)]
    kept = [place for place, name in enumerate(head) if name not in _ABOUT]
    first: list[str] = []
    lines = [tuple(head[place] for place in kept)]
    numbers = [1]
    for row in reader:
        if not row:
            continue
        if len(row) != len(head):
            raise InputError(
                f"{source}, line {reader.line_num}: there are {len(row)} fields, but {len(head)} columns."
            )
        about = [row[place] for place, name in enumerate(head) if name in _ABOUT[:4]]
        first = first or about
        if about != first:
            raise InputError(
                f"{source}, line {reader.line_num}: the file holds a second structure or action; keep one in a "
                "file."
            )
        fields = []
        for place in kept:
            field = sdmx_text(row[place]) if head[place] in variables else row[place]
            fields.append("" if head[place] == VALUE and field == NOT_A_NUMBER else field)
        lines.append(tuple(fields))
        numbers.append(reader.line_num)
    status = "CONF_STATUS" if "CONF_STATUS" in head else None
    structure = OwnStructure(tuple(variables), (VALUE,), {}, status)
    return FieldGrid("", tuple(lines), numbers, [f"line {n}" for n in numbers], structure)
