"""The design of matrices: conditions met, entropy largest, published matrices reproduced."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, reject, settings
from scipy.optimize import LinearConstraint, linprog, minimize

from examples import examples
from lustrum.model import InputError, MatrixChannel
from lustrum.protect import RoundingChannel
from lustrum.protect.perturbation import PerturbationDesign, differencing_risk

# The solver alone, against a second one.
from lustrum.protect.perturbation.design import _program, design

# Four perturbation tables made with the R package ptable by the national statistical institutes of the
# project on the harmonised protection of European census data, as published for its test material
# (repository sdcTools/CensusProtection on GitHub: ptable_d2_v108_js1, ptab2, ptab6 and ptab3). Each row
# belongs to a true count and gives the probability of each published value.
PUBLISHED: dict[str, dict[int, dict[int, float]]] = {}
with (Path(__file__).parent / "ptables.csv").open(encoding="utf-8") as lines:
    for record in csv.DictReader(lines):
        rows_of_table = PUBLISHED.setdefault(record["table"], {})
        rows_of_table.setdefault(int(record["i"]), {})[int(record["j"])] = float(record["p"])


@pytest.mark.parametrize(
    ("table", "digits", "parameters"),
    [
        ("ptable_d2_v108_js1", 10, {"largest_change": 2, "variance": 1.08, "blocked": (1,)}),
        ("ptab2", 8, {"largest_change": 8, "variance": 3, "stay": 0.6, "monotone": "below"}),
        ("ptab6", 8, {"largest_change": 8, "variance": 2, "stay": 0.6, "monotone": "below"}),
        (
            "ptab3",
            8,
            {
                "largest_change": 8,
                "variance": 3,
                "stay": (0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.3),
                "monotone": "below",
            },
        ),
    ],
)
def test_published_matrices_are_reproduced_to_all_printed_digits(
    table: str, digits: int, parameters: dict[str, object]
) -> None:
    matrix = design(**parameters).matrix  # type: ignore[arg-type]
    published = PUBLISHED[table]
    assert len(matrix) == len(published)
    for count, row in published.items():
        for value in range(matrix.shape[1]):
            # The last digit was rounded, after a solver had stopped within its own tolerance.
            assert matrix[count, value] == pytest.approx(row.get(value, 0.0), abs=3 * 10.0**-digits)


def test_the_first_example_of_the_package_is_reproduced() -> None:
    """Its introduction prints 0.0638 and 0.383 for the last row with changes up to 2 and variance 1."""
    row = design(2, 1).matrix[2]
    assert row.round(4).tolist() == [0.0638, 0.2447, 0.383, 0.2447, 0.0638]


@settings(max_examples=examples(10, 80))
@given(
    change=st.integers(2, 6),
    variance=st.floats(0.3, 4.0),
    blocked=st.sampled_from([(), (1,), (1, 2), (2,)]),
    stay=st.sampled_from([None, 0.2, 0.5]),
    monotone=st.sampled_from(["no", "below", "both"]),
)
def test_every_condition_is_met(
    change: int, variance: float, blocked: tuple[int, ...], stay: float | None, monotone: str
) -> None:
    try:
        channel = design(change, variance, blocked, stay, monotone)  # type: ignore[arg-type]
    except InputError:
        reject()
    matrix = channel.matrix
    values = np.arange(matrix.shape[1])
    assert matrix[0, 0] == 1
    assert np.all(matrix >= 0)
    for count in range(1, len(matrix)):
        row, moved = matrix[count], values - count
        assert row.sum() == pytest.approx(1, abs=1e-12)
        assert row @ moved == pytest.approx(0, abs=1e-9)
        assert row @ moved**2 == pytest.approx(variance, abs=1e-8)
        assert not row[np.abs(moved) > change].any()
        assert not row[list(blocked)].any()
        if stay is not None and count not in blocked:
            assert row[count] == pytest.approx(stay, abs=1e-9)
        allowed = [v for v in values if abs(v - count) <= change and v not in blocked]
        for near, far in itertools.pairwise([v for v in allowed if v <= count][::-1]):
            assert monotone == "no" or row[far] <= row[near] + 1e-9
        for near, far in itertools.pairwise([v for v in allowed if v >= count]):
            assert monotone != "both" or row[far] <= row[near] + 1e-9
    above = channel.transitions(np.array([1000]))
    assert np.allclose(above.probability, above.probability[::-1], atol=1e-9)
    assert np.all(np.abs(above.published - 1000) <= change)


@pytest.mark.parametrize("monotone", ["no", "below", "both"])
@pytest.mark.parametrize(
    ("change", "variance", "stay"), [(3, 1.2, None), (4, 1.3, 0.5), (5, 1.8, 0.45)]
)
def test_no_other_solver_finds_a_larger_entropy(
    monotone: str, change: int, variance: float, stay: float | None
) -> None:
    """Against a general constrained minimiser, for every row."""
    wanted = PerturbationDesign(change, variance, (), stay, monotone)  # type: ignore[arg-type]
    matrix = wanted.channel().matrix
    for count in range(1, len(matrix)):
        values = np.arange(max(count - change, 0), count + change + 1)
        moved = (values - count).astype(float)
        own = matrix[count, values]
        rows = [np.ones_like(moved), moved, moved**2]
        to = [1.0, 0.0, variance]
        if stay is not None:
            rows.append((moved == 0).astype(float))
            to.append(stay)
        limits = [LinearConstraint(np.array(rows), to, to)]
        slopes = wanted._steps(moved)
        if len(slopes):
            limits.append(LinearConstraint(slopes, -np.inf, 0))
        other = minimize(
            lambda p: float((p * np.log(p)).sum()),
            np.full(moved.size, 1 / moved.size),
            jac=lambda p: np.log(p) + 1,
            bounds=[(1e-12, 1)] * moved.size,
            constraints=limits,
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert other.success
        held = own[own > 0]
        assert float((held * np.log(held)).sum()) <= other.fun + 1e-7
        assert np.allclose(own, other.x, atol=2e-4)


def test_a_variance_that_cannot_be_is_named_with_the_one_that_can() -> None:
    """To go from 1 to 0 half of the time and to 2 otherwise is the least that blocks a 1."""
    with pytest.raises(InputError, match=r"count 1 has a variance of 0\.5; the least .* is 1\."):
        design(3, 0.5, blocked=(1,))
    with pytest.raises(InputError, match=r"count 1 has a variance of 2\.5; the largest .* is 2\."):
        design(2, 2.5)
    assert design(3, 1.0, blocked=(1,)).matrix[1, :3].round(9).tolist() == [0.5, 0, 0.5]
    assert design(2, 2.0).matrix[1].round(9).tolist() == [0.666666667, 0, 0, 0.333333333, 0]


def test_other_conditions_that_cannot_be_are_one_sentence() -> None:
    with pytest.raises(InputError, match="lie on one side"):
        design(1, 0.5, blocked=(1, 2))
    with pytest.raises(InputError, match="lie on one side"):
        design(1, 0.5, blocked=(1, 2, 3, 4))
    with pytest.raises(InputError, match=r"cannot stay with probability 0\.1; the other .* to 1"):
        design(1, 0.5, stay=0.1, monotone="both")
    for wrong in (
        (0, 1.0),
        (2, -1.0),
        (2, "1"),
        (2, 1.0, (0,)),
        (2, 1.0, (), 1.5),
        (2, 1.0, (), 0.5, "yes"),
    ):
        with pytest.raises(InputError, match=r"^A designed matrix: '\w+' must be"):
            design(*wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="needs 2 probabilities"):
        design(2, 1.0, stay=(0.5,))
    with pytest.raises(InputError, match="of 4 or more"):
        design(2, 1.2, blocked=(1,), cap=3)


def test_a_higher_cap_repeats_the_last_row() -> None:
    low, high = design(2, 0.9), design(2, 0.9, cap=5)
    assert high.cap == 5
    for count in (3, 5, 9):
        a, b = (c.transitions(np.array([count])) for c in (low, high))
        assert a.published.tolist() == b.published.tolist()
        assert np.allclose(a.probability, b.probability, atol=1e-9)


@given(published=st.integers(0, 30), base=st.sampled_from([None, 1, 2]))
def test_support_of_a_wide_matrix_is_what_it_can_reach(published: int, base: int | None) -> None:
    matrix = [[1, 0, 0, 0, 0], [0.5, 0, 0.5, 0, 0], [0.2, 0, 0.5, 0, 0.3]]
    channel = MatrixChannel(matrix, base)
    true = np.arange(3 if base is None else 60)
    rows = channel.transitions(true)
    assert np.allclose(np.bincount(rows.origin, weights=rows.probability), 1)
    reaching = true[rows.origin[rows.published == published]]
    low, high = channel.support(np.array([published]))
    if reaching.size:
        assert (low[0], high[0]) == (reaching.min(), reaching.max())
    else:
        assert low[0] > high[0]


def test_a_wide_matrix_is_checked_like_a_square_one() -> None:
    with pytest.raises(InputError, match="a column for every row"):
        MatrixChannel([[1.0], [1.0]])
    with pytest.raises(InputError, match="adds up to"):
        MatrixChannel([[0.5, 0.4]])
    with pytest.raises(InputError, match="residue base"):
        MatrixChannel([[0.5, 0.5]], 2)


def given_away(channel: object, parts: int, largest: int, keyed: bool) -> dict[object, object]:
    """The test by brute force: every truth, every way to publish it, and who else could have been it."""
    top = 4 * largest + 40
    rows = channel.transitions(np.arange(top))  # type: ignore[attr-defined]
    chance: dict[int, dict[int, float]] = {}
    for origin, shown, p in zip(rows.origin, rows.published, rows.probability, strict=True):
        if p > 0:
            chance.setdefault(int(origin), {})[int(shown)] = float(p)
    behind: dict[object, dict[tuple[int, ...], float]] = {}
    for truth in itertools.product(range(2 * largest + 12), repeat=parts):
        for shown in itertools.product(*(chance[t] for t in truth)):
            own = float(np.prod([chance[t][s] for t, s in zip(truth, shown, strict=True)]))
            filled = [k for k in range(parts) if truth[k]]
            totals = chance[sum(truth)]
            if keyed and len(filled) == 1:
                totals = {shown[filled[0]]: 1.0}
            for total, p in totals.items():
                behind.setdefault((shown, total), {})[truth] = own * p
    found = {}
    for (shown, total), truths in behind.items():  # type: ignore[misc]
        inside = {t: p for t, p in truths.items() if max(t) <= largest}
        if not inside or list(shown) != sorted(shown):
            continue
        certain = []
        for k in range(parts):
            alone = {t for t in chance if shown[k] in chance[t]}
            left = {t[k] for t in truths}
            certain.append(next(iter(left)) if len(left) == 1 and len(alone) > 1 else None)
        if any(c is not None for c in certain):
            found[shown, total] = (tuple(certain), max(inside.values()))
    return found


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize(
    "channel",
    [design(2, 0.9), design(2, 1.08, (1,)), RoundingChannel(3)],
    ids=["D2", "D2js1", "b3"],
)
def test_differencing_finds_what_brute_force_finds(channel: object, keyed: bool) -> None:
    report = differencing_risk(channel, 2, 4, small=0, keyed=keyed)  # type: ignore[arg-type]
    brute = given_away(channel, 2, 4, keyed)
    assert {(p.parts, p.total): p.certain for p in report.patterns} == {
        k: v[0]  # type: ignore[index]
        for k, v in brute.items()
    }
    for pattern in report.patterns:
        assert pattern.probability == pytest.approx(brute[pattern.parts, pattern.total][1])  # type: ignore[index]


def test_ones_beside_an_empty_margin_are_certain() -> None:
    """Changes up to 2, published 1 and 1 with total 0: only 1 and 1 can be behind it."""
    channel = design(2, 0.9)
    report = differencing_risk(channel, 2, 3)
    pattern = next(p for p in report.patterns if (p.parts, p.total) == ((1, 1), 0))
    assert pattern.certain == pattern.truth == (1, 1)
    expected = channel.matrix[1, 1] ** 2 * channel.matrix[2, 0]
    assert pattern.probability == pytest.approx(expected)
    assert not report.safe
    assert str(report).startswith("Not safe")


def test_exposure_is_the_probability_that_a_simulated_line_is_given_away() -> None:
    """Five standard errors of 200,000 draws; false alarm rate below one in a million."""
    channel = design(2, 0.9)
    report = differencing_risk(channel, 2, 3)
    patterns = {(p.parts, p.total) for p in report.patterns}
    rng, draws = np.random.default_rng(3), 200_000
    for truth in [(1, 1), (0, 2), (1, 3)]:
        shown = []
        for value in (*truth, sum(truth)):
            row = channel.transitions(np.array([value]))
            shown.append(rng.choice(row.published, size=draws, p=row.probability))
        parts = np.sort(np.stack(shown[:2], axis=1), axis=1)
        hits = np.mean(
            [
                ((a, b), t) in patterns
                for a, b, t in zip(*parts.T.tolist(), shown[2].tolist(), strict=True)
            ]
        )
        p = report.exposed.get(truth, 0.0)
        assert abs(hits - p) <= 5 * np.sqrt(p * (1 - p) / draws) + 1e-12


def test_a_matrix_that_hides_everything_is_safe() -> None:
    report = differencing_risk(RoundingChannel(5), 2, 5)
    assert report.safe
    assert report.worst == 0
    assert str(report).startswith("Safe")


def test_with_keys_zeros_must_stay() -> None:
    moving = MatrixChannel([[0.5, 0.5, 0], [0.25, 0.5, 0.25]], 1)
    with pytest.raises(InputError, match="zeros must stay"):
        differencing_risk(moving, keyed=True)
    with pytest.raises(InputError, match="2 parts or more"):
        differencing_risk(moving, parts=1)


@pytest.mark.parametrize("monotone", ["below", "both"])
def test_conditions_that_hold_anyway_do_not_change_a_row(monotone: str) -> None:
    """Nearer values are likelier without being told; the search for the best row must not stop at them."""
    free = design(largest_change=12, variance=1.08).matrix
    told = design(largest_change=12, variance=1.08, monotone=monotone).matrix  # type: ignore[arg-type]
    assert np.abs(free[12] - told[12]).max() < 1e-9


def test_linear_programs_have_the_least_goal_that_scipy_finds() -> None:
    rng = np.random.default_rng(3)
    found = none = 0
    for _ in range(150):
        outcomes = int(rng.integers(2, 12))
        change = np.sort(rng.choice(np.arange(-9, 10), outcomes, replace=False)).astype(float)
        equal = np.stack([np.ones(outcomes), np.abs(change), change**2])[: rng.integers(1, 4)]
        to = np.array([1.0, rng.uniform(0, 6), rng.uniform(0, 40)])[: len(equal)]
        below = np.zeros((int(rng.integers(0, outcomes)), outcomes))
        for row, pair in enumerate(rng.integers(0, outcomes, (len(below), 2))):
            below[row, pair[0]] += 1.0
            below[row, pair[1]] -= 1.0
        goal = rng.integers(-3, 4, outcomes).astype(float)
        limits = {"A_ub": below, "b_ub": np.zeros(len(below))} if len(below) else {}
        best = linprog(goal, A_eq=equal, b_eq=to, bounds=(0.0, 1.0), **limits)
        point = _program(goal, equal, to, below)
        assert (point is None) == (best.x is None)
        if point is None:
            none += 1
            continue
        found += 1
        assert float((goal * point).sum()) == pytest.approx(best.fun, abs=1e-8)
        assert (equal * point).sum(axis=1) == pytest.approx(to, abs=1e-8)
        assert ((below * point).sum(axis=1) <= 1e-8).all()
        assert point.min() >= 0
    assert min(found, none) > 20
