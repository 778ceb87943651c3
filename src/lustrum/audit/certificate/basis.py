"""The exact point and multipliers of a basis: sparse elimination in fractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from lustrum.audit.certificate.exact import Boxes, FactSystem
from lustrum.audit.certificate.linear import LinearOptimum

MOST_UNKNOWNS = 600  # beyond this, fractions take longer than branching
Row = dict[int, Fraction]


def solve(
    rows: Sequence[Mapping[int, int]], right: Sequence[Fraction | int], most: int = 10**7
) -> dict[int, Fraction] | None:
    """The only solution of a square system; None if there is not exactly one, or after ``most`` steps.

    The shortest equation goes first: those of tables have few terms and weights of 1, so that hardly
    any new terms come up and the fractions stay small.

    >>> solve([{0: 1, 1: 1}, {0: 1, 1: -1}], [3, 0])
    {1: Fraction(3, 2), 0: Fraction(3, 2)}
    """
    left: dict[int, Row] = {
        i: {j: Fraction(w) for j, w in row.items() if w} for i, row in enumerate(rows)
    }
    ends = {i: Fraction(b) for i, b in enumerate(right)}
    holders: dict[int, set[int]] = {}
    for i, row in left.items():
        for j in row:
            holders.setdefault(j, set()).add(i)
    done: list[tuple[int, Row, Fraction]] = []
    steps = 0
    while left:
        pick = min(left, key=lambda i: (len(left[i]), i))
        row, end = left.pop(pick), ends.pop(pick)
        if not row:
            return None
        pivot = min(row, key=lambda j: (len(holders[j]), j))
        factor = row.pop(pivot)
        row = {j: w / factor for j, w in row.items()}
        end /= factor
        for j in row:
            holders[j].discard(pick)
        for i in holders.pop(pivot) - {pick}:
            other = left[i]
            times = other.pop(pivot)
            ends[i] -= times * end
            steps += len(row) + 1
            for j, w in row.items():
                value = other.get(j, Fraction(0)) - times * w
                if value:
                    other[j] = value
                    holders[j].add(i)
                elif j in other:
                    del other[j]
                    holders[j].discard(i)
        if steps > most:
            return None
        done.append((pivot, row, end))
    solution: dict[int, Fraction] = {}
    for pivot, row, end in reversed(done):
        if any(j not in solution for j in row):
            return None
        solution[pivot] = end - sum((w * solution[j] for j, w in row.items()), Fraction(0))
    return solution


def basic_multipliers(
    system: FactSystem, optimum: LinearOptimum, cell: int, sign: int
) -> dict[int, Fraction] | None:
    """The multipliers that make every basic cell's reduced cost zero."""
    facts, basic = {fact for fact, _ in optimum.tight_facts}, optimum.basic_cells
    if len(facts) != len(basic) or len(facts) > MOST_UNKNOWNS:
        return None
    rows = [{i: w for i, w in system.columns[j] if i in facts} for j in basic]
    return solve(rows, [sign if j == cell else 0 for j in basic])


def basic_point(system: FactSystem, optimum: LinearOptimum, boxes: Boxes) -> list[Fraction] | None:
    """The table in which every nonbasic cell is at its bound and every nonbasic fact at its end."""
    basic, upper, tight = set(optimum.basic_cells), optimum.upper_cells, optimum.tight_facts
    if len(tight) != len(basic) or len(basic) > MOST_UNKNOWNS:
        return None
    point: list[Fraction] = []
    for j, box in enumerate(system.boxes):
        low, high = boxes.get(j, box)
        rest = high if j in upper or low is None else low
        point.append(Fraction(rest or 0))
    rows, right = [], []
    for fact, which in tight:
        end = system.ends[fact][which]
        if end is None:
            return None
        weights = dict(system.facts[fact])
        rows.append({j: w for j, w in weights.items() if j in basic})
        right.append(
            end - sum((w * point[j] for j, w in weights.items() if j not in basic), Fraction(0))
        )
    solved = solve(rows, right)
    if solved is None:
        return None
    for j, value in solved.items():
        point[j] = value
    return point
