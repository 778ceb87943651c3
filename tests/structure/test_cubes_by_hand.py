"""Fixed small tables, each held against all pairs of cells, all sums and plain linear algebra."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from lustrum.model import (
    Axis,
    Category,
    Dataset,
    Filter,
    InputError,
    Table,
    TableAxis,
    TableQuery,
    Variable,
)
from lustrum.numeric.structure import Atoms, Structure, TableLayout, complete_relations
from lustrum.numeric.structure import complete as complete_module
from lustrum.numeric.structure import ragged as ragged_module
from lustrum.numeric.structure import rank as rank_module
from lustrum.numeric.structure.families import Family
from lustrum.numeric.structure.linked import linked_relations
from lustrum.numeric.structure.ragged import Lists, outer
from lustrum.numeric.structure.rank import chain_rank, distinct_rows, elimination_rank, matrix_rank
from structure.cases import axis, brute_matrix, halves, layout_of, named, with_total

CODES = {"A": 3, "B": 4, "C": 2}


def drawn(seed: int, *, odd: bool, tables: int) -> Structure:
    """Tables over some of three variables, each with any sets of codes, or with sets that nest."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(tables):
        axes = []
        for name in rng.permutation(sorted(CODES))[: rng.integers(0, 4)].tolist():
            size = CODES[name]
            if odd:
                sets = [np.flatnonzero(rng.random(size) < 0.5).tolist() for _ in range(4)]
            else:
                cut = int(rng.integers(1, size))
                sets = [list(range(cut)), list(range(cut, size)), list(range(size))]
                sets += [[i] for i in range(size)]
                sets = [sets[i] for i in rng.permutation(len(sets))[: rng.integers(1, 6)]]
            axes.append(named(name, sets))
        made.append(axes)
    return Structure.of_tables(made)


ALL = [(seed, odd, tables) for tables in (1, 2, 3) for odd in (False, True) for seed in range(5)]


@pytest.mark.parametrize(("seed", "odd", "tables"), ALL)
def test_every_way_to_relations_and_ranks_agrees_with_linear_algebra(seed, odd, tables):
    structure = drawn(seed, odd=odd, tables=tables)
    truth = brute_matrix(structure)
    assert structure.matrix.toarray().tolist() == truth.tolist()
    rank = int(np.linalg.matrix_rank(truth)) if truth.size else 0
    assert structure.rank == elimination_rank(structure) == rank
    assert chain_rank(structure) in (None, rank)
    for relations, complete in (
        (structure.relations, False),
        (complete_relations(structure), True),
    ):
        dense = relations.matrix.toarray()
        assert not np.any(dense @ truth)
        found = int(np.linalg.matrix_rank(dense)) if dense.size else 0
        if complete or (not odd and tables == 1):
            assert found == structure.rows - rank


def test_hierarchies_have_a_rank_in_closed_form():
    tables = [
        [halves("x", 2, shown=[0]), halves("y", 2, shown=[1, 2])],
        [halves("x", 2, shown=[1]), halves("y", 2, shown=[0])],
        [with_total("z", 3)],
    ]
    structure = Structure.of_tables(tables)
    rank = int(np.linalg.matrix_rank(brute_matrix(structure)))
    assert chain_rank(structure) == elimination_rank(structure) == rank == 4 * 2 + 2 * 2 + 2
    assert chain_rank(Structure.of_tables([[]])) == 1
    # One category that is everybody adds no level.
    everybody = [named("x", [[0, 1]]), with_total("y", 2)]
    assert chain_rank(Structure.of_tables([everybody, [with_total("y", 2)]])) == 2
    # Kept cells have no closed form.
    assert chain_rank(structure.restrict([0, 5])) is None
    crossing = [[named("x", [[0, 1], [2]])], [named("x", [[0], [1, 2]])]]
    assert chain_rank(Structure.of_tables(crossing)) is None


