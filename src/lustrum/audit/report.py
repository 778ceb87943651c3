"""An audit in a form to read: which cells are disclosed, which nearly, and from what it follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.audit.best import best_bounds
from lustrum.audit.knowledge import Knowledge
from lustrum.audit.seen import Seen, from_tables
from lustrum.structure import UNBOUNDED

__all__ = ["AuditReport", "AuditedCell", "audit_tables"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AuditedCell:
    """A cell that was not published as it is, and what a reader can work out about it.

    All in units of the report's last decimal. ``risk`` is ``1 / log2 m`` for the m values left
    (Domingo-Ferrer, Oganian and Torra, equation 3), infinite for one.
    """

    table: int
    position: tuple[int, ...]
    name: str
    low: float
    high: float
    sharp: bool
    follows: tuple[str, ...] = ()

    @property
    def disclosed(self) -> bool:
        """Whether one value is left."""
        return self.low == self.high

    @property
    def count(self) -> float:
        """How many values are left."""
        return self.high - self.low + 1

    @property
    def risk(self) -> float:
        """The reciprocal of the entropy over the values left, in bits."""
        if self.disclosed:
            return float("inf")
        return 1.0 / float(np.log2(self.count)) if np.isfinite(self.count) else 0.0


@dataclass(frozen=True)
class AuditReport:
    """All cells of some tables that were not published as they are."""

    cells: tuple[AuditedCell, ...]
    published: int
    decimals: int
    programs: int

    @property
    def disclosed(self) -> tuple[AuditedCell, ...]:
        """The cells of which one value is left."""
        return tuple(cell for cell in self.cells if cell.disclosed)

    def narrow(self, values: int) -> tuple[AuditedCell, ...]:
        """The cells of which few values are left, but more than one."""
        return tuple(c for c in self.cells if not c.disclosed and c.count <= values)

    def __str__(self) -> str:
        outer = sum(not cell.sharp for cell in self.cells)
        more = f" For {outer} the range may be narrower still." if outer else ""
        return (
            f"{len(self.cells)} cells were not published as they are; {len(self.disclosed)} of them "
            f"are exactly disclosed.{more}"
        )


def audit_tables(
    tables: Sequence[Seen],
    *,
    seconds: float | None = None,
    progress: Callable[[object], object] | None = None,
    explain: int = 20,
) -> AuditReport:
    """What a reader of all these tables can work out about the cells that none of them shows.

    For up to ``explain`` disclosed cells it says from which published cells that follows.

    >>> from lustrum.model import Category, TableAxis
    >>> cats = (Category("a", "a", (0,)), Category("b", "b", (1,)), Category("_T", "all", (0, 1)))
    >>> axis = TableAxis("x", "x", cats)
    >>> report = audit_tables([Seen.exact([axis], [3, 0, 8], [False, True, False])])
    >>> report.cells[0].name, report.cells[0].low, report.cells[0].follows
    ('x=b', 5.0, ('x=a', 'x=all'))
    """
    known = from_tables(tables)
    spans = [known.table(i) for i in range(len(tables))]
    open_cells = np.flatnonzero(known.low[: spans[-1].stop] < known.high[: spans[-1].stop])
    found = best_bounds(known, open_cells.tolist(), seconds=seconds, progress=progress)
    cells = []
    for cell, low, high, sharp in zip(
        open_cells.tolist(), found.low, found.high, found.sharp, strict=True
    ):
        table = next(i for i, span in enumerate(spans) if span.start <= cell < span.stop)
        shape = tables[table].layout.shape
        position = np.unravel_index(cell - spans[table].start, shape)
        follows: tuple[str, ...] = ()
        if low == high and explain > 0:
            explain -= 1
            follows = _follows(known, cell)
        cells.append(
            AuditedCell(
                table,
                tuple(int(p) for p in position),
                known.names[cell],
                float(low),
                float(high),
                bool(sharp),
                follows,
            )
        )
    shown = int(spans[-1].stop - open_cells.size)
    return AuditReport(tuple(cells), shown, known.decimals, found.programs)


def _follows(known: Knowledge, cell: int, most: int = 12) -> tuple[str, ...]:
    """The published cells in the facts that prove a disclosed cell, from both ends of its proof."""
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
