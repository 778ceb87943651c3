from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import CellStatus, Channel, InputError, Release, Table
from lustrum.model.channel import SHLOMO_2015, MatrixChannel, swapping_channel
from lustrum.model.plugins import load
from lustrum.protect import RoundingChannel
from lustrum.risk.r1 import r1
from lustrum.risk.table_entropy import (
    EntropyRisk,
    PaperEntropyRisk,
    RiskTerms,
    entropy_term,
    expected_behind,
    size_term,
    zeros_term,
)

QUICK = settings(deadline=None, max_examples=examples(40, 320))
VILLAGE = [0, 0, 1, 2, 4, 0, 12, 31, 50, 20]
ROUNDED = [0, 0, 0, 3, 3, 0, 12, 30, 51, 21]

tables = st.lists(st.integers(0, 40), min_size=2, max_size=12).filter(any)
weights = (
    st.lists(st.integers(0, 10), min_size=4, max_size=4)
    .filter(any)
    .map(lambda w: tuple(x / sum(w) for x in w))
)
channels: st.SearchStrategy[Channel] = st.one_of(
    st.integers(2, 5).map(RoundingChannel),
    st.just(SHLOMO_2015),
    st.floats(0, 1).map(lambda rate: swapping_channel(rate, 8)),
)


def risk_after(measure: EntropyRisk, true: Any, published: Any, channel: Channel) -> float:
    return measure.combine(measure.terms_of_published(true, published, channel))


def risk_before(measure: EntropyRisk, true: Any) -> float:
    return measure.combine(measure.terms_of_counts(true))


def drawn(true: list[int], channel: Channel, seed: int) -> list[int]:
    """What the channel publishes, cell by cell."""
    rng, rows = np.random.default_rng(seed), channel.transitions(np.array(true))
    out = []
    for cell in range(len(true)):
        mine = rows.origin == cell
        chances = rows.probability[mine] / rows.probability[mine].sum()
        out.append(int(rng.choice(rows.published[mine], p=chances)))
    return out


def loop_terms(true: list[int], published: list[int], channel: Channel) -> RiskTerms:
    """Section 4.2 of the paper, word for word, with loops."""
    n = {i: true.count(i) for i in set(true)}
    rows = channel.transitions(np.array(sorted(n)))
    p: dict[tuple[int, int], float] = {}
    triplets = zip(
        rows.origin.tolist(), rows.published.tolist(), rows.probability.tolist(), strict=True
    )
    for origin, j, probability in triplets:
        p[sorted(n)[origin], j] = probability

    def expected(j: int) -> float:
        return sum(i * n[i] * p.get((i, j), 0.0) for i in n) / published.count(j)

    def part(values: list[float]) -> float:
        total = sum(values)
        if not total:
            return 0.0
        if len(values) == 1:
            return 1.0
        entropy = -sum(v / total * math.log(v / total) for v in values if v)
        return 1 - entropy / math.log(len(values))

    zeros, shown = ({k for k, v in enumerate(x) if v == 0} for x in (true, published))
    both = len(zeros & shown)
    N = sum(true)
    return RiskTerms(
        zeros=(len(zeros) / len(true)) ** (len(zeros | shown) / both) if both else 0.0,
        small=part([expected(j) for j in published if j <= 6]) * channel.stay(0, 6),
        large=part([expected(j) for j in published if j > 6]) * channel.stay(7, None),
        size=-(1 / math.sqrt(N)) * math.log(1 / (math.e * math.sqrt(N))),
    )


def test_the_village_of_the_explanation_has_a_risk_of_0_3967() -> None:
    terms = PaperEntropyRisk().terms_of_counts(VILLAGE)
    assert terms.as_tuple() == pytest.approx((0.3, 0.4666, 0.0909, 0.3098), abs=5e-5)
    assert PaperEntropyRisk().before(Table.from_counts(VILLAGE)) == pytest.approx(0.3967, abs=5e-5)


