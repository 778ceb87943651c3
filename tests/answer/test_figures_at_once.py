"""What is worked out at once or remembered is what the plain ways give, cell by cell and table by table."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from lustrum.answer.figures import counts as counts_module
from lustrum.answer.figures import expected_figures, possible_tables

# The quick way beside the plain one.
from lustrum.answer.figures.counts import Figures, _canonical, _one_by_one, _possible_values
from lustrum.model import Axis, Category, Dataset, Filter, Release, Table, TableAxis, TableQuery
from lustrum.model.plugins import load
from lustrum.numeric.counting.cube import PossibleCells, impossible
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.numeric.counting.plan import Chunk
from lustrum.protect import RandomRounding, RoundingChannel
from lustrum.protect.population.channel import PopulationChannel, coarse_rates
from lustrum.public.bundle.numbers import Marginals
from lustrum.risk import EntropyRisk
from lustrum.risk.table_entropy import PaperEntropyRisk
from lustrum.runtime.remembered import Remembered

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
        least=np.where(structural, 0, low),
        most=np.where(structural, 0, shown + rng.integers(0, 90, size)),
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


class Plain:
    """A channel in plain words: nothing is known of it but its chances and what can stand behind a number."""

    def __init__(self, channel: PopulationChannel) -> None:
        self.transitions, self.support = channel.transitions, channel.support


def kinds(rng: np.random.Generator, cells: int, channel: PopulationChannel) -> list[np.ndarray]:
    """Numbers with ranges of which few are alike, small ones and some far beyond where rows repeat."""
    base, step = channel.base, channel.step
    shown = step * rng.choice([0, 1, 2, 3, 40, 4000, 4001], cells)
    low = np.maximum(shown - rng.integers(0, 3, cells) * 40 * base, 0)
    high = shown + rng.integers(0, 3, cells) * 40 * base
    return [shown, low, high]


@pytest.mark.parametrize(("base", "step"), [(3, 3), (5, 1), (4, 4)])
def test_compiled_beliefs_are_those_of_the_plain_code_for_any_channel(
    base: int, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = PopulationChannel(base, step, RATES)
    rng = np.random.default_rng(base)
    for cells in (1, 2, 7, 60):
        for _ in range(6):
            given = kinds(rng, cells, channel)
            with monkeypatch.context() as patch:
                patch.delattr(counts_module, "_lines")  # which plain code would need
                quick = _possible_values(*given, channel)
            # The same with plain code, where large numbers share a row, and where nothing is shared.
            with monkeypatch.context() as patch:
                patch.setattr(counts_module, "believed_counts", lambda *_: np.zeros((0, 0)))
                assert _possible_values(*given, channel).tolist() == quick.tolist()
            assert _possible_values(*given, Plain(channel)).tolist() == quick.tolist()  # type: ignore[arg-type]
            assert ((quick >= given[1]) & (quick <= given[2])).all()


@pytest.mark.parametrize("channel", [None, PopulationChannel(3, 3, RATES), RoundingChannel(3)])
def test_cells_that_look_alike_share_a_belief_in_whatever_order_they_stand(channel: Any) -> None:
    rng = np.random.default_rng(9)
    shown = np.repeat([0, 3, 6], 12)
    low = np.maximum(shown - np.tile([0, 1, 2], 12), 0)
    high = shown + 2
    order = rng.permutation(shown.size)

    def seen(*given: np.ndarray) -> list[list[tuple[int, ...]]]:
        rows = _possible_values(*given, channel).tolist()
        return [sorted(zip(*(g.tolist() for g in given), row, strict=True)) for row in rows]

    assert seen(shown, low, high) == seen(shown[order], low[order], high[order])


def test_what_a_release_does_not_show_has_no_figures_with_a_channel_either() -> None:
    whole = release(np.random.default_rng(4), 12, 3, 3)
    assert whole.structural is not None
    measure = EntropyRisk()
    stated = expected_figures(whole, measure)
    assert stated.risk_before is not None

    def hidden(place: int) -> Release:
        status = whole.status.copy()
        status[place] = "D"
        return replace(whole, status=status)

    nothing = Figures(None, None, None)
    for place in range(12):
        assert expected_figures(hidden(place), measure) == nothing
    assert expected_figures(replace(whole, status=np.full(12, "D")), measure) == nothing
    # A total beside the cells changes nothing; a total alone leaves nothing to look at.
    assert whole.low is not None
    assert whole.high is not None
    parts = whole.axes[0].categories
    every = Category("_T", "all", tuple(range(12)))
    total = whole.published.sum()
    more = replace(
        whole,
        axes=(TableAxis("v", "v", (*parts, every)),),
        numbers=np.append(whole.numbers, total),
        status=np.append(whole.status, "F"),
        least=np.append(whole.least, total),
        most=np.append(whole.most, total),
        structural=np.append(whole.structural, False),
    )
    assert expected_figures(more, measure) == stated
    assert expected_figures(more.take([[12]]), measure) == nothing
    never = replace(whole, structural=np.ones(12, dtype=bool))
    assert expected_figures(never, measure) == nothing
    assert [t.values.tolist() for t in possible_tables(never)] == [[0] * 12] * 8


def test_a_measure_of_single_tables_is_enough_for_figures() -> None:
    class Single:
        def before(self, table: Table) -> float:
            return float(table.values.sum() > 0)

        def after(self, table: Table, release: Release) -> float:
            return 0.25

    found = expected_figures(release(np.random.default_rng(4), 12, 3, 3), Single())
    assert (found.risk_before, found.risk_after) == (1.0, 0.25)


@pytest.mark.parametrize("parts", ["published", "true"])
@pytest.mark.parametrize("shared", ["observed", "expected"])
@pytest.mark.parametrize("most", [2, 7])
@pytest.mark.parametrize("published", [(0, 0, 3), (3, 3, 63), (6, 6, 6), (0, 0, 0)])
@pytest.mark.parametrize("by_pairs", [False, True])
def test_measures_of_all_tiny_tables_agree_with_each_of_them(
    parts: Any, shared: Any, most: int, published: tuple[int, ...], by_pairs: bool
) -> None:
    """Also of tables that cannot stand behind what is published, of which nothing is shown as it is."""
    made = RandomRounding(base=3).apply(Table.from_counts(published), rng=1)
    channel = PopulationChannel(3, 3, ((1, 2, 3, 4, 5, 6, 7, 8),) * 5) if by_pairs else made.channel
    release = replace(made, channel=channel, numbers=np.array(published))
    every = np.array([t for t in product((0, 1, 2, 5, 6, 7)[: most + 1], repeat=3) if sum(t)])
    every = every[(every <= most).all(axis=1)]
    tables = [Table.from_counts(one) for one in every]
    assert channel is not None
    measure = EntropyRisk(parts=parts, shared=shared)
    before, after = measure.of_many(every, release.published, channel)
    assert before.tolist() == pytest.approx([measure.before(t) for t in tables], abs=1e-12)
    assert after.tolist() == pytest.approx([measure.after(t, release) for t in tables], abs=1e-12)


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
    whole = KernelEngine(DATASET, [chunk], 1)
    marginals = Marginals(whole)
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


def test_a_release_without_a_channel_is_measured_one_by_one() -> None:
    made = replace(
        RandomRounding(base=3).apply(Table.from_counts([[3, 4], [9, 1]]), rng=1), channel=None
    )
    assert expected_figures(made, EntropyRisk()).risk_before is not None
