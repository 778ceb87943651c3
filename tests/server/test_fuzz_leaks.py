"""Whatever is asked, in whatever form: nothing but protected numbers and public descriptions comes out.

Two ways to find a leak. Two agencies whose true counts differ everywhere, but whose protected ones do not,
must answer every request with the same bytes. And where counts are marked, so that none of them stays as it
is, no mark may stand in any answer, header, log line or metric.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from prometheus_client import generate_latest
from starlette.routing import BaseRoute

from examples import examples
from lustrum.model import TableQuery
from lustrum.publish.bundles.make import make_bundle
from lustrum.tabulate import Store
from server.houses import (
    ROUTES,
    SECRET,
    SHAPE,
    STATISTICS,
    VARIABLES,
    Asked,
    House,
    answering,
    house,
)

MANY = settings(max_examples=examples(2, 60), suppress_health_check=list(HealthCheck))


def every_route(routes: list[BaseRoute]) -> Iterator[BaseRoute]:
    """The routes of an application, also of its routers."""
    for one in routes:
        inside = getattr(one, "original_router", None)
        yield from [one] if inside is None else every_route(inside.routes)


def test_every_route_is_asked_below(twins: list[House]) -> None:
    """A new route fails here until it says in ``houses`` what may be asked of it."""
    app: FastAPI = twins[0].app
    found = {
        f"{method} {route.path}"  # type: ignore[attr-defined]
        for route in every_route(app.routes)
        for method in getattr(route, "methods", None) or ()
        if method != "HEAD"
    }
    assert found == set(ROUTES) - {"GET /static/picture.js"}


def test_every_route_answers_what_it_is_sure_to(twins: list[House]) -> None:
    """Otherwise the tests below would compare refusals."""
    for name, one in ROUTES.items():
        assert [each.ask(one.sure).status_code < 400 for each in twins] == [True, True], name


# Two houses that publish the same.

COARSE = """
[risk]
weights = [1.0, 0.0, 0.0, 0.0]
limit = 0.5
[protect]
method = "conventional-rounding"
base = 1000
"""
CHANGING = re.compile(
    r'"milliseconds": [0-9.]+|"time": "[^"]+"|"id":"[^"]+"|"token":"[^"]+"|jobs/[\w-]+(\?token=[\w-]+)?'
)


STRICT_RULES = """
[rules]
max_dimensions = 2
max_filters = 3
max_cells = 9
nested_only = false
"""
STRICT = """
[risk]
limit = 1.0
[[before]]
method = "protected-population"
base = 3
sweeps = 1
known_totals = [["sex"]]
[[before]]
method = "protected-magnitudes"
p = 5.0
sweeps = 1
[protect]
method = "none"
"""


@pytest.fixture(scope="module", params=["rounded", "bundle"])
def twins(
    request: pytest.FixtureRequest, turnover: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[House]:
    """Counts that differ in every cell and in every sum, and round alike in all of them; or other records
    behind the same public bundle, which the server could reach and must not."""
    root = tmp_path_factory.mktemp("twins")
    public = turnover / "public"
    if request.param == "bundle":
        counts = 400 + 7 * np.arange(np.prod(SHAPE)).reshape(SHAPE)
        first = house(root / "first", counts, STRICT, STRICT_RULES, public)
        second = house(root / "second", counts[::-1] + 501, STRICT, STRICT_RULES, public)
        policy = root / "first" / "policies" / "marked.toml"
        place = root / "first" / "bundles" / "marked"
        make_bundle(Store(root / "first"), "marked", policy, place, workers=1)
        shutil.copytree(place, root / "second" / "bundles" / "marked")
        return with_jobs([first, second])
    thousands = 1000 * np.arange(9, 9 + np.prod(SHAPE)).reshape(SHAPE)
    # Together less than half a base from the thousands, so that every sum rounds to theirs.
    above = 1 + np.arange(np.prod(SHAPE)).reshape(SHAPE) * 3
    return with_jobs(
        [
            house(root / "first", thousands + above, COARSE, programme=public),
            house(root / "second", thousands - above[::-1], COARSE, programme=public),
        ]
    )


def with_jobs(houses: list[House]) -> list[House]:
    for one in houses:
        one.make_job()
    return houses


def test_the_twins_differ_in_every_true_count_and_in_no_published_one(twins: list[House]) -> None:
    for names in (["area", "sex"], ["sex", "tenure"], ["area"], ["tenure"]):
        query = TableQuery.from_mapping({"dataset": "marked", "by": names, "totals": True})
        first, second = (house.records.engine("marked").tabulate(query) for house in twins)
        assert np.mean(first.values != second.values) > 0.9
        releases = [house.service.answer(query).release for house in twins]
        assert releases[0] is not None
        assert releases[1] is not None
        assert np.array_equal(releases[0].published, releases[1].published, equal_nan=True)


@pytest.mark.parametrize("twins", ["bundle"], indirect=True)
def test_the_twins_differ_in_every_true_sum_and_in_no_published_one(twins: list[House]) -> None:
    assert twins[0].service.snapshot("marked").numbers.measures
    words = {"dataset": "marked", "by": ["area", "sex"], "totals": True}
    query = TableQuery.from_mapping({**words, "measure": "income"})
    first, second = (house.records.engine("marked").tabulate(query) for house in twins)
    assert np.mean(first.values != second.values) > 0.9
    for statistic in STATISTICS:
        query = TableQuery.from_mapping({**words, "statistics": [statistic]})
        releases = [house.service.answer(query).release for house in twins]
        assert releases[0] is not None
        assert releases[1] is not None
        assert np.array_equal(releases[0].published, releases[1].published, equal_nan=True)


@pytest.mark.parametrize("twins", ["rounded"], indirect=True)
def test_twins_that_protect_no_sums_refuse_them_with_the_same_words(twins: list[House]) -> None:
    assert not twins[0].service.snapshot("marked").numbers.measures
    words = {"dataset": "marked", "by": ["area", "sex"], "totals": True}
    for statistic in STATISTICS:
        if "income" not in statistic:
            continue
        query = TableQuery.from_mapping({**words, "statistics": [statistic]})
        answers = [house.service.answer(query) for house in twins]
        assert [answer.release for answer in answers] == [None, None]
        assert answers[0].reasons
        assert answers[0].reasons == answers[1].reasons


def test_who_publishes_the_same_answers_every_request_with_the_same_bytes(
    twins: list[House],
) -> None:
    statuses = set()

    def still(at: House, text: str) -> str:
        for word, name in at.known.items():
            text = text.replace(name, word)
        return CHANGING.sub("", text)

    def tried(asked: Asked) -> None:
        first, second = answers = [one.ask(asked) for one in twins]
        statuses.add(first.status_code)
        assert first.status_code == second.status_code < 500
        named = list(zip(twins, answers, strict=True))
        if re.match(r"text/|application/(problem\+)?json", first.headers.get("content-type", "")):
            texts = [still(at, got.text) for at, got in named]
            assert texts[0] == texts[1]
        else:
            assert first.content == second.content
        drop = ("etag",) if first.status_code == 202 or "{job}" in asked.path else ()
        heads = [
            {k: still(at, v) for k, v in got.headers.items() if k not in drop} for at, got in named
        ]
        assert heads[0] == heads[1]
        logs = [[still(at, line) for line in at.lines] for at in twins]
        assert logs[0] == logs[1]
        sent = first.text + str(heads[0])
        assert "evil.example" not in sent.replace(asked.path, "")

    for one in ROUTES.values():
        tried(one.sure)
        tried(replace(one.sure, headers={"range": "bytes=900000-"}))
        tried(replace(one.sure, headers={"host": "evil.example"}))
    for asked in ALWAYS:
        tried(asked)
    for _, drawn in answering():
        MANY(given(drawn)(tried))()
    assert statuses >= {200, 201, 202, 206, 303, 304, 400, 404, 405, 406, 413, 416, 421}
    metrics = [_without_times(generate_latest(h.app.state.metrics.registry)) for h in twins]
    assert metrics[0] == metrics[1]


ALWAYS = (
    Asked("GET", "/api/v1/tables?dataset=marked&by=sex&by=area&by=tenure&format=csv"),
    Asked("GET", "/api/v1/tables?dataset=marked&by=area", {"if-none-match": "*"}),
    Asked("POST", "/pxapi/v2/tables/marked/data", body=b"x" * 100_000),
    replace(ROUTES["GET /api/v1/prepared/{name}/files/{path:path}"].sure, headers={"range": "bytes=0-9"}),
)  # fmt: skip
"""A refusal that a format has no words for, what somebody has already, too much, and a part of a file."""


def _without_times(text: bytes) -> list[str]:
    return [
        line
        for line in text.decode().splitlines()
        if "request_seconds" not in line and "_created" not in line
    ]


# Marks.

METHODS = {
    "random-rounding": '[protect]\nmethod = "random-rounding"\nbase = 5\n',
    "cell-key": '[protect]\nmethod = "cell-key"\nptable = "designed"\nlargest_change = 4\nvariance = 3.0\n',
}
RISKY = """
[risk]
limit = 0.9
"""


@pytest.fixture(scope="module", params=METHODS)
def marked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> House:
    """Prime counts of five digits: none is a multiple of the base."""
    counts = np.array(
        [10007, 10103, 10211, 10331, 10433, 10529, 10631, 10733, 10831, 10937, 11047, 11149]
    ).reshape(SHAPE)
    root = tmp_path_factory.mktemp("marked") / "data"
    one = house(root, counts, RISKY + METHODS[request.param])
    one.make_job()
    return one


def _truths(house: House) -> tuple[set[int], set[int]]:
    """Every true count, and every sum of record keys, that any question could be about."""
    engine = house.records.engine("marked")
    counts: set[int] = set()
    keys: set[int] = set()
    kinds = [
        *({"variable": name, "total": True} for name in VARIABLES),
        {"variable": "area", "level": "half", "total": True},
    ]
    filters: list[dict[str, list[str]]] = [{}]
    filters += [{name: [code]} for name, codes in VARIABLES.items() for code in codes]
    for size, where in itertools.product((1, 2, 3), filters):
        for axes in itertools.combinations(kinds, size):
            names = [axis["variable"] for axis in axes]
            if len(set(names)) < size or set(where) & set(names):
                continue
            query = {"dataset": "marked", "by": list(axes), "where": where}
            table = engine.tabulate(TableQuery.from_mapping(query))
            counts |= set(table.values.ravel().tolist())
            assert table.keys is not None
            keys |= set(table.keys.ravel().tolist())
    return counts, keys - {0}


def _published(marked: House) -> set[int]:
    """The numbers of all releases that the last request has brought about, by what was logged of it."""
    allowed = set()
    for line in map(json.loads, marked.lines):
        if line["event"] == "decision":
            release = marked.service.answer(TableQuery.from_mapping(line["query"])).release
            if release is not None:
                public = [release.published, release.least, release.most]
                allowed |= {n for part in public if part is not None for n in part.ravel().tolist()}
    return allowed


NUMBER = re.compile(r"(?<![\w.-])\d{1,3}(?:[,\u00a0\u202f ]?\d{3})+(?![\w])")


def _numbers(text: str) -> set[int]:
    """The whole numbers of four digits and more in a text, grouped or not."""
    return {int(re.sub(r"\D", "", found)) for found in NUMBER.findall(text)}


def test_numbers_are_found_however_they_are_written() -> None:
    texts = [
        "10007", "10,007", "10\u202f007", "10\u00a0007", '"value":[10007,0]', "<td>10 007</td>",
    ]  # fmt: skip
    for text in texts:
        assert _numbers(text) & {10007}, text


def test_no_true_count_no_record_key_and_nothing_of_the_secret_gets_out(marked: House) -> None:
    truths, keys = _truths(marked)
    of_the_job = {int(v) for v in marked.ask(RESULT).json()["table"]["value"]}
    shown = []

    def tried(asked: Asked) -> None:
        got = marked.ask(asked)
        head = "\n".join(f"{name}: {value}" for name, value in got.headers.items())
        log = "\n".join(marked.lines)
        allowed = (_published(marked) | of_the_job) if got.status_code in (200, 206) else set()
        shown.append(bool(_numbers(got.text) & allowed))
        assert not _numbers(got.text) & (truths - allowed)
        assert not _numbers(head) & truths
        assert not _numbers(log) & truths
        everything = got.text + head + log
        for key in _long_numbers(everything):
            assert key not in keys
        for form in (SECRET.hex(), SECRET.hex()[:16], SECRET.hex()[-16:], repr(SECRET)[2:12]):
            assert form not in everything

    for one in ROUTES.values():
        tried(one.sure)
    for _, drawn in answering():
        MANY(given(drawn)(tried))()
    assert sum(shown) > 20  # so many requests were answered with numbers
    assert not _numbers(generate_latest(marked.app.state.metrics.registry).decode()) & truths


RESULT = ROUTES["GET /api/v1/jobs/{name}/result"].sure


def _long_numbers(text: str) -> Iterator[int]:
    """Numbers as long as keys are, in decimal and in hexadecimal."""
    for found in re.findall(r"(?<!\w)\d{16,20}(?!\w)", text):
        yield int(found)
    for found in re.findall(r"(?<!\w)(?:0x)?([0-9a-f]{14,16})(?!\w)", text):
        yield int(found, 16)


def test_published_numbers_differ_from_the_marks(marked: House) -> None:
    """Otherwise the test above could not fail."""
    truths, _ = _truths(marked)
    query = TableQuery.from_mapping({"dataset": "marked", "by": ["area", "tenure"]})
    release = marked.service.answer(query).release
    assert release is not None
    table = marked.records.engine("marked").tabulate(query)
    changed = release.published != table.values
    assert changed.mean() > 0.5
    assert truths >= set(table.values.ravel().tolist())


def test_bounds_contain_the_truth_and_are_the_same_for_every_form(marked: House) -> None:
    link = "/api/v1/tables?dataset=marked&by=area&by=sex&totals=on"
    body = marked.ask(Asked("GET", f"{link}&include=bounds")).json()
    query = TableQuery.from_mapping(body["query"])
    table = marked.records.engine("marked").tabulate(query)
    shown = np.array([v is not None for v in body["table"]["value"]]).reshape(table.shape)
    assert shown.sum() >= table.inner.sum()
    low, high = (
        np.array(body["bounds"][end], dtype=np.float64).reshape(table.shape)
        for end in ("low", "high")
    )
    assert np.all(((low <= table.values) & (table.values <= high))[shown])
    alone = json.loads(marked.ask(Asked("GET", f"{link}&format=json-stat")).text)
    assert alone["value"] == body["table"]["value"]
    lines = marked.ask(Asked("GET", f"{link}&format=csv")).text.splitlines()
    assert len(lines) > table.values.size
    numbers = _numbers("\n".join(lines))
    assert {int(v) for v in body["table"]["value"] if v is not None} <= numbers
