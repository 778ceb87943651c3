"""What a report claims, against tiny releases where every claim can be counted."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lustrum.model import Dataset, InputError, Release, TableQuery
from lustrum.model.finest import FinestCells
from lustrum.numeric.counting.plan import Chunk
from lustrum.protect.population.agency import Coverage
from lustrum.protect.population.readers import KnownTotals
from lustrum.protect.population.support import Support
from lustrum.publish.report import questions
from lustrum.publish.report.findings import (
    Findings,
    _before_and_after,
    _bits,
    _compared,
    _comparison,
    _errors,
    _finest_beliefs,
    _readers,
    _risk,
    _table_beliefs,
    _true_counts,
    findings,
)
from lustrum.publish.report.questions import fine_tables, nested_pairs, random_tables
from lustrum.publish.report.sums import protected_sums, sum_findings, sum_lines, sum_warnings
from lustrum.tabulate import KernelEngine

module = import_module("lustrum.publish.report.findings")


def town() -> Dataset:
    words: dict[str, Any] = {
        "dataset": {"name": "town", "record_id": "id", "population": "residents"},
        "variables": [
            {"name": "area", "codes": ["n", "s"]},
            {"name": "job", "codes": ["a", "b", "c"]},
        ],
    }
    return Dataset.from_mapping(words)


def cells(counts: list[int], keys: bool = False) -> FinestCells:
    """The six cells of the town; those that are None are left out, as empty ones are."""
    codes = np.array(list(product(range(2), range(3)))).T
    kept = [k for k, n in enumerate(counts) if n >= 0]
    words = np.arange(1, 1 + len(kept), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return FinestCells(town(), codes[:, kept], np.array(counts)[kept], words if keys else None)


OUT = -1
TRUE = [2, 1, 0, 7, 4, 2]
SHOWN = [3, 0, 0, 6, 3, 0]


def made(
    true: list[int] = TRUE,
    shown: list[int] = SHOWN,
    *,
    coalition: int = 2,
    known: Any = (),
    existence: bool | None = None,
    base: int = 3,
) -> Any:
    """A release whose memory holds every cell that holds or shows anybody."""
    memory = [s if t or s else OUT for t, s in zip(true, shown, strict=True)]
    public = SimpleNamespace(
        support=Support(base), known=known, method={"method": "m", "coalition": coalition}
    )
    sums = None
    if existence is not None:
        sums = SimpleNamespace(public=SimpleNamespace(existence_public=existence))
    return SimpleNamespace(
        cells=cells([t or OUT for t in true]),
        magnitudes=sums,
        result=SimpleNamespace(
            cells=cells([s or OUT for s in shown]), memory=cells(memory), public=public
        ),
    )


def possible(shown: int, people: int = 0) -> set[int]:
    """True counts behind a shown number of base 3: fewer than three away, and any small one behind 3.

    People of the cell know that it holds them.
    """
    return {n for n in range(shown + 3) if (n > shown - 3 or shown == 3) and n >= people}


def left_of(shown: list[int], people: int, totals: dict[int, int] | None) -> list[int]:
    """How many counts every cell leaves to people in it, by looking at all tables that fit."""
    out = []
    for cell in range(6):
        group = [k for k in range(6) if k // 3 == cell // 3]
        others = [k for k in group if k != cell]
        found = set()
        for own in possible(shown[cell], people):
            if totals is None:
                found.add(own)
                continue
            rest = totals[cell // 3] - own
            if any(
                sum(values) == rest for values in product(*(possible(shown[k]) for k in others))
            ):
                found.add(own)
        out.append(len(found))
    return out


@pytest.mark.parametrize(
    ("true", "shown"),
    [
        (TRUE, SHOWN),
        ([0, 0, 0, 1, 2, 2], [0, 0, 0, 0, 0, 0]),
        ([5, 5, 5, 1, 0, 0], [6, 3, 3, 3, 0, 0]),
        ([2, 2, 2, 8, 8, 8], [0, 0, 0, 6, 6, 6]),
    ],
)
@pytest.mark.parametrize("coalition", [1, 2, 3])
def test_readers_are_left_with_as_many_counts_as_the_report_says(
    true: list[int], shown: list[int], coalition: int
) -> None:
    totals = {k: sum(true[3 * k : 3 * k + 3]) for k in range(2)}
    known = (KnownTotals(("area",), tuple(totals.values())),)
    rows, warnings = _readers(made(true, shown, coalition=coalition, known=known))
    *told, last = rows
    kinds = ["an outsider", "an insider, one person of the cell"]
    kinds += [f"a coalition of {k} people of the cell" for k in range(2, max(coalition, 2) + 1)]
    more = ", with the exact totals that are public elsewhere"
    assert [row["who"] for row in told] == [who + word for who in kinds for word in ("", more)]
    said = []
    for row, (people, exact) in zip(told, product(range(len(kinds)), (False, True)), strict=True):
        left = left_of(shown, people, totals if exact else None)
        pinned = [k for k in range(6) if left[k] == 1]
        assert row["pinned"] == len(pinned)
        # Those of them that hold so many people in truth, whether they show anybody or not.
        held = [k for k in pinned if true[k] >= max(people, 1)]
        assert row["pinned_in_truth"] == len(held)
        assert row["left"] == {str(n): left.count(n) for n in sorted(set(left)) if n}
        for number in (0, 3, 6, 9):
            counts = sorted(possible(number, people))
            assert row["shown"][str(number)][2] == len(counts)
            if counts:
                assert row["shown"][str(number)][:2] == [counts[0], counts[-1]]
        assert set(row["shown"]) == {"0", "3", "6", "9"}
        if pinned:
            said.append((row["who"], len(pinned), len(held)))
    assert len(warnings) == len(said)
    for sentence, (who, number, held_) in zip(warnings, said, strict=True):
        assert sentence.startswith(f"{number} finest cells show a number that leaves one")
        assert f"to {who}" in sentence
        assert f"In truth {held_} of them" in sentence
        one = [
            n for n in (0, 3, 6, 9) if len(possible(n, kinds.index(who.removesuffix(more)))) == 1
        ]
        for n in one:
            (only,) = possible(n, kinds.index(who.removesuffix(more)))
            assert f"a shown {n} stands for exactly {only}" in sentence
        assert ("stands for exactly" in sentence) is bool(one)
        assert ": ." not in sentence
    assert last["who"] == "anybody, of combinations that cannot exist (0 structural zeros)"
    assert (last["shown"], last["pinned"], last["pinned_in_truth"], last["left"]) == (
        {"0": [0, 0, 1]},
        0,
        0,
        {},
    )


def test_where_existence_is_public_an_outsider_knows_what_an_insider_does() -> None:
    for existence, low in ((None, 0), (False, 0), (True, 1)):
        rows, _ = _readers(made(existence=existence))
        assert rows[0]["shown"]["0"] == [low, 2, 3 - low]
        assert ("known" in rows[0]["who"] or "knows" in rows[0]["who"]) is (existence is True)
        assert len(rows) == 4
        assert not any("exact totals" in row["who"] for row in rows)
        own = [b for b in _finest_beliefs(made(existence=existence)) if b["who"] == "outsider"]
        assert own[0]["counts"] == [low, 2, 3 - low]


def test_bits_are_those_of_the_counts_that_are_left_and_of_the_truth() -> None:
    found = list(_finest_beliefs(made()))
    assert len(found) == 5 * 3
    memory = [(t, s) for t, s in zip(TRUE, SHOWN, strict=True) if t or s]
    for row in found:
        people = ["outsider", "insider", "coalition of 2"].index(row["who"])
        counts = sorted(possible(row["shown"], people))
        assert row["counts"] == [counts[0], counts[-1], len(counts)]
        assert row["bits_alike"] == pytest.approx(np.log2(len(counts)))
        held = [t for t, s in memory if s == row["shown"] and t >= people]
        if not held:
            assert row["bits_in_truth"] is None
            continue
        share = np.array([held.count(n) / len(held) for n in set(held)])
        assert row["bits_in_truth"] == pytest.approx(-(share * np.log2(share)).sum())
    assert {row["shown"] for row in found} == {0, 3, 6, 9, 12}
    assert all(row["cells"] == "finest cells" for row in found)
    # With base 2 nobody can be one of two people in a cell that shows 0.
    pair = next(
        row
        for row in _finest_beliefs(made([1, 0, 0, 2, 2, 0], [2, 0, 0, 2, 2, 0], base=2))
        if (row["shown"], row["who"]) == (0, "coalition of 2")
    )
    assert (pair["counts"][2], pair["bits_alike"]) == (0, None)


def test_true_counts_are_found_by_codes() -> None:
    whole = cells([5, 4, OUT, 9, OUT, 1])
    assert _true_counts(whole, cells([0, 0, 0, 0, 0, 0])).tolist() == [5, 4, 0, 9, 0, 1]
    assert _true_counts(whole, cells([OUT, 7, 7, OUT, OUT, 7])).tolist() == [4, 0, 1]
    assert _true_counts(
        cells([5, OUT, OUT, OUT, OUT, OUT]), cells([0, 0, OUT, OUT, OUT, 0])
    ).tolist() == [
        5,
        0,
        0,
    ]
    # Cells of which one code is larger than another variable has codes.
    wide = city([4, 2])
    codes = np.array([[0, 0, 1, 2, 3], [0, 1, 1, 0, 1]])
    true = FinestCells(wide, codes, np.array([1, 2, 3, 4, 5]))
    every = FinestCells(wide, np.array(list(product(range(4), range(2)))).T, np.zeros(8, dtype=int))
    assert _true_counts(true, every).tolist() == [1, 2, 0, 3, 4, 0, 0, 5]
    assert _true_counts(cells([OUT] * 6), cells([0, OUT, 0, OUT, OUT, 0])).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("weights", "bits"), [([1, 1], 1.0), ([4], 0.0), ([0, 2, 2, 0, 2, 2], 2.0), ([3, 1], 0.8112781)]
)
def test_bits_of_weights(weights: list[int], bits: float) -> None:
    assert _bits(weights) == pytest.approx(bits)


def engine(own: FinestCells) -> KernelEngine:
    chunk = Chunk(len(own), own.columns(), keys=own.keys, counts=own.counts)
    return KernelEngine(own.dataset, [chunk], 1)


class Shown:
    """A release that answers every question with true counts and an error that is added to each cell."""

    def __init__(self, own: FinestCells, error: int, report: Any = None) -> None:
        self.true, self.error = engine(own), error
        self.bundle = SimpleNamespace(report=report)

    def views(self, query: TableQuery) -> Any:
        table = self.true.tabulate(query)
        values = table.values + self.error
        release = Release(table.axes, values, np.full(table.shape, "F"), {"method": "m"})
        return SimpleNamespace(shown=release)


def test_methods_are_compared_on_occupied_cells_of_the_same_questions() -> None:
    own = cells([OUT, 8, 9, 7, 1, 2], keys=True)
    numbers: Any = Shown(own, 5)
    rows = list(_comparison(engine(own), numbers, 3, own))
    coarse = list(_comparison(engine(own), numbers, 10, own))
    assert coarse[0]["methods"]["keyed rounding"]["largest"] > 2
    assert [row["questions"] for row in rows] == [
        "tables of up to three variables",
        "tables with own groups",
        "differences of nested tables",
    ]
    asked = [
        list(random_tables(town(), 30, own_groups=False)),
        list(random_tables(town(), 30, own_groups=True)),
    ]
    for row, queries in zip(rows, asked, strict=False):
        occupied = sum(int((engine(own).tabulate(q).values > 0).sum()) for q in queries)
        assert row["cells"] == occupied
        assert row["methods"]["protected population"] == {"mean": 5.0, "largest": 5}
        rounded = row["methods"]["keyed rounding"]
        assert 0 < rounded["largest"] <= 2
        assert 0 < rounded["mean"] <= 2
        assert row["methods"]["cell key"]["largest"] > 0
    # Errors of both tables cancel out in a difference if they are the same.
    last = rows[-1]
    assert last["methods"]["protected population"] == {"mean": 0.0, "largest": 0}
    pairs = [
        engine(own).tabulate(a).values - engine(own).tabulate(b).values
        for a, b in nested_pairs(town(), 30)
    ]
    assert last["cells"] == sum(int((d > 0).sum()) for d in pairs)
    assert {int(n) for d in pairs for n in d.ravel()} >= {0, 1}
    assert last["methods"]["keyed rounding"]["largest"] > 0
    assert list(_comparison(engine(cells(TRUE)), numbers, 3, cells(TRUE))) == []


def test_errors_of_a_difference_are_those_of_the_part_that_is_left() -> None:
    own = cells([9, 8, 1, 7, 4, 2], keys=True)

    class Halved(Shown):
        def views(self, query: TableQuery) -> Any:
            found = super().views(query).shown
            codes = sum(len(f.codes) for f in query.where)
            return SimpleNamespace(
                shown=Release(
                    found.axes, found.published + 10 * codes, found.status, {"method": "m"}
                )
            )

    rows = list(_comparison(engine(own), Halved(own, 0), 3, own))  # type: ignore[arg-type]
    assert rows[-1]["methods"]["protected population"] == {"mean": 10.0, "largest": 10}


def test_a_comparison_of_nothing_says_nothing() -> None:
    assert list(_compared("none", [[], [], []])) == []
    (row,) = _compared("some", [[np.array([1, 4])], [np.array([0, 2])], [np.array([3, 3])]])
    assert row == {
        "questions": "some",
        "cells": 2,
        "methods": {
            "protected population": {"mean": 2.5, "largest": 4},
            "keyed rounding": {"mean": 1.0, "largest": 2},
            "cell key": {"mean": 3.0, "largest": 3},
        },
    }


def test_risk_is_measured_before_and_after_by_every_measure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = cells(TRUE)
    asked: list[Any] = []

    def certainty(**words: Any) -> Any:
        asked.append(words)
        return SimpleNamespace(before=lambda table: 1, after=lambda table, release: 0)

    monkeypatch.setattr(module, "CellCertainty", certainty)
    policy: Any = SimpleNamespace(
        risk=SimpleNamespace(
            measure="mine",
            spec=SimpleNamespace(
                before=lambda table: table.values.sum(),
                after=lambda table, release: release.published.sum(),
            ),
        )
    )
    (row,) = _risk(engine(own), Shown(own, 1), policy)  # type: ignore[arg-type]
    assert row["table"] == "area x job"
    assert row["measures"]["mine"] == [16.0, 22.0]
    by_cell = {"audit": "cell"}
    assert asked == [by_cell, by_cell | {"attacker": "insider"}]
    assert set(row["measures"]) == {
        "mine",
        "certainty of an outsider about small cells",
        "certainty of an insider about small cells",
    }

    def refused(*_: Any) -> float:
        raise InputError("no such table")

    measure: Any = SimpleNamespace(before=refused, after=refused)
    assert _before_and_after(measure, None, None) == [None, None]  # type: ignore[arg-type]


def test_beliefs_about_tables_are_by_the_rates_that_are_public(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = cells([3, 4, 0, 6, 5, 0])
    asked: list[Any] = []

    class Down(Shown):
        def views(self, query: TableQuery) -> Any:
            found = super().views(query).shown
            return SimpleNamespace(shown=replace(found, published=found.published // 3 * 3))

    def weighted(low: Any, high: Any, prior: Any, shown: Any, channel: Any) -> Any:
        asked.append((low.tolist(), high.tolist(), shown.tolist(), channel))
        return SimpleNamespace(probabilities=np.array([0.25, 0.25, 0.5]))

    monkeypatch.setattr(module, "weighted", weighted)
    report = SimpleNamespace(support=Support(3), channel=lambda variables: f"channel {variables}")
    rows = list(_table_beliefs(engine(own), Down(own, 0, report)))  # type: ignore[arg-type]
    assert [row["shown"] for row in rows] == [0, 3, 6, 9, 12]
    assert asked == [([0], [n + 64], [n], "channel 2") for n in (0, 3, 6, 9, 12)]
    assert all(row["bits_alike"] == pytest.approx(1.5) for row in rows)
    assert all(row["cells"] == "tables of 2 variables" for row in rows)
    found = [row["bits_in_truth"] for row in rows]
    assert found[1] == pytest.approx(np.log2(3))
    assert [*found[:1], *found[2:]] == [0.0, 0.0, None, None]


@pytest.mark.parametrize("stated", [True, False])
def test_cells_that_cannot_exist_tell_nothing_of_beliefs(
    monkeypatch: pytest.MonkeyPatch, stated: bool
) -> None:
    own = cells([3, 3, 0, 6, 3, 0])
    true = engine(own)
    structural = np.zeros((2, 3), dtype=bool)
    structural[0, 2] = structural[1, 2] = True
    real = true.tabulate

    def tabulate(query: TableQuery) -> Any:
        return replace(real(query), structural=structural if stated else None)

    monkeypatch.setattr(true, "tabulate", tabulate)
    monkeypatch.setattr(
        module, "weighted", lambda *_: SimpleNamespace(probabilities=np.array([1.0]))
    )
    report = SimpleNamespace(support=Support(3), channel=lambda variables: None)
    rows = list(_table_beliefs(true, Shown(own, 0, report)))  # type: ignore[arg-type]
    # Only the empty cells were impossible ones.
    assert rows[0]["bits_in_truth"] == (None if stated else 0.0)
    assert rows[1]["bits_in_truth"] == 0.0


def test_errors_are_listed_by_variables_and_levels() -> None:
    def over(*, finest: bool, variables: int) -> dict[str, Any]:
        return {"tables": 0 if (variables, finest) == (2, False) else 3, "mean": 0.5}

    tables = [SimpleNamespace(variables=n) for n in (2, 0, 1, 2)]
    agency = SimpleNamespace(tables=tables, over=over)
    own: Any = SimpleNamespace(result=SimpleNamespace(agency=agency))
    assert [(row["variables"], row["finest"]) for row in _errors(own)] == [
        (0, True),
        (1, True),
        (1, False),
        (2, True),
    ]
    assert _errors(own)[0] == {"variables": 0, "finest": True, "tables": 3, "mean": 0.5}


# The sentences that the agency reads first


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Findings of a release of which only what the sentences are about is given."""

    def told(**words: Any) -> Findings:
        own = made()
        own.digest = "d" * 64
        own.both = words.get("both")
        own.audits, own.both_sums, own.same_people = (), None, ()
        own.result.agency = SimpleNamespace(
            to_mapping=lambda: {"agency": 1},
            single_columns=words.get("single", {"in truth and shown": 0, "rows": 0}),
            differences=SimpleNamespace(beyond=words.get("beyond", lambda odds, base: [])),
            attributes=words.get("attributes", ()),
            coverage=words.get("coverage", ()),
        )
        own.result.public.largest = words.get("largest")
        own.result.public.method |= words.get("method", {})
        if words.get("nameless"):
            own.cells = SimpleNamespace(
                **{
                    name: getattr(own.cells, name)
                    for name in ("counts", "columns", "keys", "codes")
                },
                dataset=SimpleNamespace(name="town", record_id=None, population="residents"),
                __len__=lambda: 6,
            )
            own.cells = _Sized(own.cells)
        return findings(own, None)  # type: ignore[arg-type]

    told.asked = asked = {}  # type: ignore[attr-defined]

    def spied(name: str, answer: Any) -> None:
        def called(*places: Any, **names: Any) -> Any:
            asked[name] = (places, names)
            return answer

        monkeypatch.setattr(module, name, called)

    for name in ("Bundle", "BundleNumbers", "Chunk", "KernelEngine", "protected_sums"):
        spied(name, f"a {name}")
    for name in ("_risk", "_finest_beliefs", "_table_beliefs", "_comparison"):
        spied(name, [name])
    monkeypatch.setattr(module, "_errors", lambda own: "errors")
    monkeypatch.setattr(module, "_readers", lambda own: (["readers"], ["of readers"]))
    return told


