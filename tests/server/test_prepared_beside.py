"""Prepared tables beside flexible ones of the same people: no question undoes a suppressed cell."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
from fastapi.testclient import TestClient

from answer.conftest import SECRET, people, town
from lustrum.answer import TableService
from lustrum.policy.presets import preset
from lustrum.public.prepared import read_prepared
from lustrum.publish.bundles.make import make_bundle
from lustrum.publish.programme.read import parse_programme
from lustrum.publish.programme.run import run_programme
from lustrum.server import create_app
from lustrum.tabulate import FrameSource, Store, ingest

TABLES = """
[programme]
name = "town-2025"
certificate = false
plain_status = true
[data]
dataset = "town"
{data}
[[sets]]
name = "income"
[[sets.rules]]
rule = "p-percent"
p = 10
[[sets.rules]]
rule = "threshold"
minimum = 3
margin = 10
[[sets.tables]]
name = "age-job"
by = [{{variable = "age", levels = ["finest", "broad"], total = true}}, {{variable = "job", total = true}}]
measures = ["income"]
end = true
"""
BESIDE = 'beside = "bundle"\nexistence = "public"'


def register(other: bool) -> pa.Table:
    """People, and the same people with other incomes wherever few of them are together."""
    table = people(400, 4)
    if not other:
        return table
    income = np.array(table["income"].to_pylist())
    place = [
        f"{a} {j}" for a, j in zip(*(table[n].to_pylist() for n in ("age", "job")), strict=True)
    ]
    _, number, count = np.unique(place, return_inverse=True, return_counts=True)
    few = count[number] < 6
    assert few.any()
    income = np.where(few, (income * 3) // 2 + 7, income)
    return table.set_column(table.column_names.index("income"), "income", pa.array(income))


def made(root: Path, other: bool, data: str = BESIDE) -> Path:
    """A data folder with records, a bundle of counts, and prepared tables of incomes."""
    store = Store(root)
    ingest(FrameSource(register(other)), town(), store, secret=SECRET)
    policy = root / "policy.toml"
    policy.write_text(preset("strict", "town"))
    make_bundle(store, "town", policy, root / "bundle", workers=1)
    programme = parse_programme(TABLES.format(data=data).encode(), "tables.toml", root)
    place = root / "public" / "town-2025"
    place.parent.mkdir()
    run_programme(programme, root, place, root / "trace.json", workers=1)
    return root


def client_of(root: Path) -> TestClient:
    service = TableService(bundles=[root / "bundle"], prepared=[root / "public" / "town-2025"])
    return TestClient(create_app(service), base_url="http://localhost")


def questions() -> list[dict[str, object]]:
    """Tables by all pairs of variables, everybody and parts, and what is not held."""
    names = ("age", "sex", "area", "job")
    asked: list[dict[str, object]] = [
        {"dataset": "town", "by": list(pair), "totals": True}
        for size in (1, 2, 3)
        for pair in itertools.combinations(names, size)
    ]
    asked += [{"dataset": "town", "by": ["age"], "where": {"job": [job]}} for job in "abcd"]
    asked += [{"dataset": "town", "by": ["age", "job"], "measure": "income"}]
    return asked


def test_flexible_answers_tell_nothing_of_the_sums_beside_them(tmp_path: Path) -> None:
    """Two registers that differ in hidden incomes alone give the same bytes to every flexible question.

    So a reader of flexible tables learns nothing about a suppressed sum that the prepared tables, which the
    audit of the run has judged, do not tell.
    """
    roots = [made(tmp_path / name, other) for name, other in (("one", False), ("two", True))]
    folders = [read_prepared(root / "public" / "town-2025") for root in roots]
    shown = [folder.release(folder.tables[0]) for folder in folders]
    assert not np.array_equal(shown[0].published, shown[1].published)
    answers = []
    for root in roots:
        with client_of(root) as client:
            listed = client.get("/api/v1/prepared").json()["programmes"]
            assert [one["name"] for one in listed] == ["town-2025"]
            found = [client.post("/api/v1/tables", json=asked) for asked in questions()]
            assert any(one.status_code == 200 for one in found)
            answers.append([(one.status_code, one.content) for one in found])
    assert answers[0] == answers[1]
    # Letters do not say that few people are in a cell.
    assert {*shown[0].status.ravel().tolist()} == {"F", "N"}


def test_tables_that_were_not_checked_together_are_on_no_route(tmp_path: Path) -> None:
    root = made(tmp_path / "one", False, data="")
    with client_of(root) as client:
        assert client.get("/api/v1/prepared").json() == {"programmes": []}
        for path in (
            "/prepared/town-2025",
            "/prepared/town-2025/age-job.income",
            "/api/v1/prepared/town-2025",
            "/api/v1/prepared/town-2025/files/tables/age-job/income.csv",
            "/api/v1/prepared/town-2025/files/report.json",
        ):
            got = client.get(path)
            assert got.status_code == 503, path
            assert b"value,status" not in got.content
        assert "town-2025" not in client.get("/").text
        asked = client.post("/api/v1/tables", json={"dataset": "town", "by": ["age"]})
        assert asked.status_code == 200
