"""The probability of a pair of values is the entry that all transitions of the true value have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import InputError, MatrixChannel


@given(
    rows=st.integers(1, 6),
    more=st.integers(0, 3),
    residue=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_the_probability_of_a_pair_is_that_of_the_transition(
    rows: int, more: int, residue: bool, seed: int
) -> None:
    dice = np.random.default_rng(seed)
    matrix = dice.integers(0, 4, (rows, rows + more)).astype(float)
    matrix[np.arange(rows), np.arange(rows)] += 1.0
    channel = MatrixChannel(
        matrix / matrix.sum(axis=1, keepdims=True),
        residue_base=int(dice.integers(1, rows + 1)) if residue else None,
    )
    most = rows + 8 if residue else rows
    true, published = (
        grid.ravel() for grid in np.meshgrid(np.arange(most), np.arange(-3, most + 8))
    )
    found = channel.probabilities(true, published)
    wanted = np.zeros(true.size)
    for place, (one, other) in enumerate(zip(true, published, strict=True)):
        moves = channel.transitions(np.array([one]))
        wanted[place] = moves.probability[moves.published == other].sum()
    assert found.tobytes() == wanted.tobytes()


def test_a_value_beyond_the_matrix_has_no_probability() -> None:
    with pytest.raises(InputError, match="ends at 1"):
        MatrixChannel([[0.5, 0.5], [0.5, 0.5]]).probabilities(np.array([2]), np.array([1]))
