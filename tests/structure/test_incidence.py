from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import (
    Axis,
    Category,
    Dataset,
    Filter,
    Group,
    InputError,
    QueryError,
    StructuralZero,
    Table,
    TableAxis,
    TableQuery,
    Variable,
)
from lustrum.numeric.structure import Structure, TableLayout, build
from lustrum.numeric.structure.build import published_values
from structure.cases import (
    QUICK,
    axis,
    brute_matrix,
    halves,
    layout_of,
    named,
    table_lists,
    with_total,
)

AREA = with_total("area", 3)
SEX = with_total("sex", 2)


@QUICK
@given(st.booleans().flatmap(lambda nested: table_lists(nested=nested, tables=3)))
def test_the_matrix_says_which_inner_cells_lie_in_each_published_cell(structure: Structure) -> None:
    matrix = structure.matrix
    assert matrix.dtype == np.int8
    assert matrix.indices.dtype == np.int32
    assert matrix.has_sorted_indices
    assert np.array_equal(matrix.toarray(), brute_matrix(structure))


@QUICK
@given(st.booleans().flatmap(lambda nested: table_lists(nested=nested, tables=3)), st.data())
def test_rolling_up_equals_multiplying(structure: Structure, data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 2**32))
    inner = np.random.default_rng(seed).integers(-9, 10, structure.inner)
    tables = structure.published(inner)
    assert [t.shape for t in tables] == [layout.shape for layout in structure.tables]
    flat = np.concatenate([t.ravel() for t in tables])
    assert np.array_equal(flat, structure.matrix @ inner)


@QUICK
@given(st.booleans().flatmap(lambda nested: table_lists(nested=nested, tables=3)), st.data())
def test_restricting_keeps_the_columns_and_nothing_else(
    structure: Structure, data: st.DataObject
) -> None:
    mask = np.array(
        data.draw(st.lists(st.booleans(), min_size=structure.inner, max_size=structure.inner)),
        dtype=bool,
    )
    kept = structure.restrict(mask)
    assert np.array_equal(kept.matrix.toarray(), brute_matrix(structure)[:, mask])
    inner = np.arange(kept.inner) + 1
    flat = np.concatenate([t.ravel() for t in kept.published(inner)])
    assert np.array_equal(flat, kept.matrix @ inner)
    again = kept.restrict(np.arange(kept.inner)[::2])
    assert np.array_equal(again.matrix.toarray(), kept.matrix.toarray()[:, ::2])
    assert again.rows == structure.rows


def test_different_levels_of_one_hierarchy_share_one_cube() -> None:
    fine = halves("place", 3, shown=[0])
    coarse = halves("place", 3, shown=[2, 3])
    structure = Structure.of_tables([[coarse, SEX], [fine]])
    assert structure.shape == (8, 2)
    assert np.array_equal(structure.matrix.toarray(), brute_matrix(structure))


def test_the_cube_is_no_finer_than_the_tables_need() -> None:
    structure = Structure.of_tables([[halves("place", 3, shown=[2]), SEX]])
    assert structure.shape == (2, 2)


def test_two_hierarchies_that_do_not_nest_cut_each_other() -> None:
    structure = Structure.of_tables(
        [[named("age", [[0, 1, 2], [3, 4, 5]])], [named("age", [[0, 1], [2, 3], [4, 5]])]]
    )
    assert structure.shape == (4,)
    assert structure.matrix.toarray().tolist() == [
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        [1, 0, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 0, 1],
    ]


def test_codes_that_no_category_holds_are_in_no_inner_cell() -> None:
    structure = Structure.of_tables([[named("x", [[0], [2]]), SEX]])
    assert structure.shape == (2, 2)
    assert structure.variables[0].atom_of.tolist() == [0, -1, 1]


def test_a_table_without_the_variable_counts_the_codes_that_others_leave_out() -> None:
    variable = Variable("x", "X", ("a", "b", "c", "d"), ("A", "B", "C", "D"))
    shown = named("x", [[0], [2]])
    structure = Structure.of_tables([[shown, SEX], [SEX]], variables=[variable])
    assert structure.shape == (3, 2)
    assert structure.matrix.toarray()[-1].sum() == 6  # everybody


def test_a_hidden_axis_cuts_the_cube_though_no_table_shows_it() -> None:
    structure = Structure.margins({"A": 2, "B": 3}, [["A"]])
    assert structure.shape == (2, 3)
    assert structure.matrix.toarray().tolist() == [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]


