from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import InputError, TableAxis
from lustrum.numeric.structure import Relations, Structure, complete_relations
from lustrum.numeric.structure.families import Family
from lustrum.numeric.structure.incidence import (  # both ways to it
    _null_space,  # compiled, beside its plain twin
    _null_space_by_fractions,
)
from lustrum.numeric.structure.ragged import Lists
from lustrum.numeric.structure.rank import chain_rank
from lustrum.numeric.structure.relations import linked_relations
from structure.cases import FEW, QUICK, axis, halves, named, table_lists, with_total

A, S, R = with_total("A", 3), with_total("S", 2), with_total("R", 4)


def plain(name: str, size: int) -> TableAxis:
    return TableAxis.plain(name, [str(i) for i in range(size)])


def null_dimension(structure: Structure) -> int:
    rank = int(np.linalg.matrix_rank(structure.matrix.toarray())) if structure.inner else 0
    return structure.rows - rank


def dimension(relations: Relations) -> int:
    return int(np.linalg.matrix_rank(relations.matrix.toarray())) if relations.count else 0


def assert_valid(structure: Structure, relations: Relations) -> None:
    assert not np.any((relations.matrix @ structure.matrix.astype(np.int64)).toarray())


def assert_complete(structure: Structure, relations: Relations | None = None) -> None:
    found = structure.relations if relations is None else relations
    assert_valid(structure, found)
    assert dimension(found) == null_dimension(structure)


def sums(structure: Structure) -> set[str]:
    """Relations with a total, in words."""
    relations = structure.relations
    words = set()
    for i, total in enumerate(relations.totals.tolist()):
        cells = relations.cells[relations.indptr[i] : relations.indptr[i + 1]]
        if total >= 0:
            parts = sorted(name(structure, int(c)) for c in cells[1:])
            words.add(f"{name(structure, total)} = {' + '.join(parts)}")
    return words


def name(structure: Structure, row: int) -> str:
    table, place = structure.locate(row)
    codes = [a.codes[i] for a, i in zip(structure.tables[table].axes, place, strict=True)]
    return f"{table}:{','.join(codes)}"


@QUICK
@given(table_lists(nested=False, tables=3))
def test_relations_hold_whatever_the_inner_cells_are(structure: Structure) -> None:
    assert_valid(structure, structure.relations)


@QUICK
@given(table_lists(nested=True, tables=1))
def test_relations_of_one_table_of_nested_categories_are_complete(structure: Structure) -> None:
    assert_complete(structure)


@FEW
@given(st.sets(st.sampled_from(["A", "B", "C", "AB", "BC", "CA", "ABC", ""]), min_size=1))
def test_relations_of_margins_of_a_cube_are_complete(margins: set[str]) -> None:
    assert_complete(Structure.margins((3, 2, 3), sorted(margins)))


@FEW
@given(st.sets(st.sampled_from(["A", "B", "C", "AB", "BC", "CA", "ABC", ""]), min_size=1))
def test_relations_of_margins_with_totals_are_complete(margins: set[str]) -> None:
    cube = [with_total("A", 2), halves("B", 2), TableAxis.plain("C", ["1", "2"])]
    assert_complete(Structure.margins(cube, sorted(margins)))


@FEW
@given(st.lists(st.tuples(*[st.sets(st.integers(0, 3))] * 2), min_size=1, max_size=4))
def test_relations_of_tables_at_any_levels_of_one_hierarchy_are_complete(
    levels: list[tuple[set[int], set[int]]],
) -> None:
    tables = []
    for first, second in levels:
        own = [("x", 3, first), ("y", 2, second & {0, 1, 2})]
        tables.append([halves(n, d, shown=sorted(shown)) for n, d, shown in own if shown])
    structure = Structure.of_tables(tables, hidden=[halves("x", 3), halves("y", 2)])
    assert chain_rank(structure) is not None
    assert_complete(structure)


@QUICK
@given(table_lists(nested=False, tables=3))
def test_complete_relations_are_complete_for_groups_of_any_kind(structure: Structure) -> None:
    assert_complete(structure, complete_relations(structure))


