"""Additive noise: a random amount of mean 0 for every cell, of counts or magnitudes.

Noise comes from the words of a cell's record keys, so that the same records get the same noise in every
table and asking again reveals nothing new.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, Literal

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Ints, Words
from lustrum.model.chance import Chance
from lustrum.model.channel import NEGLIGIBLE, StepChannel
from lustrum.model.parameters import parameter
from lustrum.model.text import say
from lustrum.numeric.arithmetic import exp, log, normal_cdf, normal_quantile
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.abilities import Abilities
from lustrum.protect.entropy_left import entropy_left
from lustrum.protect.method import TABULAR, MethodSpec, Stage, released, uniform_words
from lustrum.protect.totals.safe import hidden_totals, safe_totals

_ROOT_2, _ROOT_3 = sqrt(2), sqrt(3)
_FAR = 50.0  # standard deviations of noise that leave hardly anything known of small counts
_SLIVER = 1e-12  # keeps bounds true where a division was rounded


@dataclass(frozen=True)
class NoiseChannel(StepChannel):
    """``P(published | true)`` of noise rounded to whole units: differences of its distribution function.

    ``sd`` is in units of the table's last decimal, or a share of the true value if ``relative``.
    ``negative`` says whether true values below 0 exist.

    >>> channel = NoiseChannel("uniform", 3**0.5)
    >>> channel.transitions(np.array([5])).published.tolist(), channel.support(np.array([1]))[1].tolist()
    ([2, 3, 4, 5, 6, 7, 8], [4])
    """

    distribution: str
    sd: float
    relative: bool = False
    clamp: bool = False
    negative: bool = False

    def steps(self, true: int) -> tuple[int, Floats]:
        """Chances of the steps that are not negligible."""
        sd = self.sd * abs(true) if self.relative else self.sd
        if sd == 0:
            return 0, np.ones(1)
        # By symmetry the upper tail equals the lower one, which keeps the digits of small probabilities.
        end = int(np.ceil(-_quantile(self.distribution, np.array([NEGLIGIBLE]))[0] * sd + 0.5))
        edges = _below(self.distribution, (np.arange(-end, 1, dtype=np.float64) - 0.5) / sd)
        half = np.diff(edges)
        chances = np.concatenate((half, [max(0.0, 1 - 2 * float(edges[-1]))], half[::-1]))
        keep = np.flatnonzero(chances > 0)
        chances = chances[keep[0] : keep[-1] + 1]
        return int(keep[0]) - end, chances / chances.sum()

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """The range of uniform noise; no bounds for the other two, except that counts are not negative."""
        shown = np.asarray(published, dtype=np.int64)
        if self.distribution != "uniform":
            low = np.full(shown.shape, -UNBOUNDED, dtype=np.int64)
            high = np.full(shown.shape, UNBOUNDED, dtype=np.int64)
        elif not self.relative:
            reach = int(np.floor(_ROOT_3 * self.sd * (1 + _SLIVER) + 0.5))
            low, high = shown - reach, shown + reach
        else:
            # |published - x| <= w |x| + 1/2 with w < 1: solved for the largest and smallest x.
            width, size = _ROOT_3 * self.sd, np.abs(shown).astype(np.float64)
            most = np.floor((size + 0.5) / (1 - width) * (1 + _SLIVER)).astype(np.int64)
            least = np.ceil((size - 0.5) / (1 + width) * (1 - _SLIVER)).astype(np.int64)
            least = np.where(shown == 0, -most, least)
            low, high = np.where(shown < 0, -most, least), np.where(shown < 0, -least, most)
        if not self.negative:
            low, high = np.maximum(low, 0), np.maximum(high, 0)
        return low, high

    def far(self) -> float:
        """The limit of the chance to stay: that of any value for absolute noise, 0 for relative noise."""
        if self.relative:
            return 0.0
        first, chances = self.steps(1)
        return float(chances[-first])


@dataclass(frozen=True)
class AdditiveNoise(MethodSpec):
    """Noise of mean 0 added to every cell, totals included, each on its own.

    ``sd`` is that before rounding to the table's last decimal. Uniform noise has hard ends, so that the
    public has hard bounds; normal and Laplace noise have none. Every number is right on average, unless with
    ``clamp``.

    >>> table = Table.from_counts([120, 45, 0])
    >>> release = AdditiveNoise(sd=2, distribution="uniform").apply(table, np.random.default_rng(1))
    >>> release.published.tolist(), (release.published - release.low)[:2].tolist()
    ([120, 48, -2], [3, 3])
    """

    name: ClassVar[str] = "additive-noise"
    stages: ClassVar[tuple[Stage, ...]] = TABULAR
    sd: float = parameter(
        1.0, "The standard deviation of the noise, or its share of each value if relative.", above=0
    )
    distribution: Literal["normal", "laplace", "uniform"] = parameter(
        "normal", "The distribution of the noise."
    )
    relative: bool = parameter(False, "Whether noise is in proportion to each value.")
    clamp: bool = parameter(False, "Whether negative counts are shown as 0.")

    def check_together(self) -> None:
        """Relative noise stays below the value itself."""
        if self.relative and self.distribution == "uniform" and _ROOT_3 * self.sd >= 1:
            raise InputError(
                "Relative uniform noise needs a standard deviation below 0.577, so that it stays "
                f"below the value itself; {self.sd!r} is more."
            )

    @property
    def abilities(self) -> Abilities:
        """Only relative noise follows from record keys; it leaves empty cells empty."""
        keyed = self.relative
        # More noise changes no less; very much of it would take very long rows.
        sd = min(self.sd, _FAR)
        channel = NoiseChannel(self.distribution, sd, self.relative, self.clamp)
        return Abilities(
            repeatable=True,
            keyed_per_cell=keyed,
            one_number=keyed,
            changed=1.0 - channel.stay(1, 2),
            entropy=entropy_left(channel),
            channels=(channel,),
        )

    def draw(self, table: Table, rng: Chance) -> Release:
        """Add noise to a table of counts or magnitudes."""
        counts = table.kind == "count"
        if self.clamp and not counts:
            raise InputError("'clamp' of additive noise is for counts; a magnitude may be below 0.")
        if rng is None and not self.relative:
            # All empty cells would get the same noise and could be recognised by it.
            raise InputError(
                "Noise that also moves empty cells needs a random generator ('rng'), since they have no "
                "record keys; noise relative to the values leaves them empty."
            )
        random_words = uniform_words(table, rng, self._purpose())
        sd = self.sd if self.relative else self.sd * 10**table.decimals
        scale = np.abs(table.values) * sd if self.relative else sd
        noise = np.rint(unit_noise(self.distribution, random_words) * scale).astype(np.int64)
        if table.structural is not None:
            noise = np.where(table.structural, 0, noise)
        noisy = table.values + noise
        if self.clamp:
            noisy = np.maximum(noisy, 0)
        channel = NoiseChannel(self.distribution, sd, self.relative, self.clamp, not counts)
        published = safe_totals(table.axes, noisy, channel, table.structural, keyed=rng is None)
        return released(
            table,
            self,
            published.values,
            low=np.maximum(published.low, -UNBOUNDED),
            high=np.minimum(published.high, UNBOUNDED),
            status=published.status,
            channel=channel if counts else None,
            notes=(
                self._note(),
                hidden_totals()
                if rng is None
                else say(
                    "Totals have noise of their own, so the numbers may not add up to them; a total "
                    "that does add up may be the sum of the noisy numbers."
                ),
                *((say("Numbers below 0 are shown as 0."),) if self.clamp else ()),
            ),
        )

    def _note(self) -> str:
        parameters = {"distribution": self.distribution, "sd": self.sd}
        if self.relative:
            return say(
                "Every number has random noise added: {distribution}, standard deviation {sd:g} of its "
                "value, mean 0.",
                **parameters,
            )
        return say(
            "Every number has random noise added: {distribution}, standard deviation {sd:g}, mean 0.",
            **parameters,
        )

    def _purpose(self) -> str:
        kind = "relative" if self.relative else "absolute"
        return f"{self.name} {self.distribution} {kind} {float(self.sd)!r}"


def unit_noise(distribution: str, random_words: Words) -> Floats:
    """Noise of mean 0 and standard deviation 1 from uniform words."""
    share = ((random_words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return _quantile(distribution, np.minimum(share, 1 - 2.0**-53))


def _quantile(distribution: str, share: Floats) -> Floats:
    if distribution == "uniform":
        return np.asarray(_ROOT_3 * (2 * share - 1))
    if distribution == "laplace":
        tail = log(2 * np.minimum(share, 1 - share)) / _ROOT_2
        return np.asarray(np.where(share < 0.5, tail, -tail))
    return normal_quantile(share)


def _below(distribution: str, at: Floats) -> Floats:
    if distribution == "uniform":
        return np.maximum((at / _ROOT_3 + 1) / 2, 0.0)
    if distribution == "laplace":
        return np.asarray(exp(_ROOT_2 * at) / 2)
    return normal_cdf(at)