class _Sized:
    def __init__(self, given: Any) -> None:
        self.__dict__.update(given.__dict__)

    def __len__(self) -> int:
        return 6


def test_figures_are_of_what_was_made_and_of_what_is_published(report: Any) -> None:
    report()
    asked, own, true = report.asked, "a BundleNumbers", "a KernelEngine"
    (shown, policy, public, digest), names = asked["Bundle"]
    assert shown.counts.tolist() == [3, 6, 3]
    assert (policy, public.support, digest) == (None, Support(3), "d" * 64)
    assert names == {"sums": "a protected_sums"}
    assert asked["BundleNumbers"] == (("a Bundle",), {"workers": 1})
    (rows, columns), more = asked["Chunk"]
    assert rows == 5
    assert {name: codes.tolist() for name, codes in columns.items()} == {
        "area": [0, 0, 1, 1, 1],
        "job": [0, 1, 0, 1, 2],
    }
    assert more["counts"].tolist() == [2, 1, 7, 4, 2]
    assert set(more) == {"counts", "keys"}
    (described, chunks, workers), _ = asked["KernelEngine"]
    assert (described.name, chunks, workers) == ("town", ["a Chunk"], 1)
    assert asked["_risk"][0] == (true, own, None)
    assert asked["_table_beliefs"][0] == (true, own)
    assert asked["_comparison"][0][:3] == (true, own, 3)
    assert asked["_comparison"][0][3].counts.tolist() == [2, 1, 7, 4, 2]


