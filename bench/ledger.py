"""What a ledger of answers holds back, what it costs, and what is left to honest askers.

    python bench/ledger.py [--persons 100000] [--keys 3]

Asks all tables up to three variables of the demo census, and three within each sex, on the preset
``keyed-rounding``: without its ledger, under limits, and by two askers who put their tables together, counted
each for themselves and both as one. The attack passes bounds through all tables that were answered; what is
refused is decided by shown numbers, so that a refusal tells it nothing more. The part ``towns`` attacks a small
town in which nothing but the ledger protects, on both presets: linear programs over all that exists, averages
over splits, trackers by other variables, and an asker that learnt under other keys. ``methods`` shows the same
cells by a strict bundle too. Then streams of questions
like those of a server are drawn, and the share that is refused is recorded as the stream goes on. Last the time
of one decision beside ten thousand answers, and of one line in the book. The exit code is 1 if small counts are
certain beyond what a limit allows, or none without a ledger.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from attacks.asker import question
from attacks.held_tables import learnt, questions, town
from attacks.lattice import gather
from attacks.ledger_asker import (
    LedgerAsker,
    MarkedNumbers,
    attacked_town,
    by_two_methods,
    policy_of,
)
from parts.figures import record

from lustrum.answer import Snapshot
from lustrum.answer.ledger import ReleaseLedger
from lustrum.answer.readers import EVERYBODY, Reader
from lustrum.audit.grids import GridAxis, PopulationGrid, PopulationStructure
from lustrum.audit.overlap import Holdings, OpenNoise
from lustrum.demo import description_path, people
from lustrum.ledger.releases import ReleaseBook
from lustrum.model import TableQuery
from lustrum.protect.rounding.cells import RoundingChannel
from lustrum.publish.records import ProtectedInput
from lustrum.tabulate import Engine, FrameSource, Secret, Store, ingest, read_description

PARTS = ("attacks", "towns", "methods", "streams", "times")
LATTICE = ("age", "citizenship", "education", "employment", "household_size", "occupation", "sex")
WEIGHTS = {
    "sex": 10,
    "age": 9,
    "area": 6,
    "region": 5,
    "employment": 5,
    "education": 4,
    "occupation": 3,
    "citizenship": 3,
    "household_size": 3,
}
"""How often readers choose a variable, as a guess of what servers of censuses see."""


def attack(engine: Engine, asker: LedgerAsker) -> tuple[int, int]:
    """How many ones and twos are certain by all that was answered, and how many bounds are wrong."""
    codes = {v.name: list(v.codes) for v in engine.dataset.variables if v.name in LATTICE}
    lattice = gather(asker, codes, within=("sex",))
    lattice.propagate(keyed=True)

    def true(variables: tuple[str, ...]) -> Any:
        if not variables:
            return np.asarray(engine.tabulate(_query(question(("sex",)))).values.sum())
        return engine.tabulate(_query(question(variables))).values

    def possible(variables: tuple[str, ...]) -> Any:
        if not variables:
            return np.asarray(True)
        table = engine.tabulate(_query(question(variables)))
        return np.ones(table.shape, bool) if table.structural is None else ~table.structural

    found = lattice.against(true, possible)
    return found.small, found.wrong


def _query(asked: dict[str, Any]) -> TableQuery:
    return TableQuery.from_mapping({"dataset": "demo", **asked})


def attacks(persons: int, keys: int, root: Path) -> bool:
    """The attack without a ledger, under limits, and by two readers."""
    right = True
    public, alone = (EVERYBODY,), {"audience": "group"}
    tokens = tuple(Reader(name, "registered") for name in ("anna", "ben"))
    grouped = tuple(replace(one, group="one") for one in tokens)
    cases: list[tuple[str, dict[str, object] | None, tuple[Reader, ...]]] = [
        ("no ledger (control)", None, public),
        ("limit 1", {"limit": 1.0}, public),
        ("limit 0.1, the preset", {}, public),
        ("two tokens, everybody counted as one", {}, tokens),
        ("two tokens of one group", dict(alone), grouped),
        ("two tokens, not grouped (control)", dict(alone), tokens),
    ]
    totals = dict.fromkeys((name for name, _, _ in cases), 0)
    rows: dict[str, list[int]] = {name: [0, 0, 0] for name, _, _ in cases}
    for key in range(keys):
        store = Store(root / f"store{key}")
        described = read_description(description_path("demo"))
        secret = Secret(bytes([key]) * 32)
        ingest(FrameSource(people(persons)), described, store, secret=secret)
        engine = store.open("demo")
        source = ProtectedInput(engine, secret=secret)
        for name, words, readers in cases:
            policy = policy_of("keyed-rounding", **(words or {}))
            snapshot = Snapshot(MarkedNumbers(engine, policy, source), policy)
            folder = root / f"{name}-{key}"
            ledger = None if words is None else ReleaseLedger(folder)
            asker = LedgerAsker(snapshot, ledger, readers)
            small, wrong = attack(engine, asker)
            right = right and wrong == 0
            totals[name] += small
            row = rows[name]
            row[0] += asker.asked
            row[1] += asker.refused.get("rules", 0)
            row[2] += asker.refused.get("ledger", 0)
    for name, _, _ in cases:
        asked, rules, refused = rows[name]
        record(
            f"All tables up to three variables, and three within each sex: {persons:,} people",
            {
                "answers": name,
                "keys": keys,
                "questions": asked,
                "refused by the rules": rules,
                "refused by the ledger": refused,
                "ones and twos that are certain": totals[name],
            },
        )
    allowed = max(1, keys // 10 + 1)
    held = all(totals[name] <= allowed for name, _, _ in cases[2:5])
    return right and totals["no ledger (control)"] > 0 and held


def towns(persons: int, keys: int, root: Path) -> bool:
    """Every way of asking a small town in which nothing but the ledger protects."""
    kinds = questions(town())
    attacks_of = {
        "lattice, and one population in other words": kinds["lattice"] + kinds["levels"],
        "splits within filters, averaged": kinds["lattice"][:28] + kinds["splits"][::3],
        "trackers by other variables": kinds["trackers"],
    }
    alone = {"audience": "group"}
    two = tuple(Reader(name, "registered") for name in ("anna", "ben"))
    grouped = tuple(replace(one, group="one") for one in two)
    cases: list[tuple[str, dict[str, object] | None, tuple[Reader, ...]]] = [
        ("no ledger (control)", None, (EVERYBODY,)),
        ("one audience", {}, (EVERYBODY,)),
        ("two tokens of one group", dict(alone), grouped),
        ("two tokens, not grouped (control)", dict(alone), two),
        ("limit 10 (control of what is expected)", {"limit": 10.0}, (EVERYBODY,)),
    ]
    right = True
    for preset_name, (kind, asked) in product(("keyed-rounding", "cell-key"), attacks_of.items()):
        behind: list[dict[int, int]] = []
        for title, ledger, readers in (
            *cases,
            ("one audience, learnt under other keys", {}, cases[0][2]),
        ):
            runs = []
            for key in range(keys):
                order = asked
                if "learnt" in title:
                    others = [one for at, one in enumerate(behind) if at != key]
                    score = {at: sum(o.get(at, 0) for o in others) for o in others for at in o}
                    order = learnt(asked, score)
                folder = root / f"{preset_name}-{kind[:6]}-{title}-{key}"
                runs.append(
                    attacked_town(
                        folder,
                        preset_name,
                        persons,
                        key,
                        order,
                        ledger,
                        readers=readers,
                        rules=False,
                    )
                )
            if ledger is None:
                behind = [one.behind for one in runs]
            certain = sum(one.claims.certain for one in runs)
            record(
                f"A small town of {persons:,} without rules about numbers: {preset_name}",
                {
                    "attack": f"{kind}: {title}",
                    "keys": keys,
                    "questions": sum(one.asked for one in runs),
                    "refused by the ledger": sum(one.refused.get("ledger", 0) for one in runs),
                    "certain ones and twos": certain,
                    "one of two values": sum(one.claims.narrow for one in runs),
                    "expected": sum(one.charged for one in runs),
                    "named by averages": sum(one.claims.named for one in runs),
                },
            )
            right = right and not any(one.claims.wrong or one.claims.two_numbers for one in runs)
            if "control" not in title:
                right = right and certain <= max(1, keys // 10 + 1)
            elif "limit" in title:
                right = right and certain <= max(1.0, sum(one.charged for one in runs))
    return right


def methods(persons: int, keys: int, root: Path) -> None:
    """What readers guess of ones and twos that two methods show: why no bundle answers in the ledger's place.

    They learnt under other keys which count is most frequent behind what is shown.
    """
    for name in ("keyed-rounding", "cell-key"):
        tables = [by_two_methods(root / f"{name}-{key}", name, persons, key) for key in range(keys)]
        row: dict[str, Any] = {"answers": name, "keys": keys}
        for title, picks in (("answers", [1]), ("bundle", [2]), ("both", [1, 2])):
            right = small = 0
            for key, (true, *_) in enumerate(tables):
                seen: dict[tuple[int, ...], Counter[int]] = {}
                for other in (*tables[:key], *tables[key + 1 :]):
                    for count, shown in zip(other[0], other[picks].T, strict=True):
                        seen.setdefault(tuple(shown), Counter())[int(count)] += 1
                for count, shown in zip(true, tables[key][picks].T, strict=True):
                    if 1 <= count <= 2:
                        small += 1
                        best = seen.get(tuple(shown), Counter()).most_common(1)
                        right += bool(best) and best[0][0] == count
            row |= {"ones and twos": small, f"guessed by {title} (%)": 100 * right / small}
        record(f"Cells that two methods show: a small town of {persons:,}", row)


def drawn_question(draw: random.Random, engine: Engine) -> TableQuery:
    """A question as readers of a census ask: one to three variables, half of them within one code."""
    names, weights = list(WEIGHTS), list(WEIGHTS.values())
    wanted = draw.choices((1, 2, 3), (3, 5, 2))[0]
    by: list[str] = []
    while len(by) < wanted:
        name = draw.choices(names, weights)[0]
        if name not in by:
            by.append(name)
    where = {}
    rest = [name for name in names if name not in by]
    if draw.random() < 0.5:
        name = draw.choices(rest, [WEIGHTS[n] for n in rest])[0]
        where = {name: [draw.choice(engine.dataset.variable(name).codes)]}
    return _query({"by": by, "where": where, "totals": draw.random() < 0.3})


def streams(persons: int, marks: Sequence[int], root: Path) -> None:
    """The share of questions that the ledger refuses as a stream of them goes on."""
    store = Store(root / "stream")
    secret = Secret(bytes(range(32)))
    described = read_description(description_path("demo"))
    ingest(FrameSource(people(persons)), described, store, secret=secret)
    engine = store.open("demo")
    source = ProtectedInput(engine, secret=secret)
    for name, limit in (("keyed-rounding", 0.1), ("keyed-rounding", 1.0), ("cell-key", 0.1)):
        policy = policy_of(name, limit=limit)
        snapshot = Snapshot(MarkedNumbers(engine, policy, source), policy)
        ledger, draw = ReleaseLedger(root / f"stream-{name}-{limit}"), random.Random(7)
        asker = LedgerAsker(snapshot, ledger)
        before, row = 0, {"policy": f"{name}, limit {limit:g}"}
        seen = {"rules": 0, "ledger": 0}
        for mark in marks:
            while asker.asked < mark:
                asker.decided(drawn_question(draw, engine))
            for why in seen:
                share = (asker.refused.get(why, 0) - seen[why]) / (mark - before)
                row[f"{why}: {before + 1:,} to {mark:,} (%)"] = round(100 * share, 1)
                seen[why] = asker.refused.get(why, 0)
            before = mark
        record(f"Share of drawn questions that are refused: {persons:,} people", row)


def times(entries: int, root: Path) -> None:
    """One decision beside so many answers, and one line of the book."""
    sizes = {
        "age": 21,
        "education": 9,
        "employment": 5,
        "household_size": 6,
        "occupation": 13,
        "sex": 2,
    }
    # As many areas as it takes for so many questions of which none holds another.
    areas = 158 if entries <= 10_000 else 160 * entries // 10_000
    sizes |= {"citizenship": 5, "area": areas}
    holdings = Holdings(
        PopulationStructure({name: (1 << size) - 1 for name, size in sizes.items()}),
        OpenNoise.of([RoundingChannel(3)], 2),
    )
    rng, draw = np.random.default_rng(1), random.Random(1)

    def grid(
        names: Sequence[str], within: Mapping[str, int], *, shown: bool = True
    ) -> PopulationGrid:
        axes = [GridAxis(n, tuple(1 << code for code in range(sizes[n]))) for n in names]
        axes += [GridAxis(name, (1 << code,)) for name, code in within.items()]
        axes.sort(key=lambda axis: axis.variable)
        shape = tuple(len(axis.parts) for axis in axes)
        mean = 1e4 * areas / np.prod([sizes[axis.variable] for axis in axes])
        return PopulationGrid(tuple(axes), 3 * rng.poisson(mean / 3, shape) if shown else None)

    own = [name for name in sizes if name != "area"]
    national = [c for size in (1, 2) for c in combinations(own, size)]
    local: list[tuple[Sequence[str], dict[str, int]]] = [
        (c, {"area": area})
        for size in (1, 2, 3)
        for c in combinations(own, size)
        for area in range(areas)
    ]
    draw.shuffle(local)
    holdings.add(grid(c, {}) for c in (*national, ("area",)))
    local += [(c, {"area": area}) for c in combinations(own, 4) for area in range(10)]
    held = entries - len(national) - 1
    holdings.add(grid(*one) for one in local[:held])
    new = local[held : held + 60]
    used = []
    for one in new:
        asked = grid(*one, shown=False)
        started = time.process_time()
        holdings.expected_certain([asked])
        used.append(1000 * (time.process_time() - started))
    book = ReleaseBook(root / "book")
    book.enter({}, dataset="demo")
    with closing(sqlite3.connect(book.folder / "releases.sqlite")) as file, file:
        lines = ((-number, b"x" * 600, "s" * 64, "public", "demo") for number in range(entries))
        file.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", lines)
    started = time.perf_counter()
    for last in range(1, 501):
        assert not list(book.entries(last, dataset="demo"))
        said = {"kind": "answer", "question": "q" * 200}
        book.enter(said, dataset="demo", contents={str(last): b"x" * 2000}, last=last)
    record(
        "One decision, and one line",
        {
            "answers that are held": entries,
            "median of 60 decisions (ms of processor)": float(np.median(used)),
            "longest": max(used),
            "lines a second beside as many, SQLite": 500 / (time.perf_counter() - started),
        },
    )


def main() -> int:
    """Attack, draw streams and time."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--persons", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=3)
    parser.add_argument("--parts", nargs="+", choices=PARTS)
    given = parser.parse_args()
    chosen = given.parts or PARTS
    right = True
    with tempfile.TemporaryDirectory() as scratch:
        if "attacks" in chosen:
            right = attacks(given.persons, given.keys, Path(scratch))
        if "towns" in chosen:
            right = towns(2000, given.keys, Path(scratch)) and right
        if "methods" in chosen:
            methods(2000, 12, Path(scratch))
        if "streams" in chosen:
            streams(given.persons, (100, 1_000, 10_000), Path(scratch))
        if "times" in chosen:
            for entries in (10_000, 100_000):
                times(entries, Path(scratch) / str(entries))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
