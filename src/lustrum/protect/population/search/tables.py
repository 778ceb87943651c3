"""Which tables are controlled: all of few variables, and of more variables those with the fewest cells."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import combinations, product

from lustrum.protect.population.search.levels import ControlledLevel

Nodes = tuple[int, ...]
"""A table by its nodes, each a level of a variable, in the order of their variables."""
_APART = 2
_RARER = 4


def all_tables(nodes: Sequence[tuple[int, ControlledLevel]], max_variables: int) -> list[Nodes]:
    """All tables of at most ``max_variables`` variables.

    A table is given by its nodes, in the order of their variables.
    """
    variables = sorted({variable for variable, _ in nodes})
    of_variable = {v: [k for k, (owner, _) in enumerate(nodes) if owner == v] for v in variables}
    return [
        table
        for order in range(max_variables + 1)
        for chosen in combinations(variables, order)
        for table in product(*(of_variable[v] for v in chosen))
    ]


def nodes_apart(nodes: Sequence[tuple[int, ControlledLevel]]) -> list[int]:
    """The finest level of every variable and those that are at least twice as coarse as the one before.

    What lies between two such levels errs little more than the finer of them.
    """
    selected: list[int] = []
    last: dict[int, int] = {}
    for k, (variable, level) in sorted(enumerate(nodes), key=lambda one: -one[1][1].size):
        if variable not in last or _APART * level.size <= last[variable]:
            last[variable] = level.size
            selected.append(k)
    return sorted(selected)


def choose_extra_tables(
    nodes: Sequence[tuple[int, ControlledLevel]], max_variables: int, tables: int, cells: int
) -> list[Nodes]:
    """Tables of more than ``max_variables`` variables, those with the fewest cells first.

    ``tables`` is how many there may be at most, and ``cells`` how many cells each may have. People ask less
    often for tables of more variables, so each further variable counts like four times the cells.
    """
    apart = nodes_apart(nodes)
    waiting: list[tuple[int, Nodes]] = [(1, ())]
    extra_tables: list[Nodes] = []
    # A table counts for more than those it extends, so that the smallest one waiting is the next.
    while waiting and len(extra_tables) < tables:
        size, table = heappop(waiting)
        if len(table) > max_variables:
            extra_tables.append(table)
        after = nodes[table[-1]][0] if table else -1
        rarer = _RARER if len(table) > max_variables else 1
        for k in apart:
            variable, level = nodes[k]
            if variable > after and size * level.size * rarer <= cells:
                heappush(waiting, (size * level.size * rarer, (*table, k)))
    return extra_tables