def test_a_closed_form_is_left_where_it_has_too_many_levels(monkeypatch):
    structure = Structure.margins((2, 2), ["A", "B"])
    # Two boxes of two levels each.
    monkeypatch.setattr(rank_module, "_MOST_LEVELS", 4)
    assert chain_rank(structure) == 3
    monkeypatch.setattr(rank_module, "_MOST_LEVELS", 3)
    assert chain_rank(structure) is None
    assert structure.rank == 3


def test_sizes_of_an_elimination_are_refused_from_a_limit_on(monkeypatch):
    rank_module.check_size((6_000, 900))  # 4.86e9 steps
    for shape in ((6_000, 930), (5_000_000, 9), (9, 5_000_000)):
        with pytest.raises(InputError, match="would take too long"):
            rank_module.check_size(shape)
    monkeypatch.setattr(rank_module, "MOST_ENTRIES", 12)
    monkeypatch.setattr(rank_module, "MOST_WORK", 36)
    rank_module.check_size((3, 4))
    monkeypatch.setattr(rank_module, "MOST_ENTRIES", 11)
    with pytest.raises(InputError):
        rank_module.check_size((3, 4))
    monkeypatch.setattr(rank_module, "MOST_ENTRIES", 12)
    monkeypatch.setattr(rank_module, "MOST_WORK", 35)
    with pytest.raises(InputError):
        rank_module.check_size((3, 4))
    monkeypatch.setattr(rank_module, "MOST_WORK", 36)
    structure = Structure.of_tables([[named("x", [[0, 1], [1, 2]])], [named("x", [[0, 2]])]])
    monkeypatch.setattr(rank_module, "_MOST_NONZEROS", 6)
    assert elimination_rank(structure) == 3
    monkeypatch.setattr(rank_module, "_MOST_NONZEROS", 5)
    with pytest.raises(InputError, match="would take too long"):
        elimination_rank(structure)
    # Kept cells are counted when they are cut out, not before.
    assert elimination_rank(structure.restrict([0, 1])) == 2


MATRICES = [
    [[1, 0, 0], [0, 2, 0], [0, 0, 0]],
    [[1, 1, 0], [1, 1, 0], [0, 1, 1], [1, 0, -1]],
    [[1, 1], [1, -1], [2, 0]],
    [[0, 0], [0, 0]],
    [[2, 4, 6], [1, 2, 3]],
    [[1, 2, 0, 0], [0, 1, 2, 0], [0, 0, 1, 2], [2, 0, 0, 1]],
    [[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]],
    [[3]],
    [[1, 0, 1], [1, 0, 1], [0, 1, 0]],
]


@pytest.mark.parametrize("rows", MATRICES)
def test_the_rank_of_small_matrices(rows):
    matrix = np.array(rows)
    assert matrix_rank(sparse.csr_array(matrix)) == np.linalg.matrix_rank(matrix)
    assert matrix_rank(sparse.csr_array(matrix.T)) == np.linalg.matrix_rank(matrix)


def test_equal_and_empty_rows_are_left_out_once():
    stored = sparse.csr_array(([1, 0, 2, 1], [1, 0, 0, 1], [0, 1, 2, 3, 4]), shape=(4, 2))
    assert distinct_rows(stored).toarray().tolist() == [[0, 1], [2, 0]]
    other = sparse.csr_array(np.array([[1, 2], [2, 1], [1, 2], [0, 0]]))
    assert distinct_rows(other).toarray().tolist() == [[1, 2], [2, 1]]


# Complete relations


def held_together(vectors: np.ndarray, matrix: np.ndarray) -> None:
    """Whole vectors span exactly what the matrix sends to 0."""
    assert not np.any(matrix @ vectors.T)
    rank = int(np.linalg.matrix_rank(matrix)) if matrix.size else 0
    assert vectors.shape == (matrix.shape[1] - rank, matrix.shape[1])
    assert (int(np.linalg.matrix_rank(vectors)) if vectors.size else 0) == vectors.shape[0]


@pytest.mark.parametrize("rows", [*MATRICES, [[2, 3, 5], [7, 1, 1]], [[63, 1]], [[1, 63]]])
def test_a_null_space_is_whole_and_spans_all_solutions(rows):
    matrix = np.array(rows, dtype=np.int64)
    held_together(complete_module._null_space(matrix), matrix)
    held_together(complete_module._null_space_by_fractions(matrix), matrix)


