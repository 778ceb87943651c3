"""Contributions that are blank or contradict the cell: the worst case that fits, or a sentence."""

from __future__ import annotations

import atexit
import functools
import itertools
import shutil
import tempfile
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from lustrum.model import InputError, Table
from lustrum.readers.confidential import read_true
from lustrum.readers.contributions import read_contributions
from lustrum.readers.hierarchy_files import Groups
from lustrum.readers.layout import layout_of_text
from lustrum.readers.true_tables import members_of, true_table
from lustrum.sensitivity import Dominance, PPercent, Threshold

FOLDER = Path(tempfile.mkdtemp(prefix="contributions-"))
atexit.register(shutil.rmtree, FOLDER)


def read(line: str, head: str = "a,value,n,x1,x2", groups: Groups | None = None) -> Table:
    (FOLDER / "x.csv").write_text(f"{head}\n{line}\n")
    file = read_true(FOLDER / "x.csv")
    return true_table(file, members_of([file], {"a": groups} if groups else None))


def sensitive(table: Table) -> list[bool]:
    return [
        bool(rule.judge(table).mask[0]) for rule in (PPercent(p=10), Dominance(1, 75), Threshold(3))
    ]


@pytest.mark.parametrize("contributions", [",", "1000,"])
def test_a_lone_firm_with_blank_contributions_is_sensitive(contributions: str) -> None:
    table = read(f"p,1000,1,{contributions}")
    assert sensitive(table) == [True, True, True]
    assert table.contributions.value[0].tolist() == [1000, 0]


def test_two_firms_of_which_one_is_listed_have_the_rest() -> None:
    table = read("p,1000,2,600,")
    assert table.contributions.value[0].tolist() == [600, 400]
    assert PPercent(p=10).judge(table).mask[0]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("p,1000,1,10,", "do not add up"),
        ("p,1000,2,300,", "cannot add up"),
        ("p,1000,2,600,300", "do not add up"),
        ("p,1000,3,600,500", "more than the value"),
        ("p,1000,3,400,100", "list the largest"),
        ("p,1000,0,,", "0 contributors"),
        ("p,1000,1,600,400", "more contributions than contributors"),
        ("p,1000,3,100,600", "falling order"),
        ("p,1000,3,,600", "more than the value"),
        ("p,1000,,600,400", "missing"),
        ("p,1000,1.5,600,400", "whole number"),
        ("p,-1000,3,-600,", "fill it in"),
        ("p,1000,4,600,100", "list the largest"),
        ("p,0,0,5,", "0 contributors but a value"),
        ("p,0,0,,5", "0 contributors but a value"),
        ("p,-5.5,3,900719925474099.3,", "more digits than can be computed with exactly"),
    ],
)
def test_what_cannot_be_true_is_refused_with_its_line_and_without_its_numbers(
    line: str, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence) as raised:
        read(line)
    words = str(raised.value)
    assert "x.csv, line 2" in words
    assert not any(number in words for number in ("1000", "600", "500", "400", "300"))


def test_without_a_number_of_contributors_as_few_are_assumed_as_fit() -> None:
    head = "a,value,x1,x2"
    for line, number in (
        ("p,1000,,", 1),
        ("p,1000,1000,", 1),
        ("p,1000,600,", 2),
        ("p,1000,600,400", 2),
        ("p,1000,600,300", 3),
        ("p,0,,", 0),
    ):
        table = read(line, head)
        assert table.contributors[0] == number, line
    assert sensitive(read("p,1000,,", head)) == [True, True, True]


