"""Rounds of linear programs that share what they find, and which pieces are merged before them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from audit.test_sweep_by_hand import KNOWN, answer, sweep
from audit.test_twins_by_hand import piece
from lustrum.audit import ContradictionError, Knowledge, bounds
from lustrum.audit.bounding.compute import _ask_in_rounds, _explained, _twins
from lustrum.audit.bounding.sweep import BoundSweep, Impossible, Progress, Watch
from lustrum.audit.knowledge.conflicts import ConflictError
from lustrum.audit.knowledge.reduce import Piece
from lustrum.model import InputError
from lustrum.model.workers import workers as processors
from lustrum.numeric.solve import Highs

COMPUTE, SWEEP = "lustrum.audit.bounding.compute", "lustrum.audit.bounding.sweep"


def asked_of(one: BoundSweep) -> list[list[float]]:
    """The costs that a scripted solver was asked to minimise."""
    return [cost for cost, _, _ in one.solver.asked]  # type: ignore[attr-defined]


@pytest.mark.parametrize("whole", [True, False])
def test_a_piece_without_facts_has_all_values_between_its_bounds(whole: bool) -> None:
    known = Knowledge.of("ab").within([1, 0], [4, 7])
    none = sparse.csr_array((0, 2), dtype=np.int64)
    ends = np.zeros(0, dtype=np.int64)
    alone = Piece(np.arange(2), none, ends, ends, known.low, known.high)
    told: list[Progress] = []
    of = known if whole else known.relaxed()
    one = BoundSweep(alone, of, np.arange(2), None, Watch(4, progress=told.append))
    one.random_sums()
    assert one.flows is None
    assert not told
    assert one.sharp.all()
    assert one.open().size == 0
    assert (one.least.tolist(), one.most.tolist()) == ([1, 0], [4, 7])
    assert (one.low.tolist(), one.high.tolist()) == ([1, 0], [4, 7])
    assert one.lanes() == []


def test_lanes_are_as_many_as_the_open_questions_are_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(sweep().lanes()) == 1
    monkeypatch.setattr(f"{SWEEP}._BLOCK", 2)
    assert len(sweep().lanes()) == 3
    monkeypatch.setattr(f"{SWEEP}._MOST_BLOCKS", 2)
    assert len(sweep().lanes()) == 2
    one = sweep()
    one.answered = np.arange(5)
    assert one.narrowable().tolist() == [5]
    assert len(one.lanes()) == 1
    one.answered = np.arange(6)
    assert one.lanes() == []
    flowing = sweep()
    flowing.flows = object()  # type: ignore[assignment]  # a network needs no linear programs
    assert flowing.lanes() == []


def test_lanes_have_solvers_of_their_own() -> None:
    one = sweep()
    (lane,) = one.lanes()
    assert lane is not one
    assert lane.loaded is None
    one.loaded = one.solver  # type: ignore[assignment]
    other = sweep().solver
    one.solver.twin = other  # type: ignore[attr-defined]
    (lane,) = one.lanes()
    assert lane.loaded is other
    assert one.loaded is one.solver


def test_a_round_asks_so_many_questions_and_none_of_them_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No answer proves anything, so that only what was asked decides."""
    monkeypatch.setattr(f"{SWEEP}._ROUND", 2)
    one = sweep(*(answer(-np.inf) for _ in range(6)))
    every = one.narrowable()
    assert every.tolist() == [0, 1, 2, 3, 4, 5]
    for questions in (2, 4, 6):
        one.round(every)
        assert len(asked_of(one)) == questions
        assert one.answered.size == questions
        assert one.narrowable().tolist() == np.setdiff1d(every, one.answered).tolist()
    one.round(every)
    assert len(asked_of(one)) == 6
    assert len({tuple(cost) for cost in asked_of(one)}) == 6


def test_questions_that_no_program_can_answer_better_are_not_asked() -> None:
    """The table reaches the least value of each cell and the greatest of none."""
    one = sweep(*(answer(-np.inf) for _ in range(3)))
    one.seen_least[:] = [0, 0, 1]
    assert one.narrowable().tolist() == [1, 3, 5]
    assert one._nearest_first(np.arange(6), 6).tolist() == [0, 2, 4]
    assert sorted(asked_of(one)) == [[-1, 0, 0], [0, -1, 0], [0, 0, -1]]
    assert one.answered.tolist() == [1, 3, 5]


