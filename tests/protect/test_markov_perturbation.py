"""Markov perturbation: margins kept, means kept, zeros kept, and the exact channel of a square."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from audit.plain_walks import Stream
from examples import examples
from lustrum.audit import MarkovSquare
from lustrum.model import Category, InputError, Table, TableAxis
from lustrum.protect.markov import (
    MarkovPerturbation,
    Moves,
    StationarySquare,
    perturb_boxes,
    simulated_channel,
)
from lustrum.protect.markov.spec import draw_binomial, run_boxes, run_random
from lustrum.protect.totals.inner_table import InnerTable
from protect.plain_markov import plain_binomial, plain_boxes, plain_random

RULES = ("people", "unit")
ORDERS = ("random", "disjoint")
SMALL = 1e-6  # false alarm rate of every test by distribution


def state(seed: int) -> np.ndarray:
    words = np.random.default_rng(seed).integers(2**64, size=2, dtype=np.uint64)
    return words | np.array([0, 1], dtype=np.uint64)


def with_totals(counts: np.ndarray) -> Table:
    axes, values = [], counts
    for k, size in enumerate(counts.shape):
        cats = [Category(f"c{i}", f"c{i}", (i,)) for i in range(size)]
        cats.insert(k % 2 * size, Category("all", "all", tuple(range(size))))
        total = values.sum(axis=k, keepdims=True)
        values = np.concatenate([total, values] if k % 2 == 0 else [values, total], axis=k)
        axes.append(TableAxis(f"v{k}", f"v{k}", tuple(cats)))
    return Table(axes=tuple(axes), values=values)


def margins(values: np.ndarray, cliques: list[tuple[int, ...]]) -> list[np.ndarray]:
    return [
        values.sum(axis=tuple(a for a in range(values.ndim) if a not in clique))
        for clique in cliques
    ]


KEEPS = [
    [(0,), (1,), (2,)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)], [(0, 1), (2,)], [(0, 1)], [()],
]  # fmt: skip


@pytest.mark.parametrize("cliques", KEEPS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rule", RULES)
def test_kept_margins_stay_and_nothing_becomes_negative(
    cliques: list[tuple[int, ...]], order: str, rule: str
) -> None:
    rng = np.random.default_rng(5)
    for shape in [(3, 4, 2), (4, 2, 3), (5, 3, 3)]:
        counts = 1 + rng.poisson(3, shape)
        moves = Moves.of(shape, cliques)
        made = perturb_boxes(counts, moves, 0.4, 8, order, rule, rng)
        assert (made >= 0).all()
        assert (made != counts).any()
        for before, after in zip(margins(counts, cliques), margins(made, cliques), strict=True):
            assert np.array_equal(before, after)


@settings(max_examples=examples(30, 240))
@given(
    counts=st.lists(st.integers(0, 9), min_size=12, max_size=12),
    theta=st.floats(0.001, 0.5),
    order=st.sampled_from(ORDERS),
    rule=st.sampled_from(RULES),
    seed=st.integers(0, 2**32),
    totals=st.booleans(),
)
def test_the_release_adds_up_and_its_bounds_hold_the_truth(
    counts: list[int], theta: float, order: str, rule: str, seed: int, totals: bool
) -> None:
    values = np.array(counts).reshape(3, 4)
    table = with_totals(values) if totals else Table.from_counts(values)
    method = MarkovPerturbation(theta, 2, order=order, rule=rule)  # type: ignore[arg-type]
    release = method.apply(table, np.random.default_rng(seed))
    assert (release.least <= table.values).all()
    assert (table.values <= release.most).all()
    assert (release.least <= release.published).all()
    assert (release.published <= release.most).all()
    inner = InnerTable.of(table.axes, "A test")
    assert np.array_equal(inner.added_up(inner.take(release.published)), release.published)
    exact = ~table.inner
    assert np.array_equal(release.published[exact], table.values[exact])
    assert np.array_equal(release.least[exact], release.most[exact])
    assert not ((table.values == 0) & (release.published > 0)).any()


@pytest.mark.parametrize("rule", RULES)
def test_one_step_leaves_the_mean_of_every_square_as_it_is(rule: str) -> None:
    """All squares of 12 people: the rows of the exact transition add up to 1 and have the true mean."""
    for p, q, u in itertools.product(range(6), repeat=3):
        square = StationarySquare(p + u, p + 4, p + q + u + 4, 0.35, rule=rule)
        values = np.arange(square.least, square.most + 1)
        assert np.allclose(square.matrix.sum(axis=1), 1)
        assert np.allclose(square.matrix @ values, values)
        for column, published in enumerate(values):
            reaching = values[square.matrix[:, column] > 0]
            low, high = square.support(np.array([published]))
            assert (low[0], high[0]) == (reaching.min(), reaching.max())


def test_the_printed_formula_agrees_where_all_of_the_column_can_move_and_is_biased_elsewhere() -> (
    None
):
    """1, 17 | 14, 83: of the 14 below all can move. 1, 14 | 17, 83, as printed: of the 17 only 14 can."""
    ours, printed = (c(18, 15, 115, 0.2) for c in (StationarySquare, MarkovSquare))
    assert np.allclose(ours.matrix[1], printed.matrix[1])
    printed = MarkovSquare(15, 18, 115, 0.2)
    mean = float(printed.matrix[1] @ np.arange(16))
    assert mean == pytest.approx(1 - 0.2 + 0.2 * 14 / 17)
    assert float(StationarySquare(15, 18, 115, 0.2).matrix[1] @ np.arange(16)) == pytest.approx(1)


@pytest.mark.parametrize("rule", RULES)
def test_a_single_square_follows_its_exact_channel(rule: str) -> None:
    square = np.array([[3, 9], [12, 20]])
    channel = StationarySquare(12, 15, 44, 0.3, rule=rule)
    moves, rng = Moves.of((2, 2), [(0,), (1,)]), np.random.default_rng(11)
    seen = np.array(
        [perturb_boxes(square, moves, 0.3, 1, "disjoint", rule, rng)[0, 0] for _ in range(20_000)]
    )
    expected = channel.matrix[3] * seen.size
    large = expected > 5
    found = np.bincount(seen, minlength=expected.size)
    pooled = [*found[large], found[~large].sum()], [*expected[large], expected[~large].sum()]
    keep = np.array(pooled[1]) > 1e-9
    assert stats.chisquare(*(np.array(p)[keep] for p in pooled)).pvalue > SMALL


def test_every_cell_of_a_perturbed_table_is_right_on_average() -> None:
    """4,000 perturbations of 12 cells; each mean within 5.3 standard errors (one in a million)."""
    counts = np.array([[1, 4, 0, 9], [7, 2, 5, 3], [2, 8, 6, 1]])
    moves, rng = Moves.of(counts.shape, [(0,), (1,)]), np.random.default_rng(2)
    for order, rule in itertools.product(ORDERS, RULES):
        made = np.stack(
            [perturb_boxes(counts, moves, 0.3, 2, order, rule, rng) for _ in range(4000)]
        )
        error = made.std(axis=0) / np.sqrt(len(made))
        assert (np.abs(made.mean(axis=0) - counts) <= 5.3 * error).all()
        assert (made.std(axis=0)[counts > 0] > 0).all()


@pytest.mark.parametrize("cliques", [[(0,), (1,), (2,)], [(0, 1), (1, 2), (0, 2)], [(0, 1)]])
@pytest.mark.parametrize("rule", RULES)
def test_compiled_and_plain_loops_make_the_same_moves(
    cliques: list[tuple[int, ...]], rule: str
) -> None:
    rng = np.random.default_rng(8)
    counts = np.concatenate([rng.poisson(4, 30), rng.integers(100, 300, 30)]).reshape(5, 4, 3)
    moves = Moves.of(counts.shape, cliques)
    x, words = counts.ravel().copy(), state(3)
    plain = plain_random(x, moves, 0.4, rule == "unit", 400, Stream(words))
    arrays = (moves.families, moves.groups, moves.offsets, moves.odd)
    changed = run_random(x, *arrays, 0.4, rule == "unit", 400, words.copy())
    assert changed > 20
    assert np.array_equal(x, plain)
    boxes = moves.disjoint(rng)
    plain = plain_boxes(x, boxes, 0.4, rule == "unit", Stream(words))
    run_boxes(x, boxes, moves.odd, 0.4, rule == "unit", words.copy())
    assert np.array_equal(x, plain)


def test_compiled_binomials_are_those_of_the_plain_twin_and_of_the_distribution() -> None:
    words = state(1)
    for n, p in [(1, 0.3), (7, 0.9), (40, 0.02), (90, 0.4), (2000, 0.5), (400, 1.0), (5, 0.0)]:
        stream, own = Stream(words), words.copy()
        drawn = np.array([draw_binomial(n, p, own) for _ in range(300)])
        assert drawn.tolist() == [plain_binomial(n, p, stream) for _ in range(300)]
    for n, p in [(7, 0.9), (40, 0.02), (90, 0.4), (5000, 0.5)]:
        own = state(n)
        drawn = np.array([draw_binomial(n, p, own) for _ in range(20_000)])
        ends = np.unique(stats.binom.ppf(np.linspace(0.05, 0.95, 10), n, p))
        expected = np.diff([0, *stats.binom.cdf(ends, n, p), 1])
        seen = np.bincount(np.searchsorted(ends, drawn), minlength=ends.size + 1)
        kept = expected * drawn.size > 1
        share = expected[kept] / expected[kept].sum()
        assert stats.chisquare(seen[kept], share * seen[kept].sum()).pvalue > SMALL


def test_a_sweep_of_disjoint_boxes_touches_no_cell_twice() -> None:
    rng = np.random.default_rng(1)
    for shape, cliques in [((5, 4), [(0,), (1,)]), ((3, 4, 4), KEEPS[2]), ((3, 4, 5), KEEPS[0])]:
        moves = Moves.of(shape, cliques)
        for _ in range(5):
            boxes = moves.disjoint(rng)
            assert np.unique(boxes).size == boxes.size
    assert Moves.of((4, 6), [(0,), (1,)]).disjoint(rng).size == 24


def test_the_same_records_are_perturbed_alike_however_the_table_is_turned() -> None:
    rng = np.random.default_rng(6)
    counts, keys = rng.poisson(5, (4, 3)), rng.integers(0, 2**64, (4, 3), dtype=np.uint64)
    names, codes = ["a", "b"], [["1", "2", "3", "4"], ["x", "y", "z"]]
    method = MarkovPerturbation(0.3)
    first = method.apply(Table.from_counts(counts, names, codes, keys)).published
    again = method.apply(Table.from_counts(counts, names, codes, keys)).published
    turned = method.apply(
        Table.from_counts(counts.T[::-1], names[::-1], [codes[1][::-1], codes[0]], keys.T[::-1])
    ).published
    assert first.tobytes() == again.tobytes()
    assert np.array_equal(turned[::-1].T, first)
    other = MarkovPerturbation(0.31).apply(Table.from_counts(counts, names, codes, keys)).published
    assert not np.array_equal(other, first)
    by_seed = [method.apply(Table.from_counts(counts), np.random.default_rng(3)) for _ in range(2)]
    assert by_seed[0].published.tobytes() == by_seed[1].published.tobytes()
    with pytest.raises(InputError, match="no record keys"):
        method.apply(Table.from_counts(counts))


def test_margins_are_kept_as_the_policy_names_them() -> None:
    rng = np.random.default_rng(4)
    counts = rng.poisson(4, (3, 4, 3))
    table = Table.from_counts(counts, ["sex", "age", "area"])
    method = MarkovPerturbation(0.5, 3, keep=["area,age", ["age", "sex"]])  # type: ignore[arg-type]
    made = method.apply(table, rng).published
    assert np.array_equal(made.sum(axis=0), counts.sum(axis=0))
    assert np.array_equal(made.sum(axis=2), counts.sum(axis=2))
    assert not np.array_equal(made.sum(axis=1), counts.sum(axis=1))
    words = method.to_mapping()
    assert words["keep"] == ["area,age", "age,sex"]
    again = MarkovPerturbation(**{k: v for k, v in words.items() if k != "method"})
    assert again == method


def test_a_simulated_channel_comes_close_to_the_exact_one() -> None:
    """5,000 draws of one square; the largest of its differences is far below 5 standard errors."""
    table = Table.from_counts([[3, 9], [12, 20]])
    spec = MarkovPerturbation(0.3)
    found = simulated_channel(table, spec, 5_000, np.random.default_rng(1))
    rows = found.transitions(np.array([3]))
    exact = StationarySquare(12, 15, 44, 0.3).matrix[3]
    assert np.abs(rows.probability - exact[rows.published]).max() < 5 * 0.5 / np.sqrt(5_000)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"theta": 0.6, "rule": "unit"}, "theta above 0 and up to 0.5"),
        ({"keep": "area"}, "a list of lists of texts"),
        ({"keep": [3]}, "a list of lists of texts"),
    ],
)
def test_wrong_parameters_are_one_sentence(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        MarkovPerturbation(**options)  # type: ignore[arg-type]


def test_tables_that_cannot_be_perturbed_are_told_so() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(InputError, match="fix every cell"):
        MarkovPerturbation(keep=(("v1", "v2"),)).apply(Table.from_counts(np.ones((2, 2), int)), rng)
    with pytest.raises(InputError, match="does not have"):
        MarkovPerturbation(keep=(("age",),)).apply(Table.from_counts(np.ones((2, 2), int)), rng)
    cats = (Category("a", "a", (0,)), Category("all", "all", (0, 1)))
    axes = (TableAxis("v", "v", cats), TableAxis.plain("w", ["1", "2"]))
    odd = Table(axes=axes, values=np.ones((2, 2), dtype=np.int64))
    with pytest.raises(InputError, match="sums of inner categories"):
        MarkovPerturbation().apply(odd, rng)
    both = (Category("a", "a", (0, 1)), Category("b", "b", (1, 2)))
    axes = (TableAxis("v", "v", both), TableAxis.plain("w", ["1", "2"]))
    with pytest.raises(InputError, match="do not overlap"):
        MarkovPerturbation().apply(Table(axes=axes, values=np.ones((2, 2), dtype=np.int64)), rng)
    with pytest.raises(InputError, match="one draw or more"):
        simulated_channel(Table.from_counts(np.ones((2, 2), int)), MarkovPerturbation(), 0, rng)
    nine = [tuple(a for a in range(9) if a != k) for k in range(9)]
    with pytest.raises(InputError, match="at most 8 variables"):
        Moves.of((2,) * 9, nine)


def test_a_variable_of_one_category_spans_no_box() -> None:
    assert len(Moves.of((3, 1, 4), [(0,), (1,), (2,)]).families) == 1
