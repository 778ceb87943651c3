"""Relations written out: which cell is the total, and how suppression software reads them."""

from __future__ import annotations

import numpy as np
import pytest

from lustrum.model import InputError
from lustrum.numeric.structure import Relations, Structure
from lustrum.numeric.structure.build import published_values
from lustrum.numeric.structure.ragged import Lists
from structure.cases import axis

ROWS = [
    {2: -1, 0: 1, 1: 1},
    {3: 1, 0: -1, 4: -1},  # the total is the only cell with 1
    {1: 1, 5: -1, 0: 1},  # the total in the middle
    {0: 1, 1: 1, 2: -1, 3: -1},  # no single cell is a total
    {1: 1, 2: 1, 0: -1},  # the total is the very first cell
]


def relations(*rows: dict[int, int]) -> Relations:
    indptr = np.cumsum([0, *map(len, rows)])
    cells = np.array([c for row in rows for c in row], dtype=np.int64)
    weights = np.array([w for row in rows for w in row.values()], dtype=np.int64)
    return Relations.of(Lists(indptr, cells, weights), 6)


def test_the_total_stands_first_and_counts_minus_one() -> None:
    made = relations(*ROWS)
    assert made.totals.tolist() == [2, 3, 5, -1, 0]
    cells = [made.cells[a:b].tolist() for a, b in zip(made.indptr, made.indptr[1:], strict=False)]
    assert cells == [[2, 0, 1], [3, 0, 4], [5, 1, 0], [0, 1, 2, 3], [0, 1, 2]]
    assert made.coefficients.tolist() == [-1, 1, 1] * 3 + [1, 1, -1, -1] + [-1, 1, 1]
    dense = made.matrix.toarray()
    for row, own in zip(dense, ROWS, strict=True):
        plain = np.zeros(6, dtype=np.int64)
        plain[list(own)] = list(own.values())
        assert row.tolist() in (plain.tolist(), (-plain).tolist())
    assert made.matrix.has_sorted_indices
    twice = relations({0: 1, 1: 1, 2: -2})
    assert twice.totals.tolist() == [-1]
    assert twice.coefficients.tolist() == [1, 1, -2]
    plain_sum = Relations.of(Lists(np.array([0, 2]), np.array([4, 1])), 6)
    assert (plain_sum.totals.tolist(), plain_sum.coefficients.tolist()) == ([-1], [1, 1])


def test_a_structure_keeps_only_inner_cells_that_it_has() -> None:
    structure = Structure.of_tables([[axis("x", a=[0], b=[1], all=[0, 1])]])
    assert structure.restrict([1]).inner == 1
    for wrong in ([2], [-1]):
        with pytest.raises(InputError):
            structure.restrict(wrong)
    assert "2 tables" in repr(Structure.of_tables([[axis("x", a=[0], b=[1])]] * 2))
    assert "1 table" in repr(structure)


def test_a_relation_without_a_total_gets_a_cell_that_nobody_shows() -> None:
    read = relations(*ROWS).additive
    assert (read.published, read.cells) == (6, 7)
    assert read.parts.size == read.indptr[-1]
    assert read.totals.tolist() == [2, 3, 5, 6, 0, 6]
    parts = [read.parts[a:b].tolist() for a, b in zip(read.indptr, read.indptr[1:], strict=False)]
    assert parts == [[0, 1], [0, 4], [1, 0], [0, 1], [1, 2], [2, 3]]


def test_cells_that_nobody_can_be_in_are_0_once() -> None:
    nobody = Structure.of_tables([[axis("x", none=[], a=[0])]])
    assert nobody.relations.matrix.toarray().tolist() in ([[1, 0]], [[-1, 0]])
    alone = Structure.of_tables([[axis("x", none=[])]])
    assert alone.relations.count == 1
    assert Structure.of_tables([[axis("x"), axis("y", a=[0], b=[1], all=[0, 1])]]).rows == 0
    assert (
        Structure.of_tables([[axis("x"), axis("y", a=[0], b=[1], all=[0, 1])]]).relations.count == 0
    )


def test_a_matrix_has_a_column_for_every_inner_cell() -> None:
    # The last code is in no category of the first table.
    first, both = axis("x", a=[0]), axis("x", a=[0], b=[1])
    narrow = Structure.of_tables([[first]], hidden=[both])
    assert narrow.matrix.toarray().tolist() == [[1, 0]]
    kept = Structure.of_tables([[first], [both]]).restrict([0, 1])
    assert kept.matrix.toarray().tolist() == [[1, 0], [1, 0], [0, 1]]
    for structure in (narrow, kept):
        shown = published_values(structure, np.array([3, 4]))
        assert [s.tolist() for s in shown] == [[3], [3, 4]][: len(shown)]


def test_inner_cells_are_kept_out_of_those_that_were_kept() -> None:
    structure = Structure.margins((2, 3), ["A", "B"])
    assert structure.restrict([1, 3, 5]).restrict([2, 0]).columns.tolist() == [1, 5]


def test_values_are_added_in_a_type_that_holds_their_sums() -> None:
    structure = Structure.of_tables([[axis("x", a=[0], b=[1], all=[0, 1])]])
    for kind in (np.int8, np.uint8, np.uint32, np.int64):
        total = published_values(structure, np.array([100, 120], dtype=kind))[0]
        assert (total.tolist(), total.dtype) == ([100, 120, 220], np.int64)
    (halves,) = published_values(structure, np.array([0.5, 0.25], dtype=np.float32))
    assert halves.tolist() == [0.5, 0.25, 0.75]
    (keys,) = published_values(structure, np.array([2**63, 2], dtype=np.uint64))
    assert keys.tolist() == [2**63, 2, 2**63 + 2]


def test_a_cube_is_given_by_axes_or_sizes() -> None:
    for wrong in (["x", "y"], [2, axis("x", a=[0])], [2] * 27):
        with pytest.raises(InputError, match="A cube is given by"):
            Structure.margins(wrong, ["A"])
