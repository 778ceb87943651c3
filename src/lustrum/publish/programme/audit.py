"""What a reader of all tables of a system can work out, held against the protection each cell needs.

The audit starts from what was released, as anybody could read it, and knows nothing of how it was made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lustrum.audit import PublishedTable, bounds
from lustrum.audit.bounding.sweep import Progress as Steps
from lustrum.audit.certificate import Certificate, certify
from lustrum.audit.knowledge.responses import Related, layout_key, related
from lustrum.model import InputError, InternalError, Release
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.structure import UNBOUNDED, Structure
from lustrum.protect.suppression import Pattern, PatternChanges
from lustrum.publish.programme.spec import COUNT, PreparedSet, RuleFor
from lustrum.publish.programme.system import ProgrammeSystem, SystemPart
from lustrum.sensitivity import AnyOf, Background, Rule, Sensitivity
from lustrum.sensitivity.rule import NOTHING, judges_contributions


@dataclass(frozen=True, eq=False, repr=False)
class Judged:
    """The sensitive cells of a system with their levels, in the units of the system.

    ``least`` is what everybody knows a hidden cell to hold at least.
    """

    findings: tuple[Sensitivity, ...]
    sensitive: Mask
    lower: Ints
    upper: Ints
    sliding: Ints
    background: Background = NOTHING
    least: Ints | None = None

    def __repr__(self) -> str:
        return f"Judged({len(self.findings)} tables)"


def rules_for(table_set: PreparedSet, response: str) -> Rule:
    """The rules of a set that judge a response, as one; a response that none judges is refused."""
    rules = [one.rule for one in table_set.rules if _is_for(one, response)]
    if not rules:
        raise InputError(
            f"Set {table_set.name!r}: no rule judges {response!r}; add one, such as a threshold of "
            "contributors."
        )
    return rules[0] if len(rules) == 1 else AnyOf(*rules)


def judge(
    table_set: PreparedSet,
    system: ProgrammeSystem,
    background: Background,
    *,
    zeros_shown: bool = False,
) -> Judged:
    """Judge every table of a system, shown or not.

    Where empty cells are shown, everybody knows that a hidden count is 1 at least.
    """
    size = system.values.size
    lower, upper, sliding = (np.zeros(size, dtype=np.int64) for _ in range(3))
    sensitive = np.zeros(size, dtype=np.bool_)
    findings = []
    for part, span in zip(system.parts, system.spans, strict=True):
        sensitivity = rules_for(table_set, part.response).judge(part.true, background)
        findings.append(sensitivity)
        scale = system.scale(part)
        mask = _needed(part, sensitivity)
        sensitive[span] |= mask
        # A cell that may not be given away at all has a level of 1 at least.
        above = np.where(mask, np.maximum(sensitivity.upper.ravel() * scale, 1), 0)
        upper[span] = np.maximum(upper[span], above)
        below = np.where(mask, sensitivity.lower.ravel() * scale, 0)
        lower[span] = np.maximum(lower[span], below)
        sliding[span] = np.maximum(
            sliding[span], np.where(mask, sensitivity.sliding.ravel() * scale, 0)
        )
    least = np.full(size, -UNBOUNDED)
    if bool((system.values >= 0).all()):
        least = np.zeros(size, dtype=np.int64)
        for part, span in zip(system.parts, system.spans, strict=True):
            empty = bool((sensitive[span] & (system.values[span] == 0)).any())
            count = part.response == COUNT
            least[span] = int(zeros_shown and count and part.shown and not empty)
        # A small count is protected by seeming large enough to be published; see `lower_levels`.
        lower = np.where(least > 0, 0, np.minimum(lower, system.values))
    return Judged(tuple(findings), sensitive, lower, upper, sliding, background, least)


def _needed(part: SystemPart, sensitivity: Sensitivity) -> Mask:
    """The sensitive cells; where nobody contributes to a cell that is not shown, there is nobody to protect."""
    mask: Mask = sensitivity.mask.ravel()
    if part.shown or part.true.contributors is None:
        return mask
    return mask & (part.true.contributors.ravel() > 0)


def _is_for(one: RuleFor, response: str) -> bool:
    if one.responses:
        if response in one.responses and response == COUNT and judges_contributions(one.rule):
            raise InputError(
                f"The rule {one.rule.name!r} judges contributions, which a count has none of; use "
                "'threshold' for counts."
            )
        return response in one.responses
    return response != COUNT or not judges_contributions(one.rule)


Progress = Callable[[str, float], None]

_NEAR = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class AuditedSystem:
    """The sensitive cells of a system, what can be worked out about each, and whether that is far enough."""

    cells: Ints
    low: Floats
    high: Floats
    enough: Mask
    seen: Related | None = None

    def __repr__(self) -> str:
        return f"AuditedSystem(safe={self.safe})"

    @property
    def safe(self) -> bool:
        return bool(self.enough.all())


def audit_ranges(
    system: ProgrammeSystem,
    judged: Judged,
    releases: Sequence[Release | None],
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> AuditedSystem:
    """The range of every sensitive cell from all that is published, against its levels."""
    seen = public_knowledge(system, releases)
    _check_same_cells(system, seen)
    cells = np.flatnonzero(judged.sensitive)
    value = system.values[cells]

    def report(state: Steps) -> None:
        if progress is not None and state.asked:
            progress("audit", state.settled / state.asked)

    # Only counts are known to be whole; of sums a linear bound is reached.
    known = replace(seen.known, whole=system.counts)
    ranges = bounds(known, cells.tolist(), integer=system.counts, workers=workers, progress=report)
    slack = 0.0 if system.counts else _NEAR
    enough = (
        (ranges.low <= value - judged.lower[cells] + slack)
        & (ranges.high >= value + judged.upper[cells] - slack)
        & (ranges.high - ranges.low >= judged.sliding[cells] - 2 * slack)
        # A range that is not sharp may be narrower than it looks.
        & ranges.sharp
    )
    return AuditedSystem(cells, ranges.low, ranges.high, np.asarray(enough), seen)


def audit_moves(
    system: ProgrammeSystem, judged: Judged, releases: Sequence[Release | None]
) -> AuditedSystem:
    """Adjusted tables: every sensitive cell was moved by its level at least, and every table adds up."""
    published = system.values.copy()
    shown = np.zeros(system.values.size, dtype=np.bool_)
    for part, span, release in zip(system.parts, system.spans, releases, strict=True):
        if release is None:
            continue
        published[span] = release.numbers.ravel() * system.scale(part)
        shown[span] = True
        relations = Structure.of_tables([release.axes]).relations.matrix
        if bool((relations @ release.numbers.ravel()).any()):
            raise InternalError("An adjusted table does not add up.")
    cells = np.flatnonzero(judged.sensitive & shown)
    moved = published[cells] - system.values[cells]
    up = moved >= np.maximum(judged.upper[cells], 1)
    down = (judged.lower[cells] > 0) & (-moved >= judged.lower[cells])
    edge = np.full(cells.size, np.nan)
    return AuditedSystem(cells, edge, edge, up | down)


def certificate_of(
    seen: Related, cells: Sequence[int], *, progress: Progress | None = None
) -> Certificate:
    """Proofs of the ranges of some cells, made from public facts only."""

    def report(done: int, total: int) -> None:
        if progress is not None and total:
            progress("certificate", done / total)

    return certify(seen.known, list(cells), progress=report)


def _check_same_cells(system: ProgrammeSystem, seen: Related) -> None:
    """The true table must be one of those that the releases leave possible."""
    ours, theirs = (
        [layout_key(layout) for layout in layouts] for layouts in (system.layouts, seen.layouts)
    )
    known = seen.known
    if ours != theirs or len(known) != system.values.size:
        raise InternalError("The audit looks at other cells than the protection did.")
    inside = (known.low <= system.values) & (system.values <= known.high)
    if not bool(inside.all()):
        raise InternalError("The releases rule the true tables out.")


# The protected tables of a system, and what a reader of all of them knows.


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
