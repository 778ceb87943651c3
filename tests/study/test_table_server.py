from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustrum.demo import people
from lustrum.model import InputError
from lustrum.model.channel import SHLOMO_2015
from lustrum.study import Study
from lustrum.study.table_server import (
    TABLE_2,
    components,
    hypercube,
    output_tables,
    ru_points,
    server_outcomes,
    small_part,
    table_server,
)
from lustrum.study.table_server_methods import (
    apportioned,
    calibrated,
    invariant,
    perturbed,
    regions_swapped,
    rounded,
)

QUICK = settings(deadline=None, max_examples=40)
PERSONS = 100_000

counts = st.lists(st.integers(0, 60), min_size=2, max_size=60).map(np.array)


@pytest.fixture(scope="module")
def cube() -> np.ndarray:
    return hypercube(people(PERSONS, seed=2001))


@pytest.fixture(scope="module")
def study() -> Study:
    told: list[float] = []
    result = table_server(PERSONS, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    return result


def test_the_methods_fall_into_the_order_of_the_paper(study: Study) -> None:
    panel = next(p for p in study.panels if "order" in p.title)
    assert len(panel.lines) == 16
    assert [line.what for line in panel.lines if line.ours != 1] == []
    assert study.reproduced


def test_with_formula_and_matrix_as_printed_the_order_breaks_and_the_study_says_so(
    study: Study,
) -> None:
    panel = next(p for p in study.panels if "as printed" in p.title)
    broken = [line.what for line in panel.lines if line.ours == 0]
    for number in (2, 3):
        claim = "perturbation keeps more utility than rounding of the hypercube"
        assert f"table {number}: {claim}" in broken
    assert all((line.note == "does not hold") == (line.ours == 0) for line in panel.lines)


def test_the_study_names_what_the_paper_prints_but_its_own_figures_do_not_give(
    study: Study,
) -> None:
    slips = [line.what for panel in study.panels for line in panel.lines if line.slip]
    assert slips == [
        "perturbation, small counts",
        "hypercube: perturbation of the hypercube, matrix as printed",
    ]


def test_the_printed_terms_complete_each_other_to_the_printed_risk() -> None:
    printed = (0.318, 0.248, 0.339, 0.298)
    about = (0.24, 0.20, 0.26, 0.25)
    for table, total, small in zip(TABLE_2, printed, about, strict=True):
        most, least = (0.7 * small_part(table, s) for s in (0, table.most_sixes))
        assert least - 0.005 <= small <= most + 0.005
        N = table.people
        size = (1 + math.log(math.sqrt(N))) / math.sqrt(N)
        zeros = table.frequency[0] / table.cells
        for part in (least, most):
            assert 0 < (total - 0.1 * zeros - part - 0.1 * size) / 0.1 < 1


def test_the_hypercube_has_the_shape_of_the_paper_and_all_people(cube: np.ndarray) -> None:
    assert cube.shape == (2, 2, 21, 5, 13, 9, 5)
    assert cube.size == 245_700
    assert cube.sum() == PERSONS


def test_the_four_tables_are_the_sums_that_section_5_1_describes(cube: np.ndarray) -> None:
    first, second, third, fourth = output_tables(cube)
    assert (first.size, second.size, third.size, fourth.size) == (2457, 210, 585, 234)
    assert first[3, 4, 5] == cube[0, :, 3, :, 5, 4, :].sum()
    assert second[1, 7, 2] == cube[1, 1, 7, :, :, :, 2].sum()
    assert third[2, 5, 4] == cube[:, 0, :, 2, 5, 4, :].sum()
    assert fourth[1, 5, 4] == cube[1, :, 9, :, 5, 4, :].sum()


@QUICK
@given(counts, st.integers(0, 99))
def test_swapping_moves_twice_the_share_and_keeps_regions_and_everything_else(
    half: np.ndarray, seed: int
) -> None:
    cube = np.stack((half, half[::-1]))
    swapped = regions_swapped(cube, 0.05, np.random.default_rng(seed))
    assert (swapped >= 0).all()
    assert swapped.sum(axis=0).tolist() == cube.sum(axis=0).tolist()
    assert swapped.sum(axis=1).tolist() == cube.sum(axis=1).tolist()
    moved = int(np.abs(swapped - cube).sum()) // 2
    assert moved <= 2 * 2 * round(0.05 * int(half.sum()))


@QUICK
@given(counts, st.integers(0, 99))
def test_rounding_goes_to_a_neighbour_and_keeps_the_total_next_to_its_own(
    values: np.ndarray, seed: int
) -> None:
    out = rounded(values, 3, np.random.default_rng(seed))
    assert (out % 3 == 0).all()
    assert (np.abs(out - values) < 3).all()
    assert abs(int(out.sum() - values.sum())) < 3
    for residue in (1, 2):
        up = int((out > values)[values % 3 == residue].sum())
        number = int((values % 3 == residue).sum())
        assert abs(up - number * residue / 3) <= 0.5


@QUICK
@given(counts, st.integers(0, 99))
def test_perturbation_keeps_zeros_and_the_total_wherever_a_cell_is_large_enough(
    values: np.ndarray, seed: int
) -> None:
    values = np.append(values, 5000)
    out = perturbed(values, SHLOMO_2015, np.random.default_rng(seed))
    assert out.sum() == values.sum()
    assert ((out == 0) == (values == 0)).all()


def test_perturbation_changes_the_expected_number_of_cells() -> None:
    values = np.repeat([1, 2, 4, 100_000], [80, 40, 120, 1])
    out = perturbed(values, SHLOMO_2015, np.random.default_rng(1))
    assert np.bincount(out[:80]).tolist() == [0, 40, 10, 10, 10, 10]
    assert np.bincount(out[80:120]).tolist() == [0, 5, 20, 5, 5, 5]
    assert np.bincount(out[120:240]).tolist() == [0, 2, 2, 2, 108, 2, 2, 2]


def test_without_a_large_cell_nothing_can_take_the_total_back() -> None:
    out = perturbed(np.repeat([1, 0], [8, 2]), SHLOMO_2015, np.random.default_rng(1))
    assert sorted(out.tolist()) == [0, 0, 1, 1, 1, 1, 2, 3, 4, 5]


@QUICK
@given(st.lists(st.integers(0, 50), min_size=16, max_size=16).filter(any))
def test_the_invariant_matrix_keeps_the_frequencies(frequency: list[int]) -> None:
    t = np.array(frequency, dtype=float)
    matrix = invariant(SHLOMO_2015.matrix, t)
    assert t @ matrix == pytest.approx(t)
    assert matrix.sum(axis=1) == pytest.approx(np.ones(16))
    assert (matrix >= -1e-12).all()


def test_the_calibrated_matrix_is_invariant_and_moves_as_much_as_the_printed_one(
    cube: np.ndarray,
) -> None:
    channel = calibrated(SHLOMO_2015, cube)
    t = np.bincount(channel.rows_of(cube.ravel()), minlength=16).astype(float)
    assert t @ channel.matrix == pytest.approx(t, rel=1e-12)
    printed = np.diagonal(SHLOMO_2015.matrix).mean()
    assert np.diagonal(channel.matrix).mean() == pytest.approx(printed)
    assert not np.allclose(t @ SHLOMO_2015.matrix, t, rtol=0.01)


@QUICK
@given(st.integers(0, 500), st.lists(st.integers(0, 9), min_size=1, max_size=9).filter(any))
def test_apportioned_numbers_add_up_and_are_next_to_their_shares(
    total: int, sizes: list[int]
) -> None:
    parts = apportioned(total, sizes)
    assert parts.sum() == total
    for part, size in zip(parts.tolist(), sizes, strict=True):
        assert abs(part - total * size / sum(sizes)) < 1


def test_the_curves_of_figure_1_run_from_none_to_full_risk() -> None:
    curves = components()
    assert curves.zeros.tolist() == curves.zero_share.tolist()
    for empty, term in zip(curves.empty_cells.tolist(), curves.entropy.tolist(), strict=True):
        assert term == pytest.approx(1 - math.log(10 - empty) / math.log(10), abs=1e-12)
    assert curves.size[0] == 1
    assert (np.diff(curves.size) < 0).all()


def test_the_map_has_a_point_for_each_table_and_method(cube: np.ndarray) -> None:
    outcomes = server_outcomes(cube, seed=1)
    points = ru_points(outcomes)
    assert len(points) == 4 * 5
    assert {p.label for p in points} >= {"T1 RS", "T2 RR", "T3 SP", "T4 RRP"}
    assert all(0 <= p.risk <= 1 and 0 <= p.utility <= 1 for p in points)
    unchanged = next(p for p in points if p.label == "T3 RS")
    assert unchanged.utility == 1


def test_a_cube_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match="seven variables"):
        server_outcomes(np.ones((2, 3), dtype=np.int64), seed=1)
