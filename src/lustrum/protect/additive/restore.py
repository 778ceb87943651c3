"""Restore additivity: fit a perturbed table to known margins, then round so that they hold exactly.

Iterative proportional fitting (Deming and Stephan 1940) scales a table to one margin after the other and keeps
its zeros and its odds ratios; controlled rounding to base 1 then makes the numbers whole. So a table
whose cells were perturbed one by one adds up to the margins that are published anyway (Shlomo, Antal and Elliot
2015, section 3.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Indices, Ints, Sparse
from lustrum.numeric.solve import Highs, LinearProblem, Outcome
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.adjustment.whole import nearest_whole
from lustrum.protect.adjustment.work import STEPS, Work

# Margins as layers: each cell is in at most one total of a layer, so one scaling fits a whole layer.


@dataclass(frozen=True, eq=False)
class Layer:
    """``labels[cell]`` is the total that a cell belongs to, or -1; ``name`` is for messages."""

    labels: Indices
    totals: Floats
    name: str

    @classmethod
    def of_axes(cls, shape: tuple[int, ...], axes: tuple[int, ...], margin: Floats) -> Layer:
        """The margin along some axes of a table, in rising order."""
        inner = np.arange(margin.size, dtype=np.intp).reshape(margin.shape)
        spread = [shape[axis] if axis in axes else 1 for axis in range(len(shape))]
        labels = np.broadcast_to(inner.reshape(spread), shape).ravel()
        return cls(labels, margin.ravel(), f"margin along axes {axes}")

    def matrix(self, cells: int) -> Sparse:
        inside = np.flatnonzero(self.labels >= 0)
        ones = np.ones(inside.size, dtype=np.int64)
        return sparse.csr_array(
            (ones, (self.labels[inside], inside)), shape=(self.totals.size, cells)
        )

    def sums(self, values: Floats) -> Floats:
        added = np.bincount(self.labels + 1, values, self.totals.size + 1)[1:]
        return np.asarray(added, dtype=np.float64)


def layers_of(matrix: Sparse, totals: Floats) -> list[Layer]:
    """Rows grouped into layers; each row goes to the first layer in which it overlaps no other row."""
    csr_matrix = sparse.csr_array(matrix)
    csr_matrix.eliminate_zeros()
    layers: list[tuple[Indices, list[int]]] = []
    for row in range(csr_matrix.shape[0]):
        cells = csr_matrix.indices[csr_matrix.indptr[row] : csr_matrix.indptr[row + 1]]
        home = next((one for one in layers if bool((one[0][cells] < 0).all())), None)
        if home is None:
            home = (np.full(csr_matrix.shape[1], -1, dtype=np.intp), [])
            layers.append(home)
        home[0][cells] = len(home[1])
        home[1].append(row)
    return [
        Layer(labels, totals[rows], f"layer {number} of the totals")
        for number, (labels, rows) in enumerate(layers)
    ]


def fit_layers(
    start: Floats, layers: Sequence[Layer], tolerance: float, rounds: int
) -> tuple[Floats, int, float, bool]:
    """Scale to each layer in turn; returns values, rounds, the largest error and whether it is small."""
    for layer in layers:
        if bool(((layer.sums(start) <= 0) & (layer.totals > 0)).any()):
            raise InputError(
                f"The {layer.name} asks for something where every cell of the table is 0; zeros stay "
                "zeros, so such a total must be 0 or the table must hold something there."
            )
    values = start.copy()
    largest = max((float(layer.totals.max(initial=0.0)) for layer in layers), default=0.0)
    small = tolerance * max(largest, 1.0)
    error, done = np.inf, 0
    while done < rounds and error > small:
        for layer in layers:
            sums = layer.sums(values)
            factors = np.append(
                np.divide(layer.totals, sums, out=np.zeros_like(sums), where=sums > 0), 1.0
            )
            values = values * factors[layer.labels]  # cells outside the layer use the last factor
        error = max(float(np.abs(y.sums(values) - y.totals).max(initial=0.0)) for y in layers)
        done += 1
    return values, done, error, error <= small


Axes: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Fitted:
    """A real table with the given margins; ``largest_error`` is the largest deviation from a margin."""

    values: Floats
    rounds: int
    largest_error: float
    converged: bool

    def __repr__(self) -> str:
        return f"Fitted({' x '.join(map(str, self.values.shape))} cells)"


@dataclass(frozen=True, eq=False, repr=False)
class RestoredTable:
    """A table of whole numbers.

    ``exact`` says whether every margin holds exactly; if not, ``largest_error`` is the largest deviation.
    ``nearest`` says whether no other rounding of each cell up or down to the same margins is nearer to the
    fitted table.
    """

    values: Ints
    exact: bool
    largest_error: int
    nearest: bool

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.values.shape))
        return f"RestoredTable({shape} cells, {'exact' if self.exact else 'not exact'})"


def fit(
    values: npt.ArrayLike,
    margins: Mapping[Axes, npt.ArrayLike],
    *,
    tolerance: float = 1e-9,
    rounds: int = 2000,
) -> Fitted:
    """Scale a table to margins, one after the other, until all hold; zeros stay zeros.

    A margin is given by the axes it runs along, ``()`` being the grand total, and its values. The
    ``tolerance`` is relative to the largest value of a margin.

    >>> fitted = fit([[1.0, 1.0], [1.0, 1.0]], {(0,): [30, 70], (1,): [40, 60]})
    >>> fitted.values.tolist()
    [[12.0, 18.0], [28.0, 42.0]]
    """
    start = _table(values)
    wanted = _margins(start.shape, margins)
    layers = [Layer.of_axes(start.shape, axes, wanted[axes]) for axes in wanted]
    fitted, done, error, good = fit_layers(start.ravel(), layers, tolerance, rounds)
    return Fitted(fitted.reshape(start.shape), done, error, good)


def restore(
    perturbed: npt.ArrayLike,
    margins: Mapping[Axes, npt.ArrayLike],
    *,
    steps: int = STEPS,
    tolerance: float = 1e-9,
    rounds: int = 2000,
) -> RestoredTable:
    """The whole table nearest to the fitted one whose margins hold to the last unit.

    For a two-way table with margins along one axis each, it is always found. With more dimensions a search
    runs, and the result says whether it succeeded.

    >>> restore([[3, 0], [6, 3]], {(0,): [4, 8], (1,): [9, 3]}).values.tolist()
    [[4, 0], [5, 3]]
    """
    start = _table(perturbed)
    wanted = {axes: _whole(m, str(axes)) for axes, m in _margins(start.shape, margins).items()}
    layers = [Layer.of_axes(start.shape, axes, wanted[axes]) for axes in wanted]
    restored = _restored(start.ravel(), layers, steps, tolerance, rounds)
    return RestoredTable(
        restored.values.reshape(start.shape),
        restored.exact,
        restored.largest_error,
        restored.nearest,
    )


def restore_sums(
    perturbed: npt.ArrayLike,
    incidence: Sparse,
    totals: npt.ArrayLike,
    *,
    steps: int = STEPS,
    tolerance: float = 1e-9,
    rounds: int = 2000,
) -> RestoredTable:
    """The same for any totals: row ``i`` of the 0/1 matrix marks the cells that total ``i`` adds up.

    So groups of a hierarchy, or several tables, are restored at once; a
    :class:`~lustrum.numeric.structure.Structure` has such a matrix.
    """
    start = _table(perturbed).ravel()
    matrix = sparse.csr_array(incidence)
    wanted = _whole(_amounts(totals, "totals"), "totals")
    if matrix.shape != (wanted.size, start.size) or not bool(np.isin(matrix.data, (0, 1)).all()):
        raise InputError(
            f"The totals of {start.size} cells need a 0/1 matrix with a row for each of the "
            f"{wanted.size} totals and a column for each cell."
        )
    return _restored(start, layers_of(matrix, wanted), steps, tolerance, rounds)


def _restored(
    start: Floats, layers: Sequence[Layer], steps: int, tolerance: float, rounds: int
) -> RestoredTable:
    fitted, _, _, _ = fit_layers(start, layers, tolerance, rounds)
    live = np.flatnonzero(start > 0)
    matrix = sparse.vstack([layer.matrix(start.size) for layer in layers], format="csr")[:, live]
    target = np.concatenate([layer.totals for layer in layers]).astype(np.int64)
    near = fitted[live]

    def price(values: Ints) -> Floats:
        return np.abs(values - near)

    low, high = np.zeros(live.size, np.int64), np.full(live.size, UNBOUNDED)
    whole, nearest = nearest_whole(matrix, target, near, low, high, price, Work(steps))
    if whole is None:
        _check_possible(matrix, target)
        whole = np.round(near).astype(np.int64)
    values = np.zeros(start.size, dtype=np.int64)
    values[live] = whole
    error = int(np.abs(matrix @ whole - target).max(initial=0))
    return RestoredTable(values, error == 0, error, nearest)


def _check_possible(matrix: Sparse, target: Ints) -> None:
    """Raise an error if no table, even of real numbers, has these margins."""
    ends = target.astype(np.float64)
    zeros = np.zeros(matrix.shape[1])
    problem = LinearProblem(matrix, ends, ends, zeros, np.full(zeros.size, np.inf))
    if Highs().load(problem).minimise(zeros).outcome is Outcome.INFEASIBLE:
        raise InputError(
            "No table with these zeros has all the margins at once, though they agree with each other; "
            "give fewer margins, or a table with fewer zeros."
        )


def _table(values: npt.ArrayLike) -> Floats:
    table = np.asarray(values)
    if table.dtype.kind not in "iuf":
        raise InputError("A table to be restored must hold numbers.")
    table = table.astype(np.float64)
    if not bool((np.isfinite(table) & (table >= 0)).all()):
        raise InputError("A table to be restored must hold finite numbers of 0 or more.")
    return table


def _margins(shape: Axes, margins: Mapping[Axes, npt.ArrayLike]) -> dict[Axes, Floats]:
    """Margins of the right shape, with axes in ascending order, that agree where they overlap."""
    if not margins:
        raise InputError("A table cannot be restored without margins; give one at least.")
    wanted: dict[Axes, Floats] = {}
    for axes, given in margins.items():
        if len(set(axes)) != len(axes) or not all(0 <= axis < len(shape) for axis in axes):
            raise InputError(
                f"A margin runs along axes {axes}; a table of {len(shape)} dimensions has axes 0 to "
                f"{len(shape) - 1}, each once."
            )
        amounts = _amounts(given, f"margin along axes {axes}")
        expected = tuple(shape[axis] for axis in axes)
        if amounts.shape != expected:
            raise InputError(
                f"The margin along axes {axes} has shape {amounts.shape}; it must be {expected}."
            )
        order = sorted(range(len(axes)), key=axes.__getitem__)
        wanted[tuple(sorted(axes))] = np.transpose(amounts, order)
    for one, other in combinations(wanted, 2):
        first, second = _shared(wanted, one, other), _shared(wanted, other, one)
        if not np.allclose(first, second, rtol=1e-9, atol=1e-9):
            raise InputError(
                f"The margins along axes {one} and {other} do not add up to the same totals; margins "
                "must agree with each other."
            )
    return wanted


def _shared(wanted: Mapping[Axes, Floats], one: Axes, other: Axes) -> Floats:
    away = tuple(index for index, axis in enumerate(one) if axis not in other)
    return np.asarray(wanted[one].sum(axis=away))


def _amounts(given: npt.ArrayLike, name: str) -> Floats:
    amounts = np.asarray(given)
    if amounts.dtype.kind not in "iuf":
        raise InputError(f"The {name} must hold numbers.")
    amounts = amounts.astype(np.float64)
    if not bool((np.isfinite(amounts) & (amounts >= 0) & (amounts < 2**53)).all()):
        raise InputError(f"The {name} must hold finite numbers of 0 or more.")
    return amounts


def _whole(amounts: Floats, name: str) -> Floats:
    if bool((amounts != np.floor(amounts)).any()):
        raise InputError(
            f"To restore whole numbers, the margin {name} must be whole; a fraction is in it."
        )
    return amounts
