"""Controlled adjustment: additive, protected, bounded, optimal on small tables, clear where impossible."""

from __future__ import annotations

from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse
from scipy.optimize import linprog

from examples import examples
from lustrum.model import CellStatus, InputError, Table
from lustrum.numeric.solve.quadratic import QuadraticProblem, minimise_quadratic
from lustrum.numeric.structure import UNBOUNDED, Structure
from lustrum.protect.adjustment import Adjusted, ControlledAdjustment, adjust
from lustrum.protect.adjustment.problem import as_floats, eliminate, reduce_problem
from lustrum.protect.adjustment.search import alternating, least_squares
from lustrum.runtime.stop import Stopped, stopping
from lustrum.sensitivity import Threshold
from small import with_total as axis
from small import with_totals


def relations_of(shape: tuple[int, ...]) -> Any:
    axes = [axis(name, size) for name, size in zip("abcd", shape, strict=False)]
    return Structure.of_tables([axes]).relations.matrix


def drawn(seed: int, shape: tuple[int, ...], count: int) -> tuple[Any, Any, Any, Any, Any]:
    """A table with totals, its relations, and some sensitive cells with levels."""
    rng = np.random.default_rng(seed)
    values = with_totals(rng.integers(3, 60, shape)).ravel()
    places = np.sort(rng.choice(values.size, count, replace=False))
    return values, relations_of(shape), places, rng.integers(1, 6, count), rng.integers(1, 6, count)


def by_brute_force(values: Any, matrix: Any, places: Any, lower: Any, upper: Any) -> float:
    """The least weighted sum of changes over all directions, each by another linear solver."""
    size, weights = values.size, 1.0 / np.maximum(values, 1)
    best = np.inf
    for signs in product((-1, 1), repeat=places.size):
        rise = np.array([[0.0, np.inf]] * size)
        fall = np.column_stack([np.zeros(size), values.astype(float)])
        for place, sign, down, up in zip(places, signs, lower, upper, strict=True):
            if sign > 0:
                rise[place], fall[place] = (up, np.inf), (0, 0)
            else:
                rise[place], fall[place] = (0, 0), (down, values[place])
        if (fall[:, 0] > fall[:, 1]).any():
            continue
        both = sparse.hstack([matrix, -matrix]).astype(float)
        found = linprog(
            np.tile(weights, 2),
            A_eq=both,
            b_eq=np.zeros(both.shape[0]),
            bounds=np.vstack([rise, fall]),
        )
        best = min(best, found.fun) if found.status == 0 else best
    return best


@pytest.mark.parametrize("shape", [(3,), (2, 2), (3, 3), (2, 2, 2)])
@pytest.mark.parametrize("seed", range(4))
def test_exact_directions_are_the_best_of_all(shape: tuple[int, ...], seed: int) -> None:
    values, matrix, places, lower, upper = drawn(seed, shape, 3)
    best = by_brute_force(values, matrix, places, lower, upper)
    found = adjust(values, matrix, places, lower, upper, directions="exact")
    assert found.real_distance == pytest.approx(best, rel=1e-5)
    assert found.distance >= best * (1 - 1e-6)
    assert found.bound <= best * (1 + 1e-6)
    heuristic = adjust(values, matrix, places, lower, upper)
    assert heuristic.real_distance >= best * (1 - 1e-6)


ways = st.sampled_from(["heuristic", "balanced", "relaxed", "random", "exact"])
shapes = st.sampled_from([(4,), (3, 4), (2, 3, 2), (2, 2, 2, 2)])


@settings(max_examples=examples(30, 240))
@given(seed=st.integers(0, 10**6), shape=shapes, way=ways, norm=st.sampled_from(["l1", "l2"]))
def test_every_promise_is_kept(seed: int, shape: tuple[int, ...], way: Any, norm: Any) -> None:
    values, matrix, places, lower, upper = drawn(seed, shape, 3)
    rng = np.random.default_rng(seed)
    way = "heuristic" if (way, norm) == ("exact", "l2") else way
    frozen = rng.random(values.size) < 0.1
    frozen[places] = False
    high = values + rng.integers(20, 200, values.size)
    try:
        found = adjust(
            values,
            matrix,
            places,
            lower,
            upper,
            norm=norm,
            directions=way,
            frozen=frozen,
            high=high,
            rng=rng,
        )
    except InputError:
        assert by_brute_force_with(values, matrix, places, lower, upper, frozen, high) == np.inf
        return
    published = found.values
    assert not (matrix @ published).any()
    moved = published - values
    own = moved[places]
    assert np.all((own >= upper) | (own <= -lower))
    assert np.all(moved[frozen] == 0)
    assert np.all((published >= 0) & (published <= high))
    weights = 1.0 / np.maximum(values, 1)
    spread = np.abs(moved) if norm == "l1" else moved**2
    assert found.distance == pytest.approx(float(weights @ spread))
    assert found.bound <= found.distance


