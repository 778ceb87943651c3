"""Closed forms compared with every table that has the released margins."""

from __future__ import annotations

import itertools
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
    bounds,
    from_margins,
    from_tables,
)
from lustrum.audit.closed import (
    ClosedForm,
    Margins,
    applicable,
    bonferroni,
    closed_bounds,
    decomposable,
    dichotomous,
    frechet,
    is_decomposable,
    is_dichotomous,
    knowledge_bounds,
    margins_of,
    operator,
    parts,
    perfect_sequence,
    project,
    reducible,
)
from lustrum.model import InputError

IJ = [[3, 87, 68, 72], [5, 8, 80, 4], [3, 4, 7, 107], [64, 6, 56, 7]]
JK = [[5, 2, 68], [10, 10, 85], [69, 81, 61], [7, 132, 51]]

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


def contains(found, least, most):
    return bool((found.low <= least.ravel()).all() and (found.high >= most.ravel()).all())


def equals(found, least, most):
    return (
        found.low.tolist() == least.ravel().tolist()
        and found.high.tolist() == most.ravel().tolist()
    )


@QUICK
@given(released())
def test_every_closed_form_holds_and_is_reached_where_it_says_so(case):
    table, generators = case
    margins = Margins.of_table(table, generators)
    least, most, _ = truth(table, generators)
    for found in (frechet(margins), bonferroni(margins), closed_bounds(margins)):
        assert contains(found, least, most)
        if found.sharp.any():
            assert found.sharp.all()
            assert equals(found, least, most)
    assert closed_bounds(margins).sharp.all() == applicable(margins).sharp
    assert is_decomposable(margins) == (
        applicable(margins).form in (ClosedForm.FRECHET, ClosedForm.DECOMPOSABLE)
    )
    if is_decomposable(margins):
        assert equals(decomposable(margins), least, most)
    # Bonferroni's bounds are never wider than Fréchet's.
    assert (bonferroni(margins).low >= frechet(margins).low).all()
    assert (bonferroni(margins).high <= frechet(margins).high).all()


DECOMPOSABLE = [[[0], [1], [2]], [[0, 1], [2]], [[0, 1], [1, 2]], [[0, 1, 2]], [[0, 2]], [[]]]


@pytest.mark.parametrize("generators", DECOMPOSABLE)
@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 3, 2)])
def test_decomposable_bounds_are_the_range_of_all_tables(generators, shape):
    rng = np.random.default_rng(5)
    for _ in range(10):
        table = rng.multinomial(PEOPLE[shape], rng.dirichlet(np.ones(int(np.prod(shape))))).reshape(
            shape
        )
        least, most, _ = truth(table, generators)
        assert equals(decomposable(Margins.of_table(table, generators)), least, most)


REDUCIBLE = [
    [[0, 1], [0, 2], [1, 2], [2, 3]],
    [[0, 1], [0, 2], [1, 2], [3]],
    [[0, 1, 2], [2, 3]],
    [[0, 1], [1, 2], [2, 3]],
    [[0, 1], [0, 2], [0, 3]],
]


@pytest.mark.parametrize("generators", REDUCIBLE)
def test_parts_of_a_reducible_graph_together_give_the_range_of_all_tables(generators):
    rng = np.random.default_rng(6)
    for _ in range(12):
        table = rng.multinomial(4, rng.dirichlet(np.ones(16))).reshape((2,) * 4)
        margins = Margins.of_table(table, generators)
        least, most, _ = truth(table, generators)
        assert equals(reducible(margins), least, most)
        assert applicable(margins).sharp


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_all_margins_of_one_variable_less_leave_one_number_open(k):
    rng = np.random.default_rng(k)
    for _ in range(15):
        table = rng.multinomial(4, rng.dirichlet(np.ones(2**k))).reshape((2,) * k)
        generators = [tuple(a for a in range(k) if a != b) for b in range(k)]
        margins = Margins.of_table(table, generators)
        least, most, _ = truth(table, generators)
        assert is_dichotomous(margins)
        assert equals(dichotomous(margins), least, most)


