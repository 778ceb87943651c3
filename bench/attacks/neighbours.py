"""What neighbours read off a released file about one person: an attribute, and whether the person is in it.

A neighbour knows all variables of a person but one and names the category of that one. He knows the statistics
of the population from elsewhere (other people of the same kind), and the open code, with which he makes
*shadow* files of other people to learn from. People are judged who are in the file, and as many who were drawn
with them and are left out. What a reader names right of these is statistics; the *gain* is what he names right
of the others beyond it, and that is disclosure. A second attack knows the whole record and says whether it is
in the file. The readers see the released cells alone, and are written apart from the methods:

- ``no file``: the statistics alone; its gain must be nil;
- ``row``: the cells that agree with the person in all known variables;
- ``all rows``: counts the shown cells that differ from those in one more variable;
- ``learnt``: boosted trees over all of these, cells that differ in two more, and tables of up to three;
- ``noisy tables``: where these are public, the likeliest category by their Gaussian noise.

Gains are stated by how many people a row is expected to hold, which follows from the statistics too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from math import prod
from statistics import NormalDist
from typing import Any

import numpy as np

from attacks.releases.series import People
from lustrum.model.finest import FinestCells

Array = np.ndarray[Any, Any]
Noisy = tuple[tuple[int, ...], Array, float]
"""The places of the variables of a noisy table, its numbers, and the variance of its noise."""
Spoken = tuple[tuple[int, ...], Callable[[Array], Array], float]
"""The same of any table, with what it shows at cells."""
BINS = (0.0, 0.05, 0.2, 1.0, 5.0)
FEWEST = 2000
FALSE_ALARMS = 0.01
_PRIOR = 6.0
_DENSE = 1 << 22
_AT_ONCE = 200_000
_CATEGORIES = 60
"""Fewer people are attacked about variables with more categories."""
_OTHERS = 8
"""How many wrong categories of a person a learnt reader is shown."""
_ERROR = 4.0
"""The variance that a reader expects of the numbers of tables, beside that of the people in them."""


@dataclass(frozen=True)
class Released:
    """What is published: cells and their numbers; of some methods noisy tables, each with its variance."""

    codes: Array
    counts: Array
    noisy: tuple[Noisy, ...] = ()

    def at(self, roots: Sequence[int]) -> Released:
        """The same by some variables, of which all others are functions."""
        tables = []
        for places, table, variance in self.noisy:
            away = tuple(axis for axis, place in enumerate(places) if place not in roots)
            kept = tuple(roots.index(place) for place in places if place in roots)
            tables.append((kept, table.sum(axis=away), variance))
        return Released(self.codes[list(roots)].astype(np.int64), self.counts, tuple(tables))


Publish = Callable[[FinestCells, int], Released]
"""Makes a release of cells; the number says which key or which draw."""


class Counted:
    """Cells and people of a file by the codes of any of its variables."""

    def __init__(self, codes: Array, counts: Array, sizes: Sequence[int]) -> None:
        self.codes, self.counts, self.sizes = codes, counts, sizes
        self._known: dict[tuple[int, ...], tuple[Array | None, Array, Array]] = {}

    def of(self, places: tuple[int, ...], wanted: Array, *, people: bool) -> Array:
        """How many people, or shown cells, have the wanted codes of the variables at these places."""
        if places not in self._known:
            numbers = self._numbers(places, self.codes)
            found: Array | None = None
            size = prod(self.sizes[p] for p in places)
            if size > _DENSE:
                found, numbers = np.unique(numbers, return_inverse=True)
                size = found.size + 1
            held = np.bincount(numbers, self.counts, size), np.bincount(numbers, minlength=size)
            self._known[places] = (found, held[0].astype(np.float32), held[1].astype(np.float32))
        found, *both = self._known[places]
        at = self._numbers(places, wanted)
        if found is not None:
            place = np.minimum(np.searchsorted(found, at), found.size - 1)
            at = np.where(found[place] == at, place, found.size)
        return np.asarray(both[0 if people else 1][at])

    def _numbers(self, places: tuple[int, ...], codes: Array) -> Array:
        number = np.zeros(codes.shape[1], dtype=np.int64)
        for place in places:
            number = number * self.sizes[place] + codes[place]
        return number


@dataclass
class Statistics:
    """What a neighbour knows without the file: other people of the same population, and how many are in it."""

    known: Counted
    people: int

    @property
    def scale(self) -> float:
        """How many people of the file stand for each of those that are known."""
        return self.people / float(self.known.counts.sum())

    def belief(self, variable: int, codes: Array) -> Array:
        """The chances of each category, by people who agree in fewer, then in more of the other variables."""
        size, people = self.known.sizes[variable], codes.shape[1]
        every = _candidates(codes, variable, size)
        others = sorted(
            (p for p in range(len(self.known.sizes)) if p != variable),
            key=lambda p: self.known.sizes[p],
        )
        belief = np.full((people, size), 1.0 / size)
        for number in range(len(others) + 1):
            held = self.known.of((variable, *others[:number]), every, people=True)
            held = held.reshape(people, size)
            belief = (held + _PRIOR * belief) / (held.sum(axis=1, keepdims=True) + _PRIOR)
        return belief

    def expected(self, variable: int | None, codes: Array) -> Array:
        """How many people of the file the row of each person should hold."""
        others = [p for p in range(len(self.known.sizes)) if p != variable]
        widest = max(others, key=lambda p: self.known.sizes[p])
        near = self.known.of(tuple(p for p in others if p != widest), codes, people=True)
        share = self.known.of((widest,), codes, people=True) / float(self.known.counts.sum())
        return np.asarray(near * share * self.scale)


def _candidates(codes: Array, variable: int, size: int) -> Array:
    """Every person with every category of a variable."""
    every = np.repeat(codes, size, axis=1)
    every[variable] = np.tile(np.arange(size), codes.shape[1])
    return every


def _beside(values: Array) -> Array:
    """Of rows of values: by how much each exceeds the largest other one."""
    if values.shape[1] < 2:
        return np.zeros_like(values)
    order = np.sort(values, axis=1)
    return np.asarray(values - np.where(values == order[:, -1:], order[:, -2:-1], order[:, -1:]))


@dataclass
class View:
    """What readers see of people in one release: a line of features for each category of each person."""

    file: Counted
    known: Statistics
    noisy: tuple[Noisy, ...] = ()

    def features(self, variable: int | None, codes: Array) -> tuple[Array, dict[str, Array]]:
        """Features, (people, categories, features), and what readers who learn nothing make of them."""
        sizes, places = self.file.sizes, range(len(self.file.sizes))
        size = 1 if variable is None else sizes[variable]
        every = codes if variable is None else _candidates(codes, variable, size)

        def shaped(values: Array) -> Array:
            return np.asarray(values, dtype=np.float32).reshape(-1, size)

        def without(*left_out: int) -> Array:
            rest = tuple(p for p in places if p not in left_out)
            return shaped(self.file.of(rest, every, people=False))

        others = [p for p in places if p != variable]
        own = shaped(self.file.of(tuple(places), every, people=True))
        here = own > 0
        near = [without(p) - here for p in others]
        far = sum((without(*pair) for pair in combinations(others, 2)), np.zeros_like(own))
        tables = [shaped(self.odds(variable, every, self.of_file(n))) for n in (1, 2, 3)]
        belief = np.ones_like(own) if variable is None else self.known.belief(variable, codes)
        log, nearby = np.log(belief), sum(near, np.zeros_like(own))
        row = np.repeat(here.sum(axis=1, keepdims=True), size, axis=1) - here
        expected = np.repeat(self.known.expected(variable, codes)[:, None], size, axis=1)
        lines = [own, row, *near, nearby, far, *tables, log, expected]
        lines += [_beside(values) for values in (nearby, far, *tables, log)]
        said = {
            "no file": belief,
            "row": belief * (own + 1e-6),
            "all rows": nearby + 2 * here + belief,
        }
        if self.noisy:
            said["noisy tables"] = log + shaped(self.odds(variable, every, self.of_noise()))
        return np.stack(lines, axis=2).astype(np.float32), said

    def odds(self, variable: int | None, every: Array, tables: Iterable[Spoken]) -> Array:
        """The logarithm of the odds that tables give to one more person in the cells of each category."""
        total = np.zeros(every.shape[1])
        for chosen, shown, variance in tables:
            if variable is None or variable in chosen:
                mean = self.known.scale * self.known.known.of(chosen, every, people=True)
                total += (shown(every) - mean - 0.5) / (variance + mean)
        return total

    def of_file(self, number: int) -> Iterator[Spoken]:
        """All tables of so many variables of the file."""
        for chosen in combinations(range(len(self.file.sizes)), number):
            yield chosen, partial(self.file.of, chosen, people=True), _ERROR

    def of_noise(self) -> Iterator[Spoken]:
        """The noisy tables."""
        for chosen, table, variance in self.noisy:
            yield chosen, lambda every, c=chosen, t=table: t[tuple(every[p] for p in c)], variance


class Trees:
    """Boosted trees, in which all branches of one depth ask the same question; the logistic loss."""

    def __init__(self, features: Array, true: Array, rounds: int = 40, depth: int = 4) -> None:
        shares = np.linspace(0, 1, 33)[1:-1]
        self.edges = [np.unique(np.quantile(column, shares)) for column in features.T]
        binned, score = self._binned(features), np.zeros(true.size)
        self.trees: list[tuple[list[tuple[int, int]], Array]] = []
        for _ in range(rounds):
            chance = 1 / (1 + np.exp(-score))
            push, weight = true - chance, chance * (1 - chance)
            leaf, asked = np.zeros(true.size, dtype=np.int64), []
            for _ in range(depth):
                question = max(
                    self._question(column, number, leaf, 1 << len(asked), push, weight)
                    for number, column in enumerate(binned)
                )
                asked.append(question[1:])
                leaf = 2 * leaf + (binned[question[1]] > question[2])
            sums = [np.bincount(leaf, w, 1 << depth) for w in (push, weight)]
            value = 0.3 * sums[0] / (sums[1] + 5.0)
            self.trees.append((asked, value))
            score = score + value[leaf]

    def _binned(self, features: Array) -> list[Array]:
        columns = zip(self.edges, features.T, strict=True)
        return [np.searchsorted(edges, column).astype(np.int64) for edges, column in columns]

    @staticmethod
    def _question(
        column: Array, number: int, leaf: Array, leaves: int, push: Array, weight: Array
    ) -> tuple[float, int, int]:
        """The best place to divide a feature: what it gains, the feature, the place."""
        at = leaf * 32 + column
        low = [
            np.bincount(at, w, leaves * 32).reshape(leaves, 32).cumsum(axis=1)
            for w in (push, weight)
        ]
        high = [sums[:, -1:] - sums for sums in low]
        gain = sum(g**2 / (h + 5.0) for g, h in (low, high)).sum(axis=0)[:-1]
        return float(gain.max()), number, int(gain.argmax())

    def score(self, features: Array) -> Array:
        """How likely each line is a true one, in no unit."""
        binned, score = self._binned(features), np.zeros(features.shape[0])
        for asked, value in self.trees:
            leaf = np.zeros(score.size, dtype=np.int64)
            for column, place in asked:
                leaf = 2 * leaf + (binned[column] > place)
            score += value[leaf]
        return score


@dataclass
class Judged:
    """How many people of one variable and bin a reader names right, in the file and out of it."""

    people: list[int] = field(default_factory=lambda: [0, 0])
    right: list[int] = field(default_factory=lambda: [0, 0])

    @property
    def rates(self) -> tuple[float, float]:
        """In the file, and out of it."""
        return self.right[0] / max(self.people[0], 1), self.right[1] / max(self.people[1], 1)

    @property
    def gain(self) -> float:
        """What the file tells of those who are in it."""
        return self.rates[0] - self.rates[1]

    def at_least(self, together: int, wrong: float = 0.05) -> float:
        """A lower bound of the gain; so many such bounds hold together but for this chance."""
        variance = sum(
            p * (1 - p) / max(n, 1) for p, n in zip(self.rates, self.people, strict=True)
        )
        return self.gain - NormalDist().inv_cdf(1 - wrong / together) * variance**0.5


@dataclass
class Report:
    """Gains by (variable, bin, reader), and scores of membership by reader, in the file and out of it."""

    variables: tuple[str, ...]
    fewest: int = FEWEST
    gains: dict[tuple[str, float, str], Judged] = field(default_factory=dict)
    members: dict[str, tuple[list[Array], list[Array]]] = field(default_factory=dict)

    @property
    def judged(self) -> dict[tuple[str, float, str], Judged]:
        """Bins with enough people in the file and out of it."""
        return {key: one for key, one in self.gains.items() if min(one.people) >= self.fewest}

    def worst(self, reader: str, wrong: float = 0.05) -> tuple[str, Judged, float]:
        """Where the lower bound of a reader's gain is largest, what is named there, and the bound."""
        together = len(self.judged)
        return max(
            (
                (f"{v}, rows of {least:g} or more", one, one.at_least(together, wrong))
                for (v, least, said), one in self.judged.items()
                if said == reader
            ),
            key=lambda found: found[2],
        )

    @property
    def readers(self) -> tuple[str, ...]:
        """Those who were judged."""
        return tuple(dict.fromkeys(reader for _, _, reader in self.judged))

    def membership(self, reader: str) -> tuple[float, float]:
        """The area under the curve, and the share found at 1 % false alarms."""
        inside, outside = (np.concatenate(part) for part in self.members[reader])
        both = np.concatenate([inside, outside])
        _, place, many = np.unique(both, return_inverse=True, return_counts=True)
        rank = (np.cumsum(many) - (many - 1) / 2)[place]
        area = (rank[: inside.size].sum() - inside.size * (inside.size + 1) / 2) / inside.size
        limit = np.quantile(outside, 1 - FALSE_ALARMS, method="higher")
        # Of scores equal to the limit as many are taken as keep to the rate.
        above, at = (outside > limit).mean(), (outside == limit).mean()
        part = (FALSE_ALARMS - above) / at
        return area / outside.size, float((inside > limit).mean() + part * (inside == limit).mean())

    def rows(self) -> Iterator[dict[str, Any]]:
        """The gains, line by line: of each reader, with the lower bound in brackets."""
        for variable, least, first in self.judged:
            if first == "no file":
                some = {r: self.judged[variable, least, r] for r in self.readers}
                people, (named, _) = some[first].people, some[first].rates
                yield {
                    "row": f"{variable}, rows of {least:g} or more",
                    "in, out": f"{people[0]:,}, {people[1]:,}",
                    "named without the file (%)": 100 * named,
                } | {
                    f"{reader}: gain (at least)": f"{100 * one.gain:.1f} "
                    f"({100 * one.at_least(len(self.judged)):.1f})"
                    for reader, one in some.items()
                }