def test_every_step_of_a_report_can_be_stopped_and_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[Any] = []
    monkeypatch.setattr(module, "check_stop", lambda: steps.append("stop"))
    monkeypatch.setattr(module, "report_progress", lambda what, share: steps.append((what, share)))
    monkeypatch.setattr(
        module, "weighted", lambda *_: SimpleNamespace(probabilities=np.array([1.0]))
    )
    own = cells(TRUE, keys=True)
    report = SimpleNamespace(support=Support(3), channel=lambda variables: None)
    numbers: Any = Shown(own, 0, report)
    measure = SimpleNamespace(before=lambda table: 1, after=lambda table, release: 1)
    policy: Any = SimpleNamespace(risk=SimpleNamespace(measure="m", spec=measure))
    before = -1.0
    for work in (
        lambda: _readers(made()),
        lambda: list(_risk(engine(own), numbers, policy)),
        lambda: list(_finest_beliefs(made())),
        lambda: list(_table_beliefs(engine(own), numbers)),
        lambda: list(_comparison(engine(own), numbers, 3, own)),
    ):
        steps.clear()
        work()
        shares = [step[1] for step in steps[1::2]]
        assert steps[::2] == ["stop"] * len(shares)
        assert before < min(shares) <= max(shares) < 1
        assert len(shares) > 59 or len(set(shares)) == 1
        before = max(shares)
    # Random tables, and pairs of them.
    assert len(shares) == 90


