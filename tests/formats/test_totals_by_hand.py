"""Which codes are sums of others: a relation that is missed is an attack that nobody looked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from lustrum.model import InputError
from lustrum.readers import (
    ColumnNames,
    Reading,
    StatedTotals,
    TableFile,
    groups_of_text,
    recognise,
    table_of_csv,
)
from lustrum.readers.code_groups import _runs_on, groups_by_code
from lustrum.readers.dimensions import Dimension
from lustrum.readers.numbers import _finest, _NumberSearch, groups_by_numbers
from lustrum.readers.sums import (
    SumsError,
    _covers,
    add_up,
    check_same_cover,
    check_sums,
    doubt_about_brackets,
    is_largest,
    may_be_negative,
    room_of,
    row_that_is_off,
    shown_at_all,
    shown_whole,
    worst_difference,
)

Grid = dict[str, list[int | None]]
PUBLISHED = Reading(published=True)


def made_file(rows: Grid, source: str = "x.csv", signed: bool = False) -> TableFile:
    """A file with a row for each code of ``a`` and each column ``k0``, ``k1`` ... of ``b``."""
    lines = [
        f"{code},k{i},{'' if v is None else v}"
        for code, own in rows.items()
        for i, v in enumerate(own)
    ]
    text = "\n".join(["a,b,value", *lines]) + "\n"
    return table_of_csv(text, source, reading=Reading(published=True, signed=signed))


def random_grids(count: int, codes: Sequence[str], low: int, seed: int = 1) -> Iterator[Grid]:
    """Small grids with blanks, in which the first code is often the sum of the others, or nearly."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        width = int(rng.integers(1, 4))
        parts = rng.integers(low, 5, (len(codes) - 1, width))
        total = parts.sum(axis=0) + rng.choice([0, 0, 0, 0, 1, -1, 2, -3], width)
        blank = rng.random((len(codes), width)) < rng.choice([0.0, 0.2, 0.4])
        values = np.vstack([total, parts]).tolist()
        yield {
            code: [None if gone else v for v, gone in zip(own, gaps, strict=True)]
            for code, own, gaps in zip(codes, values, blank.tolist(), strict=True)
        }


def columns(rows: Grid, codes: Sequence[str]) -> list[list[int | None]]:
    width = len(next(iter(rows.values())))
    return [[rows[c][k] for c in codes] for k in range(width)]


def is_negative(rows: Grid) -> bool:
    return any(v is not None and v < 0 for own in rows.values() for v in own)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("low", [0, -3])
def test_sums_are_judged_column_by_column(low: int, signed: bool) -> None:
    verdicts = set()
    for rows in random_grids(120, "tabc", low):
        file = made_file(rows, signed=signed)
        negative = signed or is_negative(rows)
        assert may_be_negative(file, file.known_values[0][0]) == negative
        expected = "open"
        for slack in (0, 1):
            room = 2 if not slack else 4
            expected = "open"
            more = less = agrees = False
            for total, *parts in columns(rows, "tabc"):
                if total is None:
                    continue
                known = [p for p in parts if p is not None]
                more |= not negative and sum(known) > total + room
                if len(known) == 3:
                    less |= abs(sum(known) - total) > room
                    agrees |= total != 0
            expected = "more" if more else "less" if less else "agrees" if agrees else "open"
            assert add_up("a", [file], "t", ["a", "b", "c"], slack) == expected, rows
            verdicts.add(expected)
        for code in "ta":
            assert shown_at_all(file, "a", code) == any(v is not None for v in rows[code])
            larger = any(
                v is not None and rows[code][k] is not None and v > rows[code][k]  # type: ignore[operator]
                for own in rows.values()
                for k, v in enumerate(own)
            )
            assert is_largest(file, "a", code) == (not larger)
        made = Dimension("a", ("a", "b", "c"), {"t": frozenset({0, 1, 2})}, {"t": "by name"})
        whole = any(None not in column and column[0] != 0 for column in columns(rows, "tabc"))
        assert shown_whole(file, made, "t") == whole
    assert verdicts >= {"less", "agrees", "open"}


def test_codes_that_a_file_does_not_list_say_little_about_sums() -> None:
    file = made_file({"t": [9, 9], "a": [3, 3], "b": [4, 4]})
    assert add_up("a", [file], "t", ["a", "b", "c"], 0) == "open"
    assert add_up("a", [file], "z", ["a", "b"], 0) == "open"
    tight = made_file({"t": [5], "a": [7], "b": [None], "c": [0]})
    assert add_up("a", [tight], "t", ["a", "b", "c"], 0) == "open", "a hidden part may be 0"
    assert add_up("a", [file], "t", ["y", "z"], 0) == "open"
    assert add_up("a", [made_file({"t": [9], "a": [13]})], "t", ["a", "c"], 0) == "more"
    assert not shown_at_all(file, "a", "z")
    assert is_largest(file, "a", "z"), "what is not there is not smaller"
    assert not is_largest(made_file({"t": [9], "a": [9]}), "a", "t"), "two codes tell nothing"
    rest = Dimension("a", ("a", "b"), {"t": frozenset({0, 1, 2})}, {"t": "by name"}, True)
    assert not shown_whole(file, rest, "t")
    other = Dimension("a", ("a", "c"), {"t": frozenset({0, 1})}, {"t": "by name"})
    assert not shown_whole(file, other, "t")
    missing = Dimension("a", ("a", "b"), {"z": frozenset({0, 1})}, {"z": "by name"})
    assert not shown_whole(file, missing, "z")
    both = [made_file({"t": [9], "a": [3], "b": [4]}), made_file({"t": [7], "a": [3], "b": [4]})]
    assert add_up("a", both, "t", ["a", "b"], 0) == "less", "one file is enough to speak against it"
    assert add_up("a", both[1:], "t", ["a", "b"], 0) == "agrees"


def test_room_for_sums_of_rounded_numbers() -> None:
    whole, tenths = made_file({"t": [3]}), table_of_csv("a,value\nt,0.5\n", "x")
    assert [room_of(whole, n, 0) for n in (1, 2, 3, 4, 5)] == [1, 1, 2, 2, 3]
    assert [room_of(whole, n, 3) for n in (1, 2, 3)] == [6, 9, 12]
    assert [room_of(tenths, n, 3) for n in (1, 2)] == [60, 90]


@pytest.mark.parametrize("low", [0, -3])
def test_the_worst_difference_is_the_largest_of_all_columns(low: int) -> None:
    """Over the finest codes, and over a subtotal with what it leaves where a finest code is hidden."""
    made = Dimension(
        "a",
        ("a", "b", "c"),
        {"t": frozenset({0, 1, 2}), "s": frozenset({0, 1})},
        {"t": "by name", "s": "by code"},
    )
    for rows in random_grids(120, "tabcs", low, seed=2):
        file = made_file(rows)
        negative = is_negative(rows)
        found = []
        for k, (total, a, b, c, s) in enumerate(columns(rows, "tabcs")):
            own = 0
            for parts in ([a, b, c], [s, c]):
                if total is None:
                    continue
                known = [p for p in parts if p is not None]
                off = sum(known) - total
                if len(known) < len(parts):
                    off = 0 if negative else max(off, 0)
                own = off if abs(off) > abs(own) else own
            found.append((own, k))
        worst = max(abs(off) for off, _ in found)
        first = next((off, k) for off, k in found if abs(off) == worst)
        assert worst_difference(file, made, "t") == (first[0], f"value, b=k{first[1]}"), rows


def test_differences_have_their_place_in_tables_of_several_values_and_of_one_variable() -> None:
    two = table_of_csv(
        "a,b,u,v\nt,k,9,9\na,k,4,5\nb,k,5,3\nt,l,2,2\na,l,1,1\nb,l,1,1\n",
        "x.csv",
        reading=PUBLISHED,
        named=ColumnNames(values=("u", "v")),
    )
    made = Dimension("a", ("a", "b"), {"t": frozenset({0, 1})}, {"t": "by name"})
    assert worst_difference(two, made, "t") == (-1, "v, b=k")
    assert worst_difference(two, made, "t")[1].startswith("v")
    one = table_of_csv("a,value\nt,9\na,4\nb,3\n", "x.csv")
    assert worst_difference(one, made, "t") == (-2, "value")
    unlisted = Dimension("a", ("a", "b"), {"z": frozenset({0, 1})}, {"z": "by name"})
    assert worst_difference(one, unlisted, "z") == (0, "")
    rest = Dimension("a", ("a", "b"), {"t": frozenset({0, 1, 2})}, {"t": "by name"}, True)
    assert worst_difference(one, rest, "t") == (0, "value"), (
        "the rest may be the 2 that are missing"
    )
    over = table_of_csv("a,value\nt,5\na,4\nb,3\n", "x.csv")
    assert worst_difference(over, rest, "t") == (2, "value"), "parts are more than the whole"


def test_subtotals_stand_for_hidden_codes_the_largest_first_and_never_twice() -> None:
    groups = {
        "t": frozenset({0, 1, 2, 3}),
        "ab": frozenset({0, 1}),
        "abc": frozenset({0, 1, 2}),
        "cd": frozenset({2, 3}),
    }
    made = Dimension("a", ("a", "b", "c", "d"), groups, dict.fromkeys(groups, "by name"))
    rows: Grid = {
        "t": [10],
        "a": [None],
        "b": [2],
        "c": [3],
        "d": [4],
        "ab": [3],
        "abc": [6],
        "cd": [7],
    }
    assert worst_difference(made_file(rows), made, "t")[0] == 0
    assert worst_difference(made_file({**rows, "abc": [7]}), made, "t")[0] == 1
    assert worst_difference(made_file({**rows, "abc": [5]}), made, "t")[0] == -1
    # Only the largest subtotals and what they leave are taken: abc and d.
    assert worst_difference(made_file({**rows, "ab": [30]}), made, "t")[0] == 0
    assert worst_difference(made_file({**rows, "ab": [30]}), made, "abc")[0] == 27


# Confidential files: every sum is checked.


