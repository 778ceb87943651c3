"""Restored tables: known fits, exact margins, the nearest rounding, and clear refusals."""

from __future__ import annotations

from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp
from scipy import sparse

from examples import examples
from lustrum.model import InputError
from lustrum.protect.additive.restore import fit, restore, restore_sums


def test_a_table_of_ones_is_fitted_to_independence() -> None:
    rows, columns = np.array([10.0, 20, 70]), np.array([25.0, 75])
    found = fit(np.ones((3, 2)), {(0,): rows, (1,): columns})
    assert np.allclose(found.values, np.outer(rows, columns) / 100)
    assert found.converged
    assert found.rounds <= 3


def test_odds_ratios_are_kept() -> None:
    table = np.array([[5.0, 2.0], [3.0, 9.0]])
    found = fit(table, {(0,): [40, 60], (1,): [30, 70]}).values
    before = table[0, 0] * table[1, 1] / (table[0, 1] * table[1, 0])
    after = found[0, 0] * found[1, 1] / (found[0, 1] * found[1, 0])
    assert after == pytest.approx(before, rel=1e-6)


def test_all_two_way_margins_of_a_cube_are_met_and_zeros_kept() -> None:
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 30, (4, 3, 5))
    seen = np.where(truth > 0, rng.integers(1, 30, truth.shape), 0)
    margins = {axes: truth.sum(axis=3 - sum(axes)) for axes in ((0, 1), (0, 2), (1, 2))}
    found = fit(seen, margins)
    assert found.converged
    assert found.largest_error < 1e-6
    assert np.all(found.values[truth == 0] == 0)
    whole = restore(seen, margins)
    assert whole.exact
    assert whole.largest_error == 0
    for axes, margin in margins.items():
        assert np.array_equal(whole.values.sum(axis=3 - sum(axes)), margin)


small = hnp.arrays(
    np.int64, st.tuples(st.integers(2, 4), st.integers(2, 4)), elements=st.integers(0, 9)
)


@settings(max_examples=examples(30, 240))
@given(truth=small, seed=st.integers(0, 1000))
def test_a_two_way_table_is_always_restored_exactly(truth: Any, seed: int) -> None:
    noise = np.random.default_rng(seed).integers(1, 6, truth.shape)
    seen = np.where(truth > 0, truth + noise, 0)
    found = restore(seen, {(0,): truth.sum(axis=1), (1,): truth.sum(axis=0)})
    assert found.exact
    assert np.array_equal(found.values.sum(axis=1), truth.sum(axis=1))
    assert np.array_equal(found.values.sum(axis=0), truth.sum(axis=0))
    assert np.all(found.values[truth == 0] == 0)
    assert np.all(found.values >= 0)


@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (2, 2, 2)])
@pytest.mark.parametrize("seed", range(6))
def test_no_other_rounding_to_the_same_margins_is_nearer(shape: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 8, shape)
    seen = truth + rng.integers(0, 4, shape)
    axes = [tuple(a for a in range(len(shape)) if a != away) for away in range(len(shape))]
    margins = {
        own: truth.sum(axis=next(a for a in range(len(shape)) if a not in own)) for own in axes
    }
    fitted = fit(seen, margins)
    assert fitted.converged
    found = restore(seen, margins)
    assert found.exact
    floor = np.floor(fitted.values + 1e-6).astype(np.int64)
    distances = []
    for steps in product((0, 1), repeat=floor.size):
        table = floor + np.array(steps).reshape(shape)
        sums = {
            own: table.sum(axis=next(a for a in range(len(shape)) if a not in own))
            for own in margins
        }
        if all(np.array_equal(sums[own], margins[own]) for own in margins):
            distances.append(np.abs(table - fitted.values).sum())
    if found.nearest:
        assert np.abs(found.values - fitted.values).sum() == pytest.approx(min(distances), abs=1e-6)
    else:
        assert not distances


def test_groups_of_a_hierarchy_are_restored_by_their_incidence() -> None:
    groups = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 0, 0]])
    truth = np.array([4, 9, 2, 7, 1])
    found = restore_sums([6, 6, 3, 9, 3], sparse.csr_array(groups), groups @ truth)
    assert found.exact
    assert np.array_equal(groups @ found.values, groups @ truth)


def test_margins_in_any_order_of_axes_and_the_grand_total_are_understood() -> None:
    truth = np.arange(1, 7).reshape(2, 3)
    found = restore(np.ones((2, 3)), {(1, 0): truth.T, (): 21})
    assert np.array_equal(found.values, truth)


def test_a_large_table_is_restored_in_one_go() -> None:
    rng = np.random.default_rng(1)
    truth = rng.poisson(4, (60, 50))
    seen = np.where(truth > 0, truth + rng.integers(0, 3, truth.shape), 0)
    margins = {(0,): truth.sum(axis=1), (1,): truth.sum(axis=0)}
    found = restore(seen, margins)
    assert found.exact
    assert found.nearest
    assert np.abs(found.values - fit(seen, margins).values).max() < 1 + 1e-6
    assert repr(found) == "RestoredTable(60 x 50 cells, exact)"


def test_what_does_not_converge_is_said_to_miss() -> None:
    # Only zeros on the diagonal would do, which scaling reaches in the limit only.
    found = fit([[1.0, 1.0], [0.0, 1.0]], {(0,): [5, 5], (1,): [5, 5]}, rounds=50)
    assert not found.converged
    assert found.largest_error > 0
    assert repr(found) == "Fitted(2 x 2 cells)"
    whole = restore([[1, 1], [0, 1]], {(0,): [5, 5], (1,): [5, 5]})
    assert whole.exact
    assert whole.values.tolist() == [[5, 0], [0, 5]]


CASES: list[tuple[Any, Any, str]] = [
    ([[1, 2], [3, 4]], {(0,): [5, 5], (1,): [5, 6]}, r"\(0,\) and \(1,\) do not add up"),
    ([[0, 0], [3, 4]], {(0,): [5, 5]}, "every cell of the table is 0"),
    ([[1, 2], [3, 4]], {(0,): [5.5, 4.5]}, "must be whole"),
    ([[1, 2], [3, 4]], {(0,): [5, 5, 5]}, r"shape \(3,\); it must be \(2,\)"),
    ([[1, 2], [3, 4]], {(2,): [5, 5]}, "axes 0 to 1"),
    ([[1, 2], [3, 4]], {(0, 0): [5, 5]}, "each once"),
    ([[1, 2], [3, 4]], {(0,): [-5, 5]}, "0 or more"),
    ([[1, 2], [3, 4]], {(0,): ["a", "b"]}, "numbers"),
    ([[1, 2], [3, 4]], {}, "without margins"),
    ([[1, -2], [3, 4]], {(0,): [5, 5]}, "0 or more"),
    (["a"], {(0,): [5]}, "numbers"),
    ([[1, 0], [0, 1]], {(0,): [2, 3], (1,): [3, 2]}, "No table with these zeros"),
]


@pytest.mark.parametrize(("table", "margins", "words"), CASES)
def test_what_cannot_be_restored_is_refused_in_one_sentence(
    table: Any, margins: Any, words: str
) -> None:
    with pytest.raises(InputError, match=words) as refused:
        restore(table, margins)
    assert str(refused.value).count(". ") == 0


def test_a_wrong_incidence_is_refused() -> None:
    with pytest.raises(InputError, match="0/1 matrix"):
        restore_sums([1, 2], sparse.csr_array([[2, 1]]), [3])
    with pytest.raises(InputError, match="0/1 matrix"):
        restore_sums([1, 2], sparse.csr_array([[1, 1]]), [3, 4])
