"""What is stated in public: coarse figures, and rates of errors that are never zero and close to the truth."""

from __future__ import annotations

import hashlib
import hmac
from itertools import combinations, pairwise
from math import ceil, floor, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.audit import attack
from lustrum.audit.belief.posterior import Uniform, weighted
from lustrum.model import InputError
from lustrum.model.finest import FinestCells
from lustrum.model.table import Table, TableAxis
from lustrum.protect.method import released
from lustrum.protect.population import channel as channels
from lustrum.protect.population.channel import (
    ERROR_ENDS,
    SIZE_ENDS,
    SMALL,
    PopulationChannel,
    coarse_rates,
    error_class,
    nearest_rates,
    size_class,
)
from lustrum.protect.population.measure import (
    FEWEST,
    FEWEST_BY_CLASS,
    MeasuredTable,
    report_of,
    tables_of_a_kind,
)
from lustrum.protect.population.method import PopulationResult, ProtectedPopulation
from lustrum.protect.population.public import (
    GROUP_ERROR_STEP,
    SEARCH,
    PublicReport,
    coarse_error,
    coarse_share,
    keyed_shift,
    stated_search,
)
from lustrum.protect.population.readers import KnownTotals
from lustrum.protect.population.search.plan import plan_tables
from lustrum.protect.population.support import Support
from protect.population.worlds import KEY, cells_of, dense, town

SIZES = (12, 8, 6, 4)


@pytest.fixture(scope="module")
def world() -> tuple[np.ndarray, PopulationResult]:
    """Some cells empty, some with a few, some with many people."""
    rng = np.random.default_rng(11)
    means = rng.gamma(0.3, 3.0, SIZES)
    counts = rng.poisson(means)
    method = ProtectedPopulation(sweeps=6, empty_share=0.2)
    return counts, method.protect(cells_of(town(SIZES, zeros=False), counts), KEY)


def tables(true: np.ndarray, shown: np.ndarray, ways: int) -> tuple[np.ndarray, np.ndarray]:
    """All cells of all tables of so many variables, at finest levels."""
    kept = [tuple(set(range(4)) - set(c)) for c in combinations(range(4), ways)]
    return tuple(np.concatenate([a.sum(axis=k).ravel() for k in kept]) for a in (true, shown))  # type: ignore[return-value]


def test_what_is_measured_is_what_the_tables_say() -> None:
    """One variable of three codes beside one that cannot vary: every drawn table can be worked out by hand."""
    dataset = town((2, 3), zeros=False)
    true = np.array([[0, 1, 40], [0, 3, 2]])
    shown = np.array([[3, 0, 45], [0, 3, 6]])
    grid = np.indices(true.shape).reshape(2, -1)
    every, memory = (FinestCells(dataset, grid, a.ravel()) for a in (true, shown))
    wanted = np.zeros((5, len(ERROR_ENDS)), dtype=np.int64)
    for n, s in zip(true.ravel(), shown.ravel(), strict=True):
        wanted[size_class(n, 3), error_class(s - n, 3)] += 1
    for found in tables_of_a_kind(plan_tables(dataset), every, memory, 3, 2):
        assert found.squares == ((true - shown) ** 2).sum()
        assert found.seen == 5
        assert found.transitions.tolist() == wanted.tolist()


def test_beliefs_from_coarse_rates_are_close_to_those_from_all_cells(
    world: tuple[np.ndarray, PopulationResult],
) -> None:
    """Bayes with the true frequencies of every cell of every table, against Bayes with the public rates."""
    counts, result = world
    ways = 3
    true, shown = tables(counts, dense(result.cells), ways)
    channel = result.public.channel(ways)
    gaps = []
    for number in (0, 3, 6):
        values = np.arange(number + 16)
        chance = np.array(
            [np.mean(shown[true == v] == number) if (true == v).any() else 0 for v in values]
        )
        exact = chance / chance.sum()
        belief = weighted(
            np.array([0]), np.array([values[-1]]), Uniform(), np.array([number]), channel
        )
        held = np.zeros(values.size)
        held[belief.values.astype(int)] = belief.probabilities
        gaps.append(float(np.abs(held - exact).sum() / 2))
    assert max(gaps) < 0.3


