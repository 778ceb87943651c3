"""Parts of the audit of suppression, one by one: levels, ranges, deviations, certificates, unions of cells."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from lustrum.audit import ContradictionError
from lustrum.model import Contributions, InputError, Table, TableAxis
from lustrum.protect.suppression import (
    RuleOnUnions,
    SuppressionProblem,
    coalition,
    singleton_views,
)
from lustrum.protect.suppression import check as checks
from lustrum.protect.suppression.check import (
    _kept,
    _ranges,
    audit_deviations,
    audit_pattern,
    certificate_of,
    known_from,
)
from lustrum.protect.suppression.contributors import ranked_contributions
from lustrum.protect.suppression.problem import ContributorView
from lustrum.protect.suppression.search.boxes.boxes import Deviations
from lustrum.sensitivity import Threshold
from lustrum.sensitivity.background import Background

# Two by two cells with totals: 10 20 | 30, 30 40 | 70, 40 60 | 100.
VALUES = [10, 20, 30, 30, 40, 70, 40, 60, 100]
SUMS = [(2, [0, 1]), (5, [3, 4]), (8, [6, 7]), (6, [0, 3]), (7, [1, 4]), (8, [2, 5])]
SQUARE = np.isin(np.arange(9), [0, 1, 3, 4])


def made(primary: list[int], whole: bool = False, **words: Any) -> SuppressionProblem:
    levels = {"upper": [3] * len(primary), **words}
    return SuppressionProblem.of(VALUES, SUMS, primary, whole=whole, **levels)


def floats(*values: float) -> Any:
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize("whole", [True, False])
def test_a_range_keeps_its_levels_exactly_from_their_ends_on(whole: bool) -> None:
    """Real ends may miss a level by a millionth each, since they come from floating point; whole ones not."""
    slack = Fraction(0) if whole else Fraction(1, 10**6)
    missing = (-2, -1, 0, 1, 2) if whole else (-27, -19, -11, -8, -3, 0, 2, 9, -(10**7))
    near = [Fraction(k, 1 if whole else 10**7) for k in missing]
    for lower, upper, sliding in ((3, 2, 0), (2, 3, 5), (0, 0, 6), (1, 4, 9)):
        problem = made(
            [0, 4], whole, upper=[upper, upper], lower=[lower, lower], sliding=[sliding, sliding]
        )
        cells = np.array([0, 4])
        lows, highs, expected = [], [], []
        for down, up in product(near, near):
            for more in (0, sliding - lower - upper):
                low, high = -lower - down, upper + up + more
                lows.append(low)
                highs.append(high)
                expected.append(
                    low <= -lower + slack
                    and high >= upper - slack
                    and high - low >= sliding - 2 * slack
                )
        for low, high, kept in zip(lows, highs, expected, strict=True):
            ends = [(float(v + low), float(v + high)) for v in (10, 40)]
            found = _kept(
                problem, cells, floats(ends[0][0], ends[1][0]), floats(ends[0][1], ends[1][1])
            )
            assert found.tolist() == [kept, kept], (lower, upper, sliding, low, high)


def test_a_range_is_that_of_the_program_unless_a_deviation_shows_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = made([0, 1, 3], upper=[3, 3, 3], lower=[2, 2, 2])
    cells = np.array([0, 1, 3, 5])
    asked: list[tuple[list[int], bool]] = []

    def bounds(known: Any, picks: list[int], integer: bool, workers: Any) -> Any:
        asked.append((picks, integer))
        size = len(picks)
        return SimpleNamespace(
            low=np.arange(size) + 0.5, high=np.arange(size) + 90.5, sharp=np.arange(size) % 2 == 0
        )

    monkeypatch.setattr(checks, "bounds", bounds)
    # Without deviations: programs for the suppressed cells, and the number itself for a published one.
    low, high, sharp, shown = _ranges(problem, SQUARE, cells, None, 1)
    assert asked.pop() == ([0, 1, 2], False)
    assert low.tolist() == [0.5, 1.5, 2.5, 70]
    assert high.tolist() == [90.5, 91.5, 92.5, 70]
    assert sharp.tolist() == [True, False, True, True]
    assert not shown.any()
    # Deviations that reach the levels of the first and the third cell; that of a published cell says nothing.
    ends = (floats(3, 2, 8, 99), floats(2, 9, 7, 99))
    monkeypatch.setattr(checks, "shown_ends", lambda *_: ends)
    low, high, sharp, shown = _ranges(problem, SQUARE, cells, None, 1)
    assert asked.pop() == ([1], False)
    assert low.tolist() == [10 - 2, 0.5, 30 - 7, 70]
    assert high.tolist() == [10 + 3, 90.5, 30 + 8, 70]
    assert sharp.tolist() == [False, True, False, True]
    assert shown.tolist() == [True, False, True, False]
    # Where deviations show all of them no program is solved.
    ends = (floats(3, 4, 8, 0), floats(2, 9, 7, 0))
    low, high, sharp, shown = _ranges(problem, SQUARE, cells, None, 1)
    assert asked == []
    assert (low.tolist(), high.tolist()) == ([8, 11, 23, 70], [13, 24, 38, 70])
    assert sharp.tolist() == [False, False, False, True]
    assert shown.tolist() == [True, True, True, False]
    published = np.zeros(9, dtype=bool)
    low, high, sharp, shown = _ranges(problem, published, cells, None, 1)
    assert asked == []
    assert low.tolist() == high.tolist() == [10, 20, 30, 70]
    assert sharp.all()
    assert not shown.any()
    # Knowledge that contradicts itself proves nothing.
    monkeypatch.setattr(checks, "shown_ends", lambda *_: None)

    def torn(*_: Any, **__: Any) -> Any:
        raise ContradictionError("no table")

    monkeypatch.setattr(checks, "bounds", torn)
    low, high, sharp, shown = _ranges(problem, SQUARE, cells, None, 1)
    assert (low.tolist(), high.tolist()) == ([0, 0, 0, 70], [100, 100, 100, 70])
    assert sharp.tolist() == [False, False, False, True]
    assert not shown.any()
    assert set(audit_pattern(problem, SQUARE, workers=1).short) == {(0, -1), (1, -1), (3, -1)}


def test_whole_cells_are_bounded_in_whole_numbers() -> None:
    """Twice a plus b is 7 where b is at most 3: real numbers reach 3.5, whole ones 3."""
    matrix = sparse.csr_array(np.array([[2, 1, -1]]))
    for whole, most in ((False, 3.5), (True, 3.0)):
        problem = SuppressionProblem.of([3, 1, 7], matrix, [0], [1], whole=whole, high=[9, 3, 9])
        low, high, *_ = _ranges(problem, np.array([True, True, False]), np.array([0]), None, 1)
        assert (low[0], high[0]) == (pytest.approx(2.0), pytest.approx(most))


def test_a_pattern_that_publishes_a_cell_which_must_be_hidden_is_not_safe() -> None:
    problem = made([0], upper=[3], never=[8])
    assert audit_pattern(made([0]), SQUARE, workers=1).safe
    assert not audit_pattern(problem, SQUARE, workers=1).safe
    turn = np.array([1, -1, -1, 1])
    moved = Deviations(np.array([0]), np.array([0, 4]), np.flatnonzero(SQUARE), 5 * turn, -5 * turn)
    assert audit_deviations(made([0]), SQUARE, moved).safe
    assert not audit_deviations(problem, SQUARE, moved).safe


def test_a_deviation_that_breaks_a_relation_or_an_end_proves_nothing() -> None:
    """Every amount lies within the bounds of suppressed cells, and only the sums do not fit."""
    problem = made([0], upper=[3], high=[14, 100, 100, 100, 100, 100, 100, 100, 100])
    turn = np.array([1, -1, -1, 1])

    def safe(up: Any, down: Any) -> bool:
        moved = Deviations(np.array([0]), np.array([0, 4]), np.flatnonzero(SQUARE), up, down)
        return audit_deviations(problem, SQUARE, moved).safe

    assert safe(4 * turn, -4 * turn)
    for broken in (4 * turn + [0, 0, 0, 1], np.array([4, -4, 0, 0])):
        assert not safe(broken, -4 * turn)
        assert not safe(4 * turn, -broken)
    # The cell is known to be at most 14.
    assert not safe(5 * turn, -4 * turn)
    assert safe(4 * turn, -5 * turn)


def test_a_certificate_covers_the_primary_cells_that_are_suppressed() -> None:
    problem = made([0, 8], whole=True, upper=[3, 3])
    made_up = certificate_of(problem, SQUARE)
    assert [claim.cell for claim in made_up.claims] == [0]
    assert made_up.system.names == ("0", "1", "2", "3")
    (claim,) = made_up.claims
    assert (claim.low.value, claim.high.value) == (0, 30)
    assert made_up.allows([10, 20, 30, 40])
    hidden = SQUARE | (np.arange(9) == 8)
    assert [claim.cell for claim in certificate_of(problem, hidden).claims] == [0, 4]


def test_an_attacker_knows_the_closer_of_both_bounds() -> None:
    view = ContributorView(
        "knows", np.array([0, 1, 2]), np.array([4, 0, 0]), np.array([60, 25, 99])
    )
    problem = made([0], upper=[3], low=[2] * 9, high=[50] * 5 + [100] * 4)
    known, cells = known_from(problem, SQUARE, view)
    assert cells.tolist() == [0, 1, 3, 4]
    assert known.low.tolist() == [4, 2, 2, 2]
    assert known.high.tolist() == [50, 25, 50, 50]


class Recorded:
    """A rule that remembers what it has judged."""

    def __init__(self) -> None:
        self.judged: list[tuple[Table, Any]] = []

    def judge(self, table: Table, background: Any) -> Any:
        self.judged.append((table, background))
        return SimpleNamespace(mask=np.array(True))


@pytest.mark.parametrize("contributors", [[1, 5, 4, 3], None])
def test_a_union_is_judged_as_a_cell_with_the_contributions_of_its_parts(
    contributors: list[int] | None,
) -> None:
    table = Table(
        (TableAxis.plain("a", ["p", "q", "r", "s"]),),
        np.array([400, 1000, 600, 90]),
        kind="magnitude",
        decimals=1,
        contributors=None if contributors is None else np.array(contributors),
        contributions=Contributions(
            np.array([[400, 0], [700, 200], [300, 100], [-50, 40]]),
            np.array([[0, -1], [0, 7], [7, 8], [8, 9]]),
        ),
    )
    rule, background = Recorded(), Background()
    unions = RuleOnUnions(table, rule, background)  # type: ignore[arg-type]
    assert unions.reveals(np.array([1, 2]))
    assert unions.reveals(np.array([2, 1]))
    ((one, given),) = rule.judged
    assert given is background
    assert (one.kind, one.decimals) == ("magnitude", 1)
    assert int(one.values) == 1600
    assert one.contributions is not None
    # Holding 0 has 700, holding 7 has 500 in both cells, and holding 8 is beyond the ranks of the table.
    assert one.contributions.value.tolist() == [700, 500]
    assert one.contributions.holding.tolist() == [0, 7]
    # Nine contributions are those of eight, of whom three are seen; without numbers only those that are seen.
    assert one.contributors is not None
    assert int(one.contributors) == (8 if contributors else 3)
    unions.reveals(np.array([3]))
    last = rule.judged[-1][0]
    assert last.contributions is not None
    assert last.contributions.value.tolist() == [-50, 40]


def test_what_attackers_are_made_from_is_checked() -> None:
    with pytest.raises(InputError, match="3 cells, but 4 holdings"):
        singleton_views([4, 7, 9], [True, False, True], [5, -1, 5, 6])
    with pytest.raises(InputError, match="at least one member"):
        coalition("nobody", [])
    bare = Table((TableAxis.plain("a", ["p", "q"]),), np.array([4, 10]))
    with pytest.raises(InputError, match="largest contributions"):
        RuleOnUnions(bare, Threshold(3))
    nothing = sparse.csr_array((0, 2), dtype=np.int64)
    with pytest.raises(InputError, match="largest contributions"):
        ranked_contributions([bare], [0], nothing, alone_only=False)
    # The number of contributors says who is alone, not how many of them are seen.
    one_seen = Table(
        (TableAxis.plain("a", ["p", "q"]),),
        np.array([40, 100]),
        kind="magnitude",
        contributors=np.array([1, 3]),
        contributions=Contributions(np.array([[40], [100]]), np.array([[2], [3]])),
    )
    found = ranked_contributions([one_seen], [0], nothing, alone_only=False)
    assert found.cell.tolist() == [0, 1]
    assert found.alone.tolist() == [True, False]
