"""Tables from files that are suppressed: what is read of them, what is written, and what is read back."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import openpyxl
import pytest
from scipy.optimize import linprog

from lustrum.audit.certificate import verify_file
from lustrum.formats.write import write_release
from lustrum.model import Category, DatasetError, InputError, InternalError, Table, TableAxis
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.suppression import Suppression
from lustrum.publish.suppression import files as files_module
from lustrum.publish.suppression.files import (
    SuppressFiles,
    WrittenTable,
    _enough,  # ranges that no pattern of ours leaves
    audit_of_files,
    drafts,
    publish_drafts,
    write_files,
)
from lustrum.publish.suppression.inputs import cells_of_all, previous_masks, rule_for
from lustrum.publish.suppression.tables import TablesTogether
from lustrum.readers.confidential import TrueFile, read_true
from lustrum.readers.true_tables import members_of, true_table
from lustrum.runtime import durable
from lustrum.sensitivity import Background, GivenCells, Threshold


def axis(name: str, codes: str) -> TableAxis:
    plain = TableAxis.plain(name, list(codes)).categories
    total = Category("_T", "Total", tuple(range(len(codes))))
    return TableAxis(name, name, (*plain, total))


def counts(names: tuple[str, str] = ("area", "job"), second: str = "abc") -> Table:
    """Two by three or two with totals; the tables agree on the totals of areas."""
    inner = np.array([[1, 5, 6], [7, 8, 9]]) if second == "abc" else np.array([[4, 8], [12, 12]])
    values = np.zeros((3, inner.shape[1] + 1), dtype=np.int64)
    values[:2, :-1] = inner
    values[:2, -1] = inner.sum(axis=1)
    values[2] = values[:2].sum(axis=0)
    axes = axis(names[0], "ns"), axis(names[1], second)
    return replace(Table.from_counts(values), axes=axes)


TWO = counts(), counts(("area", "sex"), "mf")
# Both have a small cell, so that both hide some.
PAIR = (
    TWO[0],
    replace(
        Table.from_counts(np.array([[1, 11, 12], [12, 12, 24], [13, 23, 36]])), axes=TWO[1].axes
    ),
)


def together(*tables: Table, spec: Suppression | None = None, **words: Any) -> TablesTogether:
    number = len(tables)
    own = spec or Suppression(rule=Threshold(3))
    given = {"frozen": [None] * number, "never": [None] * number, "named": True} | words
    return TablesTogether([own] * number, tables, Background(), **given)


def written(*tables: Table, paths: Any = (), **words: Any) -> list[WrittenTable]:
    own = together(*tables, **words)
    names = paths or [Path(f"t{k}.csv") for k in range(len(tables))]
    return own.protected(names, own.patterns())


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


# Where files may be written


@pytest.mark.parametrize(
    ("files", "tables", "previous", "said"),
    [
        ({}, ["t.csv"], None, None),
        ({"out": "o.csv"}, ["t.csv"], None, None),
        ({"out": "o.pdf"}, ["t.csv"], None, "o.pdf"),
        ({"out": "t.csv"}, ["t.csv"], None, "read, or written already"),
        ({"out": "here/../t.csv"}, ["t.csv"], None, "read, or written already"),
        ({"ranges": "t.csv"}, ["t.csv"], None, "read, or written already"),
        ({"certificate": "t.csv"}, ["t.csv"], None, "read, or written already"),
        ({"out": "o.csv", "ranges": "o.csv"}, ["t.csv"], None, "read, or written already"),
        ({"ranges": "o.csv", "changes": "o.csv"}, ["t.csv"], "p.csv", "read, or written already"),
        ({"picture": "o.svg", "certificate": "o.svg"}, ["t.csv"], None, "read, or written"),
        ({"out": "p.csv"}, ["t.csv"], "p.csv", None),
        ({"ranges": "p.csv"}, ["t.csv"], "p.csv", "read, or written already"),
        ({"changes": "p.csv"}, ["t.csv"], "p.csv", "read, or written already"),
        ({"picture": "o.png"}, ["t.csv"], None, "a picture is a file of .svg or .html"),
        ({"picture": "o.SVG"}, ["t.csv"], None, None),
        ({"picture": "o.html"}, ["t.csv"], None, None),
        ({"ranges": "o.txt"}, ["t.csv"], None, "ranges are written to a file of .csv"),
        ({"ranges": "o.CSV"}, ["t.csv"], None, None),
        ({"changes": "o.txt"}, ["t.csv"], "p.csv", "changes are written to a file of .csv"),
        ({"changes": "o.csv"}, ["t.csv"], None, "--changes needs the last period's table"),
        ({"changes": "o.csv"}, ["t.csv"], "p.csv", None),
        # Several tables
        ({}, ["t.csv", "u.csv"], None, None),
        ({}, ["t.csv", "deep/t.csv"], None, "files of different names"),
        ({"out": "o.csv"}, ["t.csv", "u.csv"], None, "name a folder with --out"),
        ({"out": "public"}, ["t.csv", "u.csv"], None, None),
        ({"out": "."}, ["t.csv", "u.csv"], None, "the true tables are in this folder"),
        ({"out": "folder.csv"}, ["t.csv"], None, "this is a folder; name a file"),
        ({"ranges": "folder.csv"}, ["t.csv"], None, "this is a folder; name a file"),
        ({"out": "public"}, ["t.csv", "u.pdf"], None, "u.pdf"),
        # Ranges are confidential, and the folder is public.
        ({"out": "public", "ranges": "public/u.csv"}, ["t.csv", "u.csv"], None, "read, or written"),
        ({"out": "public", "ranges": "public/r.csv"}, ["t.csv", "u.csv"], None, None),
        ({"out": "public"}, ["t.csv", "u.csv"], "public", None),
        ({"ranges": "public/t.csv"}, ["t.csv", "u.csv"], "public", "read, or written already"),
    ],
)
def test_no_file_is_written_over_another_one(
    tmp_path: Path, files: dict[str, str], tables: list[str], previous: str | None, said: str | None
) -> None:
    for folder in ("public", "here", "deep", "folder.csv"):
        (tmp_path / folder).mkdir()
    made = SuppressFiles(**{key: tmp_path / name for key, name in files.items()})
    paths = [tmp_path / name for name in tables]
    last = None if previous is None else tmp_path / previous
    if said is None:
        made.check(paths, last)
        return
    with pytest.raises(InputError) as error:
        made.check(paths, last)
    assert said in str(error.value)


# What is written


def test_tables_are_put_in_their_places_together_or_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(durable, "sync", synced.append)
    made = written(*TWO)
    out = SuppressFiles(out=tmp_path)
    with drafts(made, out) as paths:
        assert [path.name for path in paths] == ["t0.csv", "t1.csv"]
        assert all(path.is_file() for path in paths)
        # Beside their places, so that they can be put there at once, and under a name that says what they are.
        assert {path.parent.parent for path in paths} == {tmp_path}
        assert all(path.parent.name.startswith(".not-audited-") for path in paths)
        assert not list(tmp_path.glob("*.csv"))
    assert list(tmp_path.iterdir()) == []
    assert tmp_path not in synced
    with drafts(made, out) as paths:
        assert publish_drafts(paths) == [tmp_path / "t0.csv", tmp_path / "t1.csv"]
    # Without the earlier ones, and with the new ones.
    assert synced[-2:] == [tmp_path, tmp_path]
    names = [f"t{i}.csv{end}" for i in (0, 1) for end in ("", ".layout.toml")]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    for one in made:
        rows = rows_of(tmp_path / one.path.name)
        assert [row["value"] == "" for row in rows] == (~one.release.shown).ravel().tolist()
    with drafts(written(TWO[0]), SuppressFiles(out=tmp_path / "one.csv")) as paths:
        assert publish_drafts(paths) == [tmp_path / "one.csv"]
    with drafts(made, SuppressFiles()) as paths:
        assert publish_drafts(paths) == []


@pytest.mark.parametrize("failing", range(7))
def test_an_earlier_table_never_stands_beside_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Tables of two patterns together can tell what each of them hides."""
    made = written(*TWO)
    out = SuppressFiles(out=tmp_path)
    for one in made:
        (tmp_path / one.path.name).write_text("earlier")
    plain = Path.replace
    steps: list[list[bool]] = []

    def step(path: Path, to: Path) -> Path:
        if tmp_path in (path.parent, to.parent):
            steps.append([f.read_text() == "earlier" for f in sorted(tmp_path.glob("*.csv"))])
        if len(steps) == failing + 1:
            raise OSError(28, "No space left on device")
        return plain(path, to)

    monkeypatch.setattr(Path, "replace", step)
    with drafts(made, out) as paths:
        if failing < 3 * len(made):
            with pytest.raises(DatasetError, match="No space left on device"):
                publish_drafts(paths)
        else:
            publish_drafts(paths)
    after = [(tmp_path / one.path.name).read_text() == "earlier" for one in made]
    assert all(len(set(stands)) < 2 for stands in [*steps, after])
    assert after[0] == (failing < 3 * len(made))
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == [one.path.name for one in made]


