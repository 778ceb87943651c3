"""The problem of the tables of a programme without the cube behind them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from lustrum.audit import Relation
from lustrum.audit.knowledge.responses import layout_key
from lustrum.model import InputError
from lustrum.model.arrays import Mask
from lustrum.numeric.structure import Structure, complete_relations
from lustrum.protect.suppression import Pattern, SuppressionProblem
from lustrum.protect.suppression.cube import Search, Smaller, pattern_with_cube
from lustrum.protect.suppression.search.parts import cut_out
from lustrum.publish.programme.system import ProgrammeSystem

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any


def pattern_of_tables(
    system: ProgrammeSystem,
    problem: SuppressionProblem,
    previous: Mask | None,
    search: Search,
    workers: int | None = None,
) -> Pattern:
    """A pattern by a search without the cube, where it is safe with it; otherwise by one with all cells."""
    return pattern_with_cube(problem, without_cube(system, problem), previous, search, workers)


def without_cube(system: ProgrammeSystem, problem: SuppressionProblem) -> Smaller | None:
    """The problem without the cells of the cube; None where a table holds them, or one needs protection."""
    tables = {layout_key(part.layout) for part in system.parts}
    layouts = [layout for layout in system.layouts if layout_key(layout) in tables]
    every = sum(int(np.prod(layout.shape)) for layout in system.layouts)
    # The cube stands behind the tables of each response.
    table_cells = sum(int(np.prod(layout.shape)) for layout in layouts)
    starts = every * np.arange(len(system.responses))
    cells = (starts[:, None] + np.arange(table_cells)).ravel()
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


def _relations(system: ProgrammeSystem, structure: Structure) -> Sparse:
    """The relations between the cells of tables, response by response, and those between responses."""
    names, cells = system.responses, structure.rows
    inside = complete_relations(structure).matrix
    blocks = [sparse.block_diag([inside] * len(names), format="csr")]
    same = sparse.eye_array(cells, dtype=np.int64, format="csr")
    for equation in system.relations:
        relation = Relation.of(equation)
        weights = np.array([[relation.weights.get(name, 0) for name in names]], dtype=np.int64)
        blocks.append(sparse.kron(sparse.csr_array(weights), same, format="csr"))
    return sparse.csr_array(sparse.vstack(blocks, format="csr"))
