"""The risk of a population's table: printed figures, the five wanted properties, and clear errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from lustrum.model import InputError, Table, TableAxis
from lustrum.model.hierarchy import Category
from lustrum.risk.batch import risks_of_many
from lustrum.risk.counts import NotMeasurableError
from lustrum.risk.entropy import size_of
from lustrum.risk.r1 import R1, r1, r1_values
from lustrum.study.sample_tables import AREAS_BY_RELIGION

relaxed = settings(deadline=None)  # the first call of a kernel compiles it

tables = arrays(
    np.int64,
    array_shapes(min_dims=1, max_dims=3, min_side=2, max_side=5),
    elements=st.integers(0, 60),
).filter(lambda counts: counts.any())


def test_the_table_of_output_areas_by_religion_has_the_printed_risk() -> None:
    assert AREAS_BY_RELIGION.sum() == 2449
    assert (AREAS_BY_RELIGION == 0).sum() == 25
    assert r1(AREAS_BY_RELIGION) == pytest.approx(0.23146, abs=5e-6)  # printed 0.2315


def test_the_three_terms_are_those_of_the_formula() -> None:
    counts = [6, 3, 3, 0]
    entropy = 0.5 * np.log(2) + 0.5 * np.log(4)
    assert r1(counts, (1, 0, 0)) == pytest.approx(1 / 4)
    assert r1(counts, (0, 1, 0)) == pytest.approx(1 - entropy / np.log(4))
    assert r1(counts, (0, 0, 1)) == pytest.approx(-np.log(1 / (np.e * np.sqrt(12))) / np.sqrt(12))


@relaxed
@given(tables)
def test_the_risk_lies_between_0_and_1(counts: np.ndarray) -> None:
    assert 0 <= r1(counts) <= 1 + 1e-12


@relaxed
@given(tables, st.randoms(use_true_random=False))
def test_the_order_and_the_shape_of_cells_do_not_matter(counts: np.ndarray, random) -> None:  # type: ignore[no-untyped-def]
    flat = counts.ravel().tolist()
    random.shuffle(flat)
    assert r1(flat) == pytest.approx(r1(counts), abs=1e-12)


@relaxed
@given(tables, st.integers(2, 50))
def test_more_people_in_the_same_proportions_lower_only_the_size_term(
    counts: np.ndarray, times: int
) -> None:
    N = int(counts.sum())
    fall = 0.1 * float(size_of(N) - size_of(N * times))
    assert fall > 0
    assert r1(counts * times) == pytest.approx(r1(counts) - fall, abs=1e-12)


@relaxed
@given(st.integers(2, 40), st.integers(1, 500))
def test_one_populated_cell_is_high_and_a_uniform_table_low(cells: int, people: int) -> None:
    lonely = np.zeros(cells, dtype=np.int64)
    lonely[0] = people
    uniform = np.full(cells, people)
    assert r1(lonely) >= 0.8 + 0.1 * (1 - 1 / cells)
    assert r1(uniform) == pytest.approx(0.1 * float(size_of(cells * people)))


@relaxed
@given(st.integers(2, 30), st.integers(1, 100))
def test_more_empty_cells_around_the_same_people_are_riskier(cells: int, people: int) -> None:
    lonely = [people] + [0] * (cells - 1)
    assert r1([*lonely, 0]) > r1(lonely)


@relaxed
@given(
    arrays(np.int64, (5, 7), elements=st.integers(0, 2000)).filter(lambda c: c.any(axis=1).all())
)
def test_batches_rows_and_compiled_code_agree(rows: np.ndarray) -> None:
    plain = r1_values(rows)
    assert plain == pytest.approx([r1(row) for row in rows], abs=1e-12)
    assert plain == pytest.approx(risks_of_many(rows, rows[0])[0], abs=1e-12)


def test_totals_and_structural_zeros_are_left_out() -> None:
    total = TableAxis(
        "faith", "faith", (*TableAxis.plain("", "ab").categories, Category("t", "t", (0, 1)))
    )
    axes = (TableAxis.plain("area", "xy"), total)
    values = np.array([[4, 2, 6], [3, 0, 3]])
    table = Table(axes=axes, values=values)
    assert R1().before(table) == r1([4, 2, 3, 0])
    masked = Table(
        axes=axes, values=values, structural=np.array([[0, 0, 0], [0, 1, 0]], dtype=bool)
    )
    assert R1().before(masked) == r1([4, 2, 3])


def test_the_spec_is_frozen_and_names_itself() -> None:
    measure = R1((0.2, 0.6, 0.2))
    assert measure.to_mapping() == {"measure": "r1", "weights": [0.2, 0.6, 0.2]}
    assert measure == R1((0.2, 0.6, 0.2))
    with pytest.raises(AttributeError):
        measure.weights = (1.0, 0.0, 0.0)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([3, -1], "negative"),
        ([3.5, 1], "fraction"),
        ([np.nan, 1], "NaN"),
        ([np.inf, 1], "infinity"),
        (["a", "b"], "whole numbers"),
        ([[1, 2], [3]], "ragged"),
        ([2.0**63, 1], "too large"),
        ([], "empty"),
        ([7], "two cells"),
        ([0, 0], "nobody"),
        (Table.from_counts([1, 2]).values.astype(np.float64) / 2, "fraction"),
    ],
)
def test_what_has_no_risk_gets_one_clear_sentence(counts: object, words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        r1(counts)  # type: ignore[arg-type]
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "weights", [(0.5, 0.5), (0.5, 0.6, -0.1), (0.5, 0.5, 0.5), (np.nan, 0.5, 0.5), "abc", None]
)
def test_weights_are_three_numbers_that_add_up_to_1(weights: object) -> None:
    with pytest.raises(InputError, match=r"(three|3) numbers"):
        r1([1, 2], weights)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"(three|3) numbers"):
        R1(weights)  # type: ignore[arg-type]


def test_magnitudes_are_refused_and_missing_scales_are_a_kind_of_their_own() -> None:
    magnitudes = Table(
        axes=(TableAxis.plain("a", "xy"),), values=np.array([1, 2]), kind="magnitude"
    )
    with pytest.raises(InputError, match="whole counts"):
        r1(magnitudes)
    with pytest.raises(NotMeasurableError):
        r1([0, 0])


def test_tables_without_axes_or_without_categories_have_no_scale() -> None:
    with pytest.raises(NotMeasurableError, match="two cells"):
        r1(Table(axes=(), values=np.array(5)))
    with pytest.raises(NotMeasurableError, match="empty"):
        r1(Table(axes=(TableAxis.plain("a", ""),), values=np.zeros(0, dtype=np.int64)))


def test_people_in_an_impossible_cell_are_a_mistake() -> None:
    table = Table(
        axes=(TableAxis.plain("a", "xyz"),),
        values=np.array([1, 2, 3]),
        structural=np.array([True, False, False]),
    )
    with pytest.raises(InputError, match="impossible"):
        r1(table)
