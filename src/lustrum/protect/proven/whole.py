"""Whole people close to expected numbers: a systematic draw, then moves of single people that lower errors.

The draw goes through all finest cells in one order and sets a person wherever the running sum passes a whole
number, so that long stretches hold as many as expected. A move changes one code of one person, to another one
drawn by the expected numbers of the cells that differ only in it; it is made if squared errors of the
controlled tables fall. Targets are tables of the expected numbers, not of the noisy ones. Nothing here has seen
a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lustrum.model.arrays import Array, Floats, Ints
from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import below, unit
from lustrum.protect.population.search.levels import controlled_levels
from lustrum.protect.population.search.sweep import shuffle
from lustrum.protect.proven.domain import Domain
from lustrum.runtime.stop import check_stop, report_progress

_SWEEPS = 4
_MAJOR_TRIES = 2


class ErrorTables(NamedTuple):
    """The errors of all controlled tables in one array.

    A person has a *place* on every node: its code on each axis, then its group at each coarser level of the
    major axis.
    """

    nodes: Array  # (tables, most): the nodes of a table, -1 where it has fewer
    strides: Array  # (tables, most)
    offset: Array  # where each table begins
    errors: Array  # people less what is expected
    of_node: Array  # (nodes, most): the tables of a node,
    counts: Array  # and how many they are
    group: Array  # (coarser levels, major codes)


def whole_people(
    domain: Domain, expected: Floats, people: int, max_variables: int, seed: int
) -> Ints:
    """Whole counts of all finest cells, so many people in all."""
    state = np.array([seed], dtype=np.uint64)
    counts = np.zeros(domain.shape, dtype=np.int64)
    # The axes with the most codes change slowest, so that stretches stay long for many tables.
    slowest = domain.combined[np.argsort(domain.sizes[1:], kind="stable")]
    order = np.lexsort([np.zeros(domain.shape[1]), *slowest])
    _draw(expected, order, unit(state), people, counts)
    places = np.repeat(np.flatnonzero(counts), counts.ravel()[counts.ravel() > 0])
    # Neighbours in the draw would make the same moves one after another, and overshoot.
    shuffle(places, state)
    major, combination = np.divmod(places, domain.shape[1])
    tables = _tables(domain, expected, counts, max_variables)
    lattice = np.full(int(np.prod(domain.sizes[1:])), -1, dtype=np.int32)
    places_below = (int(np.prod(domain.sizes[i + 1 :])) for i in range(1, len(domain.sizes)))
    strides = np.array([*places_below], dtype=np.int64)
    lattice[(domain.combined * strides[:, None]).sum(axis=0)] = np.arange(domain.shape[1])
    for sweep in range(_SWEEPS):
        check_stop()
        report_progress("placing people", sweep / _SWEEPS)
        _sweep(
            major,
            combination,
            domain.combined,
            lattice,
            strides,
            np.array(domain.sizes),
            expected,
            tables,
            state,
        )
    counts[:] = 0
    np.add.at(counts, (major, combination), 1)
    return counts


@compiled
def _draw(
    expected: Array, order: Array, start: float, people: int, counts: Array
) -> None:  # pragma: no cover
    """Set a person wherever the running sum passes a whole number; those that rounding loses come last."""
    running, placed = start, 0
    last_row, last_cell = 0, order[0]
    for row in range(expected.shape[0]):
        for cell in order:
            if expected[row, cell] > 0.0:
                running += expected[row, cell]
                last_row, last_cell = row, cell
                number = min(int(running), people) - placed
                counts[row, cell] = number
                placed += number
    counts[last_row, last_cell] += people - placed


def _tables(domain: Domain, expected: Floats, counts: Ints, max_variables: int) -> ErrorTables:
    """All tables of up to so many axes, and those with the major axis at its coarser levels as well."""
    levels = _major_levels(domain)
    axes = len(domain.axes)
    sizes = [*domain.sizes, *(int(level.max()) + 1 for level in levels)]
    listed, errors = [], []
    for subset in domain.subsets(max_variables):
        rows = domain.shape[0] if 0 in subset else 1
        index = domain.groups(subset)
        width = int(np.prod([domain.sizes[axis] for axis in subset if axis]))
        error = np.zeros((rows, width))
        for row, (line, numbers) in enumerate(
            zip(expected, counts, strict=True)
            if rows > 1
            else [(expected.sum(axis=0), counts.sum(axis=0))]
        ):
            np.add.at(error[row], index, numbers - line)
        listed.append(subset)
        errors.append(error.ravel())
        if rows > 1:
            for number, level in enumerate(levels):
                coarser = np.zeros((int(level.max()) + 1, width))
                np.add.at(coarser, level, error)
                listed.append((axes + number, *subset[1:]))
                errors.append(coarser.ravel())
    shape = (len(listed), max_variables)
    nodes, strides = np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for table, subset in enumerate(listed):
        for place, node in enumerate(subset):
            nodes[table, place] = node
            strides[table, place] = int(np.prod([sizes[other] for other in subset[place + 1 :]]))
    having = [
        [t for t, subset in enumerate(listed) if node in subset] for node in range(len(sizes))
    ]
    of_node = np.zeros((len(sizes), max(map(len, having))), dtype=np.int64)
    for node, many in enumerate(having):
        of_node[node, : len(many)] = many
    return ErrorTables(
        nodes,
        strides,
        np.cumsum([0, *(error.size for error in errors[:-1])]).astype(np.int64),
        np.concatenate(errors),
        of_node,
        np.array([len(many) for many in having]),
        np.array(levels, dtype=np.int64).reshape(len(levels), domain.shape[0]),
    )


def _major_levels(domain: Domain) -> Sequence[Ints]:
    """The coarser levels of the variables of the major axis: the group of each of its codes."""
    axis, levels = domain.axes[0], controlled_levels(domain.dataset)
    return [
        level.group_of[row]
        for variable, row in zip(axis.variables, axis.codes, strict=True)
        for level in levels.get(domain.dataset.variables[variable].name, ())
        if 1 < level.size < len(axis)
    ]


@compiled
def _sweep(
    major: Array,
    combination: Array,
    codes: Array,
    lattice: Array,
    strides: Array,
    sizes: Array,
    expected: Array,
    tables: Any,
    state: Array,
) -> None:  # pragma: no cover
    """Try to move every person along the axes, a few times along each kind."""
    axes = codes.shape[0] + 1
    place = np.zeros(axes + tables.group.shape[0], dtype=np.int64)
    for person in range(major.size):
        place[0] = major[person]
        for axis in range(1, axes):
            place[axis] = codes[axis - 1, combination[person]]
        for level in range(tables.group.shape[0]):
            place[axes + level] = tables.group[level, major[person]]
        row = expected[major[person]]
        for _ in range(axes - 1):
            axis = 1 + below(state, axes - 1)
            stride, old = strides[axis - 1], place[axis]
            here = 0
            for other in range(1, axes):
                if other != axis:
                    here += place[other] * strides[other - 1]
            new = _along(row, lattice, here, stride, sizes[axis], old, state)
            if new >= 0 and _gain(tables, place, axis, new) < 0.0:
                _move(tables, place, axis, new)
                place[axis] = new
                combination[person] = lattice[here + new * stride]
        for _ in range(_MAJOR_TRIES):
            new = below(state, expected.shape[0])
            other = below(state, expected.shape[0])
            cell = combination[person]
            likely = expected[new, cell]
            if unit(state) * (likely + expected[other, cell]) >= likely:
                new = other
            if new == place[0] or expected[new, cell] == 0.0:
                continue
            gain = _gain(tables, place, 0, new)
            for level in range(tables.group.shape[0]):
                if tables.group[level, new] != place[axes + level]:
                    gain += _gain(tables, place, axes + level, tables.group[level, new])
            if gain < 0.0:
                _move(tables, place, 0, new)
                place[0] = major[person] = new
                for level in range(tables.group.shape[0]):
                    _move(tables, place, axes + level, tables.group[level, new])
                    place[axes + level] = tables.group[level, new]


@compiled
def _along(
    row: Array, lattice: Array, here: int, stride: int, size: int, old: int, state: Array
) -> int:  # pragma: no cover
    """Another code of an axis, drawn by the expected numbers of its cells; -1 where nobody is expected."""
    total = 0.0
    for code in range(size):
        cell = lattice[here + code * stride]
        if cell >= 0 and code != old:
            total += row[cell]
    left = unit(state) * total
    new = -1
    for code in range(size):
        cell = lattice[here + code * stride]
        if cell >= 0 and code != old and row[cell] > 0.0:
            new = code
            left -= row[cell]
            if left < 0.0:
                break
    return new


@compiled
def _gain(tables: Any, place: Array, node: int, new: int) -> float:  # pragma: no cover
    """By how much half the sum of squared errors grows if a person moves along a node."""
    gain = 0.0
    for number in range(tables.counts[node]):
        here, there = _ends(tables, place, node, new, tables.of_node[node, number])
        gain += tables.errors[there] - tables.errors[here] + 1.0
    return gain


@compiled
def _move(tables: Any, place: Array, node: int, new: int) -> None:  # pragma: no cover
    for number in range(tables.counts[node]):
        here, there = _ends(tables, place, node, new, tables.of_node[node, number])
        tables.errors[here] -= 1.0
        tables.errors[there] += 1.0


@compiled
def _ends(
    tables: Any, place: Array, node: int, new: int, table: int
) -> tuple[int, int]:  # pragma: no cover
    """The cells of a table that a person leaves and comes to by a move along a node."""
    here, stride = tables.offset[table], 0
    for at in range(tables.nodes.shape[1]):
        other = tables.nodes[table, at]
        if other >= 0:
            here += place[other] * tables.strides[table, at]
            if other == node:
                stride = tables.strides[table, at]
    return here, here + (new - place[node]) * stride
