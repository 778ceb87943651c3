"""A safe pattern by elimination: none against exact disclosure is missing, then ranges are repaired."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Mask
from lustrum.protect.suppression.decomposition.repair import repaired
from lustrum.protect.suppression.elimination.narrow import carriers, narrowed
from lustrum.protect.suppression.elimination.publish import undisclosed_pattern
from lustrum.protect.suppression.search.attacks.attack import Attacks, FlowAttacks, ProgramAttacks
from lustrum.protect.suppression.search.attacks.cuts import InfeasibleError
from lustrum.protect.suppression.search.heuristic import (
    WitnessedPattern,
    clean_up,
    improve,
    protect_all,
)

Tell = Callable[[str, float, float], object]

_LAYERS = 8  # forests for each size of levels
_WORK = 2000  # attacks that look for cheaper patterns in the end
_LARGE = (
    20_000  # cells of a table that is no network, for which a basis of all deviations is too large
)
_FEW = 5000  # cells of a network that need not be narrowed


def eliminated_pattern(attacks: Attacks, tell: Tell, work: int | None = None) -> tuple[Mask, int]:
    """A pattern that keeps all levels, as far as attacks show, and the steps it took.

    ``work`` limits the attacks that look for cheaper patterns of a network, or of a large table, in the end.
    Raises where a level cannot be kept, or where the relations fill in too much for elimination.
    """
    problem = attacks.tasks.problem
    assert isinstance(attacks, FlowAttacks | ProgramAttacks)
    undisclosed = undisclosed_pattern(attacks)
    if undisclosed is None:
        raise InputError(
            "The relations of this table fill in too much for 'elimination'; use 'boxes' or 'quick'."
        )
    more = _WORK if work is None else min(work, _WORK)
    tell("elimination", problem.total_cost(undisclosed.suppressed), 0.0)
    if isinstance(attacks, FlowAttacks) and len(problem) > _FEW:
        cells = np.flatnonzero(undisclosed.suppressed | carriers(attacks, _LAYERS))
        few = narrowed(attacks, cells)
        try:
            state = _repaired_cell_by_cell(few, undisclosed.suppressed[cells], tell, more)
        except InfeasibleError:
            pass  # other cells may help
        else:
            out = problem.fixed.copy()
            out[cells[state.suppressed]] = True
            return out, few.steps
    if isinstance(attacks, FlowAttacks) or len(problem) > _LARGE:
        state = _repaired_cell_by_cell(attacks, undisclosed.suppressed, tell, more)
    else:
        state = repaired(attacks, undisclosed.suppressed, tell)
    return state.suppressed, attacks.steps


def _repaired_cell_by_cell(
    attacks: Attacks, suppressed: Mask, tell: Tell, work: int
) -> WitnessedPattern:
    """Attack, suppress more where a level is not kept, publish what is not needed, then improve."""
    problem = attacks.tasks.problem
    state = WitnessedPattern(attacks, suppressed)
    short = state.look(np.arange(len(attacks.tasks)))
    protect_all(state, problem.cost, short)
    tell("repaired", problem.total_cost(state.suppressed), 0.0)
    clean_up(state, problem.cost)
    tell("cleaned up", problem.total_cost(state.suppressed), 0.0)
    return improve(state, problem.cost, work)