def by_brute_force_with(
    values: Any, matrix: Any, places: Any, lower: Any, upper: Any, frozen: Any, high: Any
) -> float:
    """Whether any directions are feasible with frozen cells and upper bounds: 0 if so."""
    for signs in product((-1, 1), repeat=places.size):
        low, top = -values.astype(float), (high - values).astype(float)
        low[frozen], top[frozen] = 0, 0
        for place, sign, down, up in zip(places, signs, lower, upper, strict=True):
            if sign > 0:
                low[place] = max(low[place], up)
            else:
                top[place] = min(top[place], -down)
        if (low > top).any():
            continue
        found = linprog(
            np.zeros(values.size),
            A_eq=matrix.astype(float),
            b_eq=np.zeros(matrix.shape[0]),
            bounds=np.column_stack([low, top]),
        )
        if found.status == 0:
            return 0.0
    return np.inf


@pytest.mark.parametrize("shape", [(2, 2), (4, 5), (3, 9)])
def test_least_squares_are_the_same_by_free_movements_and_by_relations(
    shape: tuple[int, int],
) -> None:
    values, matrix, places, lower, upper = drawn(7, shape, 2)
    low, high = -values, np.full(values.size, UNBOUNDED)
    problem = reduce_problem(matrix, values, low, high, places, lower, upper, 1.0 / values)
    signs = alternating(problem)
    found = least_squares(problem, signs)
    assert found is not None
    least, most = (as_floats(end) for end in problem.bounds(signs))
    none = np.zeros(least.size)
    for rows, span in ((problem.relations, None), (problem.rest, problem.floats)):
        target = np.zeros(rows.shape[0])
        program = QuadraticProblem(2 * problem.weights, none, rows, target, least, most, span=span)
        other = minimise_quadratic(program)
        assert other.value == pytest.approx(found.cost, rel=1e-6)
        assert other.point == pytest.approx(found.moved, rel=1e-3, abs=1e-3)


def test_given_directions_are_followed() -> None:
    values, matrix, places, lower, upper = drawn(4, (4, 4), 3)
    for signs in ([1, 1, -1], [-1, -1, 1]):
        found = adjust(values, matrix, places, lower, upper, directions=signs)
        assert np.sign(found.values - values)[places].tolist() == signs


def test_exact_directions_are_proven_the_best_where_some_are_ruled_out() -> None:
    values, matrix, places, lower, upper = drawn(5, (4, 3), 4)
    lower[0] = upper[1] = 0  # the first cell must not fall, the second must not rise
    allowed = [
        signs for signs in product((-1, 1), repeat=places.size) if signs[0] == 1 and signs[1] == -1
    ]
    given = [adjust(values, matrix, places, lower, upper, directions=s) for s in allowed]
    found = adjust(values, matrix, places, lower, upper, directions="exact")
    assert found.real_distance == pytest.approx(min(g.real_distance for g in given))
    assert found.bound == pytest.approx(found.real_distance, rel=1e-4)


def test_the_same_chance_gives_the_same_table() -> None:
    values, matrix, places, lower, upper = drawn(7, (5, 5), 8)

    def once(seed: int) -> list[int]:
        rng = np.random.default_rng(seed)
        found = adjust(values, matrix, places, lower, upper, directions="random", rng=rng)
        return [int(v) for v in found.values]

    assert once(1) == once(1)
    assert len({tuple(once(seed)) for seed in range(6)}) > 1


def test_values_of_many_digits_stay_exact() -> None:
    rng = np.random.default_rng(3)
    values = with_totals(rng.integers(10**10, 10**12, (4, 4))).ravel()
    places = np.array([0, 6, 12])
    levels = values[places] // 7
    for norm in ("l1", "l2"):
        found = adjust(values, relations_of((4, 4)), places, levels, levels, norm=norm)  # type: ignore[arg-type]
        assert not (relations_of((4, 4)) @ found.values).any()
        assert np.all(np.abs(found.values - values)[places] >= levels)