@QUICK
@given(released(smallest=1), st.data())
def test_bounds_of_a_hidden_margin_hold_and_are_reached_where_they_say_so(case, data):
    table, generators = case
    margins = Margins.of_table(table, generators)
    if not is_decomposable(margins):
        with pytest.raises(InputError, match="not decomposable"):
            project(margins, "A" if 0 in margins.covered else "")
        return
    wanted = data.draw(st.sets(st.sampled_from(sorted(margins.covered)), min_size=1))
    rest = tuple(a + 1 for a in range(table.ndim) if a not in wanted)
    hidden = truth(table, generators)[2].sum(axis=rest)
    found = project(margins, [margins.names[a] for a in wanted])
    assert contains(found, hidden.min(axis=0), hidden.max(axis=0))
    if found.sharp.all():
        assert equals(found, hidden.min(axis=0), hidden.max(axis=0))
    else:
        assert len(generators) > 2


def test_the_ends_of_a_chain_get_bounds_that_hold_but_are_not_called_sharp():
    rng = np.random.default_rng(9)
    for _ in range(10):
        table = rng.multinomial(4, rng.dirichlet(np.ones(16))).reshape((2,) * 4)
        generators = [(0, 1), (1, 2), (2, 3)]
        ends = truth(table, generators)[2].sum(axis=(2, 3))
        found = project(Margins.of_table(table, generators), "AD")
        assert not found.sharp.any()
        assert contains(found, ends.min(axis=0), ends.max(axis=0))


def test_the_matrix_operator_gives_the_published_bounds_of_the_hidden_margin():
    low, high = operator(IJ, JK)
    assert high.tolist() == [[88, 152, 200], [86, 94, 78], [21, 120, 65], [74, 71, 133]]
    assert low.tolist() == [[0, 14, 67], [0, 0, 0], [0, 49, 0], [0, 0, 57]]
    # Wanted is a fifth more than the value. The source names cell (3,3) as the third that falls short;
    # by its own figures, 65 against 63, that one does not, but (4,3) does, 133 against 148.
    actual = np.array([[74, 75, 81], [3, 85, 9], [8, 61, 52], [6, 4, 123]])
    assert np.argwhere(high < np.ceil(1.2 * actual)).tolist() == [[0, 0], [1, 1], [3, 2]]


def test_knowledge_of_margins_is_bounded_as_programs_bound_it():
    known = from_margins({"I": 4, "J": 4, "K": 3}, {"IJ": IJ, "JK": JK}, hidden=["KI"])
    assert applicable(known).form is ClosedForm.DECOMPOSABLE
    found, slow = knowledge_bounds(known), bounds(known, integer=True)
    assert found.sharp.all()
    assert found.low.tolist() == slow.low.tolist()
    assert found.high.tolist() == slow.high.tolist()


def test_knowledge_with_anything_else_has_no_closed_form():
    known = from_margins({"I": 4, "J": 4, "K": 3}, {"IJ": IJ, "JK": JK})
    assert margins_of(known) is not None
    for more in (
        known.bound(0, high=1),
        known.zero([3]),
        known.fact({known.names[0]: 1, known.names[5]: 1}, 0, 3),
        known.fact({known.names[0]: 1, known.names[5]: -1}, 0, 0),
    ):
        assert margins_of(more) is None
        assert knowledge_bounds(more) is None
        assert not applicable(more).sharp
    sex, both = axis("sex", (0,), (1,)), axis("sex", (0,), (1,), (0, 1))
    area = axis("area", (0,), (1,))
    cube = PublishedTable.hidden([sex, area])
    for shown in (
        PublishedTable.rounded([sex], [3, 6], base=3),  # intervals
        PublishedTable.exact([both], [3, 6, 9]),  # a category that is a total
        PublishedTable.exact([sex], [3, 6], [True, False]),  # suppressed in part
    ):
        assert margins_of(from_tables([cube, shown])) is None
    assert margins_of(Knowledge.of(["x"])) is None
    assert margins_of(from_tables([cube])) is None
    triangle = from_margins(
        {"A": 3, "B": 2, "C": 2},
        {
            p: np.ones([3 if c == "A" else 2 for c in p], int) * (2 if "A" in p else 3)
            for p in ("AB", "AC", "BC")
        },
        hidden=["A"],
    )
    assert not applicable(triangle).sharp
    assert knowledge_bounds(triangle) is None


