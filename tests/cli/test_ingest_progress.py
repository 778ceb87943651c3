"""Progress of an ingest can be read on a terminal and in a log."""

from __future__ import annotations

import io
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from lustrum.cli.work import ingest_source

WORK = import_module("lustrum.cli.work")
DESCRIPTION = '[dataset]\nname = "town"\nunits = "persons"\n[[variables]]\nname = "area"\ncodes = ["N", "S"]\n'


def ingested(root: Path, name: str, console: Console) -> None:
    (root / "town.toml").write_text(DESCRIPTION)
    ingest_source(root / name, root / "town.toml", None, None, None, root / "data", console)


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORK, "_LINE", 100)
    monkeypatch.setattr(import_module("lustrum.tabulate.ingest"), "BATCH", 70)


@pytest.mark.usefixtures("short_lines")
def test_a_log_gets_a_line_whenever_enough_more_records_are_done(tmp_path: Path) -> None:
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


def test_a_log_of_a_text_file_says_how_many_records_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WORK, "_LINE", 100)
    (tmp_path / "town.csv").write_text("area\n" + "N\nS\n" * 60)
    out = io.StringIO()
    ingested(tmp_path, "town.csv", Console(file=out, width=200))
    assert out.getvalue().splitlines()[0] == "Ingesting persons: 120."


@pytest.mark.usefixtures("short_lines")
def test_a_terminal_gets_a_bar(tmp_path: Path) -> None:
    pq.write_table(pa.table({"area": ["N", "S"] * 150}), tmp_path / "town.parquet")
    out = io.StringIO()
    console = Console(file=out, width=120, force_terminal=True, force_interactive=True)
    ingested(tmp_path, "town.parquet", console)
    assert "300/300" in out.getvalue()
    assert "of 300." not in out.getvalue()
