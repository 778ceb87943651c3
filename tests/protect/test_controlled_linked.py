"""Controlled rounding by integer programs: held against enumeration and against a second formulation."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from clocks import bend_clock
from examples import examples
from lustrum.model import InputError
from lustrum.model.arrays import Ints
from lustrum.numeric.solve import highs
from lustrum.numeric.structure import Structure, complete_relations
from lustrum.protect.rounding.controlled.linked import Rounded, round_published, round_system
from lustrum.protect.rounding.controlled.local import sums_of
from lustrum.protect.rounding.controlled.method import multiple_bounds
from lustrum.runtime.stop import Stopped, stopping
from solve.scipy_highs import ScipyHighs
from structure.cases import halves, named, with_total

FEW = settings(deadline=None, max_examples=examples(13, 100))
Rank = tuple[int, int, float]


def cube(*sizes: int) -> Structure:
    return Structure.of_tables([[with_total(f"v{i}", size) for i, size in enumerate(sizes)]])


AGE, SEX, AREA = with_total("age", 2), with_total("sex", 2), with_total("area", 2)
LINKED = Structure.of_tables([[AGE, SEX], [AGE, AREA]])
HIERARCHY = Structure.of_tables([[halves("area", 2), SEX]])
# {1, 2}, {2, 3} and {1, 3} add up to twice the total: a relation that no hierarchy has.
ODD = Structure.of_tables([[named("x", [[0, 1], [1, 2], [0, 2], [0, 1, 2]])]])

# Three cells of half the base. Each two of them lie in one plane, whose total is a multiple and must
# stay, so one of each two would have to go up: that is impossible for three.
HALVES = np.array([5, 0, 0, 5, 0, 5, 0, 0])
# One of the first that a search through all 2 by 2 by 3 tables of 0, 1 and 2 meets.
THIRDS = np.array([0, 0, 2, 1, 2, 1, 2, 2, 0, 0, 1, 2])
IMPOSSIBLE = [
    (cube(2, 2, 2), HALVES // 5, 2),
    (cube(2, 2, 2), HALVES, 10),
    (cube(2, 2, 3), THIRDS, 3),
]


def rank_of(true: Ints, shown: Ints, base: int, distance: str) -> Rank:
    error = np.abs(shown - true)
    size = error if distance == "absolute" else error**2
    return int((error // base).max()), int((error // base).sum()), float(size.sum())


def best_by_enumeration(
    true: Ints, tables: Structure, base: int, reach: int, distance: str
) -> Rank | None:
    """The best over all roundings of published cells up to ``reach`` steps beyond their neighbours.

    Only cells that are no total of others are enumerated; the totals follow, and all relations are checked.
    """
    relations = complete_relations(tables)
    totals = set(relations.totals[relations.totals >= 0].tolist())
    free = [cell for cell in range(true.size) if cell not in totals]
    ways = []
    for x in true[free].tolist():
        low, high = x - x % base, x + -x % base
        steps = range(low - reach * base, high + reach * base + 1, base)
        ways.append([y for y in steps if y >= 0] if x else [0])
    tried = np.array(list(itertools.product(*ways)), dtype=np.int64)
    shown = np.full((tried.shape[0], true.size), -1, dtype=np.int64)
    shown[:, free] = tried
    matrix = relations.matrix.toarray()
    open_rows = [row for row in range(relations.count) if relations.totals[row] >= 0]
    while open_rows:
        row = next(
            r
            for r in open_rows
            if all(shown[0, c] >= 0 for c in np.flatnonzero(matrix[r]) if c != relations.totals[r])
        )
        total = relations.totals[row]
        others = matrix[row].copy()
        others[total] = 0
        shown[:, total] = shown @ others
        open_rows = [r for r in open_rows if relations.totals[r] != total]
    fits = (shown >= 0).all(axis=1) & (shown[:, true == 0] == 0).all(axis=1)
    shown = shown[fits & ((shown @ matrix.T) == 0).all(axis=1)]
    steps = (np.abs(shown - true) // base).max(axis=1)
    kept = shown[steps <= reach]
    return min((rank_of(true, y, base, distance) for y in kept), default=None)


def exact(tables: Structure, inner: Ints, base: int, **options: Any) -> tuple[Rounded, Ints]:
    true = sums_of(inner, tables)
    return round_published(true, complete_relations(tables), base, **options), true


@pytest.mark.parametrize(("tables", "inner", "base"), IMPOSSIBLE)
def test_some_three_way_tables_have_no_zero_restricted_rounding(
    tables: Structure, inner: Ints, base: int
) -> None:
    ways = [[x - x % base, x + -x % base] for x in inner.tolist()]
    tried = np.array(list(itertools.product(*ways)), dtype=np.int64)
    error = np.abs((tried - inner) @ tables.matrix.astype(np.int64).T)
    assert (error.max(axis=1) >= base).all()
    made, true = exact(tables, inner, base)
    assert made.proven
    assert not (complete_relations(tables).matrix @ made.published).any()
    best = best_by_enumeration(true, tables, base, 1, "absolute")
    assert best[0] == 1
    assert rank_of(true, made.published, base, "absolute") == best
    moved = int(np.count_nonzero(made.steps))
    assert made.message.startswith(f"{moved} published cell")
    assert "at most 1 step." in made.message


@FEW
@given(
    st.sampled_from([cube(2, 2), cube(2, 3), HIERARCHY, LINKED, ODD, cube(2, 2, 2)]),
    st.integers(2, 4),
    st.sampled_from(["absolute", "squares"]),
    st.data(),
)
def test_the_rounding_is_the_best_that_enumeration_finds(
    tables: Structure, base: int, distance: str, data: st.DataObject
) -> None:
    cells = st.lists(st.integers(0, 2 * base), min_size=tables.inner, max_size=tables.inner)
    inner = np.array(data.draw(cells), dtype=np.int64)
    made, true = exact(tables, inner, base, distance=distance)
    assert made.proven
    found = best_by_enumeration(true, tables, base, 0, distance)
    if found is None:
        assert made.steps.max() > 0
        if tables.inner <= 4:
            found = best_by_enumeration(true, tables, base, 1, distance)
            assert rank_of(true, made.published, base, distance) == found
    else:
        assert rank_of(true, made.published, base, distance) == pytest.approx(found)


@FEW
@given(st.integers(0, 2**32), st.sampled_from([cube(3, 3, 3), HIERARCHY, LINKED]))
def test_a_second_formulation_on_inner_cells_is_no_nearer(seed: int, tables: Structure) -> None:
    base = 3
    inner = np.random.default_rng(seed).negative_binomial(1, 0.3, tables.inner).astype(np.int64)
    made, true = exact(tables, inner, base)
    # Whole numbers of bases in inner cells, and the distance of each published cell as a column.
    matrix = tables.matrix.astype(np.float64)
    rows, columns = matrix.shape
    eye = sparse.eye_array(rows)
    found = milp(
        np.r_[np.zeros(columns), np.ones(rows)],
        constraints=[
            LinearConstraint(sparse.hstack([base * matrix, -eye]), -np.inf, true),
            LinearConstraint(sparse.hstack([base * matrix, eye]), true, np.inf),
            LinearConstraint(
                sparse.hstack([base * matrix, 0 * eye]), true - true % base, true + -true % base
            ),
        ],
        integrality=np.r_[np.ones(columns), np.zeros(rows)],
        bounds=Bounds(0, np.inf),
    )
    distance = float(np.abs(made.published - true).sum())
    if found.status == 2:  # no such cube; then only cells without a published cube may still fit
        assert made.steps.max() > 0 or tables is LINKED
    elif tables is LINKED:
        assert distance <= found.fun + 1e-6
    else:
        assert made.steps.max() == 0
        assert distance == pytest.approx(found.fun)


@FEW
@given(st.integers(0, 2**32), st.integers(2, 6))
def test_every_exact_rounding_keeps_its_promises(seed: int, base: int) -> None:
    rng = np.random.default_rng(seed)
    tables = Structure.of_tables([[AGE, SEX, with_total("area", 3)], [AGE, with_total("job", 3)]])
    inner = rng.negative_binomial(1, 0.3, tables.inner).astype(np.int64)
    made = round_system(tables, inner, base, rng=rng, how="exact")
    true = sums_of(inner, tables)
    assert made.proven
    assert not (complete_relations(tables).matrix @ made.published).any()
    assert (made.published % base == 0).all()
    assert (made.published >= 0).all()
    assert (made.published[true == 0] == 0).all()
    assert np.array_equal(made.steps, np.abs(made.published - true) // base)
    if made.steps.max() == 0:
        assert (made.published == true)[true % base == 0].all()


@pytest.mark.parametrize("steps", [0, 1, 2])
@pytest.mark.parametrize("base", [2, 3, 5])
def test_bounds_hold_exactly_the_counts_that_can_show_so(base: int, steps: int) -> None:
    shows: dict[int, list[int]] = {}
    for x in range((steps + 9) * base):
        for y in range(0, (steps + 5) * base, base):
            if abs(y - x) // base <= steps and (x > 0 or y == 0):
                shows.setdefault(y, []).append(x)
    low, high = multiple_bounds(list(shows), base, steps)
    assert low.tolist() == [min(v) for v in shows.values()]
    assert high.tolist() == [max(v) for v in shows.values()]
    with pytest.raises(InputError, match="steps"):
        multiple_bounds([0], base, -1)


@pytest.mark.parametrize(("tables", "inner", "base"), IMPOSSIBLE)
def test_bounds_hold_the_truth_where_cells_went_further(
    tables: Structure, inner: Ints, base: int
) -> None:
    made, true = exact(tables, inner, base)
    low, high = multiple_bounds(made.published, base, int(made.steps.max()))
    assert ((low <= true) & (true <= high)).all()


def test_another_solver_finds_a_rounding_as_near() -> None:
    inner = np.random.default_rng(3).integers(0, 9, 27)
    one, true = exact(cube(3, 3, 3), inner, 4)
    other, _ = exact(cube(3, 3, 3), inner, 4, solver=ScipyHighs())
    assert one.proven
    assert other.proven
    ranks = [rank_of(true, made.published, 4, "absolute") for made in (one, other)]
    assert ranks[0] == ranks[1]


@pytest.mark.parametrize("distance", ["absolute", "squares"])
def test_of_equally_near_roundings_any_path_of_the_solver_leads_to_one(
    distance: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another seed of the solver stands for a processor that rounds differently on the way."""
    tables = cube(5, 8, 10)
    true = sums_of(np.random.default_rng(1).poisson(3, 400), tables)
    relations = complete_relations(tables)
    found = []
    for seed in range(4):
        monkeypatch.setitem(highs._QUIET, "random_seed", seed)
        found.append(round_published(true, relations, 5, distance=distance))
    assert all(one.proven for one in found)
    assert len({one.published.tobytes() for one in found}) == 1