@pytest.mark.parametrize("several", [False, True])
def test_ranges_are_what_a_reader_of_all_tables_can_work_out(tmp_path: Path, several: bool) -> None:
    tables = PAIR if several else PAIR[:1]
    made = written(*tables, paths=[Path("=one.csv"), Path("two.csv")][: len(tables)])
    said: list[str] = []
    told: list[str] = []
    out = SuppressFiles(ranges=tmp_path / "r.csv")
    write_files(made, out, None, said.append, told.append)
    assert said == [f"The ranges are in {tmp_path / 'r.csv'}; they are confidential."]
    assert told == ["working out ranges"]
    rows = rows_of(tmp_path / "r.csv")
    wanted = []
    inner = [(a, j, s) for a in "ns" for j in "abc" for s in "mf"]

    def weight(one: WrittenTable, place: Any) -> list[float]:
        at = {ax.name: ax.codes[i] for ax, i in zip(one.release.axes, place, strict=True)}
        names = ("area", "job", "sex")
        return [
            float(all(at.get(n, "_T") in ("_T", c) for n, c in zip(names, cell, strict=True)))
            for cell in inner
        ]

    facts, ends, under, least = [], [], [], []
    for one in made:
        for place in np.ndindex(one.release.shape):
            if one.release.shown[place]:
                facts.append(weight(one, place))
                ends.append(float(one.release.published[place]))
            else:
                under.append([-w for w in weight(one, place)])
                least.append(-1.0)
    for one in made:
        for place in map(tuple, np.argwhere(~one.release.shown)):
            goal = np.array(weight(one, place))
            low, high = (
                linprog(
                    sign * goal,
                    A_eq=facts,
                    b_eq=ends,
                    A_ub=under,
                    b_ub=least,
                    bounds=(0, None),
                    method="highs",
                ).fun
                for sign in (1, -1)
            )
            codes = {ax.name: ax.codes[i] for ax, i in zip(one.release.axes, place, strict=True)}
            names = ("area", "job", "sex") if several else ("area", "job")
            row = {name: codes.get(name, "") for name in names}
            own = {"table": f"'{one.path.name}" if one.path.name[0] == "=" else one.path.name}
            sensitive = bool(one.wanted.mask[place])
            wanted.append(
                (own if several else {})
                | row
                | {
                    "status": "A" if sensitive else "D",
                    "low": str(round(low)),
                    "high": str(round(-high)),
                    "sharp": "yes",
                    "enough": "yes" if sensitive else "",
                }
            )
    assert len(wanted) >= 4
    assert rows == wanted


