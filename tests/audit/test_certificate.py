"""A certificate proves the range of all tables there are, and nothing but public facts goes in."""

from __future__ import annotations

import inspect
import itertools
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.fibres import axis, fitting
from audit.worlds import worlds
from examples import examples
from lustrum.audit import ContradictionError, Knowledge, bounds, from_margins, from_suppression
from lustrum.audit.certificate import Certificate, certify, knowledge_digest, linear, verify
from lustrum.audit.certificate.exact import FactSystem, Leaf, Split
from lustrum.audit.certificate.linear import solve
from lustrum.model import InputError, Table

MANY = settings(deadline=None, max_examples=examples(40, 320))
IJ = [[3, 87, 68, 72], [5, 8, 80, 4], [3, 4, 7, 107], [64, 6, 56, 7]]
JK = [[5, 2, 68], [10, 10, 85], [69, 81, 61], [7, 132, 51]]
IK = [[74, 75, 81], [3, 85, 9], [8, 61, 52], [6, 4, 123]]


def holds(made: Certificate) -> None:
    """The verifier accepts what was made and reads the same claims out of it."""
    report = verify(made.to_json(), made.digest)
    assert report.holds, report.reason
    assert [(p.low, p.high, p.low_sharp, p.high_sharp) for p in report.proven] == [
        (c.low.value, c.high.value, c.low.sharp, c.high.sharp) for c in made.claims
    ]


def ranges(made: Certificate) -> list[tuple[Fraction | None, Fraction | None]]:
    return [(c.low.value, c.high.value) for c in made.claims]


@st.composite
def systems(draw: st.DrawFn) -> Knowledge:
    """A few cells in a small box, tied by any whole facts."""
    names = [f"x{i}" for i in range(draw(st.integers(1, 4)))]
    known = Knowledge.of(names, low=-9)
    for name in names:
        low = draw(st.integers(-1, 2))
        known = known.bound(name, low, low + draw(st.integers(0, 4)))
    for _ in range(draw(st.integers(0, 3))):
        weights = {n: draw(st.sampled_from([-3, -2, -1, 0, 1, 1, 2, 3])) for n in names}
        low = draw(st.integers(-2, 8))
        known = known.fact(weights, low, low + draw(st.sampled_from([0, 0, 1, 3])))
    return known


@MANY
@given(systems())
def test_what_is_proven_is_the_range_of_all_tables(known):
    points = fitting(known)
    if len(points) == 0:
        with pytest.raises(ContradictionError):
            certify(known)
        return
    made = certify(known)
    holds(made)
    assert all(claim.sharp for claim in made.claims)
    least, most = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    assert ranges(made) == list(zip(least, most, strict=True))


@MANY
@given(worlds())
def test_tables_are_certified_as_all_cubes_that_fit_have_it(world):
    made = certify(world.known, range(world.cells))
    holds(made)
    assert all(claim.sharp for claim in made.claims)
    least, most = world.every.min(axis=0).tolist(), world.every.max(axis=0).tolist()
    assert ranges(made) == list(zip(least, most, strict=True))
    assert made.digest == knowledge_digest(world.known)


@MANY
@given(systems())
def test_of_real_cells_the_exact_linear_range_is_proven(known):
    relaxed = known.relaxed()
    try:
        made = certify(relaxed)
    except ContradictionError:
        assert len(fitting(known)) == 0
        return
    holds(made)
    assert all(claim.sharp for claim in made.claims)
    found = bounds(relaxed)
    assert [float(c.low.value) for c in made.claims] == pytest.approx(found.low.tolist(), abs=1e-6)
    assert [float(c.high.value) for c in made.claims] == pytest.approx(
        found.high.tolist(), abs=1e-6
    )


@MANY
@given(systems(), st.data())
def test_cells_without_bounds_are_proven_to_be_endless(known, data):
    free = data.draw(st.sets(st.sampled_from(range(len(known)))))
    low, high = known.low.copy(), known.high.copy()
    for cell in free:
        high[cell] = 2**62
    wide = Knowledge(known.names, low, high, known.matrix, known.fact_low, known.fact_high)
    try:
        made = certify(wide, nodes=60)
    except ContradictionError:
        assert len(fitting(known)) == 0
        return
    holds(made)
    high[list(free)] = 14
    some = fitting(Knowledge(known.names, low, high, known.matrix, known.fact_low, known.fact_high))
    for claim in made.claims:
        column = some[:, claim.cell].tolist()
        assert claim.low.value is not None
        assert all(claim.low.value <= v for v in column)
        if claim.high.value is not None:
            assert all(v <= claim.high.value for v in column)


