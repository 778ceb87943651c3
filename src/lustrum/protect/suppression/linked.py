"""Linked tables that are protected together, because their readers see them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from lustrum.audit.knowledge.published import hidden_cube
from lustrum.model import InputError, Table
from lustrum.model.arrays import Array, Floats, Ints, Mask, Sparse
from lustrum.model.errors import NotJudgedError
from lustrum.numeric.solve.highs import FINE, Program, single_optimum, solved
from lustrum.numeric.structure import Structure, TableLayout, complete_relations
from lustrum.protect.suppression.check import audit_pattern
from lustrum.protect.suppression.choose import Progress, suppress
from lustrum.protect.suppression.contributors import contributor_views
from lustrum.protect.suppression.method import Suppression, alone_only, attacker_of, problem_of
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.result import Changes, Pattern
from lustrum.sensitivity import Background
from lustrum.sensitivity.rule import NOTHING

MOST_CUBE = 100_000
"""Cells of the cube behind linked tables; beyond, nobody can say what the tables reveal together."""
_NODES = 10_000  # of the search for a cube that fits


def linked_problem(
    specs: Sequence[Suppression],
    tables: Sequence[Table],
    background: Background = NOTHING,
    *,
    frozen: Sequence[Mask | None] = (),
    never: Sequence[Mask | None] = (),
    named: bool = True,
) -> SuppressionProblem:
    """One problem for tables of the same response, each with its own rule; cells follow table by table.

    Relations between the tables follow from what their categories hold, so that a total in one of them
    and its parts in another are held together. A cell that one table may suppress and that stands in
    another too is two cells, which move together. A contributor attacks all tables with what it contributes to
    any of them: a number of a holding means the same holding in every table, unless they are not ``named``.
    """
    if any(spec.unions for spec in specs):
        raise InputError(
            "Sums of suppressed cells ('unions') are judged in one table, not in linked ones."
        )
    attackers = {attacker_of(spec.attacker, tables) for spec in specs}
    if len(attackers) > 1:
        raise InputError("Linked tables are read together, so they need the same 'attacker'.")
    if len({(table.kind, table.decimals) for table in tables}) > 1:
        raise InputError(
            "Linked tables must hold the same kind of values with the same number of decimals."
        )
    structure = Structure.of_tables([table.axes for table in tables])
    values = np.concatenate([table.values.ravel() for table in tables])
    relations = structure.relations
    less = relations.matrix @ values
    broken = np.flatnonzero(less)
    if broken.size:
        total = int(relations.totals[int(broken[0])])
        name = "a relation" if total < 0 else structure.describe(total)
        by = abs(int(less[int(broken[0])])) / 10 ** tables[0].decimals
        raise InputError(
            f"The tables do not agree: {name} is not the sum of its parts in another, by {by:,g}."
        )
    parts = [
        spec.held(spec.with_letters(_own(spec, table, background), table), frozen_cells, hidden)
        for spec, table, frozen_cells, hidden in zip(
            specs, tables, _each(frozen, tables), _each(never, tables), strict=True
        )
    ]

    def together(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    problem = SuppressionProblem(
        values=values,
        relations=relations.matrix.tocsr().astype(np.int64),
        primary=together("primary"),
        lower=together("lower"),
        upper=together("upper"),
        sliding=together("sliding"),
        low=together("low"),
        high=_common_high(parts),
        cost=together("cost"),
        frozen=together("frozen"),
        never=together("never"),
        whole=parts[0].whole,
        names=[structure.describe(cell) for cell in range(values.size)],
    )
    if "outsider" in attackers:
        return problem
    (attacker,) = attackers
    views = contributor_views(
        tables,
        problem,
        alone_only=alone_only(attacker, tables),
        named=named,
        pairs=attacker == "pairs",
    )
    return replace(problem, views=views)


def cube_behind(
    problem: SuppressionProblem, tables: Sequence[Table]
) -> tuple[SuppressionProblem, Ints] | None:
    """The problem with the cells of the cube behind three and more tables, and which cells are the tables'.

    None where the cube rules nothing out. Nobody who holds the tables alone knows the true cube; any one that
    fits them serves, since an attack starts from what is published.
    """
    layouts = [TableLayout.of(table.axes) for table in tables]
    if len(tables) < 3 or (cube := hidden_cube(layouts)) is None:
        return None
    cells = int(np.prod(cube.shape, dtype=object))
    if cells > MOST_CUBE:
        raise NotJudgedError(
            f"The cube behind these tables has {cells:,} cells, and at most {MOST_CUBE:,} can be attacked; "
            "protect fewer tables together, or use coarser codes."
        )
    structure = Structure.of_tables([*layouts, cube])
    relations = complete_relations(structure).matrix.tocsr().astype(np.int64)
    inner = _fitting_cube(relations, problem.values, cells, whole=bool((problem.values >= 0).all()))
    shown = problem.values.size
    numbers = np.arange(shown)

    def longer(array: Array, fill: int) -> Any:
        return np.concatenate([array, np.full(cells, fill, dtype=array.dtype)])

    nonnegative = bool((problem.values >= 0).all())
    top = int(problem.high.max(initial=0))
    cube_problem = replace(
        problem,
        values=np.concatenate([problem.values, inner]),
        relations=relations,
        primary=longer(problem.primary, 0),
        lower=longer(problem.lower, 0),
        upper=longer(problem.upper, 0),
        sliding=longer(problem.sliding, 0),
        low=longer(problem.low, 0 if nonnegative else -2 * top),
        high=longer(problem.high, 2 * top),
        cost=longer(problem.cost, 0),
        frozen=longer(problem.frozen, 0),
        never=longer(problem.never, 1),
        names=[structure.describe(cell) for cell in range(shown + cells)],
        views=tuple(
            replace(view, targets=None if view.targets is None else longer(view.targets, 0))
            for view in problem.views
        ),
    )
    return cube_problem, numbers


def _fitting_cube(relations: Sparse, values: Ints, cells: int, *, whole: bool) -> Ints:
    """A cube that has these tables as its sums, in whole units, by an integer program."""
    shown = values.size
    right = -(relations[:, :shown] @ values)
    left = relations[:, shown:]
    used = np.flatnonzero(np.diff(left.indptr))
    columns = np.full(cells, 0.0 if whole else -np.inf), np.full(cells, np.inf)
    program = left[used], (right[used],) * 2, columns
    # The corner that small irregular costs prefer is the same everywhere, and nearly always whole.
    irregular = single_optimum(np.zeros(cells))
    corner = Program(*program, irregular, presolve="off", dual_feasibility_tolerance=FINE)
    cube = _fitting(solved(corner), relations, values)
    if cube is None:
        model = Program(*program, whole=np.arange(cells), mip_max_nodes=_NODES)
        cube = _fitting(solved(model), relations, values)
    if cube is None:
        raise NotJudgedError(
            "No table of all variables was found that has these tables as its sums; check that they are about "
            "the same people, or protect fewer tables together."
        )
    return cube


def _fitting(point: Floats | None, relations: Sparse, values: Ints) -> Ints | None:
    """The whole cube at a point, if it has these tables as its sums."""
    if point is None:
        return None
    cube = np.rint(point).astype(np.int64)
    return None if (relations @ np.concatenate([values, cube])).any() else cube


def linked_patterns(
    specs: Sequence[Suppression],
    tables: Sequence[Table],
    background: Background = NOTHING,
    *,
    frozen: Sequence[Mask | None] = (),
    never: Sequence[Mask | None] = (),
    previous: Sequence[Mask | None] = (),
    named: bool = True,
    workers: int | None = None,
    progress: Progress | None = None,
) -> tuple[Pattern, ...]:
    """The pattern of every table; cost, bound and audit are those of all tables together.

    The first method says how the pattern is searched for; see :func:`linked_problem` for the attackers.
    """
    problem = linked_problem(specs, tables, background, frozen=frozen, never=never, named=named)
    before = None
    if any(mask is not None for mask in previous):
        before = np.concatenate(
            [
                np.zeros(table.values.size, dtype=np.bool_) if mask is None else mask.ravel()
                for table, mask in zip(tables, _each(previous, tables), strict=True)
            ]
        )
    cube = cube_behind(problem, tables)

    def search(asked: SuppressionProblem, last: Mask | None) -> Pattern:
        algorithm = specs[0].algorithm
        if asked is not problem and algorithm == "auto":
            # With the cells of the cube the search for the cheapest pattern takes many minutes.
            algorithm = "quick"
        return suppress(
            asked,
            algorithm=algorithm,
            work=specs[0].work,
            previous=last,
            workers=workers,
            progress=progress,
        )

    if cube is None:
        pattern = search(problem, before)
    else:
        whole, cells = cube
        if before is not None:
            before = np.concatenate([before, np.ones(whole.values.size - cells.size, np.bool_)])
        pattern = pattern_with_cube(whole, Smaller(problem, cells), before, search, workers)
    ends = np.cumsum([0, *(table.values.size for table in tables)])
    return tuple(
        replace(
            pattern,
            suppressed=pattern.suppressed[a:b],
            primary=pattern.primary[a:b],
            secondary=pattern.secondary[a:b],
        )
        for a, b in pairwise(ends.tolist())
    )


def _own(spec: Suppression, table: Table, background: Background) -> SuppressionProblem:
    return problem_of(
        table,
        spec.judge(table, background),
        cost=spec.cost,
        power=spec.power,
        keep=spec.keep,
        zeros=spec.zeros,
    )


def _common_high(parts: Sequence[SuppressionProblem]) -> Ints:
    """One upper bound for cells of all tables, save those that letters bound."""
    top = max(int(part.high.max(initial=0)) for part in parts)
    upper_bounds = [
        np.where(part.high < part.high.max(initial=0), part.high, top) for part in parts
    ]
    return np.concatenate(upper_bounds)


def _each(masks: Sequence[Mask | None], tables: Sequence[Table]) -> Sequence[Mask | None]:
    return masks or [None] * len(tables)


# Look for a pattern among the cells of tables alone, and audit it with the cube behind them.
#
# Behind linked tables stands the cube of all their variables. No table shows its cells and none of them needs
# protection: all that they do is to say which tables are possible together. Two tables that agree on the
# variables they share are always possible together, because the cube can be filled in as if the others were
# independent of each other. So the cube rules nothing out, though most cells of a system are its own. Three
# tables can contradict each other, as activity by region, activity by size and region by size do. Therefore a
# pattern is looked for without the cube, and it counts only if an audit with all cells finds it safe. Otherwise
# the search is made with all cells.


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