def test_large_coefficients_are_found_by_fractions(monkeypatch):
    wide_rows = [[67, 1, 0], [0, 1, 71]], [[2**21, 1]], [[1, 2**21]], [[128, 1]], [[67, 1, 67]]
    # Modulo the first prime the second coefficient is 1, which the exact check notices.
    for wide in (*wide_rows, [[1, 2**31, 1]]):
        matrix = np.array(wide, dtype=np.int64)
        held_together(complete_module._null_space(matrix), matrix)
    asked = []
    monkeypatch.setattr(
        complete_module, "_null_space_by_fractions", lambda m: asked.append(m.tolist())
    )
    # Denominators of 1 and 2 side by side, and rows that have to be cleared upwards, are no reason.
    for small in ([[64, 1]], [[1, 2**20]], [[2, 1, 2]], [[1, 1, 1], [0, 1, 2]]):
        held_together(complete_module._null_space(np.array(small)), np.array(small))
    assert not asked
    for large in ([[65, 1]], [[1, 2**20 + 1]]):
        complete_module._null_space(np.array(large))
    assert len(asked) == 2


def test_fractions_stop_at_a_size_and_at_64_bits(monkeypatch):
    matrix = np.array([[1, 1, 0], [0, 1, 1]], dtype=np.int64)
    monkeypatch.setattr(complete_module, "_MOST_FRACTIONS", 6)
    held_together(complete_module._null_space_by_fractions(matrix), matrix)
    monkeypatch.setattr(complete_module, "_MOST_FRACTIONS", 5)
    with pytest.raises(InputError, match="too large to find"):
        complete_module._null_space_by_fractions(matrix)
    monkeypatch.setattr(complete_module, "_MOST_FRACTIONS", 40)
    just = np.array([[1, 2**62 - 1]], dtype=np.int64)
    assert complete_module._null_space_by_fractions(just).tolist() == [[1 - 2**62, 1]]
    with pytest.raises(InputError, match="beyond 64 bits"):
        complete_module._null_space_by_fractions(np.array([[1, 2**62]], dtype=np.int64))


def test_three_overlapping_pairs_add_up_to_twice_the_total():
    sets = named("x", [[0, 1], [1, 2], [0, 2], [0, 1, 2]])
    y = with_total("y", 2)
    for tables in ([[sets, y]], [[sets]], [[sets], [named("x", [[0, 1, 2]])]]):
        structure = Structure.of_tables(tables)
        dense = complete_relations(structure).matrix.toarray()
        truth = brute_matrix(structure)
        assert not np.any(dense @ truth)
        rank = np.linalg.matrix_rank(truth)
        assert np.linalg.matrix_rank(dense) == structure.rows - rank
        # The relations of the structure come first; without further axes only what they miss is added.
        known = structure.relations.matrix.toarray()
        if len(tables[0]) == 1:
            assert dense[: len(known)].tolist() == known.tolist()
            assert len(dense) == len(known) + 1


def test_cells_that_are_kept_obey_more_relations():
    kept = Structure.margins((3, 3), ["A", "B"]).restrict([0, 4, 8])
    dense = complete_relations(kept).matrix.toarray()
    # Only the diagonal is left: every category of A is one of B.
    assert np.linalg.matrix_rank(dense) == 3
    assert not np.any(dense @ kept.matrix.toarray())
    # Of three codes only the first is kept: it is everybody, which no sum and no empty cell says.
    first = Structure.of_tables([[named("x", [[0], [0, 1, 2]])]]).restrict([0])
    assert complete_relations(first).matrix.toarray().tolist() in ([[1, -1]], [[-1, 1]])


def test_overlapping_groups_of_several_tables_are_completed_together():
    tables = [[named("x", [s])] for s in ([0, 1], [1, 2], [0, 2], [0, 1, 2])]
    structure = Structure.of_tables(tables)
    assert all(family.nested for own in structure.families for family in own)
    dense = complete_relations(structure).matrix.toarray()
    assert dense.tolist() in ([[1, 1, 1, -2]], [[-1, -1, -1, 2]])


