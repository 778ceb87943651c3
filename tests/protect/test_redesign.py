"""Redesign: the recoding found is the best of all, and merged tables are those that records would give."""

from __future__ import annotations

from itertools import product
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import Category, Contributions, InputError, Table, TableAxis
from lustrum.protect.redesign import recoded, redesign, redesign_and_suppress
from lustrum.protect.suppression import Suppression
from lustrum.sensitivity import PPercent, Threshold


def runs(size: int) -> list[list[list[int]]]:
    """All partitions of 0 to size - 1 into neighbours."""
    out = []
    for cuts in product((False, True), repeat=size - 1):
        blocks = [[0]]
        for i, cut in enumerate(cuts, start=1):
            if cut:
                blocks.append([])
            blocks[-1].append(i)
        out.append(blocks)
    return out


def partitions(items: list[int]) -> list[list[list[int]]]:
    """All partitions of some items."""
    if not items:
        return [[]]
    first, *rest = items
    out = []
    for partition in partitions(rest):
        out.append([[first], *partition])
        for i, block in enumerate(partition):
            out.append([*partition[:i], [first, *block], *partition[i + 1 :]])
    return out


def cuts(size: int) -> list[list[list[int]]]:
    """All cuts of the hierarchy {0, 1}, {2, 3, ...}, everything."""
    pairs = [[[0], [1]], [[0, 1]]]
    rest = [[[i] for i in range(2, size)], [list(range(2, size))]]
    return [[*a, *b] for a in pairs for b in rest] + [[list(range(size))]]


def table_with_totals(inner: np.ndarray, groups: bool = False) -> Table:
    """Counts with totals along both axes, and two groups along each if wanted."""
    arrays, axes = inner, []
    for place, size in enumerate(inner.shape):
        sets = [(i,) for i in range(size)]
        if groups:
            sets += [(0, 1), tuple(range(2, size))]
        sets.append(tuple(range(size)))
        moved = np.moveaxis(arrays, place, 0)
        arrays = np.moveaxis(np.stack([moved[list(s)].sum(axis=0) for s in sets]), 0, place)
        codes = ["".join(map(str, s)) for s in sets]
        axes.append(
            TableAxis(
                "ab"[place],
                "ab"[place],
                tuple(Category(c, c, s) for c, s in zip(codes, sets, strict=True)),
            )
        )
    return Table(tuple(axes), arrays.astype(np.int64), contributors=arrays.astype(np.int64))


def merged(inner: np.ndarray, rows: list[list[int]], columns: list[list[int]]) -> np.ndarray:
    return np.array([[inner[np.ix_(r, c)].sum() for c in columns] for r in rows])


def least_loss(
    inner: np.ndarray, ways: list[list[list[list[int]]]], least: int, subtotals: bool
) -> float:
    """The smallest loss of entropy over all recodings without small counts, by going through all of them."""
    best = np.inf
    total = inner.sum()
    for rows, columns in product(*ways):
        shown = merged(inner, rows, columns)
        every = [shown, shown.sum(axis=0), shown.sum(axis=1), shown.sum(keepdims=True)]
        if subtotals:
            every = [
                merged(inner, r, c)
                for r, c in product(*map(all_shown, (rows, columns), inner.shape))
            ]
        if any(((a > 0) & (a < least)).any() for a in every):
            continue
        loss = 0.0
        for r, c in product(rows, columns):
            block = inner[np.ix_(r, c)]
            loss += sum(v / total * log2(block.sum() / v) for v in block.ravel().tolist() if v)
        best = min(best, loss)
    return best


def all_shown(blocks: list[list[int]], size: int) -> list[list[list[int]]]:
    """The blocks, and the groups and the total that they make up, each as a list of one block."""
    sets = [set(b) for b in blocks]
    groups = [{0, 1}, set(range(2, size)), set(range(size))]
    extra = [g for g in groups if all(s <= g or s.isdisjoint(g) for s in sets)]
    return [[sorted(s)] for s in [*sets, *extra]]


small = st.integers(0, 6)


@given(
    st.lists(small, min_size=12, max_size=12).filter(lambda v: sum(v) > 0),
    st.sampled_from(["neighbours", "any"]),
)
@settings(max_examples=examples(15, 120), deadline=None)
def test_the_best_recoding_is_found(values: list[int], how: str) -> None:
    inner = np.array(values).reshape(4, 3)
    ways = [runs(n) if how == "neighbours" else partitions(list(range(n))) for n in inner.shape]
    wanted = least_loss(inner, ways, 3, subtotals=False)
    found = redesign(table_with_totals(inner), Threshold(3), merges=how)  # type: ignore[arg-type]
    assert (found.left == 0) == np.isfinite(wanted)
    if np.isfinite(wanted):
        assert found.loss == pytest.approx(wanted, abs=1e-9)
        assert found.optimal
        assert not Threshold(3).judge(found.apply(table_with_totals(inner))).mask.any()


@given(st.lists(small, min_size=16, max_size=16).filter(lambda v: sum(v) > 0))
@settings(max_examples=examples(15, 120), deadline=None)
def test_the_best_cut_of_a_hierarchy_is_found(values: list[int]) -> None:
    inner = np.array(values).reshape(4, 4)
    wanted = least_loss(inner, [cuts(4), cuts(4)], 3, subtotals=True)
    found = redesign(table_with_totals(inner, groups=True), Threshold(3))
    assert (found.left == 0) == np.isfinite(wanted)
    if np.isfinite(wanted):
        assert found.loss == pytest.approx(wanted, abs=1e-9)


