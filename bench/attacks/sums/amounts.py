"""What neighbours read off sums with a proof about a person: the amount, and whether the person is in the file.

Everybody has the bound or nothing, the worst there is, by chances that follow from what anybody can see. A
neighbour knows all variables of a person and says which of both it is; a second attack knows the amount as well
and says whether the person is in the file. People are judged who are in the file, and as many who were drawn
with them and are left out: the *gain* is what is named right of the former beyond the latter. Readers:

- ``no file``: the chances alone; its gain must be nil;
- ``file``: tables of one and two variables of the people who were made up, of counts and of sums;
- ``noisy tables``: the noisy ones, which are public;
- ``insider``: the noisy ones and the records of everybody else; only the promise stops this reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from attacks.neighbours import Judged, Report
from lustrum.model import Dataset
from lustrum.model.records import Records

Array = np.ndarray[Any, Any]
SIZES = {"area": 10, "age": 6, "job": 4, "sex": 2}
BOUND = 1000
DATASET = Dataset.from_mapping(
    {
        "dataset": {"name": "paid", "population": "residents"},
        "variables": [
            {"name": name, "codes": [[str(i), f"{name} {i}"] for i in range(size)]}
            for name, size in SIZES.items()
        ],
        "measures": [{"name": "pay", "label": "Pay", "unit": "euros", "decimals": 0}],
    }
)
Table = tuple[tuple[int, ...], Array, float]
"""The places of the variables of a table, its numbers, and the variance of their errors."""


@dataclass(frozen=True)
class PaidRelease:
    """What is published: tables of counts and of sums, those of the file and noisy ones."""

    file: tuple[Sequence[Table], Sequence[Table]]
    noisy: tuple[Sequence[Table], Sequence[Table]]


Publish = Callable[[Records], PaidRelease]


class Paid:
    """People with an amount, by a seed; ``inside`` is the half of them who are in the file."""

    def __init__(self, persons: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.codes = np.stack([rng.choice(n, size=persons, p=_falling(n)) for n in SIZES.values()])
        self.amounts = BOUND * (rng.random(persons) < self.chance(self.codes)).astype(np.int64)
        self.inside = rng.permutation(persons) < persons // 2

    @staticmethod
    def chance(codes: Array) -> Array:
        """How likely somebody has the bound: the statistics, which everybody knows."""
        return np.asarray(0.2 + 0.1 * codes[2] + 0.05 * codes[1])

    def records(self) -> Records:
        """Those inside."""
        named = zip(SIZES, self.codes[:, self.inside], strict=True)
        return Records(DATASET, dict(named), {"pay": self.amounts[self.inside]})


def _falling(size: int) -> Array:
    weights = 1.0 / (1 + np.arange(size))
    return np.asarray(weights / weights.sum())


def tables_of(codes: Array, values: Array, variance: float) -> list[Table]:
    """All tables of one and two variables of people or cells."""
    found: list[Table] = []
    for number in (1, 2):
        for places in combinations(range(len(SIZES)), number):
            found.append((places, _summed(places, codes, values), variance))
    return found


def _summed(places: tuple[int, ...], codes: Array, values: Array) -> Array:
    shape = tuple(tuple(SIZES.values())[p] for p in places)
    at = np.ravel_multi_index(tuple(codes[p] for p in places), shape)
    return np.bincount(at, values, int(np.prod(shape))).reshape(shape)


def attack_amounts(publish: Publish, persons: int, *, files: int = 2, fewest: int = 2000) -> Report:
    """Attack so many files of half of so many people each."""
    report = Report(("amount",), fewest)
    for number in range(files):
        people = Paid(persons, 100 + number)
        release = publish(people.records())
        for side, who in enumerate((people.inside, ~people.inside)):
            codes, amounts = people.codes[:, who], people.amounts[who]
            for reader, (amount, member) in _said(release, people, who, codes, amounts).items():
                one = report.gains.setdefault(("amount", 0.0, reader), Judged())
                one.people[side] += amounts.size
                one.right[side] += int(((amount > 0) == (amounts > 0)).sum())
                if member is not None:
                    report.members.setdefault(reader, ([], []))[side].append(member)
    return report


def _said(
    release: PaidRelease, people: Paid, who: Array, codes: Array, amounts: Array
) -> dict[str, tuple[Array, Array | None]]:
    """The odds that each reader gives to the bound, and to the person being in the file."""
    chance = people.chance(codes)
    prior = np.log(chance / (1 - chance))
    everybody = _Expected(int(people.inside.sum()))
    found: dict[str, tuple[Array, Array | None]] = {"no file": (prior, None)}
    for reader, (counts, sums) in (("file", release.file), ("noisy tables", release.noisy)):
        amount = prior + _odds(sums, everybody.sums, codes, np.full(amounts.size, BOUND))
        member = _odds(counts, everybody.counts, codes, np.ones(amounts.size))
        found[reader] = amount, member + _odds(sums, everybody.sums, codes, amounts)
    others = _Others(people, who)
    counts, sums = release.noisy
    amount = prior + _odds(sums, others.sums, codes, np.full(amounts.size, BOUND))
    member = _odds(counts, others.counts, codes, np.ones(amounts.size))
    found["insider"] = amount, member + _odds(sums, others.sums, codes, amounts)
    return found


Known = Callable[[tuple[int, ...], Array], tuple[Array, Array]]
"""The mean and the variance of what others add to the cells of a table that hold each person."""


def _odds(tables: Sequence[Table], known: Known, codes: Array, step: Array) -> Array:
    """The logarithm of the odds that each person adds so much to their cells, rather than nothing."""
    total = np.zeros(codes.shape[1])
    for places, table, variance in tables:
        mean, spread = known(places, codes)
        shown = _at(places, table, codes)
        total += step * (shown - mean - step / 2) / (variance + spread)
    return total


def _at(places: tuple[int, ...], table: Array, codes: Array) -> Array:
    return np.asarray(table[tuple(codes[p] for p in places)])


class _Expected:
    """What the statistics say of so many people."""

    def __init__(self, people: int) -> None:
        sizes = tuple(SIZES.values())
        cells = np.array(list(np.ndindex(*sizes))).T
        self._cells = cells
        self._people = people * np.prod(
            [_falling(n)[row] for n, row in zip(sizes, cells, strict=True)], axis=0
        )
        self._chance = Paid.chance(cells)

    def counts(self, places: tuple[int, ...], codes: Array) -> tuple[Array, Array]:
        """Of people."""
        mean = _at(places, _summed(places, self._cells, self._people), codes)
        return mean, mean

    def sums(self, places: tuple[int, ...], codes: Array) -> tuple[Array, Array]:
        """Of amounts."""
        amounts = BOUND * self._chance * self._people
        mean = _at(places, _summed(places, self._cells, amounts), codes)
        return mean, BOUND * mean


class _Others:
    """Everybody in the file but the person, exactly."""

    def __init__(self, people: Paid, who: Array) -> None:
        self._codes, self._amounts = people.codes[:, people.inside], people.amounts[people.inside]
        own = bool((who == people.inside).all())
        self._own = people.amounts[who] if own else 0 * people.amounts[who]
        self._one = float(own)

    def counts(self, places: tuple[int, ...], codes: Array) -> tuple[Array, Array]:
        """Of people."""
        ones = np.ones(self._amounts.size)
        there = _at(places, _summed(places, self._codes, ones), codes)
        return there - self._one, np.zeros(there.size)

    def sums(self, places: tuple[int, ...], codes: Array) -> tuple[Array, Array]:
        """Of amounts."""
        there = _at(places, _summed(places, self._codes, self._amounts), codes)
        return there - self._own, np.zeros(there.size)


def lines(report: Report, allowed: tuple[float, float]) -> Iterator[tuple[str, str]]:
    """The report, line by line, beside what the promise allows: a gain, and members found."""
    for reader in report.readers:
        _, one, bound = report.worst(reader)
        said = f"gain {100 * one.gain:.1f} points, at least {100 * bound:.1f}"
        if reader in report.members:
            area, found = report.membership(reader)
            said += f"; {100 * found:.1f} % of members found (AUC {area:.2f})"
        yield f"amounts, {reader}", f"{said} ({one.people[0]:,} people in the file)"
    yield (
        "amounts, what the promise allows",
        f"gain {100 * allowed[0]:.1f} points; {100 * allowed[1]:.1f} % found",
    )
