"""One call for all algorithms: from a problem to an audited pattern."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask
from lustrum.numeric.solve.deviations import DeviationProgram
from lustrum.numeric.solve.products import one_thread, power_of_two
from lustrum.protect.suppression.check import PatternAudit, audit_deviations, audit_pattern
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.result import Changes, Pattern, Unprotectable, is_least
from lustrum.protect.suppression.search.attacks.attack import Attacks, attacks_on, is_network
from lustrum.protect.suppression.search.attacks.cuts import InfeasibleError
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.boxes import protect_by_boxes
from lustrum.protect.suppression.search.decomposition import simple_bound
from lustrum.protect.suppression.search.heuristic import WitnessedPattern, protect_all
from lustrum.protect.suppression.search.parts import moving_together
from lustrum.protect.suppression.solve import (
    AlgorithmWord,
    PatternOutcome,
    Progress,
    SearchRequest,
    algorithm_named,
    solve,
)
from lustrum.runtime.stop import best_is_taken

__all__ = ["AlgorithmWord", "Progress", "algorithm_named", "suppress"]

_DISCOUNT = 0.5
_LARGE = 50_000  # with more cells linear programs take too long
_BRIEF = 2000  # steps of a search that only finds out which contributors matter
_APART = 100_000  # cells up to which sub-tables of a table with two axes are protected one by one


def suppress(
    problem: SuppressionProblem,
    *,
    algorithm: AlgorithmWord = "auto",
    work: int | None = None,
    previous: npt.ArrayLike | None = None,
    discount: float = _DISCOUNT,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Pattern:
    """Choose secondary suppressions that protect all primary cells, and audit the result.

    ``work`` limits the search: it counts attacks and programs, never seconds, so the same input gives the same
    pattern however busy a machine is. At the limit the best safe pattern so far is returned, with what is
    proven about the cheapest. ``previous`` is the pattern of the last period (a mask, or cell numbers): the
    costs of its cells are multiplied by 1 less the ``discount``, so that it is kept where that costs little.

    >>> problem = SuppressionProblem.of(
    ...     [4, 6, 10, 5, 9, 14, 9, 15, 24],
    ...     [(2, [0, 1]), (5, [3, 4]), (8, [6, 7]), (6, [0, 3]), (7, [1, 4]), (8, [2, 5])],
    ...     primary=[0], upper=[2],
    ... )
    >>> pattern = suppress(problem)
    >>> pattern.safe, np.flatnonzero(pattern.secondary).tolist()
    (True, [1, 3, 4])
    """
    algorithm = algorithm_named(algorithm)
    if work is not None and (isinstance(work, bool) or work < 0):
        raise InputError("'work' of suppression is a number of steps, 0 or more.")
    before = _previous(problem, previous)
    priced = problem
    if before is not None:
        if not 0 <= discount <= 1:
            raise InputError("The discount for cells suppressed before must be between 0 and 1.")
        priced = problem.with_cost(np.where(before, problem.cost * (1 - discount), problem.cost))
    tell = _Listener(progress)
    asked = SearchRequest(algorithm, work, tell, stopped=tell.has_stopped)
    large = problem.values.size > _LARGE
    if algorithm == "auto" and large and is_network(problem):
        why = f"The table has more than {_LARGE} cells and is a network."
        asked = replace(asked, algorithm="quick", why=why)
    elif algorithm == "boxes" or (algorithm == "auto" and large and _may_be_boxed(problem)):
        boxed = _by_boxes(problem, priced, before, tell, asked=algorithm == "boxes")
        if boxed is not None:
            return boxed
    outcome, audit, hopeless = _solved_and_checked(priced, asked, tell, workers)
    return _pattern(problem, priced, before, outcome, audit, hopeless)


def _solved_and_checked(
    problem: SuppressionProblem, asked: SearchRequest, tell: _Listener, workers: int | None
) -> tuple[PatternOutcome, PatternAudit, tuple[Unprotectable, ...]]:
    """Search and audit, again with what contributors know too closely; at last repair what is left short.

    Few of the cells that contributors attack need more than what protects them from an outsider. So a search
    begins without contributors, and takes in the cells that an audit finds short, each for the contributor who
    knows it too closely. What is left out could only ask for more, so that a pattern which is the cheapest
    without it, and found safe, is the cheapest with it. Searches are brief until an audit finds nothing new.
    """
    threats: dict[int, Mask] = {}
    work, steps, bound = asked.work, 0, 0.0
    brief = bool(problem.views) and asked.algorithm != "quick" and (work is None or work > _BRIEF)
    while True:
        views = [
            replace(problem.views[view], targets=cells) for view, cells in sorted(threats.items())
        ]
        some = replace(problem, views=tuple(views))
        outcome, attacks, hopeless = _searched(some, replace(asked, work=_BRIEF if brief else work))
        last, cost = outcome.steps, problem.total_cost(outcome.suppressed)
        steps += last
        # No pattern that withstands all attackers is cheaper than one that withstands some.
        bound = 0.0 if hopeless else max(bound, outcome.lower_bound)
        bound_now = max(outcome.lower_bound, min(bound, cost))
        outcome = _named_stopped(
            problem, replace(outcome, steps=steps, lower_bound=bound_now), tell
        )
        tell("audit", cost, bound_now)
        audit = audit_pattern(problem, outcome.suppressed, workers=workers)
        lost = {cell.cell for cell in hopeless}
        if _take_in(problem, [pair for pair in audit.short if pair[0] not in lost], threats):
            # A long search that left a threat out is not made anew in full, nor a brief one from scratch.
            asked = replace(asked, begin=outcome.suppressed)
            work = work if brief else last // 2
        elif brief and not is_least(cost, bound_now) and not tell.has_stopped():
            brief, asked = False, replace(asked, begin=None)
        else:
            return *_repaired(problem, attacks, outcome, audit, lost, workers), hopeless


def _take_in(
    problem: SuppressionProblem, short: list[tuple[int, int]], threats: dict[int, Mask]
) -> bool:
    """Add what an audit found short to the cells that a search protects from each contributor."""
    fresh = [(cell, view) for cell, view in short if view >= 0]
    fresh = [(cell, view) for cell, view in fresh if view not in threats or not threats[view][cell]]
    if fresh:
        number = moving_together(problem)
        for cell, view in fresh:
            mine = threats.setdefault(view, np.zeros(len(problem), dtype=np.bool_))
            mine[cell] = True
            if number[cell] >= 0:
                mine |= problem.levels_against(problem.views[view])[0] & (number == number[cell])
    return bool(fresh)


class _Listener:
    """Passes progress on, and remembers whether the listener ended the search."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._stopped = progress, False

    def __call__(self, what: str, cost: float, bound: float) -> bool:
        self._stopped |= self._progress is not None and bool(self._progress(what, cost, bound))
        return self._stopped

    def has_stopped(self) -> bool:
        """Whether the listener, or whoever takes the best pattern so far, ended the search."""
        return self._stopped or best_is_taken()


