"""Mean weights of classes for keyed methods, from the records and the secret; the result is public."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from lustrum.model import Axis, InputError, Release, TableQuery
from lustrum.model.text import say
from lustrum.numeric.structure import TableLayout
from lustrum.policy import Policy
from lustrum.protect.weighted.classes import MeanWeights, checked_shape, class_weights
from lustrum.public.numbers import CannotProtectError
from lustrum.publish.records.protected_input import ProtectedInput
from lustrum.tabulate import KernelEngine


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
        numbers = np.where(shown.shown, np.maximum(shown.published, 0), 0).astype(np.int64)
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
        published=np.where(counted.shown, mean.weighted(layout, counted.published), 0),
        low=None,
        high=None,
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
