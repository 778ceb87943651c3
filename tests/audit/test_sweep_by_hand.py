"""Sweeps with a solver whose answers are written down, and small systems one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from audit.test_bounds_hold import systems
from lustrum.audit import ContradictionError, Knowledge, bounds
from lustrum.audit.bounding.sweep import BoundSweep, Impossible, Progress, Watch
from lustrum.audit.knowledge.reduce import pieces
from lustrum.numeric.solve import Highs, LinearProblem, Optimum, Outcome
from solve.scipy_highs import ScipyHighs

SOLVERS: tuple[Any, ...] = (None, Highs(), ScipyHighs())


@pytest.mark.parametrize("k", range(9))
def test_one_small_system_has_the_bounds_of_all_its_tables(k: int) -> None:
    known, tables = next(systems(20 + k, 1))
    least, most = tables.min(axis=0), tables.max(axis=0)
    told: list[Progress] = []
    exact = bounds(known, integer=True, solver=SOLVERS[k % 3], workers=1, progress=told.append)
    assert exact.low.tolist() == least.tolist()
    assert exact.high.tolist() == most.tolist()
    assert exact.sharp.all()
    for before, after in pairwise(told):
        assert before.settled <= after.settled
        assert before.programs <= after.programs
    if told:
        assert told[-1].settled == told[-1].asked
        assert told[-1].programs == exact.programs + exact.searches + exact.flows
    linear = bounds(known, solver=SOLVERS[k % 3], workers=1)
    assert linear.searches == 0
    assert (linear.low <= least).all()
    assert (linear.high >= most).all()
    assert linear.low[linear.sharp].tolist() == least[linear.sharp].tolist()
    assert linear.high[linear.sharp].tolist() == most[linear.sharp].tolist()


@pytest.mark.parametrize("k", range(6))
def test_a_walk_towards_bounds_reaches_them_or_leaves_them_to_a_search(
    k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Walks are for large pieces; here they walk in small ones, with few steps."""
    monkeypatch.setattr("lustrum.audit.bounding.lattice_walk.LEAST", 1)
    monkeypatch.setattr("lustrum.audit.bounding.sweep._FEW", 1)
    monkeypatch.setattr("lustrum.audit.bounding.sweep._TRIES", (0, 40, 40))
    known, tables = next(equations(30 + k))
    exact = bounds(known, integer=True, solver=Highs(), workers=1)
    assert exact.low.tolist() == tables.min(axis=0).tolist()
    assert exact.high.tolist() == tables.max(axis=0).tolist()
    assert exact.sharp.all()


def equations(seed: int) -> Iterator[tuple[Knowledge, np.ndarray]]:
    """Systems of equations alone, with at least three tables."""
    for known, tables in systems(seed, 60):
        if len(tables) >= 3 and bool((known.fact_low == known.fact_high).all()):
            yield known, tables


class Scripted:
    """A solver whose answers are written down, and that remembers what it was asked."""

    def __init__(self, *answers: Optimum) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[list[float], bool, float | None]] = []
        self.loads: list[LinearProblem] = []
        self.seconds: list[float | None] = []
        self.twin: Scripted = self

    def load(self, problem: LinearProblem) -> Any:
        self.loads.append(problem)
        return self

    def again(self) -> Any:
        return self.twin

    def minimise(
        self,
        cost: Any,
        *,
        whole: bool = False,
        seconds: float | None = None,
        target: float | None = None,
        **_: Any,
    ) -> Optimum:
        self.asked.append((cost.tolist(), whole, target))
        self.seconds.append(seconds)
        return self.answers.pop(0)


def answer(
    bound: float, point: list[float] | None = None, outcome: Outcome = Outcome.OPTIMAL
) -> Optimum:
    return Optimum(outcome, bound, None if point is None else np.array(point))


KNOWN = Knowledge.of("abc").within([0, 0, 1], [4, 8, 5]).fact({"a": 1, "b": 2, "c": 3}, 14, 14)


def sweep(
    *answers: Optimum, known: Knowledge = KNOWN, asked: tuple[int, ...] = (0, 1, 2)
) -> BoundSweep:
    """A sweep over all cells with a scripted solver."""
    every = np.ones(len(known), dtype=np.bool_)
    (piece,) = pieces(known, known.low, known.high, every)
    watch = Watch(2 * len(asked))
    return BoundSweep(piece, known, np.array(asked), Scripted(*answers), watch)