@pytest.mark.parametrize("kinds", [("count", "count"), ("count", "magnitude"), ("magnitude",) * 2])
def test_ranges_are_whole_for_counts_and_say_if_they_may_be_narrower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: tuple[Any, ...]
) -> None:
    made = [
        replace(one, table=replace(one.table, kind=kind))
        for one, kind in zip(written(*PAIR), kinds, strict=True)
    ]
    asked: list[Any] = []

    def bounds(known: Any, cells: list[int], **words: Any) -> Any:
        asked.append((known.whole, words, cells))
        ends = [np.full(len(cells), end) for end in (2.5, 7.5)]
        return SimpleNamespace(low=ends[0], high=ends[1], sharp=np.zeros(len(cells), dtype=bool))

    monkeypatch.setattr(files_module, "bounds", bounds)
    out = SuppressFiles(ranges=tmp_path / "r.csv")
    write_files(made, out, None, lambda words: None, lambda words: None)
    counts_ = kinds == ("count", "count")
    hidden = [np.flatnonzero(~one.release.shown.ravel()) for one in made]
    assert asked == [
        (counts_, {"integer": counts_}, hidden[0].tolist()),
        (counts_, {"integer": counts_}, (hidden[1] + 12).tolist()),
    ]
    rows = rows_of(tmp_path / "r.csv")
    assert {(row["low"], row["high"], row["sharp"]) for row in rows} == {("3", "7", "no")}