def test_all_figures_stand_in_the_words(report: Any) -> None:
    found = report()
    assert found.figures == {
        "dataset": "town",
        "digest": "d" * 64,
        "method": {"method": "m", "coalition": 2},
        "records": 16,
        "finest_cells": 5,
        "agency": {"agency": 1},
        "errors": "errors",
        "risk": ["_risk"],
        "readers": ["readers"],
        "beliefs": ["_finest_beliefs", "_table_beliefs"],
        "comparison": ["_comparison"],
        "together": None,
        "sums": None,
        "same_people": [],
    }
    assert found.warnings == ("of readers",)
    assert repr(found) == "Findings(hidden)"


def both(changed: int = 0, pinned: int = 0) -> Any:
    return SimpleNamespace(changed=changed, pinned=pinned, to_mapping=lambda: {"differing": 3})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"single": {"in truth and shown": 4, "rows": 1200}}, "In 4 of 1,200 rows of two-way"),
        ({"nameless": True}, "no identifiers (record_id)"),
        ({"both": both()}, None),
        ({"both": both(changed=1234)}, "1,234 cells moved by more than one step"),
        ({"both": both(pinned=5)}, "left with one count for 5 cells"),
        (
            {"coverage": [Coverage(2, 10, 100, 500, 460)]},
            "500 counts by 2 variables from 10 on only 92.0%",
        ),
        ({"coverage": [Coverage(2, 10, 100, 500, 480)]}, None),
        ({"largest": 120}, "more than 30 off, which the public report says (up to 120)"),
    ],
)
def test_what_must_be_read_first_is_said(report: Any, words: Any, said: str | None) -> None:
    found = report(**words)
    more = found.warnings[1:]
    assert len(more) == (said is not None)
    if said is not None:
        assert said in more[0]
    assert found.figures["together"] == ({"differing": 3} if "both" in words else None)