def test_a_search_that_is_cut_short_says_what_is_proven() -> None:
    rng = np.random.default_rng(4)
    table = table_with_totals(rng.poisson(2.5, (7, 7)))
    full = redesign(table, Threshold(3))
    cut = redesign(table, Threshold(3), work=5)
    assert full.optimal
    assert cut.left == 0
    assert cut.lower_bound <= full.loss <= cut.loss
    assert redesign(table, Threshold(3), measure="cells").loss == int(
        redesign(table, Threshold(3), measure="cells").loss
    )


def test_what_cannot_be_helped_is_said() -> None:
    found = redesign(table_with_totals(np.array([[1, 0], [0, 1]])), Threshold(3))
    assert (found.left > 0, found.optimal) == (True, False)
    assert "sensitive cells are left" in found.sentences()[-1]
    safe = redesign(table_with_totals(np.array([[9, 4], [5, 7]])), Threshold(3))
    assert safe.sentences() == ("No cell is sensitive; nothing needs to be merged.",)


def test_suggestions_are_sentences() -> None:
    inner = np.array([[9, 5, 8], [1, 8, 7], [7, 6, 9]])
    found = redesign(table_with_totals(inner), Threshold(3), merges={"b": "nothing"})
    assert found.sentences() == (
        "a: publish 0 and 1 instead of 0, 1.",
        "This removes the sensitive cell and loses 0.536 of 3.049 bits (17.6%); no other recoding loses less.",
    )
    assert found.merged == {"a": (("0", "1"),)}
    with pytest.raises(InputError, match="does not have the categories"):
        found.apply(table_with_totals(np.ones((2, 2), int)))


holders = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 5), st.integers(1, 50)),
    min_size=1,
    max_size=14,
)


def counted(records: list[tuple[int, int, int, int]], rows: list[list[int]], ranks: int) -> Table:
    """A table of magnitudes straight from records: row, column, holding, value."""
    shape = (len(rows), 2)
    values, number = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    top, who = np.zeros((*shape, ranks), np.int64), np.full((*shape, ranks), -1, np.int64)
    for i, j in np.ndindex(*shape):
        own: dict[int, int] = {}
        for row, column, holding, value in records:
            if row in rows[i] and column == j:
                own[holding] = own.get(holding, 0) + value
        values[i, j], number[i, j] = sum(own.values()), len(own)
        for rank, (holding, value) in enumerate(
            sorted(own.items(), key=lambda h: (-h[1], h[0]))[:ranks]
        ):
            top[i, j, rank], who[i, j, rank] = value, holding
    codes = ["".join(map(str, r)) for r in rows]
    axes = (
        TableAxis(
            "a", "a", tuple(Category(c, c, tuple(r)) for c, r in zip(codes, rows, strict=True))
        ),
        TableAxis.plain("b", ["x", "y"]),
    )
    return Table(
        axes, values, kind="magnitude", contributors=number, contributions=Contributions(top, who)
    )


@given(holders, st.sampled_from(runs(4)))
@settings(max_examples=examples(20, 160), deadline=None)
def test_merged_contributions_are_those_of_the_records(
    records: list[tuple[int, int, int, int]], blocks: list[list[int]]
) -> None:
    fine = counted(records, [[0], [1], [2], [3]], ranks=6)
    made = recoded(fine, [tuple(map(tuple, blocks)), ((0,), (1,))])
    wanted = counted(records, blocks, ranks=6)
    assert np.array_equal(made.values, wanted.values)
    assert np.array_equal(made.contributions.value, wanted.contributions.value)
    assert made.contributors is not None
    assert wanted.contributors is not None
    # All contributors are listed here, so even shared holdings are counted exactly.
    assert np.array_equal(made.contributors, wanted.contributors)


def test_a_number_of_contributors_is_never_overstated() -> None:
    # The same holding in both rows, beyond the ranks that are listed.
    records = [(0, 0, 1, 50), (0, 0, 2, 9), (1, 0, 1, 40), (1, 0, 2, 8)]
    made = recoded(counted(records, [[0], [1]], ranks=1), [((0, 1),), ((0,), (1,))])
    assert made.contributors[0, 0] == 2


def test_merging_and_suppression_together_are_safe_and_no_worse_than_either() -> None:
    rng = np.random.default_rng(11)
    table = table_with_totals(rng.integers(0, 30, (4, 4)))
    method = Suppression(rule=Threshold(4))
    mixed = redesign_and_suppress(table, method)
    plain = method.pattern(table)
    assert mixed.pattern.safe
    assert mixed.loss <= mixed.merging.loss + 1e-12
    assert plain.safe
    finest = max(size for size, _ in mixed.tried)
    assert mixed.loss <= min(loss for size, loss in mixed.tried if size == finest)
    assert f"Suppress {int(mixed.pattern.suppressed.sum())} cells." in mixed.sentences()[-1]


def test_dominated_cells_are_merged_away() -> None:
    records = [
        (0, 0, 1, 90), (0, 0, 2, 3), (1, 0, 3, 40), (1, 0, 4, 30), (1, 0, 5, 35), (2, 1, 6, 5),
    ]  # fmt: skip
    fine = counted(records, [[0], [1], [2], [3]], ranks=3)
    found = redesign(fine, PPercent(p=10), merges={"b": "nothing"})
    assert found.merged["a"][0][:2] == ("0", "1")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"merges": {"c": "any"}}, "no variable 'c'"),
        ({"merges": "all"}, "What may be merged"),
        ({"measure": "value"}, "'entropy' or 'cells'"),
        ({"work": 0}, "1 or more"),
    ],
)
def test_a_mistake_is_one_sentence(words: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        redesign(table_with_totals(np.ones((2, 2), int)), Threshold(3), **words)  # type: ignore[arg-type]
