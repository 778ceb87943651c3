"""Protect a system of linked tables as a whole: suppression, controlled rounding or adjustment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.arrays import Mask
from lustrum.audit import PublishedTable, bounds
from lustrum.audit.knowledge.responses import Related, related
from lustrum.model import CellStatus, InputError, Release, Table
from lustrum.model.errors import choices
from lustrum.model.keys import cell_words
from lustrum.model.plugins import load
from lustrum.model.text import say
from lustrum.protect.adjustment import ControlledAdjustment, adjust
from lustrum.protect.rounding.controlled.method import ControlledRounding
from lustrum.protect.suppression import (
    ContributorView,
    Pattern,
    PatternChanges,
    Suppression,
    SuppressionProblem,
    cell_costs,
    explain_changes,
    suppress,
)
from lustrum.protect.suppression.method import problem_of
from lustrum.release.records.programme.attackers import joint_views
from lustrum.release.records.programme.judge import Judged
from lustrum.release.records.programme.spec import PreparedSet
from lustrum.release.records.programme.system import Part, System, named_cells
from lustrum.structure import UNBOUNDED

__all__ = ["Protected", "method_of", "protect_system", "public_knowledge"]

Progress = Callable[[str, float], None]
Spec = Suppression | ControlledRounding | ControlledAdjustment


@dataclass(frozen=True, eq=False, repr=False)
class Protected:
    """The releases of a system's tables in the order of its parts, None for those that are not shown."""

    releases: tuple[Release | None, ...]
    pattern: Pattern | None = None
    changes: PatternChanges | None = None

    def __repr__(self) -> str:
        return f"Protected({sum(r is not None for r in self.releases)} tables)"


def method_of(own: PreparedSet) -> Spec:
    """The method of a set; suppression unless it names another."""
    words = {key: value for key, value in own.method.items() if key != "method"}
    kind: type[Spec] = load("lustrum.methods", own.method.get("method", Suppression.name))
    try:
        return kind(**words)
    except TypeError:
        from lustrum.model.parameters import parameters_of

        known = [one.name for one in parameters_of(kind) if one.name != "rule"]
        wrong = next(key for key in words if key not in known)
        raise InputError(
            f"Set {own.name!r}: the method {kind.name!r} has no parameter {wrong!r}; "
            f"{choices(wrong, known)}."
        ) from None
    except InputError as error:
        raise InputError(f"Set {own.name!r}: {error}") from None


