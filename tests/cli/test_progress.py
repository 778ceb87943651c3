"""Progress of long commands: bars on a terminal, lines in a log."""

from __future__ import annotations

import io
from importlib import import_module
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from lustrum.cli import protect
from lustrum.cli.protect import progress_bars
from lustrum.cli.work import ingest_source


def lines(steps: list[tuple[float, str, float]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a log holds after steps that come at some seconds of the clock."""
    log = StringIO()
    with progress_bars(Console(file=log, width=80)) as progress:
        for second, step, share in steps:
            monkeypatch.setattr(protect.time, "monotonic", lambda second=second: 100.0 + second)
            progress(step, share)
    return log.getvalue().splitlines()


def test_a_log_has_a_line_where_a_step_begins_and_where_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = [(0.0, "counting", 0.25), (0.1, "counting", 0.5), (0.2, "counting", 1.0)]
    steps += [(0.3, "counting", 1.0), (0.4, "protecting", 0.0)]
    assert lines(steps, monkeypatch) == ["Counting: 25%", "Counting: 100%", "Protecting: 0%"]


def test_a_log_has_a_line_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [(float(second), "protecting", second / 100) for second in range(31)]
    assert lines(steps, monkeypatch) == [f"Protecting: {share}%" for share in (0, 10, 20, 30)]


def test_a_terminal_has_bars() -> None:
    screen = StringIO()
    console = Console(file=screen, width=80, force_terminal=True)
    with progress_bars(console) as progress:
        progress("protecting", 0.4)
    assert "Protecting" in screen.getvalue()
    assert "\x1b[" in screen.getvalue()


WORK = import_module("lustrum.cli.work")
DESCRIPTION = '[dataset]\nname = "town"\nunits = "persons"\n[[variables]]\nname = "area"\ncodes = ["N", "S"]\n'


def ingested(root: Path, name: str, console: Console) -> None:
    (root / "town.toml").write_text(DESCRIPTION)
    ingest_source(str(root / name), root / "town.toml", None, None, None, root / "data", console)


def test_a_log_gets_a_line_whenever_enough_more_records_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WORK, "_LINE", 100)
    monkeypatch.setattr(import_module("lustrum.tabulate.parquet"), "BATCH", 70)
    pq.write_table(pa.table({"area": ["N", "S"] * 1250}), tmp_path / "town.parquet")
    out = io.StringIO()
    ingested(tmp_path, "town.parquet", Console(file=out, width=20))
    text = out.getvalue()
    assert "\r" not in text
    assert "\x1b" not in text
    lines = [line for line in text.splitlines() if line.startswith("Ingesting")]
    ten = [140, 210, 350, 420, 560, 630, 700, 840, 910, 1050]
    assert lines == [f"Ingesting persons: {done:,} of 2,500." for done in (*ten, 2030)]
    assert "town: 2,500 persons in" in " ".join(text.split())