@pytest.mark.parametrize("total", range(30, 50, 4))
def test_large_weights_take_branches_whose_leaves_all_hold(total):
    known = Knowledge.of("abc").within(0, 7).fact({"a": 4, "b": 7, "c": 9}, total, total)
    points = fitting(known)
    made = certify(known)
    holds(made)
    assert ranges(made) == list(zip(points.min(axis=0), points.max(axis=0), strict=True))


def test_some_cells_are_certified_in_the_order_asked_for_once_each(tmp_path):
    known = Knowledge.of("xyz").fact({"x": 1, "y": 1, "z": 1}, 7, 7)
    told: list[tuple[int, int]] = []
    made = certify(known, ["z", "x", "z"], progress=lambda now, of: told.append((now, of)))
    assert [c.cell for c in made.claims] == [2, 0]
    assert told == [(1, 2), (2, 2)]
    assert made.claim("x") is made.claims[1]
    made.write(tmp_path / "proof.json")
    assert (tmp_path / "proof.json").read_text(encoding="utf-8") == made.to_json()
    end = replace(made.claims[0].low, sharp=False)
    assert not replace(made.claims[0], low=end).sharp
    assert not replace(made.claims[0], high=end).sharp


def test_all_margins_of_a_4x4x3_table_are_certified():
    known = from_margins({"I": 4, "J": 4, "K": 3}, {"IJ": IJ, "JK": JK, "IK": IK})
    made = certify(known, known.table(0))
    holds(made)
    assert all(claim.sharp for claim in made.claims)
    assert made.claims[known.cell(["1", "3", "3"])].high.value == 13
    for codes, ends in {"131": (54, 68), "123": (67, 81), "413": (57, 64)}.items():
        claim = made.claims[known.cell(list(codes))]
        assert (claim.low.value, claim.high.value) == ends


def test_for_real_cells_the_proof_is_a_fraction():
    known = from_margins({"I": 4, "J": 4, "K": 3}, {"IJ": IJ, "JK": JK, "IK": IK}).relaxed()
    special = known.cell(["1", "3", "3"])
    made = certify(known, [special])
    holds(made)
    (claim,) = made.claims
    assert claim.high.value == Fraction(27, 2)
    assert claim.high.sharp
    assert made.tables[claim.high.table].value(special) == Fraction(27, 2)
    assert made.to_mapping()["claims"][0]["high"]["value"] == "27/2"


def test_the_suppressed_cells_of_the_2002_paper():
    known = Knowledge.of(["x1", "x2", "x3", "x4"])
    for row, total in ((("x1", "x2"), 1537), (("x3", "x4"), 1251), (("x1", "x3"), 406)):
        known = known.fact(dict.fromkeys(row, 1), total, total)
    made = certify(known)
    holds(made)
    assert ranges(made) == [(0, 406), (1131, 1537), (0, 406), (845, 1251)]
    assert all(len(e.proof) == 1 for c in made.claims for e in (c.low, c.high))


def branching() -> Knowledge:
    """Three cells whose sharp ends need a branch tree."""
    known = Knowledge.of(["x", "y", "z"])
    for name, high in (("x", 4), ("y", 3), ("z", 4)):
        known = known.bound(name, high=high)
    return known.fact({"x": 3, "y": 3, "z": -2}, 8, 8).fact({"x": 2, "y": 1, "z": -2}, 3, 4)


def test_where_rounding_is_not_enough_a_branch_tree_proves_it():
    known = branching()
    made = certify(known)
    holds(made)
    points = fitting(known)
    assert ranges(made) == [(points[:, j].min(), points[:, j].max()) for j in range(3)]
    nodes = [n for c in made.claims for e in (c.low, c.high) for n in e.proof]
    assert any(isinstance(n, Split) for n in nodes)
    assert any(isinstance(n, Leaf) and n.empty for n in nodes)


@pytest.mark.parametrize("nodes", [1, 2, 4, 6, 9])
def test_a_spent_budget_leaves_outer_bounds_that_say_so(nodes):
    known = branching()
    made = certify(known, nodes=nodes)
    holds(made)
    points = fitting(known)
    for claim in made.claims:
        column = points[:, claim.cell]
        assert claim.low.value <= column.min()
        assert column.max() <= claim.high.value
        assert claim.low.sharp == (claim.low.value == column.min())
        assert claim.high.sharp == (claim.high.value == column.max())
    assert nodes > 1 or not all(claim.sharp for claim in made.claims)


def test_parity_that_never_ends_stops_at_the_budget():
    known = Knowledge.of(["x", "y"]).fact({"x": 2, "y": -2}, 1, 1)
    made = certify(known, nodes=40)
    holds(made)
    assert not any(claim.low.sharp for claim in made.claims)


