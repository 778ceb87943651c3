"""Unbiased controlled rounding: exact means by writing down every way in which chance can fall."""

from __future__ import annotations

from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from examples import examples
from lustrum.model import InputError
from lustrum.protect.rounding.cells import RoundingChannel

# One walk by given words.
from lustrum.protect.rounding.controlled.method import _walk, unbiased_rounding
from lustrum.protect.rounding.controlled.two_way import CirculationLayout
from protect.plain_unbiased import decision_of_word, round_by_decisions

GROUPS = {1: [], 2: [[0, 1]], 3: [[0, 1]], 4: [[0, 1], [2, 3]]}


def every_end(layout: CirculationLayout, values, base: int):
    """Each end of the walk with its probability: all decisions are tried both ways."""
    waiting: list[tuple[bool, ...]] = [()]
    while waiting:
        prefix = waiting.pop()
        taken: list[bool] = []
        chance = Fraction(1)

        def decide(up: int, down: int, prefix=prefix, taken=taken) -> bool:
            nonlocal chance
            assert up > 0
            assert down > 0
            choice = prefix[len(taken)] if len(taken) < len(prefix) else True
            chance *= Fraction(down if choice else up, up + down)
            taken.append(choice)
            return choice

        published = round_by_decisions(layout, values, base, decide)
        waiting += [(*taken[:k], False) for k in range(len(prefix), len(taken))]
        yield published, chance


def assert_exact(layout: CirculationLayout, values, base: int) -> int:
    """Every end is a controlled rounding, and over all ends every number follows the channel."""
    true = layout.published(values)
    total, ends = Fraction(0), 0
    rises = [Fraction(0)] * true.size
    mean = [Fraction(0)] * true.size
    for shown, chance in every_end(layout, values, base):
        assert np.array_equal(shown, layout.published(layout.inner(shown)))
        assert np.all(shown % base == 0)
        assert np.all(np.abs(shown - true) < base)
        total, ends = total + chance, ends + 1
        for cell, value in enumerate(shown.tolist()):
            mean[cell] += chance * value
            rises[cell] += chance * (value > true[cell])
    assert total == 1
    assert mean == true.tolist()
    assert rises == [Fraction(int(v) % base, base) for v in true]
    rows = RoundingChannel(base).transitions(true)
    up = rows.published > true[rows.origin]
    expected = np.zeros(true.size)
    expected[rows.origin[up]] = rows.probability[up]
    assert expected == pytest.approx([float(p) for p in rises], abs=1e-15)
    return ends


@pytest.mark.parametrize("base", [2, 3, 5])
@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 3), (4, 2)])
def test_means_are_exact_in_tables_with_and_without_a_hierarchy(shape, base) -> None:
    values = np.random.default_rng(sum(shape) + base).integers(0, 20, shape)
    values[0, 0] = 3 * base + 1
    for groups in ([], GROUPS[shape[0]]):
        assert assert_exact(CirculationLayout(*shape, groups), values, base) > 1


@given(data=st.data(), base=st.sampled_from([2, 3, 4, 5, 7]))
@settings(max_examples=examples(30, 240))
def test_means_are_exact_whatever_is_published(data, base) -> None:
    height, width = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2))
    size = height * width
    cells = data.draw(st.lists(st.integers(0, 12), min_size=size, max_size=size))
    groups = data.draw(st.sampled_from([[], [[0]], [list(range(height))], GROUPS[height]]))
    rows, columns, grand = (data.draw(st.booleans()) for _ in range(3))
    layout = CirculationLayout(height, width, groups, rows, columns, grand)
    assert_exact(layout, np.array(cells).reshape(height, width), base)


def test_nested_groups_of_one_axis_are_exact_too() -> None:
    layout = CirculationLayout(5, 1, [[0, 1], [0, 1, 2], [3, 4]], rows=False, columns=False)
    assert assert_exact(layout, np.array([[1], [7], [3], [2], [4]]), 5) > 1


@pytest.mark.parametrize("base", [2, 3, 5])
def test_one_more_in_any_cell_may_stand_behind_any_published_table(base) -> None:
    """So no published table tells a cell exactly: itself and this one can look the same."""
    shown = np.random.default_rng(base).integers(0, 4, (4, 3)) * base
    for groups in ([], [[0, 1], [2, 3], [0, 1, 2, 3]]):
        layout = CirculationLayout(4, 3, groups)
        for cell in np.ndindex(shown.shape):
            more = shown.copy()
            more[cell] += 1
            ends = {e.tobytes(): chance for e, chance in every_end(layout, more, base)}
            assert ends[layout.published(shown).tobytes()] == Fraction(base - 1, base)


def decider(words):
    """Decisions from words, as the compiled walk takes them."""
    stream = iter(words.tolist())

    def decide(up: int, down: int) -> bool:
        while (choice := decision_of_word(next(stream), up, down)) is None:
            pass
        return choice

    return decide


class Words:
    """A generator that gives out words that were written down before."""

    def __init__(self, words) -> None:
        self.words = words

    def integers(self, low, high, size, dtype):
        taken, self.words = self.words[:size], self.words[size:]
        return taken


