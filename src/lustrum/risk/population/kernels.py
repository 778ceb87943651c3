"""Many random populations at once, compiled: multinomial draws and Pólya urns.

One idea carries both. Independent counts from a family of distributions that is closed under sums,
given their sum, are exactly what is wanted: Poisson counts are multinomial, negative binomial counts
are Dirichlet-multinomial, which is an urn. So each cell's count is drawn on its own from a table made
beforehand (one random word and one comparison, by the alias method of Walker 1977 and Vose 1991), with
means that make the sum fall a little short of what is needed; a sum that overshoots is drawn anew,
which depends on the sum alone and so leaves the distribution given the sum as it was. What lacks is
added person by person. A step of this kind needs no logarithm, and there are far fewer than people.

The random words come from SplitMix64 (Steele, Lea and Flood 2014), a mixed counter that starts at a
word of the caller's generator: same generator, same tables. A counter stays in a register, which the
state of a larger generator does not, and a table takes a few hundred words only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lustrum.model.arrays import Array, Floats, Ints, Words
from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import mixed, unit_of

_U = np.uint64
_LOW = _U(0xFFFF)

# Alias tables: one random word and one comparison give a count (Walker 1977, Vose 1991).

LARGEST = 1 << 16
"""An entry keeps the other count of its pair in 16 bits, so a table has no more entries."""

_NEGLIGIBLE = 1e-16
"""Counts this much less likely than the likeliest one are left out of a table."""

_ALL = _U(0xFFFFFFFFFFFFFFFF)


class AliasTables(NamedTuple):
    """Alias tables, one behind the other: of table ``t`` the entries from ``offset[t]`` on.

    It has ``2 ** bits[t]`` entries for the counts from ``lowest[t]`` on. The upper 48 bits of an entry
    are the chance to stay with its own count, the lower 16 name the other one.
    """

    entries: Words
    offset: Words
    bits: Words
    lowest: Ints


def bits_of(size: int) -> np.uint64:
    return _U(max(1, int(size - 1).bit_length()))


def count_tables(a: float, b: Floats, most: int) -> AliasTables:
    """Tables for distributions with ``P(x + 1) / P(x) = (a x + b) / (x + 1)``.

    Poisson has ``a = 0`` and ``b`` its mean; the negative binomial of shape ``r`` has ``b = a r``.
    """
    ends: Ints = _ends(a, b, most)
    lowest, size = ends[:, 0].copy(), ends[:, 1] - ends[:, 0] + 1
    bits = np.maximum(np.frexp(size - 1)[1], 1).astype(np.uint64)
    offset = np.zeros(b.size, dtype=np.uint64)
    length = np.uint64(1) << bits
    offset[1:] = np.cumsum(length)[:-1]
    entries = np.zeros(int(length.sum()), dtype=np.uint64)
    _fill(a, b, lowest, size, offset, length, entries)
    return AliasTables(entries, offset, bits, lowest)


def alias_table(weights: Floats) -> Words:
    entries = np.zeros(1 << int(bits_of(weights.size)), dtype=np.uint64)
    _vose(weights, entries)
    return entries


@compiled
def _ends(a: float, b: Array, most: int) -> Any:  # pragma: no cover
    """The first and the last count that is not negligible, for each distribution."""
    out = np.empty((b.size, 2), dtype=np.int64)
    for t in range(b.size):
        mode = int((b[t] - 1.0) / (1.0 - a)) if b[t] > 1.0 else 0
        mode = min(mode, most)
        # Half of the room on either side of the mode, so that a table never outgrows 16 bits.
        x, weight = mode, 1.0
        while x < most and x < mode + LARGEST // 2 - 1 and weight > _NEGLIGIBLE:
            weight *= (a * x + b[t]) / (x + 1)
            x += 1
        out[t, 1] = x
        x, weight = mode, 1.0
        while x > 0 and x > mode - LARGEST // 2 and weight > _NEGLIGIBLE:
            x -= 1
            weight *= (x + 1) / (a * x + b[t])
        out[t, 0] = x
    return out


@compiled
def _fill(
    a: float, b: Array, lowest: Array, size: Array, offset: Array, length: Array, entries: Array
) -> None:  # pragma: no cover
    """Compute the weights of each distribution outwards from its mode, and its alias table."""
    for t in range(b.size):
        weights = np.empty(size[t])
        mode = int((b[t] - 1.0) / (1.0 - a)) if b[t] > 1.0 else 0
        mode = min(mode, lowest[t] + size[t] - 1)
        at = mode - lowest[t]
        weights[at] = 1.0
        for i in range(at, size[t] - 1):
            x = lowest[t] + i
            weights[i + 1] = weights[i] * (a * x + b[t]) / (x + 1)
        for i in range(at, 0, -1):
            x = lowest[t] + i - 1
            weights[i - 1] = weights[i] * (x + 1) / (a * x + b[t])
        start = np.int64(offset[t])
        _vose(weights, entries[start : start + np.int64(length[t])])


@compiled
def _vose(weights: Array, entries: Array) -> None:  # pragma: no cover
    """Pair entries that have too little with ones that have too much."""
    size = entries.size
    scaled = np.zeros(size)
    scale = size / weights.sum()
    for i in range(weights.size):
        scaled[i] = weights[i] * scale
    poor, rich = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    poors, riches = 0, 0
    for i in range(size):
        if scaled[i] < 1.0:
            poor[poors] = i
            poors += 1
        else:
            rich[riches] = i
            riches += 1
    while poors > 0 and riches > 0:
        poors -= 1
        low, high = poor[poors], rich[riches - 1]
        stay = _U(scaled[low] * 281474976710656.0) << _U(16)
        entries[low] = stay | _U(high)
        scaled[high] -= 1.0 - scaled[low]
        if scaled[high] < 1.0:
            riches -= 1
            poor[poors] = high
            poors += 1
    # The entries left over have weight 1 up to rounding; one without weight is never left over.
    for i in range(riches):
        entries[rich[i]] = (_ALL ^ _LOW) | _U(rich[i])
    for i in range(poors):
        entries[poor[i]] = (_ALL ^ _LOW) | _U(poor[i])


_64, _STEP = _U(64), _U(0x9E3779B97F4A7C15)

_ENOUGH_DRAWS = 64
"""Fewer draws than this are not worth the tables."""
_LONG = 1 << 18
"""People to draw one by one, over all draws, from which few draws of urns go by bars."""


def draw_multinomials(
    sample: Ints, probabilities: Floats, people: int, draws: int, rng: np.random.Generator
) -> Ints:
    """``draws`` rows of a sample plus a multinomial of that many people.

    >>> sample, p = np.array([2, 0, 1]), np.array([0.5, 0.5, 0.0])
    >>> rows = draw_multinomials(sample, p, 10, 100, np.random.default_rng(1))
    >>> set(rows.sum(axis=1).tolist()), int(rows[:, 0].min()) >= 2, set(rows[:, 2].tolist())
    ({13}, True, {1})
    """
    cells = np.flatnonzero(probabilities > 0)
    p = probabilities[cells] / probabilities[cells].sum()
    # The sum of Poisson counts of mean m has the standard deviation sqrt m: aim two of them below.
    mean = _short_of(people, np.inf, 2.0)
    width = 20.0 + 20.0 * np.sqrt(mean * p)
    if not _worthwhile(width, cells.size, draws) or cells.size >= LARGEST:
        rows = rng.multinomial(people, probabilities / probabilities.sum(), size=draws)
        return np.asarray(rows + sample)
    tables = count_tables(0.0, mean * p, people)
    out = np.empty((draws, probabilities.size), dtype=np.int64)
    _multinomials(_seed(rng), sample, people, tables, alias_table(p), bits_of(p.size), cells, out)
    return out


def draw_urns(
    sample: Ints, unseen: Ints, theta: float, people: int, draws: int, rng: np.random.Generator
) -> Ints:
    """``draws`` urns that start with the sample and ``theta`` black balls and grow by that many people.

    A drawn colour gains a ball; a black ball brings a new colour, which takes a cell from ``unseen``
    that no colour has yet, at random. When all of them are taken, a further new colour shares one of
    them, at random.

    >>> rows = draw_urns(np.array([3, 1, 0]), np.array([2]), 0.5, 16, 100, np.random.default_rng(1))
    >>> set(rows.sum(axis=1).tolist()), int(rows[:, 0].min()) >= 3
    ({20}, True)
    """
    seen = np.flatnonzero(sample)
    start = sample[seen]
    out = np.empty((draws, sample.size), dtype=np.int64)
    free = np.array(unseen, dtype=np.int64)
    if draws < _ENOUGH_DRAWS and draws * people > _LONG and start.sum() < people:
        _urns_by_bars(_seed(rng), start, seen, free, float(theta), people, out)
        return out
    shapes, kind = np.unique(start.astype(np.float64), return_inverse=True)
    if theta > 0:
        shapes, kind = np.append(shapes, theta), np.append(kind, shapes.size)
    else:
        kind = np.append(kind, -1)
    total = float(start.sum()) + theta
    # The sum of negative binomial counts spreads far more than a Poisson one; half is enough.
    mean = _short_of(people, total, 0.5)
    ratio = mean / (mean + total)
    # Generously: the mean, nine standard deviations, and the geometric tail down to the negligible.
    width = np.minimum((shapes * ratio + 9.0 * np.sqrt(shapes) + 40.0) / (1.0 - ratio), people)
    if not _worthwhile(width, seen.size, draws):
        kind = np.full_like(kind, -1)  # no table: every person one by one
        shapes = shapes[:0]
    tables = count_tables(ratio, ratio * shapes, people)
    _urns(_seed(rng), start, seen, free, float(theta), people, tables, kind.astype(np.int64), out)
    return out


def _seed(rng: np.random.Generator) -> np.uint64:
    return rng.integers(0, 2**64, dtype=np.uint64)


def _worthwhile(width: Floats, cells: int, draws: int) -> bool:
    """Whether tables of these widths fit their entries and cost less than they save."""
    if width.max() >= LARGEST // 2:
        return False
    return draws >= _ENOUGH_DRAWS and float(width.sum()) <= 4.0 * draws * cells


def _short_of(people: int, shape: float, deviations: float) -> float:
    """The mean that lies this many standard deviations below ``people``.

    With variance ``m (1 + m / shape)`` that is the smaller root of a quadratic equation.
    """
    c = deviations * deviations
    b = 2.0 * people + c
    return 2.0 * people**2 / (b + np.sqrt(b * b - 4.0 * (1.0 - c / shape) * people**2))  # type: ignore[no-any-return]


@compiled
def _pick(
    word: np.uint64, offset: np.uint64, bits: np.uint64, entries: Array
) -> Any:  # pragma: no cover
    """The upper bits of a word choose an entry, the lower ones whether to stay with it."""
    index = word >> (_64 - bits)
    entry = entries[offset + index]
    return index if (word << bits) < (entry & ~_LOW) else entry & _LOW


@compiled
def _multinomials(
    counter: np.uint64,
    sample: Array,
    people: int,
    tables: Any,
    single: Array,
    single_bits: np.uint64,
    cells: Array,
    out: Array,
) -> None:  # pragma: no cover
    entries, offset, bits, lowest = tables
    gained = np.empty(cells.size, dtype=np.int64)
    row = sample.copy()
    for d in range(out.shape[0]):
        total = people + 1
        while total > people:
            total = 0
            for k in range(cells.size):
                counter += _STEP
                count = lowest[k] + np.int64(_pick(mixed(counter), offset[k], bits[k], entries))
                gained[k] = count
                total += count
        for _ in range(people - total):
            counter += _STEP
            gained[_pick(mixed(counter), _U(0), single_bits, single)] += 1
        for k in range(cells.size):
            row[cells[k]] = sample[cells[k]] + gained[k]
        for i in range(row.size):
            out[d, i] = row[i]


@compiled
def _new_cell(word: np.uint64, unseen: Array, colours: int) -> Any:  # pragma: no cover
    """The cell of a new colour: the next of a shuffle made on the way, or any when all are taken."""
    u = unit_of(word)
    if colours >= unseen.size:
        return unseen[int(u * unseen.size)]
    at = colours + int(u * (unseen.size - colours))
    cell = unseen[at]
    unseen[at] = unseen[colours]
    unseen[colours] = cell
    return cell


@compiled
def _urns(
    counter: np.uint64,
    start: Array,
    seen: Array,
    unseen: Array,
    theta: float,
    people: int,
    tables: Any,
    kind: Array,
    out: Array,
) -> None:  # pragma: no cover
    entries, offset, bits, lowest = tables
    balls = np.empty(start.sum() + people, dtype=np.int32)
    gained = np.zeros(kind.size, dtype=np.int64)
    row = np.empty(out.shape[1], dtype=np.int64)
    for d in range(out.shape[0]):
        total = people + 1
        while total > people:
            total = 0
            for k in range(kind.size):
                t = kind[k]
                if t >= 0:
                    counter += _STEP
                    count = _pick(mixed(counter), offset[t], bits[t], entries)
                    gained[k] = lowest[t] + np.int64(count)
                    total += gained[k]
        row[:] = 0
        filled = 0
        for k in range(seen.size):
            height, colour = start[k] + gained[k], np.int32(seen[k])
            row[colour] = height
            for ball in range(_U(filled), _U(filled + height)):
                balls[ball] = colour
            filled += height
        # Those who came by a black ball are an urn of their own that starts with black balls only;
        # then everybody who is still to come draws from the whole urn.
        black_end = filled + gained[seen.size]
        first, colours = filled, 0
        for position in range(filled, balls.size):
            begin = first if position < black_end else 0
            inside = position - begin
            counter += _STEP
            u = unit_of(mixed(counter)) * (theta + inside)
            if u < theta:
                counter += _STEP
                cell = _new_cell(mixed(counter), unseen, colours)
                colours += 1
            else:
                # The lesser one is for a rounded sum that would reach one ball too far.
                cell = balls[_U(begin + min(int(u - theta), inside - 1))]
            balls[_U(position)] = cell
            row[_U(cell)] += 1
        for k in range(row.size):
            out[d, k] = row[k]


@compiled
def _ones(word: np.uint64) -> Any:  # pragma: no cover
    """How many bits of a word are set."""
    pairs, fours, bytes_ = _U(0x5555555555555555), _U(0x3333333333333333), _U(0x0F0F0F0F0F0F0F0F)
    word -= (word >> _U(1)) & pairs
    word = (word & fours) + ((word >> _U(2)) & fours)
    word = (word + (word >> _U(4))) & bytes_
    word += word >> _U(8)
    word += word >> _U(16)
    return np.int64((word + (word >> _U(32))) & _U(0x7F))


@compiled
def _black_sums(theta: float, balls: int, people: int) -> Any:  # pragma: no cover
    """The chances of how many of these people come by a black ball, added up, from the first that counts.

    The chance of ``b + 1`` to that of ``b`` is ``(b + theta) / (b + 1) (M - b) / (M - b + n - 1)`` with ``M``
    people and ``n`` coloured balls. It falls with ``b``, so the chances are worked out from the largest on.
    """
    top = 0
    while top < people and (top + theta) * (people - top) > (top + 1.0) * (
        people - top + balls - 1.0
    ):
        top += 1
    first = last = top
    chance = np.zeros(people + 1)
    chance[top] = 1.0
    while first > 0 and chance[first] > 1e-20:
        b = first - 1
        ratio = (b + theta) * (people - b) / ((b + 1.0) * (people - b + balls - 1.0))
        chance[b] = chance[first] / ratio
        first = b
    while last < people and chance[last] > 1e-20:
        ratio = (last + theta) * (people - last) / ((last + 1.0) * (people - last + balls - 1.0))
        chance[last + 1] = chance[last] * ratio
        last += 1
    return first, np.cumsum(chance[first : last + 1])


@compiled
def _urns_by_bars(
    counter: np.uint64,
    start: Array,
    seen: Array,
    unseen: Array,
    theta: float,
    people: int,
    out: Array,
) -> None:  # pragma: no cover
    """Urns whose work grows with the sample and not with the people.

    From ``n`` coloured balls ``M`` draws lead to every way to share ``M`` out among ``n`` with the same
    chance, so the ways are drawn: ``n - 1`` bars among ``M + n - 1`` places. Those who came by a black ball
    are an urn of their own, as in :func:`_urns`.
    """
    balls = start.sum()
    places = np.empty((people + balls) // 64 + 1, dtype=np.uint64)
    black = np.empty(people, dtype=np.int64)
    least, sums = _black_sums(theta, balls, people)
    for d in range(out.shape[0]):
        by_black = 0
        if theta > 0:
            counter += _STEP
            drawn = unit_of(mixed(counter)) * sums[-1]
            by_black = least + min(np.searchsorted(sums, drawn, side="right"), sums.size - 1)
        size = people - by_black + balls - 1
        places[:] = 0
        bars = 1
        while bars < balls:
            counter += _STEP
            at = int(unit_of(mixed(counter)) * size)
            bit = _U(1) << _U(at % 64)
            if places[at // 64] & bit == 0:
                places[at // 64] |= bit
                bars += 1
        out[d, :] = 0
        word = passed = end = shared = 0
        for k in range(seen.size - 1):
            end += start[k]
            while passed + _ones(places[word]) < end:
                passed += _ones(places[word])
                word += 1
            rest = places[word]
            for _ in range(end - passed - 1):
                rest &= rest - _U(1)
            # The place of the last bar of this cell, less the bars before it: all that was shared out so far.
            gained = 64 * word + _ones((rest & (~rest + _U(1))) - _U(1)) - (end - 1)
            out[d, seen[k]] = start[k] + gained - shared
            shared = gained
        out[d, seen[-1]] = start[-1] + people - by_black - shared
        colours = 0
        for j in range(by_black):
            counter += _STEP
            u = unit_of(mixed(counter)) * (theta + j)
            if u < theta:
                counter += _STEP
                black[j] = _new_cell(mixed(counter), unseen, colours)
                colours += 1
            else:
                black[j] = black[min(int(u - theta), j - 1)]
            out[d, black[j]] += 1
