"""`lustrum audit` on what agencies publish: no all-clear where a reader can work out a hidden value."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from examples import examples
from lustrum.cli.application import app
from lustrum.model import InputError
from lustrum.model.errors import NotJudgedError


def audit(path: Path, text: str, *words: str) -> tuple[int, str]:
    file = path / "t.csv"
    file.write_text(text, encoding="utf-8")
    return run(file, *words)


def run(*words: object) -> tuple[int, str]:
    done = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["audit", *map(str, words)])
    if isinstance(done.exception, NotJudgedError):
        return 4, str(done.exception)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, " ".join(done.output.split())


def test_a_part_of_a_group_follows_though_another_part_is_hidden_nowhere_else(
    tmp_path: Path,
) -> None:
    text = "nace,value\nD,700\nD1,\nD2,100\nE,150\nE1,100\nE2,50\nCanada,850\n"
    code, said = audit(tmp_path, text)
    assert code == 3
    assert "nace=D1 │ 600 │ 600 │ exact" in said
    assert "the total is Canada (by numbers)" in said


COMPANIONS = [
    ("branch,value,share\nTotal,19766,100.00\nA,x,4.63\nB,4452,22.52\nC,x,34.54\nD,7570,38.30\n",
     "share = 100 * value / value[Total]", ["916", "6828"]),
    ("branch,firms,value,mean\nTotal,27,24706,915.0\nA,8,x,888.9\nB,6,5416,902.7\nC,4,x,1863.3\n"
     "D,9,4726,525.1\n", "mean = value / firms", ["7111", "7453"]),
    ("month,value,total\nJan,138,138\nFeb,185,323\nMar,x,866\nApr,x,901\n", "total = running value",
     ["543", "35"]),
    ("branch,before,value,change\nTotal,11863,13140,10.8\nA,1195,x,7.7\nB,1582,1717,8.5\n"
     "C,1850,x,8.9\nD,7345,8121,10.6\n", "change = 100 * value / before - 100", ["1287", "2015"]),
    ("branch,value,copy\nTotal,17814,17814.0\nA,x,8347.0\nB,4476,4476.0\nC,x,1164.0\nD,3827,3827.0\n",
     "copy = value", ["8347", "1164"]),
    ("branch,value,class\nTotal,201,\nA,x,10-15\nB,86,\nC,x,20-27\nD,73,\n", "value in class",
     ["15", "27"]),
    ("branch,value,from,to\nTotal,30,,\nA,x,7,9\nB,10,,\nC,x,11,11\n", "from <= value <= to",
     ["9", "11"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "formula", "exact"), COMPANIONS)
def test_a_column_beside_hidden_values_is_a_doubt_or_gives_them_away(
    tmp_path: Path, text: str, formula: str, exact: list[str]
) -> None:
    plain = ["--no-totals", "month"] if text.startswith("month") else []
    assert audit(tmp_path, text, *plain)[0] in (3, 4)
    code, said = audit(tmp_path, text, *plain, "--formula", formula)
    assert code == 3
    for value in exact:
        assert f"│ {value} │ {value} │ exact" in said.replace(",", "")


def test_bounds_that_leave_room_are_no_disclosure(tmp_path: Path) -> None:
    text = "branch,value,lower,upper\nTotal,20516,,\nA,x,2234,4468\nB,6235,,\nC,x,3255,6511\nD,6438,,\n"
    assert audit(tmp_path, text)[0] == 4
    assert audit(tmp_path, text, "--formula", "lower <= value <= upper")[0] == 0


def test_a_share_of_a_hidden_total_ties_the_two(tmp_path: Path) -> None:
    text = "region,kind,value,pct\nN,Total,x,100.0\nN,a,x,50.0\nN,b,400,25.0\nN,c,400,25.0\n"
    code, said = audit(tmp_path, text, "--formula", "pct = 100 * value / value[kind=Total]")
    assert code == 3
    assert "Known to within 1 percent" in said
    assert "0 of them are exactly disclosed" in said


@pytest.mark.parametrize(
    "formula", ["share", "share = value / ", "share == value", "share = 100 * nothing / value[Total]",
                "other = 100 * value / value[Total]"]
)  # fmt: skip
def test_a_mistaken_formula_is_one_sentence(tmp_path: Path, formula: str) -> None:
    text = "branch,value,share\nTotal,100,100\nA,x,40\nB,60,60\n"
    if "nothing" in formula:
        # Values that the file does not show may be spoken of; here nothing is left to tie them to.
        assert audit(tmp_path, text, "--formula", formula)[0] in (3, 4)
        return
    with pytest.raises(InputError, match="The formula"):
        audit(tmp_path, text, "--formula", formula)


def test_a_threshold_that_readers_know_gives_small_counts_away(tmp_path: Path) -> None:
    text = (
        "row,col,value,CONF_STATUS\nTotal,Total,90,F\nTotal,B,14,F\nTotal,C,26,F\nTotal,D,50,F\n"
        "X1,Total,15,F\nX1,B,,A\nX1,C,,A\nX1,D,11,F\nX2,Total,29,F\nX2,B,,A\nX2,C,,A\nX2,D,25,F\n"
        "X3,Total,46,F\nX3,B,10,F\nX3,C,22,F\nX3,D,14,F\n"
    )
    assert audit(tmp_path, text)[0] == 0
    code, said = audit(tmp_path, text, "--rule", "threshold=3")
    assert code == 3
    assert "4 of them are exactly disclosed" in said
    assert audit(tmp_path, text.replace(",A\n", ",D\n"), "--rule", "threshold=3")[0] == 4, (
        "no table fits"
    )
    with pytest.raises(InputError, match="threshold=N"):
        audit(tmp_path, text, "--rule", "p=10")


def test_zeros_that_are_shown_make_hidden_counts_at_least_1(tmp_path: Path) -> None:
    text = "region,value\nTotal,55\nN,x\nE,x\nS,x\nW,52\n"
    assert audit(tmp_path, text)[0] == 0
    assert audit(tmp_path, text, "--zeros-shown")[0] == 3


@pytest.mark.parametrize(("symbol", "rest"), [("<5", 8), ("10-19", 38)])
def test_a_symbol_that_bounds_a_value_is_used(tmp_path: Path, symbol: str, rest: int) -> None:
    text = f"region,value\nTotal,{rest + 93}\nN,{symbol}\nE,{symbol}\nS,41\nW,52\n"
    code, said = audit(tmp_path, text)
    assert code == 3
    assert "read as what they state" in said
    assert audit(tmp_path, text.replace(str(rest + 93), str(rest + 92)))[0] == 0


def test_values_that_may_be_negative_are_not_bounded_by_0(tmp_path: Path) -> None:
    text = "nace,value\nTotal,40\nD,0\nD1,x\nD2,x\nD3,0\nE,40\nE1,-10\nE2,50\n"
    assert audit(tmp_path, text)[0] == 0
    assert audit(tmp_path, text.replace("-10", "10").replace("E2,50", "E2,30"))[0] == 3
    code, _ = audit(tmp_path, "region,value\nTotal,50\nN,x\nE,x\nS,30\nW,20\n", "--signed")
    assert code == 0
    two = "region,a,b\nTotal,-5,0\nN,x,x\nE,x,x\nS,-5,0\n"
    assert audit(tmp_path, two, "--value", "a", "--value", "b", "--unrelated")[0] == 3
    assert (
        "a: region=N"
        not in audit(tmp_path, two, "--value", "a", "--value", "b", "--unrelated", "--narrow", "2")[
            1
        ]
    )


def test_sums_off_in_the_last_digit_are_rounded_and_what_follows_is_still_disclosed(
    tmp_path: Path,
) -> None:
    text = (
        "region,sex,value\nTotal,F,101\nTotal,M,90\nN,F,30\nN,M,x\nE,F,40\nE,M,50\nS,F,30\nS,M,20\n"
    )
    code, said = audit(tmp_path, text)
    assert code == 3
    assert "taken as rounded" in said
    assert "or rounding" in said
    assert "exact │" not in said
    code, _ = audit(tmp_path, text.replace("101", "103"))
    assert code == 4
    assert audit(tmp_path, "region,value\nTotal,10\nN,x\nE,x\nS,4\n", "--off-by-rounding")[0] == 0


def test_a_value_known_to_within_a_percent_is_disclosed_and_the_limit_can_be_set(
    tmp_path: Path,
) -> None:
    text = "region,value,low,high\nTotal,30000,,\nN,x,9950,10050\nE,x,9950,10050\nS,10000,,\n"
    assert audit(tmp_path, text)[0] == 3
    assert audit(tmp_path, text, "--close", "0.1")[0] == 0


def test_columns_of_values_are_tables_of_their_own(tmp_path: Path) -> None:
    text = "area,2019,2020\nTotal,98,114\na,31,..\nb,..,43\nc,67,..\n"
    code, said = audit(tmp_path, text, "--value", "2019", "--value", "2020")
    assert code == 3
    assert "2019: area=b" in said
    assert "1 of them are exactly disclosed" in said
    text = "area,turnover,domestic,export\nTotal,50,20,30\na,x,5,10\nb,x,15,20\n"
    values = [w for v in ("turnover", "domestic", "export") for w in ("--value", v)]
    code, said = audit(tmp_path, text, *values)
    assert code == 4
    assert "'turnover = domestic + export' holds wherever all of them are shown" in said
    assert audit(tmp_path, text, *values, "--unrelated")[0] == 0
    assert audit(tmp_path, text, *values, "--relation", "turnover = domestic + export")[0] == 3


def test_names_with_blanks_and_digits_stand_in_quotes_in_a_relation(tmp_path: Path) -> None:
    text = "area,Grand Total,05,06\nTotal,50,20,30\na,15,x,10\nb,35,x,20\n"
    values = ["--value", "Grand Total", "--value", "05", "--value", "06"]
    code, said = audit(tmp_path, text, *values, "--relation", "'Grand Total' = '05' + '06'")
    assert code == 3
    assert "05: area=a" in said


def test_one_variable_under_two_names_is_asked_about(tmp_path: Path) -> None:
    job, age = tmp_path / "job.csv", tmp_path / "age.csv"
    job.write_text(
        "area,job,value\nTotal,Total,60\nTotal,a,35\nTotal,b,25\nn,Total,x\nn,a,x\nn,b,10\n"
        "s,Total,x\ns,a,x\ns,b,15\n"
    )
    age.write_text(
        "geo,age,value\nTotal,Total,60\nTotal,y,30\nTotal,o,30\nn,Total,25\nn,y,10\nn,o,15\n"
        "s,Total,35\ns,y,20\ns,o,15\n"
    )
    code, said = run(job, age)
    assert code == 4
    assert "--alias area=geo" in said
    assert run(job, age, "--unrelated")[0] == 0
    assert run(job, age, "--alias", "area=geo")[0] == 3
    with pytest.raises(InputError, match="--alias is"):
        run(job, age, "--alias", "geo")


def test_a_number_that_stands_is_listed_with_its_line(tmp_path: Path) -> None:
    code, said = audit(tmp_path, "area,value,flag\nTotal,60,\na,12,c\nb,18,\nc,30,p\n")
    assert code == 3
    assert "1 value stands in the file beside a status of hidden (first: line 3)" in said
    assert "area=a │ 12 │ 12 │ exact │ line 3" in said


def test_cells_that_contradict_each_other_are_not_judged(tmp_path: Path) -> None:
    text = "a,b,value\nT,T,x\n1,T,5\n2,T,6\nT,x,4\nT,y,5\n1,x,x\n1,y,x\n2,x,x\n2,y,x\n"
    code, said = audit(tmp_path, text, "--total", "T")
    assert code == 4
    assert "contradict each other" in said


def test_a_wide_table_is_asked_about_and_read_as_told(tmp_path: Path) -> None:
    text = (
        "area,clerk,cook,nurse,All\nnorth,,,53,123\neast,,,,88\nsouth,37,23,35,95\nwest,55,16,17,88\n"
        "All,134,120,140,394\n"
    )
    code, said = audit(tmp_path, text)
    assert code == 4
    assert "--wide NAME" in said
    code, said = audit(tmp_path, text, "--wide", "job")
    assert code == 3
    assert "area=east, job=nurse │ 35 │ 35 │ exact" in said


@settings(max_examples=examples(12, 150), deadline=None)
@given(data=st.data())
def test_codes_alone_never_clear_what_the_hierarchy_discloses(data: st.DataObject) -> None:
    """Without options a file of prefix codes is not called safe where its hierarchy gives a cell away."""
    style = data.draw(st.sampled_from(["D", "1.", "X"]))
    groups: dict[str, list[str]] = {}
    for top in range(data.draw(st.integers(1, 3))):
        own = {"D": "DEF"[top], "1.": str(top + 1), "X": f"X{top + 1}"}[style]
        dot = "." if style == "1." else ""
        groups[own] = [f"{own}{dot}{i + 1}" for i in range(data.draw(st.integers(2, 3)))]
    values = {part: data.draw(st.integers(0, 300)) for parts in groups.values() for part in parts}
    values |= {top: sum(values[p] for p in parts) for top, parts in groups.items()}
    name = data.draw(st.sampled_from(["Total", "Canada"]))
    values[name] = sum(values[top] for top in groups)
    order = [name, *(code for top, parts in groups.items() for code in (top, *parts))]
    hidden = data.draw(st.sets(st.sampled_from(order), min_size=1, max_size=4))
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"{code},{'x' if code in hidden else values[code]}" for code in order]
        text = "\n".join(["code,value", *lines, ""])
        tree = Path(folder) / "h.toml"
        said = {**groups, name: list(groups)}
        tree.write_text("".join(f'"{top}" = {json.dumps(parts)}\n' for top, parts in said.items()))
        truth, _ = audit(Path(folder), text, "--hierarchy", f"code={tree}")
        bare, report = audit(Path(folder), text)
    assert not (truth == 3 and bare == 0), report


def test_cells_that_only_another_response_shows_may_be_negative_too(tmp_path: Path) -> None:
    profit, staff = tmp_path / "profit.csv", tmp_path / "staff.csv"
    profit.write_text("area,value\nTotal,-5\nn,-9\ns,4\n")
    staff.write_text(
        "area,sex,value\nTotal,Total,10\nTotal,F,6\nTotal,M,4\nn,Total,7\nn,F,4\nn,M,3\n"
        "s,Total,3\ns,F,2\ns,M,1\n"
    )
    assert run(f"profit={profit}", f"staff={staff}")[0] == 0


BRACKETS = "g,value\np,(12)\nq,\nr,\nTotal,12\n"


def test_numbers_in_brackets_stop_an_all_clear_until_sums_or_somebody_say_what_they_are(
    tmp_path: Path,
) -> None:
    """Taken for negative ones they would lift the bound of 0 from all hidden values."""
    code, said = audit(tmp_path, BRACKETS)
    assert code == 4
    assert "could be negative or only marked" in said
    assert audit(tmp_path, BRACKETS, "--signed")[0] == 0
    code, said = audit(tmp_path, BRACKETS, "--status", "()=shown")
    assert code == 3
    assert "g=q │ 0 │ 0 │ exact" in said
    assert audit(tmp_path, BRACKETS, "--status", "()=hidden")[0] == 3
    known = "p,x,(12)\nq,x,5\nTotal,x,(7)\nTotal,y,9\nTotal,Total,2\n"
    settled = f"g,h,value\n{known}p,y,\nq,y,\np,Total,\nq,Total,\n"
    assert audit(tmp_path, settled)[0] == 0


@pytest.mark.parametrize(
    ("column", "hidden", "shown"),
    [
        ("confidential", "True", "False"),
        ("is_suppressed", "1", "0"),
        ("flag", "suppressed", ""),
        ("secret", "yes", "no"),
    ],
)
def test_a_value_that_stands_beside_a_word_for_hidden_is_reported(
    tmp_path: Path, column: str, hidden: str, shown: str
) -> None:
    def text(first: str, second: str, letter: str) -> str:
        rows = (f"p,{first},{hidden}", f"q,{second},{letter}", f"r,20,{shown}", f"Total,74,{shown}")
        return f"g,value,{column}\n" + "\n".join(rows) + "\n"

    code, said = audit(tmp_path, text("4", "50", shown))
    assert code == 3
    assert "1 value stands in the file beside a status of hidden" in said
    assert audit(tmp_path, text("", "", hidden))[0] == 0


def test_a_second_column_of_letters_counts_too(tmp_path: Path) -> None:
    head = "g,value,OBS_STATUS,CONF_STATUS\np,4,A,F\nr,20,A,F\nTotal,74,A,F\n"
    for letters in ("Q,F", "A,N"):
        code, said = audit(tmp_path, f"{head}q,50,{letters}\n")
        assert code == 3, letters
        assert "g=q │ 50" in said
    assert audit(tmp_path, f"{head}q,50,A,F\n")[0] == 0


def test_a_remark_about_confidential_values_stops_an_all_clear(tmp_path: Path) -> None:
    text = "g,value,remark\np,4,confidential data\nq,50,\nr,20,see text\nTotal,74,\n"
    code, said = audit(tmp_path, text)
    assert code == 4
    assert "'confidential data' in the column 'remark'" in said
    assert audit(tmp_path, text, "--beside", "remark")[0] == 0
    assert audit(tmp_path, text, "--status-column", "remark")[0] == 3


def test_utf_16_is_read_and_an_encoding_that_is_not_clear_is_one_sentence(tmp_path: Path) -> None:
    text = "g,value\np,\nq,50\nr,20\nTotal,74\n"
    file = tmp_path / "t.csv"
    file.write_bytes(text.encode("utf-16"))
    code, said = run(file)
    assert code == 3
    assert "read as UTF-16" in said
    for content in (text.encode("utf-16-le"), b"\xff\xfeg\x00,"):
        file.write_bytes(content)
        with pytest.raises(InputError, match="save it as UTF-8"):
            run(file)