def protect_system(
    own: PreparedSet,
    system: System,
    judged: Judged,
    *,
    words: Mapping[str, Any],
    previous: Mask | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Protected:
    """Protect all tables of a system together; ``words`` is what the public may know of the method."""
    spec = method_of(own)
    if isinstance(spec, Suppression):
        return _suppressed(own, spec, system, judged, words, previous, workers, progress)
    if isinstance(spec, ControlledRounding):
        return _rounded(own, spec, system, words)
    return _adjusted(own, spec, system, judged, words)


def public_knowledge(system: System, releases: Sequence[Release | None]) -> Related:
    """What a reader of all tables of a system knows; tables that are not shown are asked about."""
    tables: dict[str, list[PublishedTable]] = {name: [] for name in system.responses}
    low = _floor(system)
    for part, release in zip(system.parts, releases, strict=True):
        tables[part.response].append(_as_published(part, release, system, low))
    for name in system.responses:
        tables[name] = tables[name] or [
            PublishedTable.hidden(system.layouts[0], low=low, decimals=system.decimals)
        ]
    return related(tables, system.relations, low=low, variables=system.variables)


def _floor(system: System) -> int:
    return 0 if bool((system.values >= 0).all()) else -UNBOUNDED


def _as_published(part: Part, release: Release | None, system: System, low: int) -> PublishedTable:
    if release is None:
        return PublishedTable.hidden(part.layout, low=low, decimals=system.decimals)
    seen = PublishedTable.of_release(release, low=low)
    scale = system.scale(part)
    ends = [np.where(np.abs(e) < UNBOUNDED, e * scale, e) for e in (seen.low, seen.high)]
    return PublishedTable(part.layout, ends[0], ends[1], system.decimals)


def _suppressed(
    own: PreparedSet,
    spec: Suppression,
    system: System,
    judged: Judged,
    words: Mapping[str, Any],
    previous: Mask | None,
    workers: int | None,
    progress: Progress | None,
) -> Protected:
    problem = _problem(own, spec, system, judged)

    def tell(what: str, cost: float, bound: float) -> None:
        if progress is not None:
            progress(f"{own.name}: {what}", min(bound / cost, 0.99) if cost > 0 else 0.99)

    algorithm = spec.algorithm
    if not system.single and not {"algorithm", "work"} & set(own.method):
        # Linked tables need linear programs, with which the search for the cheapest pattern takes many minutes.
        algorithm = "quick"
    pattern = suppress(
        problem,
        algorithm=algorithm,
        work=spec.work,
        previous=previous,
        workers=workers,
        progress=tell,
    )
    if not pattern.safe:
        said = str(pattern.unprotectable[0]) if pattern.unprotectable else ""
        raise InputError(
            f"Set {own.name!r}: no pattern protects all sensitive cells, so nothing is published. {said}"
        )
    releases: list[Release | None] = []
    for part, span, found in zip(system.parts, system.spans, judged.findings, strict=True):
        if not part.shown:
            releases.append(None)
            continue
        shape = part.true.shape
        hidden = pattern.suppressed[span].reshape(shape)
        status = np.where(hidden, CellStatus.SECONDARY.value, CellStatus.FREE.value)
        out = named_cells(part, "never").reshape(shape) & hidden
        status = np.where(out, CellStatus.NOT_FOR_PUBLICATION.value, status)
        status = np.where(found.mask & hidden, found.status, status)
        releases.append(_release(part, words, hidden, status, _floor(system)))
    if spec.partial:
        releases = _with_intervals(system, releases, workers)
    return Protected(
        tuple(releases), pattern, _changed(problem, system, pattern, previous, workers)
    )


def _changed(
    problem: SuppressionProblem,
    system: System,
    pattern: Pattern,
    previous: Mask | None,
    workers: int | None,
) -> PatternChanges | None:
    """What changed among the cells that are published since the last period, and why."""
    if previous is None:
        return None
    shown = np.zeros(system.values.size, dtype=np.bool_)
    for part, span in zip(system.parts, system.spans, strict=True):
        shown[span] = part.shown
    return explain_changes(problem, pattern.suppressed, previous, among=shown, workers=workers)


def _problem(
    own: PreparedSet, spec: Suppression, system: System, judged: Judged
) -> SuppressionProblem:
    views: tuple[ContributorView, ...] = ()
    if spec.attacker != "outsider":
        views = joint_views(system, judged.sensitive, alone_only=spec.attacker == "singletons")
    if spec.unions and not system.single:
        raise InputError(
            f"Set {own.name!r}: 'unions' is for a set of one table with one measure; leave it out here."
        )
    if system.single:
        part = system.parts[0]
        return spec.held(
            _single(own, spec, system, judged, views),
            named_cells(part, "frozen"),
            named_cells(part, "never"),
        )
    size = system.values.size
    cost = np.zeros(size)
    frozen = np.zeros(size, dtype=np.bool_)
    never = np.ones(size, dtype=np.bool_)
    for part, span in zip(system.parts, system.spans, strict=True):
        if not part.shown:
            continue
        never[span] = named_cells(part, "never")
        frozen[span] |= _kept(spec, part.true) | named_cells(part, "frozen")
        cost[span] = cell_costs(
            spec.cost,
            part.true.values,
            contributors=part.true.contributors,
            primary=judged.sensitive[span],
            shape=part.true.shape,
            power=spec.power,
        )
    top = int(np.abs(system.values).max(initial=0))
    return SuppressionProblem.of(
        system.values,
        system.known.known.matrix,
        judged.sensitive,
        judged.upper,
        judged.lower,
        sliding=judged.sliding,
        low=0 if _floor(system) == 0 else -2 * top,
        high=max(2 * top, top + int(judged.upper.max(initial=0))),
        cost=cost,
        frozen=frozen & ~judged.sensitive & ~never,
        never=never & ~judged.sensitive,
        whole=system.counts,
        names=system.known.known.names,
        views=views,
    )


def _single(
    own: PreparedSet,
    spec: Suppression,
    system: System,
    judged: Judged,
    views: tuple[ContributorView, ...],
) -> SuppressionProblem:
    """One table by itself, for which there are faster searches."""
    from lustrum.protect.suppression import RuleOnUnions
    from lustrum.release.records.programme.judge import rules_for

    part = system.parts[0]
    return problem_of(
        part.true,
        judged.findings[0],
        cost=spec.cost,
        power=spec.power,
        views=views,
        unions=RuleOnUnions(part.true, rules_for(own, part.response), judged.background)
        if spec.unions
        else None,
        keep=spec.keep,
        zeros=spec.zeros,
    )


def _kept(spec: Suppression, table: Table) -> Mask:
    """The cells of a table that must be published."""
    kept = np.zeros(table.shape, dtype=np.bool_)
    if table.structural is not None:
        kept |= table.structural
    if not spec.zeros:
        kept |= table.values == 0
    if spec.keep == "totals":
        kept |= ~table.inner
    elif spec.keep == "grand-total":
        grand = np.ones((), dtype=np.bool_)
        for axis in table.axes:
            everybody = frozenset().union(*(c.member_set for c in axis.categories))
            whole = np.array([c.member_set == everybody for c in axis.categories])
            grand = grand[..., None] & whole & ~axis.inner
        kept |= grand
    flat: Mask = kept.ravel()
    return flat


def _release(
    part: Part,
    words: Mapping[str, Any],
    hidden: Mask,
    status: npt.NDArray[np.str_],
    floor: int,
) -> Release:
    values = part.true.values
    return Release(
        axes=part.true.axes,
        # Nothing of a suppressed value may be in the release, and it is never 0.
        published=np.where(hidden, -UNBOUNDED, values),
        status=status,
        method=dict(words),
        low=np.where(hidden, floor, values),
        high=np.where(hidden, UNBOUNDED, values),
        decimals=part.true.decimals,
        unit=part.true.unit,
        structural=part.true.structural,
        notes=(
            say("Cells that would reveal a contributor are not shown."),
            say("Further cells are not shown because those could be worked out from them."),
        )
        if hidden.any()
        else (),
    )


def _with_intervals(
    system: System, releases: Sequence[Release | None], workers: int | None
) -> list[Release | None]:
    """State of every suppressed cell the interval that all tables together leave."""
    seen = public_knowledge(system, releases)
    places = dict(zip(map(id, system.parts), _spans(system, seen), strict=True))
    out: list[Release | None] = []
    for part, release in zip(system.parts, releases, strict=True):
        if release is None:
            out.append(None)
            continue
        span, scale = places[id(part)], system.scale(part)
        cells = np.flatnonzero(~release.shown.ravel())
        found = bounds(
            seen.known, (cells + span.start).tolist(), integer=system.counts, workers=workers
        )
        assert release.low is not None
        assert release.high is not None
        low, high = release.low.ravel().copy(), release.high.ravel().copy()
        open_low, open_high = ~np.isfinite(found.low), ~np.isfinite(found.high)
        least = np.ceil(np.where(open_low, 0, found.low) / scale - 1e-6).astype(np.int64)
        most = np.floor(np.where(open_high, 0, found.high) / scale + 1e-6).astype(np.int64)
        low[cells] = np.where(open_low, -UNBOUNDED, least)
        high[cells] = np.where(open_high, UNBOUNDED, most)
        out.append(
            replace(release, low=low.reshape(release.shape), high=high.reshape(release.shape))
        )
    return out


def _spans(system: System, seen: Related) -> list[slice]:
    taken = {name: iter(spans) for name, spans in seen.spans.items()}
    return [next(taken[part.response]) for part in system.parts]


def _rounded(
    own: PreparedSet, spec: ControlledRounding, system: System, words: Mapping[str, Any]
) -> Protected:
    if not system.counts:
        raise InputError(
            f"Set {own.name!r}: controlled rounding is for counts; use 'suppression' or "
            "'controlled-adjustment' for measures."
        )
    shown = [part for part in system.parts if part.shown]
    if any(part.layout.filters for part in shown):
        raise InputError(
            f"Set {own.name!r}: controlled rounding of linked tables is for tables without 'where'; make the "
            "variable of the filter an axis."
        )
    rng = _chance(own, shown)
    tables = [part.true for part in shown]
    made = [spec.apply(tables[0], rng)] if len(tables) == 1 else spec.apply_all(tables, rng)
    releases = iter(replace(release, method=dict(words), provenance={}) for release in made)
    return Protected(tuple(next(releases) if part.shown else None for part in system.parts))


def _adjusted(
    own: PreparedSet,
    spec: ControlledAdjustment,
    system: System,
    judged: Judged,
    words: Mapping[str, Any],
) -> Protected:
    frozen = np.zeros(system.values.size, dtype=np.bool_)
    kept = Suppression(keep=spec.keep, zeros=True)
    weights = np.zeros(system.values.size)
    for part, span in zip(system.parts, system.spans, strict=True):
        if part.shown:
            frozen[span] |= _kept(kept, part.true)
            size = np.maximum(np.abs(system.values[span]).astype(np.float64), 1.0)
            weights[span] = 1.0 / size if spec.weights == "reciprocal" else 1.0
    # What nobody sees may move freely, at a price that only breaks ties.
    weights = np.where(weights > 0, weights, 1e-9)
    half = (judged.sliding + 1) // 2
    sensitive = judged.sensitive & ~frozen
    upper = np.maximum(np.maximum(judged.upper, half), 1)[sensitive]
    lower = np.where(judged.lower > 0, np.maximum(judged.lower, half), 0)[sensitive]
    shown = [part for part in system.parts if part.shown]
    made = adjust(
        system.values,
        system.known.known.matrix,
        sensitive,
        lower,
        upper,
        norm=spec.norm,
        directions=spec.directions,
        frozen=frozen,
        weights=weights,
        max_change=spec.max_change,
        steps=spec.steps,
        rng=_chance(own, shown),
    )
    releases: list[Release | None] = []
    for part, span in zip(system.parts, system.spans, strict=True):
        if not part.shown:
            releases.append(None)
            continue
        own_scale = system.scale(part)
        values = made.values[span].reshape(part.true.shape)
        if own_scale > 1 and bool((values % own_scale).any()):
            raise InputError(
                f"Set {own.name!r}: adjusted values of {part.response!r} need more decimals than the measure "
                "has; describe the measures of a relation with the same decimals."
            )
        fixed = spec.kept_cells(part.true, _relations(part))
        low, high = spec.known_range(part.true, values // own_scale, fixed)
        releases.append(
            Release(
                axes=part.true.axes,
                published=values // own_scale,
                status=np.full(part.true.shape, CellStatus.FREE.value),
                method=dict(words),
                low=low,
                high=high,
                decimals=part.true.decimals,
                unit=part.true.unit,
                structural=part.true.structural,
                notes=spec.public_notes(),
            )
        )
    return Protected(tuple(releases))


def _relations(part: Part) -> Any:
    from lustrum.structure import Structure

    return Structure.of_tables([part.true.axes]).relations.matrix


def _chance(own: PreparedSet, parts: Sequence[Part]) -> np.random.Generator:
    """A generator from the record keys of all tables together: secret, and the same in every run."""
    keys = [part.true.keys for part in parts]
    if any(key is None for key in keys):
        raise InputError(
            f"Set {own.name!r}: the method draws by chance, which follows from the agency's secret; name a "
            'secret file under [data], as secret = "...".'
        )
    words = [
        cell_words(key, f"programme {own.name}").sum(dtype=np.uint64)
        for key in keys
        if key is not None
    ]
    return np.random.default_rng([int(word) for word in words])