def test_categories_that_nest_need_no_elimination(monkeypatch):
    monkeypatch.setattr(complete_module, "_missing", lambda *args: pytest.fail("eliminated"))
    one = Structure.of_tables([[with_total("x", 3), with_total("y", 2)]])
    several = Structure.margins((2, 3), ["A", "B", "AB"])
    for structure in (one, several):
        assert complete_relations(structure) is structure.relations


def test_one_table_is_completed_axis_by_axis_and_several_up_to_a_size(monkeypatch):
    odd = named("x", [[0, 1], [1, 2], [0, 2], [0, 1, 2]])
    wide = with_total("y", 40)
    # The axis has 3 atoms in 4 sets; the table has 120 inner cells in 164.
    monkeypatch.setattr(rank_module, "MOST_ENTRIES", 12)
    structure = Structure.of_tables([[odd, wide]])
    dense = complete_relations(structure).matrix.toarray()
    assert not np.any(dense @ structure.matrix.toarray())
    assert np.linalg.matrix_rank(dense) == 4 * 41 - 3 * 40
    monkeypatch.setattr(rank_module, "MOST_ENTRIES", 11)
    with pytest.raises(InputError, match="would take too long"):
        complete_relations(structure)
    # Three equal tables of one cell: one distinct column, but two relations and two vectors over 3 cells.
    thrice = Structure.of_tables([[named("x", [[0]])]] * 3).restrict([0])
    monkeypatch.setattr(rank_module, "MOST_ENTRIES", 3)
    with pytest.raises(InputError, match="would take too long"):
        complete_relations(thrice)
    monkeypatch.setattr(rank_module, "MOST_ENTRIES", 99)
    assert np.linalg.matrix_rank(complete_relations(thrice).matrix.toarray()) == 2


# Lists of lists


def plain(lists: Lists) -> list[list[int]]:
    return [lists.row(i).tolist() for i in range(lists.count)]


def test_lists_written_out():
    rows, weights = [[4, 2], [], [7]], [[1, -1], [], [3]]
    lists = Lists.of(rows, weights)
    assert (lists.count, lists.lengths.tolist()) == (3, [2, 0, 1])
    assert lists.rows.tolist() == [0, 0, 2]
    assert plain(lists.scaled(10)) == [[40, 20], [], [70]]
    assert lists.scaled(10).weights.tolist() == [1, -1, 3]
    taken = lists.take(np.array([2, 0, 0]))
    assert (plain(taken), taken.weights.tolist()) == ([[7], [4, 2], [4, 2]], [3, 1, -1, 1, -1])
    assert Lists.of(rows).take(np.array([0])).weights is None
    assert plain(Lists.of([[1, 0], [1]]).transposed(3)) == [[0], [0, 1], []]
    joined = lists.beside(Lists.of([[9], [8], []]))
    assert plain(joined) == [[4, 2, 9], [8], [7]]
    assert joined.weights.tolist() == [1, -1, 1, 1, 3]
    turned = Lists.of([[9], [8], []]).beside(lists)
    assert (plain(turned), turned.weights.tolist()) == ([[9, 4, 2], [8], [7]], [1, 1, -1, 1, 3])
    assert plain(Lists.everything(3)) == [[0, 1, 2]]
    assert plain(Lists.singles(2)) == [[0], [1]]
    assert Lists.of([]).count == 0


def test_single_lists_need_their_order_lengths_and_no_weights():
    assert Lists.singles(3).is_singles(3)
    assert Lists.singles(0).is_singles(0)
    for other in (
        Lists.of([[0], [1]]).take(np.array([1, 0])),
        Lists.of([[0], [1], []]),
        Lists.of([[0, 1], []]),
        Lists.of([[0], [1]], [[1], [2]]),
        Lists.of([[0], [1], [2]]),
        Lists.of([[0], [0]]),
    ):
        assert not other.is_singles(2)