def test_steps_that_tell_of_changed_records_are_named(report: Any) -> None:
    asked: list[Any] = []

    def beyond(odds: float, base: int) -> list[Any]:
        asked.append((odds, base))
        return [
            SimpleNamespace(cells=1200, before=3, after=9, changed=900),
            SimpleNamespace(cells=7, before=9, after=0, changed=6),
        ]

    found = report(beyond=beyond, method={"change_odds": 0.7})
    assert asked == [(0.7, 3)]
    assert (
        "Of 1,200 cells that went from 3 to 9 or more the records of 900 changed"
        in found.warnings[1]
    )
    assert "from 9 or more to 0 the records of 6" in found.warnings[2]
    assert "right more often than 70%" in found.warnings[1]
    report(beyond=beyond)
    assert asked[-1] == (0.5, 3)


def test_attributes_that_are_read_off_are_named(report: Any) -> None:
    risks = [
        SimpleNamespace(variable="job", named=0.61, people=1300, guessed=0.3, exceeds=True),
        SimpleNamespace(variable="sex", named=0.5, people=300, guessed=0.5, exceeds=False),
    ]
    (_, only) = report(attributes=risks).warnings
    assert "reads job off the file, rightly for 61% of 1,300 people" in only
    assert "a guess is right for 30%" in only