def test_lanes_share_what_each_of_them_found() -> None:
    told: list[Progress] = []
    one = sweep()
    one.watch = Watch(6, progress=told.append)
    first, second = one._copy(), one._copy()
    first.low[0], first.least[0], first.seen_least[:2] = 2, 2, [2, 3]
    first.most[2], first.seen_most[2], first.answered = 5, 5, np.array([0])
    second.high[1], second.most[1], second.seen_most[1] = 6, 6, 7
    second.answered = np.array([3])
    one.share([first, second])
    assert [(t.settled, t.asked) for t in told] == [(3, 6)]
    for own in (one, first, second):
        assert (own.low.tolist(), own.high.tolist()) == ([2, 0, 1], [4, 6, 5])
        assert own.least.tolist() == [2, np.inf, np.inf]
        assert own.most.tolist() == [-np.inf, 6, 5]
        assert own.seen_least.tolist() == [2, 3, np.inf]
        assert own.seen_most.tolist() == [-np.inf, 7, 5]
        assert own.answered.tolist() == [0, 3]


@pytest.mark.parametrize(("theirs", "then"), [((3, 0), (3, 0)), ((2, 0), (2, 1)), ((1, 1), (2, 1))])
def test_the_count_of_whole_tables_is_that_of_the_most_tables(
    theirs: tuple[int, int], then: tuple[int, int]
) -> None:
    one, other = sweep(), sweep()
    one.tables, one.whole_tables = 2, 1
    other.tables, other.whole_tables = theirs
    one.take(other)
    assert (one.tables, one.whole_tables) == then


def test_rounds_go_on_until_no_program_can_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{SWEEP}._ROUND", 1)
    open_one = sweep(*(answer(-np.inf) for _ in range(6)))
    closed = sweep()
    closed.answered = np.arange(6)
    with ThreadPoolExecutor(max_workers=1) as pool:
        _ask_in_rounds(pool.map, [open_one, closed], Watch(12))
        assert len(asked_of(open_one)) == 6
        assert open_one.answered.tolist() == list(range(6))
        assert not asked_of(closed)
        stopped = sweep()
        _ask_in_rounds(pool.map, [stopped], Watch(6, stop=lambda: True))
        assert not asked_of(stopped)


def test_rounds_come_before_blocks_and_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    plain = BoundSweep.round

    def counted(one: BoundSweep, block: Any) -> None:
        rounds.append(block.size)
        plain(one, block)

    monkeypatch.setattr(BoundSweep, "round", counted)
    monkeypatch.setattr(f"{SWEEP}._FEW", 100)
    told: list[Progress] = []
    found = bounds(KNOWN, integer=True, solver=Highs(), workers=1, progress=told.append)
    assert rounds == [6]
    assert (told[-1].settled, told[-1].asked) == (6, 6)
    assert (found.low.tolist(), found.high.tolist()) == ([0, 0, 1], [4, 5, 4])


def test_cells_are_merged_unless_flows_or_a_named_solver_answer() -> None:
    """b = 10 - a, and a takes part in three sums, which no network has; c is in one sum."""
    rows = [[1, 1, 0, 0, 0], [1, 0, 1, 1, 0], [1, 0, 0, 1, 1]]
    tied = piece(rows, [10, 8, 7], [10, 8, 7], [0] * 5, [9] * 5)
    twins = _twins(tied, None)
    assert twins is not None
    assert twins.piece.matrix.toarray().tolist() == [[1, 1, 1, 0], [1, 0, 1, 1]]
    assert _twins(tied, Highs()) is None
    # Every cell is in one sum or two: flows answer faster than merging.
    assert _twins(piece(rows[:2], [10, 8], [10, 8], [0] * 5, [9] * 5), None) is None
    # Sums of three alone: nothing to merge.
    assert _twins(piece(rows[1:], [8, 7], [8, 7], [0] * 5, [9] * 5), None) is None


def test_a_merged_cell_that_no_fact_ties_keeps_the_piece_as_it_is() -> None:
    """a + b is 10 in the other sum too, so that nothing ties a to c and d."""
    rows = [[1, 1, 0, 0], [1, 1, 2, 1]]
    assert _twins(piece(rows, [10, 17], [10, 17], [0] * 4, [9] * 4), None) is None
    known = Knowledge.of("abcd").within([0] * 4, [9] * 4)
    known = known.fact({"a": 1, "b": 1}, 10, 10).fact({"a": 1, "b": 1, "c": 2, "d": 1}, 17, 17)
    found = bounds(known, integer=True, workers=1)
    assert found.low.tolist() == [1, 1, 0, 1]
    assert found.high.tolist() == [9, 9, 3, 7]
    assert found.sharp.all()