@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    base=st.integers(2, 12),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    grouped=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_the_compiled_walk_makes_the_same_moves_as_the_plain_one(
    shape, base, flags, grouped, seed
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 60, shape)
    groups = [list(range(shape[0] // 2 + 1)), [0]] if grouped else []
    layout = CirculationLayout(*shape, groups, *flags)
    words = rng.integers(0, 2**64, layout.tail.size, dtype=np.uint64)
    plain = round_by_decisions(layout, values, base, decider(words))
    names = dict(zip(("rows", "columns", "grand"), flags, strict=True))
    fast = unbiased_rounding(values, base, Words(words), groups=groups, **names)
    assert np.array_equal(layout.inner(plain), fast)
    assert np.array_equal(plain, layout.published(fast))


def test_a_walk_that_runs_out_of_words_goes_on_with_new_ones() -> None:
    values = np.random.default_rng(1).integers(0, 30, (6, 6))
    layout = CirculationLayout(6, 6)
    true = layout.published(values)
    left = true % 5
    rng, calls = np.random.default_rng(2), 0
    while ((left > 0) & (left < 5)).any():
        words = rng.integers(0, 2**64, 2, dtype=np.uint64)
        assert _walk(layout.tail, layout.head, left, 5, layout.nodes, words) <= 2
        calls += 1
    assert calls > 5
    shown = true - true % 5 + left
    assert np.array_equal(shown, layout.published(layout.inner(shown)))


def test_words_that_would_tip_the_scales_are_turned_down() -> None:
    """Of the words that count, exactly ``down`` in every ``up + down`` go up."""
    for up, down in [(1, 1), (1, 2), (4, 1), (3, 4), (9, 8)]:
        total = up + down
        end = 2**64 - 2**64 % total
        assert end % total == 0
        assert [decision_of_word(end - total + k, up, down) for k in range(total)] == [
            k < down for k in range(total)
        ]
        if end < 2**64:
            assert decision_of_word(end, up, down) is None
    # The cell alone: up 2, down 1. The last word of all cannot be used, in the compiled walk either.
    layout = CirculationLayout(1, 1, (), rows=False, columns=False, grand=False)
    left = np.array([1])
    words = np.array([2**64 - 1], dtype=np.uint64)
    assert _walk(layout.tail, layout.head, left, 3, layout.nodes, words) == 1
    assert left.tolist() == [1]
    words = np.array([2**64 - 1, 2**64 - 2, 0], dtype=np.uint64)
    assert _walk(layout.tail, layout.head, left, 3, layout.nodes, words) == 2
    assert left.tolist() == [0]


def test_drawn_tables_follow_the_channel_in_every_cell_and_total() -> None:
    """Chi-square of 10,000 tables for each number; false alarm rate one in a million in all."""
    values = np.array([[1, 5, 3], [7, 2, 4], [0, 8, 11], [6, 1, 1]])
    layout = CirculationLayout(4, 3, [[0, 1]])
    true, rng, draws = layout.published(values), np.random.default_rng(12), 10_000
    rises = np.zeros(true.size, dtype=int)
    for _ in range(draws):
        shown = unbiased_rounding(values, 5, rng, groups=[[0, 1]])
        rises += layout.published(shown) > true
    moving = np.flatnonzero(true % 5)
    assert not rises[true % 5 == 0].any()
    for cell in moving:
        expected = true[cell] % 5 / 5 * draws
        seen = [rises[cell], draws - rises[cell]]
        assert stats.chisquare(seen, [expected, draws - expected]).pvalue > 1e-6 / moving.size


@given(seed=st.integers(0, 2**32), base=st.integers(2, 40), wide=st.integers(1, 40))
@settings(max_examples=examples(20, 160))
def test_larger_tables_are_controlled_roundings(seed, base, wide) -> None:
    values = np.random.default_rng(seed).negative_binomial(1, 0.05, (30, wide))
    groups = [list(range(k, k + 6)) for k in range(0, 30, 6)] + [list(range(18))]
    layout = CirculationLayout(30, wide, groups)
    shown = layout.published(
        unbiased_rounding(values, base, np.random.default_rng(seed), groups=groups)
    )
    assert np.all(shown % base == 0)
    assert np.all(np.abs(shown - layout.published(values)) < base)


def test_one_way_and_empty_tables() -> None:
    rng = np.random.default_rng(3)
    shown = unbiased_rounding([1, 1, 1, 5], 4, rng, groups=[[0, 1, 2]])
    assert shown.shape == (4,)
    assert shown.sum() == 8
    assert shown[:3].sum() in (0, 4)
    assert unbiased_rounding(np.zeros((0, 3), dtype=int), 3, rng).shape == (0, 3)


def test_the_same_generator_gives_the_same_bytes() -> None:
    values = np.random.default_rng(1).integers(0, 99, (20, 20))
    once, again = (unbiased_rounding(values, 3, np.random.default_rng(5)) for _ in range(2))
    other = unbiased_rounding(values, 3, np.random.default_rng(6))
    assert once.tobytes() == again.tobytes()
    assert once.tobytes() != other.tobytes()


def test_bad_input_is_told() -> None:
    with pytest.raises(InputError, match="whole base"):
        unbiased_rounding([[1]], 0, np.random.default_rng(1))
    with pytest.raises(InputError, match="negative"):
        unbiased_rounding([[-1]], 3, np.random.default_rng(1))
    with pytest.raises(InputError, match="overlap in part"):
        unbiased_rounding([[1]] * 3, 3, np.random.default_rng(1), groups=[[0, 1], [1, 2]])