# Questions on which methods are compared


def city(sizes: list[int]) -> Dataset:
    names = "pqrstuv"
    return Dataset.from_mapping(
        {
            "dataset": {"name": "city"},
            "variables": [
                {"name": names[k], "codes": [f"{names[k]}{i}" for i in range(size)]}
                for k, size in enumerate(sizes)
            ],
        }
    )


def test_fine_tables_are_of_two_and_three_variables_that_vary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = city([2, 3, 1, 4])
    found = [tuple(axis.variable for axis in query.by) for query in fine_tables(own, 12)]
    assert found == [("p", "q"), ("p", "s"), ("q", "s"), ("p", "q", "s")]
    assert all(query.dataset == "city" for query in fine_tables(own, 12))
    assert all(axis.level is None for query in fine_tables(own, 12) for axis in query.by)
    # Some of very many, from the smallest to the largest.
    many = city([2, 3, 4, 5, 6, 7, 8])
    few = fine_tables(many, 4)
    sizes = [np.prod([len(many.variable(a.variable).codes) for a in q.by]) for q in few]
    assert sizes == [6, 56, 24, 336]
    pairs = len(list(combinations(range(7), 2)))
    assert len([q for q in fine_tables(many, 10**3) if len(q.by) == 2]) == pairs
    monkeypatch.setattr(questions, "_MOST_CELLS", 12)
    assert [tuple(a.variable for a in q.by) for q in fine_tables(own, 12)] == [
        ("p", "q"),
        ("p", "s"),
        ("q", "s"),
    ]
    monkeypatch.setattr(questions, "_MOST_CELLS", 11)
    assert len(fine_tables(own, 12)) == 2
    assert fine_tables(city([1, 4]), 12) == []


