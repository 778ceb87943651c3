"""A server with a public bundle and nothing else: tables add up, agree, and come without any records."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from lustrum.answer import TableService
from lustrum.model import Axis, DatasetError, Filter, Group, TableQuery
from lustrum.public.bundle import BundleNumbers, read_bundle
from lustrum.server import Settings, create_app

TABLES = "/api/v1/tables"


@pytest.fixture(scope="module")
def numbers(bundle: Path) -> BundleNumbers:
    return BundleNumbers(read_bundle(bundle), workers=1)


def asked(client: TestClient, **words: Any) -> dict[str, Any]:
    response = client.post(f"{TABLES}?include=bounds,trace", json={"dataset": "demo", **words})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_own_groups_filters_and_many_variables_are_free(bundled: TestClient) -> None:
    groups = [
        {"label": "young", "members": ["1", "2", "3"]},
        {"label": "some", "members": ["3", "7"]},
    ]
    body = asked(
        bundled,
        by=["sex", {"variable": "age", "groups": groups}, "region", "household_size"],
        where={"citizenship": ["1", "2"], "education": ["1", "3"], "employment": ["1"]},
        totals=True,
    )
    assert body["decision"] == "answer", body["reasons"]
    assert [step["step"] for step in body["trace"]] == [
        "question", "numbers", "rules", "risk", "answer",
    ]  # fmt: skip
    assert any("one protected population" in note for note in body["notes"])
    assert any("Margin of error" in note for note in body["notes"])


@pytest.mark.parametrize(
    "words",
    [
        {"by": [{"variable": "age", "codes": ["1"]}]},
        {"by": [{"variable": "age", "groups": [{"label": "mine", "members": ["1", "2"]}]}]},
        {"by": [{"variable": "age", "codes": ["1"]}], "where": {"employment": ["1"]}},
    ],
    ids=["one cell", "one group", "nobody"],
)
def test_a_table_of_one_cell_is_answered_without_figures(
    bundled: TestClient, words: dict[str, Any]
) -> None:
    """Nothing is to be hidden by a refusal; there is only no risk to speak of."""
    body = bundled.post(TABLES, json={"dataset": "demo", **words}).json()
    assert body["decision"] == "answer", body["reasons"]
    assert len(body["table"]["value"]) == 1
    assert body["risk"] == {"before": None, "after": None}
    page = bundled.get("/datasets/demo/table?by=age&codes=age:1")
    assert page.status_code == 200
    csv = bundled.get(f"{TABLES}?dataset=demo&by=age&codes=age:1&format=xlsx")
    assert csv.status_code == 200


@st.composite
def questions(draw: st.DrawFn, dataset: Any) -> TableQuery:
    """Any table of one to three variables: codes, levels, own groups, totals, filters."""
    names = draw(st.lists(st.sampled_from([v.name for v in dataset.variables]), min_size=1,
                          max_size=4, unique=True))  # fmt: skip
    axes, where = [], []
    for name in names[: draw(st.integers(1, min(3, len(names))))]:
        variable = dataset.variable(name)
        total = draw(st.booleans())
        some = st.lists(st.sampled_from(variable.codes), min_size=1, max_size=4, unique=True)
        kind = draw(st.sampled_from(["all", "codes", "group", "level"]))
        if kind == "level" and variable.levels:
            axes.append(Axis(name, draw(st.sampled_from(variable.levels)).name, total=total))
        elif kind == "codes":
            axes.append(Axis(name, codes=tuple(draw(some)), total=total))
        elif kind == "group":
            axes.append(Axis(name, groups=(Group("mine", tuple(draw(some))),), total=total))
        else:
            axes.append(Axis(name, total=total))
    for name in names[len(axes) :]:
        variable = dataset.variable(name)
        some = st.lists(st.sampled_from(variable.codes), min_size=1, max_size=5, unique=True)
        where.append(Filter(name, tuple(draw(some))))
    return TableQuery(dataset.name, tuple(axes), tuple(where))


def test_every_number_of_every_table_is_a_plain_count_of_the_one_file(
    numbers: BundleNumbers,
) -> None:
    """Hence every pair of tables agrees, and every table adds up."""
    dataset, cells = numbers.dataset, numbers.bundle.cells
    columns = cells.columns()

    @settings(max_examples=40)
    @given(questions(dataset))
    def tried(query: TableQuery) -> None:
        if np.prod([len(a.categories(dataset.variable(a.variable))) for a in query.by]) > 30_000:
            return
        views = numbers.views(query)
        passing = np.ones(len(cells), dtype=np.bool_)
        for item in query.where:
            passing &= np.isin(
                columns[item.variable], list(item.members(dataset.variable(item.variable)))
            )
        for release, filtered in ((views.shown, True), (views.everybody, False)):
            shape = release.shape
            places = list(itertools.product(*map(range, shape)))
            for place in places[:: max(1, len(places) // 7)]:
                inside = passing.copy() if filtered else np.ones(len(cells), dtype=np.bool_)
                for axis, i in zip(release.axes, place, strict=True):
                    inside &= np.isin(columns[axis.name], axis.categories[i].members)
                assert release.published[place] == cells.counts[inside].sum()

    tried()


def test_bounds_hold_the_truth_of_every_table(root: Path, numbers: BundleNumbers) -> None:
    from lustrum.tabulate import Store

    engine = Store(root).open("demo", 1)

    @settings(max_examples=25)
    @given(questions(numbers.dataset))
    def tried(query: TableQuery) -> None:
        dataset = numbers.dataset
        if np.prod([len(a.categories(dataset.variable(a.variable))) for a in query.by]) > 30_000:
            return
        release, truth = numbers.views(query).shown, engine.tabulate(query).values
        assert release.least is not None
        assert release.most is not None
        assert np.all((release.least <= truth) & (truth <= release.most))

    tried()


def test_other_orders_and_phrasings_are_the_same_numbers_and_figures(bundled: TestClient) -> None:
    first = asked(bundled, by=["sex", "age"], where={"region": ["1"]})
    turned = asked(bundled, by=["age", "sex"], where={"region": ["1"]})
    values = [np.array(b["table"]["value"]).reshape(b["table"]["size"]) for b in (first, turned)]
    assert np.array_equal(values[0], values[1].T)
    figures = [
        bundled.post(TABLES, json={"dataset": "demo", **words}).json()
        for words in ({"by": ["sex", "age"]}, {"by": ["age", "sex"], "totals": True})
    ]
    assert figures[0]["risk"] == figures[1]["risk"]
    assert figures[0]["utility"] == figures[1]["utility"]


def test_a_server_runs_where_the_records_never_were(bundle: Path, tmp_path: Path) -> None:
    """A process in an empty folder, with a copy of the bundle: no data folder, no secret, no child."""
    copy = shutil.copytree(bundle, tmp_path / "copy")
    script = (
        "import sys, json, threading, urllib.request, subprocess\n"
        "from pathlib import Path\n"
        "from lustrum.answer import TableService\n"
        "from lustrum.server import serve, Settings\n"
        "def forbidden(*a, **k): raise SystemExit('a process was started')\n"
        "subprocess.Popen = forbidden\n"
        "def ready(url):\n"
        "    def ask():\n"
        "        got = urllib.request.urlopen(url + '/api/v1/tables?dataset=demo&by=sex').read()\n"
        "        print(json.dumps(json.loads(got)['table']['value']), flush=True)\n"
        "        import os, signal; os.kill(os.getpid(), signal.SIGTERM)\n"
        "    threading.Thread(target=ask).start()\n"
        "serve(TableService(bundles=[Path(sys.argv[1])]), port=0, ready=ready)\n"
    )
    (tmp_path / "empty").mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "LUSTRUM_DATA"}
    done = subprocess.run(
        [sys.executable, "-c", script, str(copy)],
        cwd=tmp_path / "empty", env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)
    assert len(values) == 2
    assert all(value > 0 and value % 3 == 0 for value in values)
    assert list((tmp_path / "empty").iterdir()) == []


class Forbidden:
    """A records service that must not be asked."""

    def __getattr__(self, name: str) -> Any:
        def asked(*_words: Any) -> Any:
            raise AssertionError(f"the records service was asked: {name}")

        return (lambda: None) if name in ("close", "check_in_background") else asked


def test_the_records_are_not_touched_where_every_dataset_has_a_bundle(
    bundle: Path, root: Path, tmp_path: Path
) -> None:
    """Also in a folder that holds them: no process is started, and no file of theirs is opened."""
    data = tmp_path / "data"
    shutil.copytree(bundle, data / "bundles" / "demo")
    shutil.copytree(root / "demo", data / "demo")
    (data / "policies").mkdir()
    shutil.copy(bundle / "policy.toml", data / "policies" / "demo.toml")
    service = TableService(data, workers=1, records=Forbidden())
    client = TestClient(create_app(service, Settings(rate="")), base_url="http://house.test")
    for path in (
        "/",
        "/datasets/demo",
        "/datasets/demo/about",
        "/datasets/demo/table?by=sex&by=age",
        "/api/v1/datasets",
        "/api/v1/datasets/demo",
        f"{TABLES}?dataset=demo&by=sex&include=bounds",
        "/api/v1/hints?dataset=demo&by=sex",
    ):
        assert client.get(path).status_code == 200, path
    assert service.states() == {"demo": "ready"}


def test_readers_can_read_the_public_report(bundled: TestClient, client: TestClient) -> None:
    body = bundled.get("/api/v1/datasets/demo/protection").json()
    report = body["report"]
    assert body["method"]["method"] == "protected-population"
    assert [(o["shown"], o["low"], o["high"]) for o in report["open"]][:2] == [(0, 0, 2), (3, 0, 5)]
    assert 0.05 <= report["changed"] <= 0.95
    assert all(e["error"] % 0.5 == 0 < e["error"] for e in report["errors"])
    assert report["known"] == []
    page = bundled.get("/datasets/demo/about").text
    for words in ("How the numbers are protected", "0 to 5", "Typical errors of counts"):
        assert words in page
    assert "Margins of error" in page
    assert "below 10,000" in page
    assert "A few numbers are off by more" not in page
    assert report["largest"] is None
    plain = {one["variables"]: one["margins"] for one in report["margins"] if not one["own_groups"]}
    table = bundled.get(f"{TABLES}?dataset=demo&by=sex").json()
    largest = max(table["table"]["value"])
    kind = min(k for k in plain if k >= 1)
    margin = plain[kind][sum(largest >= end for end in (10, 100, 1000, 10_000))]
    assert any(f"more than {margin} away" in note for note in table["notes"])
    keyed = client.get("/api/v1/datasets/demo/protection").json()
    assert keyed["report"] is None
    assert keyed["method"]["method"] == "random-rounding"
    assert "How the numbers are protected" not in client.get("/datasets/demo/about").text


def flipped(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda b: flipped(b / "cells.arrow"), "cells.arrow does not have the digest"),
        (lambda b: flipped(b / "policy.toml"), "policy.toml does not have the digest"),
        (lambda b: flipped(b / "report.json"), "report.json does not have the digest"),
        (lambda b: flipped(b / "dataset.json"), "dataset.json does not have the digest"),
        (lambda b: (b / "cells.arrow").unlink(), "cells.arrow cannot be read"),
        (lambda b: (b / "manifest.json").unlink(), "is not a bundle"),
        (lambda b: (b / "manifest.json").write_text("{"), "is not valid JSON"),
        (lambda b: (b / "manifest.json").write_text("[]"), "not that of a bundle"),
        (
            lambda b: (b / "manifest.json").write_text(
                (b / "manifest.json").read_text().replace('"dataset": "demo"', '"dataset": "dem"')
            ),
            "does not have its own digest",
        ),
    ],
)
def test_a_damaged_bundle_is_refused_in_one_sentence(
    damage: Any, sentence: str, bundle: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(bundle, tmp_path / "copy"))
    damage(copy)
    with pytest.raises(DatasetError, match=sentence) as error:
        read_bundle(copy)
    assert str(error.value).count("\n") == 0


def test_a_bundle_that_is_damaged_while_it_is_served_answers_nothing(
    bundle: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(bundle, tmp_path / "copy"))
    service = TableService(bundles=[copy], workers=1)
    query = TableQuery("demo", (Axis("sex"),))
    assert service.answer(query).released
    (copy / "manifest.json").write_text("{")
    with pytest.raises(DatasetError, match="damaged"):
        service.answer(query)
    assert service.states() == {"demo": "unavailable"}
    service.close()


def test_nothing_of_the_records_is_in_a_bundle(root: Path, bundle: Path) -> None:
    assert sorted(p.name for p in bundle.iterdir()) == [
        "cells.arrow", "dataset.json", "manifest.json", "policy.toml", "report.json",
    ]  # fmt: skip
    words = json.loads((bundle / "dataset.json").read_text())
    assert "record_id" not in words["dataset"]
    assert "identifiers" not in words["dataset"]
    everything = b"".join(p.read_bytes() for p in bundle.iterdir())
    secret = (root / "record-keys.secret").read_text().strip()
    assert secret.encode() not in everything
    assert bytes.fromhex(secret) not in everything


def test_what_a_bundle_tells_is_the_same_for_records_with_the_same_protected_numbers(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two populations, one result of the method: every byte of the bundle is the same.

    A server that has the bundle has nothing else, so that all it says is the same too.
    """
    from lustrum.demo import description_path, people
    from lustrum.protect.population.method import ProtectedPopulation
    from lustrum.publish.bundles.make import make_bundle
    from lustrum.tabulate import FrameSource, Secret, Store, ingest, read_description
    from server.conftest import STRICT

    policy = tmp_path / "strict.toml"
    policy.write_text(STRICT)
    own, protect = [], ProtectedPopulation.protect

    def once(self: Any, cells: Any, key: bytes, **options: Any) -> Any:
        own.append(protect(self, cells, key, **options))
        return own[0]

    monkeypatch.setattr(ProtectedPopulation, "protect", once)
    for seed in (1, 2):
        store = Store(tmp_path / f"records{seed}")
        frame = FrameSource(people(2000 + seed, seed))
        secret = Secret(bytes([seed]) * 32)
        ingest(frame, read_description(description_path("demo")), store, secret=secret)
        make_bundle(store, "demo", policy, tmp_path / f"bundle{seed}", workers=1)
    assert own[0].cells.counts.sum() != own[1].cells.counts.sum() or len(own[0].cells) != len(
        own[1].cells
    )
    first, second = (
        {p.name: p.read_bytes() for p in (tmp_path / f"bundle{seed}").iterdir()} for seed in (1, 2)
    )
    assert first == second