def test_zeros_threes_and_the_zeros_term_of_the_village_are_those_of_the_explanation() -> None:
    expected = expected_behind(np.array(VILLAGE), np.array(ROUNDED), RoundingChannel(3))
    assert expected[0] == pytest.approx(1 / 3)
    assert expected[3] == pytest.approx(13 / 6)
    terms = PaperEntropyRisk().terms_of_published(VILLAGE, ROUNDED, RoundingChannel(3))
    assert terms.zeros == pytest.approx(0.3 ** (4 / 3))


def test_the_papers_example_of_zeros_doubled_falls_from_0_1_to_0_01() -> None:
    cells = np.arange(100)
    assert zeros_term(cells < 10, cells < 20) == pytest.approx(0.01)
    assert zeros_term(cells < 10, cells < 10) == pytest.approx(0.1)
    assert zeros_term(cells < 0, cells < 10) == 0
    assert zeros_term(cells < 10, cells >= 10) == 0


@QUICK
@given(tables, channels, st.integers(0, 99))
def test_the_terms_after_protection_are_those_of_the_paper(
    true: list[int], channel: Channel, seed: int
) -> None:
    published = drawn(true, channel, seed)
    ours = PaperEntropyRisk().terms_of_published(true, published, channel)
    assert ours.as_tuple() == pytest.approx(
        loop_terms(true, published, channel).as_tuple(), abs=1e-9
    )


@QUICK
@given(tables, weights | st.just("l2"), channels, st.integers(0, 99), st.integers(1, 12))
def test_the_risk_is_bounded_by_0_and_1_before_and_after(
    true: list[int], weighted: Any, channel: Channel, seed: int, split: int
) -> None:
    measure = PaperEntropyRisk(weights=weighted, split=split)
    published = drawn(true, channel, seed)
    assert 0 <= risk_before(measure, true) <= 1 + 1e-12
    assert 0 <= risk_after(measure, true, published, channel) <= 1 + 1e-12
    assert 0 <= r1(true) <= 1 + 1e-12
    assert 0 <= r1(true, "l2") <= 1 + 1e-12


@QUICK
@given(st.integers(1, 500), st.integers(2, 40))
def test_one_populated_cell_is_certain_in_its_part(count: int, cells: int) -> None:
    terms = PaperEntropyRisk().terms_of_counts([count] + [0] * (cells - 1))
    assert (terms.small, terms.large) == ((1.0, 0.0) if count <= 6 else (0.0, 1.0))
    assert r1([count] + [0] * (cells - 1)) >= 0.8


def test_a_large_count_alone_is_a_high_risk_only_without_the_split() -> None:
    alone = [1000] + [0] * 9
    assert risk_before(PaperEntropyRisk(), [1] + [0] * 9) > 0.85
    assert r1(alone) > 0.85
    assert risk_before(PaperEntropyRisk(), alone) < 0.25


@QUICK
@given(st.integers(1, 500), st.integers(2, 40))
def test_equal_counts_have_size_as_their_only_risk(count: int, cells: int) -> None:
    terms = PaperEntropyRisk().terms_of_counts([count] * cells)
    assert (terms.zeros, terms.small, terms.large) == pytest.approx((0, 0, 0), abs=1e-9)
    assert terms.size == size_term(count * cells)


@QUICK
@given(tables, st.integers(2, 50))
def test_without_a_split_small_counts_are_worse_than_large_ones(
    true: list[int], times: int
) -> None:
    assert r1([times * c for c in true]) < r1(true)


@QUICK
@given(st.lists(st.integers(0, 6), min_size=2, max_size=12).filter(lambda t: sum(map(bool, t)) > 1))
def test_with_the_split_small_counts_are_worse_than_the_same_counts_times_100(
    true: list[int],
) -> None:
    # The entropy term of the small part moves to the large one, of less weight and without the zeros.
    assert risk_before(PaperEntropyRisk(), [100 * c for c in true]) < risk_before(
        PaperEntropyRisk(), true
    )


@QUICK
@given(tables, weights | st.just("l2"))
def test_an_empty_cell_more_never_lowers_the_risk(true: list[int], weighted: Any) -> None:
    measure = PaperEntropyRisk(weights=weighted)
    assert risk_before(measure, [*true, 0]) >= risk_before(measure, true) - 1e-12
    assert r1([*true, 0]) >= r1(true) - 1e-12


