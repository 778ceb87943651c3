"""Noisy tables: all that is ever known of the records after they were measured, and public if the agency likes.

With the plan, the scales of the noise and the neighbours that are hidden from each other, one file of JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
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
class NoisyTables:
    """Tables with noise, each with its share of rho and the scale of its noise; ``people`` is public."""

    domain: Domain
    plan: MeasurementPlan
    people: int
    tables: Mapping[Subset, Ints]
    scales: Mapping[Subset, float]
    made_with: Mapping[str, str]

    def to_bytes(self) -> bytes:
        """The file; cells that cannot exist are not in it."""
        names = [v.name for v in self.domain.dataset.variables]
        tables = [
            {
                "axes": [[names[v] for v in self.domain.axes[axis].variables] for axis in subset],
                "rho": str(share),
                "scale": self.scales[subset],
                "values": self.tables[subset][self.domain.possible_table(subset)].tolist(),
            }
            for subset, share in self.plan.shares.items()
        ]
        mapping = {
            "format": _FORMAT,
            "dataset": self.domain.dataset.name,
            "neighbours": NEIGHBOURS,
            "rho": str(self.plan.rho),
            "people": self.people,
            "made_with": dict(self.made_with),
            "tables": tables,
        }
        return json.dumps(mapping, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes, dataset: Dataset) -> NoisyTables:
        """Read the file of a dataset; an error says if it belongs to another description or was changed."""
        domain = Domain.of(dataset)
        try:
            mapping = json.loads(data)
            if (mapping["format"], mapping["neighbours"]) != (_FORMAT, NEIGHBOURS):
                raise ValueError(mapping["format"])
            tables, shares, scales = {}, {}, {}
            for one in mapping["tables"]:
                subset = _subset(domain, one["axes"])
                possible = domain.possible_table(subset)
                table = np.zeros(possible.shape, dtype=np.int64)
                table[possible] = np.array(one["values"], dtype=np.int64)
                tables[subset], shares[subset] = table, Fraction(one["rho"])
                scales[subset] = float(one["scale"])
            plan = MeasurementPlan(domain.sizes, shares)
            if mapping["dataset"] != dataset.name or plan.rho != Fraction(mapping["rho"]):
                raise ValueError(mapping["dataset"])
            return cls(domain, plan, int(mapping["people"]), tables, scales, mapping["made_with"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InputError(
                f"This is no file of noisy tables of the dataset {dataset.name!r} as it is described now; use "
                "the description with which they were measured."
            ) from None

    @property
    def digest(self) -> str:
        """The SHA-256 of the file."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


def _subset(domain: Domain, axes: Any) -> Subset:
    known = {
        tuple(domain.dataset.variables[v].name for v in axis.variables): place
        for place, axis in enumerate(domain.axes)
    }
    return tuple(known[tuple(names)] for names in axes)
