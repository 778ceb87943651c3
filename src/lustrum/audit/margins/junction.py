"""Whether margins hang together in a tree, and the joints of that tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Edge", "junction_tree"]

Axes = tuple[int, ...]


@dataclass(frozen=True)
class Edge:
    """Two cliques joined in a junction tree: clique ``child`` hangs on what stands before it."""

    child: Axes
    separator: Axes
    left: Axes
    right: Axes


def junction_tree(cliques: Sequence[Axes], axes: int) -> tuple[Edge, ...] | None:
    """The joints of a tree of cliques with running intersections, or None where there is none.

    A spanning tree of largest shared axes is such a tree exactly where the shared axes add up to what
    the cliques count more than once (Lauritzen 1996). ``left`` and ``right`` are all axes
    on the two sides of the joint, without the separator. The order of joints builds the tree up.

    >>> [edge.separator for edge in junction_tree([(0, 1), (1, 2), (2, 3)], 4)]
    [(1,), (2,)]
    >>> junction_tree([(0, 1), (1, 2), (0, 2)], 3) is None
    True
    """
    if set().union(*cliques) != set(range(axes)):
        return None
    inside, links = [0], []
    outside = set(range(1, len(cliques)))
    while outside:
        shared, child, parent = max(
            (len(set(cliques[c]) & set(cliques[p])), -c, -p) for c in outside for p in inside
        )
        links.append((-parent, -child, shared))
        inside.append(-child)
        outside.remove(-child)
    if sum(map(len, cliques)) - axes != sum(s for _, _, s in links):
        return None
    edges = []
    for parent, child, _ in links:
        far = {child}
        for p, c, _ in links:  # links come in the order of the tree, so one pass finds all below
            if p in far:
                far.add(c)
        separator = set(cliques[parent]) & set(cliques[child])
        below = set().union(*(cliques[k] for k in far)) - separator
        above = set(range(axes)) - below - separator
        parts = (sorted(s) for s in (separator, above, below))
        edges.append(Edge(cliques[child], *(tuple(p) for p in parts)))
    return tuple(edges)