def _named_stopped(
    problem: SuppressionProblem, outcome: PatternOutcome, listener: _Listener
) -> PatternOutcome:
    """Say of a pattern that might not be the cheapest that its search was stopped."""
    cost = problem.total_cost(outcome.suppressed)
    if not listener.has_stopped() or is_least(cost, outcome.lower_bound):
        return outcome
    why = f"{outcome.why} The search was stopped, with the best safe pattern so far."
    return replace(outcome, why=why)


def _may_be_boxed(problem: SuppressionProblem) -> bool:
    """Whether a large table has too many sub-tables to protect one by one, or none that are networks."""
    axes = problem.axes
    return axes is not None and (len(axes) != 2 or problem.values.size > _APART)


def _searched(
    problem: SuppressionProblem, asked: SearchRequest
) -> tuple[PatternOutcome, Attacks, tuple[Unprotectable, ...]]:
    tasks = Tasks.of(problem)
    attacks = attacks_on(tasks)
    # Bases are small and dense: several threads only wait for each other, and round in another order.
    with one_thread():
        try:
            return solve(problem, attacks, asked), attacks, ()
        except InfeasibleError:
            hopeless = unprotectable_cells(problem, tasks, np.arange(len(tasks)))
            return _rest_solved(problem, hopeless, asked), attacks, hopeless