def census(persons: int, left_out: tuple[str, ...] = ()) -> Callable[[int], People]:
    """Makers of people of the demo census, by a seed; as many as are in the file are left out of it."""
    return lambda seed: People(persons * 4 // 3, seed, left_out)


def attack(
    make: Callable[[int], People],
    publish: Publish,
    *,
    shadows: int = 2,
    targets: int = 3,
    most: int = 6000,
    known: Callable[[int], People] | None = None,
    fewest: int = FEWEST,
) -> Report:
    """Learn from shadow files, and attack others; each has people, and a key, of its own.

    ``known`` makes the people from whom a neighbour knows the statistics; of each file so many in it and out
    of it are attacked at most.
    """
    others = (known or make)(900)
    roots = root_places(others)
    sizes = [len(others.dataset.variables[p].codes) for p in roots]
    names = tuple(others.dataset.variables[p].name for p in roots)
    everybody = Counted(others.codes[roots], np.ones(others.codes.shape[1]), sizes)

    def seen(number: int) -> Seen:
        people = make(number)
        half = people.codes.shape[1] // 2
        people.inside = people.rng.permutation(people.inside.size) < half
        shown = publish(people.cells(), number).at(roots)
        file = Counted(shown.codes, shown.counts, sizes)
        sides = (people.codes[roots][:, side][:, :most] for side in (people.inside, ~people.inside))
        return View(file, Statistics(everybody, half), shown.noisy), tuple(sides)

    report = Report(names, fewest)
    shadow = [seen(1 + number) for number in range(shadows)]
    learnt = [_learnt(shadow, variable) for variable in (*range(len(sizes)), None)]
    for number in range(targets):
        view, sides = seen(101 + number)
        for variable, model in zip((*range(len(sizes)), None), learnt, strict=True):
            for side, people in enumerate(sides):
                _judge(report, view, variable, model, people, side)
    return report


def root_places(people: People) -> list[int]:
    """The places of variables that are no function of another one, as anybody sees in the statistics."""
    codes = people.codes.astype(np.int64)

    def decides(one: int, other: int) -> bool:
        pairs = np.unique(codes[one] * (1 << 32) + codes[other])
        return one != other and pairs.size == np.unique(codes[one]).size

    every = range(len(codes))
    return [place for place in every if not any(decides(other, place) for other in every)]


Seen = tuple[View, tuple[Array, ...]]
"""A release as readers see it, and people in the file and out of it."""


def _parts(people: Array, size: int) -> Iterator[Array]:
    step, most = max(1, _AT_ONCE // size), people.shape[1] * _CATEGORIES // max(size, _CATEGORIES)
    for begin in range(0, most, step):
        yield people[:, begin : min(begin + step, most)]


def _learnt(shadow: Sequence[Seen], variable: int | None) -> Trees:
    """Learn which categories are true of people in shadow files, or who is in them."""
    lines: list[Array] = []
    true: list[Array] = []
    rng = np.random.default_rng(1)
    for view, sides in shadow:
        size = 1 if variable is None else view.file.sizes[variable]
        for side, people in enumerate(sides if variable is None else sides[:1]):
            for part in _parts(people, size):
                features = view.features(variable, part)[0]
                if variable is None:
                    lines.append(features[:, 0])
                    true.append(np.full(features.shape[0], 1.0 - side))
                    continue
                rank = rng.random(features.shape[:2])
                rank[np.arange(rank.shape[0]), part[variable]] = -1.0
                chosen = np.argsort(rank, axis=1)[:, : 1 + _OTHERS]
                lines += [
                    np.take_along_axis(features, chosen[:, :, None], 1).reshape(
                        -1, features.shape[2]
                    )
                ]
                true.append(np.tile(np.arange(chosen.shape[1]) == 0, chosen.shape[0]).astype(float))
    return Trees(np.concatenate(lines), np.concatenate(true))


def _judge(
    report: Report, view: View, variable: int | None, model: Trees, people: Array, side: int
) -> None:
    """Add to a report what every reader says of people on one side."""
    size = 1 if variable is None else view.file.sizes[variable]
    for part in _parts(people, size):
        features, said = view.features(variable, part)
        flat = features.reshape(-1, features.shape[2])
        said["learnt"] = model.score(flat).reshape(features.shape[:2])
        if variable is None:
            for reader in said.keys() - {"no file"}:
                report.members.setdefault(reader, ([], []))[side].append(said[reader][:, 0])
            continue
        bins = np.searchsorted(BINS, view.known.expected(variable, part), side="right") - 1
        for reader, score in said.items():
            right = score.argmax(axis=1) == part[variable]
            for number, least in enumerate(BINS):
                key = report.variables[variable], least, reader
                one = report.gains.setdefault(key, Judged())
                one.people[side] += int((bins == number).sum())
                one.right[side] += int(right[bins == number].sum())
