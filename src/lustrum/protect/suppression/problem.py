"""The problem of secondary suppression: cells, relations, what needs protection, and what it costs.

A cell i with value ``a_i`` is suppressed or published. An attacker knows all published values, all relations,
and that every suppressed value lies between its attacker bounds. A primary cell p is protected where values
that the attacker cannot rule out reach down to ``a_p - lower_p``, up to ``a_p + upper_p``, and are at least
``sliding_p`` apart (Fischetti and Salazar 2000). The task is to find the cheapest set of further cells that
achieves this for all primary cells and all attackers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Indices, Ints, Mask, Sparse
from lustrum.model.errors import choices
from lustrum.numeric.arithmetic import log
from lustrum.numeric.arithmetic import power as power_of
from lustrum.numeric.structure import Relations

if TYPE_CHECKING:
    from lustrum.protect.suppression.unions import RuleOnUnions

RelationsLike: TypeAlias = "Relations | Sparse | Iterable[tuple[int, Sequence[int]]]"

_LARGEST = 2**53  # beyond this, audits are no longer exact


@dataclass(frozen=True, eq=False, repr=False)
class ContributorView:
    """What a contributor, or a coalition, knows in advance about some cells: bounds of each.

    A sole contributor knows its cell exactly, so both ends are the value. A holding that contributes to a
    cell knows that the cell holds at least its own contribution. ``targets`` are the cells that must stay
    protected from this attacker; by default all primary cells. ``levels`` are the levels, in rows for lower,
    upper and sliding, that the ``cells`` themselves need against it: what others contribute to a cell must
    stay protected from one who contributes to it too. Without ``levels``, targets among its ``cells`` need
    their full levels if they are named, and none if they are not.
    """

    name: str
    cells: Ints
    low: Ints
    high: Ints
    targets: Mask | None = None
    levels: Ints | None = None
    members: tuple[int, ...] = ()
    """The numbers of the holdings that attack, where they are known."""

    def __repr__(self) -> str:
        return f"ContributorView({self.name!r}, {self.cells.size} cells)"


class CellNames(Protocol):
    """The names of cells by their numbers: a list, or made on demand."""

    def __len__(self) -> int: ...

    def __getitem__(self, cell: int, /) -> str: ...


@dataclass(frozen=True, eq=False)
class AxisSums:
    """One axis of a table: how many categories it has, and which are sums of which others."""

    size: int
    sums: tuple[tuple[int, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class SuppressionProblem:
    """All arrays run over the cells; levels are 0 where a cell is not primary. Use :meth:`of` to make one.

    ``relations`` is a sparse matrix R with ``R @ values == 0``. ``low`` and ``high`` are the attacker bounds.
    ``frozen`` cells must be published; ``never`` cells are never published, cost nothing and need no
    protection. ``whole`` says that the attacker knows all values to be whole numbers, as counts are. ``views``
    are attackers beside the outsider, ``unions`` judges sums of suppressed cells, and ``axes`` is set where the
    cells are those of one table in row-major order.

    Nothing of the confidential values is in the ``repr``.

    >>> problem = SuppressionProblem.of([5, 3, 8], [(2, [0, 1])], primary=[0], upper=[1])
    >>> problem, problem.cost.tolist()
    (SuppressionProblem(3 cells, 1 relation, 1 primary), [5.0, 3.0, 8.0])
    """

    values: Ints
    relations: Sparse
    primary: Mask
    lower: Ints
    upper: Ints
    sliding: Ints
    low: Ints
    high: Ints
    cost: Floats
    frozen: Mask
    never: Mask
    whole: bool = False
    names: CellNames | None = None
    views: tuple[ContributorView, ...] = ()
    unions: RuleOnUnions | None = None
    axes: tuple[AxisSums, ...] | None = field(default=None)

    def __post_init__(self) -> None:
        cells = self.values.size
        for name in (
            "values primary lower upper sliding low high cost frozen never".split()  # noqa: SIM905
        ):
            array = getattr(self, name)
            if array.shape != (cells,):
                raise InputError(
                    f"A problem of {cells} cells got '{name}' of shape {array.shape}; it must be ({cells},)."
                )
            frozen = array.view()
            frozen.setflags(write=False)
            object.__setattr__(self, name, frozen)
        _check(self)

    def __repr__(self) -> str:
        rows, count, cells = self.relations.shape[0], int(self.primary.sum()), self.values.size
        plural = "s" * (rows != 1)
        return f"SuppressionProblem({cells} cells, {rows} relation{plural}, {count} primary)"

    def __len__(self) -> int:
        return int(self.values.size)

    @classmethod
    def of(
        cls,
        values: npt.ArrayLike,
        relations: RelationsLike,
        primary: npt.ArrayLike,
        upper: npt.ArrayLike,
        lower: npt.ArrayLike | None = None,
        *,
        sliding: npt.ArrayLike | None = None,
        low: npt.ArrayLike | None = None,
        high: npt.ArrayLike | None = None,
        cost: npt.ArrayLike | None = None,
        frozen: npt.ArrayLike | None = None,
        never: npt.ArrayLike | None = None,
        whole: bool = False,
        names: CellNames | None = None,
        views: Iterable[ContributorView] = (),
        unions: RuleOnUnions | None = None,
        axes: Iterable[AxisSums] | None = None,
    ) -> SuppressionProblem:
        """Put a problem together.

        ``relations`` are a matrix, the relations of a structure, or pairs of a total and its parts.
        ``primary``, ``frozen`` and ``never`` are masks or cell numbers. Levels have one entry a cell, or
        one a primary cell in order; ``lower`` is as ``upper`` unless given, and every primary cell needs one
        that is not 0. Attacker bounds run from 0 (or minus the largest size, where a value is negative) to
        the largest size of any value, unless given. The cost of a cell is the size of its value unless given.
        """
        a = _whole(values, "values")
        marks = _mask(primary, a.size, "primary")
        order = None if _is_mask(primary) else np.asarray(primary, dtype=np.intp).ravel()
        top = int(np.abs(a).max(initial=0))
        floor = -top if bool((a < 0).any()) else 0
        above = _levels(upper, marks, order, "upper")
        problem = cls(
            values=a,
            relations=_matrix(relations, a.size),
            primary=marks,
            lower=above if lower is None else _levels(lower, marks, order, "lower"),
            upper=above,
            sliding=_levels(0 if sliding is None else sliding, marks, order, "sliding"),
            low=_spread(floor if low is None else low, a.size, "low"),
            high=_spread(top if high is None else high, a.size, "high"),
            cost=np.abs(a).astype(np.float64)
            if cost is None
            else np.broadcast_to(np.asarray(cost, dtype=np.float64), a.shape).copy(),
            frozen=_mask(() if frozen is None else frozen, a.size, "frozen"),
            never=_mask(() if never is None else never, a.size, "never"),
            whole=whole,
            names=names,
            views=tuple(views),
            unions=unions,
            axes=None if axes is None else tuple(axes),
        )
        levels = problem.lower + problem.upper + problem.sliding
        bare = np.flatnonzero(problem.primary & (levels == 0))
        if bare.size:
            raise InputError(
                f"Primary {problem.name(int(bare[0]))} has a level of 0, so readers might work it out; "
                "give a level of at least 1, or name it in 'never' if it needs no protection."
            )
        return problem

    @property
    def fixed(self) -> Mask:
        return np.asarray(self.primary | self.never)

    @property
    def choice(self) -> Mask:
        return np.asarray(~self.fixed & ~self.frozen)

    @cached_property
    def room_down(self) -> Ints:
        """How much lower each suppressed value can be, as far as an outsider knows."""
        return self.values - self.low

    @cached_property
    def room_up(self) -> Ints:
        """How much higher each suppressed value can be, as far as an outsider knows."""
        return self.high - self.values

    def levels_against(self, view: ContributorView | None) -> tuple[Mask, Ints, Ints, Ints]:
        """The cells that must stay protected from an attacker, and all lower, upper and sliding levels."""
        levels = self.lower, self.upper, self.sliding
        if view is None:
            return self.primary, *levels
        targets = self.primary.copy() if view.targets is None else view.targets & self.primary
        if view.levels is None:
            if view.targets is None:
                targets[view.cells] = False
            return targets, *levels
        lower, upper, sliding = (level.copy() for level in levels)
        lower[view.cells], upper[view.cells], sliding[view.cells] = view.levels
        targets[view.cells] &= (view.levels > 0).any(axis=0)
        return targets, lower, upper, sliding

    def name(self, cell: int) -> str:
        return f"cell {cell}" if self.names is None else str(self.names[cell])

    def total_cost(self, suppressed: Mask) -> float:
        return float(self.cost[suppressed & ~self.fixed].sum())

    def with_cost(self, cost: npt.ArrayLike) -> SuppressionProblem:
        return replace(self, cost=np.asarray(cost, dtype=np.float64))


def _check(problem: SuppressionProblem) -> None:
    a = problem.values
    if int(np.abs(a).max(initial=0)) > _LARGEST:
        raise InputError(
            "A value is beyond 2**53, where audits are no longer exact; use larger units."
        )
    if problem.relations.shape[1] != a.size:
        raise InputError(
            f"The relations are about {problem.relations.shape[1]} cells, but there are {a.size} values."
        )
    broken = np.flatnonzero(problem.relations @ a)
    if broken.size:
        row = problem.relations[[int(broken[0])]]
        total = int(row.indices[np.argmin(row.data)])
        raise InputError(
            f"The relation for {problem.name(total)} does not add up ({broken.size} in all do not); "
            "give tables whose totals are the exact sums of their parts."
        )
    if bool((~np.isfinite(problem.cost)).any() or (problem.cost < 0).any()):
        raise InputError("A cost is negative or not a number; costs must be 0 or more.")
    for level in (problem.lower, problem.upper, problem.sliding):
        if bool((level < 0).any()):
            raise InputError("A protection level is negative; it must be 0 or more.")
    both = np.flatnonzero(problem.fixed & problem.frozen)
    if both.size:
        raise InputError(
            f"{problem.name(int(both[0]))} must be published and must not be published; choose one."
        )
    outside = np.flatnonzero((a < problem.low) | (a > problem.high))
    if outside.size:
        raise InputError(
            f"The attacker bounds of {problem.name(int(outside[0]))} do not hold its value; widen them."
        )
    if problem.names is not None and len(problem.names) != a.size:
        raise InputError(f"There are {a.size} cells but {len(problem.names)} names.")
    if problem.axes is not None:
        size = int(np.prod([axis.size for axis in problem.axes], dtype=np.int64))
        if size != a.size:
            raise InputError(f"The axes have {size} cells together, but there are {a.size} values.")
    for view in problem.views:
        known = a[view.cells]
        if bool(((known < view.low) | (known > view.high)).any()):
            raise InputError(f"What {view.name} knows does not hold the values of its cells.")
        if view.levels is not None and view.levels.shape != (3, view.cells.size):
            raise InputError(
                f"The levels against {view.name} must have 3 rows and a column for each of its "
                f"{view.cells.size} cells."
            )


def _matrix(relations: RelationsLike, cells: int) -> Sparse:
    if isinstance(relations, Relations):
        matrix = sparse.csr_array(relations.matrix)
    elif sparse.issparse(relations):
        matrix = sparse.csr_array(relations)
    else:
        pairs = [(int(total), [int(p) for p in parts]) for total, parts in relations]
        lengths = [1 + len(parts) for _, parts in pairs]
        columns = [c for total, parts in pairs for c in (total, *parts)]
        if columns and not 0 <= min(columns) <= max(columns) < cells:
            raise InputError(
                f"A relation names a cell that does not exist; cells run from 0 to {cells - 1}."
            )
        data = [w for _, parts in pairs for w in (-1, *([1] * len(parts)))]
        indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        matrix = sparse.csr_array((data, columns, indptr), shape=(len(pairs), cells))
    matrix = matrix.astype(np.int64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def _whole(values: npt.ArrayLike, what: str) -> Ints:
    raw = np.asarray(values)
    if raw.ndim != 1:
        raw = raw.ravel()
    if raw.dtype.kind == "f":
        if not bool((np.isfinite(raw) & (raw == np.rint(raw))).all()):
            raise InputError(f"'{what}' must be whole numbers; give fractions in smaller units.")
    elif raw.dtype.kind not in "iub":
        raise InputError(f"'{what}' must be whole numbers.")
    return raw.astype(np.int64)


def _spread(given: npt.ArrayLike, cells: int, what: str) -> Ints:
    array = np.asarray(given)
    return _whole(np.broadcast_to(array, (cells,)) if array.ndim == 0 else array, what).copy()


def _is_mask(given: npt.ArrayLike) -> bool:
    return np.asarray(given).dtype == np.bool_


def _mask(given: npt.ArrayLike, cells: int, what: str) -> Mask:
    array = np.asarray(given)
    if array.dtype == np.bool_:
        if array.size != cells:
            raise InputError(
                f"The mask '{what}' has {array.size} entries; there are {cells} cells."
            )
        return array.ravel().copy()
    out = np.zeros(cells, dtype=np.bool_)
    picks = array.astype(np.intp).ravel()
    if picks.size and not 0 <= int(picks.min()) <= int(picks.max()) < cells:
        raise InputError(
            f"'{what}' names a cell that does not exist; cells run from 0 to {cells - 1}."
        )
    out[picks] = True
    return out


def _levels(given: npt.ArrayLike, primary: Mask, order: Indices | None, what: str) -> Ints:
    array = np.asarray(given)
    if array.ndim and array.dtype.kind == "f":
        # A fraction of a unit must be covered in full.
        array = np.ceil(array - 1e-9)
    elif array.ndim == 0:
        array = np.broadcast_to(np.ceil(array - 1e-9), primary.shape)
    array = _whole(array, what)
    if array.size == primary.size:
        return np.where(primary, array, 0)
    picks = np.flatnonzero(primary) if order is None else order
    if array.size != picks.size:
        raise InputError(
            f"The levels '{what}' have {array.size} entries; give one a cell ({primary.size}) or one a "
            f"primary cell ({picks.size})."
        )
    out = np.zeros(primary.size, dtype=np.int64)
    np.maximum.at(out, picks, array)
    return out


# What the suppression of a cell costs: how much of the table is lost with it.


CostWord = Literal["value", "count", "frequency", "unity", "distance", "box-cox"]


def cell_costs(
    word: CostWord,
    values: npt.ArrayLike,
    *,
    contributors: npt.ArrayLike | None = None,
    primary: npt.ArrayLike | None = None,
    shape: tuple[int, ...] | None = None,
    power: float = 0.5,
) -> Floats:
    """The cost of every cell.

    ``value`` is the size of the value, ``count`` and ``frequency`` the number of contributors, ``unity`` 1 for
    each cell. ``distance`` grows with the distance to the nearest primary cell, counted in positions along the
    axes. ``box-cox`` is ``(|value| + 1) ** power``, or its logarithm for a power of 0: between unity and value.

    >>> cell_costs("box-cox", [0, 3, 99]).tolist()
    [1.0, 2.0, 10.0]
    """
    size = np.abs(np.asarray(values, dtype=np.float64)).ravel()
    if word == "value":
        return size
    if word == "unity":
        return np.ones(size.size)
    if word in ("count", "frequency"):
        if contributors is None:
            raise InputError(f"The cost {word!r} needs the number of contributors of every cell.")
        return np.asarray(contributors, dtype=np.float64).ravel()
    if word == "box-cox":
        if not 0 <= power <= 1:
            raise InputError("The power of the cost 'box-cox' must be between 0 and 1.")
        return log(size + 1.0) + 1.0 if power == 0 else power_of(size + 1.0, power)
    if word == "distance":
        if primary is None or shape is None:
            raise InputError(
                "The cost 'distance' needs the primary cells and the shape of the table."
            )
        return distance_costs(np.asarray(primary, dtype=np.bool_), shape)
    raise InputError(
        f"'cost' of suppression cannot be {word!r}; {choices(str(word), get_args(CostWord))}."
    )


def distance_costs(primary: Mask, shape: tuple[int, ...]) -> Floats:
    """1 more than the steps to the nearest primary cell, where a step leads to a neighbour along an axis."""
    from scipy.ndimage import distance_transform_cdt

    marks = primary.reshape(shape)
    if not shape or not bool(marks.any()):
        return np.ones(primary.size)
    return (
        np.asarray(distance_transform_cdt(~marks, metric="taxicab"), dtype=np.float64).ravel() + 1.0
    )
