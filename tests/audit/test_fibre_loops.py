"""The loops of chains and of enumerations beside plain Python, move by move."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from audit.fibres import QUICK
from audit.plain_walks import Stream, plain_lines, plain_squares, plain_tables
from lustrum.audit.fibre import FibreMargins
from lustrum.audit.fibre.enumerate import log_factorials, tally
from lustrum.audit.fibre.kernels import LARGE
from lustrum.audit.fibre.moves import Lines, Squares
from lustrum.audit.fibre.system import FibreBlock, FibreSystem

ALL_PAIRS = [(0, 1), (0, 2), (1, 2)]

WORDS = np.array([5, 77], dtype=np.uint64)
TABLE = np.array([[[3, 1], [0, 2], [5, 1]], [[1, 4], [2, 0], [1, 1]]])


def assert_same_walk(moves, plain, x, hypergeometric, logs, draws=40) -> list[np.ndarray]:
    """The compiled loop and plain Python visit the same tables from the same stream."""
    walk, stream, state = [x.copy()], Stream(WORDS), WORDS.copy()
    out = np.empty((draws, moves.keep.size), np.int64)
    with np.errstate(over="ignore"):
        changed = moves.run(x, state, hypergeometric=hypergeometric, logs=logs, thin=1, out=out)
    for row in out.tolist():
        walk.append(plain(moves, walk[-1], stream, hypergeometric, 1))
        assert row == walk[-1][moves.keep].tolist()
    assert x.tolist() == walk[-1].tolist()
    assert changed == sum((a != b).any() for a, b in itertools.pairwise(walk)) > 0
    assert int(state[0]) == stream.position
    return walk


def listed(count: int) -> np.ndarray:
    """Logarithms of factorials; those beyond the list are computed."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count)))])


@pytest.mark.parametrize("hypergeometric", [False, True])
@pytest.mark.parametrize("scale", [1, 8, 60, 400])
@pytest.mark.parametrize(
    "kept", [[(0, 1), (1, 2)], [(0, 1), (0, 2)], [(0, 1), (2,)], [(0,), (1,), (2,)]]
)
def test_squares_move_as_plain_python_moves_them(kept, scale, hypergeometric):
    squares = Squares.of(FibreMargins.of(TABLE * scale, kept), [0, 5, 7])
    x = (TABLE * scale).ravel().astype(np.int64)
    assert_same_walk(squares, plain_squares, x, hypergeometric, listed(300))


CORNERS = [
    # Long lines whose largest count comes up to the end of the list of factorials.
    *itertools.permutations((399, 9, 20, 20)),
    (399, 9, 1, 1),
    (1, 1, 399, 9),
    (398, 9, 1, 1),
    (350, 340, 300, 310),
    (5000, 12, 30, 40),
    # Seven, eight and nine points.
    (3, 40, 50, 3),
    (4, 40, 50, 3),
    (4, 40, 50, 4),
    (LARGE, LARGE - 3, 3, 0),
]


@pytest.mark.parametrize("corners", sorted(set(CORNERS)))
def test_a_square_of_any_size_moves_as_plain_python_moves_it(corners):
    p, q, u, v = corners
    squares = Squares.of(FibreMargins.of([[p, u], [v, q]], [(0,), (1,)]), np.arange(4))
    assert_same_walk(squares, plain_squares, np.array([p, u, v, q]), True, listed(300))


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
    (block,) = FibreSystem.of(loose, np.arange(12) != 4).blocks
    x = block.extended(here[block.cells])
    lines = Lines.of(block, mixed=mixed)
    walk = assert_same_walk(lines, plain_lines, x, hypergeometric, listed(100))
    assert all(block.holds(point) for point in walk)


@pytest.mark.parametrize("hypergeometric", [False, True])
@pytest.mark.parametrize("mixed", [0.0, 1.0])
def test_a_line_ends_at_the_nearest_bound_of_any_cell(mixed, hypergeometric):
    # Three cells that weigh 1, 2 and 3 lie near their upper ends and far above the lower ones.
    equation = sparse.csr_array(np.array([[1, 2, 3]]))
    ends = np.array([74]), np.zeros(3, int), np.array([12, 15, 14])
    block = FibreBlock(np.arange(3), equation, *ends, np.ones(3, bool))
    lines = Lines.of(block, mixed=mixed)
    assert np.abs(lines.vectors()).max() > 1
    logs = log_factorials(block)
    walk = assert_same_walk(
        lines, plain_lines, np.array([10, 14, 12]), hypergeometric, logs, draws=120
    )
    assert all(block.holds(point) for point in walk)


@QUICK
@given(st.data())
def test_the_compiled_walk_meets_what_the_plain_one_meets(data):
    size, facts = data.draw(st.integers(1, 5)), data.draw(st.integers(0, 3))

    def numbers(least, most, count):
        return np.array(
            data.draw(st.lists(st.integers(least, most), min_size=count, max_size=count))
        )

    low = numbers(-2, 1, size).astype(np.int64)
    high = low + numbers(0, 4, size)
    weights = numbers(-3, 3, facts * size).reshape(facts, size).astype(np.int64)
    sums = weights @ (low + (high - low) // 2) + data.draw(st.sampled_from([0, 0, 0, 1]))
    counted = np.ones(size, bool)
    block = FibreBlock(np.arange(size), sparse.csr_array(weights), sums, low, high, counted)
    plain = np.array(list(plain_tables(block)), dtype=np.int64).reshape(-1, size)
    found = tally(block)
    assert found.complete
    assert found.count == len(plain)
    for k, met in enumerate(found.sums):
        assert met.tolist() == np.bincount(plain[:, k] - low[k], minlength=met.size).tolist()
    for nodes in range(1, 8):
        begun = tally(block, nodes=nodes)
        assert not begun.complete or begun.count == len(plain)