@QUICK
@given(st.lists(st.frozensets(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=6))
def test_a_perfect_sequence_meets_what_came_before_inside_one_clique(generators):
    top = {g for g in generators if not any(g < h for h in generators)}
    steps = perfect_sequence(generators)
    pieces = parts(generators)
    # Margins decompose exactly where every irreducible part is shown by one margin.
    assert (steps is not None) == all(p.closed for p in pieces)
    assert frozenset().union(*(p.axes for p in pieces)) == frozenset().union(*generators)
    assert not any(p.axes <= q.axes for p in pieces for q in pieces if p is not q)
    if steps is None:
        return
    assert {s.clique for s in steps} == top
    for i, step in enumerate(steps[1:], start=1):
        before = [s.clique for s in steps[:i]]
        assert step.separator == step.clique & frozenset().union(*before)
        assert any(step.separator <= b for b in before)


def test_a_square_of_pairs_is_one_part_and_an_hourglass_is_two():
    pairs = [frozenset(p) for p in ((0, 1), (1, 2), (2, 3), (0, 3))]
    assert len(parts(pairs)) == 1
    assert perfect_sequence(pairs) is None
    # No part lies inside another.
    glass = [frozenset(p) for p in ((0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4))]
    assert sorted(sorted(p.axes) for p in parts(glass)) == [[0, 1, 2], [2, 3, 4]]


def test_the_order_in_which_a_margin_names_its_variables_does_not_matter():
    one = Margins.of({"I": 4, "J": 4, "K": 3}, {"IJ": IJ, "JK": JK})
    other = Margins.of({"I": 4, "J": 4, "K": 3}, {"JI": np.transpose(IJ), "KJ": np.transpose(JK)})
    assert decomposable(one).low.tolist() == decomposable(other).low.tolist()
    assert decomposable(one).high.tolist() == decomposable(other).high.tolist()


def test_forty_variables_decompose_without_trouble():
    chain = [frozenset({a, a + 1}) for a in range(39)]
    assert len(perfect_sequence(chain)) == 39
    assert len(parts(chain)) == 39


@pytest.mark.parametrize(
    ("cube", "shown", "words"),
    [
        ({"A": 2}, {}, "No margin is given"),
        ({"A": 2}, {"B": [1, 2]}, "no variable 'B'"),
        ({"A": 2}, {"AA": [[1, 2], [1, 2]]}, "twice"),
        ({"A": 2}, {"A": [1, 2, 3]}, "shape"),
        ({"A": 2}, {"A": [1, -2]}, "negative"),
        ({"A": 2}, {"A": [1, 2.5]}, "whole number"),
        ({"A": 0}, {"A": []}, "at least one category"),
        ({"A": 2, "B": 2}, {"A": [1, 2], "B": [1, 1]}, "do not agree on their total"),
        (
            {"A": 2, "B": 2, "C": 2},
            {"AB": [[1, 2], [3, 4]], "BC": [[5, 0], [4, 1]]},
            "do not agree on B",
        ),
        ({"A": 2, "B": 2}, {"AB": [[1, 2], [3, 4]], "BA": [[1, 2], [3, 4]]}, "given twice"),
    ],
)
def test_margins_that_make_no_sense_are_refused_in_a_sentence(cube, shown, words):
    with pytest.raises(InputError, match=words):
        Margins.of(cube, shown)


def test_what_has_no_closed_form_says_so():
    triangle = Margins.of_table(np.ones((3, 2, 2)), [[0, 1], [0, 2], [1, 2]])
    with pytest.raises(InputError, match="not decomposable"):
        decomposable(triangle)
    with pytest.raises(InputError, match="two categories"):
        dichotomous(triangle)
    with pytest.raises(InputError, match="no closed form"):
        reducible(triangle)
    with pytest.raises(InputError, match="does not follow"):
        triangle.margin("ABC")
    with pytest.raises(InputError, match="I x J and J x K"):
        operator([[1]], [1])
    with pytest.raises(InputError, match="No released margin shows B"):
        project(Margins.of({"A": 2, "B": 2}, {"A": [1, 2]}), "AB")
    clash = Margins.of(
        dict.fromkeys("ABC", 2),
        {"AB": [[1, 0], [0, 1]], "BC": [[1, 0], [0, 1]], "AC": [[0, 1], [1, 0]]},
    )
    with pytest.raises(ContradictionError, match="no table has all"):
        dichotomous(clash)
