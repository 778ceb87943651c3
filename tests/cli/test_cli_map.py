"""`lustrum map`: files in; a table, pictures and a report out; exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lustrum.cli import app
from lustrum.cli.maps import methods_of_words
from lustrum.model import InputError

CSV = """area,faith,value
A,F,1
A,G,14
A,Total,15
B,F,17
B,G,83
B,Total,100
Total,F,18
Total,G,97
Total,Total,115
"""
METHODS = ["--method", "random-rounding:base=3,5", "--method", "conventional-rounding:base=3"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "square.csv"
    path.write_text(CSV, encoding="utf-8")
    return path


def test_a_map_is_printed_drawn_and_reported(table: Path, tmp_path: Path) -> None:
    out = {kind: tmp_path / f"map.{kind}" for kind in ("svg", "html", "csv")}
    done = CliRunner().invoke(
        app,
        ["map", str(table), *METHODS, "--draws", "3", "--limit", "0.9", "--chart", str(out["svg"]),
         "--report", str(out["html"]), "--table", str(out["csv"])],
        env={"COLUMNS": "160"},
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "random-rounding base 5" in done.output
    assert "keeps most utility" in done.output
    assert "limit 0.9" in out["svg"].read_text()
    assert "Caveats" in out["html"].read_text()
    assert out["csv"].read_text().count("\n") == 1 + 2 + 3


def test_no_method_under_the_limit_is_exit_code_3(table: Path) -> None:
    done = CliRunner().invoke(app, ["map", str(table), *METHODS, "--draws", "2", "--limit", "0"])
    assert done.exit_code == 3
    assert "No method keeps" in done.output


def test_saved_questions_are_mapped_on_their_data(tmp_path: Path) -> None:
    from lustrum.demo import description_path, people
    from lustrum.tabulate import FrameSource, Secret, Store, ingest, read_description

    root = tmp_path / "data"
    root.mkdir()
    source = FrameSource(people(3_000, 1))
    description = read_description(description_path("demo"))
    ingest(source, description, Store(root), secret=Secret(bytes(range(32))))
    questions = tmp_path / "asked.jsonl"
    asked = {"dataset": "demo", "by": ["sex", "employment"]}
    questions.write_text(json.dumps(asked) + "\n", encoding="utf-8")
    words = ["map", str(questions), *METHODS, "--method", "record-swapping", "--draws", "2"]
    without = CliRunner().invoke(app, words)
    assert isinstance(without.exception, InputError)
    done = CliRunner().invoke(app, [*words, "--data", str(root)], env={"COLUMNS": "160"})
    assert done.exit_code == 0, (done.output, done.exception)
    assert "sex x employment" in done.output


@pytest.mark.parametrize("word", ["random-rounding:base", "random-rounding:bass=3", "nothing"])
def test_a_wrong_method_is_one_sentence(word: str) -> None:
    with pytest.raises(InputError):
        methods_of_words([word])


def test_suppression_on_a_map_is_quick_unless_its_algorithm_is_named() -> None:
    assert [m.algorithm for m in methods_of_words(["suppression"])] == ["quick"]
    both = methods_of_words(["suppression:algorithm=auto,exact:keep=totals"])
    assert [(m.algorithm, m.keep) for m in both] == [("auto", "totals"), ("exact", "totals")]
    searched = methods_of_words(["suppression:work=10..100"])[0]
    assert searched.parameters["algorithm"] == "quick"


@pytest.mark.parametrize("limit", [None, "0.9"])
def test_a_span_is_searched_and_the_best_is_named(limit: str | None, tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    rows = [
        f"{a},{b},{7 * i % 23}" for i, (a, b) in enumerate((a, b) for a in "xyz" for b in "pqr")
    ]
    file.write_text("\n".join(["row,column,value", *rows]) + "\n")
    words = ["map", str(file), "--no-totals", "all", "--method", "conventional-rounding:base=2..9"]
    words += ["--trials", "8", "--draws", "2", *(["--limit", limit] if limit else [])]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "conventional-rounding" in done.output
    assert ("keeps most utility" in done.output) == (limit is not None)


def test_a_span_needs_two_numbers() -> None:
    with pytest.raises(InputError, match="by two numbers"):
        methods_of_words(["random-rounding:base=two..3"])
