"""The cheapest method whose bounds are sharp: a formula if one fits, otherwise programs or a search."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lustrum.audit.bounding.compute import Bounds, bounds
from lustrum.audit.closed import knowledge_bounds
from lustrum.audit.knowledge.facts import CellRef, Knowledge
from lustrum.model.errors import InputError, kind_of


def best_bounds(
    known: Knowledge,
    cells: Iterable[CellRef] | slice | None = None,
    *,
    seconds: float | None = None,
    workers: int | None = None,
    progress: Callable[[object], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Bounds:
    """Sharp whole-number bounds of the given cells, or all, at the least cost.

    Margins of a hidden cube for which a closed form is sharp need no solver. Everything else goes to
    :func:`~lustrum.audit.bounding.compute.bounds`: propagation, hot-started linear programs, and integer
    programs for what is still open. Where ``seconds`` end the work early, the bounds are wider than
    necessary and not sharp.

    >>> from lustrum.audit import from_margins
    >>> known = from_margins({"A": 2, "S": 2}, {"A": [3, 4], "S": [2, 5]})
    >>> found = best_bounds(known, slice(0, 4))
    >>> found.programs, found.low.tolist(), found.high.tolist()
    (0, [0.0, 1.0, 0.0, 2.0], [2.0, 3.0, 2.0, 4.0])
    """
    if not isinstance(known, Knowledge):
        raise InputError(
            f"Bounds follow from Knowledge, not from {kind_of(known)}; make it with from_release, from_tables "
            "or from_margins of lustrum.audit."
        )
    closed = knowledge_bounds(known) if known.whole else None
    if closed is not None and bool(closed.sharp.all()):
        return closed.of(known, cells)
    return bounds(
        known,
        cells,
        integer=True,
        seconds=seconds,
        workers=workers,
        progress=progress,
        stop=stop,
    )
