"""What a report claims, against tiny releases where every claim can be counted."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import Dataset, InputError, Release, TableQuery
from lustrum.model.finest import FinestCells
from lustrum.numeric.counting.plan import Chunk
from lustrum.policy import Policy
from lustrum.protect.population.agency import Coverage
from lustrum.protect.population.readers import KnownTotals
from lustrum.protect.population.support import Support

# Each part of a report against counting: a whole report needs a release and takes seconds.
from lustrum.publish.report.findings import (
    Findings,
    _before_and_after,
    _comparison,
    _finest_beliefs,
    _readers,
    _risk,
    _table_beliefs,
    _true_counts,
    findings,
    fine_tables,
    nested_pairs,
    random_tables,
)
from lustrum.publish.report.sum_page import protected_sums, sum_findings, sum_lines, sum_warnings
from lustrum.risk import CellCertainty
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


@given(st.data())
def test_true_counts_are_found_by_codes(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    every = list(product(*(range(size) for size in sizes)))
    whole = data.draw(st.dictionaries(st.sampled_from(every), st.integers(1, 9)))
    asked = sorted(data.draw(st.sets(st.sampled_from(every), min_size=1)))

    def held(rows: list[Any], counts: list[int]) -> FinestCells:
        codes = np.array(rows, dtype=int).reshape(len(rows), len(sizes)).T
        return FinestCells(city(sizes), codes, np.array(counts, dtype=int))

    known = sorted(whole)
    found = _true_counts(held(known, [whole[k] for k in known]), held(asked, [0] * len(asked)))
    assert found.tolist() == [whole.get(cell, 0) for cell in asked]


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


def test_risk_is_measured_before_and_after_by_every_measure() -> None:
    own = cells(TRUE)
    policy = Policy.model_validate({})
    numbers: Any = Shown(own, 1)
    (row,) = _risk(engine(own), numbers, policy)
    (query,) = fine_tables(town(), 12)
    table, release = engine(own).tabulate(query), numbers.views(query).shown
    assert row["table"] == "area x job"
    for measure, name in (
        (policy.risk.spec, policy.risk.measure),
        (CellCertainty(audit="cell"), "certainty of an outsider about small cells"),
        (
            CellCertainty(audit="cell", attacker="insider"),
            "certainty of an insider about small cells",
        ),
    ):
        assert row["measures"].pop(name) == _before_and_after(measure, table, release)
    assert row["measures"] == {}

    def refused(*_: Any) -> float:
        raise InputError("no such table")

    none: Any = SimpleNamespace(before=refused, after=refused)
    assert _before_and_after(none, table, release) == [None, None]


def test_beliefs_about_tables_are_by_the_rates_that_are_public(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = cells([3, 4, 0, 6, 5, 0])
    asked: list[Any] = []

    class Down(Shown):
        def views(self, query: TableQuery) -> Any:
            found = super().views(query).shown
            return SimpleNamespace(shown=replace(found, numbers=found.numbers // 3 * 3))

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


@pytest.mark.parametrize("own_groups", [False, True])
def test_random_tables_are_questions_that_can_be_asked(own_groups: bool) -> None:
    own = city([2, 3, 1, 4, 5])
    found = list(random_tables(own, 60, own_groups=own_groups))
    assert found == list(random_tables(own, 60, own_groups=own_groups))
    assert {len(query.by) for query in found} == {1, 2, 3}
    for query in found:
        named = [axis.variable for axis in query.by] + [f.variable for f in query.where]
        assert len(set(named)) == len(named)
        assert "r" not in named, "it has one code"
        for place, axis in enumerate(query.by):
            assert axis.categories(own.variable(axis.variable))
            assert bool(axis.groups) is (own_groups and place == 0)
        assert all(f.codes[0] in own.variable(f.variable).codes for f in query.where)
    assert 10 < sum(bool(query.where) for query in found) < 50
    fine = [tuple(axis.variable for axis in query.by) for query in fine_tables(own, 100)]
    assert fine == [*combinations("pqst", 2), *combinations("pqst", 3)]
    assert len(fine_tables(own, 4)) == 4
    assert fine_tables(city([1, 4]), 12) == []


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
    assert (public.sums, public.public) == ("sums", own.magnitudes.public)
    words = sum_findings(own)
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
