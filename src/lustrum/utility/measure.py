"""A release beside its table, cell by cell: what every utility measure starts from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Mask
from lustrum.model.parameters import DeclaredSpec
from lustrum.model.release import check_release
from lustrum.model.table import check_table
from lustrum.utility.impute import Impute, inner_grid, suppressed_cells

Better = Literal["higher", "lower"]


@runtime_checkable
class UtilityMeasure(Protocol):
    """What every measure offers: a name, its range, which end is better, and its value.

    The verbs are those of :class:`~lustrum.risk.measure.RiskMeasure`, which has ``before`` and ``after`` too.
    """

    name: ClassVar[str]
    range: ClassVar[tuple[float, float]]
    better: ClassVar[Better]

    def of(self, table: Table, release: Release) -> float:
        """The measure of a release in place of its table."""
        ...

    def to_mapping(self) -> dict[str, Any]:
        """The measure in words that make it again."""
        ...


class UtilitySpec(DeclaredSpec):
    """What all utility measures share; most are distances from 0 up."""

    group: ClassVar[str] = "measure"
    range: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    better: ClassVar[Better] = "lower"


@dataclass(frozen=True, eq=False)
class Comparison:
    """The inner blocks of a table and of its release, in the table's unit.

    ``published`` has suppressed cells filled by a rule. ``possible`` marks the cells that are no
    structural zeros: measures that average over cells leave those out, sums do not notice them.
    """

    original: Floats
    published: Floats
    possible: Mask

    def __repr__(self) -> str:
        return f"Comparison({' x '.join(map(str, self.original.shape)) or '1'} cells)"

    @property
    def cells(self) -> tuple[Floats, Floats]:
        """True and published values of the possible cells, flat."""
        return self.original[self.possible], self.published[self.possible]


def compare(table: Table, release: Release, impute: Impute) -> Comparison:
    """Put a release beside its table; a wrong pair is one clear sentence.

    >>> from lustrum.protect import ConventionalRounding
    >>> from lustrum.rumap.measures import usual_impute
    >>> table = Table.from_counts([1, 9])
    >>> compare(table, ConventionalRounding(base=5).apply(table), usual_impute(table)).published.tolist()
    [0.0, 10.0]
    """
    check_table(table, "A utility measure")
    check_release(release, "A utility measure")
    if release.shape != table.shape:
        raise InputError("The release and its table have different shapes; they must be equal.")
    if release.decimals != table.decimals:
        raise InputError("The release and its table have different decimals; they must be equal.")
    grid = inner_grid(table.axes)
    scale = 1 / 10**table.decimals
    original = table.values[grid] * scale
    published = impute.fill(release, table.structural) * scale
    possible = np.ones(original.shape, dtype=np.bool_)
    if table.structural is not None:
        possible = ~table.structural[grid]
    if not possible.any():
        raise InputError(
            "The table has no cell that can hold anybody, so there is nothing to compare."
        )
    return Comparison(np.asarray(original, dtype=np.float64), published, possible)


@dataclass(frozen=True)
class CellMeasure(UtilitySpec):
    """A figure of the true and the published values of all cells that can hold somebody."""

    figure: ClassVar[Callable[..., float]]
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The figure of a release in place of its table."""
        return type(self).figure(*compare(table, release, self.impute).cells)


def as_pair(
    original: npt.ArrayLike, published: npt.ArrayLike, *, signed: bool = True
) -> tuple[Floats, Floats]:
    """Two arrays of numbers of one shape, checked; ``signed`` says whether negative ones may be there."""
    F, G = np.asarray(original, dtype=np.float64), np.asarray(published, dtype=np.float64)
    if F.shape != G.shape:
        raise InputError(
            "The true and the published values have different shapes; they must be equal."
        )
    if not F.size:
        raise InputError("There are no cells to compare.")
    if not (np.isfinite(F).all() and np.isfinite(G).all()):
        raise InputError("Values to compare must be finite; NaN or infinity is among them.")
    if not signed and ((F < 0).any() or (G < 0).any()):
        raise InputError("This measure is for values of 0 or more; a negative one is among them.")
    return F, G