@pytest.mark.parametrize("chunk", [1, 3, 1 << 18])
def test_outer_products_add_items_and_multiply_weights(monkeypatch, chunk):
    monkeypatch.setattr(ragged_module, "_CHUNK", chunk)
    left, right = [[0, 1], [], [2]], [[10, 20, 30], [40], []]
    wanted = [[a + b for a in x for b in y] for x in left for y in right]
    crossed = outer(Lists.of(left), Lists.of(right))
    assert plain(crossed) == wanted
    assert crossed.weights is None
    ones, twos = [[2, 3], [], [5]], [[1, 7, 1], [-1], []]
    flat = [a * b for x in ones for y in twos for a in x for b in y]
    both = outer(Lists.of(left, ones), Lists.of(right, twos))
    assert (plain(both), both.weights.tolist()) == (wanted, flat)
    first = outer(Lists.of(left, ones), Lists.of(right))
    assert first.weights.tolist() == [a for x in ones for y in right for a in x for _ in y]
    second = outer(Lists.of(left), Lists.of(right, twos))
    assert second.weights.tolist() == [b for x in left for y in twos for _ in x for b in y]
    room = np.full(crossed.items.size, -1, dtype=np.int32)
    assert outer(Lists.of(left), Lists.of(right), room).items is room
    assert room.tolist() == crossed.items.tolist()
    empty = outer(Lists.of([[], []], [[], []]), Lists.of(right))
    assert (plain(empty), empty.weights.tolist()) == ([[]] * 6, [])


# Atoms, cubes and layouts


def test_atoms_are_what_no_set_tells_apart():
    atoms = Atoms.of_sets(6, [(1, 2), (2, 3), (5,), (1,), ()])
    assert atoms.of_code.tolist() == [-1, 0, 1, 2, -1, 3]
    assert [atoms.mask(c).astype(int).tolist() for c in range(5)] == [
        [1, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 0, 1],
        [1, 0, 0, 0],
        [0, 0, 0, 0],
    ]
    values = np.array([[1, 2, 4, 8], [10, 20, 40, 80]])
    assert atoms.roll_up(values, 1).tolist() == [[3, 6, 8, 1, 0], [30, 60, 80, 10, 0]]
    assert atoms.roll_up(values.T, 0).T.tolist() == [[3, 6, 8, 1, 0], [30, 60, 80, 10, 0]]
    # A set of one code after a set that holds it splits it off.
    assert Atoms.of_sets(3, [(0, 1, 2), (1,)]).of_code.tolist() == [0, 1, 0]
    assert Atoms.of_sets(3, [(1,), (0, 1, 2)]).of_code.tolist() == [0, 1, 0]
    nobody = Atoms.of_sets(2, [(), ()])
    assert nobody.count == 0
    assert nobody.roll_up(np.zeros((0, 3)), 0).tolist() == [[0.0] * 3] * 2
    # Whole numbers stay whole and of their own type.
    narrow = Atoms.of_sets(2, [(0,), (0, 1), (1,)]).roll_up(np.array([100, 100], np.int8), 0)
    assert (narrow.dtype, narrow[[0, 2]].tolist()) == (np.int8, [100, 100])


def test_atoms_of_categories_and_of_nothing():
    found = Atoms.of(3, [Category("a", "", (0, 1)), Category("all", "", (0, 1, 2))])
    assert found.of_code.tolist() == [0, 0, 1]
    assert [found.mask(c).tolist() for c in range(2)] == [[True, False], [True, True]]
    assert Atoms.of_sets(0, [()]).count == 0