def test_exact_is_never_worse_than_the_search_it_starts_from() -> None:
    tables = cube(5, 5, 5)
    inner = np.random.default_rng(2).negative_binomial(1, 0.3, 125).astype(np.int64)
    true = sums_of(inner, tables)
    ranks = {}
    for how in ("search", "exact"):
        made = round_system(tables, inner, 3, rng=np.random.default_rng(1), how=how)
        ranks[how] = rank_of(true, made.published, 3, "absolute")
        assert made.proven == (how == "exact")
        assert (made.inner is not None) == (how == "search")
    assert ranks["exact"] < ranks["search"]


def test_out_of_steps_the_incumbent_is_returned_and_not_called_the_best() -> None:
    tables = cube(4, 4, 4)
    inner = np.random.default_rng(2).integers(0, 7, 64)
    search = round_system(tables, inner, 3, rng=np.random.default_rng(1), how="search")
    made, _ = exact(tables, inner, 3, incumbent=search.published, steps=0)
    assert np.array_equal(made.published, search.published)
    assert not made.proven
    with pytest.raises(InputError, match="steps"):
        exact(tables, inner, 3, steps=0)


def test_a_search_that_is_told_to_stop_gives_no_number_at_all() -> None:
    tables = cube(4, 4, 4)
    inner = np.random.default_rng(2).integers(0, 7, 64)
    for looks in (0, 1, 3):
        left = iter([False] * looks)
        with pytest.raises(Stopped), stopping(lambda left=left: next(left, True)):
            exact(tables, inner, 3)


