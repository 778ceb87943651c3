"""A population with a proof: the plan, the noise, the linear estimate, and people who are made up from them."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from lustrum.model import Dataset, InputError, LustrumError
from lustrum.model.finest import FinestCells
from lustrum.protect.proven.domain import Domain, Subset, laid_out
from lustrum.protect.proven.fit import fit
from lustrum.protect.proven.measure import float_at_most, measure_tables
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.noisy import NoisyTables
from lustrum.protect.proven.plan import LinearEstimate, MeasurementPlan
from lustrum.protect.proven.report import Remade, public_report

SIZES = {"area": 7, "sex": 2, "age": 4, "work": 3, "job": 4}
ZEROS = [
    # Only those who work (0) have a job (not 3): six of twelve pairs can exist, so that both are one axis.
    {"reason": "a job", "where": {"work": ["1", "2"], "job": ["0", "1", "2"]}},
    {"reason": "no job", "where": {"work": ["0"], "job": ["3"]}},
    {"reason": "children", "where": {"age": ["0"], "work": ["0"]}},
]


def described(sizes: dict[str, int] = SIZES, zeros: object = ZEROS) -> Dataset:
    variables = [
        {"name": name, "codes": [[str(i), f"{name} {i}"] for i in range(size)]}
        for name, size in sizes.items()
    ]
    return Dataset.from_mapping(
        {
            "dataset": {"name": "town", "population": "merrow"},
            "variables": variables,
            "structural_zeros": zeros,
        }
    )


DATASET = described()
DOMAIN = Domain.of(DATASET)


def drawn(people: int, seed: int) -> FinestCells:
    """Invented people who depend on each other's attributes, one finest cell each."""
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.4, size=DOMAIN.shape) * DOMAIN.possible
    counts = rng.multinomial(people, (weights / weights.sum()).ravel()).reshape(DOMAIN.shape)
    major, combination = counts.nonzero()
    return DOMAIN.finest(major, combination, counts[major, combination])


def counted(cells: FinestCells, subset: Subset) -> np.ndarray:
    return DOMAIN.table(laid_out(DOMAIN, cells), subset)


def test_tied_variables_are_one_axis_and_what_cannot_exist_is_left_out() -> None:
    names = [[DATASET.variables[v].name for v in axis.variables] for axis in DOMAIN.axes]
    assert names == [["area"], ["sex"], ["age"], ["work", "job"]]
    assert DOMAIN.sizes == (7, 2, 4, 5)
    every = np.array(list(product(*(range(size) for size in SIZES.values())))).T
    possible = FinestCells(DATASET, every, np.ones(every.shape[1], dtype=int)).possible
    assert int(DOMAIN.possible.sum()) == int(possible.sum())
    whole = FinestCells(DATASET, every[:, possible], np.arange(1, possible.sum() + 1))
    laid = laid_out(DOMAIN, whole)
    major, combination = laid.nonzero()
    again = DOMAIN.finest(major, combination, laid[major, combination])
    assert np.array_equal(again.codes, whole.codes)
    assert np.array_equal(again.counts, whole.counts)


def test_a_record_that_cannot_exist_is_an_error() -> None:
    child_at_work = FinestCells(DATASET, np.array([[0], [0], [0], [0], [1]]), np.array([1]))
    with pytest.raises(InputError, match="cannot exist"):
        laid_out(DOMAIN, child_at_work)


def test_too_many_combinations_are_refused_in_one_sentence() -> None:
    with pytest.raises(InputError, match="more than 67,108,864 combinations"):
        Domain.of(described({f"v{i}": 40 for i in range(6)}, []))


@given(st.integers(0, 2**32), st.sampled_from([0.1, 0.37, 2.56, 17.0]), st.integers(1, 3))
@settings(max_examples=examples(10, 100))
def test_shares_are_exact_and_cover_every_effect(seed: int, rho: float, most: int) -> None:
    rng = np.random.default_rng(seed)
    method = ProvenPopulation(rho, most, *rng.uniform(0.1, 1000, size=2).tolist())
    plan = method.plan(DOMAIN)
    assert plan.rho == Fraction(repr(rho))
    assert all(share > 0 for share in plan.shares.values())
    assert set(plan.precision) == set(DOMAIN.subsets(most))
    assert all(Fraction(float_at_most(share)) <= share for share in plan.shares.values())


