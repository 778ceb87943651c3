"""Figures in sentences of the documentation come from a file, and the file from the code as it is."""

from __future__ import annotations

import json
import os
import tomllib
from typing import Any

from bench.test_figures import ROOT, script
from lustrum.demo import description_path, people
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.tabulate import FrameEngine, Secret, finest_cells, read_description

PEOPLE = 20_000


def measured() -> dict[str, Any]:
    """What becomes of a small demo census under the policy of the demo."""
    description = description_path("demo")
    engine = FrameEngine(people(PEOPLE, 1), read_description(description), Secret(b"docs" * 8))
    (words,) = tomllib.loads(description.with_name("demo-policy.toml").read_text("utf-8"))["before"]
    words.pop("method")
    result = ProtectedPopulation(**words).protect(finest_cells(engine), b"documentation" * 3)

    def shows_3(true: int) -> int:
        row = result.agency.transitions[true]
        return round(100 * row[3] / sum(row.values()))

    return {
        "people": PEOPLE,
        "a 1 shows 3": shows_3(1),
        "a 2 shows 3": shows_3(2),
        "empty among 3": round(100 * result.agency.empty_share),
        "mean error": round(result.agency.over(variables=3)["mean_occupied"], 1),
        "typical error of four variables": result.public.error(4),
        "typical error of own groups": result.public.error(3, own_groups=True),
    }


def test_figures_in_sentences_are_those_of_the_code_and_all_are_named() -> None:
    hook = script("docs_figures")
    found = measured()
    if os.environ.get("RECORD"):
        hook.SENTENCES.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    assert json.loads(hook.SENTENCES.read_text("utf-8")) == found, "renew it with RECORD=1"
    pages = [path.read_text("utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]
    named = {name for page in pages for name in hook.FIGURE.findall(page)}
    assert named == set(found)
    assert not any(hook.FIGURE.search(hook.filled(page)) for page in pages)
