"""The risk of a sample or a perturbed table: oracles for the conditional entropy, and invariants."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lustrum.model import InputError, Table
from lustrum.model.status import CellStatus
from lustrum.protect import RandomRounding
from lustrum.risk.batch import risks_of_many
from lustrum.risk.counts import NotMeasurableError
from lustrum.risk.entropy import conditional_entropy, entropy, size_of
from lustrum.risk.population import simple_random_samples
from lustrum.risk.r1 import r1
from lustrum.risk.r2 import R2, r2, r2_values
from lustrum.study.sample_tables import AREAS_BY_RELIGION

relaxed = settings(deadline=None)  # the first call of a kernel compiles it


def two_tables(most: int = 40):  # type: ignore[no-untyped-def]
    row = arrays(np.int64, 6, elements=st.integers(0, most)).filter(lambda c: c.any())
    return st.tuples(row, row)


def joint(F: np.ndarray, f: np.ndarray) -> np.ndarray:
    """``Pr(X = i, Y = j)`` cell by cell, as the averaged matching defines it."""
    p, q = F / F.sum(), f / f.sum()
    m = np.minimum(p, q)
    a, b = p - m, q - m
    both = np.diag(m)
    if a.sum() > 0:
        for i in range(p.size):
            for j in range(p.size):
                both[i, j] += b[j] * a[i] / a.sum()
    return both


def conditional_entropy_by_pairs(F: np.ndarray, f: np.ndarray) -> float:
    """Equation 2 as it is written, over all pairs of cells."""
    both = joint(F, f)
    q = f / f.sum()
    total = 0.0
    for j in range(q.size):
        for i in range(q.size):
            if both[i, j] > 0:
                total -= both[i, j] * np.log(both[i, j] / q[j])
    return total


@relaxed
@given(two_tables())
def test_one_pass_over_the_cells_gives_the_double_sum(pair) -> None:  # type: ignore[no-untyped-def]
    F, f = pair
    assert conditional_entropy(F, f) == pytest.approx(conditional_entropy_by_pairs(F, f), abs=1e-9)


@relaxed
@given(two_tables())
def test_the_joint_distribution_has_both_tables_as_margins(pair) -> None:  # type: ignore[no-untyped-def]
    F, f = pair
    both = joint(F, f)
    assert both.sum(axis=1) == pytest.approx(F / F.sum())
    assert both.sum(axis=0) == pytest.approx(f / f.sum())


@pytest.mark.parametrize(
    ("F", "f"), [((3, 2, 1), (1, 2, 3)), ((4, 1, 0), (1, 2, 2)), ((0, 3, 2), (2, 0, 3))]
)
def test_the_proportional_form_is_the_average_over_all_maximal_matchings(
    F: tuple[int, ...], f: tuple[int, ...]
) -> None:
    # Tables of equal size: every way to seat the same people in both, keeping the best ones.
    size = sum(F)
    assert size == sum(f)
    rows = [i for i, count in enumerate(F) for _ in range(count)]
    columns = [j for j, count in enumerate(f) for _ in range(count)]
    best, seatings = -1, Counter[tuple[int, int]]()
    matchings = 0
    for order in permutations(range(size)):
        seats = [(rows[k], columns[order[k]]) for k in range(size)]
        together = sum(i == j for i, j in seats)
        if together > best:
            best, seatings, matchings = together, Counter(), 0
        if together == best:
            seatings.update(seats)
            matchings += 1
    average = np.zeros((3, 3))
    for (i, j), times in seatings.items():
        average[i, j] = times / matchings / size
    assert average == pytest.approx(joint(np.array(F), np.array(f)))


@relaxed
@given(two_tables())
def test_what_is_left_open_is_at_most_the_entropy(pair) -> None:  # type: ignore[no-untyped-def]
    F, f = pair
    assert 0 <= conditional_entropy(F, f) <= entropy(F) + 1e-12


@relaxed
@given(two_tables(), st.integers(1, 30), st.integers(1, 30))
def test_proportional_tables_leave_nothing_open(pair, one: int, other: int) -> None:  # type: ignore[no-untyped-def]
    F, _ = pair
    assert conditional_entropy(F * one, F * other) == 0
    assert r2(F * one, F * other) == pytest.approx(r1(F * one), abs=1e-12)


@relaxed
@given(two_tables())
def test_no_published_table_is_riskier_than_the_population_itself(pair) -> None:  # type: ignore[no-untyped-def]
    F, f = pair
    assert 0 <= r2(F, f) <= r1(F) + 1e-12


@relaxed
@given(two_tables(), st.integers(2, 20))
def test_the_size_of_the_published_table_does_not_matter(pair, times: int) -> None:  # type: ignore[no-untyped-def]
    F, f = pair
    assert r2(F, f * times) == pytest.approx(r2(F, f), abs=1e-12)
    fall = 0.1 * float(size_of(F.sum()) - size_of(F.sum() * times))
    assert r2(F * times, f) == pytest.approx(r2(F, f) - fall, abs=1e-12)


@relaxed
@given(two_tables(), st.permutations(range(6)))
def test_the_order_of_cells_does_not_matter(pair, order: list[int]) -> None:  # type: ignore[no-untyped-def]
    F, f = pair
    assert r2(F[order], f[order]) == pytest.approx(r2(F, f), abs=1e-12)
    assert r2(F.reshape(2, 3), f.reshape(2, 3)) == r2(F, f)


@relaxed
@given(
    arrays(np.int64, (5, 6), elements=st.integers(0, 3000)),
    two_tables(90),
    st.sampled_from([(0.3, 0.5, 0.2), (1, 0, 0), (0, 1, 0), (0, 0, 1)]),
)
def test_batches_and_compiled_code_agree_with_one_table_at_a_time(rows, pair, weights) -> None:  # type: ignore[no-untyped-def]
    populations, f = rows + pair[0], pair[1]
    plain = r2_values(populations, f, weights)
    assert plain == pytest.approx([r2(row, f, weights) for row in populations], abs=1e-12)
    assert plain == pytest.approx(risks_of_many(populations, f, weights)[1], abs=1e-9)


def test_the_zeros_term_is_a_power_of_the_share_and_0_without_shared_zeros() -> None:
    only_zeros = (1, 0, 0)
    assert r2([4, 4, 0, 0], [1, 0, 0, 0], only_zeros) == pytest.approx(0.5 ** (3 / 2))
    assert r2([4, 4, 0, 0], [1, 0, 1, 1], only_zeros) == 0
    assert r2([4, 4, 1, 1], [1, 0, 1, 1], only_zeros) == 0


def test_a_population_in_one_cell_stays_certain_whatever_is_published() -> None:
    assert r2([9, 0, 0], [1, 5, 0], (0, 1, 0)) == 1
    assert risks_of_many(np.array([[9, 0, 0]]), np.array([1, 5, 0]), (0, 1, 0))[1] == 1


@pytest.mark.parametrize(
    ("fraction", "mean", "sd"),
    [(0.1, 0.1697, 0.0048), (0.05, 0.1531, 0.0063), (0.01, 0.0949, 0.0097)],
)
def test_samples_of_the_true_population_have_the_known_risk(
    fraction: float, mean: float, sd: float
) -> None:
    # 4,000 samples against a figure from 1,000: false alarm once in 1,000, plus rounding.
    rng = np.random.default_rng(2015)
    samples = simple_random_samples(AREAS_BY_RELIGION, fraction, rng, 4000).reshape(4000, -1)
    risks = r2_values(AREAS_BY_RELIGION.ravel(), samples)
    assert risks.mean() == pytest.approx(mean, abs=3.3 * sd * np.sqrt(1 / 4000 + 1 / 1000) + 5e-5)
    assert risks.std() == pytest.approx(sd, rel=3.3 * np.sqrt(1 / 8000 + 1 / 2000), abs=5e-5)


def test_a_release_is_measured_against_its_table() -> None:
    table = Table.from_counts(AREAS_BY_RELIGION, names=["area", "religion"])
    release = RandomRounding(base=3).apply(table, np.random.default_rng(1))
    measure = R2()
    assert measure.before(table) == r1(AREAS_BY_RELIGION)
    assert measure.after(table, release) == r2(AREAS_BY_RELIGION, release.published)
    assert measure.after(table, release) < measure.before(table)
    assert measure.to_mapping() == {"measure": "r2", "weights": [0.1, 0.8, 0.1]}


def test_suppressed_cells_are_refused() -> None:
    table = Table.from_counts([[4, 2], [1, 3]])
    release = RandomRounding().apply(table, np.random.default_rng(1))
    status = release.status.copy()
    status[0, 0] = CellStatus.SMALL_COUNT.value
    with pytest.raises(InputError, match="suppressed"):
        r2(table, replace(release, status=status))


def test_a_release_of_negative_counts_is_refused() -> None:
    table = Table.from_counts([[4, 2], [1, 3]])
    release = RandomRounding().apply(table, np.random.default_rng(1))
    object.__setattr__(release, "numbers", release.numbers - 9)
    with pytest.raises(InputError, match="published table holds a negative"):
        r2(table, release)


@pytest.mark.parametrize(
    ("population", "published", "words"),
    [
        ([1, 2], [1, 2, 3], "different shapes"),
        ([[1, 2]], [1, 2], "different shapes"),
        ([1, 2], [1, -2], "published table holds a negative"),
        ([1, 2.5], [1, 2], "population table holds a fraction"),
        ([1], [1], "two cells"),
    ],
)
def test_mistakes_are_named(population: object, published: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        r2(population, published)  # type: ignore[arg-type]


def test_a_published_table_of_nobody_has_no_scale() -> None:
    with pytest.raises(NotMeasurableError, match="published table has nobody"):
        r2([1, 2], [0, 0])
    with pytest.raises(NotMeasurableError, match="population table has nobody"):
        r2([0, 0], [0, 1])
