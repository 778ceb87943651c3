"""The risk of a table from a sample: a public figure, below that of the whole, the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from lustrum.model import Category, Table, TableAxis
from lustrum.public.bundle.sample_risk import sample_risk
from lustrum.public.bundle.weighted import _are_apart
from lustrum.risk import R1, R2, estimate_risk


def test_sampling_protects_and_the_worse_model_counts() -> None:
    counts = np.array([[30, 4, 0], [12, 0, 1], [7, 9, 0]])
    found = sample_risk(counts, 2500)
    assert found is not None
    assert 0 < found.sample < found.everybody < 1
    assert (found.respondents, found.people) == (63, 2500)
    models = estimate_risk(counts, 2500, measure=R2(), draws=40, rng=2015).models
    assert found.sample == max(model.mean for model in models)
    assert len({model.mean for model in models}) > 1
    everybody = estimate_risk(counts, 2500, measure=R1(), draws=40, rng=2015).models
    assert found.everybody == max(model.mean for model in everybody)
    assert sample_risk(counts, 2500) == found
    # What is remembered is of this table alone: counts, shape, size and what cannot exist.
    for other, people in ((counts.T, 2500), (counts, 2501), (counts[::-1], 2500)):
        assert sample_risk(np.ascontiguousarray(other), people) != found
    axes = tuple(TableAxis.plain(name, ["1", "2", "3"]) for name in "ab")
    assert sample_risk(Table(axes, counts, structural=counts == 0), 2500) != found


def test_a_smaller_part_of_the_population_is_less_risky() -> None:
    """R2 is at most R1, and a sample that is nearly everybody comes close to it."""
    counts = np.array([40, 3, 0, 0, 9, 20])
    near, far = sample_risk(counts, 73), sample_risk(counts, 7200)
    assert near is not None
    assert far is not None
    assert near.everybody - near.sample < far.everybody - far.sample + 0.2
    assert far.sample < far.everybody


@pytest.mark.parametrize(
    ("counts", "people"),
    [
        (np.array([5]), 100),
        (np.array([0, 0]), 100),
        (np.array([5, 5]), 10),
        (np.ones((40, 40), dtype=np.int64), 10**6),
    ],
)
def test_tables_that_are_not_measured(counts: np.ndarray, people: int) -> None:
    assert sample_risk(counts, people) is None


def test_own_groups_that_overlap_are_not_measured() -> None:
    one, other = Category("a", "A", (0, 1)), Category("b", "B", (1, 2))
    assert not _are_apart(TableAxis("x", "X", (one, other)))
    assert _are_apart(TableAxis("x", "X", (one, Category("c", "C", (2,)))))
