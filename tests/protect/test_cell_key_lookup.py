"""Which number a count and its key make, place by place, and what is refused at the limits of a ptable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lustrum.model import Category, Dataset, InputError, Table, TableAxis
from lustrum.model.channel import SHLOMO_2015, MatrixChannel
from lustrum.model.keys import cell_words
from lustrum.protect.cell_key import (
    Additive,
    CellKey,
    Lookup,
    LookupChannel,
    PTable,
    ZeroKeys,
    read_ptable,
)
from lustrum.protect.cell_key.channel import longest_step, support_of, zeros_stay
from lustrum.protect.cell_key.magnitudes import flex, noise_table
from lustrum.protect.perturbation.design import design
from lustrum.protect.perturbation.lookup import perturb_by_words
from lustrum.protect.totals.safe import hidden_totals
from small import described

SECRET = b"a secret of the agency"
LIVELY = MatrixChannel([[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]], residue_base=1)
COIN = PTable("coin", [[0, 0, 1, 1], [-1, 1, 0, 0], [-2, 2, 1, -1]], cycle=1)
DATASET = described("d", {"v1": [str(i) for i in range(60)]})


def counted(structural: Any = None) -> Table:
    """Sixty cells from 0 to 5, the first thirty of them empty."""
    counts = np.concatenate((np.zeros(30, np.int64), 1 + np.arange(30) % 5))
    keys = np.random.default_rng(1).integers(1, 2**64, counts.size, dtype=np.uint64)
    plain = Table.from_counts(counts, keys=np.where(counts, keys, 0))
    return Table(axes=plain.axes, values=counts, keys=plain.keys, structural=structural)


def test_a_number_is_what_the_layout_makes_of_the_count_and_the_key() -> None:
    table = counted()
    full = table.values > 0
    words = cell_words(table.keys, "cell-key")
    shown = CellKey(totals="own").apply(table).published
    expected = perturb_by_words(table.values, SHLOMO_2015, words)
    assert shown[full].tolist() == expected[full].tolist()

    row = np.minimum(table.values, 2)
    by_sum = CellKey(ptable=COIN, totals="own").apply(table).published
    expected = table.values + COIN.steps[row, (table.keys % np.uint64(4)).astype(int)]
    assert by_sum[full].tolist() == expected[full].tolist()

    by_bits = CellKey(ptable=COIN, lookup=Lookup("abs"), totals="own").apply(table).published
    expected = table.values + COIN.steps[row, (words >> np.uint64(62)).astype(int)]
    assert by_bits[full].tolist() == expected[full].tolist()
    assert (by_sum[full] != by_bits[full]).any()


@pytest.mark.parametrize("source", [LIVELY, COIN], ids=["matrix", "table"])
def test_empty_cells_move_by_words_of_their_own_and_only_where_there_are_any(source: Any) -> None:
    method = CellKey(ptable=source, totals="own")
    table = counted()
    empty = table.values == 0
    assert not method.apply(table).published[empty].any()
    with_keys = method.with_zeros(SECRET, DATASET)
    shown = with_keys.apply(table).published
    words = np.asarray(with_keys.zero_keys.random_words(table, "cell-key"))
    expected = with_keys._layout.perturb(np.zeros(60, np.int64), words)
    assert shown[empty].tolist() == expected[empty].tolist()
    assert 0 < np.count_nonzero(shown[empty]) < 30
    assert shown[~empty].tolist() == method.apply(table).published[~empty].tolist()
    known = np.arange(60) < 5
    release = with_keys.apply(counted(structural=known))
    assert not release.published[known].any()
    assert not release.least[known].any()
    assert not release.most[known].any()
    assert release.published[~known].tolist() == shown[~known].tolist()


@pytest.mark.parametrize("source", ["shlomo-2015", LIVELY, COIN], ids=["preset", "matrix", "table"])
def test_cells_before_totals_are_those_that_own_totals_show(source: Any) -> None:
    plain = CellKey(ptable=source, totals="own")
    for method in (plain, plain.with_zeros(SECRET, DATASET)):
        for rng in (None, 7):
            shown = method.apply(counted(), rng).published
            assert method.perturbed(counted(), rng).tolist() == shown.tolist()


def test_own_totals_are_shown_even_where_a_guard_would_hide_them() -> None:
    parts = tuple(Category(str(i), str(i), (i,)) for i in range(2))
    axes = (TableAxis("v", "v", (*parts, Category("_T", "Total", (0, 1)))),)
    rng, hidden = np.random.default_rng(3), 0
    for _ in range(40):
        keys = rng.integers(1, 2**64, 2, dtype=np.uint64)
        counts = rng.integers(1, 3, 2)
        table = Table(
            axes=axes,
            values=np.append(counts, counts.sum()),
            keys=np.append(keys, keys.sum(dtype=np.uint64)),
        )
        own = CellKey(totals="own").apply(table)
        assert own.published.tolist() == CellKey().perturbed(table).tolist()
        assert own.status is None or set(own.status.tolist()) == {"F"}
        low, high = support_of(zeros_stay(SHLOMO_2015)).support(own.published)
        assert (np.asarray(own.low).tolist(), np.asarray(own.high).tolist()) == (
            low.tolist(), high.tolist()
        )  # fmt: skip
        guarded = CellKey().apply(table).status
        hidden += guarded is not None and "D" in guarded.tolist()
    assert 0 < hidden < 40


def test_a_release_says_which_totals_it_shows_and_which_table_it_used() -> None:
    table = counted()

    def notes(**words: Any) -> str:
        rng = words.pop("rng", None)
        return " ".join(map(str, CellKey(**words).apply(table, rng).notes))

    keyed, drawn, own, adding = (
        notes(ptable=LIVELY),
        notes(ptable=LIVELY, rng=1),
        notes(ptable=COIN, totals="own"),
        notes(ptable=LIVELY, totals=Additive()),
    )
    assert str(hidden_totals()) in keyed
    assert "may be the sum of the perturbed numbers" in drawn
    assert str(hidden_totals()) not in drawn + own + adding
    assert "may be the sum" not in keyed + own + adding
    assert own.endswith("so the numbers may not add up to them.")
    assert "changed by more than 1" in keyed
    assert "changed by more than" not in adding
    assert "changed once more" in adding
    assert "Empty cells stay 0: the ptable would change them" in keyed
    assert "Empty cells may be perturbed too" in drawn
    assert "Empty cells stay 0." in notes()
    assert COIN.digest in own
    assert COIN.digest not in keyed


def test_a_policy_names_the_layout_only_where_one_was_chosen() -> None:
    assert CellKey().to_mapping() == {
        "method": "cell-key",
        "ptable": "shlomo-2015",
        "totals": "guarded",
        "version": "1",
        "key_version": 1,
    }
    inverse = CellKey(lookup=Lookup("inverse-cdf")).to_mapping()
    assert inverse["layout"] == "inverse-cdf"
    assert "bits" not in inverse
    assert CellKey(totals="own", lookup=Lookup("ons", 4)).to_mapping().items() >= {
        ("totals", "own"),
        ("layout", "ons"),
        ("bits", 4),
    }
    with pytest.raises(InputError, match="'totals' must be"):
        CellKey(totals="none")  # type: ignore[arg-type]


# The channel of a lookup table

ROWS = [
    {0: 0.5, 1: 0.5},
    {-1: 0.25, 0: 0.75},
    {0: 0.5, 2: 0.5},
    {-2: 0.5, 1: 0.5, 7: 0.0},
    {0: 0.1, 1: 0.9},
]


def steps() -> LookupChannel:
    """The last three of five rows serve larger counts; a step of no chance is no step."""
    return LookupChannel.of_rows(ROWS, cycle=3)


def row_of(true: int) -> dict[int, float]:
    row = ROWS[true] if true < 5 else ROWS[2 + (true - 2) % 3]
    return {step: chance for step, chance in row.items() if chance}


def test_a_lookup_channel_moves_counts_as_its_rows_say_for_ever() -> None:
    channel = steps()
    assert (channel.cap, channel.largest_change) == (4, 2)
    for true in range(13):
        found = channel.transitions(np.array([true]))
        expected = {true + step: chance for step, chance in row_of(true).items()}
        assert (
            dict(zip(found.published.tolist(), found.probability.tolist(), strict=True)) == expected
        )
    assert channel.rows_of(np.array([0, 3, 4, 5, 8, 9])).tolist() == [0, 3, 4, 2, 2, 3]
    assert channel.rows_of(np.array([], dtype=np.int64)).size == 0
    with pytest.raises(InputError, match="0 or more"):
        channel.rows_of(np.array([3, -1]))
    assert LookupChannel.of_rows([{}, {}], cycle=1).largest_change == 0


@pytest.mark.parametrize(
    ("made", "most"),
    [
        (steps, 60),
        (lambda: zeros_stay(steps()), 60),
        (lambda: LIVELY, 60),
        (lambda: zeros_stay(LIVELY), 60),
        (lambda: SHLOMO_2015, 60),
        (lambda: design(3, 1.0), 60),
        (lambda: design(4, 2.0, (1, 2)), 60),
        (lambda: MatrixChannel([[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]]), 3),
    ],
)
def test_the_ends_behind_a_published_count_are_those_of_enumeration(made: Any, most: int) -> None:
    channel = made()
    reaching: dict[int, list[int]] = {}
    for true in range(most):
        for published in channel.transitions(np.array([true])).published.tolist():
            reaching.setdefault(published, []).append(true)
    shown = np.array(sorted(p for p in reaching if p < 50)).reshape(-1, 1)
    for support in (channel.support(shown), support_of(channel).support(shown)):
        low, high = support
        assert low.shape == high.shape == shown.shape
        assert low.ravel().tolist() == [min(reaching[p]) for p in shown.ravel().tolist()]
        assert high.ravel().tolist() == [max(reaching[p]) for p in shown.ravel().tolist()]
    with pytest.raises(InputError, match="0 or more"):
        support_of(channel).support(np.array([2, -1]))
    assert longest_step(channel) == max(abs(p - t) for p in reaching for t in reaching[p])


def test_a_channel_that_moves_nothing_has_no_step() -> None:
    assert longest_step(MatrixChannel(np.eye(3), residue_base=1)) == 0


def test_zeros_that_stay_leave_every_other_row_as_it_was() -> None:
    for channel in (steps(), LIVELY):
        still = zeros_stay(channel)
        assert still.transitions(np.array([0])).published.tolist() == [0]
        assert still.transitions(np.array([0])).probability.tolist() == [1.0]
        for true in range(1, 9):
            ours, theirs = (c.transitions(np.array([true])) for c in (still, channel))
            assert ours.published.tolist() == theirs.published.tolist()
            assert ours.probability.tolist() == theirs.probability.tolist()


def test_the_chance_to_stay_is_the_mean_over_the_values_asked_for() -> None:
    channel = steps()
    stays = [row_of(true).get(0, 0.0) for true in range(20)]
    for lowest, highest in ((0, 0), (0, 3), (1, 1), (2, 3), (3, 9), (5, 6), (8, 8)):
        expected = np.mean(stays[lowest : highest + 1])
        assert channel.stay(lowest, highest) == pytest.approx(expected)
    assert channel.stay(1, None) == pytest.approx(np.mean(stays[1:5]))
    assert channel.stay(4, None) == pytest.approx(stays[4])
    assert channel.stay(6, None) == pytest.approx(np.mean(stays[6:9]))
    for wrong in ((-1, 2), (-1, None), (3, 2)):
        with pytest.raises(InputError, match="from 0 or more upwards"):
            channel.stay(*wrong)


# Tables as agencies keep them


@pytest.mark.parametrize(
    ("steps", "cycle", "sentence"),
    [
        ([0, 1], 1, "whole steps"),
        ([[0.0], [1.0]], 1, "whole steps"),
        (np.zeros((2, 0), int), 1, "whole steps"),
        ([[0] * 3, [0] * 3], 1, "power of two"),
        ([[0] * 6, [0] * 6], 1, "power of two"),
        ([[0]], 1, "has 1 rows"),
        ([[0], [0]], 0, "not 0"),
        ([[0], [0]], 2, "not 2"),
        ([[0], [0]], True, "not True"),
        ([[0, 0], [0, -2]], 1, "the count 1 negative"),
        ([[-1, 1], [0, 0]], 1, "the count 0 negative"),
    ],
)
def test_a_table_that_cannot_be_looked_up_is_refused(steps: Any, cycle: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        PTable("p", steps, cycle)


def test_a_table_states_its_size_its_bias_and_what_tells_it_apart() -> None:
    assert (COIN.keys, COIN.bias.tolist()) == (4, [0.5, 0.0, 0.0])
    assert (COIN.unbiased, COIN.moves_zeros) == (False, True)
    still = PTable("still", [[0, 0], [-1, 1], [-2, 2]], cycle=2)
    assert (still.unbiased, still.moves_zeros, still.cycle) == (True, False, 2)
    assert not still.steps.flags.writeable
    others = [
        PTable("still", [[0, 0], [1, -1], [-2, 2]], cycle=2),
        PTable("still", [[0, 0], [-1, 1], [-2, 2]], cycle=1),
        PTable("still", [[0] * 2, [-1, 1], [-2, 2], [0, 0]], cycle=2),
        PTable("still", [[0] * 4, [-1, 1] * 2, [-2, 2] * 2], cycle=2),
    ]
    assert len({still.digest, *(other.digest for other in others)}) == 5
    assert all(len(other.digest) == 16 for other in others)
    assert PTable("another name", still.steps, 2).digest == still.digest
    row = COIN.channel.transitions(np.array([2]))
    assert dict(zip(row.published.tolist(), row.probability.tolist(), strict=True)) == {
        0: 0.25, 1: 0.25, 3: 0.25, 4: 0.25,
    }  # fmt: skip


def columns(**changed: Any) -> dict[str, Any]:
    """Counts 1 and 2 with two keys each."""
    return {"pcv": [1, 1, 2, 2], "ckey": [0, 1, 0, 1], "pvalue": [-1, 1, 0, 2], **changed}


def test_columns_become_a_table_whatever_the_order_of_their_rows() -> None:
    made = PTable.of_columns("p", columns())
    assert made.steps.tolist() == [[0, 0], [-1, 1], [0, 2]]
    assert made.cycle == 1
    turned = {name: given[::-1] for name, given in columns().items()}
    assert PTable.of_columns("p", turned).steps.tolist() == made.steps.tolist()
    assert PTable.of_columns("p", columns(), cycle=2).cycle == 2
    zero = {"pcv": [0, 1], "ckey": [0, 0], "pvalue": [3, 0]}
    assert PTable.of_columns("p", zero).steps.tolist() == [[3], [0]]
    texts = {name: list(map(str, given)) for name, given in columns().items()}
    assert PTable.of_columns("p", texts).steps.tolist() == made.steps.tolist()
    floats = {name: list(map(float, given)) for name, given in columns().items()}
    assert PTable.of_columns("p", floats).steps.tolist() == made.steps.tolist()
    for last, cycle in ((749, 1), (750, 250), (751, 1)):
        long = {"pcv": range(1, last + 1), "ckey": [0] * last, "pvalue": [0] * last}
        assert PTable.of_columns("p", {k: list(v) for k, v in long.items()}).cycle == cycle


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"pcv": [], "ckey": [], "pvalue": []}, "same number of entries"),
        ({"ckey": [0, 1, 0]}, "same number of entries"),
        ({"pvalue": [0, 1, 0]}, "same number of entries"),
        ({"pcv": [2, 2, 3, 3]}, "begin at the count 0 or 1"),
        ({"ckey": [1, 2, 1, 2]}, "begin at the count 0 or 1"),
        ({"pcv": [0, 0, 0, 0], "ckey": [0, 1, 2, 3]}, "needs a count above 0"),
        ({"ckey": [0, 1, 0, 1 << 23]}, "at most 16777216 places"),
        ({"ckey": [0, 1, 0, 0]}, "several entries for the count 2 and the key 0"),
        ({"pcv": [1, 1, 2, 3]}, "no entry for the count 2 and the key 1"),
        ({"pcv": [0, 0, 1, 1], "ckey": [0, 0, 0, 1]}, "several entries for the count 0"),
        ({"pvalue": [0, 1, 0, 0.5]}, "column 'pvalue'"),
        ({"pvalue": [0, 1, 0, np.inf]}, "column 'pvalue'"),
        ({"pcv": [1, 1, 2, "two"]}, "column 'pcv'"),
        ({"ckey": [True, False, True, False]}, "column 'ckey'"),
    ],
)
def test_columns_that_are_no_table_are_refused(changed: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        PTable.of_columns("p", columns(**changed))


def test_a_matrix_becomes_whole_keys_nearest_to_its_chances_and_without_bias() -> None:
    made = PTable.of_matrix("m", LIVELY, 2)
    assert [sorted(row) for row in made.steps.tolist()] == [
        [0, 0, 0, 1],
        [-1, 0, 0, 1],
        [-1, -1, 0, 0],
    ]
    assert made.cycle == 1
    for bits in (1, 16):
        assert PTable.of_matrix("m", LIVELY, bits).keys == 2**bits
    for wrong in (0, 17, 2.0):
        with pytest.raises(InputError, match="1 to 16 bits"):
            PTable.of_matrix("m", LIVELY, wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="residue base"):
        PTable.of_matrix("m", MatrixChannel([[1.0, 0.0], [0.0, 1.0]]), 4)
    skewed = [0, 0.22, 0.61, 0.12, 0.05]
    rows = [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], skewed, [0, 0.5, 0, 0, 0.5], [0, 0, 0, 0, 1]]
    made = PTable.of_matrix("m", MatrixChannel(rows, residue_base=1), 3)
    # The nearest are 2, 5, 1 and 0 keys, which lean by -1; from 1 to 2 is the least that mends it.
    assert sorted(made.steps[2].tolist()) == [-1, -1, 0, 0, 0, 0, 0, 2]
    assert made.bias[3] == pytest.approx(-0.5)  # a row with bias keeps it
    for bias, expected in ((1e-7, [-1, -1, 0, 0, 0, 0, 0, 2]), (2e-6, [-1, -1, 0, 0, 0, 0, 0, 1])):
        rows[2] = [0, 0.22 + bias, 0.61 - bias, 0.12, 0.05]
        made = PTable.of_matrix("m", MatrixChannel(rows, residue_base=1), 3)
        assert sorted(made.steps[2].tolist()) == expected
    # Two keys of -3, -1 and 2 never add up to 0: the nearest stay.
    odd = np.eye(6)
    odd[3] = [0.25, 0, 0.25, 0, 0, 0.5]
    made = PTable.of_matrix("m", MatrixChannel(odd, residue_base=1), 1)
    assert sorted(made.steps[3].tolist()) == [-1, 2]


# Words and noise


def test_noise_has_the_variance_asked_for_and_both_signs_alike() -> None:
    for part, first, step in (("all", 0, 1), ("even", 0, 2), ("odd", 1, 2)):
        table = noise_table(3, 5, 1.7, part)
        assert table.sizes.tolist() == list(range(first, 16, step))
        assert float(table.chances @ (table.sizes / 5) ** 2) == pytest.approx(1.7, abs=1e-8)
        assert table.chances.sum() == 1.0
        # The largest entropy for a variance: logarithms of the chances fall with the square of the size.
        weight = np.where(table.sizes > 0, 2.0, 1.0)
        logs = np.log(table.chances / weight)
        squares = (table.sizes / 5.0) ** 2
        slope = np.diff(logs) / np.diff(squares)
        assert slope == pytest.approx(slope[0], abs=1e-5)
    for variance in (0.04, 9.0, 0.0):
        with pytest.raises(InputError, match=r"variance between 0\.04 and 9"):
            noise_table(3, 5, variance, "odd")
    for variance in (0.0, 4.0):
        with pytest.raises(InputError, match="variance between 0 and 4"):
            noise_table(2, 1, variance)
    for variance in (0.01, 3.95):
        wide = noise_table(2, 1, variance)
        assert float(wide.chances @ wide.sizes**2) == pytest.approx(variance, abs=1e-8)


@pytest.mark.parametrize(
    ("largest", "steps", "variance", "part"),
    [
        (50, 10, 0.001, "all"),
        (50, 10, 2499.0, "all"),
        (50, 10, 900.0, "even"),
        (3, 10, 0.1, "all"),
        (3, 1, 1.001, "odd"),
    ],
)
def test_noise_of_wide_and_of_narrow_grids_has_the_variance_asked_for(
    largest: int, steps: int, variance: float, part: str
) -> None:
    table = noise_table(largest, steps, variance, part)
    found = float(table.chances @ (table.sizes / steps) ** 2)
    assert found == pytest.approx(variance, rel=1e-5)


def test_a_word_draws_the_size_of_its_low_bits_and_the_sign_of_its_highest() -> None:
    table = noise_table(2, 1, 1.0)
    ends = [int(t) for t in table.thresholds]
    assert ends[-1] == 1 << 63
    words = [0, ends[0] - 1, ends[0], ends[1] - 1, ends[1], (1 << 63) - 1]
    sizes, signs = table.draw(np.array(words, dtype=np.uint64).reshape(2, 3))
    assert sizes.tolist() == [[0, 0, 1], [1, 2, 2]]
    assert signs.tolist() == [[1] * 3] * 2
    sizes, signs = table.draw(np.array([w + (1 << 63) for w in words], dtype=np.uint64))
    assert sizes.tolist() == [0, 0, 1, 1, 2, 2]
    assert signs.tolist() == [-1] * 6


def test_the_share_of_noise_follows_the_formula_and_never_rises_above_the_small_one() -> None:
    f, small, large = 1000.0, 0.2, 0.03
    for q in (1, 2, 3, 4):
        for x in (1000.0, 1001.0, 1200.0, 5000.0, 1e6):
            formula = large * (1 + (small * x - large * f) / (large * f) * (2 * f / (f + x)) ** q)
            found = float(flex(np.array([x]), f, small, large, q)[0])
            assert found == pytest.approx(min(formula, small))
        assert flex(np.array([0.0, 3.0, 999.0]), f, small, large, q).tolist() == [small] * 3


def test_the_word_of_an_empty_cell_depends_on_its_definition_alone() -> None:
    variables = [{"name": "a", "codes": ["1", "2", "3"]}, {"name": "b", "codes": ["x", "y"]}]
    dataset = Dataset.from_mapping({"dataset": {"name": "d"}, "variables": variables})
    keys = ZeroKeys(b"0123456789abcdef", dataset)
    with pytest.raises(InputError, match="at least 16 bytes"):
        ZeroKeys(b"0123456789abcde", dataset)

    def axis(name: str, *parts: tuple[int, ...]) -> TableAxis:
        return TableAxis(name, name, tuple(Category(str(p), str(p), p) for p in parts))

    def words(axes: list[TableAxis], **filters: list[str]) -> Any:
        query = {"dataset": "d", "by": [one.name for one in axes], "where": filters}
        shape = tuple(len(one.categories) for one in axes)
        table = Table(
            axes=tuple(axes), values=np.zeros(shape, np.int64), provenance={"query": query}
        )
        return keys.random_words(table, "p")

    a, b = axis("a", (0,), (1,), (0, 1), (0, 1, 2)), axis("b", (0,), (1,), (0, 1))
    both = words([a, b])
    assert both.T.tolist() == words([b, a]).tolist()
    assert both[:, 2].tolist() == words([a]).tolist()
    assert both[3, :].tolist() == words([b]).tolist()
    assert both[:, 0].tolist() == words([a], b=["x"]).tolist()
    assert len(np.unique(both)) == both.size
    assert (
        int(both[0, 0]) == 3002297357824809602
    )  # in every version: another word is another number
    # Of two that are asked for together only one passes the filter.
    assert words([a], a=["1"])[2] == both[0, 2]
    other = Dataset.from_mapping({"dataset": {"name": "e"}, "variables": variables})
    asked = {"query": {"dataset": "d"}}
    table = Table(axes=(a,), values=np.zeros(4, np.int64), provenance=asked)
    with pytest.raises(InputError, match="must be the same"):
        ZeroKeys(b"0123456789abcdef", other).random_words(table, "p")


def test_the_table_made_from_a_matrix_is_the_same_in_every_version() -> None:
    """Another table of keys would publish other numbers for the same records."""
    rng = np.random.default_rng(11)
    rows = np.zeros((40, 45))
    for value in range(1, 40):
        reach = min(value, 4)
        up = rng.random(reach) + 0.01
        down = rng.random(reach) + 0.01
        size = np.arange(1, reach + 1)
        down *= (size @ up) / (size @ down)  # no bias, whatever the shape
        stay = rng.random() * (up.sum() + down.sum())
        rows[value, value - reach : value + reach + 1] = [*down[::-1], stay, *up]
        rows[value] /= rows[value].sum()
    rows[0, 0] = 1.0
    square = MatrixChannel(np.vstack((rows, np.eye(45)[40:])), residue_base=1)
    digests = [PTable.of_matrix("m", square, bits).digest for bits in (2, 3, 4, 6)]
    assert digests == [
        "c922c89c2ad6c851",
        "629f3fed252b4530",
        "f1520a37c578543c",
        "a157c447c0e4af0a",
    ]
    for bits in (3, 6):
        made = PTable.of_matrix("m", square, bits)
        for value, row in enumerate(made.steps.tolist()):
            shares = square.matrix[value] * made.keys
            given = np.bincount(np.array(row) + value, minlength=45)
            assert np.abs(given - shares).max() < 2
    biased = MatrixChannel([[1, 0, 0], [0.3, 0.45, 0.25], [0, 0, 1]], residue_base=1)
    assert sorted(PTable.of_matrix("m", biased, 2).steps[1].tolist()) == [-1, 0, 0, 1]


def test_a_file_may_say_how_many_rows_serve_larger_counts(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("pcv,ckey,pvalue\n1,0,0\n2,0,1\n3,0,-1\n")
    assert [read_ptable(path).cycle, read_ptable(path, 2).cycle] == [1, 2]
