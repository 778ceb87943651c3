"""The connected parts of a graph; scipy's module for graphs takes long to import."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.model.arrays import Ints


def connected_parts(nodes: int, one: Any, other: Any) -> Ints:
    """The part of each node where edges join ``one`` and ``other``; parts are numbered by their first nodes.

    Nodes take the smallest number that they can reach: first along edges, then by way of the node so numbered.

    >>> connected_parts(5, np.array([0, 4]), np.array([2, 3]))
    array([0, 1, 0, 2, 2])
    """
    label = np.arange(nodes)
    one, other = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
    while True:
        ends = label[one], label[other]
        apart = ends[0] != ends[1]
        if not apart.any():
            return np.unique(label, return_inverse=True)[1].astype(np.int64)
        one, other = ends[0][apart], ends[1][apart]
        np.minimum.at(label, np.maximum(one, other), np.minimum(one, other))
        while not np.array_equal(further := label[label], label):
            label = further
