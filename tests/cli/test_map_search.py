"""A span of a parameter on the command line is searched."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lustrum.cli import app
from lustrum.cli.maps import methods_of_words
from lustrum.model import InputError


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