def _by_boxes(
    problem: SuppressionProblem,
    priced: SuppressionProblem,
    before: Mask | None,
    tell: Progress,
    *,
    asked: bool,
) -> Pattern | None:
    """A pattern of boxes with its witnesses; None for tables to which boxes do not apply."""
    boxed = protect_by_boxes(priced, tell)
    if boxed is None:
        if asked:
            raise InputError(
                "Boxes protect one table whose categories nest along every axis; this is another problem."
            )
        return None
    audit = audit_deviations(priced, boxed.suppressed, boxed.deviations)
    why = (
        "It was asked for."
        if asked
        else f"The table has more than {_LARGE} cells and its categories nest."
    )
    outcome = PatternOutcome(boxed.suppressed, simple_bound(priced), boxed.steps, "boxes", why)
    lost = tuple(
        Unprotectable(
            cell,
            priced.name(cell),
            "an outsider",
            (),
            f"{priced.name(cell)} was not protected: no box of cells around it can carry its level.",
            "Allow more cells to be suppressed, merge its category with another, or use 'exact'.",
        )
        for cell in boxed.without.tolist()
    )
    return _pattern(problem, priced, before, outcome, audit, lost)


def _rest_solved(
    problem: SuppressionProblem, hopeless: tuple[Unprotectable, ...], asked: SearchRequest
) -> PatternOutcome:
    """A pattern for the cells that can be protected, without the levels of the others."""
    lost = np.zeros(problem.values.size, dtype=np.bool_)
    lost[[u.cell for u in hopeless]] = True
    upper, lower, sliding = (
        np.where(lost, 0, level) for level in (problem.upper, problem.lower, problem.sliding)
    )
    rest = replace(problem, upper=upper, lower=lower, sliding=sliding)
    try:
        return solve(rest, attacks_on(Tasks.of(rest)), asked)
    except InfeasibleError:
        # The programs disagree about a cell at the edge of what is possible; the audit decides.
        why = "Some cells are at the edge of what can be protected, so all that may be are suppressed."
        return PatternOutcome(~problem.frozen, 0.0, 0, "quick", why)


def _repaired(
    problem: SuppressionProblem,
    attacks: Attacks,
    outcome: PatternOutcome,
    audit: PatternAudit,
    lost: set[int],
    workers: int | None,
) -> tuple[PatternOutcome, PatternAudit]:
    """Suppress more cells for every task that falls short in the audit, until none does."""
    suppressed = outcome.suppressed.copy()
    matrix = problem.relations
    while True:
        open_cells = [cell for cell, _ in audit.short if cell not in lost]
        rows = [row for union in audit.unions for row in union.rows]
        for cell in open_cells:
            rows.extend(np.flatnonzero(np.diff(matrix[:, [cell]].tocsr().indptr)).tolist())
        added = False
        for row in dict.fromkeys(rows):
            cells = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
            more = cells[problem.choice[cells] & ~suppressed[cells]]
            if more.size:
                suppressed[more[np.argmin(problem.cost[more])]] = True
                added = True
        if not added:
            return replace(outcome, suppressed=suppressed), audit
        state = WitnessedPattern(attacks, suppressed)
        order = np.flatnonzero(~np.isin(attacks.tasks.cell, list(lost)))
        protect_all(state, problem.cost, order)
        suppressed = state.suppressed
        audit = audit_pattern(problem, suppressed, workers=workers)
        if audit.safe:
            return replace(outcome, suppressed=suppressed), audit


