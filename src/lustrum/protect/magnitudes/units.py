"""Contributors and their records as the search sees them: sorted by owner, with directions and shares by key.

The direction of an owner and its share follow from the key and the owner's identity; the shares of its records
lie around that of the owner. Shares of two records or periods of one owner are related, so that growth is
closer to the truth than with independent noise. But whatever some of them are, each of the others can lie
anywhere from the least to the largest share: with the owner's share in the middle of the range every
combination can be drawn. Measures of different families have independent shares.

Measures that add up, and the same measure in two periods, share the directions of their contributors. Gains
and losses of one owner move in the same direction too, so that their noise adds up in what is left of both. A
measure with parts gets no noise of its own: it is the sum of its protected parts, so that published numbers add
up. Two independently protected copies of one number would reveal it, so relations that the description does not
state are detected and refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from lustrum.model import InputError, Measure
from lustrum.model.arrays import Array, Ints, Mask, Words
from lustrum.model.keys import scramble
from lustrum.model.records import Records
from lustrum.protect.magnitudes.factors import SHARES, Factors
from lustrum.protect.population.start import derived
from lustrum.sensitivity import Background

_ATTEMPTS = 32
"""How many further draws are tried to hide a contribution,"""
_PARTS = 64
"""and from how many parts of the range of shares one more each if none of them does."""


class Units(NamedTuple):
    """Records sorted by owner; ``first[o]`` is the first record of owner ``o``, with one more at the end."""

    codes: Array  # (records, variables), as the plan orders them
    owner: Array
    first: Array
    sign: Array  # owner -> 1 or -1
    side: Array  # (records, measures): 1, or -1 where the value moves against its owner, as it was shown before
    low: Array  # (records, measures): the least amount that the search may choose,
    high: Array  # the largest,
    amount: Array  # and the one chosen


def identities(records: Records, holding: str | None) -> tuple[Words, Words]:
    """For every record, the lasting identity of its owner and of itself."""
    name = records.dataset.record_id
    if records.keys is not None:
        record_ids = records.keys
    elif name is not None and name in records.ids:
        record_ids = records.ids[name].astype(np.uint64)
    else:
        record_ids = np.arange(len(records), dtype=np.uint64)
    return (record_ids if holding is None else records.ids[holding].astype(np.uint64)), record_ids


def owner_shares(random_words: Words) -> Ints:
    """A uniform number below ``SHARES`` for every owner."""
    return np.asarray((random_words >> np.uint64(8)) & np.uint64(SHARES - 1)).astype(np.int64)


def record_shares(owner: Ints, random_words: Words) -> Ints:
    """Uniform numbers below ``SHARES``, at most half of it from the owner's, folded back at the ends.

    >>> record_shares(np.array([0]), np.array([0], dtype=np.uint64)).tolist()
    [524287]
    """
    moved = owner + owner_shares(random_words) - SHARES // 2
    moved = np.where(moved < 0, -moved - 1, moved)
    return np.where(moved >= SHARES, 2 * SHARES - 1 - moved, moved)


def units_of(
    records: Records,
    rows: Sequence[str],
    family: MeasureFamily,
    factors: Factors,
    key: bytes,
    *,
    room: int,
    background: Background,
    release: int = 0,
) -> tuple[Units, Ints, Words]:
    """The units of a family, the order of their records, and a secret word of each owner.

    ``room``, over ``SHARES``, is how far the search may move a share towards either end, as a part of the
    distance. Later releases of the same owners draw other shares around the same share of the owner.
    """
    again = _again(release)
    owners, record_ids = identities(records, family.holding)
    order = np.lexsort((record_ids, owners))
    owners, record_ids = owners[order], record_ids[order]
    new = np.r_[True, owners[1:] != owners[:-1]] if owners.size else np.zeros(0, dtype=np.bool_)
    owner = np.cumsum(new) - 1
    first = np.r_[np.flatnonzero(new), owners.size].astype(np.int64)
    secret = scramble(derived(key, f"owner {family.name}"), owners[first[:-1]])
    sign = np.where(secret >> np.uint64(63), 1, -1).astype(np.int64)
    values = np.stack([records.numbers[m][order] for m in family.moved], axis=1).astype(np.int64)
    size = np.abs(values)
    shares = _shares(family, key, again, secret[owner], record_ids)
    spread = factors.high - factors.low
    share = factors.low + (shares * spread >> 20)
    amount, low, high = factors.chosen(size, share, np.full_like(size, room))
    waived = background.has_waived(owners.astype(np.int64))[:, None]
    for array in (low, high, amount):
        array[np.broadcast_to(waived, array.shape)] = 0
    codes = np.stack([records.codes[v][order] for v in rows], axis=1).astype(np.uint32)
    return (
        Units(codes, owner.astype(np.int64), first, sign, np.ones_like(size), low, high, amount),
        order,
        secret,
    )


def other_amounts(
    units: Units,
    values: Ints,
    record_ids: Words,
    family: MeasureFamily,
    factors: Factors,
    key: bytes,
    secret: Words,
    release: int,
) -> Iterator[Ints]:
    """Further keyed draws of all amounts, the least and the largest; ``record_ids`` are identities of records.

    At last one is drawn from each part of the range, in turn from a keyed one on: what only a few shares hide
    is then found as well. Contributors who gave a waiver keep what they have.
    """
    size = np.abs(values)
    free = units.high > 0
    spread = factors.high - factors.low
    none = np.zeros_like(size)
    for attempt in range(1, _ATTEMPTS + 1):
        again = f"{_again(release)} attempt {attempt}"
        shares = _shares(family, key, again, secret[units.owner], record_ids)
        amount = factors.chosen(size, factors.low + (shares * spread >> 20), none)[0]
        yield np.where(free, amount, units.amount)
    for amount in factors.amounts(size):
        yield np.where(free, amount, units.amount)
    wide = SHARES // _PARTS
    first = _shares(family, key, f"{_again(release)} part", secret[units.owner], record_ids) // wide
    for attempt in range(_PARTS):
        again = f"{_again(release)} part {attempt}"
        within = _shares(family, key, again, secret[units.owner], record_ids) // _PARTS
        shares = (first + attempt) % _PARTS * wide + within
        amount = factors.chosen(size, factors.low + (shares * spread >> 20), none)[0]
        yield np.where(free, amount, units.amount)


def _again(release: int) -> str:
    return f" {release}" if release else ""


def _shares(
    family: MeasureFamily, key: bytes, again: str, secret: Words, record_ids: Words
) -> Ints:
    """A share below ``SHARES`` for every record and measure, around that of its owner."""
    base = owner_shares(secret)
    random_words = (
        scramble(derived(key, f"share {name}{again}"), record_ids) for name in family.moved
    )
    return np.stack([record_shares(base, word) for word in random_words], axis=1)


_SAMPLED = 4096


@dataclass(frozen=True, eq=False)
class MeasureFamily:
    """Related measures: ``moved`` get noise; ``shown`` are published, each the sum of some of them."""

    name: str
    moved: tuple[str, ...]
    shown: tuple[str, ...]
    adds: Mask
    holding: str | None

    def nets(self, moved: Ints) -> Mask:
        """Which shown values are what gains and losses among their parts leave."""
        gain, loss = ((side[:, None] & self.adds).any(axis=2) for side in (moved > 0, moved < 0))
        return np.asarray(gain & loss)

    def added(self, moved: Ints) -> Ints:
        """The shown measures, column by column, from those that were moved."""
        return np.asarray(moved @ self.adds.T.astype(np.int64))


def families_of(measures: Sequence[Measure]) -> tuple[MeasureFamily, ...]:
    """The families of all measures, in the order of the description."""
    leader = {m.name: m.name for m in measures}

    def root(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for measure in measures:
        earlier = () if measure.earlier is None else (measure.earlier,)
        for other in (*measure.parts, *earlier):
            leader[root(other)] = root(measure.name)
    families: dict[str, list[Measure]] = {}
    for measure in measures:
        families.setdefault(root(measure.name), []).append(measure)
    return tuple(_family(members) for members in families.values())


def _family(members: Sequence[Measure]) -> MeasureFamily:
    moved = tuple(m.name for m in members if not m.parts)
    shown = tuple(m.name for m in members)
    adds = np.zeros((len(shown), len(moved)), dtype=np.bool_)
    for row, measure in enumerate(members):
        for name in measure.parts or (measure.name,):
            adds[row, moved.index(name)] = True
    return MeasureFamily(min(shown), moved, shown, adds, members[0].holding)


def check_relations(records: Records, families: Sequence[MeasureFamily]) -> None:
    """Refuse parts that do not add up, and measures that are equal or add up without being declared."""
    numbers = records.numbers
    for family in families:
        for row, name in enumerate(family.shown):
            parts = [
                m for m, is_part in zip(family.moved, family.adds[row], strict=True) if is_part
            ]
            if parts != [name] and not np.array_equal(
                sum(numbers[m] for m in parts), numbers[name]
            ):
                raise InputError(
                    f"The measure {name!r} is not the sum of its parts in every record; correct the records "
                    "or the description."
                )
    _check_unstated(numbers, families)


def _check_unstated(numbers: Mapping[str, Ints], families: Sequence[MeasureFamily]) -> None:
    names = [name for family in families for name in family.shown]
    stated = {
        (
            name,
            *sorted(
                m for m, is_part in zip(family.moved, family.adds[row], strict=True) if is_part
            ),
        )
        for family in families
        for row, name in enumerate(family.shown)
    }
    # A measure may begin where the sample ends, so whole columns decide which measures hold anything.
    filled = [name for name in names if numbers[name].any()]
    some = np.flatnonzero(np.any([numbers[n] != 0 for n in names], axis=0))[:_SAMPLED]
    drawn = {n: numbers[n][some] for n in filled}
    for name in filled:
        others = [n for n in filled if n != name]
        for parts in (*((n,) for n in others), *combinations(others, 2)):
            if (name, *sorted(parts)) in stated:
                continue
            for sign, word in ((1, "equals"), (-1, "is the negative of")):
                if all(
                    np.array_equal(sign * sum(column[n] for n in parts), column[name])
                    for column in (drawn, numbers)
                ):
                    listed = " and ".join(repr(n) for n in parts)
                    raise InputError(
                        f"The measure {name!r} {word} {listed} in every record; say so with 'parts' in the "
                        "description, or leave it out: protected apart they would give each other away."
                    )
