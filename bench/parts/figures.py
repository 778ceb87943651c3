"""Figures of a bench: ``record`` prints them as rows of a table and, if asked, writes them down.

    RECORD=1 python bench/startup.py

With ``RECORD`` set, a table goes to ``bench/figures/BENCH.json`` with its command, machine, commit and date.
Rows take the place of those with the same title and first column. ``docs/benchmarks.md`` is drawn from there.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import Any

Figure = str | int | float | None
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "bench" / "figures"
_tables: dict[str, dict[str, Any]] = {}


def record(title: str, row: Mapping[str, Figure], bench: str = "") -> None:
    """Print one row of the table with this title; a part of a bench names the bench it belongs to.

    Column names say their unit in brackets: ``{"table": "one-way", "ours (ms)": 26, "ratio": 0.13}``.
    """
    if title not in _tables:
        _tables[title] = {"title": title, "rows": []}
        print(f"\n**{title}**\n\n| {' | '.join(row)} |\n|{'---|' * len(row)}")
    figures = {name: _rounded(value) for name, value in row.items()}
    _tables[title]["rows"].append(figures)
    print(f"| {' | '.join(as_text(value) for value in figures.values())} |", flush=True)
    if os.environ.get("RECORD"):
        _write(bench or Path(sys.argv[0]).stem, title)


def as_text(value: Figure) -> str:
    """A figure as tables show it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:,}"


def _rounded(value: Figure) -> Figure:
    """Four digits are enough; whole numbers keep all of theirs."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Integral):
        return int(value)
    short = float(f"{float(value):.4g}")
    return int(short) if short.is_integer() and abs(short) >= 100 else short


def _write(bench: str, title: str) -> None:
    path = FOLDER / f"{bench}.json"
    tables = json.loads(path.read_text(encoding="utf-8"))["tables"] if path.exists() else []
    own = {"title": title, **_origin(bench), "rows": list(_tables[title]["rows"])}
    place = next((i for i, table in enumerate(tables) if table["title"] == title), len(tables))
    if place < len(tables):
        own["rows"] += _kept(tables[place], own["rows"])
    tables[place : place + 1] = [own]
    path.write_text(as_json(tables), encoding="utf-8")


def _kept(table: dict[str, Any], rows: list[dict[str, Figure]]) -> list[dict[str, Figure]]:
    """Older rows that this run has not measured again, with the commit and the date of their own."""
    again = {next(iter(row.values())) for row in rows}
    old = f"{table['commit']}, {table['date']}"
    kept = [row for row in table["rows"] if next(iter(row.values())) not in again]
    return [{**row, "recorded": row.get("recorded", old)} for row in kept]


def as_json(tables: list[dict[str, Any]]) -> str:
    """A file of figures, one row to a line."""
    parts = []
    for table in tables:
        head = [f"   {json.dumps(k)}: {json.dumps(v)}," for k, v in table.items() if k != "rows"]
        rows = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in table["rows"])
        parts.append("  {\n" + "\n".join(head) + f'\n   "rows": [\n{rows}\n   ]\n  }}')
    return '{\n "tables": [\n' + ",\n".join(parts) + "\n ]\n}\n"


@cache
def _origin(bench: str) -> dict[str, str]:
    """What was run, where and when; folders of this machine are not named."""
    words = ["FOLDER" if Path(word).exists() else word for word in sys.argv[1:]]
    commit = _said("git", "rev-parse", "--short=8", "HEAD")
    changed = _said("git", "status", "--porcelain", "--", "src", "bench", ":!bench/figures")
    return {
        "command": " ".join(["python", f"bench/{bench}.py", *words]),
        "machine": f"{_processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}",
        "commit": commit + (" with changes" if changed else ""),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _processor() -> str:
    for line in _said("lscpu").splitlines():
        if line.startswith("Model name:"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _said(*words: str) -> str:
    """What a command prints, or nothing where it fails."""
    try:
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
