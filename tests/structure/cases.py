"""Small structures to draw at random, and slow truths to compare with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import Category, TableAxis
from lustrum.numeric.structure import Structure, TableLayout

# The first run of a kernel compiles it, which no deadline foresees.
QUICK = settings(deadline=None, max_examples=examples(20, 200))
FEW = settings(deadline=None, max_examples=examples(10, 80))


def axis(name: str, **sets: Sequence[int]) -> TableAxis:
    """An axis from codes and the positions that each holds."""
    return TableAxis(name, name, tuple(Category(c, c, tuple(m)) for c, m in sets.items()))


def named(name: str, sets: Sequence[Sequence[int]]) -> TableAxis:
    """An axis of sets, each with a code that says what it holds."""
    distinct = {tuple(sorted(s)): None for s in sets}
    return TableAxis(
        name, name, tuple(Category("-".join(map(str, s)) or "none", "", s) for s in distinct)
    )


def with_total(name: str, size: int) -> TableAxis:
    """Single codes and their total."""
    return named(name, [[i] for i in range(size)] + [list(range(size))])


def halves(name: str, depth: int, *, shown: Sequence[int] | None = None) -> TableAxis:
    """A binary hierarchy of so many levels below its total; some levels only, or all."""
    size = 2**depth
    levels = range(depth + 1) if shown is None else shown
    sets = [list(range(i, i + 2**k)) for k in levels for i in range(0, size, 2**k)]
    return named(name, sets)


@st.composite
def nested_axes(draw: st.DrawFn, name: str, codes: int) -> TableAxis:
    """An axis whose categories never cross; parts of the code list may be left out."""
    sets: list[list[int]] = []

    def split(members: list[int]) -> None:
        if draw(st.booleans()):
            sets.append(members)
        if len(members) > 1 and draw(st.booleans()):
            cut = draw(st.integers(1, len(members) - 1))
            split(members[:cut])
            split(members[cut:])
        elif len(members) > 1 and draw(st.booleans()):
            sets.extend([m] for m in members)

    split(list(range(codes)))
    return named(name, sets or [list(range(codes))])


@st.composite
def odd_axes(draw: st.DrawFn, name: str, codes: int) -> TableAxis:
    """An axis of any sets at all, the empty one and crossing ones included."""
    subsets = st.lists(st.integers(0, codes - 1), max_size=codes, unique=True)
    return named(name, draw(st.lists(subsets, min_size=1, max_size=5)))


CODES = {"A": 3, "B": 4, "C": 2}


@st.composite
def table_lists(draw: st.DrawFn, *, nested: bool, tables: int) -> Structure:
    """Up to so many tables, each over some of the variables in any order."""
    made = []
    for _ in range(draw(st.integers(1, tables))):
        names = draw(st.permutations(sorted(CODES)))[: draw(st.integers(0, 3))]
        kind = nested_axes if nested else odd_axes
        made.append([draw(kind(n, CODES[n])) for n in names])
    return Structure.of_tables(made)


def brute_matrix(structure: Structure) -> np.ndarray:
    """The incidence matrix by asking of every pair of cells whether one lies in the other."""
    pieces = [
        [frozenset(np.flatnonzero(v.atom_of == a).tolist()) for a in range(v.count)]
        for v in structure.variables
    ]
    inner = list(itertools.product(*pieces))
    rows = []
    for layout in structure.tables:
        limits = layout.filters
        for chosen in itertools.product(*(a.categories for a in layout.axes)):
            held = {a.name: set(c.members) for a, c in zip(layout.axes, chosen, strict=True)}
            for only in limits:
                own = set(only.categories[0].members)
                held[only.name] = held.get(only.name, own) & own
            rows.append(
                [
                    all(
                        piece <= held[v.name]
                        for v, piece in zip(structure.variables, cell, strict=True)
                        if v.name in held
                    )
                    for cell in inner
                ]
            )
    return np.array(rows, dtype=int).reshape(structure.rows, len(inner))


def layout_of(*axes: TableAxis, where: Sequence[TableAxis] = ()) -> TableLayout:
    """A layout with filters."""
    return TableLayout(tuple(axes), tuple(where))
