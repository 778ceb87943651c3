"""Data swapping of tables that keeps all margins of a given order (Dalenius and Reiss 1982).

Two records that exchange one attribute keep all one-way margins. To keep all margins of ``k`` attributes,
``2**k`` records exchange values at once. In the table such a move adds 1 to half of the ``2**(k + 1)``
corners of a box and takes 1 from the other half, neighbour by neighbour; each of the ``k + 1`` sides of the
box changes one attribute, or several together. For any ``k`` attributes, at least one side changes none of
them, and along that side plus and minus cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.model.chance import Chance
from lustrum.model.parameters import parameter
from lustrum.model.text import say
from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import below
from lustrum.protect.abilities import Abilities
from lustrum.protect.method import TABULAR, MethodSpec, Stage, released, whole_counts
from lustrum.protect.microdata import anything
from lustrum.protect.totals.inner_table import InnerTable


@dataclass(frozen=True)
class TableSwapping(MethodSpec):
    """Random moves that keep every margin of ``order`` attributes exactly.

    The moves are symmetric, and one that would take a cell below 0 or fill an impossible one is not made. So
    all tables that moves can reach become equally likely in the long run (such walks: Diaconis and Sturmfels
    1998); ``sweeps`` is how many moves are tried for each inner cell. With order 1 moves reach every table of
    the same margins, and so they do in a table of ``order + 1`` variables with two categories each; elsewhere
    some tables may be out of reach.

    >>> table = Table.from_counts([[[2, 1], [0, 3]], [[1, 0], [4, 1]]])
    >>> release = TableSwapping(order=2).apply(table, np.random.default_rng(5))
    >>> bool((release.published.sum(axis=0) == table.values.sum(axis=0)).all())
    True
    """

    name: ClassVar[str] = "table-swapping"
    stages: ClassVar[tuple[Stage, ...]] = TABULAR
    abilities: ClassVar[Abilities] = Abilities(repeatable=True)
    order: int = parameter(2, "All totals of this many variables are kept.", least=1)
    sweeps: int = parameter(50, "How many moves are tried for each inner cell.", least=1)

    def draw(self, table: Table, rng: Chance) -> Release:
        """Swap within a table of counts; without a generator, random numbers come from the table's keys.

        The same records with the same categories give the same numbers, in whatever order of axes. Totals
        are added up from the inner cells.
        """
        counts = whole_counts(table, "Table swapping")
        inner = InnerTable.of(table.axes, "Table swapping", partial=True)
        chance = inner.generator(table, rng, f"{self.name} {self.order} {self.sweeps}")
        before = inner.counts(table)
        possible = inner.possible(table)
        after = swap_table(
            before,
            self.order,
            self.sweeps * before.size,
            int(chance.integers(0, 2**64, dtype=np.uint64)),
            None if possible is None else ~possible,
        )
        low, high = anything(table, self.kept_cells(inner))
        return released(
            table,
            self,
            counts + inner.added_up(after - before),
            low=low,
            high=high,
            notes=(
                say(
                    "Values were swapped so that all totals of {order} variables or fewer are the true "
                    "ones.",
                    order=self.order,
                ),
                say("Numbers of more variables than that are not."),
            ),
        )

    def kept_cells(self, inner: InnerTable) -> Mask:
        """The cells that cannot change: those that are summed over all but at most ``order`` axes."""
        parts = np.zeros((), dtype=np.int64)
        for complete in inner.whole:
            parts = parts[..., None] + ~complete
        return np.asarray(parts <= self.order).transpose(np.argsort(inner.order, kind="stable"))


def swap_table(counts: Ints, order: int, moves: int, seed: int, closed: Mask | None = None) -> Ints:
    """Counts after this many tried moves; ``closed`` marks cells that stay as they are."""
    axes = [axis for axis, size in enumerate(counts.shape) if size > 1]
    if len(axes) <= order:
        raise InputError(
            f"A table of {len(axes)} variables with two categories or more is fixed by its totals of "
            f"{order}; table swapping needs an order of {max(len(axes) - 1, 1)} at most"
            + ("." if len(axes) > 1 else ", and two such variables.")
        )
    flat = np.ascontiguousarray(counts, dtype=np.int64).ravel().copy()
    shut = np.zeros(flat.size, dtype=np.bool_) if closed is None else closed.ravel()
    walk(
        flat,
        shut,
        np.array(counts.shape, dtype=np.int64),
        _strides(counts.shape),
        np.array(axes, dtype=np.int64),
        order + 1,
        moves,
        np.array([seed], dtype=np.uint64),
    )
    return flat.reshape(counts.shape)


def _strides(shape: Sequence[int]) -> Ints:
    return np.array([int(np.prod(shape[i + 1 :])) for i in range(len(shape))], dtype=np.int64)


@compiled
def walk(
    flat: Array,
    shut: Array,
    shape: Array,
    strides: Array,
    axes: Array,
    sides: int,
    moves: int,
    state: Array,
) -> None:  # pragma: no cover
    """Try moves on random boxes, in place.

    A box begins at a random cell. Some axes, in random order, give one side each, along which the category
    changes to another. In every second box on average each further axis joins a random side and may change
    or not; in the others it stays. Both ends of every side have the same distribution, so a move is as
    likely as its reverse.
    """
    corners = 1 << sides
    step = np.empty(sides, np.int64)
    at = np.empty(corners, np.int64)
    for _ in range(moves):
        origin = 0
        for axis in range(shape.size):
            origin += strides[axis] * below(state, shape[axis])
        joined = below(state, 2) == 1
        for i in range(axes.size):
            j = i + below(state, axes.size - i)
            axis = axes[j]
            axes[j] = axes[i]
            axes[i] = axis
            here = origin // strides[axis] % shape[axis]
            if i < sides:
                other = below(state, shape[axis] - 1)
                if other >= here:
                    other += 1
                step[i] = strides[axis] * (other - here)
            elif joined:
                side = below(state, sides)
                step[side] += strides[axis] * (below(state, shape[axis]) - here)
        good = True
        for corner in range(corners):
            cell = origin
            odd = 0
            for i in range(sides):
                if corner >> i & 1:
                    cell += step[i]
                    odd ^= 1
            at[corner] = cell
            if shut[cell] or (odd == 1 and flat[cell] == 0):
                good = False
                break
        if good:
            for corner in range(corners):
                odd = 0
                for i in range(sides):
                    odd ^= corner >> i & 1
                flat[at[corner]] += 1 - 2 * odd
