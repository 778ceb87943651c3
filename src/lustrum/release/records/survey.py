"""The respondents of a survey from the records: codes, weights, strata and clusters."""

from __future__ import annotations

import numpy as np

from lustrum.model import DatasetError, InputError
from lustrum.protect.weighted import SurveyRecords
from lustrum.survey import Design
from lustrum.tabulate.engine import KernelEngine

__all__ = ["survey_records"]


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
        design = Design(
            scaled / 10.0**weight.decimals, column(weight.strata), column(weight.clusters)
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
    return SurveyRecords(dataset, codes, design, keys, weight.total, measures)
