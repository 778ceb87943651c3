"""The certainty about single cells, worked out by hand for every kind of release."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lustrum.audit import Insider, Knowledge, Outsider, TablePrior
from lustrum.model import CellStatus, InputError, Release, Table
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect import RandomRounding
from lustrum.risk.cell_certainty import CellCertainty, CertainCells, certainties
from lustrum.risk.counts import cells_of, check_draws, check_size

TABLE = Table.from_counts([2, 30, 40])
CHANNEL = RandomRounding(3).apply(TABLE, np.random.default_rng(0)).channel
FIRST = np.array([0])


def left_open(*weights: float) -> float:
    """``2**-H`` of a distribution with these weights."""
    p = np.array(weights) / sum(weights)
    return float(2.0 ** (p * np.log2(p)).sum())


def rounded(low: int | None, high: int | None) -> Release:
    """2 shown as 3, with bounds for that cell or none."""
    ends = {}
    if low is not None:
        ends = {"least": np.array([low, 28, 37]), "most": np.array([high, 32, 41])}
    return Release(TABLE.axes, np.array([3, 30, 39]), np.full(3, "F"), {}, CHANNEL, **ends)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (None, None, left_open(1, 2, 3, 2, 1)),
        (1, 5, left_open(1, 2, 3, 2, 1)),  # the bounds of the channel itself
        (2, 4, left_open(2, 3, 2)),  # narrower
        (0, 6, 1 / 7),  # wider: the channel is not all there is to know
        (0, 5, 1 / 6),
        (1, 6, 1 / 6),
        (0, UNBOUNDED, left_open(1, 2, 3, 2, 1)),  # no bound at all: the channel is what there is
        (2, 2, 1.0),
    ],
)
def test_a_rounded_cell_is_known_as_well_as_its_channel_and_bounds_say(
    low: int | None, high: int | None, expected: float
) -> None:
    found = CellCertainty(audit="cell").cells(TABLE, rounded(low, high))
    assert found.cells.tolist() == [0]
    assert found.certainty.tolist() == pytest.approx([expected])


def test_a_prior_weighs_the_values_behind_a_rounded_cell() -> None:
    prior = TablePrior((1, 2, 4, 9), (0.5, 0.2, 0.2, 0.1))
    spec = CellCertainty(audit="cell", prior=prior)
    assert spec.after(TABLE, rounded(None, None)) == pytest.approx(left_open(0.5, 0.4, 0.4))


def suppressed(*values: int, structural: tuple[int, ...] = ()) -> tuple[Table, Release]:
    """The first two cells and no other are hidden; the last one is the total."""
    frame = {"x": [name for name, n in zip("abc", values, strict=True) for _ in range(n)]}
    frame["x"] += ["a", "b", "c"]
    table = Table.from_frame(frame, by=["x"], totals=True)
    counts = np.array([*values, sum(values)])
    mask = np.isin(np.arange(4), structural) if structural else None
    table = replace(table, values=counts, structural=mask)
    shown = np.array([False, False, True, True])
    status = np.where(shown, CellStatus.FREE.value, CellStatus.SECONDARY.value)
    return table, Release(table.axes, np.where(shown, counts, -1), status, {})


def test_a_prior_weighs_the_values_of_a_suppressed_cell() -> None:
    table, release = suppressed(1, 3, 9)
    prior = TablePrior((0, 1, 2, 7), (0.5, 0.25, 0.125, 0.125))
    found = CellCertainty(prior=prior).cells(table, release)
    assert found.certainty.tolist() == pytest.approx([left_open(4, 2, 1)] * 2)
    assert (found.low.tolist(), found.high.tolist()) == ([0, 0], [4, 4])
    assert CellCertainty().after(table, release) == pytest.approx(1 / 5)
    # By itself a suppressed cell has no upper bound, and a prior over all numbers is none.
    assert CellCertainty(prior=prior, audit="cell").after(table, release) == 0.0


def test_cells_that_cannot_exist_give_their_neighbours_away() -> None:
    table, release = suppressed(4, 0, 9, structural=(1,))
    found = CellCertainty().cells(table, release)
    assert (found.cells.tolist(), found.certainty.tolist()) == ([0], [1.0])
    assert found.disclosed == 1
    free, same = suppressed(4, 0, 9)
    assert CellCertainty().after(free, same) == pytest.approx(1 / 5)
    # What is known beside the release comes after its own cells.
    wide = Knowledge.of(["a", "b", "c", "total", "more"])
    wide = wide.fact({"a": 1, "b": 1, "more": 1}, 4, 4)
    found = certainties(table, release, FIRST, Outsider(), known=wide)
    assert found.certainty.tolist() == pytest.approx([1 / 5])


def test_an_attacker_calculates_as_far_as_the_audit_says() -> None:
    table = Table.from_counts([2, 1, 3])
    status = np.full(3, CellStatus.SECONDARY.value)
    release = Release(table.axes, np.full(3, -1), status, {})
    pairs = Knowledge.of("abc")
    for names, total in (("ab", 3), ("bc", 4), ("ac", 5)):
        pairs = pairs.fact(dict.fromkeys(names, 1), total, total)
    # The last cell can be 0, 1 or 2; as a linear program has it, also 3.
    whole = Knowledge.of("bca").fact({"b": 4, "c": 7, "a": 9}, 30, 30)
    whole = replace(whole, matrix=whole.matrix[:, [2, 1, 0]])
    for known, audit, expected in (
        (pairs, "cell", 0.0), (pairs, "propagate", 1 / 3), (pairs, "sharp", 1.0),
        (whole, "propagate", 1 / 4), (whole, "sharp", 1 / 3),
    ):  # fmt: skip
        found = certainties(table, release, FIRST, Outsider(), audit, known=known)  # type: ignore[arg-type]
        assert found.certainty.tolist() == pytest.approx([expected])
    assert CellCertainty(audit="sharp").after(table, release) == 0.0


def test_a_release_without_a_channel_is_judged_by_what_became_of_its_values() -> None:
    """Half of the ones show 1 and half show 2; every 2 shows 2. Totals and hidden cells tell nothing."""
    table = Table.from_frame({"x": list("abbcddee")}, by=["x"], totals=True)
    table = replace(table, values=np.array([1, 1, 2, 2, 7, 3]))
    published = np.array([1, 2, 2, 2, 2, 2])
    status = np.array(["F", "F", "F", "F", CellStatus.SECONDARY.value, "F"])
    ends = {"least": np.zeros(6, dtype=np.int64), "most": np.full(6, 20)}
    release = Release(table.axes, published, status, {}, **ends)
    found = CellCertainty(audit="cell").cells(table, release)
    assert found.cells.tolist() == [0, 1, 2, 3]
    assert found.certainty.tolist() == pytest.approx([1.0, *[left_open(1, 2)] * 3])


def test_counts_at_risk_are_small_possible_and_not_the_attackers_own() -> None:
    table = Table.from_frame({"x": list("abcdef")}, by=["x"], totals=True)
    table = replace(table, values=np.array([0, 1, 2, 3, 4, 5, 3]))
    assert np.flatnonzero(CellCertainty(up_to=3).judged(table)).tolist() == [1, 2, 3]
    assert np.flatnonzero(CellCertainty("insider", up_to=3).judged(table)).tolist() == [2, 3, 4]
    own = CellCertainty(Insider(1), up_to=1)
    assert np.flatnonzero(own.judged(table)).tolist() == [1]
    mask = np.arange(7) == 2
    assert np.flatnonzero(CellCertainty().judged(replace(table, structural=mask))).tolist() == [
        1, 3, 4, 5,
    ]  # fmt: skip
    for wrong in (replace(table, kind="magnitude"), replace(table, decimals=1)):
        with pytest.raises(InputError, match="whole counts"):
            CellCertainty().judged(wrong)
    with pytest.raises(InputError, match="different shapes"):
        CellCertainty().cells(Table.from_counts([1, 2]), rounded(1, 5))


def test_figures_of_cells_are_their_mean_their_worst_and_the_number_disclosed() -> None:
    cells = np.arange(3)
    some = CertainCells(cells, cells, cells, np.array([0.25, 1.0, 0.25]))
    assert (some.mean, some.worst, some.disclosed) == (0.5, 1.0, 1)
    none = CertainCells(cells[:0], cells[:0], cells[:0], np.zeros(0))
    assert (none.mean, none.worst, none.disclosed) == (0.0, 0.0, 0)
    half = CertainCells(cells, cells, cells, np.array([0.25, 0.5, 0.0]))
    assert (half.worst, half.disclosed) == (0.5, 0)
    large = Table.from_counts([20, 30, 40])
    empty = CellCertainty().cells(large, rounded(1, 5))
    assert (empty.low.size, empty.high.size, empty.certainty.size) == (0, 0, 0)


def test_the_measure_names_its_attacker_and_its_prior() -> None:
    assert CellCertainty().to_mapping() == {
        "measure": "cell-certainty", "attacker": "outsider", "up_to": 5, "audit": "propagate",
    }  # fmt: skip
    prior = TablePrior((1,), (1.0,))
    words = CellCertainty(Insider(2), prior=prior).to_mapping()
    assert (words["attacker"], words["prior"]) == (repr(Insider(2)), repr(prior))


def test_sizes_and_draws_are_whole_numbers_that_can_be() -> None:
    sample = cells_of([3, 2])
    assert check_size(sample, 5) == 5
    assert check_size(sample, np.int64(9)) == 9
    for people, words in ((4, "larger"), (5.0, "whole"), (True, "whole")):
        with pytest.raises(InputError, match=words):
            check_size(sample, people)
    with pytest.raises(InputError, match="nobody"):
        check_size(cells_of([0, 0]), 5)
    assert check_size(cells_of([1, 0]), 5) == 5
    assert (check_draws(1), check_draws(np.int64(2))) == (1, 2)
    for draws in (0, -1, 1.0, True, 2.5):
        with pytest.raises(InputError, match="draws"):
            check_draws(draws)  # type: ignore[arg-type]


def test_cells_ask_for_a_table_and_a_release():
    table = Table.from_counts([[1, 6], [2, 9]])
    measure = CellCertainty()
    for wrong in ([[1, 6], [2, 9]], None):
        with pytest.raises(InputError, match="needs a lustrum Table"):
            measure.judged(wrong)
        with pytest.raises(InputError, match="needs a lustrum Release"):
            measure.cells(table, wrong)
    with pytest.raises(InputError, match="needs a lustrum Release"):
        measure.cells(table, table)
