"""Published files in their layouts: where the table is, which columns are codes, what is unclear."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from lustrum.formats.write import write_release
from lustrum.model import InputError, Table
from lustrum.model.errors import NotJudgedError
from lustrum.protect.suppression import Suppression
from lustrum.readers import (
    ColumnNames,
    Reading,
    StatedTotals,
    TableFile,
    read_table,
    recognise,
    table_of_csv,
)
from lustrum.readers.code_groups import groups_by_code

PUBLISHED = Reading(published=True)


def read(text: str, named: ColumnNames = ColumnNames(), **said: object) -> TableFile:  # noqa: B008
    return table_of_csv(text, "x.csv", named, reading=Reading(published=True, **said))  # type: ignore[arg-type]


def test_a_title_and_notes_are_left_out_and_stop_an_all_clear_until_read() -> None:
    text = 'Farms, by area\n\narea,2020,value\nTotal,1,"1,444"\na,2,x\nb,3,7\n\nx: fewer than 5.\n'
    found = read(text)
    assert found.values["value"] == (Decimal(1444), None, Decimal(7))
    assert any("1 above and 1 below" in note for note in found.notes)
    assert any("--notes-read" in doubt for doubt in found.doubts)
    assert not any("--notes-read" in doubt for doubt in read(text, notes_read=True).doubts)


def test_a_title_that_a_spreadsheet_filled_up_is_a_title() -> None:
    found = read("Farms,,\narea,sex,value\nTotal,m,3\na,m,x\n,,\nx: hidden,,\n")
    assert found.dimensions == ("area", "sex")
    assert len(found.cells) == 2


def test_a_line_in_the_table_that_does_not_fit_is_not_judged() -> None:
    with pytest.raises(NotJudgedError, match="line 3: there are 4 fields"):
        read("a,b,value\n1,2,3\n1,2,3,4\n1,3,3\n2,3,3\n")
    with pytest.raises(NotJudgedError, match="occurs twice"):
        read("job,clerk,clerk\nsex,F,M\nnorth,3,4\n")
    with pytest.raises(InputError, match="no line has two fields"):
        read("a\nb\n")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_any_separator_is_found(delimiter: str) -> None:
    text = "area,sex,value\nTotal,F,12\na,F,x\nb,F,7\n".replace(",", delimiter)
    assert read(text).values["value"] == (Decimal(12), None, Decimal(7))


def test_another_encoding_is_read_and_said(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("Land;Umsatz\nInsgesamt;12,5\nThüringen;.\n".encode("latin-1"))
    found = read_table(path, reading=PUBLISHED)
    assert found.cells == (("Insgesamt",), ("Thüringen",))
    assert any("not UTF-8" in note for note in found.notes)
    with pytest.raises(InputError, match="not UTF-8"):
        read_table(path)


def test_r_eurostat_and_spreadsheets_have_their_own_layouts() -> None:
    short = read('"clerk","cook"\n"north",3,4\n"Sum",5,6\n', wide="job")
    assert short.dimensions == ("row", "job")
    assert short.cells[0] == ("north", "clerk")
    tsv = read("freq,geo\\TIME\t2020 \t2021 \nA,XX\t227 p\t: c\nA,XX1\t3 \t4 \n")
    assert tsv.dimensions == ("freq", "geo", "TIME")
    assert tsv.values["value"][:2] == (Decimal(227), None)
    assert tsv.status["value"][:2] == ("p", "c")
    assert not tsv.doubts
    merged = read("area,sex,value\nnorth,T,9\n,F,4\n,M,5\nsouth,T,3\n,F,1\n,M,2\n")
    assert merged.cells[1] == ("north", "F")
    assert any("row above" in note for note in merged.notes)
    blank = read("area,sex,value\n,T,9\n,F,4\na,T,3\na,F,1\n")
    assert blank.cells[0] == ("", "T"), "a total without a name is no merged field"


def test_a_variable_across_is_told_or_asked_for() -> None:
    text = "area,clerk,cook,All\nnorth,3,x,9\nAll,5,x,20\n"
    found = read(text, wide="job")
    assert found.cells[1] == ("north", "cook")
    assert found.values["value"][:3] == (Decimal(3), None, Decimal(9))
    with pytest.raises(NotJudgedError, match="--wide NAME"):
        read("area,clerk,cook,All\nnorth,x,x,9\nAll,5,x,x\n")
    with pytest.raises(InputError, match="--wide names the variable"):
        read(text, wide="area")


def test_a_remark_on_cells_is_no_variable() -> None:
    found = read("area,value,note\nTotal,100,\na,30,late\nb,x,\nc,20,\n")
    assert found.dimensions == ("area",)
    found = read("geo,code,sex,value\nA,1x,F,1\nA,1x,M,2\nB,2y,F,3\nB,2y,M,4\n")
    assert found.dimensions == ("geo", "sex"), "a second name of the codes is none either"
    found = read("unit,parent,value\nALL,,9\nR1,ALL,4\nR2,ALL,5\n")
    assert found.dimensions == ("unit",)
    assert found.parents == {"unit": {"R1": "ALL", "R2": "ALL"}}


@pytest.mark.parametrize("column", ["n", "contributors", "x1", "share", "lower"])
def test_numbers_beside_hidden_values_are_a_doubt(column: str) -> None:
    text = f"area,value,{column}\nTotal,100,100\na,30,30\nb,x,50\nc,x,20\n"
    assert any(repr(column) in doubt for doubt in read(text).doubts)
    assert not read(text, ColumnNames(beside=(column,))).doubts


def test_a_remark_with_a_number_throughout_is_a_doubt() -> None:
    text = (
        "area,value,comment\nTotal,9,Cells of 1 or 2 are hidden\na,x,Cells of 1 or 2 are hidden\n"
    )
    assert any("'comment'" in doubt for doubt in read(text).doubts)


@pytest.mark.parametrize(
    ("symbol", "said"), [("np", "np"), ("[low]", "[low]=1..4"), ("-", "-=0"), ("–", "–")]
)
def test_an_unknown_symbol_is_a_doubt_until_somebody_says_what_it_is(
    symbol: str, said: str
) -> None:
    from lustrum.readers.published.reading import said_symbols

    text = f"area,value\nTotal,9\na,{symbol}\nb,4\nc,3\n"
    known = symbol == "np"
    assert bool(read(text).doubts) != known
    found = read(text, symbols=said_symbols([said]))
    assert not found.doubts
    if said == "-=0":
        assert found.values["value"][1] == 0
    if said == "[low]=1..4":
        assert found.bounds["value"][1] == (1, 4)


def test_blanks_beside_another_sign_for_hidden_values_are_a_doubt() -> None:
    text = "area,value\nTotal,9\na,\nb,x\nc,3\n"
    assert any("blanks" in doubt for doubt in read(text).doubts)
    assert read(text, symbols={"": (Decimal(0), Decimal(0))}).values["value"][1] == 0
    assert not read(text, symbols={"": (None, None)}).doubts
    assert not read(text.replace("x", "")).doubts


def test_zeros_beside_a_letter_of_hidden_are_no_values_and_other_numbers_stand() -> None:
    text = "area,value,disclosure_code\nTotal,9,\na,0,N\nb,0,N\nc,3,\n"
    assert any("'N'" in doubt for doubt in read(text).doubts)
    assert read(text).values["value"][1] is None
    found = read(text, letters={"N": "hidden"})
    assert not found.doubts
    assert found.values["value"] == (Decimal(9), None, None, Decimal(3))
    found = read(text.replace("0,N", "2,N"), letters={"N": "hidden"})
    assert found.standing["value"] == (1, 2)
    found = read(text, letters={"N": (Decimal(1), Decimal(4))})
    assert found.bounds["value"][1] == (1, 4)


def test_a_known_threshold_says_what_letters_mean() -> None:
    text = "area,value,CONF_STATUS\nTotal,9,F\na,,A\nb,,D\nc,,N\n"
    found = read(text, threshold=3, zeros_shown=True)
    assert found.bounds["value"] == ((None, None), (1, 2), (3, None), (1, None))


def test_a_cell_that_stands_twice_is_known_if_one_row_shows_it() -> None:
    found = read("area,value\nTotal,9\na,x\nb,4\na,5\n")
    assert found.values["value"] == (Decimal(9), Decimal(5), Decimal(4))
    assert found.standing["value"] == (1,)
    with pytest.raises(NotJudgedError, match="different values"):
        read("area,value\nTotal,9\na,4\nb,4\na,5\n")


def test_messages_hold_no_number_of_the_file() -> None:
    text = "note 731\na,value,share\nTotal,731,9731\n1,-,4731\n2,[low],5731\n"
    found = read(text)
    said = recognise([found], published=True)
    for sentence in (*found.doubts, *found.notes, *said.doubts, *said.notes):
        assert sentence.startswith("x.csv: ")
        assert "731" not in sentence


# Codes that show groups.


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["D", "D1", "D2", "E"], {"D": ["D1", "D2"]}),
        (["1", "1.1", "1.1.1", "1.2"], {"1": ["1.1", "1.2"], "1.1": ["1.1.1"]}),
        (["1.", "1.1.", "1.2."], {"1.": ["1.1.", "1.2."]}),
        (["C", "C10-C12", "C13-C15"], {"C": ["C10-C12", "C13-C15"]}),
        (["XY", "XY1", "XY11", "XY12", "XY2"], {"XY": ["XY1", "XY2"], "XY1": ["XY11", "XY12"]}),
        (["0-14", "15-24", "25-64", "65+", "15-64"], {"15-64": ["15-24", "25-64"]}),
        (["B", "C", "D", "E", "B-E", "C-D"], {"B-E": ["B", "C", "D", "E"], "C-D": ["C", "D"]}),
        (["D+E", "D", "E"], {"D+E": ["D", "E"]}),
        ([str(i) for i in range(1, 13)], {}),
        ([f"R{i}" for i in range(1, 13)], {}),
        (["2019", "2020", "2021"], {}),
        (["All", "Allier", "Alle"], {}),
        (["England", "England and Wales"], {}),
        (["M", "Male"], {}),
    ],
)
def test_codes_show_their_groups_and_no_others(
    codes: list[str], expected: dict[str, list[str]]
) -> None:
    found = groups_by_code(codes)
    assert {code: sorted(group.parts) for code, group in found.items()} == expected


def recognised(text: str, **said: object) -> tuple[dict[str, set[str]], tuple[str, ...]]:
    file = read(text)
    found = recognise([file], StatedTotals(**said), published=True)  # type: ignore[arg-type]
    own = next(iter(found.dimensions.values()))
    names = (*own.finest, "rest")
    return {c: {names[p] for p in parts} for c, parts in own.groups.items()}, found.doubts


def test_a_group_with_a_hidden_part_is_claimed_and_a_total_without_a_name_if_sums_agree() -> None:
    text = "nace,value\nD,700\nD1,\nD2,100\nE,150\nE1,100\nE2,50\nCanada,850\n"
    groups, doubts = recognised(text)
    assert groups["D"] == {"D1", "D2"}
    assert groups["Canada"] == {"D1", "D2", "E1", "E2"}
    assert not doubts


def test_a_group_that_nothing_confirms_is_claimed_with_a_doubt() -> None:
    groups, doubts = recognised("nace,value\nTotal,310\nC,192\nC1,65\nC2,c\nF,118\n")
    assert groups["C"] == {"C1", "C2"}
    assert any("--rest nace=C" in doubt for doubt in doubts)
    groups, doubts = recognised(
        "nace,value\nTotal,310\nC,192\nC1,65\nC2,c\nF,118\n",
        open_groups={"nace": frozenset({"C"})},
    )
    assert groups["C"] == {"C1", "C2", "C, not listed"}
    assert not doubts
    groups, doubts = recognised(
        "nace,value\nTotal,310\nC,92\nC1,65\nC2,c\nF,118\n", flat=frozenset({"nace"})
    )
    assert "C" not in groups


def test_parts_that_are_more_than_the_whole_rule_a_group_out() -> None:
    groups, doubts = recognised("nace,value\nTotal,300\nC,50\nC1,65\nC2,c\n")
    assert "C" not in groups
    assert any("is not the sum" in doubt for doubt in doubts)
    groups, doubts = recognised("district,value\n1,50\n11,65\n12,x\n2,70\n99,300\n")
    assert "1" not in groups
    assert not any("is not the sum" in doubt for doubt in doubts), "numbers begin alike by chance"


def test_a_total_that_does_not_add_up_is_a_doubt_and_no_relation() -> None:
    groups, doubts = recognised("area,value\nTotal,100\na,30\nb,40\nc,20\n")
    assert "Total" not in groups
    assert any("is not the sum of its parts (value)" in doubt for doubt in doubts)


def test_a_total_off_by_one_is_rounding_and_the_worst_column_is_named() -> None:
    file = read("area,sex,value\nTotal,F,101\nTotal,M,90\na,F,30\na,M,40\nb,F,70\nb,M,50\n")
    found = recognise([file], published=True)
    assert "x.csv" in found.off
    assert any("(value, sex=F)" in note for note in found.notes)
    assert not found.doubts


def test_a_hierarchy_may_name_codes_without_rows() -> None:
    text = "nace,value\nTotal,10\nA,6\nA1,4\nA2,2\nB,4\n"
    said = StatedTotals(groups={"nace": {"A": ("A1", "A2", "A3"), "Total": ("A", "B", "C")}})
    for published in (True, False):
        found = recognise([read(text)], said, published=published)
        assert found.dimensions["nace"].groups["A"] >= frozenset()
    # In a confidential table the code without a row is empty, and the others add up.
    strict = recognise([table_of_csv(text, "x")], said).dimensions["nace"]
    assert len(strict.groups["A"]) == 2


# Files of this project.


def test_workbooks_and_json_stat_of_this_project_read_back(tmp_path: Path) -> None:
    release = Suppression().apply(Table.from_counts([[1, 8, 5], [9, 7, 6], [4, 8, 9]]))
    write_release(release, tmp_path / "t.xlsx")
    write_release(release, tmp_path / "t.csv")
    from lustrum.formats import JsonStat

    (tmp_path / "t.json").write_text(JsonStat().write(release, "t"))
    csv = read_table(tmp_path / "t.csv", reading=PUBLISHED)
    for ending in ("xlsx", "json"):
        other = read_table(tmp_path / f"t.{ending}", reading=PUBLISHED)
        assert other.cells == csv.cells
        assert other.values == csv.values
        assert None in other.values["value"]
        strict = read_table(tmp_path / f"t.{ending}")
        assert strict.values == csv.values


def test_a_file_that_is_no_workbook_or_json_stat_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "t.xlsx").write_text("no")
    with pytest.raises(InputError, match="is not a workbook"):
        read_table(tmp_path / "t.xlsx", reading=PUBLISHED)
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(InputError, match=r"is not a dataset of JSON-stat 2\.0"):
        read_table(tmp_path / "t.json", reading=PUBLISHED)
    made = {"id": ["a"], "size": [3], "value": [1, 2, 3],
            "dimension": {"a": {"category": {"index": ["x", "y"]}}}}  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps(made))
    with pytest.raises(InputError, match="sizes do not fit"):
        read_table(tmp_path / "t.json", reading=PUBLISHED)


def test_a_total_that_may_be_off_by_rounding_lets_nothing_follow_exactly() -> None:
    file = read("area,value\nTotal,1002\na,300\nb,400\nc,200\nd,100\n")
    found = recognise([file], published=True)
    assert "x.csv" in found.off
    assert any("--off-by-rounding" in doubt for doubt in found.doubts)
    assert not found.dimensions["area"].groups


def test_a_dimension_without_a_shown_total_is_asked_about() -> None:
    _, doubts = recognised("area,value\nCanada,900\na,300\nb,x\nc,200\n")
    assert any("'Canada' of 'area' is the total" in doubt for doubt in doubts)
    _, doubts = recognised("area,value\nCanada,x\nD,300\nD1,100\nD2,200\n")
    assert any("'Canada' of 'area' is the total" in doubt for doubt in doubts), "a hidden total too"
    _, doubts = recognised("year,value\n2019,900\n2020,x\n2021,200\n")
    assert not doubts, "nobody adds up years"


def test_a_name_that_others_begin_with_may_be_their_sum() -> None:
    text = "area,value\nNorth,12\nNorthern,x\nNorthland,x\nSouth,x\nTotal,40\n"
    _, doubts = recognised(text)
    assert any("'North' of 'area' is the sum of other codes" in doubt for doubt in doubts)
    assert not recognised(text, flat=frozenset({"area"}))[1]
    whole = "area,sex,value\n" + "".join(
        f"{code},F,{n}\n{code},M,{m}\n"
        for code, n, m in (("North", 12, 5), ("Northern", 3, "x"), ("Northland", 4, "x"), ("Total", 19, 20))
    )  # fmt: skip
    assert not recognised(whole)[1], "a column in which all is shown rules it out"


def test_codes_before_the_next_group_may_be_parts_of_the_first_of_them() -> None:
    text = (
        "area,value\nNorth,7980000\nAyr,2610000\nBute,x\n"
        "South,5140000\nKent,2960001\nDevon,2179999\nTotal,x\n"
    )
    groups, doubts = recognised(text)
    assert groups["South"] == {"Kent", "Devon"}
    assert any("'North' of 'area' is the sum of other codes" in doubt for doubt in doubts)
