"""Agencies that keep secrets from each other, and whatever can be asked of them by any route."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest import mock
from urllib.parse import quote, urlencode

import numpy as np
import pyarrow as pa
from fastapi.testclient import TestClient
from hypothesis import strategies as st

from lustrum.answer import TableService
from lustrum.model import Dataset, LustrumError
from lustrum.model.arrays import Ints
from lustrum.publish.records import LocalRecordsService
from lustrum.runtime.log_lines import JsonLines
from lustrum.server import Settings, create_app
from lustrum.server.protocols.pxweb import name_of
from lustrum.server.urls import forms
from lustrum.tabulate import FrameSource, Secret, Store, ingest
from waiting import until

PROGRAMME = "biz-2025"
PLAIN = [("by", "sex"), ("by", "area")]
SECRET = bytes(range(101, 133))
VARIABLES: dict[str, list[str]] = {
    "area": ["n1", "n2", "s1"],
    "sex": ["f", "m"],
    "tenure": ["own", "rent"],
}
SHAPES = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "id": code,
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[x, 0], [x + 1, 0], [x + 1, 1], [x, 1], [x, 0]]],
            },
        }
        for x, code in enumerate(VARIABLES["area"])
    ],
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
        "maps": [{"variable": "area", "shapes": SHAPES}],
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
    known: dict[str, str] = field(default_factory=dict)
    """What stands in requests for names that chance made: of a job, and of those who may cancel it."""

    def ask(self, asked: Asked) -> Any:
        """One request; its log lines are kept."""

        def named(text: str) -> str:
            for word, name in self.known.items():
                text = text.replace(word, name)
            return text

        path = named(asked.path)
        self.lines.clear()
        given = {"content" if isinstance(asked.body, bytes) else "json": asked.body}
        headers = {"X-Request-ID": "the-same"} | {k: named(v) for k, v in asked.headers.items()}
        if path != asked.path:  # what chance made takes more or less room when it is compressed
            headers["accept-encoding"] = "identity"
        listening = _Listening(self.lines)
        logger = logging.getLogger("lustrum")
        before = logger.level
        logger.addHandler(listening)
        logger.setLevel(logging.DEBUG)
        try:
            return self.client.request(
                asked.method, path, headers=headers, follow_redirects=False, **given
            )
        finally:
            logger.removeHandler(listening)
            logger.setLevel(before)

    def make_job(self) -> None:
        """A job that has ended; those that come after it wait for ever, so that nothing happens in between."""
        self.app.state.ready = True
        questions = self.app.state.questions
        one, other = (questions.submit(forms.read(PLAIN, "marked")) for _ in range(2))
        questions.jobs.start()
        until(lambda: questions.jobs.store.find(one.id).state == "done")
        questions.jobs.stop()
        self.known = {"{job}": one.id, "{token}": one.token, "{another}": other.token}


class _Listening(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        # That loops are compiled is said by the first of two houses, if the machine is slow.
        if record.name != "lustrum.numeric.compiled":
            self.lines.append(self.format(record))


def house(
    root: Path, counts: Ints, policy: str, rules: str = RULES, programme: Path | None = None
) -> House:
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
    if programme is not None:
        shutil.copytree(programme, root / "prepared" / PROGRAMME)
    # The random end of the version is what everybody may see of it.
    with mock.patch("lustrum.tabulate.store.manifest.secrets.token_hex", return_value="0a1b2c3d"):
        ingest(FrameSource(frame), DESCRIBED, Store(root), secret=Secret(SECRET))
    (root / "policies").mkdir()
    (root / "policies" / "marked.toml").write_text(
        f'dataset = "marked"\nembed = ["https://news.example"]\n{rules}{policy}\nend = true\n'
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
            "count", "share:count:total", "share:count:sex", "mean:income", "sum:income",
            "ratio:income:earlier", "growth:income:earlier", "share:income:row", "median:area",
            "mean", "x:y",
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
}  # fmt: skip
SHOWN: dict[str, st.SearchStrategy[str]] = {
    "as": st.sampled_from(["table", "chart", "map", "song"]),
    "show": st.sampled_from(["counts", "row-percent", "column-percent", "whole-percent"]),
    "pivot": st.sampled_from(["sex:rows", "area:columns", "tenure:layers", "sex:where"]),
    "layer": st.sampled_from(["tenure:own", "sex:f", "area:n1"]),
    "against": st.sampled_from(["tenure:own", "sex:f", "area:n1"]),
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


def some(
    strategies: Mapping[str, st.SearchStrategy[str]], often: tuple[str, ...] = (), most: int = 5
) -> st.SearchStrategy[list[tuple[str, str]]]:
    names = st.sampled_from([*often, *strategies])
    pair = names.flatmap(lambda name: st.tuples(st.just(name), strategies[name]))
    return st.lists(pair, max_size=most)


STATISTICS = (
    "count", "share:count:total", "sum:income", "mean:income", "ratio:income:earlier",
    "growth:income:earlier", "share:income:total",
)  # fmt: skip


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


QUESTIONS = st.one_of(sound(), sound(), some(PAIRS, OFTEN))
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "accept": st.sampled_from(["*/*", "text/csv", "application/json;q=x", "text/html", ","]),
        "accept-language": st.sampled_from(["fr", "en", "xx", "fr;q=0.1,de"]),
        "if-none-match": st.sampled_from(["*", 'W/"x"', '"a", W/"b"']),
        "accept-encoding": st.sampled_from(["identity", "gzip"]),
        "range": st.sampled_from(["bytes=0-9", "bytes=-5", "bytes=5-", "bytes=900000-", "x"]),
        "if-range": st.just('"x"'),
        "origin": st.sampled_from(["https://news.example", "null", "http://house.test"]),
        "host": st.sampled_from(["house.test", "house.test:81", "evil.example", "[::1]", "a b"]),
        "x-forwarded-host": st.just("evil.example"),
    },
)


# By which route it is asked: each has a request that is answered, and others that may not be.


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True)
class Route:
    """What may be asked of a route: one request that it answers, and strategies for other ones."""

    template: str
    sure: Asked
    drawn: st.SearchStrategy[Asked]


WORDS = st.sampled_from(
    [
        "marked", "area", "sex", "vs_marked.area", "..", "%2e%2e", "x" * 300, "é", "\x00", "a.b",
        "", "[",
    ]
)  # fmt: skip
EXPRESSIONS = st.lists(
    st.sampled_from(
        [
            "*", "n1", "s1", "f", "own", "N", "_T", "TOP(1)", "TOP(2,1)", "bottom(1)", "RANGE(n1,s1)",
            "RANGE(s1,n1)", "FROM(m)", "TO(n2)", "n?", "*1", "[n1]", "x", "", "\x00", "é", "***1*", "TOP(9999)",
        ]
    ),
    max_size=3,
)  # fmt: skip
STATISTIC = st.sampled_from(
    ["count", "mean:income", "sum:income", "mean:x", "*", "count,sum:income"]
)
FORMS = st.sampled_from(["json-stat2", "csv", "xlsx", "html", "px", "parquet", "doc", ""])
PXWEB: dict[str, st.SearchStrategy[str]] = {
    **{f"valuecodes[{name}]": EXPRESSIONS.map(",".join) for name in (*VARIABLES, "age")},
    "valueCodes[sex]": st.just("*"),
    "valuecodes[ContentsCode]": STATISTIC,
    "codelist[area]": st.sampled_from(["agg_marked.area.half", "vs_marked.area", "x"]),
    "outputFormat": FORMS,
    "outputFormatParams": st.sampled_from(
        ["UseCodes", "UseTexts,SeparatorTab", "IncludeTitle", "x"]
    ),
    "heading": st.sampled_from(["sex", "area,ContentsCode", "x", "sex,sex"]),
    "stub": st.sampled_from(["tenure", "ContentsCode", "sex"]),
    "lang": st.sampled_from(["en", "sv"]),
    "defaultSelection": st.just("true"),
    "query": st.sampled_from(["marked", "("]),
    "pageSize": st.sampled_from(["1", "0", "9" * 12]),
}
SDMX: dict[str, st.SearchStrategy[str]] = {
    **{f"c[{name}]": EXPRESSIONS.map(",".join) for name in (*VARIABLES, "age")},
    "c[STATISTIC]": STATISTIC,
    "references": st.just("all"),
    "format": st.just("x"),
    "x": st.just("1"),
}
EUROSTAT: dict[str, st.SearchStrategy[str]] = {
    **{
        n: st.sampled_from([*VARIABLES.get(n, []), "N", "*", "_T", "x", ""])
        for n in (*VARIABLES, "age")
    },
    "statistic": STATISTIC,
    "lang": st.sampled_from(["EN", "en", "FR"]),
    "format": st.sampled_from(["JSON", "TSV"]),
}
API: dict[str, st.SearchStrategy[str]] = {
    "format": st.sampled_from(
        [
            "csv", "json-stat", "json", "xml", "xlsx", "px", "html", "arrow", "parquet", "sdmx-csv",
            "csvw",
        ]
    ),
    "include": st.sampled_from(["bounds", "risk,trace", "bounds,utility", "", "x"]),
    "comments": st.sampled_from(["on", "x"]),
    "guard": st.just("off"),
    "show": st.sampled_from(["row-percent", "row-rate", "index"]),
}  # fmt: skip
TREE: dict[str, st.SearchStrategy[str]] = {
    "tree": st.sampled_from(["area", "sex", "age"]),
    "under": st.sampled_from(["N", "n1", "x"]),
    "find": st.sampled_from(["n", "("]),
    "q": st.sampled_from(["north", "(", "x" * 300]),
    "cut.income": st.just("3"),
}
KEYS = st.lists(
    st.sampled_from(
        ["*", "n1", "f", "n1+s1", "N", "_T", "own", "count", "x", "", "$2E$", "mean$3A$income"]
    ),
    min_size=1,
    max_size=5,
).map(".".join)
"""Keys of SDMX, most of which have too few places or codes of other variables."""

SELECTIONS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["sex", "*", "n1", "TOP(1)", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["selection", "variableCode", "valueCodes", "codelist", "placement", "tableId"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)  # fmt: skip
NONSENSE = st.sampled_from(
    [b"", b"[" * 9000, b"x" * 100_000, b"\xff", b'{"by": ["sex"], "by": ["area"]}', b"7"]
)


def selection(pairs: Mapping[str, Iterable[str]]) -> Any:
    """What PxWebApi calls a selection."""
    return {"selection": [{"variableCode": k, "valueCodes": list(v)} for k, v in pairs.items()]}


@st.composite
def selections(draw: st.DrawFn) -> Any:
    """A selection, mostly of what is there."""
    names = draw(st.lists(st.sampled_from([*VARIABLES, "age"]), max_size=3, unique=True))
    said = selection({name: draw(EXPRESSIONS) for name in names})
    if draw(st.booleans()):
        said["placement"] = {"heading": names[:1], "stub": names[1:]}
    return said


@st.composite
def posed(draw: st.DrawFn) -> Any:
    """The body of a question to our own API."""
    pairs = draw(QUESTIONS)
    try:
        return forms.read(pairs, "marked").to_mapping()
    except LustrumError:
        return {"dataset": "marked", **dict(pairs)}


SAVED = name_of(
    {
        "tableId": "marked", "language": "en", "selection": selection({"sex": ["*"], "area": ["*"]}),
        "outputFormat": "csv", "outputFormatParams": [],
    }
)  # fmt: skip
PLACES = {
    "name": "marked", "variable": "area", "kind": "dataflow", "context": "dataflow", "agency": "LUSTRUM",
    "version": "1.0.0", "key": "*.f+m._T.count", "flow": "LUSTRUM,marked", "provider": "all",
    "table": "activity-size.turnover", "path": "report.html",
}  # fmt: skip
NO_PAIRS: st.SearchStrategy[list[tuple[str, str]]] = st.just([])


def route(
    template: str,
    pairs: st.SearchStrategy[list[tuple[str, str]]] = NO_PAIRS,
    bodies: st.SearchStrategy[Any] | None = None,
    sure: str = "",
    body: Any = None,
    headers: Mapping[str, str] = MappingProxyType({}),
    languages: bool = False,
    **places: str,
) -> Route:
    """A route by its method and template; ``places`` stand in its braces where it is sure to answer."""
    method, path = template.split(" ")
    there = {k: places.get(k, v) for k, v in PLACES.items()}
    names = [name for name in there if f"{{{name}}}" in path or f"{{{name}:path}}" in path]

    def address(found: Mapping[str, str], query: str) -> str:
        filled = path.replace(":path", "")
        for name in names:
            filled = filled.replace(f"{{{name}}}", found[name])
        return f"{filled}?{query}" if query else filled

    @st.composite
    def drawn(draw: st.DrawFn) -> Asked:
        found = dict(there)
        for name in names:
            # Mostly what is there: otherwise hardly anything would be found.
            if name == "key":
                found[name] = quote(draw(KEYS))
            elif draw(st.integers(0, 7)) == 7:
                found[name] = quote(draw(WORDS), safe="{}%")
        prefix = draw(st.sampled_from(["", "", "/fr", "/xx"])) if languages else ""
        given = None if bodies is None else draw(st.one_of(bodies, bodies, bodies, NONSENSE))
        query = urlencode(draw(pairs), safe="{}")
        return Asked(method, prefix + address(found, query), draw(HEADERS), given)

    return Route(template, Asked(method, address(there, sure), dict(headers), body), drawn())


def both(
    first: st.SearchStrategy[list[tuple[str, str]]],
    second: st.SearchStrategy[list[tuple[str, str]]],
) -> st.SearchStrategy[list[tuple[str, str]]]:
    """Pairs of two kinds."""
    return st.tuples(first, second).map(lambda two: [*two[0], *two[1]])


NAMED = st.just([("dataset", "marked")])
ASKED = both(NAMED, QUESTIONS)
SEEN = both(QUESTIONS, some(SHOWN, most=4))
SURE = urlencode(PLAIN)
PROBE = some(
    {"q": st.sampled_from(["north", "("]), "limit": st.sampled_from(["1", "0"]), "x": st.just("1")},
    most=2,
)
LISTED = {
    "level": st.sampled_from(["half", "x"]),
    "within": st.sampled_from(["N", "n1", "x" * 300]),
}
TOKENS = st.sampled_from([[], [("token", "{token}")], [("token", "x")]])
VIEW = some(SHOWN, most=3)
PX_DATA = "/pxapi/v2/tables/{name}/data"
_ROUTES = (
    route("GET /api/v1/openapi.json"),
    route("GET /api/v1/datasets", PROBE),
    *(
        route(one, PROBE)
        for one in (
            "GET /api/v1/datasets/{name}",
            "GET /api/v1/datasets/{name}/protection",
            "GET /api/v1/datasets/{name}/citation",
            "GET /api/v1/catalogue.jsonld",
            "GET /accessibility",
            "GET /api",
            "GET /protection",
            "GET /health",
            "GET /health/ready",
            "GET /static/picture.js",
        )
    ),
    route("GET /api/v1/datasets/{name}/variables/{variable}/categories", some(LISTED, most=3)),
    route(
        "GET /api/v1/datasets/{name}/variables/{variable}/shapes",
        some({"level": LISTED["level"], "x": st.just("1")}, most=2),
    ),
    route("GET /api/v1/prepared", PROBE),
    route("GET /api/v1/prepared/{name}", PROBE, name=PROGRAMME),
    route("GET /api/v1/prepared/{name}/files/{path:path}", name=PROGRAMME),
    route("GET /prepared/{name}", PROBE, name=PROGRAMME),
    route("GET /prepared/{name}/{table}", VIEW, name=PROGRAMME),
    route(
        "POST /api/v1/tables",
        some({"include": API["include"]}, most=1),
        posed(),
        body={"dataset": "marked", "by": ["sex"]},
    ),
    route("GET /api/v1/tables", both(ASKED, some(API, most=2)), sure=f"dataset=marked&{SURE}"),
    route("GET /api/v1/hints", ASKED, sure=f"dataset=marked&{SURE}"),
    route(
        "POST /api/v1/jobs", NO_PAIRS, posed(), body={"dataset": "marked", "by": ["sex", "tenure"]}
    ),
    route("GET /api/v1/jobs/{name}", name="{job}"),
    route(
        "GET /api/v1/jobs/{name}/result", some({"include": API["include"]}, most=1), name="{job}"
    ),
    route("DELETE /api/v1/jobs/{name}", TOKENS, name="{job}", headers={"Cancel-Token": "{token}"}),
    route("GET /jobs/{name}", both(TOKENS, VIEW), name="{job}"),
    route("POST /jobs/{name}/cancel", TOKENS, name="{job}", sure="token={another}"),
    route("GET /pxapi/v2/config", some(PXWEB, most=1)),
    route("GET /pxapi/v2/tables", some(PXWEB, most=2)),
    route("GET /pxapi/v2/tables/{name}", some(PXWEB, most=1)),
    route(
        "GET /pxapi/v2/tables/{name}/metadata",
        some(PXWEB | {"savedQuery": st.sampled_from([SAVED, "x"])}, most=2),
    ),
    route("GET /pxapi/v2/tables/{name}/defaultselection", some(PXWEB, most=1)),
    route(f"GET {PX_DATA}", some(PXWEB), sure="valuecodes[sex]=*&valuecodes[area]=TOP(2)"),
    route(
        f"POST {PX_DATA}",
        some({"outputFormat": FORMS}, most=1),
        selections() | SELECTIONS,
        body=selection({"sex": ["*"]}),
    ),
    route("GET /pxapi/v2/codelists/{name}", name="agg_marked.area.half"),
    route(
        "POST /pxapi/v2/savedqueries",
        NO_PAIRS,
        SELECTIONS | selections().map(lambda said: {"tableId": "marked", "selection": said}),
        body={"tableId": "marked", "selection": selection({"sex": ["*"]})},
    ),
    *(
        route(f"GET /pxapi/v2/savedqueries/{{name}}{end}", some(PXWEB, most=1), name=SAVED)
        for end in ("", "/selection", "/data")
    ),
    *(
        route(f"GET /sdmx/v2/structure/{end}", some(SDMX, most=1))
        for end in (
            "{kind}",
            "{kind}/{agency}",
            "{kind}/{agency}/{name}",
            "{kind}/{agency}/{name}/{version}",
        )
    ),
    *(
        route(f"GET /sdmx/2.1/{{kind}}/{{agency}}{end}", some(SDMX, most=1))
        for end in ("", "/{name}", "/{name}/{version}")
    ),
    route("GET /sdmx/2.1/data/{flow}", some(SDMX), sure="c[sex]=*"),
    *(
        route(f"GET /sdmx/2.1/data/{{flow}}/{{key}}{end}", some(SDMX))
        for end in ("", "/{provider}")
    ),
    *(
        route(f"GET /sdmx/v2/data/{end}", some(SDMX), sure=said)
        for end, said in (
            ("{context}/{agency}/{name}", "c[sex]=*"),
            ("{context}/{agency}/{name}/{version}", "c[sex]=*,_T&c[area]=N,S"),
            ("{context}/{agency}/{name}/{version}/{key:path}", ""),
        )
    ),
    route("GET /api/dissemination/statistics/1.0/data/{name}", some(EUROSTAT), sure="sex=*&area=N"),
    route("GET /", some(TREE, most=1), languages=True),
    *(
        route(
            f"GET /datasets/{{name}}{end}",
            both(SEEN, some(TREE, most=1)),
            sure=SURE,
            languages=True,
        )
        for end in ("", "/find", "/tree")
    ),
    route("GET /datasets/{name}/about", some(TREE, most=1), languages=True),
    route("GET /datasets/{name}/variables/{variable}", some(TREE, most=2), languages=True),
    route("GET /datasets/{name}/table", SEEN, sure=SURE, languages=True),
    route("GET /datasets/{name}/embed", SEEN, sure=SURE, languages=True),
    route(
        "GET /oembed",
        SEEN.map(
            lambda pairs: [
                ("url", f"http://house.test/fr/datasets/marked/table?{urlencode(pairs)}")
            ]
        )
        | st.sampled_from(
            [
                [("url", text)]
                for text in (
                    "http://[",
                    "file:///etc/passwd",
                    "http://127.0.0.1:22/",
                    "\x00",
                    "http://evil.example/datasets/marked?by=sex",
                    "http://house.test@evil.example/datasets/marked",
                    "http://house.test/datasets/../../etc/passwd",
                )
            ]
        ),
        sure=urlencode({"url": f"http://house.test/datasets/marked?{SURE}"}),
    ),
)
ROUTES = {one.template: one for one in _ROUTES}
"""Whatever the application answers; a test holds them to its routes."""

METHODS = ("PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "POST", "TRACE", "QUERY")


def answering() -> list[tuple[str, st.SearchStrategy[Asked]]]:
    """Each route with what may be asked of it, and all of them with other methods."""
    others = st.tuples(st.sampled_from(METHODS), st.sampled_from(list(ROUTES.values())))
    wrong = others.map(lambda two: replace(two[1].sure, method=two[0]))
    return [*((name, one.drawn) for name, one in ROUTES.items()), ("other methods", wrong)]