def test_the_layout_of_a_question_holds_what_passes_its_filters():
    sex = Variable("sex", "Sex", ("m", "f"), ("Male", "Female"))
    age = Variable("age", "Age", ("0", "1", "2"), ("young", "adult", "old"))
    dataset = Dataset("people", "People", (sex, age))
    query = TableQuery("people", (Axis("sex"), Axis("age")), (Filter("age", ("2", "1")),))
    layout = TableLayout.of_query(query, dataset)
    assert [a.name for a in layout.axes] == ["sex", "age"]
    assert [a.label for a in layout.axes] == ["Sex", "Age"]
    members = {c.code: c.members for c in layout.axes[1].categories}
    assert {k: v for k, v in members.items() if v} == {"1": (1,), "2": (2,)}
    assert {c.members for c in layout.axes[0].categories} == {(0,), (1,)}
    (only,) = layout.filters
    assert (only.name, only.categories[0].members) == ("age", (1, 2))
    assert only.categories[0].label == "old or adult"
    table = Table.from_counts([[1, 2], [3, 4]])
    assert TableLayout.of(table).shape == (2, 2)


def cube_of(*tables, **rest):
    return {
        v.name: (v.atom_of.tolist(), v.count, v.label)
        for v in Structure.of_tables(tables, **rest).variables
    }


def test_a_variable_is_cut_as_fine_as_the_tables_need():
    young = axis("age", young=[0, 1])
    old = axis("age", old=[2, 3])
    assert cube_of([young]) == {"age": ([0, 0], 1, "age")}
    assert cube_of([young], [old]) == {"age": ([0, 0, 1, 1], 2, "age")}
    # A table without the variable counts everybody, up to the last code that is named.
    assert cube_of([old], []) == {"age": ([0, 0, 1, 1], 2, "age")}
    known = Variable("age", "Age in years", tuple("abcdef"), tuple("abcdef"))
    assert cube_of([old], variables=[known]) == {"age": ([-1, -1, 0, 0, -1, -1], 1, "age")}
    assert cube_of([old], [], variables=[known])["age"][0] == [0, 0, 1, 1, 0, 0]
    exact = Variable("age", "", tuple("abcd"), tuple("abcd"))
    assert cube_of([old], variables=[exact])["age"][1] == 1
    short = Variable("age", "", tuple("abc"), tuple("abc"))
    with pytest.raises(InputError, match="has 3 codes, but a category holds position 3"):
        cube_of([old], variables=[short])
    with pytest.raises(InputError, match="'young' does not hold the same"):
        cube_of([young], [axis("age", young=[0])])
    # With a described variable, the same word may stand for other codes.
    assert cube_of([young], [axis("age", young=[0])], variables=[known])["age"][1] == 2
    assert cube_of([axis("age", nobody=[])], []) == {"age": ([0], 1, "age")}
    assert cube_of([axis("age", nobody=[])]) == {"age": ([-1], 0, "age")}
    assert "age, 1 atoms" in repr(Structure.of_tables([[young]]).variables[0])


def test_filters_narrow_a_table_and_share_its_variables():
    sex, age = with_total("sex", 2), axis("age", young=[0])
    structure = Structure.of_tables([layout_of(sex, where=[age]), layout_of(sex), layout_of(age)])
    assert structure.matrix.toarray().tolist() == brute_matrix(structure).tolist()
    assert structure.shape == (2, 1)
    wide = Structure.of_tables([layout_of(sex, where=[axis("age", old=[1])]), layout_of(sex)])
    assert wide.shape == (2, 2)
    # A filter on a shown variable has narrowed its categories already.
    own = layout_of(axis("sex", f=[1]), where=[axis("sex", f=[1])])
    assert [part.name for part in own.parts] == ["sex"]
    assert [part.name for part in layout_of(sex, where=[age]).parts] == ["sex", "age"]


def test_layouts_name_each_variable_and_category_once():
    sex = with_total("sex", 2)
    twice = TableAxis("x", "", (Category("a", "", (0,)), Category("a", "", (1,))))
    below = TableAxis("x", "", (Category("a", "", (1, -1)),))
    for axes, filters, says in (
        ((sex, sex), (), "stands twice in one table"),
        ((twice,), (), "stands twice on one axis"),
        ((), (twice,), "stands twice on one axis"),
        ((below,), (), "negative position"),
        ((), (sex,), "exactly one category"),
        ((), (TableAxis("x", "", ()),), "exactly one category"),
    ):
        with pytest.raises(InputError, match=says):
            TableLayout(axes, filters)
    nobody = TableAxis("x", "", (Category("a", "", ()),))
    assert TableLayout((nobody,)).shape == (1,)
    assert TableLayout.of(TableLayout((sex,))).shape == TableLayout.of([sex]).shape == (3,)