@pytest.mark.parametrize("variables", [2, 3])
def test_stated_rates_of_small_counts_are_the_true_ones(
    world: tuple[np.ndarray, PopulationResult], variables: int
) -> None:
    """Over all tables of a kind, the stated share of each class of errors, within the coarseness of a power of
    one half: shares of one third and more are stated within a factor of two, others stay small."""
    counts, result = world
    true, shown = tables(counts, dense(result.cells), variables)
    channel = result.public.channel(variables)
    for size in (0, 1):
        chosen = size_class(true, 3) == size
        if chosen.sum() < 100:
            continue
        found = np.bincount(error_class((shown - true)[chosen], 3), minlength=8) / chosen.sum()
        counts_of_class = np.unique(true[chosen])
        rows = channel.transitions(counts_of_class)
        errors = error_class(rows.published - counts_of_class[rows.origin], 3)
        stated = np.bincount(errors, rows.probability, minlength=8) / counts_of_class.size
        large = found >= 1 / 3
        assert (stated[large] > found[large] / 2).all()
        assert (stated[large] < found[large] * 2).all()
        assert np.abs(stated - found).sum() / 2 < 0.25


def test_where_few_cells_are_measured_risk_is_not_understated() -> None:
    """Few large errors must not make a reader's belief about small counts wide."""
    few = np.zeros((5, len(ERROR_ENDS)), dtype=np.int64)
    few[1, 7] = FEWEST_BY_CLASS - 1
    stated = reported(few)
    assert stated.rates == stated.free_rates == nearest_rates(3, 3)
    few[1, 7] //= 3
    # Tables of another kind, of which enough are measured, stand in: those that the search controls err less.
    enough = np.zeros_like(few)
    enough[:, 1] = FEWEST_BY_CLASS
    kinds = {1: [MeasuredTable(9.0, FEWEST, enough)], 4: [MeasuredTable(9.0, FEWEST, few)]}
    made = report_of({"max_variables": 3}, Support(3), 0.5, kinds, {1: kinds[4]}, b"s" * 16)
    for rates in (made.rates, made.free_rates):
        assert [row[0] for row in rates] == [6] * 5
        assert all(row[1] in (0, 1) and row[2:] == SMALL[2:] for row in rates)


def test_no_rate_is_zero_and_few_cells_are_not_told_apart() -> None:
    few = np.zeros((5, len(ERROR_ENDS)), dtype=np.int64)
    few[:, 0] = FEWEST_BY_CLASS - 1
    one, two = (reported(cells) for cells in (few, few[:, ::-1]))
    assert one == two  # too few: taken for the least that there can be
    three = reported(few * 100)
    assert three.rates != one.rates
    assert all(0 <= rate <= max(SMALL) for row in three.rates for rate in row)
    rows = three.channel(1).transitions(np.arange(100))
    assert (rows.probability > 0).all()


def reported(cells: np.ndarray) -> PublicReport:
    kinds = {1: [MeasuredTable(9.0, FEWEST, cells)]}
    return report_of({"max_variables": 3}, Support(3), 0.5, kinds, kinds, b"s" * 16)


def test_no_rate_says_how_rare_an_error_is() -> None:
    """One in a hundred cells of any class may err by any amount without another byte in the report."""
    reports = []
    for erring in (0, 1, 5, 10, 100):
        cells = np.full((5, len(ERROR_ENDS)), erring, dtype=np.int64)
        cells[:, 0] = FEWEST_BY_CLASS - 7 * erring
        reports.append([row[1:] for row in reported(cells).rates])
    assert all(rates == reports[0] for rates in reports[:4])
    assert reports[4] != reports[0]


# --- how counts err


def class_of_size(true: int, base: int) -> int:
    return 0 if true == 0 else 1 + sum(true >= base * end for end in SIZE_ENDS[1:])


def class_of_error(error: int, base: int) -> int:
    if error == 0:
        return 0
    return min(1 + sum(abs(error) >= base * end for end in ERROR_ENDS[1:]), len(ERROR_ENDS) - 1)


