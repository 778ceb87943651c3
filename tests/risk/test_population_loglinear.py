"""Log-linear models: closed forms, a likelihood oracle, degrees of freedom, structural zeros."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize, stats

from examples import examples
from lustrum.model import InputError, Table, TableAxis
from lustrum.numeric import loglinear as fit
from lustrum.numeric.loglinear import _counted_rank, maximal
from lustrum.risk.population import LogLinear

relaxed = settings(deadline=None)  # the first call of a kernel compiles it

cubes = arrays(np.int64, (3, 2, 4), elements=st.integers(1, 30))


def likelihood_oracle(counts: np.ndarray, generators: list[tuple[int, ...]]) -> np.ndarray:
    """Maximise the multinomial likelihood of ``log p = X b`` directly."""
    places = list(product(*(range(size) for size in counts.shape)))
    columns = []
    for generator in generators:
        levels = sorted({tuple(place[a] for a in generator) for place in places})
        columns += [
            [float(tuple(p[a] for a in generator) == level) for p in places] for level in levels
        ]
    X, f = np.array(columns).T, counts.ravel()

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        score = X @ b
        top = score.max()
        p = np.exp(score - top)
        return float(np.log(p.sum()) + top - f @ score / f.sum()), X.T @ (p / p.sum() - f / f.sum())

    found = optimize.minimize(loss, np.zeros(X.shape[1]), jac=True, tol=1e-12).x
    p = np.exp(X @ found)
    return (p / p.sum()).reshape(counts.shape)


@settings(max_examples=examples(8, 60), deadline=None)
@given(cubes)
def test_the_fit_maximises_the_likelihood(counts: np.ndarray) -> None:
    for margins in ([(0, 1), (1, 2), (0, 2)], [(0, 1), (2,)]):
        fitted = LogLinear(margins).fit(counts)
        assert fitted.converged
        assert fitted.probabilities == pytest.approx(likelihood_oracle(counts, margins), abs=2e-5)


@relaxed
@given(cubes)
def test_the_fit_keeps_its_margins(counts: np.ndarray) -> None:
    p = LogLinear("two-way").fit(counts).probabilities
    for axis in range(3):
        assert p.sum(axis=axis) * counts.sum() == pytest.approx(counts.sum(axis=axis), abs=1e-5)


@relaxed
@given(cubes)
def test_decomposable_models_have_their_closed_form(counts: np.ndarray) -> None:
    n = counts.sum()
    own = [counts.sum(axis=tuple(b for b in range(3) if b != a)) / n for a in range(3)]
    assert LogLinear().fit(counts).probabilities == pytest.approx(np.einsum("i,j,k->ijk", *own))
    ij, jk, j = counts.sum(axis=2), counts.sum(axis=0), counts.sum(axis=(0, 2))
    conditional = ij[:, :, None] * jk[None] / j[None, :, None] / n
    chain = LogLinear([(0, 1), (1, 2)]).fit(counts)
    assert chain.probabilities == pytest.approx(conditional)
    assert chain.rounds <= 2
    assert LogLinear(order=3).fit(counts).probabilities == pytest.approx(counts / n)
    assert LogLinear([(1,)]).fit(counts).probabilities == pytest.approx(
        np.broadcast_to(own[1][None, :, None] / 12, (3, 2, 4))
    )


def test_iteration_reaches_the_closed_form_of_independence() -> None:
    counts = np.arange(1, 13).reshape(3, 4)
    closed = LogLinear().fit(counts)
    fitted, _, gap = fit.proportional_fit(
        counts, np.ones((3, 4), dtype=np.bool_), ((0,), (1,)), 1e-12, 10
    )
    assert gap <= 1e-12
    assert closed.rounds == 0
    assert fitted / counts.sum() == pytest.approx(closed.probabilities)


def test_deviance_and_criterion_are_those_of_the_textbook() -> None:
    counts = np.array([[10, 20, 5], [15, 5, 25]])
    found = LogLinear().fit(counts)
    expected = found.probabilities * counts.sum()
    g2 = stats.power_divergence(counts, expected, lambda_="log-likelihood", axis=None).statistic
    assert found.deviance == pytest.approx(g2)
    assert (found.degrees, found.parameters) == (2, 3)
    assert found.aic == pytest.approx(-2 * (counts * np.log(found.probabilities)).sum() + 2 * 3)
    saturated = LogLinear(order=2).fit(counts)
    assert saturated.deviance == pytest.approx(0, abs=1e-9)
    assert (saturated.degrees, saturated.parameters) == (0, 5)


@pytest.mark.parametrize(
    ("shape", "margins", "degrees"),
    [
        ((4, 5), [(0,), (1,)], 3 * 4),
        ((3, 4, 5), [(0, 1), (1, 2), (0, 2)], 2 * 3 * 4),
        ((3, 4, 5), [(0, 1), (1, 2)], 4 * 2 * 4),
        ((3, 4, 5), [(0,), (1,), (2,)], 60 - 1 - 2 - 3 - 4),
        ((2, 2, 2, 3), [(0, 1, 2), (3,)], 24 - 8 - 2),
    ],
)
def test_degrees_of_freedom_have_their_closed_form(
    shape: tuple[int, ...], margins: list[tuple[int, ...]], degrees: int
) -> None:
    found = LogLinear(margins).fit(np.full(shape, 3))
    assert found.degrees == degrees
    assert _counted_rank(found.generators, found.support) == found.rank


def test_a_design_too_large_for_elimination_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(matrix: object) -> int:
        raise InputError("Too long.")

    monkeypatch.setattr(fit, "matrix_rank", refuse)
    assert LogLinear("two-way").fit(np.full((3, 4, 5), 2)).degrees == 2 * 3 * 4


def test_empty_rows_take_their_parameters_with_them() -> None:
    counts = np.array([[5, 3, 2], [0, 0, 0], [1, 4, 6]])
    found = LogLinear().fit(counts)
    assert (found.degrees, found.parameters) == (2, 3)
    assert _counted_rank(found.generators, found.support) == found.rank
    assert not found.probabilities[1].any()


def test_quasi_independence_leaves_structural_zeros_empty() -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(5, 40, size=(4, 4))
    diagonal = np.eye(4, dtype=bool)
    counts[diagonal] = 0
    model = LogLinear(structural=diagonal)
    found = model.fit(counts)
    assert found.converged
    assert found.degrees == 3 * 3 - 4
    assert not found.probabilities[diagonal].any()
    assert found.probabilities.sum(axis=0) * counts.sum() == pytest.approx(
        counts.sum(axis=0), abs=1e-5
    )
    # Off the diagonal the fit is a product of a row and a column factor: odds ratios are 1.
    p = found.probabilities
    assert p[0, 2] * p[1, 3] == pytest.approx(p[0, 3] * p[1, 2])
    populations = model.draw(counts, 5000, np.random.default_rng(1), 100)
    assert not populations[:, diagonal].any()
    assert set(populations.sum(axis=(1, 2)).tolist()) == {5000}


def test_zeros_that_split_a_table_are_counted_exactly() -> None:
    blocks = np.kron(np.eye(2, dtype=np.int64), np.ones((2, 2), dtype=np.int64)) * 5
    found = LogLinear(structural=blocks == 0).fit(blocks)
    assert found.degrees == 2  # one for each of two separate 2 x 2 tables


def test_a_table_brings_its_own_structural_zeros_and_names() -> None:
    values = np.array([[3, 0], [2, 5]])
    table = Table(
        axes=(TableAxis.plain("area", "xy"), TableAxis.plain("faith", "ab")),
        values=values,
        structural=np.array([[False, True], [False, False]]),
    )
    assert LogLinear([("area",), ("faith",)]).fit(table).probabilities[0, 1] == 0
    assert LogLinear([("faith", "area")]).generators(table) == ((0, 1),)


def test_too_few_rounds_are_told_and_not_used() -> None:
    counts = np.array([[[9, 1], [2, 7]], [[3, 8], [6, 1]]])
    model = LogLinear("two-way", tolerance=1e-12, rounds=1)
    assert not model.fit(counts).converged
    with pytest.raises(InputError, match="did not converge in 1 rounds"):
        model.draw(counts, 500, np.random.default_rng(1))


def test_the_mean_population_is_the_sample_and_the_rest_by_probability() -> None:
    sample = np.array([[8, 2, 0], [4, 6, 1]])
    drawn = LogLinear().draw(sample, 421, np.random.default_rng(1), 20_000)
    expected = LogLinear().expected(sample, 421)
    assert expected.sum() == pytest.approx(421)
    # 4.4 standard errors in six cells: false alarm less than once in 10,000.
    error = drawn.std(axis=0) / np.sqrt(20_000)
    assert np.all(np.abs(drawn.mean(axis=0) - expected) <= 4.4 * error)
    assert np.all(drawn >= sample)


def test_models_are_named_in_words_and_margins_made_minimal() -> None:
    assert LogLinear().label == "log-linear, independence"
    assert LogLinear(order=2).label == "log-linear, order 2"
    assert LogLinear([("a", "b"), ("c",)]).label == "log-linear, a x b + c"
    assert maximal([(0,), (0, 1), (1, 0)]) == ((0, 1),)
    assert LogLinear("two-way").generators(np.ones((2, 2, 2))) == ((0, 1), (0, 2), (1, 2))
    assert LogLinear("two-way").generators(np.ones((4,))) == ((0,),)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LogLinear("independent"), "did you mean 'independence'"),
        (lambda: LogLinear([]), "non-empty list"),
        (lambda: LogLinear(["ab"]), "list of tuples"),
        (lambda: LogLinear([()]), "list of tuples"),
        (lambda: LogLinear([(0.5,)]), "list of tuples"),
        (lambda: LogLinear(order=0), "1 or more"),
        (lambda: LogLinear("two-way", order=3), "not both"),
        (lambda: LogLinear(rounds=0), "one round"),
        (lambda: LogLinear([("x",)]).fit([[1, 2]]), "no axis 'x'"),
        (lambda: LogLinear([(2,)]).fit([[1, 2]]), "no axis 2"),
        (lambda: LogLinear().fit([0, 0]), "nobody"),
        (lambda: LogLinear(structural=[1, 0]).fit([1, 2]), "true and false"),
        (lambda: LogLinear(structural=[True]).fit([1, 2]), "shape of the sample"),
        (lambda: LogLinear(structural=[True, False]).fit([1, 2]), "impossible"),
        (lambda: LogLinear().expected([3, 4], 6), "larger than the population"),
        (lambda: LogLinear().expected([3, 4], 8.5), "whole number"),
        (lambda: LogLinear().draw([3, 4], 9, np.random.default_rng(), 0), "1 or more"),
    ],
)
def test_mistakes_are_named(make, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=words):
        make()
