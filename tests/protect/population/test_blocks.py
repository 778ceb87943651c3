"""Blocks: each is protected by itself, and a last pass brings the tables that they share close to the truth."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import Dataset, DescriptionError, InputError
from lustrum.model.finest import FinestCells
from lustrum.protect.population.blocks.divide import Division
from lustrum.protect.population.blocks.work import BlockWork, Whole
from lustrum.protect.population.method import PopulationResult, ProtectedPopulation
from lustrum.runtime.stop import Stopped, reporting_progress, stopping
from protect.population.worlds import KEY, cells_of, dense, town

METHOD = ProtectedPopulation(sweeps=1, extra_tables=20)
SIZES = (7, 4, 3)


def land(
    sizes: tuple[int, ...] = SIZES, blocks: str | None = "v0:region", regions: int = 3
) -> Dataset:
    """A town whose first variable has regions, and kinds that lie across them; the last area is no region."""
    source = dict(town(sizes).source)
    first = dict(source["variables"][0])
    codes = first["codes"][:-1] if regions > 1 else first["codes"]
    first["hierarchies"] = [
        {
            "name": name,
            "levels": [
                {
                    "name": name,
                    "groups": [
                        {"code": f"{name}{g}", "members": chosen} for g, chosen in enumerate(groups)
                    ],
                }
            ],
        }
        for name, groups in (
            ("region", np.array_split(np.array(codes), max(regions - 1, 1))),
            ("kind", [first["codes"][::2], first["codes"][1::2]]),
        )
    ]
    for hierarchy in first["hierarchies"]:
        for group in hierarchy["levels"][0]["groups"]:
            group["members"] = [str(code) for code in group["members"]]
    head = {"name": "town", **({} if blocks is None else {"blocks": blocks})}
    return Dataset.from_mapping(
        {**source, "dataset": head, "variables": [first, *source["variables"][1:]]}
    )


def population(seed: int, mean: float = 1.2, dataset: Dataset | None = None) -> FinestCells:
    """People in every region."""
    counts = np.random.default_rng(seed).poisson(mean, SIZES)
    return cells_of(land() if dataset is None else dataset, counts, seed)


def same(one: PopulationResult, two: PopulationResult) -> bool:
    """Whether two results are the same, but for how many moves a search counted."""
    arrays = [
        np.array_equal(getattr(one.memory, part), getattr(two.memory, part))
        for part in ("codes", "counts", "keys", "offset", "shift", "odds")
    ]
    reports = replace(one.agency, moves={}) == replace(two.agency, moves={})
    return (
        all(arrays)
        and one.memory.share == two.memory.share
        and one.public == two.public
        and reports
    )


def test_blocks_follow_from_the_description_and_hold_every_cell_once() -> None:
    cells = population(1)
    division = Division.of(cells.dataset)
    assert division is not None
    assert [block.code for block in division.blocks] == ["region0", "region1", "06"]
    codes = []
    for block in division.blocks:
        part = division.part(block, cells)
        assert [v.name for v in part.dataset.variables] == ["v0", "v1", "v2"]
        assert part.dataset.variables[0].codes == tuple(f"0{c}" for c in block.members)
        assert part.possible.all()
        codes.append(division.codes(block, part.codes))
    joined = np.concatenate(codes, axis=1)
    assert np.array_equal(joined[:, np.lexsort(joined[::-1])], cells.codes)
    assert [len(b.members) for b in division.blocks] == [3, 3, 1]
    # The combination that cannot exist concerns the last block alone.
    zeros = [len(division.part(b, cells).dataset.structural_zeros) for b in division.blocks]
    assert zeros == [0, 0, 1]
    assert Division.of(land(blocks=None)) is None
    assert Division.of(land(regions=1)) is None


@pytest.mark.parametrize("word", ["nothing", "v0:county", "v0:"])
def test_blocks_that_are_no_level_are_refused_in_one_sentence(word: str) -> None:
    with pytest.raises(DescriptionError, match="blocks"):
        land(blocks=word)


def test_one_block_is_the_whole_and_gives_the_same_bytes() -> None:
    counts = np.random.default_rng(2).poisson(1.0, SIZES)
    one, none = (
        METHOD.protect(cells_of(land(blocks=b, regions=1), counts), KEY)
        for b in ("v0:region", None)
    )
    assert same(one, none)


@settings(max_examples=examples(3, 60), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.4, 1.5]), st.booleans())
def test_a_block_follows_from_its_own_records_before_the_last_pass(
    seed: int, mean: float, empty: bool
) -> None:
    one, other = population(seed, mean), population(seed + 1, 0.0 if empty else mean)
    division = Division.of(one.dataset)
    assert division is not None
    block = division.blocks[seed % 3]
    mine = division.rows(one) == block.number
    rest = division.rows(other) != block.number
    mixed = FinestCells(
        one.dataset,
        *(
            np.concatenate([a[..., mine], b[..., rest]], axis=-1)
            for a, b in ((one.codes, other.codes), (one.counts, other.counts))
        ),
        np.concatenate([one.keys[mine], other.keys[rest]]),  # type: ignore[index]
    )
    found = []
    for cells in (one, mixed):
        whole = Whole(METHOD, cells.dataset, KEY)
        work = BlockWork(whole, whole.records(block, cells, None, None))
        alone, added, _ = work.search()
        found.append((alone.bits.tolist(), added.tolist(), work.key))
    assert found[0] == found[1]
    assert KEY not in found[0]
    assert len({block.key(KEY) for block in division.blocks}) == 3


@settings(max_examples=examples(4, 80), deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.3, 1.2, 4.0]),
    st.integers(2, 5),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from(["v0:region", "v0", "v1"]),
)
def test_every_cell_of_every_block_shows_an_adjacent_number_after_the_last_pass(
    seed: int, mean: float, base: int, share: float, blocks: str
) -> None:
    cells = population(seed, mean, land(blocks=blocks))
    method = replace(METHOD, base=base, empty_share=share)
    result = method.protect(cells, KEY)
    true, shown = dense(cells), dense(result.cells)
    low, high = result.public.support.bounds(shown)
    possible = np.ones(SIZES, dtype=bool)
    possible[-1, 0] = False
    assert ((low <= true) & (true <= high))[possible].all()
    assert not shown[~possible].any()
    assert (shown % base == 0).all()
    assert ((np.abs(shown - true) < base) | ((true == 0) & (shown == base))).all()
    division = Division.of(cells.dataset)
    assert division is not None
    for block in division.blocks:
        # At least this share of the cells that show the base is empty, as far as the block has candidates.
        whole = Whole(method, cells.dataset, KEY)
        work = BlockWork(whole, whole.records(block, cells, None, None))
        problem = work.prepared.problem
        begun = work.prepared.numbers(problem.up)
        ended = result.memory.counts[division.rows(result.memory) == block.number]
        lacks = [
            problem.empty_share[0] * int((numbers == base).sum())
            - problem.empty_share[1]
            * int(((numbers == base) & (work.prepared.every.counts == 0)).sum())
            for numbers in (begun, ended)
        ]
        assert lacks[1] <= max(lacks[0], 0)
    if share == 0:
        assert not shown[true == 0].any()


def test_the_reports_state_the_errors_of_the_published_cells_table_by_table() -> None:
    cells = population(6, 2.0)
    result = METHOD.protect(cells, KEY)
    error = dense(result.cells) - dense(cells)
    region = np.add.reduceat(error, [0, 3, 6], axis=0)
    kind = np.stack([error[::2].sum(axis=0), error[1::2].sum(axis=0)])
    measured = {}
    for first, array in (("v0", error), ("v0:region", region), ("v0:kind", kind)):
        for kept in product((False, True), repeat=3):
            names = [n for n, keep in zip((first, "v1", "v2"), kept, strict=True) if keep]
            away = tuple(axis for axis, keep in enumerate(kept) if not keep)
            measured[frozenset(names)] = np.abs(array.sum(axis=away))
    found = {
        frozenset(w for w in t.label.split(" x ") if w != "all records"): t
        for t in result.agency.tables
    }
    assert set(found) == set(measured)
    for names, table in found.items():
        assert table.total == measured[names].sum(), names
        assert table.largest == measured[names].max()
        assert table.cells == measured[names].size
    assert sum(sum(row.values()) for row in result.agency.transitions.values()) <= len(
        result.memory
    )
    counted = {(c.variables, c.least): c.cells for c in result.agency.coverage}
    assert all(cells > 0 for cells in counted.values())


def test_the_last_pass_brings_shared_tables_as_close_as_without_blocks() -> None:
    sizes = (48, 5, 4, 3)
    counts = np.random.default_rng(8).poisson(1.0, sizes)
    codes = [f"0{c}" for c in range(48)]

    def totals(blocks: bool, turns: int = 2) -> dict[str, int]:
        source = dict(town(sizes, zeros=False).source)
        groups = [
            {"code": f"r{g}", "members": [str(c) for c in chosen]}
            for g, chosen in enumerate(np.array_split(np.array(codes), 8))
        ]
        levels = [{"name": "region", "groups": groups}]
        first = {**source["variables"][0], "hierarchies": [{"name": "g", "levels": levels}]}
        head = {"name": "town", **({"blocks": "v0:region"} if blocks else {})}
        dataset = Dataset.from_mapping(
            {"dataset": head, "variables": [first, *source["variables"][1:]]}
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("lustrum.protect.population.blocks.whole._TURNS", turns)
            result = ProtectedPopulation(sweeps=8).protect(cells_of(dataset, counts), KEY)
        assert max(t.largest for t in result.agency.tables) <= 30
        return {
            name: sum(t.total for t in result.agency.tables if ("v0" in t.label) == is_own)
            for name, is_own in (("shared", False), ("own", True))
        }

    alone, mended, whole = totals(True, 0), totals(True), totals(False)
    assert mended["shared"] < 0.7 * alone["shared"]
    assert mended["shared"] < 1.4 * whole["shared"]
    assert mended["own"] < 1.1 * whole["own"]


@settings(max_examples=examples(2, 30), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60))
def test_a_search_that_was_killed_goes_on_and_ends_with_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, seed: int, steps: int
) -> None:
    cells = population(seed, 2.0)
    state = tmp_path_factory.mktemp("agency") / "search.state"
    heard: list[str] = []

    def listen(step: str, _share: float) -> None:
        heard.append(step)

    def is_over() -> bool:
        return len([step for step in heard if step == "protecting"]) >= steps

    with reporting_progress(listen), stopping(is_over):
        try:
            METHOD.protect(cells, KEY, state=state, progress=listen)
        except Stopped:
            assert list(state.parent.iterdir()) or steps < 5
    again = METHOD.protect(cells, KEY, state=state)
    assert same(again, METHOD.protect(cells, KEY))
    assert not list(state.parent.iterdir())


def test_several_processes_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = population(31)
    plain = METHOD.protect(cells, KEY)
    monkeypatch.setattr("lustrum.protect.population.blocks.whole._JOINED", 2)
    assert same(plain, METHOD.protect(cells, KEY))
    assert same(METHOD.protect(cells, KEY, processes=2), METHOD.protect(cells, KEY))
    with pytest.raises(InputError, match="description names none"):
        METHOD.protect(population(31, dataset=land(blocks=None)), KEY, processes=2)


def test_a_later_release_goes_on_with_blocks_or_without_from_either() -> None:
    method = replace(METHOD, change_odds=0.9)
    counts = np.random.default_rng(12).poisson(2.0, SIZES)
    for before, now in (("v0:region", "v0:region"), (None, "v0:region"), ("v0:region", None)):
        first_cells = cells_of(land(blocks=before), counts)
        first = method.protect(first_cells, KEY)
        cells = FinestCells(
            land(blocks=now), first_cells.codes, first_cells.counts, first_cells.keys
        )
        kept = method.protect(cells, KEY, previous=first.memory, new_series=True)
        # Without a changed record numbers stay but for those that are drawn, and none moves further.
        apart = kept.agency.differences
        assert apart.changed == apart.certain == 0
        assert kept.agency.changed == 0
        changed = first_cells.counts.copy()
        changed[3] += 4
        keys = first_cells.keys.copy()  # type: ignore[union-attr]
        keys[3] += np.uint64(5)
        later = method.protect(
            FinestCells(land(blocks=now), first_cells.codes, changed, keys),
            KEY,
            previous=kept.memory,
            new_series=True,
        )
        assert later.agency.changed == 1
        assert later.public.support.wide
        low, high = later.public.support.bounds(dense(later.cells))
        true = dense(FinestCells(land(), first_cells.codes, changed))
        assert ((low <= true) & (true <= high)).all()
        by_block = [one.changed for one in later.agency.blocks]
        assert len(by_block) == (0 if now is None else 3)
        assert now is None or sum(by_block) == later.agency.differences.changed


def test_a_release_without_the_divided_variable_cannot_be_continued_by_blocks() -> None:
    few = town((4, 3), zeros=False)
    first = METHOD.protect(cells_of(few, np.full((4, 3), 5)), KEY)
    more = Dataset.from_mapping(
        {
            "dataset": {"name": "town", "blocks": "v2"},
            "variables": [*few.source["variables"], {"name": "v2", "codes": ["20", "21"]}],
        }
    )
    cells = cells_of(more, np.full((4, 3, 2), 3))
    with pytest.raises(InputError, match="no variable 'v2', by which blocks divide"):
        METHOD.protect(cells, KEY, previous=first.memory)
    longer = METHOD.protect(cells_of(town((9, 4, 3), zeros=False), np.full((9, 4, 3), 5)), KEY)
    with pytest.raises(InputError, match="The codes of 'v0' differ"):
        METHOD.protect(population(1), KEY, previous=longer.memory)


def test_cells_that_sums_hold_stay_held_in_their_block() -> None:
    from lustrum.protect.population.start import cell_numbers

    cells = population(21, 2.0)
    one = cells.counts % 3 > 0
    held = cell_numbers(cells.dataset, cells.codes[:, one])[::2]
    result = METHOD.protect(cells, KEY, held=held)
    shown = dense(result.cells)[tuple(cells.codes[:, one][:, ::2].astype(np.intp))]
    assert (shown == cells.counts[one][::2] // 3 * 3 + 3).all()
