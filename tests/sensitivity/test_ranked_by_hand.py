"""The largest respondents of a cell, worked out one respondent at a time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lustrum.model import Category, Contributions, InputError, Table, TableAxis
from lustrum.sensitivity import (
    Background,
    Dominance,
    KDisclosure,
    PPercent,
    PriorPosterior,
    Threshold,
)
from lustrum.sensitivity.ranked import Ranked


@dataclass
class Cell:
    """The ranks in sight (value, holding, weight), the published total, and how many contribute."""

    ranks: list[tuple[int, int, float]]
    total: int
    contributors: int


def table_of(
    cells: list[Cell], kept: int, weighted: bool, decimals: int = 0, counted: bool = True
) -> Table:
    value = np.zeros((len(cells), kept), dtype=np.int64)
    holding = np.full((len(cells), kept), -1, dtype=np.int64)
    weight = np.zeros((len(cells), kept))
    for row, cell in enumerate(cells):
        for rank, (x, owner, w) in enumerate(cell.ranks):
            value[row, rank], holding[row, rank], weight[row, rank] = x, owner, w
    return Table(
        axes=(TableAxis.plain("cell", [str(k) for k in range(len(cells))]),),
        values=np.array([cell.total for cell in cells]),
        kind="magnitude",
        contributors=np.array([c.contributors for c in cells]) if counted else None,
        contributions=Contributions(value, holding, weight if weighted else None, decimals),
    )


class ByHand:
    """What the rules need of one cell, in units of the table, from the words of the documentation."""

    def __init__(
        self,
        cell: Cell,
        kept: int,
        asked: int,
        weighted: bool,
        decimals: int,
        counted: bool,
        waived: set[int],
        sample: bool,
        signed: bool,
    ) -> None:
        one = (
            Fraction(10**decimals) if weighted else Fraction(1)
        )  # a respondent, in units of weight
        ranks = [
            (x, h, Fraction(w).limit_denominator(1000) if weighted else one)
            for x, h, w in cell.ranks
        ]
        listed = [r for r in ranks if r[2] > 0]
        self.respondents = [(abs(x), one if sample else w, h in waived, x) for x, h, w in listed]
        sizes = sum(abs(x) * w for x, _, w in listed)
        rest = cell.total - sum(x * w for x, _, w in listed)
        negative = any(x < 0 for x, _, _ in cell.ranks)
        self.total = abs(Fraction(cell.total)) if weighted and not negative else sizes + abs(rest)
        self.more = cell.contributors > kept if counted else len(cell.ranks) == kept
        self.last = abs(cell.ranks[kept - 1][0]) if len(cell.ranks) == kept else 0
        below = self.last * one * asked if signed else max(self.total - sizes, Fraction(0))
        self.hidden = below if self.more else Fraction(0)
        self.one_respondent = one
        self.plain = one == 1 and all(w == int(w) for _, _, w in ranks)

    @property
    def open_ranks(self) -> list[int]:
        return [k for k, r in enumerate(self.respondents) if not r[2]]

    @property
    def protected(self) -> bool:
        return bool(self.open_ranks) or self.more

    def one(self, whole_weights: bool) -> Fraction:
        if self.open_ranks:
            return self.respondents[self.open_ranks[0]][0] * self.one_respondent
        if not self.more:
            return Fraction(0)
        below = self.last * self.one_respondent
        return min(below, self.hidden) if whole_weights and self.one_respondent == 1 else below

    def largest(self, number: int) -> Fraction:
        """One respondent after the other: s first, then the largest of all others, then hidden ones."""
        one = self.one_respondent
        left = [copies for _, copies, _, _ in self.respondents]
        together, room = Fraction(0), number * one
        if self.open_ranks:
            s = self.open_ranks[0]
            part = min(left[s], one)
            together += self.respondents[s][0] * part
            left[s] -= part
            room -= part
        elif self.more:
            room -= one  # a place for the one who is not in sight
        for (size, *_), copies in zip(self.respondents, left, strict=True):
            part = min(max(room, Fraction(0)), copies)
            together += size * part
            room -= part
        if not self.open_ranks and self.more:
            room += one
        return together + min(self.last * room, self.hidden)


def drawn(seed: int, kept: int, weighted: bool, negative: bool) -> list[Cell]:
    rng = np.random.default_rng(seed)
    cells = []
    for _ in range(6):
        number = int(rng.integers(0, kept + 3))
        values = rng.integers(-60 if negative else 0, 61, number).tolist()
        values.sort(key=lambda x: -abs(x))
        fine = seed % 3 == 0
        weights = [
            (float(rng.integers(0, 5)) if not fine else rng.integers(0, 4000) / 1000)
            if weighted
            else 1.0
            for _ in values
        ]
        total = int(sum(x * w for x, w in zip(values, weights, strict=True)))
        ranks = [(x, k, w) for k, (x, w) in enumerate(zip(values, weights, strict=True))]
        cells.append(Cell(ranks[:kept], total, number))
    return cells


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_largest_respondents_are_those_found_one_by_one(seed: int, weighted: bool) -> None:
    for negative in (False, True):
        for waiving in ((), (0,), (0, 1), (1,), range(10)):
            compared(seed, weighted, negative, waiving)


def compared(seed: int, weighted: bool, negative: bool, waiving: Any) -> None:
    kept, decimals = 3, seed % 2 if weighted else 0
    cells = drawn(seed, kept, weighted, negative)
    whole = not weighted or all(w == int(w) for cell in cells for _, _, w in cell.ranks)
    for counted in (True, False):
        table = table_of(cells, kept, weighted, decimals, counted)
        for sample in (False, True):
            found = Ranked.of(
                table,
                Background(waived=waiving),
                rule="rule",
                ranks=2,
                weights="sample" if sample else "expanded",
                factor=10,
            )
            seen = [x for cell in cells for x, _, _ in cell.ranks]
            rests = [c.total - sum(x for x, _, _ in c.ranks) for c in cells]
            signed = (
                min([*seen, *(c.total for c in cells), *([] if weighted else rests)], default=0) < 0
            )
            assert found.signed == signed
            scale = 1 if whole else 1000
            assert found.scale == scale
            assert found.whole == scale * 10**decimals
            for row, cell in enumerate(cells):
                want = ByHand(
                    cell, kept, 2, weighted, decimals, counted, set(waiving), sample, signed
                )
                assert found.total[row] == want.total * scale
                assert found.net[row] == cell.total * scale
                assert found.last[row] == want.last
                assert found.more[row] == want.more
                assert found.protected[row] == want.protected
                assert found.hidden[row] == want.hidden * scale
                assert found.one[row] == want.one(whole) * scale
                for number in (1, 2, 3):
                    assert found.largest(number)[row] == want.largest(number) * scale
                    take = found.taken(number)[row]
                    assert take.sum() <= number * found.whole
            assert found.value.dtype == found.copies.dtype == np.int64


def judged(rule: Any, cell: list[int], total: int, factor: int = 1) -> tuple[bool, int]:
    ranks = [(x * factor, k, 1.0) for k, x in enumerate(cell)]
    table = table_of([Cell(ranks, total * factor, len(cell))], 4, weighted=False)
    found = rule.judge(table)
    return bool(found.mask[0]), int(found.upper[0])


@pytest.mark.parametrize("rule", [PPercent(12.5), Dominance(2, 99.9), PriorPosterior(10, 20)])
def test_numbers_too_large_for_64_bits_are_judged_alike(rule: Any) -> None:
    """Where a product of the rule leaves 64 bits, the answer is the same in larger units."""
    for cell in ([600, 300, 80], [600, 500, 400, 390], [7, 0, 0]):
        small, level = judged(rule, cell, sum(cell))
        for power in range(36, 53):
            large, wide = judged(rule, cell, sum(cell), 2**power)
            assert large == small
            # Rounded up to whole units, which are finer by the factor.
            assert (wide + 2**power - 1) // 2**power == level


@pytest.mark.parametrize(
    ("cell", "weighted", "factor"),
    [
        # Large numbers that cancel, so that the total says nothing about their size.
        (Cell([(6 * 2**60 // 5 // 250, 1, 1), (-6 * 2**60 // 5 // 250, 2, 1)], 0, 2), False, 1000),
        # The same by their weights.
        (Cell([(2**30, 1, 2.0**30), (-(2**30), 2, 2.0**30)], 0, 2), True, 8),
        # A total that is large beside the ranks, in thousandths.
        (Cell([(3, 1, 0.5), (1, 2, 0.25)], 2**60, 90), True, 10),
        (Cell([(3, 1, 1.0), (1, 2, 1.0)], 2**62, 90), False, 10),
    ],
)
def test_no_product_leaves_64_bits(cell: Cell, weighted: bool, factor: int) -> None:
    table = table_of([cell, Cell([(1, 5, 1.0)], 1, 1)], 2, weighted)
    found = Ranked.of(table, Background(), rule="r", ranks=2, weights="expanded", factor=factor)
    signed = any(x < 0 for x, _, _ in cell.ranks)
    want = ByHand(cell, 2, 2, weighted, 0, True, set(), False, signed)
    scale = found.scale
    assert [int(x) for x in found.total[:1] * factor] == [want.total * scale * factor]
    assert [int(x) for x in found.largest(2)[:1] * factor] == [want.largest(2) * scale * factor]


def test_many_large_ranks_and_a_total_that_hides_them_fit_too() -> None:
    """Six in sight and as much that is negative below them: the absolute total is twelve times one."""
    size = 2**60 // 1000 - 1
    cell = Cell([(size, k, 1.0) for k in range(6)], 0, 9)
    table = table_of([cell], 6, weighted=False)
    found = Ranked.of(table, Background(), rule="r", ranks=6, weights="expanded", factor=1000)
    assert [int(x) for x in found.total * 1000] == [12 * size * 1000]
    assert [int(x) for x in found.largest(6) * 1000] == [6 * size * 1000]


PLAIN = Cell([(9, 1, 1.0), (4, 2, 1.0)], 15, 4)


@pytest.mark.parametrize(
    ("odd", "weighted", "signed", "total"),
    [
        (Cell([(9, 1, 1.0), (4, 2, 1.0)], 14, 3), False, False, 14),
        (Cell([(9, 1, 1.0), (-4, 2, 1.0)], 5, 2), False, True, 13),  # in sight
        (Cell([(9, 1, 1.0), (4, 2, 1.0)], -5, 3), True, True, 5),  # by the total
        (Cell([(50, 1, 1.0), (30, 2, 1.0)], 60, 3), False, True, 100),  # hidden: 20 or more below 0
        (Cell([(50, 1, 1.0), (30, 2, 1.0)], 60, 3), True, False, 60),  # mean weights may say so
    ],
)
def test_one_cell_with_anything_negative_is_enough(
    odd: Cell, weighted: bool, signed: bool, total: int
) -> None:
    table = table_of([PLAIN, odd, PLAIN], 2, weighted)
    found = Ranked.of(table, Background(), rule="r", ranks=2, weights="expanded", factor=10)
    assert found.signed is signed
    assert found.total.tolist() == [15, total, 15]


def test_two_cells_together_tell_a_group_part_of_which_is_not_shown() -> None:
    """Of the first axis a code is not in the table: the total of 10 has one person elsewhere."""
    first = TableAxis(
        "a",
        "a",
        tuple(
            Category(code, code, members)
            for code, members in (("x", (0,)), ("y", (1,)), ("_T", (0, 1, 2)))
        ),
    )
    counts = np.array([[5, 5, 9], [4, 0, 9], [10, 5, 30]])
    table = Table(axes=(first, TableAxis.plain("b", ["p", "q", "r"])), values=counts)
    alone = KDisclosure(1).judge(table)
    assert alone.mask[:2].tolist() == [[False, True, False], [False, False, False]]
    both = KDisclosure(1, together=2).judge(table)
    # 5 and 4 of 10 leave one, which is no more than k. Along the other axis 4 and 9 are all of y.
    assert both.mask[:2].tolist() == [[True, True, False], [True, False, True]]
    assert both.lower[:2].tolist() == [[1, 2, 0], [2, 0, 2]]


def test_levels_are_rounded_up_and_do_not_lead_below_0() -> None:
    table = table_of([Cell([(70, 1, 1.5), (10, 2, 1.0)], 115, 2)], 2, weighted=True)
    found = Ranked.of(table, Background(), rule="r", ranks=2, weights="expanded", factor=10)
    assert found.units(np.array([0, 1, 1000, 1001, 3000])).tolist() == [0, 1, 1, 2, 3]
    assert found.units(np.array([1, 6000, 6001]), 3).tolist() == [1, 2, 3]
    assert found.downwards(np.array([200])).tolist() == [115]
    assert found.downwards(np.array([99])).tolist() == [99]
    below = table_of([Cell([(-70, 1, 1.0), (10, 2, 1.0)], -60, 2)], 2, weighted=False)
    negative = Ranked.of(below, Background(), rule="r", ranks=2, weights="expanded", factor=10)
    assert negative.signed
    assert negative.downwards(np.array([200])).tolist() == [200]


def test_a_negative_weight_and_too_few_ranks_are_refused() -> None:
    table = table_of([Cell([(70, 1, -0.5), (10, 2, 1.0)], 5, 2)], 2, weighted=True)
    with pytest.raises(InputError, match="weight is negative"):
        PPercent(10).judge(table)
    # The weight of nobody is not looked at.
    Ranked.of(
        table_of([Cell([(70, 1, 1.0)], 70, 1)], 2, weighted=True),
        Background(), rule="r", ranks=2, weights="expanded", factor=1,
    )  # fmt: skip
    with pytest.raises(InputError, match=r"needs the 3 largest .* only 2"):
        PPercent(10, coalition=2).judge(table_of([Cell([(7, 1, 1.0)], 7, 1)], 2, weighted=False))
    with pytest.raises(InputError, match="has none"):
        PPercent(10).judge(Table.from_counts([1, 2]))


@pytest.mark.parametrize(
    "rule", [PPercent(10), Dominance(2, 85), PriorPosterior(10, 20), Threshold(3), KDisclosure(1)]
)
def test_a_rule_judges_tables_alone(rule: Any) -> None:
    with pytest.raises(InputError, match="Table"):
        rule.judge([1, 2, 3])