def test_fields_of_a_structure_written_out():
    structure = Structure.of_tables(
        [[with_total("A", 2), with_total("B", 3)], [with_total("B", 3)]]
    )
    assert structure.offsets.tolist() == [0, 12, 16]
    assert (structure.rows, structure.inner, structure.shape) == (16, 6, (2, 3))
    assert structure.strides(0) == (4, 1)
    assert structure.strides(1) == (0, 1)
    assert [c.tolist() for c in structure.coordinates] == [[0, 0, 0, 1, 1, 1], [0, 1, 2] * 2]
    kept = structure.restrict([1, 5])
    assert kept.inner == 2
    assert [c.tolist() for c in kept.coordinates] == [[0, 1], [1, 2]]
    assert Structure.of_tables([[]]).coordinates == ()
    assert Structure.of_tables([[]]).inner == 1
    # Equal axes share their family.
    same = Structure.of_tables([[with_total("A", 2)], [with_total("A", 2)]])
    assert same.families[0][0] is same.families[1][0]


# Families


@pytest.mark.parametrize("seed", range(12))
def test_families_add_up_to_every_set_that_they_can_form(seed):
    rng = np.random.default_rng(seed)
    sets = [np.flatnonzero(rng.random(5) < 0.5).tolist() for _ in range(int(rng.integers(1, 7)))]
    family = Family(Lists.of(sets), 5)
    held = np.zeros((len(sets), 5), dtype=int)
    for row, own in zip(held, sets, strict=True):
        row[own] = 1
    crossing = any(
        set(a) & set(b) and not set(a) <= set(b) and not set(b) <= set(a)
        for a, b in itertools.combinations(sets, 2)
    )
    assert family.nested == (not crossing)
    for total, addends in family.sums:
        assert held[total].tolist() == held[list(addends)].sum(axis=0).tolist()
    # Categories that are no sum are independent where sets nest.
    free = [c for c in range(len(sets)) if c not in {total for total, _ in family.sums}]
    rank = np.linalg.matrix_rank(held)
    if family.nested:
        assert len(free) == rank == family.forests[0].rank
    for target in itertools.product((False, True), repeat=5):
        mask = np.array(target)
        found = family.express(mask)
        if found is not None:
            assert (found[1] @ held[found[0]]).tolist() == mask.astype(int).tolist()
            assert set(found[1].tolist()) <= {-1, 1}
        elif family.nested and any(target):
            assert np.linalg.matrix_rank(np.vstack([held, mask])) > rank
    listed = [c for forest in family.forests for c in forest.sets.tolist()]
    assert set(listed) == {sets.index(s) for s in sets if s}


def test_the_shortest_way_to_a_set_is_taken():
    # 0, 1 and 2 one by one, or the first two together and 2: the category itself comes first.
    family = Family(Lists.of([[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]]), 3)
    assert family.express(np.array([True, True, False]))[0].tolist() == [3]
    two = family.express(np.array([True, False, True]))
    assert two[0].size == 2
    longer = Family(Lists.of([[0], [1], [2], [3], [0, 1, 2, 3], [2, 3, 4]]), 5)
    ways = longer.express(np.array([True, True, False, False, False]))
    assert sorted(ways[0].tolist()) == [0, 1]
    # A total of what is wanted stands for its parts, and one that is wanted in part does not.
    nested = Family(Lists.of([[0], [1], [0, 1], [2], [0, 1, 2, 3]]), 4)
    assert sorted(nested.express(np.array([True, True, True, False]))[0].tolist()) == [2, 3]
    assert sorted(nested.express(np.array([True, False, True, False]))[0].tolist()) == [0, 3]
    # 0 and 1 to 3, rather than 0 and 1 together, 2 and 3.
    crossing = Family(Lists.of([[0], [1], [2], [3], [0, 1], [1, 2, 3]]), 4)
    assert sorted(crossing.express(np.ones(4, dtype=bool))[0].tolist()) == [0, 5]
    assert Family(Lists.of([[0], []]), 1).express(np.array([False]))[0].tolist() == [1]
    assert Family(Lists.of([[0], [1, 2], [0], [0, 1, 2]]), 3).distinct.tolist() == [3, 1, 0]
    assert Family(Lists.of([[0, 1]]), 3).express(np.array([False, False, True])) is None
    assert Family(Lists.of([[0, 1]]), 2).express(np.array([True, False])) is None


