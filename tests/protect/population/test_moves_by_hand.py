"""Single moves of the search: what they cost, what they change, and which are allowed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from lustrum.numeric.stream import mixed
from lustrum.protect.population.prepare import prepare
from lustrum.protect.population.public import SEARCH
from lustrum.protect.population.search import exchanges, kernels, lanes, stages
from lustrum.protect.population.search import walk as walks
from lustrum.protect.population.search.exchanges import (
    allowed,
    fourth_cell,
    move,
    neighbours,
)
from lustrum.protect.population.search.forces import add_move, set_forces
from lustrum.protect.population.search.kernels import flip_cost, places
from lustrum.protect.population.search.lanes import Lane, share_out, working_together
from lustrum.protect.population.search.layout import TablePlan, plan_tables
from lustrum.protect.population.search.moves import (
    apart,
    exchange_cells,
    exchange_cost,
    swap_cells,
    swap_cost,
)
from lustrum.protect.population.search.replay import replay
from lustrum.protect.population.search.run import (
    DRIFT,
    _errors,
    _lack,
    _laid_out,
    _tally,
)
from lustrum.protect.population.search.stages import ErrorCost, Stage
from lustrum.runtime.stop import Stopped, stopping
from protect.population.worlds import KEY, cells_of, town

KINDS = (ErrorCost(10, 0, 70, 3), ErrorCost(50, 1, 100, 4), ErrorCost(90, 2), ErrorCost(4))


@pytest.fixture(autouse=True)
def _words_that_overflow() -> Iterator[None]:
    """Without the compiler, words that overflow say so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
        yield


def made(
    share: float = 0.3, held: tuple[int, int] | None = None
) -> tuple[Any, Any, Any, TablePlan, Stage]:
    cells = cells_of(town((4, 4, 3)), np.random.default_rng(2).poisson(1.6, (4, 4, 3)))
    plan = plan_tables(cells.dataset, 2, (("v0:half", "v1", "v2"),), extra_tables=2)
    problem = prepare(cells, KEY, base=3, small_only=False, empty_share=share).problem
    problem = replace(problem, start_share=held)
    laid, order = _laid_out(problem, plan)
    return problem, laid, order, plan, Stage(plan, 1, 0.1, 0.1, KINDS)


