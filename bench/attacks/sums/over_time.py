"""Size classes, second releases and large firms: attacks on protected sums of a register, each with a control.

A control is what the method must not do: draw without regard to classes, keep the share of a contribution that
changed a little, move the shares of large firms to where tables are close, turn the largest firms of a cell
against each other. The same attack must succeed there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attacks.register import Register
from attacks.sums.channel import UNBOUNDED, Channel, drawn
from attacks.sums.classes import Alone, Classed, with_classes
from attacks.sums.large import Guessed, Pairs, Spread, guesses, pairs, spread
from attacks.sums.second import Changed, SecondRead, read_both
from lustrum.model.records import Records
from lustrum.protect.magnitudes.method import MagnitudeResult, ProtectedMagnitudes

__all__ = ["OverTime", "attack_over_time"]

Ints = np.ndarray[Any, Any]
CLASSED, BY, MEASURE, PLAIN = "employees", "size", "turnover", "wages"
LARGE = 10_000
GAIN = 8.0
"""The most points that a runner-up may gain from its own direction."""
SEED = 20


@dataclass(frozen=True)
class OverTime:
    """What was found, each beside its control."""

    classes: dict[str, Classed]
    small: dict[str, SecondRead]
    any_size: SecondRead
    grown: SecondRead
    spreads: dict[str, Spread]
    by_size: dict[str, dict[int, Guessed]]
    pairs: dict[str, Pairs]

    @property
    def holds(self) -> bool:
        """Whether nothing was found that must not be, and every control was seen through."""
        ours, control = self.classes["method"], self.classes["control"]
        second = self.small["method"]
        safe = not (ours.certain or second.certain)
        # What a firm lost or won can be too large to be hidden; but then hardly any share hides it.
        for read in (second, self.any_size, self.grown):
            safe &= not (read.certain_by_factor or read.avoidable or read.within_limits)
        safe &= second.near < 0.6 and self.spreads["method"].uniform
        safe &= self.pairs["method"].gain <= GAIN and self.pairs["method"].most <= GAIN
        seen = control.certain > 0.01 * control.firms and self.small["control"].near > 0.85
        seen &= not self.spreads["control"].uniform and self.pairs["control"].gain > GAIN
        return safe and seen

    def rows(self) -> Iterator[tuple[str, str]]:
        """The report, line by line."""
        for who, c in self.classes.items():
            yield (
                f"size classes known: {who}",
                f"of {c.firms:,} firms alone in a finest cell {c.certain:,} certain within p percent, "
                f"{c.exact:,} exactly; {c.without:,} without the class; {c.by_class:,} by their class alone; "
                f"{c.wrong} wrong",
            )
        large = (("of 5 to 60 percent", self.any_size), ("by a factor of 1.6 to 3", self.grown))
        read = (*self.small.items(), *((f"method, changes {by}", one) for by, one in large))
        for who, s in read:
            yield (
                f"two releases and the change known: {who}",
                f"{s.contributions:,} changed firms; {100 * s.near:.0f} % within p percent "
                f"({100 * s.alone:.0f} % from one release), {100 * s.within_one:.0f} % within one; certain "
                f"{s.certain}, {s.avoidable} of which one share in 32 would have hidden and {s.within_limits} "
                f"within the stated limits; with the factor known {s.certain_by_factor}",
            )
        for who, one in self.spreads.items():
            yield (
                f"shares of firms of {LARGE:,} or more: {who}",
                f"{one.firms:,} firms, {100 * one.lowest_quarter:.0f} % in the lowest quarter of the range; "
                f"distance from uniform {one.distance:.2f}, limit 2.23 (one false alarm in 10,000)",
            )
        for who, sizes in self.by_size.items():
            yield (
                f"plain guess within p percent by size, and with the direction: {who}",
                "; ".join(
                    f"{size:,}: {100 * g.plain:.0f} and {100 * g.with_direction:.0f} % of {g.firms:,}"
                    for size, g in sizes.items()
                ),
            )
        for who, two in self.pairs.items():
            yield (
                f"the runner-up about the leader: {who}",
                f"{two.cells:,} cells, opposite directions in {100 * two.opposite:.0f} %; within p percent "
                f"{100 * two.guessed:.0f} %, base {100 * two.base:.0f} %, gain {two.gain:.1f} points; "
                f"at most {two.most:.1f} in cells of one kind",
            )


def attack_over_time(records: Records, spec: ProtectedMagnitudes, key: bytes) -> OverTime:
    """Protect the register as the method does, a second time after changes, and as the controls do."""
    channel = Channel(spec.factors.least, spec.factors.most)
    made = spec.protect(records, key)
    old = replace(spec, search_range=0.8, leader_part=1.0).protect(records, key)
    rng = np.random.default_rng(SEED)
    alone = _alone(records, made)
    control = replace(alone, shown=drawn(alone.true, channel, rng))
    p = float(spec.share)
    true = records.numbers[PLAIN].astype(np.int64)
    large = true >= LARGE
    both = {"method": made, "control": old}
    return OverTime(
        {"method": with_classes(alone, channel, spec.share),
         "control": with_classes(control, channel, spec.share)},
        _small_changes(records, made, spec, key, channel, rng),
        read_both(_changed(records, made, spec, key, rng, (0.05, 0.6)), channel, spec.share),
        read_both(_changed(records, made, spec, key, rng, (0.6, 2.0), (1,)), channel, spec.share),
        {who: spread(true[large], one.records[PLAIN][large], channel) for who, one in both.items()},
        {who: _by_size(records, one, channel, p) for who, one in both.items()},
        {who: pairs(Register(records, one.memory), MEASURE, channel, p) for who, one in both.items()},
    )  # fmt: skip


def _alone(records: Records, made: MagnitudeResult) -> Alone:
    """Firms that are alone in a finest cell, with what the published file shows there."""
    codes = np.stack([records.codes[v.name] for v in records.dataset.variables]).astype(np.int64)
    _, place, count = np.unique(codes, axis=1, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(count[place.ravel()] == 1)
    cells = made.sums.codes.T.tolist()
    shown = {tuple(c): int(y) for c, y in zip(cells, made.sums.sums[CLASSED], strict=True)}
    edges = np.array([*records.dataset.variable(BY).edges, UNBOUNDED], dtype=np.int64)
    own = records.codes[BY][rows].astype(np.int64)
    return Alone(
        np.array([shown.get(tuple(c), 0) for c in codes[:, rows].T.tolist()]),
        edges[own],
        edges[own + 1] - 1,
        records.numbers[CLASSED][rows].astype(np.int64),
    )


def _by_size(
    records: Records, made: MagnitudeResult, channel: Channel, p: float
) -> dict[int, Guessed]:
    true, shown = records.numbers[MEASURE].astype(np.int64), made.records[MEASURE]
    sizes = {10**k: (true >= 10**k) & (true < 10 ** (k + 1)) for k in range(2, 7)}
    return {
        size: guesses(true[rows], shown[rows], channel, p)
        for size, rows in sizes.items()
        if rows.sum() >= 50
    }


def _changed(
    records: Records,
    made: MagnitudeResult,
    spec: ProtectedMagnitudes,
    key: bytes,
    rng: np.random.Generator,
    by: tuple[float, float],
    signs: tuple[int, ...] = (-1, 1),
) -> Changed:
    """A second release in which 300 firms of 300 or more changed by a share between two."""
    true = records.numbers[PLAIN].astype(np.int64)
    rows = rng.choice(np.flatnonzero(true >= 300), 300, replace=False)
    step = np.rint(true[rows] * rng.uniform(*by, rows.size) * rng.choice(signs, rows.size))
    new = true.copy()
    new[rows] += step.astype(np.int64)
    again = replace(records, numbers={**records.numbers, PLAIN: new})
    after = spec.protect(again, key, previous=made.memory)
    return Changed(made.records[PLAIN][rows], after.records[PLAIN][rows], true[rows], new[rows])


def _small_changes(
    records: Records,
    made: MagnitudeResult,
    spec: ProtectedMagnitudes,
    key: bytes,
    channel: Channel,
    rng: np.random.Generator,
) -> dict[str, SecondRead]:
    """Changes of one to four percent; the control keeps the share of every firm."""
    found = _changed(records, made, spec, key, rng, (0.01, 0.04))
    kept = np.rint(found.true_after * (found.before / found.true_before)).astype(np.int64)
    control = replace(found, after=kept)
    return {
        "method": read_both(found, channel, spec.share),
        "control": read_both(control, channel, spec.share),
    }
