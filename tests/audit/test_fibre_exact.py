"""Whole fibres: enumeration, counting and formulas agree with each other and with brute force."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from audit.fibres import QUICK, fitting
from audit.plain_walks import plain_tables
from lustrum.audit import ContradictionError, Knowledge, PublishedTable, from_margins, from_tables
from lustrum.audit.fibre import FibreMargins, count_tables, distribution, enumerate_fibre, unimodal
from lustrum.audit.fibre.enumerate import tally
from lustrum.audit.fibre.system import FibreSystem
from lustrum.audit.fibre.two_way import TwoWay
from lustrum.audit.fibre.unimodal import Unimodal
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
def small_systems(draw: st.DrawFn) -> Knowledge:
    """A few counts in a small box, tied by any whole facts."""
    names = [f"x{i}" for i in range(draw(st.integers(1, 5)))]
    known = Knowledge.of(names)
    for name in names:
        low = draw(st.integers(0, 2))
        known = known.bound(name, low, low + draw(st.integers(0, 3)))
    for _ in range(draw(st.integers(0, 3))):
        weights = {n: draw(st.sampled_from([-2, -1, 0, 1, 1, 1, 2])) for n in names}
        low = draw(st.integers(-2, 8))
        known = known.fact(weights, low, low + draw(st.sampled_from([0, 0, 0, 1, 3])))
    return known


@QUICK
@given(small_systems(), st.sampled_from(["uniform", "hypergeometric"]))
def test_exact_distributions_weigh_every_table_that_fits(known, target):
    tables = fitting(known)
    if len(tables) == 0:
        with pytest.raises(ContradictionError):
            distribution(known, target, "exact")
        return
    found = distribution(known, target, "exact")
    flat = [Fraction(1, len(tables))] * len(tables)
    assert_equal_to(found, tables, flat if target == "uniform" else weights_of(tables))
    assert bool(found.exact.all())
    if target == "uniform":
        assert found.tables == len(tables)
        assert enumerate_fibre(known).tables.tolist() == sorted(tables.tolist())


@QUICK
@given(small_systems())
def test_the_compiled_walk_meets_what_the_plain_one_meets(known):
    try:
        blocks = FibreSystem.of(known).blocks
    except ContradictionError:
        return
    for block in blocks:
        plain = np.array(list(plain_tables(block)), dtype=np.int64).reshape(-1, len(block))
        found = tally(block)
        assert found.complete
        assert found.count == len(plain)
        for k, sums in enumerate(found.sums):
            wanted = np.bincount(plain[:, k] - block.low[k], minlength=sums.size)
            assert sums.tolist() == wanted.tolist()


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


def test_the_unimodal_choice_peaks_in_the_centre_or_at_the_mode():
    margins = FibreMargins.two_way([6, 4], [5, 5])
    values, chances = unimodal(margins).distribution(0)
    assert values.tolist() == [1, 2, 3, 4, 5]
    assert chances == pytest.approx(np.array([1, 2, 3, 2, 1]) / 9)
    prior = Unimodal().weights(values, np.full(5, 1), np.full(5, 5))
    assert prior / prior.sum() == pytest.approx(chances)
    _, leaning = unimodal(margins, mode=[5, 1, 0, 4]).distribution(0)
    assert leaning == pytest.approx(np.arange(1, 6) / 15)
    with pytest.raises(InputError, match="mode"):
        unimodal(margins, mode=[1, 2])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: FibreMargins.two_way([1.5], [1.5]), "whole numbers of 0 or more"),
        (lambda: FibreMargins.two_way([-1, 2], [1]), "whole numbers of 0 or more"),
        (lambda: FibreMargins.two_way([1, 2], [1, 1]), "contradict each other"),
        (lambda: FibreMargins((2, 2), {}), "at least one margin"),
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
