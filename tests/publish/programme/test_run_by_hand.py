"""A run over a tiny register: what stands in which file, what is claimed, and what only the trace says."""

from __future__ import annotations

import csv
import io
import json
import stat
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lustrum.audit.certificate import verify_file
from lustrum.formats.cell_text import number_text
from lustrum.model import DatasetError, InputError, Release, TableAxis
from lustrum.model.variable import Measure
from lustrum.protect.adjustment import ControlledAdjustment
from lustrum.protect.suppression import Suppression
from lustrum.public.prepared import read_prepared
from lustrum.publish.programme import run as run_module
from lustrum.publish.programme.files import MadeTable, SetReport, public_files
from lustrum.publish.programme.read import parse_programme
from lustrum.publish.programme.run import (
    _certified,
    _checked,
    _hidden_before,
    _previous,
    _public_words,
    _require_safe,
    check_beside,
    check_programme,
    run_programme,
    system_trace,
)
from lustrum.publish.programme.spec import Source
from lustrum.publish.programme.system import open_records
from lustrum.publish.waivers import read_waivers
from lustrum.tabulate import FrameSource, Store, ingest
from publish.programme.tiny import (
    BY_BOTH,
    DESCRIPTION,
    EVEN,
    FIRMS,
    PAY,
    PERCENT,
    RULES,
    SECRET,
    dataset,
    firms,
    judged,
    programme,
    systems,
    table,
)

SEX = 'by = ["area", "sex"]\ntotals = true'
AREA = 'by = [{variable = "area", total = true}]'
DATA = 'file = "firms.csv"\ndescription = "tiny.toml"'


def text(*tables: str, one: str = "", rules: str = RULES, head: str = "", data: str = DATA) -> str:
    return (
        f'[programme]\nname = "tiny"\n{head}\n[data]\n{data}\n[[sets]]\nname = "one"\n{one}\n{rules}'
        f"{''.join(tables)}end = true\n"
    )


