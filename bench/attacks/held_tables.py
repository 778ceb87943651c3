"""Attacks on all tables that readers hold of a small town: exact over its atoms, and by nothing of the audit.

Everything that was shown is one linear structure over the combinations that can exist: a shown number bounds a
sum of atoms, and of two populations of which one lies in the other, with different numbers, the larger has a
person more. Linear programs bound each small population. Beside this, least squares over the same structure
average the noise out over all splits: a count is named where they leave 99 % to one number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from typing import Any

import highspy
import numpy as np
import pyarrow as pa

from attacks.asker import TOTAL, Answer, Asker, question
from lustrum.model import Dataset
from lustrum.model.arrays import Floats, Mask

__all__ = ["Claims", "HeldTables", "inhabitants", "learnt", "questions", "town"]

AREAS, AGES, JOBS, STATES = 4, 4, 3, 3
_BY_CHANCE = 0.25  # how often different people show one number
_SURE = 2.576  # standard deviations on both sides that leave one per cent


def town() -> Dataset:
    """Seven variables, of which two say again what others say: regions of areas, and work of jobs."""
    areas = [f"{1 + area // 2}{'ab'[area % 2]}" for area in range(AREAS)]
    grown = [str(age) for age in range(1, AGES)]

    def never(**where: Sequence[str]) -> dict[str, Any]:
        return {"reason": "It cannot be.", "where": {n: list(c) for n, c in where.items()}}

    groups = [{"code": "C", "members": ["0"]}, {"code": "A", "members": grown}]
    levels = [{"name": "grown", "groups": groups}]
    return Dataset.from_mapping(
        {
            "dataset": {"name": "town", "record_id": "id", "units": "people"},
            "variables": [
                {
                    "name": "age",
                    "codes": ["0", *grown],
                    "hierarchies": [{"name": "g", "levels": levels}],
                },
                {"name": "area", "codes": areas},
                {"name": "job", "codes": ["none", "a", "b"]},
                {"name": "region", "codes": ["1", "2"]},
                {"name": "sex", "codes": ["f", "m"]},
                {"name": "state", "codes": ["x", "y", "z"]},
                {"name": "work", "codes": ["no", "yes"]},
            ],
            "structural_zeros": [
                never(region=["1"], area=areas[2:]),
                never(region=["2"], area=areas[:2]),
                never(work=["no"], job=["a", "b"]),
                never(work=["yes"], job=["none"]),
                never(age=["0"], job=["a", "b"]),
            ],
        }
    )


def inhabitants(count: int, seed: int) -> pa.Table:
    """People of the town; some kinds are few."""
    rng, dataset = np.random.default_rng(seed), town()
    area = rng.choice(AREAS, count, p=[0.4, 0.15, 0.35, 0.1])
    age = rng.choice(AGES, count, p=[0.2, 0.35, 0.37, 0.08])
    job = np.where(age == 0, 0, rng.choice(JOBS, count, p=[0.4, 0.55, 0.05]))
    sex, state = rng.integers(0, 2, count), rng.choice(STATES, count, p=[0.93, 0.05, 0.02])
    drawn = {"age": age, "area": area, "job": job, "region": area // 2, "sex": sex, "state": state}
    drawn["work"] = (job > 0).astype(int)
    columns = {n: np.array(dataset.variable(n).codes)[c] for n, c in drawn.items()}
    return pa.table({"id": np.arange(count), **columns})


def questions(dataset: Dataset) -> dict[str, list[dict[str, Any]]]:
    """What an attacker asks, by kind: a lattice, splits within filters, trackers by other words."""
    names = [v.name for v in dataset.variables]
    tables = [c for size in (1, 2, 3) for c in combinations(names, size)]
    within = [
        question(by, {name: [code]})
        for name in ("sex", "region", "work")
        for code in dataset.variable(name).codes
        for by in tables
        if name not in by and len(by) > 1
    ]
    # The same people by other words: regions by areas, work by jobs, and nothing by fewer variables.
    pairs = (("region", "area"), ("work", "job"))
    trackers = [
        question((*rest, one))
        for pair in pairs
        for rest in combinations([n for n in names if n not in pair], 2)
        for one in pair
    ]
    levels = [question(("age:grown", *by)) for by in tables if "age" not in by and len(by) < 3]
    return {
        "lattice": [question(by) for by in tables],
        "splits": within,
        "trackers": trackers,
        "levels": levels,
        "cloning": [question(by, totals=True) for by in tables if len(by) > 1],
    }


@dataclass(frozen=True)
class Claims:
    """Ones and twos that are certain, or one of two values, wrong claims, and what averages name."""

    certain: int = 0
    narrow: int = 0
    wrong: int = 0
    named: int = 0
    named_wrong: int = 0
    two_numbers: int = 0
    """Populations that were shown with more than one number."""


@dataclass
class HeldTables:
    """All that was shown, as sums of atoms."""

    dataset: Dataset
    counts: Floats
    """The true count of each atom, for judging; no attack sees it."""
    variance: float
    small: int = 2
    shown: dict[bytes, tuple[float, float, float]] = field(default_factory=dict)
    """Of each population the number with its bounds."""
    led: dict[bytes, set[int]] = field(default_factory=dict)
    """And the questions that showed it."""
    two_numbers: int = 0
    behind: dict[int, int] = field(default_factory=dict)
    """How often each question led to a certain count."""

    @cached_property
    def atoms(self) -> Any:
        """All combinations of codes that can exist."""
        sizes = [range(len(v.codes)) for v in self.dataset.variables]
        every = np.array(list(product(*sizes)), dtype=np.int64).T
        names = [v.name for v in self.dataset.variables]
        open_ = np.ones(every.shape[1], dtype=bool)
        for zero in self.dataset.structural_zeros:
            hit = np.ones(every.shape[1], dtype=bool)
            for name, codes in zero.where.items():
                hit &= np.isin(every[names.index(name)], sorted(codes))
            open_ &= ~hit
        return every[:, open_]

    def gather(self, asker: Asker, asked: Sequence[dict[str, Any]]) -> None:
        """Ask, and keep every number that is shown."""
        for number, one in enumerate(asked):
            answer = asker.ask(one)
            if answer is not None:
                self.add(one, answer, number)

    def add(self, asked: dict[str, Any], answer: Answer, number: int = 0) -> None:
        """Take in one table."""
        inside = self._where(asked)
        masks = [
            [self._members(name, code) for code in codes]
            for name, codes in zip(answer.variables, answer.codes, strict=True)
        ]
        for place in np.ndindex(*answer.shown.shape):
            people = inside.copy()
            for at, over in enumerate(place):
                people &= masks[at][over]
            if np.isnan(answer.shown[place]) or not people.any():
                continue
            key = people.tobytes()
            found = float(answer.shown[place]), float(answer.low[place]), float(answer.high[place])
            self.two_numbers += self.shown.setdefault(key, found) != found
            self.led.setdefault(key, set()).add(number)

    def _where(self, asked: dict[str, Any]) -> Mask:
        inside = np.ones(self.atoms.shape[1], dtype=bool)
        for name, codes in asked.get("where", {}).items():
            inside &= np.logical_or.reduce([self._members(name, code) for code in codes])
        return inside

    def _members(self, name: str, code: str) -> Mask:
        names = [v.name for v in self.dataset.variables]
        if code == TOTAL:
            return np.ones(self.atoms.shape[1], dtype=bool)
        variable = self.dataset.variable(name)
        return np.isin(self.atoms[names.index(name)], sorted(variable.category(code).member_set))

    def claims(self) -> Claims:
        """What all attacks together say of small populations, held against the truth."""
        if not self.shown:
            return Claims()
        people, shown, low, high, targets, true = self._structure()
        bounded = self._bounded(people, shown, low, high, targets, true)
        return Claims(*bounded, *self.averaged(), self.two_numbers)

    def averaged(self) -> tuple[int, int]:
        """How many ones and twos averages over everything name, rightly and wrongly."""
        people, shown, _, _, targets, true = self._structure()
        return self._averaged(people, shown, targets, true)

    def _structure(self) -> tuple[Mask, Floats, Floats, Floats, Mask, Floats]:
        people = np.array([np.frombuffer(key, dtype=bool) for key in self.shown])
        shown, low, high = np.array(list(self.shown.values())).T
        targets = np.array(list(self._targets(people)))
        return people, shown, low, high, targets, targets @ self.counts

    def _targets(self, people: Mask) -> Iterator[Mask]:
        """Shown populations, and what two of them leave of each other."""
        seen = set()
        weights = people.sum(axis=1)
        order = np.argsort(-weights, kind="stable")
        for one in people:
            seen.add(one.tobytes())
            yield one
        number = people.astype(np.float32)
        common = number @ number.T
        for over in order:
            for at in np.flatnonzero((common[over] == weights) & (weights < weights[over])):
                rest = people[over] & ~people[at]
                # Others are too many to try: a difference of few people is what matters.
                if float(rest @ self.counts) <= 3 * self.small and rest.tobytes() not in seen:
                    seen.add(rest.tobytes())
                    yield rest

    def _bounded(
        self, people: Mask, shown: Floats, low: Floats, high: Floats, targets: Mask, true: Floats
    ) -> tuple[int, int, int]:
        model = highspy.Highs()
        model.silent()
        for _ in range(people.shape[1]):
            model.addVar(0.0, highspy.kHighsInf)
        for row, least, most in zip(people, low, high, strict=True):
            at = np.flatnonzero(row)
            model.addRow(least, min(most, highspy.kHighsInf), len(at), at, np.ones(len(at)))
        number = people.astype(np.float32)
        common, weights = number @ number.T, people.sum(axis=1)
        nested = (common == weights[None, :]) & (shown[:, None] != shown)
        for over, at in np.argwhere(nested):
            if low[over] - high[at] < 1:  # otherwise the bounds say so already
                rest = np.flatnonzero(people[over] & ~people[at])
                model.addRow(1.0, highspy.kHighsInf, len(rest), rest, np.ones(len(rest)))
        certain = narrow = wrong = 0
        keys = list(self.shown)
        for target, count in zip(targets, true, strict=True):
            if not 1 <= count <= self.small:
                continue
            ends, rows = [], set[int]()
            for sign in (-1.0, 1.0):
                for column in np.flatnonzero(target):
                    model.changeColCost(int(column), sign)
                model.run()
                value = sign * model.getInfo().objective_function_value
                ends.append(np.floor(value + 1e-6) if sign < 0 else np.ceil(value - 1e-6))
                duals = np.array(model.getSolution().row_dual)[: len(keys)]
                rows |= set(np.flatnonzero(np.abs(duals) > 1e-9).tolist())
                if ends[0] > count + 1:
                    break
            for column in np.flatnonzero(target):
                model.changeColCost(int(column), 0.0)
            high, low_end = ends[0], ends[-1] if len(ends) > 1 else 0
            wrong += high < count or low_end > count
            certain += bool(high == low_end)
            narrow += bool(high - low_end == 1)
            if high - low_end <= 1:
                for asked in {one for row in rows for one in self.led[keys[row]]}:
                    self.behind[asked] = self.behind.get(asked, 0) + 1
        return certain, narrow, int(wrong)

    def _averaged(
        self, people: Mask, shown: Floats, targets: Mask, true: Floats
    ) -> tuple[int, int]:
        """Counts that least squares leave one number of: the prior knows the shares of each variable."""
        total = self.counts.sum()
        mean = np.full(people.shape[1], total)
        seen: set[str] = set()
        for at, variable in enumerate(self.dataset.variables):
            # What others say already is no share of its own.
            if variable.name not in ("region", "work"):
                codes = self.atoms[at]
                mean *= np.bincount(codes, self.counts)[codes] / total
                seen.add(variable.name)
        spread = mean + mean**2
        square = people.astype(float)
        precision = np.diag(1 / np.maximum(spread, 1e-6)) + square.T @ square / self.variance
        # Equal numbers of two populations say that likely nobody is between them.
        number, weights = people.astype(np.float32), people.sum(axis=1)
        equal = (shown[:, None] == shown) & (shown > 0) & (weights[None, :] < weights[:, None])
        for over, at in np.argwhere(equal & (number @ number.T == weights[None, :])):
            rest = np.flatnonzero(people[over] & ~people[at])
            if mean[rest].sum() < 1:
                precision[np.ix_(rest, rest)] += 1 / (_BY_CHANCE * mean[rest].sum())
        covariance = np.linalg.inv(precision)
        found = covariance @ (mean / np.maximum(spread, 1e-6) + square.T @ shown / self.variance)
        guess = targets @ found
        error = np.sqrt(np.maximum(((targets @ covariance) * targets).sum(axis=1), 0))
        nearest = np.rint(guess)
        sure = (np.abs(guess - nearest) + _SURE * error < 0.5) & (nearest >= 1)
        sure &= nearest <= self.small
        right = sure & (nearest == true)
        return int(right.sum()), int((sure & ~right).sum())


def learnt(asked: Sequence[dict[str, Any]], behind: dict[int, int]) -> list[dict[str, Any]]:
    """The questions that led to narrow counts under other keys first, the most telling before the others."""
    return [asked[at] for at in sorted(range(len(asked)), key=lambda at: -behind.get(at, 0))]
