"""Closed forms on fixed small cubes: the printed formulas cell by cell, and every table with the margins."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import floor

import numpy as np
import pytest

from audit.fibres import axis, splits
from lustrum.audit import PublishedTable, from_margins, from_tables
from lustrum.audit.closed import (
    ClosedForm,
    Margins,
    applicable,
    bonferroni,
    closed_bounds,
    decomposable,
    dichotomous,
    frechet,
    is_dichotomous,
    knowledge_bounds,
    margins_of,
    operator,
    parts,
    perfect_sequence,
    project,
    reducible,
)
from lustrum.audit.closed.graphs import components, joined, search_order
from lustrum.model import InputError

PAIRS = [[0, 1], [0, 2], [1, 2]]


@cache
def every_table(total, shape):
    return splits(total, int(np.prod(shape))).reshape(-1, *shape)


def fitting(table, generators):
    """All tables with these margins."""
    every = every_table(int(table.sum()), table.shape)
    fits = np.ones(len(every), dtype=bool)
    for g in generators:
        rest = tuple(a for a in range(table.ndim) if a not in g)
        sums = every.sum(axis=tuple(a + 1 for a in rest))
        fits &= (sums == table.sum(axis=rest)).reshape(len(every), -1).all(axis=1)
    return every[fits]


def drawn(shape, people, seed):
    rng = np.random.default_rng(seed)
    cells = int(np.prod(shape))
    return rng.multinomial(people, rng.dirichlet(np.full(cells, 0.6))).reshape(shape)


CASES = [
    # (shape, people, margins, form)
    ((3, 3), 6, [[0], [1]], ClosedForm.FRECHET),
    ((3, 3), 6, [[0]], ClosedForm.FRECHET),
    ((3, 3), 6, [[]], ClosedForm.FRECHET),
    ((3, 3), 6, [[0, 1], [0]], ClosedForm.DECOMPOSABLE),
    ((2, 3, 2), 5, [[0], [1], [2]], ClosedForm.FRECHET),
    ((2, 3, 2), 5, [[0, 1], [2]], ClosedForm.DECOMPOSABLE),
    ((2, 3, 2), 5, [[0, 1], [1, 2]], ClosedForm.DECOMPOSABLE),
    ((2, 3, 2), 5, [[0, 2]], ClosedForm.DECOMPOSABLE),
    ((1, 3, 2), 5, [[1], [2]], ClosedForm.FRECHET),
    ((2, 3, 2), 5, PAIRS, ClosedForm.NONE),
    ((2, 2, 2), 6, PAIRS, ClosedForm.DICHOTOMOUS),
    ((2, 2, 2, 1), 6, [[0, 1], [0, 2], [1, 2]], ClosedForm.DICHOTOMOUS),
    ((2, 2, 2, 2), 4, [[0, 1], [0, 2], [1, 2], [2, 3]], ClosedForm.REDUCIBLE),
    ((2, 2, 2, 2), 4, [[0, 1], [0, 2], [1, 2], [3]], ClosedForm.REDUCIBLE),
    ((2, 2, 2, 2), 4, [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]], ClosedForm.DICHOTOMOUS),
    ((2, 2, 2, 2), 4, [[0, 1], [1, 2], [2, 3]], ClosedForm.DECOMPOSABLE),
    ((2, 2, 2, 2), 4, [[0, 1], [1, 2], [2, 3], [0, 3]], ClosedForm.NONE),
    ((2, 2, 2, 2), 4, [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]], ClosedForm.REDUCIBLE),
    ((2, 2, 2, 2), 4, [[1, 2], [1, 3], [2, 3]], ClosedForm.DICHOTOMOUS),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_every_form_holds_for_all_tables_and_reaches_them_where_it_is_sharp(case):
    shape, people, generators, form = CASES[case]
    for seed in range(4):
        table = drawn(shape, people, 10 * case + seed)
        margins = Margins.of_table(table, generators)
        every = fitting(table, generators)
        least, most = every.min(axis=0).ravel(), every.max(axis=0).ravel()
        choice = applicable(margins)
        assert choice.form is form
        assert choice.sharp == (form is not ClosedForm.NONE) == (not choice.unsolved)
        best = closed_bounds(margins)
        assert best.sharp.all() == best.sharp.any() == choice.sharp
        if choice.sharp:
            assert best.low.tolist() == least.tolist()
            assert best.high.tolist() == most.tolist()
        for found in (best, frechet(margins), bonferroni(margins)):
            assert (found.low <= least).all()
            assert (found.high >= most).all()
            chordal = form in (ClosedForm.FRECHET, ClosedForm.DECOMPOSABLE)
            assert found is best or found.sharp.all() == found.sharp.any() == chordal
            assert np.array_equal(found.cells, np.arange(table.size))
            if chordal:
                assert found.low.tolist() == least.tolist()
                assert found.high.tolist() == most.tolist()
        if is_dichotomous(margins) and len(margins.covered) == table.ndim:
            assert dichotomous(margins).high.tolist() == most.tolist()


def count(table, given):
    """How many people are in these categories, by axis."""
    return int(table[tuple(given.get(a, slice(None)) for a in range(table.ndim))].sum())


def trees(k):
    """The spanning trees of k vertices, as sets of edges."""
    edges = list(itertools.combinations(range(k), 2))
    for chosen in itertools.combinations(edges, k - 1):
        group = list(range(k))
        for a, b in chosen:
            group = [group[a] if g == group[b] else g for g in group]
        if len(set(group)) == 1:
            yield chosen


def printed(table, generators):
    """The bounds of the module, from its formulas: one cell after the other, in fractions."""
    k, N = table.ndim, int(table.sum())
    known = {frozenset(p) for g in generators for p in itertools.combinations(g, 2)}
    pairs = list(itertools.combinations(range(k), 2))
    for cell in np.ndindex(table.shape):
        one = [N - count(table, {a: cell[a]}) for a in range(k)]
        out = {}
        for a, b in pairs:
            outside = one[a] + one[b] - N
            if frozenset((a, b)) in known:
                out[a, b] = outside + count(table, {a: cell[a], b: cell[b]})
            else:
                out[a, b] = max(outside, 0)
        S1, S2 = sum(one), sum(out.values())
        low = N - S1 + max(sum(out[e] for e in tree) for tree in trees(k))
        high = N
        if all(frozenset(p) in known for p in pairs):
            h = 1 + (2 * S2 // S1 if S1 else 0)
            high = min(
                N - S1 + S2,
                floor(N - Fraction(2, h + 1) * S1 + Fraction(2, h * (h + 1)) * S2),
            )
        yield low, high


@pytest.mark.parametrize(
    ("shape", "people", "generators"),
    [
        ((3, 3, 3), 30, PAIRS),
        ((2, 3, 2), 12, [[0, 1], [1, 2]]),
        ((2, 3, 2), 12, [[0, 1], [2]]),
        ((2, 2, 2, 2), 20, list(itertools.combinations(range(4), 2))),
        ((2, 2, 2, 2), 20, [[0, 1], [1, 2], [2, 3], [0, 3]]),
        ((3, 2, 2, 2), 9, [[0, 1, 2], [0, 3], [1, 3], [2, 3]]),
        ((2, 2, 2, 2, 2), 40, list(itertools.combinations(range(5), 2))),
        ((2, 2, 2, 2), 60, [[0, 1], [0, 2], [1, 2], [3]]),
        ((2, 2), 3, [[0, 1]]),
        ((2,), 3, [[0]]),
    ],
)
def test_bonferroni_bounds_are_the_printed_formulas_or_those_of_frechet(shape, people, generators):
    tighter = 0
    for seed in range(3):
        table = drawn(shape, people, seed)
        margins = Margins.of_table(table, generators)
        plain, found = frechet(margins), bonferroni(margins)
        if len(shape) == 1:
            assert found.high.tolist() == found.low.tolist() == table.tolist()
            continue
        lows, highs = zip(*printed(table, generators), strict=True)
        assert found.low.tolist() == np.maximum(plain.low, lows).tolist()
        assert found.high.tolist() == np.minimum(plain.high, highs).tolist()
        tighter += int((found.low > plain.low).sum() + (found.high < plain.high).sum())
        assert (found.low <= table.ravel()).all()
        assert (found.high >= table.ravel()).all()
    assert tighter or len(shape) < 4 or len(generators) == 4


def test_the_best_tree_of_pairs_may_begin_with_a_pair_of_nobody():
    # 10 people in the first category of all; 2 outside A and C, 3 outside B and C, nobody outside A and B.
    table = np.zeros((2, 2, 2), dtype=int)
    table[0, 0, 0], table[1, 0, 1], table[0, 1, 1] = 10, 2, 3
    margins = Margins.of_table(table, PAIRS)
    # N - S1 = 15 - 10, and the tree over A, C and B adds 2 and 3.
    assert bonferroni(margins).low[0] == 10
    assert frechet(margins).low[0] == 8


def spread_out(axes, seed):
    """Many people in one cell and some elsewhere, so that lower bounds say something."""
    rng = np.random.default_rng(seed)
    table = rng.multinomial(40, rng.dirichlet(np.full(2**axes, 0.3))).reshape((2,) * axes)
    table[(0,) * axes] += 200
    return table


@pytest.mark.parametrize(
    ("generators", "seed"),
    [
        ([[0, 4], [1, 4], [2, 3], [3, 4], [3, 5]], 0),
        ([[0, 4], [1, 2, 3], [1, 5], [4, 5]], 3),
        ([[0, 5], [1, 4], [2, 5], [3, 4], [4, 5]], 1),
        ([[0, 1, 3], [1, 3, 5], [2, 4], [4, 5]], 2),
    ],
)
def test_trees_of_margins_reach_the_bounds_of_decomposable_ones(generators, seed):
    margins = Margins.of_table(spread_out(6, seed), generators)
    sharp = decomposable(margins)
    assert frechet(margins).low.tolist() == sharp.low.tolist()
    assert frechet(margins).high.tolist() == sharp.high.tolist()
    assert closed_bounds(margins).low.tolist() == sharp.low.tolist()
    assert sharp.low[0] > 0


def test_one_way_margins_have_the_bounds_that_frechet_printed():
    table = drawn((2, 3, 2), 25, 3)
    found = frechet(Margins.of_table(table, [[0], [1], [2]]))
    ones = [table.sum(axis=tuple(b for b in range(3) if b != a)) for a in range(3)]
    for place, cell in enumerate(np.ndindex(2, 3, 2)):
        of = [int(ones[a][cell[a]]) for a in range(3)]
        assert found.high[place] == min(of)
        assert found.low[place] == max(0, sum(of) - 2 * 25)


def test_margins_carry_their_units_to_the_bounds():
    given = {"A": [3, 4], "B": [2, 5]}
    for decimals, whole in ((2, False), (0, True)):
        margins = Margins.of({"A": 2, "B": 2}, given, decimals=decimals, whole=whole)
        chain = Margins.of(
            {"A": 2, "B": 2, "C": 2, "D": 2},
            {p: [[2, 3], [3, 2]] for p in ("AB", "BC", "AC", "CD")},
            decimals=decimals,
            whole=whole,
        )
        inner = chain.part(frozenset((0, 1, 2)), [frozenset((0, 1)), frozenset((1, 2))])
        for found in (
            closed_bounds(margins),
            project(margins, "A"),
            closed_bounds(chain),
            inner.bounds(np.zeros((2, 2, 2)), np.ones((2, 2, 2)), True),
        ):
            assert (found.decimals, found.whole) == (decimals, whole)
        assert (inner.names, inner.shape) == (("A", "B", "C"), (2, 2, 2))


def test_dichotomous_margins_need_two_categories_and_all_margins_of_one_less():
    table = np.arange(8).reshape(2, 2, 2)
    assert is_dichotomous(Margins.of_table(table, PAIRS))
    assert not is_dichotomous(Margins.of_table(table, PAIRS[:2]))
    assert not is_dichotomous(Margins.of_table(np.ones((2, 2, 3), int), PAIRS))
    assert not is_dichotomous(Margins.of_table(np.ones((1, 1), int), [[0], [1]]))
    assert is_dichotomous(Margins.of_table(np.ones((2, 1), int), [[]]))
    # One category in the middle: the same bounds, at the same places.
    plain = dichotomous(Margins.of_table(table, PAIRS))
    wide = dichotomous(Margins.of_table(table[:, None], [[0, 2], [0, 3], [2, 3]]))
    assert wide.low.tolist() == plain.low.tolist()
    assert wide.high.tolist() == plain.high.tolist()
    every = every_table(6, (2, 2, 2))
    one = next(t for t in every if (t == [[[0, 1], [1, 0]], [[1, 0], [0, 3]]]).all())
    fits = fitting(one, PAIRS)
    found = dichotomous(Margins.of_table(one, PAIRS))
    assert found.low.tolist() == fits.min(axis=0).ravel().tolist()
    assert found.high.tolist() == fits.max(axis=0).ravel().tolist()
    # Margins with exactly one table are no contradiction.
    assert dichotomous(Margins.of_table(np.zeros((2, 2, 2), int), PAIRS)).high.tolist() == [0] * 8


def test_a_hidden_margin_may_be_the_total_or_hold_a_single_category():
    shown = {"AB": [[3, 1]], "BC": [[2, 1], [0, 1]]}
    margins = Margins.of({"A": 1, "B": 2, "C": 2}, shown)
    total = project(margins, "")
    assert (total.low.tolist(), total.high.tolist(), total.sharp.tolist()) == ([4], [4], [True])
    found = project(margins, "AC")
    assert found.low.tolist() == found.high.tolist() == [2, 2]
    assert found.sharp.all()
    one = project(Margins.of({"A": 2, "B": 1, "C": 2}, {"AB": [[3], [1]], "BC": [[2, 2]]}), "AB")
    assert one.low.tolist() == one.high.tolist() == [3, 1]


def test_the_operator_takes_matrices_that_share_their_middle():
    for left, right in (
        ([1, 2], [[1], [2]]),
        ([[1, 2]], [1, 2]),
        ([[1, 2]], [[3]]),
    ):
        with pytest.raises(InputError, match="I x J and J x K"):
            operator(left, right)
    low, high = operator([[2, 1]], [[1, 1, 0], [0, 0, 1]])
    assert low.tolist() == high.tolist() == [[1, 1, 1]]


def test_margins_know_what_follows_from_them():
    margins = Margins.of({"A": 2, "B": 3, "C": 2}, {"CB": [[1, 2, 3], [4, 5, 6]], "A": [10, 11]})
    assert (margins.size, margins.total) == (12, 21)
    assert margins.margin("BC").shape == (1, 3, 2)
    assert margins.margin("BC").ravel().tolist() == [1, 4, 2, 5, 3, 6]
    assert margins.margin("B").ravel().tolist() == [5, 7, 9]
    assert margins.margin("").ravel().tolist() == [21]
    assert margins.knows(frozenset((1, 2)))
    assert margins.knows(frozenset((1,)))
    assert not margins.knows(frozenset((0, 1)))
    assert margins.covered == {0, 1, 2}
    assert margins.generators == (frozenset((0,)), frozenset((1, 2)))
    assert Margins.of_table(np.ones((2, 2)), [[0], [0, 1], [1]]).generators == (frozenset((0, 1)),)
    assert repr(margins) == "Margins(A 2 x B 3 x C 2; B x C, A)"


def test_margins_are_checked_before_they_are_used():
    cube = {"A": 2, "B": 2}
    twice = Margins.of(cube, {"AB": [[1, 2], [3, 4]], "BA": [[1, 3], [2, 4]]})
    assert twice.total == 10
    for wrong, says in (
        ({"A": [1, 2], "B": [3, 1]}, "do not agree on their total"),
        ({"AB": [[1, 2], [3, 4]], "A": [3, 8]}, "do not agree on A"),
        ({"AB": [[1, 2], [3, 4]], "BA": [[1, 2], [3, 4]]}, "B x A is given twice"),
        ({"A": [1, -1]}, "negative"),
        ({"A": [1.5, 1]}, "whole number"),
        ({"A": [[1, 2]]}, "shape"),
        ({"AA": [[1, 2], [2, 1]]}, "twice"),
        ({"C": [1, 2]}, "no variable"),
    ):
        with pytest.raises(InputError, match=says):
            Margins.of(cube, wrong)
    assert Margins.of(cube, {"A": [1.0, 2.0]}).total == 3
    assert Margins.of(cube, {"A": [0, 0]}).total == 0
    with pytest.raises(InputError, match="at least one category"):
        Margins.of({"A": 2, "B": 0}, {"A": [1, 2]})
    assert Margins.of({"A": 1}, {"A": [3]}).total == 3


def test_graphs_of_margins_by_hand():
    def sets(*texts):
        return [frozenset(map(int, t)) for t in texts]

    assert joined(sets("01", "12", "3")) == dict(enumerate(sets("1", "02", "1", "")))
    # After 0, 2 has one visited neighbour and 1 none; then 3 has one and 1 has two.
    graph = joined(sets("02", "12", "13", "03"))
    assert search_order(graph) == (0, 2, 1, 3)
    assert search_order(joined(sets("03", "12", "23"))) == (0, 3, 2, 1)
    assert components([0, 1, 2, 4, 5], joined(sets("01", "23", "34", "5"))) == sets(
        "01", "2", "4", "5"
    )
    assert components([3, 2, 4, 9], joined(sets("23", "34"))) == sets("234", "9")
    steps = perfect_sequence(sets("01", "12", "13", "1"))
    assert [s.clique for s in steps] == sets("01", "12", "13")
    assert [s.separator for s in steps] == sets("", "1", "1")
    assert perfect_sequence(sets("01", "12", "02")) is None  # its clique 012 is no margin
    assert perfect_sequence(sets("01", "12", "23", "03")) is None  # a ring
    assert [s.clique for s in perfect_sequence([frozenset()])] == [frozenset()]
    assert [s.separator for s in perfect_sequence(sets("0", "1"))] == sets("", "")
    fans = perfect_sequence(sets("012", "123", "234"))
    assert [s.separator for s in fans] == sets("", "12", "23")
    pieces = parts(sets("01", "02", "12", "23", "24", "34", "5"))
    assert {p.axes for p in pieces} == set(sets("012", "234", "5"))
    assert sum(p.separator is None for p in pieces) == 1
    assert {p.separator for p in pieces if p.separator is not None} == set(sets("", "2"))
    assert [p.closed for p in sorted(pieces, key=lambda p: sorted(p.axes))] == [False, False, True]
    inside = {p.axes: set(p.generators) for p in pieces}
    assert inside[frozenset((0, 1, 2))] == set(sets("01", "02", "12"))
    assert inside[frozenset((2, 3, 4))] == set(sets("23", "24", "34"))
    # A separator of two variables counts as a margin of the part behind it.
    two = parts(sets("012", "03", "13", "2"))
    assert {p.axes for p in two} == set(sets("012", "013"))
    behind = next(p for p in two if p.axes == {0, 1, 3})
    if behind.separator is not None:
        assert set(behind.generators) == set(sets("01", "03", "13"))


def test_parts_of_a_cube_are_solved_as_asked():
    margins = Margins.of_table(np.ones((3, 2, 2, 2), int), [*PAIRS, [2, 3]])
    with pytest.raises(InputError, match="no closed form"):
        reducible(margins)
    asked = []

    def solve(inner):
        asked.append((inner.names, set(inner.tables)))
        low = np.arange(12).reshape(3, 2, 2)
        return inner.bounds(low, low + 1, low % 2 == 0)

    # Bounds of the part are those of the solver, less 12 people in each category of C and with 6 in each
    # of CD more; no cell is more than those 6.
    found = reducible(margins, solve)
    assert asked == [(("A", "B", "C"), {frozenset((0, 1)), frozenset((0, 2)), frozenset((1, 2))})]
    assert found.low.tolist() == [max(0, i // 2 - 6) for i in range(24)]
    assert found.high.tolist() == [min(6, i // 2 + 1) for i in range(24)]
    assert found.sharp.tolist() == [(i // 2) % 2 == 0 for i in range(24)]


def test_knowledge_of_margins_gives_the_bounds_of_its_tables_in_their_own_order():
    shown = {"IJ": [[3, 1], [2, 4]], "JK": [[5, 0, 0], [2, 1, 2]]}
    cube = {"I": 2, "J": 2, "K": 3}
    known = from_margins(cube, shown, hidden=["KI", "K"])
    found = knowledge_bounds(known)
    margins = Margins.of(cube, shown)
    middle = project(margins, "IK")
    last = project(margins, "K")
    names = list(known.names)
    tables = {
        tuple(a.name for a in layout.axes): known.table(i)
        for i, layout in enumerate(known.structure.tables)
    }
    assert len(names) == len(found.cells)
    turned = found.high[tables["K", "I"]].reshape(3, 2).T.ravel()
    assert turned.tolist() == middle.high.tolist()
    assert found.low[tables["K", "I"]].reshape(3, 2).T.ravel().tolist() == middle.low.tolist()
    assert found.high[tables["K",]].tolist() == last.high.tolist() == [7, 1, 2]
    assert found.low[tables["I", "J"]].tolist() == [3, 1, 2, 4]
    whole = decomposable(margins)
    assert found.low[tables["I", "J", "K"]].tolist() == whole.low.tolist()
    assert found.high[tables["I", "J", "K"]].tolist() == whole.high.tolist()
    assert found.sharp.all()
    assert np.array_equal(found.cells, np.arange(len(known)))


def test_knowledge_of_pairs_is_bounded_as_its_margins_are():
    shown = {p: [[2, 1], [1, 2]] for p in ("AB", "BC", "AC")}
    known = from_margins(dict.fromkeys("ABC", 2), shown, decimals=1)
    found = knowledge_bounds(known)
    assert found.high[:8].tolist() == dichotomous(margins_of(known)).high.tolist()
    assert found.low[:8].tolist() == dichotomous(margins_of(known)).low.tolist()
    assert found.low[8:].tolist() == found.high[8:].tolist() == [2, 1, 1, 2] * 3
    assert (found.decimals, found.whole) == (1, True)
    assert (margins_of(known).decimals, margins_of(known).whole) == (1, True)
    real = known.relaxed()
    assert (margins_of(real).whole, knowledge_bounds(real).whole) == (False, False)


def test_cells_of_a_chain_that_sums_cannot_reach_are_not_called_sharp():
    cube = dict.fromkeys("ABCD", 2)
    known = from_margins(
        cube, {p: [[2, 1], [1, 2]] for p in ("AB", "BC", "CD")}, hidden=["AD", "BD"]
    )
    found = knowledge_bounds(known)
    sharp = {
        "".join(a.name for a in layout.axes): found.sharp[known.table(i)].all()
        for i, layout in enumerate(known.structure.tables)
    }
    assert sharp["ABCD"]
    assert not sharp["AD"]
    assert sharp["BD"]


def test_knowledge_has_margins_only_where_nothing_else_is_known():
    sex, area = axis("sex", (0,), (1,)), axis("area", (0,), (1,))
    cube = PublishedTable.hidden([sex, area])
    plain = PublishedTable.exact([sex], [3, 6])
    assert margins_of(from_tables([cube, plain])).total == 9
    # Shown twice alike, it is one margin; a second hidden table adds nothing.
    again = from_tables([cube, plain, PublishedTable.exact([area], [4, 5]), plain])
    assert margins_of(again).generators == (frozenset((0,)), frozenset((1,)))
    turned = axis("sex", (1,), (0,))
    pair = axis("sex", (0, 1))
    others = [
        [cube, PublishedTable.exact([turned], [6, 3])],
        [cube, PublishedTable.exact([pair], [9])],
        [cube, PublishedTable.rounded([sex], [3, 6], base=3)],
        [cube],
        [PublishedTable.hidden([sex, area], low=1), plain],
    ]
    for tables in others:
        known = from_tables(tables)
        assert margins_of(known) is None
        assert knowledge_bounds(known) is None
        assert applicable(known) == applicable(known)
        assert applicable(known).form is ClosedForm.NONE
        assert not applicable(known).parts
    known = from_tables([cube, plain])
    assert margins_of(known.fact({known.names[0]: 1, known.names[1]: 1}, 3, 3)) is None
    assert margins_of(known.fact({known.names[0]: 1, known.names[1]: 1}, 0, 3)) is None
    assert margins_of(known.bound(0, low=1)) is None
    # A sum that is known up to a unit is no margin.
    for ends in ({"fact_low": -1}, {"fact_high": 1}):
        name, end = next(iter(ends.items()))
        loose = np.zeros_like(known.fact_low)
        loose[0] = end
        assert margins_of(replace(known, **{name: loose})) is None
    # One axis in its own order is not enough.
    both = PublishedTable.exact([area, turned], [[3, 2], [3, 1]])
    assert margins_of(from_tables([cube, both])) is None
    assert margins_of(from_tables([cube, PublishedTable.exact([sex], [-1, 6], low=-9)])) is None
    # Two versions of one margin contradict each other; other facts report that.
    assert margins_of(from_tables([cube, plain, PublishedTable.exact([sex], [4, 5])])) is None
    # Without the cube itself nothing says which cells are asked for.
    wide = PublishedTable.exact([sex, area], [[1, 2], [3, 3]])
    assert margins_of(from_tables([wide, plain])) is None