def ask(
    question: int, *answers: Optimum, known: Knowledge = KNOWN, hard: bool = False
) -> BoundSweep:
    """What is known after one question, added to what was known before."""
    one = sweep(*answers, known=known)
    one.take(one.answer(np.array([question]), hard=hard))
    return one


@pytest.mark.parametrize(
    ("proven", "whole", "real"),
    [
        (0.4, 1, 0.4),
        (1.0000005, 1, 1.0000005),
        (1.00001, 2, 1.00001),
        (-3.0, 0, 0),
        (-np.inf, 0, 0),
    ],
)
def test_a_lower_bound_is_drawn_in_and_never_out(proven: float, whole: float, real: float) -> None:
    cut = Outcome.CUT_SHORT
    assert ask(0, answer(proven, outcome=cut)).low.tolist() == [whole, 0, 1]
    found = ask(0, answer(proven, outcome=cut), known=KNOWN.relaxed())
    assert found.low.tolist() == [real, 0, 1]
    assert not found.sharp.any()
    assert found.high.tolist() == [4, 8, 5]


@pytest.mark.parametrize(
    ("proven", "whole", "real"),
    [(-3.4, 3, 3.4), (-2.9999995, 3, 2.9999995), (-2.9, 2, 2.9), (-9.0, 4, 4), (-np.inf, 4, 4)],
)
def test_an_upper_bound_is_drawn_in_and_never_out(proven: float, whole: float, real: float) -> None:
    cut = Outcome.CUT_SHORT
    assert ask(1, answer(proven, outcome=cut)).high.tolist() == [whole, 8, 5]
    found = ask(1, answer(proven, outcome=cut), known=KNOWN.relaxed())
    assert found.high.tolist() == [real, 8, 5]
    assert found.low.tolist() == [0, 0, 1]
    assert not found.sharp.any()


def test_a_question_asks_for_one_cell_and_its_bound() -> None:
    one = ask(4, answer(1.0), hard=True)
    two = ask(5, answer(-5.0), hard=True)
    assert one.solver.asked == [([0, 0, 1], True, 1.0)]  # type: ignore[attr-defined]
    assert two.solver.asked == [([0, 0, -1], True, -5.0)]  # type: ignore[attr-defined]
    linear = ask(5, answer(-5.0))
    assert linear.solver.asked == [([0, 0, -1], False, None)]  # type: ignore[attr-defined]
    endless = replace(KNOWN, high=np.array([2**62, 8, 5]))
    free = ask(1, answer(-np.inf, outcome=Outcome.CUT_SHORT), known=endless, hard=True)
    assert free.solver.asked == [([-1, 0, 0], True, None)]  # type: ignore[attr-defined]
    assert (one.watch.programs, one.watch.searches) == (0, 1)
    assert (linear.watch.programs, linear.watch.searches) == (1, 0)


def test_a_bound_without_an_end_is_reached_by_a_solver_that_says_so() -> None:
    endless = replace(
        KNOWN,
        low=np.array([-(2**62), 0, 1]),
        high=np.array([2**62, 8, 5]),
        fact_high=np.array([99]),
    )
    for kind in (endless, endless.relaxed()):
        one = sweep(*[answer(-np.inf, outcome=Outcome.UNBOUNDED)] * 2, known=kind)
        one.take(one.answer(np.array([0, 1]), hard=False))
        assert (one.low[0], one.high[0]) == (-np.inf, np.inf)
        assert (one.least[0], one.most[0]) == (-np.inf, np.inf)
        assert one.sharp.tolist() == [True, False, False]