def test_negative_values_may_stay_negative_and_others_never_become_so() -> None:
    values = np.array([-20, 30, 2, 12])
    matrix = sparse.csr_array([[1, 1, 1, -1]])
    found = adjust(values, matrix, [0, 2], [5, 2], [5, 9], frozen=[False, False, False, True])
    assert not (matrix @ found.values).any()
    assert np.all(found.values[1:] >= 0)


def test_no_sensitive_cell_means_no_change() -> None:
    values = with_totals(np.array([[3, 4], [5, 6]])).ravel()
    for norm in ("l1", "l2"):
        found = adjust(values, relations_of((2, 2)), [], [], [], norm=norm)  # type: ignore[arg-type]
        assert np.array_equal(found.values, values)
        assert found.distance == 0
        assert found.gap == 0
        assert repr(found) == f"Adjusted(9 cells by {norm})"


def test_a_relation_without_a_single_cell_stays_as_an_equation() -> None:
    freedom = eliminate(sparse.csr_array([[2, 3, 0], [0, 2, -2]]))
    assert freedom.rest.shape[0] == 2
    values = np.array([30, 20, 20])
    matrix = sparse.csr_array([[2, -3, 0], [0, 2, -2]])
    for norm in ("l1", "l2"):
        found = adjust(values, matrix, [0], [2], [2], norm=norm)  # type: ignore[arg-type]
        assert not (matrix @ found.values).any()
        assert abs(found.values[0] - 30) >= 2


LINE = sparse.csr_array([[1, 1, -1]])
BAD: list[tuple[dict[str, Any], str]] = [
    ({"frozen": [False, True, True]}, "No adjustment was found"),
    ({"high": [11, 25, 40], "low": [9, 0, 0]}, "No adjustment was found"),
    ({"max_change": 0.1, "upper": 3, "lower": 3}, "No adjustment was found"),
    ({"max_change": 1.5}, "above 0 and below 1"),
    ({"values": [10, 20, 31]}, "add up"),
    ({"values": [10.0, 20.0, 30.0]}, "whole numbers"),
    ({"values": [2**53, 0, 2**53]}, "2\\*\\*53"),
    ({"sensitive": [3]}, "0 to 2"),
    ({"sensitive": [True, False]}, "3 entries"),
    ({"sensitive": [0.5]}, "numbers of cells"),
    ({"upper": 0, "lower": 0}, "no protection level"),
    ({"upper": -1}, "below 0"),
    ({"upper": [1, 2]}, "one for each"),
    ({"norm": "l3"}, "'l1' or 'l2'"),
    ({"directions": "best"}, "no way"),
    ({"directions": [2]}, "\\+1 or -1"),
    ({"directions": [1], "upper": 0}, "rules out"),
    ({"directions": "random"}, "generator"),
    ({"directions": "exact", "norm": "l2"}, "'l1'"),
    ({"weights": "heavy"}, "no weights"),
    ({"weights": [1.0, 0.0, 1.0]}, "above 0"),
    ({"steps": 0}, "1 step of work or more"),
    ({"frozen": [1, 0, 0]}, "mask"),
    ({"low": 15}, "outside its own bounds"),
    ({"high": [1.5]}, "whole numbers"),
    ({"relations": sparse.csr_array([[1, 1]])}, "relations of 2"),
    ({"relations": sparse.csr_array([[0.5, 0.5, -0.5]])}, "whole coefficients"),
]


