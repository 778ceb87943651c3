from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import InputError
from lustrum.model.channel import (
    SHLOMO_2015,
    ComposedChannel,
    MatrixChannel,
    ObservedChannel,
    swapping_channel,
)

QUICK = settings(deadline=None, max_examples=examples(30, 240))

PRINTED_ROWS = {
    0: {0: 1.0},
    1: {1: 0.5, 2: 0.125, 3: 0.125, 4: 0.125, 5: 0.125},
    2: {1: 0.125, 2: 0.5, 3: 0.125, 4: 0.125, 5: 0.125},
    3: {3: 0.9, **dict.fromkeys([1, 2, 4, 5, 6, 7], 0.0167)},
    4: {4: 0.9, **dict.fromkeys([1, 2, 3, 5, 6, 7], 0.0167)},
    5: {5: 0.9, **dict.fromkeys([2, 3, 4, 6, 7, 8], 0.0167)},
    6: {6: 0.9, **dict.fromkeys([3, 4, 5, 7, 8, 9], 0.0167)},
    7: {7: 0.9, **dict.fromkeys([4, 5, 6, 8, 9, 10], 0.0167)},
    8: {8: 0.9, **dict.fromkeys([5, 6, 7, 9, 10, 11], 0.0167)},
    9: {9: 0.9, **dict.fromkeys([6, 7, 8, 10, 11, 12], 0.0167)},
    10: {10: 0.9, **dict.fromkeys([7, 8, 9, 11, 12, 13], 0.0167)},
    11: {11: 0.9, **dict.fromkeys([8, 9, 10, 12, 13, 14], 0.0167)},
    12: {12: 0.9, **dict.fromkeys([9, 10, 11, 13, 14, 15], 0.0167)},
    13: {13: 0.9, **dict.fromkeys([9, 10, 11, 12, 14, 15], 0.0167)},
    14: {14: 0.9, **dict.fromkeys([9, 10, 11, 12, 13, 15], 0.0167)},
    15: {15: 0.9, **dict.fromkeys([9, 10, 11, 12, 13, 14], 0.0167)},
}


@st.composite
def channels(draw: st.DrawFn) -> MatrixChannel:
    size = draw(st.integers(2, 5))
    weights = st.lists(st.integers(0, 3), min_size=size, max_size=size).filter(any)
    rows = np.array([draw(weights) for _ in range(size)], dtype=float)
    base = draw(st.none() | st.integers(1, size))
    return MatrixChannel(rows / rows.sum(axis=1, keepdims=True), base)


def row(channel: MatrixChannel, true: int) -> dict[int, float]:
    """One row, written out by the rule that a count above the cap moves as its class does."""
    cap, base = channel.cap, channel.residue_base
    kind = true
    while kind > cap:
        assert base is not None
        kind -= base
    steps = {int(j): float(p) for j, p in enumerate(channel.matrix[kind]) if p}
    return {j + true - kind: p for j, p in steps.items()}


def test_the_preset_is_the_printed_table_with_rows_that_add_up() -> None:
    assert SHLOMO_2015.matrix.sum(axis=1) == pytest.approx(np.ones(16), abs=1e-12)
    for value, printed in PRINTED_ROWS.items():
        for other in range(16):
            exact = SHLOMO_2015.matrix[value, other]
            assert round(exact, 4) == pytest.approx(printed.get(other, 0.0))


def test_the_printed_rows_as_such_do_not_add_up_and_that_is_one_sentence() -> None:
    matrix = [[PRINTED_ROWS[i].get(j, 0.0) for j in range(16)] for i in range(16)]
    with pytest.raises(
        InputError, match=r"Row 3 .* adds up to 1\.0002; every row must add up to 1"
    ):
        MatrixChannel(matrix, residue_base=5)


@QUICK
@given(channels(), st.lists(st.integers(0, 20), max_size=6))
def test_transitions_are_the_rows_of_the_matrix_and_add_up(
    channel: MatrixChannel, values: list[int]
) -> None:
    true = np.array([v if channel.residue_base else min(v, channel.cap) for v in values], dtype=int)
    found = channel.transitions(true)
    for position, value in enumerate(true.tolist()):
        mine = found.origin == position
        got = dict(
            zip(found.published[mine].tolist(), found.probability[mine].tolist(), strict=True)
        )
        assert got == pytest.approx(row(channel, value))
        assert sum(got.values()) == pytest.approx(1)
        assert min(got) >= 0


@QUICK
@given(channels())
def test_support_is_the_range_of_what_can_lead_to_a_value(channel: MatrixChannel) -> None:
    last = 30 if channel.residue_base else channel.cap
    behind: dict[int, list[int]] = {}
    for value in range(last + 1):
        for published in row(channel, value):
            behind.setdefault(published, []).append(value)
    asked = np.arange(last - channel.cap + 1)
    low, high = channel.support(asked)
    for value, least, most in zip(asked.tolist(), low.tolist(), high.tolist(), strict=True):
        if value in behind:
            assert (least, most) == (min(behind[value]), max(behind[value]))
        else:
            assert least > most


