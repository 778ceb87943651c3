"""The hypercube of the table-server study, its four tables, and what each method makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lustrum.model import Channel, InputError, Table
from lustrum.model.arrays import Floats, Ints
from lustrum.model.channel import SHLOMO_2015, MatrixChannel, swapping_channel
from lustrum.protect import RoundingChannel, StochasticPerturbation
from lustrum.protect.perturbation.lookup import frequencies_of
from lustrum.protect.rounding.semi_controlled import SemiControlledRounding
from lustrum.risk.table_entropy import EntropyRisk, PaperEntropyRisk
from lustrum.study.result import Progress
from lustrum.utility import hellinger_utility

# The methods of the table-server study (Shlomo, Antal and Elliot 2015, section 5.1).
#
# All are controlled: instead of a draw for each cell, the expected number of changes is computed first, and
# chance only says which cells change (sections 3.2 and 3.3). Where an expected number is not whole the paper
# takes the nearest; here it goes up or down without bias. Totals of regions are kept.

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
        return self.perturbation.channel_for(Table.from_counts(self.cube))

    def cubes(self, rng: np.random.Generator) -> dict[str, Ints]:
        """The hypercube after each method that protects it, once."""
        regions = [Table.from_counts(region) for region in self.cube]

        def by_region(method: SemiControlledRounding | StochasticPerturbation) -> Ints:
            return np.stack([method.apply(region, rng).numbers for region in regions])

        return {
            "RS": regions_swapped(self.cube, _SWAPPED / 2, rng),
            "RR": by_region(_ROUNDING),
            "SP": by_region(self.perturbation),
            "SPP": by_region(_PRINTED),
        }

    def tables(self, tables: Sequence[Ints], rng: np.random.Generator) -> tuple[Ints, ...]:
        """Tables of the hypercube as it is, each rounded by itself."""
        return tuple(_ROUNDING.apply(Table.from_counts(t), rng).numbers for t in tables)

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


VARIABLES = ("region", "sex", "age", "employment", "occupation", "education", "citizenship")

_SELECTIONS: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("region", 0, ("age", "education", "occupation")),
    ("region", 1, ("sex", "age", "citizenship")),
    ("sex", 0, ("employment", "occupation", "education")),
    ("age", 9, ("region", "occupation", "education")),
)

_RISK = EntropyRisk()
_RISK_AS_PRINTED = PaperEntropyRisk()
RUNS = 10
"""How often every method is drawn."""


@dataclass(frozen=True)
class MethodOutcome:
    """One table under one method: means over the runs, and the standard error of the utility's mean.

    ``literal`` is the risk by the printed formula; ``changed`` the share of cells of 1 and 2
    that changed, None where the table has none.
    """

    table: int
    method: str
    before: float
    risk: float
    literal: float
    utility: float
    utility_error: float
    changed: float | None


def hypercube(microdata: pa.Table) -> Ints:
    """The counts of people by the seven variables of section 5.1."""
    columns = [microdata[name].combine_chunks() for name in VARIABLES]
    shape = tuple(len(column.dictionary) for column in columns)
    positions = [column.indices.to_numpy().astype(np.int64) for column in columns]
    cells = np.ravel_multi_index(tuple(positions), shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def output_tables(cube: Ints) -> tuple[Ints, ...]:
    """The four tables of section 5.1, each for the part of the people that it selects."""
    tables = []
    for variable, position, span in _SELECTIONS:
        part = cube.take(position, axis=VARIABLES.index(variable))
        left = [name for name in VARIABLES if name != variable]
        summed = part.sum(axis=tuple(i for i, name in enumerate(left) if name not in span))
        order = [name for name in left if name in span]
        tables.append(summed.transpose([order.index(name) for name in span]))
    return tuple(tables)


def server_outcomes(
    cube: Ints, seed: int, progress: Progress | None = None
) -> tuple[MethodOutcome, ...]:
    """All methods on all tables; number 0 is the hypercube itself, of which only changes are reported."""
    if cube.ndim != len(VARIABLES) or cube.shape[0] != 2:
        raise InputError("The study needs a hypercube of its seven variables with two regions.")
    methods, tables = ServerMethods.of(cube), output_tables(cube)
    channels = methods.channels()
    runs: dict[tuple[int, str], list[tuple[float, float, float, float]]] = {}
    for run, rng in enumerate(np.random.default_rng(seed).spawn(RUNS)):
        released = {}
        for method, whole in methods.cubes(rng).items():
            changed = _changed(cube, whole)
            runs.setdefault((0, method), []).append((np.nan, np.nan, np.nan, changed))
            released[method] = output_tables(whole)
        released["RRP"] = methods.tables(tables, rng)
        for method, shown in released.items():
            for number, (table, release) in enumerate(zip(tables, shown, strict=True), start=1):
                risk, literal = (
                    measure.combine(measure.terms_of_published(table, release, channels[method]))
                    for measure in (_RISK, _RISK_AS_PRINTED)
                )
                figures = risk, literal, hellinger_utility(table, release), _changed(table, release)
                runs.setdefault((number, method), []).append(figures)
        if progress is not None:
            progress((run + 1) / RUNS)
    before = [np.nan, *(_RISK.combine(_RISK.terms_of_counts(t)) for t in tables)]
    return tuple(
        _outcome(number, method, float(before[number]), np.array(figures))
        for (number, method), figures in sorted(runs.items(), key=lambda item: item[0][0])
    )


def _changed(table: Ints, release: Ints) -> float:
    small = (table == 1) | (table == 2)
    return float((table != release)[small].mean()) if small.any() else np.nan


def _outcome(number: int, method: str, before: float, figures: Floats) -> MethodOutcome:
    risk, literal, utility, changed = figures.mean(axis=0)
    error = figures[:, 2].std(ddof=1) / np.sqrt(len(figures))
    return MethodOutcome(
        table=number,
        method=method,
        before=before,
        risk=float(risk),
        literal=float(literal),
        utility=float(utility),
        utility_error=float(error),
        changed=None if np.isnan(changed) else float(changed),
    )
