"""What a question needs, counted once and protected at once."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np

from lustrum.model import Axis, Dataset, InputError, Release, TableQuery
from lustrum.model.plugins import load
from lustrum.model.text import say
from lustrum.numeric.counting.cube import View
from lustrum.numeric.structure import TableLayout
from lustrum.policy import Policy, PolicyMethod
from lustrum.protect.weighted.classes import MeanWeights, checked_shape, class_weights
from lustrum.public.numbers import CannotProtectError, KeyedSource, Views
from lustrum.publish.records.protected_input import ProtectedInput
from lustrum.tabulate import Cube, Engine, KernelEngine


@dataclass(frozen=True)
class EngineNumbers(KeyedSource):
    """Protected numbers from an engine in the same process, for the agency and for tests."""

    engine: Engine
    policy: Policy
    source: ProtectedInput | None = None

    @property
    def dataset(self) -> Dataset:
        return self.engine.dataset

    @property
    def mark(self) -> str:
        """Empty: code that holds an engine knows what is in it."""
        return "engine"

    def views(self, query: TableQuery) -> Views:
        return counted_views(query, self.source or ProtectedInput(self.engine), self.policy)


def counted_views(
    query: TableQuery, source: ProtectedInput, policy: Policy, mean: MeanWeights | None = None
) -> Views:
    """The three views of a question, each protected; nothing else of what was counted is kept.

    ``mean`` are the mean weights of the policy, if they were made before.
    """
    if query.statistics or (query.weight is not None and query.measure is not None):
        raise CannotProtectError("Record keys protect counts, and sums without weights.")
    if query.weight is not None:
        plain = replace(query, weight=None)
        counted = counted_views(plain, source, policy).shown
        shown = weighted_release(plain, counted, source, mean or mean_weights(source, policy))
        return Views(shown, None, shown)
    if query.measure is not None:
        shown = _summed(query, source, policy)
        return Views(shown, None, shown)
    method = policy.protect
    cube = source.engine.cube(query, unfiltered=True)
    try:
        shown = _protected(cube, "shown", source, method)
        selected = None
        if query.where:
            selected = shown if cube.is_widened else _protected(cube, "widened", source, method)
        everybody = shown if cube.is_wide else _protected(cube, "unfiltered", source, method)
        return Views(everybody, selected, shown)
    except InputError:
        raise CannotProtectError("The method cannot protect such a table.") from None


def _summed(query: TableQuery, source: ProtectedInput, policy: Policy) -> Release:
    """The sums of a measure; each cell is perturbed by its own records alone."""
    if policy.sums is None:
        raise CannotProtectError("The policy does not say how sums are protected.")
    ranks = max(2, getattr(policy.sums.spec, "ranks", 2))
    try:
        release = source.protect(source.engine.tabulate(query, ranks=ranks), policy.sums)
    except InputError:
        raise CannotProtectError("The method cannot protect such sums.") from None
    return replace(release, provenance={})


def _protected(cube: Cube, view: View, source: ProtectedInput, method: PolicyMethod) -> Release:
    # All parts of a total are protected with it, also those that were not asked for.
    completed, asked = cube.completed(view)
    release = source.protect(completed, method)
    parts_added = any(
        len(positions) < size for positions, size in zip(asked, completed.shape, strict=True)
    )
    return replace(release.take(asked) if parts_added else release, provenance={})


# Mean weights of classes for keyed methods, from the records and the secret; the result is public.


def mean_weights(source: ProtectedInput, policy: Policy) -> MeanWeights:
    """The public table of mean weights of a policy, from the input that tables are counted from."""
    engine, settings = source.engine, policy.weights
    if settings is None or source.secret is None or not isinstance(engine, KernelEngine):
        raise CannotProtectError("There are no weights to protect.")
    dataset = engine.dataset
    weight = dataset.weight(settings.weight)
    chunks = [chunk for chunk in engine.chunks if chunk.rows]
    if any(chunk.counts is not None or settings.weight not in chunk.numbers for chunk in chunks):
        raise CannotProtectError("The protected input has no weights.")
    settings_json = json.dumps(settings.model_dump(), sort_keys=True)
    keys = [chunk.keys for chunk in chunks if chunk.keys is not None]
    if len(keys) < len(chunks):
        raise CannotProtectError("The protected input has no record keys.")
    try:
        checked_shape(tuple(len(dataset.variable(name).codes) for name in settings.classes))
        # The numbers of respondents are those that a table by the classes shows.
        query = TableQuery(dataset.name, tuple(Axis(name) for name in settings.classes))
        shown = source.protect(engine.tabulate(query), policy.protect)
        numbers = np.maximum(shown.numbers, 0)
        weights = class_weights(
            [np.concatenate([chunk.codes[name] for chunk in chunks]) for name in settings.classes],
            numbers,
            np.concatenate([chunk.numbers[settings.weight] for chunk in chunks])
            / 10.0**weight.decimals,
            np.concatenate(keys),
            class_size=settings.class_size,
            noise=settings.noise,
            decimals=settings.decimals,
            secret=source.secret.derive(f"lustrum mean weights {dataset.name} {settings_json}"),
        )
    except InputError:
        raise CannotProtectError("The method cannot protect such weights.") from None
    if weight.total is not None and int((weights * numbers).sum()):
        # Weights sum to the frame, whose size is public.
        stretch = weight.total * 10.0**settings.decimals / int((weights * numbers).sum())
        weights = np.maximum(np.rint(weights * stretch), 1).astype(np.int64)
    return MeanWeights(tuple(settings.classes), weights, numbers, settings.decimals)


def weighted_release(
    query: TableQuery, counted: Release, source: ProtectedInput, mean: MeanWeights
) -> Release:
    """The weighted counts of a table whose protected counts are these."""
    dataset = source.engine.dataset
    layout = TableLayout.of_query(query, dataset)
    return replace(
        counted,
        numbers=mean.weighted(layout, counted.numbers),
        least=None,
        most=None,
        channel=None,
        decimals=mean.decimals,
        unit=dataset.units,
        method={**counted.method, "weights": "means of classes"},
        notes=(
            *counted.notes,
            say(
                "Weighted counts are protected counts times mean weights of {classes}; nobody's own weight is "
                "used. They have no standard errors.",
                classes=", ".join(dataset.variable(name).label for name in mean.variables),
            ),
        ),
    )


# True figures of a table: for the agency alone, where the records are. Never for a reader.


@dataclass(frozen=True)
class TrueFigures:
    """Confidential: each of these tells of the true counts."""

    risk_before: float
    risk_after: float
    utility: float
    mean_error: float
    largest_error: int


def true_figures(
    query: TableQuery, engine: Engine, release: Release, policy: Policy
) -> TrueFigures:
    """Risk, utility and errors of a released table, measured against the true counts."""
    table = engine.tabulate(query)
    picks = [
        [axis.codes.index(code) for code in shown.codes]
        for axis, shown in zip(table.axes, release.axes, strict=True)
    ]
    table = table.take(picks)
    measure = policy.risk.spec
    errors = np.abs(release.numbers - table.values)[release.shown]
    return TrueFigures(
        measure.before(table),
        measure.after(table, release),
        load("lustrum.utilities", "hellinger")().of(table, release),
        float(errors.mean()) if errors.size else 0.0,
        int(errors.max(initial=0)),
    )