def test_a_search_that_would_never_end_is_cut_off():
    known = Knowledge.of(["a", "b", "c", "d"], low=-(2**62))
    known = known.fact({"a": 1, "b": 6, "c": 2, "d": -7}, -7, -6)
    known = known.fact({"b": 6, "c": 5, "d": 5}, 19, 20)
    known = known.fact({"a": -7, "b": 5, "c": 5, "d": 2}, -10, -10)
    made = certify(known, nodes=20)
    holds(made)
    assert ranges(made) == [(None, None)] * 4


def test_a_search_for_a_whole_table_that_never_ends_is_limited():
    known = Knowledge.of(["x", "y"]).fact({"x": 2, "y": -2}, 1, 1)
    assert linear.whole_table(FactSystem.of(known), 0, 1, 40) is None


def test_facts_that_no_table_fits_make_no_certificate():
    known = Knowledge.of(["x", "y"]).fact({"x": 1, "y": 1}, 7, 7).fact({"x": 1, "y": 1}, 8, 8)
    with pytest.raises(ContradictionError, match="about x"):
        certify(known)


def test_an_endless_range_has_a_table_and_a_direction():
    known = Knowledge.of(["x", "y"]).fact({"x": 1, "y": -2}, 3, 3)
    made = certify(known)
    holds(made)
    assert ranges(made) == [(3, None), (0, None)]
    assert all(claim.sharp for claim in made.claims)
    assert made.rays == ((2, 1),)


def test_true_values_behind_a_mask_leave_no_trace():
    axes = [axis("r", [0], [1], [0, 1]), axis("c", [0], [1], [0, 1])]
    mask = np.zeros((3, 3), dtype=bool)
    mask[:2, :2] = True
    one, other = [[3, 4, 7], [5, 6, 11], [8, 10, 18]], [[7, 0, 7], [1, 10, 11], [8, 10, 18]]
    texts = {
        certify(from_suppression(Table(axes, t), mask)).to_json()
        for t in map(np.array, (one, other))
    }
    assert len(texts) == 1


def test_the_maker_is_handed_knowledge_and_nothing_else():
    parameters = inspect.signature(certify).parameters
    assert list(parameters) == ["known", "cells", "nodes", "progress"]
    with pytest.raises(InputError, match="is of Knowledge"):
        certify(np.array([[1, 2], [3, 4]]))


def test_the_digest_names_the_knowledge():
    known = Knowledge.of(["x", "y"]).fact({"x": 1, "y": 1}, 7, 7)
    made = certify(known)
    assert made.digest == knowledge_digest(known)
    others = [known.bound("x", high=6), known.relaxed(), Knowledge.of(["x", "z"])]
    assert len({knowledge_digest(k) for k in [known, *others]}) == 4
    assert not verify(made.to_json(), knowledge_digest(others[0])).holds


def test_decimals_and_large_numbers_stay_exact():
    big = 2**53
    known = Knowledge.of(["x", "y"], decimals=2).fact({"x": 3, "y": -3}, 3, 3).bound("y", high=big)
    made = certify(known, ["x"])
    holds(made)
    assert made.claims[0].low.value == 1
    assert verify(made.to_json()).decimals == 2
    assert made.to_mapping()["knowledge"]["cells"][1]["high"] == str(big)


def test_the_true_table_can_be_checked_against_the_facts():
    made = certify(branching(), ["x"])
    for point in fitting(branching()).tolist():
        assert made.allows(point)
    assert not made.allows([0, 0, 0])
    assert not made.allows([0, 0])


PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "what-an-attacker-can-infer.md"


def test_the_page_shows_what_is_made():
    text = PAGE.read_text(encoding="utf-8").partition("## Certificates")[2]
    (example,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    (document,) = re.findall(r"```json\n(.*?)```", text, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, str(PAGE), "exec"), names)
    assert names["certificate"].to_mapping() == json.loads(document)
    assert verify(document).holds


@MANY
@given(st.integers(1, 5), st.data())
def test_elimination_solves_exactly_or_says_that_it_cannot(size, data):
    entries = st.lists(st.integers(-3, 3), min_size=size, max_size=size)
    rows = data.draw(st.lists(entries, min_size=size, max_size=size))
    right = data.draw(entries)
    found = solve([dict(enumerate(r)) for r in rows], right)
    if found is None:
        assert _determinant(rows) == 0
        return
    assert [sum(w * found[j] for j, w in enumerate(r)) for r in rows] == right


def _determinant(rows: list[list[int]]) -> int:
    total = 0
    for order in itertools.permutations(range(len(rows))):
        swaps = sum(a > b for a, b in itertools.combinations(order, 2))
        term = (-1) ** swaps
        for i, j in enumerate(order):
            term *= rows[i][j]
        total += term
    return total
