"""The cell key method for magnitudes (Thompson, Broadfoot and Elazar 2013; Giessing and Tent 2019).

What is added to a cell is a multiple of its largest contributions::

    noise = sum over the ranks j of  |x_j| e_j m(|x|) v_j

``m`` is the flex function, a share that falls for large cells; ``e_j`` lets lower ranks count less; ``v_j``
is looked up by the cell's key. Protection must hide the largest contributor, so the noise grows with the
largest contributions. The noise is symmetric around 0, so that sums are right on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Ints, Mask, Words
from lustrum.model.chance import Chance
from lustrum.model.keys import cell_words
from lustrum.model.parameters import parameter
from lustrum.model.text import say
from lustrum.numeric.arithmetic import exp, log
from lustrum.protect.abilities import Abilities
from lustrum.protect.method import MethodSpec, Stage, released
from lustrum.sensitivity import PPercent

# Noise for magnitudes: the flex function gives its size, a symmetric lookup its distribution.
#
# The coefficients ``v`` lie on a grid from ``-D`` to ``D``. Their distribution has the largest entropy among
# those of the given variance: ``p(v)`` is proportional to ``exp(-t v**2)``. A separate bit gives the sign, so
# that the mean is exactly 0.


@dataclass(frozen=True, eq=False)
class Noise:
    """Sizes in units of ``1 / steps`` with the thresholds of their lookup by 63 bits of a word."""

    sizes: Ints
    thresholds: Words
    steps: int

    @property
    def chances(self) -> Floats:
        ends = self.thresholds.astype(object) / (1 << 63)
        return np.diff(np.concatenate(([0], ends))).astype(np.float64)

    def draw(self, random_words: Words) -> tuple[Ints, Ints]:
        sign = 1 - 2 * (random_words >> np.uint64(63)).astype(np.int64)
        rest = random_words & np.uint64((1 << 63) - 1)
        index = np.searchsorted(self.thresholds, rest.ravel(), side="right").reshape(
            random_words.shape
        )
        return self.sizes[np.minimum(index, self.sizes.size - 1)], sign


@lru_cache(maxsize=64)
def noise_table(largest: int, steps: int, variance: float, part: str = "all") -> Noise:
    """The lookup for sizes up to ``largest``, ``steps`` to the unit, with this variance.

    ``part`` takes all sizes of the grid, or the ``even`` or the ``odd`` ones only.

    >>> table = noise_table(2, 1, 1.0)
    >>> table.sizes.tolist(), float((table.chances * table.sizes**2).sum().round(6))
    ([0, 1, 2], 1.0)
    """
    first = {"all": 0, "even": 0, "odd": 1}[part]
    sizes = np.arange(first, largest * steps + 1, 1 if part == "all" else 2, dtype=np.int64)
    units = sizes / steps
    low, high = float((units * units).min()), float((units * units).max())
    if not low < variance < high:
        raise InputError(
            f"Noise of the {'whole' if part == 'all' else part} grid has a variance between {low:g} and "
            f"{high:g}, not {variance:g}."
        )
    weight = np.where(sizes > 0, 2.0, 1.0)  # both signs

    def chances(t: float) -> Floats:
        logs = log(weight) - t * units**2
        shares = exp(logs - logs.max())
        return np.asarray(shares / shares.sum())

    def spread(t: float) -> float:
        return float((chances(t) * units**2).sum())

    below, above = -1.0, 1.0
    while spread(below) < variance:
        below *= 2.0
    while spread(above) > variance:
        above *= 2.0
    for _ in range(200):
        middle = (below + above) / 2.0
        if spread(middle) > variance:
            below = middle
        else:
            above = middle
    cumulated = np.rint(np.cumsum(chances(above)) * (1 << 31)).astype(np.int64)
    cumulated[-1] = 1 << 31
    thresholds = cumulated.astype(np.uint64) << np.uint64(32)
    return Noise(sizes, thresholds, steps)


def flex(values: Floats, flex_point: float, small: float, large: float, q: int) -> Floats:
    """The share of noise for cells of these absolute values (Giessing and Tent 2019).

    Up to the flex point it is ``small``; beyond it falls towards ``large``::

        m(x) = large * (1 + (small x - large f) / (large f) * (2 f / (f + x))**q)

    The formula may rise a little above ``small`` just beyond the flex point; it is cut there, so that
    ``small`` is the largest share.

    >>> flex(np.array([10.0, 1000.0, 1e9]), 1000.0, 0.2, 0.03, 3).round(4).tolist()
    [0.2, 0.2, 0.03]
    """
    x = np.maximum(np.asarray(values, dtype=np.float64), flex_point)
    power = np.ones_like(x)
    for _ in range(q):  # repeated products give the same bits on every machine
        power = power * (2.0 * flex_point / (flex_point + x))
    share = large + (small * x / flex_point - large) * power
    return np.minimum(share, small)


_UNIT = 1 << 24  # noise coefficients are whole multiples of its inverse
_ROOM = 2**36


@dataclass(frozen=True)
class CellKeyMagnitude(MethodSpec):
    """Noise in proportion to the largest contributions of each cell, looked up by its key.

    - ``largest_change``, ``steps``, ``variance``: the coefficients ``v`` lie on a grid of ``1 / steps`` from
      minus to plus ``largest_change``, with this variance.
    - ``flex_point``, ``small``, ``large``, ``power``: the flex function. Cells up to the flex point, in the
      units of the table, get ``small``; large ones get a share near ``large``.
    - ``scale``: ``top`` perturbs each of these by a coefficient of its own; ``largest``, ``mean`` and
      ``spread`` use one for the cell, times the largest contribution, the mean of these, or the largest
      less the smallest of these (the largest itself where that is nothing).
    - ``extra``, ``p_percent``: cells that are sensitive by the p% rule get at least ``extra`` more of the
      first coefficient, so that it is never small.
    - ``parity``: cells of an odd number of contributors use the odd points of the grid, others the even
      ones, so that two cells that differ by one contributor never have the same coefficient.

    No cell is changed by more than the share ``reach`` of its own value, rounding aside; none changes its
    sign, and zeros stay.
    """

    name: ClassVar[str] = "cell-key-magnitude"
    stages: ClassVar[tuple[Stage, ...]] = ("table",)
    abilities: ClassVar[Abilities] = Abilities(
        repeatable=True, keyed_per_cell=True, one_number=True, sums_only=True
    )
    largest_change: int = parameter(
        3, "Noise coefficients lie between minus and plus this.", least=1, most=100
    )
    steps: int = parameter(4, "How many coefficients there are in one unit.", least=1, most=100)
    variance: float = parameter(1.0, "The variance of the coefficients.", above=0)
    flex_point: float = parameter(1000.0, "Up to this value cells get the share 'small'.", above=0)
    small: float = parameter(0.2, "The share of noise in small cells.", above=0, below=1)
    large: float = parameter(0.05, "The share of noise in very large cells.", above=0, below=1)
    power: int = parameter(
        3, "How fast the share falls from small to large cells.", least=1, most=100
    )
    ranks: int = parameter(
        1, "How many of the largest contributions are perturbed.", least=1, most=100
    )
    shares: tuple[float, ...] = parameter(
        (), "How much of the noise each of these gets, from 1 down.", least=0
    )
    scale: Literal["top", "largest", "mean", "spread"] = parameter(
        "top", "What the coefficients multiply."
    )
    extra: float = parameter(0.0, "How much noise sensitive cells get in addition.", least=0)
    p_percent: float | None = parameter(
        None, "Which cells are sensitive, by the p% rule.", above=0, below=100
    )
    parity: bool = parameter(
        False, "Whether odd and even numbers of contributors use different coefficients."
    )
    version: str = parameter("1", "The version of the noise table, which is published.")
    key_version: int = parameter(1, "The version of the record keys, which is published.")

    def check_together(self) -> None:
        """No cell can change its sign, and each rank has its share."""
        if self.large > self.small:
            raise InputError("'large', the share for large cells, must not be above 'small'.")
        shares = self.shares or (1.0,) * self.ranks
        object.__setattr__(self, "shares", shares)
        falling = all(b <= a for a, b in pairwise(shares))
        if len(shares) != self.ranks or shares[0] != 1 or not falling:
            raise InputError(
                f"'shares' needs {self.ranks} numbers that begin with 1 and never rise, one for each rank."
            )
        if (self.extra > 0) != (self.p_percent is not None):
            raise InputError(
                "'extra' and 'p_percent' belong together: which cells get how much more."
            )
        if self.reach >= 1:
            raise InputError(
                f"'small' times 'largest_change' and 'extra' together is {float(self.reach):g}; it must be "
                "below 1, or cells could change their sign."
            )
        _ = self._tables

    @property
    def reach(self) -> Fraction:
        """The largest share of its value by which a cell can change, before rounding."""
        product = Fraction(self.small) * (self.largest_change + Fraction(self.extra))
        return Fraction(int(product * _UNIT) + 1, _UNIT)

    @property
    def noise(self) -> Noise:
        """The public coefficients and their probabilities; with 'parity', those for even numbers."""
        return self._tables[0]

    def draw(self, table: Table, rng: Chance) -> Release:
        """Perturb a table of magnitudes that comes with its largest contributions."""
        sizes = self._contributions(table)
        values = table.values
        x = np.abs(values)
        sensitive = self._sensitive(table)
        share = flex(
            x / float(10**table.decimals),
            self.flex_point,
            float(self.small),
            float(self.large),
            self.power,
        )
        scales = self._scales(sizes, x)
        random_words = self._words(table, scales.shape[-1], rng)
        coefficients = np.empty(scales.shape, dtype=np.int64)
        for rank in range(scales.shape[-1]):
            size, sign = self._drawn(table, random_words[rank])
            units = size / self.steps
            if rank == 0:
                units = units + np.where(sensitive, float(self.extra), 0.0)
            one = share * float(self.shares[rank]) * units
            coefficients[..., rank] = sign * np.rint(one * _UNIT).astype(np.int64)
        noise = _noise(scales, coefficients)
        published = values + np.where(values < 0, -noise, noise)
        low, high = self.bounds(published)
        return released(table, self, published, low=low, high=high, notes=self._notes(rng is None))

    def bounds(self, published: Ints) -> tuple[Ints, Ints]:
        """Bounds of the true value for a reader who knows the method.

        With ``|y - x| <= c |x| + 1/2`` the true ``|x|`` lies from ``(|y| - 1/2) / (1 + c)`` to
        ``(|y| + 1/2) / (1 - c)``.
        """
        c = self.reach
        up, down = 1 + c, 1 - c
        # A table without variables is a single number, for which numpy would return a scalar.
        y = np.atleast_1d(np.abs(published)).astype(object)
        least = -((-(2 * y - 1) * up.denominator) // (2 * up.numerator))
        most = ((2 * y + 1) * down.denominator) // (2 * down.numerator)
        if y.size and max(most.ravel(), default=0) >= 2**63:
            most = np.minimum(most, 2**63 - 1)
        sign = np.sign(published)
        near = np.maximum(least, 0).astype(np.int64).reshape(np.shape(published))
        far = np.asarray(most).astype(np.int64).reshape(np.shape(published))
        return (np.where(sign > 0, near, -far), np.where(sign < 0, -near, far))

    def to_mapping(self) -> dict[str, Any]:
        """The method in the words of a policy file; what sensitive cells get only where any are."""
        words = super().to_mapping()
        sensitive = {key: words.pop(key, None) for key in ("extra", "p_percent")}
        versions = {key: words.pop(key) for key in ("version", "key_version")}
        return words | (sensitive if self.p_percent is not None else {}) | versions

    @cached_property
    def _tables(self) -> tuple[Noise, Noise]:
        """The lookups for cells of an even and of an odd number of contributors."""
        parts = ("even", "odd") if self.parity else ("all", "all")
        even, odd = (
            noise_table(self.largest_change, self.steps, float(self.variance), p) for p in parts
        )
        return even, odd

    def _contributions(self, table: Table) -> Ints:
        """The largest contributions of each cell by absolute size, as many as are perturbed."""
        if table.kind != "magnitude":
            raise InputError(
                "The cell key method for magnitudes protects sums of a measure; this table holds counts."
            )
        contributions = table.contributions
        if contributions is None or contributions.value.shape[-1] < self.ranks:
            raise InputError(
                f"The table does not hold the {self.ranks} largest contributions of its cells; ask the "
                f"engine for 'ranks={max(self.ranks, 2)}'."
            )
        sizes = np.abs(contributions.value[..., : self.ranks])
        if contributions.weight is None:
            return sizes
        return np.rint(sizes * contributions.weight[..., : self.ranks]).astype(np.int64)

    def _sensitive(self, table: Table) -> Mask:
        if self.p_percent is None:
            return np.zeros(table.shape, dtype=np.bool_)
        return np.asarray(PPercent(p=self.p_percent).judge(table).mask)

    def _scales(self, sizes: Ints, x: Ints) -> Ints:
        """The factors of the coefficients; their sum never exceeds the cell itself."""
        if self.scale == "largest":
            scales = sizes[..., :1]
        elif self.scale == "mean":
            present = np.maximum((sizes > 0).sum(axis=-1, keepdims=True), 1)
            scales = sizes.sum(axis=-1, keepdims=True) // present
        elif self.scale == "spread":
            present = sizes > 0
            least = np.where(present, sizes, sizes[..., :1]).min(axis=-1, keepdims=True)
            spread = sizes[..., :1] - least
            scales = np.where(spread > 0, spread, sizes[..., :1])
        else:
            scales = sizes
        # Contributions of both signs can be larger than their sum; the noise must not be.
        whole = scales.sum(axis=-1)
        over = whole > x
        if over.any():
            cut = scales[over].astype(object) * x[over].astype(object)[:, None]
            scales = scales.copy()
            scales[over] = (cut // whole[over].astype(object)[:, None]).astype(np.int64)
        return scales

    def _words(self, table: Table, ranks: int, rng: np.random.Generator | None) -> Words:
        if rng is not None:
            return rng.integers(0, 2**64, size=(ranks, *table.shape), dtype=np.uint64)
        if table.keys is None:
            raise InputError("The table has no record keys; give a random generator ('rng').")
        # Two measures of the same firm must not share their noise, or their ratio would be exact.
        measure = table.provenance.get("query", {}).get("measure", table.unit)
        return np.stack(
            [cell_words(table.keys, f"{self.name} {measure} {rank}") for rank in range(ranks)]
        )

    def _drawn(self, table: Table, random_words: Words) -> tuple[Ints, Ints]:
        even, odd = self._tables
        if not self.parity:
            return even.draw(random_words)
        if table.contributors is None:
            raise InputError("'parity' needs the number of contributors of each cell.")
        (size, sign), (other, _) = even.draw(random_words), odd.draw(random_words)
        return np.where(table.contributors % 2 == 1, other, size), sign

    def _notes(self, keyed: bool) -> tuple[str, ...]:
        percent = float(self.reach) * 100
        return (
            say(
                "Every sum is perturbed by the cell key method in proportion to its largest contributions "
                "(version {version}; record keys version {keys}): it is at most {percent:.4g} percent away "
                "from the true one, and right on average.",
                version=self.version,
                keys=self.key_version,
                percent=percent,
            )
            if keyed
            else say(
                "Every sum is perturbed at random in proportion to its largest contributions: it is at most "
                "{percent:.4g} percent away from the true one, and right on average.",
                percent=percent,
            ),
            say("Totals are perturbed on their own, so the numbers may not add up to them."),
            say("Sums of 0 stay 0."),
        )


def _noise(scales: Ints, coefficients: Ints) -> Ints:
    """Scales times coefficients, added up over the ranks and rounded to units, halves to even."""
    if scales.size and int(scales.max()) * scales.shape[-1] >= _ROOM:
        total = (scales.astype(object) * coefficients.astype(object)).sum(axis=-1)
    else:
        total = (scales * coefficients).sum(axis=-1)
    whole, rest = total // _UNIT, total % _UNIT
    up = (rest > _UNIT // 2) | ((rest == _UNIT // 2) & (whole % 2 == 1))
    return np.asarray(whole + up).astype(np.int64)
