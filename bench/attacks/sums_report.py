"""All attacks on the sums of a register and on a survey, against a running server with known truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from attacks.asker import HttpAsker
from attacks.beside_sums import Beside, beside
from attacks.register import Register
from attacks.respondents import PlantedWeight, Weighed, standard_errors, weights
from attacks.sums.insiders import Grown, Insiders, PlantedSums, Tables, growth, insiders
from lustrum.model.records import Records
from lustrum.policy import read_policy
from lustrum.protect.magnitudes.method import ProtectedMagnitudes
from lustrum.public.bundle import BundleNumbers, read_bundle
from lustrum.public.bundle.files import bundle_digest
from lustrum.publish.bundles.memory import memory_path, read_memory
from lustrum.tabulate import Store, records_of

__all__ = ["SumsReport", "SurveyReport", "attack_register", "attack_survey"]

MEASURE, BEFORE, PER = "turnover", "turnover_before", "employees"


@dataclass(frozen=True)
class SumsReport:
    """What was found on the sums of one register."""

    existence: str
    insiders: Insiders
    growth: Grown
    beside: Beside
    planted: dict[str, bool]

    @property
    def disclosures(self) -> int:
        """Certain disclosures within p percent, and cells whose emptiness sums give away."""
        return self.insiders.disclosures + self.growth.certain + self.beside.telling

    @property
    def holds(self) -> bool:
        """Whether nothing was found that must not be, and every planted leak was."""
        near = self.insiders.under_protected if self.existence == "public" else 0
        sharper = self.beside.sharper + self.insiders.disagree
        return not (self.disclosures or near or sharper) and all(self.planted.values())

    def rows(self) -> Iterator[tuple[str, str]]:
        """The report, line by line."""
        i, g, b = self.insiders, self.growth, self.beside
        yield (
            "insiders over all tables at all levels, and differences of nested cells",
            f"{i.sets:,} sets, {i.sensitive:,} sensitive by the p% rule; {i.under_protected:,} in which the "
            f"second largest comes nearer than the rule allows; {i.disagree} cells disagree with finer ones",
        )
        for kind, number in i.certain.items():
            yield kind, f"{number:,} certain within p percent"
        yield (
            "wrong claims of insiders; all others with the direction",
            f"{i.claims_wrong:,}; {i.with_direction:,} certain (small values)",
        )
        yield (
            "growth of single contributors",
            f"{g.contributors:,}; {g.certain} certain within p percent, {g.with_direction} with the direction",
        )
        yield (
            "means, ratios, growth and shares beside sums",
            f"{b.statistics:,} numbers; {b.sharper} say more than sums and counts",
        )
        yield (
            "emptiness by sums beside counts",
            f"{b.cells:,} cells; {b.telling:,} tell more than the bounds of counts say, {b.right:,} rightly",
        )


def attack_register(address: str, data: Path) -> SumsReport:
    """Attack the demo register that a server shows."""
    asker = HttpAsker(address, "businesses")
    records = records_of(Store(data).open("businesses"))
    digest = bundle_digest(data / "bundles" / "businesses")
    assert digest is not None
    memory = read_memory(memory_path(data / "reports" / "businesses", digest)).sums
    assert memory is not None
    register = Register(records, memory)
    spec = read_policy(data / "policies" / "businesses.toml").magnitudes
    assert isinstance(spec, ProtectedMagnitudes)
    now, before = (Tables(asker, register, m) for m in (MEASURE, BEFORE))
    found = insiders(now, spec.factors, spec.share)
    grown = growth(now, before, spec.factors, spec.share)
    told = beside(asker, register, MEASURE, PER, BEFORE)
    return SumsReport(spec.existence, found, grown, told, _planted(asker, register, spec, found))


def _planted(
    asker: HttpAsker, register: Register, spec: ProtectedMagnitudes, clean: Insiders
) -> dict[str, bool]:
    """Whether leaks planted on purpose are found."""
    true, shown = register.values(MEASURE)
    finest = next(register.tables())
    cell = register.cells(finest)
    own = register.ranked(cell, int(cell.max()) + 1, MEASURE)
    # Contributors who are alone in a finest cell, which shows their protected value and nothing else.
    published = Tables(asker, register, MEASURE).cells(finest)
    alone = np.flatnonzero((own.contributors[cell] == 1) & (published[cell] == shown))
    first, second = alone[np.argsort(-true[alone])][:2]
    exact = np.where(cell == cell[first], true - shown, 0)
    left_out = np.zeros(true.size, np.int64)
    left_out[second] = true[second] - shown[second]
    found = {}
    for name, change in (
        ("the exact sum of a sensitive cell", exact),
        ("the noise of one record left out", left_out),
    ):
        tables = Tables(PlantedSums(asker, register, MEASURE, change), register, MEASURE)
        seen = insiders(tables, spec.factors, spec.share)
        found[name] = seen.under_protected > clean.under_protected
    return found


@dataclass(frozen=True)
class SurveyReport:
    """What was found on a survey."""

    weighed: Weighed
    errors: tuple[int, int]
    planted: bool

    @property
    def holds(self) -> bool:
        """Whether nothing was found that must not be, and the planted weight was."""
        w = self.weighed
        return not (w.exact or w.fractions or w.outside_file or self.errors[1]) and self.planted

    def rows(self) -> Iterator[tuple[str, str]]:
        """The report, line by line."""
        w = self.weighed
        yield (
            "weights of single respondents",
            f"{w.tables} tables, {w.single:,} cells with one respondent; {w.exact} show its weight, {w.near:,} "
            f"are within one percent ({w.near_by_chance:,.0f} if respondents had changed places); "
            f"{w.fractions} numbers with more decimals than public weights",
        )
        yield (
            "weighted counts and standard errors beside the public file",
            f"{w.compared:,} counts, {w.outside_file} do not follow from it; {self.errors[0]:,} standard "
            f"errors, {self.errors[1]} do not",
        )


def attack_survey(address: str, data: Path) -> SurveyReport:
    """Attack the demo survey that a server shows."""
    asker = HttpAsker(address, "survey")
    records = records_of(Store(data).open("survey"))
    numbers = BundleNumbers(read_bundle(data / "bundles" / "survey"))
    found = weights(asker, records, numbers, "weight")
    planted = PlantedWeight(asker, records, "weight", _sparse(records))
    again = weights(planted, records, numbers, "weight")
    errors = standard_errors(asker, numbers, "weight")
    return SurveyReport(found, errors, again.exact > 0)


def _sparse(records: Records) -> tuple[str, ...]:
    """The three variables whose table has most cells with one respondent."""

    def single(names: tuple[str, ...]) -> int:
        codes = np.stack([records.codes[n] for n in names])
        return int((np.unique(codes, axis=1, return_counts=True)[1] == 1).sum())

    return max(combinations([v.name for v in records.dataset.variables], 3), key=single)
