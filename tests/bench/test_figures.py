"""Every bench records its figures in a file, and the page of benchmarks is drawn from these files."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest
from parts import figures

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
BENCHES = sorted(path.stem for path in (ROOT / "bench").glob("*.py"))


def script(name: str) -> ModuleType:
    """A script of the project as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("bench", BENCHES)
def test_every_bench_has_figures_that_say_where_they_come_from(bench: str) -> None:
    tables = json.loads((figures.FOLDER / f"{bench}.json").read_text("utf-8"))["tables"]
    assert tables
    assert len({table["title"] for table in tables}) == len(tables)
    for table in tables:
        assert list(table) == ["title", "command", "machine", "commit", "date", "rows"]
        assert table["command"].startswith("python bench/")
        assert re.fullmatch(r"[0-9a-f]{8}", table["commit"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", table["date"])
        assert table["rows"]
    assert (figures.FOLDER / f"{bench}.json").read_text("utf-8") == figures.as_json(tables)


def test_no_figures_are_those_of_a_bench_that_is_gone() -> None:
    assert sorted(path.stem for path in figures.FOLDER.iterdir()) == BENCHES


def test_the_page_names_every_bench_and_draws_its_figures() -> None:
    text, hook = PAGE.read_text("utf-8"), script("docs_figures")
    assert sorted(re.findall(r"<!-- figures: (\w+) -->", text)) == BENCHES
    assert [bench for bench in BENCHES if f"**`{bench}`**" not in text] == []
    page = hook.drawn(text)
    assert "<!-- figures" not in page
    assert "<!-- plot" not in page
    assert page.count("<svg") == text.count("<!-- plot")
    for bench in BENCHES:
        for table in hook.recorded(bench):
            assert hook.as_markdown(table) in page


def test_the_page_has_at_most_two_thousand_words() -> None:
    assert len(PAGE.read_text("utf-8").split()) <= 2000


def test_rows_are_recorded_only_if_asked_and_keep_what_was_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(figures, "FOLDER", tmp_path)
    monkeypatch.setattr(figures, "_tables", {})
    monkeypatch.delenv("RECORD", raising=False)
    figures.record("Times", {"table": "small", "ours (s)": 1.23456}, "made")
    assert "| small | 1.235 |" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    old = {
        "command": "python bench/made.py",
        "machine": "m",
        "commit": "0" * 8,
        "date": "2020-01-01",
    }
    rows = [{"table": "small", "ours (s)": 9}, {"table": "large", "ours (s)": 99}]
    before = [{"title": "Times", **old, "rows": rows}, {"title": "Other", **old, "rows": rows}]
    (tmp_path / "made.json").write_text(figures.as_json(before))
    monkeypatch.setenv("RECORD", "1")
    figures.record("Times", {"table": "tiny", "ours (s)": 0.5}, "made")
    times, other = json.loads((tmp_path / "made.json").read_text())["tables"]
    assert other == before[1]
    assert times["commit"] != old["commit"]
    assert times["rows"] == [
        {"table": "small", "ours (s)": 1.235},
        {"table": "tiny", "ours (s)": 0.5},
        {"table": "large", "ours (s)": 99, "recorded": f"{'0' * 8}, 2020-01-01"},
    ]


def test_the_guide_to_the_ledger_says_what_the_record_holds() -> None:
    tables = json.loads((figures.FOLDER / "ledger.json").read_text("utf-8"))["tables"]
    rows = {next(iter(row.values())): row for table in tables for row in table["rows"]}
    text = (ROOT / "docs" / "how-to" / "count-answers-together.md").read_text("utf-8")
    said = re.findall(r"(\d+) to (\d+) % (?:of drawn questions )?under `([a-z-]+)`", text)
    assert {preset for _, _, preset in said} == {"keyed-rounding", "cell-key"}
    for low, high, preset in said:
        row = rows[f"{preset}, limit 0.1"]
        shares = [round(value) for name, value in row.items() if name.startswith("ledger:")]
        assert (min(shares), max(shares)) == (int(low), int(high))
    guessed = r"guess (\d+) % of ones and twos where each alone gives (\d+) and (\d+) % "
    guessed += r"\(`cell-key`: (\d+) %, (\d+) and (\d+)"
    [figures_said] = re.findall(guessed, text)
    recorded = [
        rows[preset][f"guessed by {by} (%)"]
        for preset in ("keyed-rounding", "cell-key")
        for by in ("both", "answers", "bundle")
    ]
    assert [round(figure) for figure in recorded] == [int(one) for one in figures_said]
