"""A dataset of very many areas: its description, a search in it, and tables by area, from records.

    python bench/areas.py [--areas 190000] [--people 2000000] [--rounds 3]

Invented people live in areas, districts and regions. Prints CPU seconds in the order in which a server meets
the work: description, opening, counts beside DuckDB's GROUP BY of the same columns, answers with cell keys, and
pages. Five hundred areas are chosen at once.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from parts.figures import record

from lustrum.local import local_service
from lustrum.model import Dataset, TableQuery
from lustrum.tabulate import Secret, Store
from lustrum.tabulate.encode import Chunk

POLICY = """dataset = "areas"
protect = {method = "cell-key"}
rules = {max_dimensions = 3, max_cells = 20000000, min_population = 0, nested_only = false}
risk = {limit = 1.0}
end = true
"""
CHOSEN = 500


def description(areas: int) -> dict[str, Any]:
    """Areas in districts of about 350, districts in ten regions."""
    codes = [f"E{i:08d}" for i in range(areas)]
    size = min(350, max(areas // 10, 1))
    districts = [codes[i : i + size] for i in range(0, areas, size)]
    share = -(-len(districts) // 10)
    return {
        "dataset": {"name": "areas", "units": "people"},
        "variables": [
            {
                "name": "area",
                "codes": [[code, f"Area {i} of Merrow"] for i, code in enumerate(codes)],
                "hierarchies": [
                    {
                        "name": "geography",
                        "levels": [
                            {
                                "name": "district",
                                "groups": [
                                    {"code": f"D{d}", "label": f"District {d}", "members": members}
                                    for d, members in enumerate(districts)
                                ],
                            },
                            {
                                "name": "region",
                                "groups": [
                                    {
                                        "code": f"R{r}",
                                        "label": f"Region {r}",
                                        "members": [
                                            f"D{d}"
                                            for d in range(
                                                r * share, min((r + 1) * share, len(districts))
                                            )
                                        ],
                                    }
                                    for r in range(-(-len(districts) // share))
                                ],
                            },
                        ],
                    }
                ],
            },
            {"name": "sex", "codes": ["1", "2"]},
            {"name": "age", "codes": [str(i) for i in range(18)]},
        ],
    }


def questions(areas: int) -> dict[str, TableQuery]:
    """The tables that are asked for."""
    some = [f"E{i:08d}" for i in range(0, areas, max(areas // CHOSEN, 1))][:CHOSEN]
    by: dict[str, list[Any]] = {
        "area x sex": ["area", "sex"],
        "area x sex, totals": [
            {"variable": "area", "total": True},
            {"variable": "sex", "total": True},
        ],
        "area x sex x age": ["area", "sex", "age"],
        "district x sex x age": [{"variable": "area", "level": "district"}, "sex", "age"],
        f"{CHOSEN} areas x sex x age": [{"variable": "area", "codes": some}, "sex", "age"],
    }
    return {
        name: TableQuery.from_mapping({"dataset": "areas", "by": axes}) for name, axes in by.items()
    }


def fill(store: Store, areas: int, people: int) -> dict[str, np.ndarray]:
    """Write invented people, and give their columns."""
    chance = np.random.default_rng(2)
    dataset = Dataset.from_mapping(description(areas))
    columns = {
        "area": chance.integers(0, areas, people).astype(np.uint32),
        "sex": chance.integers(0, 2, people).astype(np.uint8),
        "age": chance.integers(0, 18, people).astype(np.uint8),
    }
    keys = chance.integers(0, 2**64, people, dtype=np.uint64)
    with store.replace(dataset, Secret(bytes(range(32)))) as writer:
        for start in range(0, people, 1 << 20):
            part = slice(start, min(start + (1 << 20), people))
            codes = {name: column[part] for name, column in columns.items()}
            writer.write(Chunk(codes["area"].size, codes, keys=keys[part]))
    policies = store.root / "policies"
    policies.mkdir(exist_ok=True)
    (policies / "areas.toml").write_text(POLICY)
    return columns


def cpu(task: Callable[[], Any], rounds: int = 1) -> tuple[float, Any]:
    """The median of the CPU seconds of a task, and what it gave last."""
    took, made = [], None
    for _ in range(rounds):
        started = time.process_time()
        made = task()
        took.append(time.process_time() - started)
    return statistics.median(took), made


def engine_part(store: Store, columns: dict[str, np.ndarray], areas: int, rounds: int) -> None:
    """Opening and counting, without protection."""
    import duckdb

    words = description(areas)
    for name, task in {
        "description": lambda: Dataset.from_mapping(words),
        "description, with reading JSON": lambda: _read(json.dumps(words)),
        "open, every byte checked": lambda: store.open("areas"),
    }.items():
        record("Very many areas: opening", {"what": name, "CPU (s)": cpu(task, rounds)[0]})
    engine = store.open("areas")
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("incoming", pa.table(columns))
    connection.execute("CREATE TABLE people AS SELECT * FROM incoming")
    some = ", ".join(str(i) for i in range(0, areas, max(areas // CHOSEN, 1))[:CHOSEN])
    for name, query in questions(areas).items():
        first, _ = cpu(lambda query=query: engine.tabulate(query))
        seconds, table = cpu(lambda query=query: engine.tabulate(query), rounds)
        axes = ", ".join(axis.name for axis in table.axes)
        where = f"WHERE area IN ({some})" if name.startswith(str(CHOSEN)) else ""
        sql = f"SELECT {axes}, count(*) FROM people {where} GROUP BY ALL"
        connection.execute(sql).fetchnumpy()
        beside, _ = cpu(lambda sql=sql: connection.execute(sql).fetchnumpy(), rounds)
        figures = {"table": name, "cells": table.values.size, "first count (CPU s)": first}
        ratio = {"count (CPU s)": seconds, "ratio to DuckDB": seconds / beside}
        record("Very many areas: counts", figures | ratio)


def _read(text: str) -> Dataset:
    return Dataset.from_mapping(json.loads(text))


def served_part(root: Path, areas: int, rounds: int) -> None:
    """Answers with protection, and what a server says of the categories."""
    from fastapi.testclient import TestClient

    from lustrum.server import Settings, create_app

    service = local_service(root, workers=1)
    for name, query in questions(areas).items():
        seconds, decision = cpu(lambda query=query: service.answer(query))
        cells = 0 if decision.release is None else decision.release.published.size
        figures = {"table": name, "cells": cells, "answer (CPU s)": seconds}
        record("Very many areas: answers", figures)
    with TestClient(
        create_app(service, Settings(rate="")), base_url="http://lustrum.test"
    ) as client:
        last = f"area {areas - 1}"
        for name, path in {
            "page of the dataset": "/datasets/areas",
            "page of the variable": "/datasets/areas/variables/area",
            "page of the variable, search": f"/datasets/areas/variables/area?q={last}",
            "API, description": "/api/v1/datasets/areas",
            "API, categories": "/api/v1/datasets/areas/variables/area/categories",
            "API, search": f"/api/v1/datasets/areas/variables/area/categories?q={last}",
        }.items():
            first, got = cpu(lambda path=path: client.get(path))
            seconds, _ = cpu(lambda path=path: client.get(path), rounds)
            figures = {"page": name, "first (CPU s)": first, "again (CPU s)": seconds}
            more = {"status": got.status_code, "bytes": len(got.content)}
            record("Very many areas: pages", figures | more)
    service.close()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--areas", type=int, default=190_000)
    parser.add_argument("--people", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        columns = fill(store, asked.areas, asked.people)
        print(f"{asked.areas:,} areas, {asked.people:,} people")
        engine_part(store, columns, asked.areas, asked.rounds)
        served_part(store.root, asked.areas, asked.rounds)
    print(f"  peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
