"""Narrowing and elimination, one small system at a time, against plain arithmetic of Python's own numbers."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, inf

import numpy as np
import pytest

from lustrum.model import InputError
from lustrum.numeric.structure import UNBOUNDED, Relations, propagate
from lustrum.numeric.structure.kernels import reduce_modulo
from lustrum.numeric.structure.ragged import Lists

Ends = list[float]


def relations(rows: list[dict[int, int]], width: int) -> Relations:
    """Relations from plain rows: cells and their coefficients."""
    indptr = np.cumsum([0, *map(len, rows)])
    cells = np.array([c for row in rows for c in row], dtype=np.int64)
    weights = np.array([w for row in rows for w in row.values()], dtype=np.int64)
    return Relations.of(Lists(indptr, cells, weights), width)


def narrowed(rows: list[dict[int, int]], low: Ends, high: Ends) -> tuple[Ends, Ends] | None:
    """Every cell between what the others leave, again until nothing changes; None where nothing is left."""
    low, high = list(low), list(high)
    while True:
        before = low[:], high[:]
        for row in rows:
            for cell, weight in row.items():
                # weight * x = -(sum of the others)
                others = [(w, c) for c, w in row.items() if c != cell]
                most = -sum(w * (low if w > 0 else high)[c] for w, c in others)
                least = -sum(w * (high if w > 0 else low)[c] for w, c in others)
                ends = sorted((_over(least, weight), _over(most, weight)))
                low[cell] = max(low[cell], ends[0] if ends[0] == -inf else ceil(ends[0]))
                high[cell] = min(high[cell], ends[1] if ends[1] == inf else floor(ends[1]))
                if low[cell] > high[cell]:
                    return None
        if before == (low, high):
            return low, high


def _over(total: float, weight: int) -> float | Fraction:
    return total * weight if total in (inf, -inf) else Fraction(total) / weight


def system(seed: int, endless: float) -> tuple[list[dict[int, int]], Ends, Ends]:
    """Some relations between five cells, and bounds around values that fit or nearly fit them."""
    rng = np.random.default_rng(seed)
    rows = []
    value = rng.integers(-4, 9, 5)
    for last in range(3, int(rng.integers(4, 6))):
        others = rng.choice(last, int(rng.integers(1, last + 1)), replace=False)
        weights = rng.choice([-3, -2, -1, 1, 1, 2], others.size)
        row = {int(c): int(w) for c, w in zip(others, weights, strict=True)}
        total = sum(w * int(value[c]) for c, w in row.items())
        value[last] = total
        row[last] = -1
        rows.append(row)
    low = [float(v - rng.integers(0, 4)) for v in value]
    high = [float(v + rng.integers(0, 4)) for v in value]
    for ends, none in ((low, -inf), (high, inf)):
        for cell in np.flatnonzero(rng.random(5) < endless):
            ends[cell] = none
    if seed % 5 == 0:
        low[0], high[0] = low[0] + 6, high[0] + 6
    return rows, low, high


@pytest.mark.parametrize("endless", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(12))
def test_bounds_end_where_plain_arithmetic_ends(seed: int, endless: float) -> None:
    rows, low, high = system(seed, endless)
    found = propagate(relations(rows, 5), low, high)
    wanted = narrowed(rows, low, high)
    assert found.consistent == (wanted is not None)
    if wanted is None:
        assert not found.settled
        assert found.low[found.conflict] > found.high[found.conflict]
        return
    assert found.settled
    assert [float(v) if v > -UNBOUNDED else -inf for v in found.low.tolist()] == wanted[0]
    assert [float(v) if v < UNBOUNDED else inf for v in found.high.tolist()] == wanted[1]


def test_rounds_are_counted_and_a_last_one_sees_that_nothing_changes() -> None:
    chain = relations([{2: 1, 3: -1}, {1: 1, 2: -1}, {0: 1, 1: -1}], 4)
    for rounds, highest, settled in (
        (0, [5, 9, 9, 9], False),
        (3, [5, 5, 5, 5], False),
        (4, [5] * 4, True),
    ):
        found = propagate(chain, [0] * 4, [5, 9, 9, 9], rounds=rounds)
        assert (found.high.tolist(), found.settled) == (highest, settled)
    assert propagate(chain, [0] * 4, [5, 9, 9, 9], rounds=1).high.tolist() == [5, 5, 9, 9]
    crossed = propagate(chain, [6, 0, 0, 0], [5, 9, 9, 9], rounds=0)
    assert (crossed.conflict, crossed.settled) == (0, False)
    assert crossed.high.tolist() == [5, 9, 9, 9]


@pytest.mark.parametrize("sign", [1, -1])
def test_bounds_too_far_for_sums_count_as_none(sign: int) -> None:
    """With 2**60 in both parts their sum is as good as endless, and nothing overflows."""
    far = 2**60
    pair = relations([{0: sign, 1: sign, 2: -sign}], 3)
    found = propagate(pair, [0, 0, 0], [far, far, UNBOUNDED])
    assert found.high.tolist() == [far, far, UNBOUNDED]
    assert propagate(pair, [0, 0, 0], [far - 1, far, UNBOUNDED]).high[2] == 2 * far - 1
    assert propagate(pair, [-far, -far, -UNBOUNDED], [0, 0, 0]).low[2] == -UNBOUNDED
    assert propagate(pair, [-far, 1 - far, -UNBOUNDED], [0, 0, 0]).low[2] == 1 - 2 * far
    tripled = relations([{0: 3 * sign, 1: -sign}], 2)
    assert propagate(tripled, [0, 0], [far, UNBOUNDED]).high.tolist() == [far, UNBOUNDED]
    assert propagate(tripled, [0, 0], [far // 2, UNBOUNDED]).high.tolist() == [
        far // 2,
        3 * far // 2,
    ]
    assert propagate(tripled, [0, 0], [UNBOUNDED, 10]).high.tolist() == [3, 9]
    assert propagate(tripled, [-UNBOUNDED, -10], [0, 0]).low.tolist() == [-3, -9]


def test_bounds_are_taken_as_numbers_of_any_kind() -> None:
    line = relations([{0: 1, 1: 1, 2: -1}], 3)
    found = propagate(line, [0.5, -inf, 0.0], [2.5, 3.0, inf])
    assert (found.low.tolist(), found.high.tolist()) == ([1, -2, 0], [2, 3, 5])
    unsigned = np.array([2, 3, 2**63], dtype=np.uint64)
    assert propagate(line, [0, 0, 0], unsigned).high.tolist() == [2, 3, 5]
    edge = propagate(line, [0, -(2**61), -(2**61)], [0, 2**61, 2**61])
    assert (edge.low.tolist()[1:], edge.high.tolist()[1:]) == ([-UNBOUNDED] * 2, [UNBOUNDED] * 2)
    for wrong, words in (([0, 0], "3 published cells"), ([0, 0, np.nan], "not a number"),
                         (["a", "b", "c"], "numbers")):  # fmt: skip
        with pytest.raises(InputError, match=words):
            propagate(line, wrong, [9, 9, 9])
    assert not found.low.flags.writeable
    assert not found.high.flags.writeable
    assert [a.tolist() for a in found] == [found.low.tolist(), found.high.tolist()]
    none = propagate(line, [5, 5, 0], [9, 9, 5])
    assert (none.consistent, none.conflict) == (False, 2)
    assert repr(none) == "Intervals(3 cells, no value left for cell 2)"
    one = propagate(line, [1, 2, 0], [1, 2, 9])
    assert (one.low.tolist(), one.high.tolist(), one.settled) == ([1, 2, 3], [1, 2, 3], True)
    assert repr(one) == "Intervals(3 cells, consistent)"


def test_numbers_that_would_overflow_bound_nothing() -> None:
    far = 2**60
    many = relations([{**dict.fromkeys(range(10), 1), 10: -1}], 11)
    for low, high in (([0] * 11, [far] * 10 + [UNBOUNDED]), ([-far] * 10 + [-UNBOUNDED], [0] * 11)):
        found = propagate(many, low, high)
        assert (found.low.tolist(), found.high.tolist()) == (low, high)
        assert found.settled
    for weight in (16, -16):
        times = relations([{0: weight, 1: 1}], 2)
        found = propagate(times, [0, -UNBOUNDED], [far, UNBOUNDED])
        assert (found.low.tolist()[0], found.high.tolist()[0]) == (0, far)
        assert (found.low[1], found.high[1]) == ((-UNBOUNDED, 0) if weight > 0 else (0, UNBOUNDED))
        assert found.settled
    # 2**60 and more beside two parts of 1.25 times that: the sum of the parts is too far to tell.
    wide = relations([{0: 1, 1: -1, 2: -1}], 3)
    part = 5 * far // 4
    found = propagate(wide, [far, 0, 0], [UNBOUNDED, part, part])
    assert (found.low.tolist(), found.high.tolist()) == ([far, 0, 0], [UNBOUNDED, part, part])
    assert found.settled
    found = propagate(wide, [-UNBOUNDED, -part, -part], [-far, 0, 0])
    assert (found.low.tolist(), found.high.tolist()) == ([-UNBOUNDED, -part, -part], [-far, 0, 0])
    assert found.settled


@pytest.mark.parametrize("excess", [1, 19])
@pytest.mark.parametrize("full", [False, True])
def test_elimination_modulo_a_prime_keeps_the_space_of_the_rows(excess: int, full: bool) -> None:
    prime = 2**31 - excess
    rng = np.random.default_rng(excess)
    for _ in range(15):
        height, width = (int(v) for v in rng.integers(1, 6, 2))
        rows = rng.integers(-3, 4, (height, width))
        if height > 1 and rng.random() < 0.5:
            rows[-1] = 2 * rows[0]
        made = (rows % prime).astype(np.int64)
        pivots = reduce_modulo(made, excess, full).tolist()
        rank = int(np.linalg.matrix_rank(rows))
        assert len(pivots) == rank
        assert pivots == sorted(set(pivots))
        for i, column in enumerate(pivots):
            assert made[i, column] == 1
            assert not made[i, :column].any()
            assert not made[i + 1 :, column].any()
            assert not full or not made[:i, column].any()
        assert ((made >= 0) & (made < prime)).all()
        # Every row as it was is a sum of those that are left, modulo the prime.
        for row in rows.tolist():
            left = [v % prime for v in row]
            for i, column in enumerate(pivots):
                times = left[column]
                left = [(a - times * int(b)) % prime for a, b in zip(left, made[i], strict=True)]
            assert not any(left)