def test_odd_groups_get_a_limited_number_of_forests(monkeypatch):
    from lustrum.numeric.structure import families

    ring = Lists.of([[0, 1], [1, 2], [2, 3], [3, 4], [0, 4]])
    assert len(Family(ring, 5).forests) == 3
    monkeypatch.setattr(families, "_MOST_FORESTS", 2)
    assert len(Family(ring, 5).forests) == 2


# What two tables have in common


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([[0, 1], [2, 3]], [[0], [1], [2], [3]]),
        ([[0, 1], [2, 3]], [[0, 1, 2], [3]]),
        ([[0], [1, 2, 3]], [[0, 1], [2, 3], [1]]),
        ([[0, 1, 2, 3], [0]], [[1, 2, 3]]),
        ([[0], [1]], [[2], [3]]),
        ([[0, 1, 2], [2]], [[0], [1]]),
        ([[0, 1], []], [[], [0], [1]]),
        ([[0], [1], [2], [3]], [[0], [1], [2], [3]]),
    ],
)
def test_two_tables_are_linked_by_every_margin_that_both_can_form(one, other):
    y, z = with_total("y", 2), named("z", [[0], [1]])
    for rest in ([], [y]):
        structure = Structure.of_tables([[named("x", one), *rest], [*rest, named("x", other), z]])
        truth = brute_matrix(structure)
        dense = structure.relations.matrix.toarray()
        assert not np.any(dense @ truth)
        assert np.linalg.matrix_rank(dense) == structure.rows - np.linalg.matrix_rank(truth)
        # No relation is said twice.
        assert len({tuple(row) for row in dense.tolist()}) == len(dense)


def test_links_are_said_once_and_count_each_cell_once():
    def linked(one, other, *rest):
        structure = Structure.of_tables([[named("x", one), *rest], [named("x", other), *rest]])
        lists = linked_relations(structure, 0, 1)
        assert set(lists.weights.tolist()) <= {-1, 1}
        width = structure.rows
        dense = np.zeros((lists.count, width), dtype=int)
        dense[lists.rows, lists.items] = lists.weights
        assert not np.any(dense @ brute_matrix(structure))
        return dense.tolist()

    # Both show 01 and 0, so both can form 1, which says nothing new.
    assert linked([[0, 1], [0]], [[0, 1], [0]]) == [[1, 0, -1, 0], [0, 1, 0, -1]]
    # Two ways to form everything, and one relation.
    ring = [[0, 1], [2, 3], [0, 3], [1, 2]]
    assert len(linked(ring, [[0, 1, 2, 3]])) == 1
    assert len(linked(ring, [[0, 1, 2], [3]])) == 1
    # One holds an atom that the other does not.
    assert linked([[0, 1]], [[0], [1], [2]]) == [[1, -1, -1, 0]]
    assert linked([[0]], [[0, 1]]) == []
    assert linked([[0, 1]], [[1, 2]]) == []
    assert linked([[0], [1]], [[0, 1]], with_total("y", 2)) == [
        [1, 0, 0, 1, 0, 0, -1, 0, 0],
        [0, 1, 0, 0, 1, 0, 0, -1, 0],
        [0, 0, 1, 0, 0, 1, 0, 0, -1],
    ]
    everybody = Structure.of_tables([[], []])
    pair = linked_relations(everybody, 0, 1)
    assert (pair.items.tolist(), pair.weights.tolist()) == ([0, 1], [1, -1])
