"""The loops of chains and of enumerations beside plain Python, move by move."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from audit.plain_walks import Stream, plain_lines, plain_squares
from audit.plain_walks import _square_step as plain_step
from lustrum.audit.fibre import FibreMargins, compiled, kernels
from lustrum.audit.fibre.enumerate import log_factorials, tally
from lustrum.audit.fibre.moves import Lines, Squares
from lustrum.audit.fibre.system import FibreBlock, FibreSystem

ALL_PAIRS = [(0, 1), (0, 2), (1, 2)]

WORDS = np.array([5, 77], dtype=np.uint64)
TABLE = np.array([[[3, 1], [0, 2], [5, 1]], [[1, 4], [2, 0], [1, 1]]])


@pytest.mark.parametrize("hypergeometric", [False, True])
@pytest.mark.parametrize("scale", [1, 8, 60, 400])
@pytest.mark.parametrize(
    "kept", [[(0, 1), (1, 2)], [(0, 1), (0, 2)], [(0, 1), (2,)], [(0,), (1,), (2,)]]
)
def test_squares_move_as_plain_python_moves_them(kept, scale, hypergeometric):
    x = (TABLE * scale).ravel().astype(np.int64)
    margins = FibreMargins.of(TABLE * scale, kept)
    squares = Squares.of(margins, [0, 5, 7])
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 300)))])
    start, stream = x.copy(), Stream(WORDS)
    with np.errstate(over="ignore"):
        out, state = np.empty((40, 3), np.int64), WORDS.copy()
        how = {"hypergeometric": hypergeometric, "logs": logs, "thin": 1, "out": out}
        changed = squares.run(x, state, **how)
    walk = [start]
    for row in out.tolist():
        walk.append(plain_squares(squares, walk[-1], stream, hypergeometric, 1))
        assert row == walk[-1][[0, 5, 7]].tolist()
    assert x.tolist() == walk[-1].tolist()
    assert changed == sum((a != b).any() for a, b in itertools.pairwise(walk)) > 0
    assert int(state[0]) == stream.position


@pytest.mark.parametrize(
    ("scale", "room", "hypergeometric"),
    [
        # So far a cell may lie from where it begins; short lines of large counts, long ones with ends.
        *itertools.product([1, 8], [2, 400], [False, True]),
        *itertools.product([60], [4, 30, 900], [False, True]),
        (400, 3000, False),
    ],
)
@pytest.mark.parametrize("mixed", [0.0, 0.5, 1.0])
def test_lines_move_as_plain_python_moves_them(mixed, scale, room, hypergeometric):
    margins = FibreMargins.of(TABLE * scale, ALL_PAIRS)
    loose = margins.knowledge().fact({"cell 0,0,0": 2, "cell 1,1,0": 1}, 2 * scale, 20 * scale)
    here = (TABLE * scale).ravel()
    # Upper ends are nearer than lower ones, so that both bind on some line.
    loose = loose.within(np.maximum(here - room, 0), here + -(-room // 4))
    counted = np.arange(12) != 4
    (block,) = FibreSystem.of(loose, counted).blocks
    x = block.extended((TABLE * scale).ravel()[block.cells])
    lines = Lines.of(block, mixed=mixed)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 100)))])
    start, stream = x.copy(), Stream(WORDS)
    with np.errstate(over="ignore"):
        out, state = np.empty((40, block.cells.size), np.int64), WORDS.copy()
        how = {"hypergeometric": hypergeometric, "logs": logs, "thin": 1, "out": out}
        changed = lines.run(x, state, **how)
    walk = [start]
    for row in out.tolist():
        walk.append(plain_lines(lines, walk[-1], stream, hypergeometric, 1))
        assert row == walk[-1][: block.cells.size].tolist()
        assert block.holds(walk[-1])
    assert x.tolist() == walk[-1].tolist()
    assert changed == sum((a != b).any() for a, b in itertools.pairwise(walk)) > 0
    assert int(state[0]) == stream.position


@pytest.mark.parametrize("hypergeometric", [False, True])
@pytest.mark.parametrize("mixed", [0.0, 1.0])
def test_a_line_ends_at_the_nearest_bound_of_any_cell(mixed, hypergeometric):
    # Three cells that weigh 1, 2 and 3 lie near their upper ends and far above the lower ones.
    equation = sparse.csr_array(np.array([[1, 2, 3]]))
    ends = np.array([74]), np.zeros(3, int), np.array([12, 15, 14])
    block = FibreBlock(np.arange(3), equation, *ends, np.ones(3, bool))
    lines = Lines.of(block, mixed=mixed)
    assert np.abs(lines.vectors()).max() > 1
    x, stream = np.array([10, 14, 12]), Stream(WORDS)
    walk = [x.copy()]
    with np.errstate(over="ignore"):
        out, state = np.empty((120, 3), np.int64), WORDS.copy()
        how = {"hypergeometric": hypergeometric, "logs": log_factorials(block), "thin": 1}
        lines.run(x, state, out=out, **how)
    for row in out.tolist():
        walk.append(plain_lines(lines, walk[-1], stream, hypergeometric, 1))
        assert row == walk[-1].tolist()
        assert block.holds(walk[-1])


class Written:
    """A stream of numbers that are written down."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def unit(self):
        return self.numbers.pop(0)

    def word(self):
        return 0

    def weighted(self, weights):
        return Stream.weighted(self, weights)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "corners",
    [
        # Long lines whose largest count comes up to the end of the list of factorials.
        (399, 9, 20, 20),
        (9, 399, 20, 20),
        (20, 20, 399, 9),
        (20, 20, 9, 399),
        (399, 9, 1, 1),
        (1, 1, 399, 9),
        (398, 9, 1, 1),
        (350, 340, 300, 310),
        (100, 90, 120, 30),
        (5000, 12, 30, 40),
        # Seven, eight and nine points.
        (3, 40, 50, 3),
        (4, 40, 50, 3),
        (4, 40, 50, 4),
        (0, 7, 0, 9),
    ],
)
def test_a_step_on_a_square_follows_its_formula(corners):
    p, q, u, v = corners
    low, high = -min(p, q), min(u, v)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 300)))])
    rng = np.random.default_rng(p)
    for first, level in rng.random((60, 2)).tolist():
        wanted = plain_step(list(corners), low, high, Written(first, level))
        weights = np.empty(kernels.SHORT)
        step = kernels._square_step(*corners, low, high, first, level, logs, weights)
        assert step == wanted
        assert low <= step <= high


