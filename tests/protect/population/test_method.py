"""A protected population: every finest cell stands next to the truth, and the same key gives the same bytes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import InputError
from lustrum.model.finest import FinestCells
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.public import PublicReport
from protect.population.worlds import KEY, cells_of, dense, town

counts_strategy = st.lists(
    st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4, 5, 7, 9]), min_size=24, max_size=24
)


@settings(max_examples=examples(13, 100), deadline=None)
@given(
    counts_strategy,
    st.integers(2, 5),
    st.sampled_from(["all", "small"]),
    st.sampled_from([0.0, 0.2]),
)
def test_every_finest_cell_shows_an_adjacent_number_and_its_bounds_hold_the_truth(
    values: list[int], base: int, which: str, share: float
) -> None:
    cells = cells_of(town(), np.array(values).reshape(4, 3, 2))
    method = ProtectedPopulation(base=base, cells=which, empty_share=share, sweeps=3)
    result = method.protect(cells, KEY)
    true, shown = dense(cells), dense(result.cells)
    assert not shown[3, 0].any()
    assert not ((shown > 0) & (shown < base)).any()
    low, high = method.support.bounds(shown)
    possible = np.ones(true.shape, dtype=bool)
    possible[3, 0] = False
    assert ((low <= true) & (true <= high))[possible].all()
    stays = true % base == 0 if which == "all" else true >= base
    assert (shown == true)[stays & (true > 0)].all()
    if which == "all":
        assert (shown % base == 0).all()
    if share == 0:
        assert not shown[true == 0].any()
    elif (shown == base).any() and (true[shown == base] == 0).any():
        assert result.agency.empty_share > 0
    again = method.protect(cells, KEY)
    assert np.array_equal(again.cells.codes, result.cells.codes)
    assert np.array_equal(again.cells.counts, result.cells.counts)
    assert again.public == result.public
    assert PublicReport.from_mapping(result.public.to_mapping()) == result.public


def test_another_key_gives_other_numbers() -> None:
    rng = np.random.default_rng(3)
    cells = cells_of(town((8, 5, 4)), rng.poisson(1.0, (8, 5, 4)))
    method = ProtectedPopulation(sweeps=3)
    one, two = (method.protect(cells, bytes([k]) * 32) for k in (1, 2))
    assert not np.array_equal(dense(one.cells), dense(two.cells))


def test_the_largest_error_stated_is_the_one_measured_on_the_published_cells_under_any_key() -> (
    None
):
    """The search aims at 10; what the report states is what the published file shows, table by table."""
    sizes = (12, 6, 5, 4)
    rng = np.random.default_rng(6)
    cells = cells_of(town(sizes, zeros=False), rng.poisson(0.8, sizes))
    stated = set()
    for number in range(4):
        result = ProtectedPopulation(sweeps=8).protect(cells, bytes([number]) * 32)
        error = dense(result.cells) - dense(cells)
        half = np.add.reduceat(error, [0, *range(2, sizes[0])], axis=0)
        measured: dict[frozenset[str], np.ndarray] = {}
        for first, array in (("v0", error), ("v0:half", half)):
            for kept in product((False, True), repeat=len(sizes)):
                away = tuple(axis for axis, keep in enumerate(kept) if not keep)
                names = (first, "v1", "v2", "v3")
                label = frozenset(n for n, keep in zip(names, kept, strict=True) if keep)
                measured[label] = np.abs(array.sum(axis=away))
        every: list[int] = []
        for table in result.agency.tables:
            words = frozenset(w for w in table.label.split(" x ") if w != "all records")
            assert table.largest == measured[words].max(), table.label
            assert table.total == measured[words].sum()
            every += measured[words].ravel().tolist()
        largest = max(t.largest for t in result.agency.tables)
        assert result.agency.over()["largest"] == largest
        worst = [abs(w.shown - w.true) for w in result.agency.worst]
        assert worst == sorted(every, reverse=True)[:20]
        stated.add(tuple(t.largest for t in result.agency.tables))
    assert len(stated) == 4, "every key has errors of its own"


def test_the_search_brings_tables_closer_than_the_start() -> None:
    rng = np.random.default_rng(5)
    cells = cells_of(town((20, 8, 6, 4), zeros=False), rng.poisson(0.6, (20, 8, 6, 4)))
    short, long = (
        ProtectedPopulation(sweeps=s).protect(cells, KEY).agency.over()["mean"] for s in (1, 30)
    )
    assert long < 0.9 * short


def test_an_impossible_record_is_refused() -> None:
    cells = FinestCells(town(), np.array([[3], [0], [1]]), np.array([2]))
    with pytest.raises(InputError, match="cannot exist"):
        ProtectedPopulation().protect(cells, KEY)


def test_rows_that_show_a_single_column_are_counted_for_the_agency() -> None:
    counts = np.zeros((4, 3, 2), dtype=np.int64)
    counts[0, 1] = 9  # everybody of the first row is in the second column
    counts[1:, 1:] = 30
    result = ProtectedPopulation(sweeps=1, empty_share=0.0).protect(cells_of(town(), counts), KEY)
    found = result.agency.single_columns
    assert found["in truth"] == found["shown"] == found["in truth and shown"] == 1
    assert found["rows"] == 4 + 3 + 4 + 2 + 3 + 2
    assert "hidden" in repr(result.agency)
    assert result.agency.to_mapping()["single_columns"] == found
