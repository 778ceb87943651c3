"""The audit of a pattern, before it may be called safe; nothing here knows how the pattern was found.

A few deviations show the ranges of many cells, where a program for every cell takes too long. A deviation that
keeps all relations, moves suppressed cells only and stays within the bounds is a table that an attacker cannot
rule out. So what it reaches is possible. The deviations come from a search that is not trusted: they are
checked here against the relations and bounds of the problem.

Partial suppression states the interval that a reader can work out anyway, instead of a blank. It follows from
the published cells alone, so stating it reveals nothing new.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from lustrum.audit import Bounds, ContradictionError, Knowledge, bounds, from_release
from lustrum.model import Release
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.solve.products import one_thread, sparse_product
from lustrum.numeric.structure import UNBOUNDED
from lustrum.numeric.structure.ragged import connected_parts
from lustrum.protect.suppression.problem import ContributorView, SuppressionProblem
from lustrum.protect.suppression.result import AuditedCells
from lustrum.protect.suppression.search.attacks.joint import JointWitnesses
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.boxes import Deviations
from lustrum.protect.suppression.unions import PublishedUnion, revealing_unions

if TYPE_CHECKING:
    from lustrum.audit.certificate import Certificate

_NEAR = 1e-6  # real bounds come from floating-point programs


@dataclass(frozen=True, eq=False, repr=False)
class PatternAudit:
    """Whether all levels are kept, which tasks fall short, and the ranges that an outsider is left with.

    ``short`` lists pairs of a primary cell and the attacker (-1 for the outsider) it is not protected
    from, and ``reach`` the ends of their ranges, and whether these are sharp; ``unions`` are sums of
    suppressed cells that are public and break the rule themselves.
    """

    safe: bool
    cells: AuditedCells
    short: tuple[tuple[int, int], ...]
    unions: tuple[PublishedUnion, ...]
    reach: tuple[tuple[float, float, bool], ...] = ()

    def __repr__(self) -> str:
        return f"PatternAudit(safe={self.safe}, {len(self.short)} short)"


def audit_pattern(
    problem: SuppressionProblem, suppressed: Mask, *, workers: int | None = None
) -> PatternAudit:
    """Work out what every attacker can know about the primary cells, and compare it with their levels."""
    short: list[tuple[int, int]] = []
    reach: list[tuple[float, float, bool]] = []
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
        left = ~(shown | (_kept(asked, cells, low, high) & sharp))
        short.extend((int(cell), number - 1) for cell in cells[left])
        reach.extend(
            zip(low[left].tolist(), high[left].tolist(), sharp[left].tolist(), strict=True)
        )
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
    unions = revealing_unions(problem.relations, suppressed, problem.unions)
    safe = not short and not unions and not bool(hidden.any())
    return PatternAudit(safe, audited, tuple(short), unions, tuple(reach))


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
    unions = revealing_unions(problem.relations, suppressed, problem.unions)
    hidden = bool((problem.fixed & ~suppressed).any())
    return PatternAudit(not short and not unions and not hidden, audited, short, unions)


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
    cells, (low, high) = np.flatnonzero(suppressed), _known_ends(problem, view)
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
) -> tuple[Floats, Floats, Mask, Mask]:
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


def _kept(problem: SuppressionProblem, cells: Ints, low: Floats, high: Floats) -> Mask:
    value = problem.values[cells]
    slack = 0.0 if problem.whole else _NEAR
    return np.asarray(
        (low <= value - problem.lower[cells] + slack)
        & (high >= value + problem.upper[cells] - slack)
        & (high - low >= problem.sliding[cells] - 2 * slack)
    )


_MUCH = 1_000_000  # targets times cells tied to them from which on deviations are shared
_EVEN = 1e-9  # by how much of its largest move a deviation may miss a relation


def shown_ends(
    problem: SuppressionProblem, suppressed: Mask, targets: Ints, view: ContributorView | None
) -> tuple[Floats, Floats] | None:
    """How far up and down some deviations move each target; None where programs for single cells are quicker.

    Deviations show what real numbers can be, so there are none for counts.
    """
    if problem.whole or _ties(problem, suppressed, targets) < _MUCH:
        return None
    low, high = _known_ends(problem, view)
    known = replace(problem, low=low, high=high, views=(), unions=None)
    moved = deviations(known, suppressed, targets)
    return None if moved is None else CheckedMoves(known, suppressed, moved).ends(targets)


def _known_ends(problem: SuppressionProblem, view: ContributorView | None) -> tuple[Ints, Ints]:
    """Between which values an attacker knows each cell to be, whatever is published."""
    low, high = problem.low.copy(), problem.high.copy()
    if view is not None:
        low[view.cells] = np.maximum(low[view.cells], view.low)
        high[view.cells] = np.minimum(high[view.cells], view.high)
    return low, high


def deviations(problem: SuppressionProblem, suppressed: Mask, targets: Ints) -> Floats | None:
    """Deviations, one a row, that move the targets as far as their levels; None where some cannot be moved."""
    mine = np.zeros(problem.values.size, dtype=np.bool_)
    mine[targets] = suppressed[targets]
    asked = replace(
        problem,
        primary=mine,
        upper=np.where(mine, problem.upper, 0),
        lower=np.where(mine, problem.lower, 0),
        sliding=np.where(mine, problem.sliding, 0),
        never=problem.never & ~mine,
        views=(),
        unions=None,
    )
    cells = np.flatnonzero(suppressed)
    joint = JointWitnesses(Tasks.of(asked), cells)
    witnesses = joint.completed(
        joint.nothing(), np.zeros(cells.size, dtype=np.bool_), np.random.default_rng(0)
    )
    if not witnesses:
        return None
    moved = np.zeros((witnesses[0].shape[0], problem.values.size))
    moved[:, cells] = witnesses[0]
    return moved


class CheckedMoves:
    """Deviations, one a row, that keep all relations and move suppressed cells only; others are dropped.

    Each is taken both ways, as far as an outsider's bounds allow. A contributor's bounds shorten it further.
    """

    def __init__(self, problem: SuppressionProblem, suppressed: Mask, moved: Floats) -> None:
        self._problem = problem
        self._rows = np.array(
            [row for row in moved if _is_true(problem, suppressed, row)], dtype=np.float64
        ).reshape(-1, problem.values.size)
        rise, fall = problem.room_up.astype(np.float64), problem.room_down.astype(np.float64)
        self._times = np.array(
            [[_times(way, rise, fall) for way in (row, -row)] for row in self._rows]
        ).reshape(-1, 2)

    def ends(self, targets: Ints, view: ContributorView | None = None) -> tuple[Floats, Floats]:
        """How far the deviations move targets up and down within the bounds of an attacker."""
        times = self._times
        if view is not None and view.cells.size:
            value = self._problem.values[view.cells]
            high = np.minimum(self._problem.high[view.cells], view.high)
            low = np.maximum(self._problem.low[view.cells], view.low)
            rise, fall = (high - value).astype(np.float64), (value - low).astype(np.float64)
            view_rows = self._rows[:, view.cells]
            closer = [_times(way, rise, fall) for way in (view_rows, -view_rows)]
            times = np.minimum(times, np.stack(closer, axis=-1))
        ahead = times[:, :1] * self._rows[:, targets]
        back = -times[:, 1:] * self._rows[:, targets]
        reached = np.concatenate([ahead, back])
        return reached.max(axis=0, initial=0.0), (-reached).max(axis=0, initial=0.0)


def _times(way: Floats, rise: Floats, fall: Floats) -> Floats:
    """How often moves, along the last axis, fit into the room above and below."""
    room = np.where(way > 0, rise, fall)
    times = np.full(way.shape, np.inf)
    np.divide(room, np.abs(way), out=times, where=way != 0)
    return np.asarray(times.min(axis=-1, initial=np.inf))


def _is_true(problem: SuppressionProblem, suppressed: Mask, row: Floats) -> bool:
    """Whether a deviation moves something, suppressed cells only, and keeps all relations."""
    size = float(np.abs(row).max(initial=0.0))
    if size == 0.0 or bool((row[~suppressed] != 0.0).any()):
        return False
    return float(np.abs(sparse_product(problem.relations, row)).max(initial=0.0)) <= _EVEN * size


def _ties(problem: SuppressionProblem, suppressed: Mask, targets: Ints) -> int:
    """The sum over targets of the suppressed cells that relations tie to them."""
    cells = np.flatnonzero(suppressed)
    part = sparse.csr_array(problem.relations[:, cells])
    rows = part.shape[0]
    links = part.tocoo()
    label = connected_parts(rows + cells.size, links.row, rows + links.col)
    component = label[rows:]
    sizes = np.bincount(component, minlength=int(label.max(initial=0)) + 1)
    places = np.searchsorted(cells, targets[suppressed[targets]])
    return int(sizes[component[places]].sum())


def with_intervals(release: Release, *, workers: int | None = None) -> Release:
    """The release with ``low`` and ``high`` of every suppressed cell, as its readers can work them out.

    The ends come from linear programs over what is published; where a program proves less than the sharp end,
    the interval is wider. Ends that nothing bounds stay open.

    >>> from lustrum.model import Table
    >>> from lustrum.protect.suppression import Suppression
    >>> from lustrum.model import Category, TableAxis
    >>> cats = (Category("a", "a", (0,)), Category("b", "b", (1,)), Category("_T", "all", (0, 1)))
    >>> table = Table((TableAxis("x", "x", cats),), np.array([2, 9, 11]))
    >>> stated = with_intervals(Suppression().apply(table))
    >>> stated.low.tolist(), stated.high.tolist()
    ([1, 1, 11], [10, 10, 11])
    """
    hidden = np.flatnonzero(~release.shown.ravel())
    if hidden.size == 0:
        return release
    known = from_release(release)
    cell_bounds = bounds(known, hidden.tolist(), workers=workers)
    low = np.full(release.numbers.size, -UNBOUNDED, dtype=np.int64)
    high = np.full(release.numbers.size, UNBOUNDED, dtype=np.int64)
    shown = release.shown.ravel()
    low[shown] = high[shown] = release.numbers.ravel()[shown]
    least, most = cell_bounds.low, cell_bounds.high
    low[hidden] = np.where(np.isfinite(least), np.ceil(least - 1e-6), -UNBOUNDED).astype(np.int64)
    high[hidden] = np.where(np.isfinite(most), np.floor(most + 1e-6), UNBOUNDED).astype(np.int64)
    return replace(release, least=low.reshape(release.shape), most=high.reshape(release.shape))
