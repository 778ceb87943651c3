"""What the demo business register promises."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from lustrum.demo import businesses
from lustrum.demo.register.description import SIZE_FROM


def positions(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    indices = table.column(name).combine_chunks().indices
    return indices.to_numpy().astype(np.int64)


def test_the_register_holds_exactly_the_businesses_asked_for(register: pa.Table) -> None:
    assert register.num_rows == 60_000
    assert np.array_equal(register.column("business_id").to_numpy(), np.arange(1, 60_001))
    for count in (1, 2, 500):
        assert businesses(count).num_rows == count


def test_a_register_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one business"):
        businesses(0)


def test_the_same_seed_gives_the_same_register() -> None:
    assert businesses(2_000, seed=4).equals(businesses(2_000, seed=4))
    assert not businesses(2_000, seed=4).equals(businesses(2_000, seed=5))


def test_the_register_is_the_same_on_every_machine(register: pa.Table) -> None:
    digest = hashlib.sha256()
    for name in register.column_names:
        column = register.column(name).combine_chunks()
        values = column.indices if pa.types.is_dictionary(column.type) else column
        cents = np.rint(values.to_numpy(zero_copy_only=False).astype(float) * 100)
        digest.update(name.encode() + cents.astype("<i8").tobytes())
    assert digest.hexdigest()[:16] == "1320aa0dfa08b5be"


def test_turnover_adds_up(register: pa.Table) -> None:
    total = register.column("turnover").to_numpy()
    home = register.column("turnover_domestic").to_numpy()
    abroad = register.column("turnover_export").to_numpy()
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


def test_investment_is_lumpy_and_wages_need_employees(register: pa.Table) -> None:
    investment = register.column("investment").to_numpy()
    assert 0.4 < np.mean(investment == 0) < 0.8
    wages, employees = (register.column(n).to_numpy() for n in ("wages", "employees"))
    assert ((wages > 0) <= (employees > 0)).all()


def test_size_classes_follow_the_employees(register: pa.Table) -> None:
    employees = register.column("employees").to_numpy()
    found = np.searchsorted(SIZE_FROM, employees, side="right") - 1
    assert np.array_equal(found, positions(register, "size"))


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


def test_areas_of_businesses_nest_in_regions(register: pa.Table) -> None:
    codes = np.array(register.column("area").combine_chunks().dictionary.to_pylist())
    region = np.array(["1", "2"])[positions(register, "region")]
    assert np.array_equal(codes[positions(register, "area")].astype("U1"), region)


def test_progress_runs_from_nought_to_one() -> None:
    told: list[float] = []
    businesses(100, progress=told.append)
    assert told[0] == 0.0
    assert told[-1] == 1.0