@pytest.mark.parametrize(
    ("rows", "slack", "wrong"),
    [
        ({"t": [6, 6], "a": [3, 2], "b": [3, 4]}, 0, False),
        ({"t": [6, 7], "a": [3, 2], "b": [3, 4]}, 0, True),
        ({"t": [6, 5], "a": [3, 2], "b": [3, 4]}, 0, True),
        ({"t": [6, None], "a": [3, 2], "b": [3, 4]}, 0, False),
        ({"t": [6, 9], "a": [3, 2], "b": [None, 4]}, 0, True),
        ({"t": [9, 6], "a": [3, 2], "b": [None, 4]}, 0, False),
        ({"t": [2, 6], "a": [3, 2], "b": [None, 4]}, 0, True),
        ({"t": [2, 6], "a": [3, -2], "b": [None, 8]}, 0, False),
        ({"t": [0, 6], "a": [0, 2], "b": [1, 4]}, 0, True),
        ({"t": [6, 9], "a": [3, 2], "b": [3, 4]}, 1, False),
        ({"t": [6, 10], "a": [3, 2], "b": [3, 4]}, 1, True),
        ({"t": [6, 3], "a": [3, 2], "b": [3, 4]}, 1, False),
        ({"t": [6, 2], "a": [3, 2], "b": [3, 4]}, 1, True),
        ({"t": [9], "a": [3]}, 0, False),
        ({"t": [9], "a": [10]}, 0, True),
        ({"t": [9], "a": [-1]}, 0, False),
        ({"a": [9], "b": [10]}, 0, False),
    ],
)
def test_a_group_that_is_not_its_parts_is_refused_with_its_kind(
    rows: Grid, slack: int, wrong: bool
) -> None:
    for kind, more in (("total", ()), ("subtotal", ("c",))):
        finest = ("a", "b", *more)
        made = Dimension("a", finest, {"t": frozenset({0, 1})}, {"t": "by name"})
        file = made_file(rows)
        if not wrong:
            check_sums(file, made, slack)
            continue
        with pytest.raises(
            InputError, match=rf"x\.csv: the {kind} 't' of 'a' \(by name\) is not"
        ) as e:
            check_sums(file, made, slack)
        assert f"'t' is not a {kind}." in str(e.value)
        assert str(e.value).startswith("x.csv: the ")


