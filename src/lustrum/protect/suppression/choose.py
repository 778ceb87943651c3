"""One call for all algorithms: from a problem to an audited pattern."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from lustrum.arrays import Mask
from lustrum.model import InputError
from lustrum.model.errors import choices
from lustrum.protect.suppression.check import Audit, audit_deviations, audit_pattern
from lustrum.protect.suppression.explain import unprotectable_cells
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.result import Changes, Pattern, Unprotectable
from lustrum.protect.suppression.search.attacks import (
    Attacks,
    FlowAttacks,
    ProgramAttacks,
    attacks_on,
)
from lustrum.protect.suppression.search.boxes import protect_by_boxes, simple_bound
from lustrum.protect.suppression.search.cuts import InfeasibleError
from lustrum.protect.suppression.search.exact import BranchAndCut
from lustrum.protect.suppression.search.heuristic import Witnessed, clean_up, improve, protect_all
from lustrum.protect.suppression.search.merge import Merged, merged_problem
from lustrum.protect.suppression.search.parts import parts_of
from lustrum.protect.suppression.search.quick import quick_pattern
from lustrum.protect.suppression.search.start import published_pattern
from lustrum.protect.suppression.search.tasks import Tasks
from lustrum.solve.threads import one_thread

__all__ = ["AlgorithmWord", "Progress", "suppress"]

AlgorithmWord = Literal["auto", "exact", "heuristic", "quick", "boxes"]
Progress = Callable[[str, float, float], None]
"""Is told what is going on, the cost of the best pattern so far, and the lower bound."""

_DISCOUNT = 0.5
_LARGE = 50_000  # with more cells linear programs take too long
_MOST_WORK = 150_000
_SHARE = 0.4  # the share of the work for a first pattern, before anything is proven
_WORK, _WORK_EACH = (
    40_000,
    60,
)  # steps by default: for any problem, and for each attack of average size


@dataclass(frozen=True, eq=False)
class _Outcome:
    suppressed: Mask
    lower_bound: float
    steps: int
    algorithm: str
    why: str


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
    pattern on every machine. At the limit the best safe pattern so far is returned, with what is proven about
    the cheapest. ``previous`` is the pattern of the last period (a mask, or cell numbers): the costs of its
    cells are multiplied by 1 less the ``discount``, so that it is kept where that costs little.

    >>> problem = SuppressionProblem.of(
    ...     [4, 6, 10, 5, 9, 14, 9, 15, 24],
    ...     [(2, [0, 1]), (5, [3, 4]), (8, [6, 7]), (6, [0, 3]), (7, [1, 4]), (8, [2, 5])],
    ...     primary=[0], upper=[2],
    ... )
    >>> pattern = suppress(problem)
    >>> pattern.safe, np.flatnonzero(pattern.secondary).tolist()
    (True, [1, 3, 4])
    """
    if algorithm not in get_args(AlgorithmWord):
        known = choices(str(algorithm), get_args(AlgorithmWord))
        raise InputError(f"'algorithm' of suppression cannot be {algorithm!r}; {known}.")
    if work is not None and (isinstance(work, bool) or work < 0):
        raise InputError("'work' of suppression is a number of steps, 0 or more.")
    before = _previous(problem, previous)
    priced = problem
    if before is not None:
        if not 0 <= discount <= 1:
            raise InputError("The discount for cells suppressed before must be between 0 and 1.")
        priced = problem.with_cost(np.where(before, problem.cost * (1 - discount), problem.cost))
    tell = progress or (lambda what, cost, bound: None)
    large = problem.values.size > _LARGE and problem.axes is not None
    if algorithm == "boxes" or (algorithm == "auto" and large):
        boxed = _by_boxes(problem, priced, before, tell, asked=algorithm == "boxes")
        if boxed is not None:
            return boxed
    tasks = Tasks.of(priced)
    attacks = attacks_on(tasks)
    hopeless: tuple[Unprotectable, ...] = ()
    # Bases are small and dense: several threads only wait for each other, and round in another order.
    with one_thread():
        try:
            found = _solve(priced, attacks, algorithm, work, tell)
        except InfeasibleError:
            hopeless = unprotectable_cells(priced, tasks, np.arange(len(tasks)))
            found = _rest_solved(priced, hopeless, algorithm, work, tell)
    tell("audit", priced.total_cost(found.suppressed), found.lower_bound)
    audit = audit_pattern(priced, found.suppressed, workers=workers)
    found, audit = _repaired(priced, attacks, found, audit, hopeless, workers)
    return _pattern(problem, priced, before, found, audit, hopeless)


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
        "Asked for."
        if asked
        else f"The table has more than {_LARGE} cells and its categories nest."
    )
    found = _Outcome(boxed.suppressed, simple_bound(priced), boxed.steps, "boxes", why)
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
    return _pattern(problem, priced, before, found, audit, lost)