def write_firms(folder: Path, rows: Any = FIRMS) -> None:
    (folder / "tiny.toml").write_text(DESCRIPTION)
    with (folder / "firms.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(FIRMS[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_firms(tmp_path)
    return tmp_path


def run(place: Path, *tables: str, **words: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Run a programme; what was returned, the public folder and the trace."""
    out, tell = words.pop("out", "public"), words.pop("tell", None)
    made = parse_programme(text(*tables, **words).encode(), "tiny.toml", place)
    found = run_programme(made, place, place / out, place / "trace.json", workers=1, progress=tell)
    trace = json.loads((place / "trace.json").read_text())
    return found, read_prepared(place / out), trace


def report(place: Path, out: str = "public") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / out / "report.json").read_text())
    return found


# A whole run


def test_the_same_records_make_the_same_bytes(place: Path) -> None:
    found = [
        run(place, table("t1", BY_BOTH), table("t2", SEX), out=out)[0] for out in ("one", "two")
    ]
    assert found[0] == found[1]


def test_a_run_writes_what_it_says_and_says_what_it_writes(place: Path) -> None:
    steps: list[tuple[str, float]] = []
    found, folder, trace = run(
        place,
        table("t1", 'title = "Firms & jobs"\n' + BY_BOTH),
        table("t2", SEX),
        head='title = "Tiny <1>"\nperiod = "2025"\nnotes = ["a < b"]',
        one='title = "Set & one"',
        tell=lambda what, share: steps.append((what, share)),
    )
    assert found.digest == folder.digest == trace["public_digest"]
    assert steps[0] == ("reading records", 0.0)
    assert ("reading records", 1.0) in steps
    assert ("one: counting", 0.0) in steps
    assert ("one: counting", 1.0) in steps
    assert ("one: audit", 1.0) in steps
    assert not any(what.startswith("one: one") for what, _ in steps)
    words = report(place)
    assert words["source"] == {"bundle": None, "beside": None}
    assert words["dataset"] == "tiny"
    listed = {one["name"]: one for one in words["tables"]}
    for name, size in (("t1", 12), ("t2", 9)):
        release = folder.release(folder.table(f"{name}.count"))
        hidden = int((~release.shown).sum())
        assert listed[name]["cells"] == size
        assert listed[name]["suppressed"] == hidden
        assert listed[name]["set"] == "one"
        file = place / "public" / "tables" / name / "count.csv"
        rows = list(csv.DictReader(file.read_text().splitlines()))
        assert sum(row["value"] == "" for row in rows) == hidden
        # Every hidden cell has the same letter.
        assert {row["status"] for row in rows if row["value"] == ""} <= {"N"}
        assert set(listed[name]["files"]) == {"csv", "json-stat", "xlsx", "parquet", "table"}
        assert all((place / "public" / file).is_file() for file in listed[name]["files"].values())
    assert found.tables == tuple(
        (one["label"], one["cells"], one["suppressed"]) for one in words["tables"]
    )
    assert listed["t1"]["label"] == "Firms & jobs: number of firms"
    assert listed["t1"]["suppressed"] >= 4
    assert set(words["statuses"]) == {"F", "N"}
    (own,) = words["sets"]
    assert own["method"] == {"method": "suppression", "rules": ["threshold"]}
    assert own["checked"].startswith("An audit found that a reader of all 2 tables together")
    assert own["certificates"] == ["certificates/one.json"]
    proof = verify_file(place / "public" / "certificates" / "one.json")
    assert proof.holds
    page = (place / "public" / "report.html").read_text()
    for said in (
        "<h1>Tiny &lt;1&gt;, 2025</h1>",
        "<p>a &lt; b</p>",
        "<h2>Set &amp; one</h2>",
        "method: suppression, rules: threshold.",
        f"<td class=n>12</td><td class=n>{listed['t1']['suppressed']}</td>",
        '<a href="certificates/one.json">',
        '<a href="tables/t1/count.csv">csv</a>',
        "<li>F: ",
    ):
        assert said in page, said
    assert "table.json" not in page


def test_the_trace_holds_what_the_public_must_not_know(place: Path) -> None:
    _, _, trace = run(place, table("t1", BY_BOTH), head="certificate = false")
    assert stat.S_IMODE((place / "trace.json").stat().st_mode) == 0o600
    assert trace["programme"] == "tiny"
    assert "agency alone" in trace["confidential"]
    ((system,),) = ([one["systems"] for one in trace["sets"]],)
    assert trace["sets"][0]["set"] == "one"
    (system,) = trace["sets"][0]["systems"]
    assert (system["cells"], system["sensitive"], system["safe"]) == (12, 1, True)
    (cell,) = system["sensitive_cells"]
    assert (cell["value"], cell["enough"]) == ("2", True)
    assert not (place / "public" / "certificates").exists()
    assert report(place)["sets"][0]["certificates"] == []


def test_tables_stand_in_the_order_of_the_programme(place: Path) -> None:
    tables = (
        table("b", AREA, "tips", "count"),
        table("a", SEX, "count", "pay"),
    )
    _, folder, trace = run(place, *tables)
    assert [one.id for one in folder.tables] == ["b.tips", "b.count", "a.count", "a.pay"]
    labels = [one.label for one in folder.tables]
    assert labels == ["b: Tips", "b: number of firms", "a: number of firms", "a: Pay (EUR)"]
    assert [one["responses"] for one in trace["sets"][0]["systems"]] == [
        ["tips"],
        ["count"],
        ["pay"],
    ]


def test_each_system_has_a_proof_of_its_own(place: Path) -> None:
    write_firms(place, firms(EVEN | {("n", "a", "m"): 1, ("n", "a", "f"): 0}))
    run(place, table("b", BY_BOTH, "count", "tips"))
    assert report(place)["sets"][0]["certificates"] == [
        "certificates/one-1.json",
        "certificates/one-2.json",
    ]
    assert all(
        verify_file(place / "public" / "certificates" / f"one-{k}.json").holds for k in (1, 2)
    )


def test_nothing_is_proven_where_nothing_is_hidden(place: Path) -> None:
    run(place, table("t", AREA))
    assert report(place)["tables"][0]["suppressed"] == 0
    assert report(place)["sets"][0]["certificates"] == []
    assert set(report(place)["statuses"]) == {"F"}


def test_letters_are_those_of_the_release_where_they_are_asked_for(place: Path) -> None:
    _, folder, _ = run(place, table("t", BY_BOTH, "tips"), head="plain_status = false")
    letters = set(folder.release(folder.tables[0]).status.ravel().tolist())
    assert "N" not in letters
    assert {"F", "D"} < letters
    assert set(report(place)["statuses"]) == letters
    # Then proofs are of sensitive cells alone, which the letters name anyway.
    release = folder.release(folder.tables[0])
    proof = json.loads((place / "public" / "certificates" / "one.json").read_text())
    sensitive = int((~np.isin(release.status, ["F", "D"])).sum())
    assert len(verify_file(place / "public" / "certificates" / "one.json").proven) >= sensitive
    assert proof


def test_formats_are_those_that_were_asked_for(place: Path) -> None:
    run(place, table("t", AREA), head='formats = ["csv"]')
    names = {p.name for p in (place / "public" / "tables" / "t").iterdir()}
    assert names == {"count.csv", "count.table.json"}


@pytest.mark.parametrize(
    ("out", "trace", "good"),
    [
        ("public", "public", False),
        ("public", "public/trace.json", False),
        ("public", "public/deep/trace.json", False),
        ("public", "here/../public/trace.json", False),
        ("public", "public.json", True),
        ("deep/public", "deep/trace.json", True),
    ],
)
def test_the_trace_never_stands_in_the_public_folder(
    place: Path, out: str, trace: str, good: bool
) -> None:
    (place / "deep").mkdir()
    made = parse_programme(text(table("t", AREA)).encode(), "tiny.toml", place)
    if good:
        run_programme(made, place, place / out, place / trace, workers=1)
        assert (place / trace).is_file()
        return
    with pytest.raises(InputError, match="must not stand in the public folder"):
        run_programme(made, place, place / out, place / trace, workers=1)
    assert not (place / out).exists()


def test_a_check_says_what_a_run_would_make(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = table("t1", BY_BOTH, "count", "pay"), table("t2", AREA)
    made = parse_programme(text(*tables, rules=RULES).encode(), "tiny.toml", place)
    assert check_programme(made, place) == ["Set one: 2 tables, 27 cells, by suppression."]
    adjusted = 'method = "controlled-adjustment"'
    made = parse_programme(text(tables[1], one=adjusted).encode(), "tiny.toml", place)
    assert check_programme(made, place) == ["Set one: 1 table, 3 cells, by controlled-adjustment."]
    # A response that no rule can judge is found before anything is counted.
    made = parse_programme(text(*tables, rules=PERCENT).encode(), "tiny.toml", place)
    with pytest.raises(InputError, match="no rule judges 'count'"):
        check_programme(made, place)
    bundle: Any = SimpleNamespace(dataset=dataset(), digest="d")
    monkeypatch.setattr(run_module, "read_bundle", lambda path: bundle)
    made = parse_programme(
        text(tables[1], rules="", data='bundle = "b"').encode(), "tiny.toml", place
    )
    assert check_programme(made, place) == ["Set one: 1 table, 3 cells, by bundle."]


def test_tables_of_a_bundle_are_its_protected_counts(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle: Any = SimpleNamespace(dataset=dataset(), digest="d" * 64)
    asked: list[Any] = []
    area = TableAxis.plain("area", ["n", "s"])

    class Numbers:
        def __init__(self, given: Any, workers: int | None) -> None:
            assert given is bundle
            assert workers == 1

        def views(self, query: Any) -> Any:
            asked.append(query)
            shown = Release(
                (area,), np.array([9, 6]), np.full(2, "F"), {"method": "population", "base": 3}
            )
            return SimpleNamespace(shown=shown)

    monkeypatch.setattr(run_module, "read_bundle", lambda path: bundle)
    monkeypatch.setattr(run_module, "BundleNumbers", Numbers)
    _, folder, trace = run(
        place, table("t", 'by = ["area"]'), rules="", data='bundle = "b"', one='title = "People"'
    )
    assert [query.by[0].variable for query in asked] == ["area"]
    assert trace["sets"] == []
    (own,) = report(place)["sets"]
    assert (own["name"], own["title"]) == ("one", "People")
    assert own["method"] == {"method": "population", "base": 3}
    assert own["checked"].startswith("All numbers are counts of one protected population")
    assert report(place)["source"] == {"bundle": "d" * 64, "beside": None}
    assert folder.release(folder.tables[0]).published.tolist() == [9, 6]
    assert folder.tables[0].label == "t: number of firms"


# One set, and all of them, of which every step is made up


class Steps:
    """Stands for the steps of a run, and remembers what each was told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
        self.asked: dict[str, list[Any]] = {}
        for name, answer in answers.items():
            monkeypatch.setattr(run_module, name, self._spied(name, answer))

    def _spied(self, name: str, answer: Any) -> Any:
        def called(*places: Any, **words: Any) -> Any:
            self.asked.setdefault(name, []).append((places, words))
            return answer(*places, **words) if callable(answer) else answer

        return called


def fake_part(name: str | None, response: str = "count") -> Any:
    return SimpleNamespace(table=name, response=response)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("certificate", [True, False])
def test_a_set_is_judged_protected_audited_proven_and_traced(
    number: int, certificate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = programme(table("t", AREA), table("u", SEX), one='title = "One"').sets[0]
    fakes = [
        SimpleNamespace(number=k, parts=[fake_part("t"), fake_part(None)]) for k in range(number)
    ]
    made = SimpleNamespace(releases=("release", None), pattern="pattern", changes="changes")
    audited = SimpleNamespace(safe=True, seen="seen", enough=np.ones(2, dtype=bool))
    proof = SimpleNamespace(to_json=lambda: "proof")
    steps = Steps(
        monkeypatch,
        systems_of=fakes,
        judge="judged",
        protect_system=made,
        audit_ranges=audited,
        audit_moves=None,
        _certified=[3, 4],
        certificate_of=proof,
        system_trace=lambda *given: f"trace of {fakes.index(given[0])}",
        _previous=lambda system, folder: f"{folder} {fakes.index(system)}",
    )
    told: list[Any] = []
    work: Any = SimpleNamespace(
        programme=SimpleNamespace(certificate=certificate, plain_status=True, publish_rules=False),
        records=SimpleNamespace(background="background"),
        previous="last",
        workers=3,
        tell=lambda what, share: told.append((what, share)),
    )
    tables, report_, proofs, trace = run_module._one_set(work, own)
    assert [(one.table_set, one.table, one.response, one.release) for one in tables] == [
        (own, "t", "count", "release")
    ] * number
    names = ["one"] if number == 1 else ["one-1", "one-2"]
    files = [f"certificates/{name}.json" for name in names] if certificate else []
    assert proofs == dict.fromkeys(files, b"proof")
    public = {"method": "suppression", "rules": ["threshold"]}
    assert report_ == SetReport("one", "One", public, report_.checked, tuple(files))
    assert "all 2 tables together" in report_.checked
    assert trace == {"set": "one", "systems": [f"trace of {k}" for k in range(number)]}
    asked = steps.asked
    assert "audit_moves" not in asked
    for k, system in enumerate(fakes):
        (given, words) = asked["judge"][k]
        assert given == (own, system, "background")
        assert words == {"zeros_shown": True}
        (given, words) = asked["protect_system"][k]
        assert given == (own, system, "judged")
        progress = words.pop("progress")
        assert words == {"description": public, "previous": f"last {k}", "workers": 3}
        progress("searching", 0.5)
        progress("one: searching", 0.6)
        assert told[-2:] == [("one: searching", 0.5), ("one: searching", 0.6)]
        (given, words) = asked["audit_ranges"][k]
        assert given == (system, "judged", made.releases)
        assert words == {"workers": 3, "progress": progress}
        assert asked["system_trace"][k][0] == (system, "judged", audited, "pattern", "changes")
        if certificate:
            assert asked["_certified"][k] == ((system, made.releases), {"plain": True})
            assert asked["certificate_of"][k] == (("seen", [3, 4]), {"progress": progress})
    assert told[:2] == [("one: counting", 0.0), ("one: counting", 1.0)]
    audits = [step for step in told if step[0] == "one: audit"]
    assert audits == [("one: audit", 0.0), ("one: audit", 1.0)] * number
    # One cell that falls short, and nothing is written.
    audited.safe, audited.enough = False, np.array([True, False])
    with pytest.raises(InputError, match="1 sensitive cell too closely"):
        run_module._one_set(work, own)


def test_a_set_without_hidden_cells_or_ranges_has_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    made = SimpleNamespace(releases=("release",), pattern=None, changes=None)
    fake = SimpleNamespace(parts=[fake_part("t")])
    for method, cells, seen in (
        ('"suppression"', [], "seen"),
        ('"suppression"', [3], None),
        ('"controlled-adjustment"', [3], None),
    ):
        own = programme(table("t", AREA), one=f"method = {method}").sets[0]
        audited = SimpleNamespace(safe=True, seen=seen)
        moves = "adjustment" in method
        steps = Steps(
            monkeypatch,
            systems_of=[fake],
            judge="judged",
            protect_system=made,
            audit_ranges=audited,
            audit_moves=audited,
            _certified=cells,
            certificate_of=None,
            system_trace="trace",
            _previous=None,
        )
        work: Any = SimpleNamespace(
            programme=SimpleNamespace(certificate=True, plain_status=True, publish_rules=False),
            records=SimpleNamespace(background="background"),
            previous=None,
            workers=1,
            tell=lambda what, share: None,
        )
        _, report_, proofs, _ = run_module._one_set(work, own)
        assert proofs == {}
        assert report_.certificates == ()
        assert ("audit_moves" in steps.asked) is moves
        assert ("audit_ranges" in steps.asked) is not moves
        assert steps.asked["judge"][0][1] == {"zeros_shown": not moves}
        if moves:
            assert steps.asked["audit_moves"] == [((fake, "judged", ("release",)), {})]


@pytest.mark.parametrize("beside_it", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_all_sets_are_made_from_the_same_records_in_their_order(
    last: bool, beside_it: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = 'previous = "last"' if last else ""
    own = programme(table("b", AREA, "tips", "count"), table("a", SEX, "pay"), head=head)
    if beside_it:
        own = replace(own, source=replace(own.source, beside=Path("/bundle")))
    one, two = own.sets[0].tables
    unchanged: list[int] = []
    opened = SimpleNamespace(
        dataset=dataset(), require_unchanged=lambda: unchanged.append(1), described_by=None
    )
    opened.described_by = lambda described: opened
    tables = [
        MadeTable(own.sets[0], given, response, "release")  # type: ignore[arg-type]
        for given, response in ((two, "pay"), (one, "count"), (one, "tips"))
    ]
    steps = Steps(
        monkeypatch,
        open_records=opened,
        bound_to=lambda given, described: own,
        read_prepared=lambda path: f"folder {path}",
        read_bundle=SimpleNamespace(dataset="of the bundle", digest="digest"),
        check_beside=None,
        _one_set=(tables, "report", {"proof": b""}, {"trace": 1}),
        public_files=("head", "files"),
    )
    told: list[Any] = []
    found = run_module._from_records(own, Path("/data"), 3, lambda *step: told.append(step))
    assert found == ("head", "files", [{"trace": 1}])
    assert told == [("reading records", 0.0), ("reading records", 1.0)]
    asked = steps.asked
    assert asked["open_records"] == [((own.source, Path("/data"), 3), {})]
    ((work, given), _) = asked["_one_set"][0]
    assert given is own.sets[0]
    assert (work.programme, work.records, work.workers) == (own, opened, 3)
    assert work.previous == ("folder /nowhere/last" if last else None)
    assert ("check_beside" in asked) is beside_it
    if beside_it:
        assert asked["check_beside"] == [((own, "of the bundle", opened.dataset), {})]
    ((_, described, made, reports, proofs, source), _) = asked["public_files"][0]
    assert described is opened.dataset
    assert [(each.table.name, each.response) for each in made] == [
        ("b", "tips"),
        ("b", "count"),
        ("a", "pay"),
    ]
    assert (reports, proofs) == (["report"], {"proof": b""})
    assert source == {"bundle": None, "beside": "digest" if beside_it else None}
    assert unchanged == [1]


# What is published beside a bundle


def beside(*measures: Measure) -> Any:
    named = {measure.name for measure in measures}
    parts = {part for measure in measures for part in measure.parts} - named
    return replace(dataset(), measures=(*measures, *(sums(part) for part in sorted(parts))))


def sums(name: str, *parts: str) -> Measure:
    return Measure(name, name, parts=parts)


@pytest.mark.parametrize(
    ("shown", "held", "described", "good"),
    [
        ("pay", (), (), True),
        ("count", (), (), False),
        ("pay", (sums("pay"),), (), False),
        ("pay", (sums("tips"),), (), True),
        # A part of what the bundle holds, and what it is a part of, as the dataset or the bundle says.
        ("tips", (sums("pay"),), (sums("pay", "base", "tips"),), False),
        ("pay", (sums("tips"),), (sums("pay", "base", "tips"),), False),
        ("other", (sums("pay"),), (sums("pay", "base", "tips"),), True),
        # Sums that have nothing to do with the bundle.
        ("own", (sums("pay"),), (sums("own", "tips", "rent"),), True),
        # A part of two sums ties them, whichever is described first.
        ("rent", (sums("pay"),), (sums("own", "tips", "rent"), sums("pay", "base", "tips")), False),
        ("rent", (sums("pay"),), (sums("pay", "base", "tips"), sums("own", "tips", "rent")), False),
    ],
)
def test_exact_numbers_are_not_published_beside_protected_ones(
    shown: str, held: tuple[Measure, ...], described: tuple[Measure, ...], good: bool
) -> None:
    own: Any = SimpleNamespace(
        plain_status=True,
        sets=[SimpleNamespace(tables=[SimpleNamespace(name="t", responses=(shown,))])],
    )
    if good:
        check_beside(own, beside(*held), beside(*described))
        return
    with pytest.raises(InputError, match=f"Table 't' shows '{shown}', which the bundle"):
        check_beside(own, beside(*held), beside(*described))


def test_beside_a_bundle_no_letters_and_no_other_people() -> None:
    own: Any = SimpleNamespace(plain_status=False, sets=[])
    with pytest.raises(InputError, match="letters would tell which cells have few contributors"):
        check_beside(own, dataset(), dataset())
    own.plain_status = True
    check_beside(own, dataset(), dataset())
    with pytest.raises(InputError, match="'beside' is a bundle of 'other', not of 'tiny'"):
        check_beside(own, replace(dataset(), name="other"), dataset())


def test_a_run_beside_a_bundle_names_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: Any = SimpleNamespace(dataset=replace(dataset(), measures=()), digest="e" * 64)
    monkeypatch.setattr(run_module, "read_bundle", lambda path: held)
    data = f'{DATA}\nbeside = "b"\nexistence = "public"'
    run(place, table("t", AREA, "tips"), data=data)
    assert report(place)["source"] == {"bundle": None, "beside": "e" * 64}
    with pytest.raises(InputError, match="exact numbers would undo protected ones"):
        run(place, table("t", AREA), data=data)


# What was hidden in the last period


def test_what_the_last_period_hid_is_known_by_codes(place: Path) -> None:
    _, folder, _ = run(place, table("t", BY_BOTH), head="certificate = false")
    before = folder.release(folder.tables[0])
    hidden = {
        tuple(axis.codes[i] for axis, i in zip(before.axes, at, strict=True))
        for at in np.argwhere(~before.shown)
    }
    assert hidden
    _, (system,) = systems(
        table(
            "t", 'by = [{variable = "job", total = true}, {variable = "area", codes = ["s", "n"]}]'
        )
    )
    (part,) = system.parts
    mask = _hidden_before(part, before)
    found = {
        (part.true.axes[1].codes[at[1]], part.true.axes[0].codes[at[0]])
        for at in np.argwhere(mask).tolist()
    }
    assert found == {cell for cell in hidden if cell[0] != "_T"}
    assert _previous(system, folder) is not None
    assert _previous(system, folder).tolist() == mask.ravel().tolist()  # type: ignore[union-attr]
    assert _previous(system, None) is None
    # Another table, or one of other variables, was not there.
    for words in (
        table("u", BY_BOTH),
        table("t", SEX),
        table("t", BY_BOTH, "pay"),
        table("t", AREA),
    ):
        _, (other,) = systems(words)
        assert not _previous(other, folder).any()  # type: ignore[union-attr]


def test_codes_that_were_not_there_last_time_were_not_hidden() -> None:
    _, (system,) = systems(table("t", BY_BOTH))
    (part,) = system.parts
    axes = TableAxis.plain("job", ["c", "a"]), TableAxis.plain("area", ["s", "old"])
    status = np.array([["N", "N"], ["F", "N"]])
    before = Release(axes, np.zeros((2, 2), dtype=int), status, {"method": "suppression"})
    assert np.argwhere(_hidden_before(part, before)).tolist() == [[1, 2]]


def test_cells_hidden_last_time_are_hidden_again(place: Path) -> None:
    _, first, _ = run(place, table("t1", BY_BOTH), table("t2", SEX), out="last")
    # Other cells would be cheaper this time.
    rows = firms(EVEN | {("n", "a", "m"): 1, ("n", "a", "f"): 1} | {("n", "c", s): 3 for s in "mf"})
    write_firms(place, rows)
    _, second, trace = run(
        place, table("t1", BY_BOTH), table("t2", SEX), head='previous = "last"\ncertificate = false'
    )
    one, two = (f.release(f.table("t1.count")).shown for f in (first, second))
    assert (~one & ~two).sum() == (~one).sum()
    changes = trace["sets"][0]["systems"][0]["suppression"]["against_last_period"]
    assert changes["published_again"] == 0
    assert changes["added"] == int((one & ~two).sum())


# What is claimed


def test_the_public_learns_the_names_of_rules_and_not_their_parameters() -> None:
    two = RULES + RULES.replace("minimum = 3", "minimum = 4") + PERCENT
    tables = table("t", AREA, "pay")
    for head, said in (
        ("", ["threshold", "p-percent"]),
        ("publish_rules = true", [3, 4, None]),
    ):
        own = programme(tables, rules=two, head=head)
        words = _public_words(own, own.sets[0])
        assert words["method"] == "suppression"
        assert set(words) == {"method", "rules"}
        if head:
            assert [rule.get("minimum") for rule in words["rules"]] == said
        else:
            assert words["rules"] == said
    rounded = programme(table("t", AREA), one='method = {method = "controlled-rounding", base = 7}')
    words = _public_words(rounded, rounded.sets[0])
    assert (words["method"], words["base"], words["rules"]) == (
        "controlled-rounding",
        7,
        ["threshold"],
    )
    adjusted = programme(table("t", AREA), one='method = "controlled-adjustment"')
    assert "rule" not in _public_words(adjusted, adjusted.sets[0])


def test_what_was_checked_is_said_as_it_was_checked() -> None:
    one, two = (
        programme(*tables).sets[0]
        for tables in ((table("t", AREA),), (table("t", AREA), table("u", SEX)))
    )
    assert _checked(one, Suppression()).startswith("An audit found that a reader of the table is")
    assert "reader of all 2 tables together" in _checked(two, Suppression())
    moved = _checked(one, ControlledAdjustment())
    assert moved.startswith("Every sensitive number was moved far enough")
    assert "range" not in moved


@pytest.mark.parametrize(
    ("enough", "said"),
    [
        ([True, True], None),
        ([], None),
        ([True, False], "could still work out 1 sensitive cell too closely"),
        ([False, False], "could still work out 2 sensitive cells too closely"),
    ],
)
def test_one_cell_that_falls_short_stops_the_run(enough: list[bool], said: str | None) -> None:
    own: Any = SimpleNamespace(name="one")
    mask = np.array(enough, dtype=bool)
    audited: Any = SimpleNamespace(enough=mask, safe=bool(mask.all()))
    if said is None:
        _require_safe(own, audited)
        return
    with pytest.raises(InputError, match=said):
        _require_safe(own, audited)


def test_adjusted_tables_are_audited_by_their_moves(place: Path) -> None:
    (place / "secret").write_text("5a" * 32 + "\n")
    (place / "secret").chmod(0o600)
    _, folder, trace = run(
        place,
        table("t", BY_BOTH, "tips"),
        one='method = "controlled-adjustment"',
        data=f'{DATA}\nsecret = "secret"',
    )
    assert report(place)["sets"][0]["certificates"] == []
    assert report(place)["sets"][0]["checked"].startswith("Every sensitive number was moved")
    assert "suppression" not in trace["sets"][0]["systems"][0]
    (system,) = trace["sets"][0]["systems"]
    release = folder.release(folder.tables[0])
    true = systems(table("t", BY_BOTH, "tips"))[1][0].parts[0].true.values
    assert system["sensitive_cells"]
    for cell in system["sensitive_cells"]:
        assert (cell["low"], cell["high"]) == (None, None)
        at = np.argwhere(true == int(cell["value"]))[0]
        moved = abs(int(release.published[tuple(at)]) - int(cell["value"]))
        assert moved >= min(int(cell["upper_level"]), int(cell["lower_level"]) or 10**9)


def test_every_step_of_a_run_is_told_what_it_needs(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def spied(name: str) -> None:
        real = getattr(run_module, name)

        def called(*places: Any, **words: Any) -> Any:
            asked[name] = (places, words)
            return real(*places, **words)

        monkeypatch.setattr(run_module, name, called)

    for name in ("open_records", "protect_system", "audit_ranges", "certificate_of"):
        spied(name)
    run(place, table("t", BY_BOTH, "count"))
    assert asked["open_records"][0][2] == 1
    assert asked["protect_system"][1]["workers"] == 1
    assert asked["audit_ranges"][1]["workers"] == 1
    for name in ("protect_system", "audit_ranges", "certificate_of"):
        assert callable(asked[name][1]["progress"])


def test_steps_are_told_in_order_and_by_their_set(place: Path) -> None:
    steps: list[tuple[str, float]] = []
    run(place, table("t", AREA), tell=lambda what, share: steps.append((what, share)))
    assert steps[:4] == [
        ("reading records", 0.0),
        ("reading records", 1.0),
        ("one: counting", 0.0),
        ("one: counting", 1.0),
    ]
    assert steps[-2:] == [("one: audit", 0.0), ("one: audit", 1.0)]
    assert all(
        what.startswith("one: ") and not what.startswith("one: one") for what, _ in steps[2:]
    )


def test_an_empty_cell_that_is_shown_tells_that_hidden_ones_are_not(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    real = run_module.judge

    def spied(*places: Any, **words: Any) -> Any:
        asked.append(words["zeros_shown"])
        return real(*places, **words)

    monkeypatch.setattr(run_module, "judge", spied)
    for method in ('"suppression"', '{method = "suppression", zeros = true}'):
        run(place, table("t", AREA), one=f"method = {method}")
    assert asked == [True, False]


# Which cells are proven


def test_all_hidden_cells_are_proven_unless_letters_tell_which_are_sensitive() -> None:
    _, system, found = judged(table("t1", BY_BOTH), table("t2", SEX))
    releases: list[Any] = []
    letters = np.full((3, 4), "F")
    letters[0, 0], letters[0, 1], letters[1, 1] = "A", "D", "N"
    area = system.parts[0].true.axes
    shown = Release(
        area,
        np.where(letters == "F", system.parts[0].true.values, -1),
        letters,
        {"method": "suppression"},
    )
    releases = [None if k else shown for k in range(len(system.parts))]
    assert _certified(system, tuple(releases), plain=True) == [0, 1, 5]
    assert _certified(system, tuple(releases), plain=False) == [0]
    second = [None, shown]
    moved: Any = SimpleNamespace(spans=[slice(0, 12), slice(20, 32)])
    assert _certified(moved, tuple(second), plain=True) == [20, 21, 25]
    assert found.sensitive.any()


# The trace


def test_the_trace_of_a_system_is_in_its_own_units() -> None:
    own, system, found = judged(table("t", BY_BOTH, "pay", "tips"), one=PAY, rules=RULES)
    sensitive = found.sensitive
    found = replace(found, lower=np.where(sensitive, 7, 0), upper=np.where(sensitive, 11, 0))
    cells = np.flatnonzero(sensitive)
    audited: Any = SimpleNamespace(
        cells=cells,
        low=np.where(np.arange(cells.size) == 0, -np.inf, 1.0),
        high=np.full(cells.size, 12345.0),
        enough=np.arange(cells.size) > 0,
        safe=False,
    )
    pattern: Any = SimpleNamespace(
        primary=np.array([True, False, True]),
        secondary=np.array([False, True, False]),
        cost=7.0,
        lower_bound=5.0,
        gap=0.25,
        algorithm="quick",
        why="because",
        steps=9,
        changes=SimpleNamespace(kept=np.array([3, 4])),
    )
    names = system.known.known.names
    changes: Any = SimpleNamespace(
        cells=[
            SimpleNamespace(cell=0, change="added", why="w0"),
            SimpleNamespace(cell=2, change="published again", why="w2"),
            SimpleNamespace(cell=3, change="added", why="w3"),
        ],
        open_before=np.array([1]),
    )
    words = system_trace(system, found, audited, pattern, changes)
    assert words["responses"] == ["pay", "tips", "base"]
    assert words["relations"] == list(own.relations)
    assert words["cells"] == system.values.size
    assert words["sensitive"] == cells.size
    assert words["safe"] is False
    assert [(t["table"], t["shown"], t["cells"]) for t in words["tables"]] == [
        ("t, pay", True, 12),
        ("t, tips", True, 12),
        ("base", False, 12),
    ]
    for told, finding in zip(words["tables"], found.findings, strict=True):
        assert told["sensitive"] == int(finding.mask.sum()) == sum(told["reasons"].values())
    for k, (row, cell) in enumerate(zip(words["sensitive_cells"], cells.tolist(), strict=True)):
        assert row["cell"] == names[cell]
        assert row["value"] == number_text(int(system.values[cell]), 1)
        assert row["upper_level"] == number_text(int(found.upper[cell]), 1)
        assert row["lower_level"] == number_text(int(found.lower[cell]), 1)
        assert row["low"] == (None if k == 0 else "0.1")
        assert row["high"] == "1234.5"
        assert row["enough"] is (k > 0)
    assert words["suppression"] == {
        "primary": 2,
        "secondary": 1,
        "cost": 7.0,
        "lower_bound": 5.0,
        "gap": 0.25,
        "algorithm": "quick",
        "why": "because",
        "steps": 9,
        "against_last_period": {
            "kept": 2,
            "added": 2,
            "published_again": 1,
            "cells": [
                {"cell": names[0], "change": "added", "why": "w0"},
                {"cell": names[2], "change": "published again", "why": "w2"},
                {"cell": names[3], "change": "added", "why": "w3"},
            ],
            "open_under_the_old_pattern": [names[1]],
        },
    }
    changes.open_before = None
    again = system_trace(system, found, audited, pattern, changes)["suppression"]
    assert again["against_last_period"]["open_under_the_old_pattern"] is None
    assert "against_last_period" not in system_trace(system, found, audited, pattern)["suppression"]
    pattern.changes = None
    without = system_trace(system, found, audited, pattern, changes)["suppression"]
    assert "against_last_period" not in without
    assert "suppression" not in system_trace(system, found, audited, None)


# The files


def test_words_of_a_method_are_plain_in_the_page() -> None:
    own = programme(table("t", AREA))
    axis = TableAxis.plain("area", ["n", "s"])
    release = Release((axis,), np.array([1, -1]), np.array(["F", "D"]), {"method": "m"})
    made = [MadeTable(own.sets[0], own.sets[0].tables[0], "count", release)]
    method = {"method": "m", "rules": [{"rule": "threshold", "minimum": 3}, "p-percent"]}
    sets = [SetReport("one", "One", method, "Checked.", ("certificates/one.json",))]
    head, files = public_files(own, dataset(), made, sets, {"x": b"proof"}, {"bundle": None})
    page = files["report.html"].decode()
    assert "method: m, rules: rule threshold minimum 3, p-percent." in page
    assert "<h1>tiny</h1>" in page
    assert files["x"] == b"proof"
    assert head["source"] == {"bundle": None}
    assert head["tables"][0]["unit"] == release.unit
    assert head["tables"][0]["suppressed"] == 1
    for plain in (True, False):
        said = replace(own, plain_status=plain)
        _, files = public_files(said, dataset(), made, sets, {}, {"bundle": None})
        letters = {"F", "N" if plain else "D"}
        assert set(json.loads(files["report.json"])["statuses"]) == letters
        stem = "tables/t/count"
        columns = pq.read_table(io.BytesIO(files[f"{stem}.parquet"]))
        assert columns.to_pylist() == [
            {"area": "n", "value": 1, "status": "F"},
            {"area": "s", "value": None, "status": max(letters - {"F"})},
        ]
        rows = list(csv.DictReader(files[f"{stem}.csv"].decode().splitlines()))
        assert {row["status"] for row in rows} == letters
        assert [row["value"] for row in rows] == ["1", ""]
        place = head["tables"][0]["files"]["json-stat"]
        assert json.loads(files[place])["label"] == "t: number of firms"


# The records


def test_records_of_a_file_are_those_of_its_rows(place: Path) -> None:
    (place / "w.txt").write_text("g1\n# g2\n\n g3 \n")
    (place / "q.txt").write_text("g4\n")
    source = Source(
        file=place / "firms.csv",
        description=place / "tiny.toml",
        waivers=place / "w.txt",
        requests=place / "q.txt",
    )
    found = open_records(source, place, 1)
    assert found.background == read_waivers(place / "w.txt", place / "q.txt")
    assert (len(found.background.waived), len(found.background.requested)) == (2, 1)
    assert sum(chunk.rows for chunk in found.engine.chunks) == len(FIRMS)
    assert found.engine._workers == 1
    assert found.dataset.name == "tiny"
    assert all(chunk.keys is None for chunk in found.engine.chunks)
    (place / "secret").write_text(SECRET.value.hex() + "\n")
    (place / "secret").chmod(0o600)
    keyed = open_records(replace(source, secret=place / "secret"), place, 1)
    assert all(chunk.keys is not None for chunk in keyed.engine.chunks)
    renamed = found.described_by(replace(dataset(), title="Other"))
    assert renamed.dataset.title == "Other"
    assert renamed.background is found.background
    found.require_unchanged()
    write_firms(place, [])
    with pytest.raises(InputError, match="has no records"):
        open_records(source, place, 1)


def test_records_of_a_dataset_are_those_of_the_folder(place: Path) -> None:
    store = Store(place)
    ingest(FrameSource(pa.Table.from_pylist(FIRMS)), dataset(), store, secret=SECRET)
    found = open_records(Source(dataset="tiny"), place, 1)
    assert sum(chunk.rows for chunk in found.engine.chunks) == len(FIRMS)
    assert found.engine._workers == 1
    found.require_unchanged()
    file = next(p for p in sorted(found.engine.files.folder.iterdir()) if p.suffix != ".json")  # type: ignore[attr-defined]
    file.chmod(0o600)
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(DatasetError, match="its files changed while it was in use"):
        found.require_unchanged()
    with pytest.raises(DatasetError, match=r"There is no dataset 'tinny' in .*did you mean 'tiny'"):
        open_records(Source(dataset="tinny"), place, 1)


def test_those_who_asked_are_protected(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    rules = '[[sets.rules]]\nrule = "request"\nshares = [30]\n'
    rows = firms(EVEN)
    first = next(row for row in rows if (row["area"], row["job"]) == ("s", "b"))
    first["tips"] = 99
    write_firms(place, rows)
    second = next(row for row in rows if row["firm"] != first["firm"] and row["tips"] < 99)

    def hidden(*asked: str) -> Any:
        (place / "asked.txt").write_text("\n".join(asked) + "\n")
        caplog.clear()
        _, folder, _ = run(
            place,
            table("t", BY_BOTH, "tips"),
            rules=rules,
            data=f'{DATA}\nrequests = "asked.txt"',
            head="certificate = false",
        )
        return ~folder.release(folder.tables[0]).shown

    assert not hidden(second["firm"]).any()
    assert "no record" not in caplog.text
    assert hidden(first["firm"], "some other firm")[1, 1]
    assert "1 of 2 names have no record" in caplog.text
    assert "other firm" not in caplog.text
    with pytest.raises(InputError, match="nobody named there has a record"):
        hidden("some other firm")


def test_a_dataset_that_changed_meanwhile_stops_the_run(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(self: Any) -> None:
        raise DatasetError("it changed")

    monkeypatch.setattr(run_module.RecordSource, "require_unchanged", changed)
    with pytest.raises(DatasetError, match="it changed"):
        run(place, table("t", AREA))
    assert not (place / "public").exists()
