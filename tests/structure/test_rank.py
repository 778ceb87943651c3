from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from lustrum.model import InputError, TableAxis
from lustrum.numeric.structure import Structure
from lustrum.numeric.structure.rank import (
    EXCESSES,
    chain_rank,
    elimination_rank,
    family_rank,
    matrix_rank,
    reduced,
)
from structure.cases import FEW, QUICK, axis, halves, named, table_lists, with_total


def float_rank(structure: Structure) -> int:
    return int(np.linalg.matrix_rank(structure.matrix.toarray())) if structure.inner else 0


@QUICK
@given(st.booleans().flatmap(lambda nested: table_lists(nested=nested, tables=3)))
def test_every_way_to_the_rank_agrees_with_numpy(structure: Structure) -> None:
    truth = float_rank(structure)
    assert elimination_rank(structure) == truth
    assert chain_rank(structure) in (None, truth)
    assert structure.rank == truth


@FEW
@given(st.sets(st.sampled_from(["", "A", "B", "AB", "BC", "CD", "AD", "ABC", "BCD"]), min_size=1))
def test_margins_of_a_cube_have_a_closed_form(margins: set[str]) -> None:
    cube = [with_total("A", 3), halves("B", 2), with_total("C", 2), with_total("D", 3)]
    structure = Structure.margins(cube, sorted(margins))
    assert chain_rank(structure) == elimination_rank(structure) == float_rank(structure)


def test_three_two_way_margins_leave_the_three_way_interaction_free() -> None:
    structure = Structure.margins((4, 4, 3), ["AB", "AC", "BC"])
    assert structure.rank == 4 * 4 * 3 - 3 * 3 * 2 == 30


def test_levels_of_one_hierarchy_in_several_tables_have_a_closed_form() -> None:
    tables = [
        [halves("x", 3, shown=[0]), halves("y", 3, shown=[2, 3])],
        [halves("x", 3, shown=[1]), halves("y", 3, shown=[1])],
        [halves("x", 3, shown=[3]), halves("y", 3, shown=[0])],
    ]
    structure = Structure.of_tables(tables)
    assert chain_rank(structure) == float_rank(structure) == 8 * 2 + 4 * 2 + 4


def test_hierarchies_that_do_not_nest_have_no_closed_form_but_a_rank() -> None:
    one, two = named("x", [[0, 1, 2], [3, 4, 5]]), named("x", [[0, 1], [2, 3], [4, 5]])
    structure = Structure.of_tables([[one, with_total("y", 3)], [two]])
    assert chain_rank(structure) is None
    assert structure.rank == float_rank(structure) == 6 + 2


def test_two_hierarchies_on_the_axis_of_one_table_have_a_closed_form() -> None:
    both = named("x", [[0, 1, 2], [3, 4, 5], [0, 1], [2, 3], [4, 5]])
    structure = Structure.of_tables([[both, with_total("y", 3)], [with_total("y", 3)]])
    assert chain_rank(structure) == float_rank(structure) == 4 * 3


def test_fewer_inner_cells_lower_the_rank() -> None:
    structure = Structure.margins((3, 3), ["A", "B"])
    assert structure.rank == 5
    kept = structure.restrict([0, 4, 8])
    assert kept.rank == float_rank(kept) == 3


def test_a_large_cube_takes_no_elimination() -> None:
    axes = [with_total(n, 60) for n in "ABCDE"]
    structure = Structure.margins(axes, ["ABC", "BCD", "CDE", "AE"])
    assert structure.rank == 60**3 * 3 - 60**2 * 2 + 59**2
    assert "matrix" not in vars(structure)


def test_many_variables_in_small_tables_have_a_closed_form() -> None:
    names = [f"v{i}" for i in range(40)]
    structure = Structure.margins(dict.fromkeys(names, 3), [[n] for n in names])
    assert structure.rank == 40 * 2 + 1


def test_what_cannot_be_held_is_refused_in_a_sentence() -> None:
    names = [f"v{i}" for i in range(12)]
    cube = [with_total(n, 6) for n in names]
    odd = named("v0", [[0, 1]])
    structure = Structure.of_tables([[odd, *cube[1:]], [named("v0", [[1, 2]])]], hidden=cube)
    assert chain_rank(structure) is None
    with pytest.raises(InputError, match="would take too long"):
        _ = structure.rank


def test_a_table_without_axes_has_rank_one() -> None:
    assert Structure.of_tables([[]]).rank == 1


def test_what_would_take_too_long_is_refused_in_a_sentence() -> None:
    rng = np.random.default_rng(0)
    many = named("x", [np.flatnonzero(rng.random(60) < 0.5).tolist() for _ in range(50)])
    other = named("x", [np.flatnonzero(rng.random(60) < 0.5).tolist() for _ in range(50)])
    y = TableAxis.plain("y", [str(i) for i in range(80)])
    with pytest.raises(InputError, match="would take too long"):
        _ = Structure.of_tables([[many, y], [other, y]]).rank


@QUICK
@given(
    st.integers(1, 7).flatmap(
        lambda n: st.lists(st.lists(st.integers(-2, 2), min_size=n, max_size=n), min_size=1)
    )
)
def test_the_rank_of_any_small_matrix_is_that_of_numpy(rows: list[list[int]]) -> None:
    matrix = np.array(rows)
    assert matrix_rank(sparse.csr_array(matrix)) == np.linalg.matrix_rank(matrix)


@pytest.mark.parametrize("excess", EXCESSES)
def test_the_compiled_reduction_equals_plain_arithmetic(excess: int) -> None:
    prime = 2**31 - excess
    rng = np.random.default_rng(excess)
    for _ in range(20):
        matrix = rng.integers(0, prime, (5, 7))
        matrix[3] = (matrix[1] * 5 + matrix[2]) % prime
        form, pivots = reduced(matrix, excess, full=True)
        slow, places = plain_reduction(matrix.astype(object), prime)
        assert pivots.tolist() == places
        assert form.tolist() == slow.tolist()


def plain_reduction(matrix: np.ndarray, prime: int) -> tuple[np.ndarray, list[int]]:
    pivots: list[int] = []
    for column in range(matrix.shape[1]):
        top = len(pivots)
        rows = [i for i in range(top, matrix.shape[0]) if matrix[i, column] % prime]
        if not rows:
            continue
        matrix[[top, rows[0]]] = matrix[[rows[0], top]]
        matrix[top] = matrix[top] * pow(int(matrix[top, column]), -1, prime) % prime
        for i in range(matrix.shape[0]):
            if i != top:
                matrix[i] = (matrix[i] - matrix[i, column] * matrix[top]) % prime
        pivots.append(column)
    return matrix, pivots


def test_both_primes_are_prime() -> None:
    for excess in EXCESSES:
        number = 2**31 - excess
        assert all(number % d for d in range(2, 46341))


def test_a_rank_that_one_prime_hides_is_found_by_the_other() -> None:
    hidden = sparse.csr_array(np.array([[1, 1], [1, 2**31]]))
    assert reduced(hidden.toarray(), 1)[1].size == 1
    assert matrix_rank(hidden) == 2


def test_odd_groups_count_their_independent_ones() -> None:
    structure = Structure.of_tables([[axis("x", ab=[0, 1], bc=[1, 2], ca=[0, 2], all=[0, 1, 2])]])
    assert family_rank(structure.families[0][0]) == 3