@pytest.mark.parametrize(("changes", "words"), BAD)
def test_what_is_wrong_is_said_in_one_sentence(changes: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {
        "values": [10, 20, 30],
        "relations": LINE,
        "sensitive": [0],
        "lower": 2,
        "upper": 2,
    }
    given |= changes
    with pytest.raises(InputError, match=words) as refused:
        adjust(**given)
    assert str(refused.value).count(". ") == 0


def counts(inner: Any, **more: Any) -> Table:
    values = with_totals(np.asarray(inner, dtype=np.int64))
    axes = tuple(axis(n, s - 1) for n, s in zip("abcd", values.shape, strict=False))
    return Table(axes=axes, values=values, contributors=values.copy(), **more)


def test_small_counts_are_moved_and_everything_adds_up() -> None:
    table = counts([[1, 7, 12], [9, 2, 30], [14, 25, 8]])
    release = ControlledAdjustment(rule=Threshold(3)).apply(table)
    found = Threshold(3).judge(table)
    moved = release.published - table.values
    cells = found.mask
    assert np.all((moved >= found.upper)[cells] | (moved <= -found.lower)[cells])
    assert not (
        Structure.of_tables([table.axes]).relations.matrix @ release.published.ravel()
    ).any()
    assert release.channel is None
    assert np.all(release.status == CellStatus.FREE.value)
    assert np.all(release.least == 0)
    assert np.all(release.most == UNBOUNDED)


def test_kept_totals_and_structural_zeros_are_known_exactly() -> None:
    inner = np.array([[1, 17, 12], [19, 2, 30], [14, 25, 0]])
    structural = np.zeros((4, 4), dtype=np.bool_)
    structural[2, 2] = True
    table = counts(inner, structural=structural)
    for keep in ("totals", "grand-total"):
        release = ControlledAdjustment(keep=keep, norm="l2").apply(table)  # type: ignore[arg-type]
        kept = ~table.inner if keep == "totals" else np.zeros((4, 4), np.bool_)
        kept[3, 3] = kept[2, 2] = True
        assert np.array_equal(release.published[kept], table.values[kept])
        assert np.array_equal(release.least[kept], table.values[kept])
        assert np.array_equal(release.most[kept], table.values[kept])
        assert np.all(release.most[~kept] == UNBOUNDED)


@settings(max_examples=examples(20, 160))
@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.15, 0.2, 0.35]))
def test_bounds_from_a_public_cap_always_hold_the_truth(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    values = with_totals(rng.integers(-500, 900, (3, 3)))
    moves = np.floor(np.abs(values) * share + 1e-9).astype(np.int64)
    published = values + np.round(moves * rng.uniform(-1, 1, values.shape)).astype(np.int64)
    axes = (axis("a", 3), axis("b", 3))
    table = Table(axes=axes, values=values, kind="magnitude")
    method = ControlledAdjustment(max_change=share)
    low, high = method.known_range(table, published, np.zeros((4, 4), np.bool_))
    assert np.all(low <= values)
    assert np.all(values <= high)
    # And they are sharp: no whole number beyond them could have been published so.
    for end, step in ((low, -1), (high, 1)):
        beyond = end + step
        assert np.all(np.abs(published - beyond) > share * np.abs(beyond) + 1e-9 - 1e-6)


def test_a_cap_holds_for_sensitive_cells_too() -> None:
    table = counts([[100, 170, 120], [190, 2000, 300], [140, 250, 80]])
    method = ControlledAdjustment(
        rule={"rule": "threshold", "minimum": 85}, max_change=0.2, weights="unit"
    )
    release = method.apply(table)
    moved = np.abs(release.published - table.values)
    assert np.all(moved <= 0.2 * table.values)
    assert moved[2, 2] >= 5
    assert np.all((release.least <= table.values) & (table.values <= release.most))
    assert any("20%" in note for note in release.notes)
    strict = ControlledAdjustment(rule={"rule": "threshold", "minimum": 85}, max_change=0.01)
    with pytest.raises(InputError, match="No adjustment was found"):
        strict.apply(table)


def test_record_keys_make_chance_repeatable() -> None:
    rng = np.random.default_rng(0)
    keys = with_totals(rng.integers(0, 2**40, (5, 5))).astype(np.uint64)
    inner = rng.integers(1, 9, (5, 5))
    table = counts(inner, keys=keys)
    method = ControlledAdjustment(rule=Threshold(4), directions="random")
    one, other = method.apply(table), method.apply(table)
    assert np.array_equal(one.published, other.published)
    with pytest.raises(InputError, match="generator"):
        method.apply(counts(inner))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"norm": "l3"}, "'norm'"),
        ({"directions": "up"}, "'directions'"),
        ({"weights": "none"}, "'weights'"),
        ({"keep": "all"}, "'keep'"),
        ({"max_change": 2.0}, "max_change"),
        ({"max_change": True}, "max_change"),
        ({"steps": -1}, "steps"),
        ({"norm": "l2", "directions": "exact"}, "'l1'"),
        ({"rule": 3}, "rule"),
        ({"rule": {"rule": "nothing"}}, "no sensitivity rule"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ControlledAdjustment(**parameters)


def test_little_work_says_that_it_was_cut_short_and_is_cut_at_the_same_place() -> None:
    values, matrix, places, lower, upper = drawn(5, (9, 9), 30)
    found = adjust(values, matrix, places, lower, upper, directions="exact", steps=50)
    assert isinstance(found, Adjusted)
    assert found.cut_short
    assert not (matrix @ found.values).any()
    again = adjust(values, matrix, places, lower, upper, directions="exact", steps=50)
    assert np.array_equal(again.values, found.values)
    with pytest.raises(Stopped), stopping(lambda: True):
        adjust(values, matrix, places, lower, upper)
