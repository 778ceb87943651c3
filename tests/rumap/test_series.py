"""Series of questions: what consistency and additivity are worth, and no bound that is not true."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from examples import examples
from lustrum.audit import PublishedTable, from_tables
from lustrum.audit.knowledge.reduce import narrowed
from lustrum.model import InputError, Table
from lustrum.rumap import Question, grid, series, series_map
from lustrum.rumap.series import (  # the plain attack counts the same questions
    Answering,
    _table,
    same_people,
    with_someone_in,
)

COUNTS = np.random.default_rng(5).negative_binomial(1, 0.2, size=(5, 4))
TABLE = Table.from_counts(COUNTS, names=["area", "faith"])
ROUNDING = grid("random-rounding", base=3)[0]


def test_what_a_series_costs_depends_on_how_it_is_answered() -> None:
    """Redrawn answers leak most; keyed ones less; one protected file has a ceiling; a budget too."""
    methods = [
        Answering(ROUNDING, "redrawn"),
        Answering(ROUNDING, "keyed"),
        Answering(ROUNDING, "once"),
        Answering(grid("differential-privacy", epsilon=1.0)[0], "budget"),
    ]
    found = series_map(TABLE, methods, 10, replications=3)
    assert found.labels[0] == "random-rounding, redrawn"
    redrawn, keyed, once, budget = (found.of(label) for label in found.labels)
    assert redrawn[-1].question == "the table again"
    assert once[0].risk > 0
    for line in (redrawn, keyed, once, budget):
        risks = [p.risk for p in line]
        assert all(a <= b + 1e-12 for a, b in pairwise(risks))
    assert redrawn[-1].risk > keyed[-1].risk > once[-1].risk
    # Keyed rounding moves on after the table was shown; a file that was protected once does not.
    shown = next(i for i, p in enumerate(keyed) if p.question == "the table")
    assert keyed[-1].risk > keyed[shown].risk
    assert once[-1].risk == once[shown].risk
    assert len({p.risk for p in budget}) == 1
    assert budget[-1].utility < budget[0].utility


def test_asking_again_tells_nothing_if_the_same_people_get_the_same_number() -> None:
    questions = series(TABLE, 4)
    again = (*questions, questions[-1], questions[-1])
    keyed = series_map(TABLE, [Answering(ROUNDING, "keyed")], again, replications=4).points
    redrawn = series_map(TABLE, [Answering(ROUNDING, "redrawn")], again, replications=4).points
    assert keyed[-1].risk == keyed[3].risk
    assert redrawn[-1].risk > redrawn[3].risk


@given(st.integers(0, 10_000))
@settings(max_examples=examples(6, 60), deadline=None)
def test_no_bound_of_the_attacker_excludes_the_truth(seed: int) -> None:
    """The same-people rule too is true of every keyed release."""
    rng = np.random.default_rng(seed)
    counts = rng.negative_binomial(1, 0.3, size=(4, 3))
    keys = np.where(counts > 0, rng.integers(0, 2**64, size=(4, 3), dtype=np.uint64), 0)
    base = Table.from_counts(counts, names=["a", "b"], keys=keys.astype(np.uint64))
    questions = series(base, 9)
    tables = [_table(base, q) for q in questions]
    releases = [ROUNDING.apply(t) for t in tables]
    known = from_tables(
        [PublishedTable.hidden(base.axes), *(PublishedTable.of_release(r) for r in releases)]
    )
    rests = [same_people(base.axes, releases[: k + 1]) for k in range(len(releases))]
    ruled = with_someone_in(known, sparse.vstack(rests, format="csr"))
    low, high = narrowed(ruled)
    true = np.concatenate([base.values.ravel(), *(t.values.ravel() for t in tables)])
    assert (low[: true.size] <= true).all()
    assert (true <= high[: true.size]).all()
    plain_low, plain_high = narrowed(known)
    assert ((low >= plain_low) & (high <= plain_high)).all()


def test_different_numbers_of_nested_groups_prove_a_person() -> None:
    """Groups A and A + B show 3 and 6: at least one person is in B."""
    base = Table.from_counts([4, 1], names=["a"])
    questions = (Question("each", {"a": ((0,), (1,))}), Question("both", {"a": ((0, 1),)}))
    tables = [_table(base, q) for q in questions]
    rng = np.random.default_rng(0)
    single, both = (ROUNDING.apply(t, rng) for t in tables)
    single = replace(single, numbers=np.array([3, 0]), least=None, most=None)
    both = replace(both, numbers=np.array([6]), least=None, most=None)
    seen = [PublishedTable.hidden(base.axes)]
    seen += [PublishedTable.of_release(r) for r in (single, both)]
    known = from_tables(seen)
    low, _ = narrowed(known)
    assert low[1] == 0
    low, _ = narrowed(with_someone_in(known, same_people(base.axes, [single, both])))
    assert low[1] == 1


def test_a_method_that_is_not_keyed_cell_by_cell_cannot_answer_keyed() -> None:
    with pytest.raises(InputError, match="same people"):
        Answering(grid("controlled-rounding", base=3)[0], "keyed")
    assert Answering.of(ROUNDING).how == "keyed"
    assert Answering.of(grid("markov-perturbation")[0]).how == "redrawn"
    assert Answering.of(grid("differential-privacy", epsilon=1.0)[0]).how == "budget"


def test_a_series_is_the_same_each_time() -> None:
    first, second = (series_map(TABLE, [ROUNDING], 6, replications=2) for _ in range(2))
    assert first.to_arrow().equals(second.to_arrow())
