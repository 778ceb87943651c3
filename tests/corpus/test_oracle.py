"""The corpus's own attack, against all tables of a tiny size."""

from __future__ import annotations

from itertools import product

import pytest

from corpus.attack import Book, Cell, Fact, tree, true_table

ROWS = tree("row", ["Total", "a", "b"])
COLUMNS = tree("column", ["Total", "x", "y", "z"])


def enumerated(book: Book, most: int) -> dict[Cell, tuple[float, float]]:
    """Ranges by trying every table with cells of at most `most`."""
    index = book.unknowns()
    rows = {cell: book.row(cell, index) for cell in book.values}
    found: dict[Cell, list[int]] = {cell: [] for cell in book.hidden}
    for leaves in product(range(most + 1), repeat=len(index)):
        sums = {cell: sum(leaves[i] * w for i, w in row.items()) for cell, row in rows.items()}
        if any(sums[c] != book.values[c] for c in book.cells if c not in book.hidden):
            continue
        if any(not fact.low <= sums[fact.terms[0][0]] <= fact.high for fact in book.facts):
            continue
        for cell in book.hidden:
            found[cell].append(sums[cell])
    return {cell: (min(values), max(values)) for cell, values in found.items()}


@pytest.mark.parametrize("seed", range(12))
def test_ranges_are_those_of_all_tables_that_fit(seed: int) -> None:
    book = true_table(seed, ROWS, COLUMNS, low=0, high=2)
    inner = [c for c in book.cells if "Total" not in c]
    book.hidden = [c for i, c in enumerate(inner) if (seed >> (i % 4)) & 1 == 0 or i % 3 == 0]
    if seed % 3 == 0:
        first = book.hidden[0]
        book.facts = [Fact(((first, 1),), book.values[first], book.values[first] + 1)]
    assert book.ranges() == enumerated(book, 4)


def test_a_value_without_a_total_has_no_upper_limit() -> None:
    book = true_table(1, tree("row", "a", "b"), low=1, high=9)
    book.hidden = [("value", "a")]
    assert book.ranges() == {("value", "a"): (0.0, None)}


def test_values_that_no_table_fits_are_refused() -> None:
    book = true_table(1, ROWS, low=1, high=9)
    book.values["value", "Total"] += 1
    with pytest.raises(ValueError, match="no table fits"):
        book.ranges()
