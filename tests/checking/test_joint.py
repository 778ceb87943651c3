"""All outputs of a session together: what several give away is found, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, combinations, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from lustrum.checking.joint import audit_together
from lustrum.checking.tables import OutputPopulation

NAMES = ("a", "b", "c")
T = 3


def reduced(row: list[Fraction], rows: list[tuple[int, list[Fraction]]]) -> list[Fraction]:
    """What is left of a row after those that are known."""
    for lead, other in rows:
        if row[lead]:
            row = [a - row[lead] * b for a, b in zip(row, other, strict=True)]
    return row


def echelon(given: list[list[int]]) -> list[tuple[int, list[Fraction]]]:
    rows: list[tuple[int, list[Fraction]]] = []
    for one in given:
        row = reduced([Fraction(v) for v in one], rows)
        lead = next((at for at, value in enumerate(row) if value), None)
        if lead is not None:
            rows.append((lead, [value / row[lead] for value in row]))
    return rows


def subsets(things: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
    return chain.from_iterable(combinations(things, size) for size in range(len(things) + 1))


@st.composite
def sessions(draw: st.DrawFn) -> tuple[np.ndarray, list[OutputPopulation]]:
    people = draw(st.integers(3, 12))
    values = np.array(
        [draw(st.lists(st.integers(0, 1), min_size=3, max_size=3)) for _ in range(people)]
    )
    outputs = []
    for number in range(draw(st.integers(1, 3))):
        inside = draw(st.lists(st.booleans(), min_size=people, max_size=people))
        who = np.flatnonzero(inside) if number and any(inside) else np.arange(people)
        of = tuple(draw(st.sampled_from([(), ("a",), ("b",), ("a", "b"), ("b", "c"), ("a", "c")])))
        shown = {}
        for level in subsets(of):
            if level == of or draw(st.booleans()):
                flat = draw(
                    st.lists(st.booleans(), min_size=2 ** len(level), max_size=2 ** len(level))
                )
                shown[level] = np.array(flat).reshape((2,) * len(level))
        codes = {name: values[who, NAMES.index(name)] for name in of}
        labels = dict.fromkeys(of, ("0", "1"))
        outputs.append(OutputPopulation(f"o{number}", who, codes, labels, shown))
    return values, outputs


@given(sessions())
@settings(max_examples=examples(40, 2000), deadline=None)
def test_groups_are_given_away_as_enumeration_of_all_unions_says(
    session: tuple[np.ndarray, list[OutputPopulation]],
) -> None:
    """Every union of parts in every cell, decided in fractions over all categories, against the audit."""
    values, outputs = session
    people = sorted({int(p) for one in outputs for p in one.people})
    kind = {p: tuple(p in set(one.people.tolist()) for one in outputs) for p in people}
    kinds = sorted(set(kind.values()))
    # A value is 2 where no output that uses the variable holds the person: nobody knows it.
    uses = [
        [any(k[at] and name in one.variables for at, one in enumerate(outputs)) for name in NAMES]
        for k in kinds
    ]
    atoms = list(product(range(len(kinds)), *[(0, 1, 2)] * 3))
    count = dict.fromkeys(atoms, 0)
    for p in people:
        k = kinds.index(kind[p])
        count[(k, *(int(v) if u else 2 for v, u in zip(values[p], uses[k], strict=True)))] += 1

    def row(inside: set[int], cell: dict[str, int]) -> list[int]:
        return [
            int(k in inside and all(at[NAMES.index(n)] == c for n, c in cell.items()))
            for k, *at in atoms
        ]

    rows, alone = [], []
    for number, one in enumerate(outputs):
        inside = {at for at, k in enumerate(kinds) if k[number]}
        for level, mask in one.shown.items():
            for cell in map(tuple, np.argwhere(mask)):
                rows.append(row(inside, dict(zip(level, map(int, cell), strict=True))))
            # What an output shows by itself: a cell, or all cells of a margin.
            for inner in subsets(level):
                for cell in product((0, 1), repeat=len(inner)):
                    fixed = dict(zip(inner, cell, strict=True))
                    if mask[tuple(fixed.get(name, slice(None)) for name in level)].all():
                        alone.append(row(inside, fixed))
    empty = {
        at
        for r in rows
        if not sum(v * count[a] for v, a in zip(r, atoms, strict=True))
        for at, v in enumerate(r)
        if v
    }
    empty |= {
        at
        for at, (k, *known) in enumerate(atoms)
        if any(u and v == 2 for u, v in zip(uses[k], known, strict=True))
    }
    rows += [[int(at == other) for other in range(len(atoms))] for at in empty]
    known = echelon(rows)
    levels = {level for one in outputs for level in subsets(one.variables)}
    expected = []
    for union in subsets(tuple(range(len(kinds)))):
        for level in levels:
            for cell in product((0, 1), repeat=len(level)):
                wanted = row(set(union), dict(zip(level, cell, strict=True)))
                held = sum(v * count[atom] for v, atom in zip(wanted, atoms, strict=True))
                if (
                    0 < held < T
                    and wanted not in alone
                    and not any(reduced([Fraction(v) for v in wanted], known))
                ):
                    expected.append(
                        (tuple(zip(level, map(str, cell), strict=True)), held, set(union))
                    )
    audit = audit_together(outputs, T)
    assert not audit.undecided
    found = {(group.where, group.people) for one in audit.differences for group in one.groups}
    assert found == {
        (where, held)
        for where, held, union in expected
        if not any(where == at and other < union for at, _, other in expected)
    }


def test_nobody_in_a_cell_of_everybody_is_nobody_in_it_of_a_part() -> None:
    """That nobody has a = 0 says of the one person with b = 1 that a is 1."""
    labels = {"a": ("0", "1"), "b": ("0", "1")}
    everybody, part = np.arange(10), np.arange(2, 10)
    b = (np.arange(10) == 9).astype(np.int64)

    def output(name: str, who: np.ndarray, of: str, shown: bool) -> OutputPopulation:
        codes = {one: np.ones(who.size, dtype=np.int64) if one == "a" else b[who] for one in of}
        mask = np.full((2,) * len(of), shown)
        return OutputPopulation(name, who, codes, {n: labels[n] for n in of}, {tuple(of): mask})

    outputs = [
        output("all", everybody, "a", True),
        output("part", part, "b", True),
        output("hidden", part, "ab", False),
    ]
    found = {
        (group.where, one.outputs)
        for one in audit_together(outputs, T).differences
        for group in one.groups
    }
    assert ((("a", "1"), ("b", "1")), ("all", "part")) in found
    without = audit_together(outputs[1:], T)
    assert not any(len(g.where) == 2 for one in without.differences for g in one.groups)


def rounded(counts: list[int], base: int, name: str = "o", drop: int = 0) -> OutputPopulation:
    """People by one variable, the first ``drop`` of them left out, with counts rounded to a base."""
    codes = np.repeat(np.arange(len(counts)), counts)[drop:]
    who, labels = np.arange(drop, sum(counts)), tuple(map(str, range(len(counts))))
    shown = {("a",): np.ones(len(counts), dtype=np.bool_)}
    return OutputPopulation(name, who, {"a": codes}, {"a": labels}, shown, base)


@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=4).filter(any),
    st.tuples(st.integers(2, 15), st.integers(2, 15)),
)
@settings(max_examples=examples(60, 1000), deadline=None)
def test_two_roundings_of_few_people_leave_what_both_ranges_have_in_common(
    counts: list[int], bases: tuple[int, int]
) -> None:
    """Against all numbers that round to what is shown."""
    outputs = [rounded(counts, base, f"o{base}{at}") for at, base in enumerate(bases)]
    found = {
        group.where[0][1] for one in audit_together(outputs, 10).differences for group in one.groups
    }

    def shown(number: int, base: int) -> int:
        return int(np.floor(number / base + 0.5)) * base

    narrow = set()
    for code, count in enumerate(counts):
        by = [{n for n in range(60) if shown(n, b) == shown(count, b)} for b in bases]
        ranges = [shown(count, base) for base in bases]
        sizes = [
            base if number else len(one)
            for base, number, one in zip(bases, ranges, by, strict=True)
        ]
        if 0 < count < 10 and any(2 * len(by[0] & by[1]) <= size for size in sizes):
            narrow.add(str(code))
    assert found == narrow


def test_rounded_tables_of_nearly_the_same_people_are_found_and_one_rounding_is_not() -> None:
    assert audit_together([rounded([40, 4], 10)], 10).differences == ()
    two = [rounded([40, 24], 10, "all"), rounded([40, 24], 10, "fewer", drop=2)]
    (found,) = audit_together(two, 10).differences
    assert (set(found.outputs), found.smallest) == ({"all", "fewer"}, 2)


def test_an_exact_total_beside_rounded_parts_narrows_a_small_one() -> None:
    """15 and 15 show 20 and 20, and 5 shows 10; the exact 35 leaves 5 alone."""
    parts = rounded([15, 15, 5], 10)
    whole = OutputPopulation("whole", np.arange(35), {}, {}, {(): np.ones((), dtype=np.bool_)})
    (found,) = audit_together([parts, whole], 10).differences
    assert (set(found.outputs), found.smallest) == ({"o", "whole"}, 5)
