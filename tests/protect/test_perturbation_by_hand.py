"""Perturbation by a matrix, held against its definition on one small table."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lustrum.model import Category, InputError, Release, Table, TableAxis
from lustrum.model.channel import MatrixChannel
from lustrum.model.keys import cell_words
from lustrum.protect.perturbation import StochasticPerturbation
from lustrum.protect.perturbation.lookup import (
    _draw,
    calibrated,
    invariant,
    lookup,
    perturb_by_words,
)
from lustrum.protect.totals.safe import safe_totals
from protect.plain_perturbation import plain_draw
from small import with_totals

ROWS = (
    (1.0, 0.0, 0.0, 0.0),
    (0.25, 0.5, 0.25, 0.0),
    (0.0, 0.375, 0.375, 0.25),
    (0.0, 0.125, 0.25, 0.625),
)
BASE = 2  # 4, 6, ... move as 2 does, and 5, 7, ... as 3 does
CHANNEL = MatrixChannel(ROWS, BASE)
METHOD = StochasticPerturbation(ROWS, BASE)
PURPOSE = "stochastic-perturbation"


def row_of(true: int) -> int:
    return true if true <= 3 else 2 + (true - 2) % 2


def drawn(true: int, word: int, rows: Any = ROWS) -> int:
    """The published value whose share of the words holds this one."""
    row = row_of(true)
    shares = [Fraction(float(p)) for p in rows[row]]
    below = Fraction(0)
    for value, share in enumerate(shares):
        below += share
        if share and word < below / sum(shares) * 2**64:
            return true - row + value
    return true - row + max(k for k, share in enumerate(shares) if share)


def behind(shown: int, rows: Any = ROWS) -> tuple[int, int]:
    """The least and the most that may have become this number."""
    found = [
        true
        for true in range(100)
        for value, share in enumerate(rows[row_of(true)])
        if share > 0 and true - row_of(true) + value == shown
    ]
    return min(found), max(found)


WORDS = [0, 1, 2**61 - 1, 2**61, 2**62 - 1, 2**62, 2**63, 3 * 2**61 - 1, 3 * 2**61, 2**64 - 1]


def test_a_word_draws_the_value_whose_share_holds_it() -> None:
    values, words = np.repeat(np.arange(9), len(WORDS)), np.array(WORDS * 9, dtype=np.uint64)
    wanted = [drawn(n, int(w)) for n, w in zip(values, words, strict=True)]
    assert perturb_by_words(values, CHANNEL, words).tolist() == wanted
    made = lookup(CHANNEL)
    plain = plain_draw(values, words, 3, BASE, made.first, made.steps, made.thresholds)
    assert plain.tolist() == wanted
    out = np.zeros(values.size, dtype=np.int64)
    loop = getattr(_draw, "py_func", _draw)
    loop(values, words, 3, BASE, made.first, made.steps, made.thresholds, out)
    assert out.tolist() == wanted
    square = perturb_by_words(values.reshape(9, -1), CHANNEL, words.reshape(9, -1))
    assert square.ravel().tolist() == wanted
    one = MatrixChannel(ROWS, 1)  # all above the cap move as the last row does
    above = [5 - 3 + drawn(3, int(w)) for w in WORDS]
    assert perturb_by_words([5] * len(WORDS), one, np.array(WORDS, np.uint64)).tolist() == above
    three = MatrixChannel(ROWS, 3)  # 4 moves as 1 does, 5 as 2 and 6 as 3
    for true, row in ((4, 1), (5, 2), (6, 3), (7, 1)):
        words3 = np.array(WORDS, np.uint64)
        wanted3 = [true - row + drawn(row, w) for w in WORDS]
        given = np.full(len(WORDS), true)
        assert perturb_by_words(given, three, words3).tolist() == wanted3
        same = lookup(three)
        plain = plain_draw(given, words3, 3, 3, same.first, same.steps, same.thresholds)
        assert plain.tolist() == wanted3
    small, without = [2, 3] * 5, MatrixChannel(ROWS)
    assert perturb_by_words(small, without, np.array(WORDS, np.uint64)).tolist() == [
        drawn(n, w) for n, w in zip(small, WORDS, strict=True)
    ]


def test_thresholds_are_shares_of_the_exact_sum_of_a_row() -> None:
    thirds = MatrixChannel([[1 / 3, 1 / 3, 1 / 3], [0.1, 0.2, 0.7], [0, 1, 0]])
    made = lookup(thirds)
    assert made.first.tolist() == [0, 3, 6, 7]
    assert made.steps.tolist() == [0, 1, 2, -1, 0, 1, -1]
    wanted = []
    for row in thirds.matrix.tolist():
        exact = [Fraction(p) for p in row if p]
        for k in range(len(exact)):
            wanted.append(min(int(sum(exact[: k + 1]) / sum(exact) * 2**64), 2**64 - 1))
    assert made.thresholds.tolist() == wanted
    assert made.thresholds[2] == made.thresholds[6] == 2**64 - 1


def test_every_value_needs_a_word_and_a_row() -> None:
    words = np.zeros(2, dtype=np.uint64)
    with pytest.raises(InputError, match="word of its own"):
        perturb_by_words([1, 2, 3], CHANNEL, words)
    with pytest.raises(InputError, match="0 or more"):
        perturb_by_words([3, -1], CHANNEL, words)
    with pytest.raises(InputError, match="ends at 3"):
        perturb_by_words([1, 4], MatrixChannel(ROWS), words)
    assert perturb_by_words(np.zeros((0, 3)), CHANNEL, np.zeros((0, 3), np.uint64)).shape == (0, 3)


# Totals of rows and columns stand behind their parts.
INNER = np.array([[0, 1, 2], [3, 7, 40], [1, 0, 12]])
STRUCTURAL = (2, 1)


def made_table(keyed: bool, structural: bool = True, counts: np.ndarray = INNER) -> Table:
    names = [Category(str(k), str(k), (k,)) for k in range(3)]
    total = Category("_T", "Total", (0, 1, 2))
    keys = np.random.default_rng(7).integers(1, 2**60, (3, 3), dtype=np.uint64)
    keys[counts == 0] = 0
    mask = np.zeros((4, 4), dtype=np.bool_)
    mask[STRUCTURAL] = True
    return Table(
        axes=(TableAxis("a", "a", (*names, total)), TableAxis("b", "b", (*names, total))),
        values=with_totals(counts),
        keys=with_totals(keys) if keyed else None,
        structural=mask if structural else None,
    )


def words_of(table: Table, seed: int | None) -> np.ndarray:
    if seed is None:
        assert table.keys is not None
        return cell_words(table.keys, PURPOSE)
    return np.random.default_rng(seed).integers(0, 2**64, size=(4, 4), dtype=np.uint64)


def check(release: Release, shown: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    assert release.published.tolist() == shown.tolist()
    assert release.least.tolist() == low.tolist()
    assert release.most.tolist() == high.tolist()


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("structural", [True, False])
def test_cells_are_drawn_by_their_words_and_totals_are_sums(
    seed: int | None, structural: bool
) -> None:
    table = made_table(seed is None, structural)
    words = words_of(table, seed)
    each = np.array(
        [
            [drawn(int(n), int(w)) for n, w in zip(*pair, strict=True)]
            for pair in zip(table.values, words, strict=True)
        ]
    )
    bounds = np.array([[behind(int(n)) for n in row] for row in each])
    if structural:
        each[STRUCTURAL] = 0
        bounds[STRUCTURAL] = 0
    release = METHOD.apply(table, seed)
    check(
        release,
        with_totals(each[:3, :3]),
        with_totals(bounds[:3, :3, 0]),
        with_totals(bounds[:3, :3, 1]),
    )
    assert release.shown.all()
    assert "fixed matrix" in str(release.notes[0])
    assert "are the sums" in str(release.notes[1])
    assert isinstance(release.channel, MatrixChannel)
    assert release.channel.matrix.tolist() == CHANNEL.matrix.tolist()


def test_a_structural_zero_never_moves_where_zeros_do() -> None:
    rows = ((0.5, 0.5), (0.5, 0.5))
    counts = np.zeros((3, 3), dtype=np.int64)
    table = made_table(False, counts=counts)
    method = StochasticPerturbation(rows, 1)
    moved = np.zeros((3, 3), dtype=np.int64)
    for seed in range(12):
        release = method.apply(table, seed)
        assert release.published[STRUCTURAL] == 0
        assert release.most[STRUCTURAL] == 0
        moved += release.published[:3, :3]
    moved[STRUCTURAL] = 1
    assert (moved > 0).all()


def test_a_total_of_cells_that_cannot_exist_stays_0() -> None:
    mask = np.zeros((4, 4), dtype=np.bool_)
    mask[:, 1] = True
    counts = np.zeros((3, 3), dtype=np.int64)
    table = replace(made_table(False, counts=counts), structural=mask)
    method = StochasticPerturbation(((0.5, 0.5), (0.5, 0.5)), 1, totals="perturbed")
    for seed in range(12):
        release = method.apply(table, seed)
        assert not release.published[:, 1].any()


def test_totals_on_their_own_carry_what_the_guard_found() -> None:
    method = StochasticPerturbation(ROWS, BASE, totals="perturbed")
    for structural in (True, False):
        for seed in range(4):
            table = made_table(False, structural)
            words = words_of(table, seed)
            each = perturb_by_words(table.values, CHANNEL, words)
            each[STRUCTURAL] = 0 if structural else each[STRUCTURAL]
            found = safe_totals(table.axes, each, CHANNEL, table.structural)
            release = method.apply(table, seed)
            check(release, found.values, found.low, found.high)
            hidden = np.zeros((4, 4), bool) if found.hidden is None else found.hidden
            assert (~release.shown).tolist() == hidden.tolist()
            assert "on their own" in str(release.notes[1])


def test_by_keys_no_total_is_perturbed_and_no_zero_moves() -> None:
    own = StochasticPerturbation(ROWS, BASE, totals="perturbed")
    with pytest.raises(InputError, match="which parts are empty"):
        own.apply(made_table(True))
    flat = Table(
        axes=(TableAxis.plain("a", ["x", "y", "z"]),),
        values=np.array([1, 2, 7]),
        keys=np.array([2**63 + 5, 77, 2**62 + 9], dtype=np.uint64),
    )
    words = cell_words(flat.keys, PURPOSE)
    wanted = [drawn(n, int(w)) for n, w in zip((1, 2, 7), words, strict=True)]
    assert own.apply(flat).published.tolist() == wanted
    restless = StochasticPerturbation(((0.5, 0.5), (0.5, 0.5)), 1)
    with pytest.raises(InputError, match="moves zeros"):
        restless.apply(flat)
    assert restless.apply(flat, 1).published.size == 3


def test_controlled_words_lie_evenly_in_each_row_of_the_matrix() -> None:
    counts = np.array([[2, 4, 2], [6, 3, 8], [2, 1, 2]])
    method = StochasticPerturbation(ROWS, BASE, controlled=True)
    for seed in (None, 3, 4):
        table = made_table(seed is None, structural=False, counts=counts)
        words = words_of(table, seed)[:3, :3].ravel()
        values = counts.ravel()
        rng = np.random.default_rng(seed)
        rng.integers(0, 2**64, size=(4, 4), dtype=np.uint64)  # the words of all cells come first
        wanted = np.zeros(9, dtype=np.int64)
        for row in range(4):
            mine = [k for k in range(9) if row_of(int(values[k])) == row]
            mine.sort(key=lambda k: int(words[k]))
            if not mine:
                continue
            if seed is None:
                keys = table.keys[:3, :3].ravel()[mine]
                total = np.array([keys.sum(dtype=np.uint64)])
                shift = int(cell_words(total, f"{PURPOSE} shift")[0])
            else:
                shift = int(rng.integers(0, 2**64, dtype=np.uint64))
            for rank, k in enumerate(mine):
                word = (rank * 2**64 + shift) // len(mine)
                wanted[k] = drawn(int(values[k]), word)
        found = method.apply(table, seed).published[:3, :3]
        assert found.ravel().tolist() == wanted.tolist()


def test_a_kept_total_is_paid_by_large_cells_within_stated_bounds() -> None:
    method = StochasticPerturbation(ROWS, BASE, keep_total=True)
    for seed in range(6):
        table = made_table(False)
        release = method.apply(table, seed)
        inner = release.published[:3, :3]
        assert inner.sum() == INNER.sum()
        assert release.channel is None
        # Eight cells move by at most 2 each, and a cell itself once more.
        spread = (8 + 1) * 2
        for (row, column), shown in np.ndenumerate(inner):
            if (row, column) == STRUCTURAL:
                bounds = (0, 0)
            elif shown > 3:
                bounds = (max(shown - spread, 0), shown + spread)
            else:
                bounds = behind(int(shown))
            assert (release.least[row, column], release.most[row, column]) == bounds
            assert bounds[0] <= INNER[row, column] <= bounds[1]
        assert release.least.tolist() == with_totals(release.least[:3, :3]).tolist()
        assert release.most.tolist() == with_totals(release.most[:3, :3]).tolist()
        assert "sum is kept" in str(release.notes[1])


FREQUENCIES = (5.0, 4.0, 2.0, 1.0)


@pytest.mark.parametrize(
    ("version", "make"), [("invariant", invariant), ("calibrated", calibrated)]
)
def test_public_frequencies_give_a_public_matrix(version: Any, make: Any) -> None:
    method = StochasticPerturbation(ROWS, BASE, version, FREQUENCIES)
    matrix = make(np.array(ROWS), np.array(FREQUENCIES))
    assert np.allclose(method.public_channel.matrix, matrix)
    assert method.public_channel.residue_base == BASE
    table = made_table(False)
    release = method.apply(table, 5)
    assert isinstance(release.channel, MatrixChannel)
    assert np.allclose(release.channel.matrix, matrix)
    assert method.channel_for(table).matrix.tolist() == method.public_channel.matrix.tolist()
    words = words_of(table, 5)
    for (row, column), n in np.ndenumerate(INNER):
        if (row, column) != STRUCTURAL:
            assert release.published[row, column] == drawn(int(n), int(words[row, column]), matrix)
    assert "leaves the distribution" in str(release.notes[0])


def test_frequencies_of_a_table_make_a_matrix_that_stays_secret() -> None:
    method = StochasticPerturbation(ROWS, BASE, "invariant")
    assert method.public_channel is None
    table = made_table(False)
    # Inner cells that can exist: rows of the matrix 0, 1, 2, 3, 3 (7), 2 (40), 1 and 2 (12).
    matrix = invariant(np.array(ROWS), np.array([1.0, 2.0, 3.0, 2.0]))
    assert np.allclose(method.channel_for(table).matrix, matrix)
    release = method.apply(table, 5)
    assert release.channel is None
    assert release.least is not None
    assert release.most is not None
    there = np.array(ROWS) > 0
    anywhere = (there.astype(int) @ there.T.astype(int) > 0).astype(float)
    for (row, column), shown in np.ndenumerate(release.published[:3, :3]):
        wanted = (0, 0) if (row, column) == STRUCTURAL else behind(int(shown), anywhere)
        assert (release.least[row, column], release.most[row, column]) == wanted
    nobody = Table(
        axes=(TableAxis.plain("a", ["x"]),), values=np.array([0]), structural=np.array([True])
    )
    assert method.channel_for(nobody).matrix.tolist() == CHANNEL.matrix.tolist()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"frequencies": FREQUENCIES}, "invariant and the calibrated"),
        ({"keep_total": True, "totals": "perturbed"}, "needs totals that are 'sums'"),
        ({"matrix": "shlomo-2015", "residue_base": 2}, "given by its rows"),
        ({"matrix": "unknown", "residue_base": None}, "no perturbation matrix"),
        ({"matrix": [[1, 0, 0], [0, 0.5, 0.5]], "version": "invariant"}, "square"),
        ({"matrix": {"largest_change": 2, "odd": 1}, "residue_base": None}, "designed matrix"),
        ({"version": "invariant", "frequencies": (1.0,)}, "needs 4 frequencies"),
        ({"matrix": {"variance": 2}, "residue_base": None}, "needs the parameter 'largest_change'"),
        ({"matrix": ((0.5, 0.4), (0, 1))}, "adds up to 0.9"),
        ({"matrix": ((1, 0), (0, 1)), "residue_base": None}, "leaves every count as it is"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(
    words: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        _ = StochasticPerturbation(**{"matrix": ROWS, "residue_base": BASE, **words}).base_channel


def test_a_cell_has_one_number_only_where_nothing_else_enters() -> None:
    alone = StochasticPerturbation(ROWS, BASE, totals="perturbed").abilities
    assert alone.repeatable
    assert alone.keyed_per_cell
    assert alone.one_number
    public = {"version": "invariant", "frequencies": FREQUENCIES, "totals": "perturbed"}
    assert StochasticPerturbation(ROWS, BASE, **public).abilities.one_number  # type: ignore[arg-type]
    for words in (
        {},
        {"keep_total": True},
        {"controlled": True, "totals": "perturbed"},
        {"version": "invariant", "totals": "perturbed"},
    ):
        able = StochasticPerturbation(ROWS, BASE, **words).abilities  # type: ignore[arg-type]
        assert able.repeatable
        assert not able.keyed_per_cell
        assert not able.one_number
