"""The attacks on stated rates and on small files find what they must, and judge by hand-made numbers."""

from __future__ import annotations

import numpy as np
from attacks.small_files import Pooled, SmallReport, attack_small_files
from attacks.stated_rates import RatesReport, counted


def test_cells_are_counted_by_size_of_count_and_of_error() -> None:
    true, shown = np.array([0, 0, 1, 2, 3, 8, 9, 29, 30]), np.array([0, 3, 0, 6, 3, 9, 9, 26, 93])
    found = counted([(true, shown)], 3)
    wanted = {
        (0, 0): 1,
        (0, 2): 1,
        (1, 1): 1,
        (1, 2): 1,
        (2, 0): 1,
        (2, 1): 1,
        (3, 0): 1,
        (3, 2): 1,
    }
    wanted[4, 7] = 1
    assert {
        (int(i), int(j)): int(found[i, j]) for i, j in zip(*np.nonzero(found), strict=True)
    } == (wanted)


def rates(small: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    wide = (3, 1, 1, 3, 5, 6, 7, 8)
    return ((0, 6, 6, 8, 9, 10, 11, 12), small, wide, wide, wide)


def test_rates_are_wrong_only_where_the_tables_say_otherwise() -> None:
    cells = np.zeros((5, 8), dtype=np.int64)
    cells[0, 0] = 5000
    cells[1, 1:3] = 1800, 200
    cells[2:, :4] = 250, 1000, 1000, 250
    good = RatesReport(rates((6, 0, 3, 8, 9, 10, 11, 12)), cells)
    assert good.wrong(good.stated) == 0
    assert good.wrong(good.control) > 0
    assert good.holds
    # A quarter where nine of ten cells err so, and few cells say nothing.
    bad = RatesReport(rates((3, 2, 3, 3, 5, 6, 7, 8)), cells)
    assert bad.wrong(bad.stated) >= 1
    assert not bad.holds
    few = RatesReport(bad.stated, cells // 10)
    assert few.wrong(few.stated) == 0
    assert len(list(good.rows())) == 6


def test_a_small_file_is_near_its_start_or_pulled_to_the_nearest_number() -> None:
    true = np.repeat([1, 2], 300)
    start, begins = np.array([1 / 3, 2 / 3]), np.array([100, 200])

    def pooled(ones: int, twos: int) -> Pooled:
        shown = np.concatenate([3 * (np.arange(300) < ones), 3 * (np.arange(300) < twos)])
        found = Pooled((20, 30), 0.0)
        found.add(true, shown, start, begins)
        return found

    near, pulled = pooled(105, 190), pooled(20, 280)
    assert near.beyond == 0
    assert near.alone(near.up) == 195 / (195 + 2 * 110)
    assert SmallReport((near,)).holds
    assert pulled.beyond == 2
    assert pulled.alone(pulled.up) == 280 / (280 + 2 * 20)
    assert not SmallReport((near, pulled)).holds
    assert "an insider at a shown 0" in next(iter(SmallReport((near,)).rows()))[1]


def test_small_files_stay_near_their_start() -> None:
    found = attack_small_files(1, 1, sweeps=4)
    assert {(k.sizes, k.files) for k in found.kinds} >= {((20, 30), 1), ((24,), 10)}
    assert all(kind.beyond == 0 for kind in found.kinds)
