"""The budget of a population: what releases with a proof may cost together, and what they have cost.

A ledger is a chained book, whose every line is entered into the book of releases too. A charge is written and
synced before any noise is drawn, and stays whatever happens afterwards: a crash in between leaves it spent. The
file is its own because it is locked while noise is drawn. Sums are exact fractions. The budget belongs to
people, not to a file of them: datasets that name the same population spend from the same ledger.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

from lustrum.ledger.acts import enter_act, heads_in
from lustrum.ledger.chain import Chain, ChangedLedgerError
from lustrum.ledger.releases import ReleaseBook
from lustrum.model import Dataset, DatasetError, InputError
from lustrum.model.dataset import DATASET_NAME
from lustrum.policy import Policy
from lustrum.protect.privacy import BudgetSpentError
from lustrum.protect.proven.domain import Domain
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.plan import MeasurementPlan, few_people
from lustrum.protect.proven.sums import ProvenSums
from lustrum.runtime.data_folder import BUDGETS

NEIGHBOURS = "replace-one-record"
"""What every rho of a ledger is about; costs for other neighbours are converted before they are added."""


def exact_rho(text: str) -> Fraction:
    """A cost as it was written, to the last digit.

    >>> exact_rho("2.56"), exact_rho("1/3")
    (Fraction(64, 25), Fraction(1, 3))
    """
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9}|/0*[1-9][0-9]{0,8})?", text) is None:
        raise InputError(f"A cost is a number such as 2.56 or 64/25, not {text!r}.")
    return Fraction(text)


@dataclass(frozen=True)
class LedgerEntry:
    """One line: a limit, a charge, its end, or a statement of the agency."""

    what: str
    rho: Fraction
    dataset: str
    said: str
    digest: str


class BudgetLedger:
    """The ledger of one population in a data folder."""

    def __init__(self, folder: Path, population: str) -> None:
        self.population = population
        if not DATASET_NAME.match(population):
            raise InputError(
                f"A population is one word of lower-case letters, digits, '-' and '_', not {population!r}."
            )
        self._root, self._name = folder, f"{BUDGETS}/{population}.jsonl"
        self.path = folder / self._name
        self._chain = Chain(self.path)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """All lines; an error if one was changed or taken out. A last line that was cut short is left out."""
        entries = []
        for number, line in enumerate(self._chain.entries(), start=1):
            try:
                raw = line.said
                cost, neighbours = Fraction(raw["rho"]), raw["neighbours"]
                entry = LedgerEntry(raw["what"], cost, raw["dataset"], raw["said"], line.digest)
            except (ValueError, KeyError, TypeError, ZeroDivisionError):
                neighbours = None
            if neighbours != NEIGHBOURS:
                raise ChangedLedgerError(
                    f"{self.path}, line {number}: the ledger was changed; a cost is for {NEIGHBOURS}."
                )
            entries.append(entry)
        return tuple(entries)

    @property
    def limit(self) -> Fraction:
        """What may be spent in all: the last limit that was stated, 0 without any."""
        limits = [entry.rho for entry in self.entries() if entry.what == "limit"]
        return limits[-1] if limits else Fraction(0)

    @property
    def spent(self) -> Fraction:
        """What all charges cost together, those that came to no end among them."""
        costs = (e.rho for e in self.entries() if e.what in ("spent", "stated"))
        return sum(costs, Fraction(0))

    @property
    def left(self) -> Fraction:
        return self.limit - self.spent

    @property
    def head(self) -> str:
        return self._chain.head

    def set_limit(self, rho: Fraction, said: str) -> None:
        """State what may be spent in all; it may not lie below what was spent."""
        with self._alone() as add:
            if rho <= 0 or rho < self.spent:
                raise InputError(
                    "A limit lies above 0 and not below what was spent; ask for a larger one."
                )
            add("limit", rho, "", said)

    def state_spent(self, rho: Fraction, said: str, covers: Sequence[str] = ()) -> None:
        """The agency states a cost that the ledger does not hold, such as that of a release after a backup.

        ``covers`` are the digests of last lines that releases state and the ledger does not hold.
        """
        with self._alone() as add:
            if rho <= 0:
                raise InputError("What was spent lies above 0.")
            add("stated", rho, "", " ".join((said, *covers)))

    def measured(self) -> dict[str, str]:
        """The digests of all noisy tables that were paid for, each with that of its line."""
        return {entry.said: entry.digest for entry in self.entries() if entry.what == "done"}

    def releases(self) -> set[str]:
        return {entry.said for entry in self.entries() if entry.what == "released"}

    def released(self, dataset: str, digest: str) -> None:
        """Enter that a bundle was made; one that was made again is entered once."""
        with self._alone() as add:
            if digest not in self.releases():
                add("released", Fraction(0), dataset, digest)

    @contextmanager
    def charge(self, rho: Fraction, dataset: str, heads: Sequence[str] = ()) -> Iterator[Charge]:
        """Enter a charge, or refuse it, and only then let the caller draw noise; ``heads`` are digests of last
        lines that bundles of these people state. Others wait until it has come to an end."""
        with self._alone() as add:
            stated = [entry.said.split() for entry in self.entries() if entry.what == "stated"]
            try:
                self._chain.verify(*{*heads, *self._recorded()}.difference(*stated))
            except ChangedLedgerError:
                raise DatasetError(
                    f"{self.path} is older than a release of {self.population!r}, and does not hold what was "
                    "spent since. Bring back the newer ledger, or state what was spent."
                ) from None
            if rho <= 0 or rho > self.left:
                raise BudgetSpentError(
                    f"The release costs rho {float(rho):g}, and {float(self.left):g} of {float(self.limit):g} "
                    f"is left for {self.population!r}."
                )
            add("spent", rho, dataset, "")
            yield Charge(add, rho, dataset)

    def _recorded(self) -> set[str]:
        """The lines that the book of releases knows of."""
        if not ReleaseBook.exists(self._root):
            return set()
        book = ReleaseBook(self._root)
        try:
            return heads_in(book, self.population).get(self._name, set())
        finally:
            book.close()

    @contextmanager
    def _alone(self) -> Iterator[Callable[[str, Fraction, str, str], None]]:
        """What adds lines; a second process is refused, so that nobody waits for a long measurement."""
        try:
            with self._chain.alone(wait=False) as add:

                def add_line(what: str, rho: Fraction, dataset: str, said: str) -> None:
                    self.entries()  # nothing follows a changed line
                    raw: dict[str, Any] = {"what": what, "rho": str(rho)}
                    raw["neighbours"] = NEIGHBOURS
                    head = add(raw | {"dataset": dataset, "said": said})
                    # What somebody said may hold a name; of what was made it is the digest.
                    digest = said if what in ("done", "released") else ""
                    heads = {self._name: head}
                    enter_act(self._root, "budget", self.population, digest, heads, **raw)

                yield add_line
        except BlockingIOError:
            raise DatasetError(
                f"Another process spends from the budget of {self.population!r}; wait until it is done."
            ) from None


@dataclass(frozen=True)
class Charge:
    """A charge that was entered; it ends when what was measured stands on the disk."""

    add: Callable[[str, Fraction, str, str], None]
    rho: Fraction
    dataset: str

    def done(self, digest: str) -> None:
        """Enter that the tables with this digest were written."""
        self.add("done", self.rho, self.dataset, digest)


# What releases with a proof would cost and how far their numbers would be off: from public facts alone.
#
# The description and the policy decide; no record is opened, and nothing is spent.


@dataclass(frozen=True)
class PlannedTable:
    """The typical error of the cells of one table of counts, or of the sums of a measure in its unit."""

    measure: str | None
    shown: tuple[str, ...]
    finest: bool
    error: float


@dataclass(frozen=True)
class PlannedReleases:
    """What each of some releases costs, and what it would be worth.

    ``clipped`` says for each measure how far the number of clipped contributions would typically be off, and
    ``few`` warns of too few people.
    """

    rho: Fraction
    tables: tuple[PlannedTable, ...]
    clipped: dict[str, float]
    few: str | None

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        policy: Policy | None = None,
        *,
        rho: Fraction | None = None,
        releases: int = 1,
        people: int | None = None,
    ) -> PlannedReleases:
        """Plan what a policy asks for, or people alone. ``rho`` is what all releases may cost together; counts
        and sums have the parts of it that they have in the policy, which it replaces."""
        if releases < 1:
            raise InputError("There is at least one release to be planned.")
        method, sums = _methods(policy)
        asked = method.exact_rho + (0 if sums is None else sums.exact_rho)
        part = (asked if rho is None else rho) / (asked * releases)
        domain = Domain.of(dataset)
        plan = replace(method, rho=float(method.exact_rho * part)).plan(domain)
        tables = list(_tables(domain, plan, None, 1.0))
        clipped = {}
        if sums is not None:
            bounds = sums.bounds_of(dataset, people or 0)
            plan_of_one, counting = replace(sums, rho=float(sums.exact_rho * part)).shares(domain)
            for name, bound in bounds.items():
                unit = bound / 10 ** dataset.measure(name).decimals
                tables += _tables(domain, plan_of_one, name, unit)
                clipped[name] = math.sqrt(1 / (math.pi * float(counting)))
        few = None if people is None else few_people(domain, plan, people)
        return cls(asked * part, tuple(tables), clipped, few)


def _methods(policy: Policy | None) -> tuple[ProvenPopulation, ProvenSums | None]:
    if policy is None:
        return ProvenPopulation(), None
    sums = policy.magnitudes
    if not isinstance(policy.population, ProvenPopulation):
        raise InputError(
            "The policy asks for no population with a proof, whose errors could be planned; begin with "
            "'lustrum policy preset proven'."
        )
    return policy.population, sums if isinstance(sums, ProvenSums) else None


def _tables(
    domain: Domain, plan: MeasurementPlan, measure: str | None, unit: float
) -> Iterator[PlannedTable]:
    """All tables at all levels of up to as many variables as are measured."""
    shown = [axis.levels(domain.dataset) for axis in domain.axes]
    for subset in domain.subsets(max(map(len, plan.shares))):
        for chosen in product(*(shown[axis].items() for axis in subset)):
            groups = {axis: sizes for axis, (_, sizes) in zip(subset, chosen, strict=True)}
            yield PlannedTable(
                measure,
                tuple(name for name, _ in chosen),
                all(len(groups[axis]) == len(domain.axes[axis]) for axis in subset),
                unit * plan.typical_error(subset, groups, total_known=measure is None),
            )