def test_a_cube_is_given_by_sizes_or_names_or_axes() -> None:
    by_size = Structure.margins((2, 3), ["AB", "B"])
    by_name = Structure.margins({"A": 2, "B": 3}, [["A", "B"], ["B"]])
    by_axes = Structure.margins(by_name.tables[0].axes, ["AB", "B"])
    for other in (by_name, by_axes):
        assert np.array_equal(by_size.matrix.toarray(), other.matrix.toarray())
    with pytest.raises(InputError, match="no variable 'D'"):
        Structure.margins((2, 3), ["AD"])
    with pytest.raises(InputError, match="given by its axes"):
        Structure.margins((2, AREA), ["A"])  # type: ignore[arg-type]


def test_a_cell_is_found_by_its_codes_and_described_in_words() -> None:
    structure = Structure.of_tables([[SEX], [AREA, SEX]])
    row = structure.cell(1, {"sex": "0-1", "area": "2"})
    assert row == structure.cell(1, ["2", "0-1"]) == 3 + 2 * 3 + 2
    assert structure.locate(row) == (1, (2, 2))
    plain = Structure.of_tables([[TableAxis.plain("area", ["1", "2"], ["North", "South"])], []])
    assert plain.describe(0) == "area=North"
    assert plain.describe(2) == "everybody"
    assert plain.cell(1, []) == 2


def test_a_table_stands_for_its_axes() -> None:
    table = Table.from_counts([[3, 0], [1, 2]], names=["area", "faith"])
    structure = Structure.of_tables([table])
    assert np.array_equal(structure.published(table.values)[0], table.values)
    assert repr(structure) == "Structure(1 table, 4 published cells, 4 inner cells)"


def test_record_keys_wrap_around_when_summed() -> None:
    structure = Structure.of_tables([[SEX]])
    keys = np.array([2**63, 2**63 + 5], dtype=np.uint64)
    assert structure.published(keys)[0].tolist() == [2**63, 2**63 + 5, 5]
    assert structure.published(keys)[0].dtype == np.uint64


def test_small_whole_numbers_do_not_overflow() -> None:
    structure = Structure.of_tables([[with_total("x", 300)]])
    assert structure.published(np.full(300, 100, dtype=np.int8))[0][-1] == 30000


def dataset() -> Dataset:
    return Dataset(
        name="d",
        title="D",
        variables=(
            Variable("region", "Region", ("1", "2", "3"), ("North", "South", "West")),
            Variable("sex", "Sex", ("m", "f"), ("Men", "Women")),
        ),
    )


def test_a_filter_is_an_axis_of_one_category_that_is_not_shown() -> None:
    query = TableQuery("d", (Axis("sex", total=True),), (Filter("region", ("1", "3")),))
    structure = Structure.of_queries([query, TableQuery("d", (Axis("region"),))], dataset())
    assert structure.tables[0].shape == (3,)
    assert structure.variables[1].name == "region"
    assert np.array_equal(structure.matrix.toarray(), brute_matrix(structure))
    assert structure.describe(2) == "sex=Total where region=North or West"
    inner = np.arange(structure.inner)
    flat = np.concatenate([t.ravel() for t in structure.published(inner)])
    assert np.array_equal(flat, structure.matrix @ inner)


def test_a_filter_on_a_shown_variable_narrows_its_categories() -> None:
    query = TableQuery("d", (Axis("region", total=True),), (Filter("region", ("1", "2")),))
    structure = Structure.of_queries(query, dataset())
    assert structure.matrix.toarray().tolist() == [[1, 0], [0, 1], [0, 0], [1, 1]]
    assert structure.describe(3) == "region=Total where region=North or South"


def test_own_groups_of_two_questions_may_share_a_code() -> None:
    one = TableQuery("d", (Axis("region", groups=(Group("ns", ("1", "2")),)),))
    two = TableQuery("d", (Axis("region", groups=(Group("sw", ("2", "3")),)),))
    structure = Structure.of_queries([one, two], dataset())
    assert structure.matrix.toarray().tolist() == [[1, 1, 0], [0, 1, 1]]


def test_structural_zeros_are_the_inner_cells_they_cover_entirely() -> None:
    structure = Structure.of_tables([[AREA, SEX]])
    none = StructuralZero("", {"area": frozenset([0, 1]), "sex": frozenset([1])})
    elsewhere = StructuralZero("", {"area": frozenset([0]), "job": frozenset([1])})
    mask = structure.possible([none, elsewhere])
    assert mask.reshape(3, 2).tolist() == [[True, False], [True, False], [True, True]]
    assert structure.restrict(mask).inner == 4


def test_a_structural_zero_leaves_an_atom_that_it_covers_in_part() -> None:
    structure = Structure.of_tables([[named("x", [[0, 1], [2]])]])
    assert structure.possible([StructuralZero("", {"x": frozenset([0, 2])})]).tolist() == [
        True,
        False,
    ]