@pytest.mark.parametrize("tables", [(), (("area", "sex"), ("age", "work"), ("job",))])
def test_no_other_division_of_rho_has_a_smaller_weighted_variance(
    tables: tuple[tuple[str, ...], ...],
) -> None:
    method = ProvenPopulation(1.0, tables=tables, own_weight=50)
    plan = method.plan(DOMAIN)
    own = {(0, 1), (2, 3), (3,)} if tables else set()

    def cost(plan: MeasurementPlan) -> float:
        weights = (method.one_way, method.two_way, 1.0)
        return sum(
            weights[len(s) - 1]
            * (50 if s in own else 1)
            * plan.variance(s)
            * np.prod(DOMAIN.table_shape(s))
            for s in DOMAIN.subsets(3)
        )

    best, rng = cost(plan), np.random.default_rng(5)
    for _ in range(200):
        moved = {s: share * Fraction(rng.uniform(0.5, 2)) for s, share in plan.shares.items()}
        total = sum(moved.values())
        other = MeasurementPlan(plan.sizes, {s: share / total for s, share in moved.items()})
        assert cost(other) >= best * (1 - 1e-4)


def test_the_agencys_own_tables_err_less_and_must_be_measured() -> None:
    own = ProvenPopulation(tables=(("area", "age"),), own_weight=50).plan(DOMAIN)
    assert own.typical_error((0, 2)) < 0.7 * ProvenPopulation().plan(DOMAIN).typical_error((0, 2))
    for tables, wrong in (
        ((("area", "sex", "age", "job"),), "more than 3 variables"),
        (((),), "a list of variables"),
        ((("shoe",),), "no variable 'shoe'"),
        ((("age:ten-year",),), "no level 'ten-year'"),
    ):
        with pytest.raises(LustrumError, match=wrong):
            ProvenPopulation(tables=tables).plan(DOMAIN)