@given(st.integers(2, 9), st.integers(0, 10**6))
def test_classes_of_sizes_and_errors(base: int, number: int) -> None:
    for n in (number, number % (30 * base)):
        assert size_class(n, base) == class_of_size(n, base)
        assert error_class(n, base) == error_class(-n, base) == class_of_error(n, base)


def counts_of_classes(base: int) -> list[range]:
    """True counts of each class; of the open one a round of residues at thirty times the base."""
    ends = [0, 1, base, 3 * base, 10 * base]
    kept = [range(a, b) for a, b in pairwise(ends)]
    return [*kept, range(30 * base, 31 * base)]


def numbers_around(true: int, base: int, step: int) -> list[int]:
    reach = base * ERROR_ENDS[-1]
    return [m for m in range(0, true + reach + step, step) if abs(m - true) < reach]


RATES = tuple(tuple((3 * row + 5 * column) % 12 for column in range(8)) for row in range(5))


@pytest.mark.parametrize(("base", "step"), [(3, 3), (3, 1), (2, 2)])
def test_a_rate_is_spread_evenly_over_the_numbers_of_its_class(base: int, step: int) -> None:
    channel = PopulationChannel(base, step, RATES)
    assert channel.reach == base * ERROR_ENDS[-1] - 1
    shares = []
    for rates, kind in zip(RATES, counts_of_classes(base), strict=True):
        found = [class_of_error(m - t, base) for t in kind for m in numbers_around(t, base, step)]
        mean = [found.count(k) / len(kind) for k in range(8)]
        shares.append([0.5**r / n if n else 0.0 for r, n in zip(rates, mean, strict=True)])
    true = [0, 1, base, 3 * base - 1, 3 * base, 10 * base, 40 * base + 1]
    rows = channel.transitions(np.array(true))
    chances = channel.chances(np.array(true)[rows.origin], rows.published)
    assert chances.tolist() == rows.probability.tolist()
    # A step more in the true and the published number of large counts changes no chance.
    assert channel.moved_down(np.array([40 * base + 1])) % step == 0
    assert channel.chances(np.array([5]), np.array([5 + base * ERROR_ENDS[-1]])) == 0
    assert rows.origin.tolist() == sorted(rows.origin.tolist())
    for place, n in enumerate(true):
        numbers = numbers_around(n, base, step)
        wanted = [shares[class_of_size(n, base)][class_of_error(m - n, base)] for m in numbers]
        mine = rows.origin == place
        assert rows.published[mine].tolist() == numbers
        assert np.allclose(rows.probability[mine], np.array(wanted) / sum(wanted), rtol=1e-12)


@pytest.mark.parametrize(("base", "step"), [(3, 3), (3, 1), (5, 5), (2, 2), (7, 7)])
def test_the_least_rates_are_those_of_the_numbers_next_to_a_count(base: int, step: int) -> None:
    wanted = []
    for kind in counts_of_classes(base):
        shares = [0.0] * 8
        for true in kind:
            near = [m for m in numbers_around(true, base, step) if abs(m - true) < step]
            for m in near:
                shares[class_of_error(m - true, base)] += 1 / len(near) / len(kind)
        powers = [floor(-log2(share) + 0.5) if share else 99 for share in shares]
        wanted.append(tuple(p if p <= 4 else s for p, s in zip(powers, SMALL, strict=True)))
    assert nearest_rates(base, step) == tuple(wanted)


def test_shares_below_one_in_32_are_stated_by_a_schedule() -> None:
    # Powers 0 to 4 are measured; from 5 on the schedule says them, whatever the share.
    shares = [1, 0.5, 0.25, 0.125, 1 / 16, 1 / 32, 1 / 64, 0]
    assert coarse_rates(shares, 0.0) == (0, 1, 2, 3, 4, 10, 11, 12)
    assert coarse_rates([1 / 32, 1 / 33, 0, 0, 0, 0, 0, 0], 0.0)[:2] == (6, 6)
    assert coarse_rates([0.3] * 8, 0.0) == (1,) * 8
    assert coarse_rates([0.3] * 8, 0.5) == (2,) * 8
    assert channels._LAST_MEASURED == 4


