"""The methods of the table-server study (Shlomo, Antal and Elliot 2015, section 5.1).

All are controlled: instead of a draw for each cell, the expected number of changes is computed first, and
chance only says which cells change (sections 3.2 and 3.3). Where an expected number is not whole the paper
takes the nearest; here it goes up or down without bias. Totals of regions are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lustrum.model import Channel, Table
from lustrum.model.arrays import Ints
from lustrum.model.channel import SHLOMO_2015, MatrixChannel, swapping_channel
from lustrum.protect import RoundingChannel, StochasticPerturbation
from lustrum.protect.perturbation.invariant import frequencies_of
from lustrum.protect.rounding.semi_controlled import SemiControlledRounding

METHODS = {
    "RS": "record swapping of the hypercube",
    "RR": "rounding of the hypercube",
    "SP": "perturbation of the hypercube",
    "RRP": "rounding of the table",
    "SPP": "perturbation of the hypercube, matrix as printed",
}

_SWAPPED = 0.1
# The paper does not print the cap of its swapping matrix; its perturbation matrix lists values up to 10.
_SWAPPING_VALUES = 11
_ROUNDING = SemiControlledRounding(base=3)
_PRINTED = StochasticPerturbation(controlled=True, keep_total=True)

ASSUMED: dict[str, Channel] = {
    "RS": swapping_channel(_SWAPPED, _SWAPPING_VALUES),
    "RR": RoundingChannel(_ROUNDING.base),
    "RRP": RoundingChannel(_ROUNDING.base),
    "SPP": _PRINTED.base_channel,
}
"""What the paper assumes of each method whose channel does not depend on the people."""


@dataclass(frozen=True, eq=False)
class ServerMethods:
    """The methods for one hypercube, whose first axis is the region.

    ``perturbation`` goes by the printed matrix, made invariant for the hypercube and calibrated.
    """

    cube: Ints
    perturbation: StochasticPerturbation

    @classmethod
    def of(cls, cube: Ints) -> ServerMethods:
        """Make the matrix invariant for a hypercube."""
        frequencies = frequencies_of(SHLOMO_2015, cube)
        return cls(
            cube,
            StochasticPerturbation(
                version="calibrated",
                frequencies=tuple(frequencies.tolist()),
                controlled=True,
                keep_total=True,
            ),
        )

    @property
    def matrix(self) -> MatrixChannel:
        """The matrix that perturbation goes by."""
        return self.perturbation.channel_for(Table.from_counts(self.cube))

    def cubes(self, rng: np.random.Generator) -> dict[str, Ints]:
        """The hypercube after each method that protects it, once."""
        regions = [Table.from_counts(region) for region in self.cube]

        def by_region(method: SemiControlledRounding | StochasticPerturbation) -> Ints:
            return np.stack([method.apply(region, rng).published for region in regions])

        return {
            "RS": regions_swapped(self.cube, _SWAPPED / 2, rng),
            "RR": by_region(_ROUNDING),
            "SP": by_region(self.perturbation),
            "SPP": by_region(_PRINTED),
        }

    def tables(self, tables: Sequence[Ints], rng: np.random.Generator) -> tuple[Ints, ...]:
        """Tables of the hypercube as it is, each rounded by itself."""
        return tuple(_ROUNDING.apply(Table.from_counts(t), rng).published for t in tables)

    def channels(self) -> dict[str, Channel]:
        """What is assumed of each method when risk is measured."""
        return {**ASSUMED, "SP": self.matrix}


def regions_swapped(cube: Ints, share: float, rng: np.random.Generator) -> Ints:
    """Swap people between the two regions of the first axis.

    A sample of ``share`` of each region is paired with people of the other region who are in no pair
    yet, and each pair trades places. Twice the share of all people move, and no region changes in size.
    """
    flat = cube.reshape(2, -1)
    drawn = [rng.permutation(np.repeat(np.arange(flat.shape[1]), region)) for region in flat]
    # A region sends its own sample and the partners of the other region's sample.
    pairs = sum(round(share * people.size) for people in drawn)
    movers = [np.bincount(people[:pairs], minlength=flat.shape[1]) for people in drawn]
    exchange = movers[1] - movers[0]
    return np.stack((flat[0] + exchange, flat[1] - exchange)).reshape(cube.shape)
