"""The audit of a pattern, before it may be called safe; nothing here knows how the pattern was found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.audit import Bounds, ContradictionError, Knowledge, bounds
from lustrum.model.arrays import Ints, Mask
from lustrum.numeric.solve.threads import one_thread
from lustrum.protect.suppression.problem import ContributorView, SuppressionProblem
from lustrum.protect.suppression.result import AuditedCells
from lustrum.protect.suppression.search.boxes.boxes import Deviations
from lustrum.protect.suppression.shown import CheckedMoves, deviations, shown_ends

if TYPE_CHECKING:
    from lustrum.audit.certificate import Certificate

_NEAR = 1e-6  # real bounds come from floating-point programs


@dataclass(frozen=True, eq=False, repr=False)
class PatternAudit:
    """Whether all levels are kept, which tasks fall short, and the ranges that an outsider is left with.

    ``short`` lists pairs of a primary cell and the attacker (-1 for the outsider) it is not protected
    from; ``lines`` are relations in which the sum of suppressed cells breaks the rule itself.
    """

    safe: bool
    cells: AuditedCells
    short: tuple[tuple[int, int], ...]
    lines: tuple[int, ...]

    def __repr__(self) -> str:
        return f"PatternAudit(safe={self.safe}, {len(self.short)} short)"


def audit_pattern(
    problem: SuppressionProblem, suppressed: Mask, *, workers: int | None = None
) -> PatternAudit:
    """Work out what every attacker can know about the primary cells, and compare it with their levels."""
    short: list[tuple[int, int]] = []
    targets = np.flatnonzero(problem.primary)
    audited = None
    hidden = problem.fixed & ~suppressed
    moved = None
    if problem.views and not problem.whole:
        # What an outsider cannot rule out, few contributors can.
        with one_thread():
            outsider_moves = deviations(problem, suppressed, targets)
        moved = (
            None if outsider_moves is None else CheckedMoves(problem, suppressed, outsider_moves)
        )
    for number, view in enumerate((None, *problem.views)):
        cells, asked = targets, problem
        if view is not None:
            wanted, lower, upper, sliding = problem.levels_against(view)
            cells = np.flatnonzero(wanted)
            if not bool(suppressed[view.cells].any()):
                continue  # knows no more than an outsider
            if view.levels is not None:
                asked = replace(problem, lower=lower, upper=upper, sliding=sliding)
        low, high, sharp, shown = _ranges(asked, suppressed, cells, view, workers, moved)
        level_met = shown | (_kept(asked, cells, low, high) & sharp)
        short.extend((int(cell), number - 1) for cell in cells[~level_met])
        if view is None:
            audited = AuditedCells(
                cells=cells,
                low=np.ceil(low - _NEAR).astype(np.int64),
                high=np.floor(high + _NEAR).astype(np.int64),
                sharp=sharp,
                shown=shown,
                attackers=len(problem.views),
            )
    assert audited is not None
    lines = revealing_lines(problem, suppressed)
    safe = not short and not lines and not bool(hidden.any())
    return PatternAudit(safe, audited, tuple(short), lines)


def audit_deviations(
    problem: SuppressionProblem, suppressed: Mask, shown: Deviations
) -> PatternAudit:
    """Check deviations in whole numbers: each is a table that agrees with everything published.

    A deviation must satisfy all relations, move suppressed cells only, stay within all attacker bounds, also
    those of contributors, and reach the levels of its target. Whatever it reaches, the attacker cannot rule
    out; no program is solved.
    """
    count, cells = shown.target.size, problem.values.size
    lengths = np.diff(shown.first)
    owner = np.repeat(np.arange(count), lengths)
    good = np.ones(count, dtype=np.bool_)
    low, high = problem.low - problem.values, problem.high - problem.values
    other = shown.cells != shown.target[owner]
    tight_low, tight_high = low.copy(), high.copy()
    for view in problem.views:
        values = problem.values[view.cells]
        np.maximum.at(tight_low, view.cells, view.low - values)
        np.minimum.at(tight_high, view.cells, view.high - values)
        if view.targets is not None and view.levels is None:
            # A contributor from whom its own cell must be protected has closer bounds for that cell.
            target_cells = view.cells[view.targets[view.cells]]
            good &= ~np.isin(shown.target, target_cells)
    reach = []
    for amounts in (shown.amounts, shown.lower):
        moved = sparse.csr_array((amounts, shown.cells, shown.first), shape=(count, cells))
        broken = problem.relations @ moved.T.tocsr()
        broken.eliminate_zeros()
        good[np.unique(broken.tocoo().col)] = False
        least = np.where(other, tight_low[shown.cells], low[shown.cells])
        most = np.where(other, tight_high[shown.cells], high[shown.cells])
        fits = (amounts == 0) | (suppressed[shown.cells] & (least <= amounts) & (amounts <= most))
        np.logical_and.at(good, owner, fits)
        end = np.zeros(count, dtype=np.int64)
        np.add.at(end, owner[~other], amounts[~other])
        reach.append(end)
    targets = np.flatnonzero(problem.primary)
    ends = np.zeros((2, cells), dtype=np.int64)
    for row, end in zip(ends, reach, strict=True):
        row[shown.target[good]] = end[good]
    up, down = ends[0][targets], -ends[1][targets]
    level_met = (
        (up >= problem.upper[targets])
        & (down >= problem.lower[targets])
        & (up + down >= problem.sliding[targets])
    )
    level_met &= _kept_against_own(problem, shown, ends)[targets]
    value = problem.values[targets]
    audited = AuditedCells(
        cells=targets,
        low=value - np.maximum(down, 0),
        high=value + np.maximum(up, 0),
        sharp=np.zeros(targets.size, dtype=np.bool_),
        shown=suppressed[targets],
        attackers=len(problem.views),
    )
    short = tuple((int(c), -1) for c in targets[~level_met])
    lines = revealing_lines(problem, suppressed)
    hidden = bool((problem.fixed & ~suppressed).any())
    return PatternAudit(not short and not lines and not hidden, audited, short, lines)


def _kept_against_own(problem: SuppressionProblem, shown: Deviations, ends: Ints) -> Mask:
    """The cells whose levels hold against those who contribute to them, by how far deviations reach.

    A contributor rules tables out in which its own cell is too low, but none with a smaller part of the same
    deviation. Of counts such a part is sure to be whole only if all moves are of one size.
    """
    level_met = np.ones(problem.values.size, dtype=np.bool_)
    uneven = np.zeros(problem.values.size, dtype=np.bool_)
    owner = np.repeat(np.arange(shown.target.size), np.diff(shown.first))
    for amounts in (shown.amounts, shown.lower) if problem.whole else ():
        most = np.zeros(shown.target.size, dtype=np.int64)
        np.maximum.at(most, owner, np.abs(amounts))
        odd = (amounts != 0) & (np.abs(amounts) != most[owner])
        uneven[shown.target[owner[odd]]] = True
    for view in problem.views:
        if view.levels is None:
            continue
        values = problem.values[view.cells]
        down = np.minimum(-ends[1][view.cells], values - view.low)
        up = np.minimum(ends[0][view.cells], view.high - values)
        lower, upper, sliding = view.levels
        good = (down >= lower) & (up >= upper) & (down + up >= sliding)
        asked = (view.levels > 0).any(axis=0)
        if view.targets is not None:
            asked &= view.targets[view.cells]
        level_met[view.cells] &= ~asked | (good & ~uneven[view.cells])
    return level_met


def certificate_of(problem: SuppressionProblem, suppressed: Mask) -> Certificate:
    """The ranges of all primary cells with proofs that anybody can check; cells are numbered as suppressed."""
    from lustrum.audit.certificate import certify

    known, cells = known_from(problem, suppressed)
    primary = np.flatnonzero(problem.primary & suppressed)
    return certify(known, np.searchsorted(cells, primary).tolist())


def known_from(
    problem: SuppressionProblem, suppressed: Mask, view: ContributorView | None = None
) -> tuple[Knowledge, Ints]:
    """What an attacker knows: relations between suppressed cells, and bounds; and which cells these are."""
    cells = np.flatnonzero(suppressed)
    low, high = problem.low.copy(), problem.high.copy()
    if view is not None:
        low[view.cells] = np.maximum(low[view.cells], view.low)
        high[view.cells] = np.minimum(high[view.cells], view.high)
    shown = np.where(suppressed, 0, problem.values)
    part = sparse.csr_array(problem.relations[:, cells])
    rows = np.flatnonzero(np.diff(part.indptr))
    total = -(problem.relations @ shown)[rows]
    known = Knowledge(
        names=_Numbers(cells.size),
        low=low[cells],
        high=high[cells],
        matrix=part[rows],
        fact_low=total,
        fact_high=total,
        whole=problem.whole,
    )
    return known, cells


class _Numbers(tuple[str, ...]):
    """Names of cells that are only numbers, made on demand."""

    def __new__(cls, count: int) -> _Numbers:
        return super().__new__(cls, map(str, range(count)))


def _ranges(
    problem: SuppressionProblem,
    suppressed: Mask,
    cells: Ints,
    view: ContributorView | None,
    workers: int | None,
    moved: CheckedMoves | None = None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], Mask, Mask]:
    """The ranges of cells, which are sharp, and which a deviation shows to be wide enough, if not sharp.

    ``moved`` are deviations that are tried against a contributor before programs are solved.
    """
    low = problem.values[cells].astype(np.float64)
    high, sharp = low.copy(), np.ones(cells.size, dtype=np.bool_)
    open_cells, shown = suppressed[cells], np.zeros(cells.size, dtype=np.bool_)
    ends = shown_ends(problem, suppressed, cells, view)
    if ends is None and view is not None and moved is not None:
        ends = moved.ends(cells, view)
    if ends is not None:
        wide = low - ends[1], high + ends[0]
        shown = open_cells & _kept(problem, cells, *wide)
        low, high = np.where(shown, wide[0], low), np.where(shown, wide[1], high)
        sharp, open_cells = ~shown, open_cells & ~shown
    if not open_cells.any():
        return low, high, sharp, shown
    known, every = known_from(problem, suppressed, view)
    picks = np.searchsorted(every, cells[open_cells])
    try:
        cell_bounds: Bounds = bounds(known, picks.tolist(), integer=problem.whole, workers=workers)
    except ContradictionError:
        # The knowledge contradicts itself, so the problem was built wrongly, and nothing is proven.
        low[open_cells] = problem.low[cells[open_cells]]
        high[open_cells] = problem.high[cells[open_cells]]
        return low, high, sharp & ~open_cells, shown
    low[open_cells], high[open_cells] = cell_bounds.low, cell_bounds.high
    sharp[open_cells] = cell_bounds.sharp
    return low, high, sharp, shown


def _kept(
    problem: SuppressionProblem,
    cells: Ints,
    low: npt.NDArray[np.float64],
    high: npt.NDArray[np.float64],
) -> Mask:
    value = problem.values[cells]
    slack = 0.0 if problem.whole else _NEAR
    return np.asarray(
        (low <= value - problem.lower[cells] + slack)
        & (high >= value + problem.upper[cells] - slack)
        & (high - low >= problem.sliding[cells] - 2 * slack)
    )


def revealing_lines(problem: SuppressionProblem, suppressed: Mask) -> tuple[int, ...]:
    """Relations whose suppressed parts have a sum that breaks the rule and that anybody can work out."""
    if problem.unions is None:
        return ()
    matrix = problem.relations
    lines = []
    for row in range(matrix.shape[0]):
        span = slice(matrix.indptr[row], matrix.indptr[row + 1])
        inside = suppressed[matrix.indices[span]]
        cells, signs = matrix.indices[span][inside], matrix.data[span][inside]
        if cells.size < 2 or bool((signs != signs[0]).any()):
            continue
        if problem.unions.reveals(cells.astype(np.int64)):
            lines.append(row)
    return tuple(lines)
