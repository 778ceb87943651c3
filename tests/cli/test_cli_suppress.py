"""Suppression from the command line: files, report, picture, and nothing of a hidden value in any of them."""

from __future__ import annotations

import csv
import json
import re
import signal
import zipfile
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import openpyxl
import pytest
import typer.main
from pyarrow import parquet
from scipy.optimize import linprog
from typer.core import TyperOption
from typer.testing import CliRunner

from lustrum.cli.application import app
from lustrum.model import InputError
from lustrum.model.errors import NotJudgedError
from lustrum.readers.judge import open_file
from lustrum.readers.own import published_cells
from lustrum.readers.report import FileReport

# n/a is dominated by one contributor; every hidden value has digits that stand nowhere else.
TABLE = """area,job,value,n,x1,x2
n,a,7013,3,6907,90
n,b,5311,9,1100,900
n,c,8200,9,1100,900
n,Total,20524,21,6907,1100
s,a,4507,9,1100,900
s,b,6203,9,1300,900
s,c,9100,12,1100,900
s,Total,19810,30,1300,1100
w,a,3000,9,700,600
w,b,4000,9,900,600
w,c,5000,9,1100,900
w,Total,12000,27,1100,900
Total,a,14520,21,6907,1100
Total,b,15514,27,1300,1100
Total,c,22300,30,1100,900
Total,Total,52334,78,6907,1300
"""


