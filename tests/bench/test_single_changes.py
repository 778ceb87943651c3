"""One person changes between releases: what readers say is judged rightly, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from attacks.releases.readers import Named, by_tables
from attacks.releases.series import Joined, People, series
from attacks.releases.single import (
    AMONG,
    DIFFERS,
    JUMPED,
    OCCUPIED,
    SAID,
    TABLES,
    SingleReport,
    lengths,
)
from attacks.releases.single import add_series as judge

from lustrum.protect.population.method import ProtectedPopulation


def joined(shown: list[list[int]], true: list[list[int]]) -> Joined:
    """Releases of six cells, two codes by three; the keys of a cell are its count."""
    counts = np.array(true)
    return Joined(np.arange(6, dtype=np.uint64), np.array(shown), counts, counts.astype(np.uint64))


# Somebody comes into the first cell, which moves alone; then somebody leaves the fifth, which stays, and an
# empty cell moves instead.
THREE = joined(
    [[0, 0, 0, 0, 3, 0], [3, 0, 0, 0, 3, 0], [3, 0, 3, 0, 3, 0]],
    [[0, 0, 0, 0, 1, 2], [1, 0, 0, 0, 1, 2], [1, 0, 0, 0, 0, 2]],
)


def test_what_readers_say_of_a_series_is_held_against_the_truth() -> None:
    report = SingleReport("any", 3)
    judge(report, THREE, (2, 3))
    assert (report.trials, report.steps, report.exposed) == (1, 2, 1)
    assert report.chance == pytest.approx(1.0), "right in the first step, wrong in the second"
    assert report.worst == pytest.approx(1 / 2)
    assert report.said[DIFFERS] == Named(2, 1)
    assert report.said[JUMPED] == Named(0, 0)
    assert report.said[SAID[2]] == Named(2, 1)
    assert report.said[OCCUPIED] == Named(2, 1)
    # Tables speak for the first cell. In the second step they speak least for the fifth, which shares no code
    # with cells that rose; but it does not differ.
    assert report.said[AMONG] == Named(2, 1)
    assert report.said[TABLES] == Named(2, 2)
    assert len(report.ranks) == 2
    assert report.ranks[0] == 0.0


def test_two_releases_in_which_only_the_changed_cell_moves_expose_it() -> None:
    report = SingleReport("added", 2)
    judge(report, THREE.first(2), (2, 3))
    assert report.succeeds
    assert not report.holds(0.5, 0.1)
    row = report.row()
    assert (row["change"], row["releases"], row["trials"], row["changes"]) == ("added", 2, 1, 1)
    assert (row["exposed"], row["guess of one that differs (%)"], row["worst trial (%)"]) == (
        1,
        100,
        100,
    )


def test_a_report_holds_only_within_the_odds_and_where_movements_prove_nobody() -> None:
    def report(words: str, named: Named, worst: float = 0.0) -> SingleReport:
        found = SingleReport("any", 2, trials=1, worst=worst)
        found.add(OCCUPIED, Named(1000, 500))
        found.add(words, named)
        return found

    assert report(DIFFERS, Named(100, 50)).holds(0.5, 0.1)
    assert not report(DIFFERS, Named(100, 51)).holds(0.5, 0.1)
    assert not report(DIFFERS, Named(100, 1), worst=0.6).holds(0.5, 0.1)
    assert not report(TABLES, Named(10, 6)).holds(0.5, 0.1)
    assert not report(AMONG, Named(10, 6)).holds(0.5, 0.1)
    assert not report(JUMPED, Named(1, 1)).holds(0.5, 0.1)
    assert not report(OCCUPIED, Named(9000, 9000)).holds(0.5, 0.1), "too few empty ones"
    assert not SingleReport("any", 2, said={w: Named(1, 1) for w in SAID}).holds(1.0, 0.1)


def test_kinds_of_change_are_added_up() -> None:
    one, two = SingleReport("added", 2), SingleReport("removed", 2)
    judge(one, THREE.first(2), (2, 3))
    judge(two, THREE.first(2), (2, 3))
    both = SingleReport.of([one, two])
    assert (both.trials, both.exposed, both.steps) == (2, 2, 2)
    assert both.said[DIFFERS] == Named(2, 2)
    assert both.ranks == [0.0, 0.0]


def test_tables_speak_for_the_cell_whose_sums_all_rose() -> None:
    change = np.array([[1.0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, -1.0]])
    scores = by_tables(np.arange(6, dtype=np.uint64), change, (2, 3))
    assert scores[0].argmax() == 0
    assert scores[1].argmin() == 5
    # A cell that shares no code with the one that rose hears nothing.
    assert scores[0, 4] == 0.0


def test_most_trials_have_two_releases_and_some_five_and_twelve() -> None:
    assert list(lengths(30)) == [12, 12, 5, 5, *[2] * 26]
    assert list(lengths(1)) == [12]


def test_a_first_release_at_hand_is_not_made_again() -> None:
    method = ProtectedPopulation(sweeps=1, extra_tables=0)
    key = b"a key of thirty-two bytes, or so"
    first = method.protect(People(300, 5).cells(), key)
    whole = list(series(People(300, 5), method, 2, (1, 0, 0), "method", key))
    known = list(series(People(300, 5), method, 2, (1, 0, 0), "method", key, first))
    for one, two in zip(whole, known, strict=True):
        assert np.array_equal(one.shown, two.shown)
        assert np.array_equal(one.numbers, two.numbers)
