"""Record swapping: keeps the margins it promises, moves whom it should, and says what it did to nobody else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from examples import examples
from lustrum.model import Dataset, InputError, Records, Table, TableQuery
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.swapping import RecordSwapping, estimate_channel
from lustrum.protect.swapping.run import Households, pair_up, quotas, rarest, sizes_of_groups
from lustrum.tabulate import RecordsEngine

AREAS = [f"{r}{d}{a}" for r in "NS" for d in "12" for a in "abc"]
DESCRIPTION: dict[str, Any] = {
    "dataset": {"name": "town", "record_id": "person", "identifiers": ["household"]},
    "variables": [
        {
            "name": "area",
            "codes": AREAS,
            "hierarchies": [
                {
                    "name": "places",
                    "levels": [
                        {
                            "name": "district",
                            "groups": [
                                {"code": f"{r}{d}", "members": [f"{r}{d}{a}" for a in "abc"]}
                                for r in "NS"
                                for d in "12"
                            ],
                        },
                        {
                            "name": "region",
                            "groups": [{"code": r, "members": [f"{r}1", f"{r}2"]} for r in "NS"],
                        },
                    ],
                }
            ],
        },
        {"name": "region", "codes": ["north", "south"]},
        {"name": "tenure", "codes": ["own", "rent"]},
        {"name": "sex", "codes": ["m", "f"]},
        {"name": "age", "codes": ["0", "20", "40", "60"]},
        {"name": "faith", "codes": ["a", "b", "c", "d", "e"]},
    ],
    "measures": [{"name": "income"}],
    "weights": [{"name": "w", "decimals": 1}],
}
TOWN = Dataset.from_mapping(DESCRIPTION)


def town(households: int, seed: int, keyed: bool = True) -> Records:
    """Households of one to four people in areas of different sizes."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 5, households)
    household = np.repeat(rng.permutation(10 * households)[:households], size)
    people = household.size
    share = np.arange(1, 13) / 78
    area = np.repeat(rng.choice(12, households, p=share), size)
    return Records(
        TOWN,
        codes={
            "area": area.astype(np.uint8),
            "region": (area // 6).astype(np.uint8),
            "tenure": np.repeat(rng.integers(0, 2, households), size).astype(np.uint8),
            "sex": rng.integers(0, 2, people).astype(np.uint8),
            "age": rng.integers(0, 4, people).astype(np.uint8),
            "faith": rng.choice(5, people, p=[0.5, 0.3, 0.15, 0.04, 0.01]).astype(np.uint8),
        },
        numbers={"income": rng.integers(0, 1000, people), "w": rng.integers(10, 40, people)},
        ids={"person": rng.permutation(people), "household": household},
        keys=rng.integers(0, 2**64, people, dtype=np.uint64) if keyed else None,
    )


def counted(records: Records, *by: Any, **words: Any) -> Table:
    query = {"dataset": "town", "by": list(by)} | words
    return RecordsEngine(records, workers=1).tabulate(TableQuery.from_mapping(query))


def moved(before: Records, after: Records) -> set[int]:
    changed = before.codes["area"] != after.codes["area"]
    return set(before.ids["household"][changed].tolist())


def traits(records: Records, household: int, *names: str) -> Counter[tuple[int, ...]]:
    rows = records.ids["household"] == household
    return Counter(zip(*(records.codes[n][rows].tolist() for n in names), strict=True))


SPECS = [
    RecordSwapping(geography=("area", "region"), rate=0.3),
    RecordSwapping(geography=("area", "region"), rate=0.2, control=("tenure", "sex")),
    RecordSwapping(
        geography=("area", "region"),
        rate=0.4,
        similar=(("age", "sex"), ("age",)),
        target="risk",
        risk_on=(("age", "faith"), ("sex", "tenure")),
        levels=("region", "district"),
    ),
    RecordSwapping(geography="area", rate=0.5, within="region", control=("tenure",)),
]


@pytest.mark.parametrize("spec", SPECS)
@given(seed=st.integers(0, 10**6), households=st.integers(1, 120))
@settings(max_examples=examples(20, 160))
def test_promised_margins_are_kept_to_the_last_unit(
    spec: RecordSwapping, seed: int, households: int
) -> None:
    before = town(households, seed)
    swapped = spec.swap(before, np.random.default_rng(seed))
    after = swapped.records
    assert all(
        np.array_equal(before.codes[n], after.codes[n])
        for n in before.codes
        if n not in spec.traded
    )
    everything = counted(before, "sex", "age", "faith", "tenure")
    assert np.array_equal(everything.values, counted(after, "sex", "age", "faith", "tenure").values)
    kept = counted(before, "area", *spec.kept_variables)
    assert np.array_equal(kept.values, counted(after, "area", *spec.kept_variables).values)

    def homes(r: Records) -> Counter[int]:
        return Counter(
            dict(zip(r.ids["household"], r.codes["area"].tolist(), strict=True)).values()
        )

    assert homes(before) == homes(after)
    if "region" in spec.traded:
        assert np.array_equal(after.codes["region"], after.codes["area"] // 6)
    else:
        assert np.array_equal(before.codes["area"] // 6, after.codes["area"] // 6)


@pytest.mark.parametrize("spec", SPECS)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(13, 100))
def test_everybody_moves_once_at_most_and_partners_are_alike(
    spec: RecordSwapping, seed: int
) -> None:
    before = town(80, seed)
    swapped = spec.swap(before, np.random.default_rng(seed))
    pairs = swapped.report.pairs
    assert len(set(pairs.ravel().tolist())) == pairs.size
    assert set(pairs.ravel().tolist()) == moved(before, swapped.records)
    area = dict(zip(before.ids["household"].tolist(), before.codes["area"].tolist(), strict=True))
    now = dict(
        zip(before.ids["household"].tolist(), swapped.records.codes["area"].tolist(), strict=True)
    )
    for (one, other), profile in zip(pairs.tolist(), swapped.report.profile, strict=True):
        names = (*spec.control, *(spec.similar[profile] if spec.similar else ()))
        if names:
            assert traits(before, one, *names) == traits(before, other, *names)
        assert (before.ids["household"] == one).sum() == (before.ids["household"] == other).sum()
        assert area[one] != area[other]
        assert (now[one], now[other]) == (area[other], area[one])


@given(seed=st.integers(0, 10**6), rate=st.floats(1e-9, 0.5))
@settings(max_examples=examples(25, 200))
def test_the_rate_is_hit_within_one_pair(seed: int, rate: float) -> None:
    records = town(300, seed)
    spec = RecordSwapping(rate=rate, same_size=False)
    report = spec.swap(records, np.random.default_rng(seed)).report
    assert abs(len(report.pairs) - rate * report.units / 2) < 1
    assert report.missing == 0
    assert report.rate == 2 * len(report.pairs) / 300


def test_every_area_gives_its_share() -> None:
    """Those who look for a partner are the area's quota, rounded up or down."""
    records = town(4000, 5)
    report = RecordSwapping(rate=0.2).swap(records, np.random.default_rng(2)).report
    area = dict(zip(records.ids["household"].tolist(), records.codes["area"].tolist(), strict=True))
    drawn = np.bincount([area[h] for h in report.pairs[:, 0].tolist()], minlength=12)
    there = np.bincount(list(area.values()), minlength=12)
    assert np.all(np.abs(drawn - 0.1 * there) < 1)


def test_rates_of_areas_are_their_own_and_0_leaves_an_area_alone() -> None:
    records = town(6000, 8)
    spec = RecordSwapping(rate=0.1, rates={"S": 0.3, "N1": 0.0}, same_size=False)
    swapped = spec.swap(records, np.random.default_rng(3))
    still = records.codes["area"] < 3
    assert np.array_equal(swapped.records.codes["area"][still], records.codes["area"][still])
    area = dict(zip(records.ids["household"].tolist(), records.codes["area"].tolist(), strict=True))
    there = np.bincount(list(area.values()), minlength=12)
    drawn = np.bincount([area[h] for h in swapped.report.pairs[:, 0].tolist()], minlength=12)
    wanted = there * np.repeat([0.0, 0.05, 0.15, 0.15], 3)
    assert np.all(np.abs(drawn - wanted) < 1)


def test_partners_are_drawn_uniformly() -> None:
    """Chi-square over the partner of one household among 11; false alarm rate one in a million."""
    records = Records(
        TOWN,
        codes={
            "area": np.array([0, *range(1, 12)], np.uint8),
            **{n: np.zeros(12, np.uint8) for n in ("region", "tenure", "sex", "age", "faith")},
        },
        ids={"household": np.arange(12)},
    )
    spec = RecordSwapping(rate=1 / 6)
    seen: Counter[frozenset[int]] = Counter()
    for seed in range(1500):
        (pair,) = spec.swap(records, np.random.default_rng(seed)).report.pairs.tolist()
        seen[frozenset(pair)] += 1
    assert len(seen) == 66
    assert stats.chisquare(list(seen.values())).pvalue > 1e-6


def test_the_unsafe_move_first_and_the_rarest_before_all() -> None:
    records = town(3000, 4)
    risky = RecordSwapping(rate=0.05, target="risk", risk_on=(("age", "faith"),), k=4)
    report = risky.swap(records, np.random.default_rng(0)).report
    area, household = records.codes["area"].astype(np.int64), records.ids["household"]
    cell = (area * 4 + records.codes["age"]) * 5 + records.codes["faith"]
    count = np.bincount(cell)[cell]
    rarest_of = {int(h): int(count[household == h].min()) for h in np.unique(household)}
    unsafe = {h for h, c in rarest_of.items() if c < 4}
    assert report.unsafe == len(unsafe)
    gone = set(report.pairs.ravel().tolist())
    first = [rarest_of[h] for h in report.pairs[:, 0].tolist()]
    assert len(unsafe) > report.wanted
    assert max(first) < 4
    assert min(rarest_of[h] for h in unsafe - gone) >= max(first)
    fewer = RecordSwapping(rate=0.4, target="risk", risk_on=(("age", "faith"),), k=4)
    report = fewer.swap(records, np.random.default_rng(0)).report
    assert unsafe <= set(report.pairs.ravel().tolist())
    assert report.unsafe_left == 0
    assert abs(len(report.pairs) - 600) < 1


def test_the_rate_caps_the_unsafe_unless_all_have_to_move() -> None:
    records = town(2000, 14)
    words: dict[str, Any] = {"target": "risk", "risk_on": (("age", "faith", "sex"),), "k": 5}
    capped = RecordSwapping(rate=0.02, **words).swap(records, np.random.default_rng(0)).report
    assert abs(len(capped.pairs) - 20) < 1
    assert capped.unsafe_left > 0
    spec = RecordSwapping(rate=0.02, all_unsafe=True, same_size=False, **words)
    whole = spec.swap(records, np.random.default_rng(0)).report
    assert whole.unsafe == capped.unsafe
    assert whole.unsafe_left == 0
    assert len(whole.pairs) > 20


def test_who_is_unsafe_at_a_level_leaves_it_and_else_stays_near() -> None:
    records = town(4000, 21)
    spec = RecordSwapping(
        rate=0.0001, target="risk", risk_on=(("age", "faith", "sex"),), k=6, all_unsafe=True,
        levels=("region", "district"),
    )  # fmt: skip
    report = spec.swap(records, np.random.default_rng(1)).report
    area = records.codes["area"].astype(np.int64)
    least = {}
    for level, place in {"region": area // 6, "district": area // 3, "area": area}.items():
        few = rarest(records, (("age", "faith", "sex"),), place)
        units = Households.of(records, "household")
        least[level] = dict(zip(units.ids.tolist(), units.least(few).tolist(), strict=True))
    home = dict(zip(records.ids["household"].tolist(), area.tolist(), strict=True))
    levels: Counter[str] = Counter()
    for one, other in report.pairs.tolist():
        a, b = home[one], home[other]
        if least["region"][one] < 6:
            levels["region"] += 1
            assert a // 6 != b // 6
        elif least["district"][one] < 6:
            levels["district"] += 1
            assert a // 3 != b // 3
            assert a // 6 == b // 6
        else:
            levels["area"] += 1
            assert a != b
            assert a // 3 == b // 3
    assert min(levels.values()) > 0
    assert len(levels) == 3


def test_risk_is_the_smallest_group_over_members_and_combinations() -> None:
    records = town(60, 2)
    place = records.codes["area"].astype(np.int64)
    found = rarest(records, (("age",), ("sex", "faith")), place)
    rows = list(
        zip(*(records.codes[n].tolist() for n in ("area", "age", "sex", "faith")), strict=True)
    )
    for i, (a, g, s, f) in enumerate(rows):
        by_age = sum(r[0] == a and r[1] == g for r in rows)
        by_rest = sum(r[0] == a and r[2:] == (s, f) for r in rows)
        assert found[i] == min(by_age, by_rest)
    weighted = rarest(records, (("age",), ("sex", "faith")), place, "w")
    weights = records.numbers["w"]
    for i, (a, g, s, f) in enumerate(rows):
        by_age = sum(int(w) for r, w in zip(rows, weights, strict=True) if r[:2] == (a, g))
        by_rest = sum(
            int(w) for r, w in zip(rows, weights, strict=True) if r[0] == a and r[2:] == (s, f)
        )
        assert weighted[i] == min(by_age, by_rest)


def test_sums_of_large_weights_are_exact() -> None:
    groups = np.array([0, 0, 1])
    weights = np.array([2**45 + 1, 2**45 + 2, 7])
    assert sizes_of_groups(groups, weights).tolist() == [2**46 + 3, 2**46 + 3, 7]


def test_weights_make_sample_uniques_less_rare() -> None:
    """Two and a half people stand behind each record, so a unique is unsafe for k = 3 and not for 2."""
    records = town(500, 6)
    records = replace(records, numbers={"w": np.full(len(records), 25)})
    for k, some in ((3, True), (2, False)):
        spec = RecordSwapping(rate=0.1, target="risk", risk_on=(("age", "faith"),), k=k, weight="w")
        assert (spec.swap(records, np.random.default_rng(0)).report.unsafe > 0) == some


def test_nobody_moves_who_must_not() -> None:
    records = town(400, 9)
    spec = RecordSwapping(rate=0.8, no_swap_variable="faith", no_swap=("c", "e"), same_size=False)
    keep = np.unique(records.ids["household"])[:50]
    swapped = spec.swap(records, np.random.default_rng(1), keep=keep)
    gone = set(swapped.report.pairs.ravel().tolist())
    flagged = set(records.ids["household"][np.isin(records.codes["faith"], [2, 4])].tolist())
    assert gone
    assert not gone & flagged
    assert not gone & set(keep.tolist())
    assert swapped.report.missing > 0


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("household", ["household", None])
def test_the_order_of_records_is_no_matter(keyed: bool, household: str | None) -> None:
    records = town(500, 12, keyed)
    turn = np.random.default_rng(0).permutation(len(records))
    spec = RecordSwapping(
        household=household, rate=0.3, similar=(("age", "sex"), ("age",)), target="risk",
        risk_on=(("age", "faith"),), levels=("region",),
    )  # fmt: skip
    straight = spec.apply_records(records, np.random.default_rng(7))
    again = spec.apply_records(records, np.random.default_rng(7))
    turned = spec.apply_records(records.take(turn), np.random.default_rng(7))
    assert straight.codes["area"].tobytes() == again.codes["area"].tobytes()
    assert np.array_equal(straight.codes["area"][turn], turned.codes["area"])
    assert not np.array_equal(straight.codes["area"], records.codes["area"])


def test_people_without_households_move_on_their_own() -> None:
    records = town(300, 1)
    spec = RecordSwapping(household=None, rate=0.4, control=("sex", "age"))
    swapped = spec.swap(records, np.random.default_rng(4))
    people = len(records)
    assert swapped.report.units == people
    assert abs(len(swapped.report.pairs) - 0.2 * people) < 1
    before, after = (
        counted(records, "area", "sex", "age"),
        counted(swapped.records, "area", "sex", "age"),
    )
    assert np.array_equal(before.values, after.values)
    assert RecordSwapping(household="") == RecordSwapping(household=None)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(20, 160))
def test_profiles_are_equal_for_the_same_members_only(seed: int) -> None:
    records = town(40, seed)
    units = Households.of(records, "household")
    codes = records.codes["sex"].astype(np.int64) * 4 + records.codes["age"]
    members = [codes[records.ids["household"] == h].tolist() for h in units.ids]
    exact, loose = units.profile(codes), units.profile(codes, same_size=False)
    for i in range(len(units)):
        for j in range(i):
            assert (exact[i] == exact[j]) == (Counter(members[i]) == Counter(members[j]))
            assert (loose[i] == loose[j]) == (set(members[i]) == set(members[j]))


def plain_pairs(turns, quota, home, stratum, group, limit, seed):  # type: ignore[no-untyped-def]
    """The kernel's search with lists and sets, from the same stream of numbers."""
    state = int(seed)
    mask = 2**64 - 1

    def unit() -> float:
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return ((z ^ (z >> 31)) >> 11) * 2.0**-53

    lists = [{s: [u for u in range(len(row)) if row[u] == s] for s in set(row)} for row in stratum]
    partner, by, quota = [-1] * len(home), [-1] * len(home), list(quota)
    made = 0
    for u in turns:
        if partner[u] >= 0 or quota[home[u]] <= 0 or made == limit:
            continue
        for p, strata in enumerate(lists):
            left = strata[stratum[p][u]]
            if all(group[p][v] == group[p][u] for v in left):
                continue
            v = u
            while group[p][v] == group[p][u]:
                v = left[int(unit() * len(left))]
            partner[u], partner[v], by[u] = v, u, p
            quota[home[u]] -= 1
            made += 1
            for gone in (u, v):
                for q, others in enumerate(lists):
                    mine = others[stratum[q][gone]]
                    last = mine.pop()
                    if last != gone:
                        mine[mine.index(gone)] = last
            break
    return partner, by


@given(seed=st.integers(0, 10**6), units=st.integers(1, 60), limit=st.integers(0, 40))
def test_the_compiled_search_is_the_plain_one(seed: int, units: int, limit: int) -> None:
    rng = np.random.default_rng(seed)
    home = rng.integers(0, 4, units)
    stratum = rng.integers(0, 5, (2, units))
    stratum[1] = 0
    group = stratum * 4 + home
    quota = rng.integers(0, 8, 4)
    turns = rng.permutation(units)
    state = rng.integers(0, 2**64, 1, dtype=np.uint64)
    expected = plain_pairs(
        turns.tolist(),
        quota.tolist(),
        home.tolist(),
        stratum.tolist(),
        group.tolist(),
        limit,
        state[0],
    )
    partner, by = pair_up(
        turns, quota.copy(), home, stratum.astype(np.int32), group.astype(np.int32), limit, state
    )
    assert (partner.tolist(), by.tolist()) == expected


@given(wanted=st.lists(st.floats(0, 5), min_size=1, max_size=30), seed=st.integers(0, 10**6))
def test_quotas_are_near_what_is_wanted(wanted: list[float], seed: int) -> None:
    share = np.array(wanted)
    quota = quotas(share, np.random.default_rng(seed))
    assert np.all(np.abs(quota - share) < 1 + 1e-9)
    assert abs(quota.sum() - share.sum()) < 1 + 1e-9
    assert quota.min() >= 0


def test_quotas_are_right_on_average() -> None:
    share = np.array([0.25, 0.25, 1.5, 0.1])
    rng = np.random.default_rng(0)
    mean = np.mean([quotas(share, rng) for _ in range(8_000)], axis=0)
    assert np.allclose(mean, share, atol=0.03)


BOUNDED = [
    ({}, ("sex", "age"), {}, "all"),
    ({}, ("area",), {}, "all"),
    ({}, ("area", "sex"), {}, "none"),
    ({}, ("sex", "age"), {"where": {"area": ["N1"]}}, "none"),
    ({"control": ("sex",)}, ("area", "sex"), {}, "all"),
    ({"control": ("sex",)}, ("sex",), {"where": {"area": ["N1"]}}, "all"),
    ({"control": ("sex",), "same_size": False}, ("area", "sex"), {}, "none"),
    ({"control": ("sex",), "same_size": False}, ("area",), {}, "none"),
    ({"control": ("sex",)}, ("area", "sex"), {"measure": "income"}, "none"),
    ({"control": ("sex",)}, ("area", "sex"), {"weight": "w"}, "none"),
    ({}, ("sex",), {"measure": "income"}, "all"),
    ({"within": "region"}, ({"variable": "area", "level": "region"}, "age"), {}, "all"),
    ({"within": "region"}, ({"variable": "area", "level": "district"}, "age"), {}, "none"),
    (
        {"within": "region"},
        ({"variable": "area", "level": "region", "codes": ["N", "N1a"]}, "age"),
        {},
        "none",
    ),
    ({}, ({"variable": "area", "total": True}, "age"), {}, "total"),
]


@pytest.mark.parametrize(("words", "by", "more", "exact"), BOUNDED)
def test_bounds_hold_the_truth_and_are_exact_where_nothing_can_change(
    words: dict[str, Any], by: tuple[Any, ...], more: dict[str, Any], exact: str
) -> None:
    spec = RecordSwapping(geography=("area", "region"), rate=0.5, **words)
    before = town(400, 3)
    after = spec.apply_records(before, np.random.default_rng(1))
    true, shown = counted(before, *by, **more), counted(after, *by, **more)
    release = spec.publish(shown)
    assert np.array_equal(release.published, shown.values)
    assert np.all((release.least <= true.values) & (true.values <= release.most))
    pinned = release.least == release.most
    if exact == "all":
        assert pinned.all()
        assert np.array_equal(true.values, shown.values)
    elif exact == "none":
        assert not pinned.any()
        assert not np.array_equal(true.values, shown.values)
    else:
        assert pinned[-1].all()
        assert not pinned[:-1].any()
        assert np.array_equal(true.values[-1], shown.values[-1])
        assert not np.array_equal(true.values, shown.values)
    if "measure" in more and exact == "none":
        assert np.all(release.least == -UNBOUNDED)


def test_the_channel_is_the_papers_where_geography_is_and_else_nothing_moves() -> None:
    records = town(100, 3)
    spec = RecordSwapping(rate=0.1, rates={"N": 0.05}, values=6)
    release = spec.publish(counted(records, "area", "sex"))
    assert release.channel.stay(0, 5) == pytest.approx(0.95)
    exact = spec.publish(counted(records, "sex"))
    assert exact.channel.stay(0, None) == 1.0
    rows = exact.channel.transitions(np.array([0, 7, 123456]))
    assert rows.published.tolist() == [0, 7, 123456]
    assert rows.probability.tolist() == [1.0, 1.0, 1.0]
    assert spec.publish(counted(records, "area", "sex", weight="w")).channel is None
    assert not any(char.isdigit() for note in release.notes for char in note)


def test_the_estimated_channel_is_the_share_of_cells() -> None:
    before, after = town(2000, 3), None
    after = RecordSwapping(rate=0.2).apply_records(before, np.random.default_rng(0))
    by = ({"variable": "area", "total": True}, "faith", "age")
    true, shown = counted(before, *by), counted(after, *by)
    channel = estimate_channel(true, shown, cap=4)
    x, y = (np.minimum(t.values[t.inner], 4) for t in (true, shown))
    for i in range(5):
        for j in range(5):
            at = x == i
            assert channel.matrix[i, j] == pytest.approx(
                (y[at] == j).mean() if at.any() else i == j
            )
    with pytest.raises(InputError, match="same categories"):
        estimate_channel(true, counted(after, "area", "faith"))
    with pytest.raises(InputError, match="whole number from 1"):
        estimate_channel(true, shown, cap=0)
    with pytest.raises(InputError, match="whole counts"):
        estimate_channel(counted(before, "sex", weight="w"), counted(after, "sex", weight="w"))


def test_the_report_shows_nothing() -> None:
    report = SPECS[0].swap(town(50, 1), np.random.default_rng(0)).report
    assert repr(report) == "SwapReport(hidden)"


def test_nobody_is_no_problem() -> None:
    nobody = town(5, 1).take(np.zeros(0, np.int64))
    assert len(SPECS[2].apply_records(nobody, np.random.default_rng(0))) == 0
    assert SPECS[2].swap(nobody, np.random.default_rng(0)).report.rate == 0.0


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"rates": {"N": -0.1}}, "number from 0 to 1"),
    ({"geography": ()}, "needs a geography"),
    ({"geography": ("area", "area")}, "twice"),
    ({"similar": (("sex", "sex"),)}, "twice"),
    ({"target": "risk"}, "'risk_on'"),
    ({"no_swap": ("a",)}, "both or neither"),
    ({"control": ("area",)}, "use 'within'"),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES)
def test_a_wrong_parameter_is_one_sentence(words: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        RecordSwapping(**words)


def test_wrong_records_are_one_sentence() -> None:
    records, rng = town(20, 1), np.random.default_rng(0)
    with pytest.raises(InputError, match="no identifier 'home'"):
        RecordSwapping(household="home").apply_records(records, rng)
    with pytest.raises(InputError, match="one place"):
        RecordSwapping(geography="age").apply_records(records, rng)
    with pytest.raises(InputError, match="from coarse to fine"):
        RecordSwapping(levels=("district", "region")).apply_records(records, rng)
    with pytest.raises(InputError, match="from coarse to fine"):
        RecordSwapping(levels=("region",), within="region").apply_records(records, rng)
