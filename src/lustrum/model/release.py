"""A release: what the public sees, and what the public knows of how it came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lustrum.arrays import Floats, Ints, Mask
from lustrum.model.status import CellStatus
from lustrum.model.table import TableAxis, _kept, inner_cells

__all__ = ["Channel", "Release", "Transitions"]


_OPEN = 2**62  # an end that nothing bounds


@dataclass(frozen=True)
class Transitions:
    """Rows of ``P(published | true)`` as triplets: row ``origin[k]`` reaches ``published[k]``.

    ``origin`` indexes the true values that were asked for. Triplets stay small where a dense matrix
    up to a count of a million would not.
    """

    origin: npt.NDArray[np.intp]
    published: Ints
    probability: Floats


class Channel(Protocol):
    """How a random method turns a true value into a published one, as everybody may know it."""

    def transitions(self, true: Ints) -> Transitions:
        """The rows of the transition matrix for these true values."""
        ...

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """The smallest and largest true value that can have led to each published value."""
        ...

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean probability that a value from that range is published unchanged."""
        ...


@dataclass(frozen=True, eq=False)
class Release:
    """Published values with their status, the channel that made them and the method's own words.

    ``low`` and ``high`` are what anybody can know of each true value from that cell and the method alone.
    ``structural`` marks cells that cannot hold anybody, which everybody knows from the description.
    """

    axes: tuple[TableAxis, ...]
    published: Ints
    status: npt.NDArray[np.str_]
    method: Mapping[str, Any]
    channel: Channel | None = None
    low: Ints | None = None
    high: Ints | None = None
    decimals: int = 0
    unit: str = ""
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    structural: Mask | None = None

    def __post_init__(self) -> None:
        for name in ("published", "status", "low", "high", "structural"):
            array = getattr(self, name)
            if array is not None:
                object.__setattr__(self, name, _kept(array))

    def __repr__(self) -> str:
        names = " x ".join(a.name for a in self.axes) or "everybody"
        return f"Release({names}, by {self.method.get('method')})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Categories along each axis."""
        return tuple(len(axis) for axis in self.axes)

    @cached_property
    def inner(self) -> Mask:
        """Which cells are neither totals nor subtotals."""
        return inner_cells(self.axes)

    @cached_property
    def shown(self) -> Mask:
        """Which values may be seen; the others are suppressed, which is never 0."""
        return np.asarray(self.status == CellStatus.FREE.value)

    @cached_property
    def stated(self) -> Mask:
        """Which suppressed cells have an interval stated instead of a value: partial suppression."""
        if self.low is None or self.high is None:
            return np.zeros(self.shape, dtype=np.bool_)
        return np.asarray(~self.shown & (self.low > -_OPEN) & (self.high < _OPEN))

    def take(self, picks: Sequence[npt.ArrayLike]) -> Release:
        """A part of the release: the given positions along each axis."""
        indices = [np.asarray(p, dtype=np.intp) for p in picks]
        grid = np.ix_(*indices) if indices else ()
        return replace(
            self,
            axes=tuple(
                replace(axis, categories=tuple(axis.categories[i] for i in index))
                for axis, index in zip(self.axes, indices, strict=True)
            ),
            published=self.published[grid],
            status=self.status[grid],
            low=None if self.low is None else self.low[grid],
            high=None if self.high is None else self.high[grid],
            structural=None if self.structural is None else self.structural[grid],
        )
