"""Contradictions are explained by a few facts, none of which could be spared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from audit.fibres import QUICK, axis, fitting
from audit.test_bounds import systems
from lustrum.audit import ContradictionError, Knowledge, PublishedTable, bounds, from_tables
from lustrum.audit.knowledge.conflicts import Conflict, ConflictError, conflict

WIDE = 1000  # far enough for a point of any part of what is drawn


def without(known: Knowledge, keep: Conflict, left_out: int | None) -> Knowledge:
    """Only the facts of a conflict, without one of them, in a wide box."""
    made = Knowledge.of([str(n) for n in known.names], low=-WIDE)
    made = made.within(-WIDE, WIDE)
    rows = known.matrix.toarray()
    for place, fact in enumerate(keep.facts):
        if place == left_out:
            continue
        ends = {k: v for k, v in (("low", fact.low), ("high", fact.high)) if v is not None}
        if fact.cell is not None:
            made = made.bound(fact.cell, **ends)
        else:
            weights = {str(n): int(w) for n, w in zip(known.names, rows[fact.row], strict=True)}
            made = made.fact(weights, **ends)
    return made


@QUICK
@given(systems())
def test_a_conflict_is_one_and_has_nothing_to_spare(known):
    found = conflict(known)
    if len(fitting(known)):
        assert found is None
        return
    assert found is not None
    assert found.irreducible or found.whole
    if not found.irreducible:
        return  # a search without bounds that did not end
    kept = without(known, found, None)
    torn = conflict(kept if found.whole else kept.relaxed())
    assert torn is not None
    for place in range(len(found.facts)):
        fewer = without(known, found, place)
        assert conflict(fewer if found.whole else fewer.relaxed()) is None


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
    assert found is not None
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
    assert found is not None
    assert not found.irreducible
    assert conflict(known).irreducible