def test_a_bound_that_programs_cannot_narrow_gets_one_more_program() -> None:
    """A table with fractions reaches the least value of a; a whole one may be found by the way."""
    one = sweep(answer(0.0, [0, 4, 2]))
    one.seen_least[0] = 0
    found = one.answer(np.array([0]), hard=False)
    assert one.solver.asked == [([1, 0, 0], False, None)]  # type: ignore[attr-defined]
    assert found.least.tolist() == [0, 4, 2]


@pytest.mark.parametrize(("feasible", "table"), [(True, [9, 9]), (False, [3, 4]), (False, [9, 9])])
def test_a_first_flow_must_be_a_table(
    feasible: bool, table: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    flows = SimpleNamespace(feasible=feasible, table=np.array(table))
    monkeypatch.setattr(f"{SWEEP}.Flows", lambda network, count: flows)
    known = Knowledge.of("ab").within([0, 0], [9, 9]).fact({"a": 1, "b": 1}, 7, 7)
    tied = piece([[1, 1]], [7], [7], [0, 0], [9, 9])
    with pytest.raises(Impossible) as raised:
        BoundSweep(tied, known, np.arange(2), None, Watch(4)).random_sums()
    assert (raised.value.cell, raised.value.whole) == (10, False)


def test_as_many_workers_are_used_as_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int | None] = []

    def counted(max_workers: int | None = None) -> ThreadPoolExecutor:
        used.append(max_workers)
        return ThreadPoolExecutor(max_workers=1)

    monkeypatch.setattr(f"{COMPUTE}.ThreadPoolExecutor", counted)
    bounds(KNOWN, solver=Highs(), workers=3)
    assert used == []  # so few cells are not worth a thread
    monkeypatch.setattr(f"{COMPUTE}._THREADED", 1)
    for workers in (3, 1, None):
        bounds(KNOWN, solver=Highs(), workers=workers)
    assert used == [3, processors()]


def test_values_of_real_cells_are_not_counted() -> None:
    assert bounds(KNOWN, integer=True, workers=1).count.tolist() == [5, 6, 4]
    with pytest.raises(InputError, match="Real values cannot be counted"):
        _ = bounds(KNOWN.relaxed(), workers=1).count


def test_a_contradiction_is_explained_by_facts_or_by_what_was_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = Knowledge.of("ab").within([0, 0], [9, 9]).fact({"a": 1, "b": 1}, 7, 7)
    noticed = ContradictionError("noticed")
    assert isinstance(_explained(both.fact({"a": 1, "b": 1}, 8, 8), noticed), ConflictError)
    monkeypatch.setattr(f"{COMPUTE}.conflict", lambda known: None)
    assert _explained(both, noticed) is noticed
    for whole, kind in ((True, "of whole numbers "), (False, "")):
        told = _explained(both, Impossible(1, whole))
        assert isinstance(told, ContradictionError)
        assert str(told).endswith(f"no table {kind}fits all that is known about b.")


def test_a_copy_counts_real_tables_that_it_meets() -> None:
    """Among real cells every table that is seen counts; among whole cells only whole tables do."""
    for known, least in ((KNOWN.relaxed(), [1.5, 4.75, 1]), (KNOWN, [np.inf] * 3)):
        own = sweep(known=known)._copy()
        own._meet(np.array([1.5, 4.75, 1]))
        assert own.least.tolist() == least
        assert own.most.tolist() == [-v if v == np.inf else v for v in least]


def test_the_slack_of_left_out_facts_grows_with_the_sum() -> None:
    """A unit in ten million is within the precision of a solver, two units are not."""
    known = Knowledge.of("abc").within([0] * 3, [2 * 10**7] * 3)
    one = sweep(known=known.fact({"a": 1, "b": 2, "c": 3}, 10**7, 10**7))
    for away, fits in ((0.5, True), (-0.5, True), (2.0, False), (-2.0, False)):
        one.asked_piece = replace(one.piece)  # another piece than the one that was given
        assert one._fits(np.array([10**7 + away, 0, 0])) is fits