def test_a_real_bound_is_reached_at_an_optimum_and_nowhere_else() -> None:
    real = KNOWN.relaxed()
    low = ask(0, answer(0.5), known=real)
    assert (low.least.tolist(), low.most.tolist()) == ([0.5] + [np.inf] * 2, [-np.inf] * 3)
    assert not low.sharp.any()
    high = ask(3, answer(-6.5), known=real)
    assert not high.sharp.any()
    assert high.most.tolist() == [-np.inf, 6.5, -np.inf]
    assert high.least.tolist() == [np.inf] * 3
    whole = ask(0, answer(0.5))
    assert whole.least.tolist() == [np.inf] * 3
    assert whole.open().tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("point", "counts"),
    [
        ([1, 5, 1], True),
        ([1.0000005, 4.9999995, 1], True),
        ([1.5, 4.75, 1], False),  # fits, but is not whole
        ([2, 5, 1], False),  # whole, but adds up to 15
        ([-1, 6, 1], False),  # whole, but below a bound
        ([1.00001, 5, 1], False),  # too far from a whole number
    ],
)
def test_only_whole_tables_that_fit_are_witnesses(point: list[float], counts: bool) -> None:
    found = ask(0, answer(0.0, point))
    assert found.least.tolist() == ([1, 5, 1] if counts else [np.inf] * 3)
    assert found.most.tolist() == ([1, 5, 1] if counts else [-np.inf] * 3)


def test_a_cell_is_sharp_only_where_both_bounds_are_reached() -> None:
    assert not ask(1, answer(-4.0, [4, 2, 2])).sharp.any()
    assert not ask(0, answer(0.0, [0, 4, 2])).sharp.any()
    both = sweep(answer(0.0, [0, 4, 2]), answer(-4.0, [4, 2, 2]))
    both.take(both.answer(np.array([0, 1]), hard=False))
    assert both.sharp.tolist() == [True, False, False]


def test_sums_meet_tables_that_are_witnesses_only_if_they_count() -> None:
    """Of whole cells a table of fractions reaches nothing; of real ones it does."""
    for known, least in ((KNOWN, [np.inf] * 3), (KNOWN.relaxed(), [1.5, 4.75, 1])):
        one = sweep(answer(-9.0, [1.5, 4.75, 1], Outcome.CUT_SHORT), known=known)
        one.random_sums()
        assert len(one.solver.asked) == 1  # type: ignore[attr-defined]
        assert one.least.tolist() == least
        assert one.most.tolist() == [-v if v == np.inf else v for v in least]


def test_every_table_on_the_way_is_a_witness_for_all_cells() -> None:
    one = sweep(answer(0.0, [1, 5, 1]), answer(0.0, [3, 1, 3]))
    for question in (0, 2):
        one.take(one.answer(np.array([question]), hard=True))
    assert (one.least.tolist(), one.most.tolist()) == ([1, 1, 1], [3, 5, 3])
    assert one.open().tolist() == [0, 1, 2, 3, 5]
    assert one.blocks(hard=True)[0].tolist() == [0, 1, 2, 3, 5]
    some = sweep(asked=(2, 0))
    assert some.open().tolist() == [0, 1, 4, 5]


def test_real_tables_are_witnesses_at_bounds_that_they_nearly_touch() -> None:
    real = KNOWN.relaxed()
    endless = replace(real, high=np.array([4, 8, 2**62]))
    low = ask(0, answer(-np.inf, [1, 1, 1.0000002], Outcome.CUT_SHORT), known=endless)
    assert low.least.tolist() == [1, 1, 1]
    found = ask(0, answer(-np.inf, [4e-7, 7.9999997, 1.1], Outcome.CUT_SHORT), known=real)
    assert found.least.tolist() == [0, 8, 1.1]
    assert found.most.tolist() == [0, 8, 1.1]
    found = ask(0, answer(-np.inf, [4e-6, 7.999997, 1.1], Outcome.CUT_SHORT), known=real)
    assert found.least.tolist() == [4e-6, 7.999997, 1.1]
    assert found.most.tolist() == [4e-6, 7.999997, 1.1]


def test_what_does_not_fit_is_named_by_its_cell() -> None:
    known = Knowledge.of("zabc").within([3, 0, 0, 1], [3, 4, 8, 5])
    known = known.fact({"a": 1, "b": 2, "c": 3}, 14, 14)
    for hard in (False, True):
        one = sweep(answer(np.inf, outcome=Outcome.INFEASIBLE), known=known)
        with pytest.raises(Impossible) as raised:
            one.answer(np.array([3]), hard=hard)
        assert (raised.value.cell, raised.value.whole) == (2, hard)


