"""Classes hold every value once, in order, and are never narrower than protection blurs."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.server.table_view.classes import MOST_CLASSES, classed

VALUES = st.lists(st.integers(0, 400), min_size=1, max_size=40)


@given(VALUES, st.sampled_from(["quantile", "natural"]), st.integers(0, 30))
def test_classes_part_the_values_and_are_at_least_two_margins_wide(
    values: list[int], how: str, margin: int
) -> None:
    made = classed(values, how, margin)
    assert 1 <= len(made.ends) <= MOST_CLASSES
    held = [v for low, high in made.ends for v in sorted(values) if low <= v <= high]
    assert held == sorted(values)
    begins = [low for low, _ in made.ends]
    for low, following in pairwise(begins):
        assert following - low >= 2 * margin
    shades = [made.shade(v) for v in sorted(values)]
    assert shades == sorted(shades)
    assert len(set(shades)) == len(made.ends)


@given(st.lists(st.integers(0, 60), min_size=3, max_size=9, unique=True))
def test_natural_breaks_leave_the_least_spread(values: list[int]) -> None:
    ranked = sorted(values)

    def spread(cuts: tuple[int, ...]) -> float:
        parts = [ranked[a:b] for a, b in zip((0, *cuts), (*cuts, len(ranked)), strict=True)]
        return sum(sum((v - sum(p) / len(p)) ** 2 for v in p) for p in parts)

    best = min(spread(c) for c in combinations(range(1, len(ranked)), 2))
    made = classed(ranked, "natural", most=3)
    cuts = tuple(ranked.index(low) for low, _ in made.ends[1:])
    assert spread(cuts) == pytest.approx(best)
