"""Attacks on gains and losses of one owner, in their quick form: the method holds, and one factor is seen."""

from __future__ import annotations

import numpy as np
import pytest
from attacks.sums.signs import HIGH, LOW, _from_one, attack_signs


@pytest.mark.parametrize("file", ["groups", pytest.param("a panel", marks=pytest.mark.deep)])
def test_known_values_and_growth_tell_no_more_of_losses_than_of_gains(file: str) -> None:
    found = attack_signs(bytes(range(32)), 600, (file,))
    assert found.holds, list(found.rows())
    assert {existence for _, existence, *_ in found.read} == {"public", "secret"}
    assert sum(read.asked for read in found.read.values()) > 50


def test_the_readers_see_through_one_factor_and_through_narrow_shares() -> None:
    rng = np.random.default_rng(1)
    x, known = rng.integers(-90_000, 90_000, 200) * 10.0, rng.integers(900, 90_000, 200) * 10.0
    factor = 1 + rng.uniform(LOW, HIGH, 200) * rng.choice([-1, 1], 200)
    read = _from_one(x, np.rint(x * factor), known, np.rint(known * factor))
    assert read.exact > 190
    own = 1 + rng.uniform(LOW, HIGH, 200) * np.sign(factor - 1)
    assert _from_one(x, x * own, known, known * factor).exact < 20
