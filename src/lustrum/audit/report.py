"""A readable audit: which cells are disclosed or nearly disclosed, and from which published cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.audit.bounding.elimination import exactly_disclosed
from lustrum.audit.closed.choose import best_bounds
from lustrum.audit.knowledge.facts import Knowledge
from lustrum.audit.knowledge.published import PublishedTable, from_tables
from lustrum.audit.knowledge.responses import RelationLike, related
from lustrum.model import InputError, Release
from lustrum.model.arrays import Ints, Mask
from lustrum.model.errors import kind_of
from lustrum.model.text import html_table
from lustrum.numeric.arithmetic import log2
from lustrum.numeric.structure import UNBOUNDED

# Protection intervals: how uncertain readers must stay about a true value, for an agency's own audits.
#
# A suppressed value a with protection levels l and u is safe if its feasible range reaches down to ``a - l``
# and up to ``a + u`` (Fischetti and Salazar 2000). The input holds true values; the output is a verdict only.


class ProtectionVerdict(StrEnum):
    """Whether the feasible range of a cell holds its protection interval."""

    NOT_ASKED = ""
    ENOUGH = "enough"
    TOO_NARROW = "too narrow"
    UNKNOWN = "not known"


@dataclass(frozen=True, eq=False, repr=False)
class Protection:
    """The interval from ``low`` to ``high`` that the feasible range of each protected cell must hold.

    It is made from true values, so its representation shows none of them.

    >>> wanted = Protection.of([40, 7], lower=[4, 1], upper=[4, 1], needed=[True, False])
    >>> wanted.verdict((0,), 36.0, 44.0, sharp=True), wanted.verdict((0,), 37.0, 50.0, sharp=True)
    (<ProtectionVerdict.ENOUGH: 'enough'>, <ProtectionVerdict.TOO_NARROW: 'too narrow'>)
    """

    true: Ints
    low: Ints
    high: Ints
    needed: Mask

    def __repr__(self) -> str:
        return f"Protection({' x '.join(map(str, self.needed.shape))} cells)"

    @classmethod
    def of(
        cls,
        true: npt.ArrayLike,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        needed: npt.ArrayLike | None = None,
    ) -> Protection:
        """From true values and levels, in the units of the table; ``needed`` leaves out other cells."""
        value = np.asarray(true, dtype=np.int64)
        below, above = (np.asarray(level, dtype=np.int64) for level in (lower, upper))
        mask = np.ones(value.shape, np.bool_) if needed is None else np.asarray(needed, np.bool_)
        if not value.shape == below.shape == above.shape == mask.shape:
            raise InputError(
                "True values and protection levels must have the shape of their table."
            )
        if bool((mask & ((below < 0) | (above < 0))).any()):
            raise InputError("A protection level is negative; it must be 0 or more.")
        return cls(value, value - below, value + above, mask)

    @classmethod
    def within(
        cls, true: npt.ArrayLike, percent: float, needed: npt.ArrayLike | None = None
    ) -> Protection:
        """From true values that nobody may estimate more closely than this many percent, up or down."""
        if not 0 <= percent < np.inf:
            raise InputError(f"Protection cannot be {percent} percent; give 0 or more.")
        value = np.asarray(true, dtype=np.int64)
        level = np.ceil(np.abs(value) * (percent / 100.0) - 1e-9).astype(np.int64)
        return cls.of(value, level, level, needed)

    def fits(self, position: tuple[int, ...], low: float, high: float) -> bool:
        """Whether a range holds the true value, as it must if the tables belong together."""
        return bool(low <= self.true[position] <= high)

    def verdict(
        self, position: tuple[int, ...], low: float, high: float, *, sharp: bool
    ) -> ProtectionVerdict:
        """Whether a range is wide enough; a range that is not sharp may be narrower than it looks."""
        if not self.needed[position]:
            return ProtectionVerdict.NOT_ASKED
        if low > self.low[position] or high < self.high[position]:
            return ProtectionVerdict.TOO_NARROW
        return ProtectionVerdict.ENOUGH if sharp else ProtectionVerdict.UNKNOWN


@dataclass(frozen=True)
class AuditedCell:
    """A cell that was not published exactly, and what a reader can work out about it.

    All values are in units of the report's last decimal. ``risk`` is ``1 / log2 m`` for m feasible values
    (Domingo-Ferrer, Oganian and Torra, equation 3), infinite for one.
    """

    table: int
    position: tuple[int, ...]
    name: str
    low: float
    high: float
    sharp: bool
    follows: tuple[str, ...] = ()
    protection: ProtectionVerdict = ProtectionVerdict.NOT_ASKED

    @property
    def disclosed(self) -> bool:
        return self.low == self.high

    @property
    def count(self) -> float:
        return self.high - self.low + 1

    def within(self, percent: float) -> bool:
        """Whether the middle of the range is at most this many percent of itself away from both ends."""
        if not self.high - self.low < UNBOUNDED:  # nor where both ends are infinite
            return False
        return 100 * (self.high - self.low) <= percent * abs(self.high + self.low)

    @property
    def risk(self) -> float:
        """The reciprocal of the entropy over the feasible values, in bits."""
        if self.disclosed:
            return float("inf")
        return 1.0 / float(log2(self.count))


@dataclass(frozen=True)
class TableFact:
    """A weighted sum of cells of tables that lies between two ends, in units of the last decimal.

    A term is the number of a table, a position in it, and a weight.
    """

    terms: tuple[tuple[int, tuple[int, ...], int], ...]
    low: int = -UNBOUNDED
    high: int = UNBOUNDED


_MOST_SHOWN = 100  # cells in a notebook


@dataclass(frozen=True)
class AuditReport:
    """All cells of some tables that were not published exactly."""

    cells: tuple[AuditedCell, ...]
    published: int
    decimals: int
    programs: int

    @property
    def disclosed(self) -> tuple[AuditedCell, ...]:
        return tuple(cell for cell in self.cells if cell.disclosed)

    @property
    def unprotected(self) -> tuple[AuditedCell, ...]:
        return tuple(c for c in self.cells if c.protection is ProtectionVerdict.TOO_NARROW)

    def close(self, percent: float) -> tuple[AuditedCell, ...]:
        return tuple(c for c in self.cells if not c.disclosed and c.within(percent))

    def narrow(self, values: int) -> tuple[AuditedCell, ...]:
        return tuple(c for c in self.cells if not c.disclosed and c.count <= values)

    def __str__(self) -> str:
        outer = sum(not cell.sharp for cell in self.cells)
        more = f" For {outer} the range may be narrower still." if outer else ""
        if len(self.cells) == 1:
            verb = "is" if self.disclosed else "is not"
            said = f"1 cell was not published as it is; it {verb} exactly disclosed."
        else:
            said = (
                f"{len(self.cells)} cells were not published as they are; {len(self.disclosed)} of them "
                "are exactly disclosed."
            )
        return f"{said}{self._closest()}{more}{self._protected()}"

    def _repr_html_(self) -> str:
        rows = [
            (
                c.name,
                *(f"{v / 10**self.decimals:,.{self.decimals}f}" for v in (c.low, c.high)),
                str(c.disclosed),
            )
            for c in self.cells[:_MOST_SHOWN]
        ]
        return html_table(str(self), ("cell", "from", "to", "disclosed"), rows)

    def _closest(self) -> str:
        """A sentence on the narrowest range of a cell that is not disclosed."""
        left = [c for c in self.cells if not c.disclosed and np.isfinite(c.count)]
        if not left:
            return ""
        cell = min(left, key=lambda c: c.count)
        if self.decimals:
            low, high = (
                f"{v / 10**self.decimals:,.{self.decimals}f}" for v in (cell.low, cell.high)
            )
            return f" The closest range goes from {low} to {high}: {cell.name}."
        return f" The closest range leaves {cell.count:,.0f} values open: {cell.name}."

    def _protected(self) -> str:
        asked = [
            c.protection for c in self.cells if c.protection is not ProtectionVerdict.NOT_ASKED
        ]
        if not asked:
            return ""
        unknown = asked.count(ProtectionVerdict.UNKNOWN)
        rest = f", and of {unknown} it is not known" if unknown else ""
        return (
            f" Of {len(asked)} that need protection, {len(self.unprotected)} can be estimated more "
            f"closely than their protection intervals allow{rest}."
        )


def audit_tables(
    tables: PublishedTable | Release | Sequence[PublishedTable | Release],
    *,
    responses: Sequence[str] | None = None,
    relations: Sequence[RelationLike] = (),
    protection: Sequence[Protection] | None = None,
    progress: Callable[[object], object] | None = None,
    explain: int = 20,
    equations_only: bool = False,
    facts: Sequence[TableFact] = (),
) -> AuditReport:
    """What a reader of all these tables can work out about the cells that none of them publishes.

    ``tables`` is a published table, a release, or several of them over the same people.
    For up to ``explain`` disclosed cells the report names the published cells from which they follow. For
    tables of several responses, give the name of the response of each table and the ``relations`` between
    responses. With ``protection``, one for each table, every cell is judged by its protection interval.
    With ``equations_only`` the report holds only cells that follow from published values by equations,
    whatever the bounds: much less work for very large tables, but it misses what follows from bounds, such
    as that no cell is below 0.

    >>> from lustrum.model import Category, TableAxis
    >>> cats = (Category("a", "a", (0,)), Category("b", "b", (1,)), Category("_T", "all", (0, 1)))
    >>> axis = TableAxis("x", "x", cats)
    >>> report = audit_tables([PublishedTable.exact([axis], [3, 0, 8], [False, True, False])])
    >>> report.cells[0].name, report.cells[0].low, report.cells[0].follows
    ('x=b', 5.0, ('x=a', 'x=all'))
    """
    tables = _published(tables)
    known, spans = known_and_places(tables, responses, relations, facts)
    every = np.unique(np.concatenate([np.arange(s.start, s.stop) for s in spans]))
    open_cells = every[known.low[every] < known.high[every]]
    if equations_only:
        open_cells = open_cells[exactly_disclosed(known)[open_cells]]
    cell_bounds = best_bounds(known, open_cells.tolist(), progress=progress)
    at = {int(c): k for k, c in enumerate(open_cells)}
    cells, reasons = [], dict[int, tuple[str, ...]]()
    for table, span in enumerate(spans):
        inside = (open_cells >= span.start) & (open_cells < span.stop)
        for cell in open_cells[inside].tolist():
            low, high, sharp = (
                a[at[cell]] for a in (cell_bounds.low, cell_bounds.high, cell_bounds.sharp)
            )
            shape = tables[table].layout.shape
            position = tuple(int(p) for p in np.unravel_index(cell - span.start, shape))
            if low == high and cell not in reasons and len(reasons) < explain:
                reasons[cell] = explained(known, cell)
            verdict = ProtectionVerdict.NOT_ASKED
            if protection is not None:
                verdict = _verdict(
                    protection[table], position, float(low), float(high), bool(sharp)
                )
            cells.append(
                AuditedCell(
                    table,
                    position,
                    known.names[cell],
                    float(low),
                    float(high),
                    bool(sharp),
                    reasons.get(cell, ()),
                    verdict,
                )
            )
    shown = sum(s.stop - s.start for s in spans) - len(cells)
    return AuditReport(
        tuple(cells), shown, known.decimals, cell_bounds.programs + cell_bounds.flows
    )


def _published(tables: object) -> list[PublishedTable]:
    """One table or several, releases as what they show."""
    if hasattr(tables, "columns"):
        raise InputError(
            "An audit is of published tables or releases, not of a frame: protect it first, such as by "
            "lustrum.suppress(frame, by=[...], rule=Threshold(3))."
        )
    several = isinstance(tables, Iterable) and not isinstance(tables, (str, bytes, Mapping))
    given: list[object] = list(tables) if isinstance(tables, Iterable) and several else [tables]
    if not given:
        raise InputError("There is no table to audit; give at least one.")
    published = []
    for table in given:
        if isinstance(table, Release):
            table = PublishedTable.of_release(table)
        if not isinstance(table, PublishedTable):
            raise InputError(
                f"An audit is of published tables or releases, not of {kind_of(table)}; the 'apply' of a "
                "protection method makes a release."
            )
        published.append(table)
    return published


def known_and_places(
    tables: Sequence[PublishedTable],
    responses: Sequence[str] | None = None,
    relations: Sequence[RelationLike] = (),
    facts: Sequence[TableFact] = (),
) -> tuple[Knowledge, list[slice]]:
    """What tables of one or several responses reveal together, and the places of each table's cells."""
    if responses is None:
        if relations:
            raise InputError("Relations are between responses; name the response of each table.")
        known = from_tables(tables)
        places = [known.table(i) for i in range(len(tables))]
        return _with_facts(known, places, tables, facts), places
    if len(responses) != len(tables):
        raise InputError(f"There are {len(tables)} tables but {len(responses)} responses.")
    by_name: dict[str, list[PublishedTable]] = {}
    for name, table in zip(responses, tables, strict=True):
        by_name.setdefault(name, []).append(table)
    # Cells that no table of a response shows may be negative where a shown or bounded one is.
    least = {
        name: 0 if all(bool((t.low >= 0).all()) for t in group) else -UNBOUNDED
        for name, group in by_name.items()
    }
    related_tables = related(by_name, relations, low=least)
    left = {name: iter(spans) for name, spans in related_tables.spans.items()}
    places = [next(left[name]) for name in responses]
    return _with_facts(related_tables.known, places, tables, facts), places


