"""Every number of the page about suppression follows from code, or from the benchmarks that it cites."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "explanation" / "suppression.md").read_text()


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
    low, high = int(release.least[0, 0]), int(release.most[0, 0])
    beside = sorted(table.values.ravel()[pattern.secondary].tolist())
    assert pattern.optimal
    assert pattern.safe
    assert needed.upper[0, 0] == needed.lower[0, 0]
    assert table.values[0, 3] - table.values[0, 1] - table.values[0, 2] == value
    own = {value, largest, 10, int(needed.upper[0, 0]), *table.values[0, 1:].tolist()}
    own |= {*beside, int(sum(beside)), low, high, value - low, high - value}
    assert int(sum(beside)) == pattern.cost
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert numbers(prose) <= own
    assert np.flatnonzero(pattern.suppressed).size == 4


def test_the_example_of_redesign_prints_what_the_page_shows() -> None:
    text = section("## Redesign")
    (code,), (output,) = blocks(text, "python"), blocks(text, "text")
    assert run(code)[1] == output


def test_the_comparison_states_what_the_benchmarks_state() -> None:
    recorded = json.loads((ROOT / "bench" / "figures" / "suppression.json").read_text())
    (found,) = [table for table in recorded["tables"] if table["title"] == "Suppression"]
    measured = {row["problem"]: row for row in found["rows"]}
    text = (ROOT / "docs" / "explanation" / "other-tools.md").read_text()
    rows = re.findall(
        r"^\| (\w+), (\d+) primary \| (\d+): ([\d,]+)(, optimum)? \|", text, re.MULTILINE
    )
    assert len(rows) == 6
    for name, primary, secondary, value, optimum in rows:
        row = measured[name]
        stated = [int(n.replace(",", "")) for n in (primary, secondary, value)]
        assert stated == [row["primary"], row["secondary"], row["suppressed value"]], name
        assert bool(optimum) == (row["proven gap (%)"] == 0)
        assert row["audited safe"] == "yes"
