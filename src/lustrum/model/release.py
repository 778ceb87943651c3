"""A release: what the public sees, and what the public knows of how it came about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import count
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Floats, Indices, Ints, Mask
from lustrum.model.errors import InputError, kind_of
from lustrum.model.status import CellStatus
from lustrum.model.table import Framed, TableAxis, _kept, frames, inner_cells

_OPEN = 2**62  # an end that nothing bounds
ARRAYS = (
    "numbers", "status", "least", "most", "structural", "undefined", "errors", "grades", "margins",
)  # fmt: skip
"""What a release has for every cell, or not at all."""


@dataclass(frozen=True)
class Transitions:
    """Rows of ``P(published | true)`` as triplets: row ``origin[k]`` reaches ``published[k]``.

    ``origin`` indexes the true values that were asked for. Triplets stay small where a dense matrix
    up to a count of a million would not.
    """

    origin: Indices
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


@dataclass(frozen=True)
class DescribedStatistic:
    """A statistic as a reader sees it: its code, its name, its unit and how many decimals it has."""

    code: str
    label: str
    unit: str
    decimals: int


@dataclass(frozen=True, eq=False)
class Release(Framed):
    """Published values with their status, the channel that made them and the method's own words.

    Readers take ``published``, NaN where a cell has no number, and ``low`` and ``high``, infinite where nothing
    is stated. Methods compute with ``numbers``, whole and 0 where there is none, ``least`` and ``most``:
    what anybody can know of each true value from that cell and the method alone, ``2**62`` from 0 where nothing
    bounds it.
    ``structural`` marks cells that cannot hold anybody, which everybody knows from the description.
    ``errors`` are standard errors of estimates, -1 where there is none, and ``grades`` how reliable each is.
    True values are rarely further away than ``margin``, where the method states one for all cells, or than
    ``margins`` where cells have their own, -1 where there is none.
    ``undefined`` marks numbers that do not exist, such as a mean over nobody: they are not hidden, and not 0.

    ``label`` names what the cells show where they are no counts, and ``additive`` says whether totals are to be
    compared with the sums of their parts, which makes no sense for means. Several statistics stand along the
    last axis, and ``statistics`` says what each of them is. All values are in units of ``10**-decimals``; a
    statistic is written with its own decimals.

    >>> axis = TableAxis.plain("area", ["n", "s"])
    >>> Release((axis,), np.array([3, 0]), np.array(["F", "N"]), {"method": "by hand"}).known.tolist()
    [True, False]
    """

    axes: tuple[TableAxis, ...]
    numbers: Ints
    status: npt.NDArray[np.str_]
    method: Mapping[str, Any]
    channel: Channel | None = None
    least: Ints | None = None
    most: Ints | None = None
    decimals: int = 0
    unit: str = ""
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    structural: Mask | None = None
    undefined: Mask | None = None
    errors: Ints | None = None
    grades: npt.NDArray[np.str_] | None = None
    statistics: tuple[DescribedStatistic, ...] = ()
    label: str = ""
    additive: bool = True
    margin: int | None = None
    margins: Ints | None = None

    def __post_init__(self) -> None:
        for name in ARRAYS:
            array = getattr(self, name)
            if array is None:
                continue
            if array.shape != self.shape:
                raise InputError(
                    f"A release of {' x '.join(map(str, self.shape)) or '1'} cells got {name} of shape "
                    f"{array.shape}; the shapes must be equal."
                )
            object.__setattr__(self, name, _kept(array))
        if not self.known.all():  # what stands behind a hidden cell goes nowhere
            object.__setattr__(self, "numbers", _kept(np.where(self.known, self.numbers, 0)))

    def __repr__(self) -> str:
        names = " x ".join(a.name for a in self.axes) or "everybody"
        return f"Release({names}, by {self.method.get('method')})"

    def __getitem__(self, key: object) -> NoReturn:
        raise InputError(
            "A release is read as a frame: release.to_pandas(), to_polars() or to_arrow(), a row for each cell."
        )

    def _repr_html_(self) -> str:
        """The published numbers, for a notebook."""
        return str(frames().release_html(self))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis) for axis in self.axes)

    @cached_property
    def inner(self) -> Mask:
        return inner_cells(self.axes)

    @cached_property
    def shown(self) -> Mask:
        """Which values may be seen; the others are suppressed, which is never 0."""
        return np.asarray(self.status == CellStatus.FREE.value)

    @cached_property
    def known(self) -> Mask:
        """Which cells have a value that can be written: those shown, except numbers that do not exist."""
        return self.shown if self.undefined is None else np.asarray(self.shown & ~self.undefined)

    @cached_property
    def published(self) -> npt.NDArray[Any]:
        """The numbers as a reader sees them: whole, or with NaN in each cell that has none, as in pandas."""
        return _seen(self.numbers, self.known, np.nan)

    @cached_property
    def low(self) -> npt.NDArray[Any] | None:
        """The least that each true value can be, ``-inf`` where the release states nothing."""
        if self.least is None:
            return None
        return _seen(self.least, (self.known | self.stated) & (self.least > -_OPEN), -np.inf)

    @cached_property
    def high(self) -> npt.NDArray[Any] | None:
        """The most that each true value can be, ``inf`` where the release states nothing."""
        if self.most is None:
            return None
        return _seen(self.most, (self.known | self.stated) & (self.most < _OPEN), np.inf)

    @cached_property
    def error_margins(self) -> Ints | None:
        """How far each true value rarely is away, -1 where nothing is stated; None where it is nowhere."""
        if self.margin is None:
            return self.margins
        return np.where(self.known, np.int64(self.margin), np.int64(-1))

    def written(self, value: int, position: int) -> tuple[int, int]:
        """A value at a place along the last axis as it is written: in units of its last decimal, and these."""
        decimals = self.decimals_at(position)
        return value // 10 ** (self.decimals - decimals), decimals

    def unit_at(self, position: int) -> str:
        """The unit of the cells at a place along the last axis."""
        return self.statistics[position].unit if self.statistics else self.unit

    def decimals_at(self, position: int) -> int:
        """With how many decimals the cells at a place along the last axis are written."""
        return self.statistics[position].decimals if self.statistics else self.decimals

    @cached_property
    def stated(self) -> Mask:
        """Which suppressed cells have an interval stated instead of a value: partial suppression."""
        if self.least is None or self.most is None:
            return np.zeros(self.shape, dtype=np.bool_)
        # An interval of one value would be that value, which is not shown.
        inside = (self.least > -_OPEN) & (self.most < _OPEN) & (self.least < self.most)
        return np.asarray(~self.shown & inside)

    def take(self, picks: Sequence[npt.ArrayLike]) -> Release:
        """A part of the release: the given positions along each axis."""
        indices = [np.asarray(p, dtype=np.intp) for p in picks]
        sizes = map(len, self.axes)
        if all(np.array_equal(i, np.arange(n)) for i, n in zip(indices, sizes, strict=True)):
            return self
        grid = np.ix_(*indices) if indices else ()
        return replace(
            self,
            axes=tuple(
                replace(axis, categories=tuple(axis.categories[i] for i in index))
                for axis, index in zip(self.axes, indices, strict=True)
            ),
            statistics=tuple(self.statistics[i] for i in indices[-1]) if self.statistics else (),
            **self.each_array(lambda array: array[grid]),
        )

    def each_array(self, change: Callable[[Any], Any]) -> dict[str, Any]:
        """What the release has for every cell, changed in one way."""
        there = ((name, getattr(self, name)) for name in ARRAYS)
        return {name: change(array) for name, array in there if array is not None}


def _seen(whole: Ints, there: Mask, otherwise: float) -> npt.NDArray[Any]:
    return whole if there.all() else _kept(np.where(there, whole, otherwise))


STUDY = "A study: made with a seed, not for publication"


STUDIED = "study"
"""What says in the provenance of a table that a seed changed the records behind it."""


class SeededRelease(Release):
    """A release whose chance came from a seed or a generator: to compare methods, never to publish.

    Whoever knows or guesses the seed takes the noise off, so that nothing writes a study without being told to.
    """

    def __repr__(self) -> str:
        return f"Seeded{super().__repr__()}"

    @classmethod
    def of(cls, release: Release) -> SeededRelease:
        return cls(**{item.name: getattr(release, item.name) for item in fields(Release)})

    def marked(self) -> Release:
        """The numbers with a variable in front that says in every row that they are no publication."""
        names = {axis.name for axis in self.axes}
        name = next(n for k in count() if (n := "study" + "_" * k) not in names)
        mark = TableAxis.plain(name, ["not for publication"], [STUDY])
        return Release(
            **{item.name: getattr(self, item.name) for item in fields(self)}
            | self.each_array(lambda array: array.reshape(1, *self.shape))
            | {"axes": (mark, *self.axes)}
        )


def check_publishable(release: object, user: str) -> None:
    """Raise an error for what is no release, and for a study."""
    check_release(release, user)
    if isinstance(release, SeededRelease):
        raise InputError(
            f"{user} is for publication, and this release was made with a seed ('rng'): whoever guesses it "
            "takes the noise off. Apply the method with 'secret' instead, or write it with study=True."
        )


def check_release(value: object, user: str) -> None:
    """Raise an error if a value is no release; ``user`` says what needs one."""
    if not isinstance(value, Release):
        raise InputError(
            f"{user} needs a lustrum Release, not {kind_of(value)}; the 'apply' of a protection method "
            "makes one."
        )


def check_letters(release: Release) -> None:
    """Raise an error if a status is no letter of the code list: nobody knows what is shown of such a cell."""
    letters = [status.value for status in CellStatus]
    for wrong in release.status[~np.isin(release.status, letters)].ravel()[:1]:
        raise InputError(
            f"A release has a cell with the status {str(wrong)!r}; a status is one of the letters "
            f"{', '.join(letters)}."
        )