def suppress(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["suppress", *map(str, words)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def layout(folder: Path, *lines: str) -> tuple[object, ...]:
    """The option that names a layout of these lines."""
    path = folder / "layout.toml"
    path.write_text("\n".join(lines) + "\n")
    return "--layout", path


def settings(folder: Path, *lines: str) -> tuple[object, ...]:
    """The option that names a layout with settings of suppression."""
    return layout(folder, "[suppress]", *lines)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    return path


def test_a_table_is_protected_and_the_report_says_how(table: Path) -> None:
    out = table.parent / "out.csv"
    code, said = suppress(table, "--rule", "p=10", "--out", out)
    assert code == 0
    words = " ".join(said.split())
    assert words.startswith(
        "area: 3 codes; the total is Total (by name); no subtotals. "
        "job: 3 codes; the total is Total (by name); no subtotals. "
        "16 cells, 1 primary, 3 secondary; cost "
    )
    assert "The audit found every level kept." in words
    assert re.search(r"area codes x job codes\W+9\W+1\W+3\W", words)
    assert out.read_text().splitlines()[:2] == ["area,job,value,status", "n,a,,N"]
    letters = [line.rpartition(",")[2] for line in out.read_text().splitlines()[1:]]
    assert (letters.count("N"), letters.count("F")) == (4, 12)
    # The same table again gives the same bytes, and an audit of the file finds nothing.
    before = out.read_bytes()
    assert suppress(table, "--rule", "p=10", "--out", out)[1] == said
    assert out.read_bytes() == before
    assert CliRunner().invoke(app, ["audit", str(out)]).exit_code == 0


def test_no_file_for_the_public_holds_a_hidden_value(table: Path) -> None:
    folder = table.parent
    public = [folder / "o.csv", folder / "p.svg", folder / "q.html", folder / "o.parquet"]
    for name in (public[0], public[3]):
        suppress(table, "--rule", "p=10", "--out", name, *settings(folder, "partial = true"))
    for name in public[1:3]:
        suppress(table, "--rule", "p=10", "--picture", name)
    true = published_cells(table, ["area", "job"])
    shown = published_cells(public[0], ["area", "job"])
    hidden = [str(true[key]) for key, value in shown.items() if value is None]
    assert len(hidden) == 4
    text = "".join(p.read_text() for p in public[:3])
    text += str(parquet.read_table(public[3]).to_pydict())
    for value in (*hidden, "6907"):
        assert value not in text
    assert 0 not in [
        v for v in parquet.read_table(public[3]).column("value").to_pylist() if v is not None
    ]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_intervals_instead_of_blanks_are_what_a_reader_can_work_out(
    table: Path, ending: str
) -> None:
    out = table.parent / f"out.{ending}"
    words = settings(table.parent, "partial = true")
    assert suppress(table, "--rule", "p=10", "--out", out, *words)[0] == 0
    cells = open_file(out).reading.cells
    by_measure = {m: {} for m in ("value", "low", "high")}  # type: dict[str, dict[Any, Any]]
    for cell in cells:
        by_measure[cell.key["measure"]][cell.key["area"], cell.key["job"]] = cell.value
    inner = [(a, j) for a in "nsw" for j in "abc"]

    def weights(key: tuple[str, str]) -> list[float]:
        return [float(key[0] in (a, "Total") and key[1] in (j, "Total")) for a, j in inner]

    shown = {key: value for key, value in by_measure["value"].items() if value is not None}
    hidden = [key for key in by_measure["value"] if key not in shown]
    assert len(hidden) == 4
    for key in hidden:
        for sign, end in ((1, "low"), (-1, "high")):
            found = linprog(
                sign * np.array(weights(key)),
                A_eq=[weights(k) for k in shown],
                b_eq=[float(v) for v in shown.values()],
            )
            assert float(by_measure[end][key]) == pytest.approx(sign * found.fun)


@pytest.mark.parametrize(
    ("names", "head"),
    [
        ("low,job", "low,job,status,low_,high,sharp,enough"),
        ("status,enough", "status,enough,status_,low,high,sharp,enough_"),
        ("sharp_,sharp", "sharp_,sharp,status,low,high,sharp__,enough"),
    ],
)
def test_columns_of_ranges_give_way_to_variables(table: Path, names: str, head: str) -> None:
    text = TABLE.replace("area,job", names, 1)
    if "status" in names:
        text = "\n".join(f"{line},{k and ''}" for k, line in enumerate(text.splitlines()))
        text = text.replace(",0\n", ",status_\n", 1)
    table.write_text(text)
    ranges = table.parent / "r.csv"
    assert (
        suppress(table, "--rule", "p=10", "--ranges", ranges, "--out", table.parent / "o.csv")[0]
        == 0
    )
    assert ranges.read_text().splitlines()[0] == head
    rows = list(csv.DictReader(ranges.read_text().splitlines()))
    assert {row[names.split(",")[0]] for row in rows} <= {"n", "s", "w", "Total"}
    assert len(rows) == 4


def test_cells_can_be_frozen_or_kept_out_and_the_last_pattern_is_kept(table: Path) -> None:
    first, second = table.parent / "1.csv", table.parent / "2.csv"
    suppress(table, "--rule", "p=10", "--out", first)
    hidden = [k for k, v in published_cells(first, ["area", "job"]).items() if v is None]
    area, job = next(key for key in hidden if key != ("n", "a"))
    lines = (f'frozen = "area={area},job={job}"', 'never = ["area=w,job=c"]')
    suppress(table, "--rule", "p=10", *settings(table.parent, *lines), "--out", second)
    again = published_cells(second, ["area", "job"])
    assert again[area, job] is not None
    assert again["w", "c"] is None
    assert "w,c,,N" in second.read_text()
    code, said = suppress(table, "--rule", "p=10", "--previous", first, "--out", second)
    assert code == 0
    assert "Against the last period: 4 kept, 0 added, 0 published again." in said
    assert second.read_bytes() == first.read_bytes()


def test_what_cannot_be_protected_is_explained_and_nothing_is_written(table: Path) -> None:
    out = table.parent / "out.csv"
    frozen = settings(table.parent, 'frozen = ["job=b", "job=c", "job=Total"]')
    code, said = suppress(table, "--rule", "p=10", "--out", out, *frozen)
    assert code == 3
    assert not out.exists()
    assert "Nothing was written" in said


def test_the_file_itself_can_say_what_is_sensitive(table: Path) -> None:
    lines = TABLE.splitlines()
    marked = [lines[0] + ",primary,upper"] + [
        line + (",1,400" if line.startswith("s,b") else ",0,") for line in lines[1:]
    ]
    table.write_text("\n".join(marked))
    out = table.parent / "out.csv"
    assert suppress(table, "--out", out)[0] == 0
    assert "s,b,,N" in out.read_text()
    assert {line.rpartition(",")[2] for line in out.read_text().splitlines()[1:]} == {"F", "N"}
    assert suppress(table, "--out", out, *settings(table.parent, "reasons = true"))[0] == 0
    assert "s,b,,M" in out.read_text()


@pytest.mark.parametrize(
    ("words", "lines", "sentence"),
    [
        ([], [], "Say what is sensitive"),
        (["--rule", "p"], [], "--rule is p=10"),
        (["--rule", "p=ten"], [], "needs numbers"),
        (["--rule", "nk=1,2,3"], [], "at most 2 numbers"),
        (["--rule", "p=10", "--out", "x.txt"], [], "a file of .csv, .parquet or .xlsx"),
        (["--rule", "p=10", "--picture", "x.png"], [], "a picture is a file of"),
        (["--rule", "p=10", "--hierarchy", "a.hrc"], [], "--hierarchy is DIMENSION=FILE"),
        (["--rule", "p=10"], ['frozen = "area=x"'], "has no code 'x'"),
        (["--rule", "p=10"], ['frozen = "n"'], "frozen is DIMENSION=CODE"),
        (["--rule", "p=10"], ['cost = "size"'], "'cost' must be 'value', 'count'"),
        (["--rule", "p=10"], ['frozen = "area=n,job=a"'], "must be published and must not"),
        (["--rule", "p=10"], ['rule = "nk=2,85"'], "--rule stands in .suppress. of the layout too"),
        (["--rule", "p=10"], ["zero = true"], "no key 'suppress.zero'; did you mean 'zeros'"),
    ],
)
def test_a_mistake_is_one_sentence(
    table: Path, words: list[str], lines: list[str], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        suppress(table, *words, *(settings(table.parent, *lines) if lines else ()))


RENAMED = TABLE.replace("value,n,x1,x2", "turnover,firms,first,second")
ROLES = (
    'kind = "sums"',
    "[[tables]]",
    "[tables.columns]",
    'area = { role = "code" }',
    'job = { role = "code" }',
    'turnover = { role = "value" }',
    'firms = { role = "contributors" }',
    'first = { role = "contribution" }',
    'second = { role = "contribution" }',
)


def test_columns_can_have_any_name_by_a_layout_and_are_asked_about_without_one(table: Path) -> None:
    plain, other = table.parent / "plain.csv", table.parent / "other.csv"
    assert suppress(table, "--rule", "p=10", "--out", plain)[0] == 0
    table.write_text(RENAMED)
    words = (table, "--rule", "p=10", "--out", other)
    assert suppress(*words, *layout(table.parent, *ROLES))[0] == 0
    assert other.read_text() == plain.read_text()
    with pytest.raises(NotJudgedError, match="Is 'turnover', 'firms', 'first', 'second' the value"):
        suppress(*words)
    # With contributors that go unseen, sums would be taken for counts, of which none is small.
    table.write_text(RENAMED.replace("turnover", "value"))
    with pytest.raises(
        NotJudgedError, match=r"What is the column 'firms'\? What is the column 'first'\?"
    ) as asked:
        suppress(*words)
    lines = str(asked.value).partition(":\n")[2]
    answer = lines.replace('firms = { role = "note" }', 'firms = { role = "contributors" }')
    answer = answer.replace('{ role = "note" }', '{ role = "contribution" }')
    assert suppress(*words, *layout(table.parent, answer))[0] == 0
    assert other.read_text() == plain.read_text()


def test_the_kind_of_numbers_is_stated_and_never_silent(tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_text("area,value\nn,2\ns,7\nw,9\nTotal,18\n")
    with pytest.raises(NotJudgedError, match="are the values counts or sums"):
        suppress(path, "--rule", "threshold=3")
    assert suppress(path, "--rule", "threshold=3", "--kind", "counts", "--out", out)[0] == 0
    assert "counts" in (tmp_path / "o.csv.layout.toml").read_text()
    assert suppress(path, "--rule", "threshold=3", *layout(tmp_path, 'kind = "counts"'))[0] == 0
    with pytest.raises(InputError, match="a rule on sums needs the contributors"):
        suppress(path, "--rule", "threshold=3", "--kind", "sums")
    with pytest.raises(InputError, match="the layout says 'counts', and --kind 'sums'"):
        suppress(path, "--kind", "sums", *layout(tmp_path, 'kind = "counts"'))
    path.write_text("area,value,primary,upper\nn,2,1,1\ns,7,0,\nw,9,0,\nTotal,18,0,\n")
    with pytest.raises(NotJudgedError, match="are the values counts or sums"):
        suppress(path)
    for kind in ("counts", "sums"):
        assert suppress(path, "--kind", kind, "--out", out)[0] == 0
        assert f'kind = "{kind}"' in (tmp_path / "o.csv.layout.toml").read_text()
    for values in ("1.5,2,3.5", "-1,2,1"):
        a, b, total = values.split(",")
        path.write_text(f"area,value\nn,{a}\ns,{b}\nTotal,{total}\n")
        with pytest.raises(InputError, match="hold sums, not counts"):
            suppress(path, "--rule", "threshold=3", "--kind", "counts")


def test_an_option_that_moved_says_where_it_stands_now_and_few_are_left(table: Path) -> None:
    command = typer.main.get_command(app).commands["suppress"]  # type: ignore[attr-defined]
    options = [one for one in command.params if isinstance(one, TyperOption)]
    assert len(options) <= 15
    for word in type(command).MOVED:
        with pytest.raises(InputError, match=rf"{word} stands in a layout now: write \w"):
            suppress(table, "--rule", "p=10", word, "1")


def test_decimal_commas_and_other_encodings_are_read_as_an_audit_reads_them(table: Path) -> None:
    plain, other = table.parent / "plain.csv", table.parent / "other.csv"
    finer = {"7013": "7013.5", "20524": "20524.5", "14520": "14520.5", "52334": "52334.5"}
    text = TABLE
    for number, exact in finer.items():
        text = text.replace(number, exact)
    table.write_text(text)
    assert suppress(table, "--rule", "p=10", "--out", plain)[0] == 0
    commas = table.read_text().replace(",", ";").replace(".", ",").replace("\nn;", "\nKöln;")
    for encoding in ("cp1252", "utf-8-sig", "utf-16"):
        table.write_bytes(commas.encode(encoding))
        assert suppress(table, "--rule", "p=10", "--out", other)[0] == 0
        assert other.read_text() == plain.read_text().replace("\nn,", "\nKöln,")


def test_contributions_of_both_signs_are_judged_or_refused_with_their_line(tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    rows = [
        "a,210,3,900,-700,f,g",
        "b,500,9,90,80,h,i",
        "c,700,9,95,90,j,k",
        "Total,1410,21,900,-700,f,g",
    ]
    path.write_text("\n".join(["job,value,n,x1,x2,h1,h2", *rows]) + "\n")
    code, said = suppress(path, "--rule", "p=10", "--out", out)
    assert (code, "1 primary" in said) == (0, True)
    assert "a,210" not in out.read_text()
    path.write_text(path.read_text().replace("900,-700,f,g\nb", "900,,f,\nb"))
    with pytest.raises(
        InputError, match=r"t.csv, line 2: a contribution is blank, and where values can be"
    ):
        suppress(path, "--rule", "p=10")


def test_several_rules_mean_any_of_them(table: Path) -> None:
    code, said = suppress(table, "--rule", "nk=1,90", "--rule", "threshold=4")
    assert (code, "1 primary" in said) == (0, True)


@pytest.mark.parametrize(
    "place",
    [
        "lustrum.protect.suppression.solve.protect_all",
        "lustrum.protect.suppression.choose.audit_pattern",
        "lustrum.publish.suppression.files.write_release",
    ],
)
def test_an_interrupt_leaves_old_files_as_they_were_and_no_new_ones(
    table: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    out = table.parent / "out.csv"
    out.write_text("last year\n")
    module, _, name = place.rpartition(".")
    real = getattr(import_module(module), name)

    def interrupted(*words: object, **more: object) -> object:
        signal.raise_signal(signal.SIGINT)
        return real(*words, **more)

    monkeypatch.setattr(place, interrupted)
    # A shell that runs tests in the background has them ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    picture = table.parent / "picture.svg"
    try:
        done = CliRunner().invoke(
            app,
            [
                "suppress", str(table), "--rule", "p=10", "--out", str(out), "--picture",
                str(picture),
            ],
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.exit_code != 0
    assert out.read_text() == "last year\n"
    assert sorted(p.name for p in table.parent.iterdir()) == ["out.csv", "t.csv"]


def test_files_that_would_not_protect_every_cell_are_not_written(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SimpleNamespace(short=[(0, "outsider")], safe=False)
    monkeypatch.setattr("lustrum.cli.suppress.audit_of_files", lambda *words: found)
    out = table.parent / "out.csv"
    code, said = suppress(table, "--rule", "p=10", "--out", out)
    assert code == 3
    assert "What would be written leaves" in said
    assert "Nothing was written: the files would not protect every cell." in " ".join(said.split())
    assert [path.name for path in table.parent.iterdir()] == ["t.csv"]


def test_a_workbook_shows_letters_and_intervals_and_no_hidden_value(table: Path) -> None:
    out = table.parent / "o.xlsx"
    partial = settings(table.parent, "partial = true")
    assert suppress(table, "--rule", "p=10", "--out", out, *partial)[0] == 0
    with zipfile.ZipFile(out) as book:
        texts = {name: book.read(name).decode() for name in book.namelist()}
    whole = "".join(texts.values())
    for value in ("7013", "6907"):
        assert value not in whole
    sheet = openpyxl.load_workbook(out)["Cells"]
    head, first, *_ = ([cell.value for cell in row] for row in sheet.rows)
    cell = dict(zip(head, first, strict=True))
    assert (cell["area"], cell["job"], cell["value"], cell["status"]) == ("n", "a", "N", "N")
    # The p% rule asks for 10 % of 6907 less what the others hold beside the second largest.
    assert cell["low"] <= 7013 - 675 < 7013 + 675 <= cell["high"]
    told = table.parent / "told.xlsx"
    reasons = settings(table.parent, "reasons = true")
    assert suppress(table, "--rule", "p=10", "--out", told, *reasons)[0] == 0
    for path, letter, stated in ((out, "N", False), (told, "M", True)):
        with zipfile.ZipFile(path) as book:
            said = book.read("xl/sharedStrings.xml").decode()
        assert f"<t>{letter}</t>" in said
        assert ("p-percent" in said) is stated


COUNTRY = """country,area,value,n,x1,x2
A,n,7013,3,6907,90
A,s,4507,9,1100,900
A,Total,11520,12,6907,1100
B,n,13511,18,1100,1100
B,s,15303,18,1300,1100
B,Total,28814,36,1300,1100
Total,n,20524,21,6907,1100
Total,s,19810,27,1300,1100
Total,Total,40334,48,6907,1300
"""
SIZES = """size,area,value,n,x1,x2
small,n,9524,12,1100,1000
small,s,10810,15,1300,1100
small,Total,20334,27,1300,1100
large,n,11000,9,6907,1100
large,s,9000,12,1100,900
large,Total,20000,21,6907,1100
Total,n,20524,21,6907,1100
Total,s,19810,27,1300,1100
Total,Total,40334,48,6907,1300
"""


def test_linked_files_are_protected_together(tmp_path: Path) -> None:
    """The totals by area stand in both files: alone, each would protect its cells with what the other shows."""
    (tmp_path / "country.csv").write_text(COUNTRY)
    (tmp_path / "size.csv").write_text(SIZES)
    out = tmp_path / "public"
    out.mkdir()
    files = [tmp_path / "country.csv", tmp_path / "size.csv"]
    code, said = suppress(*files, "--rule", "p=10", "--out", out)
    assert code == 0
    assert "18 cells" in said
    assert "size.csv by level" in said
    made = [out / "country.csv", out / "size.csv"]
    # An audit of both files together finds nothing, and shared cells are shown in both or in none.
    assert CliRunner().invoke(app, ["audit", *map(str, made)]).exit_code == 0
    shared = [
        {
            key[1]: value
            for key, value in published_cells(path, [name, "area"]).items()
            if key[0] == "Total"
        }
        for path, name in zip(made, ("country", "size"), strict=True)
    ]
    assert shared[0] == shared[1]
    assert published_cells(made[0], ["country", "area"])["A", "n"] is None
    for path in made:
        assert "7013" not in path.read_text()
    with pytest.raises(InputError, match="true tables are in this folder"):
        suppress(*files, "--rule", "p=10", "--out", tmp_path)
    (tmp_path / "size.csv").write_text(
        SIZES.replace("40334", "40335")
        .replace("20334", "20335")
        .replace("9524", "9525")
        .replace("20524", "20525")
    )
    with pytest.raises(InputError, match="do not agree"):
        suppress(*files, "--rule", "p=10", "--out", out)


@pytest.fixture
def linked(tmp_path: Path) -> list[Path]:
    (tmp_path / "country.csv").write_text(COUNTRY)
    (tmp_path / "size.csv").write_text(SIZES)
    (tmp_path / "public").mkdir()
    return [tmp_path / "country.csv", tmp_path / "size.csv"]


def test_linked_files_that_did_not_change_hide_the_same_cells(linked: list[Path]) -> None:
    place = linked[0].parent
    last, changes = place / "public", place / "changes.csv"
    now = place / "now"
    now.mkdir()
    assert suppress(*linked, "--rule", "p=10", "--out", last)[0] == 0
    words = [*linked, "--rule", "p=10", "--previous", last, "--out", now, "--changes", changes]
    code, said = suppress(*words)
    assert code == 0
    assert "0 added, 0 published again" in said
    assert changes.read_text().splitlines() == ["table,country,area,size,change,why"]
    for path in linked:
        assert (now / path.name).read_bytes() == (last / path.name).read_bytes()


def test_what_changed_is_said_with_its_reason(table: Path) -> None:
    first, changes = table.parent / "1.csv", table.parent / "c.csv"
    suppress(table, "--rule", "p=10", "--out", first)
    table.write_text(
        TABLE.replace("n,a,7013,3,6907,90", "n,a,7013,9,1100,900")
        .replace("s,c,9100,12,1100,900", "s,c,9100,3,9000,60")
        .replace("s,Total,19810,30,1300", "s,Total,19810,21,9000")
        .replace("Total,c,22300,30,1100", "Total,c,22300,21,9000")
        .replace("Total,Total,52334,78,6907", "Total,Total,52334,69,9000")
    )
    words = [table, "--rule", "p=10", "--previous", first]
    code, said = suppress(*words, "--changes", changes)
    assert code == 0
    assert "The old pattern would leave sensitive cells open:" in said
    with changes.open() as file:
        rows = {(r["area"], r["job"]): (r["change"], r["why"]) for r in csv.DictReader(file)}
    assert rows["s", "c"] == ("added", "It is sensitive now.")
    assert rows["n", "a"] == ("published again", "All sensitive cells are protected without it.")
    others = {why for (change, why) in rows.values() if change == "added"}
    assert others == {
        "It is sensitive now.",
        "It protects a sensitive cell that the old pattern leaves open.",
    }
    with pytest.raises(InputError, match="--changes needs the last period's table"):
        suppress(table, "--rule", "p=10", "--changes", changes)


def test_neither_picture_nor_proof_says_why_where_the_table_does_not(table: Path) -> None:
    picture, proof = table.parent / "p.svg", table.parent / "proof.json"
    out = table.parent / "o.csv"
    words = [table, "--rule", "p=10", "--picture", picture, "--certificate", proof, "--out", out]
    suppress(*words, *settings(table.parent, "reasons = true"))
    assert 'class="cell primary"' in picture.read_text()
    suppress(*words)
    drawn = picture.read_text()
    assert 'class="cell primary"' not in drawn
    assert 'class="cell secondary"' not in drawn
    hidden = sum(value is None for value in published_cells(out, ["area", "job"]).values())
    assert len(json.loads(proof.read_text())["claims"]) == hidden


def test_ranges_of_a_table_with_negative_values_are_not_cut_at_zero(table: Path) -> None:
    text = "area,value,primary,upper,lower\nn,-40,1,10,10\ns,30,0,0,0\nw,50,0,0,0\nTotal,40,0,0,0\n"
    table.write_text(text)
    ranges, out = table.parent / "r.csv", table.parent / "o.csv"
    frozen = settings(table.parent, 'frozen = "area=Total"')
    assert suppress(table, "--ranges", ranges, "--out", out, *frozen)[0] == 0
    with ranges.open() as file:
        rows = list(csv.DictReader(file))
    assert [(r["low"], r["high"]) for r in rows] == [("", "")] * len(rows)
    assert [r["enough"] for r in rows].count("yes") == 1


def test_waivers_take_cells_out_and_names_are_the_same_in_every_file(tmp_path: Path) -> None:
    head, *rows = TABLE.splitlines()
    named = [head + ",h1,h2"]
    for i, row in enumerate(rows):
        giant = row.split(",")[4] == "6907"
        named.append(f"{row},{'giant' if giant else f'f{i}'},g{i}")
    (tmp_path / "t.csv").write_text("\n".join(named) + "\n")
    (tmp_path / "w.txt").write_text("# signed\ngiant\n")
    out = tmp_path / "o.csv"
    words = (tmp_path / "t.csv", "--rule", "p=10", "--out", out)
    assert suppress(*words)[0] == 0
    assert "n,a,,N" in out.read_text()
    code, said = suppress(*words, "--waivers", tmp_path / "w.txt")
    assert code == 0
    assert "0 primary" in said
    assert "n,a,7013,F" in out.read_text()
    (tmp_path / "w.txt").write_text("somebody else\n")
    suppress(*words, "--waivers", tmp_path / "w.txt")
    assert "n,a,,N" in out.read_text()


def test_waivers_need_names(table: Path) -> None:
    (table.parent / "w.txt").write_text("giant\n")
    with pytest.raises(InputError, match="no column of holdings"):
        suppress(table, "--rule", "p=10", "--waivers", table.parent / "w.txt")


# Activity, area, size class, firm, turnover: firm C has a small part of one sensitive cell and all of another.
FIRMS = [
    *[("a", "n", "small", "A", 90), ("a", "n", "small", "C", 10), ("b", "n", "large", "C", 50)],
    *[
        (activity, area, size, f"{activity}{area}{size}{k}", 20 + 3 * k)
        for activity, area in ("cn", "as", "bs", "cs")
        for size in ("small", "large")
        for k in range(4)
    ],
]


def file_of_firms(by: int, names: bool) -> str:
    """The table of areas by activities (0) or sizes (2), with totals, contributors and the two largest."""
    dimension = {0: "activity", 2: "size"}[by]
    rows = [f"{dimension},area,value,n,x1,x2" + (",h1,h2" if names else "")]
    for code in (*dict.fromkeys(f[by] for f in FIRMS), "Total"):
        for area in ("n", "s", "Total"):
            own: dict[str, int] = {}
            for firm in FIRMS:
                if code in (firm[by], "Total") and area in (firm[1], "Total"):
                    own[firm[3]] = own.get(firm[3], 0) + firm[4]
            first = [*sorted(own.items(), key=lambda e: -e[1])[:2], ("", "")][:2]
            words = [code, area, sum(own.values()), len(own), *(x for _, x in first)]
            rows.append(",".join(map(str, [*words, *(h for h, _ in first if names)])))
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("attacker", ["outsider", "singletons", "holdings"])
def test_linked_files_are_protected_from_those_who_contribute_to_them(
    tmp_path: Path, attacker: str
) -> None:
    files = [tmp_path / "activity.csv", tmp_path / "size.csv"]
    out = tmp_path / "public"
    out.mkdir()
    for path, by in zip(files, (0, 2), strict=True):
        path.write_text(file_of_firms(by, names=True))
    code, said = suppress(*files, "--rule", "p=10", "--attacker", attacker, "--out", out)
    assert code == 0, said
    cells = published_cells(out / "activity.csv", ["activity", "area"])
    hidden = {key for key, value in cells.items() if value is None}
    assert {("a", "n"), ("b", "n")} <= hidden
    # Firm C takes what it has alone away: in area n something else must be hidden beside firm A.
    others = {key for key in hidden if key[1] == "n"} - {("a", "n"), ("b", "n")}
    assert bool(others) == (attacker != "outsider")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "; each of 4 contributors, with what it knows."),
        (("--attacker", "pairs"), "contributors and pairs of contributors, with what they know."),
        (("--attacker", "outsider"), "; no contributors, as asked for."),
        (("--attacker", "insiders"), "; 1 contributor, with what it knows."),
    ],
)
def test_the_report_says_which_attackers_were_assumed(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    path = tmp_path / "t.csv"
    head, alone = ("a,value,n,x1", ",700") if "insiders" not in words else ("a,value,n", "")
    rest = "" if not alone else ",100"
    path.write_text(
        f"{head}\na1,700,1{alone}\na2,900,9{rest}\na3,800,9{rest}\nTotal,2400,19{alone}\n"
    )
    code, printed = suppress(path, "--rule", "threshold=3", *words)
    assert code == 0, printed
    assert said in " ".join(printed.split())


def test_numbers_are_rounded_before_they_are_added_up_if_asked_for(tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_text("a,value,n\nx,10.1,9\ny,5.2,1\nz,3,9\nTotal,18.3000001,19\n")
    with pytest.raises(
        InputError, match=r"'decimals = 6' under .suppress. of a layout would round"
    ):
        suppress(path, "--rule", "threshold=3", "--out", out)
    rounded = settings(tmp_path, "decimals = 1")
    code, said = suppress(path, "--rule", "threshold=3", *rounded, "--out", out)
    assert code == 0, said
    assert "18.3000001" not in out.read_text()


def test_linked_files_name_holdings_all_or_none(tmp_path: Path) -> None:
    files = [tmp_path / "activity.csv", tmp_path / "size.csv"]
    for path, by, names in zip(files, (0, 2), (True, False), strict=True):
        path.write_text(file_of_firms(by, names=names))
    with pytest.raises(InputError, match=r"names holdings and .*size.csv does not"):
        suppress(*files, "--rule", "p=10", "--attacker", "holdings")
    with pytest.raises(InputError, match=r"names holdings and .*size.csv does not"):
        suppress(*files, "--rule", "p=10")
    assert suppress(*files, "--rule", "p=10", "--attacker", "outsider")[0] == 0
    files[0].write_text(file_of_firms(0, names=False))
    assert suppress(*files, "--rule", "p=10", "--attacker", "holdings")[0] == 0


def test_audit_suppress_and_verify_write_one_kind_of_report(table: Path) -> None:
    folder = table.parent
    out, proof, json_ = folder / "o.csv", folder / "p.json", folder / "r.json"

    def reported(*words: object) -> FileReport:
        done = CliRunner().invoke(app, [*map(str, words), "--json", str(json_)])
        report = FileReport.model_validate_json(json_.read_text())
        assert report.exit == done.exit_code
        assert (report.format, report.version, report.command) == ("lustrum-report", 1, words[0])
        return report

    done = reported("suppress", table, "--rule", "p=10", "--out", out, "--certificate", proof)
    cells = {value.cell: value for value in done.values}
    rows = csv.DictReader(out.read_text().splitlines())
    hidden = [(row["area"], row["job"]) for row in rows if not row["value"]]
    assert set(cells) == {f"area={a}, job={j}" for a, j in hidden}
    primary = cells["area=n, job=a"]
    assert (primary.status, done.pattern and done.pattern.primary) == ("primary", 1)
    assert primary.low <= 7013 <= primary.high
    assert done.confidential
    audited = reported("audit", out)
    assert (audited.exit, audited.hidden, audited.confidential) == (0, 4, False)
    proven = {value.cell: value for value in reported("verify", proof).values}
    assert len(proven) == 4
    assert all(value.sharp and value.low < value.high for value in proven.values())
    proof.write_text("{}")
    assert reported("verify", proof).reason.startswith("The certificate does NOT hold")
    layout = folder / "layout.toml"
    layout.write_text('[suppress]\nfrozen = ["job=b", "job=c", "job=Total"]\n')
    failed = reported("suppress", table, "--rule", "p=10", "--layout", layout)
    assert failed.exit == 3
    assert [v.finding for v in failed.values if v.status == "primary"] == ["within protection"]
