"""Attribute inference from a table: counted by loops, and lower where rows are protected."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from lustrum.model import InputError, Table
from lustrum.protect import RandomRounding
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.unchanged import Unchanged
from lustrum.risk import AttributeInference
from lustrum.risk.attribute_inference import guessed_categories
from lustrum.rumap import rumap


def by_hand(true: np.ndarray, shown: np.ndarray, place: int, up_to: int) -> tuple[int, int]:
    """People in rows that show one category with few people, and those named right."""
    people = right = 0
    others = [range(n) for p, n in enumerate(true.shape) if p != place]
    for fixed in product(*others):
        at = (*fixed[:place], slice(None), *fixed[place:])
        row, inside = shown[at], true[at]
        if (row > 0).sum() == 1 and row.sum() <= up_to:
            people += int(inside.sum())
            right += int(inside[int(row.argmax())])
    return people, right


@pytest.mark.parametrize("seed", range(4))
def test_people_are_those_of_single_rows_and_named_is_what_the_row_shows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    true = rng.poisson(rng.gamma(0.3, 1.0, (5, 4, 3)))
    table = Table.from_counts(true, names=["a", "b", "c"])
    release = RandomRounding(base=3).apply(table, rng=seed)
    measure = AttributeInference(up_to=3, fewest=1)
    for shown, found in (
        (true, measure.variables(table)),
        (release.published, measure.variables(table, release)),
    ):
        for place, one in enumerate(found):
            people, right = by_hand(true, shown, place, 3)
            assert one.variable == "abc"[place]
            assert one.people == people
            assert one.named * max(people, 1) == pytest.approx(right)
        most = measure.before(table) if shown is true else measure.after(table, release)
        assert most == max(0.0, *(one.gain for one in found if one.people))


def test_a_guess_leaves_the_row_out_and_follows_the_others() -> None:
    # Three areas; the first says otherwise, and the guess is that of the rest.
    shown = np.array([[9, 0], [1, 4], [0, 4]])
    every = np.ones(shown.shape, dtype=bool)
    assert guessed_categories(shown, 1, every).tolist() == [1, 0, 0]
    # What cannot exist is not guessed.
    every[0, 1] = False
    assert guessed_categories(shown, 1, every).tolist() == [0, 0, 0]
    # Similar rows, which differ in the variable with most categories, weigh more than all others.
    three = np.zeros((2, 3, 2), dtype=np.int64)
    three[0] = [[20, 0], [0, 2], [20, 0]]
    three[1] = [[0, 90], [0, 90], [0, 90]]
    assert guessed_categories(three, 2, np.ones(three.shape, dtype=bool)).tolist() == [
        [0, 0, 0],
        [1, 1, 1],
    ]


def test_hidden_rows_and_rows_with_one_possible_category_name_nobody() -> None:
    table = Table.from_counts([[3, 0], [40, 60], [30, 50]], names=["a", "b"])
    assert AttributeInference(fewest=1).variables(table)[1].people == 3
    whole = Unchanged().apply(table)
    status = whole.status.copy()
    status[0, 1] = "D"
    hidden = replace(whole, status=status)
    assert hidden.shown.sum() == 5
    assert AttributeInference(fewest=1).variables(table, hidden)[1].people == 0
    structural = np.zeros((3, 2), dtype=bool)
    structural[0, 1] = True
    alone = Table(table.axes, table.values, structural=structural)
    assert AttributeInference(fewest=1).variables(alone)[1].people == 0


def test_few_people_and_wrong_tables_are_not_judged() -> None:
    table = Table.from_counts([[3, 0], [40, 60], [30, 50]], names=["a", "b"])
    assert AttributeInference(fewest=3).before(table) > 0
    assert AttributeInference(fewest=4).before(table) == 0
    with pytest.raises(InputError, match="two variables or more"):
        AttributeInference().before(Table.from_counts([1, 2]))
    for wrong in ({"up_to": 0}, {"fewest": 0}, {"fewest": 1.5}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            AttributeInference(**wrong)  # type: ignore[arg-type]


def test_a_map_shows_what_siblings_in_sparse_rows_are_worth() -> None:
    """The same table of thinly spread people: one file without siblings, one with."""
    rng = np.random.default_rng(2)
    sizes = (40, 6, 5, 4, 3)
    counts = np.zeros(sizes, dtype=np.int64)
    drawn = tuple(rng.choice(n, 2500, p=rng.dirichlet(np.full(n, 2.0))) for n in sizes)
    np.add.at(counts, drawn, 1)
    table = Table.from_counts(counts)
    methods = [
        Unchanged(),
        *(ProtectedPopulation(sweeps=2, sparse_siblings=share) for share in (0.0, 1.0)),
    ]
    found = rumap(table, methods, [AttributeInference(up_to=3)], replications=1, workers=1)
    whole, without, siblings = (point.risk for point in found.points if not point.is_corner)
    assert whole > without > siblings + 0.05