def test_room_of_a_rounding_base_is_in_units_of_the_last_digit() -> None:
    made = Dimension("a", ("a", "b"), {"t": frozenset({0, 1})}, {"t": "by name"})
    check_sums(table_of_csv("a,value\nt,12.5\na,3\nb,0.5\n", "x"), made, 3)
    with pytest.raises(InputError, match=r"it is 9\.1 more"):
        check_sums(table_of_csv("a,value\nt,12.6\na,3\nb,0.5\n", "x"), made, 3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("t,7\na,3\nb,3\n", "as if each number had been rounded on its own"),
        ("t,8\na,3\nb,3\n", ""),
        ("t,11\na,3\nb,3\nc,3\n", "as if each number had been rounded on its own"),
        ("t,12\na,3\nb,3\nc,3\n", ""),
        ("t,6.04\na,3.01\nb,3.01\n", "which --decimals 1 would round away"),
        ("t,6.4\na,3.2\nb,3.3\n", "which --decimals 0 would round away"),
        ("t,6.444\na,3.22\nb,3.22\n", "which --decimals 2 would round away"),
        ("t,6.444\na,3.222\nb,3.212\n", "which --decimals 1 would round away"),
        ("t,9.5\na,3.2\nb,3.3\n", ""),
    ],
)
def test_what_would_help_is_said_and_nothing_else(text: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        recognise(
            [table_of_csv("a,value\n" + text, "x")], StatedTotals(named={"a": frozenset("t")})
        )
    said = str(refused.value)
    assert ("rounded on its own" in said) == ("rounded on its own" in words)
    assert words in said
    assert ("--decimals" in said) == ("--decimals" in words)


def test_the_one_number_in_every_sum_that_is_off_is_named_and_only_where_there_is_one() -> None:
    good = {("x", "p"): 10, ("x", "q"): 20, ("y", "p"): 30, ("y", "q"): 40}

    def refused(change: dict[tuple[str, str], int]) -> str:
        cells = dict(good)
        for a in "xy":
            cells[a, "Total"] = sum(good[a, b] for b in "pq")
        for b in ("p", "q", "Total"):
            cells["Total", b] = sum(cells[a, b] for a in "xy")
        cells |= change
        lines = [f"{a},{b},{v}" for (a, b), v in cells.items()]
        with pytest.raises(InputError) as caught:
            recognise([table_of_csv("\n".join(["a,b,value", *lines]), "x.csv")])
        return str(caught.value)

    assert refused({("x", "p"): 17}).endswith(
        "The number in line 2 (a=x, b=p) is in every sum that is off."
    )
    assert "in every sum" not in refused({("x", "p"): 17, ("y", "q"): 90})
    assert "in every sum" not in refused({("x", "p"): 17, ("y", "p"): 23}), (
        "only along one variable"
    )


def test_files_with_other_codes_must_not_each_be_the_whole() -> None:
    made = Dimension("a", ("n", "s", "n1", "n2"), {"t": frozenset({0, 1, 2, 3})}, {"t": "by name"})

    def alone(rows: Grid, made: Dimension = made, more: int = 1) -> bool:
        try:
            check_same_cover([made_file(rows)] + [made_file({"t": [1], "n1": [1]})] * more, made)
        except InputError as problem:
            return "x.csv: the codes of 'a' add up to 't' without those of the other" in str(
                problem
            )
        return False

    assert alone({"t": [9, 5], "n": [4, 2], "s": [5, 3]})
    assert not alone({"t": [9, 5], "n": [4, 2], "s": [5, 2]})
    assert not alone({"t": [9, 5], "n": [4, 2], "s": [None, 2]})
    assert alone({"t": [9, 5], "n": [4, 2], "s": [None, 3]})
    assert alone({"t": [9, None], "n": [4, 2], "s": [5, 3]})
    assert alone({"t": [9, 0], "n": [4, 0], "s": [5, 0]})
    assert not alone({"t": [0, 0], "n": [0, 0], "s": [0, 0]})
    assert alone({"t": [1, 0], "n": [1, 0], "s": [0, 0]})
    assert not alone({"t": [9, 5], "n": [9, 5]}), "one code alone is another name"
    assert not alone({"n": [4, 2], "s": [5, 3]})
    assert not alone({"t": [9], "n": [4], "s": [5], "n1": [0], "n2": [0]}), "all codes are there"
    assert not alone({"t": [9, 5], "n": [4, 2], "s": [5, 3]}, more=0)
    rest = Dimension(made.name, made.finest, {"t": frozenset(range(5))}, made.how, True)
    assert not alone({"t": [9, 5], "n": [4, 2], "s": [5, 3]}, rest)
    none = Dimension(made.name, made.finest, {}, {})
    assert not alone({"t": [9, 5], "n": [4, 2], "s": [5, 3]}, none)


def test_brackets_are_settled_by_sums_or_asked_about() -> None:
    made = Dimension("a", ("a", "b"), {"t": frozenset({0, 1})}, {"t": "by name"})
    other = Dimension("z", ("a", "b"), {"t": frozenset({0, 1})}, {"t": "by name"})

    def asked(text: str, *dimensions: Dimension) -> bool:
        file = table_of_csv("a,value\n" + text, "x.csv", reading=PUBLISHED)
        said = doubt_about_brackets(file, dimensions)
        assert not said or said.startswith("x.csv: numbers in brackets in the column 'value'")
        return bool(said)

    assert not asked("t,3\na,5\nb,(2)\n", made), "with a plus they would not add up"
    assert asked("t,7\na,5\nb,(2)\n", made), "with a plus they add up"
    assert asked("t,3\na,x\nb,(2)\n", made)
    assert asked("t,3\na,5\nb,(2)\n", other), "the dimension of another file settles nothing"
    assert asked("t,3\na,5\nb,(2)\n")
    assert not asked("t,7\na,5\nb,-2\n", made)
    assert not asked("t,x\na,5\nb,2\n", made)
    inner = Dimension("a", ("a", "b", "c"), {"s": frozenset({0, 1}), "t": frozenset({0, 1, 2})}, {})
    assert not asked("t,5\ns,7\na,5\nb,2\nc,(2)\n", inner), "one sum settles it"
    beside = "a,u,v\nt,7,7\na,5,5\nb,(2),2\n"
    file = table_of_csv(beside, "x.csv", ColumnNames(values=("u", "v")), reading=PUBLISHED)
    assert "in the column 'u'" in doubt_about_brackets(file, [made])
    two = "a,u,v\nt,3,7\na,5,5\nb,(2),(2)\n"
    file = table_of_csv(two, "x.csv", ColumnNames(values=("u", "v")), reading=PUBLISHED)
    assert doubt_about_brackets(file, [made]) == "", "one column settles it"


# Sums that numbers show.


def found(rows: Sequence[Sequence[int | None]], codes: str, **said: object) -> dict[str, str]:
    values = np.array([[0 if v is None else v for v in own] for own in rows], dtype=np.int64)
    known = np.array([[v is not None for v in own] for own in rows])
    groups = groups_by_numbers(values, known, codes.split(), **said)  # type: ignore[arg-type]
    names = codes.split()
    return {names[c]: " ".join(names[p] for p in sorted(parts)) for c, parts in groups.items()}


N = None


@pytest.mark.parametrize(
    ("codes", "rows", "expected"),
    [
        # Codes beside each other need 20 bits: a value v has log2(1 + v).
        ("a b z", [[1048570], [5], [1048575]], {"z": "a b"}),
        ("a b z", [[1048569], [5], [1048574]], {}),
        ("a b z", [[1000, 20], [23, 1003], [1023, 1023]], {"z": "a b"}),
        # Two columns are as many as two codes, so that equations settle them, with 12 bits.
        ("a b z", [[60, 2], [3, 61], [63, 63]], {"z": "a b"}),
        ("a b z", [[60, 2], [3, 60], [63, 62]], {}),
        # Codes that begin with the code need 6, a single one 20.
        ("z z1 z2", [[63], [60], [3]], {"z": "z1 z2"}),
        ("z z1 z2", [[62], [60], [2]], {}),
        ("z z1", [[1048575], [1048575]], {"z": "z1"}),
        ("z z1", [[1048574], [1048574]], {}),
        # A column that does not add up speaks against it, as do parts that are more than the whole.
        ("a b z", [[1048570, 1], [5, 1], [1048575, 3]], {}),
        ("a b z", [[1048570, 4], [5, N], [1048575, 3]], {}),
        ("a b z", [[1048570, 2], [5, N], [1048575, 3]], {"z": "a b"}),
        ("a b z", [[1048570, 2], [5, 3], [1048575, N]], {"z": "a b"}),
        ("z z1 z2", [[63, 2], [60, 3], [3, N]], {}),
        ("z z1 z2", [[63, 3], [60, 3], [3, N]], {"z": "z1 z2"}),
        ("z z1 z2 z3", [[63, 4], [60, 3], [2, 3], [1, N]], {}),
        ("z z1 z2", [[63, 9], [60, 3], [3, 3]], {}),
        ("a b z", [[1048570, 3], [5, N], [1048575, 3]], {"z": "a b"}),
        ("a b z c d", [[1048570, 0], [5, 7], [1048575, 7], [1, 1], [2, 2]], {"z": "a b"}),
        # Where values are negative, parts can be more than the whole.
        ("a b z", [[1048570, 4], [-5, N], [1048565, 3]], {}),
        ("a b z", [[1048590, 4], [-5, N], [1048585, 3]], {"z": "a b"}),
        ("z z1 z2", [[90, 2], [93, 3], [-3, N]], {"z": "z1 z2"}),
        # Codes that are larger somewhere are left out of a run.
        ("a y b z", [[1048570, 1], [1, 9], [5, 1], [1048575, 2]], {"z": "a b"}),
        ("a y b z", [[1048570, 1], [1, N], [5, 1], [1048575, 2]], {}),
        # Empty codes at the beginning of a run are no part of it.
        ("e a b z", [[0], [1048570], [5], [1048575]], {"z": "a b"}),
        ("e a z", [[0], [1048575], [1048575]], {}),
        # The run with the most evidence, of these the shortest, and of these the first.
        ("a b e z", [[1048570], [5], [0], [1048575]], {"z": "a b"}),
        ("a b c d z", [[1048570], [5], [1048570], [5], [1048575]], {"z": "a b"}),
        # A column that shows no part settles nothing, and so does one with 0 for the sum.
        ("a b z", [[N, 1048570], [N, 5], [5000000, 1048575]], {"z": "a b"}),
        ("a b z", [[N, 1048570], [5, 5], [5000000, 1048575]], {"z": "a b"}),
        ("a b z", [[7, 1048570], [N, 5], [5000000, 1048575]], {"z": "a b"}),
        # A code that is 0 where it is shown may be more where it is hidden.
        ("a h z", [[1048575, 3], [0, N], [1048575, 9]], {"z": "a h"}),
        ("a e z", [[1048575, 3], [0, 0], [1048575, 3]], {}),
        ("e a z c", [[0, 0], [1048575, 3], [1048575, 3], [N, N]], {}),
        # Of two codes that are equal wherever they are shown only one can hold the other.
        ("a b y e", [[1300000, 9], [0, N], [1300000, 9], [0, N]], {"a": "b y"}),
        # A group of groups, in terms of the finest codes.
        (
            "a b y c d x z",
            [[1048570], [5], [1048575], [2048570], [7], [2048577], [3097152]],
            {"y": "a b", "x": "c d", "z": "a b c d"},
        ),
    ],
)
def test_a_sum_counts_with_enough_evidence_and_nothing_against_it(
    codes: str, rows: list[list[int | None]], expected: dict[str, str]
) -> None:
    assert found(rows, codes) == expected


def test_groups_of_groups_are_told_in_finest_codes() -> None:
    def finest(found: dict[int, set[int]]) -> dict[int, set[int]]:
        return {c: set(_finest(c, {c: frozenset(p) for c, p in found.items()})) for c in found}

    assert finest({5: {1, 4}, 4: {2, 3}}) == {5: {1, 2, 3}, 4: {2, 3}}
    assert finest({4: {2, 3}, 5: {1, 4}}) == {4: {2, 3}, 5: {1, 2, 3}}
    chain = {6: {5, 1}, 5: {4, 2}, 4: {3, 7}}
    assert finest(chain) == {6: {1, 2, 3, 7}, 5: {2, 3, 7}, 4: {3, 7}}
    assert finest({5: {1, 2}}) == {5: {1, 2}}
    assert finest({}) == {}


def test_values_that_are_said_to_be_signed_can_hide_negative_parts() -> None:
    rows = [[1048570, 4], [5, N], [1048575, 3]]
    assert found(rows, "a b z") == {}
    assert found(rows, "a b z", signed=True) == {"z": "a b"}
    text = "a,b,value\n" + "".join(
        f"{code},{b},{'x' if v is None else v}\n"
        for code, own in zip("pqw", rows, strict=True)
        for b, v in zip("kl", own, strict=True)
    )
    said = StatedTotals(none=frozenset({"b"}))
    file = table_of_csv(text, "x", reading=Reading(published=True, signed=True))
    assert recognise([file], said, published=True).dimensions["a"].totals == ("w",)


def test_groups_that_are_known_are_part_of_nothing() -> None:
    rows = [[1048570], [5], [1048575], [7], [1048582]]
    assert found(rows, "a b z c w") == {"z": "a b", "w": "a b c"}
    assert found(rows, "a b z c w", skip=[2]) == {"w": "a b c"}
    assert found([rows[2], rows[3], rows[4]], "z c w") == {"w": "z c"}
    assert found([rows[2], rows[3], rows[4]], "z c w", skip=[0]) == {}
    assert found(rows[:3], "a b z", skip=[0]) == {}


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_planted_sums_of_scattered_codes_are_found_and_no_others(
    negative: bool, gaps: float
) -> None:
    """Every second code of a long list, in any order, by the only solution of the equations."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        parts = rng.integers(-500 if negative else 0, 900, (7, 40))
        chosen = [0, 2, 5]
        total = parts[chosen].sum(axis=0)
        values = np.vstack([parts, total])
        known = rng.random(values.shape) >= gaps
        codes = [*"abcdefg", "w"]
        groups = groups_by_numbers(np.where(known, values, 0), known, codes)
        assert groups == {7: frozenset(chosen)} or (negative and groups[7] == frozenset(chosen)), (
            seed
        )


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        # Three unknowns need 13 bits: 8191 is one column of 13.
        ([(8000, 7, 191), (0, 0, 0), (0, 1, 0)], {}),
        ([(8000, 7, 191), (0, 9, 0), (5, 1, 0)], {"w": "a c"}),
        ([(4000, 7, 95), (0, 9, 0), (0, 1, 0)], {}),
        ([(8000, 7, 191), (0, 9, 0)], {}),
    ],
)
def test_equations_need_as_many_columns_as_codes_and_evidence(
    columns: list[tuple[int, int, int]], expected: dict[str, str]
) -> None:
    rows = [list(own) for own in zip(*columns, strict=True)]
    rows.append([a + c for a, _, c in columns])
    assert found(rows, "a b c w") == expected


def test_runs_are_found_where_no_column_is_known_throughout() -> None:
    rng = np.random.default_rng(5)
    parts = rng.integers(1, 90_000, (40, 2))
    rows: list[list[int | None]] = [list(map(int, own)) for own in parts]
    rows[20][0] = rows[21][1] = None  # no column is known throughout
    rows.append([sum(int(v) for v in parts[3:9, k]) for k in range(2)])
    names = " ".join([*(f"c{i}" for i in range(40)), "w"])
    assert found(rows, names) == {"w": "c3 c4 c5 c6 c7 c8"}


def drawn(rng: np.random.Generator, rows: int, columns: int, low: int, most: int) -> np.ndarray:
    """Small and large numbers, many of them 0."""
    sizes = rng.choice([1, 2, 6, 900, most], (rows, columns))
    return rng.integers(low, 2, (rows, columns)) * rng.integers(0, sizes + 1)


def plain_evidence(target: list[int | None], run: list[list[int | None]], signed: bool) -> int:
    """2 to the bits of evidence, or 0 where a column speaks against the sum."""
    product = 1
    for total, *own in zip(target, *run, strict=True):
        shown = [v for v in own if v is not None]
        if total is None:
            continue
        if len(shown) == len(own):
            if sum(shown) != total:
                return 0
            product *= 1 + abs(total)
        elif not signed and sum(shown) > total:
            return 0
    return product


@pytest.mark.parametrize("low", [0, -1])
def test_runs_are_those_that_a_plain_search_finds(low: int) -> None:
    """Every start with every end: most evidence, then shortest, then first."""
    rng = np.random.default_rng(7)
    seen = []
    for _ in range(400):
        count, width = int(rng.integers(2, 8)), int(rng.integers(1, 5))
        values = drawn(rng, count, width, low, 1_300_000)
        first, stop = np.sort(rng.choice(count + 1, 2, replace=False))
        total = values[first:stop].sum(axis=0) + (rng.random(width) < 0.04)
        values = np.vstack([values, total])
        known = rng.random(values.shape) >= rng.choice([0.0, 0.15, 0.3])
        if rng.random() < 0.5:
            known[:, 0] = True
        values[~known] = 0
        signed = bool((values < 0).any())
        rows = [
            [int(v) if k else None for v, k in zip(own, there, strict=True)]
            for own, there in zip(values, known, strict=True)
        ]
        target = rows[-1]
        filled = [
            any(v != 0 and t is not None for v, t in zip(r, target, strict=True)) for r in rows
        ]
        best: tuple[int, int, set[int]] = (2**20 - 1, 0, set())
        for i in range(count):
            for j in range(i + 2, count + 1):
                if filled[i] and sum(filled[i:j]) > 1:
                    product = plain_evidence(target, rows[i:j], signed)
                    if (product, i - j) > best[:2] and product >= 2**20:
                        best = (product, i - j, set(range(i, j)))
        search = _NumberSearch(values, known, ["x"] * len(rows), signed)
        got = search._by_run(count, np.arange(count))
        assert (got or set()) == best[2], (rows, signed)
        seen.append(bool(best[2]))
    assert sum(seen) > 60


def rank(rows: list[list[int]]) -> int:
    """How many rows are independent, in fractions."""
    left, found = [[Fraction(v) for v in row] for row in rows], 0
    for column in range(len(rows[0])):
        pivot = next((row for row in left if row[column]), None)
        if pivot is None:
            continue
        found += 1
        left = [
            [v - row[column] / pivot[column] * p for v, p in zip(row, pivot, strict=True)]
            for row in left
            if row is not pivot
        ]
    return found


@pytest.mark.parametrize("low", [0, -1])
def test_equations_find_the_only_set_and_claim_none_that_does_not_add_up(low: int) -> None:
    """Held against every subset of the codes, and against the rank in fractions."""
    rng = np.random.default_rng(11)
    claimed = only = 0
    for _ in range(250):
        count = int(rng.integers(2, 6))
        width = count + int(rng.integers(0, 3))
        values = drawn(rng, count, width, low, 40_000)
        values[rng.random(count) < 0.1] = 0
        if rng.random() < 0.3:
            values[0] = values[-1]  # two codes that nothing tells apart
        values = np.vstack([values, values[rng.random(count) < 0.6].sum(axis=0)])
        known = rng.random(values.shape) >= rng.choice([0.0, 0.03])
        values[~known] = 0
        signed = low < 0
        rows = [
            [int(v) if k else None for v, k in zip(own, there, strict=True)]
            for own, there in zip(values, known, strict=True)
        ]
        filled = [i for i in range(count) if any(v != 0 for v in rows[i])]
        every = [k for k in range(width) if all(rows[i][k] is not None for i in [*filled, count])]
        sets = [
            inside
            for size in range(2, len(filled) + 1)
            for inside in combinations(filled, size)
            if plain_evidence(rows[-1], [rows[i] for i in inside], signed)
            >= 2 ** (len(filled) + 10)
        ]
        search = _NumberSearch(values, known, ["x"] * len(rows), signed)
        got = search._by_equations(count, np.arange(count))
        system = [[int(values[i, k]) for i in filled] for k in every]
        if got is not None:
            claimed += 1
            assert tuple(sorted(got)) in sets, rows
            assert len(got) == min(map(len, sets)), "no smaller set adds up"
        elif sets and len(filled) <= len(every):
            only += 1
            assert rank(system) < len(filled), rows
    assert claimed > 60
    assert only > 0


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # Codes that are known to be empty are no unknowns, wherever something else is hidden.
        ([[900, 3, 40], [0, 0, 0], [2, 700, 9], [70, 800, 1]], "a c"),
        ([[900, 3, 40, 5], [0, 0, 0, 0], [2, 700, 9, N], [70, 800, 1, 1]], "a c"),
        # One that is 0 wherever all is shown may belong to the sum or not: the smallest set is claimed.
        ([[900, 3, 40, 8, 1], [0, 0, 0, 0, N], [2, 700, 9, 1, 1], [70, 800, 1, 5, N]], "a c"),
        # Of two ways to make it up neither is claimed.
        ([[60, 0, 0, 0], [50, 900, 20, 70], [100, 0, 0, 0], [40, 0, 0, 0]], ""),
        # Two others that nothing tells apart do not matter.
        ([[900, 3, 40, 6], [7, 5, 1, 3], [7, 5, 1, 3], [70, 800, 1, 1]], "a d"),
        # A large column does not drown small ones.
        ([[10**12, 4, 70, 900], [0, 9, 800, 60], [10**12, 5, 9, 30], [7, 80, 3, 1]], "a d"),
        # Codes that agree in eleven digits are not told apart by the last bits of a computation.
        ([[10**11, 10**11, 10**11], [10**11, 10**11 + 1, 10**11 + 2], [5, 700, 9]], ""),
    ],
)
def test_equations_by_hand(rows: list[list[int | None]], expected: str) -> None:
    """The sum of the codes ``expected``, or of the first and the last where nothing may be claimed."""
    names = "abcd"[: len(rows)]
    chosen = [names.index(c) for c in expected.split()] or [0, len(rows) - 1]
    if not expected and len(rows) == 4:
        chosen = [0, 1, 3]  # or the second and the third
    total = [
        None if any(v is None for v in own) else sum(v for v in own if v is not None)
        for own in zip(*(rows[i] for i in chosen), strict=True)
    ]
    every = [*rows, total]
    values = np.array([[v or 0 for v in own] for own in every], dtype=np.int64)
    known = np.array([[v is not None for v in own] for own in every])
    search = _NumberSearch(values, known, [*names, "w"], False)
    got = search._by_equations(len(rows), np.arange(len(rows)))
    assert "".join(names[i] for i in sorted(got or ())) == expected.replace(" ", "")


def test_equations_are_those_of_the_columns_with_the_largest_values() -> None:
    rows = np.zeros((4, 30), dtype=np.int64)
    rows[:3, 25:28] = [[900, 3, 40], [5, 50, 7], [70, 800, 1]]
    rows[3] = rows[0] + rows[2]
    search = _NumberSearch(rows, rows >= 0, ["x"] * 4, False)
    assert search._by_equations(3, np.arange(3)) == {0, 2}


def test_runs_are_searched_in_the_columns_with_the_largest_values() -> None:
    rows = np.ones((3, 80), dtype=np.int64)
    known = np.ones((3, 80), dtype=bool)
    known[0, :79] = False
    rows[:, 79] = [1_300_000, 7, 1_300_007]
    rows[2, :79] = 2
    assert groups_by_numbers(rows, known, ["a", "b", "z"]) == {2: frozenset({0, 1})}
    # With the sign of the sum left out.
    assert groups_by_numbers(-rows, known, ["a", "b", "z"]) == {2: frozenset({0, 1})}


@pytest.mark.parametrize("low", [0, -1])
def test_runs_of_many_codes_are_found_though_every_column_has_gaps(low: int) -> None:
    """A third of the codes are sums of the seven behind them; in a column or two all of these are shown."""
    rng = np.random.default_rng(3)
    parts = rng.integers(1, 900_000, (40, 7, 6)) * rng.choice([low or 1, 1], (40, 7, 6))
    values = np.concatenate([parts.sum(axis=1)[:, None], parts], axis=1)
    known = np.ones(values.shape, dtype=bool)
    for group in range(40):  # two columns of each group are whole, and no column is
        for column in rng.choice(6, 4, replace=False):
            known[group, 1 + rng.integers(7), column] = False
    assert not known.all(axis=(0, 1)).any()
    rows, there = values.reshape(320, 6), known.reshape(320, 6)
    codes = [f"c{i}." for i in range(320)]
    got = groups_by_numbers(np.where(there, rows, 0), there, codes)
    assert got == {8 * g: frozenset(range(8 * g + 1, 8 * g + 8)) for g in range(40)}


def test_a_run_of_many_codes_is_found_beside_a_column_of_zeros() -> None:
    """Which says nothing about where the run ends."""
    rng = np.random.default_rng(4)
    values = np.zeros((82, 2), dtype=np.int64)
    values[:81, 0] = rng.integers(1, 900_000, 81)
    values[81, 0] = values[3:75, 0].sum()
    known = np.ones((82, 2), dtype=bool)
    known[80, 0] = False
    got = groups_by_numbers(np.where(known, values, 0), known, [f"c{i}." for i in range(82)])
    assert got == {81: frozenset(range(3, 75))}


def test_a_group_is_found_by_its_subtotals_where_its_finest_codes_are_hidden() -> None:
    rows = [
        [N, 1_300_000],
        [1_500_000, 7],
        [3_500_000, 1_300_007],
        [1_700_000, 1_900_000],
        [N, 60],
        [4_700_000, 1_900_060],
        [8_200_000, N],
    ]
    names = "a b y c d x z"
    assert found(rows, names) == {"y": "a b", "x": "c d", "z": "a b c d"}
    # Also where it is met first, and where other codes stand between.
    turned = [rows[6], rows[2], rows[0], rows[1], rows[5], rows[3], rows[4]]
    assert found(turned, "z y a b x c d") == {"y": "a b", "x": "c d", "z": "a b c d"}


def planted(
    rng: np.random.Generator, depth: int
) -> tuple[list[tuple[str, int]], dict[str, set[str]]]:
    """A tree of codes with their values, in an order in which parents stand before or behind their parts."""
    groups: dict[str, set[str]] = {}
    number = iter(range(10**6))

    def grow(level: int) -> tuple[list[tuple[str, int]], set[str], int]:
        name = f"n{next(number)}."
        if level == 0:
            value = int(rng.integers(1_100_000, 90_000_000))
            return [(name, value)], {name}, value
        made = [grow(level - 1 if i == 0 else int(rng.integers(level))) for i in range(3)]
        rng.shuffle(made)  # type: ignore[arg-type]
        leaves = set[str]().union(*(own for _, own, _ in made))
        value = sum(v for _, _, v in made)
        rows = [row for own, _, _ in made for row in own]
        groups[name] = leaves
        return (
            ([(name, value), *rows] if rng.random() < 0.5 else [*rows, (name, value)]),
            leaves,
            value,
        )

    return grow(depth)[0], groups


@pytest.mark.parametrize("depth", [2, 4, 6])
def test_trees_of_sums_are_found_whatever_the_order_of_their_codes(depth: int) -> None:
    for seed in range(4):
        rows, groups = planted(np.random.default_rng(seed), depth)
        names = " ".join(name for name, _ in rows)
        got = found([[value] for _, value in rows], names)
        assert {code: set(parts.split()) for code, parts in got.items()} == groups


# Totals that neither a name nor a code shows.


def asked(
    *texts: str, said: StatedTotals | None = None, **more: object
) -> tuple[dict[str, set[str]], tuple[str, ...], Dimension]:
    """The groups of the first variable, what is asked, and the variable."""
    files = [
        table_of_csv(text, f"f{i}.csv", reading=Reading(published=True, **more))  # type: ignore[arg-type]
        for i, text in enumerate(texts)
    ]
    got = recognise(files, said, published=True)
    own = got.dimensions[files[0].dimensions[0]]
    names = (*own.finest, "rest")
    return {c: {names[p] for p in parts} for c, parts in own.groups.items()}, got.doubts, own


def test_a_total_without_a_name_is_claimed_where_all_is_shown_and_adds_up() -> None:
    groups, doubts, own = asked("a,value\nCanada,9\np,3\nq,4\nr,2\n")
    assert groups == {"Canada": {"p", "q", "r"}}
    assert own.how == {"Canada": "by numbers"}
    assert own.finest == ("p", "q", "r")
    assert not doubts
    # Also behind others and with a group among them.
    groups, doubts, _ = asked("a,value\np,3\nD,6\nD1,4\nD2,2\nCanada,9\n")
    assert groups == {"D": {"D1", "D2"}, "Canada": {"p", "D1", "D2"}}
    assert not doubts


@pytest.mark.parametrize(
    ("text", "code"),
    [
        # Hidden parts, a hidden total, rounding: nobody can tell.
        ("Canada,9\np,3\nq,x\nr,2\n", "Canada"),
        ("Canada,x\np,30\nq,40\nr,20\n", "Canada"),
        ("Canada,10\np,3\nq,4\nr,2\n", "Canada"),
        ("p,3\nCanada,9\nq,x\nr,2\n", "Canada"),
        # A code that is shown is named before one that is hidden.
        ("p,x\nCanada,90\nq,x\nr,20\n", "Canada"),
        ("p,x\nzone,90\nq,x\nr,20\n", "zone"),
        ("Canada,0\np,0\nq,0\nr,0\n", "Canada"),
        # Three numbers and their total may be off by two if each was rounded.
        ("Canada,11\np,3\nq,4\nr,2\n", "Canada"),
        ("Canada,7\np,3\nq,4\nr,2\n", "Canada"),
        ("Canada,9\np,8\nq,x\nr,3\n", "Canada"),
    ],
)
def test_a_code_that_may_be_the_total_is_asked_about(text: str, code: str) -> None:
    groups, doubts, _ = asked("a,value\n" + text)
    assert not groups
    assert [f"nobody said whether {code!r} of 'a' is the total" in d for d in doubts] == [True]
    settled = asked("a,value\n" + text, said=StatedTotals(none=frozenset("a")))
    assert not settled[1]


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("p,30\nq,40\nr,20\n", {}),
        ("p,30\nq,x\nr,31\ns,32\n", {}),
        ("p,30\nq,40\nr,20\ns,1\nt,2\nu,3\nv,9\n", {}),
        ("p,30\nq,40\nr,20\ns,1\nt,2\nu,3\n", {}),
        ("Canada,12\np,3\nq,4\nr,2\n", {}),
        ("Canada,15\np,3\nq,4\nr,2\ns,3\n", {}),
    ],
)
def test_codes_without_any_total_are_asked_about_with_the_first_of_them(
    text: str, more: dict[str, object]
) -> None:
    _, doubts, own = asked("a,value\n" + text, **more)
    if "x" in text:
        assert "nobody said whether 'q'" in doubts[0], "a hidden code may be the total"
        return
    first = ", ".join(own.finest[:6]) + (", ..." if len(own.finest) > 6 else "")
    assert doubts == (
        f"f0.csv: no total is recognised among the codes of 'a' ({first}); name it with --total a=CODE or "
        "--hierarchy a=FILE, or say --no-totals a.",
    )


def test_two_codes_and_years_are_no_question_and_negative_values_are() -> None:
    assert not asked("a,value\np,3\nq,4\n")[1]
    assert not asked("a,value\n2019,3\n2020,4\n2021,7\n")[1]
    assert asked("a,value\np,3\nq,4\nr,9\n")[1]
    # Where values can be negative a shown code may be less than its parts.
    for text, more, code in (
        ("Canada,9\np,30\nq,30\nr,x\n", {}, "r"),
        ("Canada,9\np,30\nq,30\nr,x\n", {"signed": True}, "Canada"),
        ("Canada,9\np,-30\nq,60\nr,x\n", {}, "Canada"),
    ):
        assert f"nobody said whether {code!r}" in asked("a,value\n" + text, **more)[1][0]


def test_a_total_stays_one_where_another_file_lists_fewer_codes() -> None:
    full = "a,b,value\n" + "".join(
        f"{c},{b},{v * w}\n"
        for c, v in (("Canada", 9), ("p", 3), ("q", 4), ("r", 2))
        for b, w in (("k", 1), ("l", 2))
    )
    fewer = "a,c,value\nCanada,m,5\np,m,2\nCanada,w,4\np,w,1\n"
    said = StatedTotals(none=frozenset({"b", "c"}))
    groups, doubts, _ = asked(full, fewer, said=said)
    assert groups == {"Canada": {"p", "q", "r"}}
    assert not doubts
    # But parts that are more than the whole there rule it out.
    more = fewer.replace("p,m,2", "p,m,90")
    groups, doubts, _ = asked(full, more, said=said)
    assert not groups
    assert doubts


def test_what_somebody_said_is_not_asked_again() -> None:
    text = "a,value\nAll,50\nD,30\nD1,x\nD2,x\nE,x\n"
    said = StatedTotals(groups={"a": {"D": ("D1", "D2"), "All": ("D", "E", "F")}})
    groups, doubts, _ = asked(text, said=said)
    assert groups["All"] == {"D1", "D2", "E", "F"}
    assert not doubts
    # A group that somebody named may not be asked about as the total of others.
    said = StatedTotals(groups={"a": {"D": ("D1", "D2")}})
    _, doubts, _ = asked("a,value\nD,30\nD1,x\nD2,x\nE,x\n", said=said)
    assert ["'E'" in d for d in doubts] == [True]


@pytest.mark.parametrize(
    ("rows", "head"),
    [
        # A name that others begin with, of three letters and more, and at least two others.
        ("Nor,12\nNorth,x\nNorse,x\nTotal,40\n", "Nor"),
        ("No,12\nNorth,x\nNose,x\nTotal,40\n", ""),
        ("Nor,12\nNorth,x\nTotal,40\n", ""),
        ("Nor,2\nNorth,9\nNorse,x\nTotal,40\n", ""),
        # No total is shown: any code may be the sum of those beside it, before or behind.
        ("p,9\nq,x\nr,x\nTotal,x\n", "p"),
        ("p,x\nq,x\nr,9\nTotal,x\n", "p"),
        ("p,4\nq,5\nr,9\nTotal,x\n", "r"),
        ("p,40\nq,50\nr,9\nTotal,x\n", ""),
        ("p,9\nq,x\nTotal,x\n", ""),
        ("p,4\nq,x\nr,x\nTotal,40\n", ""),
    ],
)
def test_a_code_that_may_be_the_sum_of_others_is_asked_about(rows: str, head: str) -> None:
    _, doubts, _ = asked("a,value\n" + rows)
    found = [d for d in doubts if "is the sum of other codes" in d]
    assert bool(found) == bool(head)
    if head:
        assert f"no column shows whether {head!r} of 'a'" in found[0]
        assert not asked("a,value\n" + rows, said=StatedTotals(flat=frozenset("a")))[1]


def test_one_column_that_speaks_against_a_total_is_enough() -> None:
    rows = {"Canada": (50, 9), "p": (3, 3), "q": (4, "x"), "r": (2, 2)}
    text = "a,b,value\n" + "".join(f"{c},k,{v}\n{c},l,{w}\n" for c, (v, w) in rows.items())
    groups, doubts, _ = asked(text, said=StatedTotals(none=frozenset("b")))
    assert not groups
    assert ["no total is recognised" in d for d in doubts] == [True]


def test_groups_within_groups_count_once_in_a_total() -> None:
    groups, doubts, _ = asked("a,value\nCanada,9\nD,6\nD1,4\nD11,3\nD12,1\nD2,2\nE,3\n")
    assert groups["Canada"] == {"D11", "D12", "D2", "E"}
    assert not doubts
    # Groups that are no parts of anything need no total.
    assert not asked("a,value\nD,300\nD1,100\nD2,200\nE,50\n")[1]
    # A total by its name that somebody explained is not asked about, though it holds not everything.
    said = StatedTotals(groups={"a": {"All": ("D", "E")}})
    assert not asked("a,value\nAll,50\nD,30\nE,x\nG,x\n", said=said)[1]


def sums_asked(*texts: str, said: StatedTotals | None = None) -> list[str]:
    return [d for d in asked(*texts, said=said)[1] if "is the sum of other codes" in d]


def test_a_column_in_which_all_is_shown_and_adds_up_rules_sums_of_others_out() -> None:
    whole = "a,value\nNor,7\nNorth,3\nNorse,4\nTotal,14\n"
    hidden = "a,c,value\nNor,m,x\nNorth,m,x\nNorse,m,x\nTotal,m,9\n"
    said = StatedTotals(none=frozenset("c"))
    assert not sums_asked(whole)
    assert not sums_asked(whole, hidden, said=said)
    assert sums_asked(hidden, said=said)


def test_codes_beside_each_other_are_asked_about_where_others_are_such_sums() -> None:
    """Or where no total is shown in any file."""
    coded = "a,value\nTotal,100\nD,30\nD1,10\nD2,20\np,40\nq,x\nr,x\n"
    assert not sums_asked(coded)
    added = (
        "a,value\nNorth,7980000\nAyr,2610000\nBute,x\n"
        "South,5140000\nKent,2960001\nDevon,2179999\nTotal,20000000\n"
    )
    assert len(sums_asked(added)) == 1
    shown, not_shown = (
        "a,value\np,4\nq,x\nr,x\nTotal,40\n",
        "a,c,value\np,m,1\nq,m,x\nr,m,x\nTotal,m,x\n",
    )
    said = StatedTotals(none=frozenset("c"))
    assert not sums_asked(shown, not_shown, said=said)
    assert sums_asked(not_shown, said=said)


# Codes that show groups.


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        # A common beginning: the longest one that is a code, followed by a digit, or by a sign and more.
        ("A A1 A12 A2 B", {"A": "A1 A2", "A1": "A12"}),
        ("A A.b A-c A_d Ae", {"A": "A-c A.b A_d"}),
        ("A A. A- B1", {}),
        ("10 101 102 20", {"10": "101 102"}),
        ("C10 C10-C12 C11", {}),
        ("C C10-C12", {"C": "C10-C12"}),
        ("2020 2020-05 2020-06", {}),
        ("A1 A1.5 A1-x", {"A1": "A1-x A1.5"}),
        ("C1 C1-C2 C2", {}),
        # Numbers that run on begin alike by coincidence.
        ("1 2 3 4 5 6 7 8 9 10 11 12", {}),
        ("1 2 3 10 11", {"1": "10 11"}),
        ("0 1 2 3 4 5 6 7 8 9 10 11", {}),
        ("1 2 3 4 5 6 7 8 9 10 999", {}),
        ("1 2 3 4 5 6 7 8 9 10 9999", {}),
        # Other codes beside them still show their groups.
        ("1 2 3 4 5 6 7 8 9 10 A A1", {"A": "A1"}),
        ("2019 2020 2021 A A1", {"A": "A1"}),
        ("1 11 12 13", {"1": "11 12 13"}),
        ("0 1 2 3 11 99", {"1": "11"}),
        ("9 10 11 12 99", {}),
        ("R1 R2 R3 R10", {"R1": "R10"}),
        ("R9 R10 R11 R12", {}),
        ("R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 S1 S10", {"S1": "S10"}),
        ("2019 2020 2021 20", {"20": "2019 2020 2021"}),
        ("2019 2020 2021", {}),
        ("01 011 012", {"01": "011 012"}),
        # Ranges of ages that others fill without a gap.
        ("0-14 15-24 25-64 15-64 0-64", {"15-64": "15-24 25-64", "0-64": "0-14 15-64"}),
        ("0-14 16-24 0-24", {}),
        ("15-24 25-64 65+ 15+", {"15+": "15-24 25-64 65+"}),
        ("Y15-24 Y25-64 Y15-64", {"Y15-64": "Y15-24 Y25-64"}),
        ("Y_GE65 Y15-64 Y15-74 Y_GE15", {"Y_GE15": "Y15-64 Y_GE65"}),
        ("10-20 20-10 10-15 16-20", {"10-20": "10-15 16-20"}),
        ("5-5 6-9 5-9", {}),
        ("0-64 65-90 0+", {}),
        ("0-9 Y0-9", {}),
        # Ranges and sums of letters.
        ("B C D B-D", {"B-D": "B C D"}),
        ("B D B-D", {"B-D": "B D"}),
        ("C E B-D D-B", {}),
        ("D E D+E", {"D+E": "D E"}),
        ("D E D&F", {}),
    ],
)
def test_groups_by_code(codes: str, expected: dict[str, str]) -> None:
    found = groups_by_code(codes.split())
    assert {code: " ".join(sorted(g.parts)) for code, g in found.items()} == expected


def test_which_groups_leave_no_doubt_that_they_are_whole() -> None:
    def sure(codes: list[str]) -> dict[str, bool]:
        return {code: group.sure for code, group in groups_by_code(codes).items()}

    assert sure(["B", "C", "D", "B-D"]) == {"B-D": True}
    assert sure(["B", "D", "B-D"]) == {"B-D": False}, "C may be in it"
    assert sure(["D", "E", "D and E"]) == {"D and E": True}
    assert sure(["0-4", "5-9", "0-9"]) == {"0-9": True}
    assert sure(["A", "A1"]) == {"A": False}
    assert groups_by_code(["A", "A1 x"]) == {}
    assert groups_by_code(["A", "A1", "B"], {"B": "A", "Z": "A", "A1": "Y"})["A"].parts == {"B"}
    assert not groups_by_code(["A", "A1", "B"], {"B": "A"})["A"].sure
    assert set(groups_by_code(["A", "A1", "B"], {"B": "Y"})) == {"A"}, "no parent is a code"


def test_what_was_recognised_in_words() -> None:
    codes = tuple(f"c{i}" for i in range(12))
    groups = {"T": frozenset(range(12)), **{f"g{i}": frozenset({i, i + 1}) for i in range(10)}}
    made = Dimension("a", codes, groups, {**dict.fromkeys(groups, "by code"), "T": "by name"})
    assert made.sentence() == (
        "a: 12 codes; the total is T (by name); 10 subtotals g0, g1, g2, g3, g4, g5, g6, g7 and 2 more "
        "(by code)."
    )
    assert made.members("T") == tuple(range(12))
    assert made.members("c3") == (3,)
    one = Dimension("a", ("c",), {}, {})
    assert one.sentence() == "a: 1 code; no total; no subtotals."
    assert one.everything == {0}
    rest = Dimension(
        "a", ("c",), {"T": frozenset({0, 1}), "c2": frozenset({0})}, {"T": "x", "c2": "y"}, True
    )
    assert rest.totals == ("T",)
    assert rest.sentence() == "a: 1 code; the total is T (x); subtotal c2 (y)."
    eight = Dimension(
        "a", codes, {f"g{i}": frozenset({i, i + 1}) for i in range(8)}, dict.fromkeys(groups, "z")
    )
    assert "g7 (z)." in eight.sentence()


def test_axes_hold_the_same_people_in_every_file() -> None:
    files = [
        table_of_csv("a,a_label,value\np,the p,1\nq,q,2\nT,all,3\n", "f"),
        table_of_csv("a,value\nq,2\nT,3\n", "g"),
    ]
    found = recognise(files, StatedTotals(named={"a": frozenset("T")}))
    first, second = (found.axes(file)[0] for file in files)
    assert [(c.code, c.label, c.members) for c in first.categories] == [
        ("p", "the p", (0,)),
        ("q", "q", (1,)),
        ("T", "all", (0, 1)),
    ]
    assert [(c.code, c.label, c.members) for c in second.categories] == [
        ("q", "q", (1,)),
        ("T", "T", (0, 1)),
    ]
    assert found.sentences() == ("a: 2 codes; the total is T (as you say); no subtotals.",)


# Hierarchies in files.


@pytest.mark.parametrize(
    ("text", "ending", "expected"),
    [
        ("A\n@A1\n@@A11\n@A2\n\nB\n@B1\n", ".hrc", {"A": "A1 A2", "A1": "A11", "B": "B1"}),
        (" A \n @ A1 \n", ".hrc", {"A": "A1"}),
        ("A\n\n@A1\n", ".hrc", {"A": "A1"}),
        ("A = ['B', 'C']\nB = ['D']\nC = ['D']\n", ".toml", {"A": "B C", "B": "D", "C": "D"}),
        ("A\n@A1\nB\n@A1\n", ".hrc", {"A": "A1", "B": "A1"}),
        ("code,parent\nA1,A\nA,\nA1,B\nA1,A\n", ".csv", {"A": "A1", "B": "A1"}),
        ("\ufeffcode;parent;label\nA1;A;x\n", ".csv", {"A": "A1"}),
        (
            'A = ["A1", "A2", "A1"]\nA2 = ["A3"]\nB = ["A2", "A3"]\n',
            ".toml",
            {"A": "A1 A2", "A2": "A3", "B": "A2 A3"},
        ),
    ],
)
def test_groups_in_a_file(text: str, ending: str, expected: dict[str, str]) -> None:
    found = groups_of_text(text, "g", ending)
    assert {group: " ".join(parts) for group, parts in found.items()} == expected


@pytest.mark.parametrize(
    ("text", "ending", "sentence"),
    [
        ("@A\n", ".hrc", r"g, line 1: there are 1 '@', which skips a level; the line above has 0"),
        (
            "A\n@B\n@@@C\n",
            ".hrc",
            r"g, line 3: there are 3 '@', which skips a level; the line above has 1",
        ),
        ("A\n@A\n", ".hrc", "the group 'A' holds itself"),
        ("A\n@B\nB\n@C\nC\n@A\n", ".hrc", "holds itself"),
        ("A\n@B\n@C\nD\n@C\nC\n@D\n", ".hrc", "holds itself"),
        ("code,parent\nA1,A\n,A\n", ".csv", "g, line 3: a parent has no code"),
        ("code,parent\nA,\n", ".csv", "there is no group"),
        ("A = []\n", ".toml", "the group 'A' needs a list"),
        ("A = ['B', 'C']\nC = ['A']\n", ".toml", "holds itself"),
        ("A = ['B', 1]\n", ".toml", "the group 'A' needs a list"),
        ("A = ['B', '']\n", ".toml", "the group 'A' needs a list"),
        ("A = 'B'\n", ".toml", "the group 'A' needs a list"),
    ],
)
def test_a_file_of_groups_that_is_wrong_is_one_sentence(
    text: str, ending: str, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        groups_of_text(text, "g", ending)


# Recognition of whole files.


def strict(text: str, slack: int = 0, **said: object) -> Dimension:
    found = recognise(
        [table_of_csv("a,value\n" + text, "x.csv")], StatedTotals(**said), slack=slack
    )  # type: ignore[arg-type]
    return found.dimensions["a"]


def sets(made: Dimension) -> dict[str, str]:
    names = (*made.finest, "rest")
    return {c: " ".join(names[p] for p in sorted(parts)) for c, parts in made.groups.items()}


@pytest.mark.parametrize("name", ["Total", "_T", "GESAMT", "alle", "yhteensä", "tot."])
def test_totals_by_name(name: str) -> None:
    assert sets(strict(f"p,3\nq,4\n{name},7\n")) == {name: "p q"}
    with pytest.raises(InputError, match="is not the sum of its parts"):
        strict(f"p,3\nq,4\n{name},8\n")


def test_weak_names_are_totals_only_where_nothing_is_larger() -> None:
    for name in ("T", "*", "sum", "0"):
        assert sets(strict(f"p,3\nq,4\n{name},7\n")) == {name: "p q"}
        assert sets(strict(f"p,3\nq,4\n{name},2\n", none=frozenset("a"))) == {}
        with pytest.raises(InputError, match="no total is recognised among the codes of 'a'"):
            strict(f"p,3\nq,4\n{name},2\n")
    assert sets(strict("p,3\nT,4\nTotal,7\n")) == {"Total": "p T"}


def test_what_somebody_says_about_totals() -> None:
    text = "p,3\nq,4\nw,7\n"
    assert sets(strict(text, named={"a": frozenset("w")})) == {"w": "p q"}
    assert sets(strict(text, named={"": frozenset("wz")})) == {"w": "p q"}
    assert strict(text, named={"a": frozenset("w")}).how == {"w": "as you say"}
    assert sets(strict("p,3\nq,4\nw,9\n", named={"a": frozenset("w")}, rest=frozenset("a"))) == {
        "w": "p q rest"
    }
    assert sets(strict("p,3\nq,4\nw,9\n", named={"a": frozenset("w")}, rest=frozenset({""}))) == {
        "w": "p q rest"
    }
    more = strict("p,3\nq,4\nw,9\n", named={"a": frozenset("w")}, rest=frozenset("a"))
    assert more.sentence() == "a: 2 codes; the total is w (as you say); no subtotals."
    assert sets(strict(text, groups={"a": {"w": ("p", "q")}})) == {"w": "p q"}
    assert sets(strict("Total,7\np,3\nq,4\n", none=frozenset({""}))) == {}
    assert sets(strict(text, slack=1, named={"a": frozenset("w")})) == {"w": "p q"}
    for said, sentence in (
        ({"named": {"a": frozenset("z")}}, "The dimension 'a' has no code 'z'"),
        ({"named": {"b": frozenset("w")}}, "There is no dimension 'b'"),
        ({"groups": {"b": {}}}, "There is no dimension 'b'"),
        ({"none": frozenset("b")}, "There is no dimension 'b'"),
        ({"rest": frozenset("b")}, "There is no dimension 'b'"),
        ({"flat": frozenset("b")}, "There is no dimension 'b'"),
        ({"open_groups": {"b": frozenset("w")}}, "There is no dimension 'b'"),
        ({"open_groups": {"a": frozenset("z")}}, "The dimension 'a' has no code 'z'"),
        ({"named": {"a": frozenset("pqw")}}, "has totals only"),
    ):
        with pytest.raises(InputError, match=sentence):
            strict(text, **said)  # type: ignore[arg-type]


def test_a_group_may_hold_a_group_that_numbers_show() -> None:
    text = "p,1048570\nq,5\ng,1048575\nc,7\nw,1048582\n"
    found = strict(text, groups={"a": {"w": ("g", "c")}})
    assert sets(found) == {"g": "p q", "w": "p q c"}
    assert found.how == {"g": "by numbers", "w": "as you say"}


def test_codes_of_a_confidential_file_show_subtotals_that_add_up() -> None:
    text = "D,7\nD1,3\nD2,4\nE,2\nTotal,9\n"
    found = strict(text)
    assert sets(found) == {"D": "D1 D2", "Total": "D1 D2 E"}
    assert found.how == {"D": "by code", "Total": "by name"}
    with pytest.raises(InputError, match="is not the sum"):
        strict(text, flat=frozenset("a"))
    with pytest.raises(InputError, match="is not the sum"):
        strict(text.replace("D2,4", "D2,5"))
    listed = strict(
        "D,7\nD1,3\nD2,4\nTotal,7\n", groups={"a": {"D": ("D1", "D2", "D3"), "X": ("Y",)}}
    )
    assert sets(listed) == {"D": "D1 D2", "Total": "D1 D2"}, "what is not listed is empty"


def test_a_confidential_file_without_a_total_is_asked_for_it_unless_it_needs_none() -> None:
    with pytest.raises(
        InputError, match=r"x\.csv: no total is recognised among the codes of 'a' \(p, q\);"
    ):
        strict("p,3\nq,4\n")
    many = "".join(f"{c},{i}\n" for i, c in enumerate("pqrstuv"))
    with pytest.raises(InputError, match=r"\(p, q, r, s, t, u, \.\.\.\)"):
        strict(many)
    with pytest.raises(InputError, match=r"\(p, q, r, s, t, u\)"):
        strict(many.replace("v,6\n", ""))
    assert sets(strict("p,3\n")) == {}


@pytest.mark.parametrize(
    ("text", "groups", "words"),
    [
        ("Both sexes,7\nF,3\nM,4\n", {"Both sexes": "F M"}, ""),
        ("All ages,7\nF,3\nM,x\n", {"All ages": "F M"}, ""),
        ("Farms total,7\nF,3\nM,4\n", {"Farms total": "F M"}, ""),
        ("Total farms,2\nF,3\nM,x\n", {}, "nobody said which codes 'Total farms' of 'a' holds"),
        ("Total,8\nF,3\nM,4\n", {"Total": "F M"}, ""),
        ("Total,9\nF,3\nM,4\n", {}, "the total 'Total' of 'a' (by name) is not the sum"),
        (
            "Total,9\nD,5\nD1,1\nD2,1\nE,x\n",
            {"Total": "D D1 D2 E"},
            "'D' of 'a' is not the sum of the codes",
        ),
        (
            "Total,7\nD,4\nD1,1\nD2,x\nE,3\n",
            {"D": "D1 D2", "Total": "E D1 D2"},
            "no complete column shows whether 'D'",
        ),
        ("Total,7\n0-9,4\n0-4,1\n5-9,x\n10+,3\n", {"0-9": "0-4 5-9", "Total": "0-4 5-9 10+"}, ""),
    ],
)
def test_totals_of_a_published_file(text: str, groups: dict[str, str], words: str) -> None:
    found, doubts, _ = asked("a,value\n" + text)
    assert found == {code: set(parts.split()) for code, parts in groups.items()}
    assert any(words in d for d in doubts) == bool(doubts) == bool(words)


def test_sums_that_are_off_by_rounding_are_said_and_let_nothing_follow_exactly() -> None:
    def told(text: str, slack: int = 0, rounded: bool = False) -> tuple[bool, bool, bool, bool]:
        file = table_of_csv("a,value\n" + text, "x.csv", reading=PUBLISHED)
        got = recognise([file], StatedTotals(rounded=rounded), slack=slack, published=True)
        return (
            "Total" in got.dimensions["a"].groups,
            "x.csv" in got.off,
            bool(got.notes),
            bool(got.doubts),
        )

    exact, one, two, more = (f"Total,{n}\np,30\nq,40\nr,20\ns,10\n" for n in (100, 101, 102, 103))
    assert told(exact) == (True, False, False, False)
    assert told(one) == (True, True, True, False)
    assert told(two) == (False, True, False, True), "perhaps rounded"
    assert told(more) == (False, False, False, True)
    assert told(two, rounded=True) == (True, True, True, False)
    assert told(exact, rounded=True) == (True, True, False, False)
    assert told(more, slack=1) == (True, False, False, False)
    assert told("Total,106\np,30\nq,40\nr,20\ns,10\n", slack=1) == (False, False, False, True)


def test_the_rest_stays_the_last_place_where_a_group_is_taken_out() -> None:
    text = "a,value\nTotal,60\nD,5\np,10\nq,4\nr,6\n"
    said = StatedTotals(groups={"a": {"D": ("p", "q")}}, rest=frozenset("a"))
    found, doubts, own = asked(text, said=said)
    assert found["Total"] == {"p", "q", "r", "rest"}
    assert "D" not in found
    assert own.finest == ("p", "q", "r", "D")
    assert doubts


def test_a_dimension_of_several_files_is_one() -> None:
    first = "a,b,value\np,k,3\nq,k,4\nTotal,k,9\np,Total,3\nq,Total,4\nTotal,Total,9\n"
    second = "a,c,value\nq,m,4\nTotal,m,9\nr,m,2\nq,Total,4\nTotal,Total,9\nr,Total,2\n"
    got = recognise([table_of_csv(t, f"f{i}") for i, t in enumerate((first, second))])
    assert list(got.dimensions) == ["a", "b", "c"]
    assert got.dimensions["a"].finest == ("p", "q", "r")
    assert got.dimensions["a"].totals == ("Total",)


def test_finer_codes_in_another_file_are_refused_or_asked_about() -> None:
    texts = ("a,value\nn,40\ns,2\n_T,42\n", "a,value\ne,13\nw,27\ns,2\n_T,42\n")
    with pytest.raises(
        InputError, match="f0: the codes of 'a' add up to '_T' without those of the other"
    ):
        recognise([table_of_csv(text, f"f{i}") for i, text in enumerate(texts)])
    assert any("add up to '_T' without those of the other files" in d for d in asked(*texts)[1])


def test_groups_that_somebody_names_may_hold_more_than_is_listed() -> None:
    text = "a,value\nTotal,310\nC,192\nC1,65\nC2,x\nF,118\n"
    said = StatedTotals(groups={"a": {"C": ("C1", "C2")}}, open_groups={"a": frozenset("C")})
    groups, doubts, own = asked(text, said=said)
    assert groups["C"] == {"C1", "C2", "C, not listed"}
    assert own.how["C"] == "as you say"
    assert not doubts
    groups, _, own = asked(text, said=StatedTotals(open_groups={"a": frozenset("C")}))
    assert groups["C"] == {"C1", "C2", "C, not listed"}
    assert own.how == {"C": "by code", "Total": "by name"}
    # A name of a total does not change what somebody said about it; groups are no finest codes.
    assert sets(strict("Total,7\np,3\nq,4\nr,9\n", groups={"a": {"Total": ("p", "q")}})) == {
        "Total": "p q"
    }
    nested = StatedTotals(groups={"a": {"D": ("D1", "D2"), "All": ("D", "E", "F")}})
    own = asked("a,value\nAll,50\nD,30\nD1,x\nD2,x\nE,x\n", said=nested)[2]
    assert own.finest == ("D1", "D2", "E", "F")


def test_a_name_that_may_be_a_total_must_be_largest_in_every_file() -> None:
    said = StatedTotals(none=frozenset("c"))
    for name in ("T", "Total farms"):
        first = f"a,value\np,3\nq,4\n{name},x\n"
        second = f"a,c,value\np,m,3\nq,m,x\n{name},m,2\n"
        groups, doubts, _ = asked(first, second, said=said)
        assert name not in groups
        assert doubts


def test_numbers_show_no_sums_where_nothing_adds_up_or_numbers_are_rounded() -> None:
    text = "p,1048570\nq,5\ng,1048575\n"
    assert sets(strict(text)) == {"g": "p q"}
    assert sets(strict(text, none=frozenset("a"))) == {}
    with pytest.raises(InputError, match="no total is recognised"):
        strict(text, slack=3)


def test_a_column_of_parents_and_signed_values_show_groups() -> None:
    groups, _, own = asked("a,up,value\nTotal,,9\nZ,Total,7\nX,Z,3\nY,Z,x\nW,Total,2\n")
    assert groups["Z"] == {"X", "Y"}
    assert own.how["Z"] == "by code"
    rows = {
        "p": (1048570, 4),
        "q": (5, "x"),
        "w": (1048575, 3),
        "v": (7, 7),
        "Total": (1048582, "x"),
    }
    text = "a,b,value\n" + "".join(f"{c},k,{u}\n{c},l,{o}\n" for c, (u, o) in rows.items())
    said = StatedTotals(none=frozenset("b"))
    assert asked(text, said=said, signed=True)[0]["w"] == {"p", "q"}
    assert "w" not in asked(text, said=said)[0]


@pytest.mark.parametrize(
    ("codes", "running"),
    [
        ("1 2 3", True),
        ("4 3 5 other", True),
        ("1 2", False),
        ("1 2 4", False),
        ("0 1 2 3 99", True),  # nobody and everybody else
        ("01 1 2 3", False),  # a code that begins with 0 is no number
        ("1998 2020", True),
        ("1998 2020 7", False),
    ],
)
def test_numbers_that_run_on_or_are_years_say_nothing_of_groups(codes: str, running: bool) -> None:
    assert _runs_on(codes.split()) is running


def test_a_group_is_compared_with_its_finest_codes_and_with_its_largest_subtotals() -> None:
    groups = {
        "t": frozenset({0, 1, 2, 3}),
        "ab": frozenset({0, 1}),
        "cd": frozenset({2, 3}),
        "bc": frozenset({1, 2}),  # holds a part of each
    }
    made = Dimension("x", ("a", "b", "c", "d"), groups, dict.fromkeys(groups, "by name"))
    assert _covers(made, "t") == [["a", "b", "c", "d"], ["ab", "cd"]]
    assert _covers(made, "ab") == [["a", "b"]]
    wide = Dimension(
        "x", ("a", "b"), {"t": frozenset({0, 1, 2}), "ab": frozenset({0, 1})}, {}, True
    )
    (finest, parts) = _covers(wide, "t")
    assert finest[:2] == ["a", "b"]
    assert parts[0] == "ab"
    assert len(finest) == 3
    assert len(parts) == 2


# What is said, shown and left out, in several files.


def test_a_variable_that_another_file_leaves_out_needs_no_total() -> None:
    """That file shows the totals over it."""
    wide = "a,b,value\np,k,3\np,l,1\nq,k,4\nq,l,2\nTotal,k,7\nTotal,l,3\n"
    narrow = "a,value\np,4\nq,6\nTotal,10\n"
    for texts in ((wide, narrow), (narrow, wide)):
        files = [table_of_csv(text, f"f{i}.csv") for i, text in enumerate(texts)]
        assert recognise(files).dimensions["b"].groups == {}
    with pytest.raises(
        InputError, match=r"f0\.csv: no total is recognised among the codes of 'b' \(k, l\)"
    ):
        recognise([table_of_csv(wide, "f0.csv")])
    hidden = wide.replace("q,k,4", "q,k,x")
    assert not asked(hidden, narrow, said=StatedTotals(named={"a": frozenset({"Total"})}))[1]


def test_a_row_that_is_off_is_named_in_the_only_file_alone() -> None:
    cells = {("x", "p"): 10, ("x", "q"): 20, ("y", "p"): 30, ("y", "q"): 40}
    for a in "xy":
        cells[a, "Total"] = cells[a, "p"] + cells[a, "q"]
    for b in ("p", "q", "Total"):
        cells["Total", b] = cells["x", b] + cells["y", b]

    def text(changed: int) -> str:
        own = {**cells, ("x", "p"): changed}
        return "\n".join(["a,b,value", *(f"{a},{b},{v}" for (a, b), v in own.items())])

    files = [table_of_csv(text(v), f"f{i}.csv") for i, v in enumerate((10, 17))]
    with pytest.raises(InputError, match=r"f1\.csv: the total") as refused:
        recognise(files)
    assert "in every sum" not in str(refused.value), "line 2 of the first file is right"


def test_two_numbers_in_every_sum_that_is_off_are_not_told_apart() -> None:
    file = table_of_csv("a,b,value\np,k,1\np,l,2\nq,k,3\nq,l,4\n", "x.csv")
    made = Dimension("a", ("p", "q"), {}, {})

    def named(*cells: set[tuple[str, ...]]) -> str:
        return row_that_is_off(file, [SumsError(made, frozenset(c), "words") for c in cells])

    one, two = ("q", "k"), ("q", "l")
    assert named({one, ("p", "k")}, {one, two}) == "line 4 (a=q, b=k)"
    assert named({one, two}, {one, two}) == ""
    assert named({one}) == "", "along one variable"
    assert named({one}, {two}) == ""
    assert named({("q", "m")}, {("q", "m")}) == "", "a cell without a row"
    assert str(SumsError(made, frozenset(), "words")) == "words"


def test_fewer_decimals_help_only_where_every_sum_is_right_with_them() -> None:
    text = "a,value\nt,6.44\ns,3.21\np,1.1\nq,2.1\nr,3.23\n"
    said = StatedTotals(groups={"a": {"s": ("p", "q"), "t": ("s", "r")}})

    def words(text: str) -> str:
        with pytest.raises(InputError) as refused:
            recognise([table_of_csv(text, "x")], said)
        return str(refused.value)

    assert "which --decimals 1 would round away" in words(text)
    assert "--decimals" not in words(text.replace("t,6.44", "t,9.44"))


def test_codes_of_a_confidential_file_count_only_if_every_one_of_them_adds_up() -> None:
    text = "D,7\nD1,3\nD2,4\nE,2\nE1,1\nE2,3\nTotal,13\n"
    with pytest.raises(InputError, match=r"the total 'Total' of 'a' .* is not the sum"):
        strict(text)
    assert "D" in sets(strict(text, groups={"a": {"D": ("D1", "D2")}}))
    beside = table_of_csv("c,value\nm,4\nn,3\nTotal,7\n", "f1.csv")
    first = table_of_csv("a,value\nD,7\nD1,3\nD2,4\nTotal,7\n", "f0.csv")
    for files in ([first, beside], [beside, first]):
        assert sets(recognise(files).dimensions["a"]) == {"D": "D1 D2", "Total": "D1 D2"}


def test_a_stated_group_is_a_part_of_what_codes_show() -> None:
    """Its finest codes would be missing from the group, and a wrong relation stand in its place."""
    text = "a,value\nTotal,100\nC,x\nC1,30\nC11,x\nC12,x\nC2,x\nF,20\n"
    said = StatedTotals(groups={"a": {"C1": ("C11", "C12")}})
    groups, _, own = asked(text, said=said)
    assert groups["C"] == {"C11", "C12", "C2"}
    assert own.how["C1"] == "as you say"
    assert own.how["C"] == "by code"
    joined = "a,value\nTotal,100\nD+E,x\nD,30\nD1,x\nD2,x\nE,20\nE1,x\nE2,x\nF,9\n"
    said = StatedTotals(groups={"a": {"D": ("D1", "D2"), "E": ("E1", "E2")}})
    assert asked(joined, said=said)[0]["D+E"] == {"D1", "D2", "E1", "E2"}
    # A total is no part of what a column of parents shows.
    alone = "a,up,value\nTotal,W,9\np,Total,3\nq,Total,x\nW,,x\n"
    groups, _, _ = asked(alone, said=StatedTotals(groups={"a": {"Total": ("p", "q")}}))
    assert groups["W"] == {"p", "q"}
    assert "W" not in asked(alone)[0]
    with pytest.raises(InputError, match=r"f0\.csv: the group '.*' holds itself"):
        asked(text, said=StatedTotals(groups={"a": {"C1": ("C", "C12")}}))


def test_numbers_show_sums_of_groups_that_codes_or_other_files_show() -> None:
    rows = {
        "Industry": (2097160, 900000),
        "C": (1300000, 500000),
        "C1": ("x", 1),
        "C2": (1, 499999),
        "D": (797160, 400000),
        "D1": ("x", 2),
        "D2": (2, "x"),
        "F": (17, 12),
    }
    text = "a,b,value\n" + "".join(f"{c},k,{u}\n{c},l,{v}\n" for c, (u, v) in rows.items())
    said = StatedTotals(none=frozenset("b"))
    groups, _, own = asked(text, said=said)
    assert groups["Industry"] == {"C1", "C2", "D1", "D2"}
    assert own.how == {"Industry": "by numbers", "C": "by code", "D": "by code"}
    # A part of a group of one file may be a group of another.
    first = "a,value\nA,2097160\nB,1300000\nC,797160\nTotal,3000000\n"
    second = "a,c,value\nB,m,1300000\nD,m,1200000\nE,m,100000\nTotal,m,3000000\n"
    said = StatedTotals(none=frozenset("c"), rest=frozenset("a"))
    for texts in ((first, second), (second, first)):
        groups, _, own = asked(*texts, said=said)
        assert groups["A"] == {"C", "D", "E"}
        assert groups["B"] == {"D", "E"}
        assert groups["Total"] == {"C", "D", "E", "rest"}
    with pytest.raises(InputError, match="holds itself"):
        strict("p,1\nq,1\nr,3\n", groups={"a": {"p": ("q",), "q": ("p", "r")}})


def test_files_in_which_equal_codes_hold_each_other_are_refused() -> None:
    """Each of three files shows one of three equal codes as the sum of another and of what is nearly 0."""
    said = StatedTotals(none=frozenset("bcd"))
    files = [
        table_of_csv(
            f"a,{other},value\n"
            + "".join(f"{c},k,1300000\n{c},l,9\n" for c in codes[:2])
            + f"{codes[2]},k,0\n{codes[2]},l,x\n",
            f"{other}.csv",
            reading=PUBLISHED,
        )
        for other, codes in (("b", "ABC"), ("c", "DAE"), ("d", "BDF"))
    ]
    assert sets(
        recognise(files[:1], StatedTotals(none=frozenset("b")), published=True).dimensions["a"]
    ) == {"A": "B C"}
    with pytest.raises(InputError, match=r"b\.csv: the group '.' holds itself"):
        recognise(files, said, published=True)


def test_groups_that_are_known_count_as_one_and_their_parts_not_again() -> None:
    rows = [[N], [1_300_000], [N], [1_400_000], [2_700_000], [5]]
    assert found(rows, "a y b x z c", groups={1: (0,), 3: (2,)}) == {"z": "y x"}
    assert found(rows, "a y b x z c", groups={1: (0,), 3: (2, 4)}) == {}, "z is a part of x"
    assert found(rows, "a y b x z c", groups={4: (0,), 1: ()}) == {}
    # Not those of which something is a part already, nor the parts of a group again.
    rows = [[1_300_000], [700_000], [2_000_000], [2_100_000], [4_100_000]]
    assert found(rows, "a b y c z") == {"y": "a b", "z": "a b c"}
    assert found(rows, "a b y c z", groups={2: (0, 1)}) == {"z": "a b c"}
    assert found([[N], *rows[1:]], "a b y c z", groups={2: (0, 1)}) == {"z": "y c"}
    # Two groups with a code in common are not added.
    overlap = {1: (0, 5), 3: (2, 5)}
    rows = [[N], [1_300_000], [N], [1_400_000], [2_700_000], [N]]
    assert found(rows, "a y b x z c", groups=overlap) == {}
    assert found(rows, "a y b x z c", groups={**overlap, 5: ()}) == {"z": "y x"}
    twice = [[1_300_000], [700_000], [2_000_000], [2_000_000], [4_000_000]]
    assert found(twice, "a b y c z") == {"y": "a b", "c": "a b"}, "z holds everybody twice"


def test_a_group_that_holds_a_total_needs_the_parts_of_that_total() -> None:
    text = "a,value\nTotal,x\np,3\nq,x\nWorld,50\nAbroad,x\n"
    said = StatedTotals(groups={"a": {"World": ("Total", "Abroad")}})
    with pytest.raises(InputError, match="The group 'World' of 'a' holds the total 'Total'; say"):
        asked(text, said=said)
    whole = {"World": ("Total", "Abroad"), "Total": ("p", "q")}
    assert asked(text, said=StatedTotals(groups={"a": whole}))[0]["World"] == {"p", "q", "Abroad"}


def test_more_than_is_listed_can_be_said_of_a_code_that_has_no_parts() -> None:
    text = "a,value\nTotal,310\nC,192\nC1,65\nC2,x\nF,118\n"
    groups, _, own = asked(text, said=StatedTotals(open_groups={"a": frozenset("CF")}))
    assert groups["C"] == {"C1", "C2", "C, not listed"}
    assert "F" in own.finest
    said = StatedTotals(open_groups={"a": frozenset({"F"})}, groups={"a": {"C": ("C1", "C2")}})
    assert sets(strict("Total,310\nC,192\nC1,65\nC2,127\nF,118\n", **vars(said)))["C"] == "C1 C2"


def test_what_is_not_the_sum_is_told_as_a_total_or_a_subtotal() -> None:
    said = StatedTotals(groups={"a": {"D": ("p", "q")}})
    _, doubts, own = asked("a,value\nTotal,60\nD,5\np,10\nq,4\nr,6\n", said=said)
    assert any("the subtotal 'D' of 'a' (as you say) is not the sum" in d for d in doubts)
    assert any("the total 'Total' of 'a' (by name) is not the sum" in d for d in doubts)
    assert own.finest == ("p", "q", "r", "Total", "D")
    off = "a,value\nD,15\np,10\nq,4\nr,6\nTotal,20\n"
    file = table_of_csv(off, "x.csv", reading=PUBLISHED)
    assert any("the subtotal 'D'" in n for n in recognise([file], said, published=True).notes)


def test_codes_of_a_group_that_adds_up_are_not_asked_about_as_sums_of_each_other() -> None:
    """They are parts of it, each once."""
    rows = {
        "C": (12, 9),
        "C-Nor": (0, "x"),
        "C-North": (0, "x"),
        "C-Norse": (0, 1),
        "C-Or": (12, 1),
    }
    rows |= {"Total": (50, 60), "F": ("x", "x")}
    text = "a,b,value\n" + "".join(f"{c},k,{u}\n{c},l,{v}\n" for c, (u, v) in rows.items())
    said = StatedTotals(none=frozenset("b"))
    assert not sums_asked(text, said=said)
    assert sums_asked(text.replace("C-", "G-"), said=said), "unless they are parts of nothing"


def test_a_group_that_lists_nothing_in_a_confidential_file_is_none() -> None:
    made = strict("D,7\nE,2\nTotal,9\n", groups={"a": {"D": ("D1", "D2"), "X": ("D",)}})
    assert made.how == {"Total": "by name", "X": "as you say"}
    assert sets(made) == {"Total": "D E", "X": "D"}