def test_a_proof_is_of_every_hidden_cell_and_pictures_are_of_releases(tmp_path: Path) -> None:
    made = written(*PAIR)
    assert all(not one.release.shown.all() for one in made)
    out = SuppressFiles(
        certificate=tmp_path / "proof.json", picture=tmp_path / "p.svg", ranges=tmp_path / "r.csv"
    )
    said: list[str] = []
    told: list[str] = []
    write_files(made, out, None, said.append, told.append)
    report = verify_file(tmp_path / "proof.json")
    assert report.holds
    hidden = sum(int((~one.release.shown).sum()) for one in made)
    assert len(report.proven) == hidden
    assert told == ["working out ranges", "proving ranges"]
    assert [sentence.split(" in ")[0] for sentence in said] == [
        "The picture is",
        "The ranges are",
        "The proof is",
    ]
    picture = (tmp_path / "p.svg").read_text()
    assert picture.startswith("<svg")
    assert "t0.csv: area by job" in picture
    page = SuppressFiles(picture=tmp_path / "p.HTML")
    write_files(made[:1], page, None, said.append, told.append)
    words = (tmp_path / "p.HTML").read_text()
    assert "<html" in words
    assert "area by job" in words
    assert "t0.csv" not in words


@pytest.mark.parametrize(
    ("low", "high", "sharp", "said"),
    [
        (15, 26, True, "yes"),
        (16, 26, True, "no"),
        (15, 25, True, "no"),
        (14, 27, True, "yes"),
        (15 + 5e-7, 26 - 5e-7, True, "yes"),
        (15 + 2e-6, 26, True, "no"),
        (15, 26 - 2e-6, True, "no"),
        (15, 26, False, "not proven"),
        (16, 26, False, "no"),
    ],
)
def test_a_range_is_enough_if_it_reaches_the_levels(
    low: float, high: float, sharp: bool, said: str
) -> None:
    one: Any = SimpleNamespace(
        wanted=SimpleNamespace(
            mask=np.array([True, False]), upper=np.array([6, 0]), sliding=np.array([11, 0])
        ),
        lower=np.array([5, 0]),
        table=SimpleNamespace(values=np.array([20, 9])),
    )
    found: Any = SimpleNamespace(
        low=np.array([low]), high=np.array([high]), sharp=np.array([sharp])
    )
    assert _enough(one, (0,), found, 0) == said
    assert _enough(one, (1,), found, 0) == ""
    # A range that must be wide in all falls short though both ends reach.
    one.wanted.sliding[0] = 13
    assert _enough(one, (0,), found, 0) == ("yes" if (low, high) == (14, 27) else "no")
    one.wanted.sliding[0] = 14
    assert _enough(one, (0,), found, 0) == "no"
    # Both ends reach, and the width is short of 12 by more than two numbers of a solver can be.
    one.wanted.sliding[0] = 12
    for short, word in ((1.5e-6, "yes"), (2.5e-6, "no")):
        near: Any = SimpleNamespace(
            low=np.array([14.5 + short]), high=np.array([26.5]), sharp=np.array([True])
        )
        assert _enough(one, (0,), near, 0) == word


def test_open_ends_of_ranges_are_empty_and_others_are_in_units_of_the_table() -> None:
    one: Any = SimpleNamespace(release=SimpleNamespace(decimals=1))
    ends = np.array([12.2, 12.8, -np.inf, np.inf, 12.0 + 1e-9, 12.0 - 1e-9])
    lows = [files_module._end(ends, k, up=True, one=one) for k in range(6)]
    highs = [files_module._end(ends, k, up=False, one=one) for k in range(6)]
    assert lows == ["1.3", "1.3", "", "", "1.2", "1.2"]
    assert highs == ["1.2", "1.2", "", "", "1.2", "1.2"]


# What is read back


def draft(tmp_path: Path, one: WrittenTable, change: Any = None) -> Path:
    path = tmp_path / one.path.name
    write_release(one.release, path)
    if change is not None:
        rows = [row.split(",") for row in path.read_text().splitlines()]
        path.write_text("\n".join(",".join(row) for row in change(rows)) + "\n")
    return path


