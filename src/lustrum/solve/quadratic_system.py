"""The linear systems of an interior point method: ``S' D S`` beside a few equations.

``D`` is a diagonal that changes with every step. Without a span the first block is diagonal; with a narrow
one it is a dense matrix, and with a wide one a sparse one. The equations are met through their Schur
complement. Both are made regular by a little, and the answer is refined against the true system.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from lustrum.arrays import Floats
from lustrum.solve.dense import cholesky
from lustrum.solve.products import sparse_product

__all__ = ["System"]

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any
Solve: TypeAlias = Callable[[Floats], Floats]

_REGULAR = 1e-11
_REFINEMENTS = 2
_DENSE_UP_TO = 4000
_SMALL = 1000  # rows of a matrix that is factored here, to the same bytes on every machine


class System:
    """``[S'DS, -A'; A, 0]`` for one span S and one matrix A, and many diagonals D.

    The last rows of A, as many as ``held``, also stand in the first block, as if on springs. That changes no
    solution, and what only these rows hold is held in that block too.
    """

    def __init__(self, span: Sparse, matrix: Sparse, held: int) -> None:
        self.span, self.matrix = span.tocsr(), matrix.tocsr()
        self._held = self.matrix[self.matrix.shape[0] - held :]
        self._springs = (self._held.T @ self._held).tocsr()
        self._back, self._matrix_back = self.span.T.tocsr(), self.matrix.T.tocsr()
        each = np.concatenate([np.diff(self.span.indptr), np.diff(self._held.indptr)])
        self._plain = bool((each <= 1).all())
        self._stiffness = 0.0
        self._solve_block: Solve | None = None
        self._solve_outer: Solve | None = None

    def out(self, t: Floats) -> Floats:
        """``S t``."""
        return sparse_product(self.span, t)

    def back(self, x: Floats) -> Floats:
        """``S' x``."""
        return sparse_product(self._back, x)

    def factor(self, diagonal: Floats) -> bool:
        """Take in a diagonal; False where no factors are found."""
        # any last bit: entries of the span and of A are nearly always 1 or -1, whose products are exact
        block = (self._back @ (sparse.diags_array(diagonal) @ self.span)).tocsr()
        sizes = block.diagonal()
        typical = float(np.median(sizes[sizes > 0])) if bool((sizes > 0).any()) else 1.0
        self._stiffness = typical
        self._block = block = (block + typical * self._springs).tocsr()
        self._solve_block = self._inverse(block)
        if self._solve_block is None:
            return False
        if self.matrix.shape[0] == 0:
            return True
        self._solve_outer = self._schur(self._solve_block)
        return self._solve_outer is not None

    def solve(self, upper: Floats, lower: Floats) -> tuple[Floats, Floats]:
        """The t and y with ``S'DS t - A'y = upper`` and ``A t = lower``, refined."""
        pulled = lower[lower.size - self._held.shape[0] :]
        upper = upper + self._stiffness * sparse_product(self._held.T, pulled)
        t, y = self._once(upper, lower)
        for _ in range(_REFINEMENTS):
            miss_upper = upper - sparse_product(self._block, t)
            miss_upper += sparse_product(self._matrix_back, y)
            miss_lower = lower - sparse_product(self.matrix, t)
            more_t, more_y = self._once(miss_upper, miss_lower)
            t, y = t + more_t, y + more_y
        return t, y

    def _once(self, upper: Floats, lower: Floats) -> tuple[Floats, Floats]:
        assert self._solve_block is not None
        first = self._solve_block(upper)
        if self.matrix.shape[0] == 0:
            return first, np.zeros(0)
        assert self._solve_outer is not None
        y = self._solve_outer(lower - sparse_product(self.matrix, first))
        return first + self._solve_block(sparse_product(self._matrix_back, y)), y

    def _inverse(self, block: Sparse) -> Solve | None:
        diagonal = block.diagonal()
        # A direction of t that nothing holds yet is held softly.
        soft = _REGULAR * max(1e-12, float(np.median(diagonal)) if diagonal.size else 1.0)
        if self._plain:
            stiff = diagonal + soft
            self._stiff = stiff
            return lambda right: right / stiff
        if block.shape[0] <= _DENSE_UP_TO:
            return _cholesky(block.toarray(), soft)
        return _sparse_factors(block + soft * sparse.eye_array(block.shape[0]))

    def _schur(self, solve_block: Solve) -> Solve | None:
        if self._plain:
            outer = self.matrix @ (sparse.diags_array(1.0 / self._stiff) @ self._matrix_back)
        else:
            columns = self._matrix_back.toarray()
            outer = sparse.csr_array(self.matrix @ solve_block(columns))
        scale = outer.diagonal()
        soft = _REGULAR * max(1e-300, float(np.median(scale)))
        size = outer.shape[0]
        if size <= _SMALL or (size <= _DENSE_UP_TO and outer.nnz > 0.1 * size * size):
            return _cholesky(outer.toarray(), soft)
        return _sparse_factors(outer + soft * sparse.eye_array(outer.shape[0]))


def _cholesky(matrix: Floats, soft: float) -> Solve | None:
    """Dense factors; where rounding errors make the matrix look indefinite, softer ones."""
    order = np.arange(matrix.shape[0])
    # Entries differ by many powers of ten, so the matrix is scaled to a diagonal of ones.
    size = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), soft))
    scaled = matrix * size[:, None] * size
    for more in (_REGULAR, 1e-9, 1e-7):
        regular = scaled.copy()
        regular[order, order] += more
        inside = _factored(regular)
        if inside is None:
            continue

        def solve(right: Floats, inside: Solve = inside) -> Floats:
            wide = size if right.ndim == 1 else size[:, None]
            return np.asarray(inside(right * wide) * wide)

        return solve
    return None


def _factored(matrix: Floats) -> Solve | None:
    if matrix.shape[0] <= _SMALL:
        found = cholesky(matrix)
        return None if found is None else found.solve
    try:
        factors = linalg.cho_factor(matrix, lower=True, check_finite=False)
    except linalg.LinAlgError:
        return None
    return lambda right: np.asarray(linalg.cho_solve(factors, right, check_finite=False))


def _sparse_factors(matrix: Sparse) -> Solve | None:
    try:
        factors = splu(
            matrix.tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError:
        return None
    return lambda right: np.asarray(factors.solve(right))
