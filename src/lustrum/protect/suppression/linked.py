"""Linked tables that are protected together, because their readers see them together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from lustrum.arrays import Mask
from lustrum.model import InputError, Table
from lustrum.protect.suppression.choose import Progress, suppress
from lustrum.protect.suppression.contributors import contributor_views
from lustrum.protect.suppression.method import Suppression, problem_of
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.result import Pattern
from lustrum.sensitivity import Background
from lustrum.sensitivity.background import NOTHING
from lustrum.structure import Structure

__all__ = ["linked_patterns", "linked_problem"]


def linked_problem(
    specs: Sequence[Suppression],
    tables: Sequence[Table],
    background: Background = NOTHING,
    *,
    frozen: Sequence[Mask | None] = (),
    never: Sequence[Mask | None] = (),
    named: bool = True,
    coalitions: Iterable[Iterable[int]] = (),
) -> SuppressionProblem:
    """One problem for tables of the same response, each with its own rule; cells follow table by table.

    Relations between the tables follow from what their categories hold, so that a total in one of them
    and its parts in another are held together. A cell that one table may suppress and that stands in
    another too is two cells, which move together. A contributor attacks all tables with what it contributes to
    any of them: a number of a holding means the same holding in every table, unless they are not ``named``.
    Each of the ``coalitions`` is a set of holdings that pool what they know.
    """
    if any(spec.unions for spec in specs):
        raise InputError(
            "Sums of suppressed cells ('unions') are judged in one table, not in linked ones."
        )
    attackers = {spec.attacker for spec in specs}
    if len(attackers) > 1:
        raise InputError("Linked tables are read together, so they need the same 'attacker'.")
    if len({(table.kind, table.decimals) for table in tables}) > 1:
        raise InputError(
            "Linked tables must hold the same kind of values with the same number of decimals."
        )
    structure = Structure.of_tables([table.axes for table in tables])
    values = np.concatenate([table.values.ravel() for table in tables])
    relations = structure.relations
    broken = np.flatnonzero(relations.matrix @ values)
    if broken.size:
        total = int(relations.totals[int(broken[0])])
        name = "a relation" if total < 0 else structure.describe(total)
        raise InputError(f"The tables do not agree: {name} is not the sum of its parts in another.")
    parts = [
        spec.held(_own(spec, table, background), kept, hidden)
        for spec, table, kept, hidden in zip(
            specs, tables, _each(frozen, tables), _each(never, tables), strict=True
        )
    ]

    def together(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    made = SuppressionProblem(
        values=values,
        relations=relations.matrix.tocsr().astype(np.int64),
        primary=together("primary"),
        lower=together("lower"),
        upper=together("upper"),
        sliding=together("sliding"),
        low=together("low"),
        high=np.full(values.size, max(int(part.high.max(initial=0)) for part in parts)),
        cost=together("cost"),
        frozen=together("frozen"),
        never=together("never"),
        whole=parts[0].whole,
        names=[structure.describe(cell) for cell in range(values.size)],
    )
    groups = tuple(coalitions)
    if "outsider" in attackers:
        if groups:
            raise InputError("A coalition needs the attacker 'singletons' or 'holdings'.")
        return made
    views = contributor_views(
        tables, made, alone_only="singletons" in attackers, named=named, coalitions=groups
    )
    return replace(made, views=views)


def linked_patterns(
    specs: Sequence[Suppression],
    tables: Sequence[Table],
    background: Background = NOTHING,
    *,
    frozen: Sequence[Mask | None] = (),
    never: Sequence[Mask | None] = (),
    previous: Sequence[Mask | None] = (),
    named: bool = True,
    coalitions: Iterable[Iterable[int]] = (),
    workers: int | None = None,
    progress: Progress | None = None,
) -> tuple[Pattern, ...]:
    """The pattern of every table; cost, bound and audit are those of all tables together.

    The first method says how the pattern is searched for; see :func:`linked_problem` for the attackers.
    """
    problem = linked_problem(
        specs,
        tables,
        background,
        frozen=frozen,
        never=never,
        named=named,
        coalitions=coalitions,
    )
    before = None
    if any(mask is not None for mask in previous):
        before = np.concatenate(
            [
                np.zeros(table.values.size, dtype=np.bool_) if mask is None else mask.ravel()
                for table, mask in zip(tables, _each(previous, tables), strict=True)
            ]
        )
    found = suppress(
        problem,
        algorithm=specs[0].algorithm,
        work=specs[0].work,
        previous=before,
        workers=workers,
        progress=progress,
    )
    ends = np.cumsum([0, *(table.values.size for table in tables)])
    return tuple(
        replace(
            found,
            suppressed=found.suppressed[a:b],
            primary=found.primary[a:b],
            secondary=found.secondary[a:b],
        )
        for a, b in pairwise(ends.tolist())
    )


def _own(spec: Suppression, table: Table, background: Background) -> SuppressionProblem:
    return problem_of(
        table,
        spec.judge(table, background),
        cost=spec.cost,
        power=spec.power,
        keep=spec.keep,
        zeros=spec.zeros,
    )


def _each(masks: Sequence[Mask | None], tables: Sequence[Table]) -> Sequence[Mask | None]:
    return masks or [None] * len(tables)
