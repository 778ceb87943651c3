"""Protect a system of linked tables by suppression."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.audit import Relation, bounds
from lustrum.audit.knowledge.responses import layout_key
from lustrum.model import CellStatus, InputError, Release
from lustrum.model.arrays import Mask, Sparse
from lustrum.model.text import say
from lustrum.numeric.structure import UNBOUNDED, Structure, complete_relations
from lustrum.protect.method import kept_cells
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
from lustrum.protect.suppression.contributors import (
    contributor_numbers,
    ranked_contributions,
    views_of,
)
from lustrum.protect.suppression.linked import Search, Smaller, pattern_with_cube
from lustrum.protect.suppression.method import alone_only, attacker_of, least_hidden, problem_of
from lustrum.protect.suppression.search.parts import cut_out
from lustrum.publish.programme.audit import Judged, Protected, public_knowledge, spans_of
from lustrum.publish.programme.spec import PreparedSet
from lustrum.publish.programme.system import ProgrammeSystem, SystemPart, named_cells
from lustrum.publish.suppression.tables import StoppableSearch, log
from lustrum.runtime.log_lines import tell_person

Progress = Callable[[str, float], None]


def suppress_system(
    table_set: PreparedSet,
    spec: Suppression,
    system: ProgrammeSystem,
    judged: Judged,
    description: Mapping[str, Any],
    previous: Mask | None,
    workers: int | None,
    progress: Progress | None,
) -> Protected:
    """Protect all tables of a system together by one pattern of suppression."""
    problem = _problem(table_set, spec, system, judged)

    search = StoppableSearch(
        line=lambda description: tell_person(log, f"Set {table_set.name!r}: {description}")
    )

    def tell(what: str, cost: float, bound: float) -> bool:
        if progress is not None:
            progress(f"{table_set.name}: {what}", min(bound / cost, 0.99) if cost > 0 else 0.99)
        return search.tell(what, cost, bound)

    algorithm = spec.algorithm
    if not system.single and not {"algorithm", "work"} & set(table_set.method):
        # Linked tables need linear programs, with which the search for the cheapest pattern takes many minutes.
        algorithm = "quick"

    def searched(smaller: SuppressionProblem, before: Mask | None) -> Pattern:
        return suppress(
            smaller,
            algorithm=algorithm,
            work=spec.work,
            previous=before,
            workers=workers,
            progress=tell,
        )

    with search.listening():
        pattern = pattern_of_tables(system, problem, previous, searched, workers)
    if not pattern.safe:
        said = str(pattern.unprotectable[0]) if pattern.unprotectable else ""
        raise InputError(
            f"Set {table_set.name!r}: no pattern protects all sensitive cells, so nothing is published. {said}"
        )
    releases: list[Release | None] = []
    for part, span, sensitivity in zip(system.parts, system.spans, judged.findings, strict=True):
        if not part.shown:
            releases.append(None)
            continue
        shape = part.true.shape
        hidden = pattern.suppressed[span].reshape(shape)
        status = np.where(hidden, CellStatus.SECONDARY.value, CellStatus.FREE.value)
        out = named_cells(part, "never").reshape(shape) & hidden
        status = np.where(out, CellStatus.NOT_FOR_PUBLICATION.value, status)
        status = np.where(sensitivity.mask & hidden, sensitivity.status, status)
        floor = least_hidden(part.true, hidden, zeros=spec.zeros)
        releases.append(_release(part, description, hidden, status, floor))
    if spec.partial:
        releases = _with_intervals(system, releases, workers)
    return Protected(
        tuple(releases), pattern, _changed(problem, system, pattern, previous, workers)
    )


def _changed(
    problem: SuppressionProblem,
    system: ProgrammeSystem,
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
    table_set: PreparedSet, spec: Suppression, system: ProgrammeSystem, judged: Judged
) -> SuppressionProblem:
    views: tuple[ContributorView, ...] = ()
    tables = [part.true for part in system.parts]
    attacker = attacker_of(spec.attacker, tables)
    if attacker != "outsider":
        views = _joint_views(
            system, judged, alone_only=alone_only(attacker, tables), pairs=attacker == "pairs"
        )
    if spec.unions and not system.single:
        raise InputError(
            f"Set {table_set.name!r}: 'unions' is for a set of one table with one measure; leave it out here."
        )
    if system.single:
        part = system.parts[0]
        return spec.held(
            _single(table_set, spec, system, judged, views),
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
        always_shown = kept_cells(part.true, spec.keep)
        if not spec.zeros:
            always_shown |= part.true.values == 0
        # A cell that was named must be published, so a sensitive one among them is refused.
        frozen[span] = always_shown.ravel() & ~judged.sensitive[span] | named_cells(part, "frozen")
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
        low=-2 * top
        if judged.least is None or bool((system.values < 0).any())
        else np.minimum(system.values, judged.least),
        high=max(2 * top, top + int(judged.upper.max(initial=0))),
        cost=cost,
        frozen=frozen & ~never,
        never=never & ~judged.sensitive,
        whole=system.counts,
        names=system.known.known.names,
        views=views,
    )


def _joint_views(
    system: ProgrammeSystem, judged: Judged, *, alone_only: bool, pairs: bool
) -> tuple[ContributorView, ...]:
    """One attacker for each holding among the largest contributors of some cell.

    A holding knows its contributions to all tables of the system. With ``alone_only`` there are only those
    that are alone somewhere; with ``pairs`` every two of them also attack together.
    """
    relations = system.known.known.matrix
    tables = [part.true for part in system.parts]
    contributions = ranked_contributions(
        tables,
        [span.start for span in system.spans],
        relations,
        alone_only=alone_only,
        scales=[system.scale(part) for part in system.parts],
    )
    levels = np.stack([judged.lower, judged.upper, judged.sliding])
    numbers = None
    if pairs:
        numbers = np.full(system.values.size, UNBOUNDED)
        for span, contributors in zip(
            system.spans, map(contributor_numbers, ([t] for t in tables)), strict=True
        ):
            numbers[span] = contributors
    return views_of(
        contributions, system.values, relations, judged.sensitive, levels, numbers=numbers
    )


def _single(
    table_set: PreparedSet,
    spec: Suppression,
    system: ProgrammeSystem,
    judged: Judged,
    views: tuple[ContributorView, ...],
) -> SuppressionProblem:
    """One table by itself, for which there are faster searches."""
    from lustrum.protect.suppression import RuleOnUnions
    from lustrum.publish.programme.audit import rules_for

    part = system.parts[0]
    return problem_of(
        part.true,
        judged.findings[0],
        cost=spec.cost,
        power=spec.power,
        views=views,
        unions=RuleOnUnions(part.true, rules_for(table_set, part.response), judged.background)
        if spec.unions
        else None,
        keep=spec.keep,
        zeros=spec.zeros,
    )


def _release(
    part: SystemPart,
    description: Mapping[str, Any],
    hidden: Mask,
    status: npt.NDArray[np.str_],
    floor: int,
) -> Release:
    values = part.true.values
    return Release(
        axes=part.true.axes,
        numbers=np.where(hidden, 0, values),
        status=status,
        method=dict(description),
        least=np.where(hidden, floor, values),
        most=np.where(hidden, UNBOUNDED, values),
        decimals=part.true.decimals,
        unit=part.true.unit,
        structural=part.true.structural,
        notes=(
            say("Cells that would reveal a contributor are not shown."),
            say("Further cells are not shown because they would give away the hidden ones."),
        )
        if hidden.any()
        else (),
    )


def _with_intervals(
    system: ProgrammeSystem, releases: Sequence[Release | None], workers: int | None
) -> list[Release | None]:
    """State of every suppressed cell the interval that all tables together leave."""
    seen = public_knowledge(system, releases)
    places = dict(zip(map(id, system.parts), spans_of(system, seen), strict=True))
    out: list[Release | None] = []
    for part, release in zip(system.parts, releases, strict=True):
        if release is None:
            out.append(None)
            continue
        span, scale = places[id(part)], system.scale(part)
        cells = np.flatnonzero(~release.shown.ravel())
        intervals = bounds(
            seen.known, (cells + span.start).tolist(), integer=system.counts, workers=workers
        )
        assert release.least is not None
        assert release.most is not None
        low, high = release.least.ravel().copy(), release.most.ravel().copy()
        open_low, open_high = ~np.isfinite(intervals.low), ~np.isfinite(intervals.high)
        least = np.ceil(np.where(open_low, 0, intervals.low) / scale - 1e-6).astype(np.int64)
        most = np.floor(np.where(open_high, 0, intervals.high) / scale + 1e-6).astype(np.int64)
        low[cells] = np.where(open_low, -UNBOUNDED, least)
        high[cells] = np.where(open_high, UNBOUNDED, most)
        out.append(
            replace(release, least=low.reshape(release.shape), most=high.reshape(release.shape))
        )
    return out


# The problem of the tables of a programme without the cube behind them.


def pattern_of_tables(
    system: ProgrammeSystem,
    problem: SuppressionProblem,
    previous: Mask | None,
    search: Search,
    workers: int | None = None,
) -> Pattern:
    """A pattern by a search without the cube, where it is safe with it; otherwise by one with all cells."""
    return pattern_with_cube(problem, without_cube(system, problem), previous, search, workers)


def without_cube(system: ProgrammeSystem, problem: SuppressionProblem) -> Smaller | None:
    """The problem without the cells of the cube; None where a table holds them, or one needs protection."""
    tables = {layout_key(part.layout) for part in system.parts}
    layouts = [layout for layout in system.layouts if layout_key(layout) in tables]
    every = sum(int(np.prod(layout.shape)) for layout in system.layouts)
    # The cube stands behind the tables of each response.
    table_cells = sum(int(np.prod(layout.shape)) for layout in layouts)
    starts = every * np.arange(len(system.responses))
    cells = (starts[:, None] + np.arange(table_cells)).ravel()
    left_out = np.ones(problem.values.size, dtype=np.bool_)
    left_out[cells] = False
    if not left_out.any() or bool((left_out & (problem.primary | ~problem.never)).any()):
        return None
    try:
        relations = _relations(system, Structure.of_tables(layouts, variables=system.variables))
    except InputError:
        return None  # groups that overlap in odd ways are related more simply by the cube
    nothing = np.zeros(0, dtype=np.int64)
    return Smaller(replace(cut_out(problem, cells, nothing), relations=relations), cells)


def _relations(system: ProgrammeSystem, structure: Structure) -> Sparse:
    """The relations between the cells of tables, response by response, and those between responses."""
    names, cells = system.responses, structure.rows
    inside = complete_relations(structure).matrix
    blocks = [sparse.block_diag([inside] * len(names), format="csr")]
    same = sparse.eye_array(cells, dtype=np.int64, format="csr")
    for equation in system.relations:
        relation = Relation.of(equation)
        weights = np.array([[relation.weights.get(name, 0) for name in names]], dtype=np.int64)
        blocks.append(sparse.kron(sparse.csr_array(weights), same, format="csr"))
    return sparse.csr_array(sparse.vstack(blocks, format="csr"))