@pytest.mark.parametrize("highest", [9, None])
def test_the_chance_to_stay_is_the_mean_over_a_range(highest: int | None) -> None:
    channel = PopulationChannel(3, 3, RATES)
    last = 5 + 49 if highest is None else highest
    chances = []
    for true in range(5, last + 1):
        rows = channel.transitions(np.array([true]))
        chances.append(float(rows.probability[rows.published == true].sum()))
    assert channel.stay(5, highest) == pytest.approx(sum(chances) / len(chances), rel=1e-12)


@pytest.mark.parametrize(
    ("base", "step", "rates", "good"),
    [
        (1, 1, RATES, True),
        (3, 3, ((0,) * 8,) * 4 + ((12,) * 8,), True),
        (0, 1, RATES, False),
        (3, 0, RATES, False),
        (3.0, 3, RATES, False),
        (3, True, RATES, False),
        (3, 3, RATES[:4], False),
        (3, 3, (*RATES, RATES[0]), False),
        (3, 3, (*RATES[:4], (1,) * 7), False),
        (3, 3, (*RATES[:4], (13,) * 8), False),
        (3, 3, (*RATES[:4], (-1,) * 8), False),
        (3, 3, (*RATES[:4], (1,) * 7 + (1.0,)), False),
    ],
)
def test_a_channel_of_other_rates_is_refused(
    base: int, step: int, rates: channels.Rates, good: bool
) -> None:
    if good:
        PopulationChannel(base, step, rates)
        return
    with pytest.raises(InputError, match="of a channel"):
        PopulationChannel(base, step, rates)


def test_the_shift_of_a_figure_is_drawn_by_the_key_and_its_name() -> None:
    for key, name in [(b"a", "changed"), (b"a", "errors 1"), (b"b", "changed")]:
        digest = hmac.new(key, f"lustrum public report {name}".encode(), hashlib.sha256).digest()
        wanted = sum(byte / 256 ** (k + 1) for k, byte in enumerate(digest[:4]))
        assert keyed_shift(key, name) == wanted


@given(st.floats(0, 50), st.sampled_from([0.5, 0.25, GROUP_ERROR_STEP]), st.text(max_size=3))
def test_an_error_is_rounded_up_from_the_keyed_beginning(
    measured: float, step: float, name: str
) -> None:
    shift = keyed_shift(b"key", name)
    stated = coarse_error(measured, b"key", name, step)
    assert stated >= max(measured, step)
    assert stated == step * max(1, ceil(measured / step + shift))
    if step == 0.5:
        assert coarse_error(measured, b"key", name) == stated


@given(st.floats(0, 1), st.text(max_size=3))
def test_a_share_is_rounded_to_either_side_and_never_0_or_1(measured: float, name: str) -> None:
    stated = coarse_share(measured, b"key", name)
    steps = floor(measured / 0.05 + keyed_shift(b"key", name))
    assert stated == round(0.05 * min(max(steps, 1), 19), 2)
    assert abs(stated - measured) <= 0.1


def report(**words: object) -> PublicReport:
    made: dict[str, object] = {
        "method": {"max_variables": 2, "base": 3},
        "support": Support(3, empty_shown=False),
        "changed": 0.5,
        "errors": {1: 0.5, 2: 1.0, 4: 2.25},
        "group_errors": {1: 3.0, 2: 4.0},
        "rates": RATES,
        "free_rates": RATES[::-1],
        "known": (KnownTotals(("v0",), (1, 2)),),
    }
    return PublicReport(**{**made, **words})  # type: ignore[arg-type]