@QUICK
@given(table_lists(nested=True, tables=2), st.data())
def test_complete_relations_are_complete_over_fewer_inner_cells(
    structure: Structure, data: st.DataObject
) -> None:
    mask = data.draw(st.lists(st.booleans(), min_size=structure.inner, max_size=structure.inner))
    kept = structure.restrict(np.array(mask, dtype=bool))
    assert_valid(kept, kept.relations)
    assert_complete(kept, complete_relations(kept))


@QUICK
@given(st.booleans().flatmap(lambda nested: table_lists(nested=nested, tables=2)))
def test_no_relation_between_tables_is_said_twice(structure: Structure) -> None:
    links = linked_relations(structure, 0, 1) if len(structure.tables) > 1 else Lists.of([])
    dense = np.zeros((links.count, structure.rows), dtype=int)
    if links.count:
        assert set(links.weights.tolist()) <= {-1, 1}
        dense[links.rows, links.items] = links.weights
    assert not np.any(dense @ structure.matrix.toarray())
    assert len({tuple(row) for row in dense.tolist()}) == len(dense)


@QUICK
@given(st.data())
def test_a_null_space_is_whole_and_spans_all_solutions(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    entries = st.sampled_from([-2, -1, 0, 0, 1, 1, 2, 3, 67, 2**20 + 1])
    matrix = np.array([[data.draw(entries) for _ in range(columns)] for _ in range(rows)])
    rank = exact_rank(matrix)
    for vectors in (_null_space(matrix), _null_space_by_fractions(matrix)):
        assert not np.any(matrix.astype(object) @ vectors.T.astype(object))
        assert vectors.shape == (columns - rank, columns)
        assert exact_rank(vectors) == len(vectors)


def exact_rank(matrix: np.ndarray) -> int:
    """By fractions."""
    rows = [[Fraction(int(v)) for v in row] for row in matrix]
    rank = 0
    for column in range(matrix.shape[1]):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            times = rows[i][column] / rows[rank][column]
            rows[i] = [a - times * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def test_a_total_is_the_sum_of_its_largest_parts() -> None:
    structure = Structure.of_tables([[axis("x", a=[0], b=[1], c=[2], ab=[0, 1], all=[0, 1, 2])]])
    assert sums(structure) == {"0:ab = 0:a + 0:b", "0:all = 0:ab + 0:c"}


def test_a_total_of_more_than_is_shown_is_no_sum() -> None:
    structure = Structure.of_tables([[axis("x", a=[0], b=[1], all=[0, 1, 2])]])
    assert structure.relations.count == 0


def test_two_hierarchies_under_one_total_give_it_two_sums() -> None:
    sets = {"N": [0, 1, 2], "S": [3, 4, 5], "P": [0, 1], "Q": [2, 3], "U": [4, 5]}
    structure = Structure.of_tables([[axis("x", **sets, all=range(6))]])
    assert sums(structure) == {"0:all = 0:N + 0:S", "0:all = 0:P + 0:Q + 0:U"}
    assert_complete(structure)


def test_two_hierarchies_over_shown_codes_are_complete() -> None:
    codes = {f"c{i}": [i] for i in range(6)}
    groups = {"N": [0, 1, 2], "S": [3, 4, 5], "P": [0, 1], "Q": [2, 3], "U": [4, 5]}
    structure = Structure.of_tables([[axis("x", **codes, **groups, all=range(6)), S]])
    assert "0:Q,0 = 0:c2,0 + 0:c3,0" in sums(structure)
    assert_complete(structure)


def test_a_repeated_set_equals_its_first_and_an_empty_one_is_zero() -> None:
    structure = Structure.of_tables([[axis("x", a=[0], again=[0], none=[])]])
    assert sums(structure) == {"0:again = 0:a", "0:none = "}


def test_odd_groups_obey_relations_that_only_elimination_finds() -> None:
    sets = {"ab": [0, 1], "bc": [1, 2], "ca": [0, 2], "a": [0], "all": [0, 1, 2]}
    structure = Structure.of_tables([[axis("x", **sets), S]])
    assert dimension(structure.relations) < null_dimension(structure)
    full = complete_relations(structure)
    assert_complete(structure, full)
    with pytest.raises(InputError, match="more than once"):
        _ = full.additive


def test_groups_without_a_common_total_are_linked_by_elimination() -> None:
    structure = Structure.of_tables([[axis("x", ab=[0, 1], cd=[2, 3], bc=[1, 2], da=[0, 3])]])
    assert structure.relations.count == 0
    assert complete_relations(structure).matrix.toarray().tolist() in (
        [[1, 1, -1, -1]],
        [[-1, -1, 1, 1]],
    )


def test_fractions_take_over_where_residues_do_not_tell() -> None:
    rng = np.random.default_rng(4)
    with pytest.raises(InputError, match="too large to find"):
        _null_space(rng.integers(0, 2, (201, 203)))
    with pytest.raises(InputError, match="beyond 64 bits"):
        _null_space_by_fractions(np.eye(45, 46, 1, dtype=int) - 3 * np.eye(45, 46, dtype=int))
    wide = rng.integers(0, 2, (24, 26))  # minors too large for small fractions
    assert not np.any(wide @ _null_space(wide).T)


@pytest.mark.parametrize("totals", [True, False])
def test_three_linked_tables_agree_on_every_shared_margin(totals: bool) -> None:
    make = with_total if totals else plain
    a, s, r = make("A", 3), make("S", 2), make("R", 4)
    for tables in ([[a, s]], [[a, s], [a, r]], [[a, s], [a, r], [s, r]]):
        assert_complete(Structure.of_tables(tables))


def test_a_margin_that_neither_table_shows_links_them_through_an_unseen_cell() -> None:
    structure = Structure.of_tables(
        [[plain("A", 3), plain("S", 2)], [plain("A", 3), plain("R", 4)]]
    )
    relations = structure.relations
    assert relations.totals.tolist() == [-1, -1, -1]
    additive = relations.additive
    assert additive.published == structure.rows
    assert additive.cells == structure.rows + 3
    assert sorted(additive.totals.tolist()) == sorted([18, 19, 20] * 2)
    assert sorted(np.diff(additive.indptr).tolist()) == [2, 2, 2, 4, 4, 4]


def test_a_margin_that_one_table_shows_is_a_total_of_the_other() -> None:
    structure = Structure.of_tables([[plain("A", 2), plain("S", 2)], [plain("A", 2)]])
    assert sums(structure) == {"1:0 = 0:0,0 + 0:0,1", "1:1 = 0:1,0 + 0:1,1"}


def test_equal_cells_of_two_tables_are_equal() -> None:
    structure = Structure.of_tables([[A, S], [R, A]])
    assert {"1:0-1-2-3,1 = 0:1,0-1", "1:0-1-2-3,0-1-2 = 0:0-1-2,0-1"} <= sums(structure)


def test_a_remainder_is_linked_by_a_difference() -> None:
    one = axis("x", a=[0], all=[0, 1, 2])
    two = axis("x", b=[1], c=[2])
    structure = Structure.of_tables([[one], [two]])
    assert sums(structure) == {"0:all = 0:a + 1:b + 1:c"}
    assert_complete(structure)


def test_a_filtered_table_is_linked_where_the_filter_is_a_category() -> None:
    from structure.cases import layout_of

    only = axis("A", n=[0])
    structure = Structure.of_tables(
        [layout_of(plain("S", 2), where=[only]), [axis("A", n=[0], s=[1]), plain("S", 2)]]
    )
    assert sums(structure) == {"1:n,0 = 0:0", "1:n,1 = 0:1"}
    assert_complete(structure)


def test_additive_form_says_the_same_as_the_matrix() -> None:
    cube = [with_total("A", 3), halves("B", 2), plain("C", 2)]
    structure = Structure.margins(cube, ["AB", "BC", "AC"])
    relations, additive = structure.relations, structure.relations.additive
    inner = np.random.default_rng(1).integers(0, 9, structure.inner)
    cells = np.full(additive.cells, -1)
    cells[: structure.rows] = structure.matrix @ inner
    parts = itertools.pairwise(additive.indptr.tolist())
    for total, (begin, end) in zip(additive.totals.tolist(), parts, strict=True):
        if cells[total] < 0:
            cells[total] = cells[additive.parts[begin:end]].sum()
        assert cells[total] == cells[additive.parts[begin:end]].sum()
    assert additive.totals.size == relations.count + np.count_nonzero(relations.totals < 0)
    assert repr(additive).startswith("AdditiveRelations(")


def test_totals_stand_first_with_minus_one() -> None:
    relations = Structure.of_tables([[A, S], [R, A]]).relations
    for i, total in enumerate(relations.totals.tolist()):
        begin = relations.indptr[i]
        if total >= 0:
            assert relations.cells[begin] == total
            assert relations.coefficients[begin] == -1
            assert np.all(relations.coefficients[begin + 1 : relations.indptr[i + 1]] == 1)


def test_a_hierarchy_of_three_levels_on_two_axes_is_complete() -> None:
    structure = Structure.of_tables([[halves("x", 3), halves("y", 3)]])
    assert structure.rank == 64
    assert_complete(structure)


def test_empty_cells_of_a_restricted_structure_are_zero() -> None:
    structure = Structure.of_tables([[named("x", [[0], [1], [0, 1]])]]).restrict([1])
    assert "0:0 = " in sums(structure)


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


def test_a_relation_without_a_total_gets_a_cell_that_nobody_shows() -> None:
    read = relations(*ROWS).additive
    assert (read.published, read.cells) == (6, 7)
    assert read.parts.size == read.indptr[-1]
    assert read.totals.tolist() == [2, 3, 5, 6, 0, 6]
    parts = [read.parts[a:b].tolist() for a, b in zip(read.indptr, read.indptr[1:], strict=False)]
    assert parts == [[0, 1], [0, 4], [1, 0], [0, 1], [1, 2], [2, 3]]


ATOMS = 5
SETS = st.lists(st.sets(st.integers(0, ATOMS - 1)).map(sorted), min_size=1, max_size=7)


def indicator(family: Family) -> np.ndarray:
    array = np.zeros((family.lists.count, family.atoms), dtype=int)
    array[family.lists.rows, family.lists.items] = 1
    return array


@QUICK
@given(SETS)
def test_forests_hold_every_set_and_no_two_that_cross(sets: list[list[int]]) -> None:
    family = Family(Lists.of(sets), ATOMS)
    for forest in family.forests:
        held = [set(sets[c]) for c in forest.sets]
        assert all(a <= b or b <= a or not a & b for a in held for b in held)
    everywhere = {c for forest in family.forests for c in forest.sets.tolist()}
    assert everywhere == set(family.distinct.tolist())
    crossing = any(
        set(a) & set(b) and not set(a) <= set(b) and not set(b) <= set(a)
        for a in sets
        for b in sets
    )
    assert family.nested == (not crossing)


@QUICK
@given(SETS)
def test_every_sum_is_true(sets: list[list[int]]) -> None:
    family = Family(Lists.of(sets), ATOMS)
    held = indicator(family)
    for total, parts in family.sums:
        assert np.array_equal(held[total], held[list(parts)].sum(axis=0))


@QUICK
@given(SETS, st.sets(st.integers(0, ATOMS - 1)))
def test_what_is_expressed_adds_up_to_the_target(sets: list[list[int]], target: set[int]) -> None:
    family = Family(Lists.of(sets), ATOMS)
    mask = np.isin(np.arange(ATOMS), list(target))
    found = family.express(mask)
    if found is not None:
        assert np.array_equal(found[1] @ indicator(family)[found[0]], mask.astype(int))
    elif family.nested and target:
        held = indicator(family)
        assert np.linalg.matrix_rank(np.vstack([held, mask])) > np.linalg.matrix_rank(held)