@QUICK
@given(tables, channels, st.integers(0, 99))
def test_protection_never_raises_zeros_moves_size_or_lifts_entropy_above_its_multiplier(
    true: list[int], channel: Channel, seed: int
) -> None:
    before = PaperEntropyRisk().terms_of_counts(true)
    after = PaperEntropyRisk().terms_of_published(true, drawn(true, channel, seed), channel)
    assert after.zeros <= before.zeros + 1e-12
    assert after.size == before.size
    assert after.small <= channel.stay(0, 6) + 1e-12
    assert after.large <= channel.stay(7, None) + 1e-12
    if before.small >= channel.stay(0, 6) and before.large >= channel.stay(7, None):
        assert PaperEntropyRisk().combine(after) <= PaperEntropyRisk().combine(before) + 1e-12


def test_property_e_fails_for_even_counts_published_in_unexpected_numbers() -> None:
    measure, rounding = PaperEntropyRisk(), RoundingChannel(3)
    true, published = [5, 5, 5, 5], [6, 6, 6, 3]
    assert expected_behind(np.array(true), np.array(published), rounding) == pytest.approx(
        [40 / 9, 40 / 9, 40 / 9, 20 / 3]
    )
    assert risk_after(measure, true, published, rounding) > risk_before(measure, true)
    shared = PaperEntropyRisk(shared="expected")
    assert risk_after(shared, true, published, rounding) == pytest.approx(risk_before(shared, true))


def test_property_e_fails_when_a_seven_becomes_a_small_part_of_its_own() -> None:
    true, published = [7, 400, 500, 600], [6, 399, 501, 600]
    rounding = RoundingChannel(3)
    rise = [
        risk_after(m, true, published, rounding) - risk_before(m, true)
        for m in (PaperEntropyRisk(), PaperEntropyRisk(parts="true"))
    ]
    assert rise[0] > 0.2
    assert rise[1] < 0


@st.composite
def expected_numbers(draw: st.DrawFn) -> tuple[list[int], list[int], MatrixChannel]:
    """Counts published exactly as often as a channel makes one expect."""
    size, quarters = draw(st.integers(2, 5)), 4
    true: list[int] = []
    published: list[int] = []
    matrix = []
    for value in range(size):
        row = draw(st.lists(st.integers(0, size - 1), min_size=quarters, max_size=quarters))
        times = draw(st.integers(0, 3))
        true += [value] * (quarters * times)
        published += row * times
        matrix.append([row.count(j) / quarters for j in range(size)])
    if not any(true):
        true += [size - 1] * quarters
        published += row
    return true, published, MatrixChannel(matrix)


@QUICK
@given(expected_numbers(), weights | st.just("l2"))
def test_property_e_holds_for_expected_numbers_without_a_split(
    case: tuple[list[int], list[int], MatrixChannel], weighted: Any
) -> None:
    true, published, channel = case
    for shared in ("observed", "expected"):
        measure = PaperEntropyRisk(weights=weighted, split=50, shared=shared)  # type: ignore[arg-type]
        after = measure.terms_of_published(true, published, channel)
        assert entropy_term(expected_behind(np.array(true), np.array(published), channel)) <= (
            entropy_term(true) + 1e-9
        )
        assert measure.combine(after) <= risk_before(measure, true) + 1e-9


@QUICK
@given(tables, st.integers(0, 99))
def test_a_channel_that_changes_nothing_changes_no_risk(true: list[int], seed: int) -> None:
    identity = swapping_channel(0.0, 5)
    assert drawn(true, identity, seed) == true
    for measure in (PaperEntropyRisk(), EntropyRisk()):
        assert risk_after(measure, true, true, identity) == pytest.approx(
            risk_before(measure, true)
        )


def test_a_part_of_large_counts_keeps_the_mean_stay_from_the_first_large_count_on() -> None:
    """A channel that moves 3 for certain and leaves 4 alone tells a split of 2 from one of 3."""
    channel = MatrixChannel(
        [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 1]]
    )
    terms = EntropyRisk(split=2).terms_of_published([1, 2, 3, 4], [1, 2, 4, 4], channel)
    assert channel.stay(3, None) == 0.5
    assert terms.large == pytest.approx(entropy_term([3.5, 3.5]) * 0.5)
    lopsided = EntropyRisk(split=2).terms_of_published([1, 2, 4], [1, 2, 4], channel)
    assert lopsided.large == pytest.approx(0.5)


