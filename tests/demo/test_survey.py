"""The demo survey: a sample of a known frame, with weights that sum to it."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa

from lustrum.demo.labour_force.description import ADULTS
from lustrum.demo.labour_force.survey import frame, survey


def test_the_weights_sum_to_the_frame_that_the_description_states(sample: pa.Table) -> None:
    assert frame().num_rows == ADULTS
    assert round(float(sample.column("weight").to_numpy().sum()), 2) == ADULTS


def test_a_few_thousand_people_answer_in_every_district(sample: pa.Table) -> None:
    assert 3000 < sample.num_rows < 9000
    strata, blocks = (sample.column(name).to_numpy() for name in ("stratum", "block"))
    for stratum in np.unique(strata):
        assert np.unique(blocks[strata == stratum]).size >= 4


def test_weights_make_up_for_those_who_did_not_answer(sample: pa.Table) -> None:
    everybody = frame()
    for name in ("district", "age"):
        codes = everybody.column(name).combine_chunks()
        true = np.bincount(np.asarray(codes.indices), minlength=len(codes.dictionary))
        own = np.asarray(sample.column(name).combine_chunks().indices)
        held = np.bincount(own, sample.column("weight").to_numpy(), minlength=len(true))
        np.testing.assert_allclose(held, true, rtol=0.02)


def test_the_same_seed_gives_the_same_sample() -> None:
    assert survey(5000, 3).equals(survey(5000, 3))
    assert not survey(5000, 3).equals(survey(5000, 4))


def test_the_sample_is_the_same_on_every_machine(sample: pa.Table) -> None:
    digest = hashlib.sha256()
    for name in sample.column_names:
        column = sample.column(name).combine_chunks()
        values = column.indices if pa.types.is_dictionary(column.type) else column
        cents = np.rint(values.to_numpy(zero_copy_only=False).astype(float) * 100)
        digest.update(name.encode() + cents.astype("<i8").tobytes())
    assert digest.hexdigest()[:16] == "2385fec682200675"
