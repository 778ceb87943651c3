"""Protected magnitudes: additive, repeatable, safe contributor by contributor, and close."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.demo import businesses, description_path
from lustrum.model import Axis, InputError, Measure, TableQuery
from lustrum.model.records import Records
from lustrum.protect.magnitudes.check import audit_contributors
from lustrum.protect.magnitudes.method import MagnitudeResult, ProtectedMagnitudes
from lustrum.protect.magnitudes.search import rank_cells
from lustrum.protect.magnitudes.units import families_of, record_shares, units_of
from lustrum.protect.population.search.plan import plan_tables
from lustrum.sensitivity import Background, PPercent
from lustrum.tabulate import FrameEngine, RecordsEngine, read_description, records_of
from magnitude_registers import register

KEY = b"sixteen bytes ok"
SPEC = ProtectedMagnitudes(p=10, sweeps=2, public_classes=("size",))

ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 1), st.integers(0, 300)),
    min_size=1,
    max_size=12,
)


@pytest.fixture(scope="module")
def firms() -> Records:
    dataset = read_description(description_path("businesses"))
    return records_of(FrameEngine(businesses(4000), dataset))


@pytest.fixture(scope="module")
def made(firms: Records) -> MagnitudeResult:
    return replace(SPEC, sweeps=10).protect(firms, KEY)


def audited(records: Records, protected: np.ndarray, measure: str = "turnover") -> object:
    return audit_contributors(records, protected, measure, SPEC.factors, SPEC.share)


@settings(max_examples=examples(8, 100), deadline=None)
@given(ROWS)
def test_the_audit_finds_nothing_on_any_register(rows: list[tuple[int, int, int, int]]) -> None:
    records = register(rows)
    found = audited(records, SPEC.protect(records, KEY).records["turnover"])
    assert found.safe, found


def test_the_audit_finds_nothing_in_the_demo(firms: Records, made: MagnitudeResult) -> None:
    for measure in ("turnover", "turnover_export", "employees", "wages_before"):
        found = audited(firms, made.records[measure], measure)
        assert found.safe, found
        assert found.sensitive > 1000


@pytest.mark.parametrize("wrong", ["smaller", "unmoved", "by record"])
def test_the_audit_finds_a_method_that_does_less(firms: Records, wrong: str) -> None:
    protected = SPEC.protect(firms, KEY).records["turnover"].copy()
    true = firms.numbers["turnover"]
    noise = protected - true
    largest = np.argsort(-true)[:50]
    if wrong == "smaller":
        noise[largest] //= 4
    elif wrong == "unmoved":
        noise[largest] = 0
    else:
        # Directions by record and not by owner: the noise of a holding cancels.
        flipped = firms.ids["business_id"] % 2 == 0
        noise[flipped] *= -1
    found = audited(firms, true + noise)
    assert wrong == "by record" or found.unprotected > 0
    assert not found.safe


def test_every_table_is_a_plain_sum_of_the_finest_cells(
    firms: Records, made: MagnitudeResult
) -> None:
    changed = replace(firms, numbers={**firms.numbers, **made.records})
    query = TableQuery("businesses", (Axis("size"), Axis("region")), measure="wages")
    table = RecordsEngine(changed).tabulate(query)
    sums = made.sums
    names = [v.name for v in firms.dataset.variables]
    size, region = sums.codes[names.index("size")], sums.codes[names.index("region")]
    expected = np.zeros(table.shape, dtype=np.int64)
    np.add.at(expected, (size, region), sums.sums["wages"])
    assert np.array_equal(table.values, expected)


def test_parts_add_up_after_protection(made: MagnitudeResult) -> None:
    own = made.records
    assert np.array_equal(own["turnover"], own["turnover_domestic"] + own["turnover_export"])


def test_the_same_key_gives_the_same_sums_in_any_order_of_records(firms: Records) -> None:
    some = firms.take(np.arange(600))
    order = np.random.default_rng(3).permutation(600)
    first = SPEC.protect(some, KEY)
    second = SPEC.protect(some.take(order), KEY)
    assert np.array_equal(first.sums.codes, second.sums.codes)
    for name, sums in first.sums.sums.items():
        assert np.array_equal(sums, second.sums.sums[name])
    other = SPEC.protect(some, b"another 16 bytes")
    assert any(not np.array_equal(s, other.sums.sums[n]) for n, s in first.sums.sums.items())


def test_all_records_of_an_owner_go_the_same_way(firms: Records, made: MagnitudeResult) -> None:
    owner = firms.ids["holding_id"]
    for name in ("turnover_domestic", "wages"):
        sign = np.sign(made.records[name] - firms.numbers[name])
        up = np.bincount(owner, weights=sign == 1)
        down = np.bincount(owner, weights=sign == -1)
        assert ((up == 0) | (down == 0)).all()
        assert (up > 0).any()
        assert (down > 0).any()


def test_the_search_brings_sums_closer(firms: Records) -> None:
    """Relative errors of cells that are not sensitive, with and without the search."""
    errors = [
        replace(SPEC, sweeps=sweeps, search_range=room, leader_part=1.0).protect(firms, KEY).agency
        for sweeps, room in ((1, 0.0), (6, 0.5))
    ]
    for measure in ("turnover", "wages"):
        assert errors[1].of(measure).mean < 0.8 * errors[0].of(measure).mean
        assert errors[1].of(measure).total < 2.5


def test_two_periods_move_together_and_not_equally(firms: Records, made: MagnitudeResult) -> None:
    now, before = firms.numbers["turnover"], firms.numbers["turnover_before"]
    large = (now > 500) & (before > 500)
    first = (made.records["turnover"] / np.maximum(now, 1))[large]
    second = (made.records["turnover_before"] / np.maximum(before, 1))[large]
    assert (np.sign(first - 1) == np.sign(second - 1)).all()
    growth = np.abs(first / second - 1)
    assert (growth > 0).mean() > 0.99
    # Independent directions would leave growth of one contributor about twice as far away.
    assert np.median(growth) < np.median(np.abs(first - 1))


def test_shares_of_one_owner_are_related_but_reach_every_share() -> None:
    words = np.random.default_rng(2).integers(0, 2**64, 40_000, dtype=np.uint64)
    for owner in (0, 1 << 19, (1 << 20) - 1):
        shares = record_shares(np.full(40_000, owner), words)
        assert shares.min() >= 0
        assert shares.max() < 1 << 20
    base = np.random.default_rng(3).integers(0, 1 << 20, 40_000)
    first, second = record_shares(base, words), record_shares(base, words[::-1])
    assert 0.2 < np.corrcoef(first, second)[0, 1] < 0.8
    # Given one of them, the other still covers the whole range (40,000 draws; a miss has no chance in 10**9).
    near = np.abs(first - 50_000) < 40_000
    assert second[near].max() > 0.9 * (1 << 20)


def test_negative_values_and_zeros_are_contributions_too() -> None:
    rows = [(1, 0, 0, -500), (1, 0, 1, 300), (2, 0, 0, -40), (3, 1, 0, 0), (4, 1, 1, -7)]
    records = register(rows)
    protected = SPEC.protect(records, KEY).records["turnover"]
    true = records.numbers["turnover"]
    assert protected[3] == 0
    # The noise of gains and losses of one owner adds up: its net of -200 moves by a tenth of 800 or more.
    net = int((protected - true)[:2].sum())
    assert abs(net) >= 80
    assert np.sign(protected[[0, 1, 2, 4]]).tolist() == [-1, 1, -1, -1]


def test_a_waiver_leaves_a_contribution_as_it_is() -> None:
    records = register([(1, 0, 0, 5000), (2, 0, 0, 900), (3, 1, 1, 800)])
    protected = SPEC.protect(records, KEY, background=Background(waived=[1])).records["turnover"]
    assert protected[0] == 5000
    assert (protected[1:] != records.numbers["turnover"][1:]).all()


@settings(max_examples=examples(15, 120), deadline=None)
@given(ROWS)
def test_the_ranking_agrees_with_the_sensitivity_rule(
    rows: list[tuple[int, int, int, int]],
) -> None:
    records = register(rows)
    plan = plan_tables(records.dataset, 2)
    family = families_of(records.dataset.measures)[0]
    units, order, _ = units_of(
        records, plan.variables, family, SPEC.factors, KEY, room=0, background=Background()
    )
    ranking = rank_cells(plan, units, records.numbers["turnover"][order])
    found = ranking.sensitive((1, 10))
    query = TableQuery("firms", (Axis("activity"), Axis("region")), measure="turnover")
    table = RecordsEngine(records).tabulate(query, ranks=2)
    expected = PPercent(p=10).judge(table).mask
    both = next(t for t in plan.tables if len(t.levels) == 2)
    places = both.places()
    if [level.variable for level in both.levels] != ["activity", "region"]:
        places = places.T
    assert np.array_equal(found[places], expected)


def test_measures_that_add_up_unsaid_are_refused() -> None:
    rows = [(1, 0, 0, 50), (2, 0, 1, 70), (3, 1, 1, 20)]
    plain = tuple(Measure(n, n, holding="owner") for n in ("turnover", "home", "abroad"))
    columns: dict[str, Sequence[int]] = {"home": [30, 70, 5], "abroad": [20, 0, 15]}
    records = register(rows, measures=plain, **columns)
    with pytest.raises(InputError, match="'turnover' equals 'home' and 'abroad' in every record"):
        SPEC.protect(records, KEY)
    turned = {name: [-x for x in column] for name, column in columns.items()}
    with pytest.raises(InputError, match="'turnover' is the negative of 'home' and 'abroad'"):
        SPEC.protect(register(rows, measures=plain, **turned), KEY)
    parts = (replace(plain[0], parts=("home", "abroad")), *plain[1:])
    SPEC.protect(register(rows, measures=parts, **columns), KEY)
    columns["home"] = [30, 70, 6]
    with pytest.raises(InputError, match="'turnover' is not the sum of its parts"):
        SPEC.protect(register(rows, measures=parts, **columns), KEY)


def test_bad_input_is_one_sentence() -> None:
    records = register([(1, 0, 0, 5)])
    with pytest.raises(InputError, match="at least 16 bytes"):
        SPEC.protect(records, b"short")
    with pytest.raises(InputError, match="no measures"):
        SPEC.protect(register([(1, 0, 0, 5)], measures=()), KEY)
    with pytest.raises(InputError, match="at most 22 percent"):
        ProtectedMagnitudes(p=30)