def test_the_cost_of_a_move_is_what_all_tables_change_by_and_errors_stay_true() -> None:
    problem, cells, order, plan, stage = made()
    costs, step = stage.costs_of(3), np.int32(3)
    kind_of = plan.layout.cell_kind

    def whole(errors: Any) -> int:
        return int(sum(KINDS[k].of(errors[kind_of == k].astype(np.int64)).sum() for k in range(4)))

    p = np.zeros(plan.layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(plan.layout.table_offset.size, dtype=np.uint64)
    base = np.empty(plan.layout.run_offset.size, dtype=np.uint64)
    tried = {1: 0, 2: 0, 4: 0}
    rng = np.random.default_rng(3)
    codes = [tuple(c) for c in cells.codes.tolist()]
    place = {c: k for k, c in enumerate(codes)}
    options: list[tuple[int, ...]] = [(i,) for i in range(len(codes))]
    for i, (u, v) in product(range(len(codes)), ((0, 1), (0, 2), (1, 2))):
        for j, k in product(range(len(codes)), repeat=2):
            one = [w for w in range(3) if codes[i][w] != codes[j][w]] == [u]
            two = [w for w in range(3) if codes[i][w] != codes[k][w]] == [v]
            corner = list(codes[i])
            corner[u], corner[v] = codes[j][u], codes[k][v]
            if one and two and rng.random() < 0.1:
                options.append((i, j))
            if one and two and tuple(corner) in place and rng.random() < 0.5:
                options.append((i, j, k, place[tuple(corner)]))
    for cell in options:
        i, *others = cell
        sign = np.int64(-1 if cells.up[i] else 1)
        stands = [cells.up[c] for c in cell]
        wanted = [stands[0], 1 - stands[0], 1 - stands[0], stands[0]][: len(cell)]
        if stands != wanted:
            continue
        tried[len(cell)] += 1
        before = _errors(problem, cells, order, plan)
        forces = np.zeros((before.size, 2), dtype=np.int32)
        set_forces(before, kind_of, costs.force, forces, 0, before.size)
        found = before.copy()
        places(plan.layout, cells.codes[i], p, inner, base)
        if len(cell) == 1:
            cost = flip_cost(plan.layout, found, inner, base, sign, costs.rise)
            add_move(plan.layout, found, forces, inner, base, step * sign, costs)
        elif len(cell) == 2:
            v = apart(cells, i, others[0])
            words = (inner, base, i, others[0], v)
            cost = swap_cost(plan.layout, cells, found, *words, sign, costs.rise)
            swap_cells(plan.layout, cells, found, forces, *words, step * sign, costs.force)
        else:
            u, v = apart(cells, i, others[0]), apart(cells, i, others[1])
            words = (inner, base, i, others[0], others[1], u, v)
            cost = exchange_cost(plan.layout, cells, found, *words, sign, costs.rise, np.inf)
            few = exchange_cost(plan.layout, cells, found, *words, sign, costs.rise, -(10.0**9))
            assert few == 0
            exchange_cells(plan.layout, cells, found, forces, *words, step * sign, costs.force)
        for c in cell:
            cells.up[c] = 1 - cells.up[c]
        after = _errors(problem, cells, order, plan)
        assert np.array_equal(found, after)
        assert cost == whole(after) - whole(before)
        true = np.zeros_like(forces)
        set_forces(after, kind_of, costs.force, true, 0, after.size)
        assert np.array_equal(forces, true)
        if rng.random() < 0.5:
            for c in cell:
                cells.up[c] = 1 - cells.up[c]
    assert min(tried.values()) > 20, tried


@pytest.mark.parametrize("share", [(0, 1000), (3, 10), (1, 3), (1, 1)])
def test_a_move_is_allowed_where_enough_cells_stay_empty_or_no_more_are_missing(
    share: tuple[int, int],
) -> None:
    problem, cells, order, _, _ = made()
    object.__setattr__(problem, "empty_share", share)
    rng = np.random.default_rng(4)
    outcomes = set()
    none = np.int64(-1)
    for _ in range(300):
        cells.up[:] = rng.random(cells.up.size) < rng.choice([0.2, 0.5, 0.8])
        # Sometimes the rule just holds.
        object.__setattr__(problem, "fixed_empty", int(rng.integers(0, 12)))
        before = _lack(problem, cells)
        shown = problem.low + problem.step * cells.up[np.argsort(order)]
        smallest = int((shown == problem.step).sum()) + problem.fixed_smallest
        empty = int((problem.is_empty & (shown > 0)).sum()) + problem.fixed_empty
        assert before == share[0] * smallest - share[1] * empty
        tally = _tally(problem, cells)
        chosen = rng.choice(cells.up.size, int(rng.choice([1, 2, 4])), replace=False)
        words = [np.int64(c) for c in chosen] + [none] * (4 - chosen.size)
        answer = allowed(cells, tally, *words)
        for c in chosen:
            move(cells, tally, np.int64(c))
        after = _lack(problem, cells)
        assert tally[0] == after
        assert answer == (after <= 0 or after <= before)
        outcomes.add((answer, after > 0))
    assert len(outcomes) > 1 or share[0] == 0


@pytest.mark.parametrize("start", [(1, 1), (2, 3), (1, 10)])
def test_a_move_keeps_every_residue_as_far_from_its_start_as_it_is_or_may_be(
    start: tuple[int, int],
) -> None:
    problem, cells, order, _, _ = made(0.0, start)
    rng = np.random.default_rng(6)
    residue, low = problem.residue[order], problem.low[order]
    classes = [(residue == r) & (below == (low == 0)) for below in (True, False) for r in (1, 2)]
    first = cells.up.copy()
    ends = []
    for number, inside in enumerate(classes):
        expected = inside.sum() * (number % 2 + 1) * start[0] / (3 * start[1])
        begins = int(first[inside].sum())
        away = inside.sum() * float(DRIFT)
        ends.append(
            (
                min(begins, int(np.floor(expected - away))),
                max(begins, int(np.ceil(expected + away))),
            )
        )
    assert [tuple(e) for e in zip(cells.least_up, cells.most_up, strict=True)] == ends

    def beyond(number: int) -> int:
        up, (least, most) = int(cells.up[classes[number]].sum()), ends[number]
        return max(up - most, least - up, 0)

    outcomes = set()
    for _ in range(400):
        cells.up[:] = np.where(rng.random(first.size) < rng.choice([0.05, 0.8]), 1 - first, first)
        tally = _tally(problem, cells)
        chosen = rng.choice(cells.up.size, int(rng.choice([1, 2, 4])), replace=False)
        words = [np.int64(c) for c in chosen] + [np.int64(-1)] * (4 - chosen.size)
        counts = [sum(bool(inside[c]) for c in chosen) for inside in classes]
        before = sum(n * beyond(k) for k, n in enumerate(counts))
        answer = allowed(cells, tally, *words)
        assert np.array_equal(tally, _tally(problem, cells)), "judging changes nothing"
        for c in chosen:
            move(cells, tally, np.int64(c))
        assert np.array_equal(tally, _tally(problem, cells))
        after = sum(n * beyond(k) for k, n in enumerate(counts))
        assert answer == (after <= before)
        outcomes.add((answer, before > 0))
    assert len(outcomes) == 4


def test_the_fourth_cell_of_a_rectangle_is_found_by_its_codes_even_beside_a_false_one() -> None:
    _, cells, _, _, _ = made()
    codes = [tuple(c) for c in cells.codes.tolist()]
    found = set()
    for u, v in ((0, 1), (0, 2), (1, 2)):
        for i, j, k in product(range(len(codes)), repeat=3):
            if [w for w in range(3) if codes[i][w] != codes[j][w]] != [u]:
                continue
            if [w for w in range(3) if codes[i][w] != codes[k][w]] != [v]:
                continue
            corner = list(codes[i])
            corner[u], corner[v] = codes[j][u], codes[k][v]
            expected = codes.index(tuple(corner)) if tuple(corner) in codes else -1
            m = fourth_cell(cells, i, j, k, u, v)
            assert m == expected
            found.add(m)
    assert -1 in found
    assert 0 in found
    # A slot whose half word belongs to another cell, as happens very rarely, is no fourth cell.
    i, j, k = next(
        (i, j, k)
        for i, j, k in product(range(len(codes)), repeat=3)
        if codes[i][0] != codes[j][0]
        and codes[i][1:] == codes[j][1:]
        and codes[i][1] != codes[k][1]
        and codes[i][::2] == codes[k][::2]
        and (codes[j][0], codes[k][1], codes[i][2]) not in codes
    )
    word = mixed(cells.number[j] - cells.number[i] + cells.number[k])
    mask = np.uint64(cells.slot.size - 1)
    at = word & mask
    while cells.slot[at] != 0:
        at = (at + np.uint64(1)) & mask
    cells.slot[at] = (word & np.uint64(0xFFFFFFFF00000000)) | np.uint64(i + 1)
    assert fourth_cell(cells, i, j, k, 0, 1) == -1


@pytest.mark.parametrize("tied", [False, True])
def test_neighbours_stand_at_their_other_number_and_share_a_kept_sum(tied: bool) -> None:
    _, cells, _, _, _ = made()
    rng = np.random.default_rng(5)
    codes = cells.codes.tolist()
    cells.group[:] = rng.integers(0, 2, cells.group.size) if tied else -1
    for most in (1, 3, 8):
        near = np.full((3, most), 99, dtype=np.int64)
        for i in range(len(codes)):
            neighbours(cells.partner, cells.up, cells.group, tied, i, near)
            for v in range(3):
                line = [
                    c
                    for c in range(len(codes))
                    if all(codes[c][w] == codes[i][w] for w in range(3) if w != v)
                ]
                line.sort(key=lambda c: codes[c][v])
                at = line.index(i)
                ring = [*line[at + 1 :], *line[:at]]
                able = [
                    c
                    for c in ring[: 4 * most]
                    if cells.up[c] != cells.up[i] and (not tied or cells.group[c] == cells.group[i])
                ]
                assert near[v].tolist() == (able + [-1] * most)[:most]


def test_cells_are_tied_where_any_of_them_has_a_kept_sum() -> None:
    problem, _, _, plan, _ = made()
    for number, tied in ((-1, False), (0, True), (4, True)):
        group = np.full(problem.up.size, -1, dtype=np.int64)
        group[3] = number
        object.__setattr__(problem, "group", group)
        assert _laid_out(problem, plan)[0].tied is tied


def rectangles(codes: list[tuple[int, ...]]) -> Iterator[tuple[int, int, int, int]]:
    """All rectangles of cells that are there, by their first cell, its two neighbours and the fourth."""
    place = {c: k for k, c in enumerate(codes)}
    for i, (u, v) in product(range(len(codes)), ((0, 1), (0, 2), (1, 2))):
        for one, two in product(range(4), repeat=2):
            corners = []
            for change in ((u,), (v,), (u, v)):
                corner = list(codes[i])
                for w in change:
                    corner[w] = one if w == u else two
                corners.append(place.get(tuple(corner), -1))
            if min(corners) >= 0 and i not in corners:
                yield i, *corners  # type: ignore[misc]


class Again:
    """Moves of a lane that are made again, beside a plain version of which of them still fit."""

    def __init__(self) -> None:
        self.problem, self.cells, self.order, self.plan, self.stage = made()
        self.codes = [tuple(c) for c in self.cells.codes.tolist()]
        self.costs = self.stage.costs_of(3)
        self.done = {"made": 0, "stands": 0, "rule": 0, "cost": 0}

    def whole(self, up: Any) -> int:
        """What all errors cost."""
        cells, kind_of = self.cells._replace(up=up), self.plan.layout.cell_kind
        errors = _errors(self.problem, cells, self.order, self.plan).astype(np.int64)
        return int(sum(KINDS[k].of(errors[kind_of == k]).sum() for k in range(4)))

    def fitting(self, theirs: Any, ours: Any, moves: Any, limits: Any) -> Any:
        """The cells after all moves that fit: they stand as they did, the rule holds, the cost too."""
        expected, stood = ours.copy(), theirs.copy()
        for chosen, limit in zip(moves, limits, strict=True):
            before = stood.copy()
            for c in chosen:
                stood[c] = 1 - stood[c]
            if any(expected[c] != before[c] for c in chosen):
                self.done["stands"] += 1
                continue
            after = expected.copy()
            for c in chosen:
                after[c] = 1 - after[c]
            lack = [_lack(self.problem, self.cells._replace(up=up)) for up in (expected, after)]
            if lack[1] > 0 and lack[1] > lack[0]:
                self.done["rule"] += 1
                continue
            if self.whole(after) - self.whole(expected) > limit:
                self.done["cost"] += 1
                continue
            self.done["made"] += 1
            expected = after
        return expected

    def compare(self, theirs: Any, ours: Any, moves: Any, limits: Any, share: Any) -> None:
        """Make moves again with the search and with the plain version."""
        problem, plan, kind_of = self.problem, self.plan, self.plan.layout.cell_kind
        costs = self.costs
        object.__setattr__(problem, "empty_share", share)
        state = theirs.copy()
        listed = np.full((len(moves) + 1, 4), -1, dtype=np.int32)
        for row, chosen in zip(listed, moves, strict=False):
            row[: len(chosen)] = chosen
            for c in chosen:
                state[c] = 1 - state[c]
        now = self.cells._replace(up=ours.copy())
        errors = _errors(problem, now, self.order, plan)
        forces = np.zeros((errors.size, 2), dtype=np.int32)
        set_forces(errors, kind_of, costs.force, forces, 0, errors.size)
        tally = _tally(problem, now)
        empty = np.zeros(16, dtype=np.int64)
        words = np.zeros(16, dtype=np.uint64)
        fields = np.zeros((len(self.codes), 2), dtype=np.float32)
        tried = np.zeros((3, 2), dtype=np.int64)
        first = Lane(
            0, now.up, errors, forces, fields, tally, words, tried, empty, listed, np.zeros(9)
        )
        count = empty.copy()
        count[0] = len(moves)
        ends = np.array([*limits, 0.0])
        lane = Lane(1, state, errors, forces, fields, tally, words, tried, count, listed, ends)
        expected = self.fitting(theirs, ours, moves, limits)
        replay(plan.layout, now, first, lane, np.int32(3), costs)
        assert np.array_equal(now.up, expected)
        assert np.array_equal(errors, _errors(problem, now, self.order, plan))
        assert tally[0] == _lack(problem, now)
        true = np.zeros_like(forces)
        set_forces(errors, kind_of, costs.force, true, 0, errors.size)
        assert np.array_equal(forces, true)


def test_moves_of_a_lane_are_made_again_where_they_still_fit() -> None:
    again = Again()
    codes = again.codes
    every: list[tuple[int, ...]] = [(i,) for i in range(len(codes))]
    for i, j, k, m in rectangles(codes):
        every += [(i, j), (i, j, k, m)]
    rng = np.random.default_rng(6)
    for _ in range(40):
        theirs = (rng.random(len(codes)) < 0.5).astype(np.uint8)
        ours = np.where(rng.random(len(codes)) < 0.1, 1 - theirs, theirs).astype(np.uint8)
        moves, limits, state = [], [], theirs.copy()
        for _ in range(200):
            chosen = every[rng.integers(len(every))]
            stands = [int(state[c]) for c in chosen]
            if stands == [stands[0], 1 - stands[0], 1 - stands[0], stands[0]][: len(chosen)]:
                moves.append(chosen)
                limits.append(float(rng.choice([-500.0, 0.0, 2000.0, 1e9])))
                for c in chosen:
                    state[c] = 1 - state[c]
            if len(moves) == 6:
                break
        share = ((0, 1000), (3, 10), (1, 2))[int(rng.integers(3))]
        again.compare(theirs, ours, moves, limits, share)
    assert min(again.done.values()) > 8, again.done


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_the_first_cell_of_all_is_a_cell_at_every_place_of_a_move(place: int) -> None:
    """Number 0 is no sign for "no cell": the move is made, or left out since this cell or another has moved."""
    again = Again()
    rng = np.random.default_rng(8)
    found = [r for r in rectangles(again.codes) if r[place] == 0][:2]
    assert found
    for chosen in found:
        for first, moved in product((0, 1), (None, *chosen)):
            theirs = (rng.random(len(again.codes)) < 0.5).astype(np.uint8)
            theirs[list(chosen)] = [first, 1 - first, 1 - first, first]
            ours = theirs.copy()
            if moved is not None:
                ours[moved] = 1 - ours[moved]
            for cells, limit in product((chosen, chosen[:2], chosen[:1]), (-(10.0**9), 1e9)):
                again.compare(theirs, ours, [cells], [limit], (0, 1000))
    assert again.done["made"] >= 4
    assert again.done["stands"] >= 4
    assert again.done["cost"] >= 4


def test_a_step_of_a_walk_is_undone_when_it_is_made_twice() -> None:
    problem, cells, order, plan, stage = made()
    costs, step = stage.costs_of(3), np.int32(3)
    codes = [tuple(c) for c in cells.codes.tolist()]
    rng = np.random.default_rng(7)
    errors = _errors(problem, cells, order, plan)
    forces = np.zeros((errors.size, 2), dtype=np.int32)
    tally = _tally(problem, cells)
    tried = 0
    for i, j, k, m in [*rectangles(codes)] * 3:
        for chosen in ((i, j, -1, -1), (i, j, k, m)):
            stands = [int(cells.up[c]) for c in chosen if c >= 0]
            if stands != [stands[0], 1 - stands[0], 1 - stands[0], stands[0]][: len(stands)]:
                continue
            if 0 not in chosen and rng.random() < 0.9:
                continue
            tried += 0 in chosen[1:]
            before, up = errors.copy(), cells.up.copy()
            found = np.array(chosen, dtype=np.int64)
            walks._make(plan.layout, cells, found, errors, forces, tally, step, costs)
            assert (cells.up != up).sum() == len(stands)
            assert np.array_equal(errors, _errors(problem, cells, order, plan))
            assert tally[0] == _lack(problem, cells)
            if rng.random() < 0.3:
                walks._make(plan.layout, cells, found, errors, forces, tally, step, costs)
                assert np.array_equal(errors, before)
                assert np.array_equal(cells.up, up)
    assert tried > 5


def test_a_walk_makes_the_cheapest_move_that_is_allowed() -> None:
    """Swaps and exchanges of the chosen cells are listed; rectangles are those of the codes."""
    problem, cells, order, plan, stage = made()
    rise = stage.costs_of(3).rise
    p = np.zeros(plan.layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(plan.layout.table_offset.size, dtype=np.uint64)
    base = np.empty(plan.layout.run_offset.size, dtype=np.uint64)
    codes = [tuple(c) for c in cells.codes.tolist()]
    count = len(codes)
    corner = {(i, j, k): m for i, j, k, m in rectangles(codes)}
    with_first = [(*r, m) for r, m in corner.items() if r[2] == 0]
    with_last = [(*r, m) for r, m in corner.items() if r[2] == count - 1]
    none = np.int64(-1)
    rng = np.random.default_rng(9)
    kinds = {"swap": 0, "exchange": 0, "first": 0}
    for trial in range(190):
        cells.up[:] = rng.random(count) < 0.5
        errors = _errors(problem, cells, order, plan)
        errors += rng.integers(-6, 7, errors.size).astype(np.int32)
        inside = rng.random(count) < 0.2
        rests = np.where(rng.random(count) < 0.2, 9, rng.integers(0, 9, count))
        chosen = rng.choice(count, int(rng.integers(1, 4)), replace=False)
        if trial % 2:
            # Where no table errs, exchanges cost less than swaps; this one has the first cell of all.
            errors[:] = 0
            chosen[0], *others = with_first[trial % len(with_first)]
            stands = [cells.up[chosen[0]], *(1 - cells.up[chosen[0]],) * 2, cells.up[chosen[0]]]
            cells.up[[chosen[0], *others]] = stands
            inside[others], rests[others] = False, 0
        cells.group[:] = -1
        cells = cells._replace(tied=trial % 4 == 2 and trial < 150)
        if trial % 2 == 0 and trial < 150:
            # Nothing but a rectangle is free. Its third cell, the last of all, stands like the first, or
            # its fourth cell belongs to a number that is kept.
            errors[:] = 0
            inside[:] = True
            rectangle = list(with_last[trial // 4 % len(with_last)])
            chosen = np.array(rectangle[:1])
            one, other = trial // 4 % 2, 1 - trial // 4 % 2
            cells.up[rectangle] = [one, other, other if cells.tied else one, one]
            cells.group[rectangle[3]] = 5 if cells.tied else -1
            inside[rectangle], rests[rectangle] = False, 0
        share = [(0, 1000), (1, 3)][trial % 3 == 0]
        object.__setattr__(problem, "empty_share", share)
        tally = _tally(problem, cells)
        found = np.full(4, -1, dtype=np.int64)
        near = np.empty((3, walks._NEAR), dtype=np.int64)
        arguments = (inside, rests, 9, errors, tally, near, rise, found)
        walks._cheapest(plan.layout, cells, chosen, *arguments)

        def free(c: int, inside: Any = inside, rests: Any = rests) -> bool:
            return not inside[c] and rests[c] < 9

        least, expected = np.inf, (-1, -1, -1, -1)
        for i in chosen.tolist():
            sign = np.int64(-1 if cells.up[i] else 1)
            neighbours(cells.partner, cells.up, cells.group, cells.tied, i, near)
            lines = [[c for c in line if c >= 0] for line in near.tolist()]
            places(plan.layout, cells.codes[i], p, inner, base)
            at = (plan.layout, cells, errors, inner, base, i)
            for u, j in [(w, c) for w in range(3) for c in lines[w] if free(c)]:
                if allowed(cells, tally, i, j, none, none):
                    cost = swap_cost(*at, j, u, sign, rise)
                    if cost < least:
                        least, expected = float(cost), (i, j, -1, -1)
                for v, k in [(w, c) for w in range(u + 1, 3) for c in lines[w] if free(c)]:
                    m = corner.get((i, j, k), -1)
                    if m < 0 or rests[m] >= 9 or cells.up[m] != cells.up[i]:
                        continue
                    if cells.tied and cells.group[m] != cells.group[i]:
                        continue
                    if allowed(cells, tally, i, j, k, m):
                        cost = exchange_cost(*at, j, k, u, v, sign, rise, least)
                        if cost < least:
                            least, expected = float(cost), (i, j, k, m)
        best = tuple(found.tolist())
        assert best == expected
        if best[0] >= 0:
            kinds["exchange" if best[2] >= 0 else "swap"] += 1
            kinds["first"] += best[2] == 0
    assert min(kinds.values()) > 3, kinds


def test_a_walk_ends_without_large_errors_and_hears_a_stop_at_every_step() -> None:
    problem, cells, order, plan, stage = made()
    state = np.array([3], dtype=np.uint64)
    before = _errors(problem, cells, order, plan)
    extra = plan.layout.cell_kind == 3
    largest = int(np.abs(before[~extra]).max())
    steps = 40
    for beyond in (largest, largest - 1, largest - 2):
        cells.up[:] = problem.up[order]
        errors = before.copy()
        tally = _tally(problem, cells)
        asked: list[int] = []
        with stopping(lambda: bool(asked.append(1))):  # noqa: B023
            walks.walk(
                replace(stage, beyond=beyond, walk=steps), cells, errors, tally, state, np.int32(3)
            )
        assert np.array_equal(errors, _errors(problem, cells, order, plan))
        assert tally[0] == _lack(problem, cells)
        assert np.abs(errors[~extra]).max() <= beyond
        assert (not asked) == (beyond == largest)
        assert len(asked) < steps
    cells.up[:] = problem.up[order]
    with stopping(lambda: True), pytest.raises(Stopped):
        walks.walk(
            replace(stage, beyond=largest - 1, walk=9), cells, before, tally, state, np.int32(3)
        )


def test_slices_are_shared_out_in_order_by_the_cells_that_are_visited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two lanes from twice so many cells on, and rounds of at most so many cells."""
    monkeypatch.setattr(lanes, "_LANE_CELLS", 50)
    monkeypatch.setattr(lanes, "_ROUND_CELLS", 20)
    monkeypatch.setattr(lanes, "_ROUNDS", 4)
    block_first = np.array([0, 3, 3, 5, 9])
    majors = np.array([2, 0, 3])
    order = [3, 4, 0, 1, 2, 5, 6, 7, 8]
    for visits, count, many in (
        ([10] * 9, 1, 5),
        ([10, 0, 20, 10, 20, 10, 10, 10, 9], 1, 5),
        ([10, 0, 20, 10, 20, 10, 10, 10, 10], 2, 4),
        ([30] * 9, 2, 7),
        ([1] * 9, 1, 1),
        ([0] * 9, 1, 1),
    ):
        own = np.array(visits)
        shares = share_out(majors, block_first, own)
        assert len(shares.rounds) == many
        assert all(len(lane) == count for lane in shares.rounds)
        # Lane by lane, and within a lane round by round, the slices stand in the order given.
        listed = [
            int(s) for lane in range(count) for some in shares.rounds for s in some[lane].tolist()
        ]
        assert listed == [s for s in order if own[s] > 0]
        total = int(own.sum())
        done = [sum(int(own[s].sum()) for s in some) for some in shares.rounds]
        assert shares.cells == np.cumsum(done).tolist()
        assert shares.most_cells == max(int(own[s].sum()) for some in shares.rounds for s in some)
        middle, before = {}, 0
        for s in (s for s in order if own[s] > 0):
            middle[s] = before + int(own[s]) - (int(own[s]) + 1) // 2
            before += int(own[s])
        for r, some in enumerate(shares.rounds):
            for lane, slices in enumerate(some):
                for s in slices.tolist():
                    assert count * many * middle[s] // total == lane * many + r


def test_what_decides_the_bytes_of_a_large_search_belongs_to_its_version() -> None:
    """Where one of these changes, ``SEARCH`` must change; small searches show only some of them."""
    own = (lanes._LANES, lanes._LANE_CELLS, lanes._ROUND_CELLS, lanes._ROUNDS)
    steps = (walks._TRIED, walks._ASTRAY, walks._PATIENCE, walks._REST, walks._NEAR)
    assert (SEARCH, own, steps) == (8, (2, 8192, 2048, 32), (10_000, 5, 400, 50, 32))
    assert (kernels._FRESH, exchanges._FARTHEST, stages._REACH, stages._QUANTILES) == (
        16,
        4,
        4096,
        4096,
    )
    assert lanes._PART == 2**16


def test_work_is_done_on_as_many_threads_as_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pools: list[int] = []

    class Pool:
        def __init__(self, threads: int, thread_name_prefix: str) -> None:
            pools.append(threads)

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: Any) -> None:
            pass

        def map(self, work: Any, numbers: Any) -> Any:
            return map(work, numbers)

    monkeypatch.setattr(lanes, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(lanes, "workers", lambda: 5)
    for most, expected in ((None, [5]), (1, []), (0, []), (2, [2]), (7, [7])):
        pools.clear()
        seen: list[int] = []
        with working_together(most) as together:
            together(seen.append, 3)
        assert (pools, seen) == (expected, [0, 1, 2])