def test_the_worst_case_is_sensitive_whenever_some_case_that_fits_is() -> None:
    """All ways to fill blanks are tried on small cells; the rules judge what was assumed."""
    rules = (PPercent(p=30), Dominance(1, 60), Dominance(2, 80))
    tried = 0

    @functools.cache
    def judged(row: str) -> list[bool]:
        table = read(row, "a,value,n,x1,x2,x3")
        return [bool(rule.judge(table).mask[0]) for rule in rules]

    for value, number in itertools.product(range(1, 6), range(1, 5)):
        ways = [
            tuple(sorted(parts, reverse=True))
            for parts in itertools.combinations_with_replacement(range(value + 1), number)
            if sum(parts) == value
        ]
        seen = [(*w, 0, 0)[:3] for w in ways]
        patterns = {
            tuple(None if hide else v for v, hide in zip(way, blanks, strict=True))
            for way in seen
            for blanks in itertools.product((False, True), repeat=3)
        }
        for pattern in sorted(patterns, key=str):
            shown = [
                "" if v is None or rank >= number else str(v) for rank, v in enumerate(pattern)
            ]
            fitting = [
                w
                for w in ways
                if all(
                    v is None or rank >= number or (*w, 0, 0)[rank] == v
                    for rank, v in enumerate(pattern)
                )
            ]
            if not fitting:
                continue
            assumed = judged(f"p,{value},{number},{','.join(shown)}")
            for way in fitting:
                full = judged(f"p,{value},{number},{','.join(map(str, (*way, '', '')[:3]))}")
                tried += len(rules)
                for rule, sensitive, worst in zip(rules, full, assumed, strict=True):
                    assert worst >= sensitive, (value, number, pattern, way, rule)
    assert tried > 300


def test_a_blank_contribution_is_said_with_its_line() -> None:
    assert "line 2" in str(read("p,1000,3,600,").provenance["assumed"])
    assert "assumed" not in read("p,1000,3,600,300").provenance


def test_blank_holdings_are_contributors_of_their_own() -> None:
    head = "a,value,n,x1,x2,h1,h2"
    table = read("p,1000,3,600,,17,", head)
    numbers = table.contributions.holding[0].tolist()
    assert len(set(numbers)) == 2
    assert min(numbers) >= 0
    assert not np.array_equal(numbers[:1], numbers[1:])


HEAD = "a,value,n,x1,x2,x3,h1,h2,h3"


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("p,500,1,500,\nq,50,9,9,8\nTotal,550,8,500,9", "number of contributors of a total"),
        ("p,500,1,500,\nq,50,1,50,\nTotal,550,30,500,40", "number of contributors of a total"),
        ("p,500,1,500,\nq,50,9,9,8\nTotal,550,10,90,80", "largest contribution to a total"),
    ],
)
def test_contributors_of_a_total_are_those_of_its_parts(lines: str, sentence: str) -> None:
    """A total that seems to have many contributors, or none as large as its part, would count as safe."""
    with pytest.raises(InputError, match=rf"x\.csv, line 4: the {sentence}") as refusal:
        read(lines)
    assert "500" not in str(refusal.value)
    right = "p,500,1,500,\nq,50,9,9,8\nTotal,550,9,500,9"
    assert read(right).contributors is not None


def test_a_holding_that_stands_twice_in_a_cell_is_refused() -> None:
    """Its contributions apart hide that it dominates the cell."""
    with pytest.raises(InputError, match="line 2: a holding stands twice in the cell"):
        read("p,100,3,40,35,25,f,f,g", HEAD)
    assert read("p,100,2,75,25,,f,g,", HEAD).contributions is not None


