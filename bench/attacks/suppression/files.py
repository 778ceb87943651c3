"""What a written file says: cells with values, letters and bounds, notes, and numbers that nothing explains."""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import openpyxl
import pyarrow.parquet

Reason = Literal["shown", "primary", "secondary", "hidden"]

SECONDARY = frozenset("DSE")
UNTOLD = frozenset("NC")
"""Letters of CL_CONF_STATUS that do not say why a cell is hidden."""

LOWS = ("low", "lower", "minimum", "from")
HIGHS = ("high", "upper", "maximum", "to")


@dataclass(frozen=True)
class Said:
    """What a file says about one cell."""

    where: dict[str, str]
    value: float | None
    reason: Reason
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Written:
    """All that a reader takes from one file."""

    path: Path
    cells: tuple[Said, ...]
    notes: str = ""
    unexplained: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claims:
    """What a certificate says: bounds of cells, and which cells it was made for."""

    bounds: tuple[Said, ...]
    claimed: tuple[dict[str, str], ...]


def read(path: Path, names: Sequence[str]) -> Written:
    """Read one file, whose columns of codes have these names."""
    reader: dict[str, Callable[[Path, Sequence[str]], Written]] = {
        ".csv": _read_csv,
        ".xlsx": _read_xlsx,
        ".parquet": _read_parquet,
        ".json": _read_json,
    }
    return reader[path.suffix](path, names)


def read_certificate(path: Path, names: Sequence[str]) -> Claims:
    """Read what a proof states about cells, such as ``turnover: a=x, b=y``."""
    content = json.loads(path.read_text(encoding="utf-8"))
    bounds, places = [], []
    for cell in content["knowledge"]["cells"]:
        where = dict(re.findall(r"(?:^|[ ,:])([A-Za-z_]+)=([^,]+)", cell["name"]))
        where = {k: v.strip() for k, v in where.items() if k in names}
        places.append(where)
        bounds.append(Said(where, None, "hidden", _number(cell["low"]), _number(cell["high"])))
    claimed = tuple(places[claim["cell"]] for claim in content["claims"])
    return Claims(tuple(bounds), claimed)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(str(value).strip())
    except ValueError:
        return None


def reason_of(column: str, letter: str, value: float | None) -> Reason:
    """What a letter means in a column of this name; a value that stands there is shown, whatever the letter."""
    if value is not None:
        return "shown"
    if "OBS" in column.upper() or not letter:
        return "hidden"
    if letter in UNTOLD:
        return "hidden"
    return "secondary" if letter in SECONDARY else "primary"


def _rows(
    path: Path,
    headings: Sequence[str],
    rows: Iterable[Sequence[Any]],
    names: Sequence[str],
    notes: str,
) -> Written:
    status = next((h for h in headings if "status" in h.lower()), "")
    low = next((h for h in headings if h.lower() in LOWS), "")
    high = next((h for h in headings if h.lower() in HIGHS), "")
    known = {*names, *(f"{n}_label" for n in names), "value", status, low, high}
    cells = []
    strange: set[str] = set()
    for row in rows:
        at = dict(zip(headings, row, strict=True))
        value = _number(at["value"])
        letter = str(at.get(status) or "")
        if value is None and not letter and isinstance(at["value"], str):
            letter = at["value"].strip()
        strange |= {h for h in headings if h not in known and _number(at[h]) is not None}
        cells.append(
            Said(
                {n: str(at[n]) for n in names if n in at},
                value,
                reason_of(status, letter, value),
                _number(at.get(low)),
                _number(at.get(high)),
            )
        )
    return Written(path, tuple(cells), notes, tuple(sorted(strange)))


def _read_csv(path: Path, names: Sequence[str]) -> Written:
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    notes = "\n".join(line for line in lines if line.startswith("#"))
    content = list(csv.reader(line for line in lines if line and not line.startswith("#")))
    return _rows(path, content[0], content[1:], names, notes)


def _read_parquet(path: Path, names: Sequence[str]) -> Written:
    table = pyarrow.parquet.read_table(path)
    notes = " ".join(v.decode() for v in (table.schema.metadata or {}).values())
    rows = [list(row.values()) for row in table.to_pylist()]
    return _rows(path, table.column_names, rows, names, notes)


def _read_xlsx(path: Path, names: Sequence[str]) -> Written:
    """The sheet of cells; numbers of other sheets must be among them."""
    book = openpyxl.load_workbook(path)
    sheets = {s.title: [list(r) for r in s.iter_rows(values_only=True)] for s in book}
    notes = [
        str(cell) for title, rows in sheets.items() if title != "Cells" for row in rows for cell in row
        if isinstance(cell, str)
    ]  # fmt: skip
    notes += [c.comment.text for s in book for row in s.iter_rows() for c in row if c.comment]
    cells = sheets["Cells"]
    said = _rows(path, [str(c) for c in cells[0]], cells[1:], names, "\n".join(notes))
    shown = (
        {c.value for c in said.cells} | {c.low for c in said.cells} | {c.high for c in said.cells}
    )
    others = {
        _number(cell) for title, rows in sheets.items() if title != "Cells" for row in rows for cell in row
        if isinstance(cell, int | float)
    }  # fmt: skip
    strange = tuple(
        f"{x} outside the sheet of cells" for x in sorted(others - shown - {None}, key=str)
    )
    return Written(path, said.cells, said.notes, (*said.unexplained, *strange))


def _read_json(path: Path, names: Sequence[str]) -> Written:
    """JSON-stat, or the table of a programme with its axes."""
    content = json.loads(path.read_text(encoding="utf-8"))
    if "axes" in content:
        axes = [(a["name"], [c[0] for c in a["categories"]]) for a in content["axes"]]
    else:
        axes = []
        for name in content["id"]:
            index = content["dimension"][name]["category"]["index"]
            axes.append(
                (name, index if isinstance(index, list) else sorted(index, key=index.__getitem__))
            )
    size = 1
    for _, codes in axes:
        size *= len(codes)
    values = _filled(content["value"], size)
    letters = _filled(content.get("status"), size)
    lows = _filled(content.get("low", content.get("extension", {}).get("low")), size)
    highs = _filled(content.get("high", content.get("extension", {}).get("high")), size)
    cells = []
    for i, codes in enumerate(itertools.product(*(codes for _, codes in axes))):
        where = {name: code for (name, _), code in zip(axes, codes, strict=True) if name in names}
        value = _number(values[i])
        reason = reason_of("status", str(letters[i] or ""), value)
        cells.append(Said(where, value, reason, _number(lows[i]), _number(highs[i])))
    told = {
        k: v for k, v in content.items() if k in ("note", "notes", "extension", "method", "label")
    }
    return Written(path, tuple(cells), json.dumps(told))


def _filled(content: Any, size: int) -> list[Any]:
    """A list of JSON-stat in any of its three forms."""
    if isinstance(content, list):
        return content
    if isinstance(content, dict):
        return [content.get(str(i)) for i in range(size)]
    return [content] * size
