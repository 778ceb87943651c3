"""Protect a system of linked tables as a whole: suppression, controlled rounding or adjustment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lustrum.model import CellStatus, InputError, Release
from lustrum.model.arrays import Mask
from lustrum.model.chance import KeyedChance
from lustrum.model.errors import choices
from lustrum.model.keys import cell_words
from lustrum.model.plugins import load
from lustrum.protect.adjustment import ControlledAdjustment, adjust
from lustrum.protect.method import kept_cells
from lustrum.protect.rounding.controlled.method import ControlledRounding
from lustrum.protect.suppression import Suppression
from lustrum.publish.programme.audit import Judged, Protected
from lustrum.publish.programme.spec import PreparedSet
from lustrum.publish.programme.suppress import Progress, suppress_system
from lustrum.publish.programme.system import ProgrammeSystem, SystemPart

Spec = Suppression | ControlledRounding | ControlledAdjustment


def method_of(table_set: PreparedSet) -> Spec:
    """The method of a set; suppression unless it names another."""
    parameters = {key: value for key, value in table_set.method.items() if key != "method"}
    kind: type[Spec] = load("lustrum.methods", table_set.method.get("method", Suppression.name))
    try:
        return kind(**parameters)
    except TypeError:
        from lustrum.model.parameters import parameters_of

        known = [one.name for one in parameters_of(kind) if one.name != "rule"]
        wrong = next(key for key in parameters if key not in known)
        raise InputError(
            f"Set {table_set.name!r}: the method {kind.name!r} has no parameter {wrong!r}; "
            f"{choices(wrong, known)}."
        ) from None
    except InputError as error:
        raise InputError(f"Set {table_set.name!r}: {error}") from None


def protect_system(
    table_set: PreparedSet,
    system: ProgrammeSystem,
    judged: Judged,
    *,
    description: Mapping[str, Any],
    previous: Mask | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Protected:
    """Protect all tables of a system together; ``description`` is what the public may know of the method."""
    spec = method_of(table_set)
    if isinstance(spec, Suppression):
        return suppress_system(
            table_set, spec, system, judged, description, previous, workers, progress
        )
    if isinstance(spec, ControlledRounding):
        return _rounded(table_set, spec, system, description)
    return _adjusted(table_set, spec, system, judged, description)


def _rounded(
    table_set: PreparedSet,
    spec: ControlledRounding,
    system: ProgrammeSystem,
    description: Mapping[str, Any],
) -> Protected:
    if not system.counts:
        raise InputError(
            f"Set {table_set.name!r}: controlled rounding is for counts; use 'suppression' or "
            "'controlled-adjustment' for measures."
        )
    shown = [part for part in system.parts if part.shown]
    if any(part.layout.filters for part in shown):
        raise InputError(
            f"Set {table_set.name!r}: controlled rounding of linked tables is for tables without 'where'; make "
            "the variable of the filter an axis."
        )
    rng = _chance(table_set, shown)
    tables = [part.true for part in shown]
    rounded = [spec.apply(tables[0], rng)] if len(tables) == 1 else spec.apply_all(tables, rng)
    releases = iter(
        replace(release, method=dict(description), provenance={}) for release in rounded
    )
    return Protected(tuple(next(releases) if part.shown else None for part in system.parts))


def _adjusted(
    table_set: PreparedSet,
    spec: ControlledAdjustment,
    system: ProgrammeSystem,
    judged: Judged,
    description: Mapping[str, Any],
) -> Protected:
    frozen = np.zeros(system.values.size, dtype=np.bool_)
    weights = np.zeros(system.values.size)
    for part, span in zip(system.parts, system.spans, strict=True):
        if part.shown:
            frozen[span] |= kept_cells(part.true, spec.keep).ravel()
            size = np.maximum(np.abs(system.values[span]).astype(np.float64), 1.0)
            weights[span] = 1.0 / size if spec.weights == "reciprocal" else 1.0
    # What nobody sees may move freely, at a price that only breaks ties.
    weights = np.where(weights > 0, weights, 1e-9)
    half = (judged.sliding + 1) // 2
    sensitive = judged.sensitive & ~frozen
    upper = np.maximum(np.maximum(judged.upper, half), 1)[sensitive]
    lower = np.where(judged.lower > 0, np.maximum(judged.lower, half), 0)[sensitive]
    shown = [part for part in system.parts if part.shown]
    adjustment = adjust(
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
        rng=_chance(table_set, shown),
    )
    releases: list[Release | None] = []
    for part, span in zip(system.parts, system.spans, strict=True):
        if not part.shown:
            releases.append(None)
            continue
        own_scale = system.scale(part)
        values = adjustment.values[span].reshape(part.true.shape)
        if own_scale > 1 and bool((values % own_scale).any()):
            raise InputError(
                f"Set {table_set.name!r}: adjusted values of {part.response!r} need more decimals than the "
                "measure has; describe the measures of a relation with the same decimals."
            )
        fixed = kept_cells(part.true, spec.keep)
        low, high = spec.known_range(part.true, values // own_scale, fixed)
        releases.append(
            Release(
                axes=part.true.axes,
                numbers=values // own_scale,
                status=np.full(part.true.shape, CellStatus.FREE.value),
                method=dict(description),
                least=low,
                most=high,
                decimals=part.true.decimals,
                unit=part.true.unit,
                structural=part.true.structural,
                notes=spec.public_notes(),
            )
        )
    return Protected(tuple(releases))


def _chance(table_set: PreparedSet, parts: Sequence[SystemPart]) -> KeyedChance:
    """Chance from the record keys of all tables together: secret, and the same in every run."""
    keys = [part.true.keys for part in parts]
    if any(key is None for key in keys):
        raise InputError(
            f"Set {table_set.name!r}: the method draws by chance, which follows from the agency's secret; name "
            'a secret file under [data], as secret = "...".'
        )
    seeds = [
        cell_words(key, f"programme {table_set.name}").sum(dtype=np.uint64)
        for key in keys
        if key is not None
    ]
    return KeyedChance(np.random.PCG64([int(word) for word in seeds]))
