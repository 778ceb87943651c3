"""The protected tables of a system, and what a reader of all of them knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lustrum.audit import PublishedTable
from lustrum.audit.knowledge.responses import Related, related
from lustrum.model import Release
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.suppression import Pattern, PatternChanges
from lustrum.publish.programme.system import ProgrammeSystem, SystemPart


@dataclass(frozen=True, eq=False, repr=False)
class Protected:
    """The releases of a system's tables in the order of its parts, None for those that are not shown."""

    releases: tuple[Release | None, ...]
    pattern: Pattern | None = None
    changes: PatternChanges | None = None

    def __repr__(self) -> str:
        return f"Protected({sum(r is not None for r in self.releases)} tables)"


def public_knowledge(system: ProgrammeSystem, releases: Sequence[Release | None]) -> Related:
    """What a reader of all tables of a system knows; tables that are not shown are asked about."""
    tables: dict[str, list[PublishedTable]] = {name: [] for name in system.responses}
    low = least_value(system)
    for part, release in zip(system.parts, releases, strict=True):
        tables[part.response].append(_as_published(part, release, system, low))
    return related(tables, system.relations, low=low, variables=system.variables)


def least_value(system: ProgrammeSystem) -> int:
    """The least value that a reader thinks possible: 0 where no value is below it."""
    return 0 if bool((system.values >= 0).all()) else -UNBOUNDED


def _as_published(
    part: SystemPart, release: Release | None, system: ProgrammeSystem, low: int
) -> PublishedTable:
    if release is None:
        return PublishedTable.hidden(part.layout, low=low, decimals=system.decimals)
    seen = PublishedTable.of_release(release, low=low)
    scale = system.scale(part)
    ends = [np.where(np.abs(e) < UNBOUNDED, e * scale, e) for e in (seen.low, seen.high)]
    return PublishedTable(part.layout, ends[0], ends[1], system.decimals)


def spans_of(system: ProgrammeSystem, seen: Related) -> list[slice]:
    """Where the cells of each part stand among those of what is known."""
    taken = {name: iter(spans) for name, spans in seen.spans.items()}
    return [next(taken[part.response]) for part in system.parts]
