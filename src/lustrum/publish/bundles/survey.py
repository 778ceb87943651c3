"""The respondents of a survey from the records: codes, weights, strata and clusters."""

from __future__ import annotations

import numpy as np

from lustrum.model import DatasetError, InputError
from lustrum.model.arrays import Floats
from lustrum.model.variable import Replicates
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.protect.weighted import SurveyRecords
from lustrum.protect.weighted.replicates import (
    GivenReplicates,
    alike_clusters,
    jackknife_design,
)
from lustrum.survey import Design


def survey_records(engine: KernelEngine, name: str) -> SurveyRecords:
    """All respondents with the design that the description of their weight names.

    A stratum with a single cluster is refused: its variance cannot be estimated.
    """
    dataset = engine.dataset
    weight = dataset.weight(name)
    chunks = [chunk for chunk in engine.chunks if chunk.rows]
    if not chunks or any(chunk.keys is None for chunk in chunks):
        raise DatasetError(f"Dataset {dataset.name!r} has no records with keys to protect.")

    def column(identifier: str | None) -> np.ndarray | None:
        if identifier is None:
            return None
        return np.concatenate([chunk.ids[identifier] for chunk in chunks])

    scaled = np.concatenate([chunk.numbers[name] for chunk in chunks])
    try:
        design, replicates = _design(
            scaled / 10.0**weight.decimals,
            column(weight.strata),
            column(weight.clusters),
            weight.replicates,
            [
                np.concatenate([chunk.numbers[c.name] for chunk in chunks]) / 10.0**c.decimals
                for c in weight.columns[1:]
            ],
        )
    except InputError as error:
        raise InputError(f"Weight {name!r} of {dataset.name!r}: {error}") from None
    codes = np.stack(
        [np.concatenate([chunk.codes[v.name] for chunk in chunks]) for v in dataset.variables]
    )
    keys = np.concatenate([chunk.keys for chunk in chunks if chunk.keys is not None])
    measures = {
        m.name: np.concatenate([chunk.numbers[m.name] for chunk in chunks])
        for m in dataset.measures
    }
    return SurveyRecords(dataset, codes, design, keys, weight.total, measures, replicates)


def _design(
    weights: Floats,
    strata: np.ndarray | None,
    clusters: np.ndarray | None,
    given: Replicates | None,
    columns: list[Floats],
) -> tuple[Design, GivenReplicates | None]:
    """The design, and what replicate weights add to it."""
    if given is None:
        return Design(weights, strata, clusters), None
    if not bool((weights > 0).all()):
        raise InputError("A respondent has the weight 0; leave such records out.")
    replicates = np.stack(columns, axis=1)
    if given.method == "jackknife":
        if clusters is None:
            return jackknife_design(weights, replicates), None
        return Design(weights, strata, clusters), None
    if clusters is None:
        clusters = alike_clusters(weights, replicates)
    # Variances come from the replicates, so that a stratum may have a single cluster.
    design = Design(weights, strata, clusters, lonely="centre")
    return design, GivenReplicates(replicates, given.scale)
