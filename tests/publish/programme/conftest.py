"""A small register of businesses in files, and programmes over it."""

from __future__ import annotations

import csv
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from lustrum.publish.programme.read import parse_programme
from lustrum.publish.programme.run import MadeProgramme, run_programme

DESCRIPTION = """
[dataset]
name = "biz"
title = "Businesses"
unit = "business"
units = "businesses"
record_id = "id"
identifiers = ["group"]

[[variables]]
name = "act"
label = "Activity"
codes = [["a1", "A1"], ["a2", "A2"], ["b1", "B1"], ["b2", "B2"]]

[[variables.hierarchies]]
name = "sections"

[[variables.hierarchies.levels]]
name = "section"
groups = [
  {code = "A", label = "A", members = ["a1", "a2"]},
  {code = "B", label = "B", members = ["b1", "b2"]},
]

[[variables]]
name = "region"
label = "Region"
codes = [["n", "North"], ["s", "South"], ["w", "West"]]

[[variables]]
name = "size"
label = "Size"
codes = [["s", "Small"], ["m", "Medium"], ["l", "Large"]]

[[measures]]
name = "turnover"
label = "Turnover"
unit = "EUR"
holding = "group"

[[measures]]
name = "domestic"
label = "Domestic turnover"
unit = "EUR"
holding = "group"

[[measures]]
name = "export"
label = "Export"
unit = "EUR"
holding = "group"
"""

HEAD = """
[programme]
name = "biz-2025"
title = "Businesses <2025>"
period = "2025"
notes = ["Turnover & export."]
{head}

[data]
file = "records.csv"
description = "description.toml"
{data}
"""

RULES = """
[[sets.rules]]
rule = "p-percent"
p = 10

[[sets.rules]]
rule = "threshold"
minimum = 3
margin = 10
"""

TURNOVER = f"""
[[sets]]
name = "turnover"
title = "Turnover"
relations = ["turnover = domestic + export"]
method = "suppression"
{RULES}
[[sets.tables]]
name = "activity-region"
title = "Activity by region"
by = [{{variable = "act", levels = ["finest", "section"], total = true}}, {{variable = "region", total = true}}]
measures = ["turnover", "domestic"]

[[sets.tables]]
name = "activity-size"
title = "Activity by size"
by = [{{variable = "act", level = "section", total = true}}, {{variable = "size", total = true}}]
measures = ["turnover"]

[[sets.tables]]
name = "not-large"
title = "Small and medium businesses by region"
by = [{{variable = "region", total = true}}]
where = {{size = ["s", "m"]}}
measures = ["turnover"]
"""

COUNTS = """
[[sets]]
name = "counts"
title = "Businesses"
method = {method}

[[sets.rules]]
rule = "threshold"
minimum = 3

[[sets.tables]]
name = "count-region"
by = [{{variable = "act", level = "section", total = true}}, {{variable = "region", total = true}}]

[[sets.tables]]
name = "count-size"
by = [{{variable = "act", level = "section", total = true}}, {{variable = "size", total = true}}]
"""


def programme_text(body: str, head: str = "", data: str = "") -> str:
    """A programme file over the small register."""
    return HEAD.format(head=head, data=data) + body + "\nend = true\n"


@dataclass(frozen=True)
class Workplace:
    """A folder with records, a description and a secret."""

    folder: Path

    def run(
        self,
        body: str,
        *,
        head: str = "",
        data: str = "",
        out: str = "public",
        trace: str = "trace.json",
    ) -> MadeProgramme:
        """Run a programme; relative places are in the folder."""
        text = programme_text(body, head, data)
        programme = parse_programme(text.encode(), "tables.toml", self.folder)
        return run_programme(
            programme, self.folder, self.folder / out, self.folder / trace, workers=1
        )


def write_records(folder: Path, seed: int = 3, rows: int = 70) -> None:
    """Skewed businesses of which some share a holding."""
    chance = random.Random(seed)
    with (folder / "records.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "group", "act", "region", "size", "turnover", "domestic", "export"])
        for number in range(1, rows + 1):
            domestic = int(chance.lognormvariate(5, 1.5)) + 1
            export = int(chance.lognormvariate(4, 1.5)) if chance.random() < 0.5 else 0
            writer.writerow(
                [
                    number,
                    f"g{chance.randrange(60)}",
                    chance.choice(["a1", "a2", "b1", "b1", "b2"]),
                    chance.choice("nsw"),
                    chance.choice("sssml"),
                    domestic + export,
                    domestic,
                    export,
                ]
            )


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    """A place of one's own."""
    return make_workplace(tmp_path)


def make_workplace(folder: Path) -> Workplace:
    """Records, description and secret in a folder."""
    write_records(folder)
    (folder / "description.toml").write_text(DESCRIPTION)
    secret = folder / "secret"
    secret.write_text("5a" * 32 + "\n")
    secret.chmod(0o600)
    return Workplace(folder)


@pytest.fixture(scope="session")
def made(turnover: Path) -> Workplace:
    """The programme of turnover, made once; tests only read it."""
    return Workplace(turnover)
