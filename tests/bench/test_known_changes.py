"""Readers who know changes of cells, in a quick form: right where numbers stay, no better than chance here."""

from __future__ import annotations

import numpy as np
import pytest
from attacks.releases.known import (
    Dependent,
    Publisher,
    Taught,
    all_changes,
    changing,
    claims,
    insertions,
)
from attacks.releases.readers import Named

from lustrum.protect.population.method import ProtectedPopulation

METHOD = ProtectedPopulation(sweeps=1, extra_tables=0, max_variables=2)


def world() -> Dependent:
    return Dependent(4000, 5, 40, 0.25)


@pytest.mark.parametrize("control", [True, False])
def test_three_insertions_name_a_count_only_where_numbers_stay(control: bool) -> None:
    found = insertions(world(), Publisher(None if control else METHOD), 80)
    assert [found.counts.count(n) for n in range(3)] == [80] * 3
    if control:
        assert found.by_rule.odds > 0.95
        assert found.taught.named.odds > 0.95
        assert found.taught.sure > 0.9 * 240
    else:
        # A guess is right in a third of the cells.
        assert max(found.by_rule.odds, found.taught.named.odds) <= 0.45
        assert found.taught.sure <= 0.12 * 240


@pytest.mark.parametrize("control", [True, False])
def test_who_joined_or_left_learns_from_the_number_only_where_numbers_stay(control: bool) -> None:
    joined = changing(world(), Publisher(None if control else METHOD), 4, 0.1)
    said = claims(joined)
    by_rule = [said[words][0] for words in ("joined", "left")]
    both, first = (sum((one[i].named for one in said.values()), Named(0, 0)) for i in (1, 2))
    every, start = (one.named for one in all_changes(joined))
    if control:
        assert min(one.odds for one in by_rule) == 1.0
        assert both.odds > first.odds + 0.3
    else:
        assert max(one.odds for one in by_rule) <= 0.5
        for more, less in ((both, first), (every, start)):
            assert more.cells > 50
            assert more.odds - less.odds <= 3 * np.sqrt(0.25 / more.cells)


def test_a_taught_reader_names_what_the_other_cells_with_the_same_view_hold() -> None:
    views, counts = ["a"] * 12 + ["b", "b", "c"], [1] * 11 + [2] + [5, 6, 7]
    found = Taught.of(views, counts)
    assert (found.named, found.sure) == (Named(15, 11), 12)
    assert Taught.of(views, counts, np.arange(15) > 11).named == Named(3, 0)