def put(row: int, column: int, word: str) -> Any:
    def change(rows: list[list[str]]) -> list[list[str]]:
        rows[row][column] = word
        return rows

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (None, None),
        # The first row is n by a, hidden; the third is n by c or another that is shown.
        (lambda rows: put(shown_row(rows), -2, "777")(rows), "shows another value"),
        (lambda rows: put(hidden_row(rows), -2, "1")(put(hidden_row(rows), -1, "F")(rows)), None),
        (lambda rows: put(shown_row(rows), -2, "")(put(shown_row(rows), -1, "N")(rows)), "hides"),
        (lambda rows: put(hidden_row(rows), -1, "D")(rows), "tells hidden cells apart"),
        (lambda rows: put(1, 0, "zz")(rows), "has other codes"),
        (lambda rows: put(0, 0, "region")(rows), "has other variables"),
        (lambda rows: [[*row, "3" if k else "note"] for k, row in enumerate(rows)], "tells more"),
    ],
)
def test_a_file_that_tells_another_thing_is_not_published(
    tmp_path: Path, change: Any, said: str | None
) -> None:
    (one,) = written(TWO[0])
    problem = together(TWO[0]).attacked()
    path = draft(tmp_path, one, change)
    if change is None:
        assert audit_of_files([path], [one], problem) is None
        return
    with pytest.raises(InternalError) as error:
        audit_of_files([path], [one], problem)
    assert "than what was audited, so it is not published" in str(error.value)
    assert str(error.value).startswith("t0.csv ")
    if said is not None:
        assert said in str(error.value)


def hidden_row(rows: list[list[str]]) -> int:
    return next(k for k, row in enumerate(rows) if k and row[-2] == "")


def shown_row(rows: list[list[str]]) -> int:
    return next(k for k, row in enumerate(rows) if k and row[-2] != "")


@pytest.mark.parametrize(
    ("sheet", "place", "word", "said"),
    [
        (None, "", "", None),
        ("Notes", "A9", 1, "tells more"),
        ("Notes", "A9", "see the hidden ones", None),
        ("Table", "B4", 777, "tells more"),
        ("Table", "B4", "=1+1", "tells more"),
        ("Cells", "J2", 1, "tells more"),
        ("Cells", "E2", 1, "than what was audited"),
    ],
)
def test_every_sheet_of_a_workbook_is_read_back(
    tmp_path: Path, sheet: str | None, place: str, word: Any, said: str | None
) -> None:
    (one,) = written(TWO[0], paths=[Path("t.xlsx")])
    path = tmp_path / "t.xlsx"
    write_release(one.release, path)
    if sheet is not None:
        book = openpyxl.load_workbook(path)
        book[sheet][place] = word
        book.save(path)
    problem = together(TWO[0]).attacked()
    if said is None:
        assert audit_of_files([path], [one], problem) is None
        return
    with pytest.raises(InternalError, match=said):
        audit_of_files([path], [one], problem)


def test_letters_that_the_release_states_may_stand_in_its_file(tmp_path: Path) -> None:
    spec = Suppression(rule=Threshold(3), reasons=True)
    (one,) = written(TWO[0], spec=spec)
    assert {"D"} <= set(one.release.status.ravel().tolist())
    path = draft(tmp_path, one)
    audit_of_files([path], [one], together(TWO[0], spec=spec).attacked())


def test_an_interval_that_tells_too_much_is_found(tmp_path: Path) -> None:
    spec = Suppression(rule=Threshold(3), partial=True)
    (one,) = written(TWO[0], spec=spec)
    problem = together(TWO[0], spec=spec).attacked()
    at = tuple(np.argwhere(one.wanted.mask)[0])
    low, high = one.release.least.copy(), one.release.most.copy()
    # It is 1, and must seem to be 3 at least.
    low[at], high[at] = 1, 2
    narrow = replace(one, release=replace(one.release, least=low, most=high))
    found = audit_of_files([draft(tmp_path, narrow)], [narrow], problem)
    assert not found.safe
    low[at], high[at] = 1, 3
    wide = replace(one, release=replace(one.release, least=low, most=high))
    assert audit_of_files([draft(tmp_path, wide)], [wide], problem).safe  # type: ignore[union-attr]