def _solve(
    problem: SuppressionProblem,
    attacks: Attacks,
    algorithm: AlgorithmWord,
    work: int | None,
    tell: Progress,
) -> _Outcome:
    """A pattern for every part of the problem, put together; cells that move together are one cell."""
    merged = merged_problem(problem)
    if merged is not None:
        small = attacks_on(Tasks.of(merged.problem))
        if isinstance(small, FlowAttacks) or not isinstance(attacks, FlowAttacks):
            return _solve_merged(problem, merged, small, algorithm, work, tell)
    return _solve_parts(problem, attacks, algorithm, work, tell)


def _solve_merged(
    problem: SuppressionProblem,
    merged: Merged,
    attacks: Attacks,
    algorithm: AlgorithmWord,
    work: int | None,
    tell: Progress,
) -> _Outcome:
    more = merged.constant

    def tell_all(what: str, cost: float, bound: float) -> None:
        tell(what, cost + more, bound + more)

    found = _solve_parts(merged.problem, attacks, algorithm, work, tell_all)
    count = len(problem) - int(problem.frozen.sum())
    why = f"Of {count} cells that may be suppressed, {len(merged.problem)} move by themselves. "
    return replace(
        found,
        suppressed=merged.spread(problem, found.suppressed),
        lower_bound=found.lower_bound + more,
        why=why + found.why,
    )


def _solve_parts(
    problem: SuppressionProblem,
    attacks: Attacks,
    algorithm: AlgorithmWord,
    work: int | None,
    tell: Progress,
) -> _Outcome:
    parts = parts_of(problem)
    if parts is None:
        return _solve_part(problem, attacks, algorithm, work, tell)
    suppressed = problem.fixed.copy()
    every = []
    for part in parts:
        own = attacks_on(Tasks.of(part.problem))
        share = None if work is None else work * len(own.tasks) // max(len(attacks.tasks), 1)
        found = _solve_part(part.problem, own, algorithm, share, tell)
        suppressed[part.cells[found.suppressed]] = True
        every.append(found)
    return _Outcome(
        suppressed,
        sum(found.lower_bound for found in every),
        sum(found.steps for found in every),
        every[0].algorithm,
        f"The problem falls into {len(parts)} parts. {every[0].why}",
    )


