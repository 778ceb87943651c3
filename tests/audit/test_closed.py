"""Closed forms compared with every table that has the released margins."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.fibres import QUICK, axis, splits
from lustrum.audit import (
    ContradictionError,
    Knowledge,
    PublishedTable,
    best_bounds,
    bounds,
    from_margins,
    from_tables,
)
from lustrum.audit.closed import knowledge_bounds, margins_of, parts

IJ = [[3, 87, 68, 72], [5, 8, 80, 4], [3, 4, 7, 107], [64, 6, 56, 7]]
JK = [[5, 2, 68], [10, 10, 85], [69, 81, 61], [7, 132, 51]]

PAIRS = [[0, 1], [0, 2], [1, 2]]

SHAPES = [(3, 3), (2, 2, 2), (2, 3, 2), (2, 2, 2, 2)]
# With so few people every table of the shape can be written down.
PEOPLE = {(3, 3): 6, (2, 2, 2): 6, (2, 3, 2): 5, (2, 2, 2, 2): 4}


@cache
def all_tables(total, shape):
    return splits(total, int(np.prod(shape))).reshape(-1, *shape)


def truth(table, generators):
    """The least and the most of every cell over all tables with the same margins."""
    every = all_tables(int(table.sum()), table.shape)
    fits = np.ones(len(every), dtype=bool)
    for g in generators:
        rest = tuple(a for a in range(table.ndim) if a not in g)
        sums = every.sum(axis=tuple(a + 1 for a in rest))
        fits &= (sums == table.sum(axis=rest)).reshape(len(every), -1).all(axis=1)
    return every[fits].min(axis=0), every[fits].max(axis=0), every[fits]


@st.composite
def released(draw, smallest=0):
    """A small table and the margins in which it is released."""
    shape = draw(st.sampled_from(SHAPES))
    every = all_tables(draw(st.integers(0, PEOPLE[shape])), shape)
    table = every[draw(st.integers(0, len(every) - 1))]
    subsets = [
        frozenset(s)
        for k in range(smallest, len(shape) + 1)
        for s in itertools.combinations(range(len(shape)), k)
    ]
    return table, draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=5, unique=True))


def margins(table, generators, hidden=()):
    """What the margins of a table tell of it, and of hidden margins."""
    names = "ABCDE"[: table.ndim]
    shown = {
        "".join(names[a] for a in sorted(g)): table.sum(
            axis=tuple(a for a in range(table.ndim) if a not in g)
        )
        for g in generators
    }
    return from_margins(dict(zip(names, table.shape, strict=True)), shown, hidden=hidden)


def is_range(found, cells, least, most):
    low, high = found.low[cells], found.high[cells]
    return np.array_equal(low, least.ravel()) and np.array_equal(high, most.ravel())


@QUICK
@given(released())
def test_a_formula_reaches_all_bounds_of_the_cells(case):
    table, generators = case
    found = knowledge_bounds(margins(table, generators))
    if found is None:
        assert not all(p.closed for p in parts(map(frozenset, generators)))
        return
    assert found.sharp.all()
    least, most, _ = truth(table, generators)
    assert is_range(found, slice(0, table.size), least, most)


FORMS = [
    # (shape, margins, whether there is a formula)
    ((3, 3), [[0]], True),
    ((3, 3), [[]], True),
    ((3, 3), [[0, 1], [0]], True),
    ((2, 3, 2), [[0], [1], [2]], True),
    ((2, 3, 2), [[0, 1], [1, 2]], True),
    ((1, 3, 2), [[1], [2]], True),
    ((2, 3, 2), PAIRS, False),
    ((2, 2, 2, 1), PAIRS, True),
    ((2, 2, 2, 2), [*PAIRS, [2, 3]], True),
    ((2, 2, 2, 2), [*PAIRS, [3]], True),
    ((2, 2, 2, 2), [*PAIRS, [1, 3], [2, 3]], True),
    ((2, 2, 2, 2), [[0, 1], [1, 2], [2, 3], [0, 3]], False),
    ((2, 2, 2, 2), [[1, 2], [1, 3], [2, 3]], True),
    ((2, 2), [[0], [1]], True),
    ((2, 2, 2, 2), list(itertools.combinations(range(4), 3)), True),
]


@pytest.mark.parametrize(("shape", "generators", "has_formula"), FORMS)
def test_margins_that_have_a_formula_get_the_range_of_all_tables(shape, generators, has_formula):
    rng = np.random.default_rng(len(generators))
    for _ in range(12):
        cells = int(np.prod(shape))
        table = rng.multinomial(4, rng.dirichlet(np.full(cells, 0.6))).reshape(shape)
        found = knowledge_bounds(margins(table, generators))
        assert (found is not None) == has_formula
        if found is not None:
            least, most, _ = truth(table, generators)
            assert is_range(found, slice(0, cells), least, most)


@QUICK
@given(released(smallest=1), st.data())
def test_a_formula_reaches_all_bounds_of_a_hidden_margin(case, data):
    table, generators = case
    covered = sorted(set().union(*generators))
    wanted = sorted(data.draw(st.sets(st.sampled_from(covered), min_size=1)))
    name = "".join("ABCDE"[a] for a in wanted)
    known = margins(table, generators, hidden=[] if len(wanted) == table.ndim else [name])
    found = knowledge_bounds(known)
    if found is None:
        assert len(generators) > 1
        return
    rest = tuple(a + 1 for a in range(table.ndim) if a not in wanted)
    hidden = truth(table, generators)[2].sum(axis=rest)
    first = table.size if rest else 0
    cells = slice(first, first + hidden[0].size)
    assert is_range(found, cells, hidden.min(axis=0), hidden.max(axis=0))


def test_the_ends_of_a_chain_have_no_formula():
    chain = [(0, 1), (1, 2), (2, 3)]
    table = np.ones((2,) * 4, dtype=np.int64)
    assert knowledge_bounds(margins(table, chain)) is not None
    assert knowledge_bounds(margins(table, chain, hidden=["AD"])) is None
    assert knowledge_bounds(margins(table, [(0, 1)], hidden=["CD"])) is None


def test_a_formula_gives_the_published_bounds_of_the_hidden_margin():
    known = from_margins({"I": 4, "J": 4, "K": 3}, {"IJ": IJ, "JK": JK}, hidden=["IK"])
    found = knowledge_bounds(known)
    low, high = (end[48:60].reshape(4, 3) for end in (found.low, found.high))
    assert high.tolist() == [[88, 152, 200], [86, 94, 78], [21, 120, 65], [74, 71, 133]]
    assert low.tolist() == [[0, 14, 67], [0, 0, 0], [0, 49, 0], [0, 0, 57]]
    # Wanted is a fifth more than the value. The source names cell (3,3) as the third that falls short;
    # by its own figures, 65 against 63, that one does not, but (4,3) does, 133 against 148.
    actual = np.array([[74, 75, 81], [3, 85, 9], [8, 61, 52], [6, 4, 123]])
    assert np.argwhere(high < np.ceil(1.2 * actual)).tolist() == [[0, 0], [1, 1], [3, 2]]


@QUICK
@given(st.data())
def test_knowledge_of_margins_is_bounded_as_programs_bound_it(data):
    """Margins and hidden tables with their variables in any order."""
    cube = {"A": 2, "B": 3, "C": 2}
    table = np.array([data.draw(st.integers(0, 3)) for _ in range(12)]).reshape(2, 3, 2)

    def some(most):
        sets = st.sets(st.sampled_from("ABC"), min_size=1, max_size=2)
        named = sets.flatmap(lambda s: st.permutations(sorted(s))).map("".join)
        return data.draw(st.lists(named, min_size=1, max_size=most, unique_by=frozenset))

    shown = {name: np.einsum(f"ABC->{name}", table) for name in some(3)}
    known = from_margins(
        cube, shown, hidden=[n for n in some(2) if set(n) not in map(set, shown)], decimals=1
    )
    found = knowledge_bounds(known)
    if found is None:
        return
    slow = bounds(known, integer=True)
    assert (found.decimals, found.whole) == (1, True)
    assert found.low.tolist() == slow.low.tolist()
    assert found.high.tolist() == slow.high.tolist()
    assert not knowledge_bounds(known.relaxed()).whole


SEX, BOTH, AREA = axis("sex", (0,), (1,)), axis("sex", (0,), (1,), (0, 1)), axis("area", (0,), (1,))
CUBE = PublishedTable.hidden([SEX, AREA])
PLAIN = PublishedTable.exact([SEX], [3, 6])
SUMS = from_tables([CUBE, PLAIN])
OTHER_TABLES = {
    "turned": [CUBE, PublishedTable.exact([axis("sex", (1,), (0,))], [6, 3])],
    "turned in one of two": [
        CUBE,
        PublishedTable.exact([AREA, axis("sex", (1,), (0,))], [[3, 2], [3, 1]]),
    ],
    "in one group": [CUBE, PublishedTable.exact([axis("sex", (0, 1))], [9])],
    "with a total": [CUBE, PublishedTable.exact([BOTH], [3, 6, 9])],
    "rounded": [CUBE, PublishedTable.rounded([SEX], [3, 6], base=3)],
    "suppressed in part": [CUBE, PublishedTable.exact([SEX], [3, 6], [True, False])],
    "hidden alone": [CUBE],
    "at least 1": [PublishedTable.hidden([SEX, AREA], low=1), PLAIN],
    "below 0": [CUBE, PublishedTable.exact([SEX], [-1, 6], low=-9)],
    "two versions": [CUBE, PLAIN, PublishedTable.exact([SEX], [4, 5])],
    "no cube": [PublishedTable.exact([SEX, AREA], [[1, 2], [3, 3]]), PLAIN],
}
OTHERS = {name: from_tables(tables) for name, tables in OTHER_TABLES.items()} | {
    "a bound": SUMS.bound(0, high=1),
    "a lower bound": SUMS.bound(0, low=1),
    "a zero": SUMS.zero([3]),
    "a sum": SUMS.fact({SUMS.names[0]: 1, SUMS.names[1]: 1}, 3, 3),
    "a range": SUMS.fact({SUMS.names[0]: 1, SUMS.names[1]: 1}, 0, 3),
    "a difference": SUMS.fact({SUMS.names[0]: 1, SUMS.names[1]: -1}, 0, 0),
    "a sum up to a unit": replace(SUMS, fact_low=SUMS.fact_low - 1),
    "a sum up to a unit more": replace(SUMS, fact_high=SUMS.fact_high + 1),
    "no table": Knowledge.of(["x"]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_knowledge_with_anything_else_has_no_closed_form(name):
    assert margins_of(SUMS).tables[frozenset((0,))].ravel().tolist() == [3, 6]
    assert margins_of(from_tables([CUBE, PLAIN, PLAIN])).generators == (frozenset((0,)),)
    assert margins_of(OTHERS[name]) is None
    assert knowledge_bounds(OTHERS[name]) is None


@QUICK
@given(st.lists(st.frozensets(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=6))
def test_parts_hold_all_variables_and_none_lies_in_another(generators):
    pieces = parts(generators)
    assert frozenset().union(*(p.axes for p in pieces)) == frozenset().union(*generators)
    assert not any(p.axes <= q.axes for p in pieces for q in pieces if p is not q)
    assert [p.separator is None for p in pieces] == [True] + [False] * (len(pieces) - 1)
    for piece in pieces[1:]:
        # What a part shares with others is known from one margin.
        assert piece.separator < piece.axes
        assert any(piece.separator <= g for g in generators)


def test_a_square_of_pairs_is_one_part_and_an_hourglass_is_two():
    pairs = [frozenset(p) for p in ((0, 1), (1, 2), (2, 3), (0, 3))]
    assert len(parts(pairs)) == 1
    glass = [frozenset(p) for p in ((0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4))]
    assert sorted(sorted(p.axes) for p in parts(glass)) == [[0, 1, 2], [2, 3, 4]]
    assert len(parts([frozenset({a, a + 1}) for a in range(39)])) == 39


@pytest.mark.parametrize(
    "shown",
    [
        {"AB": [[1, 2], [3, 4]], "A": [3, 8]},
        {"A": [1, 2], "B": [1, 1]},
        {"AB": [[1, 2], [3, 4]], "BC": [[5, 0], [4, 1]]},
        {"AB": [[1, 2], [3, 4]], "BA": [[1, 2], [3, 4]]},
        {"AB": [[1, 0], [0, 1]], "BC": [[1, 0], [0, 1]], "AC": [[0, 1], [1, 0]]},
    ],
)
def test_margins_that_contradict_each_other_are_an_error(shown):
    with pytest.raises(ContradictionError):
        best_bounds(from_margins(dict.fromkeys("ABC", 2), shown))