@pytest.mark.parametrize("stating", [0, 1])
def test_intervals_of_one_file_among_several_are_audited(tmp_path: Path, stating: int) -> None:
    made = written(*PAIR)
    one = made[stating]
    at = tuple(np.argwhere(one.wanted.mask)[0])
    low, high = (np.where(one.release.shown, one.table.values, e) for e in (-UNBOUNDED, UNBOUNDED))
    low[at], high[at] = 1, 2
    made[stating] = replace(one, release=replace(one.release, least=low, most=high))
    paths = [draft(tmp_path, one) for one in made]
    found = audit_of_files(paths, made, together(*PAIR).attacked())
    assert not found.safe


@pytest.mark.parametrize(
    ("place", "low", "high", "safe"),
    [
        # The cell itself is 1, and must seem to be 3 at least; 6 in all are in it and the next one.
        ((0, 0), None, 2, False),
        ((0, 0), None, 3, True),
        ((0, 1), 501, None, False),
        ((0, 1), 499, None, True),
    ],
)
def test_one_stated_end_is_audited_too(
    tmp_path: Path, place: tuple[int, int], low: int | None, high: int | None, safe: bool
) -> None:
    values = np.array([[1, 501, 600], [700, 800, 900]])
    values = np.hstack([values, values.sum(axis=1, keepdims=True)])
    values = np.vstack([values, values.sum(axis=0)])
    large = replace(Table.from_counts(values), axes=TWO[0].axes)
    (one,) = written(large)
    assert not one.release.shown[0, 0]
    assert not one.release.shown[0, 1]
    ends = [np.where(one.release.shown, values, end) for end in (-UNBOUNDED, UNBOUNDED)]
    ends[0][place] = 0 if low is None else low
    ends[1][place] = 10**6 if high is None else high
    stating = replace(one, release=replace(one.release, least=ends[0], most=ends[1]))
    found = audit_of_files([draft(tmp_path, stating)], [stating], together(large).attacked())
    assert found.safe is safe


# Tables together


def test_an_attacker_of_three_tables_knows_their_cube() -> None:
    third = counts(("job", "sex"), "mf")
    inner = np.array([[5, 3], [6, 7], [5, 10]])
    values = np.zeros((4, 3), dtype=np.int64)
    values[:3, :2] = inner
    values[:3, 2] = inner.sum(axis=1)
    values[3] = values[:3].sum(axis=0)
    third = replace(Table.from_counts(values), axes=(axis("job", "abc"), axis("sex", "mf")))
    for tables, more in ((TWO[:1], False), (TWO, False), ((*TWO, third), True)):
        own = together(*tables)
        cells = sum(table.values.size for table in tables)
        assert len(own.problem()) == cells
        assert (len(own.attacked()) > cells) is more


def test_what_changed_is_counted_over_all_tables() -> None:
    before: Any = [None, np.ones((3, 3), dtype=bool)]
    own = together(*TWO, before=before)
    patterns = own.patterns()
    found = own.changes(own.problem(), patterns)
    now = np.concatenate([one.suppressed for one in patterns])
    old = np.concatenate([np.zeros(12, dtype=bool), np.ones(9, dtype=bool)])
    told = {one.cell: one.change for one in found.cells}
    wanted = {int(c): "added" for c in np.flatnonzero(now & ~old)}
    wanted |= {int(c): "published again" for c in np.flatnonzero(~now & old)}
    assert told == wanted
    assert "added" in told.values()


def test_a_written_table_holds_what_its_rule_found() -> None:
    made = written(*TWO)
    assert [one.path.name for one in made] == ["t0.csv", "t1.csv"]
    for one, table in zip(made, TWO, strict=True):
        assert one.table is table
        assert one.wanted.mask.tolist() == Threshold(3).judge(table).mask.tolist()
        assert one.release.shown.ravel().tolist() == (~one.pattern.suppressed).tolist()
        # A hidden count holds somebody, so nothing is asked for below a small one.
        assert not one.lower.any()
    zeros = written(TWO[0], spec=Suppression(rule=Threshold(3), zeros=True))[0]
    assert zeros.lower[0, 0] == min(1, int(zeros.wanted.lower[0, 0]))


# What is read


def true_file(tmp_path: Path, text: str) -> TrueFile:
    path = tmp_path / "t.csv"
    path.write_text(text)
    return read_true(path)


def confidential(file: TrueFile) -> Table:
    return true_table(file, members_of([file]), assumed="sums")


LEVELS = """area,value,primary,upper,lower
n,50.5,1,3.21,1.01
s,70.5,1,,
w,30.0,1,0,2
e,40.0,,9,9
Total,191.0,,,
"""


