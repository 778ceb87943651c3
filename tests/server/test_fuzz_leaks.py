"""Whatever is asked, in whatever form: nothing but protected numbers and public descriptions comes out.

Two ways to find a leak. Two agencies whose true counts differ everywhere, but whose protected ones do not,
must answer every request with the same bytes. And where counts are marked, so that none of them stays as it
is, no mark may stand in any answer, header, log line or metric.
"""

from __future__ import annotations

import itertools
import json
import logging
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from prometheus_client import generate_latest

from examples import examples
from lustrum.answer import TableService
from lustrum.model import Dataset, LustrumError, Release, TableQuery
from lustrum.model.arrays import Ints
from lustrum.publish.bundles.make import make_bundle
from lustrum.publish.records import LocalRecordsService
from lustrum.runtime.log_lines import JsonLines
from lustrum.server import Settings, create_app
from lustrum.server.urls import forms
from lustrum.server.urls.display import PARAMETERS as VIEWS
from lustrum.tabulate import FrameSource, Secret, Store, ingest

SECRET = bytes(range(101, 133))
VARIABLES: dict[str, list[str]] = {
    "area": ["n1", "n2", "s1"],
    "sex": ["f", "m"],
    "tenure": ["own", "rent"],
}
DESCRIBED = Dataset.from_mapping(
    {
        "dataset": {"name": "marked", "title": "Marked people", "units": "people"},
        "variables": [
            {
                "name": "area",
                "label": "Area",
                "codes": VARIABLES["area"],
                "hierarchies": [
                    {
                        "name": "place",
                        "levels": [
                            {
                                "name": "half",
                                "groups": [
                                    {"code": "N", "label": "North", "members": ["n1", "n2"]},
                                    {"code": "S", "label": "South", "members": ["s1"]},
                                ],
                            }
                        ],
                    }
                ],
            },
            {"name": "sex", "label": "Sex", "codes": VARIABLES["sex"]},
            {"name": "tenure", "label": "Tenure", "codes": VARIABLES["tenure"]},
        ],
        "measures": [
            {"name": "income", "label": "Income", "unit": "euro", "earlier": "earlier"},
            {"name": "earlier", "label": "Income a year before", "unit": "euro"},
        ],
    }
)
RULES = """
[rules]
max_dimensions = 2
max_filters = 1
max_cells = 9
min_population = 60000
"""
SHAPE = tuple(len(codes) for codes in VARIABLES.values())


@dataclass
class House:
    """An agency with a log that can be read."""

    service: TableService
    client: TestClient
    app: Any
    records: LocalRecordsService
    lines: list[str] = field(default_factory=list)

    def ask(self, method: str, path: str, **kwargs: Any) -> Any:
        """One request; its log lines are kept."""
        listening = _Listening(self.lines)
        logger = logging.getLogger("lustrum")
        before = logger.level
        logger.addHandler(listening)
        logger.setLevel(logging.DEBUG)
        try:
            return self.client.request(method, path, follow_redirects=False, **kwargs)
        finally:
            logger.removeHandler(listening)
            logger.setLevel(before)


