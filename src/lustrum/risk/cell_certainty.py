"""How certain an attacker can be of the small cells of a release: one figure for every kind of method.

For each cell that needs protection the attacker holds a belief: the values that the published cells leave
open, each weighed by how probable it is that the method made the published value of it. Its entropy ``H``,
in bits, is the uncertainty that is left, and ``DR = 1 / H`` is the cell's risk of Domingo-Ferrer, Oganian
and Torra (2002, equation 2). ``DR`` is infinite for an exact disclosure, so it has no mean. This measure takes
``2**-H`` instead, which orders cells as ``DR`` does: 1 where one value is left, ``1 / m`` where m values are
equally probable, 0 where anything is possible. The figure of a table is the mean over its cells at risk.

Suppression, rounding, perturbation and noise are judged alike, which no table-level measure can do. A
release without a channel is judged by what became of the values of this very table, as the table-level
entropy risk does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from lustrum.model import Channel, InputError, Release, Table
from lustrum.model.arrays import Floats, Indices, Ints, Mask
from lustrum.model.channel import ObservedChannel
from lustrum.model.parameters import parameter
from lustrum.model.release import check_release
from lustrum.model.table import check_table
from lustrum.numeric.arithmetic import exp2
from lustrum.numeric.structure import UNBOUNDED
from lustrum.risk.measure import RiskSpec

if TYPE_CHECKING:
    from lustrum.audit import Attacker, Knowledge, Prior

Audit = Literal["cell", "propagate", "sharp"]

_NEGLIGIBLE = 1e-12
"""Steps of a channel that are less probable than this are left out where nothing else bounds a cell."""


@dataclass(frozen=True, eq=False)
class CertainCells:
    """What an attacker can say of each judged cell. It follows from true counts and stays inside."""

    cells: Indices
    low: Floats
    high: Floats
    certainty: Floats

    def __repr__(self) -> str:
        return f"CertainCells({self.cells.size} cells)"

    @property
    def mean(self) -> float:
        return float(self.certainty.mean()) if self.certainty.size else 0.0

    @property
    def worst(self) -> float:
        return float(self.certainty.max(initial=0.0))

    @property
    def disclosed(self) -> int:
        """How many cells are known exactly."""
        return int((self.certainty >= 1.0 - 1e-12).sum())


def _word_or_repr(attacker: object) -> str:
    return attacker if isinstance(attacker, str) else repr(attacker)


@dataclass(frozen=True)
class CellCertainty(RiskSpec):
    """The mean certainty of an attacker about the small cells of a table; from 0 to 1.

    Judged are inner cells by their true count without the attacker; an ``"insider"`` is one person in each
    cell. The ``audit`` calculates from each cell alone (``"cell"``), along the sums of the table until
    nothing narrows any more (``"propagate"``), or to bounds that are proven sharp by programs (``"sharp"``).

    >>> from lustrum.protect import RandomRounding
    >>> table = Table.from_counts([[1, 2, 9], [3, 5, 0]])
    >>> release = RandomRounding(base=3).apply(table, np.random.default_rng(1))
    >>> CellCertainty().before(table), CellCertainty().after(table, release) < 0.5
    (1.0, True)
    """

    name: ClassVar[str] = "cell-certainty"
    measures_releases: ClassVar[bool] = True
    attacker: Literal["outsider", "insider"] | Attacker = parameter(
        "outsider", "Who reads the release: a word, or an object of the audit.", write=_word_or_repr
    )
    up_to: int = parameter(5, "Counts from 1 up to this are at risk.", least=1)
    audit: Audit = parameter("propagate", "How far the attacker calculates.")
    prior: Prior | None = parameter(
        None, "What the attacker assumed beforehand.", brief=True, write=repr
    )

    def before(self, table: Table) -> float:
        """1 where a cell is at risk, as the true table gives it away; otherwise 0."""
        return 1.0 if self.judged(table).any() else 0.0

    def after(self, table: Table, release: Release) -> float:
        return self.cells(table, release).mean

    def judged(self, table: Table) -> Mask:
        check_table(table, f"The risk measure {self.name!r}")
        if table.kind != "count" or table.decimals:
            raise InputError("The certainty about small cells is for tables of whole counts.")
        insiders = 1 if self.attacker == "insider" else 0
        at_risk = table.inner & (table.values > insiders) & (table.values <= insiders + self.up_to)
        return at_risk if table.structural is None else at_risk & ~table.structural

    def cells(self, table: Table, release: Release) -> CertainCells:
        check_table(table, f"The risk measure {self.name!r}")
        check_release(release, f"The risk measure {self.name!r}")
        if release.shape != table.shape:
            raise InputError("The release and its table have different shapes; they must be equal.")
        picks = np.flatnonzero(self.judged(table))
        return certainties(table, release, picks, self._attacker(), self.audit, self.prior)

    def _attacker(self) -> Attacker:
        from lustrum.audit import Insider, Outsider

        if self.attacker == "outsider":
            return Outsider()
        return Insider(1) if isinstance(self.attacker, str) else self.attacker


def certainties(
    table: Table,
    release: Release,
    cells: Indices,
    attacker: Attacker,
    audit: Audit = "propagate",
    prior: Prior | None = None,
    known: Knowledge | None = None,
) -> CertainCells:
    """What an attacker can say of some cells of a release, given by their flat positions.

    ``known`` is what the attacker knows beside the release; the cells of the release come first in it.
    """
    from lustrum.audit import from_release

    if cells.size == 0:
        none = np.zeros(0)
        return CertainCells(cells, none, none, none)
    facts = from_release(release) if known is None else known
    if table.structural is not None:
        impossible = np.zeros(len(facts), dtype=np.bool_)
        impossible[: table.values.size] = table.structural.ravel()
        facts = facts.zero(impossible)
    own_units = attacker.contributions(facts)
    taken = np.array(
        [own_units.named.get(int(c), 0) + own_units.anywhere for c in cells], dtype=np.int64
    )
    low, high = _bounds(facts, cells, audit)
    low = np.maximum(low, taken)
    certainty = exp2(-_entropies(table, release, cells, low, high, prior))
    return CertainCells(cells, low - taken, high - taken, np.clip(certainty, 0.0, 1.0))


def _bounds(known: Knowledge, cells: Indices, audit: Audit) -> tuple[Floats, Floats]:
    from lustrum.audit import bounds
    from lustrum.audit.knowledge.reduce import as_floats, narrowed

    if audit == "sharp":
        ranges = bounds(known, cells.tolist(), integer=True)
        return ranges.low, ranges.high
    low, high = (known.low, known.high) if audit == "cell" else narrowed(known)
    return as_floats(low[cells]), as_floats(high[cells])


def _entropies(
    table: Table, release: Release, cells: Indices, low: Floats, high: Floats, prior: Prior | None
) -> Floats:
    """The entropy of what can be believed about each cell, in bits."""
    from lustrum.audit import Belief, Uniform
    from lustrum.audit.belief.posterior import weighted

    entropy = Belief.uniform(low, high).entropy(2.0)
    shown = release.shown.ravel()
    published = np.where(shown, release.numbers.ravel(), 0)
    channel, through = _channel(table, release, cells, published)
    through &= shown[cells] & (low < high)
    weigh = prior or Uniform()
    at = np.flatnonzero(through)
    if at.size:
        values = published[cells[at]]
        reach = _reach(channel, table.values.ravel()[cells[at]])
        least = np.maximum(low[at], values - reach).astype(np.int64)
        most = np.minimum(high[at], values + reach).astype(np.int64)
        entropy[at] = weighted(least, most, weigh, values, channel).entropy(2.0)
    at = np.flatnonzero(~through & (low < high) & np.isfinite(high))
    if prior is not None and at.size:
        entropy[at] = weighted(low[at].astype(np.int64), high[at].astype(np.int64), weigh).entropy(
            2.0
        )
    return entropy


def _channel(
    table: Table, release: Release, cells: Indices, published: Ints
) -> tuple[Channel, Mask]:
    """How published values came about, and for which cells that is all there is to know."""
    everywhere = np.ones(cells.size, dtype=np.bool_)
    if release.channel is None:
        inner = (table.inner & release.shown).ravel()
        return ObservedChannel(table.values.ravel()[inner], published[inner]), everywhere
    if release.least is None or release.most is None:
        return release.channel, everywhere
    low, high = release.least.ravel()[cells], release.most.ravel()[cells]
    least, most = release.channel.support(published[cells])
    # A method may leave wider bounds than its channel, as where a total was added up instead. Where it
    # leaves no bound at all, its channel is what there is to go by.
    return release.channel, (high >= UNBOUNDED) | ((low >= least) & (high <= most))


def _reach(channel: Channel, true: Ints) -> int:
    """How far from a true value the channel can lead, but for steps that never happen in practice."""
    values = np.unique(true)
    rows = channel.transitions(values)
    likely = rows.probability > _NEGLIGIBLE
    return int(np.abs(rows.published - values[rows.origin])[likely].max(initial=0))