def test_people_are_shared_also_where_less_than_one_cell_is_expected() -> None:
    """Base 3: of a 1 and an 8, a third of a cell goes to 3; a reader then expects 1 behind it."""
    expected = expected_behind(np.array([1, 8]), np.array([3, 9]), RoundingChannel(3), "expected")
    assert expected == pytest.approx([1.0, 8.0])


def test_the_largest_published_value_holds_nobody_where_no_count_leads_near_it() -> None:
    assert expected_behind(np.array([3, 3]), np.array([3, 60]), RoundingChannel(3)).tolist() == [
        6,
        0,
    ]
    shared = expected_behind(np.array([3, 3]), np.array([3, 60]), RoundingChannel(3), "expected")
    assert shared.tolist() == [3, 60]


def test_a_published_value_that_nothing_leads_to_holds_nobody_or_itself() -> None:
    true, published = np.array([3, 30]), np.array([3, 60])
    assert expected_behind(true, published, RoundingChannel(3)).tolist() == [3, 0]
    assert expected_behind(true, published, RoundingChannel(3), "expected").tolist() == [3, 60]


def test_the_l2_norm_is_over_the_root_of_the_number_of_terms() -> None:
    terms = RiskTerms(0.1, 0.2, 0.3, 0.4)
    assert PaperEntropyRisk(weights="l2").combine(terms) == pytest.approx(math.sqrt(0.30) / 2)
    three = [(c == 0) for c in VILLAGE].count(True) / 10, entropy_term(VILLAGE), size_term(120)
    assert r1(VILLAGE, "l2") == pytest.approx(math.sqrt(sum(t**2 for t in three) / 3))


def test_structural_zeros_are_left_out_before_and_after() -> None:
    plain = Table.from_counts([4, 2, 0])
    padded = Table(
        axes=Table.from_counts([4, 2, 0, 0]).axes,
        values=np.array([4, 2, 0, 0]),
        structural=np.array([False, False, False, True]),
    )
    assert PaperEntropyRisk().before(padded) == PaperEntropyRisk().before(plain)
    releases = [
        Release(
            t.axes,
            np.resize([3, 3, 0, 0], t.shape),
            np.full(t.shape, CellStatus.FREE.value),
            {},
            RoundingChannel(3),
        )
        for t in (plain, padded)
    ]
    assert PaperEntropyRisk().after(plain, releases[0]) == PaperEntropyRisk().after(
        padded, releases[1]
    )


@pytest.mark.parametrize(
    "wrong",
    [
        (0.1, 0.7, 0.1),
        (0.1, 0.7, 0.1, 0.2),
        (-0.1, 0.9, 0.1, 0.1),
        (math.nan, 0.7, 0.1, 0.1),
        (math.inf, 0.7, 0.1, 0.1),
    ],
)
def test_wrong_weights_are_one_sentence(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"(4|four) numbers of 0 or more"):
        PaperEntropyRisk(weights=wrong)
    with pytest.raises(InputError, match="three numbers"):
        r1([1, 2], (0.5, 0.6, 0.1))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ([], "is empty"), ([5], "fewer than two cells"), ([0, 0, 0], "nobody in it"),
        ([1, -1], "negative"), ([1.5, 2], "whole numbers"), ([math.nan, 2], "whole numbers"),
        (["a", "b"], "whole numbers"),
    ],
)  # fmt: skip
def test_wrong_counts_are_one_sentence(wrong: Any, sentence: str) -> None:
    for ask in (PaperEntropyRisk().terms_of_counts, r1):
        with pytest.raises(InputError, match=sentence):
            ask(wrong)


