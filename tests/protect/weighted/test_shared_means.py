"""Classes follow from protected numbers, and no mean is that of few respondents."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import InputError
from lustrum.model.arrays import Ints
from lustrum.protect.weighted.classes import class_weights, classes_of, weight_classes
from lustrum.protect.weighted.means import (
    class_noise,
    cut_values,
    filled_means,
    limited_weights,
    shared_values,
)

NUMBERS = np.array([[12, 11], [9, 30], [2, 0], [40, 10]])


def weights_of(true: Ints, weights: np.ndarray, noise: float = 0.01) -> Ints:
    place = np.repeat(np.arange(true.size), true.ravel())
    return class_weights(
        np.unravel_index(place, true.shape),
        NUMBERS,
        weights,
        np.arange(1, place.size + 1).astype(np.uint64),
        class_size=10,
        noise=noise,
        decimals=4,
        secret=b"a secret of the test",
    )


@given(st.integers(0, 7), st.integers(0, 20))
def test_who_shares_a_weight_follows_from_protected_numbers(where: int, held: int) -> None:
    """However many respondents a class has in truth, the same combinations share a weight."""
    true = np.full((4, 2), 15)
    true.ravel()[where] = held
    found = weights_of(true, np.random.default_rng(2).uniform(5, 50, int(true.sum())))
    group = weight_classes(np.indices((4, 2)).reshape(2, -1), NUMBERS.ravel(), [0, 1], 10)
    same = found.ravel()[:, None] == found.ravel()[None, :]
    assert np.array_equal(same, group[:, None] == group[None, :])


def test_one_respondent_moves_a_mean_by_its_share_of_a_full_class_at_most() -> None:
    """Also in a class that shows many and has one, and however large its weight is."""
    for held in (1, 2, 5, 15):
        true = np.full((4, 2), 15)
        true[3, 1] = held
        weights = np.full(int(true.sum()), 20.0)
        plain = weights_of(true, weights)
        for factor in (0.1, 2.0, 1000.0):
            other = weights.copy()
            other[-1] *= factor
            moved = weights_of(true, other) / plain
            assert np.abs(moved - 1.0).max() <= 0.22
    with_one = np.full((4, 2), 15)
    with_one[3, 1] = 1
    weights = np.full(int(with_one.sum()), 20.0)
    weights[-1] = 60.0
    # A mean of the one respondent would be 60.
    assert weights_of(with_one, weights)[3, 1] / 1e4 < 26


def test_medians_limit_weights_as_numpy_finds_them() -> None:
    rng = np.random.default_rng(5)
    group = rng.integers(0, 9, 80)
    group = np.where(group == 4, 5, group)
    weights = rng.lognormal(0, 2, 80)
    found = limited_weights(group, weights, 9, 8)
    sizes = np.bincount(group)
    assert 0 < (sizes >= 8).sum() < np.unique(group).size
    for one in np.unique(group):
        own = weights[group == one]
        middle = np.median(own if own.size >= 8 else weights)
        assert found[group == one] == pytest.approx(np.minimum(own, 3 * middle))


def test_a_class_that_has_nobody_has_the_mean_of_all() -> None:
    assert filled_means(np.array([0, 0]), np.array([2.0, 4.0]), 2, 3).tolist() == [3.0, 3.0]


@given(st.integers(1, 6), st.integers(10**5, 10**9))
def test_no_value_of_a_few_shows(few: int, giant: int) -> None:
    """A giant in a class of any size: the shared values and the spread are those without it."""
    rng = np.random.default_rng(6)
    group = np.concatenate([np.zeros(few, np.int64), rng.integers(1, 4, 60)])
    values = rng.integers(10, 60, group.size)
    values[0] = values[:few].max() + 1
    found = []
    for value in (values[0], giant):
        values[0] = value
        found.append(shared_values(group, values, 4, 10, np.full(4, 0.05)))
    assert np.array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


@given(
    st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=12, unique=True),
    st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=12),
    st.permutations([0, 1, 2]),
)
def test_the_class_of_a_record_is_that_of_the_nearest_shown_cell(
    cells: list[tuple[int, ...]], records: list[tuple[int, ...]], order: list[int]
) -> None:
    codes, theirs = np.array(cells).T, np.array(records).T
    group = np.arange(len(cells))
    found = classes_of(codes, group, order, theirs)
    for record, place in zip(records, found.tolist(), strict=True):
        left = list(range(len(cells)))
        for variable in order:
            own = sorted({cells[i][variable] for i in left})
            wanted = next((c for c in own if c >= record[variable]), own[-1])
            left = [i for i in left if cells[i][variable] == wanted]
        assert left == [place]


def test_the_difference_of_two_releases_does_not_show_who_left() -> None:
    """Of a class of ten one respondent is gone: with the same noise its weight would follow within the noise.

    An attacker takes ten means minus nine. Noise of up to 5 percent, drawn again, leaves an error of about
    40 percent of a weight; the same noise would leave 5 percent at most.
    """
    rng = np.random.default_rng(4)
    group = np.zeros(10, dtype=np.int64)
    off = []
    for _ in range(200):
        keys = rng.integers(0, 2**64, 10, dtype=np.uint64)
        weights = rng.uniform(15, 25, 10)
        means = [
            weights[:n].mean()
            * (1 + 0.05 * class_noise(b"a secret", "weights", group[:n], keys[:n], 1)[0])
            for n in (10, 9)
        ]
        off.append(abs((10 * means[0] - 9 * means[1]) / weights[9] - 1.0))
    assert np.median(off) > 0.2


def test_noise_is_uniform_and_belongs_to_the_respondents() -> None:
    rng = np.random.default_rng(5)
    keys = rng.integers(0, 2**64, 4000, dtype=np.uint64)
    group = np.repeat(np.arange(2000), 2)
    found = class_noise(b"a secret", "weights", group, keys, 2000)
    # Quarters of 2,000 draws: 500 with a standard error of 19; six of those fail once in a hundred million.
    assert np.abs(np.histogram(found, bins=4, range=(-1, 1))[0] - 500).max() < 120
    again = class_noise(b"a secret", "weights", group, keys.reshape(-1, 2)[:, ::-1].ravel(), 2000)
    assert np.array_equal(found, again)
    for other in (("another", "weights"), ("a secret", "values")):
        assert not np.isin(class_noise(other[0].encode(), other[1], group, keys, 2000), found).any()


def test_a_class_of_two_uses_neither_value() -> None:
    """Of two nobody can be cut: whatever they have, the shared values are the same."""
    group = np.array([0, 0, 1, 1, 1])
    found = [
        shared_values(group, np.array([*pair, 4, 5, 6]), 2, 3, np.zeros(2))[0].tolist()
        for pair in ((1, 1), (900, 700))
    ]
    assert found[0] == found[1] == [4, 4]


def test_values_are_cut_to_the_third_largest_of_their_class_where_it_has_three() -> None:
    group, values = np.array([0, 0, 0, 0, 1, 1, 1]), np.array([1, 9, 2, 5, -7, 3, -4])
    assert cut_values(group, values).tolist() == [1, 2, 2, 2, -3, 3, -3]
    assert cut_values(np.array([0, 0, 1]), np.array([8, 3, -6])).tolist() == [3, 3, -6]


def test_shared_values_are_means_of_cut_values_with_their_noise() -> None:
    group = np.array([0, 0, 0, 1, 1, 1, 1, 3])
    values = np.array([10, 20, 30, -40, -40, -70, -90, 5])
    noise = np.array([0.5, -0.25, 0.1, 0.2])
    found, spread = shared_values(group, values, 4, 4, noise)
    # The two largest of a class count as the third largest; the class of one is not used.
    cut = np.sign(values[:7]) * np.minimum(np.abs(values[:7]), [10] * 3 + [40] * 4)
    every = cut.mean()
    mean = np.array([(30.0 + every) / 4, -40.0, every, every])
    assert found.tolist() == np.rint(mean * (1 + noise)).tolist()
    own = mean[group[:7]]
    assert spread == pytest.approx(np.sqrt(((cut - own) ** 2).mean()) / np.abs(own).mean())


def test_where_no_class_has_three_no_value_is_used() -> None:
    found, spread = shared_values(np.array([0, 0, 2]), np.array([70, 80, 90]), 4, 3, np.zeros(4))
    assert found.tolist() == [1, 1, 1, 1]
    assert spread == 0.0
    found, spread = shared_values(np.zeros(4, int), np.array([1, 1, 1, 0]), 1, 3, np.zeros(1))
    assert (found.tolist(), spread) == ([1], pytest.approx(3**0.5 / 3))
    found, spread = shared_values(np.zeros(3, int), np.zeros(3, int), 1, 3, np.zeros(1))
    assert (found.tolist(), spread) == ([0], 0.0)


def test_classes_are_filled_up_with_the_mean_of_all() -> None:
    group, values = np.array([0, 0, 1]), np.array([2.0, 4.0, 9.0])
    assert filled_means(group, values, 3, 3) == pytest.approx([11 / 3, 19 / 3, 5.0])
    assert filled_means(group, values, 3, 2) == pytest.approx([3.0, 7.0, 5.0])
    assert filled_means(group, values, 3, 0).tolist() == [3.0, 9.0, 0.0]
    assert filled_means(group[:0], values[:0], 2, 3).tolist() == [1.0, 1.0]


def test_weights_are_limited_by_their_class_if_it_is_full() -> None:
    weights = np.array([100.0, 1.0, 1.0, 1.0])
    group = np.array([0, 1, 1, 1])
    assert limited_weights(group, weights, 3, 0).tolist() == [100.0, 1.0, 1.0, 1.0]
    assert limited_weights(group, weights, 3, 1).tolist() == [100.0, 1.0, 1.0, 1.0]
    assert limited_weights(group, weights, 3, 2).tolist() == [3.0, 1.0, 1.0, 1.0]
    assert limited_weights(group[:0], weights[:0], 2, 3).size == 0


def test_classes_without_respondents_have_noise_of_their_own() -> None:
    found = class_noise(b"secret", "x", np.array([1]), np.array([7], dtype=np.uint64), 4)
    assert len(set(found.tolist())) == 4
    other = class_noise(b"secret", "x", np.array([0]), np.array([7], dtype=np.uint64), 4)
    assert found[1] == other[0]
    assert found[2:].tolist() == other[2:].tolist()


@pytest.mark.parametrize(
    ("codes", "sizes", "least", "expected"),
    [
        # Parts of exactly the least size are large enough.
        ([[0, 1]], [5, 5], 5, [0, 1]),
        ([[0, 1]], [5, 4], 5, [0, 0]),
        ([[0, 1]], [2, 3], 5, [0, 0]),
        ([[0]], [1], 1, [0]),
        # Small parts are joined with each other where they are enough together.
        ([[0, 1, 2]], [9, 2, 3], 5, [0, 1, 1]),
        # Otherwise they are joined with the smallest of the large parts, the first of several alike.
        ([[0, 1, 2]], [9, 6, 2], 5, [0, 1, 1]),
        ([[0, 1, 2]], [6, 6, 2], 5, [1, 0, 1]),
        ([[0, 1, 2, 3]], [6, 9, 7, 2], 5, [2, 0, 1, 2]),
        # A single large part beside small ones is left whole, and the next variable divides.
        ([[0, 0, 1], [0, 1, 0]], [5, 5, 2], 5, [0, 1, 0]),
        # So it is with a variable of one category, and with one that has no large part.
        ([[0, 0], [0, 1]], [5, 5], 5, [0, 1]),
        ([[0, 1, 2, 3], [0, 0, 1, 1]], [3, 3, 3, 3], 5, [0, 0, 1, 1]),
        # What was joined is not divided again: a difference would be a smaller group.
        ([[0, 1, 2, 3, 4], [0, 0, 0, 1, 1]], [9, 4, 4, 4, 4], 5, [0, 1, 1, 1, 1]),
        ([[0, 1, 1, 2], [0, 0, 1, 1]], [12, 5, 5, 2], 5, [0, 1, 1, 1]),
        # What was divided is divided again.
        ([[0, 0, 1, 1], [0, 1, 0, 1]], [5, 6, 7, 8], 5, [0, 1, 2, 3]),
        ([[0, 0, 1, 1], [0, 1, 0, 1]], [9, 9, 6, 2], 5, [0, 1, 2, 2]),
    ],
)
def test_cells_come_into_the_class_that_is_written_here(
    codes: list[list[int]], sizes: list[int], least: int, expected: list[int]
) -> None:
    order = list(range(len(codes)))
    assert weight_classes(np.array(codes), np.array(sizes), order, least).tolist() == expected


def test_the_order_of_the_variables_decides() -> None:
    codes, sizes = np.array([[0, 1, 0, 1], [0, 0, 1, 1]]), np.array([4, 4, 4, 4])
    assert weight_classes(codes, sizes, [0, 1], 8).tolist() == [0, 1, 0, 1]
    assert weight_classes(codes, sizes, [1, 0], 8).tolist() == [0, 0, 1, 1]
    assert weight_classes(codes, sizes, [], 8).tolist() == [0, 0, 0, 0]


def test_too_few_respondents_make_no_class() -> None:
    codes = np.array([[0, 1]])
    with pytest.raises(InputError, match="fewer respondents than a weight class needs"):
        weight_classes(codes, np.array([2, 2]), [0], 5)
    with pytest.raises(InputError, match="at least 1 respondent"):
        weight_classes(codes, np.array([2, 2]), [0], 0)
