"""Risk-utility maps: eight methods x ten parameters x ten replications on the 2,457-cell table.

Run it from the root of the project: ``python bench/rumap.py``. The table is the first of the 2015 study, age x
education x occupation of the people of one region of the demo census; ``--persons`` makes the census smaller.
What a user would do instead is a plain loop that applies each method and measures it; the ratio says what the
sweep costs or saves beside it. The page is measured over HTTP on 127.0.0.1. Beside seconds stand those of the
processors, which other work on the machine does not make longer.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import socket
import statistics
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from parts.figures import record

from lustrum.agency import create_agency_app
from lustrum.demo import people
from lustrum.model import Table
from lustrum.risk import EntropyRisk
from lustrum.rumap import HypercubeTables, HypercubeView, grid, rumap
from lustrum.rumap.cases import protected
from lustrum.rumap.sweep import method_rng
from lustrum.study.table_server_outcomes import VARIABLES, hypercube, output_tables
from lustrum.utility import HellingerUtility

BASES = list(range(2, 12))


def methods() -> list[Any]:
    """Eight methods with ten parameters each."""
    return [
        *grid("random-rounding", base=BASES),
        *grid("conventional-rounding", base=BASES),
        *grid("semi-controlled-rounding", base=BASES),
        *grid("controlled-rounding", base=BASES),
        *grid("small-count-rounding", base=BASES),
        *grid("markov-perturbation", theta=[i / 20 for i in range(1, 11)]),
        *grid("table-swapping", order=1, sweeps=list(range(1, 11))),
        *grid("differential-privacy", epsilon=[0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0]),
    ]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came out."""
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def processors(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds, seconds of the processors, and what came out."""
    used = time.process_time()
    seconds, found = timed(work)
    return seconds, time.process_time() - used, found


def plain_loop(
    table: Table, specs: list[Any], draws: int
) -> dict[tuple[int, int], tuple[float, float]]:
    """What somebody would write without the sweep: every method, every time."""
    risk, utility = EntropyRisk(parts="true", shared="expected"), HellingerUtility()
    found = {}
    for index, spec in enumerate(specs):
        for draw in range(draws):
            rng = method_rng(spec, 0, draw).spawn(1)[0]
            release = protected(spec, table, rng)
            found[index, draw] = risk.after(table, release), utility.of(table, release)
    return found


def table_level(table: Table, draws: int) -> None:
    """The sweep at table level beside the plain loop, with equal figures."""
    specs = methods()
    measures = [EntropyRisk(parts="true", shared="expected"), HellingerUtility()]
    rumap(table, specs, measures, replications=1)  # compile
    sweeps, loops, used = [], [], []
    for _ in range(3):
        seconds, own, found = processors(lambda: rumap(table, specs, measures, replications=draws))
        sweeps.append(seconds)
        used.append(own)
        one, _ = timed(lambda: rumap(table, specs, measures, replications=draws, workers=1))
        seconds, plain = timed(lambda: plain_loop(table, specs, draws))
        loops.append(seconds)
    for draw in found.draws:
        risk, utility = plain[draw.method, draw.replication]
        assert abs(draw.figures[found.risk] - risk) < 1e-12
        assert abs(draw.figures[found.utility] - utility) < 1e-12
    sweep, loop = statistics.median(sweeps), statistics.median(loops)
    print(f"table level: {len(specs)} settings, {draws} draws, {table.values.size:,} cells")
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "map.jsonl"
        rumap(table, specs, measures, replications=draws, cache=cache)
        seconds, _ = timed(lambda: rumap(table, specs, measures, replications=draws, cache=cache))
    for what, took in {
        f"the sweep, all workers, {len(found.draws)} draws": sweep,
        "the same, CPU": statistics.median(used),
        "the sweep, one worker": one,
        "a plain loop over methods and draws, the same figures": loop,
        "the same map again, from its cache": seconds,
    }.items():
        figures = {"what": what, "took (s)": took, "ratio to the plain loop": took / loop}
        record("A risk-utility map at table level", figures)


def cell_level(plain: Table, with_totals: Table, small: Table, draws: int) -> None:
    """The audited risk of cells: rounding along all totals, suppression with and without totals."""
    rounding = [
        *grid("random-rounding", base=BASES),
        *grid("conventional-rounding", base=BASES),
        *grid("controlled-rounding", base=BASES),
        *grid("small-count-rounding", base=BASES),
    ]
    rules = [{"rule": "threshold", "minimum": m} for m in (2, 3, 4, 5)]
    hiding = grid("suppression", rule=rules, algorithm="quick")
    proven = grid("suppression", rule=rules)
    for words, table, specs in (
        ("rounding, with totals", with_totals, rounding),
        ("suppression, without totals", plain, hiding),
        ("suppression, with totals", with_totals, hiding),
        ("suppression, with totals, small", small, hiding),
        ("cheapest suppression with proof, with totals, small", small, proven),
    ):
        rumap(table.take([range(2)] * 3), specs[:1], attackers=["outsider"], replications=1)
        seconds, used, found = processors(
            lambda table=table, specs=specs: rumap(
                table, specs, ["cell-certainty"], ["outsider", "insider"], replications=draws
            )
        )
        missing = [p.label for p in found.points if not np.isfinite(p.risk)]
        record(
            "A risk-utility map of audited cells",
            {
                "methods": words,
                "settings": len(specs),
                "draws": len(found.draws),
                "cells": table.values.size,
                "clock (s)": seconds,
                "CPU (s)": used,
                "points without figures": len(missing),
            },
        )


def first_point(table: Table) -> None:
    """From the request for a map to its first point, over HTTP; the first request comes as soon as it can."""
    app = create_agency_app(keys=False)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        while not server.started:
            time.sleep(0.02)
        content = base64.b64encode(csv_of(table)).decode()
        asked = {
            "files": [{"name": "table.csv", "content": content}],
            "methods": {"random-rounding": "3, 5, 10", "markov-perturbation": "0.1"},
            "limit": 0.15,
        }
        seconds = []
        for _ in range(5):
            started = time.perf_counter()
            place = call(address, "/maps", asked)["address"]
            while 'class="point' not in call(address, f"{place}/state").get("html", ""):
                time.sleep(0.02)
            seconds.append(time.perf_counter() - started)
        server.should_exit = True
        thread.join()
    record(
        "The first point of a map in the page",
        {
            "page just opened (s)": seconds[0],
            "later (s)": statistics.median(seconds[1:]),
            "at most (s)": max(seconds),
        },
    )


def csv_of(table: Table) -> bytes:
    """A table as a file."""
    out = io.StringIO()
    out.write(",".join(a.name for a in table.axes) + ",value\n")
    for position in np.ndindex(*table.shape):
        codes = [a.codes[i] for a, i in zip(table.axes, position, strict=True)]
        out.write(",".join(codes) + f",{int(table.values[position])}\n")
    return out.getvalue().encode()


def call(address: str, path: str, body: Any = None) -> dict[str, Any]:
    """Ask the page."""
    headers = {"Origin": address, "Sec-Fetch-Site": "same-origin"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data=data, headers=headers)
    with urllib.request.urlopen(request) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def main() -> None:
    """All parts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--persons", type=int, default=1_500_000)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--part", choices=("table", "cell", "page"), help="one part only")
    given = parser.parse_args()
    microdata = people(given.persons, 2001)
    counts = hypercube(microdata)
    names = ("age", "education", "occupation")
    table = Table.from_counts(output_tables(counts)[0], names=names)
    cube = Table.from_counts(counts, names=VARIABLES)
    views = {
        "with totals": HypercubeView(names, {"region": ("1",)}, totals=True),
        "small": HypercubeView(
            ("region", "occupation", "education"), {"age": ("10",)}, totals=True
        ),
    }
    tables = HypercubeTables(cube, views).tables
    if given.part in (None, "table"):
        table_level(table, given.draws)
    if given.part in (None, "cell"):
        cell_level(table, tables["with totals"], tables["small"], given.draws)
    if given.part in (None, "page"):
        first_point(table)


if __name__ == "__main__":
    main()
