from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lustrum.numeric.structure import ragged
from lustrum.numeric.structure.ragged import Lists, outer
from structure.cases import QUICK

ROWS = st.lists(st.lists(st.integers(0, 5), max_size=3), max_size=4)


def plain(lists: Lists) -> list[list[int]]:
    return [lists.row(i).tolist() for i in range(lists.count)]


@QUICK
@given(ROWS, ROWS, st.sampled_from([1, 4, 1 << 18]))
def test_the_outer_product_adds_every_pair(
    left: list[list[int]], right: list[list[int]], chunk: int
) -> None:
    with mock.patch.object(ragged, "_CHUNK", chunk):
        crossed = outer(Lists.of(left), Lists.of(right).scaled(10))
    assert plain(crossed) == [[a + 10 * b for a in x for b in y] for x in left for y in right]


@QUICK
@given(ROWS, ROWS)
def test_weights_multiply(left: list[list[int]], right: list[list[int]]) -> None:
    crossed = outer(Lists.of(left, [[i + 1 for i in x] for x in left]), Lists.of(right))
    assert crossed.weights is not None
    assert crossed.weights.tolist() == [a + 1 for x in left for y in right for a in x for _ in y]


@QUICK
@given(ROWS)
def test_transposing_tells_which_lists_hold_an_item(rows: list[list[int]]) -> None:
    found = Lists.of(rows).transposed(6)
    assert plain(found) == [[i for i, r in enumerate(rows) for x in r if x == k] for k in range(6)]


@QUICK
@given(ROWS, st.data())
def test_taking_and_joining_keep_the_lists(rows: list[list[int]], data: st.DataObject) -> None:
    places = st.lists(st.integers(0, max(0, len(rows) - 1)), max_size=5 if rows else 0)
    picks = data.draw(places)
    taken = Lists.of(rows).take(np.array(picks, dtype=np.int64))
    assert plain(taken) == [rows[i] for i in picks]
    assert plain(Lists.of(rows).beside(Lists.of(rows))) == [r + r for r in rows]


def test_single_lists_are_known_as_such() -> None:
    assert Lists.singles(3).is_singles(3)
    assert not Lists.singles(3).is_singles(4)
    assert not Lists.of([[1], [0]]).is_singles(2)
    assert not Lists.of([[0, 1], []]).is_singles(2)
