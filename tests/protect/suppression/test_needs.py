"""What is learnt from attempts in vain, what it saves, and how much work first patterns take."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, sparse

from examples import examples
from lustrum.numeric.solve import deviations
from lustrum.numeric.solve.cutting import Cut, stacked
from lustrum.numeric.solve.deviations import DeviationProgram
from lustrum.protect.suppression import AxisSums, SuppressionProblem, suppress
from lustrum.protect.suppression.check import audit_pattern
from lustrum.protect.suppression.search import anew, start
from lustrum.protect.suppression.search.attacks.attack import ProgramAttacks
from lustrum.protect.suppression.search.attacks.cuts import Needs, Slack
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.boxes import protect_by_boxes
from lustrum.protect.suppression.search.greedy import Publisher
from lustrum.protect.suppression.search.heuristic import WitnessedPattern
from lustrum.protect.suppression.search.start import published_pattern


def table(shape: tuple[int, ...], share: float, seed: int) -> SuppressionProblem:
    """A table with all totals whose cells vary in size, some of its inner cells primary."""
    rng = np.random.default_rng(seed)
    full = np.ceil(rng.lognormal(3.0, 1.0, shape)).astype(np.int64)
    for axis in range(len(shape)):
        full = np.concatenate([full, full.sum(axis=axis, keepdims=True)], axis=axis)
    number = np.arange(full.size).reshape(full.shape)
    relations = []
    for axis in range(len(shape)):
        lines = np.moveaxis(number, axis, -1).reshape(-1, full.shape[axis])
        relations += [(int(line[-1]), line[:-1].tolist()) for line in lines]
    inner = number[tuple(slice(0, -1) for _ in shape)].ravel()
    primary = np.sort(rng.choice(inner, max(int(share * inner.size), 2), replace=False))
    level = np.maximum(full.ravel()[primary] // 5, 1)
    axes = tuple(AxisSums(n + 1, ((n, tuple(range(n))),)) for n in shape)
    return SuppressionProblem.of(full.ravel(), relations, primary, level, axes=axes)


@settings(max_examples=examples(5, 32), deadline=None)
@given(st.integers(0, 10_000))
def test_every_safe_pattern_satisfies_what_was_learnt(seed: int) -> None:
    problem = table((3, 3, 3), 0.12, seed)
    tasks = Tasks.of(problem)
    needs = Needs(tasks)
    plain = len(needs.cuts)
    publisher = Publisher.of(tasks, np.arange(len(problem)), 500, needs)
    assert publisher is not None
    best = publisher.first()
    if best is None:
        return
    for _ in range(3):
        publisher.again(best)
    assert plain > 0
    luck = np.random.default_rng(seed)
    safe = 0
    for share in np.linspace(0.2, 0.9, 12):
        pattern = problem.fixed | (publisher.pattern(best) & (share > 0.5))
        pattern |= luck.random(len(problem)) < share
        if not audit_pattern(problem, pattern).safe:
            continue
        safe += 1
        for cut in needs.cuts:
            assert cut.lacks(pattern.astype(np.float64)) < 1e-6
    assert safe > 0


def test_slack_refuses_exactly_what_violates_an_inequality() -> None:
    problem = table((3, 3), 0.3, 1)
    needs = Needs(Tasks.of(problem))
    cells = np.arange(len(problem))
    luck = np.random.default_rng(5)
    for turn in range(60):
        # The later inequalities are learnt while the slack is in use.
        if turn % 2:
            columns = np.sort(luck.choice(len(problem), 5, replace=False))
            needs.cuts.append(Cut(columns.astype(np.intp), luck.uniform(0.2, 1.0, 5), 1.0))
        if turn % 20 == 0:
            shut = luck.random(len(problem)) < 0.1
            slack = Slack(needs, cells, shut)
        shut = shut | (luck.random(len(problem)) < 0.02)
        slack.publish(shut)
        some = luck.choice(len(problem), 2, replace=False)
        open_cells = (~shut).astype(np.float64)
        before = [cut.lacks(open_cells) for cut in needs.cuts]
        open_cells[some] = 0.0
        after = [cut.lacks(open_cells) for cut in needs.cuts]
        forbidden = any(b > 1e-5 and b > a for a, b in zip(before, after, strict=True))
        places = some[~shut[some]]
        assert slack.allowed([places], 2) == ([] if forbidden else [0])
        # A second group is judged as if the first were published already.
        if not forbidden and places.size == 2:
            assert slack.allowed([places[:1], places[1:]], 2) == [0, 1]
            assert slack.allowed([places[:1], places[1:]], 1) == [0]


def test_inequalities_read_by_cell_grow_with_what_is_learnt() -> None:
    problem = table((3, 3), 0.3, 1)
    needs = Needs(Tasks.of(problem))
    luck = np.random.default_rng(3)
    for more in (0, 1, 0, 30):
        for _ in range(more):
            columns = np.sort(luck.choice(len(problem), 4, replace=False))
            needs.cuts.append(Cut(columns, luck.uniform(0.2, 1.0, 4), 1.0))
        columns, sides = needs.by_column()
        matrix, plain = stacked(needs.cuts, len(problem))
        assert sides.tolist() == plain.tolist()
        assert (columns.toarray() == matrix.toarray()).all()


@pytest.mark.parametrize("seed", [5, 9])
def test_a_pattern_is_given_up_only_if_it_costs_more_than_the_limit(seed: int) -> None:
    problem = table((4, 4, 4), 0.12, seed)
    tasks = Tasks.of(problem)
    publisher = Publisher.of(tasks, np.arange(len(problem)), 500)
    assert publisher is not None
    best = publisher.first()
    assert best is not None
    given_up = 0
    for number in range(8):
        made = []
        limits = (np.inf, best.cost, 0.9 * best.cost)
        for limit in limits:
            publisher.luck = np.random.default_rng(number)
            made.append(publisher.again(best, limit))
        plain = made[0]
        assert plain is not None
        for limit, other in zip(limits[1:], made[1:], strict=True):
            if other is None:
                given_up += 1
                assert plain.cost > limit
            else:
                assert (other.shut == plain.shut).all()
    assert given_up > 0


def test_patterns_made_anew_in_both_ways_are_safe_and_repeatable() -> None:
    problem = table((5, 5, 5), 0.1, 4)
    point = np.random.default_rng(1).random(len(problem))
    made = []
    for _ in range(2):
        attacks = ProgramAttacks(Tasks.of(problem))
        state, first = published_pattern(attacks, 1, lambda what, cost, bound: None)
        assert first is not None
        patterns, ways = [state.suppressed], set()
        for _ in range(8):
            turns = list(first.anew._turns)
            other = first.anew.pattern(patterns[-1], point)
            assert other is not None
            patterns.append(other.suppressed)
            ways.add(int(first.anew._turns[1] > turns[1]))
        assert ways == {0, 1}
        made.append(np.array(patterns))
    assert (made[0] == made[1]).all()
    assert len({row.tobytes() for row in made[0]}) > 2
    for pattern in made[0]:
        assert audit_pattern(problem, pattern).safe


def test_patterns_around_a_cell_leave_distant_cells_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(anew, "_ANEW", 0)
    monkeypatch.setattr(anew, "_AROUND", 12)
    problem = table((5, 5, 5), 0.1, 4)
    attacks = ProgramAttacks(Tasks.of(problem))
    state, first = published_pattern(attacks, 1, lambda what, cost, bound: None)
    assert first is not None
    first.anew.whole = None
    for _ in range(4):
        other = first.anew.pattern(state.suppressed)
        assert other is not None
        # A cell that the others give away protects nothing; all others are kept.
        gone = state.suppressed & ~other.suppressed
        assert not _moves(problem, other.suppressed | gone)[gone].any()


def _moves(problem: SuppressionProblem, suppressed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which suppressed cells the others do not give away."""
    cells = np.flatnonzero(suppressed)
    basis = linalg.null_space(problem.relations[:, cells].toarray())
    out = np.zeros(suppressed.size, dtype=np.bool_)
    out[cells] = np.abs(basis).max(axis=1, initial=0.0) > 1e-9
    return out


