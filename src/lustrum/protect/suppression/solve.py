"""From a problem to a pattern that is still to be audited, by the algorithm that suits."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Mask
from lustrum.model.errors import choices
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.result import is_least
from lustrum.protect.suppression.search.attacks.attack import (
    Attacks,
    FlowAttacks,
    attacks_on,
    is_network,
)
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.decomposition import (
    SubTable,
    bound_by_parts,
    protect_top_down,
    repaired,
    simple_bound,
    subtables_of,
)
from lustrum.protect.suppression.search.exact import BranchAndCut
from lustrum.protect.suppression.search.heuristic import WitnessedPattern, protect_all
from lustrum.protect.suppression.search.parts import Merged, cut_out, merged_problem, parts_of
from lustrum.protect.suppression.search.start import FirstPattern, published_pattern, quick_pattern
from lustrum.runtime.stop import best_is_taken

AlgorithmWord = Literal["auto", "exact", "quick", "boxes"]
DROPPED_NAMES: dict[str, AlgorithmWord] = {
    "decomposition": "exact",
    "elimination": "quick",
    "heuristic": "quick",
}
Progress = Callable[[str, float, float], object]
"""Is told what goes on, the cost of the best pattern and a bound; if it gives True, the search ends with it."""

_MOST_WORK = 150_000
_SHARE = 0.4  # the share of the work for a first pattern, before anything is proven
_SHARE_MOST = 4000  # steps of the same
_WORK_BELOW = 500  # for one sub-table of a hierarchy
_ON = 4000  # cells up to which a pattern by sub-tables is improved in the table as a whole
_WHOLE = 10_000  # cells up to which a table whose sub-tables are no networks is searched as a whole
_WORK_WHOLE = 12_000  # steps by default for such a table where it is a large one
# Steps by default: for any problem, by programs or by flows, which are quicker; and for each average attack.
_WORK, _WORK_FLOWS, _WORK_EACH = 40_000, 80_000, 60


@dataclass(frozen=True, eq=False)
class PatternOutcome:
    """A pattern that its search believes in, the bound on the cost of any, and how it was found."""

    suppressed: Mask
    lower_bound: float
    steps: int
    algorithm: str
    why: str


@dataclass(frozen=True, eq=False)
class SearchRequest:
    """How a pattern is to be found: the algorithm and why, the limit of its work, a safe pattern if known.

    ``begin`` is a pattern that is nearly safe: others are looked for near it, and not from scratch.
    """

    algorithm: AlgorithmWord
    work: int | None
    tell: Progress
    known: Mask | None = None
    begin: Mask | None = None
    why: str = "It was asked for."
    stopped: Callable[[], bool] = best_is_taken
    """Whether somebody ended the search before its end."""


def algorithm_named(word: str) -> AlgorithmWord:
    """The algorithm of this name; earlier names warn and stand for what took their place."""
    if word in DROPPED_NAMES:
        now = DROPPED_NAMES[word]
        text = f"The algorithm {word!r} of suppression is now {now!r}; name that one."
        warnings.warn(text, FutureWarning, stacklevel=3)
        return now
    if word not in get_args(AlgorithmWord):
        known = choices(str(word), get_args(AlgorithmWord))
        raise InputError(f"'algorithm' of suppression cannot be {word!r}; {known}.")
    return cast("AlgorithmWord", word)


def solve(problem: SuppressionProblem, attacks: Attacks, asked: SearchRequest) -> PatternOutcome:
    """A pattern that protects all cells as far as attacks show; raises where one cannot be protected."""
    subtables = None
    near = asked.begin is not None and len(problem) <= _ON
    if asked.algorithm != "quick" and not near and not isinstance(attacks, FlowAttacks):
        subtables = subtables_of(problem)
    if subtables is None:
        return _together(problem, attacks, asked)
    if len(problem) <= _WHOLE and not _are_networks(problem, subtables):
        if asked.work is None and len(problem) > _ON:
            asked = replace(asked, work=_WORK_WHOLE)
        outcome = _together(problem, attacks, asked)
        cost = problem.total_cost(outcome.suppressed)
        if is_least(cost, outcome.lower_bound):
            return outcome
        # Where the whole does not prove its pattern, sub-tables may give a better bound.
        by_parts, more = bound_by_parts(problem, subtables)
        bound = max(outcome.lower_bound, min(by_parts, cost))
        asked.tell("sub-tables", cost, bound)
        return replace(outcome, lower_bound=bound, steps=outcome.steps + more)
    outcome = _decomposed(problem, attacks, subtables, asked)
    cost = problem.total_cost(outcome.suppressed)
    if is_least(cost, outcome.lower_bound) or len(problem) > _ON:
        return outcome
    whole = _together(problem, attacks, replace(asked, known=outcome.suppressed))
    return replace(
        whole,
        lower_bound=max(outcome.lower_bound, whole.lower_bound),
        steps=outcome.steps + whole.steps,
        why=f"{outcome.why} {whole.why}",
    )


def _are_networks(problem: SuppressionProblem, subtables: list[SubTable]) -> bool:
    """Whether a sub-table is a network; those of one table are alike, so the largest one tells."""
    largest = max(subtables, key=lambda sub: sub.cells.size)
    return is_network(cut_out(problem, largest.cells, largest.rows))


def _cheaper(
    state: WitnessedPattern, first: FirstPattern | None, known: Mask | None
) -> WitnessedPattern:
    """The pattern that was known before, where it costs less and attacks find all levels kept."""
    problem = state.attacks.tasks.problem
    if known is None or problem.total_cost(known) >= problem.total_cost(state.suppressed):
        return state
    other = WitnessedPattern(state.attacks, known | problem.fixed)
    if other.look(np.arange(len(state.attacks.tasks))).size:
        return state
    if first is not None:
        first.best = other.suppressed.copy()
    return other


def _decomposed(
    problem: SuppressionProblem, attacks: Attacks, subtables: list[SubTable], asked: SearchRequest
) -> PatternOutcome:
    steps = 0
    share = _WORK_BELOW
    if asked.work is not None:
        share = min(share, asked.work // len(subtables))

    def small(part: SuppressionProblem) -> Mask:
        nonlocal steps
        part_attacks = attacks_on(Tasks.of(part))
        quiet = SearchRequest("exact", share, lambda what, cost, bound: None)
        outcome = _together(part, part_attacks, quiet)
        steps += outcome.steps
        return outcome.suppressed

    start = protect_top_down(problem, subtables, small)
    asked.tell("sub-tables", problem.total_cost(start), 0.0)
    state = repaired(attacks, start, asked.tell)
    bound, more = bound_by_parts(problem, subtables)
    asked.tell("decomposition", problem.total_cost(state.suppressed), bound)
    why = f"The table has hierarchies and was protected from the top down in {len(subtables)} sub-tables."
    bound = max(min(bound, problem.total_cost(state.suppressed)), simple_bound(problem))
    steps += attacks.steps + more
    return PatternOutcome(state.suppressed, bound, steps, "exact", why)


def _together(
    problem: SuppressionProblem, attacks: Attacks, asked: SearchRequest
) -> PatternOutcome:
    """A pattern for every part of the problem, put together; cells that move together are one cell."""
    merged = merged_problem(problem)
    if merged is not None:
        small = attacks_on(Tasks.of(merged.problem))
        if isinstance(small, FlowAttacks) or not isinstance(attacks, FlowAttacks):
            return _merged(problem, merged, small, asked)
    return _parts(problem, attacks, asked)


def _merged(
    problem: SuppressionProblem, merged: Merged, attacks: Attacks, asked: SearchRequest
) -> PatternOutcome:
    more = merged.constant

    def tell_all(what: str, cost: float, bound: float) -> object:
        return asked.tell(what, cost + more, bound + more)

    known, begin = (
        None if mask is None else merged.gathered(mask) for mask in (asked.known, asked.begin)
    )
    inside = replace(asked, tell=tell_all, known=known, begin=begin)
    outcome = _parts(merged.problem, attacks, inside)
    count = len(problem) - int(problem.frozen.sum())
    why = f"Of {count} cells that may be suppressed, {len(merged.problem)} move by themselves. "
    return replace(
        outcome,
        suppressed=merged.spread(problem, outcome.suppressed),
        lower_bound=outcome.lower_bound + more,
        why=why + outcome.why,
    )


def _parts(problem: SuppressionProblem, attacks: Attacks, asked: SearchRequest) -> PatternOutcome:
    parts = parts_of(problem)
    if parts is None:
        return _part(problem, attacks, asked)
    suppressed = problem.fixed.copy()
    every = []
    for part in parts:
        part_attacks = attacks_on(Tasks.of(part.problem))
        share = asked.work
        if share is not None:
            share = share * len(part_attacks.tasks) // max(len(attacks.tasks), 1)
        known, begin = (
            None if mask is None else mask[part.cells] for mask in (asked.known, asked.begin)
        )
        mine = replace(asked, work=share, known=known, begin=begin)
        outcome = _part(part.problem, part_attacks, mine)
        suppressed[part.cells[outcome.suppressed]] = True
        every.append(outcome)
    return PatternOutcome(
        suppressed,
        math.fsum(outcome.lower_bound for outcome in every),
        sum(outcome.steps for outcome in every),
        every[0].algorithm,
        f"The problem falls into {len(parts)} parts. {every[0].why}",
    )


def _part(problem: SuppressionProblem, attacks: Attacks, asked: SearchRequest) -> PatternOutcome:
    """A pattern by the algorithm asked for, or by the one that suits the problem."""
    tasks = len(attacks.tasks)
    if not tasks:
        why = "No cell needs protection beyond being suppressed itself."
        return PatternOutcome(problem.fixed.copy(), 0.0, 0, "exact", why)
    by_flows = isinstance(attacks, FlowAttacks)
    tested = f" Levels were tested by {'flows' if by_flows else 'linear programs'}."
    if asked.algorithm == "quick":
        suppressed = quick_pattern(attacks, asked.work, asked.tell)
        bound = simple_bound(problem)
        return PatternOutcome(suppressed, bound, attacks.steps, "quick", asked.why + tested)
    usual = (_WORK_FLOWS if by_flows else _WORK) + _WORK_EACH * tasks * attacks.weight
    limit = min(usual, _MOST_WORK) if asked.work is None else asked.work
    first = None
    if isinstance(attacks, FlowAttacks):
        state = WitnessedPattern(attacks, problem.fixed)
        protect_all(state, problem.cost, np.arange(tasks))
        asked.tell("heuristic", problem.total_cost(state.suppressed), 0.0)
    else:
        share = min(int(_SHARE * limit), _SHARE_MOST)
        state, first = published_pattern(attacks, share, asked.tell, asked.begin)
        state = _cheaper(state, first, asked.known)
        if asked.begin is not None and attacks.steps >= limit:
            why = f"{asked.why}{tested} The search ended at its limit of {limit} steps."
            return PatternOutcome(
                state.suppressed, simple_bound(problem), attacks.steps, "exact", why
            )
    outcome = BranchAndCut(attacks, state, limit, asked.tell, first).run()
    why = asked.why
    if asked.algorithm == "auto":
        why = f"It was chosen because there are only {tasks} protection levels to keep."
    why += tested
    bound = max(outcome.lower_bound, min(simple_bound(problem), outcome.cost))
    if not outcome.finished and not is_least(outcome.cost, bound) and not asked.stopped():
        why += (
            f" The search ended at its limit of {limit} steps, with the best safe pattern so far."
        )
    return PatternOutcome(outcome.state.suppressed, bound, attacks.steps, "exact", why)