def test_a_search_among_whole_tables_starts_from_the_bounds_known_by_then() -> None:
    one = sweep(answer(0.4), answer(-3.2), answer(1.0, [2, 3, 2]))
    one.take(one.answer(np.array([0, 1]), hard=False))
    assert one.solver.loads[-1].low.tolist() == [0, 0, 1]  # type: ignore[attr-defined]
    one.loaded = one.solver  # type: ignore[assignment]  # of linear programs, in wider bounds
    one.take(one.answer(np.array([0]), hard=True))
    assert one.solver.loads[-1].low.tolist() == [1, 0, 1]  # type: ignore[attr-defined]
    assert one.solver.loads[-1].high.tolist() == [3, 8, 5]  # type: ignore[attr-defined]
    assert len(one.solver.loads) == 2  # type: ignore[attr-defined]


def test_blocks_work_apart_until_their_answers_are_taken() -> None:
    one = sweep(answer(0.4, [2, 3, 2]), answer(-3.2, [1, 5, 1]))
    first = one.answer(np.array([0]), hard=False)
    second = one.answer(np.array([1]), hard=False)
    assert one.low.tolist() == [0, 0, 1]
    assert one.least.tolist() == [np.inf] * 3
    assert (first.low[0], second.low[0]) == (1, 0)
    one.take(first)
    one.take(second)
    assert (one.low.tolist(), one.high.tolist()) == ([1, 0, 1], [3, 8, 5])
    assert (one.least.tolist(), one.most.tolist()) == ([1, 3, 1], [2, 5, 2])


def test_questions_that_are_answered_on_the_way_are_not_asked() -> None:
    one = sweep(answer(0.0, [0, 4, 2]), answer(-4.0, [4, 2, 2]))
    found = one.answer(np.array([0, 1]), hard=False)
    assert [cost for cost, _, _ in found.solver.asked] == [[1, 0, 0], [-1, 0, 0]]  # type: ignore[attr-defined]
    one.take(found)
    assert one.open().tolist() == [2, 3, 4, 5]
    assert sum(len(b) for b in one.blocks(hard=False)) == 4
    again = one.answer(np.array([0, 1]), hard=True)
    assert len(again.solver.asked) == 2  # type: ignore[attr-defined]


def halting(after: int) -> Callable[[], bool]:
    """Say stop once this has been asked so many times."""
    left = iter(range(after))
    return lambda: next(left, None) is None


@pytest.mark.parametrize("asked", range(4))
def test_nothing_is_asked_after_a_stop(asked: int) -> None:
    found = bounds(KNOWN, solver=Highs(), integer=True, workers=1, stop=halting(asked))
    assert found.programs + found.searches <= asked
    assert (found.low <= [0, 0, 1]).all()
    assert (found.high >= [4, 5, 4]).all()


def test_linear_bounds_are_those_of_linear_programs_drawn_in() -> None:
    for known, _ in systems(70, 3):
        found = bounds(known, solver=Highs(), workers=1)
        rows, box = known.matrix.toarray(), list(zip(known.low, known.high, strict=True))
        facts = np.vstack((rows, -rows)), np.concatenate((known.fact_high, -known.fact_low))
        for cell in range(len(known)):
            cost = np.zeros(len(known))
            cost[cell] = 1.0
            assert found.low[cell] >= np.ceil(linprog(cost, *facts, bounds=box).fun - 1e-6)
            assert found.high[cell] <= np.floor(1e-6 - linprog(-cost, *facts, bounds=box).fun)


