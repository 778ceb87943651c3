"""The certainty about small cells: against posteriors computed by hand and by enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from lustrum.audit import Coalition, Insider
from lustrum.model import InputError, Release, Table
from lustrum.protect import RandomRounding
from lustrum.protect.privacy import DifferentialPrivacy
from lustrum.protect.unchanged import Unchanged
from lustrum.risk.cell_certainty import CellCertainty


def test_a_rounded_cell_leaves_the_posterior_of_its_channel() -> None:
    """Published 3 to base 3: true 1 to 5 with weights 1, 2, 3, 2, 1 ninths."""
    table = Table.from_counts([[2, 30], [40, 50]])
    release = Release(
        table.axes,
        np.array([[3, 30], [39, 51]]),
        np.full((2, 2), "F"),
        {},
        RandomRounding(3).apply(table, np.random.default_rng(0)).channel,
    )
    p = np.array([1, 2, 3, 2, 1]) / 9
    expected = 2.0 ** (p * np.log2(p)).sum()
    assert CellCertainty(audit="cell").after(table, release) == pytest.approx(expected)
    # Somebody in the cell takes off their own share: the others number 0 to 4, as probable as before.
    inside = CellCertainty("insider", audit="cell").cells(table, release)
    assert inside.certainty.tolist() == pytest.approx([expected])
    assert (inside.low.tolist(), inside.high.tolist()) == ([0.0], [4.0])


def test_an_unprotected_table_is_certain_and_a_table_without_small_cells_is_not_at_risk() -> None:
    table = Table.from_counts([[2, 30], [40, 50]])
    measure = CellCertainty()
    assert measure.after(table, Unchanged().apply(table)) == measure.before(table) == 1.0
    large = Table.from_counts([[20, 30], [40, 50]])
    assert measure.before(large) == measure.after(large, Unchanged().apply(large)) == 0.0


def test_more_noise_leaves_less_certainty() -> None:
    table = Table.from_counts(np.random.default_rng(1).integers(0, 6, size=(6, 6)))
    rng = np.random.default_rng(2)
    found = [
        CellCertainty().after(table, DifferentialPrivacy(epsilon=e).rehearse(table, rng))
        for e in (0.1, 1.0, 10.0)
    ]
    assert found[0] < found[1] < found[2]


def test_a_coalition_takes_off_all_its_members() -> None:
    table = Table.from_counts([[4, 30], [40, 50]])
    release = RandomRounding(3).apply(table, np.random.default_rng(0))
    pair = CellCertainty(Coalition((Insider(1), Insider(1)))).cells(table, release)
    alone = CellCertainty().cells(table, release)
    assert pair.low[0] >= max(0.0, alone.low[0] - 2)
    assert pair.high[0] == alone.high[0] - 2


@pytest.mark.parametrize(
    ("options", "words"),
    [({"attacker": "spy"}, "outsider"), ({"up_to": 0}, "whole number"), ({"audit": "x"}, "sharp")],
)
def test_mistakes_are_one_sentence(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        CellCertainty(**options)  # type: ignore[arg-type]