def _pattern(
    problem: SuppressionProblem,
    priced: SuppressionProblem,
    before: Mask | None,
    outcome: PatternOutcome,
    audit: PatternAudit,
    hopeless: tuple[Unprotectable, ...],
) -> Pattern:
    secondary = outcome.suppressed & ~problem.fixed
    changes = None if before is None else Changes.between(before, outcome.suppressed)
    return Pattern(
        suppressed=outcome.suppressed,
        primary=problem.primary,
        secondary=secondary,
        cost=priced.total_cost(outcome.suppressed),
        lower_bound=outcome.lower_bound,
        algorithm=outcome.algorithm,
        why=outcome.why,
        steps=outcome.steps,
        safe=audit.safe and not hopeless,
        audited=audit.cells,
        unprotectable=hopeless,
        changes=changes,
    )


def _previous(problem: SuppressionProblem, previous: npt.ArrayLike | None) -> Mask | None:
    if previous is None:
        return None
    given = np.asarray(previous)
    if given.dtype == np.bool_:
        if given.size != problem.values.size:
            raise InputError(
                f"The previous pattern has {given.size} cells; there are {problem.values.size}."
            )
        return given.ravel()
    out = np.zeros(problem.values.size, dtype=np.bool_)
    out[given.astype(np.intp)] = True
    return out


# Why a cell cannot be protected, and what would help.


_A_LITTLE = 1.0 + 2.0**-23  # a cell is moved by hardly more than its level
_NAMED = 5  # cells that a message names


def unprotectable_cells(
    problem: SuppressionProblem, tasks: Tasks, candidates: Ints
) -> tuple[Unprotectable, ...]:
    """The cells of these tasks that stay open even if every cell that is not frozen is suppressed."""
    program = DeviationProgram(problem.relations)
    every = problem.relations.T.tocsr()
    unprotectable: dict[int, Unprotectable] = {}
    free = (~problem.frozen).astype(np.float64)
    for task in candidates.tolist():
        cell, level = int(tasks.cell[task]), float(tasks.level[task])
        if cell in unprotectable:
            continue
        up, down = tasks.rooms(int(tasks.view[task]))
        unit = power_of_two(level)
        low, high = -np.minimum(down / unit, 64.0) * free, np.minimum(up / unit, 64.0) * free
        signs = (int(tasks.sign[task]),) if tasks.sign[task] else (1, -1)
        reach, blocked = 0.0, np.zeros(0, dtype=np.intp)
        for sign in signs:
            room = up[cell] if sign > 0 else down[cell]
            limit = min(_A_LITTLE * level, room) / unit
            end, weights = program.reasons(every, cell, (cell, sign, low, high, max(limit, 1e-9)))
            reach += min(end, limit) * unit
            touched = np.flatnonzero(weights)
            blocked = np.union1d(blocked, touched[problem.frozen[touched]])
            if room < level and end >= limit - 1e-9:
                blocked = np.zeros(0, dtype=np.intp)
        if reach < level * (1.0 - 1e-6):
            unprotectable[cell] = _explained(problem, tasks, task, blocked.astype(np.int64))
    return tuple(unprotectable.values())


def _explained(
    problem: SuppressionProblem, tasks: Tasks, task: int, blocked: Ints
) -> Unprotectable:
    cell, who = int(tasks.cell[task]), tasks.attacker(task)
    name = problem.name(cell)
    names = ", ".join(problem.name(int(c)) for c in blocked[:_NAMED])
    if blocked.size > _NAMED:
        names += f" and {blocked.size - _NAMED} more"
    if blocked.size:
        reason = (
            f"{name} cannot be protected from {who}: it can be worked out too closely from cells that must "
            f"be published ({names})."
        )
        empty = bool((problem.values[blocked] == 0).all())
        allow = "empty cells" if empty else "one of these"
        how = " ('zeros', or --zeros)" if empty else ""
        cure = (
            f"Allow {allow} to be suppressed{how}, or merge the category of the cell with another."
        )
    else:
        reason = (
            f"{name} cannot be protected from {who}: the attacker bounds are closer than its level."
        )
        cure = "Widen the attacker bounds, lower the level, or merge the category of the cell with another."
    return Unprotectable(cell, name, who, tuple(int(c) for c in blocked), reason, cure)
