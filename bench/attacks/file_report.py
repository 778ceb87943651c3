"""Attacks on public files: attributes read off rows, and a joint attack on small areas.

Each is also made where it must succeed: on a file without siblings in sparse rows, and with exact tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attacks.joint import Joint, joint_attack
from lustrum.model.finest import FinestCells
from lustrum.protect.population.attributes import AttributeRisk, attribute_risks
from lustrum.protect.population.method import ProtectedPopulation

__all__ = ["FileReport", "JointReport", "attack_areas", "attack_file"]

KEY = b"a key for attacks of 32 bytes..."
_AREAS = 3
_FEWEST = 200


def keys(number: int) -> list[bytes]:
    """So many keys: what holds under one may be luck."""
    return [KEY, *(hashlib.sha256(b"key %d" % n).digest() for n in range(1, number))]


@dataclass(frozen=True)
class FileReport:
    """What rows of the file name, under each key, and what the same attack finds where it must succeed."""

    attributes: tuple[tuple[AttributeRisk, ...], ...]
    attributes_without: tuple[AttributeRisk, ...]

    @property
    def holds(self) -> bool:
        """Nothing is found in the file, and the attack works."""
        found = any(risk.exceeds for risks in self.attributes for risk in risks)
        return not found and any(risk.exceeds for risk in self.attributes_without)

    def rows(self) -> Iterator[tuple[str, str]]:
        """The report, line by line."""
        for control, *risks in zip(self.attributes_without, *self.attributes, strict=True):
            if min(risk.people for risk in risks) >= _FEWEST:
                said = ["/".join(f"{risk.people:,}" for risk in risks)]
                said += ["/".join(f"{100 * r.named:.0f}" for r in risks)]
                said += ["/".join(f"{100 * r.guessed:.0f}" for r in risks)]
                yield (
                    f"{control.variable}, rows with {control.at_least} people or more",
                    f"{said[0]} people: named {said[1]} %, guessed {said[2]} %; without "
                    f"siblings named {control.named:.0%} of {control.people:,}",
                )
        most = max(
            (r for risks in self.attributes for r in risks if r.judged), key=lambda r: r.named
        )
        yield (
            "highest rate where a guess has less than 40 %",
            f"{most.named:.1%} of {most.people:,} people ({most.variable}; guessed {most.guessed:.1%})",
        )


@dataclass(frozen=True)
class JointReport:
    """What all tables of small areas tell together, and what exact ones would."""

    protected: Joint
    exact: Joint

    @property
    def holds(self) -> bool:
        """Nothing is found, and the attack works."""
        return self.exact.succeeds and not self.protected.succeeds

    def rows(self) -> Iterator[tuple[str, str]]:
        """The report, line by line."""
        for label, j in (("protected", self.protected), ("exact tables", self.exact)):
            yield (
                f"all tables of {_AREAS} small areas: {label}",
                f"{j.claims[95]} and {j.claims[99]} of {j.cells:,} cells named at 95 and 99 %, "
                f"{j.right[95]} and {j.right[99]} right, of {j.small} ones and twos "
                f"(by the prior {j.prior_claims[95]} and {j.prior_claims[99]}); "
                f"the true count of an occupied cell {100 * j.better:+.1f} points more "
                "probable than by the prior",
            )


def attack_file(true: FinestCells, shown: Sequence[FinestCells], base: int) -> FileReport:
    """Read attributes off the rows of a file, protected under one key or several."""
    old = ProtectedPopulation(base=base, sweeps=1, extra_tables=0, sparse_siblings=0)
    without = old.protect(true, KEY).cells
    found = tuple(attribute_risks(true, file, base) for file in shown)
    return FileReport(found, attribute_risks(true, without, base))


def attack_areas(
    true: FinestCells,
    shown: FinestCells,
    base: int,
    variable: str,
    fewest: int = _FEWEST,
    sweeps: int = 24_000,
) -> JointReport:
    """Attack the smallest areas with so many people by all tables together; all cells are laid out."""
    place = [v.name for v in true.dataset.variables].index(variable)
    people = np.bincount(true.codes[place], weights=true.counts)
    order = np.argsort(people, kind="stable")
    areas = [int(code) for code in order if people[code] >= fewest][: _AREAS + 1]
    return JointReport(
        *(
            joint_attack(true, shown, base, variable, areas, exact=exact, sweeps=sweeps)
            for exact in (False, True)
        )
    )
