"""Attacks on sums by contributors who know their own values, over all tables, differences and both years.

Attackers are given more than they have in practice: the exact number of contributors of every set, and their
own protected values, which a firm can read off where it is alone. All else comes from the answers of the
server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from attacks.asker import Answer, Asker
from attacks.register import Levels, Register, Sets
from lustrum.audit.contribution import candidates, certain_within
from lustrum.protect.magnitudes.factors import Factors

__all__ = ["Grown", "Insiders", "PlantedSums", "Tables", "axes_of", "growth", "insiders"]

Ints = np.ndarray[Any, Any]
_KINDS: tuple[tuple[str, tuple[int, ...] | None, int], ...] = (
    ("the second largest about the largest", (1,), 0),
    ("the largest about the second largest", (0,), 1),
    ("a coalition of the second and third about the largest", (1, 2), 0),
    ("all others about the largest", None, 0),
)
_FEW = 8
"""Differences of nested cells are attacked where they hold so few records."""


def axes_of(levels: Levels) -> list[Any]:
    """The axes of a table in the form of the API."""
    asked: list[Any] = []
    for level in levels:
        if level is not None:
            variable, name = level.same_as[0]
            asked.append(variable if name is None else {"variable": variable, "level": name})
    return asked


@dataclass
class Tables:
    """The tables of one measure at every choice of levels, as the server shows them."""

    asker: Asker
    register: Register
    measure: str

    def cells(self, levels: Levels) -> Ints:
        """The shown numbers in the order of the register's cells; no table may be refused."""
        answer = self.asker.ask({"by": axes_of(levels), "measure": self.measure})
        if answer is None:
            raise SystemExit("A table of sums was refused.")
        return np.rint(answer.shown).astype(np.int64).ravel()


@dataclass
class Insiders:
    """What contributors can say about each other, over all cells and nested differences.

    ``under_protected`` are sensitive sets in which a contributor comes nearer to the largest than the p% rule
    allows. ``certain`` are values that an attacker can name within p percent and knows to be right;
    ``claims_wrong`` counts such claims that miss the truth. ``disagree`` are cells that differ from the sum of
    their finest cells.
    """

    sets: int = 0
    sensitive: int = 0
    under_protected: int = 0
    certain: dict[str, int] = field(default_factory=lambda: {kind: 0 for kind, _, _ in _KINDS})
    claims_wrong: int = 0
    with_direction: int = 0
    disagree: int = 0

    @property
    def disclosures(self) -> int:
        """Certain disclosures within p percent; an attack that is ever wrong is certain of nothing."""
        return 0 if self.claims_wrong else sum(self.certain.values())


def insiders(tables: Tables, factors: Factors, share: Fraction) -> Insiders:
    """Attack every cell of every table at all levels, and every difference of nested cells."""
    register, measure = tables.register, tables.measure
    every = list(register.tables())
    base = tables.cells(every[0])
    found = Insiders()
    for levels in every:
        shown = tables.cells(levels)
        found.disagree += int((shown != _added(every[0], levels, base)).sum())
        truth = register.ranked(register.cells(levels), shown.size, measure)
        for published, own in ((shown, truth), *_differences(tables, levels, shown)):
            _judge(found, published, own, factors, share)
    return found


def _judge(found: Insiders, published: Ints, own: Sets, factors: Factors, share: Fraction) -> None:
    one, two = own.true[:, 0], own.true[:, 1]
    lacking = one * share.numerator - (own.true_total - one - two) * share.denominator
    sensitive = (own.contributors > 0) & (lacking > 0)
    found.sets += int((own.contributors > 0).sum())
    found.sensitive += int(sensitive.sum())
    # What the second largest is left with, beside what it should be without any noise.
    error = np.abs(published - own.shown[:, 1] - (own.true_total - two)) * share.denominator
    found.under_protected += int((sensitive & (error < lacking)).sum())
    for kind, coalition, target in _KINDS:
        certain, wrong, known = _certain(published, own, coalition, target, factors, share)
        found.certain[kind] += certain
        found.claims_wrong += wrong
        found.with_direction += known if coalition is None else 0