def filled(line: str, head: str = "a,value,n,x1,x2,x3") -> tuple[list[int], int, bool]:
    """What is taken for the contributions of a cell, for its contributors, and whether any is assumed."""
    table = read(line, head)
    there = table.contributions.present[0]
    assert set(table.contributions.holding[0][~there].tolist()) <= {-1}
    assert not table.contributions.value[0][~there].any()
    found = table.contributions.value[0][there].tolist()
    return found, int(table.contributors[0]), "assumed" in table.provenance


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("p,1000,5,600,300,50", ([600, 300, 50], 5, False)),
        ("p,1000,5,600,,", ([600, 400, 0], 5, True)),
        # A blank is at least what follows it and at most what stands before it.
        ("p,1000,9,200,,100", ([200, 200, 100], 9, True)),
        ("p,1000,9,500,,100", ([500, 400, 100], 9, True)),
        ("p,1000,9,,300,100", ([600, 300, 100], 9, True)),
        ("p,1000,9,,,100", ([800, 100, 100], 9, True)),
        ("p,1000,2,600,400,0", ([600, 400], 2, False)),
        ("p,0,0,,,", ([], 0, False)),
        # Values of both signs: nothing bounds what is not listed.
        ("p,-1000,4,-600,-300,200", ([-600, -300, 200], 4, False)),
        ("p,100,4,900,-700,300", ([900, -700, 300], 4, False)),
    ],
)
def test_the_contributions_of_a_cell(line: str, expected: tuple[list[int], int, bool]) -> None:
    assert filled(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("p,1000,1000,", ([1000], 1, False)),
        ("p,1000,999,", ([999, 1], 2, True)),
        ("p,1000,600,300", ([600, 300], 3, False)),
        ("p,1000,,", ([1000], 1, True)),
        ("p,0,,", ([], 0, False)),
    ],
)
def test_the_contributions_of_a_cell_without_a_number(
    line: str, expected: tuple[list[int], int, bool]
) -> None:
    assert filled(line, "a,value,x1,x2") == expected


def test_numbers_of_contributors_alone_are_kept_and_checked() -> None:
    table = read("p,5,2\nq,0,0\nr,0,3\nTotal,5,4", "a,value,n")
    assert table.contributions is None
    assert table.contributors.tolist() == [2, 0, 3, 4]
    with pytest.raises(InputError, match="line 3: the cell has a value but 0 contributors"):
        read("p,5,2\nq,1,0\nTotal,6,2", "a,value,n")


def test_contributors_without_a_name_are_like_no_other() -> None:
    head = "a,value,n,x1,x2,h1,h2"
    table = read("p,1000,2,600,,f,\nq,700,2,400,300,g,f\nr,500,3,,,,\nTotal,2200,5,,,,", head)
    holding = table.contributions.holding
    assert holding[0, 0] == holding[1, 1] >= 0, "one name is one holding"
    blank = [holding[0, 1], *holding[2], *holding[3]]
    assert len({*map(int, blank), int(holding[0, 0]), int(holding[1, 0])}) == 7
    with pytest.raises(InputError, match="line 2: a contribution has no holding"):
        read("p,1000,2,600,400,f,", head)


def test_the_largest_exact_number_is_read_and_none_beyond_it() -> None:
    table = read("p,-0.5,3,900719925474099.2,-900719925474099.2")
    assert table.contributions.value[0].tolist() == [2**53, -(2**53)]


GROUPED = [
    "D1,300,2,200,100", "D2,200,2,150,50", "D,500,3,250,200", "E,100,1,100,", "Total,600,4,300,200",
]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "line", "sentence"),
    [
        (2, "D,500,1,500,", "number of contributors of a total"),
        (2, "D,500,5,250,200", "number of contributors of a total"),
        (2, "D,500,3,199,180", "largest contribution to a total"),
        (4, "Total,600,2,350,250", "number of contributors of a total"),
        (4, "Total,600,9,300,200", "number of contributors of a total"),
        (4, "Total,600,4,249,200", "largest contribution to a total"),
        (3, "E,100,4,30,30", "number of contributors of a total"),
        (1, "D2,200,4,150,50", "number of contributors of a total"),
    ],
)
def test_every_total_is_held_against_each_of_its_parts(row: int, line: str, sentence: str) -> None:
    def made(lines: list[str]) -> Table:
        return read("\n".join(lines), groups={"D": ("D1", "D2")})

    assert made(GROUPED).contributors is not None
    lines = [*GROUPED]
    lines[row] = line
    if row == 3:
        # As many as its total has are possible, more are not.
        assert made(lines).contributors is not None
        lines[4] = "Total,600,3,300,200"
    with pytest.raises(InputError, match=sentence):
        made(lines)


def test_totals_of_empty_cells_and_of_values_of_both_signs_are_right() -> None:
    empty = read("p,0,0,,\nq,0,0,,\nTotal,0,0,,")
    assert not empty.contributors.any()
    cancelled = read("p,500,1,500,\nq,-450,2,-400,-50\nTotal,50,2,100,-50")
    assert cancelled.contributors is not None
    hidden = read("p,100,2,500,-400\nq,200,1,200,\nTotal,300,3,300,200")
    assert hidden.contributors is not None, "contributions can cancel though no value is negative"


