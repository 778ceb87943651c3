"""The weights of drawn records, as a column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.records import Records
from lustrum.model.variable import Weight

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