@pytest.mark.parametrize("own_groups", [False, True])
def test_random_tables_are_questions_that_can_be_asked(
    own_groups: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = city([2, 3, 1, 4, 5])
    found = list(random_tables(own, 60, own_groups=own_groups))
    assert len(found) == 60
    assert found == list(random_tables(own, 60, own_groups=own_groups))
    ways = {len(query.by) for query in found}
    assert ways == {1, 2, 3}
    filtered = 0
    for query in found:
        assert query.dataset == "city"
        named = [axis.variable for axis in query.by] + [f.variable for f in query.where]
        assert len(set(named)) == len(named)
        assert "r" not in named
        for place, axis in enumerate(query.by):
            variable = own.variable(axis.variable)
            assert axis.categories(variable)
            assert bool(axis.groups) is (own_groups and place == 0)
            for group in axis.groups:
                assert 1 <= len(group.members) <= max(1, len(variable.codes) // 2)
                assert list(group.members) == sorted(group.members, key=variable.codes.index)
        filtered += bool(query.where)
        for one in query.where:
            assert len(one.codes) == 1
            assert one.codes[0] in own.variable(one.variable).codes
    assert 10 < filtered < 50
    monkeypatch.setattr(questions, "_MOST_CELLS", 5)
    small = list(random_tables(own, 60, own_groups=own_groups))
    sizes = {
        int(np.prod([len(a.categories(own.variable(a.variable))) for a in q.by])) for q in small
    }
    assert max(sizes) == 5
    assert small == [
        q
        for q in found
        if np.prod([len(a.categories(own.variable(a.variable))) for a in q.by]) <= 5
    ]
    monkeypatch.undo()
    assert {len(q.by) for q in random_tables(city([2, 3]), 30, own_groups=own_groups)} == {1, 2}


def test_own_groups_hold_up_to_half_of_the_codes() -> None:
    own = city([8, 8])
    sizes = {
        len(query.by[0].groups[0].members) for query in random_tables(own, 80, own_groups=True)
    }
    assert sizes == {1, 2, 3, 4}


def test_a_pair_of_nested_tables_differs_by_one_code() -> None:
    own = city([2, 3, 1, 5])
    found = list(nested_pairs(own, 40))
    assert len(found) == 40
    seen, lengths = set(), set()
    for whole, part in found:
        assert whole.dataset == part.dataset == "city"
        assert whole.by == part.by
        (axis,) = whole.by
        (one,), (other,) = whole.where, part.where
        assert one.variable == other.variable != axis.variable
        assert set(one.codes) - set(other.codes) == {one.codes[0]}
        assert len(one.codes) == len(other.codes) + 1 >= 2
        assert len(own.variable(one.variable).codes) > 2
        seen.add((axis.variable, one.variable))
        lengths.add(len(one.codes))
    assert lengths == {2}
    assert {axis for axis, _ in seen} == {"p", "q", "s"}
    assert {name for _, name in seen} == {"q", "s"}
    assert list(nested_pairs(city([2, 2]), 5)) == []
    assert list(nested_pairs(city([4]), 5)) == []
    assert list(nested_pairs(city([4, 1]), 5)) == []


def test_levels_are_drawn_among_all_of_a_variable() -> None:
    words: dict[str, Any] = {
        "dataset": {"name": "city"},
        "variables": [
            {
                "name": "p",
                "codes": ["a", "b", "c"],
                "hierarchies": [
                    {
                        "name": "h",
                        "levels": [
                            {
                                "name": "broad",
                                "groups": [{"code": "X", "label": "X", "members": ["a", "b"]}],
                            }
                        ],
                    }
                ],
            },
            {"name": "q", "codes": ["x", "y"]},
        ],
    }
    own = Dataset.from_mapping(words)
    levels = {
        axis.level
        for query in random_tables(own, 40, own_groups=False)
        for axis in query.by
        if axis.variable == "p"
    }
    assert levels == {None, "broad"}


# Protected sums


def audit(**words: Any) -> Any:
    usual = {
        "measure": "pay",
        "sensitive": 12,
        "unprotected": 0,
        "certain": 0,
        "certain_with_class": 0,
        "certain_with_direction": 0,
        "outside": 0,
        "by_class": 0,
        "from_units": 1500,
        "several": 0,
        "one_known": 0,
        "earlier_known": 0,
        "record_known": 0,
        "known_large": 0,
        "small_units": 44,
        "growth": 0,
    }

    class Audit(SimpleNamespace):
        @property
        def safe(self) -> bool:
            return not (self.unprotected or self.certain or self.outside or self.known_large)

    return Audit(**usual | words)


def of_sums(*audits: Any, both_sums: Any = None, guessed: Any = None) -> Any:
    errors = SimpleNamespace(
        measure="pay",
        mean=1.234,
        cells=4321,
        total=0.12345,
        by_variables={0: 9.0, 1: 1.0, 2: 2.345},
        guessed=guessed or {},
    )
    public = SimpleNamespace(
        method={"method": "noise"}, factors=SimpleNamespace(least=1.05, most=1.2)
    )
    agency = SimpleNamespace(measures=[errors], to_mapping=lambda: {"measures": ["errors"]})
    sums = SimpleNamespace(public=public, agency=agency, sums="sums")
    return SimpleNamespace(magnitudes=sums, audits=audits, both_sums=both_sums)


def test_sums_of_a_release_are_described_as_they_are() -> None:
    nothing: Any = SimpleNamespace(magnitudes=None)
    assert sum_findings(nothing) is None
    assert sum_lines(nothing) == []
    assert sum_warnings(None) == []
    assert protected_sums(None) is None
    own = of_sums(audit())
    public = protected_sums(own.magnitudes)
    assert public is not None
    assert (public.sums, public.public) == ("sums", own.magnitudes.public)
    words = sum_findings(own)
    assert words is not None
    assert words["method"] == {"method": "noise"}
    assert words["shares"] == [1.05, 1.2]
    assert words["measures"] == ["errors"]
    assert words["audits"] == [vars(own.audits[0]) | {"safe": True}]
    assert words["together"] is None
    later = of_sums(audit(), both_sums=[SimpleNamespace(to_mapping=lambda: {"other": 1})])
    assert sum_findings(later)["together"] == [{"other": 1}]  # type: ignore[index]
    (line,) = sum_lines(own)
    assert "mean relative error 1.23 % over 4,321 cells" in line
    assert "(by number of variables 1: 1.00 %, 2: 2.35 %; of the total 0.1235 %)" in line.replace(
        "2: 2.34 %", "2: 2.35 %"
    )
    assert "Of 12 sensitive cells 0 are under-protected; 0 largest contributors" in line
    known = audit(
        several=5100, one_known=9, earlier_known=8, record_known=7, known_large=6, growth=4
    )
    second = sum_lines(of_sums(known))[1]
    assert (
        "same owner, 9 of 5,100 contributions to pay are certain within p percent: 8 by" in second
    )
    assert "7 by another record of a holding; 6 of 44 units or more" in second
    assert second.endswith("Growth is certain for 4.")
    _, second = sum_lines(of_sums(audit(), guessed={1000: [7.4, 1], 10: [3.2, 1]}))
    assert second.endswith("within p percent: from 10: 3 %, from 1,000: 7 %.")


@pytest.mark.parametrize(
    ("words", "together", "said"),
    [
        ({}, None, []),
        ({"by_class": 1100}, None, ["give 1,100 contributions to pay away"]),
        ({"unprotected": 3}, None, ["3 sensitive cells carry less"]),
        ({"certain": 4}, None, ["4 largest contributors are certain"]),
        ({"outside": 5, "certain_with_class": 6}, None, ["6 contributions with their class known"]),
        ({"known_large": 8, "growth": 2}, None, ["8 of 44 units or more with another value of"]),
        ({"certain_with_direction": 7}, None, ["all below 1,500 units"]),
        ({"certain_with_direction": 7, "certain": 2}, None, ["2 largest contributors are certain"]),
        ({"by_class": 1, "certain": 2}, None, ["give 1 contributions", "2 largest"]),
        ({}, {"other": 0, "certain": 0}, []),
        ({}, {"other": 2, "certain": 0}, ["2 contributions to pay did not change"]),
        ({}, {"other": 0, "certain": 3}, ["and 3 are certain within p percent"]),
    ],
)
def test_sums_that_tell_too_much_are_warned_of(
    words: dict[str, int], together: dict[str, int] | None, said: list[str]
) -> None:
    one = audit(**words)
    both_sums = None if together is None else [together | {"measure": "pay"}]
    found = sum_warnings({"audits": [vars(one) | {"safe": one.safe}], "together": both_sums})
    assert len(found) == len(said)
    for sentence, part in zip(found, said, strict=True):
        assert part in sentence