@given(st.integers(0, 2**32))
@settings(max_examples=examples(10, 100))
def test_one_replaced_record_changes_a_table_by_at_most_the_root_of_two(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = laid_out(DOMAIN, drawn(30, seed))
    leaves = tuple(place[rng.integers(counts.nonzero()[0].size)] for place in counts.nonzero())
    comes = tuple(place[rng.integers(DOMAIN.possible.sum())] for place in DOMAIN.possible.nonzero())
    other = counts.copy()
    other[leaves] -= 1
    other[comes] += 1
    for subset in DOMAIN.subsets(3):
        change = DOMAIN.table(counts, subset) - DOMAIN.table(other, subset)
        assert float((change**2).sum()) <= 2
        assert np.all(DOMAIN.possible_table(subset) | (change == 0))


@pytest.mark.parametrize("rho", [0.2, 2.56])
def test_divergence_of_neighbours_stays_below_alpha_times_rho(rho: float) -> None:
    """Renyi divergence of all noisy tables, exactly: the sum over both cells of each table that can differ."""
    noisy = measure_tables(DOMAIN, ProvenPopulation(rho).plan(DOMAIN), drawn(50, 1))
    for alpha in (1.5, 2, 8, 32):
        total = 0.0
        for scale in noisy.scales.values():
            reach = int(40 * scale + 40 * alpha)
            steps = np.arange(-reach, reach + 1)
            log_chance = -0.5 * (steps / scale) ** 2
            log_chance -= np.logaddexp.reduce(log_chance)
            moved = -0.5 * ((steps - 1) / scale) ** 2
            moved -= np.logaddexp.reduce(moved)
            total += 2 * np.logaddexp.reduce(alpha * log_chance + (1 - alpha) * moved) / (alpha - 1)
        assert total <= alpha * rho * (1 + 1e-9)
        # Not much less either: the noise is what was paid for.
        assert total >= 0.99 * alpha * rho


def test_noise_is_that_of_the_stated_scale() -> None:
    """200 draws of all tables; each squared error over its variance, chi-square beyond 1e-6 fails."""
    plan, cells = ProvenPopulation(0.5).plan(DOMAIN), drawn(50, 2)
    total, cells_measured = 0.0, 0
    for _ in range(200):
        noisy = measure_tables(DOMAIN, plan, cells)
        for subset, table in noisy.tables.items():
            possible = DOMAIN.possible_table(subset)
            assert not table[~possible].any()
            error = (table - counted(cells, subset))[possible]
            assert noisy.scales[subset] == pytest.approx(float(plan.shares[subset]) ** -0.5)
            total += float((error**2).sum()) / noisy.scales[subset] ** 2
            cells_measured += error.size
    assert abs(total - cells_measured) < 5 * sqrt(2 * cells_measured)


@given(st.integers(0, 2**32))
@settings(max_examples=examples(5, 50), deadline=None)
def test_the_linear_estimate_is_that_of_least_squares(seed: int) -> None:
    """Against NumPy's least squares over all cells of the axes, those that cannot exist among them."""
    rng = np.random.default_rng(seed)
    plan = ProvenPopulation(1.0).plan(DOMAIN)
    people = 60
    noisy = {s: rng.integers(-5, 20, DOMAIN.table_shape(s)) for s in plan.shares}
    estimate = LinearEstimate(plan, noisy, people)
    lattice = np.array(list(product(*(range(size) for size in DOMAIN.sizes)))).T
    rows, values = [], []
    for subset, table in noisy.items():
        index = np.ravel_multi_index(lattice[list(subset)], table.shape)
        design = np.zeros((table.size, lattice.shape[1]))
        design[index, np.arange(lattice.shape[1])] = 1
        root = sqrt(float(plan.shares[subset]))
        rows.append(design * root)
        values.append(table.ravel() * root)
    # The number of people is exact: a row of overwhelming weight.
    rows.append(np.full((1, lattice.shape[1]), 1e5))
    values.append(np.array([1e5 * people]))
    solved = np.linalg.lstsq(np.concatenate(rows), np.concatenate(values), rcond=None)[0]
    for subset in DOMAIN.subsets(3):
        shape = DOMAIN.table_shape(subset)
        index = np.ravel_multi_index(lattice[list(subset)], shape)
        expected = np.bincount(index, solved, int(np.prod(shape))).reshape(shape)
        assert np.allclose(estimate.table(subset), expected, atol=1e-4)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_errors_of_the_linear_estimate_are_as_planned(most: int) -> None:
    """Against the response to a step of one in each noisy number, which the estimate is linear in."""
    domain = Domain.of(described({"a": 4, "b": 3, "c": 2}, []))
    plan = ProvenPopulation(1.0, max_variables=most).plan(domain)
    groups = {0: [3, 1], 1: [2, 1]}
    zeros = {s: np.zeros(domain.table_shape(s), dtype=np.int64) for s in plan.shares}
    variance = dict.fromkeys(domain.subsets(most), 0.0)
    grouped = dict.fromkeys(domain.subsets(most), 0.0)
    for subset, share in plan.shares.items():
        for place in np.ndindex(zeros[subset].shape):
            step = {**zeros, subset: zeros[subset].copy()}
            step[subset][place] = 1
            estimate = LinearEstimate(plan, step, 0)
            for one in variance:
                moved = estimate.table(one)
                variance[one] += float((moved**2).mean()) / float(share)
                for along, axis in enumerate(one):
                    starts = np.cumsum([0, *groups.get(axis, [1] * domain.sizes[axis])[:-1]])
                    moved = np.add.reduceat(moved, starts, axis=along)
                grouped[one] += float((moved**2).mean()) / float(share)
    for one in variance:
        assert plan.variance(one) == pytest.approx(variance[one])
        for sizes, exact in ((None, variance[one]), (groups, grouped[one])):
            assert plan.typical_error(one, sizes) == pytest.approx(sqrt(2 / np.pi * exact))


def test_an_axis_can_be_shown_by_its_variables_and_their_levels() -> None:
    assert [list(axis.levels(DATASET)) for axis in DOMAIN.axes[:3]] == [["area"], ["sex"], ["age"]]
    # Those who work have three jobs, those who look for work and the others one each: none.
    assert DOMAIN.axes[3].levels(DATASET) == {
        "work and job": [1] * 5,
        "work": [3, 1, 1],
        "job": [1, 1, 1, 2],
    }
    groups = [{"code": "a", "members": ["1", "2"]}]  # the West is one of its own
    tall = Dataset.from_mapping(
        {
            "dataset": {"name": "town"},
            "variables": [
                {
                    "name": "area",
                    "codes": [["1", "North"], ["2", "South"], ["3", "West"]],
                    "hierarchies": [
                        {"name": "half", "levels": [{"name": "rims", "groups": groups}]}
                    ],
                }
            ],
        }
    )
    assert Domain.of(tall).axes[0].levels(tall) == {"area": [1, 1, 1], "area:rims": [2, 1]}


def test_noisy_tables_are_one_file_and_all_that_people_are_made_from() -> None:
    method = ProvenPopulation(2.56)
    noisy = measure_tables(DOMAIN, method.plan(DOMAIN), drawn(500, 4))
    data = noisy.to_bytes()
    again = NoisyTables.from_bytes(data, DATASET)
    assert again.to_bytes() == data
    assert again.digest == noisy.digest
    made, made_again = (method.population(one, seed=3) for one in (noisy, again))
    assert np.array_equal(made.codes, made_again.codes)
    assert np.array_equal(made.counts, made_again.counts)
    assert int(made.counts.sum()) == 500
    assert made.possible.all()
    stated = json.loads(data)
    assert stated["neighbours"] == "replace-one-record"
    assert sum(Fraction(table["rho"]) for table in stated["tables"]) == Fraction("2.56")


@pytest.mark.parametrize("change", ["dataset", "rho", "format", "values", "axes"])
def test_noisy_tables_of_something_else_are_refused(change: str) -> None:
    noisy = measure_tables(DOMAIN, ProvenPopulation(1.0).plan(DOMAIN), drawn(50, 5))
    stated = json.loads(noisy.to_bytes())
    if change in ("values", "axes"):
        stated["tables"][0][change].pop()
    else:
        stated[change] = "3"
    with pytest.raises(InputError, match="no file of noisy tables"):
        NoisyTables.from_bytes(json.dumps(stated).encode(), DATASET)


@pytest.mark.parametrize("seed", range(3))
def test_people_keep_what_the_noisy_tables_hold(seed: int) -> None:
    """Mean errors of one- and two-way tables stay within 1 of those of the linear estimate."""
    cells, method = drawn(20_000, seed), ProvenPopulation(2.56)
    noisy = measure_tables(DOMAIN, method.plan(DOMAIN), cells)
    estimate = LinearEstimate(noisy.plan, noisy.tables, noisy.people)
    expected = fit(DOMAIN, estimate, 3)
    assert float(expected.min()) >= 0
    assert not expected[~DOMAIN.possible].any()
    assert float(expected.sum()) == pytest.approx(20_000)
    made = method.population(noisy)
    for number in (1, 2):
        tables = [s for s in DOMAIN.subsets(2) if len(s) == number]
        linear, whole = (
            np.mean(np.concatenate([np.abs(one(s) - counted(cells, s)).ravel() for s in tables]))
            for one in (estimate.table, lambda s: counted(made, s))
        )
        assert whole <= linear + 1


@pytest.mark.parametrize(
    ("sizes", "people"),
    [
        ({"a": 4}, 30),
        ({"a": 4, "b": 3}, 30),
        ({"a": 4, "b": 1, "c": 2}, 30),
        ({"a": 4, "b": 3, "c": 2}, 0),
        ({"a": 4, "b": 3, "c": 2, "d": 2}, 1),
    ],
)
@pytest.mark.parametrize("rho", [1e-6, 1.0, 100.0])
def test_small_files_are_made_whole_and_reported(
    sizes: dict[str, int], people: int, rho: float
) -> None:
    """One variable, a variable of one code, nobody, one person: as many people come out as went in."""
    dataset, method = described(sizes, []), ProvenPopulation(rho)
    rng = np.random.default_rng(1)
    codes = np.array([rng.integers(size, size=people) for size in sizes.values()])
    unique, counts = np.unique(codes, axis=1, return_counts=True)
    domain = Domain.of(dataset)
    cells = FinestCells(dataset, unique, counts)
    noisy = measure_tables(domain, method.plan(domain), cells)
    made = method.population(noisy)
    assert int(made.counts.sum()) == people
    remade = Remade(noisy, made, None)
    report = public_report(method, remade, remade.again(method), {})
    assert report.proof is not None
    assert Fraction(report.proof["rho"]) == method.exact_rho


def test_a_file_without_any_choice_is_refused_before_anything_is_paid() -> None:
    with pytest.raises(InputError, match="has two codes; there is nothing to measure"):
        Domain.of(described({"a": 1, "b": 1}, []))