def test_wrong_options_and_wrong_pairs_are_one_sentence() -> None:
    for option in ({"split": 0}, {"split": 2.5}, {"parts": "both"}, {"shared": "evenly"}):
        with pytest.raises(InputError):
            PaperEntropyRisk(**option)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="differ in number"):
        PaperEntropyRisk().terms_of_published([1, 2], [1, 2, 3], RoundingChannel(3))
    with pytest.raises(InputError, match="0 or more"):
        entropy_term([1.0, math.nan])
    with pytest.raises(InputError, match="at least one person"):
        size_term(0)
    table = Table.from_counts([1, 2])
    for release, sentence in (
        (Release(Table.from_counts([1, 2, 3]).axes, np.arange(3), np.full(3, "F"), {}), "shapes"),
        (Release(table.axes, table.values, np.full(2, "A"), {}, RoundingChannel(3)), "suppressed"),
        (Release(table.axes, table.values, np.array(["F", "A"]), {}), "suppressed"),
    ):
        with pytest.raises(InputError, match=sentence):
            PaperEntropyRisk().after(table, release)
    money = Table(axes=table.axes, values=table.values, kind="magnitude")
    with pytest.raises(InputError, match="whole counts"):
        PaperEntropyRisk().before(money)


def test_both_forms_tell_a_policy_file_all_that_makes_them() -> None:
    common = {"weights": [0.1, 0.7, 0.1, 0.1], "split": 6}
    assert EntropyRisk().to_mapping() == {
        "measure": "table-entropy", **common, "parts": "true", "shared": "expected",
    }  # fmt: skip
    assert PaperEntropyRisk().to_mapping() == {
        "measure": "table-entropy-2015", **common, "parts": "published", "shared": "observed",
    }  # fmt: skip
    for name, kind in (("table-entropy", EntropyRisk), ("table-entropy-2015", PaperEntropyRisk)):
        assert load("lustrum.risks", name) is kind
        words = kind(weights="l2").to_mapping()
        assert kind(**{k: v for k, v in words.items() if k != "measure"}) == kind(weights="l2")


def test_the_default_form_does_not_rise_where_the_papers_does() -> None:
    """The two counterexamples to property e, and the same measure under both verbs."""
    rounding = RoundingChannel(3)
    for true, published in (([5, 5, 5, 5], [6, 6, 6, 3]), ([7, 400, 500, 600], [6, 399, 501, 600])):
        table = Table.from_counts(true)
        free = np.full(4, CellStatus.FREE.value)
        release = Release(table.axes, np.array(published), free, {}, rounding)
        assert PaperEntropyRisk().after(table, release) > PaperEntropyRisk().before(table)
        assert EntropyRisk().after(table, release) <= EntropyRisk().before(table) + 1e-12
        assert EntropyRisk().of(table) == EntropyRisk().before(table)
        assert EntropyRisk().of(table, release) == EntropyRisk().after(table, release)


def test_a_release_without_a_channel_is_judged_by_what_became_of_its_values() -> None:
    table = Table.from_counts([0, 1, 1, 2, 9, 12])
    published = np.array([0, 0, 3, 3, 9, 12])
    free = np.full(6, CellStatus.FREE.value)
    matrix = np.eye(13)
    matrix[1, [0, 1, 3]] = 0.5, 0.0, 0.5
    matrix[2, [2, 3]] = 0.0, 1.0
    risk = PaperEntropyRisk(split=2)
    alone = risk.terms_after(table, Release(table.axes, published, free, {}))
    known = risk.terms_after(table, Release(table.axes, published, free, {}, MatrixChannel(matrix)))
    # Only the values that occur have a row, so 0, 1 and 2 stay with 1, 0 and 0.
    assert alone.small == pytest.approx(known.small)
    assert alone.large == pytest.approx(known.large)
    assert alone.zeros == known.zeros


def test_terms_ask_for_a_table_and_a_release():
    table, measure = Table.from_counts([[1, 6], [2, 9]]), EntropyRisk()
    for wrong in ([[1, 6], [2, 9]], None):
        with pytest.raises(InputError, match="needs a lustrum Table"):
            measure.terms_before(wrong)
        with pytest.raises(InputError, match="needs a lustrum Table"):
            measure.terms_after(wrong, wrong)
        with pytest.raises(InputError, match="needs a lustrum Release"):
            measure.terms_after(table, wrong)
