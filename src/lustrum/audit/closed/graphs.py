"""Released margins as a graph: two variables are joined if a margin holds both.

If the margins are the cliques of a chordal graph, or a clique separates the graph, bounds of the whole
follow from bounds of its parts (Dobra and Fienberg 2000, 2001).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Axes = frozenset[int]


@dataclass(frozen=True)
class CliqueStep:
    """A clique of a perfect sequence, and what it shares with those before it."""

    clique: Axes
    separator: Axes


@dataclass(frozen=True)
class IrreduciblePart:
    """An irreducible part, the margins inside it, and what it shares with the parts before it.

    The first part shares nothing: its ``separator`` is None. An empty separator means the grand total.
    """

    axes: Axes
    generators: tuple[Axes, ...]
    separator: Axes | None

    @property
    def closed(self) -> bool:
        return self.axes in self.generators


def joined(generators: Iterable[Axes]) -> dict[int, Axes]:
    """The neighbours of each variable.

    >>> joined([frozenset({0, 1}), frozenset({1, 2})])[1] == {0, 2}
    True
    """
    around: dict[int, set[int]] = {}
    for generator in generators:
        for a in generator:
            around.setdefault(a, set()).update(generator - {a})
    return {a: frozenset(around[a]) for a in sorted(around)}


def search_order(graph: Mapping[int, Axes]) -> tuple[int, ...]:
    """Maximum cardinality search: next comes a vertex with the most neighbours already visited.

    The graph is chordal exactly where each vertex's earlier neighbours are joined to each other
    (Tarjan and Yannakakis 1984). Ties go to the smallest vertex.

    >>> search_order({0: frozenset({1}), 1: frozenset({0, 2}), 2: frozenset({1})})
    (0, 1, 2)
    """
    left, order, seen = set(graph), [], set[int]()
    while left:
        vertex = max(left, key=lambda v: (len(graph[v] & seen), -v))
        left.discard(vertex)
        seen.add(vertex)
        order.append(vertex)
    return tuple(order)


def perfect_sequence(generators: Iterable[Axes]) -> tuple[CliqueStep, ...] | None:
    """The cliques in an order in which each meets those before it inside one of them.

    None where the graph is not chordal, or where the margins are not its maximal cliques.

    >>> [sorted(s.separator) for s in perfect_sequence([frozenset({0, 1}), frozenset({1, 2})])]
    [[], [1]]
    >>> perfect_sequence([frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2})]) is None
    True
    """
    margins = _largest(generators)
    graph = joined(margins)
    if not graph:
        return tuple(CliqueStep(m, frozenset()) for m in margins)
    cliques: list[Axes] = []
    visited: set[int] = set()
    for vertex in search_order(graph):
        clique = (graph[vertex] & visited) | {vertex}
        visited.add(vertex)
        # A vertex that extends the clique before it replaces that clique; both have one place.
        cliques = [c for c in cliques if not c < clique] + [clique]
    # Margins are cliques. Where the graph is not chordal, a set without an edge stays, or a larger one.
    if set(cliques) != set(margins):
        return None
    steps, covered = [], frozenset[int]()
    for clique in cliques:
        steps.append(CliqueStep(clique, clique & covered))
        covered |= clique
    return tuple(steps)


def components(vertices: Iterable[int], graph: Mapping[int, Axes]) -> list[Axes]:
    """The connected pieces of some vertices, in a fixed order.

    >>> [sorted(c) for c in components([0, 1, 3], joined([frozenset({0, 1}), frozenset({3})]))]
    [[0, 1], [3]]
    """
    left, pieces = set(vertices), []
    while left:
        grown, edge = set[int](), {min(left)}
        while edge:
            grown |= edge
            left -= edge
            edge = {w for v in edge for w in graph.get(v, frozenset())} & left
        pieces.append(frozenset(grown))
    return pieces


def parts(generators: Iterable[Axes]) -> tuple[IrreduciblePart, ...]:
    """The irreducible parts, split wherever variables inside one margin separate the others.

    A separator must lie in one margin: then its own margin is known, and tables of the two sides that share
    it can always be joined. For each margin g, it suffices to look at the components that remain without g
    and at their neighbours in g: a separator inside g leaves the rest of g on one side, so the other side
    holds such a component. The margins need not be all cliques of the graph, which is slightly more general
    than the reducible graphs of Dobra and Fienberg (2000).

    >>> chain = [frozenset({0, 1}), frozenset({1, 2}), frozenset({2, 3}), frozenset({1, 3})]
    >>> [(sorted(p.axes), sorted(p.separator or ())) for p in parts(chain)]
    [([1, 2, 3], []), ([0, 1], [1])]
    """
    return _split(_largest(generators), None)


def _split(generators: tuple[Axes, ...], separator: Axes | None) -> tuple[IrreduciblePart, ...]:
    everything: Axes = frozenset().union(*generators)
    graph = joined(generators)
    splits: list[tuple[Axes, Axes]] = []
    for generator in generators:
        for piece in components(everything - generator, graph):
            shared = frozenset(w for v in piece for w in graph[v]) & generator
            if piece | shared != everything:
                splits.append((shared, piece))
    if not splits:
        return (IrreduciblePart(everything, generators, separator),)
    # The smallest first: a larger set may hold more than the separator and create a redundant part.
    shared, piece = min(splits, key=lambda pair: (len(pair[0]), sorted(pair[0]), sorted(pair[1])))
    near = _largest(g for g in generators if not g & piece)
    far = _largest([shared, *(g for g in generators if g <= piece | shared)])
    return _split(near, separator) + _split(far, shared)


def _largest(generators: Iterable[Axes]) -> tuple[Axes, ...]:
    """The maximal sets: those that no other set contains."""
    distinct = set(generators)
    return tuple(sorted((g for g in distinct if not any(g < h for h in distinct)), key=sorted))
