"""The belief about every cell that follows from what is published and who reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from lustrum.audit.belief.belief import Belief
from lustrum.audit.belief.posterior import Prior, Uniform, weighted
from lustrum.audit.bounding.compute import Bounds, bounds
from lustrum.audit.bounding.sweep import Progress
from lustrum.audit.knowledge.facts import CellRef, ContradictionError, Knowledge
from lustrum.audit.knowledge.published import from_release
from lustrum.model import Channel, InputError, Release
from lustrum.model.arrays import Floats, Indices, Ints, Mask
from lustrum.model.errors import kind_of

# Who attacks: an outsider, a contributor, or several who share what they know.


@dataclass(frozen=True)
class OwnContributions:
    """The attackers' own contributions: to named cells, or to every cell that is asked about."""

    named: Mapping[int, int] = field(default_factory=dict, repr=False)
    anywhere: int = field(default=0, repr=False)


@runtime_checkable
class Attacker(Protocol):
    """An attacker, who may know contributions of their own."""

    def contributions(self, known: Knowledge) -> OwnContributions:
        """The attacker's contribution to each cell."""
        ...


@dataclass(frozen=True)
class Outsider:
    """Knows what is published and nothing more."""

    def contributions(self, known: Knowledge) -> OwnContributions:
        return OwnContributions()


@dataclass(frozen=True)
class Insider:
    """Contributes to a cell and knows how much, so that only the rest of the cell is uncertain.

    The contribution is in units of ``10**-decimals``. Without a cell, each cell is judged as if the insider
    contributed to it (Domingo-Ferrer, Oganian and Torra 2002, section 4.4).

    >>> Insider(contribution=400)
    Insider()
    """

    contribution: int = field(repr=False)
    cell: CellRef | None = None

    def __post_init__(self) -> None:
        try:
            whole = int(self.contribution) == self.contribution
        except (TypeError, ValueError, OverflowError):
            whole = False
        if not whole or isinstance(self.contribution, bool):
            raise InputError("A contribution must be a whole number, in units of the last decimal.")
        if self.contribution < 0:
            raise InputError("A contribution must be 0 or more.")

    def __repr__(self) -> str:
        return "Insider()" if self.cell is None else f"Insider(cell={self.cell!r})"

    def contributions(self, known: Knowledge) -> OwnContributions:
        if self.cell is None:
            return OwnContributions(anywhere=int(self.contribution))
        return OwnContributions(named={known.cell(self.cell): int(self.contribution)})


