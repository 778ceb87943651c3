"""One question has one answer: by every route and in every format the same numbers, or no number at all."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, example, given, settings

from examples import examples
from lustrum.answer.ledger import ReleaseLedger
from lustrum.ledger.releases import ReleaseBook
from lustrum.model import Release, TableQuery
from lustrum.public.numbers import KeyedNumbers
from lustrum.publish.bundles.make import make_bundle
from lustrum.server.urls import forms
from lustrum.tabulate import Store
from server.houses import SHAPE, VARIABLES, Asked, House, house, selection, sound
from server.test_fuzz_leaks import STRICT, STRICT_RULES
from waiting import until

Values = list[float | None]
ROUNDED = """
[risk]
limit = 0.9
[protect]
method = "random-rounding"
base = 5
"""
LEFT_OUT = """
[rules]
max_dimensions = 2
max_filters = 1
per_area = "area"
min_area_population = 2500
"""


@pytest.fixture(scope="module", params=["records", "bundle"])
def asked_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    """A house that leaves one area out, and refuses three variables; from records or from a bundle."""
    counts = 400 + 7 * np.arange(np.prod(SHAPE)).reshape(SHAPE)
    counts[0] += 300
    counts[1, 1] = 0  # nobody has no mean
    root = tmp_path_factory.mktemp("every") / "data"
    if request.param == "records":
        one = house(root, counts, ROUNDED, LEFT_OUT)
    else:
        rules = STRICT_RULES + 'per_area = "area"\nmin_area_population = 2500\n'
        one = house(root, counts, STRICT, rules)
        policy = root / "policies" / "marked.toml"
        make_bundle(Store(root), "marked", policy, root / "bundles" / "marked", workers=1)
    with TestClient(one.app, base_url="http://house.test") as client:
        yield replace(one, client=client)
    one.service.close()


def plain(release: Release | None) -> Values | None:
    """The published values, the last variable fastest; nothing for a hidden one."""
    if release is None:
        return None
    values = release.published.ravel() / 10**release.decimals
    return [float(v) if k else None for v, k in zip(values, release.known.flat, strict=True)]


def number(text: Any) -> float | None:
    """A number, or nothing for what stands in the place of a hidden one."""
    try:
        return None if text is None or np.isnan(float(text)) else float(text)
    except ValueError:
        assert text in HIDDEN, text
        return None


HIDDEN = ("", "D", "..", '".."', '"."', "not shown")


def columns(rows: list[dict[str, Any]]) -> Values:
    return [number(row["value"]) for row in rows]


def of_html(content: bytes) -> Values:
    cells = re.findall(r"<td[^>]*>(.*?)</td>", content.decode().partition("<dl>")[0])
    return [number(re.sub(r"<[^>]*>", "", cell)) for cell in cells]


def of_xlsx(content: bytes) -> Values:
    head, *rows = openpyxl.load_workbook(io.BytesIO(content))["Cells"].iter_rows(values_only=True)
    return [number(row[head.index("value")]) for row in rows]


def of_csv(content: bytes, delimiter: str = ",", name: str = "value") -> Values:
    text = io.StringIO(content.decode("utf-8-sig"), newline="")
    return [number(row[name]) for row in csv.DictReader(text, delimiter=delimiter)]


def of_generic(content: bytes) -> Values:
    return [number(one) for one in re.findall(r'<gen:ObsValue value="(.*?)"/>', content.decode())]


def of_px(content: bytes) -> Values:
    return [number(one) for one in content.decode("cp1252").rpartition("DATA=")[2].split()[:-1]]


READERS: dict[str, Callable[[bytes], Values]] = {
    "json-stat": lambda content: [number(v) for v in json.loads(content)["value"]],
    "csv": of_csv,
    "parquet": lambda content: columns(pq.read_table(io.BytesIO(content)).to_pylist()),
    "arrow": lambda content: columns(pa.ipc.open_file(content).read_all().to_pylist()),
    "xlsx": of_xlsx,
    "html": of_html,
    "px": of_px,
    "sdmx-csv": lambda content: of_csv(content, name="OBS_VALUE"),
}


@dataclass(frozen=True)
class Way:
    """A route with a question in its words; ``query`` is the question, which may stand in another order."""

    name: str
    asked: Asked
    read: Callable[[bytes], Values]
    query: TableQuery


def ways(query: TableQuery, measures: tuple[str, ...] = ()) -> Iterator[Way]:
    """Every way to ask a question that can say it; other protocols offer sums of these measures alone."""
    words = urlencode({"query": json.dumps(query.to_mapping())})
    own = f"/api/v1/tables?dataset=marked&{words}"
    for name, read in READERS.items():
        yield Way(name, Asked("GET", f"{own}&format={name}"), read, query)
    yield Way("get", Asked("GET", own), of_answer, query)
    yield Way("post", Asked("POST", "/api/v1/tables", body=query.to_mapping()), of_answer, query)
    offered = {"count", *(f"{kind}:{name}" for kind in ("sum", "mean") for name in measures)}
    if query.where or not {one.text for one in query.asked} <= offered:
        return
    contents = [one.text for one in query.asked]
    totals = any(axis.total for axis in query.by)
    named = replace(query, statistics=query.asked)
    if not totals:
        yield from of_pxweb(named, contents)
    yield from of_sdmx(named, contents)


def of_answer(content: bytes) -> Values:
    return [number(v) for v in json.loads(content)["table"]["value"]]


def of_pxweb(query: TableQuery, contents: list[str]) -> Iterator[Way]:
    data = "/pxapi/v2/tables/marked/data"
    pairs = [(f"valuecodes[{axis.variable}]", "*") for axis in query.by]
    pairs += [
        (f"codelist[{a.variable}]", f"agg_marked.{a.variable}.{a.level}")
        for a in query.by
        if a.level
    ]
    pairs += [("valuecodes[ContentsCode]", ",".join(f"[{one}]" for one in contents))]
    for name in ("json-stat2", "csv", "xlsx", "html", "px", "parquet"):
        asked = Asked("GET", f"{data}?{urlencode([*pairs, ('outputFormat', name)])}")
        yield Way(f"pxweb {name}", asked, READERS[name.removesuffix("2")], query)
    said = selection({axis.variable: ["*"] for axis in query.by} | {"ContentsCode": contents})
    for one, axis in zip(said["selection"], query.by, strict=False):
        one["codelist"] = f"agg_marked.{axis.variable}.{axis.level}" if axis.level else None
    yield Way("pxweb post", Asked("POST", data, body=said), READERS["json-stat"], query)
    kept = {"tableId": "marked", "selection": said, "outputFormat": "csv"}
    yield Way("saved", Asked("POST", "/pxapi/v2/savedqueries", body=kept), of_csv, query)


def of_sdmx(query: TableQuery, contents: list[str]) -> Iterator[Way]:
    def codes(axis: Any) -> list[str]:
        listed = {None: VARIABLES[axis.variable], "half": ["N", "S"]}[axis.level]
        return [*listed, *(["_T"] if axis.total else [])]

    in_order = replace(
        query, by=tuple(sorted(query.by, key=lambda a: list(VARIABLES).index(a.variable)))
    )
    chosen = [*((a.variable, codes(a)) for a in in_order.by), ("STATISTIC", contents)]
    pairs = [(f"c[{name}]", ",".join(listed)) for name, listed in chosen]
    data = "/sdmx/v2/data/dataflow/LUSTRUM/marked/1.0.0"
    read = READERS["sdmx-csv"]
    yield Way("sdmx", Asked("GET", f"{data}/*?{urlencode(pairs)}"), read, in_order)
    there = dict(chosen)
    key = ".".join("+".join(there.get(name, ["_T"])) for name in (*VARIABLES, "STATISTIC"))
    key = quote(key.replace(":", "$3A$"))
    yield Way("sdmx key", Asked("GET", f"{data}/{key}"), read, in_order)
    yield Way("sdmx 2.1", Asked("GET", f"/sdmx/2.1/data/marked/{key}"), of_generic, in_order)
    flat = [(a.variable, code) for a in query.by for code in codes(a)]
    flat += [("statistic", one) for one in contents]
    address = f"/api/dissemination/statistics/1.0/data/marked?{urlencode(flat)}"
    yield Way("statistics", Asked("GET", address), READERS["json-stat"], query)


def shown_cells(page: str) -> Counter[int]:
    """The figures in the cells of tables on a page."""
    cells = re.findall(r"<td[^>]*>\s*([\d,]+)\s*</td>", page)
    return Counter(int(cell.replace(",", "")) for cell in cells)


def test_every_route_gives_the_numbers_of_the_one_pipeline_or_refuses_with_it(
    asked_of: House,
) -> None:
    seen: Counter[tuple[str, str]] = Counter()

    @settings(max_examples=examples(8, 150), suppress_health_check=list(HealthCheck))
    @given(sound())
    @example([("by", "sex"), ("by", "area"), ("statistic", "mean:income")])
    @example([("by", "area"), ("by", "sex"), ("by", "tenure")])
    @example([("by", "sex"), ("totals", "on")])
    def tried(pairs: list[tuple[str, str]]) -> None:
        query = forms.read(pairs, "marked")
        for way in ways(query, asked_of.service.snapshot("marked").numbers.measures):
            wanted = plain(asked_of.service.answer(way.query).release)
            got = asked_of.ask(way.asked)
            if way.name == "saved":
                got = asked_of.ask(Asked("GET", f"/pxapi/v2/savedqueries/{got.json()['id']}/data"))
            kind = "refused" if wanted is None else "hidden" if None in wanted else "answered"
            seen[way.name, kind] += 1
            if wanted is None:
                reasons = asked_of.service.answer(way.query).reasons
                rules = [reason["rule"] for reason in got.json()["reasons"]]
                assert rules == [reason.rule for reason in reasons], way
                assert got.status_code in (200, 403, 406)
                assert got.json().get("table") is None
            else:
                assert got.status_code == 200, (way, got.text)
                assert way.read(got.content) == wanted, way

    tried()
    names = {name for name, _ in seen}
    assert names >= {*READERS, "get", "post", "pxweb px", "saved", "sdmx key", "statistics"}
    for name in names:
        assert seen[name, "answered"], name
        assert seen[name, "refused"], name
    if not asked_of.service.snapshot("marked").from_bundle:
        assert sum(many for (_, kind), many in seen.items() if kind == "hidden") > 10


def test_pages_charts_and_jobs_show_the_numbers_of_the_one_pipeline(asked_of: House) -> None:
    jobs = asked_of.app.state.questions.jobs
    for by in (["sex", "area"], ["tenure", "area"], ["area"], ["sex", "tenure", "area"]):
        query = TableQuery.from_mapping({"dataset": "marked", "by": by})
        wanted = plain(asked_of.service.answer(query).release)
        words = urlencode([("by", name) for name in by])
        made = asked_of.ask(Asked("POST", "/api/v1/jobs", body=query.to_mapping())).json()["id"]
        until(lambda made=made: jobs.store.find(made).state == "done")  # type: ignore[misc]
        result = asked_of.ask(Asked("GET", f"/api/v1/jobs/{made}/result")).json()
        card = asked_of.ask(
            Asked(
                "GET", f"/oembed?{urlencode({'url': f'http://house.test/datasets/marked?{words}'})}"
            )
        ).json()["html"]
        framed = re.search(r'src="http://house.test([^"]*)"', card)
        assert framed is not None
        places = (f"/datasets/marked/table?{words}", framed[1].replace("&amp;", "&"))
        if wanted is None:
            assert result["decision"] == "refusal"
            assert result["table"] is None
            for place in places:
                page = asked_of.ask(Asked("GET", place))
                assert "cannot be shown" in page.text
                assert not shown_cells(page.text)
            continue
        known = Counter(int(v) for v in wanted if v is not None)
        assert [number(v) for v in result["table"]["value"]] == wanted
        for place in places:
            assert shown_cells(asked_of.ask(Asked("GET", place)).text) == known
            for view in ("chart", "map"):
                page = asked_of.ask(Asked("GET", f"{place}&as={view}")).text
                figures = re.findall(r"<title>[^<]*: ([\d,]+)[^<]*</title>", page)
                assert figures, (place, view)
                assert {int(f.replace(",", "")) for f in figures} <= set(known)
                # A map shows one layer of the table at a time.
                cells = shown_cells(page)
                assert cells == known if view == "chart" else Counter() < cells <= known


def test_the_parts_of_an_answer_are_those_of_the_whole(asked_of: House) -> None:
    for way in ways(TableQuery.from_mapping({"dataset": "marked", "by": ["sex", "area"]})):
        if way.asked.method != "GET":
            continue
        headers = {"accept-encoding": "identity"}
        whole = asked_of.ask(replace(way.asked, headers=headers))
        head = asked_of.ask(replace(way.asked, method="HEAD", headers=headers))
        assert head.headers["content-length"] == str(len(whole.content))
        middle = len(whole.content) // 3
        parts = [
            asked_of.ask(replace(way.asked, headers=headers | {"range": f"bytes={one}"}))
            for one in (f"0-{middle - 1}", f"{middle}-")
        ]
        assert [part.status_code for part in parts] == [206, 206], way.name
        assert b"".join(part.content for part in parts) == whole.content
        assert {part.headers["etag"] for part in parts} == {whole.headers["etag"]}


def test_no_way_out_looks_at_numbers_beside_the_book(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a ledger every number that a request needs is made where its line is entered, and nowhere else."""
    counts = 400 + 7 * np.arange(np.prod(SHAPE)).reshape(SHAPE)
    one = house(tmp_path / "data", counts, ROUNDED + "[ledger]\nlimit = 10\n", LEFT_OUT)
    depth, beside = ContextVar("depth", default=0), list[TableQuery]()
    views, decided = KeyedNumbers.views, ReleaseLedger.decided

    def looked(numbers: KeyedNumbers, query: TableQuery) -> Any:
        if not depth.get():
            beside.append(query)
        return views(numbers, query)

    def entered(ledger: ReleaseLedger, *words: Any, **more: Any) -> Any:
        token = depth.set(1)
        try:
            return decided(ledger, *words, **more)
        finally:
            depth.reset(token)

    monkeypatch.setattr(ReleaseLedger, "decided", entered)
    with TestClient(one.app, base_url="http://house.test") as client:
        asked_of = replace(one, client=client)
        until(lambda: client.get("/health/ready").status_code == 200)
        monkeypatch.setattr(KeyedNumbers, "views", looked)
        jobs = one.app.state.questions.jobs
        for by in (["sex", "area"], ["tenure", "sex"], ["sex", "area", "tenure"]):
            query = TableQuery.from_mapping({"dataset": "marked", "by": by})
            for way in ways(query):
                got = asked_of.ask(way.asked)
                if way.name == "saved":
                    saved = got.json()["id"]
                    asked_of.ask(Asked("GET", f"/pxapi/v2/savedqueries/{saved}/data"))
            words = urlencode([("by", name) for name in by])
            page = quote(f"http://house.test/datasets/marked/table?{words}", safe="")
            for place in (
                *(f"/datasets/marked{end}?{words}" for end in ("", "/table", "/embed")),
                *(f"/datasets/marked/table?{words}&as={view}" for view in ("chart", "map")),
                f"/oembed?url={page}",
                f"/api/v1/hints?dataset=marked&{words}",
                f"/api/v1/datasets/marked/citation?{words}",
                "/api/v1/catalogue.jsonld",
                "/pxapi/v2/tables/marked/defaultselection",
                "/pxapi/v2/tables/marked/metadata",
            ):
                assert asked_of.ask(Asked("GET", place)).status_code < 500
            made = asked_of.ask(Asked("POST", "/api/v1/jobs", body=query.to_mapping())).json()["id"]
            until(lambda made=made: jobs.store.find(made).state == "done")  # type: ignore[misc]
            assert asked_of.ask(Asked("GET", f"/api/v1/jobs/{made}")).json()["step"] == ""
            assert asked_of.ask(Asked("GET", f"/api/v1/jobs/{made}/result")).status_code == 200
        entries = list(ReleaseBook(tmp_path / "data").entries())
    one.service.close()
    assert not beside
    questions = [str(entry.said["question"]) for entry in entries]
    assert len(questions) == len(set(questions)) >= 2
