"""What is worked out at once or remembered is what the plain ways give, cell by cell and table by table."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from lustrum.answer.figures import expected_figures, possible_tables
from lustrum.answer.figures.counts import _canonical, _one_by_one
from lustrum.counting.chunk import Chunk
from lustrum.counting.engine import KernelEngine, in_threads
from lustrum.counting.marginals import Marginals
from lustrum.counting.structural import PossibleCells, impossible
from lustrum.model import Axis, Category, Dataset, Filter, Release, Table, TableAxis, TableQuery
from lustrum.model.plugins import load
from lustrum.protect import RandomRounding
from lustrum.protect.population.channel import PopulationChannel, coarse_rates
from lustrum.remembered import Remembered
from lustrum.risk import EntropyRisk
from lustrum.risk.table_entropy import PaperEntropyRisk

DATASET = Dataset.from_mapping(
    {
        "dataset": {"name": "town"},
        "variables": [
            {"name": name, "codes": [str(code) for code in range(size)]}
            for name, size in {"a": 4, "b": 3, "c": 5, "d": 2}.items()
        ],
        "structural_zeros": [
            {"reason": "x", "where": {"a": ["0", "1"], "b": ["2"]}},
            {"reason": "y", "where": {"b": ["0", "1"], "c": ["4"]}},
            {"reason": "z", "where": {"a": ["0"], "c": ["4"]}},
        ],
    }
)


SHARES = ((9, 1, 0, 0), (2, 5, 2, 1), (3, 4, 2, 1), (3, 3, 2, 2), (3, 3, 2, 2))
"""Of ten counts of each size, how many err by nothing, and by how much the others do."""
RATES = tuple(coarse_rates([*(n / 10 for n in row), 0, 0, 0, 0], 0.5) for row in SHARES)


def release(rng: np.random.Generator, size: int, base: int, step: int) -> Release:
    shown = step * rng.integers(0, rng.choice([3, 40, 4000]), size)
    axes = (TableAxis.plain("v", [f"{n:05d}" for n in range(size)]),)
    low = np.maximum(shown - rng.integers(0, 90, size), 0)
    structural = (shown == 0) & (rng.random(size) < 0.3)
    return Release(
        axes,
        shown,
        np.full(size, "F"),
        {"method": "made"},
        channel=PopulationChannel(base, step, RATES),
        low=np.where(structural, 0, low),
        high=np.where(structural, 0, shown + rng.integers(0, 90, size)),
        structural=structural,
    )


@pytest.mark.parametrize(
    "measure",
    [
        EntropyRisk(),
        EntropyRisk(weights="l2", split=2),
        EntropyRisk(parts="published", shared="observed"),
        PaperEntropyRisk(),
    ],
    ids=["default", "l2", "published", "paper"],
)
def test_figures_of_all_tables_at_once_are_those_of_one_after_the_other(
    measure: EntropyRisk,
) -> None:
    rng = np.random.default_rng(3)
    utility = load("lustrum.utilities", "hellinger")()
    for size in (1, 2, 3, 17, 300, 9000):
        for base, step in ((3, 3), (5, 1)):
            one = release(rng, size, base, step)
            plain = list(_one_by_one(_canonical(one), measure, utility))
            found = expected_figures(one, measure)
            stated = (found.risk_before, found.risk_after, found.utility)
            if not plain:
                assert stated == (None, None, None)
                continue
            wanted = np.mean(plain, axis=0)
            assert np.abs(np.array(stated) - wanted).max() <= 0.0005 + 1e-9


def test_measures_of_many_tables_agree_to_the_last_digits() -> None:
    rng = np.random.default_rng(5)
    utility = load("lustrum.utilities", "hellinger")()
    counts = rng.integers(0, 30, (40,))
    made = RandomRounding(base=3).apply(Table.from_counts(counts), rng=1)
    tables = list(possible_tables(made))
    stacked = np.stack([table.values for table in tables])
    assert made.channel is not None
    for measure in (EntropyRisk(), PaperEntropyRisk()):
        before, after = measure.of_many(stacked, made.published, made.channel)
        assert before.tolist() == pytest.approx([measure.before(t) for t in tables], abs=1e-12)
        assert after.tolist() == pytest.approx([measure.after(t, made) for t in tables], abs=1e-12)
    worth = utility.of_many(stacked, made.published)
    assert worth.tolist() == pytest.approx([utility.of(t, made) for t in tables], abs=1e-12)


@pytest.mark.parametrize(("base", "step"), [(2, 1), (3, 3), (5, 5), (7, 1)])
def test_chances_pair_by_pair_are_the_entries_of_the_rows(base: int, step: int) -> None:
    rng = np.random.default_rng(base)
    rates = tuple(tuple(int(rate) for rate in row) for row in rng.integers(0, 13, (5, 8)))
    channel = PopulationChannel(base, step, rates)
    true = np.concatenate([np.arange(300), rng.integers(300, 10**6, 50)])
    rows = channel.transitions(true)
    total = np.bincount(rows.origin, rows.probability)
    assert np.abs(total - 1).max() < 1e-12
    known = {
        (int(true[o]), int(p)): q
        for o, p, q in zip(rows.origin, rows.published, rows.probability, strict=True)
    }
    t = rng.choice(true, 2000)
    p = np.maximum(t + rng.integers(-40 * base, 40 * base, t.size), 0)
    wanted = [known.get((int(i), int(j)), 0.0) for i, j in zip(t, p, strict=True)]
    assert channel.chances(t, p).tolist() == wanted
    # From some count on both may be moved down together.
    down = channel.moved_down(np.minimum(t, p))
    assert channel.chances(t - down, p - down).tolist() == wanted
    assert (down > 0).any()


def test_remembered_structural_zeros_are_those_of_every_question() -> None:
    rng = np.random.default_rng(8)
    possible = PossibleCells(DATASET)
    for _ in range(300):
        names = rng.permutation(["a", "b", "c", "d"])[: rng.integers(1, 4)].tolist()
        axes = []
        for name in names:
            codes = rng.permutation(len(DATASET.variable(name).codes)).tolist()
            cut = int(rng.integers(1, len(codes) + 1))
            groups = [tuple(sorted(codes[:cut])), *((code,) for code in codes)]
            axes.append((name, [Category(f"g{i}", "", g) for i, g in enumerate(groups)]))
        passing = {
            v.name: frozenset(
                rng.choice(len(v.codes), rng.integers(1, len(v.codes)), replace=False).tolist()
            )
            for v in DATASET.variables
            if rng.random() < 0.4
        }
        assert np.array_equal(
            possible.impossible(axes, passing), impossible(DATASET, axes, passing)
        )


def test_tables_of_cells_added_up_beforehand_are_those_of_all_cells() -> None:
    rng = np.random.default_rng(2)
    rows = 500
    chunk = Chunk(
        rows,
        {v.name: rng.integers(0, len(v.codes), rows).astype(np.uint8) for v in DATASET.variables},
        keys=rng.integers(0, 2**63, rows).astype(np.uint64) * np.uint64(2),
        counts=rng.integers(0, 9, rows),
    )
    whole, marginals = KernelEngine(DATASET, [chunk], 1), Marginals(DATASET, chunk, 1)
    for by, where in (
        (("a",), ()),
        (("c", "a"), (Filter("d", ("1",)),)),
        (("d", "b", "a"), (Filter("c", ("1", "2")), Filter("a", ("3",)))),
        ((), ()),
    ):
        query = TableQuery("town", tuple(Axis(name, total=True) for name in by), where)
        ours = marginals.of(query).cube(query, unfiltered=True)
        theirs = whole.cube(query, unfiltered=True)
        assert ours.counts.tolist() == theirs.counts.tolist()
        assert ours.keys is not None
        assert theirs.keys is not None
        assert ours.keys.tolist() == theirs.keys.tolist()
        assert marginals.of(query) is marginals.of(query)


def test_a_memory_forgets_what_was_longest_unused_and_what_is_too_large() -> None:
    memory = Remembered[bytes](10, len)
    for key in "abc":
        memory.keep(key, key.encode() * 3)
    assert memory.find("a") == b"aaa"
    memory.keep("d", b"dddd")
    assert [memory.find(key) for key in "abcd"] == [b"aaa", None, b"ccc", b"dddd"]
    memory.keep("a", b"a" * 11)
    assert memory.find("a") is None
    memory.clear()
    assert len(memory) == 0


def test_counting_starts_no_thread_for_a_question_and_raises_what_a_share_raised() -> None:
    def share(number: int) -> int:
        if number == 2:
            raise ValueError("two")
        return number

    assert in_threads(share, []) == []
    assert in_threads(share, [1, 3, 4]) == [1, 3, 4]
    for shares in ([2, 1], [1, 2, 3]):
        with pytest.raises(ValueError, match="two"):
            in_threads(share, shares)
    if hasattr(os, "fork"):  # a child has none of the threads and makes its own
        child = os.fork()
        if child == 0:
            os._exit(0 if in_threads(share, [5, 6, 7]) == [5, 6, 7] else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_a_release_without_a_channel_is_measured_one_by_one() -> None:
    made = replace(
        RandomRounding(base=3).apply(Table.from_counts([[3, 4], [9, 1]]), rng=1), channel=None
    )
    assert expected_figures(made, EntropyRisk()).risk_before is not None
