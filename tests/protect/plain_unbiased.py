"""The walk of unbiased controlled rounding in plain steps: what the compiled loop is compared with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lustrum.model.arrays import Ints
from lustrum.protect.rounding.controlled.two_way import CirculationLayout

Decide = Callable[[int, int], bool]
"""Up or not, told how many units up and how many down a cycle can move."""


def round_by_decisions(layout: CirculationLayout, values: Ints, base: int, decide: Decide) -> Ints:
    """The same walk in plain steps, with the decisions made by the caller; all published numbers.

    ``decide(up, down)`` says whether the cycle at hand goes up; in the method it does so with probability
    ``down / (up + down)``.
    """
    true = layout.published(values)
    left = true % base
    tail, head = layout.tail.tolist(), layout.head.tolist()
    around: list[list[int]] = [[] for _ in range(layout.nodes)]
    for arc in np.flatnonzero(left).tolist():
        around[tail[arc]].append(arc)
        if head[arc] != tail[arc]:
            around[head[arc]].append(arc)
    for start in range(layout.nodes):
        nodes, arcs = [start], list[int]()
        while True:
            node = nodes[-1]
            arc = _next_arc(around[node], left, base, arcs[-1] if arcs else -1)
            if arc < 0:
                break
            arcs.append(arc)
            end = head[arc] if tail[arc] == node else tail[arc]
            if end not in nodes:
                nodes.append(end)
                continue
            first = nodes.index(end)
            cycle = np.array(arcs[first:])
            forward = np.array([tail[a] for a in arcs[first:]]) == np.array(nodes[first:])
            room = np.where(forward, base - left[cycle], left[cycle])
            room_back = base - room
            up, down = int(room.min()), int(room_back.min())
            step = up if decide(up, down) else -down
            left[cycle] += np.where(forward, step, -step)
            del nodes[first + 1 :], arcs[first:]
    return true - true % base + left


def _next_arc(around: list[int], left: Ints, base: int, came_by: int) -> int:
    """The last arc at a node that is not a multiple yet and was not just used; -1 if there is none."""
    k = len(around) - 1
    while k >= 0:
        arc = around[k]
        if left[arc] in (0, base):
            around[k] = around[-1]
            around.pop()
            k = min(k, len(around) - 1)
        elif arc == came_by:
            k -= 1
        else:
            return arc
    return -1


def decision_of_word(word: int, up: int, down: int) -> bool | None:
    """A uniform 64-bit word as a decision with the exact probability, or None: take another word."""
    if word >= 2**64 - 2**64 % (up + down):
        return None
    return word % (up + down) < down
