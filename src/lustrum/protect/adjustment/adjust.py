"""Controlled tabular adjustment on arrays: the nearest additive table in which sensitive cells have moved.

Every sensitive cell is published at least its upper protection level above or its lower one below its true
value; the other cells move as little as additivity requires (Dandekar and Cox 2002; Castro 2006, 2012).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.model import InputError, InternalError
from lustrum.model.arrays import Floats, Indices, Ints, Sparse
from lustrum.model.errors import choices
from lustrum.numeric.solve.products import one_thread
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.adjustment.problem import reduce_problem
from lustrum.protect.adjustment.search import DirectionWord, Norm, search
from lustrum.protect.adjustment.whole import nearest_whole, whole_moves
from lustrum.protect.adjustment.work import STEPS, Work

WeightWord = Literal["reciprocal", "unit"]

_EXACT = 2**53


@dataclass(frozen=True, eq=False, repr=False)
class Adjusted:
    """An adjusted table and how good it is.

    ``distance`` is that of the whole numbers, ``real_distance`` that of the real solution they were rounded
    from, and no adjustment with any directions is closer than ``bound`` (0 where nothing is proven).
    ``gap`` is the share of the distance that is not proven to be necessary. ``cut_short`` says whether the
    steps ran out before the search ended.
    """

    values: Ints
    norm: Norm
    distance: float
    real_distance: float
    bound: float
    cut_short: bool

    def __repr__(self) -> str:
        return f"Adjusted({self.values.size} cells by {self.norm})"

    @property
    def gap(self) -> float:
        """The share of the distance that is not proven to be necessary, from 0 to 1."""
        return 0.0 if self.distance <= 0 else max(0.0, 1.0 - self.bound / self.distance)


def adjust(
    values: npt.ArrayLike,
    relations: Sparse,
    sensitive: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    *,
    norm: Norm = "l1",
    directions: DirectionWord | Sequence[int] | npt.NDArray[Any] = "heuristic",
    low: npt.ArrayLike | None = None,
    high: npt.ArrayLike | None = None,
    frozen: npt.ArrayLike | None = None,
    weights: WeightWord | npt.ArrayLike = "reciprocal",
    max_change: float | None = None,
    steps: int = STEPS,
    rng: np.random.Generator | None = None,
) -> Adjusted:
    """Move sensitive cells by their levels and all others as little as possible; exact and additive.

    ``values`` are whole numbers with ``relations @ values = 0``. ``sensitive`` is a mask or holds numbers
    of cells; ``lower`` and ``upper`` are their levels (0 for a direction that is not allowed), one for all
    or one each. ``low`` and ``high`` bound the published values: by default 0 and unbounded, and nothing at
    all for cells below 0. ``frozen`` cells stay. ``max_change`` is the largest share of its own size by
    which any cell may move. ``weights`` are one over the size of the cell, all one, or given.
    ``directions`` names a search, or gives +1 or -1 for each sensitive cell. Random choices use ``rng``;
    without it a fixed order is used.

    >>> table = sparse.csr_array([[1, 1, 1, -1]])
    >>> found = adjust([40, 30, 5, 75], table, [2], 2, 2)
    >>> found.values.tolist(), round(found.distance, 3)
    ([40, 30, 7, 77], 0.427)
    """
    x = _whole(values, "values")
    matrix = _relations(relations, x)
    places = _places(sensitive, x.size)
    down, up = (_levels(v, places.size, n) for v, n in ((lower, "lower"), (upper, "upper")))
    least, most = _moves(x, low, high, frozen, max_change)
    if bool((down + up == 0).any()):
        raise InputError("A sensitive cell has no protection level; give 1 or more for one way.")
    given = None
    if not isinstance(directions, str):
        given = _given(directions, places.size)
        down, up = np.where(given > 0, 0, down), np.where(given > 0, up, 0)
        if bool((down + up == 0).any()):
            raise InputError("A direction was given that a level of 0 rules out.")
    elif directions not in get_args(DirectionWord):
        known = choices(directions, get_args(DirectionWord))
        raise InputError(f"There is no way {directions!r} to find directions; {known}.")
    if norm not in get_args(Norm):
        raise InputError(f"The norm of an adjustment is 'l1' or 'l2', not {norm!r}.")
    if type(steps) is not int or steps < 1:
        raise InputError("An adjustment needs 1 step of work or more; 'steps' is a whole number.")
    cost = _weights(weights, x)
    problem = reduce_problem(matrix, np.abs(x), least, most, places, down, up, cost)
    work = Work(steps)
    word: DirectionWord = "heuristic" if given is not None else directions  # type: ignore[assignment]
    with one_thread():
        movement = search(problem, norm, word, work, rng)
    # The last part makes the table publishable, so some work is always reserved for it.
    rounding = Work(max(work.left, steps // 4))
    ends = problem.bounds(movement.directions)

    def price(moved: Ints) -> Floats:
        size = np.abs(moved.astype(np.float64))
        return problem.weights * (size if norm == "l1" else size * size)

    moved: Ints | None = None
    if norm == "l2":  # hardly any cell is whole; rounding through the free cells still works
        moved = whole_moves(problem, movement.moved, *ends, rounding.part(0.5))
    if moved is None:
        zeros = np.zeros(problem.relations.shape[0], dtype=np.int64)
        moved, _ = nearest_whole(problem.relations, zeros, movement.moved, *ends, price, rounding)
    if moved is None and norm == "l1":
        moved = whole_moves(problem, movement.moved, *ends, Work(steps // 4))
    if moved is None:
        raise InputError(
            f"No whole numbers near the adjustment were found that add up within {steps:,} steps; allow "
            "more 'steps', or more decimals."
        )
    published = x + problem.spread(moved)
    _prove(published, x, matrix, places, down, up, least, most)
    distance = problem.distance(moved, norm)
    return Adjusted(
        published, norm, distance, movement.cost, min(movement.bound, distance), movement.cut_short
    )


def largest_moves(values: Ints, share: float) -> Ints:
    """The largest change of each value: a share of its own size, rounded down exactly."""
    part = Fraction(str(share))
    top, bottom = part.numerator, part.denominator
    whole = np.abs(values).astype(object) * top // bottom
    return np.asarray(whole.astype(np.int64))


def _prove(
    published: Ints,
    x: Ints,
    matrix: Sparse,
    places: Indices,
    down: Ints,
    up: Ints,
    least: Ints,
    most: Ints,
) -> None:
    """Check the result exactly before it is returned."""
    moved = published - x
    cell_moves = moved[places]
    far = ((up > 0) & (cell_moves >= up)) | ((down > 0) & (cell_moves <= -down))
    adds_up = not bool((matrix @ published).any())
    inside = bool(((least <= moved) & (moved <= most)).all())
    if not (adds_up and inside and bool(far.all())):
        raise InternalError("An adjusted table fails its own proof; this is a bug of Lustrum.")


def _whole(values: npt.ArrayLike, name: str) -> Ints:
    raw = np.asarray(values)
    if raw.ndim != 1 or raw.dtype.kind not in "iu":
        raise InputError(f"The {name} of an adjustment must be a flat array of whole numbers.")
    if raw.size and bool((np.abs(raw) >= _EXACT).any()):
        raise InputError("An adjustment needs values below 2**53; use fewer decimals.")
    return raw.astype(np.int64)


def _relations(relations: Sparse, x: Ints) -> Sparse:
    matrix = sparse.csr_array(relations)
    if matrix.shape[1] != x.size:
        raise InputError(f"There are {x.size} values, but relations of {matrix.shape[1]} cells.")
    if bool((matrix.data != np.round(matrix.data)).any()):
        raise InputError("Relations must have whole coefficients.")
    matrix = matrix.astype(np.int64)
    if bool((matrix @ x).any()):
        raise InputError(
            "The values do not satisfy the relations; they must add up before the adjustment."
        )
    return matrix


def _places(sensitive: npt.ArrayLike, size: int) -> Indices:
    given = np.asarray(sensitive)
    if given.dtype == np.bool_:
        if given.shape != (size,):
            raise InputError(f"The mask of sensitive cells must have {size} entries.")
        return np.flatnonzero(given)
    if given.size == 0:
        return np.zeros(0, dtype=np.intp)
    if given.dtype.kind not in "iu" or given.ndim != 1:
        raise InputError("Sensitive cells are a mask or a list of numbers of cells.")
    if given.min() < 0 or given.max() >= size or np.unique(given).size != given.size:
        raise InputError(f"Sensitive cells must be different numbers from 0 to {size - 1}.")
    return given.astype(np.intp)


def _levels(level: npt.ArrayLike, count: int, name: str) -> Ints:
    given = np.asarray(level)
    if given.size == count == 0:
        return np.zeros(0, dtype=np.int64)
    if given.dtype.kind not in "iu" or given.shape not in ((), (count,)):
        raise InputError(
            f"The {name} levels must be whole numbers, one for all or one for each of the {count} "
            "sensitive cells."
        )
    if given.size and (given.min() < 0 or given.max() >= _EXACT):
        raise InputError(f"The {name} levels must not be below 0, and must be below 2**53.")
    return np.broadcast_to(given, (count,)).astype(np.int64)


def _moves(
    x: Ints,
    low: npt.ArrayLike | None,
    high: npt.ArrayLike | None,
    frozen: npt.ArrayLike | None,
    max_change: float | None,
) -> tuple[Ints, Ints]:
    """How far each cell may fall and rise."""
    open_low = np.where(x >= 0, -x, -UNBOUNDED)
    least = open_low if low is None else _end(low, x, "low") - x
    most = np.full(x.size, UNBOUNDED) if high is None else _end(high, x, "high") - x
    least = np.where(least < -_EXACT * 2, -UNBOUNDED, least)
    most = np.where(most > _EXACT * 2, UNBOUNDED, most)
    if bool((least > 0).any() or (most < 0).any()):
        raise InputError("A true value lies outside its own bounds; 'low' and 'high' must hold it.")
    if max_change is not None:
        if not 0 < max_change < 1:
            raise InputError("The largest change is a share above 0 and below 1, such as 0.2.")
        reach = largest_moves(x, max_change)
        least, most = np.maximum(least, -reach), np.minimum(most, reach)
    if frozen is not None:
        still = np.asarray(frozen)
        if still.dtype != np.bool_ or still.shape != x.shape:
            raise InputError(f"'frozen' must be a mask of {x.size} cells.")
        least, most = np.where(still, 0, least), np.where(still, 0, most)
    return least.astype(np.int64), most.astype(np.int64)


def _end(end: npt.ArrayLike, x: Ints, name: str) -> Ints:
    given = np.asarray(end)
    if given.dtype.kind not in "iu" or given.shape not in ((), x.shape):
        raise InputError(f"'{name}' must be whole numbers, one for all or one for each cell.")
    # A bound beyond what a table can hold is no bound.
    return np.clip(np.broadcast_to(given, x.shape).astype(np.int64), -UNBOUNDED, UNBOUNDED)


def _given(directions: Any, count: int) -> Ints:
    signs = np.asarray(directions)
    if signs.shape != (count,) or not bool(np.isin(signs, (-1, 1)).all()):
        raise InputError(f"Directions must be +1 or -1 for each of the {count} sensitive cells.")
    return signs.astype(np.int64)


def _weights(weights: WeightWord | npt.ArrayLike, x: Ints) -> Floats:
    if isinstance(weights, str):
        if weights not in get_args(WeightWord):
            known = choices(weights, get_args(WeightWord))
            raise InputError(f"There are no weights {weights!r}; {known}.")
        size = np.maximum(np.abs(x), 1).astype(np.float64)
        return 1.0 / size if weights == "reciprocal" else np.ones(x.size)
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != x.shape or not bool((np.isfinite(given) & (given > 0)).all()):
        raise InputError(f"Weights must be {x.size} numbers above 0.")
    return given
