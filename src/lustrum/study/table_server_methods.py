"""The four methods of the table-server study, on plain arrays (Shlomo, Antal, Elliot 2015, section 5.1).

All are controlled: instead of a draw for each cell, the expected number of changes is computed first, and
chance only says which cells change (sections 3.2 and 3.3).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lustrum.model.channel import MatrixChannel

__all__ = ["apportioned", "calibrated", "invariant", "perturbed", "regions_swapped", "rounded"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def regions_swapped(cube: Ints, share: float, rng: np.random.Generator) -> Ints:
    """Swap people between the two regions of the first axis.

    A sample of ``share`` of each region is paired with people of the other region who are in no pair
    yet, and each pair trades places. Twice the share of all people move, and no region changes in size.
    """
    flat = cube.reshape(2, -1)
    drawn = [rng.permutation(np.repeat(np.arange(flat.shape[1]), region)) for region in flat]
    # A region sends its own sample and the partners of the other region's sample.
    pairs = sum(round(share * people.size) for people in drawn)
    movers = [np.bincount(people[:pairs], minlength=flat.shape[1]) for people in drawn]
    exchange = movers[1] - movers[0]
    return np.stack((flat[0] + exchange, flat[1] - exchange)).reshape(cube.shape)


def rounded(values: Ints, base: int, rng: np.random.Generator) -> Ints:
    """Semi-controlled random rounding of a whole table (section 3.2).

    Of the cells with residue ``r``, the share ``r / base`` goes up, to the nearest number of cells.
    To base 3 the total of the table thereby becomes a multiple next to it.
    """
    flat = values.ravel()
    residue = flat % base
    out = flat - residue
    for r in range(1, base):
        cells = rng.permutation(np.flatnonzero(residue == r))
        out[cells[: int(np.floor(cells.size * r / base + 0.5))]] += base
    return out.reshape(values.shape)


def perturbed(values: Ints, channel: MatrixChannel, rng: np.random.Generator) -> Ints:
    """Controlled perturbation by a matrix, with the total kept (section 3.3).

    Of the cells in each row of the matrix, the expected numbers take each step. What the total has
    moved by is then taken back from the cells above the cap, in proportion to their size.
    """
    flat = values.ravel()
    rows = channel.rows_of(flat)
    out = flat.copy()
    steps = np.arange(channel.cap + 1)
    for row in np.unique(rows):
        cells = rng.permutation(np.flatnonzero(rows == row))
        out[cells] += np.repeat(steps, apportioned(cells.size, channel.matrix[row])) - row
    large = np.flatnonzero(out > channel.cap)
    if large.size:
        out[large] = apportioned(int(out[large].sum() + flat.sum() - out.sum()), out[large])
    return out.reshape(values.shape)


def invariant(matrix: Floats, frequency: Floats) -> Floats:
    """``R = P Q`` with ``t R = t``, where ``Q`` leads back: ``Q[j, i] = t_i p_ij / (t P)_j``.

    The paper asks for an invariant matrix, and the one it prints is not one for a given ``t``. Rows
    that nothing leads to stay as they are.

    >>> t = np.array([6.0, 3.0])
    >>> (t @ invariant(np.array([[0.9, 0.1], [0.5, 0.5]]), t)).round(12).tolist()
    [6.0, 3.0]
    """
    reached = frequency @ matrix
    flow = (frequency[:, None] * matrix).T
    back = np.where(reached[:, None] > 0, flow / np.where(reached > 0, reached, 1.0)[:, None], 0.0)
    both = matrix @ back
    lost = 1.0 - both.sum(axis=1)
    return np.asarray(both + np.diag(lost))


def calibrated(channel: MatrixChannel, values: Ints) -> MatrixChannel:
    """The invariant matrix for these values that moves as much as the given one.

    Going there and back moves more than going there. A mixture with the identity is invariant too, and
    its weight is chosen so that the mean of the diagonal is that of the given matrix.
    """
    frequency = np.bincount(channel.rows_of(values.ravel()), minlength=channel.cap + 1)
    both = invariant(channel.matrix, frequency.astype(np.float64))
    moving = float((1.0 - np.diagonal(channel.matrix)).sum())
    weight = min(1.0, moving / float((1.0 - np.diagonal(both)).sum()))
    mixed = weight * both + (1.0 - weight) * np.eye(channel.cap + 1)
    return MatrixChannel(mixed, channel.residue_base)


def apportioned(total: int, sizes: npt.ArrayLike) -> Ints:
    """Whole numbers in proportion to sizes that add up to the total, by largest remainder.

    >>> apportioned(5, [1, 1, 2]).tolist()
    [1, 1, 3]
    """
    weights = np.asarray(sizes, dtype=np.float64)
    exact = total * (weights / weights.sum())
    whole = np.floor(exact).astype(np.int64)
    first = np.argsort(whole - exact, kind="stable")[: total - int(whole.sum())]
    whole[first] += 1
    return np.asarray(whole)
