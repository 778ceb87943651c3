"""What a row tells about an attribute, and that siblings in sparse rows keep it from telling."""

from __future__ import annotations

import hashlib
from itertools import product

import numpy as np
import pytest

from lustrum.model.finest import FinestCells, possible_cells
from lustrum.protect.population import attributes
from lustrum.protect.population.attributes import (
    AttributeRisk,
    AttributeRows,
    attribute_risks,
    guessed,
    root_variables,
)
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.prepare import CANDIDATES, candidates, prepare, sibling_candidates
from lustrum.protect.population.public import SEARCH, SEARCH_OF_INVENTED
from lustrum.protect.population.start import cell_numbers
from protect.population.worlds import KEY, cells_of, town
from small import described

SIZES = (40, 6, 5, 4, 3)


def sparse(seed: int = 2, people: int = 4000) -> FinestCells:
    """People who are spread thinly: all but a few stand alone in their rows."""
    rng = np.random.default_rng(seed)
    shares = [rng.dirichlet(np.full(n, 2.0)) for n in SIZES]
    counts = np.zeros(SIZES, dtype=np.int64)
    drawn = tuple(rng.choice(n, people, p=p) for n, p in zip(SIZES, shares, strict=True))
    np.add.at(counts, drawn, 1)
    return cells_of(town(SIZES), counts)


def scattered() -> FinestCells:
    """600 people in 64,800 cells."""
    rng = np.random.default_rng(4)
    counts = np.zeros((300, 6, 6, 6), dtype=np.int64)
    np.add.at(counts, tuple(rng.integers(n, size=600) for n in counts.shape), 1)
    return cells_of(town(counts.shape, zeros=False), counts)


def by_hand(true: FinestCells, shown: FinestCells, place: int, base: int) -> tuple[int, int]:
    """People in rows that show one category, the base, where several can be, and those named right."""
    rows: dict[tuple[int, ...], dict[int, int]] = {}
    for code, count in zip(shown.codes.T.tolist(), shown.counts.tolist(), strict=True):
        if count:
            rest = tuple(code[:place] + code[place + 1 :])
            rows.setdefault(rest, {})[code[place]] = count
    people = right = 0
    for code, count in zip(true.codes.T.tolist(), true.counts.tolist(), strict=True):
        row = rows.get(tuple(code[:place] + code[place + 1 :]), {})
        other = np.repeat(np.array(code)[:, None], SIZES[place], axis=1)
        other[place] = np.arange(SIZES[place])
        several = possible_cells(true.dataset, other.astype(true.codes.dtype)).sum() > 1
        if list(row.values()) == [base] and several:
            people += count
            right += count * (code[place] in row)
    return people, right


def test_the_measure_counts_people_in_single_rows_and_those_named_right() -> None:
    cells = sparse(people=1500)
    result = ProtectedPopulation(sweeps=1, sparse_siblings=0).protect(cells, KEY)
    found = attribute_risks(cells, result.cells, 3)
    assert found == result.agency.attributes
    for place, variable in enumerate(cells.dataset.variables):
        own = [risk for risk in found if risk.variable == variable.name]
        people, right = by_hand(cells, result.cells, place, 3)
        assert sum(risk.people for risk in own) == people
        assert sum(risk.people * risk.named for risk in own) == pytest.approx(right)


def test_a_guess_leaves_the_row_out_and_follows_similar_rows() -> None:
    """Two areas of the same kind of people; one row says otherwise, and the guess is that of the others."""
    dataset = town((3, 3, 2), zeros=False)
    codes = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [2, 2, 1]]).T
    cells = FinestCells(dataset, codes, np.array([6, 3, 12, 30]))
    rows = AttributeRows.of(dataset, 1, root_variables(dataset))
    assert rows.others == (2, 0)  # the variable with most codes last
    wanted = np.array([0, 3])
    found = guessed(rows, cells.codes, cells.counts, wanted, cells.counts[wanted])
    assert found.tolist() == [1, 1]
    # v2 = 0 has 15 people where v0 is not 0; 6 of 51 people are of v0 = 0.
    expected = rows.expected(cells.codes, cells.counts, cells.codes[:, wanted])
    assert expected.tolist() == pytest.approx([15 * (6 / 51) / (45 / 51), 0.0])