def test_a_file_names_its_sensitive_cells_and_their_levels(tmp_path: Path) -> None:
    file = true_file(tmp_path, LEVELS)
    table = confidential(file)
    assert table.decimals == 1
    rule = rule_for(None, file, table)
    assert isinstance(rule, GivenCells)
    assert rule.cells.tolist() == [True, True, True, False, False]
    usual = [-(-int(v) // 10) for v in table.values]
    # Levels are rounded up; one that is left out, or 0, is the usual tenth of the cell.
    assert rule.upper.tolist()[:3] == [33, usual[1], usual[2]]
    assert rule.lower.tolist()[:3] == [11, usual[1], 20]
    given = Threshold(3)
    with pytest.raises(InputError, match="a rule on sums needs the contributors"):
        rule_for(given, file, table)
    assert rule_for(given, file, TWO[0]) is given
    upper = true_file(tmp_path, "area,value,primary\nn,50,1\ns,70,\nTotal,120,\n")
    plain = rule_for(None, upper, confidential(upper))
    assert isinstance(plain, GivenCells)
    assert plain.upper.tolist() == [5, 7, 12]
    assert plain.lower is None
    below = true_file(tmp_path, "area,value,primary,lower\nn,50,1,2\ns,70,,\nTotal,120,,\n")
    lower = rule_for(None, below, confidential(below))
    assert isinstance(lower, GivenCells)
    assert (lower.upper.tolist(), lower.lower.tolist()[0]) == ([5, 7, 12], 2)
    with pytest.raises(InputError, match="Say what is sensitive"):
        rule_for(None, true_file(tmp_path, "area,value\nn,5\nTotal,5\n"), table)


def test_cells_are_named_in_every_table_that_has_them() -> None:
    found = cells_of_all(TWO, ["area=n", "job=b, area=s"], "never")
    assert found[0] is not None
    assert found[1] is not None
    assert np.argwhere(found[0]).tolist() == [[0, 0], [0, 1], [0, 2], [0, 3], [1, 1]]
    assert np.argwhere(found[1]).tolist() == [[0, 0], [0, 1], [0, 2]]
    assert cells_of_all(TWO, [], "never") == [None, None]
    one = cells_of_all(TWO, ["sex=m"], "never")
    assert one[0] is None
    assert np.argwhere(one[1]).tolist() == [[0, 0], [1, 0], [2, 0]]
    for word, said in (
        ("area", "never is DIMENSION=CODE"),
        ("aera=n", "did you mean 'area'"),
        ("jbo=a", "did you mean 'job'"),
        ("area=z", "never: 'area' has no code 'z'"),
    ):
        with pytest.raises(InputError, match=said):
            cells_of_all(TWO, [word], "never")


LAST = "job,area,value,status\na,n,,N\nb,n,5,F\nc,s,,N\nz,n,,N\n_T,_T,36,F\n"


def test_what_the_last_period_hid_is_found_by_codes(tmp_path: Path) -> None:
    (tmp_path / "last").mkdir()
    (tmp_path / "last" / "t.csv").write_text(LAST)
    paths = [tmp_path / "t.csv", tmp_path / "u.csv"]
    folder = previous_masks(paths, TWO, tmp_path / "last")
    assert folder[1] is None
    single = previous_masks(paths[:1], TWO[:1], tmp_path / "last" / "t.csv")
    for mask in (folder[0], single[0]):
        assert mask is not None
        assert np.argwhere(mask).tolist() == [[0, 0], [1, 2]]
    with pytest.raises(InputError, match="name the folder with the protected tables"):
        previous_masks(paths, TWO, tmp_path / "last" / "t.csv")
    with pytest.raises(InputError, match=r"there is no file v.csv or w.csv of the last period"):
        previous_masks([tmp_path / "v.csv", tmp_path / "w.csv"], TWO, tmp_path / "last")
    with pytest.raises(InputError, match="there is no column 'sex'"):
        previous_masks(paths[:1], TWO[1:], tmp_path / "last" / "t.csv")
    (tmp_path / "last" / "t.csv").write_text(LAST.replace("a,n,,N", "a,n,gone,N"))
    (with_symbol,) = previous_masks(paths[:1], TWO[:1], tmp_path / "last")
    assert with_symbol is not None
    assert np.argwhere(with_symbol).tolist() == [[0, 0], [1, 2]]