@QUICK
@given(channels(), st.integers(0, 12), st.none() | st.integers(0, 12))
def test_stay_is_the_mean_diagonal_over_the_values_that_have_a_row(
    channel: MatrixChannel, lowest: int, more: int | None
) -> None:
    highest = None if more is None else lowest + more
    last = highest
    if last is None:
        last = channel.cap if lowest <= channel.cap else lowest + (channel.residue_base or 1) - 1
    values = [v for v in range(lowest, last + 1) if v <= channel.cap or channel.residue_base]
    kept = [row(channel, v).get(v, 0.0) for v in values]
    expected = sum(kept) / len(kept) if kept else 1.0
    assert channel.stay(lowest, highest) == pytest.approx(expected)


def test_the_multipliers_of_the_printed_matrix_are_0_8_and_0_9() -> None:
    assert SHLOMO_2015.stay(0, 6) == pytest.approx(0.8)  # the paper uses 0.75
    assert SHLOMO_2015.stay(7, None) == pytest.approx(0.9)
    assert SHLOMO_2015.stay(1000, None) == pytest.approx(0.9)


def test_large_counts_keep_their_residue_class() -> None:
    found = SHLOMO_2015.transitions(np.array([1_000_004]))
    assert sorted((found.published - 1_000_004).tolist()) == [-5, -4, -3, -2, -1, 0, 1]


@QUICK
@given(st.floats(0, 1), st.integers(2, 12))
def test_swapping_keeps_what_is_not_swapped_and_spreads_the_rest_evenly(
    rate: float, values: int
) -> None:
    channel = swapping_channel(rate, values)
    for i, j in itertools.product(range(values), repeat=2):
        assert channel.matrix[i, j] == (1 - rate if i == j else rate / (values - 1))
    assert channel.stay(0, 6) == pytest.approx(1 - rate)
    assert channel.stay(7, None) == pytest.approx(1 - rate)


@pytest.mark.parametrize(
    ("matrix", "base", "sentence"),
    [
        ([[1.0], [1.0]], None, "a column for every row"),
        ([], None, "a column for every row"),
        ([[1.5, -0.5], [0.0, 1.0]], None, "from 0 to 1"),
        ([[float("nan"), 1.0], [0.0, 1.0]], None, "from 0 to 1"),
        ([[0.5, 0.4], [0.0, 1.0]], None, "Row 0 .* 0.9; every row"),
        ([[1.0, 0.0], [0.0, 1.0]], 3, "from 1 to 2, not 3"),
        ([[1.0, 0.0], [0.0, 1.0]], 0, "from 1 to 2, not 0"),
    ],
)
def test_a_wrong_matrix_is_one_sentence(
    matrix: list[list[float]], base: int | None, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        MatrixChannel(matrix, base)


def test_wrong_questions_are_one_sentence() -> None:
    plain = MatrixChannel(np.eye(3))
    with pytest.raises(InputError, match="ends at 2"):
        plain.transitions(np.array([3]))
    with pytest.raises(InputError, match="0 or more"):
        plain.transitions(np.array([-1]))
    with pytest.raises(InputError, match="upwards"):
        plain.stay(3, 2)
    with pytest.raises(InputError, match="share from 0 to 1"):
        swapping_channel(1.5, 5)
    with pytest.raises(InputError, match="2 or more"):
        swapping_channel(0.1, 1)


def test_a_channel_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        SHLOMO_2015.matrix[0, 0] = 0.5
    assert repr(SHLOMO_2015) == "MatrixChannel(values 0 to 15, above by residue to base 5)"


def test_an_observed_channel_holds_the_shares_of_what_happened() -> None:
    channel = ObservedChannel([1, 1, 1, 2, 5], [0, 3, 3, 3, 5])
    rows = channel.transitions(np.array([1, 2, 4]))
    assert rows.origin.tolist() == [0, 0, 1]
    assert rows.published.tolist() == [0, 3, 3]
    assert rows.probability == pytest.approx([1 / 3, 2 / 3, 1.0])
    low, high = channel.support(np.array([3, 0, 9]))
    assert low.tolist() == [1, 1, 10]
    assert high.tolist() == [2, 1, 8]
    assert channel.stay(0, 2) == 0.0
    assert channel.stay(3, None) == 1.0
    assert channel.stay(7, 9) == 1.0
    assert "3" not in repr(channel)


def test_one_channel_after_another_is_the_product_of_their_matrices() -> None:
    rng = np.random.default_rng(5)
    matrices = [rng.dirichlet(np.ones(6), size=6) for _ in range(2)]
    matrices[0][0] = np.eye(6)[0]
    first, second = (MatrixChannel(m / m.sum(axis=1, keepdims=True)) for m in matrices)
    both = ComposedChannel(first, second)
    rows = both.transitions(np.arange(6))
    dense = np.zeros((6, 6))
    dense[rows.origin, rows.published] = rows.probability
    assert dense == pytest.approx(first.matrix @ second.matrix)
    assert both.stay(0, 5) == pytest.approx(float(np.diagonal(dense).mean()))


def test_the_support_of_two_channels_is_what_enumeration_finds() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        made = []
        for _ in range(2):
            matrix = np.triu(rng.random((5, 5)) < 0.4) | np.eye(5, dtype=bool)
            made.append(MatrixChannel(matrix / matrix.sum(axis=1, keepdims=True)))
        both = ComposedChannel(*made)
        reached = (made[0].matrix @ made[1].matrix) > 0
        # The hull of the middle values may hold one that leads nowhere near; it is never too narrow.
        low, high = both.support(np.arange(5))
        for j in range(5):
            behind = np.flatnonzero(reached[:, j])
            assert low[j] <= behind.min()
            assert high[j] >= behind.max()


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
