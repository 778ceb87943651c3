"""A basis of all whole-number changes that keep every equation, and short moves made from it.

No Markov basis is needed: two tables of a fibre differ by a whole combination of basis vectors, so
random combinations of any length reach every table from every other (Aoki, Hara and Takemura 2012,
*Markov Bases in Algebraic Statistics*). All arithmetic is exact.
"""

from __future__ import annotations

import numpy as np

from lustrum.model.arrays import Ints, Sparse

Column = dict[int, int]

_WORK = 2 * 10**8  # the most entries added up to find short moves: about a second
_SAFE = 2**25  # products of vectors with entries up to this fit into 64 bits


def integer_kernel(matrix: Sparse) -> Ints:
    """A basis, one vector a row, of all whole x with ``matrix @ x == 0``.

    Columns are combined by Euclid's algorithm, row by row, until all but one of each row are zero: the
    combinations that end as zero columns are the kernel (Cohen 1993). Each step is
    unimodular, so the basis spans every whole solution and not a part of them.

    >>> from scipy import sparse
    >>> integer_kernel(sparse.csr_array([[2, 3]])).tolist()
    [[3, -2]]
    """
    combinations, _, pivots = _combined(matrix)
    inside = {k for _, k in pivots}
    kernel = [vector for k, vector in enumerate(combinations) if k not in inside]
    if any(abs(v) >= _SAFE for vector in kernel for v in vector.values()):
        raise OverflowError("the changes that keep all equations have entries too large to use")
    out = np.zeros((len(kernel), matrix.shape[1]), dtype=np.int64)
    for i, vector in enumerate(kernel):
        lead = vector[min(vector)]
        for k, v in vector.items():
            out[i, k] = v if lead > 0 else -v
    return out


def integer_solution(matrix: Sparse, totals: Ints) -> list[int] | None:
    """Some whole x with ``matrix @ x == totals``, perhaps with large entries; None if there is none.

    >>> from scipy import sparse
    >>> x = integer_solution(sparse.csr_array([[2, 3], [1, 0]]), np.array([7, 2]))
    >>> x, integer_solution(sparse.csr_array([[2, 4]]), np.array([7]))
    ([2, 1], None)
    """
    combinations, values, pivots = _combined(matrix)
    left = [int(total) for total in totals]
    out = [0] * matrix.shape[1]
    # The column of a pivot is zero in all rows that were done before its own: what is left there stays.
    for row, k in pivots:
        times = left[row] // values[k][row]
        for r, value in values[k].items():
            left[r] -= times * value
        for cell, value in combinations[k].items():
            out[cell] += times * value
    return None if any(left) else out


def _combined(matrix: Sparse) -> tuple[list[Column], list[Column], list[tuple[int, int]]]:
    """Combinations of columns, the sum of each, and the pivot rows and columns of sums other than 0."""
    rows, size = matrix.shape
    by_row = matrix.tocsr()
    columns = matrix.tocsc()
    values: list[Column] = []
    for k in range(size):
        part = slice(columns.indptr[k], columns.indptr[k + 1])
        pairs = zip(columns.indices[part].tolist(), columns.data[part].tolist(), strict=True)
        values.append(dict(pairs))
    combinations: list[Column] = [{k: 1} for k in range(size)]
    users: list[set[int]] = [
        set(by_row.indices[by_row.indptr[r] : by_row.indptr[r + 1]].tolist()) for r in range(rows)
    ]
    inside: set[int] = set()
    pivots: list[tuple[int, int]] = []
    # Short rows first: they fill in least.
    for row in sorted(range(rows), key=lambda r: len(users[r])):
        live = [k for k in users[row] if k not in inside and values[k].get(row)]
        while len(live) > 1:
            best = min(live, key=lambda k: (abs(values[k][row]), len(combinations[k]), k))
            for k in live:
                if k == best:
                    continue
                quotient = _nearest(values[k][row], values[best][row])
                for r in _subtract(values[k], values[best], quotient):
                    users[r].add(k)
                _subtract(combinations[k], combinations[best], quotient)
            live = [k for k in live if values[k].get(row)]
        inside.update(live)
        pivots += [(row, k) for k in live]
    return combinations, values, pivots