def test_a_network_is_bounded_by_flows_and_a_clash_is_noticed() -> None:
    known = Knowledge.of("abcd").within([0] * 4, [9] * 4)
    for pair, total in (("ab", 5), ("cd", 12), ("ac", 7)):
        known = known.fact(dict.fromkeys(pair, 1), total, total)
    told: list[Progress] = []
    found = bounds(known, workers=1, progress=told.append)
    assert (found.low.tolist(), found.high.tolist()) == ([0, 1, 3, 5], [4, 5, 7, 9])
    assert (found.programs, found.sharp.all(), found.flows > 0) == (0, True, True)
    assert (told[-1].settled, told[-1].asked, told[-1].programs) == (8, 8, found.flows)
    assert [t.settled for t in told] == sorted(t.settled for t in told)
    assert told[0].programs == 0
    # Four sums of a square, of which the last follows from the others and must come out.
    square = known.fact({"b": 1, "d": 1}, 10, 10)
    assert bounds(square).high.tolist() == [4, 5, 7, 9]
    # The grand total is left out of the network, whose flows fit without it.
    assert bounds(square.fact(dict.fromkeys("abcd", 1), 17, 17)).programs == 0
    with pytest.raises(ContradictionError):
        bounds(square.fact(dict.fromkeys("abcd", 1), 18, 18))
    rows = [[1, 1, 0, 0, 1], [0, -1, 1, 1, 0], [1, 0, 1, 1, 1]]
    for last in (8, 9):
        crowded = Knowledge.of("abcde").within([0] * 5, [9] * 5)
        for row, total in zip(rows, (6, 2, last), strict=True):
            crowded = crowded.fact(dict(zip("abcde", row, strict=True)), total, total)
        if last == 8:
            assert bounds(crowded).programs == 0
        else:
            with pytest.raises(ContradictionError):
                bounds(crowded)
    with pytest.raises(ContradictionError):
        bounds(known.bound("a", high=3).bound("c", high=3))


def test_a_solver_is_told_how_long_it_may_take() -> None:
    one = sweep(answer(0.0))
    one.watch = Watch(6, seconds=1000.0)
    one.answer(np.array([0]), hard=True)
    (seconds,) = one.solver.seconds  # type: ignore[attr-defined]
    assert 0 < seconds <= 1000
    assert ask(0, answer(0.0)).solver.seconds == [None]  # type: ignore[attr-defined]


def test_blocks_ask_solvers_of_their_own() -> None:
    first, second = Scripted(answer(0.0, [1.5, 4.75, 1])), Scripted(answer(-4.0))
    one = sweep()
    first.twin = second
    one.loaded = first  # type: ignore[assignment]
    own = one.answer(np.array([1]), hard=False)
    assert own.loaded is second
    assert one.loaded is first
    assert len(second.asked) == 1
    assert not first.asked


def test_a_bound_that_only_fractions_reach_is_asked_for_once_more() -> None:
    """Where half of the tables on the way are whole, one more program may find a whole one."""
    one = sweep(answer(0.0, [0, 5.5, 1]), answer(-5.5, [4, 2, 2]), answer(1.0, [1, 5, 1]))
    own = one.answer(np.array([0, 3, 4]), hard=False)
    asked = own.solver.asked  # type: ignore[attr-defined]
    assert [cost for cost, _, _ in asked] == [[1, 0, 0], [0, -1, 0], [0, 0, 1]]
    assert not any(whole for _, whole, _ in asked)
    assert own.least.tolist() == [1, 2, 1]
    mixed = sweep(answer(0.0, [0, 5.5, 1]))
    mixed.take(mixed.answer(np.array([0, 4]), hard=False))
    assert len(mixed.solver.asked) == 1  # type: ignore[attr-defined]


def test_tables_of_fractions_tell_which_bounds_no_program_can_draw_in() -> None:
    own = sweep(answer(0.0, [1.5, 4.75, 1])).answer(np.array([0]), hard=False)
    assert own.seen_least.tolist() == [2, 5, 1]
    assert own.seen_most.tolist() == [1, 4, 1]


@pytest.mark.parametrize(
    ("off", "again"), [(0.00005, False), (-0.00005, False), (0.0002, True), (-0.0002, True)]
)
@pytest.mark.parametrize("hard", [False, True])
def test_a_table_that_breaks_a_fact_left_out_is_asked_for_again_with_all_facts(
    off: float, again: bool, hard: bool
) -> None:
    real = KNOWN if hard else KNOWN.relaxed()
    one = sweep(answer(0.5, [0.5, 4.5 + off, 1.5]), answer(0.25), known=real)
    one.watch = Watch(6, seconds=1000.0)
    fewer = replace(
        one.piece,
        matrix=one.piece.matrix[:0],
        fact_low=one.piece.fact_low[:0],
        fact_high=one.piece.fact_high[:0],
    )
    one.asked_piece = fewer
    one.take(one.answer(np.array([0]), hard=hard))
    solver: Scripted = one.solver  # type: ignore[assignment]
    assert [load.matrix.shape[0] for load in solver.loads] == ([0, 1] if again else [0])
    assert len(set(map(str, solver.asked))) == 1
    assert len(solver.asked) == (2 if again else 1)
    assert None not in solver.seconds
    if not hard:
        assert one.low[0] == (0.25 if again else 0.5)
    assert (one.watch.programs, one.watch.searches) == (int(not hard), int(hard))


