"""Tables: what an engine answers, before anything is protected.

A table holds confidential numbers. Its ``repr`` and its errors never show one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Floats, Indices, Ints, Mask, Words
from lustrum.model.errors import InputError, check_known, kind_of
from lustrum.model.hierarchy import Category
from lustrum.model.labelled_counts import is_labelled, read_labelled, whole_numbers
from lustrum.model.plugins import load

if TYPE_CHECKING:
    import pandas
    import polars

    from lustrum.model.dataset import Dataset
    from lustrum.model.query import TableQuery

# What tables, releases and decisions share: they turn into frames of pandas, polars and Arrow.


class Framed:
    """Something that turns into a frame: a row for each cell, or ``wide`` with the last axis as columns.

    A value that is not shown is missing, never a number that stands for it. ``labels`` stand beside the codes,
    or instead of them where the frame is wide. Bounds, standard errors and reliability are kept.
    """

    def to_pandas(self, *, labels: bool = True, wide: bool = False) -> pandas.DataFrame:
        """A pandas frame of the cells, long or ``wide``, with ``labels`` or without."""
        frame: pandas.DataFrame = frames().to_pandas(self._cells(), labels=labels, wide=wide)
        return frame

    def to_polars(self, *, labels: bool = True, wide: bool = False) -> polars.DataFrame:
        """A polars frame of the cells, long or ``wide``, with ``labels`` or without."""
        frame: polars.DataFrame = frames().to_polars(self._cells(), labels=labels, wide=wide)
        return frame

    def to_arrow(self, *, labels: bool = True, wide: bool = False) -> Any:
        """An Arrow table of the cells, long or ``wide``, with ``labels`` or without."""
        return frames().to_arrow(self._cells(), labels=labels, wide=wide)

    def _cells(self) -> Any:
        """The table or release that becomes a frame."""
        return self


def frames() -> Any:
    """What makes the frames: a room above the model has registered it, and it is imported when asked for."""
    return load("lustrum.frames", "frames")


# A misspelt argument is one sentence that names the right one.

P = ParamSpec("P")
T = TypeVar("T")


def known_words(function: Callable[P, T]) -> Callable[P, T]:
    """Check the names of keyword arguments before a call; type checkers see the signature as it is.

    >>> @known_words
    ... def count(totals: bool = False) -> bool:
    ...     return totals
    >>> count(toatls=True)
    Traceback (most recent call last):
    ...
    lustrum.model.errors.InputError: 'count' has no argument 'toatls'; did you mean 'totals'? There are: totals.
    """
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        check_known(kwargs, names, f"{function.__name__!r} has no argument")
        return function(*args, **kwargs)

    return checked


Keys = Words


@dataclass(frozen=True)
class TableAxis:
    """One dimension of a table: a variable and the categories that stand along it."""

    name: str
    label: str
    categories: tuple[Category, ...]

    def __len__(self) -> int:
        return len(self.categories)

    @cached_property
    def codes(self) -> tuple[str, ...]:
        return tuple(c.code for c in self.categories)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(c.label for c in self.categories)

    @cached_property
    def minimal(self) -> Mask:
        """Which categories hold no smaller category of the axis: not totals, not subtotals."""
        every = [c.members for c in self.categories]
        if sum(map(len, every)) == len(set().union(*every)):
            return _frozen(np.ones(len(every), dtype=np.bool_))  # none overlaps another
        alone = {members[0] for members in every if len(members) == 1}
        # What holds a category of one code holds a smaller one; the others hold none that does.
        flags = np.array([len(m) == 1 or alone.isdisjoint(m) for m in every], dtype=np.bool_)
        rest = [i for i in np.flatnonzero(flags).tolist() if len(every[i]) > 1]
        holders: dict[int, list[frozenset[int]]] = {}
        for i in rest:
            for member in every[i]:
                holders.setdefault(member, []).append(self.categories[i].member_set)
        for i in rest:
            member_set = self.categories[i].member_set
            # A category inside another shares a member with it, so only those that share one are compared.
            flags[i] = not any(
                len(other) < len(member_set) and other < member_set
                for member in every[i]
                for other in holders[member]
            )
        return _frozen(flags)

    @cached_property
    def inner(self) -> Mask:
        """The minimal categories, those with the same members once, so that nobody counts twice."""
        flags = self.minimal.copy()
        seen: set[object] = set()
        for position, category in enumerate(self.categories):
            members = category.members
            same = members[0] if len(members) == 1 else category.member_set
            if same in seen:
                flags[position] = False
            seen.add(same)
        return _frozen(flags)

    @classmethod
    def plain(
        cls, name: str, codes: Sequence[str], labels: Sequence[str] | None = None
    ) -> TableAxis:
        """An axis of codes that do not overlap, for tables that come from nowhere else."""
        names = codes if labels is None else labels
        return cls(
            name,
            name,
            tuple(Category(c, n, (i,)) for i, (c, n) in enumerate(zip(codes, names, strict=True))),
        )


@dataclass(frozen=True)
class Contributions:
    """The largest contributions of every cell, largest first, by absolute size.

    The last axis of each array runs over the rank; ``holding`` is -1 where a cell has fewer
    contributors than ranks. Several records of one holding count as one contributor. ``weight`` is
    that holding's mean weight in units of ``10**-weight_decimals``, or absent without weights.
    """

    value: Ints
    holding: Ints
    weight: Floats | None = None
    weight_decimals: int = 0

    def __post_init__(self) -> None:
        for name in ("value", "holding", "weight"):
            array = getattr(self, name)
            if array is not None:
                object.__setattr__(self, name, _kept(array))

    def __repr__(self) -> str:
        return f"Contributions(ranks={self.value.shape[-1]})"

    @property
    def present(self) -> Mask:
        """Which ranks are filled."""
        return self.holding >= 0


@dataclass(frozen=True, eq=False)
class Table(Framed):
    """An n-dimensional table of counts or magnitudes, frozen.

    ``values`` are exact integers in units of ``10**-decimals``. ``contributors`` counts the
    contributors of every cell (records, or holdings), unweighted. ``keys`` are summed record keys
    modulo 2**64. ``structural`` marks cells that cannot hold anybody.

    >>> table = Table.from_counts([[3, 0], [1, 2]], names=["area", "faith"])
    >>> table
    Table(area x faith, 2 x 2 cells, counts)
    """

    axes: tuple[TableAxis, ...]
    values: Ints
    kind: Literal["count", "magnitude"] = "count"
    decimals: int = 0
    unit: str = ""
    contributors: Ints | None = None
    keys: Keys | None = None
    contributions: Contributions | None = None
    structural: Mask | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = tuple(len(axis) for axis in self.axes)
        for name in ("values", "contributors", "keys", "structural"):
            array = getattr(self, name)
            if array is None:
                continue
            if array.shape != shape:
                raise InputError(
                    f"A table of {' x '.join(map(str, shape)) or '1'} cells got {name} of shape "
                    f"{array.shape}; the shapes must be equal."
                )
            object.__setattr__(self, name, _kept(array))
        if self.values.dtype != np.int64:
            raise InputError(
                "The values of a table must be 64-bit integers; give fractions as integers with "
                "'decimals'."
            )
        if self.kind == "count" and self.values.size and int(self.values.min()) < 0:
            raise InputError("A table of counts holds a negative value; counts are 0 or more.")

    def __repr__(self) -> str:
        names = " x ".join(a.name for a in self.axes) or "everybody"
        shape = " x ".join(str(len(a)) for a in self.axes) or "1"
        return f"Table({names}, {shape} cells, {self.kind}s)"

    def _repr_html_(self) -> str:
        """What the table is about, for a notebook; no number, since notebooks are stored and passed on."""
        return str(frames().table_html(self))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis) for axis in self.axes)

    @cached_property
    def inner(self) -> Mask:
        return inner_cells(self.axes)

    def take(self, picks: Sequence[npt.ArrayLike]) -> Table:
        """The sub-table of the given positions along each axis."""
        indices = [_positions(p) for p in picks]
        grid = np.ix_(*indices) if indices else ()
        axes = tuple(
            replace(axis, categories=tuple(axis.categories[i] for i in index))
            for axis, index in zip(self.axes, indices, strict=True)
        )
        contributions = self.contributions
        part = contributions and replace(
            contributions,
            value=contributions.value[grid],
            holding=contributions.holding[grid],
            weight=None if contributions.weight is None else contributions.weight[grid],
        )
        return replace(
            self,
            axes=axes,
            values=self.values[grid],
            contributors=None if self.contributors is None else self.contributors[grid],
            keys=None if self.keys is None else self.keys[grid],
            contributions=part,
            structural=None if self.structural is None else self.structural[grid],
        )

    @classmethod
    @known_words
    def from_counts(
        cls,
        counts: npt.ArrayLike,
        names: Sequence[str] | None = None,
        codes: Sequence[Sequence[str]] | None = None,
        keys: npt.ArrayLike | None = None,
        margins_name: str | Literal[False] | None = None,
    ) -> Table:
        """A table from an array of counts, with names and codes if there are any.

        A pandas frame or series, such as ``pandas.crosstab`` makes, brings its own: each level of the index and
        of the columns is an axis. Margins become totals. They are recognised by the name ``All`` or another
        usual one, or by ``margins_name``; a margin that is not the sum of its parts is refused, and so is an
        unnamed category that is the sum of all others, unless ``margins_name`` is False: then there are no
        margins.
        """
        key_array = None if keys is None else np.asarray(keys, dtype=np.uint64)
        if is_labelled(counts):
            if codes is not None:
                raise InputError("A frame of counts has codes of its own; leave 'codes' out.")
            parts, array = read_labelled(counts, names, margins_name)
            labelled = tuple(TableAxis(name, name, categories) for name, categories in parts)
            return cls(axes=labelled, values=array, keys=key_array, contributors=array.copy())
        if margins_name is not None:
            raise InputError(
                "'margins_name' is for frames of counts, which have labels; an array has none."
            )
        array = whole_numbers(counts)
        names = [f"v{i + 1}" for i in range(array.ndim)] if names is None else list(names)
        if len(names) != array.ndim:
            raise InputError(
                f"The counts have {array.ndim} dimensions but there are {len(names)} names."
            )
        if len(set(names)) < len(names):
            raise InputError(
                "Two dimensions of the counts have the same name; 'names' must differ."
            )
        if codes is None:
            codes = [[str(i + 1) for i in range(n)] for n in array.shape]
        if tuple(map(len, codes)) != array.shape:
            raise InputError(
                "'codes' must have a list for each dimension, with a code for each position."
            )
        axes = tuple(TableAxis.plain(n, c) for n, c in zip(names, codes, strict=True))
        return cls(axes=axes, values=array, keys=key_array, contributors=array.copy())

    @classmethod
    @known_words
    def from_frame(
        cls,
        frame: object,
        by: Sequence[str] | TableQuery,
        where: Mapping[str, Any] | None = None,
        *,
        totals: bool = False,
        measure: str | None = None,
        weight: str | None = None,
        dataset: Dataset | None = None,
        secret: object | None = None,
        ranks: int | None = None,
    ) -> Table:
        """Tabulate a pandas, polars or Arrow table in memory; see the engine ``frame``.

        ``by`` names the columns along the axes and ``where`` selects records; ``totals`` adds a total along
        every axis. Records are counted, or the values of a ``measure`` are added up; ``weight`` is a column of
        weights. Without a description (``dataset``) the categories of a column are those that occur,
        sorted; a categorical column keeps its own, in their order, also those that do not occur.
        ``secret`` makes record keys, and ``ranks`` is how many of the largest contributions to keep: 3 of a sum
        unless it says otherwise.
        """
        engine = load("lustrum.engines", "frame")
        table: Table = engine.tabulate_frame(
            frame,
            by,
            where,
            dataset=dataset,
            secret=secret,
            totals=totals,
            ranks=ranks,
            measure=measure,
            weight=weight,
        )
        return table


def inner_cells(axes: Sequence[TableAxis]) -> Mask:
    """The cells that are neither totals nor subtotals along any axis."""
    mask = np.ones((), dtype=np.bool_)
    for axis in axes:
        mask = mask[..., None] & axis.inner
    return _frozen(np.asarray(mask))


def whole_cells(axes: Sequence[TableAxis]) -> Mask:
    """The totals of everybody in a table: along every axis their category holds all members of the axis."""
    mask = np.ones((), dtype=np.bool_)
    for axis in axes:
        everybody = frozenset().union(*(category.member_set for category in axis.categories))
        mask = mask[..., None] & [category.member_set == everybody for category in axis.categories]
    return _frozen(np.asarray(mask) & ~inner_cells(axes))


def check_table(value: object, user: str) -> None:
    """Raise an error if a value is no table; ``user`` says what needs one."""
    if not isinstance(value, Table):
        raise InputError(
            f"{user} needs a lustrum Table, not {kind_of(value)}; make one with Table.from_frame or "
            "Table.from_counts."
        )


def _positions(picks: npt.ArrayLike) -> Indices:
    given = np.asarray(picks)
    return np.flatnonzero(given) if given.dtype == np.bool_ else given.astype(np.intp)


def _kept(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array if nobody can write to it, otherwise a copy that nobody can write to."""
    return _frozen(array.copy() if array.flags.writeable else array)


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.setflags(write=False)
    return view
