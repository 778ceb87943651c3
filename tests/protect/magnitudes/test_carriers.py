"""Sums that are tied to protected counts: a cell has a sum if and only if it shows a count."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import Any

import numpy as np
import pytest

from lustrum.demo import businesses, description_path
from lustrum.model import InputError
from lustrum.model.finest import FinestCells
from lustrum.model.records import Records
from lustrum.protect.magnitudes.carriers import carried_by, own_places, piece_values
from lustrum.protect.magnitudes.check import audit_contributors
from lustrum.protect.magnitudes.method import MagnitudeResult, ProtectedMagnitudes
from lustrum.protect.population.method import PopulationResult, ProtectedPopulation
from lustrum.protect.population.search.layout import plan_tables
from lustrum.protect.population.support import Support
from lustrum.tabulate import FrameEngine, Secret, read_description, records_of
from lustrum.tabulate.finest import finest_cells
from magnitude_registers import register

KEY = b"sixteen bytes ok"


class Tied:
    """A register whose sums are tied to its protected counts."""

    def __init__(self, count: int) -> None:
        dataset = read_description(description_path("businesses"))
        engine = FrameEngine(businesses(count), dataset, Secret(bytes(32)))
        self.records: Records = records_of(engine)
        self.cells = finest_cells(engine)
        self.spec = ProtectedMagnitudes(p=10, sweeps=2, max_variables=2, public_classes=("size",))
        held = self.spec.held(self.records, self.cells, 3, KEY)
        self.held = held
        counts = ProtectedPopulation(sweeps=2, max_variables=2, extra_tables=0)
        self.counts: PopulationResult = counts.protect(self.cells, KEY, held=held)
        self.made: MagnitudeResult = self.spec.protect(self.records, KEY, shown=self.counts.cells)

    @property
    def codes(self) -> Any:
        return np.stack([self.records.codes[v.name] for v in self.records.dataset.variables])


@pytest.fixture(scope="module")
def tied() -> Tied:
    return Tied(3000)


def test_a_finest_cell_has_a_sum_if_and_only_if_it_shows_a_count(tied: Tied) -> None:
    assert np.array_equal(tied.made.sums.codes, tied.counts.cells.codes)
    assert (tied.made.sums.sums["turnover"] > 0).all()
    own = own_places(tied.records.dataset, tied.codes, tied.counts.cells)
    # There is something to hide: records whose cell shows 0, and cells that are empty and show somebody.
    assert (own < 0).sum() > 100
    assert len(tied.counts.cells) > np.unique(own[own >= 0]).size


def test_every_protected_value_is_carried_once_and_parts_add_up(tied: Tied) -> None:
    carried = tied.made.carried
    for name, values in tied.made.records.items():
        found = np.bincount(carried.record, weights=carried.values[name]).astype(np.int64)
        assert np.array_equal(found, values)
        assert carried.values[name].sum() == tied.made.sums.sums[name].sum()
    parts = [carried.values[n] for n in ("turnover_domestic", "turnover_export")]
    assert np.array_equal(sum(parts), carried.values["turnover"])
    assert np.bincount(carried.record).max() > 1


def test_every_cell_carries_a_record_that_is_whole(tied: Tied) -> None:
    carried = tied.made.carried
    whole = np.bincount(carried.record)[carried.record] == 1
    own = own_places(tied.records.dataset, carried.codes, tied.counts.cells)
    assert np.bincount(own[whole], minlength=len(tied.counts.cells)).min() >= 1


def test_a_record_stays_in_its_class_of_a_number(tied: Tied) -> None:
    """Employees of another size class would tell that they came from elsewhere."""
    carried = tied.made.carried
    place = [v.name for v in tied.records.dataset.variables].index("size")
    moved = carried.codes[place] != tied.codes[place][carried.record]
    assert moved.sum() == 0


def test_the_audit_finds_nothing_in_what_cells_carry(tied: Tied) -> None:
    for measure in ("turnover", "employees"):
        found = audit_contributors(
            tied.records,
            tied.made.records[measure],
            measure,
            tied.spec.factors,
            tied.spec.share,
            max_variables=2,
            carried=tied.made.carried,
        )
        assert found.safe, found
        assert found.sensitive > 100


def test_cells_that_hold_giants_show_a_count(tied: Tied) -> None:
    assert tied.held is not None
    assert tied.held.size > 20
    turnover = tied.records.numbers["turnover"].astype(np.float64)
    own = own_places(tied.records.dataset, tied.codes, tied.counts.cells)
    free = ProtectedPopulation(sweeps=2, max_variables=2, extra_tables=0).protect(tied.cells, KEY)
    before = own_places(tied.records.dataset, tied.codes, free.cells)
    assert turnover[own < 0].sum() < 0.9 * turnover[before < 0].sum()


def plain(
    plan: Any, shown: FinestCells, placed: tuple[int, ...], values: list[int], key: bytes
) -> tuple[int, ...]:
    """What four cells show as sums when records stand at ``placed``."""
    codes = np.array([[c // 2 for c in placed], [c % 2 for c in placed]], dtype=np.uint8)
    amounts = np.array(values, dtype=np.int64)[:, None]
    word = np.arange(len(placed), dtype=np.uint64)
    by = carried_by(plan, codes, amounts, word, shown, key, sweeps=2)
    found = np.bincount(by.carrier, weights=by.values(amounts[:, 0]), minlength=len(shown))
    return tuple(int(x) for x in found)


@pytest.mark.parametrize("counts", [(3, 0, 0, 0), (3, 3, 0, 0), (3, 0, 0, 3)])
def test_sums_leave_every_count_open_that_the_protected_counts_leave_open(
    counts: tuple[int, ...],
) -> None:
    """All registers of up to three firms: whatever the sums are, a cell may be empty and may be occupied."""
    records = register([(1, 0, 0, 5)])
    plan = plan_tables(records.dataset, 2)
    cells = np.array([[0, 0, 1, 1], [0, 1, 0, 1]])
    seen = np.array(counts) > 0
    shown = FinestCells(records.dataset, cells[:, seen], np.array(counts)[seen])
    low, high = Support(3).bounds(np.array(counts))
    left: dict[Any, list[set[int]]] = defaultdict(lambda: [set() for _ in counts])
    for firms in range(int(seen.sum()), 4):
        for placed in product(range(4), repeat=firms):
            true = np.bincount(placed, minlength=4)
            if (true < low).any() or (true > high).any():
                continue
            for key in (b"%016d" % k for k in range(4)):
                for values in ([40, 50, 90][:firms],):
                    sums = plain(plan, shown, placed, values, key)
                    assert all(s > 0 for s in sums)
                    for cell, count in enumerate(true):
                        left[sums][cell].add(int(count))
    assert left
    for open_counts in left.values():
        for found in open_counts:
            assert 0 in found
            assert found - {0}


def test_plain_sums_would_tell_which_cells_are_empty() -> None:
    """The same registers without tying: the oracle of the test above finds the leak."""
    told = defaultdict(set)
    for placed in product(range(4), repeat=2):
        sums = np.bincount(placed, weights=[40, 50], minlength=4)
        told[tuple(sums > 0)].add(tuple(np.bincount(placed, minlength=4) > 0))
    assert all(len(found) == 1 for found in told.values())


def test_pieces_are_equal_and_add_up() -> None:
    for whole in (-7, 0, 1, 100, 2**61):
        values = np.full(8, whole)
        cut = piece_values(values, np.arange(8), np.full(8, 8))
        assert int(cut.sum()) == whole
        assert int(cut.max() - cut.min()) <= 1


def test_records_without_cells_to_carry_them_are_refused() -> None:
    records = register([(1, 0, 0, 5)])
    plan = plan_tables(records.dataset, 2)
    nobody = FinestCells(records.dataset, np.zeros((2, 0), dtype=np.uint8), np.zeros(0, np.int64))
    with pytest.raises(InputError, match="no cell can carry the sums"):
        plain(plan, nobody, (0,), [5], KEY)
    four = FinestCells(records.dataset, np.array([[0, 0], [0, 1]]), np.array([3, 3]))
    with pytest.raises(InputError, match="More cells show somebody than there are records"):
        plain(plan, four, (0,), [5], KEY)