def test_the_clock_decides_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same steps end at the same place, however long they take."""
    tables = cube(6, 5, 5)
    inner = np.random.default_rng(3).poisson(6, 150)
    for steps in (1, 5, 20, 1000):
        made = [
            round_system(
                tables, inner, 5, rng=np.random.default_rng(1), distance="squares", steps=steps
            )
        ]
        with monkeypatch.context() as slow:
            bend_clock(slow)
            made.append(
                round_system(
                    tables, inner, 5, rng=np.random.default_rng(1), distance="squares", steps=steps
                )
            )
        assert np.array_equal(made[0].published, made[1].published)
        assert made[0].proven == made[1].proven
    assert made[0].proven


def test_large_systems_and_small_scopes_are_searched() -> None:
    rng = np.random.default_rng(4)
    large = cube(11, 11, 11)
    made = round_system(large, rng.integers(0, 9, large.inner), 3, rng=rng)
    assert made.inner is not None
    assert not made.proven
    assert "less than 3" in made.message
    small = round_system(cube(2, 2), [1, 4, 7, 2], 3, rng=rng, scope="small")
    assert small.inner.tolist()[1:3] == [4, 7]
    assert round_system(cube(2, 2), [1, 4, 7, 2], 3, rng=rng).proven


def test_a_goal_that_cannot_be_kept_is_said() -> None:
    made = round_system(
        cube(2, 2, 2), HALVES, 10, rng=np.random.default_rng(1), how="search", goal=9
    )
    assert made.message.endswith("Not every number is within 9 of the true one.")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"values": [1, 1, 3]}, "add up"),
        ({"values": [1, 1]}, "relations"),
        ({"values": [1.0, 1.0, 2.0]}, "counts"),
        ({"values": [-1, 1, 0]}, "counts"),
        ({"base": 1}, "base"),
        ({"distance": "far"}, "distance"),
        ({"incumbent": [3, 3, 3]}, "incumbent"),
    ],
)
def test_what_cannot_be_rounded_is_refused_in_one_sentence(
    change: dict[str, Any], words: str
) -> None:
    given: dict[str, Any] = {
        "values": [1, 1, 2],
        "relations": sparse.csr_array([[1, 1, -1]]),
        "base": 3,
    } | change
    with pytest.raises(InputError, match=words):
        round_published(**given)


def test_unknown_ways_to_round_are_refused() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(InputError, match="way"):
        round_system(cube(2, 2), [1, 2, 3, 4], 3, rng=rng, how="quick")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="small"):
        round_system(cube(2, 2), [1, 2, 3, 4], 3, rng=rng, how="exact", scope="small")
