"""The local search on inner cells: what holds for every rounding, and how good it is on tiny tables."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import InputError
from lustrum.model.arrays import Ints
from lustrum.numeric.structure import Structure
from lustrum.protect.rounding.controlled import local, local_kernels
from lustrum.protect.rounding.controlled.local import Scope, round_inner, sums_of
from lustrum.protect.rounding.controlled.method import small_bounds
from structure.cases import halves, named, table_lists, with_total

QUICK = settings(deadline=None, max_examples=examples(30, 240))
SCOPES: tuple[Scope, ...] = ("all", "small")


def cube(*sizes: int) -> Structure:
    return Structure.of_tables([[with_total(f"v{i}", size) for i, size in enumerate(sizes)]])


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def counts(cells: int, seed: int, mean: float = 4.0) -> Ints:
    return rng(seed).negative_binomial(0.5, 0.5 / (0.5 + mean), cells).astype(np.int64)


def all_roundings(inner: Ints, base: int, scope: Scope) -> Ints:
    """Every way to send the cells in scope to one of their two neighbouring multiples."""
    ways = []
    for x in inner.tolist():
        fixed = x % base == 0 or (scope == "small" and x > base)
        ways.append([x] if fixed else [x - x % base, x - x % base + base])
    return np.array(list(itertools.product(*ways)), dtype=np.int64)


@QUICK
@given(
    table_lists(nested=False, tables=3),
    st.integers(2, 7),
    st.sampled_from(SCOPES),
    st.integers(0, 2**32),
)
def test_everything_published_is_a_sum_of_cells_at_neighbouring_multiples(
    tables: Structure, base: int, scope: Scope, seed: int
) -> None:
    inner = counts(tables.inner, seed)
    made = round_inner(inner, tables, base, rng=rng(seed), scope=scope, sweeps=5)
    assert np.array_equal(made.published, tables.matrix.astype(np.int64) @ made.inner)
    true = tables.matrix.astype(np.int64) @ inner
    assert made.largest_error == np.abs(made.published - true).max(initial=0)
    moved = made.inner != inner
    assert (np.abs(made.inner - inner) < base).all()
    assert (made.inner[moved] % base == 0).all()
    assert not moved[inner % base == 0].any()
    if scope == "small":
        assert not moved[inner >= base].any()
        assert np.isin(made.inner[inner < base], (0, base)).all()
    else:
        assert (made.inner % base == 0).all()


@QUICK
@given(st.integers(0, 2**32), st.sampled_from(SCOPES))
def test_a_cell_that_two_tables_share_is_the_same_in_both(seed: int, scope: Scope) -> None:
    age, sex, area = with_total("age", 3), with_total("sex", 2), halves("area", 2)
    tables = Structure.of_tables([[age, sex], [area, age], [sex]])
    made = round_inner(counts(tables.inner, seed), tables, 3, rng=rng(seed), scope=scope, sweeps=5)
    first, second, third = (
        made.published[a:b].reshape(layout.shape)
        for (a, b), layout in zip(itertools.pairwise(tables.offsets), tables.tables, strict=True)
    )
    everywhere = second.shape[0] - 1
    assert np.array_equal(first[:, -1], second[everywhere])
    assert np.array_equal(first[-1], third)


@QUICK
@given(
    st.sampled_from([cube(2, 2, 2), cube(2, 2, 3), Structure.margins((2, 2, 3), ["AB", "AC", ""])]),
    st.integers(2, 4),
    st.sampled_from(SCOPES),
    st.data(),
)
def test_the_largest_error_is_the_smallest_there_is_on_tiny_tables(
    tables: Structure, base: int, scope: Scope, data: st.DataObject
) -> None:
    cells = st.lists(st.integers(0, 2 * base), min_size=tables.inner, max_size=tables.inner)
    inner = np.array(data.draw(cells), dtype=np.int64)
    made = round_inner(inner, tables, base, rng=rng(), scope=scope)
    matrix = tables.matrix.astype(np.int64)
    error = np.abs((all_roundings(inner, base, scope) - inner) @ matrix.T)
    # Below the goal of the base less one the search does not care.
    assert max(made.largest_error, base - 1) == max(int(error.max(axis=1).min()), base - 1)


def test_without_any_rounding_within_the_base_the_next_larger_error_is_found() -> None:
    # Three cells of half the base, each two of them in a plane whose total must stay: one of each
    # two would have to go up.
    inner = np.array([5, 0, 0, 5, 0, 5, 0, 0])
    tables = cube(2, 2, 2)
    error = (all_roundings(inner, 10, "all") - inner) @ tables.matrix.astype(np.int64).T
    assert np.abs(error).max(axis=1).min() == 10
    made = round_inner(inner, tables, 10, rng=rng())
    assert (made.largest_error, made.within_goal) == (10, False)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("base", [3, 5])
def test_a_large_table_is_rounded_within_the_base_everywhere(base: int, scope: Scope) -> None:
    tables = cube(14, 15, 16)
    made = round_inner(counts(tables.inner, 3), tables, base, rng=rng(), scope=scope)
    assert made.within_goal
    assert made.largest_error == base - 1


@pytest.mark.parametrize("scope", SCOPES)
def test_a_hierarchy_by_age_and_sex_errs_by_no_more_than_the_base(scope: Scope) -> None:
    region = named(
        "region",
        [[i] for i in range(24)]
        + [list(range(i, i + 4)) for i in range(0, 24, 4)]
        + [list(range(i, i + 12)) for i in (0, 12)]
        + [list(range(24))],
    )
    age = named("age", [[i] for i in range(18)] + [[0, 1, 2], list(range(3, 13)), list(range(18))])
    tables = Structure.of_tables([[region, age, with_total("sex", 2)]])
    made = round_inner(counts(tables.inner, 5), tables, 3, rng=rng(), scope=scope)
    assert made.largest_error <= 3


def test_margins_of_a_hidden_cube_are_rounded_within_the_base() -> None:
    tables = Structure.margins((6, 5, 4, 3, 8), ["ABC", "CDE", "AE", "BD", "A", "E", ""])
    made = round_inner(counts(tables.inner, 6, mean=1.0), tables, 3, rng=rng())
    assert made.within_goal


@pytest.mark.parametrize("scope", SCOPES)
def test_the_search_never_ends_worse_than_it_starts(scope: Scope) -> None:
    for seed in range(40):
        tables = cube(3, 3, 3)
        inner = counts(27, seed)
        first = local._LocalRounding.of(inner, tables, 4, scope, rng(seed), 0.5)
        local_kernels.greedy_start(
            *local._pair(first.by_cell),
            first.error,
            first.up,
            first.residue,
            first.lean,
            4,
            first.state,
        )
        whole = local._LocalRounding.of(inner, tables, 4, scope, rng(seed), 0.5)
        whole.run(3, 4)
        assert whole._rank(3) <= first._rank(3)


def test_more_sweeps_leave_smaller_squares() -> None:
    tables, inner = cube(12, 12, 12), counts(12**3, 8)
    few, many = (round_inner(inner, tables, 3, rng=rng(), sweeps=n).squares for n in (0, 300))
    assert many < 0.95 * few


def test_the_weight_of_inner_cells_brings_them_nearer() -> None:
    tables, inner = cube(10, 10, 10), counts(1000, 9)
    plain, near = (
        np.abs(round_inner(inner, tables, 5, rng=rng(), inner_weight=w).inner - inner).sum()
        for w in (0.0, 2.0)
    )
    assert near < 0.9 * plain


def test_the_same_generator_gives_the_same_bytes_whatever_runs_beside_it() -> None:
    tables, inner = cube(9, 9, 9), counts(729, 2)

    def once(_: int) -> bytes:
        return round_inner(inner, tables, 3, rng=rng(7)).published.tobytes()

    with ThreadPoolExecutor(4) as pool:
        assert len({once(0), *pool.map(once, range(8))}) == 1
    assert once(0) != round_inner(inner, tables, 3, rng=rng(8)).published.tobytes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"base": 1}, "base"),
        ({"base": 3.0}, "base"),
        ({"scope": "large"}, "scope"),
        ({"goal": -1}, "goal"),
        ({"sweeps": -1}, "sweeps"),
        ({"inner_weight": -0.5}, "weight"),
        ({"inner": [-1, 1, 1, 1]}, "counts"),
        ({"inner": [1.5, 1, 1, 1]}, "counts"),
        ({"inner": [1, 1, 1]}, "inner cells"),
    ],
)
def test_what_cannot_be_rounded_is_refused_in_one_sentence(
    change: dict[str, Any], words: str
) -> None:
    given: dict[str, Any] = {"inner": [1, 2, 3, 4], "tables": cube(2, 2), "base": 3} | change
    with pytest.raises(InputError, match=words):
        round_inner(**given, rng=rng())


def test_nothing_to_move_is_left_as_it_is() -> None:
    made = round_inner([3, 0, 6, 9], cube(2, 2), 3, rng=rng())
    assert made.inner.tolist() == [3, 0, 6, 9]
    assert made.largest_error == made.squares == 0


@pytest.mark.parametrize("base", [2, 3, 5])
def test_bounds_of_inner_cells_hold_exactly_the_counts_that_can_show_so(base: int) -> None:
    shows: dict[int, list[int]] = {}
    for x in range(6 * base):
        for (shown,) in all_roundings(np.array([x]), base, "small").tolist():
            shows.setdefault(shown, []).append(x)
    complete = {k: v for k, v in shows.items() if k <= 4 * base}
    low, high = small_bounds(list(complete), base)
    assert low.tolist() == [min(v) for v in complete.values()]
    assert high.tolist() == [max(v) for v in complete.values()]


@QUICK
@given(st.integers(0, 2**32))
def test_sums_of_bounds_always_hold_the_truth(seed: int) -> None:
    tables, base = cube(3, 3, 3), 3
    inner = counts(27, seed)
    made = round_inner(inner, tables, base, rng=rng(seed), scope="small")
    low, high = (sums_of(end, tables) for end in small_bounds(made.inner, base))
    true = sums_of(inner, tables)
    assert (low >= 0).all()
    assert ((low <= true) & (true <= high)).all()


class Plain:
    """The kernels once more, with dense arrays and Python's own numbers."""

    def __init__(self, search: local._LocalRounding) -> None:
        self.member = search.by_margin.toarray().astype(np.int64)  # margins by cells
        self.base, self.residue, self.lean = search.base, search.residue, search.lean
        self.error, self.up = search.error.copy(), search.up.astype(np.int64)
        self.state = int(search.state[0])

    def word(self) -> int:
        mask = 2**64 - 1
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    def unit(self) -> float:
        return (self.word() >> 11) / 2**53

    def below(self, count: int) -> int:
        return ((self.word() >> 32) * count) >> 32

    def squares(self) -> int:
        return int(self.error @ self.error)

    def flip(self, i: int) -> float:
        """Move a cell to its other side; what that adds to the energy."""
        step, lean = (-self.base, -self.lean[i]) if self.up[i] else (self.base, self.lean[i])
        before = self.squares()
        self.error = self.error + step * self.member[:, i]
        self.up[i] = 1 - self.up[i]
        return self.squares() - before + float(lean)

    def start(self) -> None:
        for i in range(self.up.size):
            column, rest = self.member[:, i], int(self.residue[i])
            rise = self.error + (self.base - rest) * column
            fall = self.error - rest * column
            higher = rise @ rise - fall @ fall + self.lean[i]
            up = higher < 0 or (higher == 0 and self.unit() * self.base < rest)
            self.up[i], self.error = int(up), rise if up else fall

    def anneal(self, temperatures: npt.NDArray[np.float64]) -> int:
        moved = 0
        for heat in temperatures.tolist():
            for i in range(self.up.size):
                change = self.flip(i)
                if change > 0 and (change > 30 * heat or self.unit() >= math.exp(-change / heat)):
                    self.flip(i)
                else:
                    moved += 1
        return moved

    def pain(self, error: Ints, goal: int) -> list[float]:
        beyond = -(-np.maximum(np.abs(error) - goal, 0) // self.base)
        return [
            s * s + local_kernels.LEAN * x * x
            for s, x in zip(beyond.tolist(), (error / self.base).tolist(), strict=True)
        ]

    def walk(self, goal: int, steps: int) -> tuple[int, bool]:
        bad = np.flatnonzero(np.abs(self.error) > goal).tolist()
        for taken in range(steps):
            if not bad:
                return taken, True
            drawn = [bad[self.below(len(bad))] for _ in range(local_kernels.DRAWN)]
            m = min(drawn, key=lambda place: int(self.member[place].sum()))
            raised = int(self.error[m] < 0)
            cells = np.flatnonzero(self.member[m]).tolist()
            begin = self.below(len(cells))
            blind = self.below(local_kernels.BLIND) == 0
            chosen, least, ties = -1, 0.0, 0
            for i in (cells[begin:] + cells[:begin])[: local_kernels.LOOKED_AT]:
                if self.up[i] == raised:
                    continue
                own = np.flatnonzero(self.member[:, i])
                step, harm = self.base if raised else -self.base, 0.0
                old, new = self.pain(self.error[own], goal), self.pain(self.error[own] + step, goal)
                for a, b in zip(new, old, strict=True):
                    harm += 0.0 if blind else a - b
                if chosen < 0 or harm < least:
                    chosen, least, ties = i, harm, 1
                elif harm == least:
                    ties += 1
                    if self.below(ties) == 0:
                        chosen = i
            if chosen < 0:
                continue
            self.flip(chosen)
            for touched in np.flatnonzero(self.member[:, chosen]).tolist():
                beyond = abs(self.error[touched]) > goal
                if beyond and touched not in bad:
                    bad.append(touched)
                elif not beyond and touched in bad:
                    place = bad.index(touched)
                    bad[place] = bad[-1]
                    bad.pop()
        return steps, not bad

    def polish(self, goal: int, rounds: int) -> int:
        made = 0
        for _ in range(rounds):
            before = made
            for i in range(self.up.size):
                own = np.flatnonzero(self.member[:, i])
                if own.size == 0:
                    continue
                change = self.flip(i)
                if change < 0 and np.abs(self.error[own]).max() <= goal:
                    made += 1
                    continue
                cells = np.flatnonzero(self.member[own[self.below(own.size)]])
                for _ in range(local_kernels.TRIES):
                    j = int(cells[self.below(cells.size)])
                    if j == i or self.up[j] != self.up[i]:
                        continue
                    touched = np.flatnonzero(self.member[:, i] | self.member[:, j])
                    if change + self.flip(j) < 0 and np.abs(self.error[touched]).max() <= goal:
                        made += 1
                        break
                    self.flip(j)
                else:
                    self.flip(i)
            if made == before:
                break
        return made


@pytest.mark.parametrize("lean", [0.0, 0.25])
@pytest.mark.parametrize(("base", "scope"), [(2, "all"), (3, "all"), (5, "small")])
def test_the_kernels_do_what_plain_loops_do(base: int, scope: Scope, lean: float) -> None:
    tables = Structure.of_tables([[with_total("a", 4), halves("b", 2), with_total("c", 3)]])
    search = local._LocalRounding.of(counts(48, 4), tables, base, scope, rng(3), lean)
    search.by_margin.sort_indices()
    search.by_cell.sort_indices()
    plain = Plain(search)
    cells, lists = local._pair(search.by_cell), local._pair(search.by_margin)

    def same() -> bool:
        return (
            np.array_equal(search.error, plain.error)
            and np.array_equal(search.up, plain.up)
            and int(search.state[0]) == plain.state
        )

    local_kernels.greedy_start(
        *cells, search.error, search.up, search.residue, search.lean, base, search.state
    )
    plain.start()
    assert same()
    heats = np.geomspace(200.0, 0.5, 12)
    moved = local_kernels.anneal(
        *cells, search.error, search.up, search.lean, base, heats, search.state
    )
    assert moved == plain.anneal(heats) > 0
    assert same()
    for goal in (base - 1, base // 2):
        ended = local_kernels.walk(
            *cells, *lists, search.error, search.up, base, goal, 300, search.state
        )
        assert tuple(ended) == plain.walk(goal, 300)
        assert same()
    stirred = np.full(3, 10.0 * base**2)  # hot, so that there is something to polish
    local_kernels.anneal(*cells, search.error, search.up, search.lean, base, stirred, search.state)
    plain.anneal(stirred)
    goal = int(np.abs(search.error).max())
    made = local_kernels.polish(
        *cells, *lists, search.error, search.up, search.lean, base, goal, 3, search.state
    )
    assert made == plain.polish(goal, 3) > 0
    assert same()
    change = base * search.up - search.residue
    assert np.array_equal(search.by_margin.astype(np.int64) @ change, search.error)
