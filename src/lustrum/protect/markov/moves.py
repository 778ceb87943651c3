"""Which boxes of cells can be changed without changing any kept margin.

A box is spanned by groups of axes: two configurations of each group, all other axes fixed. Its corners go
up and down in turn, so the changes cancel when summed over any one of its groups. With two groups it is the
elementary data square of Duncan and Fienberg (1999); with all three axes of a cube one by one it keeps all
two-way margins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lustrum.audit.fibre.margins import FibreMargins, junction_tree
from lustrum.audit.fibre.moves import free_sets
from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask

Axes = tuple[int, ...]

_MOST = 8  # groups of a box, so at most 256 corners


@dataclass(frozen=True, eq=False)
class Moves:
    """Families of boxes, as lists of offsets into the flat table; see the kernels for the layout.

    Decomposable margins have a family for each edge of their junction tree: the axes on its two sides span
    the squares, and these connect all tables with the same margins (Dobra 2003). Other margins have a
    family for each smallest set of axes that is in no margin.
    """

    families: Ints
    groups: Ints
    offsets: Ints
    shape: tuple[int, ...]

    @classmethod
    def of(cls, shape: tuple[int, ...], cliques: Sequence[Axes]) -> Moves:
        """All families of boxes that keep these margins."""
        spans: list[tuple[Axes, tuple[Axes, ...]]] = []
        tree = junction_tree(cliques, len(shape))
        if tree is not None:
            spans = [(edge.separator, (edge.left, edge.right)) for edge in tree]
        else:
            margins = FibreMargins.of(np.zeros(shape, dtype=np.int64), cliques)
            for free in free_sets(margins):
                rest = tuple(a for a in range(len(shape)) if a not in free)
                spans.append((rest, tuple((a,) for a in free)))
        families: list[tuple[int, int]] = []
        groups: list[tuple[int, int, int]] = []
        offsets, begin = [], 0
        for fixed, pairs in spans:
            if any(_size(shape, axes) < 2 for axes in pairs):
                continue
            if len(pairs) > _MOST:
                raise InputError(f"Markov perturbation has boxes over at most {_MOST} variables.")
            families.append((len(groups), len(groups) + len(pairs) + 1))
            for axes, paired in ((fixed, 0), *((p, 1) for p in pairs)):
                places = _offsets(shape, axes)
                groups.append((begin, places.size, paired))
                offsets.append(places)
                begin += places.size
        if not families:
            raise InputError(
                "The margins to keep fix every cell of this table; keep fewer of them."
            )
        return cls(
            np.array(families, dtype=np.int64),
            np.array(groups, dtype=np.int64),
            np.concatenate(offsets),
            shape,
        )

    @property
    def odd(self) -> Mask:
        """Which corners of the largest box go down when the first goes up."""
        largest = max(int(self.groups[slice(*f), 2].sum()) for f in self.families)
        return np.array([bin(k).count("1") % 2 == 1 for k in range(2**largest)])

    def disjoint(self, rng: np.random.Generator) -> Ints:
        """Boxes of one family, drawn at random, of which no two share a cell; one a row.

        The configurations of every group are shuffled and paired; an odd one is left out.
        """
        family = self.families[int(rng.integers(len(self.families)))]
        boxes = np.zeros((1, 1), dtype=np.int64)
        for begin, count, paired in self.groups[slice(*family)].tolist():
            offsets = self.offsets[begin : begin + count]
            if paired:
                mixed = rng.permutation(offsets)[: count - count % 2]
                # The first half of the corners takes one of the pair, the second half the other.
                ends = mixed.reshape(-1, 1, 2).repeat(boxes.shape[1], axis=1)
                corners = boxes[:, None, :, None] + ends[None]
                boxes = corners.transpose(0, 1, 3, 2).reshape(-1, 2 * boxes.shape[1])
            else:
                boxes = (boxes[:, None, :] + offsets[None, :, None]).reshape(-1, boxes.shape[1])
        return np.ascontiguousarray(boxes)


def _size(shape: tuple[int, ...], axes: Axes) -> int:
    return int(np.prod([shape[a] for a in axes], dtype=np.int64))


def _offsets(shape: tuple[int, ...], axes: Axes) -> Ints:
    """The places in the flat table of the configurations of some axes, with all other axes at 0."""
    out = np.zeros(1, dtype=np.int64)
    for axis in axes:
        stride = int(np.prod(shape[axis + 1 :], dtype=np.int64))
        out = (out[:, None] + stride * np.arange(shape[axis], dtype=np.int64)).ravel()
    return out
