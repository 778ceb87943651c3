"""Attributes read off rows of several releases: does a reader of all of them name more people right?

The row of a variable joins the cells that agree in all others. A reader of one release names the only category
that a row shows, where that is with the base. A reader of several names the one that was shown most often. One
who waits speaks only of rows that showed the same single category in every release, another one of rows that
never showed any other. All are judged beside a guess from the rest of the last file, by expected size of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attacks.releases.series import Joined
from lustrum.model import Dataset
from lustrum.protect.population.attributes import (
    BINS,
    AttributeRisk,
    AttributeRows,
    guessed,
    root_variables,
)

Array = np.ndarray[Any, Any]


def rows_of_all(
    joined: Joined, dataset: Dataset, base: int
) -> Iterator[tuple[str, tuple[AttributeRisk, ...]]]:
    """What each reader names right of every variable, beside a guess, by expected size of the row."""
    sizes = [len(v.codes) for v in dataset.variables]
    codes = np.stack(np.unravel_index(joined.numbers.astype(np.int64), sizes))
    roots = root_variables(dataset)
    found: dict[str, list[AttributeRisk]] = {}
    for place in roots:
        for reader, risk in _of_variable(
            joined, AttributeRows.of(dataset, place, roots), codes, base
        ):
            found.setdefault(reader, []).append(risk)
    for reader, risks in found.items():
        yield reader, tuple(risks)


def _of_variable(
    joined: Joined, rows: AttributeRows, codes: Array, base: int
) -> Iterator[tuple[str, AttributeRisk]]:
    row = np.unique(rows.numbers(codes), return_inverse=True)[1].ravel()
    category = codes[rows.variable]
    grid = np.zeros((len(joined.shown), int(row.max()) + 1, rows.size), dtype=np.int64)
    for release, shown in zip(grid, joined.shown, strict=True):
        np.add.at(release, (row, category), shown)
    people = np.zeros(grid.shape[1:], dtype=np.int64)
    np.add.at(people, (row, category), joined.true[-1])
    single = ((grid > 0).sum(axis=2) == 1) & (grid.sum(axis=2) == base)
    named = grid.argmax(axis=2)
    visible = np.flatnonzero(joined.shown[-1] > 0)
    # The one cell that each row shows in the last release; where a single category can exist it is no secret.
    wanted = np.flatnonzero(single[-1][row[visible]])
    wanted = wanted[rows.possible(codes[:, visible[wanted]]).sum(axis=1) > 1]
    at = row[visible[wanted]]
    last = joined.shown[-1][visible]
    guess = guessed(rows, codes[:, visible], last, wanted, last[wanted])
    expected = rows.expected(codes[:, visible], last, codes[:, visible[wanted]])
    number = np.searchsorted(np.asarray(BINS), expected, side="right") - 1
    # Of two shown equally often, the one of the last release.
    often = ((grid > 0).sum(axis=0) * 2 + (grid[-1] > 0)).argmax(axis=1)
    every = np.ones(at.size, dtype=bool)
    same = single.all(axis=0) & (named == named[-1]).all(axis=0)
    readers = {
        "last release": (named[-1], every),
        "most often shown": (often, every),
        "the same in all": (named[-1], same[at]),
        "no other ever": (named[-1], (grid.any(axis=0).sum(axis=1) == 1)[at]),
    }
    name = rows.dataset.variables[rows.variable].name
    for reader, (said, speaks) in readers.items():
        for place, least in enumerate(BINS):
            here = speaks & (number == place)
            total = int(people[at[here]].sum())
            right = [
                int(people[at[here], words].sum()) / max(total, 1)
                for words in (said[at[here]], guess[here])
            ]
            yield reader, AttributeRisk(name, least, total, *right)
