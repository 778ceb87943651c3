"""The loops behind protected sums, against plain Python: limits of the p% rule, amounts of one record, owners
that turn, records that move to other cells, and what stays where an earlier release put it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import pytest

from lustrum.model import Dataset, InputError
from lustrum.model.finest import FinestCells
from lustrum.model.records import Records
from lustrum.protect.magnitudes import carriers
from lustrum.protect.magnitudes.carriers import Carried, KeptPlaces, carried_by, own_places
from lustrum.protect.magnitudes.carry_kernel import carry
from lustrum.protect.magnitudes.held import held_cells
from lustrum.protect.magnitudes.kernels import _settle, add_amounts, rank_noise
from lustrum.protect.magnitudes.search import Ranking, relative_scale, search
from lustrum.protect.population.search.layout import TablePlan, plan_tables
from lustrum.protect.population.start import cell_numbers
from lustrum.runtime.stop import Stopped, reporting_progress, stopping
from protect.magnitudes.test_search_by_hand import (
    KEY,
    PLAIN,
    codes_of,
    inside,
    made_units,
    plain_held,
    register,
)


@pytest.fixture(autouse=True)
def _words_that_overflow() -> Iterator[None]:
    """Without the compiler, words that overflow say so."""
    with np.errstate(over="ignore"):
        yield


# --- who is sensitive, and how far noise goes -----------------------------------------------------


def sensitive(total: int, first: int, second: int, share: tuple[int, int]) -> list[bool]:
    """A cell beside an empty one."""
    one = Ranking(*(np.array([0, x]) for x in (total, first, second, total)))
    return one.sensitive(share).tolist()


def test_the_limit_of_p_percent_is_exact_for_small_and_for_huge_sums() -> None:
    # 7 percent of 100 are 7, although 100 * 0.07 is a little more in floating point.
    assert sensitive(107, 100, 0, (7, 100)) == [False, False]
    assert sensitive(106, 100, 0, (7, 100)) == [False, True]
    assert sensitive(1, 1, 0, (7, 100)) == [False, True]
    for power in (45, 52, 55):
        one = 2**power
        assert sensitive(107 * one, 100 * one, 0, (7, 100)) == [False, False]
        assert sensitive(107 * one - 1, 100 * one, 0, (7, 100)) == [False, True]
        assert sensitive(107 * one + 5, 100 * one, 6, (7, 100)) == [False, True]
    assert sensitive(2**62, 2**61, 0, (7, 100)) == [False, False]
    assert sensitive(2**62, 2**61, 2**61, (7, 100)) == [False, True]
    assert sensitive(5 * 10**17, 29 * 10**16, 10**16, (7, 100)) == [False, False]


def test_a_total_of_one_has_a_relative_error_too() -> None:
    assert relative_scale(np.array([[1, 0, 2]]), np.ones((1, 3), dtype=bool)).tolist() == [
        [1.0, 0.0, 0.5]
    ]


def test_of_two_alike_the_first_owner_counts_as_larger() -> None:
    records = register(2)
    plan, _, units, order, _ = made_units(records)
    rng = np.random.default_rng(5)
    values = rng.integers(-1, 2, order.size)
    noise, cut = rng.integers(-9, 10, values.size), rng.integers(0, 2, values.size)
    found = np.zeros((plan.cells, 13), dtype=np.int64)
    found[:, 12] = -1
    rank_noise(plan.layout, units.codes, units.owner, values, noise, cut, found)
    alike = 0
    for cell, rows in inside(plan, codes_of(records)[:, order]):
        owned: dict[int, list[int]] = {}
        for k in rows:
            mine = owned.setdefault(int(units.owner[k]), [0, 0, 0, 0])
            for place, part in enumerate((values[k], noise[k], 1, cut[k])):
                mine[place] += int(part)
        ranked = sorted(
            ((abs(v), n if v >= 0 else -n, count, pieces) for v, n, count, pieces in owned.values() if v),
            key=lambda one: -one[0],
        )  # fmt: skip
        ranked += [(0, 0, 0, 0)] * 2
        assert found[cell, [1, 3, 6, 7]].tolist() == list(ranked[0])
        assert found[cell, [2, 4]].tolist() == list(ranked[1][:2])
        alike += ranked[0][0] == ranked[1][0] > 0
    assert alike > 10


# --- amounts and directions -----------------------------------------------------------------------


@pytest.mark.parametrize("way", [-1, 1])
def test_a_record_takes_the_cheapest_amount_within_its_bounds(way: int) -> None:
    rng = np.random.default_rng(7)
    shown = np.array([[True]])
    for _ in range(200):
        side = np.array([[int(rng.choice([-1, 1]))]])
        low, high = np.sort(rng.integers(0, 12, 2)).reshape(2, 1, 1)
        begin = int(rng.integers(low[0, 0], high[0, 0] + 1))
        slope, bend = rng.normal(0, 9, 1), rng.integers(1, 5, 1).astype(float)
        chosen, change = np.array([begin]), rng.integers(-3, 4, 1).astype(float)
        before = float(change[0])
        cost = _settle(0, way, side, low, high, shown, slope, bend, chosen, change)

        def price(change: float, slope: Any = slope, bend: Any = bend) -> float:
            return change * (2 * float(slope[0]) + float(bend[0]) * change)

        sign = way * int(side[0, 0])
        every = [
            price(before + sign * (a - begin)) for a in range(int(low[0, 0]), int(high[0, 0]) + 1)
        ]
        assert change[0] == before + sign * (chosen[0] - begin)
        assert low[0, 0] <= chosen[0] <= high[0, 0]
        assert cost == pytest.approx(price(float(change[0])), abs=1e-9)
        assert cost <= min(every) + 1e-9


def searched(scale_by: float, sweeps: int = 2) -> tuple[Any, Any]:
    records = register(3)
    plan, family, units, order, secret = made_units(records, "home")
    totals = np.zeros((plan.cells, len(family.shown)))
    values = np.stack([np.abs(records.numbers[m][order]) for m in family.shown], axis=1)
    add_amounts(plan.layout, units.codes, values.astype(float), totals)
    scale = relative_scale(totals, totals > 0) * scale_by
    before = (units.sign.copy(), units.amount.copy())
    search(plan, units, family, scale, secret, KEY, sweeps)
    return before, (units.sign, units.amount)


def test_noise_that_costs_nothing_stays_as_it_was_drawn() -> None:
    before, after = searched(0.0, sweeps=1)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_directions_do_not_depend_on_the_unit_of_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "lustrum.protect.magnitudes.search._prices"
    _, usual = searched(1.0)
    for factor in (2.0**-80, 2.0**80):
        monkeypatch.setattr(module, lambda plan, factor=factor: np.full(plan.cells, factor))
        _, found = searched(1.0)
        if factor < 1:
            tiny = found
    assert all(np.array_equal(a, b) for a, b in zip(tiny, found, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(usual, found, strict=True))


def test_balancing_tells_how_far_it_is_and_stops_when_asked() -> None:
    told: list[tuple[str, float]] = []
    with reporting_progress(lambda step, share: told.append((step, share))):
        searched(1.0)
    assert told == [("balancing abroad", share) for share in (0.0, 0.5, 1.0)]
    with stopping(lambda: True), pytest.raises(Stopped):
        searched(1.0)


# --- records that move ----------------------------------------------------------------------------


def plain_carry(
    tables: Any, cells: Any, amounts: Any, whole: Any, free: Any, candidates: Any, place: Any,
    holders: Any, weights: Any, errors: Any,
) -> None:  # fmt: skip
    for f, i in enumerate(free):
        now = int(place[i])
        if whole[i] and holders[now] < 2:
            continue
        errors[tables[now]] -= amounts[i]

        def cost(cell: int, i: int = int(i)) -> float:
            rows = tables[cell]
            return float((weights[rows] * amounts[i] * (2 * errors[rows] + amounts[i])).sum())

        best = now
        for other in candidates[f]:
            if cost(int(other)) < cost(best):
                best = int(other)
        errors[tables[best]] += amounts[i]
        place[i] = best
        if whole[i]:
            holders[now] -= 1
            holders[best] += 1


def test_every_record_moves_to_the_cheapest_candidate_and_leaves_no_cell_without_a_whole_one() -> (
    None
):
    rng = np.random.default_rng(9)
    plan = plan_tables(PLAIN, 2)
    every = np.stack(np.nonzero(np.ones((4, 3, 2))))
    tables: list[list[int]] = [[] for _ in range(24)]
    for cell, rows in inside(plan, every):
        for k in rows:
            tables[k].append(cell)
    codes = np.ascontiguousarray(every[plan.rows()].T.astype(np.uint32))
    stuck = ties = moves = 0
    for _ in range(4):
        count = 40
        # Whole numbers and halves: costs are exact, and some are alike.
        amounts = rng.integers(0, 3, (count, 2)).astype(float)
        weights = rng.choice([0.0, 0.5, 1.0], (plan.cells, 2))
        errors = rng.integers(-3, 4, (plan.cells, 2)).astype(float)
        whole = rng.random(count) < 0.6
        place = rng.integers(0, 24, count)
        holders = np.bincount(place[whole], minlength=24)
        free = rng.permutation(count)[:30]
        candidates = rng.integers(0, 24, (30, 4))
        stuck += int((holders[place[free]] == 1).sum())
        ties += int((amounts[free] == 0).all(axis=1).sum())
        ours = [place.copy(), holders.copy(), errors.copy()]
        theirs = [place.copy(), holders.copy(), errors.copy()]
        carry(plan.layout, codes, amounts, whole, free, candidates, *ours[:2], weights, ours[2])
        plain_carry(
            tables, codes, amounts, whole, free, candidates, *theirs[:2], weights, theirs[2]
        )
        for mine, plain in zip(ours, theirs, strict=True):
            assert mine.tolist() == plain.tolist()
        moves += int((ours[0] != place).sum())
        tiny = [place.copy(), holders.copy(), errors.copy()]
        carry(
            plan.layout, codes, amounts, whole, free, candidates, *tiny[:2], weights * 2.0**-80, tiny[2]
        )  # fmt: skip
        assert tiny[0].tolist() == ours[0].tolist()
    assert min(stuck, ties, moves) > 5


# --- whole choices --------------------------------------------------------------------------------

CLASSES = Dataset.from_mapping(
    {
        "dataset": {"name": "classes"},
        "variables": [
            {"name": "size", "codes": ["s0", "s1", "s2"], "edges": [0, 10, 50]},
            {"name": "activity", "codes": ["a0", "a1", "a2", "a3"]},
            {"name": "region", "codes": ["r0", "r1"]},
        ],
    }
)
MANY = Dataset.from_mapping(
    {
        "dataset": {"name": "many"},
        "variables": [
            *({"name": f"v{k}", "codes": ["0", "1"]} for k in range(9)),
            {"name": "size", "codes": ["s0", "s1"], "edges": [0, 10]},
        ],
    }
)


class Scene:
    """Records of a dataset, and which of its finest cells show somebody."""

    def __init__(
        self, dataset: Dataset, seed: int, count: int, share: float, idle: int = 2
    ) -> None:
        rng = np.random.default_rng(seed)
        self.dataset, self.count = dataset, count
        sizes = [len(v.codes) for v in dataset.variables]
        self.codes = np.stack([rng.integers(0, n, count) for n in sizes])
        own = np.unique(self.codes, axis=1)
        free = np.stack([rng.integers(0, n, 5) for n in sizes])
        every = np.unique(np.c_[own[:, rng.random(own.shape[1]) < share], free], axis=1)
        self.shown = FinestCells(dataset, every, np.full(every.shape[1], 3))
        self.values = np.rint(rng.lognormal(3, 1.5, (count, 2))).astype(np.int64)
        self.values[rng.random((count, 2)) < 0.2] = 0
        self.values[:idle] = 0
        self.identity = rng.permutation(np.arange(count)).astype(np.uint64)
        self.plan: TablePlan = plan_tables(dataset, 1)

    def carried(self, kept: KeptPlaces | None = None, sweeps: int = 1) -> Carried:
        return carried_by(
            self.plan,
            self.codes,
            self.values,
            self.identity,
            self.shown,
            KEY,
            sweeps=sweeps,
            earlier_places=kept,
        )


SCENES = {
    "plain": (PLAIN, 1, 40, 0.5),
    "cells that are short of records": (PLAIN, 6, 16, 0.4),
    "few cells": (PLAIN, 3, 30, 0.1),
    "classes": (CLASSES, 4, 40, 0.5),
    "many variables": (MANY, 5, 40, 0.4),
    "nobody has to leave": (PLAIN, 7, 40, 1.0, 12),
    # Several cells have no near record left, and take one from anywhere.
    "classes without records": (CLASSES, 3274, 23, 1.0, 6),
    "hardly enough records": (CLASSES, 214, 8, 0.2, 1),
}
CARRIED = {
    "plain": "17d14b6e5a786557",
    "cells that are short of records": "e9f0c67ac31f6654",
    "few cells": "e8248a83287e037d",
    "classes": "cc8d2f07ba67c84a",
    "many variables": "6202bdacb194b85f",
    "nobody has to leave": "0f7d919e90885962",
    "classes without records": "60fdc833fe9c6f99",
    "hardly enough records": "dfaf04ee380c39d1",
}
KEPT = {
    "plain": "b8265dc5b36c0f36",
    "cells that are short of records": "e9f0c67ac31f6654",
    "few cells": "c17e272bc14b6eeb",
    "classes": "8e9a3267921baea9",
    "many variables": "8d3ab14b4459870c",
    "nobody has to leave": "0f7d919e90885962",
    "classes without records": "60fdc833fe9c6f99",
    "hardly enough records": "dfaf04ee380c39d1",
}

SMALL = {0.3: "28a6d69f43cedde4", 0.6: "a008e3521f7b32b0", 1.0: "2a1c805d1ce97462"}


def allowed(scene: Scene, found: Carried) -> None:
    """All that is promised of cells that carry records, whichever they are."""
    valued = (scene.values != 0).any(axis=1)
    whole = found.pieces == 1
    held = np.bincount(found.carrier[whole & valued[found.record]], minlength=len(scene.shown))
    assert held.min() >= 1
    for column in scene.values.T:
        added = np.bincount(found.record, weights=found.values(column), minlength=scene.count)
        assert added.tolist() == column.tolist()
    assert found.record.tolist() == sorted(found.record.tolist())


def digest(found: Carried) -> str:
    words = np.concatenate([found.record, found.piece, found.pieces, found.carrier])
    return hashlib.sha256(words.astype(np.int64).tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("name", SCENES)
def test_the_same_cells_carry_the_same_records_in_every_version(name: str) -> None:
    scene = Scene(*SCENES[name])
    found = scene.carried()
    allowed(scene, found)
    assert digest(found) == CARRIED[name]


@pytest.mark.parametrize("name", SCENES)
def test_records_stay_where_they_were_carried_while_they_can(name: str) -> None:
    scene = Scene(*SCENES[name])
    first = scene.carried()
    number = cell_numbers(scene.dataset, scene.shown.codes)
    kept = KeptPlaces(first.record, number[first.carrier])
    # Nobody that was carried moves again, whatever the search would find now.
    scene.values += 7 * (scene.values > 0)
    second = scene.carried(kept, sweeps=3)
    allowed(scene, second)
    own = own_places(scene.dataset, scene.codes, scene.shown)
    stays = kept.places(own, scene.shown)
    assert stays
    for record, cells in stays.items():
        assert second.carrier[second.record == record].tolist() == cells.tolist()
    # Some return to a cell that shows somebody again, and new ones come.
    fewer = KeptPlaces(first.record[::2], number[first.carrier][::2])
    third = scene.carried(fewer)
    allowed(scene, third)
    for record, cells in fewer.places(own, scene.shown).items():
        assert third.carrier[third.record == record].tolist() == cells.tolist()
    assert digest(third) == KEPT[name]


@pytest.mark.parametrize("name", SCENES)
def test_the_order_of_rows_does_not_decide_which_cell_carries_a_record(name: str) -> None:
    scene, mixed = Scene(*SCENES[name]), Scene(*SCENES[name])
    order = np.random.default_rng(8).permutation(scene.count)
    mixed.codes, mixed.values = scene.codes[:, order], scene.values[order]
    mixed.identity = scene.identity[order]

    def places(own: Scene) -> list[tuple[int, int, int]]:
        found = own.carried(sweeps=2)
        columns = (own.identity[found.record], found.piece, found.carrier)
        return sorted(zip(*(c.tolist() for c in columns), strict=True))

    assert places(mixed) == places(scene)


def test_a_record_is_cut_into_a_piece_for_every_four_usual_contributions_up_to_32() -> None:
    values = np.ones((400, 2), dtype=np.int64)
    values[:, 1] = 0
    values[0, 0], values[1, 0], values[2, 0], values[3, 0] = 100_000, -5000, 1500, 4 * 271
    values[5, 1], values[6, 1] = 9, -1
    size = np.abs(values)
    usual = [size[:, 0].sum() / 400, size[:, 1].sum() / 2]
    expected = [min(32, max(1, int(np.ceil(max(a / usual[0], b / usual[1]) / 4)))) for a, b in size]
    assert carriers._pieces(values).tolist() == expected
    assert sorted(set(expected)) == [1, 2, 5, 32]
    assert carriers._pieces(np.zeros((2, 1), dtype=np.int64)).tolist() == [1, 1]
    small = np.ones((100, 1), dtype=np.int64)
    small[0] = 9  # 9 of 1.08 each
    assert carriers._pieces(small).tolist() == [3, *[1] * 99]


def test_tying_tells_how_far_it_is_and_stops_when_asked() -> None:
    told: list[tuple[str, float]] = []
    scene = Scene(*SCENES["classes"])
    with reporting_progress(lambda step, share: told.append((step, share))):
        scene.carried(sweeps=2)
    assert told == [("tying sums to counts", share) for share in (0.0, 0.5, 1.0)]
    with stopping(lambda: True), pytest.raises(Stopped):
        scene.carried()
    asked: list[int] = []

    def later() -> bool:
        asked.append(1)
        return False

    with stopping(later):
        scene.carried(sweeps=0)
        few = len(asked)
        scene.carried(sweeps=4)
    assert few > 0
    assert len(asked) == 2 * few + 4


def test_a_place_that_is_kept_is_a_cell_that_shows_somebody_whichever_is_first() -> None:
    shown = FinestCells(PLAIN, np.array([[0, 0], [0, 2], [1, 0]]), [3, 3])
    number = cell_numbers(PLAIN, shown.codes)
    record, cell = np.array([0, 0, 1, 1]), number[[0, 1, 1, 1]]
    # The own cell of record 0 is the first that shows somebody; that of record 1 shows nobody.
    found = KeptPlaces(record, cell).places(np.array([0, -1]), shown)
    assert {k: v.tolist() for k, v in found.items()} == {1: [1, 1]}


# --- near cells and prices ------------------------------------------------------------------------


def test_an_error_costs_more_in_tables_of_few_cells() -> None:
    plan = plan_tables(PLAIN, 2)
    prices = carriers._prices(plan)
    for table in plan.tables:
        cells = table.places().ravel()
        assert prices[cells] == pytest.approx((plan.cells / cells.size) ** 1.25)


def test_near_cells_differ_in_all_ways_where_these_are_few_and_in_two_variables_otherwise() -> None:
    way: Any = [((0, 1), False, ("v", None)), ((0, 2), True, ("v", None))]
    assert len(list(carriers._few_coarser([way] * 9))) == 512
    some = list(carriers._few_coarser([way] * 10))
    assert [sum(coarser for _, coarser, _ in one) for one in some[:-2]].count(2) == 45
    assert len(some) == 1 + 10 + 45 + 2
    # At the end classes alone, of which there are none here, and nothing at all.
    assert all(coarser for one in some[-2:] for _, coarser, _ in one)
    dear: Any = [((0, 1), False, ("size", None)), ((1, 2), True, ("size", None))]
    last = list(carriers._few_coarser([*[way] * 9, dear]))[-2:]
    assert [[coarser for _, coarser, _ in one] for one in last] == [
        [True] * 9 + [False],
        [True] * 10,
    ]


def test_classes_of_a_number_are_given_up_last() -> None:
    merged = {"name": "wide", "groups": [{"code": "w", "members": ["s0", "s1"]}]}
    dataset = Dataset.from_mapping(
        {
            "dataset": {"name": "sizes"},
            "variables": [
                {
                    "name": "size",
                    "codes": ["s0", "s1", "s2"],
                    "edges": [0, 10, 50],
                    "hierarchies": [{"name": "wide", "levels": [merged]}],
                },
                {"name": "activity", "codes": ["a0", "a1", "a2", "a3"]},
                {"name": "form", "codes": ["f0", "f1"]},
            ],
        }
    )
    found = list(carriers._neighbourhoods(dataset))
    assert len(found) == 3 * 2 * 2

    def groups(one: Any, name: str) -> int:
        group_of = dict(one.groups)[name]
        return 1 if group_of is None else int(group_of.max()) + 1

    assert [one.keeps_classes for one in found] == [True] * 4 + [False] * 8
    assert all((groups(one, "size") == 3) == one.keeps_classes for one in found)
    # Bits given up: none, form (1), activity (2), both (3).
    ways = [(groups(one, "activity"), groups(one, "form")) for one in found[:4]]
    assert ways == [(4, 2), (4, 1), (1, 2), (1, 1)]
    sizes = [groups(one, "size") for one in found]
    assert sizes == [3, 3, 3, 3, 2, 2, 1, 2, 1, 2, 1, 1]


def test_neighbourhoods_that_lose_as_much_keep_the_order_of_variables() -> None:
    """4 times 3 is 12 and 2 times 6 too, which sums of their logarithms need not say."""
    sizes = {"a": 4, "b": 3, "c": 12, "d": 2, "e": 6}
    dataset = Dataset.from_mapping(
        {
            "dataset": {"name": "products"},
            "variables": [
                {"name": name, "codes": [f"{name}{k}" for k in range(size)]}
                for name, size in sizes.items()
            ],
        }
    )
    found = [
        tuple(name for name, group_of in one.groups if group_of is None)
        for one in carriers._neighbourhoods(dataset)
    ]
    # The choice that gives up the last variable comes first.
    at_twelve = [names for names in found if prod(sizes[n] for n in names) == 12]
    assert at_twelve == [("d", "e"), ("c",), ("a", "b")]
    lost = [prod(sizes[n] for n in names) for names in found]
    assert lost == sorted(lost)


@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_whatever_carries_records_is_allowed_in_many_small_registers(share: float) -> None:
    """Cells and records are few, so that the first cell is robbed, covered and passed over as well."""
    made = hashlib.sha256()
    for seed in range(12):
        scene = Scene(CLASSES if seed % 2 else PLAIN, seed, 14, share, 3)
        valued = int((scene.values != 0).any(axis=1).sum())
        if valued < len(scene.shown):
            with pytest.raises(InputError, match="More cells show somebody"):
                scene.carried()
            continue
        found = scene.carried()
        allowed(scene, found)
        made.update(digest(found).encode())
    assert made.hexdigest()[:16] == SMALL[share]


def test_cells_are_held_only_above_an_average_value_and_within_exact_budgets() -> None:
    every = np.stack(np.nonzero(np.ones((4, 3, 2))))

    def check(used: Any, home: Any) -> int:
        codes = every[:, used]
        count = codes.shape[1]
        numbers = {m.name: np.zeros(count, dtype=np.int64) for m in PLAIN.measures}
        records = Records(
            PLAIN,
            codes={v.name: codes[k].astype(np.uint8) for k, v in enumerate(PLAIN.variables)},
            numbers={**numbers, "home": home[used]},
            ids={"id": np.arange(count), "owner": np.arange(count)},
        )
        cells = FinestCells(PLAIN, codes, np.ones(count, dtype=np.int64))
        found = held_cells(records, ("home",), cells, 2, KEY)
        assert found.tolist() == plain_held(records, ("home",), cells, 2, KEY)
        return found.size

    some, none = np.ones(24, dtype=bool), np.full(24, 10)
    assert check(some, none) == 0  # each is worth exactly the average
    assert check(some, np.where(np.arange(24) % 4, 10, 0)) > 0  # a third more than the average
    assert check(every[0] < 3, np.arange(24)) > 0  # nobody in the last activity
    five = np.arange(24) != 23
    # Two fifths of the half of five cells: one may be chosen.
    assert check(five, np.where(every[0] == 3, 100, 1)) > 0


def test_the_first_cell_gives_records_away_but_never_its_last() -> None:
    plan = plan_tables(PLAIN, 1)
    four = FinestCells(PLAIN, np.array([[0, 1, 2, 3], [0] * 4, [0] * 4]), [3] * 4)

    def held(places: list[int], key: bytes) -> list[int]:
        count = len(places)
        codes = np.array([places, [0] * count, [0] * count])
        values = np.full((count, 1), 5)
        word = np.arange(count, dtype=np.uint64)
        found = carried_by(plan, codes, values, word, four, key, sweeps=1)
        return np.bincount(found.carrier, minlength=4).tolist()

    for number in range(8):
        key = b"%016d" % number
        assert held([0, 0, 0, 0], key) == [1, 1, 1, 1]
        assert held([0, 0, 1, 1], key) == [1, 1, 1, 1]
        with pytest.raises(InputError, match="More cells show somebody"):
            held([0, 0, 0], key)


def test_a_cell_that_gives_records_away_keeps_one_of_its_own() -> None:
    """Records of three cells cover the other cells; none of the three is covered from elsewhere."""
    plan_cells = np.stack(np.nonzero(np.ones((4, 3, 1))))
    shown = FinestCells(PLAIN, plan_cells, np.full(12, 3))
    near = list(carriers._neighbourhoods(PLAIN))
    for number in range(40):
        rng = np.random.default_rng(number)
        start = np.r_[0, 0, 5, 5, 10, 10, rng.choice([0, 5, 10], 6)]
        place = start.copy()
        holders = np.bincount(place, minlength=12)
        word = rng.integers(0, 2**63, 12).astype(np.uint64)
        valued = np.ones(12, dtype=bool)
        codes = plan_cells[:, start]
        carriers._cover(near, PLAIN, codes, word, shown, place, valued, holders, KEY)
        assert holders.tolist() == np.bincount(place, minlength=12).tolist() == [1] * 12
        for cell in (0, 5, 10):
            assert start[place == cell].tolist() == [cell]
