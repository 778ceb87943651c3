"""Whole fibres: enumeration, counting and formulas agree with each other and with brute force."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from audit.fibres import QUICK, fitting
from lustrum.audit import ContradictionError, Knowledge, PublishedTable, from_margins, from_tables
from lustrum.audit.fibre import FibreMargins, count_tables, distribution, enumerate_fibre, unimodal
from lustrum.audit.fibre.distributions import Unimodal
from lustrum.audit.fibre.enumerate import tally
from lustrum.audit.fibre.system import FibreSystem
from lustrum.audit.fibre.two_way import TwoWay
from lustrum.model import Category, InputError, TableAxis
from lustrum.numeric.structure import UNBOUNDED

ALL_PAIRS = [(0, 1), (0, 2), (1, 2)]


def weights_of(tables: np.ndarray, counted: np.ndarray | None = None) -> list[Fraction]:
    """One over the product of factorials, exactly."""
    picks = tables if counted is None else tables[:, counted]
    raw = [Fraction(1, math.prod(math.factorial(int(v)) for v in t)) for t in picks]
    return [w / sum(raw) for w in raw]


def shares(tables: np.ndarray, weights: list[Fraction], cell: int) -> dict[int, float]:
    """The exact distribution of one cell."""
    out: dict[int, Fraction] = {}
    for table, weight in zip(tables, weights, strict=True):
        out[int(table[cell])] = out.get(int(table[cell]), Fraction(0)) + weight
    return {v: float(p) for v, p in sorted(out.items())}


def assert_equal_to(found, tables, weights) -> None:
    for cell in range(tables.shape[1]):
        wanted = shares(tables, weights, cell)
        values, chances = found.of(cell)
        assert values.tolist() == list(wanted)
        assert chances == pytest.approx(list(wanted.values()), abs=1e-12)


@st.composite
def small_systems(draw: st.DrawFn, least: int = 0) -> Knowledge:
    """A few cells in a small box, tied by any whole facts; some are told twice, the other way round."""
    names = [f"x{i}" for i in range(draw(st.integers(1, 5)))]
    known = Knowledge.of(names, low=-9, decimals=1)
    for name in names:
        low = draw(st.integers(least, 2))
        known = known.bound(name, low, low + draw(st.integers(0, 3)))
    for _ in range(draw(st.integers(0, 3))):
        weights = {n: draw(st.sampled_from([-2, -1, 0, 1, 1, 1, 2])) for n in names}
        low = draw(st.integers(-2, 8))
        high = low + draw(st.sampled_from([0, 0, 0, 1, 3]))
        ends = draw(st.sampled_from([(low, high)] * 3 + [(low, UNBOUNDED), (-UNBOUNDED, high)]))
        known = known.fact(weights, *ends)
        if draw(st.integers(0, 3)) == 0:
            known = known.fact({n: -w for n, w in weights.items()}, -ends[1], -ends[0])
    return known


@QUICK
@given(st.data(), st.sampled_from(["uniform", "hypergeometric"]))
def test_exact_distributions_weigh_every_table_that_fits(data, target):
    known = data.draw(small_systems(least=0 if target == "hypergeometric" else -1))
    tables = fitting(known)
    if len(tables) == 0:
        with pytest.raises(ContradictionError):
            distribution(known, target, "exact")
        return
    found = distribution(known, target, "exact")
    weights = [Fraction(1, len(tables))] * len(tables)
    if target == "hypergeometric":
        weights = weights_of(tables)
        marks = np.array([data.draw(st.booleans()) for _ in known.names])
        own = distribution(known, target, "exact", counted=marks)
        assert_equal_to(own, tables, weights_of(tables, marks))
    assert_equal_to(found, tables, weights)
    assert (found.draws, found.chains, found.stopped, found.agreed) == (0, 0, False, True)
    assert found.exact.all()
    assert found.belief.decimals == 1
    if target == "uniform":
        assert found.tables == len(tables)
        most = data.draw(st.integers(1, len(tables) + 1))
        listed = enumerate_fibre(known).tables.tolist()
        part = enumerate_fibre(known, most=most)
        rows = part.tables.tolist()
        assert listed == sorted(tables.tolist())
        assert part.complete == (most >= len(tables))
        assert len(rows) == min(most, len(tables))
        assert rows == sorted(r for r in listed if r in rows)


@QUICK
@given(st.data(), st.sampled_from(["uniform", "hypergeometric"]))
def test_two_way_tables_with_bounds_are_weighed_one_by_one(data, target):
    shape = data.draw(st.sampled_from([(2, 2), (2, 3), (3, 2), (3, 3)]))
    size = shape[0] * shape[1]
    table = np.array([data.draw(st.integers(0, 3)) for _ in range(size)])
    below = np.array([data.draw(st.sampled_from([0, 0, 0, 1])) for _ in range(size)])
    above = np.array([data.draw(st.sampled_from([0, 1, 9, 9])) for _ in range(size)])
    known = FibreMargins.of(table.reshape(shape), [(0,), (1,)]).knowledge()
    if data.draw(st.booleans()):
        known = known.within(np.maximum(table - below, 0) * (below > 0), table + above)
    sums = int(table.sum())
    tables = fitting(known.within(0, np.minimum(known.high, sums)))
    found = distribution(known, target, "exact")
    flat = [Fraction(1, len(tables))] * len(tables)
    assert_equal_to(found, tables, flat if target == "uniform" else weights_of(tables))


@QUICK
@given(
    st.lists(st.integers(0, 3), min_size=9, max_size=9),
    st.lists(st.booleans(), min_size=9, max_size=9),
    st.booleans(),
)
def test_counting_two_way_tables_equals_enumerating_them(values, zeros, hypergeometric):
    table = np.array(values).reshape(3, 3)
    possible = ~np.array(zeros).reshape(3, 3) | (table > 0)
    margins = FibreMargins.of(table, [(0,), (1,)], possible)
    fibre = enumerate_fibre(margins)
    assert fibre.complete
    assert count_tables(table.sum(axis=1), table.sum(axis=0), possible) == len(fibre)
    for block in FibreSystem.of(margins).blocks:
        two_way = TwoWay.of(block)
        if two_way is None:
            continue
        counted = two_way.exact(hypergeometric=hypergeometric)
        weighed = tally(block, hypergeometric=hypergeometric)
        for k, sums in enumerate(weighed.sums):
            wanted = {block.low[k] + i: s / sums.sum() for i, s in enumerate(sums) if s > 0}
            got = {counted.low[k] + i: p for i, p in enumerate(counted.probabilities[k]) if p > 0}
            assert got == pytest.approx(wanted, abs=1e-12)
        if hypergeometric and two_way.free:
            formula = two_way.hypergeometric()
            for k, chances in enumerate(formula.probabilities):
                assert chances == pytest.approx(counted.probabilities[k], abs=1e-12)
                assert formula.low[k] == counted.low[k]


def test_counts_of_two_way_tables_are_the_published_ones():
    # Magic squares of side 3: C(r+2, 4) + C(r+3, 4) + C(r+4, 4) (MacMahon 1915).
    for r in (1, 2, 5):
        assert count_tables([r] * 3, [r] * 3) == sum(math.comb(r + k, 4) for k in (2, 3, 4))
    # Diaconis and Gangolli (1995) count the tables with these sums.
    assert count_tables([10, 62, 13, 11, 39], [65, 25, 45], steps=10**8) == 239_382_173


def test_a_cell_of_any_two_way_table_is_hypergeometric():
    table = np.random.default_rng(7).poisson(9, (20, 20))
    found = distribution(FibreMargins.of(table, [(0,), (1,)]), "hypergeometric", "exact")
    people, row, column = table.sum(), table[3].sum(), table[:, 5].sum()
    values, chances = found.of(3 * 20 + 5)
    assert chances == pytest.approx(stats.hypergeom(people, row, column).pmf(values), rel=1e-8)


def test_weights_far_apart_do_not_overflow():
    found = distribution(FibreMargins.two_way([50_000, 50_000], [50_000, 50_000]), "hypergeometric")
    known = Knowledge.of(["a", "b", "c", "d"], low=0)
    for pair in (("a", "b"), ("c", "d"), ("a", "c")):
        known = known.fact(dict.fromkeys(pair, 1), 50_000, 50_000)
    block = FibreSystem.of(known).blocks[0]
    sums = tally(block, hypergeometric=True).sums[0]
    values, chances = found.of(0)
    assert sums[values] / sums.sum() == pytest.approx(chances, rel=1e-6, abs=1e-15)


def test_a_suppressed_table_is_weighed_by_its_inner_cells_alone():
    def with_total(name: str) -> TableAxis:
        codes = [Category(str(i), str(i), (i,)) for i in range(3)]
        return TableAxis(name, name, (*codes, Category("T", "T", (0, 1, 2))))

    inner = np.array([[2, 1, 3], [4, 0, 1], [1, 2, 2]])
    whole = np.zeros((4, 4), dtype=int)
    whole[:3, :3] = inner
    whole[3, :3], whole[:3, 3], whole[3, 3] = inner.sum(0), inner.sum(1), inner.sum()
    hidden = np.zeros((4, 4), dtype=bool)
    hidden[:2, :2] = True
    hidden[2, 0] = hidden[2, 3] = hidden[3, 3] = hidden[3, 0] = True
    known = from_tables([PublishedTable.exact([with_total("a"), with_total("b")], whole, hidden)])
    known = known.bound(12, high=9)
    tables = enumerate_fibre(known).tables
    assert len(tables) > 5
    assert (tables[:, 15] > tables[:, 0]).all()
    counted = np.add.outer(4 * np.arange(3), np.arange(3)).ravel()
    found = distribution(known, "hypergeometric", "exact")
    assert_equal_to(found, tables, weights_of(tables, counted))


def test_hidden_margins_have_distributions_too():
    known = from_margins(
        {"A": 2, "B": 2, "C": 2},
        {("A", "B"): [[2, 1], [1, 2]], ("B", "C"): [[2, 1], [1, 2]]},
        hidden=[("A", "C")],
    )
    tables = enumerate_fibre(known).tables
    found = distribution(known, "hypergeometric", "exact")
    assert_equal_to(found, tables, weights_of(tables, np.arange(8)))


def test_separators_split_a_table_into_two_way_ones():
    table = np.random.default_rng(3).poisson(6, (4, 5, 6))
    system = FibreSystem.of(FibreMargins.of(table, [(0, 1), (1, 2)]))
    assert [repr(TwoWay.of(b)) for b in system.blocks] == ["TwoWay(4 x 6, 24 cells)"] * 5


def test_sums_beyond_64_bits_leave_a_fact_as_it_is():
    # The difference of both is at most 2; in units of 2**40 it could be 2**70, were it not known.
    unit = 2**40
    known = Knowledge.of("ab").within(0, 2**30).fact({"a": unit, "b": -unit}, -2 * unit, 2 * unit)
    (block,) = FibreSystem.of(known).blocks
    for apart in range(-3, 4):
        point = np.array([9 + apart, 9])
        assert block.holds(block.extended(point)) == (abs(apart) <= 2)
    # As many values as 64 bits cannot count are too many to try.
    assert not enumerate_fibre(FibreMargins((1200,), {(): 9 * 10**15}), most=1).complete


def test_bounds_that_only_programs_find_bound_a_fibre():
    known = Knowledge.of("xy", low=-UNBOUNDED).fact({"x": 1, "y": 1}, 2, 5)
    assert distribution(known.fact({"x": 1, "y": -1}, -1, 1)).tables == 6
    for half in (known, known.bound("x", low=0), known.bound("y", high=4)):
        with pytest.raises(InputError, match="Nothing bounds"):
            distribution(half)


def test_a_small_budget_is_told_and_marked():
    margins = FibreMargins.of(np.full((4, 4, 4), 3), ALL_PAIRS)
    with pytest.raises(InputError, match="too many tables"):
        distribution(margins, method="exact", nodes=1000)
    part = enumerate_fibre(margins, most=50, nodes=100_000)
    assert not part.complete
    assert len(part) <= 50
    assert "there are more" in repr(part)
    exactly = enumerate_fibre(FibreMargins.two_way([2, 2], [2, 2]), most=3)
    assert exactly.complete
    with pytest.raises(InputError, match="too many states"):
        count_tables([30] * 6, [30] * 6, steps=1000)


@QUICK
@given(st.data())
def test_one_peak_falls_in_straight_lines_to_both_ends(data):
    known = data.draw(small_systems(least=-1))
    tables = fitting(known)
    assume(len(tables))
    low, high = tables.min(axis=0).tolist(), tables.max(axis=0).tolist()
    mode = data.draw(
        st.none() | st.lists(st.integers(-3, 6), min_size=len(known), max_size=len(known))
    )
    belief = unimodal(known, mode, integer=True)
    assert belief.decimals == 1
    for cell, (least, most) in enumerate(zip(low, high, strict=True)):
        peak = Fraction(least + most, 2) if mode is None else min(max(mode[cell], least), most)
        heights = [
            min((v - least + 1) / (peak - least + 1), (most + 1 - v) / (most + 1 - peak))
            for v in map(Fraction, range(least, most + 1))
        ]
        values, chances = belief.distribution(cell)
        assert values.tolist() == list(range(least, most + 1))
        assert chances == pytest.approx([float(h / sum(heights)) for h in heights])
        if mode is None:
            prior = Unimodal().weights(
                values, np.full(values.size, least), np.full(values.size, most)
            )
            assert prior / prior.sum() == pytest.approx(chances)


def test_one_peak_needs_ends_that_can_be_written_out():
    known = Knowledge.of("ab").fact({"a": 1, "b": 1}, 4, 4)
    for wrong in (
        lambda: unimodal(known, mode=[1, 2, 3]),
        lambda: unimodal(known, mode=[1, np.nan]),
        lambda: unimodal(known, mode="ab"),
        lambda: unimodal(known.relaxed()),
        lambda: unimodal([[1, 2]]),
        lambda: unimodal(Knowledge.of("a")),
        lambda: unimodal(Knowledge.of("a").bound("a", 0, 10**7)),
    ):
        with pytest.raises(InputError):
            wrong()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: FibreMargins.two_way([1.5], [1.5]), "whole numbers of 0 or more"),
        (lambda: FibreMargins.two_way([-1, 2], [1]), "whole numbers of 0 or more"),
        (lambda: FibreMargins.two_way([1, 2], [1, 1]), "contradict each other"),
        (lambda: FibreMargins((2, 2), {}), "at least one margin"),
        (lambda: FibreMargins((), {(): 1}), "needs axes"),
        (lambda: FibreMargins((2, 2), {(0, 0): np.ones((2, 2), int)}), "2 axes"),
        (lambda: FibreMargins((2, 2), {(-1,): [1, 1]}), "2 axes"),
        (lambda: FibreMargins.of(np.ones((2, 2), int), [0, 1]), "lists the axes"),
        (lambda: FibreMargins.of([[1, 2], [3]], [(0,)]), "same length"),
        (lambda: FibreMargins.two_way([2**53, 2], [2**53, 2]), r"2\*\*53"),
        (lambda: FibreMargins.two_way([2**62, 1], [2**62, 1]), r"2\*\*53"),
        (lambda: FibreMargins.two_way(np.ones((2, 2), int), [2, 2]), "two plain lists"),
        (lambda: enumerate_fibre(FibreMargins.two_way([1], [1]), nodes=2.5), "'nodes' must be"),
        (lambda: enumerate_fibre(FibreMargins.two_way([1], [1]), most=True), "'most' must be"),
        (lambda: enumerate_fibre(FibreMargins.two_way([1], [1]), most=2**62), "below"),
        (lambda: distribution(FibreMargins.two_way([1], [1]), counted=[2]), "True or False"),
        (lambda: FibreMargins((2, 2), {(0, 2): np.ones((2, 2), int)}), "2 axes"),
        (lambda: FibreMargins((2, 2), {(0,): np.ones(3, int)}), r"must be \(2,\)"),
        (lambda: FibreMargins.two_way([1, 1], [1, 1], possible=[[True]]), "mask of possible"),
        (lambda: distribution(Knowledge.of(["x"])), "Nothing bounds x"),
        (lambda: distribution(FibreMargins.two_way([1], [1]), "gamma"), "no target"),
        (lambda: distribution(FibreMargins.two_way([1], [1]), method="guess"), "no method"),
        (lambda: distribution(FibreMargins.two_way([1], [1]), draws=2), "'draws'"),
        (lambda: distribution([[1, 2]]), "Knowledge or Margins"),
        (lambda: distribution(Knowledge.of("xy").bound(0, 0, 3).bound(1, 0, 3).relaxed()), "real"),
        (
            lambda: distribution(Knowledge.of(["x"], low=-3).bound("x", high=3), "hypergeometric"),
            "needs counts",
        ),
        (lambda: distribution(FibreMargins.two_way([1], [1]), counted=[True, False]), "'counted'"),
        (lambda: enumerate_fibre(FibreMargins.two_way([1], [1]), most=0), "'most' must be"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(make, says):
    with pytest.raises(InputError, match=says) as told:
        make()
    assert str(told.value).count(". ") == 0
    assert str(told.value).endswith(".")


def test_the_same_sum_with_two_values_is_a_contradiction():
    known = Knowledge.of("xyz").bound(0, 0, 9).bound(1, 0, 9).bound(2, 0, 9)
    known = known.fact({"x": 2, "y": 3, "z": 1}, 9, 9).fact({"x": -2, "y": -3, "z": -1}, -10, -10)
    with pytest.raises(ContradictionError):
        distribution(known)


def test_unbounded_is_not_a_bound():
    known = Knowledge.of(["x", "y"]).fact({"x": 1, "y": -1}, 0, 0).fact({"x": 1}, 0, 4)
    assert int(known.high.max()) == UNBOUNDED
    assert distribution(known).tables == 5