def _with_facts(
    known: Knowledge,
    places: Sequence[slice],
    tables: Sequence[PublishedTable],
    facts: Sequence[TableFact],
) -> Knowledge:
    if not facts:
        return known
    rows, columns, weights = [], [], []
    for number, fact in enumerate(facts):
        for table, position, weight in fact.terms:
            flat = int(np.ravel_multi_index(position, tables[table].layout.shape))
            rows.append(number)
            columns.append(places[table].start + flat)
            weights.append(weight)
    more = sparse.csr_array(
        (np.array(weights, dtype=np.int64), (rows, columns)), shape=(len(facts), len(known))
    )
    return replace(
        known,
        matrix=sparse.vstack([known.matrix, more], format="csr"),
        fact_low=np.append(known.fact_low, [fact.low for fact in facts]),
        fact_high=np.append(known.fact_high, [fact.high for fact in facts]),
    )


def _verdict(
    wanted: Protection, position: tuple[int, ...], low: float, high: float, sharp: bool
) -> ProtectionVerdict:
    if wanted.needed[position] and not wanted.fits(position, low, high):
        raise InputError(
            "The published values rule out a true value; the files do not belong together."
        )
    return wanted.verdict(position, low, high, sharp=sharp)


def explained(known: Knowledge, cell: int, most: int = 12) -> tuple[str, ...]:
    """The published cells in the facts that prove both bounds of a disclosed cell."""
    from lustrum.audit.certificate import certify
    from lustrum.audit.certificate.exact import Leaf

    claim = certify(known, [cell]).claims[0]
    leaves = [
        node for end in (claim.low, claim.high) for node in end.proof if isinstance(node, Leaf)
    ]
    used = sorted({fact for leaf in leaves for fact, _ in leaf.facts})
    matrix = known.matrix.tocsr()
    involved = np.unique(np.concatenate([matrix[[fact]].indices for fact in used] or [[]]))
    fixed = [int(c) for c in involved if known.low[int(c)] > -UNBOUNDED and int(c) != cell]
    shown = [c for c in fixed if known.high[c] < UNBOUNDED]
    return tuple(known.names[c] for c in shown[:most])