@dataclass(frozen=True)
class Coalition:
    """Several contributors who pool what they know."""

    members: tuple[Insider, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        if not self.members:
            raise InputError("A coalition needs at least one member.")

    def contributions(self, known: Knowledge) -> OwnContributions:
        """The sum of the members' contributions to each cell."""
        named: dict[int, int] = {}
        anywhere = 0
        for member in self.members:
            contributions = member.contributions(known)
            anywhere += contributions.anywhere
            for cell, contribution in contributions.named.items():
                named[cell] = named.get(cell, 0) + contribution
        return OwnContributions(named, anywhere)


_OUTSIDER = Outsider()


def attack(
    target: Release | Knowledge,
    attacker: Attacker = _OUTSIDER,
    prior: Prior | None = None,
    *,
    cells: Iterable[CellRef] | slice | None = None,
    integer: bool = False,
    workers: int | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Belief:
    """What an attacker can believe about each cell, or about what others contribute to it.

    The feasible range of each cell comes first. Inside it, the belief is the prior times the probability of
    the published value under the channel. Without a prior, every feasible value is equally probable
    (Domingo-Ferrer, Oganian and Torra 2002, equation 3). Where the attacker contributes to a cell, the
    belief is about the rest of the cell. ``workers``, ``stop`` and ``progress`` have the same
    meaning as in :func:`~lustrum.audit.bounds`.

    >>> from lustrum.audit.attacking import Insider
    >>> known = Knowledge.of(["z"]).bound("z", low=995, high=1004)
    >>> belief = attack(known, Insider(contribution=400))
    >>> belief.low.tolist(), belief.count.tolist()
    ([595.0], [10.0])
    """
    known = target if isinstance(target, Knowledge) else from_release(target)
    if isinstance(target, Release) and cells is None:
        cells = known.table(0)  # without the hidden inner cells that follow it
    if not known.whole:
        raise InputError("A belief runs over whole numbers; this knowledge is about real ones.")
    if not isinstance(attacker, Attacker):
        raise InputError(
            f"An attacker is Outsider(), Insider(contribution) or a Coalition, not {kind_of(attacker)}."
        )
    contributions = attacker.contributions(known)
    work = partial(bounds, integer=integer, workers=workers, stop=stop, progress=progress)
    cell_bounds = _bounded(known, contributions, cells, work)
    low, taken = _share(cell_bounds, contributions)
    shown = _Shown.of(target, cell_bounds.cells, low, cell_bounds.high)
    return _believed(low, cell_bounds.high, prior, shown, known.decimals).shifted(-taken)


def others(low: int, high: int, contribution: int) -> tuple[int, int]:
    """The bounds on what all others contribute, given bounds of the cell and one contribution.

    The largest of the others is at most the upper bound; a single other lies between both bounds
    (Domingo-Ferrer, Oganian and Torra 2002, section 4.4).

    >>> others(995, 1004, 400), others(100, 100, 40)
    ((595, 604), (60, 60))
    """
    if low > high:
        raise InputError("The lower bound of a cell is above its upper bound.")
    if not 0 <= contribution <= high:
        raise InputError("The contribution must lie between 0 and the most the cell can be.")
    return max(low - contribution, 0), high - contribution


def _bounded(
    known: Knowledge,
    contributions: OwnContributions,
    cells: Iterable[CellRef] | slice | None,
    work: Callable[[Knowledge, Iterable[CellRef] | slice | None], Bounds],
) -> Bounds:
    """Bounds of a contributor, who knows that a cell is at least their own contribution."""
    try:
        for cell, contribution in contributions.named.items():
            known = known.bound(cell, low=contribution)
        return work(known, cells)
    except ContradictionError:
        if not contributions.named:
            raise
        name = known.names[next(iter(contributions.named))]
        raise InputError(
            f"The contribution to {name} is larger than the published cells allow."
        ) from None


def _share(cell_bounds: Bounds, contributions: OwnContributions) -> tuple[Floats, Ints]:
    """The lower bound of each cell that holds the attacker, and the attacker's contribution to it."""
    taken = np.array(
        [contributions.named.get(int(c), 0) for c in cell_bounds.cells], dtype=np.int64
    )
    low = cell_bounds.low
    if contributions.anywhere:
        fits = cell_bounds.high >= taken + contributions.anywhere
        if not bool(fits.any()):
            raise InputError("The contribution is larger than any of the cells can be.")
        taken = np.where(fits, taken + contributions.anywhere, taken)
        low = np.where(fits, np.maximum(low, taken), low)
    return low, taken


@dataclass(frozen=True, eq=False)
class _Shown:
    """The cells whose published value came through a channel."""

    cells: Indices
    published: Ints
    channel: Channel

    @classmethod
    def of(
        cls, target: Release | Knowledge, cells: Indices, low: Floats, high: Floats
    ) -> _Shown | None:
        if isinstance(target, Knowledge) or target.channel is None:
            return None
        values = np.where(target.shown, target.numbers, 0).ravel()
        through = target.shown.ravel() & _by_channel_alone(target, values)
        # Hidden inner cells follow those of the table; nothing was published of them.
        open_cells = np.flatnonzero((cells < values.size) & (low < high))
        picks = open_cells[through[cells[open_cells]]]
        return cls(picks, values[cells[picks]], target.channel) if picks.size else None


def _by_channel_alone(release: Release, values: Ints) -> Mask:
    """Which values came through the channel alone.

    A method may state wider bounds than its channel does, for example for a total that was added up. The
    channel's probabilities do not hold there.
    """
    assert release.channel is not None
    if release.least is None or release.most is None:
        return np.ones(values.shape, dtype=np.bool_)
    low, high = release.channel.support(values)
    return np.asarray((release.least.ravel() >= low) & (release.most.ravel() <= high))


def _believed(
    low: Floats, high: Floats, prior: Prior | None, shown: _Shown | None, decimals: int
) -> Belief:
    flat = Belief.uniform(low, high, decimals)
    # A cell with one feasible value is certain, whatever the prior says.
    picks = np.zeros(0, np.intp) if prior is None else np.flatnonzero(low < high)
    if shown is not None:
        picks = np.union1d(picks, shown.cells)
    if picks.size == 0:
        return flat
    if not bool((np.isfinite(low[picks]) & np.isfinite(high[picks])).all()):
        raise InputError("A prior needs cells with bounds; one of the cells has none.")
    least, most = (np.where(np.isfinite(a), a, 0).astype(np.int64) for a in (low, high))
    weigh = prior or Uniform()
    parts: list[tuple[Indices, Belief]] = []
    if shown is not None:
        at = shown.cells
        parts.append((at, weighted(least[at], most[at], weigh, shown.published, shown.channel)))
    rest = picks if shown is None else np.setdiff1d(picks, shown.cells)
    if rest.size:
        parts.append((rest, weighted(least[rest], most[rest], weigh)))
    return _joined(flat, parts, decimals)


def _joined(flat: Belief, parts: list[tuple[Indices, Belief]], decimals: int) -> Belief:
    """One belief: the explicit parts at their cells, the rest uniform."""
    row = np.concatenate([np.repeat(at, np.diff(b.indptr)) for at, b in parts])
    values = np.concatenate([b.values for _, b in parts])
    chances = np.concatenate([b.probabilities for _, b in parts])
    order = np.argsort(row, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=len(flat)))))
    return Belief.of_lists(indptr, values[order], chances[order], rest=flat, decimals=decimals)