def _certain(
    published: Ints,
    own: Sets,
    coalition: Sequence[int] | None,
    target: int,
    factors: Factors,
    share: Fraction,
) -> tuple[int, int, int]:
    """Targets that are certain within p percent, wrong claims, and targets certain with the direction."""
    if coalition is None:
        has = own.contributors > 0
        left = published - (own.shown_total - own.shown[:, 0])
        unknown = np.ones(published.size, np.int64)
    else:
        has = own.contributors > max(*coalition, target)
        left = published - own.shown[:, list(coalition)].sum(axis=1)
        unknown = np.maximum(own.contributors - len(coalition), 1)
    has &= left > 0
    left, unknown, truth = left[has], unknown[has], own.true[has, target]
    even = -(-left // unknown)
    # The target is the largest of the unknown ones: it has an even share at least, and all of it at most.
    ends = {side: _ends(even, left, factors, side) for side in ("up", "down")}
    low = np.minimum(ends["up"][0], ends["down"][0])
    high = np.maximum(ends["up"][1], ends["down"][1])
    sure = certain_within(low, high, share)
    right = ((low <= truth) & (truth <= high)).astype(bool)
    known = np.zeros(left.size, bool)
    for least, most in ends.values():
        inside = ((least <= truth) & (truth <= most)).astype(bool)
        known |= inside & certain_within(least, most, share)
    return int((sure & right).sum()), int((sure & ~right).sum()), int(known.sum())


def _ends(
    even: Ints, left: Ints, factors: Factors, side: Literal["up", "down"]
) -> tuple[Ints, Ints]:
    least = candidates(even, factors.least, factors.most, side)[0]
    return least, candidates(left, factors.least, factors.most, side)[1]


def _added(finest: Levels, levels: Levels, base: Ints) -> Ints:
    """The finest table added up to another one."""
    out = base.reshape([level.size for level in finest if level is not None])
    axis = 0
    for fine, level in zip(finest, levels, strict=True):
        if level is None:
            out = out.sum(axis=axis)
            continue
        if level is not fine:
            moved = np.moveaxis(out, axis, 0)
            grouped = np.zeros((level.size, *moved.shape[1:]), np.int64)
            np.add.at(grouped, level.group_of, moved)
            out = np.moveaxis(grouped, 0, axis)
        axis += 1
    return np.asarray(out).ravel()


def _differences(tables: Tables, levels: Levels, shown: Ints) -> Iterator[tuple[Ints, Sets]]:
    """Cells less one of their parts, for parts one level finer in one variable, where few records are left.

    The difference of two sums is a sum over the firms of the larger cell that are not in the smaller one.
    """
    register = tables.register
    cell = register.cells(levels)
    order = np.argsort(cell, kind="stable")
    first = np.searchsorted(cell[order], np.arange(shown.size + 1))
    for finer in register.finer(levels):
        part, parts = register.cells(finer), tables.cells(finer)
        number = np.bincount(part, minlength=parts.size)
        parent = np.zeros(parts.size, np.int64)
        parent[part] = cell
        left = np.diff(first)[parent] - number
        chosen = np.flatnonzero((number > 0) & (left > 0) & (left <= _FEW))
        rows, sets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for k, small in enumerate(chosen):
            inside = order[first[parent[small]] : first[parent[small] + 1]]
            rows.append(inside[part[inside] != small])
            sets.append(np.full(rows[-1].size, k))
        own = register.ranked(
            np.concatenate(sets), chosen.size, tables.measure, np.concatenate(rows)
        )
        yield shown[parent[chosen]] - parts[chosen], own


@dataclass(frozen=True)
class Grown:
    """Growth of single contributors: how many there are, and how many are certain within p percent."""

    contributors: int
    certain: int
    with_direction: int


def growth(now: Tables, before: Tables, factors: Factors, share: Fraction) -> Grown:
    """Finest cells of one contributor in both years: what its two protected values say about its growth."""
    register = now.register
    finest = next(register.tables())
    cells = register.cells(finest)
    later, earlier = now.cells(finest), before.cells(finest)
    one = register.ranked(cells, later.size, now.measure)
    old = register.ranked(cells, later.size, before.measure)
    single = (one.contributors == 1) & (old.contributors == 1) & (later > 0) & (earlier > 0)
    true = one.true[single, 0] / old.true[single, 0]
    low, high = np.full(true.size, np.inf), np.zeros(true.size)
    p, known = float(share), 0
    for side in ("up", "down"):
        a, b = (_ends(v[single], v[single], factors, side) for v in (later, earlier))  # type: ignore[arg-type]
        # A value of few units may have no candidate in this direction.
        none = ((a[0] > a[1]) | (b[0] > b[1])).astype(bool)
        least = np.where(none, np.inf, a[0].astype(float) / np.maximum(b[1].astype(float), 1))
        most = np.where(none, 0.0, a[1].astype(float) / b[0].astype(float))
        inside = (least <= true) & (true <= most)
        known += int((inside & ((1 - p) * most <= (1 + p) * least)).sum())
        low, high = np.minimum(low, least), np.maximum(high, most)
    return Grown(int(single.sum()), int(((1 - p) * high <= (1 + p) * low).sum()), known)


@dataclass
class PlantedSums(Asker):
    """Shows sums of one measure without the noise of some records: ``change`` is added to each record."""

    inner: Asker
    register: Register
    measure: str
    change: Ints

    def ask(self, asked: dict[str, Any]) -> Answer | None:
        """The answer with the change in it."""
        answer = self.inner.ask(asked)
        if answer is None or asked.get("measure") != self.measure:
            return answer
        levels = next(one for one in self.register.tables() if axes_of(one) == asked["by"])
        size = answer.shown.size
        added = np.bincount(self.register.cells(levels), weights=self.change, minlength=size)
        return replace(answer, shown=answer.shown + added.reshape(answer.shown.shape))
