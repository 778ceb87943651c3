"""Post-randomisation follows its matrix; the invariant kind keeps frequencies; estimates are unbiased."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from lustrum.model import InputError, Records, Table, TableQuery
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.perturbation.lookup import invariant
from lustrum.protect.post_randomisation import PostRandomisation, estimate
from lustrum.tabulate import RecordsEngine
from small import described, hierarchy

PEOPLE = described(
    "people",
    {
        "sex": "mf",
        "job": {"codes": "abcd", "hierarchies": [hierarchy("broad", {"broad": {"X": "abc"}})]},
        "area": "123",
    },
    head={"record_id": "person"},
)
MATRIX = (
    (0.7, 0.2, 0.1, 0.0),
    (0.1, 0.8, 0.05, 0.05),
    (0.0, 0.0, 1.0, 0.0),
    (0.25, 0.25, 0.25, 0.25),
)


def people(number: int, seed: int = 1, keyed: bool = True) -> Records:
    rng = np.random.default_rng(seed)
    return Records(
        PEOPLE,
        codes={
            "sex": rng.integers(0, 2, number).astype(np.uint8),
            "job": rng.choice(4, number, p=[0.4, 0.3, 0.2, 0.1]).astype(np.uint8),
            "area": rng.integers(0, 3, number).astype(np.uint8),
        },
        ids={"person": rng.permutation(number)},
        keys=rng.integers(0, 2**64, number, dtype=np.uint64) if keyed else None,
    )


def counted(records: Records, *by: Any, **words: Any) -> Table:
    query = {"dataset": "people", "by": list(by)} | words
    return RecordsEngine(records, workers=1).tabulate(TableQuery.from_mapping(query))


def crossed(before: Records, after: Records, name: str, size: int) -> np.ndarray:
    both = before.codes[name].astype(np.int64) * size + after.codes[name]
    return np.bincount(both, minlength=size**2).reshape(size, size)


def follows(seen: np.ndarray, matrix: np.ndarray) -> None:
    """Chi-square of every row; false alarm rate one in a million each."""
    for row, expected in zip(seen, matrix, strict=True):
        possible = expected > 0
        assert not row[~possible].any()
        if possible.sum() > 1 and row.sum():
            assert stats.chisquare(row[possible], expected[possible] * row.sum()).pvalue > 1e-6


def test_codes_follow_the_matrix() -> None:
    before = people(60_000)
    after = PostRandomisation("job", matrix=MATRIX).apply_records(before, np.random.default_rng(3))
    follows(crossed(before, after, "job", 4), np.array(MATRIX))
    assert np.array_equal(before.codes["sex"], after.codes["sex"])


def test_what_stays_and_levels_make_a_matrix() -> None:
    before = people(60_000)
    spec = PostRandomisation("job", stay=0.7)
    expected = np.full((4, 4), 0.1) + 0.6 * np.eye(4)
    assert np.allclose(spec.matrix_of(PEOPLE, "job"), expected)
    follows(
        crossed(before, spec.apply_records(before, np.random.default_rng(1)), "job", 4), expected
    )
    level = PostRandomisation("job", stay=0.7, level="broad")
    expected = np.array(
        [[0.7, 0.15, 0.15, 0], [0.15, 0.7, 0.15, 0], [0.15, 0.15, 0.7, 0], [0, 0, 0, 1]]
    )
    assert np.allclose(level.matrix_of(PEOPLE, "job"), expected)
    after = level.apply_records(before, np.random.default_rng(1))
    follows(crossed(before, after, "job", 4), expected)
    by = {"variable": "job", "level": "broad"}
    assert np.array_equal(counted(before, by, "sex").values, counted(after, by, "sex").values)


def test_several_variables_change_each_on_its_own_or_as_one() -> None:
    before = people(60_000)
    apart = PostRandomisation(("sex", "area"), stay=0.8).apply_records(
        before, np.random.default_rng(2)
    )
    follows(crossed(before, apart, "sex", 2), np.array([[0.8, 0.2], [0.2, 0.8]]))
    follows(crossed(before, apart, "area", 3), np.full((3, 3), 0.1) + 0.7 * np.eye(3))
    spec = PostRandomisation(("sex", "area"), stay=0.5, joint=True)
    after = spec.apply_records(before, np.random.default_rng(2))
    cells = [r.codes["sex"].astype(np.int64) * 3 + r.codes["area"] for r in (before, after)]
    seen = np.bincount(cells[0] * 6 + cells[1], minlength=36).reshape(6, 6)
    follows(seen, np.full((6, 6), 0.1) + 0.4 * np.eye(6))


frequencies = st.lists(st.integers(0, 1000), min_size=2, max_size=6).filter(any)


@given(t=frequencies, seed=st.integers(0, 2**32))
def test_the_invariant_matrix_keeps_frequencies(t: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.ones(len(t)), len(t))
    kept = invariant(matrix, t)
    assert np.allclose(np.array(t) @ kept, t)
    assert np.allclose(kept.sum(axis=1), 1)
    assert kept.min() >= 0


def test_the_invariant_kind_keeps_frequencies_of_each_stratum_on_average() -> None:
    """Sums over 300 draws against their exact variance; false alarm rate below one in a million each."""
    before = people(600)
    spec = PostRandomisation("job", matrix=MATRIX, invariant=True, strata=("sex",))
    true = counted(before, "sex", "job").values
    draws = 300
    total = np.zeros((2, 4))
    for seed in range(draws):
        after = spec.apply_records(before, np.random.default_rng(seed))
        total += counted(after, "sex", "job").values
    for sex in range(2):
        R = invariant(MATRIX, true[sex])
        deviation = np.sqrt(draws * (true[sex][:, None] * R * (1 - R)).sum(axis=0))
        assert np.all(np.abs(total[sex] - draws * true[sex]) < 5.2 * deviation + 1e-9)
    assert not np.allclose(true @ np.array(MATRIX), true, rtol=0.02)


def test_controlled_changes_are_within_one_of_their_mean_and_follow_the_matrix() -> None:
    before = people(500)
    spec = PostRandomisation("job", matrix=MATRIX, controlled=True)
    there = np.bincount(before.codes["job"], minlength=4)
    firsts = np.zeros((4, 4))
    whom = int(np.flatnonzero(before.codes["job"] == 0)[0])
    for seed in range(2000):
        after = spec.apply_records(before, np.random.default_rng(seed))
        seen = crossed(before, after, "job", 4)
        assert np.all(np.abs(seen - there[:, None] * np.array(MATRIX)) < 1)
        firsts[0, after.codes["job"][whom]] += 1
    follows(firsts, np.array(MATRIX))


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("controlled", [True, False])
def test_the_order_of_records_is_no_matter(keyed: bool, controlled: bool) -> None:
    records = people(1000, 2, keyed)
    turn = np.random.default_rng(0).permutation(1000)
    spec = PostRandomisation(
        "job", stay=0.5, controlled=controlled, invariant=True, strata=("area",)
    )
    straight = spec.apply_records(records, np.random.default_rng(1))
    again = spec.apply_records(records, np.random.default_rng(1))
    turned = spec.apply_records(records.take(turn), np.random.default_rng(1))
    assert straight.codes["job"].tobytes() == again.codes["job"].tobytes()
    assert np.array_equal(straight.codes["job"][turn], turned.codes["job"])


def test_estimates_and_their_errors_are_unbiased() -> None:
    """Means of 4,000 draws against their exact variance; false alarm rate below one in a million each."""
    true = np.array([[40, 5], [30, 0], [20, 10], [10, 60]])
    matrix = np.array(MATRIX)
    rng = np.random.default_rng(8)
    draws = 4000
    found = []
    for _ in range(draws):
        shown = np.stack(
            [sum(rng.multinomial(true[a, c], matrix[a]) for a in range(4)) for c in range(2)],
            axis=1,
        )
        found.append(estimate(shown, matrix, axis=0))
    values = np.array([f.values for f in found])
    back = np.linalg.inv(matrix.T)
    for c in range(2):
        cov = sum(
            true[a, c] * (np.diag(matrix[a]) - np.outer(matrix[a], matrix[a])) for a in range(4)
        )
        variance = np.diag(back @ cov @ back.T)
        error = 5.2 * np.sqrt(variance / draws)
        assert np.all(np.abs(values[:, :, c].mean(axis=0) - true[:, c]) < error + 1e-9)
        claimed = np.mean([f.standard_error[:, c] ** 2 for f in found], axis=0)
        assert np.allclose(claimed, variance, rtol=0.1, atol=0.5)


def test_estimation_undoes_the_mean_of_the_channel_along_any_axis() -> None:
    true = np.arange(24).reshape(2, 4, 3)
    shown = np.einsum("xay,ab->xby", true, np.array(MATRIX))
    assert np.allclose(estimate(shown, MATRIX, axis=1).values, true)


def test_bounds_are_exact_only_where_nothing_changes() -> None:
    before = people(500)
    spec = PostRandomisation("job", stay=0.3)
    after = spec.apply_records(before, np.random.default_rng(0))
    cases: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        (("sex", "area"), {}, "all"),
        (("sex", "job"), {}, "none"),
        (("sex",), {"where": {"job": ["a"]}}, "none"),
        (({"variable": "job", "total": True}, "sex"), {}, "total"),
    ]
    for by, words, exact in cases:
        true, shown = counted(before, *by, **words), counted(after, *by, **words)
        release = spec.publish(shown)
        assert release.channel is None
        assert np.all((release.least <= true.values) & (true.values <= release.most))
        pinned = release.least == release.most
        assert pinned.all() == (exact == "all")
        assert pinned.any() == (exact != "none")
        if exact == "total":
            assert pinned[-1].all()
            assert not pinned[:-1].any()
        assert np.all(release.most[~pinned] == UNBOUNDED)
    level = PostRandomisation("job", stay=0.3, level="broad")
    broad = counted(before, {"variable": "job", "level": "broad"})
    release = level.publish(broad)
    assert np.array_equal(release.least, release.most)


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"variable": ()}, "needs a variable"),
    ({"variable": "job", "matrix": ((0.5, 0.4), (0, 1))}, "Row 0"),
    ({"variable": ("job", "sex"), "matrix": ((0.5, 0.5), (0.0, 1.0))}, "for one variable"),
    ({"variable": "job", "level": "broad", "matrix": MATRIX}, "without a matrix"),
    ({"variable": "job", "strata": ("job",)}, "cannot be one of the strata"),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES)
def test_a_wrong_parameter_is_one_sentence(words: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        PostRandomisation(**words)


def test_what_cannot_be_done_is_one_sentence() -> None:
    with pytest.raises(InputError, match="has 4 rows; sex has 2 codes"):
        PostRandomisation("sex", matrix=MATRIX).apply_records(people(5), np.random.default_rng(0))
    with pytest.raises(InputError, match="cannot be inverted"):
        estimate([1, 2], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(InputError, match="they must match"):
        estimate([1, 2, 3], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(InputError, match="one column per code"):
        estimate([1, 2], [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    with pytest.raises(InputError, match="one per row"):
        invariant(MATRIX, [1, 2])


def test_nobody_is_no_problem() -> None:
    nobody = people(3).take(np.zeros(0, np.int64))
    assert (
        len(
            PostRandomisation("job", invariant=True).apply_records(nobody, np.random.default_rng(0))
        )
        == 0
    )