class _Listening(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        # That loops are compiled is said by the first of two houses, if the machine is slow.
        if record.name != "lustrum.numeric.compiled":
            self.lines.append(self.format(record))


def _house(root: Path, counts: Ints, policy: str, rules: str = RULES) -> House:
    places = np.repeat(np.arange(counts.size), counts.ravel())
    columns = dict(zip(VARIABLES, np.unravel_index(places, counts.shape), strict=True))
    frame = pa.table(
        {
            name: pa.DictionaryArray.from_arrays(pa.array(found, pa.int8()), VARIABLES[name])
            for name, found in columns.items()
        }
    )
    # Incomes differ between houses, since they follow from the number of people.
    income = 1000 + (np.arange(places.size) * 7919 + places.size) % 4001
    frame = frame.append_column("income", pa.array(income))
    frame = frame.append_column("earlier", pa.array(income * 9 // 10 + places % 50))
    root.mkdir()
    ingest(FrameSource(frame), DESCRIBED, Store(root), secret=Secret(SECRET))
    (root / "policies").mkdir()
    (root / "policies" / "marked.toml").write_text(
        f'dataset = "marked"\n{rules}{policy}\nend = true\n'
    )
    records = LocalRecordsService(root, workers=1)
    service = TableService(root, records=records)
    app = create_app(service, Settings(rate=""))
    return House(service, TestClient(app, base_url="http://house.test"), app, records)


# What is asked: mostly words that are there, some that are not.

AXES = st.sampled_from(
    ["area", "sex", "tenure", "area:half", "area:none", "sex:half", "age", "area:", ":", ""]
)
PAIRS: dict[str, st.SearchStrategy[str]] = {
    "by": AXES,
    "where": st.sampled_from(["sex:f", "area:n1", "tenure:own", "area:N", "sex:x", "sex", "age:1"]),
    "among": st.sampled_from(["area:n1,s1", "sex:f,m", "area:n1..s1", "area:9..1", "area:,"]),
    "codes": st.sampled_from(["area:n1,s1", "sex:f", "area:N", "tenure:own,own", "area:"]),
    "group": st.sampled_from(["area:Mine=n1,s1", "area:North=n1,n2", "sex:All=f,m", "area:=n1"]),
    "place": st.sampled_from(["sex:rows", "area:columns", "sex:7", "sex:up"]),
    "totals": st.sampled_from(["on", "off", "maybe"]),
    "measure": st.sampled_from(["", "income"]),
    "statistic": st.sampled_from(
        [
            "count",
            "share:count:total",
            "share:count:sex",
            "mean:income",
            "sum:income",
            "ratio:income:earlier",
            "growth:income:earlier",
            "share:income:row",
            "median:area",
            "mean",
            "x:y",
        ]
    ),
    "weight": st.sampled_from(["", "weight"]),
    "query": st.sampled_from(
        [
            '{"by": ["sex", {"variable": "area", "total": true}]}',
            '{"by": ["sex"], "where": {"area": "n1"}}',
            '{"by": [{"variable": "area", "groups": [{"label": "G", "members": ["n1", "s1"]}]}]}',
            '{"by": 7}',
            "{",
        ]
    ),
}
SHOWN: dict[str, st.SearchStrategy[str]] = {
    "as": st.sampled_from(["table", "chart", "song"]),
    "show": st.sampled_from(["counts", "row-percent", "column-percent", "whole-percent"]),
    "pivot": st.sampled_from(["sex:rows", "area:columns", "tenure:layers", "sex:where"]),
    "layer": st.sampled_from(["tenure:own", "sex:f", "area:n1"]),
    "sort": st.sampled_from(["label", "value", "-value", "sex:f", "-area:n1", "x"]),
    "empty": st.sampled_from(["hide", "show"]),
    "names": st.sampled_from(["codes", "both"]),
    "margins": st.just("off"),
    "bounds": st.just("on"),
    "decimals": st.sampled_from(["0", "3", "9"]),
    "chart": st.sampled_from(["bars", "stacked", "lines", "pyramid", "heat"]),
    "page": st.sampled_from(["1", "2", "all", "-1"]),
}
OFTEN = ("by", "by", "by", "where", "totals")


def _some(
    strategies: Mapping[str, st.SearchStrategy[str]], often: tuple[str, ...] = (), most: int = 5
) -> st.SearchStrategy[list[tuple[str, str]]]:
    names = st.sampled_from([*often, *strategies])
    pair = names.flatmap(lambda name: st.tuples(st.just(name), strategies[name]))
    return st.lists(pair, max_size=most)


STATISTICS = (
    "count",
    "share:count:total",
    "sum:income",
    "mean:income",
    "ratio:income:earlier",
    "growth:income:earlier",
    "share:income:total",
)


@st.composite
def sound(draw: st.DrawFn) -> list[tuple[str, str]]:
    """A question without a mistake."""
    names = draw(st.lists(st.sampled_from(list(VARIABLES)), min_size=1, max_size=3, unique=True))
    pairs = [("by", "area:half" if n == "area" and draw(st.booleans()) else n) for n in names]
    others = [name for name in VARIABLES if name not in names]
    if others and draw(st.booleans()):
        name = draw(st.sampled_from(others))
        pairs.append(("where", f"{name}:{draw(st.sampled_from(VARIABLES[name]))}"))
    if draw(st.booleans()):
        pairs.append(("totals", "on"))
    if draw(st.booleans()):
        shown = st.lists(st.sampled_from(STATISTICS), min_size=1, max_size=3, unique=True)
        pairs += [("statistic", text) for text in draw(shown)]
    return pairs


QUESTIONS = st.one_of(sound(), sound(), _some(PAIRS, OFTEN))
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "accept": st.sampled_from(["*/*", "text/csv", "application/json;q=x", "text/html", ","]),
        "accept-language": st.sampled_from(["fr", "en", "xx", "fr;q=0.1,de"]),
        "if-none-match": st.sampled_from(["*", 'W/"x"', '"a", W/"b"']),
        "accept-encoding": st.sampled_from(["identity", "gzip"]),
    },
)


@dataclass(frozen=True)
class Asked:
    """A request, with the question in it if there is one."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any = None
    question: tuple[tuple[str, str], ...] = ()


@st.composite
def requests(draw: st.DrawFn) -> Asked:
    """A request for anything."""
    headers, pairs = draw(HEADERS), draw(QUESTIONS)
    language = draw(st.sampled_from(["", "", "/de", "/fr", "/xx"]))
    kind = draw(st.sampled_from(("api", "api", "post", "page", "page", "hint", "builder", "other")))
    extra: list[tuple[str, str]] = []
    if kind in ("api", "hint"):
        if kind == "api":
            more = {
                "format": st.sampled_from(["csv", "json-stat", "json", "xml", "xlsx"]),
                "include": st.sampled_from(["bounds", "risk,trace", "bounds,utility", "", "x"]),
            }
            extra = draw(_some(more, most=2))
        door = "tables" if kind == "api" else "hints"
        query = urlencode([("dataset", "marked"), *pairs, *extra])
        return Asked("GET", f"/api/v1/{door}?{query}", headers, question=tuple(pairs))
    if kind == "post":
        try:
            body: Any = forms.read(pairs, "marked").to_mapping()
        except LustrumError:
            body = {"dataset": "marked", **dict(pairs)}
        where = draw(st.sampled_from(["tables", "tables?include=bounds", "jobs", "tables?x=1"]))
        return Asked("POST", f"/api/v1/{where}", headers, body, tuple(pairs))
    if kind == "page":
        shown = draw(_some(SHOWN, most=4))
        path = f"{language}/datasets/marked/table?{urlencode([*pairs, *shown])}"
        return Asked("GET", path, headers, question=tuple(pairs))
    if kind == "builder":
        part = draw(st.sampled_from(["", "/find", "/tree", "/about"]))
        path = f"{language}/datasets/marked{part}?{urlencode(pairs)}"
        return Asked("GET", path, headers, question=tuple(pairs))
    path = draw(
        st.sampled_from(
            [
                "/",
                "/api/v1/datasets",
                "/api/v1/datasets/marked",
                "/api/v1/datasets/marked/variables/area/categories?level=half",
                "/api/v1/datasets/other",
                "/api/v1/jobs/none",
                "/api/v1/jobs/none/result",
                "/health",
                "/nowhere",
                "/api/v1/tables?dataset=marked&by=" + "x" * 9000,
            ]
        )
    )
    return Asked(draw(st.sampled_from(["GET", "HEAD", "DELETE", "PUT"])), path, headers)


ALWAYS = (
    Asked("POST", "/api/v1/jobs", {}, {"dataset": "marked", "by": ["sex", "tenure"]}),
    Asked("GET", "/api/v1/tables?dataset=marked&by=sex&where=area:n1&format=csv", {}),
    Asked("GET", "/api/v1/tables?dataset=marked&by=area", {"if-none-match": "*"}),
    Asked("GET", "/api/v1/tables?dataset=marked&by=nothing", {}),
    Asked("GET", "/nowhere", {}),
    Asked("GET", "/api/v1/tables?dataset=marked&by=sex&by=area&by=tenure&format=csv", {}),
)
"""A job, a refusal that a format has no words for, what somebody has already, two mistakes, another refusal."""

ANSWERED = Asked(
    "GET",
    "/api/v1/tables?dataset=marked&by=area&by=tenure",
    {},
    question=(("by", "area"), ("by", "tenure")),
)
"""A question for a table that every method answers."""

MANY = settings(max_examples=examples(40, 400), suppress_health_check=list(HealthCheck))


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
def twins(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[House]:
    """Counts that differ in every cell and in every sum, and round alike in all of them; or other records
    behind the same public bundle, which the server could reach and must not."""
    root = tmp_path_factory.mktemp("twins")
    if request.param == "bundle":
        counts = 400 + 7 * np.arange(np.prod(SHAPE)).reshape(SHAPE)
        first = _house(root / "first", counts, STRICT, STRICT_RULES)
        second = _house(root / "second", counts[::-1] + 501, STRICT, STRICT_RULES)
        policy = root / "first" / "policies" / "marked.toml"
        place = root / "first" / "bundles" / "marked"
        make_bundle(Store(root / "first"), "marked", policy, place, workers=1)
        shutil.copytree(place, root / "second" / "bundles" / "marked")
        return [first, second]
    thousands = 1000 * np.arange(9, 9 + np.prod(SHAPE)).reshape(SHAPE)
    # Together less than half a base from the thousands, so that every sum rounds to theirs.
    above = 1 + np.arange(np.prod(SHAPE)).reshape(SHAPE) * 3
    return [
        _house(root / "first", thousands + above, COARSE),
        _house(root / "second", thousands - above[::-1], COARSE),
    ]


def test_the_twins_differ_in_every_true_count_and_in_no_published_one(twins: list[House]) -> None:
    for names in (["area", "sex"], ["sex", "tenure"], ["area"], ["tenure"]):
        query = TableQuery.from_mapping({"dataset": "marked", "by": names, "totals": True})
        first, second = (house.records.engine("marked").tabulate(query) for house in twins)
        assert np.mean(first.values != second.values) > 0.9
        releases = [house.service.answer(query).release for house in twins]
        assert releases[0] is not None
        assert releases[1] is not None
        assert np.array_equal(releases[0].published, releases[1].published)


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
        assert np.array_equal(releases[0].published, releases[1].published)


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

    @MANY
    @given(requests())
    @example(ALWAYS[0])
    @example(ALWAYS[1])
    @example(ALWAYS[2])
    @example(ALWAYS[3])
    @example(ALWAYS[4])
    @example(ALWAYS[5])
    def tried(asked: Asked) -> None:
        answers = []
        for house in twins:
            house.lines.clear()
            headers = {**asked.headers, "X-Request-ID": "the-same"}
            got = house.ask(asked.method, asked.path, headers=headers, json=asked.body)
            answers.append(got)
        first, second = answers
        statuses.add(first.status_code)
        assert first.status_code == second.status_code
        if first.headers.get("content-type", "text/").startswith(("text/", "application/json")):
            assert CHANGING.sub("", first.text) == CHANGING.sub("", second.text)
        else:
            assert first.content == second.content
        drop = ("etag",) if first.status_code == 202 else ()
        heads = [
            {k: CHANGING.sub("", v) for k, v in got.headers.items() if k not in drop}
            for got in answers
        ]
        assert heads[0] == heads[1]
        logs = [[CHANGING.sub("", line) for line in house.lines] for house in twins]
        assert logs[0] == logs[1]

    tried()
    assert statuses >= {200, 202, 304, 400, 404, 406}
    assert max(statuses) < 500
    metrics = [_without_times(generate_latest(h.app.state.metrics.registry)) for h in twins]
    assert metrics[0] == metrics[1]


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
    return _house(root, counts, RISKY + METHODS[request.param])


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


def _published(house: House, asked: Asked) -> Release | None:
    """What the question in a request brings to light, however it was asked."""
    pairs = [pair for pair in asked.question if pair[0] not in VIEWS]
    try:
        return house.service.answer(forms.read(pairs, "marked")).release
    except LustrumError:
        return None


NUMBER = re.compile(r"(?<![\w.-])\d{1,3}(?:[,\u00a0\u202f ]?\d{3})+(?![\w])")


def _numbers(text: str) -> set[int]:
    """The whole numbers of four digits and more in a text, grouped or not."""
    return {int(re.sub(r"\D", "", found)) for found in NUMBER.findall(text)}


def test_numbers_are_found_however_they_are_written() -> None:
    texts = [
        "10007",
        "10,007",
        "10\u202f007",
        "10\u00a0007",
        '"value":[10007,0]',
        "<td>10 007</td>",
    ]
    for text in texts:
        assert _numbers(text) & {10007}, text


def test_no_true_count_no_record_key_and_nothing_of_the_secret_gets_out(marked: House) -> None:
    truths, keys = _truths(marked)
    tables = []

    @MANY
    @given(requests())
    @example(ANSWERED)
    def tried(asked: Asked) -> None:
        marked.lines.clear()
        got = marked.ask(asked.method, asked.path, headers=asked.headers, json=asked.body)
        head = "\n".join(f"{name}: {value}" for name, value in got.headers.items())
        log = "\n".join(marked.lines)
        release = _published(marked, asked)
        allowed = set()
        if release is not None and got.status_code == 200:
            tables.append(got.text)
            public = [release.published, release.low, release.high]
            allowed = {n for part in public if part is not None for n in part.ravel().tolist()}
        assert not _numbers(got.text) & (truths - allowed)
        assert not _numbers(head) & truths
        assert not _numbers(log) & truths
        everything = got.text + head + log
        for key in _long_numbers(everything):
            assert key not in keys
        for form in (SECRET.hex(), SECRET.hex()[:16], SECRET.hex()[-16:], repr(SECRET)[2:12]):
            assert form not in everything

    tried()
    assert any(_numbers(text) for text in tables)
    assert not _numbers(generate_latest(marked.app.state.metrics.registry).decode()) & truths


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
    body = marked.ask("GET", f"{link}&include=bounds").json()
    query = TableQuery.from_mapping(body["query"])
    table = marked.records.engine("marked").tabulate(query)
    shown = np.array([v is not None for v in body["table"]["value"]]).reshape(table.shape)
    assert shown.sum() >= table.inner.sum()
    low, high = (
        np.array(body["bounds"][end], dtype=np.float64).reshape(table.shape)
        for end in ("low", "high")
    )
    assert np.all(((low <= table.values) & (table.values <= high))[shown])
    alone = json.loads(marked.ask("GET", f"{link}&format=json-stat").text)
    assert alone["value"] == body["table"]["value"]
    lines = marked.ask("GET", f"{link}&format=csv").text.splitlines()
    assert len(lines) > table.values.size
    numbers = _numbers("\n".join(lines))
    assert {int(v) for v in body["table"]["value"] if v is not None} <= numbers
