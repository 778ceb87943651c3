"""Which finest cells lie in large errors, where a sweep is to end them.

With few sweeps and very many cells, errors of large table cells are left. Any of many cells can mend them, so
that it is enough to visit some, up to a share of all cells: those of some categories of the major variable,
others in every sweep. Cells in large errors within one category are few, and all are visited.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.model.arrays import Array
from lustrum.numeric.compiled import compiled
from lustrum.protect.population.search.forces import place_inner, place_outer
from lustrum.protect.population.search.lanes import Together
from lustrum.protect.population.search.layout import KINDS
from lustrum.protect.population.search.stages import Stage
from lustrum.runtime.stop import still_working

OWN, OTHER = 1, 2
"""Marks of cells in a large error within one category of the major variable, and of those in others only."""
_PARTS, _TURNS = 16, 4
"""Into how many parts the work is divided, and how often it says that it goes on."""


def visited_to_end(
    stage: Stage, sweep: int, cells: Any, errors: Array, majors: Array, together: Together
) -> Array:
    """The finest cells to visit so that no error is larger than ``stage.beyond``, in extra tables neither.

    There are none where that is so already. Errors of single finest cells do not count. If there are too
    many cells, every category of the major variable has its turn in one of the next sweeps.
    """
    marks = np.zeros(cells.up.size, dtype=np.uint8)
    layout = stage.plan.layout
    far = np.empty(errors.size, dtype=np.bool_)
    cut = np.linspace(0, errors.size, _PARTS + 1).astype(np.int64)
    last = KINDS.index("single")

    def mark(j: int) -> None:
        mark_far(errors, layout.cell_kind, stage.beyond, last, cut[j], cut[j + 1], far)

    together(mark, _PARTS)
    begins = layout.run_offset + layout.table_offset[layout.run_first].astype(np.int64)
    runs = np.logical_or.reduceat(far, begins)
    if not runs.any():
        return marks
    still_working()
    # The finest level of the major variable is the first of its nodes.
    within = (layout.run_node == layout.first_node[-2]).any(axis=0)
    major_runs, others = np.flatnonzero(runs & within), np.flatnonzero(runs & ~within)
    for some in np.array_split(np.arange(cells.slice_first.size - 1), _TURNS):
        slices = np.array_split(some, _PARTS)
        together(
            lambda j, slices=slices: mark_inside(  # type: ignore[misc]
                layout, cells.codes, cells.slice_first, slices[j], major_runs, others, far, marks
            ),
            _PARTS,
        )
        still_working()
    most = max(1, int(stage.most * marks.size))
    turns = max(1, round(1 / stage.most))
    majors = majors[np.argsort((majors - sweep) % turns > 0, kind="stable")]
    visited = _first_of(marks == OWN, cells.first, majors, most)
    return visited | _first_of(marks == OTHER, cells.first, majors, most)


def _first_of(marked: Array, first: Array, majors: Array, most: int) -> Array:
    """The marked cells of the first categories of the major variable, as many as hold ``most`` of them."""
    sums = np.r_[0, np.cumsum(marked, dtype=np.int64)]
    if sums[-1] > most:
        held = sums[first[majors + 1]] - sums[first[majors]]
        chosen = np.zeros(first.size - 1, dtype=np.bool_)
        chosen[majors[: 1 + int(np.searchsorted(np.cumsum(held), most))]] = True
        marked = marked & np.repeat(chosen, np.diff(first))
    return marked.astype(np.uint8)


@compiled
def mark_far(
    errors: Any, kinds: Any, beyond: Any, last: Any, low: Any, high: Any, far: Any
) -> None:  # pragma: no cover
    """Mark the controlled cells ``low`` to ``high`` with errors beyond ``beyond``, of kinds before ``last``."""
    for at in range(low, high):
        far[at] = abs(errors[at]) > beyond and kinds[at] < last


@compiled
def mark_inside(
    layout: Any,
    codes: Any,
    slice_first: Any,
    slices: Any,
    major_runs: Any,
    others: Any,
    far: Any,
    marks: Any,
) -> None:  # pragma: no cover
    """Mark the finest cells of some slices in far controlled cells of ``major_runs``, or else of ``others``."""
    p = np.zeros(layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(layout.table_offset.size, dtype=np.uint64)
    base = np.empty(layout.run_offset.size, dtype=np.uint64)
    for g in slices:
        place_inner(layout, codes[slice_first[g]], p, inner)
        place_outer(layout, p, base)
        for i in range(slice_first[g], slice_first[g + 1]):
            place_inner(layout, codes[i], p, inner)
            if _is_inside(layout, major_runs, far, inner, base):
                marks[i] = OWN
            elif _is_inside(layout, others, far, inner, base):
                marks[i] = OTHER


@compiled
def _is_inside(layout: Any, runs: Any, far: Any, inner: Any, base: Any) -> bool:  # pragma: no cover
    """Whether a finest cell lies in a far controlled cell of some runs."""
    for r in runs:
        for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
            if far[base[r] + inner[t]]:
                return True
    return False