def test_rows_with_a_single_possible_category_are_no_secret() -> None:
    dataset = described(
        "d",
        {"a": "01", "b": "xyz"},
        structural_zeros=[{"reason": "r", "where": {"a": ["0"], "b": ["y", "z"]}}],
    )
    codes = np.array([[0, 0], [1, 1]]).T
    cells = FinestCells(dataset, codes, np.array([3, 3]))
    risks = {r.variable: r.people for r in attribute_risks(cells, cells, 3) if r.people}
    # For a = 0 only x is possible, and for y only a = 1.
    assert risks == {"a": 3, "b": 3}


def test_a_bin_exceeds_only_with_enough_people_a_bad_guess_and_many_named() -> None:
    for people, named, guess, wanted in (
        (200, 0.61, 0.39, True),
        (199, 0.61, 0.39, False),
        (200, 0.60, 0.39, False),
        (200, 0.61, 0.40, False),
    ):
        assert AttributeRisk("v", 0.0, people, named, guess).exceeds == wanted
    risk = AttributeRisk("v", 0.05, 300, 0.75, 0.25)
    assert risk.to_mapping() == {
        "variable": "v", "at_least": 0.05, "people": 300, "named": 0.75, "guessed": 0.25,
        "gain": 0.5, "exceeds": True,
    }  # fmt: skip


def test_siblings_are_empty_possible_cells_that_differ_in_one_variable() -> None:
    cells = sparse()
    found = sibling_candidates(cells, KEY, 3, 1.0)
    numbers = cell_numbers(cells.dataset, found)
    assert found.shape[1] > 1000
    assert np.unique(numbers).size == numbers.size
    assert not np.isin(numbers, cell_numbers(cells.dataset, cells.codes)).any()
    assert possible_cells(cells.dataset, found).all()
    small = cells.codes[:, cells.counts < 3].T.tolist()
    lines = {
        (place, *code[:place], *code[place + 1 :])
        for code, place in product(small, range(len(SIZES)))
    }
    for code in found.T.tolist():
        assert any((p, *code[:p], *code[p + 1 :]) in lines for p in range(len(SIZES)))
    assert sibling_candidates(cells, KEY, 3, 0.0).shape[1] == 0
    fewer = sibling_candidates(cells, KEY, 3, 0.3).shape[1]
    assert 0.2 < fewer / found.shape[1] < 0.45
    other = cell_numbers(cells.dataset, sibling_candidates(cells, KEY[::-1], 3, 1.0))
    assert np.isin(numbers, other).mean() < 0.9


def test_without_empty_cells_that_may_show_there_are_no_siblings() -> None:
    cells = sparse()
    people = int((cells.counts % 3).sum())
    found, needed, one_in = candidates(cells, KEY, 3, 0.0, 1.0, people)
    assert (found.shape[1], needed, one_in) == (0, 0.0, CANDIDATES)
    found, needed, one_in = candidates(cells, KEY, 3, 10.0, 0.0, people)
    assert (found.shape[1], needed, one_in) == (10 * CANDIDATES, 10.0, CANDIDATES)


def test_siblings_share_the_people_of_the_start_with_occupied_cells() -> None:
    """The chances of both shrink by the same factor: one in six for siblings that added nobody."""
    cells = sparse()
    found, needed, one_in = candidates(cells, KEY, 3, 10.0, 1.0, 10**12)
    assert needed == pytest.approx(found.shape[1] / 6)
    assert one_in == 6
    for people in (1000, 5000):
        found, needed, one_in = candidates(cells, KEY, 3, 10.0, 1.0, people)
        alone = found.shape[1] / 6
        factor = people / (people + 3 * alone)
        assert needed == pytest.approx(factor * alone)
        assert people - 3 * needed == pytest.approx(factor * people)
        assert one_in == round(6 / factor)
    assert candidates(cells, KEY, 3, 4000.0, 1.0, 1000)[1] == 4000.0, "what must be shown is shown"


def test_the_start_is_right_on_average_where_siblings_are_many() -> None:
    cells = scattered()
    started = prepare(
        cells, KEY, base=3, small_only=False, empty_share=0.1, sparse_siblings=1.0
    ).problem
    share, of = started.start_share or (0, 1)
    assert of == int((cells.counts % 3).sum())
    assert of / 10 < share < of / 2, "most people at the start are siblings"
    beyond = 3 * int(started.up.sum()) - int(started.residue.sum()) + int(started.fixed_up.sum())
    # Every cell is up or not by a draw of its own: 5 standard deviations, a false alarm in a million.
    assert abs(beyond) < 5 * 3 * float(np.sqrt(started.up.sum()))
    assert started.up.sum() > 150


