"""Protection of the input: records, or the cells of a hypercube, are changed once before anything is counted.

The chance behind it follows from the agency's secret, the dataset and the method's own words: every
process that serves the same data makes the same changes, also after a restart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lustrum.model import Axis, Channel, InputError, Release, Table, TableQuery
from lustrum.model.chance import KeyedChance
from lustrum.model.channel import ComposedChannel
from lustrum.model.text import say
from lustrum.numeric.structure import UNBOUNDED
from lustrum.policy import Before, PolicyMethod
from lustrum.protect.abilities import KeysEmptyCells
from lustrum.protect.method import released
from lustrum.tabulate import (
    Engine,
    HypercubeEngine,
    KernelEngine,
    RecordsEngine,
    Secret,
    cells_of,
    records_of,
)


@dataclass(frozen=True)
class ProtectedInput:
    """What tables are counted from, and how it came to differ from the truth."""

    engine: Engine
    before: tuple[Before, ...] = ()
    secret: Secret | None = field(default=None, repr=False)

    def protect(self, table: Table, method: PolicyMethod) -> Release:
        """A table counted here as a release, after the method for tables and all that came before."""
        spec = method.spec
        if self.secret is not None and isinstance(spec, KeysEmptyCells):
            # Empty cells have no record keys; what happens to them follows from the secret itself.
            spec = spec.with_zeros(self.secret.derive("lustrum empty cells"), self.engine.dataset)
        release: Release = spec.apply(table)
        if not self.before:
            return release
        channel, low, high = release.channel, release.least, release.most
        if low is None or high is None:
            low = high = release.numbers
            if channel is not None:
                low, high = channel.support(release.numbers)
        notes: tuple[str, ...] = ()
        for step in reversed(self.before):
            step_release = _published(step, table)
            channel = _composed(step_release.channel, channel)
            assert step_release.least is not None
            assert step_release.most is not None
            # What a step leaves exact keeps the bounds of the later ones; of the rest nothing is known.
            exact = (step_release.least == table.values) & (step_release.most == table.values)
            low, high = np.where(exact, low, 0), np.where(exact, high, UNBOUNDED)
            notes = (*step_release.notes, *notes)
        earlier_steps = {"before": [step.spec.to_mapping() for step in self.before]}
        return replace(
            release,
            channel=channel,
            least=low,
            most=high,
            method={**release.method, **earlier_steps},
            notes=(*notes, *release.notes),
        )


def prepared(engine: KernelEngine, before: Sequence[Before], secret: Secret) -> ProtectedInput:
    """Protect the input of an engine, step by step; without steps it stays as it is."""
    current = engine
    for number, step in enumerate(before):
        spec = step.spec
        settings = json.dumps(spec.to_mapping(), sort_keys=True)
        purpose = f"lustrum before {number} {engine.dataset.name} {settings}"
        key = int.from_bytes(secret.derive(purpose), "big")
        rng = KeyedChance(np.random.Philox(key=key))
        if step.on_records:
            if any(chunk.counts is not None for chunk in current.chunks):
                raise InputError(
                    f"The method {step.method!r} works on records, and those before it left cells; "
                    "put it first."
                )
            current = RecordsEngine(spec.apply_records(records_of(current), rng))
        else:
            current = _hypercube(current, step, rng)
    return ProtectedInput(current, tuple(before), secret)


def _hypercube(engine: KernelEngine, step: Before, rng: np.random.Generator) -> HypercubeEngine:
    """The hypercube of all variables, protected as one table, as the input of all others."""
    dataset = engine.dataset
    every = TableQuery(dataset.name, tuple(Axis(v.name) for v in dataset.variables))
    table = engine.tabulate(every)
    release: Release = step.spec.apply(table, None if table.keys is not None else rng)
    if not release.shown.all() or int(release.numbers.min(initial=0)) < 0:
        raise InputError(f"The method {step.method!r} does not leave counts to make tables from.")
    return HypercubeEngine(cells_of(table, release.numbers), dataset)


def _published(step: Before, table: Table) -> Release:
    spec = step.spec
    if step.on_records:
        release: Release = spec.publish(table)
        if release.least is not None and release.most is not None:
            return release
        return replace(
            release,
            least=np.zeros(table.shape, dtype=np.int64),
            most=np.full(table.shape, UNBOUNDED, dtype=np.int64),
        )
    return released(
        table,
        spec,
        table.values,
        low=np.zeros(table.shape, dtype=np.int64),
        high=np.full(table.shape, UNBOUNDED, dtype=np.int64),
        notes=(
            say(
                "The cells from which all tables are made were protected beforehand by {method}.",
                method=spec.name,
            ),
        ),
    )


def _composed(first: Channel | None, second: Channel | None) -> Channel | None:
    if first is None or second is None:
        return None
    return ComposedChannel(first, second)