def test_a_restricted_cube_may_be_larger_than_memory() -> None:
    axes = [TableAxis.plain(f"v{i}", [str(k) for k in range(50)]) for i in range(8)]
    structure = Structure.of_tables([[a] for a in axes])
    kept = structure.restrict(np.array([0, 50**8 - 1]))
    assert kept.matrix.sum() == 16
    assert [t.sum() for t in kept.published([3, 4])] == [7] * 8


def test_nothing_is_built_before_it_is_asked_for() -> None:
    structure = Structure.of_tables([[with_total("A", 900), with_total("B", 900)]])
    assert structure.relations.count == 2 * 901
    assert "matrix" not in vars(structure)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Structure.of_tables([]), "at least one table"),
        (lambda: Structure.of_tables([[SEX, SEX]]), "stands twice in one table"),
        (
            lambda: Structure.of_tables(
                [[TableAxis("x", "", (Category("a", "", (0,)), Category("a", "", (1,))))]]
            ),
            "'a' stands twice on one axis",
        ),
        (lambda: Structure.of_tables([[axis("x", a=[-1])]]), "negative position"),
        (
            lambda: Structure.of_tables(
                [[TableAxis.plain("x", ["n", "s"])], [TableAxis.plain("x", ["s", "n"])]]
            ),
            "must share one code list",
        ),
        (
            lambda: Structure.of_tables([[AREA]], variables=[Variable("area", "", ("1",), ("",))]),
            "has 1 codes, but a category holds position 2",
        ),
        (lambda: layout_of(SEX, where=[AREA]), "exactly one category"),
        (lambda: Structure.of_tables([[SEX]]).published([1, 2, 3]), "2 inner cells, but 3 values"),
        (lambda: Structure.of_tables([[SEX]]).cell(0, ["x"]), "no category 'x'"),
        (lambda: Structure.of_tables([[SEX]]).cell(0, {"se": "0"}), "did you mean 'sex'"),
        (lambda: Structure.of_tables([[SEX, AREA]]).cell(0, {"sex": "0"}), "one code for each of"),
        (lambda: Structure.of_tables([[SEX]]).cell(1, ["0"]), "no table 1"),
        (lambda: Structure.of_tables([[SEX]]).describe(3), "no published cell 3"),
        (lambda: Structure.of_tables([[SEX]]).restrict([5]), "outside the 2 inner cells"),
        (lambda: Structure.of_tables([[SEX]]).restrict([True]), "mask has 1 entries"),
    ],
)
def test_a_mistake_is_one_clear_sentence(make: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()  # type: ignore[operator]


def test_a_question_about_unknown_things_is_a_query_error() -> None:
    with pytest.raises(QueryError, match="no variable 'job'"):
        Structure.of_queries(TableQuery("d", (Axis("job"),)), dataset())
    with pytest.raises(QueryError, match="no category '9'"):
        Structure.of_queries(TableQuery("d", (), (Filter("region", ("9",)),)), dataset())


@QUICK
@given(st.booleans().flatmap(lambda nested: table_lists(nested=nested, tables=3)))
def test_blocks_of_equal_rows_and_single_rows_build_the_same_matrix(structure: Structure) -> None:
    truth = brute_matrix(structure)
    for cost in (0, 10**9):
        with mock.patch.object(build, "_BLOCK_COST", cost):
            assert np.array_equal(build.full_matrix(structure).toarray(), truth)


def test_large_indices_build_the_same_matrix() -> None:
    structure = Structure.of_tables([[AREA, SEX]])
    with mock.patch.object(build, "_MOST_NARROW", 3):
        assert np.array_equal(build.full_matrix(structure).toarray(), brute_matrix(structure))


def test_a_matrix_that_no_memory_holds_is_refused_before_it_is_begun() -> None:
    structure = Structure.of_tables([[with_total(f"v{i}", 50) for i in range(5)]])
    with pytest.raises(InputError, match="keep fewer inner cells"):
        _ = structure.matrix


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


def test_values_are_added_in_a_type_that_holds_their_sums() -> None:
    structure = Structure.of_tables([[axis("x", a=[0], b=[1], all=[0, 1])]])
    for kind in (np.int8, np.uint8, np.uint32, np.int64):
        total = published_values(structure, np.array([100, 120], dtype=kind))[0]
        assert (total.tolist(), total.dtype) == ([100, 120, 220], np.int64)
    (halves,) = published_values(structure, np.array([0.5, 0.25], dtype=np.float32))
    assert halves.tolist() == [0.5, 0.25, 0.75]
    (keys,) = published_values(structure, np.array([2**63, 2], dtype=np.uint64))
    assert keys.tolist() == [2**63, 2, 2**63 + 2]
