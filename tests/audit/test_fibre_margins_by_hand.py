"""Margins of a fibre, their junction trees and the diagnostics of chains beside their definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from audit.fibres import axis
from lustrum.audit import ContradictionError, PublishedTable, from_margins, from_tables
from lustrum.audit.fibre import (
    FibreMargins,
    effective_size,
    enumerate_fibre,
    sample_fibre,
    split_rhat,
)
from lustrum.audit.fibre.margins import junction_tree
from lustrum.model import InputError
from lustrum.numeric.structure import UNBOUNDED, TableLayout

ALL_PAIRS = [(0, 1), (0, 2), (1, 2)]


# Diagnostics


def chains(seed: int, draws: int, rho: float = 0.0) -> np.ndarray:
    """Three chains of two quantities that remember a share of the draw before."""
    noise = np.random.default_rng(seed).normal(size=(3, draws, 2))
    out = noise.copy()
    for k in range(1, draws):
        out[:, k] = rho * out[:, k - 1] + noise[:, k]
    return out


def halves(values: np.ndarray, quantity: int) -> list[list[float]]:
    half = values.shape[1] // 2
    rows = values[:, :, quantity].tolist()
    return [r[:half] for r in rows] + [r[len(r) - half :] for r in rows]


def mean(values) -> float:
    return math.fsum(values) / len(values)


def variance(values) -> float:
    return math.fsum((v - mean(values)) ** 2 for v in values) / (len(values) - 1)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    ("draws", "rho"),
    [(4, 0.0), (5, 0.3), (9, 0.9), (30, 0.5), (31, -0.9), (40, 0.0), (40, -0.95), (64, 0.8)],
)
def test_diagnostics_are_those_of_the_book(draws, rho, count):
    values = chains(draws, draws, rho)[:count]
    rhat, size = split_rhat(values), effective_size(values)
    for quantity in range(2):
        parts = halves(values, quantity)
        n, m = len(parts[0]), len(parts)
        within = mean([variance(p) for p in parts])
        between = variance([mean(p) for p in parts])
        pooled = (n - 1) / n * within + between
        assert rhat[quantity] == pytest.approx(math.sqrt(pooled / within), rel=1e-12)
        correlation = [1.0]
        for lag in range(1, n):
            moment = mean(
                [
                    math.fsum((p[k] - mean(p)) * (p[k + lag] - mean(p)) for k in range(n - lag))
                    / (n - 1)
                    for p in parts
                ]
            )
            correlation.append(1 - (within - moment) / pooled)
        total, least = 0.0, math.inf
        for one, two in zip(correlation[0::2], correlation[1::2], strict=False):
            if one + two <= 0:
                break
            least = min(least, one + two)
            total += least
        time = max(2 * total - 1, 1 / math.log10(max(n * m, 10)))
        assert size[quantity] == pytest.approx(n * m / time, rel=1e-9)


def test_diagnostics_of_chains_that_stand_still():
    with np.errstate(all="raise"):
        assert np.isnan(split_rhat(np.zeros((2, 8, 1)))[0])
        assert np.isnan(effective_size(np.ones((2, 8, 1)))[0])
        stuck = np.repeat(np.arange(2.0)[:, None, None], 8, axis=1)
        assert np.isinf(split_rhat(stuck)[0])
        assert effective_size(stuck)[0] > 0
    # Chains that turn back at every draw are worth more than their length, up to a limit.
    turning = chains(1, 200, -0.99)
    assert effective_size(turning)[0] == pytest.approx(600 * math.log10(600))
    assert effective_size(turning[:1, :4]).shape == (2,)
    for wrong in (np.zeros((2, 3, 1)), np.zeros((2, 8))):
        with pytest.raises(InputError, match="four draws"):
            effective_size(wrong)


# Margins


def test_margins_are_kept_in_the_order_of_the_axes():
    table = np.arange(24).reshape(2, 3, 4)
    margins = FibreMargins.of(table, [(2, 0), (1,), (0, 0)])
    assert list(margins.sums) == [(0, 2), (1,), (0,)]
    assert margins.sums[0, 2].tolist() == table.sum(axis=1).tolist()
    assert margins.sums[1,].tolist() == table.sum(axis=(0, 2)).tolist()
    assert margins.cliques == ((0, 2), (1,))
    assert (margins.size, margins.decomposable) == (24, True)
    assert repr(margins) == "FibreMargins(2 x 3 x 4, kept 0,2; 1; 0)"
    turned = FibreMargins((2, 3, 4), {(2, 0): table.sum(axis=1).T, (): 276})
    assert turned.sums[0, 2].tolist() == table.sum(axis=1).tolist()
    assert turned.sums[()].tolist() == 276
    assert not turned.sums[0, 2].flags.writeable
    assert not turned.decomposable
    whole = FibreMargins.of(np.ones((2, 2)), [(0, 1), (0,)], [[True, False], [True, True]])
    assert whole.possible is not None
    assert whole.possible.tolist() == [[True, False], [True, True]]
    assert whole.cliques == ((0, 1),)
    assert FibreMargins.two_way([3], [3]).shape == (1, 1)
    listed = FibreMargins([np.int64(2), 2], {(0,): [1, 2]})  # type: ignore[arg-type]
    assert (listed.shape, type(listed.shape[0])) == ((2, 2), int)
    assert FibreMargins.two_way([3, 0], [1, 2], [[1, 1], [0, 1]]).possible.tolist() == [
        [True, True],
        [False, True],
    ]


def test_margins_that_cannot_be_are_refused():
    ones = np.ones((2, 2), int)
    for wrong in (
        lambda: FibreMargins((), {(): 1}),
        lambda: FibreMargins((0, 2), {(0,): np.zeros(0, int)}),
        lambda: FibreMargins((2, 2), {}),
        lambda: FibreMargins((2, 2), {(0, 0): ones}),
        lambda: FibreMargins((2, 2), {(-1,): [1, 1]}),
        lambda: FibreMargins((2, 2), {(2,): [1, 1]}),
        lambda: FibreMargins((2, 2), {(0,): [1, 1, 1]}),
        lambda: FibreMargins((2, 2), {(0,): [1, -1]}),
        lambda: FibreMargins((2, 2), {(0,): [1, 0.5]}),
        lambda: FibreMargins((2, 2), {(0,): [1, np.inf]}),
        lambda: FibreMargins((2, 2), {(0,): ["a", "b"]}),
        lambda: FibreMargins((2, 2), {(0,): [1, 1]}, np.ones((2, 3), bool)),
        lambda: FibreMargins.of(ones, [(2,)]),
        lambda: FibreMargins.of(ones, [(-1,)]),
        lambda: FibreMargins.of(ones, [0, 1]),
        lambda: FibreMargins.of(ones, ["0"]),
        lambda: FibreMargins.of([[1, 2], [3]], [(0,)]),
    ):
        with pytest.raises(InputError, match=r"^[A-Z'].*\.$"):
            wrong()
    # Beyond 2**53 numbers are not exact, and 64 bits may not hold their sums.
    assert FibreMargins.two_way([2**53 - 1, 1], [2**53]).size == 2
    for large in (2**53 + 2, 2**62, 1e30, np.uint64(2**63)):
        for counts in ([large, 1], [1, large]):
            with pytest.raises(InputError, match=r"2\*\*53"):
                FibreMargins.two_way(counts, counts)
    for rows, columns in ((ones, [2, 2]), ([2, 2], ones)):
        with pytest.raises(InputError, match="two plain lists"):
            FibreMargins.two_way(rows, columns)
    table = np.array([[[1, 2], [3, 0]], [[2, 2], [0, 4]]])
    good = FibreMargins.of(table, ALL_PAIRS)
    for pair in ALL_PAIRS[1:]:
        other = good.sums[pair].copy()
        other[0, 0], other[1, 1] = other[0, 0] + 1, other[1, 1] - 1
        with pytest.raises(ContradictionError, match="where they meet"):
            FibreMargins((2, 2, 2), {**good.sums, pair: other})
    with pytest.raises(ContradictionError):
        FibreMargins((2, 2), {(0,): [1, 2], (): 4})
    FibreMargins((2, 2), {(0,): [1.0, 2.0], (): 3})


def test_margins_as_facts_about_cells():
    table = np.array([[[1, 2, 0], [3, 0, 1]], [[2, 2, 5], [0, 4, 1]]])
    possible = np.ones((2, 2, 3), bool)
    possible[0, 0, 2] = False
    margins = FibreMargins.of(table, [(0, 2), (1,), ()], possible)
    known = margins.knowledge()
    wanted = []
    for axes, sums in margins.sums.items():
        for at in np.ndindex(*sums.shape):
            inside = [
                all(c[a] == k for a, k in zip(axes, at, strict=True)) for c in np.ndindex(2, 2, 3)
            ]
            wanted.append((*map(int, inside), int(sums[at])))
    rows = np.column_stack([known.matrix.toarray(), known.fact_low])
    assert rows.tolist() == [list(w) for w in wanted]
    assert known.fact_high.tolist() == known.fact_low.tolist()
    assert known.low.tolist() == [0] * 12
    assert known.high.tolist() == [UNBOUNDED] * 2 + [0] + [UNBOUNDED] * 9
    assert (known.names[0], known.names[5]) == ("cell 0,0,0", "cell 0,1,2")


def test_knowledge_is_margins_only_where_nothing_else_is_known():
    shown = {("A",): [4, 4, 4], ("B",): [4, 4, 4]}
    known = from_margins({"A": 3, "B": 3}, shown)
    found = FibreMargins.known(known)
    assert found is not None
    assert {a: s.tolist() for a, s in found.sums.items()} == {(0,): [4] * 3, (1,): [4] * 3}
    assert found.shape == (3, 3)
    hidden = from_margins({"A": 3, "B": 3, "C": 2}, {("A", "B"): np.full((3, 3), 2)}, [("B", "C")])
    assert list(FibreMargins.known(hidden).sums) == [(0, 1)]
    names = list(known.names)
    for other in (
        known.bound(0, high=3),
        known.bound(0, low=1),
        from_margins({"A": 3, "B": 3}, {}, [("A",)]),
        from_margins({"A": 3, "B": 3}, {("B", "A"): np.full((3, 3), 2)}),
        FibreMargins.two_way([1], [1]).knowledge(),
        known.fact({names[0]: 1, names[4]: 1}, 5, 8),
        known.fact({names[0]: 1, names[1]: -1}),
        known.fact({names[9]: 1, names[0]: -1, names[1]: -1, names[2]: -1}, 1, 2),
        known.fact({names[9]: 1, names[0]: -1, names[1]: -1, names[2]: -1}, -2, -1),
    ):
        assert FibreMargins.known(other) is None
    # The cube comes later, is grouped, is filtered, or a sum is below 0.
    first, second = axis("A", [0], [1], [2]), axis("B", [0], [1])
    cube = PublishedTable.hidden([first, second])
    sums = PublishedTable.exact([first], [4, 4, 4])
    assert FibreMargins.known(from_tables([cube, sums])) is not None
    assert FibreMargins.known(from_tables([sums, cube])) is None
    grouped = PublishedTable.exact([axis("A", [0, 1], [2])], [8, 4])
    assert FibreMargins.known(from_tables([cube, grouped])) is None
    only = PublishedTable.exact([axis("A", [1]), second], [[1, 3]])
    assert FibreMargins.known(from_tables([cube, only])) is None
    filtered = PublishedTable.exact(TableLayout((second,), (axis("A", [1]),)), [1, 3])
    assert FibreMargins.known(from_tables([cube, filtered])) is None
    debts = PublishedTable.hidden([first, second], low=-UNBOUNDED)
    below = PublishedTable.exact([first], [-4, 4, 4])
    assert FibreMargins.known(from_tables([debts, below])) is None
    counts = PublishedTable.hidden([first, second], low=0)
    assert FibreMargins.known(from_tables([counts, below])) is None
    # A fact that the tables imply says nothing.
    implied = known.fact({names[9]: 1, names[0]: -1, names[1]: -1, names[2]: -1}, 0, 0)
    assert FibreMargins.known(implied) is not None


def test_a_fact_beside_margins_counts_in_samples_too():
    known = from_margins({"A": 3, "B": 3}, {("A",): [4, 4, 4], ("B",): [4, 4, 4]})
    names = list(known.names)
    for low, high in ((5, 8), (6, 6)):
        more = known.fact({names[0]: 1, names[4]: 1}, low, high)
        drawn = sample_fibre(more, rng=1, draws=50, thin=20).reshape(-1, len(more))
        sums = drawn[:, 0] + drawn[:, 4]
        assert (sums.min(), sums.max()) == (low, high)
        every = {tuple(t) for t in enumerate_fibre(more).tables.tolist()}
        assert {tuple(t) for t in drawn.tolist()} <= every


def trees(cliques, axes):
    """All ways to attach cliques one after the other with the running intersection property."""
    for order in itertools.permutations(cliques):
        seen = set(order[0])
        for k, clique in enumerate(order[1:], 1):
            if not any(set(clique) & seen <= set(earlier) for earlier in order[:k]):
                break
            seen |= set(clique)
        else:
            if seen == set(range(axes)):
                return True
    return False


def test_a_junction_tree_exists_where_cliques_can_be_attached_one_by_one():
    sets = [s for size in (1, 2, 3) for s in itertools.combinations(range(4), size)]
    tried = 0
    for count in (1, 2, 3, 4):
        for cliques in itertools.combinations(sets, count):
            if any(set(a) <= set(b) for a, b in itertools.permutations(cliques, 2)):
                continue
            tried += 1
            tree = junction_tree(cliques, 4)
            assert (tree is not None) == trees(cliques, 4)
            if tree is None:
                continue
            seen = set(cliques[0])
            assert len(tree) == count - 1
            for edge in tree:
                parts = [set(p) for p in (edge.separator, edge.left, edge.right)]
                assert sorted([*edge.separator, *edge.left, *edge.right]) == [0, 1, 2, 3]
                assert set(edge.child) & seen == parts[0]
                assert set(edge.child) - parts[0] <= parts[2]
                assert seen - parts[0] <= parts[1]
                seen |= set(edge.child)
                # No clique lies on both sides.
                assert not any(parts[1] & set(c) and parts[2] & set(c) for c in cliques)
    assert tried > 80
