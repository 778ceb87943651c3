"""The floor of change: what protects is measured by its parameters, not by its name.

Each step of protection states the share of ones and twos that it is certain to change, and the entropy that
it leaves to a reader who knows the method. Steps may undo one another, so that they are not added up.

**Steps on counts** (a hypercube, then a table) are judged as one, by the product of their channels. To credit
the stronger one would be too much: a matrix may turn 1 into 4, 4 into 1, 2 into 5 and 5 into 2. Rounding of
counts below 3, which by itself leaves 1.45 bits, then shows every true 1 as 4 and every true 2 as 5. If a step
states no channel, the first one alone is counted: what follows can bring nothing back.

**Steps on records** come before. Of them and the steps on counts the strongest is counted. Together they leave
no less: people who moved are in a cell all the same, where the step on counts protects them, and not to know
who moved adds to what is open. ``tests/policy/test_floor_of_two_steps.py`` enumerates this for two cells.

**A step with a proof** is judged by the cost that it states, which every page shows, and not by this floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

from lustrum.model import Channel
from lustrum.model.channel import ComposedChannel
from lustrum.protect.entropy_left import entropy_left

LEAST_CHANGED = 0.5
"""At least this share of ones and twos changes, unless a policy says in a sentence why not."""
LEAST_ENTROPY = 0.5
"""At least so many bits are left about a true 1 or 2, unless a policy says in a sentence why not."""
_ROUNDING_ERROR = 1e-9


@dataclass(frozen=True)
class CountStep:
    """A step for counts: where it stands in the file, what it is called, and what it states."""

    path: tuple[str | int, ...]
    method: str
    changed: float
    entropy: float
    on_counts: bool = False
    channels: tuple[Channel, ...] = ()


def judged_together(steps: Sequence[CountStep]) -> list[CountStep]:
    """The steps with those on counts made into one, which stands where the first of them does."""
    counts = [step for step in steps if step.on_counts]
    if len(counts) < 2:
        return list(steps)
    first = counts[0]
    changed, entropy = first.changed, first.entropy
    if all(step.channels for step in counts):
        ways = [
            reduce(ComposedChannel, channels)
            for channels in product(*(step.channels for step in counts))
        ]
        changed = min(1.0 - way.stay(1, 2) for way in ways)
        entropy = min(map(entropy_left, ways))
    name = " then ".join(step.method for step in counts)
    return [*(s for s in steps if not s.on_counts), CountStep(first.path, name, changed, entropy)]


@dataclass(frozen=True)
class Shortfall:
    """What is too little, and where."""

    path: tuple[str | int, ...]
    sentence: str


def shortfall(
    steps: Sequence[CountStep], min_changed: float, min_entropy: float
) -> Shortfall | None:
    """What the steps change or leave too little of, with the numbers; None where they do enough."""
    way = (
        "put a method such as 'random-rounding' under [protect], or say in 'true_counts_because' why true "
        "counts may be shown"
    )
    strongest = max(steps, key=lambda step: step.changed)
    if strongest.changed < min_changed - _ROUNDING_ERROR:
        said = ", ".join(f"{step.method!r} {percent(step.changed)}" for step in steps)
        return Shortfall(
            strongest.path,
            f"the steps are certain to change only {percent(strongest.changed)} of ones and twos ({said}), and "
            f"{percent(min_changed)} must change; {way}",
        )
    strongest = max(steps, key=lambda step: step.entropy)
    if strongest.entropy < min_entropy - _ROUNDING_ERROR:
        said = ", ".join(f"{step.method!r} {bits(step.entropy)}" for step in steps)
        return Shortfall(
            strongest.path,
            f"the steps are certain to leave only {bits(strongest.entropy)} bits about a true 1 or 2 to a "
            f"reader who knows them ({said}), and {bits(min_entropy)} must be left; {way}",
        )
    return None


def percent(share: float) -> str:
    """A share without more digits than needed; never rounded up to what it does not reach."""
    tenths = int(share * 1000 + _ROUNDING_ERROR)
    return f"{tenths // 10} %" if tenths % 10 == 0 else f"{tenths // 10}.{tenths % 10} %"


def bits(entropy: float) -> str:
    """Bits with two digits, never rounded up."""
    return f"{int(entropy * 100 + _ROUNDING_ERROR) / 100:g}"
