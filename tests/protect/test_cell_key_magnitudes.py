"""The cell key method for magnitudes, and what is divided afterwards."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lustrum.model import Category, Contributions, InputError, Release, Table, TableAxis, TableQuery
from lustrum.model.status import CellStatus
from lustrum.protect.cell_key import CellKey, CellKeyMagnitude, mean, percentages, ratio
from lustrum.protect.cell_key.magnitudes import flex, noise_table
from lustrum.protect.perturbation.design import PerturbationDesign
from lustrum.tabulate import FrameEngine
from small import described
from tabulate.sql_engine import SqlEngine
from tabulate.worlds import SECRET, quick

FALSE_ALARM = 1e-6


def sums(
    rows: list[list[int]], rng: np.random.Generator, decimals: int = 0, ranks: int = 3, **more: Any
) -> Table:
    """A table of one axis from the contributions of each cell."""
    ordered = [sorted(row, key=lambda v: -abs(v)) for row in rows]
    value = np.array([(row + [0] * ranks)[:ranks] for row in ordered], dtype=np.int64)
    holding = np.array([[i if i < len(row) else -1 for i in range(ranks)] for row in ordered])
    return Table(
        axes=(TableAxis.plain("a", [str(i) for i in range(len(rows))]),),
        values=np.array([sum(row) for row in rows], dtype=np.int64),
        kind="magnitude",
        decimals=decimals,
        contributors=np.array([len(row) for row in rows], dtype=np.int64),
        keys=rng.integers(0, 2**64, len(rows), dtype=np.uint64),
        contributions=Contributions(value, holding),
        **more,
    )


VARIANTS = {
    "plain": CellKeyMagnitude(),
    "three ranks": CellKeyMagnitude(ranks=3, shares=(1.0, 0.5, 0.2)),
    "mean": CellKeyMagnitude(ranks=3, scale="mean"),
    "spread": CellKeyMagnitude(ranks=2, scale="spread"),
    "extra": CellKeyMagnitude(extra=1.0, p_percent=10.0),
    "parity": CellKeyMagnitude(parity=True),
}


# Noise


@pytest.mark.parametrize("part", ["all", "even", "odd"])
@pytest.mark.parametrize(("largest", "steps", "variance"), [(3, 4, 1.0), (2, 5, 1.5), (5, 1, 6.0)])
def test_noise_has_its_variance_no_mean_and_the_chances_of_its_table(
    part: str, largest: int, steps: int, variance: float
) -> None:
    table = noise_table(largest, steps, variance, part)
    assert float(table.chances @ (table.sizes / steps) ** 2) == pytest.approx(variance, rel=1e-6)
    words = np.random.default_rng(1).integers(0, 2**64, 200_000, dtype=np.uint64)
    size, sign = table.draw(words)
    times = np.array([(size == s).sum() for s in table.sizes])
    assert times.sum() == words.size
    likely = table.chances * words.size > 5
    assert times[~likely].sum() <= 100
    expected = table.chances[likely] / table.chances[likely].sum() * times[likely].sum()
    assert stats.chisquare(times[likely], expected).pvalue > FALSE_ALARM
    assert stats.binomtest(int((sign > 0).sum()), words.size).pvalue > FALSE_ALARM
    # The word with the other sign bit gives the same size: the mean is 0 exactly.
    other_size, other_sign = table.draw(words ^ np.uint64(1 << 63))
    assert (other_size == size).all()
    assert (other_sign == -sign).all()


def test_no_other_noise_of_that_variance_has_more_entropy() -> None:
    """By scipy: along every direction that keeps sum and variance, entropy falls."""
    table = noise_table(2, 2, 1.0)
    p = table.chances / np.where(table.sizes > 0, 2, 1)  # of each signed value
    both = np.concatenate((p[:0:-1], p))
    values = np.arange(-4, 5) / 2
    rng = np.random.default_rng(0)
    basis = np.stack([np.ones(9), values, values**2])
    for _ in range(200):
        step = rng.normal(size=9)
        step -= basis.T @ np.linalg.lstsq(basis.T, step, rcond=None)[0]
        moved = both + 1e-3 * step / np.abs(step).max()
        assert (moved > 0).all()
        assert stats.entropy(moved) < stats.entropy(both)


def test_the_flex_function_takes_its_values_at_its_points() -> None:
    f, small, large = 1000.0, 0.2, 0.03
    x = np.array([0.0, 1.0, f, 2 * f, 10 * f, 1e12])
    found = flex(x, f, small, large, 3)
    assert found[:3].tolist() == [small] * 3
    t = 2.0
    assert found[3] == pytest.approx(large * (1 + (small * t - large) / large * (2 / (1 + t)) ** 3))
    assert found[5] == pytest.approx(large)
    assert (np.diff(found) <= 0).all()
    assert flex(np.linspace(1, 1e5, 5000), f, small, 0.19, 1).max() <= small


# What is published


@pytest.mark.parametrize("name", list(VARIANTS))
def test_bounds_hold_signs_stay_and_zeros_stay(name: str) -> None:
    rng = np.random.default_rng(3)
    rows = [
        [
            int(v)
            for v in rng.choice([-1, 1, 1, 1]) * rng.geometric(1 / rng.choice([2, 99, 9**6]), n)
        ]
        for n in rng.integers(0, 6, 3000)
    ]
    rows += [[5, -5], [0], [0, 0], [100, -99], [-7], [1], [3, -2, -1]]
    table = sums(rows, rng, decimals=1)
    method = VARIANTS[name]
    release = method.apply(table)
    assert ((release.least <= table.values) & (table.values <= release.most)).all()
    assert (release.published * np.sign(table.values) >= 0).all()
    assert not release.published[table.values == 0].any()
    change = np.abs(release.published - table.values)
    reach = float(method.reach)
    assert (change <= reach * np.abs(table.values) + 0.5).all()
    assert change.max() > 0
    assert release.channel is None


@given(y=st.integers(-(10**12), 10**12), small=st.integers(1, 32))
@quick(50)
def test_the_bounds_are_the_ends_of_what_can_lie_behind(y: int, small: int) -> None:
    method = CellKeyMagnitude(small=small / 100, large=0.01)
    low, high = (int(end[0]) for end in method.bounds(np.array([y])))
    c = method.reach

    def possible(x: int) -> bool:
        return abs(y - x) <= c * abs(x) + Fraction(1, 2)

    assert possible(low) or low == 0
    assert possible(high) or high == 0
    assert not possible(low - 1)
    assert not possible(high + 1)


def test_sums_are_right_on_average() -> None:
    rng = np.random.default_rng(6)
    table = sums([[600, 300, 101]] * 50_000, rng)
    for method in (VARIANTS["plain"], VARIANTS["three ranks"], VARIANTS["parity"]):
        change = method.apply(table).published - 1001
        score = change.mean() / (change.std() / np.sqrt(change.size))
        assert abs(score) < stats.norm.isf(FALSE_ALARM / 2)
        share = change.std() / 600
        assert share == pytest.approx(0.2, rel=0.25 if method.ranks > 1 else 0.02)


def test_exact_noise_by_fractions() -> None:
    """The whole calculation once more with fractions, for cells too large for 64 bits in between."""
    rng = np.random.default_rng(7)
    rows = [[int(v) for v in rng.integers(1, 10**k, 3)] for k in rng.integers(1, 17, 300)]
    table = sums(rows, rng)
    method = CellKeyMagnitude(ranks=2, shares=(1.0, 0.5))
    release = method.apply(table)
    words = method._words(table, 2, None)
    for i, row in enumerate(rows):
        x, noise = sum(row), Fraction(0)
        share = float(flex(np.array([float(x)]), 1000.0, 0.2, 0.05, 3)[0])
        for rank, part in enumerate(sorted(row, reverse=True)[:2]):
            size, sign = method._tables[0].draw(words[rank][i : i + 1])
            exact = share * (1.0, 0.5)[rank] * (int(size[0]) / 4)
            noise += part * int(sign[0]) * Fraction(round(exact * 2**24), 2**24)
        assert int(release.published[i]) == x + round(noise)


def test_halves_go_to_the_even_side() -> None:
    from lustrum.protect.cell_key.magnitudes import _noise

    half = np.array([[1 << 23]])
    for scale, expected in ((1, 0), (3, 2), (5, 2), (7, 4)):
        assert _noise(np.array([[scale]]), half).tolist() == [expected]
        assert _noise(np.array([[scale]]), -half).tolist() == [-expected]
        large = np.array([[scale << 40]])
        assert _noise(large, half).tolist() == [scale << 39]


def test_cells_that_differ_by_one_contributor_never_share_a_coefficient() -> None:
    rng = np.random.default_rng(9)
    base = sums([[10**6]] * 2000, rng, ranks=1)
    method = CellKeyMagnitude(parity=True, steps=4)
    one = method.apply(base).published
    two = method.apply(replace(base, contributors=base.contributors + 1)).published  # type: ignore[operator]
    assert not set((one - 10**6).tolist()) & set((two - 10**6).tolist())


def test_sensitive_cells_always_get_the_extra_noise() -> None:
    rng = np.random.default_rng(10)
    lone = sums([[500, 2]] * 2000, rng)
    method = CellKeyMagnitude(extra=1.0, p_percent=10.0)
    change = np.abs(method.apply(lone).published - 502)
    assert change.min() >= 0.2 * 500 - 1
    shared = sums([[100, 100, 100, 100]] * 2000, rng)
    assert np.abs(method.apply(shared).published - 400).min() == 0


def test_one_of_several_noises_is_not_that_of_another_measure() -> None:
    rng = np.random.default_rng(11)
    table = sums([[10**6]] * 5000, rng)
    published = [
        CellKeyMagnitude().apply(replace(table, provenance={"query": {"measure": name}})).published
        for name in ("turnover", "wages", "turnover")
    ]
    assert abs(np.corrcoef(published[0], published[1])[0, 1]) < 0.1
    assert published[0].tolist() == published[2].tolist()


# The same sum in every table


def test_a_sum_is_the_same_in_every_table_on_every_engine_and_in_every_order() -> None:
    dataset = described(
        "firms",
        {"area": "NSW", "branch": "AB"},
        head={"record_id": "id"},
        measures=[{"name": "turnover", "decimals": 2, "unit": "EUR"}],
    )
    rng = np.random.default_rng(12)
    firms = pa.table(
        {
            "id": np.arange(60),
            "area": rng.choice(["N", "S", "W"], 60),
            "branch": rng.choice(["A", "B"], 60),
            "turnover": [f"{v / 100:.2f}" for v in rng.integers(0, 10**6, 60)],
        }
    )
    frame = FrameEngine(firms, dataset, SECRET)
    turned = FrameEngine(firms.take(pa.array(rng.permutation(60))), dataset, SECRET)
    engines = [frame, turned, SqlEngine(dataset, list(frame.chunks))]
    forms: list[dict[str, Any]] = [
        {"by": ["area", "branch"], "totals": True},
        {"by": ["branch", "area"]},
        {"by": ["area"], "where": {"branch": ["B"]}},
        {"by": ["branch"], "where": {"area": ["S"]}, "totals": True},
    ]
    method = VARIANTS["three ranks"]
    seen: dict[Any, int] = {}
    for engine, form in itertools.product(engines, forms):
        query = {"dataset": "firms", "measure": "turnover"} | form
        table = engine.tabulate(TableQuery.from_mapping(query), ranks=3)
        release = method.apply(table)
        for place in itertools.product(*(range(n) for n in table.shape)):
            cell = frozenset(
                [
                    axis.categories[i].code
                    for axis, i in zip(table.axes, place, strict=True)
                    if axis.categories[i].code != "_T"
                ]
                + [c for codes in form.get("where", {}).values() for c in codes]
            )
            assert seen.setdefault(cell, int(release.published[place])) == release.published[place]
    assert len(seen) == 12


def test_weighted_contributions_count_with_their_weight() -> None:
    rng = np.random.default_rng(13)
    plain = sums([[800, 200]] * 4000, rng, ranks=2)
    assert plain.contributions is not None
    heavy = replace(
        plain,
        values=plain.values * 10,
        contributions=replace(plain.contributions, weight=np.full((4000, 2), 10.0)),
    )
    method = CellKeyMagnitude(small=0.1, large=0.1)
    change = method.apply(heavy).published - heavy.values
    assert change.std() == pytest.approx(0.1 * 8000, rel=0.05)


# Words and mistakes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"small": 0.5}, "below 1, or cells could change their sign"),
        ({"large": 0.3}, "must not be above 'small'"),
        ({"variance": 20.0}, "variance between 0 and 9"),
        ({"ranks": 2, "shares": (1.0,)}, "needs 2 numbers"),
        ({"ranks": 2, "shares": (1.0, 1.5)}, "never rise"),
        ({"extra": 0.5}, "belong together"),
    ],
)
def test_a_wrong_parameter_is_one_clear_sentence(words: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CellKeyMagnitude(**words)


def test_a_table_of_counts_or_without_contributions_or_keys_is_refused() -> None:
    rng = np.random.default_rng(0)
    table = sums([[1, 2]], rng)
    with pytest.raises(InputError, match="this table holds counts"):
        CellKeyMagnitude().apply(Table.from_counts([1]), rng)
    with pytest.raises(InputError, match="largest contributions"):
        CellKeyMagnitude().apply(replace(table, contributions=None))
    with pytest.raises(InputError, match="no record keys"):
        CellKeyMagnitude().apply(replace(table, keys=None))
    with pytest.raises(InputError, match="number of contributors"):
        CellKeyMagnitude(parity=True).apply(replace(table, contributors=None))


# Ratios


def shown(
    values: Any, low: Any, high: Any, status: Any = None, decimals: int = 0, axes: Any = None
) -> Release:
    array = np.array(values, dtype=np.int64)
    if axes is None:
        axes = tuple(
            TableAxis.plain(f"v{i}", [str(k) for k in range(n)]) for i, n in enumerate(array.shape)
        )
    return Release(
        axes=axes,
        numbers=array,
        status=np.full(array.shape, CellStatus.FREE.value) if status is None else np.array(status),
        method={"method": "any"},
        least=np.array(low, dtype=np.int64),
        most=np.array(high, dtype=np.int64),
        decimals=decimals,
    )


@given(data=st.data())
@quick(50)
def test_the_true_ratio_lies_in_the_interval(data: st.DataObject) -> None:
    def draw(least: int) -> tuple[list[int], Release]:
        true = data.draw(st.lists(st.integers(least, 30), min_size=6, max_size=6))
        down = data.draw(st.lists(st.integers(0, 5), min_size=6, max_size=6))
        up = data.draw(st.lists(st.integers(0, 5), min_size=6, max_size=6))
        low = [t - d if least < 0 else max(t - d, 0) for t, d in zip(true, down, strict=True)]
        high = [t + u for t, u in zip(true, up, strict=True)]
        published = [data.draw(st.integers(a, b)) for a, b in zip(low, high, strict=True)]
        return true, shown(published, low, high)

    (x, above), (y, below) = draw(data.draw(st.sampled_from([0, -30]))), draw(0)
    found = ratio(above, below)
    assert not np.isinf([found.value, found.low, found.high]).any()
    for i in range(6):
        assert found.available[i] == (below.published[i] != 0)
        if not found.available[i]:
            assert np.isnan([found.value[i], found.low[i], found.high[i]]).all()
        elif y[i] > 0:
            assert not found.low[i] > x[i] / y[i] + 1e-12
            assert not found.high[i] < x[i] / y[i] - 1e-12


@given(data=st.data(), total=st.booleans())
@quick(50)
def test_the_true_percentage_lies_in_the_interval(data: st.DataObject, total: bool) -> None:
    true = data.draw(st.lists(st.integers(0, 20), min_size=3, max_size=3))
    parts = tuple(Category(str(i), "", (i,)) for i in range(3))
    axis = TableAxis("a", "a", (*parts, Category("_T", "", (0, 1, 2))) if total else parts)
    cells = [*true, sum(true)] if total else true
    low = [max(t - data.draw(st.integers(0, 4)), 0) for t in cells]
    high = [t + data.draw(st.integers(0, 4)) for t in cells]
    published = [data.draw(st.integers(a, b)) for a, b in zip(low, high, strict=True)]
    found = percentages(shown(published, low, high, axes=(axis,)), "a")
    below = published[-1] if total else sum(published)
    assert found.available.all() == (below > 0)
    for i, t in enumerate(cells):
        if below > 0:
            assert found.value[i] == pytest.approx(100 * published[i] / below)
            if sum(true) > 0:
                assert found.low[i] - 1e-9 <= 100 * t / sum(true) <= found.high[i] + 1e-9
            assert found.low[i] >= 0
            assert found.high[i] <= 100
        else:
            assert np.isnan(found.value[i])


def test_suppressed_cells_have_no_ratio_and_spoil_no_other() -> None:
    above = shown([[4, 6]], [[3, 5]], [[5, 7]])
    below = shown([[8, 9]], [[7, 8]], [[9, 10]], [["F", "D"]])
    found = ratio(above, below)
    assert found.available.tolist() == [[True, False]]
    assert found.value[0, 0] == 0.5
    assert np.isnan(found.value[0, 1])
    line = percentages(shown([4, 6], [3, 5], [5, 7], ["F", "D"]), "v0")
    assert not line.available.any()


def test_a_mean_is_a_published_sum_over_a_published_count() -> None:
    rng = np.random.default_rng(15)
    table = sums([[1500, 300], [700], []], rng, decimals=2)
    counts = Table.from_counts([2, 1, 0], ["a"], [["0", "1", "2"]], keys=table.keys)
    total = CellKeyMagnitude().apply(table)
    number = CellKey(ptable=PerturbationDesign(1, 0.5)).apply(counts)
    found = mean(total, number)
    assert np.isnan(found.value[2])
    for i, truth in enumerate([9.0, 7.0]):
        if found.available[i]:
            assert found.value[i] == pytest.approx(total.published[i] / 100 / number.published[i])
            assert found.low[i] <= truth
            assert not found.high[i] < truth
    with pytest.raises(InputError, match="no counts"):
        mean(number, total)
    with pytest.raises(InputError, match="same cells"):
        ratio(number, shown([1], [1], [1]))
    with pytest.raises(InputError, match="no axis 'b'"):
        percentages(number, "b")


def test_a_table_without_variables_is_protected_too() -> None:
    own = Contributions(np.array([900, 80]), np.array([4, 7]))
    table = Table((), np.array(1000), kind="magnitude", contributions=own)
    release = CellKeyMagnitude().apply(table, np.random.default_rng(3))
    assert release.published.shape == release.least.shape == release.most.shape == ()
    assert release.least <= 1000 <= release.most
