"""Contradictions are explained by a few facts, none of which could be spared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import Bounds, LinearConstraint, milp

from audit.fibres import QUICK, axis, fitting
from audit.test_bounds import systems
from audit.worlds import worlds
from lustrum.audit import ContradictionError, Knowledge, PublishedTable, bounds, from_tables
from lustrum.audit.knowledge.conflicts import ConflictError, Fact, conflict
from lustrum.audit.knowledge.reduce import CONTRADICTION
from lustrum.numeric.structure import UNBOUNDED

WIDE = 1000  # far enough for a point of any part of what is drawn


def fits(known: Knowledge, facts: Sequence[Fact], whole: bool) -> bool:
    """Whether some point in a wide box satisfies these facts, by another solver."""
    rows, low, high = known.matrix.toarray(), [], []
    weights = []
    for fact in facts:
        weights.append(np.eye(len(known))[fact.cell] if fact.row is None else rows[fact.row])
        low.append(-np.inf if fact.low is None else fact.low)
        high.append(np.inf if fact.high is None else fact.high)
    found = milp(
        np.zeros(len(known)),
        integrality=np.full(len(known), int(whole)),
        bounds=Bounds(-WIDE, WIDE),
        constraints=LinearConstraint(np.array(weights).reshape(-1, len(known)), low, high),
    )
    assert found.status in (0, 2)
    return found.status == 0


def assert_explained(known: Knowledge, tables: np.ndarray) -> None:
    found = conflict(known)
    if len(tables):
        assert found is None
        return
    for fact in found.facts:
        own = (known.low, known.high, fact.cell) if fact.row is None else (
            known.fact_low, known.fact_high, fact.row
        )  # fmt: skip
        assert fact.low in (None, own[0][own[2]])
        assert fact.high in (None, own[1][own[2]])
    assert not fits(known, found.facts, found.whole)
    assert found.irreducible or found.whole
    assert not found.whole or fits(known, found.facts, whole=False)
    if found.irreducible:
        for place in range(len(found.facts)):
            fewer = [f for k, f in enumerate(found.facts) if k != place]
            assert fits(known, fewer, found.whole)
    message = found.message.removeprefix(CONTRADICTION)
    assert message.endswith(".")
    # Names of cells, and no value of a cell.
    named = {w.strip(",.") for w in message.split() if w.strip(",.").isdigit()}
    weights = {str(abs(w)) for w in known.matrix.data.tolist()}
    assert named <= weights | {"0"}


@QUICK
@given(systems())
def test_a_conflict_is_one_and_has_nothing_to_spare(known):
    assert_explained(known, fitting(known))


@QUICK
@given(worlds(clash=True))
def test_tables_that_contradict_each_other_are_explained(world):
    assert_explained(world.known, world.every)


@pytest.mark.parametrize(
    ("weights", "ends", "says"),
    [
        ({"a": 1, "b": 1, "c": -1}, (0, 0), "a + b = c"),
        ({"a": -1, "b": -1, "c": 1}, (0, 0), "a + b = c"),
        ({"a": 1, "b": -1}, (0, UNBOUNDED), "a - b >= 0.00"),
        ({"a": 1, "b": -2, "c": -1}, (-UNBOUNDED, 4), "a - (2 b + c) <= 0.04"),
        ({"a": -1}, (-3, UNBOUNDED), "0 - a >= -0.03"),
        ({"a": 1, "b": -1}, (205, 205), "a - b = 2.05"),
        (dict.fromkeys("abcdefgh", 1), (-UNBOUNDED, 9), "a + b + c + d + e + 3 more cells <= 0.09"),
    ],
)
def test_sums_in_words(weights, ends, says):
    known = Knowledge.of("abcdefgh", decimals=2, low=-UNBOUNDED).fact(weights, *ends)
    opposite = (ends[1] + 1, UNBOUNDED) if ends[1] < UNBOUNDED else (-UNBOUNDED, ends[0] - 1)
    assert says in str(conflict(known.fact(weights, *opposite))).split(" and ")


def test_cells_and_their_total_are_named_in_words():
    sex = axis("sex", [0], [1], [0, 1])
    known = from_tables([PublishedTable.exact([sex], [3, 5, 7])])
    with pytest.raises(ConflictError) as caught:
        bounds(known)
    assert len(caught.value.conflict.facts) == 4
    assert str(caught.value) == (
        "The published cells contradict each other: no table fits the values of sex=0, sex=1 and "
        "sex=01, given sex=0 + sex=1 = sex=01."
    )
    assert str(caught.value.conflict) == (
        "sex=0 is 3, sex=1 is 5, sex=01 is 7 and sex=0 + sex=1 = sex=01"
    )


def test_the_one_wrong_total_of_a_large_table_is_found_with_its_line():
    rng = np.random.default_rng(0)
    values = rng.integers(1, 50, (20, 20))
    values = np.vstack([values, values.sum(0)])
    values = np.hstack([values, values.sum(1, keepdims=True)])
    mask = np.zeros(values.shape, dtype=bool)
    mask[2, 3] = mask[2, 7] = mask[9, 3] = mask[9, 7] = True
    values[20, 7] -= 60  # less than what is shown of the column
    axes = [axis(n, *[[c] for c in range(20)], list(range(20))) for n in "rc"]
    with pytest.raises(ConflictError) as caught:
        bounds(from_tables([PublishedTable.exact(axes, np.where(mask, 0, values), mask)]))
    found = caught.value.conflict
    assert found.irreducible
    assert len(found.facts) < 60
    # No figure is in the message, and it is one sentence.
    assert str(values[20, 7]) not in str(caught.value)
    assert str(caught.value).endswith(".")
    assert "more" in str(caught.value)


def test_whole_numbers_alone_can_contradict_each_other():
    known = Knowledge.of("xyz").fact({"x": 2, "y": 2}, 3, 3).bound("z", 1, 5)
    with pytest.raises(ConflictError, match="of whole numbers") as caught:
        bounds(known, integer=True)
    assert caught.value.conflict.whole
    assert [f.sentence for f in caught.value.conflict.facts] == ["2 x + 2 y = 3"]
    assert conflict(known.relaxed()) is None


def test_bounds_and_inequalities_have_words_of_their_own():
    known = Knowledge.of("ab", decimals=1).fact({"a": 1, "b": -1}, low=30).bound("a", high=25)
    found = conflict(known)
    assert str(found) == "a is at most 2.5, b is not negative and a - b >= 3.0"
    assert found.message.endswith(
        "no table fits the sum a - b, the bounds of a and the bounds of b."
    )


def test_what_is_too_large_to_explain_is_still_a_contradiction(monkeypatch):
    monkeypatch.setattr("lustrum.audit.knowledge.conflicts._MOST_CELLS", 1)
    with pytest.raises(ContradictionError, match="contradict"):
        bounds(Knowledge.of("ab").fact({"a": 1, "b": 1}, -3, -3))


def test_without_work_a_conflict_is_not_said_to_be_irreducible():
    known = Knowledge.of("abc").fact({"a": 1, "b": 1}, -3, -3)
    found = conflict(known, work=0)
    assert not found.irreducible
    assert conflict(known).irreducible
