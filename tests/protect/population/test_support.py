"""Supports, bounds of sums and candidates are those that enumeration finds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lustrum.audit import attack
from lustrum.model import Category, InputError
from lustrum.model.table import Table, TableAxis
from lustrum.protect.method import released
from lustrum.protect.population.candidates import candidates
from lustrum.protect.population.cells import possible_cells
from lustrum.protect.population.channel import PopulationChannel, nearest_rates
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.support import Support, possible_combinations
from protect.population.worlds import cells_of, dense, town


@pytest.mark.parametrize("which", ["all", "small"])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_every_count_of_the_support_and_no_other_is_found_behind_a_shown_number(
    which: str, share: float
) -> None:
    """One in seven of all populations of three cells with up to five people each, under some keys."""
    dataset = town((3,), zeros=False)
    method = ProtectedPopulation(cells=which, empty_share=share, sweeps=1)  # type: ignore[arg-type]
    behind: dict[int, set[int]] = {}
    for number, counts in enumerate(product(range(6), repeat=3)):
        if number % 7 != 3:
            continue
        true = np.array(counts)
        for key in range(5 if share else 2):
            result = method.protect(cells_of(dataset, true, number), bytes([key]) * 32)
            for shown, count in zip(dense(result.cells), true, strict=True):
                behind.setdefault(int(shown), set()).add(int(count))
    for shown, found in behind.items():
        low, high = method.support.bounds(np.array([shown]))
        # Larger counts than five stood in no population.
        assert found == set(range(int(low[0]), min(int(high[0]), 5) + 1)), shown


def test_a_number_that_the_method_cannot_show_is_refused() -> None:
    with pytest.raises(InputError):
        Support(3).bounds(np.array([4]))
    with pytest.raises(InputError):
        Support(3, small_only=True).bounds(np.array([2]))
    assert Support(3, small_only=True).bounds(np.array([4]))[0].tolist() == [4]


def test_possible_combinations_are_those_that_enumeration_finds() -> None:
    dataset = town((4, 3, 2))
    grid = np.indices((4, 3, 2)).reshape(3, -1)
    possible = possible_cells(dataset, grid).reshape(4, 3, 2)
    half = Category("h", "h", (0, 1))
    last = Category("l", "l", (3,))
    everything = Category("_T", "Total", (0, 1, 2, 3))
    found = possible_combinations(dataset, [("v0", (half, last, everything))])
    assert found.tolist() == [possible[:2].sum(), possible[3].sum(), possible.sum()]
    found = possible_combinations(
        dataset,
        [("v1", dataset.variable("v1").finest), ("v0", (last, half))],
        {"v2": frozenset({1}), "v1": frozenset({0, 1})},
    )
    expected = np.stack([possible[3, :, 1], possible[:2, :, 1].sum(axis=0)], axis=1).astype(int)
    expected[2] = 0
    assert found.tolist() == expected.tolist()
    assert int(possible_combinations(dataset)) == possible.sum()


def test_bounds_of_a_sum_hold_all_populations_and_are_reached() -> None:
    support = Support(3)
    shown = np.array([0, 3, 6, 0])
    low, high = support.bounds(shown)
    sums = {sum(x) for x in product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))}
    listed = shown > 0
    least, most = support.aggregate(low[listed].sum(), high[listed].sum(), listed.sum(), shown.size)
    assert (int(least), int(most)) == (min(sums), max(sums))
    with pytest.raises(InputError):
        support.aggregate(0, 1, 3, 2)


def test_candidates_shrink_with_what_a_reader_knows() -> None:
    support = Support(3)
    assert [candidates(support, 0, k).left for k in (0, 1, 2, 3)] == [3, 2, 1, 0]
    assert [candidates(support, 3, k).left for k in (0, 1, 2)] == [6, 5, 4]
    assert [candidates(support, 6, k).left for k in (0, 1)] == [5, 5]
    assert candidates(Support(3, empty_shown=False), 3).left == 5
    assert "exactly 2" in str(candidates(support, 0, 2))
    assert "cannot" in str(candidates(support, 0, 3))


def test_a_belief_follows_bayes_within_the_bounds() -> None:
    channel = PopulationChannel(3, 3, nearest_rates(3, 3))
    axis = TableAxis.plain("v", ["a", "b"])
    table = Table((axis,), np.array([3, 6]))
    low, high = np.array([0, 2]), np.array([8, 9])
    release = released(
        table, ProtectedPopulation(), table.values, channel=channel, low=low, high=high
    )
    belief = attack(release)
    for place, shown in enumerate((3, 6)):
        values = np.arange(low[place], high[place] + 1)
        rows = channel.transitions(values)
        chance = np.zeros(values.size)
        for origin, published, probability in zip(
            rows.origin, rows.published, rows.probability, strict=True
        ):
            if published == shown:
                chance[origin] = probability
        held = slice(belief.indptr[place], belief.indptr[place + 1])
        assert belief.values[held].tolist() == values.tolist()
        assert np.allclose(belief.probabilities[held], chance / chance.sum())


def test_rows_of_the_channel_add_up_and_show_only_multiples() -> None:
    channel = PopulationChannel(3, 3, nearest_rates(3, 3))
    rows = channel.transitions(np.arange(40))
    assert np.allclose(np.bincount(rows.origin, rows.probability), 1.0)
    assert not (rows.published % 3).any()
    assert rows.published.min() == 0
    assert 0 < channel.stay(0, 9) < 1
    with pytest.raises(InputError):
        PopulationChannel(3, 0, channel.rates)
    with pytest.raises(InputError):
        PopulationChannel(3, 3, channel.rates[:2])
