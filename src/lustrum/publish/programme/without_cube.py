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
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from lustrum.arrays import Ints, Mask
from lustrum.audit import Relation
from lustrum.audit.knowledge.responses import layout_key
from lustrum.model import InputError
from lustrum.protect.suppression import Pattern, SuppressionProblem
from lustrum.protect.suppression.check import audit_pattern
from lustrum.protect.suppression.result import Changes
from lustrum.protect.suppression.search.parts import cut_out
from lustrum.publish.programme.system import System
from lustrum.structure import Structure, complete_relations

__all__ = ["Smaller", "pattern_of_tables", "without_cube"]

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any
Search: TypeAlias = Callable[[SuppressionProblem, Mask | None], Pattern]


@dataclass(frozen=True, eq=False, repr=False)
class Smaller:
    """The problem of the tables' cells; ``cells`` are their numbers among all."""

    problem: SuppressionProblem
    cells: Ints


def pattern_of_tables(
    system: System,
    problem: SuppressionProblem,
    previous: Mask | None,
    search: Search,
    workers: int | None = None,
) -> Pattern:
    """A pattern by a search without the cube, where it is safe with it; otherwise by one with all cells.

    ``search`` gives the audited pattern of a problem, of which a pattern of the last period may be known. Fewer
    relations tell an attacker less, so that no safe pattern costs less than the bound that the smaller search
    proves.
    """
    small = without_cube(system, problem)
    if small is None:
        return search(problem, previous)
    cells = small.cells
    found = search(small.problem, None if previous is None else previous[cells])
    if not found.safe:
        return search(problem, previous)
    suppressed = problem.fixed.copy()
    suppressed[cells] = found.suppressed
    audit = audit_pattern(problem, suppressed, workers=workers)
    if not audit.safe:
        return search(problem, previous)
    return replace(
        found,
        suppressed=suppressed,
        primary=problem.primary,
        secondary=suppressed & ~problem.fixed,
        audited=audit.cells,
        changes=None if previous is None else Changes.between(previous, suppressed),
    )


def without_cube(system: System, problem: SuppressionProblem) -> Smaller | None:
    """The problem without the cells of the cube; None where a table holds them, or one needs protection."""
    tables = {layout_key(part.layout) for part in system.parts}
    layouts = [layout for layout in system.layouts if layout_key(layout) in tables]
    every = sum(int(np.prod(layout.shape)) for layout in system.layouts)
    # The cube stands behind the tables of each response.
    kept = sum(int(np.prod(layout.shape)) for layout in layouts)
    starts = every * np.arange(len(system.responses))
    cells = (starts[:, None] + np.arange(kept)).ravel()
    left_out = np.ones(problem.values.size, dtype=np.bool_)
    left_out[cells] = False
    if not left_out.any() or bool((left_out & (problem.primary | ~problem.never)).any()):
        return None
    try:
        relations = _relations(system, Structure.of_tables(layouts, variables=system.variables))
    except InputError:
        return None  # groups that overlap in odd ways are related more simply by the cube
    nothing = np.zeros(0, dtype=np.int64)
    return Smaller(replace(cut_out(problem, cells, nothing), relations=relations), cells)


def _relations(system: System, structure: Structure) -> Sparse:
    """The relations between the cells of tables, response by response, and those between responses."""
    names, cells = system.responses, structure.rows
    inside = complete_relations(structure).matrix
    blocks = [sparse.block_diag([inside] * len(names), format="csr")]
    same = sparse.eye_array(cells, dtype=np.int64, format="csr")
    for words in system.relations:
        relation = Relation.of(words)
        weights = np.array([[relation.weights.get(name, 0) for name in names]], dtype=np.int64)
        blocks.append(sparse.kron(sparse.csr_array(weights), same, format="csr"))
    return sparse.csr_array(sparse.vstack(blocks, format="csr"))