def test_a_figure_is_that_of_the_kind_of_table_or_of_the_next_larger_one() -> None:
    public = report()
    assert [public.error(n) for n in range(6)] == [0.5, 0.5, 1.0, 2.25, 2.25, 2.25]
    assert [public.error(n, own_groups=True) for n in (1, 2, 3)] == [3.0, 4.0, 4.0]
    # A bundle of an earlier version states no margins.
    assert [public.margin(n, shown=10**6) for n in (1, 2, 4)] == [1, 2, 5]
    assert public.margin(2, own_groups=True, shown=0) == 8
    margins = {"margins": {1: (1, 2, 3, 4, 5), 3: (2, 4, 6, 8, 10)}, "group_margins": {2: (9,) * 5}}
    stated = report(**margins)
    sizes = (0, 9, 10, 99, 100, 999, 1000, 9999, 10_000, 10**9)
    assert [stated.margin(1, shown=n) for n in sizes] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert [stated.margin(n, shown=500) for n in (1, 2, 3, 7)] == [3, 6, 6, 6]
    assert stated.margin(1, own_groups=True, shown=500) == 9
    assert PublicReport.from_mapping(stated.to_mapping()) == stated
    short = {**stated.to_mapping(), "margins": {"1": [1, 2, 3, 4]}}
    with pytest.raises(InputError, match="other words"):
        PublicReport.from_mapping(short)
    assert public.channel(2) == PopulationChannel(3, 3, RATES)
    assert public.channel(3) == PopulationChannel(3, 3, RATES[::-1])
    assert public.channel(1, own_groups=True) == PopulationChannel(3, 3, RATES[::-1])
    small = report(support=Support(5, small_only=True))
    assert small.channel(1) == PopulationChannel(5, 1, RATES)


def test_a_report_comes_back_from_plain_values() -> None:
    public = report(search=3)
    words = public.to_mapping()
    assert words == {
        "method": {"max_variables": 2, "base": 3},
        "support": {"base": 3, "small_only": False, "empty_shown": False},
        "changed": 0.5,
        "errors": {"1": 0.5, "2": 1.0, "4": 2.25},
        "group_errors": {"1": 3.0, "2": 4.0},
        "rates": [list(row) for row in RATES],
        "free_rates": [list(row) for row in RATES[::-1]],
        "known": [{"by": ["v0"], "values": [1, 2]}],
        "search": 3,
        "margins": {},
        "group_margins": {},
        "largest": None,
        "releases": {
            "version": 2,
            "odds": None,
            "left": {
                "first": {"0": [0, 2], "3": [1, 5], "6": [4, 8]},
                "later": {"0": [0, 5], "3": [0, 8], "6": [1, 11]},
            },
        },
    }
    assert list(report(errors={4: 1.0, 1: 0.5}).to_mapping()["errors"]) == ["1", "4"]
    assert list(report(group_errors={4: 1.0, 1: 0.5}).to_mapping()["group_errors"]) == ["1", "4"]
    assert PublicReport.from_mapping(words) == public
    assert report().search == SEARCH
    del words["search"]
    assert PublicReport.from_mapping(words).search == stated_search(words) == 2
    for name in ("rates", "free_rates"):
        with pytest.raises(InputError, match="other words"):
            PublicReport.from_mapping({**words, name: [row[:4] for row in words[name]]})
    for missing in ("method", "support", "changed", "errors", "rates", "known"):
        with pytest.raises(InputError, match="other words"):
            PublicReport.from_mapping({k: v for k, v in words.items() if k != missing})
    with pytest.raises(InputError, match="other words"):
        PublicReport.from_mapping({**words, "changed": "much"})


def test_a_belief_follows_bayes_within_the_bounds() -> None:
    channel = PopulationChannel(3, 3, nearest_rates(3, 3))
    axis = TableAxis.plain("v", ["a", "b"])
    table = Table((axis,), np.array([3, 6]))
    low, high = np.array([0, 2]), np.array([8, 9])
    release = released(
        table, ProtectedPopulation(), table.values, channel=channel, low=low, high=high
    )
    belief = attack(release)
    for place, shown in enumerate((3, 6)):
        values = np.arange(low[place], high[place] + 1)
        rows = channel.transitions(values)
        chance = np.zeros(values.size)
        for origin, published, probability in zip(
            rows.origin, rows.published, rows.probability, strict=True
        ):
            if published == shown:
                chance[origin] = probability
        held = slice(belief.indptr[place], belief.indptr[place + 1])
        assert belief.values[held].tolist() == values.tolist()
        assert np.allclose(belief.probabilities[held], chance / chance.sum())