def test_places_in_weights_and_scaled_factorials():
    weights = np.array([0.5, 0.25, 9.0])
    places = [kernels._from_weights(weights, 2, left) for left in (0.0, 0.4, 0.5, 0.6, 0.8)]
    assert places == [0, 0, 1, 1, 1]
    scaled = kernels._scaled_factorials(400)
    ratios = scaled[1:] / scaled[:-1] / np.arange(1, 400)
    assert ratios == pytest.approx(ratios[0])
    assert scaled[0] == 1
    assert scaled.size == 400
    # Products of four neither overflow nor vanish.
    assert np.isfinite(scaled.max() ** 4)
    assert scaled.min() ** 4 > 0


def test_every_table_is_met_with_weights_of_all_kinds():
    rng = np.random.default_rng(11)
    met = 0
    for _ in range(60):
        size, facts = int(rng.integers(3, 6)), int(rng.integers(1, 4))
        low = rng.integers(-2, 2, size)
        high = low + rng.integers(1, 5, size)
        weights = rng.integers(-3, 4, (facts, size))
        sums = weights @ rng.integers(low, high + 1)
        block = FibreBlock(
            np.arange(size),
            sparse.csr_array(weights),
            sums,
            low,
            high,
            np.ones(size, bool),
        )
        ranges = [range(a, b + 1) for a, b in zip(low, high, strict=True)]
        every = np.array(list(itertools.product(*ranges)))
        every = every[(every @ weights.T == sums).all(axis=1)]
        found = tally(block)
        assert found.count == len(every)
        for column, counts in enumerate(found.sums):
            wanted = np.bincount(every[:, column] - low[column], minlength=counts.size)
            assert counts.tolist() == wanted.tolist()
        met += len(every)
    assert met > 200


def test_loops_that_are_built_into_others_are_not_kept_by_themselves():
    loop = compiled.inlined(lambda x: 1.0 / x)
    assert (loop.keep, compiled.compiled(lambda x: 1.0 / x).keep) == (False, True)
    assert (loop.options["inline"], loop.options["error_model"]) == ("always", "numpy")


def test_very_large_counts_move_too():
    big = kernels.LARGE
    margins = FibreMargins.two_way([big, big], [big + 3, big - 3])
    squares = Squares.of(margins, np.arange(4))
    x = np.array([big, 0, 3, big - 3])
    logs = np.zeros(2)
    with np.errstate(over="ignore"):
        out, state = np.empty((1, 4), np.int64), WORDS.copy()
        wanted = plain_squares(squares, x, Stream(WORDS), True, 30)
        squares.run(x, state, hypergeometric=True, logs=logs, thin=30, out=out)
    assert x.tolist() == wanted.tolist()
    assert x[0] < big