def test_rows_that_are_missing_are_empty_cells() -> None:
    lines = "p,k,5,1,5,\np,Total,5,1,5,\nTotal,k,5,1,5,\nTotal,Total,5,1,5,\nTotal,l,0,0,,"
    table = read(lines, "a,b,value,n,x1,x2")
    assert int(table.contributors.sum()) == 4
    assert set(table.contributions.holding[~table.contributions.present].tolist()) == {-1}


def test_totals_of_a_file_without_numbers_of_contributors() -> None:
    head = "a,value,x1,x2"
    assert read("p,500,500,\nq,50,9,8\nTotal,550,500,9", head).contributors is not None
    with pytest.raises(InputError, match="line 4: the largest contribution to a total"):
        read("p,500,500,\nq,50,9,8\nTotal,550,90,80", head)


DECLARED = """[contributions]
sheet = "firms"
head = [3]
nested = ["Land", "Ort"]
fixed = { year = "2025" }
decimal = ","
[contributions.columns]
Land = { role = "code" }
Ort = { role = "code", dimension = "area" }
Firma = { role = "contributor" }
Umsatz = { role = "value" }
Notiz = { role = "note" }
"""


def test_a_file_of_contributions_is_read_as_tables_are(tmp_path: Path) -> None:
    rows = [
        ("N", "Köln", "f", "1.234,5", "p"),
        ("N", "Aachen", "g", "7", ""),
        ("S", "", "f", "0", ""),
    ]
    book = openpyxl.Workbook()
    book.create_sheet("firms")
    for line in (("Umsätze",), (), ("Land", "Ort", "Firma", "Umsatz", "Notiz"), *rows):
        book["firms"].append(line)
    book.save(tmp_path / "c.xlsx")
    layout = layout_of_text(DECLARED, "l")
    names = ["area", "year"]
    found = read_contributions(tmp_path / "c.xlsx", layout.contributions, names, ".")
    assert [(one.codes["area"], one.contributor, str(one.value)) for one in found] == [
        ("N / Köln", "f", "1234.5"),
        ("N / Aachen", "g", "7"),
        ("S", "f", "0"),
    ]
    assert {one.codes["year"] for one in found} == {"2025"}
    book["firms"]["D5"] = "-7"
    book.save(tmp_path / "c.xlsx")
    with pytest.raises(InputError, match=r"c.xlsx, firms, row 5: the contribution is negative"):
        read_contributions(tmp_path / "c.xlsx", layout.contributions, names, ".")
    book["firms"]["D5"] = "unknown"
    book.save(tmp_path / "c.xlsx")
    with pytest.raises(InputError, match=r"c.xlsx, firms, row 5: 'unknown' is no number"):
        read_contributions(tmp_path / "c.xlsx", layout.contributions, names, ".")
    plural = layout_of_text(DECLARED.replace('"contributor"', '"contributors"'), "l")
    with pytest.raises(InputError, match="one column must be the contributor; 0 are"):
        read_contributions(tmp_path / "c.xlsx", plural.contributions, names, ".")
    primary = layout_of_text(DECLARED.replace('"note"', '"primary"'), "l")
    with pytest.raises(InputError, match="no column of the role 'primary'"):
        read_contributions(tmp_path / "c.xlsx", primary.contributions, names, ".")


def test_a_column_of_single_contributors_is_in_no_table_to_suppress(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,who,value\np,f,5\nq,g,7\nTotal,f,12\n")
    columns = "a = { role = 'code' }\nwho = { role = 'contributor' }\nvalue = { role = 'value' }\n"
    layout = layout_of_text(f"[[tables]]\n[tables.columns]\n{columns}", "l")
    with pytest.raises(InputError, match="the column 'who' names one contributor a line"):
        read_true(tmp_path / "t.csv", layout)
