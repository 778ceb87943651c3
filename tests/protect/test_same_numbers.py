"""Methods go on to publish what they published: a change of these numbers is a change for every user."""

from __future__ import annotations

import numpy as np
import pytest

from lustrum.model import Table
from lustrum.model.plugins import load

COUNTS = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 11, 19, 40]]
KEYS = np.arange(1, 13, dtype=np.uint64).reshape(3, 4) * np.uint64(0x9E3779B97F4A7C15)
# Version 0.1.0, with default parameters: by the record keys, and by the seed 7.
PUBLISHED = {
    "cell-key": (
        [[0, 5, 4, 3], [4, 5, 6, 7], [8, 11, 19, 40]],
        [[0, 5, 4, 3], [4, 5, 3, 7], [8, 11, 19, 40]],
    ),
    "controlled-rounding": (
        [[0, 0, 3, 3], [3, 6, 6, 6], [9, 12, 18, 39]],
        [[0, 0, 3, 3], [3, 6, 6, 6], [9, 12, 18, 39]],
    ),
    "conventional-rounding": (
        [[0, 0, 3, 3], [3, 6, 6, 6], [9, 12, 18, 39]],
        [[0, 0, 3, 3], [3, 6, 6, 6], [9, 12, 18, 39]],
    ),
    "random-rounding": (
        [[0, 3, 3, 3], [3, 3, 6, 6], [6, 12, 18, 42]],
        [[0, 0, 0, 3], [6, 3, 6, 6], [6, 12, 21, 42]],
    ),
    "semi-controlled-rounding": (
        [[0, 0, 0, 3], [6, 6, 6, 6], [6, 12, 21, 39]],
        [[0, 0, 0, 3], [3, 6, 6, 9], [9, 12, 18, 42]],
    ),
    "small-count-rounding": (
        [[0, 0, 3, 3], [4, 5, 6, 7], [8, 11, 19, 40]],
        [[0, 0, 3, 3], [4, 5, 6, 7], [8, 11, 19, 40]],
    ),
    "stochastic-perturbation": (
        [[0, 5, 2, 3], [3, 5, 6, 7], [8, 11, 19, 40]],
        [[0, 5, 4, 3], [4, 5, 3, 7], [8, 11, 19, 40]],
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_method_publishes_what_it_published_before(name: str) -> None:
    method = load("lustrum.methods", name)()
    table = Table.from_counts(COUNTS, keys=KEYS)
    by_keys, by_seed = PUBLISHED[name]
    assert method.apply(table).published.tolist() == by_keys
    assert method.apply(table, rng=7).published.tolist() == by_seed
