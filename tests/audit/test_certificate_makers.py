"""What makes certificates, part by part, on systems small enough to enumerate or to solve by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from audit.fibres import fitting
from audit.test_bounds_hold import systems
from lustrum.audit import ContradictionError, Knowledge
from lustrum.audit.certificate import Certificate, certify, knowledge_digest, verify
from lustrum.audit.certificate.basis import basic_multipliers, basic_point, solve
from lustrum.audit.certificate.branch import BranchBudget
from lustrum.audit.certificate.document import End
from lustrum.audit.certificate.exact import FactSystem, Leaf, Split, WitnessTable, as_leaf, table_of
from lustrum.audit.certificate.linear import Linear, LinearOptimum, elastic, whole_table
from lustrum.audit.certificate.make import _Maker, _near_zero
from lustrum.audit.certificate.propose import bound_leaf, empty_leaf, tables_near
from lustrum.model import InputError
from lustrum.numeric.structure import UNBOUNDED

HALF = Fraction(1, 2)


def holds(made: Certificate) -> None:
    """The verifier accepts the document and reads the same claims out of it."""
    report = verify(made.to_json(), made.digest)
    assert report.holds, report.reason
    assert [(p.low, p.high, p.low_sharp, p.high_sharp) for p in report.proven] == [
        (c.low.value, c.high.value, c.low.sharp, c.high.sharp) for c in made.claims
    ]


@pytest.mark.parametrize("seed", range(8))
def test_one_small_system_is_certified_as_enumeration_has_it(seed: int) -> None:
    known, tables = next(systems(40 + seed, 1))
    made = certify(known)
    holds(made)
    assert all(claim.sharp for claim in made.claims)
    assert [c.low.value for c in made.claims] == tables.min(axis=0).tolist()
    assert [c.high.value for c in made.claims] == tables.max(axis=0).tolist()
    assert all(made.allows(table) for table in tables[:5].tolist())
    assert not made.allows((tables[0] + 99).tolist())
    assert not made.allows(tables[0].tolist()[:-1])


@pytest.mark.parametrize("seed", range(6))
def test_one_system_of_real_cells_is_certified_as_linear_programs_have_it(seed: int) -> None:
    known, _ = next(systems(60 + seed, 1))
    made = certify(known.relaxed())
    holds(made)
    rows, box = known.matrix.toarray(), list(zip(known.low, known.high, strict=True))
    facts = np.vstack((rows, -rows)), np.concatenate((known.fact_high, -known.fact_low))
    for claim in made.claims:
        assert claim.sharp
        for sign, end in ((1.0, claim.low), (-1.0, claim.high)):
            cost = np.zeros(len(known))
            cost[claim.cell] = sign
            assert float(end.value or 0) == pytest.approx(
                sign * linprog(cost, *facts, bounds=box).fun
            )


@pytest.mark.parametrize("total", [31, 38, 45])
def test_large_weights_take_branches_whose_leaves_all_hold(total: int) -> None:
    known = (
        Knowledge.of("abc").within([0] * 3, [7] * 3).fact({"a": 4, "b": 7, "c": 9}, total, total)
    )
    tables = fitting(known)
    made = certify(known)
    holds(made)
    assert [c.low.value for c in made.claims] == tables.min(axis=0).tolist()
    assert [c.high.value for c in made.claims] == tables.max(axis=0).tolist()
    proofs = [end.proof for c in made.claims for end in (c.low, c.high)]
    assert any(isinstance(node, Split) for proof in proofs for node in proof)
    few = certify(known, nodes=1)
    holds(few)
    assert [c.low.value for c in few.claims] <= [c.low.value for c in made.claims]
    assert not any(isinstance(n, Split) for c in few.claims for n in c.low.proof + c.high.proof)


def test_cells_without_an_end_are_certified_by_a_ray() -> None:
    known = Knowledge.of("xyz").fact({"x": 1, "y": -1}, 2, 2).fact({"y": 1, "z": 2}, 3)
    for kind in (known, known.relaxed()):
        made = certify(kind)
        holds(made)
        assert [c.low.value for c in made.claims] == [2, 0, 0]
        assert [c.high.value for c in made.claims] == [None] * 3
        assert all(c.sharp for c in made.claims)
        assert made.rays
    both = Knowledge.of("xy", low=-UNBOUNDED).fact({"x": 1, "y": 1}, 0, 0)
    made = certify(both)
    holds(made)
    assert {(c.low.value, c.high.value, c.sharp) for c in made.claims} == {(None, None, True)}


def test_what_nothing_fits_is_no_certificate() -> None:
    halves = Knowledge.of("ab").within([0, 0], [9, 9]).fact({"a": 2, "b": 4}, 7, 7)
    apart = Knowledge.of("ab").within([0, 0], [3, 3]).fact({"a": 1, "b": 1}, 7, 9)
    given = Knowledge.of("ab").within([1, 2], [1, 2]).fact({"a": 1, "b": 1}, 4, 4)
    for known in (halves, apart, given):
        with pytest.raises(ContradictionError, match="no table fits"):
            certify(known)
    assert certify(halves.relaxed()).claims[0].high.value == Fraction(7, 2)


def test_some_cells_are_certified_in_the_order_asked_for_once_each() -> None:
    known = Knowledge.of("xyz").fact({"x": 1, "y": 1, "z": 1}, 7, 7)
    done: list[tuple[int, int]] = []
    made = certify(known, ["z", "x", "z"], progress=lambda now, of: done.append((now, of)))
    assert [c.cell for c in made.claims] == [2, 0]
    assert done == [(1, 2), (2, 2)]
    assert [c.cell for c in certify(known, slice(1, None)).claims] == [1, 2]
    assert made.claim("x") is made.claims[1]
    late = certify(known, ["x"], seconds=0.0)
    holds(late)
    assert (late.claims[0].low.value, late.claims[0].low.sharp) == (0, False)
    end = made.claims[0].low
    assert replace(made.claims[0], low=end, high=replace(end, sharp=False)).sharp is False
    assert replace(made.claims[0], low=replace(end, sharp=False), high=end).sharp is False


def example() -> FactSystem:
    """``2x + g - y`` from 3 to 9 with g given as 2, ``x + z`` at least 1; z has no upper end."""
    known = Knowledge.of("xgyz", low=-1).within([0, 2, -1, 0], [5, 2, 4, UNBOUNDED])
    known = known.fact({"x": 2, "g": 1, "y": -1}, 3, 9).fact({"x": 1, "z": 1}, 1)
    return FactSystem.of(known)


def test_a_system_is_the_knowledge_in_plain_numbers() -> None:
    system = example()
    assert system.names == ("x", "g", "y", "z")
    assert system.boxes == ((0, 5), (2, 2), (-1, 4), (0, None))
    assert system.facts == (((0, 2), (1, 1), (2, -1)), ((0, 1), (3, 1)))
    assert system.ends == ((3, 9), (1, None))
    assert system.columns == (((0, 2), (1, 1)), ((0, 1),), ((0, -1),), ((1, 1),))
    assert system.open == (0, 2, 3)
    assert system.lean == (((1, 7), ((0, 2), (2, -1))), ((1, None), ((0, 1), (3, 1))))
    small = system.reduced
    assert small.names == ("x", "y", "z")
    assert small.boxes == ((0, 5), (-1, 4), (0, None))
    assert small.facts == (((0, 2), (1, -1)), ((0, 1), (2, 1)))
    assert small.ends == ((1, 7), (1, None))
    assert system.expanded([7.0, 8.0, 9.0]).tolist() == [7, 2, 8, 9]
    cone = system.cone
    assert cone.boxes == ((0, 0), (0, 0), (0, 0), (0, 1))
    assert cone.ends == ((0, 0), (0, None))
    assert not cone.whole


def test_a_table_fits_if_every_bound_and_fact_says_so() -> None:
    system = example()
    for values, fits in (
        ((1, 2, 0, 0), True), ((1, 2, 1, 0), True), ((1, 2, 2, 0), False), ((5, 2, 3, 0), True),
        ((5, 2, 2, 0), False), ((6, 2, 4, 0), False), ((1, 2, -2, 0), False), ((1, 3, 1, 0), False),
        ((2, 2, 0, -1), False), ((2, 2, 0, 10**9), True), ((0, 2, -1, 0), False),
        ((0, 2, -1, 1), True),
    ):  # fmt: skip
        assert system.fits(WitnessTable(1, values)) == fits
        real = FactSystem(system.names, system.boxes, system.facts, system.ends, whole=False)
        assert real.fits(WitnessTable(2, tuple(2 * v for v in values))) == fits
        assert not system.fits(WitnessTable(2, tuple(2 * v for v in values)))
    assert WitnessTable(2, (3, 4)).value(0) == Fraction(3, 2)
    assert WitnessTable(1, (3, 4)).value(1) == 4


def test_weak_duality_shows_what_it_adds_up_to() -> None:
    """``2x = (2x - y) + y >= 1 - 1`` and ``<= 7 + 4``; ``y = 2x - (2x - y) <= 10 - 1``."""
    system = example()
    real = FactSystem(system.names, system.boxes, system.facts, system.ends, whole=False)
    assert real.shown(Leaf(2, ((0, 1),)), 0, 1, {}) == 0
    assert real.shown(Leaf(2, ((0, -1),)), 0, -1, {}) == Fraction(-11, 2)
    assert system.shown(Leaf(2, ((0, -1),)), 0, -1, {}) == -5
    assert real.shown(Leaf(1, ((0, 1),)), 2, -1, {}) == -9
    assert system.shown(Leaf(1, ()), 2, -1, {}) == -4
    assert system.shown(Leaf(1, ()), 2, 1, {}) == -1
    assert system.shown(Leaf(1, ()), 3, -1, {}) is None  # z has no upper end
    assert system.shown(Leaf(1, ((1, -1),)), 3, -1, {}) is None  # nor has its fact
    assert system.shown(Leaf(1, ((1, 1),)), 3, 1, {}) == -4
    # Branching has bounded x and y further.
    assert real.shown(Leaf(2, ((0, 1),)), 0, 1, {2: (3, 4)}) == 2
    assert system.shown(Leaf(1, ((1, 1),)), 3, 1, {0: (0, 0)}) == 1
    # x at most 0 and y at least 0 leave nothing of 2x - y >= 1.
    assert real.shown(Leaf(1, ((0, 1),), empty=True), 0, 1, {0: (0, 0), 2: (0, 4)}) == 1
    assert system.shown(Leaf(2, ((0, 1),), empty=True), 0, 1, {0: (0, 0), 2: (0, 4)}) == HALF


def test_a_system_keeps_ends_that_are_missing_below() -> None:
    known = Knowledge.of("xg", low=-UNBOUNDED).bound("g", 0, 0)
    known = known.fact({"x": 1, "g": 1}, high=4).fact({"x": -1}, low=-UNBOUNDED, high=7)
    system = FactSystem.of(replace(known, decimals=2))
    assert system.boxes == ((None, None), (0, 0))
    assert system.ends == ((None, 4), (None, 7))
    assert system.open == (0,)
    assert system.lean == (((None, 4), ((0, 1),)), ((None, 7), ((0, -1),)))
    assert (system.reduced.decimals, system.reduced.whole) == (2, True)
    assert system.expanded([5.0]).tolist() == [5, 0]
    assert system.cone.boxes == ((-1, 1), (0, 0))
    assert system.cone.ends == ((None, 0), (None, 0))
    assert FactSystem.of(known.relaxed()).reduced.whole is False


def test_where_every_cell_is_given_there_is_one_table_or_none() -> None:
    for low, high, fits in ((3, 3, True), (4, 9, False), (0, 2, False), (3, None, True),
                            (None, 3, True), (4, None, False), (None, 2, False)):  # fmt: skip
        known = Knowledge.of("ab").within([1, 2], [1, 2])
        ends = -UNBOUNDED if low is None else low, UNBOUNDED if high is None else high
        linear = Linear(FactSystem.of(known.fact({"a": 1, "b": 1}, *ends)))
        for sign in (1, -1):
            found = linear.minimise(1, sign, {})
            assert found.ended == ("optimal" if fits else "infeasible")
            if fits:
                assert (found.value, found.point.tolist()) == (2 * sign, [1, 2])  # type: ignore[union-attr]
                assert found.multipliers is not None
                assert found.multipliers.tolist() == [0]


def test_fractions_share_a_denominator() -> None:
    assert table_of([HALF, Fraction(1, 3), 2]) == WitnessTable(6, (3, 2, 12))
    assert as_leaf({4: Fraction(3, 2), 1: Fraction(-1, 3), 2: Fraction(0)}) == Leaf(
        6, ((1, -2), (4, 9))
    )
    assert as_leaf({}, empty=True) == Leaf(1, (), True)


def test_elimination_in_fractions_solves_what_has_one_solution() -> None:
    rng = np.random.default_rng(8)
    solved = 0
    for _ in range(30):
        rows, wanted = rng.integers(-2, 3, (4, 4)), rng.integers(-5, 6, 4)
        sparse_rows = [{j: int(w) for j, w in enumerate(row)} for row in rows]
        found = solve(sparse_rows, (rows @ wanted).tolist())
        if round(np.linalg.det(rows)) == 0:
            assert found is None
        else:
            solved += 1
            assert found is not None
            assert [found[j] for j in range(4)] == wanted.tolist()
    assert 5 < solved < 30
    chain = [{0: 2, 1: 1}, {0: 1, 1: 3}]
    assert solve(chain, [5, 5]) == {0: 2, 1: 1}
    assert solve(chain, [5, 5], most=2) == {0: 2, 1: 1}
    assert solve(chain, [5, 5], most=1) is None
    assert solve([{0: 1, 1: 1}, {0: 1, 1: 1}], [2, 2]) is None


def test_a_model_is_asked_again_with_other_cells_and_boxes() -> None:
    known = Knowledge.of("abcg").within([0, 0, 0, 3], [4, 4, 4, 3])
    known = known.fact({"a": 1, "b": 2, "c": 1, "g": 1}, 9, 9).fact({"a": 1, "c": -2}, -3, 2)
    system = FactSystem.of(known)
    linear = Linear(system)
    rows = known.matrix.toarray()
    facts = np.vstack((rows, -rows)), np.concatenate((known.fact_high, -known.fact_low))
    rng = np.random.default_rng(3)
    for _ in range(25):
        cell, sign = int(rng.integers(0, 4)), int(rng.choice([1, -1]))
        boxes = {
            int(c): (int(rng.integers(0, 3)), 3) for c in rng.choice(3, int(rng.integers(0, 3)))
        }
        low, high = known.low.copy(), known.high.copy()
        for place, (a, b) in boxes.items():
            low[place], high[place] = a, b
        cost = np.zeros(4)
        cost[cell] = sign
        wanted = linprog(cost, *facts, bounds=list(zip(low, high, strict=True)))
        found = linear.minimise(cell, sign, boxes)
        assert found.ended == ("optimal" if wanted.status == 0 else "infeasible")
        if found.ended == "infeasible":
            leaf = empty_leaf(system, boxes)
            assert leaf is not None
            assert leaf.empty
            assert (system.shown(leaf, 0, 1, boxes) or 0) > 0
            assert elastic(system, boxes) is not None
            continue
        assert found.value == pytest.approx(wanted.fun)
        point = basic_point(system, found, boxes)
        assert point is not None
        assert sign * point[cell] == Fraction(found.value).limit_denominator(100)
        assert [float(p) for p in point] == pytest.approx(found.point.tolist())  # type: ignore[union-attr]
        prices = basic_multipliers(system, found, cell, sign)
        assert prices is not None
        real = FactSystem(system.names, system.boxes, system.facts, system.ends, whole=False)
        assert real.shown(as_leaf(prices), cell, sign, boxes) == sign * point[cell]


def test_a_search_for_a_whole_table_finds_the_best_one() -> None:
    known = Knowledge.of("abcg").within([0, 0, 0, 2], [7, 7, 7, 2])
    known = known.fact({"a": 4, "b": 7, "c": 9, "g": 1}, 47, 47)
    tables, system = fitting(known), FactSystem.of(known)
    for cell in range(4):
        for sign in (1, -1):
            found = whole_table(system, cell, sign, 1000)
            assert found is not None
            assert list(found) in tables.tolist()
            assert sign * found[cell] == (sign * tables[:, cell]).min()
    assert whole_table(FactSystem.of(known.bound("a", 0, 0).bound("c", 0, 0)), 1, 1, 1000) is None
    given = Knowledge.of("ab").within([1, 2], [1, 2]).fact({"a": 1, "b": 1}, 3, 3)
    assert whole_table(FactSystem.of(given), 0, 1, 9) is None  # nothing is open


def test_a_document_says_what_was_claimed_in_numbers_that_every_reader_keeps() -> None:
    big = 2**53
    known = Knowledge.of("xy").within([0, 0], [big, big - 1]).fact({"x": 1, "y": 1}, 7, big)
    made = certify(known)
    said = json.loads(made.to_json())
    assert said["knowledge"]["cells"] == [
        {"name": "x", "low": 0, "high": str(big)},
        {"name": "y", "low": 0, "high": big - 1},
    ]
    assert said["digests"]["knowledge"] == knowledge_digest(known) == made.digest
    assert said["claims"][0]["high"]["value"] == str(big)
    real = certify(Knowledge.of("ab").fact({"a": 2, "b": 4}, 7, 7).relaxed())
    assert [c["high"]["value"] for c in real.to_mapping()["claims"]] == ["7/2", "7/4"]
    other = known.bound("x", 1)
    assert knowledge_digest(other) != made.digest
    assert not verify(made.to_json(), knowledge_digest(other)).holds


def test_a_certificate_is_written_as_it_is_and_is_of_knowledge(tmp_path: Path) -> None:
    known = Knowledge.of("ab").fact({"a": 2, "b": 2}, 5, 5).bound("a", 0, 9).bound("b", 0, 9)
    made = certify(known.relaxed())
    made.write(tmp_path / "proof.json")
    text = (tmp_path / "proof.json").read_text(encoding="utf-8")
    assert text == made.to_json()
    said = json.loads(text)
    assert (said["format"], said["version"]) == ("lustrum-certificate", 1)
    # Whole ends are numbers, others fractions in words.
    ends = {(c.low.value, c.high.value) for c in made.claims}
    assert ends == {(Fraction(0), Fraction(5, 2))}
    assert {claim["high"]["value"] for claim in said["claims"]} == {"5/2"}
    assert {claim["low"]["value"] for claim in said["claims"]} == {0}
    with pytest.raises(InputError, match="Knowledge"):
        certify([1, 2])  # type: ignore[arg-type]


def test_a_budget_of_time_is_over_when_it_is() -> None:
    assert BranchBudget.of(5, None).left is None
    assert not BranchBudget.of(5, None).over
    assert BranchBudget.of(5, 0.0).over
    assert not BranchBudget.of(5, 1000.0).over
    left = BranchBudget.of(5, 1000.0).left
    assert left is not None
    assert 0 < left <= 1000


def maker(system: FactSystem, *cells: int) -> _Maker:
    return _Maker(system, list(cells), BranchBudget.of(50, None))


def test_only_tables_that_fit_are_kept_and_the_best_of_them_known() -> None:
    made = maker(example(), 0, 2)
    assert not made._add(WitnessTable(1, (1, 2, 2, 0)))  # 2x + g - y is 2
    assert not made._add(
        WitnessTable(2, (2, 4, 0, 0))
    )  # whole numbers over 2 are not the form of whole cells
    assert not made.tables
    assert made._add(WitnessTable(1, (3, 2, 0, 0)))
    assert made._add(WitnessTable(1, (1, 2, 0, 5)))
    assert made._add(WitnessTable(1, (2, 2, 0, 5)))
    assert made._best == {(0, 1): 1, (0, -1): -3, (2, 1): 0, (2, -1): 0}
    assert [made._reached(0, 1, Fraction(v)) for v in (1, 2, 3, 4)] == [1, 2, 0, None]
    assert made._reached(0, -1, Fraction(-3)) == 0
    for value, settled in (
        (1.0, True),
        (1.0000005, True),
        (0.9999995, True),
        (0.5, True),
        (-0.5, False),
    ):
        assert made._settled(0, 1, LinearOptimum("optimal", value)) == settled
    assert made._settled(0, -1, LinearOptimum("optimal", -3.0))
    assert not made._settled(0, -1, LinearOptimum("optimal", -4.0))
    assert not made._settled(3, 1, LinearOptimum("optimal", 0.0))
    real = maker(replace(example(), whole=False), 0)
    assert real._add(WitnessTable(2, (2, 4, 0, 0)))
    assert not real._settled(0, 1, LinearOptimum("optimal", 1.0))
    claim = made._made(0, 1, Fraction(1), ())
    assert (claim.value, claim.sharp, claim.table) == (1, True, 1)
    claim = made._made(0, -1, Fraction(-4), ())
    assert (claim.value, claim.sharp, claim.table) == (4, False, None)
    assert made._made(3, -1, None, ()) == End(None, False)


def test_boxes_near_zero_keep_bounds_that_are_there() -> None:
    boxes = ((0, 5), (None, 3), (2, None), (None, None), (2 * 10**6, None))
    system = FactSystem(tuple("abcde"), boxes, (), ())
    million = 10**6
    assert _near_zero(system) == (
        (0, 5), (-million, 3), (2, million), (-million, million), (2 * million, 2 * million),
    )  # fmt: skip


def test_an_end_without_a_ray_is_not_called_endless() -> None:
    """A solver that proposes a direction which leads nowhere, or out of the facts, is not believed."""
    known = Knowledge.of("xy").fact({"x": 1, "y": -1}, 2, 2)
    for direction, table in (([1.0, 1.0], True), ([0.0, 0.0], False), ([1.0, 0.0], False),
                             ([-1.0, -1.0], False)):  # fmt: skip
        made = maker(FactSystem.of(known), 0, 1)
        made.cone = _Says(LinearOptimum("optimal", -1.0, np.array(direction)))  # type: ignore[assignment]
        end = made._endless(0, -1)
        assert (end.value, end.sharp) == (None, table)
        assert made.rays == ([(1, 1)] if table else [])
        assert end == (End(None, True, 0, 0) if table else End(None, False))
        if table:
            assert made._endless(1, -1) == End(None, True, 0, 0)
            assert len(made.rays) == 1
    # No table is known and none is found: then nothing is claimed.
    lost = maker(FactSystem.of(known), 0)
    lost.cone = _Says(LinearOptimum("optimal", -1.0, np.array([1.0, 1.0])))  # type: ignore[assignment]
    lost.linear = _Says(LinearOptimum("unknown"))  # type: ignore[assignment]
    lost._tried = True
    assert lost._endless(0, -1) == End(None, False)
    lost._tried = False
    assert lost._endless(0, -1) == End(None, True, 0, 0)  # a search among small tables finds one
    assert lost._tried


class _Says:
    """A solver that always says the same."""

    def __init__(self, found: LinearOptimum) -> None:
        self.found = found

    def minimise(self, *_: object) -> LinearOptimum:
        return self.found


def test_the_multipliers_that_show_most_are_kept() -> None:
    """Of x alone; by ``2x - y >= 1`` with y at least -1; and by multipliers that lean the wrong way."""
    real = replace(example(), whole=False)
    y_high = {2: (3, 4)}
    given = Leaf(1, ())
    good = LinearOptimum("optimal", 2.0, None, np.array([0.5, 0.0]))
    leaf, shown = bound_leaf(real, good, 0, 1, y_high, None, given)
    assert (leaf, shown) == (Leaf(2, ((0, 1),)), 2)
    bad = LinearOptimum("optimal", 2.0, None, np.array([-3.0, 0.0]))
    assert bound_leaf(real, bad, 0, 1, y_high, None, given) == (given, 0)
    assert bound_leaf(real, LinearOptimum("unknown"), 0, 1, y_high, None, given) == (given, 0)
    # z has no upper end, so nothing is given; its fact has no upper end either.
    none = LinearOptimum("optimal", 0.0, None, np.array([0.0, -1.0]))
    assert bound_leaf(real, none, 3, -1, {}, None, given) == (given, None)
    # The target is reached by what is given: nothing else is looked at.
    assert bound_leaf(real, good, 0, 1, y_high, 0, given) == (given, 0)
    assert bound_leaf(real, good, 0, 1, y_high, 1, given)[1] == 2
    whole = example()
    assert bound_leaf(whole, good, 0, 1, y_high, None, given)[1] == 2
    third = LinearOptimum("optimal", 2.0, None, np.array([0.49999999, 0.0]))
    assert bound_leaf(real, third, 0, 1, y_high, None, given)[1] == 2


def test_tables_near_a_point_are_proposed_whole_first() -> None:
    whole, real = example(), replace(example(), whole=False)
    near = LinearOptimum("optimal", 0.0, np.array([1.0000005, 2.0, 0.0, -0.0000005]))
    assert list(tables_near(whole, near, {})) == [WitnessTable(1, (1, 2, 0, 0))]
    for far in ([1.00001, 2.0, 0.0, 0.0], [2.0**53, 2.0, 0.0, 0.0], [-0.5, 2.0, 0.0, 0.0]):
        assert not list(tables_near(whole, LinearOptimum("optimal", 0.0, np.array(far)), {}))
    edge = LinearOptimum("optimal", 0.0, np.array([2.0**53 - 1, 2.0, 0.0, 0.0]))
    assert next(tables_near(whole, edge, {})).values[0] == 2**53 - 1
    half = LinearOptimum("optimal", 0.0, np.array([1.5, 2.0, 0.0, 1 / 3]))
    assert WitnessTable(6, (9, 12, 0, 2)) in list(tables_near(real, half, {}))
    assert not list(tables_near(real, LinearOptimum("unknown"), {}))
