"""Noisy tables: all that is ever known of the records after they were measured, and public if the agency likes.

With the plan, the scales of the noise and the neighbours that are hidden from each other, one file of JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from lustrum.model import Dataset, InputError
from lustrum.model.arrays import Ints
from lustrum.protect.proven.domain import Domain, Subset
from lustrum.protect.proven.plan import MeasurementPlan

NEIGHBOURS = "replace-one-record"
"""Datasets of the same size in which one person has another record."""
_FORMAT = "lustrum noisy tables 1"


@dataclass(frozen=True, eq=False, repr=False)
class NoisySums:
    """Tables of the sums of one measure with noise, of contributions from 0 to ``bound``, in its last decimal.

    ``clipped`` is, with noise of its own, how many contributions were outside.
    """

    bound: int
    plan: MeasurementPlan
    tables: Mapping[Subset, Ints]
    scales: Mapping[Subset, float]
    clipped: int
    clipped_scale: float
    clipped_rho: Fraction


@dataclass(frozen=True, eq=False, repr=False)
class NoisyTables:
    """Tables with noise, each with its share of rho and the scale of its noise; ``people`` is public."""

    domain: Domain
    plan: MeasurementPlan
    people: int
    tables: Mapping[Subset, Ints]
    scales: Mapping[Subset, float]
    made_with: Mapping[str, str]
    sums: Mapping[str, NoisySums] = field(default_factory=dict)

    @property
    def rho(self) -> Fraction:
        return self.plan.rho + sum(one.plan.rho + one.clipped_rho for one in self.sums.values())

    def to_bytes(self) -> bytes:
        """The file; cells that cannot exist are not in it."""
        sums = {
            name: {
                "bound": one.bound,
                "clipped": {
                    "rho": str(one.clipped_rho),
                    "scale": one.clipped_scale,
                    "value": one.clipped,
                },
                "tables": self._written(one),
            }
            for name, one in self.sums.items()
        }
        mapping = {
            "format": _FORMAT,
            "dataset": self.domain.dataset.name,
            "neighbours": NEIGHBOURS,
            "rho": str(self.rho),
            "people": self.people,
            "made_with": dict(self.made_with),
            "tables": self._written(self),
            **({"sums": sums} if sums else {}),
        }
        return json.dumps(mapping, separators=(",", ":")).encode() + b"\n"

    def _written(self, noisy: NoisyTables | NoisySums) -> list[dict[str, Any]]:
        names = [v.name for v in self.domain.dataset.variables]
        return [
            {
                "axes": [[names[v] for v in self.domain.axes[axis].variables] for axis in subset],
                "rho": str(share),
                "scale": noisy.scales[subset],
                "values": noisy.tables[subset][self.domain.possible_table(subset)].tolist(),
            }
            for subset, share in noisy.plan.shares.items()
        ]

    @classmethod
    def from_bytes(cls, data: bytes, dataset: Dataset) -> NoisyTables:
        """Read the file of a dataset; an error says if it belongs to another description or was changed."""
        domain = Domain.of(dataset)
        try:
            mapping = json.loads(data)
            if (mapping["format"], mapping["neighbours"]) != (_FORMAT, NEIGHBOURS):
                raise ValueError(mapping["format"])
            sums = {
                str(name): NoisySums(
                    int(one["bound"]),
                    *_read(domain, one["tables"]),
                    int(one["clipped"]["value"]),
                    float(one["clipped"]["scale"]),
                    Fraction(one["clipped"]["rho"]),
                )
                for name, one in mapping.get("sums", {}).items()
            }
            plan, tables, scales = _read(domain, mapping["tables"])
            people, made_with = int(mapping["people"]), mapping["made_with"]
            noisy = cls(domain, plan, people, tables, scales, made_with, sums)
            if mapping["dataset"] != dataset.name or noisy.rho != Fraction(mapping["rho"]):
                raise ValueError(mapping["dataset"])
            return noisy
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InputError(
                f"This is no file of noisy tables of the dataset {dataset.name!r} as it is described now; use "
                "the description with which they were measured."
            ) from None

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.to_bytes()).hexdigest()


def _read(
    domain: Domain, listed: Any
) -> tuple[MeasurementPlan, dict[Subset, Ints], dict[Subset, float]]:
    tables, shares, scales = {}, {}, {}
    for one in listed:
        subset = _subset(domain, one["axes"])
        possible = domain.possible_table(subset)
        table = np.zeros(possible.shape, dtype=np.int64)
        table[possible] = np.array(one["values"], dtype=np.int64)
        tables[subset], shares[subset] = table, Fraction(one["rho"])
        scales[subset] = float(one["scale"])
    return MeasurementPlan(domain.sizes, shares), tables, scales


def _subset(domain: Domain, axes: Any) -> Subset:
    known = {
        tuple(domain.dataset.variables[v].name for v in axis.variables): place
        for place, axis in enumerate(domain.axes)
    }
    return tuple(known[tuple(names)] for names in axes)
