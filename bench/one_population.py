"""Whether every answer of a running server is a plain count of its public bundle, whatever is asked.

    python bench/one_population.py [--data FOLDER] [--questions 3000] [--address URL]

Random questions to the demo census: levels, chosen codes, own groups, filters, and pairs that differ by one
code of a filter, so that their difference is a table that nobody asked for. Every number of every answer, as
JSON, CSV or Parquet, is compared with a count of the bundle's cells that is made here with numpy alone. If all
of them agree, no sequence of questions shows more than the public file does. True counts are looked up to state
how many numbers equal them, and whether bounds hold them. As a control every hundredth cell of the file is
changed here, and answers must disagree with that. The exit code is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import sys
import tempfile
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
from parts.figures import record

from lustrum.demo.setup import prepare
from lustrum.model import Dataset
from lustrum.model.arrays import Array, Ints
from lustrum.public.bundle.files import read_bundle
from lustrum.tabulate import Store, finest_cells

Members = Sequence[Sequence[int]]


class Questions:
    """Random questions, each with the finest codes that every one of its categories holds."""

    def __init__(self, dataset: Dataset, chance: random.Random) -> None:
        self._dataset, self._chance = dataset, chance

    def axis(self, name: str) -> tuple[dict[str, Any], Members]:
        """A variable as codes, a level, chosen codes or own groups, perhaps with a total."""
        chance, variable = self._chance, self._dataset.variable(name)
        levels = [level for hierarchy in variable.hierarchies for level in hierarchy.levels]
        size = len(variable.codes)
        kind = chance.choice(("codes", "level", "chosen", "groups"))
        asked: dict[str, Any] = {"variable": name}
        members: list[Sequence[int]] = [(code,) for code in range(size)]
        if kind == "level" and levels:
            level = chance.choice(levels)
            asked["level"] = level.name
            members = [category.members for category in level.categories]
        elif kind == "chosen" and size > 2:
            chosen = sorted(chance.sample(range(size), chance.randint(2, min(size - 1, 8))))
            asked["codes"] = [variable.codes[code] for code in chosen]
            members = [(code,) for code in chosen]
        elif kind == "groups" and size > 2:
            some = chance.sample(range(size), chance.randint(2, size))
            cut = chance.randint(1, len(some) - 1)
            members = [sorted(some[:cut]), sorted(some[cut:])]
            asked["groups"] = [
                {"label": f"Group {n}", "members": [variable.codes[code] for code in part]}
                for n, part in enumerate(members, 1)
            ]
        return asked, members

    def table(self) -> tuple[dict[str, Any], dict[str, Members], dict[str, list[int]]]:
        """A question: its JSON form, the members of each axis, and those of each filter."""
        chance = self._chance
        names = [variable.name for variable in self._dataset.variables]
        by = chance.sample(names, chance.choice((1, 1, 2, 2, 3)))
        axes = [self.axis(name) for name in by]
        where: dict[str, list[int]] = {}
        for name in chance.sample(names, chance.choice((0, 0, 1, 2, 3))):
            size = len(self._dataset.variable(name).codes)
            if name not in by and size > 1:
                where[name] = sorted(chance.sample(range(size), chance.randint(1, size - 1)))
        return (
            self.worded([asked for asked, _ in axes], where),
            dict(zip(by, (members for _, members in axes), strict=True)),
            where,
        )

    def worded(self, by: list[dict[str, Any]], where: Mapping[str, list[int]]) -> dict[str, Any]:
        """A question in the form of the API."""
        codes = {
            name: [self._dataset.variable(name).codes[code] for code in several]
            for name, several in where.items()
        }
        return {"dataset": self._dataset.name, "by": by, "where": codes}


def counted(
    columns: Mapping[str, Array],
    counts: Ints,
    axes: Mapping[str, Members],
    where: Mapping[str, list[int]],
) -> Ints:
    """The table of a question, counted cell by cell."""
    kept = np.ones(counts.size, dtype=bool)
    for name, codes in where.items():
        kept &= np.isin(columns[name], codes)
    place, size = np.zeros(counts.size, dtype=np.int64), 1
    for name, members in axes.items():
        at = np.full(int(columns[name].max()) + 1, -1)
        for number, codes in enumerate(members):
            at[[code for code in codes if code < at.size]] = number
        kept &= at[columns[name]] >= 0
        place, size = place * len(members) + at[columns[name]], size * len(members)
    return np.bincount(place[kept], counts[kept], size).astype(np.int64)


def asked_of(address: str, question: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The status and the body of an answer."""
    request = urllib.request.Request(
        f"{address}/api/v1/tables?include=bounds",
        json.dumps(question).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=300) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def main() -> int:
    """Read the options, and make the demo where there is none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, help="a folder with the demo data; made if not given")
    parser.add_argument("--questions", type=int, default=3000)
    parser.add_argument("--address", help="a server of that folder, if one is running")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.data is None:
            given.data = Path(folder) / "data"
            prepare(given.data, 200_000)
        return attacked(given)


def attacked(given: argparse.Namespace) -> int:
    """Ask, compare and print; 1 if anything is wrong."""
    from parts.server_load import served

    bundle = read_bundle(given.data / "bundles" / "demo")
    dataset, public = bundle.dataset, bundle.cells
    true = finest_cells(Store(given.data).open("demo"))
    order = [dataset.variable(v.name).name for v in dataset.variables]
    columns = dict(zip(order, public.codes, strict=True))
    truth = dict(zip((v.name for v in true.dataset.variables), true.codes, strict=True))
    changed = public.counts.copy()
    changed[::100] += 3  # the control
    chance = random.Random(given.seed)
    questions = Questions(dataset, chance)
    seen: Counter[str] = Counter()
    running = nullcontext((given.address, 0)) if given.address else served(given.data, 1, None, [])
    with running as (address, _):
        while seen["questions"] < given.questions:
            question, axes, where = questions.table()
            pair = [where]
            if where:
                name = chance.choice(sorted(where))
                fewer = {**where, name: where[name][1:]}
                pair += [fewer] if fewer[name] else []
            for one in pair:
                asked = questions.worded(question["by"], one)
                status, body = asked_of(address, asked)
                seen["questions"] += 1
                seen[f"status {status}"] += 1
                if body.get("table") is None:
                    seen["refused"] += status == 200
                    continue
                own = counted(columns, public.counts, axes, one)
                behind = counted(truth, true.counts, axes, one)
                seen["numbers"] += own.size
                seen["of pairs"] += own.size if len(pair) == 2 else 0
                seen["with own groups"] += any("groups" in axis for axis in asked["by"])
                shown = body["table"]["value"]
                if seen["questions"] % 5 == 0:
                    seen["read as CSV and Parquet"] += 1
                    seen["disagree"] += in_csv(body["links"]["csv"]) != shown
                    seen["disagree"] += in_parquet(body["links"]["parquet"]) != shown
                seen["disagree"] += shown != own.tolist()
                other = counted(columns, changed, axes, one)
                seen["control disagrees"] += shown != other.tolist()
                small = (behind > 0) & (behind < 3)
                seen["true ones and twos"] += int(small.sum())
                seen["of these shown as they are"] += int((small & (own == behind)).sum())
                low, high = (
                    np.array(body["bounds"][side], dtype=float) for side in ("low", "high")
                )
                seen["bounds that miss the truth"] += int(((behind < low) | (behind > high)).sum())
    for word, number in sorted(seen.items()):
        record("Every answer against the file", {"what": word, "number": number})
    wrong = seen["disagree"] + seen["of these shown as they are"]
    wrong += seen["bounds that miss the truth"]
    return int(bool(wrong) or not seen["control disagrees"])


def in_parquet(link: str) -> list[int | None]:
    """The numbers of a file of Parquet, in their order."""
    with urllib.request.urlopen(link, timeout=60) as response:
        table = pyarrow.parquet.read_table(io.BytesIO(response.read()))
    numbers: list[int | None] = table.column("value").to_pylist()
    return numbers


def in_csv(address: str) -> list[int]:
    """The numbers of an answer as its file gives them, in the order of its cells."""
    with urllib.request.urlopen(address, timeout=300) as response:
        text = io.StringIO(response.read().decode("utf-8-sig"))
    rows = csv.DictReader(line for line in text if not line.startswith("#"))
    return [int(row["value"]) for row in rows]


if __name__ == "__main__":
    sys.exit(main())
