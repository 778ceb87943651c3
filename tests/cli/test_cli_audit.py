"""Audits from the command line: several responses, and protection intervals."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lustrum.cli.application import app
from lustrum.model import InputError

TURNOVER = "act,value\na,90\nb,51\n_T,141\n"
DOMESTIC = "act,value,status\na,60,F\nb,,A\n_T,,D\n"
EXPORT = "act,value,status\na,,D\nb,21,F\n_T,,D\n"

PUBLISHED = """area,job,value,status
n,a,,A
n,b,,D
n,_T,40,F
s,a,,D
s,b,,D
s,_T,30,F
_T,a,37,F
_T,b,33,F
_T,_T,70,F
"""
TRUE = """area,job,value,lower,upper
n,a,23,{lower},{upper}
n,b,17,,
s,a,14,,
s,b,16,,
"""


def audit(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["audit", *map(str, words)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, " ".join(done.output.split())


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in {"turnover": TURNOVER, "domestic": DOMESTIC, "export": EXPORT}.items():
        (tmp_path / f"{name}.csv").write_text(text)
    (tmp_path / "p.csv").write_text(PUBLISHED)
    return tmp_path


def test_files_are_responses_and_relations_tie_them(files: Path) -> None:
    names = [files / f"{n}.csv" for n in ("turnover", "domestic", "export")]
    proof = files / "proof.json"
    words = ["--relation", "turnover = domestic + export", "--certificate", proof]
    code, text = audit(*names, *words)
    assert code == 3
    assert "4 of them are exactly disclosed" in text
    assert "domestic: act=b" in text
    assert CliRunner().invoke(app, ["verify", str(proof)]).exit_code == 0
    # The same by names before the files.
    (files / "x1.csv").write_text(DOMESTIC)
    code, again = audit(names[0], f"domestic={files / 'x1.csv'}", names[2], *words[:2])
    assert (code, "4 of them are exactly disclosed" in again) == (3, True)


def test_a_relation_without_its_file_is_one_sentence(files: Path) -> None:
    with pytest.raises(InputError, match="names 'exports', of which there is no file"):
        audit(files / "turnover.csv", "--relation", "turnover = exports")


@pytest.mark.parametrize(
    ("lower", "upper", "words", "code"),
    [
        ("16", "14", [], 0),  # the cell can be 7 to 37 for all that a reader knows
        ("16", "15", [], 3),
        ("17", "14", [], 3),
        ("", "", ["--protect", "60%"], 0),
        ("", "", ["--protect", "70%"], 3),
        ("", "", ["--protect", "14"], 0),
        ("2", "2", ["--protect", "70%"], 0),
    ],
)
def test_a_cell_within_its_protection_interval_is_named(
    files: Path, lower: str, upper: str, words: list[str], code: int
) -> None:
    (files / "true.csv").write_text(TRUE.format(lower=lower, upper=upper))
    page = files / "p.html"
    got, text = audit(files / "p.csv", "--truth", files / "true.csv", *words, "--html", page)
    html = page.read_text().partition("</style>")[2]
    assert got == code
    assert "Of 1 that need protection" in text
    assert ("Within the protection interval" in text) == (code == 3)
    assert ('class="open close"' in html) == (code == 3)
    assert "23" not in text.replace(str(files), "")
    assert "23" not in html.replace(str(files), "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--protect", "10%"], "give them by --truth"),
        (["--truth", "{true}", "--protect", "much"], "is a percentage such as 10%"),
        (["--truth", "{true}", "--truth", "{true}"], "but 2 true ones"),
        (["--truth", "{wrong}"], "those of the published table are area, job"),
        (["--truth", "{odd}"], "not a number of 0 or more"),
        (["--truth", "{less}", "--protect", "10%"], "has no true value"),
    ],
)
def test_a_mistake_about_protection_is_one_sentence(
    files: Path, words: list[str], sentence: str
) -> None:
    texts = {
        "true": TRUE.format(lower="1", upper="1"),
        "wrong": TURNOVER,
        "odd": TRUE.format(lower="-1", upper="1"),
        "less": "area,job,value\nn,b,17\n",
    }
    for name, text in texts.items():
        (files / f"{name}.csv").write_text(text)
    with pytest.raises(InputError, match=sentence):
        audit(files / "p.csv", *(w.format(**{n: files / f"{n}.csv" for n in texts}) for w in words))


def test_rounded_cells_have_protection_intervals_too(files: Path) -> None:
    (files / "r.csv").write_text("area,value\nn,12\ns,9\n")
    (files / "t.csv").write_text("area,value\nn,11\ns,8\n")
    words = ["--rounded", "3", "--truth", files / "t.csv", "--no-totals", "area"]
    assert audit(files / "r.csv", *words, "--protect", "1")[0] == 0
    assert audit(files / "r.csv", *words, "--protect", "3")[0] == 3


HIERARCHY = """nace,size,value,status
A1,small,140,
A1,large,260,
A1,Total,400,
A2,small,310,
A2,large,x,
A2,Total,x,
A,small,450,
A,large,x,
A,Total,x,
B,small,75,
B,large,920,
B,Total,995,
Total,small,525,
Total,large,1700,
Total,Total,2225,
"""


def test_totals_and_subtotals_are_recognised_and_the_report_says_so(files: Path) -> None:
    (files / "h.csv").write_text(HIERARCHY)
    code, text = audit(files / "h.csv")
    assert text.startswith(
        "nace: 3 codes; the total is Total (by name); subtotal A (by code). "
        "size: 2 codes; the total is Total (by name); no subtotals. "
        "4 cells were not published as they are; 4 of them are exactly disclosed."
    )
    assert code == 3


def test_a_total_that_nobody_recognises_is_no_all_clear(files: Path) -> None:
    text = "area,value\nn,7\ns,x\nEW,12\n"
    (files / "u.csv").write_text(text)
    code, said = audit(files / "u.csv")
    assert code == 4
    assert "nobody said whether 'EW' of 'area' is the total of the other codes" in said
    (files / "v.csv").write_text("area,value\nn,7\ns,6\nt,5\nEW,4\n")
    code, said = audit(files / "v.csv")
    assert code == 4
    assert "no total is recognised among the codes of 'area' (n, s, t, EW)" in said
    assert audit(files / "u.csv", "--no-totals", "area")[0] == 0
    assert audit(files / "u.csv", "--no-totals", "all")[0] == 0
    code, said = audit(files / "u.csv", "--total", "area=EW")
    assert (code, "the total is EW (as you say)" in said) == (3, True)


def test_a_hierarchy_from_a_file_finds_what_numbers_cannot_show(files: Path) -> None:
    text = "nace,value,status\nA1,3,F\nA2,,D\nB1,,A\nA,8,F\nB,,D\nTotal,20,F\n"
    (files / "h.csv").write_text(text)
    (files / "h.hrc").write_text("A\n@A1\n@A2\nB\n@B1\n")
    code, said = audit(files / "h.csv", "--hierarchy", f"nace={files / 'h.hrc'}")
    assert code == 3
    assert "2 subtotals A, B (as you say)" in said
    assert "3 of them are exactly disclosed" in said


def test_parquet_and_csv_give_the_same_report(files: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rows = [line.split(",") for line in HIERARCHY.splitlines()[1:]]
    columns = {
        "nace": [r[0] for r in rows],
        "size": [r[1] for r in rows],
        "value": [None if r[2] == "x" else float(r[2]) for r in rows],
    }
    parquet.write_table(pa.table(columns), files / "h.parquet")
    (files / "h.csv").write_text(HIERARCHY)
    assert audit(files / "h.parquet") == audit(files / "h.csv")


def test_several_columns_of_values_are_several_responses(files: Path) -> None:
    text = "act,turnover,domestic,export\na,90,60,x\nb,51,c,21\nTotal,141,..,\n"
    (files / "r.csv").write_text(text)
    values = [w for name in ("turnover", "domestic", "export") for w in ("--value", name)]
    code, said = audit(files / "r.csv", *values, "--relation", "turnover = domestic + export")
    assert code == 3
    assert "4 of them are exactly disclosed" in said


def test_an_interval_that_the_file_states_is_known_to_the_reader(files: Path) -> None:
    text = "a,value,status,low,high\n1,,A,2,4\n2,,D,5,9\nTotal,9,F,,\n"
    (files / "i.csv").write_text(text)
    code, said = audit(files / "i.csv")
    assert code == 0
    assert re.search(r"a=1\W+2\W+4\W", said)
    assert "0 of them are exactly disclosed" in said
    (files / "j.csv").write_text(text.replace("2,4", "4,4"))
    assert audit(files / "j.csv")[0] == 3


def test_columns_for_ends_that_are_blank_hide_nothing_from_the_reader(files: Path) -> None:
    (files / "b.csv").write_text("a,value,low,high\n1,,,\n2,,,\n3,5,5,5\nTotal,5,5,5\n")
    code, said = audit(files / "b.csv")
    assert code == 3
    assert "2 of them are exactly disclosed" in said
    assert audit(files / "b.csv", "--signed")[0] == 0


def test_rounded_tables_may_hide_cells_too(files: Path) -> None:
    (files / "r.csv").write_text("a,value,status\n1,3,F\n2,,D\n3,6,F\nTotal,12,F\n")
    code, said = audit(files / "r.csv", "--rounded", "3")
    assert code == 0
    assert re.search(r"4 cells were not published as they are; 0 of them", said)
    assert re.search(r"The closest range leaves \d+ values open: ", said)
    # The hidden one is at most 14 - 1 - 4 and at least nothing.
    code, said = audit(files / "r.csv", "--rounded", "3", "--narrow", "20")
    assert re.search(r"a=2\W+0\W+9\W", said)


def test_equations_alone_find_what_sums_give_away_and_say_that_there_may_be_more(
    tmp_path: Path,
) -> None:
    text = "area,job,value\nn,a,\nn,b,4\nn,_T,13\ns,a,\ns,b,\ns,_T,0\n_T,a,\n_T,b,\n_T,_T,13\n"
    (tmp_path / "t.csv").write_text(text)
    code, said = audit(tmp_path / "t.csv", "--equations-only")
    assert code == 3
    assert "may find more" in said
    assert "area=n, job=a" in said
    assert "area=s, job=a" not in said
    code, said = audit(tmp_path / "t.csv")
    assert code == 3
    assert "area=s, job=a" in said, "nobody can be below 0, so a total of 0 gives its parts away"