def _solve_part(
    problem: SuppressionProblem,
    attacks: Attacks,
    algorithm: AlgorithmWord,
    work: int | None,
    tell: Progress,
) -> _Outcome:
    """A pattern by the algorithm asked for, or by the one that suits the problem."""
    tasks = len(attacks.tasks)
    if not tasks:
        why = "No cell needs protection beyond being suppressed itself."
        return _Outcome(problem.fixed.copy(), 0.0, 0, "exact", why)
    kind = "flows" if isinstance(attacks, FlowAttacks) else "linear programs"
    if algorithm == "quick":
        state = quick_pattern(attacks, tell)
        why = f"Asked for. The table was attacked by {kind}."
        return _Outcome(state.suppressed, simple_bound(problem), attacks.steps, "quick", why)
    limit = min(_WORK + _WORK_EACH * tasks * attacks.weight, _MOST_WORK) if work is None else work
    first = None
    if not isinstance(attacks, ProgramAttacks):
        state = Witnessed(attacks, problem.fixed)
        protect_all(state, problem.cost, np.arange(tasks))
        tell("heuristic", problem.total_cost(state.suppressed), 0.0)
        if algorithm == "heuristic":
            clean_up(state, problem.cost)
            state = improve(state, problem.cost, limit)
    else:
        share = 1.0 if algorithm == "heuristic" else _SHARE
        state, first = published_pattern(attacks, int(share * limit), tell)
    if algorithm == "heuristic":
        why = f"Asked for. The table was attacked by {kind}."
        return _Outcome(state.suppressed, simple_bound(problem), attacks.steps, "heuristic", why)
    found = BranchAndCut(
        attacks,
        state,
        limit,
        tell,
        near=None if first is None else first.near,
        around=None if first is None else first.around,
        known=() if first is None else first.needs.cuts,
    ).run()
    why = "Asked for." if algorithm == "exact" else f"The problem has {tasks} attacks to withstand."
    why += f" The table was attacked by {kind}."
    if not found.finished:
        why += (
            f" The search ended at its limit of {limit} steps, with the best safe pattern so far."
        )
    bound = max(found.lower_bound, min(simple_bound(problem), found.cost))
    return _Outcome(found.state.suppressed, bound, attacks.steps, "exact", why)


def _rest_solved(
    problem: SuppressionProblem,
    hopeless: tuple[Unprotectable, ...],
    algorithm: AlgorithmWord,
    work: int | None,
    tell: Progress,
) -> _Outcome:
    """A pattern for the cells that can be protected, without the levels of the others."""
    lost = np.zeros(problem.values.size, dtype=np.bool_)
    lost[[u.cell for u in hopeless]] = True
    upper, lower, sliding = (
        np.where(lost, 0, level) for level in (problem.upper, problem.lower, problem.sliding)
    )
    rest = replace(problem, upper=upper, lower=lower, sliding=sliding)
    try:
        return _solve(rest, attacks_on(Tasks.of(rest)), algorithm, work, tell)
    except InfeasibleError:
        # The programs disagree about a cell at the edge of what is possible; the audit decides.
        why = "Some cells are at the edge of what can be protected, so all that may be are suppressed."
        return _Outcome(~problem.frozen, 0.0, 0, "heuristic", why)


def _repaired(
    problem: SuppressionProblem,
    attacks: Attacks,
    found: _Outcome,
    audit: Audit,
    hopeless: tuple[Unprotectable, ...],
    workers: int | None,
) -> tuple[_Outcome, Audit]:
    """Suppress more cells for every task that falls short in the audit, until none does."""
    lost = {u.cell for u in hopeless}
    suppressed = found.suppressed.copy()
    matrix = problem.relations
    while True:
        open_cells = [cell for cell, _ in audit.short if cell not in lost]
        rows = list(audit.lines)
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
            return replace(found, suppressed=suppressed), audit
        state = Witnessed(attacks, suppressed)
        order = np.flatnonzero(~np.isin(attacks.tasks.cell, list(lost)))
        protect_all(state, problem.cost, order)
        suppressed = state.suppressed
        audit = audit_pattern(problem, suppressed, workers=workers)
        if audit.safe:
            return replace(found, suppressed=suppressed), audit


def _pattern(
    problem: SuppressionProblem,
    priced: SuppressionProblem,
    before: Mask | None,
    found: _Outcome,
    audit: Audit,
    hopeless: tuple[Unprotectable, ...],
) -> Pattern:
    secondary = found.suppressed & ~problem.fixed
    changes = None
    if before is not None:
        changes = Changes(
            kept=np.flatnonzero(found.suppressed & before),
            added=np.flatnonzero(found.suppressed & ~before),
            dropped=np.flatnonzero(~found.suppressed & before),
        )
    return Pattern(
        suppressed=found.suppressed,
        primary=problem.primary,
        secondary=secondary,
        cost=priced.total_cost(found.suppressed),
        lower_bound=found.lower_bound,
        algorithm=found.algorithm,
        why=found.why,
        steps=found.steps,
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
