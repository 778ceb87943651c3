"""Look for a pattern among the cells of tables alone, and audit it with the cube behind them.

Behind linked tables stands the cube of all their variables. No table shows its cells and none of them needs
protection: all that they do is to say which tables are possible together. Two tables that agree on the
variables they share are always possible together, because the cube can be filled in as if the others were
independent of each other. So the cube rules nothing out, though most cells of a system are its own. Three
tables can contradict each other, as activity by region, activity by size and region by size do. Therefore a
pattern is looked for without the cube, and it counts only if an audit with all cells finds it safe. Otherwise
the search is made with all cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from lustrum.model.arrays import Ints, Mask
from lustrum.protect.suppression.check import audit_pattern
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.result import Changes, Pattern

Search: TypeAlias = Callable[[SuppressionProblem, Mask | None], Pattern]


@dataclass(frozen=True, eq=False, repr=False)
class Smaller:
    """The problem of the tables' cells; ``cells`` are their numbers among all."""

    problem: SuppressionProblem
    cells: Ints


def pattern_with_cube(
    problem: SuppressionProblem,
    small: Smaller | None,
    previous: Mask | None,
    search: Search,
    workers: int | None = None,
) -> Pattern:
    """A pattern by a search without the cube, where it is safe with it; otherwise by one with all cells.

    ``search`` gives the audited pattern of a problem, of which a pattern of the last period may be known. Fewer
    relations tell an attacker less, so that no safe pattern costs less than the bound that the smaller search
    proves.
    """
    if small is None:
        return search(problem, previous)
    cells = small.cells
    pattern = search(small.problem, None if previous is None else previous[cells])
    if not pattern.safe:
        return search(problem, previous)
    suppressed = problem.fixed.copy()
    suppressed[cells] = pattern.suppressed
    audit = audit_pattern(problem, suppressed, workers=workers)
    if not audit.safe:
        return search(problem, previous)
    return replace(
        pattern,
        suppressed=suppressed,
        primary=problem.primary,
        secondary=suppressed & ~problem.fixed,
        audited=audit.cells,
        changes=None if previous is None else Changes.between(previous, suppressed),
    )
