"""A run over a tiny register: what stands in which file, what is claimed, and what only the trace says."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lustrum.audit.certificate import verify_file
from lustrum.formats.cell_text import number_text
from lustrum.model import DatasetError, InputError, Release, TableAxis
from lustrum.model.variable import Measure
from lustrum.public.prepared import read_prepared
from lustrum.publish.programme import run as run_module
from lustrum.publish.programme.audit import audit_ranges
from lustrum.publish.programme.protect import protect_system
from lustrum.publish.programme.read import parse_programme

# Of the last period one table alone; a run of both periods takes seconds.
from lustrum.publish.programme.run import (
    _hidden_before,
    _previous,
    _public_words,
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
    # All hidden cells are proven: proofs of some would tell that these are the sensitive ones.
    assert len(proof.proven) == sum(one["suppressed"] for one in words["tables"])
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


def test_tables_stand_in_the_order_of_the_programme(place: Path) -> None:
    tables = (table("b", AREA, "tips", "count"), table("a", SEX, "count", "pay"))
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
    sensitive = int((~np.isin(release.status, ["F", "D"])).sum())
    proof = verify_file(place / "public" / "certificates" / "one.json")
    assert len(proof.proven) == sensitive > 0


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


# One set, and all of them, of which every step is made up


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


# What is claimed


def test_the_public_learns_the_names_of_rules_and_not_their_parameters() -> None:
    two = RULES + RULES.replace("minimum = 3", "minimum = 4") + PERCENT
    tables = table("t", AREA, "pay")
    for head, said in (("", ["threshold", "p-percent"]), ("publish_rules = true", [3, 4, None])):
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


# The trace


def test_the_trace_of_a_system_is_in_its_own_units() -> None:
    own, system, found = judged(table("t", BY_BOTH, "pay", "tips"), one=PAY, rules=RULES)
    made = protect_system(own, system, found, description={}, workers=1)
    audited = audit_ranges(system, found, made.releases, workers=1)
    words = system_trace(system, found, audited, made.pattern)
    assert words["responses"] == ["pay", "tips", "base"]
    assert words["relations"] == list(own.relations)
    assert [(t["table"], t["shown"], t["cells"]) for t in words["tables"]] == [
        ("t, pay", True, 12),
        ("t, tips", True, 12),
        ("base", False, 12),
    ]
    for said, finding in zip(words["tables"], found.findings, strict=True):
        assert said["sensitive"] == int(finding.mask.sum()) == sum(said["reasons"].values())
    cells = np.flatnonzero(found.sensitive)
    assert words["sensitive"] == cells.size > 0
    ends = zip(audited.low.tolist(), audited.high.tolist(), strict=True)
    for row, cell, (low, high) in zip(words["sensitive_cells"], cells.tolist(), ends, strict=True):
        assert row["cell"] == system.known.known.names[cell]
        for key, number in (
            ("value", system.values[cell]),
            ("upper_level", found.upper[cell]),
            ("lower_level", found.lower[cell]),
            ("low", low),
            ("high", high),
        ):
            assert row[key] == number_text(round(number), 1)
    assert words["suppression"]["primary"] == int(made.pattern.primary.sum())
    assert words["suppression"]["secondary"] == int(made.pattern.secondary.sum())
    short = replace(audited, enough=np.zeros(cells.size, dtype=bool))
    words = system_trace(system, found, short, None)
    assert not words["safe"]
    assert not any(row["enough"] for row in words["sensitive_cells"])


# The files


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