def test_rows_where_nobody_is_expected_have_two_siblings_and_others_one() -> None:
    """By a count of the empty cells that may show somebody, row by row."""
    cells = scattered()
    rows = AttributeRows.of(cells.dataset, 1, root_variables(cells.dataset))
    small = np.flatnonzero(cells.counts < 3)
    expected = rows.expected(cells.codes, cells.counts, cells.codes[:, small])
    wanted = (1 / (1 + expected / 0.6) + 1 / (1 + expected / 0.15))[expected <= 2].sum()
    found = sibling_candidates(cells, KEY, 3, 1.0)
    beside = np.isin(rows.numbers(found), rows.numbers(cells.codes[:, small])).sum()
    # Two draws of the same category are one sibling: of six, one in six where both are drawn.
    assert 0.8 * wanted < beside <= 1.02 * wanted
    assert wanted > 1.3 * small.size


def test_most_siblings_are_around_invented_people_if_asked() -> None:
    """Few of their cells lie beside an occupied one, and they share the people of the start as more would."""
    cells = scattered()
    occupied = {
        (p, *code[:p], *code[p + 1 :]) for code in cells.codes.T.tolist() for p in range(1, 4)
    }
    beside, many = {}, {}
    for siblings in (1.0, 3.0, 9.0):
        found = sibling_candidates(cells, KEY, 3, siblings)
        numbers = cell_numbers(cells.dataset, found)
        assert np.unique(numbers).size == numbers.size
        assert not np.isin(numbers, cell_numbers(cells.dataset, cells.codes)).any()
        codes = found.T.tolist()
        beside[siblings] = np.mean(
            [any((p, *c[:p], *c[p + 1 :]) in occupied for p in range(1, 4)) for c in codes]
        )
        many[siblings] = len(codes)
        needed = candidates(cells, KEY, 3, 10.0, siblings, 600)[1]
        alone = siblings * many[siblings] / 6
        assert needed == pytest.approx(
            min(600 / (600 + 3 * alone) * alone, many[siblings] / CANDIDATES)
        )
    assert 0.8 < many[9.0] / many[1.0] < 1.6, "as many, and the invented people themselves"
    assert beside[1.0] > 0.7
    assert beside[9.0] < 0.35 < beside[3.0] < 0.6, "a cell by chance: one in seven"


def test_where_most_are_invented_a_small_cell_shows_no_more_often_than_it_starts() -> None:
    """By half of that at most, however well the people who are there fit the tables."""
    cells = sparse(people=2500)
    prepared = prepare(
        cells, KEY, base=3, small_only=False, empty_share=0.1, sparse_siblings=9.0
    ).problem
    share, of = prepared.start_share or (0, 1)
    assert share < of / 5
    large = cells.counts.copy()
    large[::2] += 3
    more = FinestCells(cells.dataset, cells.codes, large)
    begun = prepare(
        more, KEY, base=3, small_only=False, empty_share=0.1, sparse_siblings=9.0
    ).problem
    above = begun.low > 0
    bias = begun.up[above].mean() - begun.residue[above].mean() / 3
    assert abs(bias) < 4 * 0.5 / np.sqrt(above.sum()), "cells that cannot show 0 make no room"
    made = ProtectedPopulation(sweeps=4, sparse_siblings=9.0).protect(cells, KEY)
    shown = cell_numbers(cells.dataset, made.cells.codes)
    for count in (1, 2):
        true = cell_numbers(cells.dataset, cells.codes[:, cells.counts == count])
        begins = prepared.up[(prepared.low == 0) & (prepared.residue == count)].sum()
        most = max(begins, 1.5 * true.size * count * share / (3 * of) + 1)
        assert np.isin(true, shown).sum() <= most
    assert made.public.search == SEARCH_OF_INVENTED


@pytest.mark.parametrize(("people", "one_in"), [(20, 32.0), (80, 10.0), (350, 3.0), (1000, 1.0)])
def test_without_a_number_siblings_follow_the_people_for_each_possible_cell(
    people: int, one_in: float
) -> None:
    """64,800 cells can exist; far from the limits the key decides nothing."""
    rng = np.random.default_rng(people)
    counts = np.zeros((300, 6, 6, 6), dtype=np.int64)
    np.add.at(counts, tuple(rng.integers(n, size=people) for n in counts.shape), 1)
    cells = cells_of(town(counts.shape, zeros=False), counts)
    common = {"base": 3, "small_only": False, "empty_share": 0.1}
    usual = prepare(cells, KEY, **common, sparse_siblings="auto")
    stated = prepare(cells, KEY, **common, sparse_siblings=one_in)
    assert np.array_equal(usual.every.codes, stated.every.codes)
    assert np.array_equal(usual.problem.up, stated.problem.up)
    assert usual.problem.drift_part == stated.problem.drift_part


