"""What the demo business register and the demo survey promise."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from demo.conftest import positions
from lustrum.demo.draws import described
from lustrum.demo.labour_force import frame
from lustrum.demo.register import SIZE_FROM


def test_turnover_adds_up(register: pa.Table) -> None:
    total, home, abroad = (
        register.column(f"turnover{part}").to_numpy() for part in ("", "_domestic", "_export")
    )
    assert np.array_equal(home + abroad, total)
    assert home.min() >= 0
    assert abroad.min() >= 0
    assert total.min() >= 1
    assert abroad.sum() > 0


def test_some_cells_are_dominated_by_one_business(register: pa.Table) -> None:
    cell = positions(register, "activity") * 2 + positions(register, "region")
    turnover = register.column("turnover").to_numpy()
    total = np.bincount(cell, weights=turnover)
    largest = np.zeros(len(total))
    np.maximum.at(largest, cell, turnover)
    dominated = (largest > 0.5 * total) & (np.bincount(cell) > 2)
    assert 5 <= dominated.sum() <= 0.6 * len(total)


def test_a_few_giants_are_far_above_all_others(register: pa.Table) -> None:
    turnover = np.sort(register.column("turnover").to_numpy())
    assert turnover[-1] > 50 * turnover[-600]
    assert turnover[-1] < 0.04 * turnover.sum()


def test_a_year_before_is_close_in_sum_and_empty_for_new_businesses(register: pa.Table) -> None:
    for name in ("employees", "turnover", "wages"):
        now = register.column(name).to_numpy()
        before = register.column(f"{name}_before").to_numpy()
        assert 0.98 < now.sum() / before.sum() < 1.2
        assert 0.02 < np.mean((now > 0) & (before == 0)) < 0.3
        assert before.min() == 0


def test_size_classes_and_wages_follow_the_employees(register: pa.Table) -> None:
    wages, employees = (register.column(n).to_numpy() for n in ("wages", "employees"))
    size = np.searchsorted(SIZE_FROM, employees, side="right") - 1
    assert np.array_equal(size, positions(register, "size"))
    assert ((wages > 0) <= (employees > 0)).all()
    assert 0.4 < np.mean(register.column("investment").to_numpy() == 0) < 0.8


def test_most_businesses_own_themselves_and_a_few_holdings_own_many(register: pa.Table) -> None:
    owned = np.bincount(register.column("holding_id").to_numpy())[1:]
    assert owned.min() == 1
    assert np.mean(owned == 1) > 0.9
    assert owned.max() >= 20


def test_weights_are_hundredths_from_one_and_the_large_are_surveyed_in_full(
    register: pa.Table,
) -> None:
    weight = register.column("weight").to_numpy()
    assert weight.min() == 1.0
    assert np.array_equal(weight, np.rint(weight * 100) / 100)
    assert (weight[positions(register, "size") >= 4] == 1.0).all()
    assert weight[positions(register, "size") == 0].mean() > 5


def test_a_few_thousand_people_answer_in_every_district(sample: pa.Table) -> None:
    assert 3000 < sample.num_rows < 9000
    strata, blocks = (sample.column(name).to_numpy() for name in ("stratum", "block"))
    for stratum in np.unique(strata):
        assert np.unique(blocks[strata == stratum]).size >= 4


def test_weights_make_up_for_those_who_did_not_answer(sample: pa.Table) -> None:
    everybody, weight = frame(), sample.column("weight").to_numpy()
    stated = described("survey")["weights"][0]["total"]
    assert everybody.num_rows == stated == round(float(weight.sum()), 2)
    for name in ("district", "age"):
        true = np.bincount(positions(everybody, name))
        held = np.bincount(positions(sample, name), weight, minlength=len(true))
        np.testing.assert_allclose(held, true, rtol=0.02)
