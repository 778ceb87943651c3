"""The entropy that a method leaves about ones and twos follows from its channel, by plain enumeration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lustrum.model import InputError, MatrixChannel, Transitions
from lustrum.model.arrays import Ints
from lustrum.protect import (
    AdditiveNoise,
    CellKey,
    ConventionalRounding,
    PostRandomisation,
    PTable,
    RandomRounding,
    SemiControlledRounding,
    SmallCountRounding,
    StochasticPerturbation,
    abilities_of,
)
from lustrum.protect.cell_key.words import Additive
from lustrum.protect.entropy_left import (
    entropy_left,
    left_between_multiples,
    left_by_leaving_together,
    left_by_thinning,
)
from lustrum.protect.rounding.cells import RoundingChannel


def plain(rows: dict[int, dict[int, Fraction]], true: int) -> float:
    """The same by fractions: belief by belief, over all that a count may show."""
    left = 0.0
    for shown, chance in rows[true].items():
        likely = [row.get(shown, Fraction(0)) for row in rows.values()]
        belief = [float(one / sum(likely)) for one in likely if one]
        left += float(chance) * -sum(b * math.log2(b) for b in belief)
    return left


@pytest.mark.parametrize("base", [2, 3, 5, 7])
def test_what_random_rounding_leaves_is_what_enumeration_finds(base: int) -> None:
    rows = {
        true: {down: 1 - Fraction(true - down, base), down + base: Fraction(true - down, base)}
        for true in range(21)
        for down in [true // base * base]
    }
    expected = min(plain(rows, 1), plain(rows, 2))
    assert entropy_left(RoundingChannel(base)) == pytest.approx(expected, abs=1e-12)
    assert abilities_of(RandomRounding(base)).entropy == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("stay", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_what_leaving_one_by_one_leaves_is_what_enumeration_finds(stay: Fraction) -> None:
    rows = {
        true: {k: math.comb(true, k) * stay**k * (1 - stay) ** (true - k) for k in range(true + 1)}
        for true in range(21)
    }
    expected = min(plain(rows, 1), plain(rows, 2))
    assert left_by_thinning(float(stay)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("base", [3, 4, 10])
def test_whatever_a_search_decides_multiples_leave_as_much_as_is_stated(base: int) -> None:
    stated = left_between_multiples(base)
    chance = np.random.default_rng(1)
    for _ in range(200):
        rows = {}
        for true in range(21):
            down = true // base * base
            up = Fraction(0) if true == down else Fraction(int(chance.integers(0, 1001)), 1000)
            rows[true] = {k: v for k, v in ((down, 1 - up), (down + base, up)) if v}
        assert min(plain(rows, 1), plain(rows, 2)) >= stated - 1e-4


def test_a_shift_changes_everything_and_leaves_nothing() -> None:
    shift = MatrixChannel([[1.0, 0, 0], [0, 0, 1.0]], residue_base=1)
    assert shift.stay(1, 2) == 0.0
    assert entropy_left(shift) == 0.0


def test_a_matrix_that_ends_before_2_states_nothing() -> None:
    assert entropy_left(MatrixChannel([[0.5, 0.5], [0.5, 0.5]])) == 0.0


def test_leaving_together_leaves_nothing_of_who_stays() -> None:
    assert left_by_leaving_together(0.0) == 0.0
    assert left_by_leaving_together(0.5) == pytest.approx(0.5 * 0.9182958, abs=1e-6)


def test_the_other_of_two_codes_is_no_secret() -> None:
    assert abilities_of(PostRandomisation("sex", stay=0.0)).changed == 1.0
    assert abilities_of(PostRandomisation("sex", stay=0.0)).entropy == 0.0
    assert abilities_of(PostRandomisation("sex", stay=0.5)).entropy == 1.0


def test_additive_totals_promise_nothing() -> None:
    assert abilities_of(CellKey()).entropy > 1
    assert abilities_of(CellKey(totals=Additive())).entropy == 0.0


def bits_of_a_table(steps: list[list[int]], zeros_move: bool) -> float:
    """Bits left about a true 1 or 2, whichever has fewer, column by column of a table of changes."""
    rows: dict[int, dict[int, Fraction]] = {}
    for true in range(21):
        own = steps[min(true, len(steps) - 1)] if true or zeros_move else [0]
        rows[true] = {true + s: Fraction(own.count(s), len(own)) for s in own}
    return min(plain(rows, true) for true in (1, 2))


@pytest.mark.parametrize(
    ("steps", "changed"),
    [
        # Ones stay in two columns of four, twos in none and threes likewise.
        ([[0, 0, 1, 1], [-1, 1, 0, 0], [-2, 2, 1, -1]], 0.75),
        ([[0, 0, 0, 0], [-1, 1, 0, 0], [1, -1, 0, 0]], 0.5),
        ([[3, 0, 0, 1], [-1, -1, 2, 0], [-1, 1, 0, 0], [0, 0, 0, 0]], 0.625),
    ],
)
def test_what_a_cell_key_promises_follows_from_its_table(
    steps: list[list[int]], changed: float
) -> None:
    stated = abilities_of(CellKey(ptable=PTable("own", steps, cycle=1), totals="own"))
    assert stated.changed == pytest.approx(changed)
    # Empty cells may get keys or not, so that the reader is given the better of both.
    both = [bits_of_a_table(steps, zeros_move) for zeros_move in (True, False)]
    assert stated.entropy == pytest.approx(min(both), abs=1e-6)
    assert [entropy_left(channel) for channel in stated.channels] == pytest.approx(both, abs=1e-6)
    additive = abilities_of(CellKey(ptable=PTable("own", steps, cycle=1), totals=Additive()))
    assert (additive.changed, additive.entropy, additive.channels) == (0.0, 0.0, ())


def test_what_a_perturbation_promises_follows_from_its_matrix() -> None:
    matrix = (
        (0.7, 0.3, 0.0, 0.0),
        (0.2, 0.3, 0.5, 0.0),
        (0.1, 0.2, 0.6, 0.1),
        (0.0, 0.0, 0.5, 0.5),
    )
    tenths = [[Fraction(round(10 * chance), 10) for chance in row] for row in matrix]
    rows = {
        # Counts above the last row move as it does.
        true: {shown + max(true - 3, 0): c for shown, c in enumerate(tenths[min(true, 3)]) if c}
        for true in range(21)
    }
    stated = abilities_of(StochasticPerturbation(matrix=matrix, residue_base=1))
    assert stated.changed == pytest.approx(1 - (0.3 + 0.6) / 2)
    assert stated.entropy == pytest.approx(min(plain(rows, 1), plain(rows, 2)), abs=1e-6)
    assert len(stated.channels) == 1
    # An adjustment to the total, or a matrix that depends on the table, promises nothing.
    for words in ({"keep_total": True, "totals": "sums"}, {"version": "invariant"}):
        none = abilities_of(StochasticPerturbation(matrix=matrix, residue_base=1, **words))
        assert (none.changed, none.entropy, none.channels) == (0.0, 0.0, ())
        assert not none.one_number
    with pytest.raises(InputError, match="leaves every count as it is"):
        StochasticPerturbation(matrix=((1.0, 0.0), (0.0, 1.0)))


def rounded(base: int, how: str, small_only: bool) -> dict[int, dict[int, Fraction]]:
    """What every count up to 20 becomes by rounding to a base, at random or to the nearest."""
    rows: dict[int, dict[int, Fraction]] = {}
    for true in range(21):
        low, rest = true // base * base, true % base
        if (small_only and true >= base) or not rest:
            rows[true] = {true: Fraction(1)}
        elif how == "random":
            rows[true] = {low: 1 - Fraction(rest, base), low + base: Fraction(rest, base)}
        else:
            rows[true] = {low + base * (2 * rest >= base): Fraction(1)}
    return rows


@pytest.mark.parametrize("base", [2, 3, 5])
@pytest.mark.parametrize(
    ("method", "how", "small_only", "alone"),
    [
        (lambda base: RandomRounding(base), "random", False, True),
        (lambda base: ConventionalRounding(base), "nearest", False, True),
        (lambda base: SmallCountRounding(base, how="random", totals="own"), "random", True, True),
        (lambda base: SmallCountRounding(base, totals="own"), "nearest", True, True),
        (lambda base: SmallCountRounding(base), "nearest", True, False),
    ],
)
def test_what_rounding_promises_follows_from_its_base(
    base: int, method: Any, how: str, small_only: bool, alone: bool
) -> None:
    stated = abilities_of(method(base))
    rows = rounded(base, how, small_only)
    changed = [1 - row.get(true, Fraction(0)) for true, row in rows.items() if true in (1, 2)]
    assert stated.changed == sum(changed) / 2
    assert stated.entropy == pytest.approx(min(plain(rows, 1), plain(rows, 2)), abs=1e-6)
    assert [entropy_left(channel) for channel in stated.channels] == [stated.entropy]
    assert stated.repeatable
    assert (stated.keyed_per_cell, stated.one_number) == (alone, alone)


@pytest.mark.parametrize(("base", "changed"), [(2, 0.5), (3, 1.0)])
def test_rounding_within_totals_leaves_the_multiples_on_both_sides(
    base: int, changed: float
) -> None:
    stated = abilities_of(SemiControlledRounding(base))
    assert (stated.repeatable, stated.changed) == (True, changed)
    assert stated.entropy == left_between_multiples(base)
    assert not stated.one_number


def test_noise_without_end_is_stated_in_no_time() -> None:
    stated = abilities_of(AdditiveNoise(sd=1e12, relative=True))
    assert stated.changed > 0.9
    assert stated.entropy > 3


@dataclass
class Changeable:
    """Random rounding to a base that may be changed afterwards."""

    base: int

    def transitions(self, true: Ints) -> Transitions:
        return RoundingChannel(self.base).transitions(true)

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        return RoundingChannel(self.base).support(published)

    def stay(self, lowest: int, highest: int | None) -> float:
        return 1.0 / self.base

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Changeable)


def test_only_what_cannot_change_is_remembered() -> None:
    channel = Changeable(5)
    before = entropy_left(channel)
    channel.base = 2
    assert entropy_left(channel) == entropy_left(RoundingChannel(2)) < before
    assert entropy_left(RoundingChannel(5)) == before
