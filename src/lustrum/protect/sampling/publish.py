"""Releases of tables that were counted from a sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lustrum.model import Channel, InputError, Release, Table
from lustrum.model.arrays import Ints
from lustrum.model.records import Records
from lustrum.model.variable import Weight
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.method import RecordMethod, released

# The weights of drawn records, as a column.

DECIMALS = 6


def drawn_records(
    records: Records, rows: npt.NDArray[np.int64], probabilities: npt.NDArray[np.float64], name: str
) -> Records:
    """The drawn records in the order of the rows, with the weight ``1 / probability`` of each."""
    rows = np.asarray(rows, dtype=np.int64)
    order = np.argsort(rows, kind="stable")
    rows, probabilities = rows[order], probabilities[order]
    dataset = records.dataset
    if any(weight.name == name for weight in dataset.weights):
        raise InputError(
            f"The records have a weight {name!r} already; choose another name for the new one."
        )
    weight = Weight(name, "Sampling weight", DECIMALS)
    source = dict(dataset.source)
    if source:
        described = {"name": name, "label": weight.label, "decimals": DECIMALS}
        source["weights"] = [*source.get("weights", ()), described]
    sampled = records.take(rows)
    whole = np.rint(10**DECIMALS / probabilities).astype(np.int64)
    return replace(
        sampled,
        dataset=replace(dataset, weights=(*dataset.weights, weight), source=source),
        numbers={**sampled.numbers, name: whole},
    )


def sample_release(
    table: Table, method: RecordMethod, values: Ints, channel: Channel | None, note: str
) -> Release:
    """A release of sample numbers, with bounds; ``channel`` is that of the sampling."""
    counted = table.kind == "count" and not table.decimals
    low, high = _bounds(table, values, channel)
    return released(
        table,
        method,
        values,
        low=low,
        high=high,
        channel=channel if counted else None,
        notes=(note,),
    )


def _bounds(table: Table, values: Ints, channel: Channel | None) -> tuple[Ints, Ints]:
    """A count is at least that of the sample; a sum of amounts or weights can be anything."""
    if table.kind != "count" or table.decimals:
        least = 0 if table.kind == "count" else -UNBOUNDED
        return np.full(table.shape, least), np.full(table.shape, UNBOUNDED)
    if channel is not None:
        return channel.support(values)
    return values, np.full(table.shape, UNBOUNDED)
