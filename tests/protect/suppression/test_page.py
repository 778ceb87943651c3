"""Every number of the page about suppression follows from code, or from the benchmarks that it cites."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "explanation" / "suppression.md").read_text()


def section(title: str) -> str:
    """The text from a heading to the next of its kind."""
    start = PAGE.index(f"\n{title}\n")
    level = title.partition(" ")[0]
    end = re.search(rf"\n#{{2,{len(level)}}} ", PAGE[start + 5 :])
    return PAGE[start : len(PAGE) if end is None else start + 5 + end.start()]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def run(code: str) -> tuple[dict[str, Any], str]:
    printed, names = io.StringIO(), {}
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "page", "exec"), names)
    return names, printed.getvalue()


def numbers(text: str) -> set[int]:
    return {int(n.replace(",", "")) for n in re.findall(r"(?<![\w.])\d[\d,]*\d|(?<![\w.])\d", text)}


@pytest.fixture(scope="module")
def example() -> tuple[dict[str, Any], str, str]:
    text = section("## A worked example")
    (code,) = blocks(text, "python")
    return (*run(code), text)


def test_the_worked_example_prints_what_the_page_shows(
    example: tuple[dict[str, Any], str, str],
) -> None:
    _, printed, text = example
    table, output = blocks(text, "text")
    assert printed == output
    rows = [line.split()[1:] for line in table.splitlines()[1:]]
    shown = [[int(n.replace(",", "")) for n in row] for row in rows]
    assert shown == example[0]["table"].values.tolist()


def test_every_number_about_the_worked_example_is_one_of_its_own(
    example: tuple[dict[str, Any], str, str],
) -> None:
    names, _, text = example
    table, pattern, release = names["table"], names["pattern"], names["release"]
    needed = names["method"].judge(table)
    value, largest = int(table.values[0, 0]), int(table.contributions.value[0, 0, 0])
    low, high = int(release.low[0, 0]), int(release.high[0, 0])
    beside = sorted(table.values.ravel()[pattern.secondary].tolist())
    assert pattern.optimal
    assert pattern.safe
    assert needed.upper[0, 0] == needed.lower[0, 0]
    assert table.values[0, 3] - table.values[0, 1] - table.values[0, 2] == value
    own = {value, largest, 10, int(needed.upper[0, 0]), *table.values[0, 1:].tolist()}
    own |= {*beside, int(sum(beside)), low, high, value - low, high - value}
    assert int(sum(beside)) == pattern.cost
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert numbers(prose) == own
    assert np.flatnonzero(pattern.suppressed).size == 4


def test_the_example_of_redesign_prints_what_the_page_shows() -> None:
    text = section("## Redesign")
    (code,), (output,) = blocks(text, "python"), blocks(text, "text")
    assert run(code)[1] == output


def rows_of(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_comparison_states_what_the_benchmarks_state() -> None:
    bench = {
        row[0].partition(",")[0]: row
        for row in rows_of((DOCS / "benchmarks.md").read_text())
        if len(row) == 10 and row[0].startswith(("t2_", "t3_", "h2_40"))
    }
    table, seen = "", []
    for row in rows_of(section("## Beside other tools")):
        if len(row) != 7 or row[0] == "table" or row[0].startswith("-"):
            continue
        table = row[0] or table
        # A pattern survives the audit exactly if no cell is disclosed and none is short.
        assert (row[6] == "yes") == (row[4] == row[5] == "0"), row
        if row[1].startswith("Lustrum"):
            name, _, primary = table.partition(", ")
            measured = bench[name]
            assert row[2:4] == measured[3:5], name
            assert primary == f"{measured[2]} primary"
            assert ("optimum" in row[1]) == (measured[5] == "0.0%")
            assert measured[8] == row[6] == "yes"
            seen.append(name)
    assert sorted(seen) == sorted(bench)
