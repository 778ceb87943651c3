"""Compiled search for the cheapest box around a cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.numeric.compiled import compiled


@compiled
def best_box(  # pragma: no cover
    cell: int,
    coords: Any,
    strides: Any,
    amount_up: float,
    amount_down: float,
    cost: Any,
    count: Any,
    up: Any,
    down: Any,
    axis_first: Any,
    move_first: Any,
    entry_first: Any,
    entry_place: Any,
    entry_sign: Any,
    most: int,
    cells: Any,
    signs: Any,
    best_cells: Any,
    best_signs: Any,
) -> int:
    """The cheapest product of moves along the axes that can carry both amounts; gives its size, or 0.

    Moves of category ``c`` of axis ``k`` are those from ``move_first[axis_first[k] + c]`` on; the entries of
    a move are its categories and signs, the category itself first. A partial product is given up when it
    costs as much as the best whole one. At most ``most`` partial products are looked at.
    """
    axes = coords.size
    widest = cells.shape[1]
    size = np.zeros(axes + 1, np.int64)
    price = np.zeros(axes + 1, np.float64)
    turn = np.zeros(axes + 1, np.int64)
    cells[0, 0], signs[0, 0], size[0] = cell, 1, 1
    best, best_size, looked = np.inf, 0, 0
    # Moves that are cheap for the cell itself come first; those that its own line rules out do not come.
    longest = 0
    for k in range(axes):
        slot = axis_first[k] + coords[k]
        longest = max(longest, move_first[slot + 1] - move_first[slot])
    ranked = np.zeros((axes, longest), np.int64)
    usable = np.zeros(axes, np.int64)
    for k in range(axes):
        slot = axis_first[k] + coords[k]
        keys = np.full(move_first[slot + 1] - move_first[slot], np.inf)
        for i in range(keys.size):
            move = move_first[slot] + i
            key = 0.0
            for e in range(entry_first[move] + 1, entry_first[move + 1]):
                other = cell + (entry_place[e] - coords[k]) * strides[k]
                rise, fall = (
                    (up[other], down[other]) if entry_sign[e] > 0 else (down[other], up[other])
                )
                if rise < amount_up or fall < amount_down:
                    key = np.inf
                    break
                key += cost[other] if count[other] == 0 else 0.0
            keys[i] = key
            usable[k] += key < np.inf
        order = np.argsort(keys, kind="mergesort")
        for i in range(keys.size):
            ranked[k, i] = move_first[slot] + order[i]
    depth = 0
    while depth >= 0:
        if turn[depth] >= usable[depth] or looked >= most:
            depth -= 1
            continue
        move = ranked[depth, turn[depth]]
        turn[depth] += 1
        looked += 1
        first, last = entry_first[move], entry_first[move + 1]
        n = size[depth]
        if n * (last - first) > widest:
            continue
        total = price[depth]
        fits = True
        m = n
        for k in range(n):
            cells[depth + 1, k], signs[depth + 1, k] = cells[depth, k], signs[depth, k]
        for e in range(first + 1, last):
            shift = (entry_place[e] - coords[depth]) * strides[depth]
            for k in range(n):
                other = cells[depth, k] + shift
                sign = signs[depth, k] * entry_sign[e]
                if sign > 0:
                    fits = up[other] >= amount_up and down[other] >= amount_down
                else:
                    fits = down[other] >= amount_up and up[other] >= amount_down
                if not fits:
                    break
                if count[other] == 0:
                    total += cost[other]
                    if total >= best:
                        fits = False
                        break
                cells[depth + 1, m], signs[depth + 1, m] = other, sign
                m += 1
            if not fits:
                break
        if not fits:
            continue
        if depth + 1 == axes:
            best, best_size = total, m
            for k in range(m):
                best_cells[k], best_signs[k] = cells[axes, k], signs[axes, k]
            if best <= 0.0:
                return int(best_size)
            continue
        size[depth + 1], price[depth + 1] = m, total
        depth += 1
        turn[depth] = 0
    return int(best_size)
