"""What a question needs, counted once and protected at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lustrum.model import Dataset, InputError, Release, TableQuery
from lustrum.numeric.counting.cube import View
from lustrum.policy import Policy, PolicyMethod
from lustrum.protect.weighted.classes import MeanWeights
from lustrum.public.numbers import CannotProtectError, KeyedSource, Views
from lustrum.publish.records.keyed_weights import mean_weights, weighted_release
from lustrum.publish.records.protected_input import ProtectedInput
from lustrum.tabulate import Cube, Engine


@dataclass(frozen=True)
class EngineNumbers(KeyedSource):
    """Protected numbers from an engine in the same process, for the agency and for tests."""

    engine: Engine
    policy: Policy
    source: ProtectedInput | None = None

    @property
    def dataset(self) -> Dataset:
        """The public description."""
        return self.engine.dataset

    @property
    def mark(self) -> str:
        """Empty: code that holds an engine knows what is in it."""
        return "engine"

    def views(self, query: TableQuery) -> Views:
        """Count and protect."""
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
    return _public(release)


def _protected(cube: Cube, view: View, source: ProtectedInput, method: PolicyMethod) -> Release:
    # All parts of a total are protected with it, also those that were not asked for.
    completed, asked = cube.completed(view)
    release = source.protect(completed, method)
    parts_added = any(
        len(positions) < size for positions, size in zip(asked, completed.shape, strict=True)
    )
    return _public(release.take(asked) if parts_added else release)


def _public(release: Release) -> Release:
    # A number that is not shown does not leave this room either.
    return replace(release, published=np.where(release.shown, release.published, 0), provenance={})