def test_the_limits_of_sparse_files_move_with_the_key() -> None:
    """650 people are 0.01 for each cell: with some keys that is sparse, with others it is not."""
    rng = np.random.default_rng(1)
    counts = np.zeros((300, 6, 6, 6), dtype=np.int64)
    np.add.at(counts, tuple(rng.integers(n, size=650) for n in counts.shape), 1)
    cells = cells_of(town(counts.shape, zeros=False), counts)
    common = {"base": 3, "small_only": False, "empty_share": 0.1, "sparse_siblings": "auto"}
    drawn = [prepare(cells, bytes([key]) * 16, **common).problem.drift_part for key in range(12)]
    assert 0 < sum(part is None for part in drawn) < 12


def test_the_siblings_of_a_file_belong_to_the_version_of_the_search() -> None:
    found, needed, one_in = candidates(scattered(), KEY, 3, 20.0, 1.0, 600)
    digest = hashlib.sha256(found.astype(np.int64).tobytes() + f"{needed!r} {one_in}".encode())
    assert (SEARCH, digest.hexdigest()[:16]) == (10, "704753c46cd061d9")


def test_siblings_keep_sparse_rows_from_naming_attributes() -> None:
    """Without them the attack succeeds, with them it does not; the price in errors is small."""
    cells = sparse(people=2500)
    named, errors = {}, {}
    for share in (0.0, 1.0):
        result = ProtectedPopulation(sweeps=4, sparse_siblings=share).protect(cells, KEY)
        risks = [r for r in result.agency.attributes if r.people >= 200 and r.guessed < 0.4]
        named[share] = max(risk.named for risk in risks)
        errors[share] = result.agency.over()["mean"]
    assert named[0.0] > 0.68
    assert named[1.0] < 0.6
    assert errors[1.0] < 1.5 * errors[0.0]


@pytest.mark.parametrize(
    ("held", "rows", "at_once"),
    [(1, 1 << 16, 1 << 20), (1, 1, 3000), (50, 7, 900), (1 << 22, 3, 5000)],
)
def test_figures_are_the_same_however_many_cells_and_categories_are_looked_at_in_one_go(
    monkeypatch: pytest.MonkeyPatch, held: int, rows: int, at_once: int
) -> None:
    cells = sparse()
    result = ProtectedPopulation(sweeps=1).protect(cells, KEY)
    monkeypatch.setattr("lustrum.protect.population.start.AT_ONCE", at_once)
    with monkeypatch.context() as patch:
        patch.setattr("lustrum.protect.population.measure._MOST_CELLS", 40)
        patch.setattr("lustrum.protect.population.measure._MOST_LAID_OUT", 40)
        again = ProtectedPopulation(sweeps=1).protect(cells, KEY)
    assert (again.public, again.agency) == (result.public, result.agency)
    monkeypatch.setattr("lustrum.protect.population.start.AT_ONCE", 1 << 20)
    plain = attributes.attribute_risks(cells, result.cells, 3)
    assert any(risk.people for risk in plain)
    monkeypatch.setattr(attributes, "_MOST_HELD", held)
    monkeypatch.setattr(attributes, "_AT_ONCE", rows)
    monkeypatch.setattr("lustrum.protect.population.start.AT_ONCE", at_once)
    assert attributes.attribute_risks(cells, result.cells, 3) == plain


def test_categories_that_can_exist_are_those_of_possible_cells() -> None:
    """Also for a variable that no structural zero names."""
    cells = cells_of(town((4, 3, 2)), np.random.default_rng(1).poisson(0.7, (4, 3, 2)))
    for place in range(3):
        rows = AttributeRows.of(cells.dataset, place, [0, 1, 2])
        for cell, found in zip(cells.codes.T, rows.possible(cells.codes), strict=True):
            for code, possible in enumerate(found):
                other = cell.copy()
                other[place] = code
                assert possible == possible_cells(cells.dataset, other[:, None])[0]
        assert np.array_equal(rows.several(cells.codes), rows.possible(cells.codes).sum(axis=1) > 1)