def test_known_witnesses_need_no_programs() -> None:
    problem = table((5, 5, 5), 0.1, 4)
    tasks = Tasks.of(problem)
    state, first = published_pattern(ProgramAttacks(tasks), 1, lambda what, cost, bound: None)
    assert first is not None
    cells = np.flatnonzero(state.suppressed)
    cold, warm = (Publisher.of(tasks, cells, 500) for _ in range(2))
    assert cold is not None
    assert warm is not None
    for publisher in (cold, warm):
        publisher.stay_hidden = np.ones(cells.size, dtype=np.bool_)
    found = cold.first()
    assert found is not None
    again = warm.first(known=[rows.copy() for rows in found.pool])
    assert again is not None
    assert (again.shut == found.shut).all()
    assert cold.joint.programs > warm.joint.programs == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_patterns_of_a_table_of_three_variables_take_little_work(seed: int) -> None:
    # Work is counted in programs. Without what attempts in vain teach, three patterns of the first table took
    # 1,350; where witnesses were any furthest deviations, and not those that move least, the second took 572.
    problem = table((11, 11, 11), 0.08, seed)
    boxed = protect_by_boxes(problem, lambda what, cost, bound: None)
    assert boxed is not None
    tasks = Tasks.of(problem)
    publisher = Publisher.of(tasks, np.flatnonzero(boxed.suppressed | problem.fixed), 500)
    assert publisher is not None
    found = publisher.first()
    assert found is not None
    for _ in range(2):
        publisher.again(found)
    assert publisher.joint.programs < 400


def test_no_pattern_near_a_point_is_looked_for_beyond_the_limit_of_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Such a pattern takes as much work as the first one: on a large table it took three times the time allowed.
    problem = table((4, 4, 4), 0.1, 1)
    asked = []
    near = start.FirstPattern.near

    def counted(self: start.FirstPattern, x: npt.NDArray[np.float64]) -> WitnessedPattern | None:
        asked.append(x)
        return near(self, x)

    monkeypatch.setattr(start.FirstPattern, "near", counted)
    cut_short = suppress(problem, algorithm="exact", work=1, workers=1)
    assert cut_short.safe
    assert cut_short.lower_bound > 0
    assert not asked
    suppress(problem, algorithm="exact", work=400, workers=1)
    assert asked


def test_a_program_that_goes_in_circles_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    luck = np.random.default_rng(3)
    matrix = sparse.csr_array(luck.choice([-1, 0, 0, 1], (6, 15)))
    ends = luck.uniform(0.5, 3.0, (8, 15))

    def reaches(program: DeviationProgram) -> list[float]:
        every = matrix.T.tocsr()
        return [program.reasons(every, k, (k, 1, -e, e, 9.0))[0] for k, e in enumerate(ends)]

    plain = DeviationProgram(matrix)
    expected = reaches(plain)
    assert plain.restarts == 0
    monkeypatch.setattr(deviations, "_LEAST_PIVOTS", 0)
    monkeypatch.setattr(deviations, "_PIVOTS_EACH", 0)
    short = DeviationProgram(matrix)
    assert np.allclose(reaches(short), expected)
    assert short.restarts > 0
