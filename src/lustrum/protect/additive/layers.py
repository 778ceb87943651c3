"""Margins as layers: each cell is in at most one total of a layer, so one scaling fits a whole layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Indices

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any


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
        """The layer as rows of a 0/1 matrix."""
        inside = np.flatnonzero(self.labels >= 0)
        ones = np.ones(inside.size, dtype=np.int64)
        return sparse.csr_array(
            (ones, (self.labels[inside], inside)), shape=(self.totals.size, cells)
        )

    def sums(self, values: Floats) -> Floats:
        """The present totals."""
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