def _nearest(number: int, divisor: int) -> int:
    quotient, rest = divmod(number, divisor)
    return quotient + (2 * abs(rest) > abs(divisor))


def _subtract(vector: Column, other: Column, times: int) -> list[int]:
    """Subtract a multiple in place; returns the places that were zero before."""
    fresh = []
    if times:
        for index, value in other.items():
            if index not in vector:
                fresh.append(index)
            left = vector.get(index, 0) - times * value
            if left:
                vector[index] = left
            else:
                del vector[index]
    return fresh


def reduced(basis: Ints, rounds: int = 30) -> Ints:
    """A basis of shorter vectors for the same lattice: vectors are shortened by multiples of others.

    This is Lagrange's reduction of two vectors, for all pairs. It stops short of the Lenstra-Lenstra-
    Lovasz form, which vectors with entries of 0 and 1 hardly need. All steps are unimodular.

    >>> reduced(np.array([[1, -1, 0], [5, -4, -1]])).tolist()
    [[1, -1, 0], [1, 0, -1]]
    """
    vectors = basis.copy()
    size = int(np.abs(vectors).max(initial=0))
    # Floats are quicker, and exact while no sum of products is beyond 2**53.
    kind = np.float64 if size * size * vectors.shape[1] < 2**53 else np.int64
    gram = (vectors.astype(kind) @ vectors.T.astype(kind)).astype(np.int64)
    for _ in range(rounds):
        changed = False
        for i in range(vectors.shape[0]):
            while True:
                norms = np.diagonal(gram)
                times = np.rint(gram[i] / norms).astype(np.int64)
                times[i] = 0
                gain = 2 * times * gram[i] - times * times * norms
                j = int(np.argmax(gain))
                if gain[j] <= 0:
                    break
                vectors[i] -= times[j] * vectors[j]
                gram[i] -= times[j] * gram[j]
                gram[:, i] = gram[i]
                gram[i, i] = int(vectors[i] @ vectors[i])
                changed = True
        if not changed:
            break
    return vectors[np.argsort(np.abs(vectors).sum(axis=1), kind="stable")]


def short_moves(basis: Ints, most: int = 2000) -> Ints:
    """The basis, and sums of pairs of moves that are hardly longer than its longest vector.

    Tables of counts are narrow: a long move is almost never possible, so many short ones mix better than
    few. Moves no longer than the longest vector of the basis come first, then about twice as many that are
    up to half as long again, which lead out of corners where no shorter move is possible. The basis is
    always included in full.

    >>> short_moves(np.array([[1, -1, 0], [0, 1, -1]])).tolist()[:3]
    [[1, -1, 0], [0, 1, -1], [1, 0, -1]]
    """
    if basis.shape[0] < 2:
        return basis
    longest = int(np.abs(basis).sum(axis=1).max())
    known_moves = {_key(v): v for v in basis}
    _add_sums(known_moves, longest, most)
    _add_sums(known_moves, longest + longest // 2, min(most, 3 * len(known_moves)), rounds=1)
    return np.array(list(known_moves.values()), dtype=np.int64)


def _add_sums(known_moves: dict[bytes, Ints], longest: int, most: int, rounds: int = 10) -> None:
    """Add sums and differences of pairs up to a length, repeatedly while there are new ones."""
    work = _WORK
    for _ in range(rounds):
        moves = np.array(list(known_moves.values()), dtype=np.int64)
        for i in range(1, len(moves)):
            others = moves[:i]
            work -= others.size
            if work < 0:
                return
            for sign in (1, -1):
                sums = others + sign * moves[i]
                size = np.abs(sums).sum(axis=1)
                for one in sums[(size > 0) & (size <= longest)]:
                    if len(known_moves) >= most:
                        return
                    known_moves.setdefault(_key(one), _upright(one))
        if len(known_moves) == len(moves):
            return


def _upright(vector: Ints) -> Ints:
    first = vector[np.flatnonzero(vector)[0]]
    return vector if first > 0 else -vector


def _key(vector: Ints) -> bytes:
    return _upright(vector).astype(np.int32).tobytes()