def test_a_table_within_a_range_that_was_left_out_fits_it() -> None:
    known = replace(KNOWN, fact_low=np.array([10]))
    one = sweep(answer(0.0, [1, 4, 1]), known=known)  # the fact adds up to 12
    one.asked_piece = replace(
        one.piece,
        matrix=one.piece.matrix[:0],
        fact_low=one.piece.fact_low[:0],
        fact_high=one.piece.fact_high[:0],
    )
    assert one.answer(np.array([0]), hard=False).least.tolist() == [1, 4, 1]


class Walker:
    """A walker that reaches the bounds it is told to, at the first or the second try."""

    def __init__(self, reaches: dict[int, int]) -> None:
        self.reaches = reaches
        self.sought: list[tuple[int, int]] = []
        self.least, self.most = np.array([2.0, 3, 2]), np.array([2.0, 3, 2])

    def copy(self) -> Walker:
        return self

    def seek(self, question: int, luck: Any, tries: int) -> bool:
        self.sought.append((question, tries))
        if tries >= self.reaches.get(question, 9):
            (self.most if question % 2 else self.least)[question // 2] = [0, 4, 0, 8, 1, 5][
                question
            ]
        return True


def test_a_walk_goes_for_every_bound_that_is_open_in_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lustrum.audit.bounding.sweep._TRIES", (1, 2, 3))
    block = np.array([0, 1, 2, 4])
    told: list[Progress] = []
    one = sweep()
    one.watch = Watch(6, progress=told.append)
    walker = Walker({0: 1, 1: 2, 4: 2})
    one.walker = walker  # type: ignore[assignment]
    own = one.seek(block)
    assert walker.sought == [(0, 1), (1, 1), (2, 1), (4, 1), (1, 2), (2, 2), (4, 2), (2, 3)]
    assert own.open().tolist() == [2, 3, 5]
    assert told[-1].settled == 3
    assert one.least.tolist() == [np.inf] * 3
    # Too few were reached in a round: the rest is left to a search.
    lame = Walker({})
    one.walker = lame  # type: ignore[assignment]
    one.seek(block)
    assert [question for question, _ in lame.sought] == [0, 1, 2, 4]
    one.walker = None
    assert one.seek(block).open().tolist() == [0, 1, 2, 3, 4, 5]
    one.walker = Walker({0: 1})  # type: ignore[assignment]
    one.watch.halt()
    assert one.seek(block).open().tolist() == [0, 1, 2, 3, 4, 5]


def test_a_walk_begins_where_enough_whole_bounds_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lustrum.audit.bounding.lattice_walk.LEAST", 1)
    one = sweep()
    one.meet_walker()
    assert one.walker is not None
    assert np.isfinite(one.least).all()
    assert one.piece.holds(one.least.astype(np.int64))
    assert one.least.tolist() == one.most.tolist()
    monkeypatch.setattr("lustrum.audit.bounding.sweep._FEW", 7)
    few, real, over = sweep(), sweep(known=KNOWN.relaxed()), sweep()
    few.meet_walker()
    monkeypatch.setattr("lustrum.audit.bounding.sweep._FEW", 1)
    real.meet_walker()
    over.watch.halt()
    over.meet_walker()
    assert few.walker is real.walker is over.walker is None


@pytest.mark.parametrize("k", range(3))
def test_threads_find_the_same_bounds(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lustrum.audit.bounding.compute._THREADED", 1)
    known, tables = next(systems(40 + k, 1))
    found = bounds(known, integer=True, workers=2)
    assert found.low.tolist() == tables.min(axis=0).tolist()
    assert found.high.tolist() == tables.max(axis=0).tolist()
    assert found.sharp.all()
