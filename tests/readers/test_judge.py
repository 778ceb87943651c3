"""Published files are judged by roles that were shown or declared, and by nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import InputError
from lustrum.model.errors import NotJudgedError
from lustrum.readers.judge import judge, open_file
from lustrum.readers.layout import layout_of_text
from lustrum.readers.report import AuditedValue, FileReport, PatternReport
from readers.drawn import draw


def audited(folder: Path, text: str, layout: str | None = None, name: str = "t.csv") -> FileReport:
    """The report on a file with these contents."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    given = None if layout is None else layout_of_text(layout, "layout.toml")
    return judge([open_file(path, given)]).report


def exact(report: FileReport) -> dict[str, float | None]:
    return {value.cell: value.low for value in report.values if value.finding == "exact"}


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(25, 300), deadline=None)
def test_with_its_layout_a_file_discloses_what_a_second_solver_finds(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    table = draw(np.random.default_rng(seed))
    report = audited(tmp_path_factory.mktemp("t"), table.csv(), table.layout())
    ranges = table.ranges()
    wanted = {f"area={a}, job={j}": r[0] for (a, j), r in ranges.items() if r[0] == r[1]}
    assert exact(report) == wanted
    assert report.exit == (3 if wanted else 0)
    for value in report.values:
        area, job = (part.split("=")[1] for part in value.cell.split(", "))
        assert (value.low, value.high) == ranges[area, job]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(25, 300), deadline=None)
def test_without_a_layout_nothing_is_cleared_and_only_true_values_are_named(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    table = draw(np.random.default_rng(seed))
    report = audited(tmp_path_factory.mktemp("t"), table.csv())
    assert report.exit in (3, 4)
    assert report.questions or report.exit == 3
    true = {f"area={a}, job={j}": v for (a, j), v in table.values.items()}
    for cell, value in exact(report).items():
        assert value == true[cell]


HARMLESS = """region,label,sex,flag,value
Total,all,T,,100
Total,all,m,,60
Total,all,f,,40
N,north,T,,50
N,north,m,x1,*
N,north,f,x1,*
S,south,T,p,50
S,south,m,x1,*
S,south,f,x1,*
"""
ROLES = """kind = "counts"
[symbols]
"*" = "hidden"
[letters]
x1 = "hidden"
p = "note"
[[tables]]
[tables.columns]
region = { role = "code" }
label = { role = "label", of = "region" }
sex = { role = "code" }
flag = { role = "status" }
value = { role = "value" }
[dimensions.region]
totals.Total = ["N", "S"]
[dimensions.sex]
totals.T = ["m", "f"]
"""


def test_an_all_clear_needs_every_single_role(tmp_path: Path) -> None:
    assert audited(tmp_path, HARMLESS, ROLES).exit == 0
    silent = ROLES.replace('flag = { role = "status" }', 'flag = { role = "note" }')
    assert "t.csv: the column 'flag' states nothing" in audited(tmp_path, HARMLESS, silent).on_word
    lines = ROLES.splitlines()
    for number, line in enumerate(lines):
        if not line.startswith(('"*"', "x1", "p ", "label", "flag", "totals")):
            continue
        without = "\n".join(lines[:number] + lines[number + 1 :])
        report = audited(tmp_path, HARMLESS, without)
        assert (report.exit, bool(report.questions)) == (4, True), line
    titled, below = (
        f"A title of 2025\n{HARMLESS}",
        ROLES.replace("[[tables]]", "[[tables]]\nhead = [2]"),
    )
    assert audited(tmp_path, titled, below).exit == 4
    assert audited(tmp_path, titled, f'notes = "nothing"\n{below}').exit == 0
    listed = HARMLESS.replace("S,south,f,x1,*\n", "")
    for said, code in (("", 4), ('missing = "zero"', 3), ('missing = "hidden"', 0)):
        assert (
            audited(tmp_path, listed, ROLES.replace("[[tables]]", f"[[tables]]\n{said}")).exit
            == code
        )


def test_a_layout_of_other_bytes_is_refused_and_a_stale_one_beside_a_file_is_not_used(
    tmp_path: Path,
) -> None:
    first = audited(tmp_path, HARMLESS, ROLES)
    beside = f'digest = "{first.files[0].digest}"\n{ROLES}'
    (tmp_path / "t.csv.layout.toml").write_text(beside)
    assert audited(tmp_path, HARMLESS).exit == 0
    assert audited(tmp_path, HARMLESS.replace("m,,60", "m,,61")).exit == 4
    with pytest.raises(InputError, match="other bytes"):
        audited(tmp_path, HARMLESS.replace("m,,60", "m,,61"), beside)


def test_a_number_beside_the_word_hidden_is_disclosed(tmp_path: Path) -> None:
    report = audited(tmp_path, HARMLESS.replace("N,north,m,x1,*", "N,north,m,x1,20"), ROLES)
    assert report.exit == 3
    assert report.standing


def test_an_all_clear_needs_sharp_bounds(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HARMLESS)
    opened = [open_file(tmp_path / "t.csv", layout_of_text(ROLES, "l"))]
    assert judge(opened).report.exit == 0
    for options in ({"seconds": 0.0}, {"equations_only": True}):
        report = judge(opened, **options).report  # type: ignore[arg-type]
        assert (report.exit, [q.role for q in report.questions]) == (4, ["bounds"])


def _one(codes: str, rows: dict[str, str], unit: str = "") -> tuple[str, str]:
    """A file of one variable, and its layout with the given roles of codes."""
    text = "what,value\n" + "".join(f"{code},{value}\n" for code, value in rows.items())
    head = f'kind = "sums"\n{unit}[symbols]\nx = "hidden"\n[[tables]]\n[tables.columns]\n'
    return (
        text,
        f'{head}what = {{ role = "code" }}\nvalue = {{ role = "value" }}\n[dimensions.what]\n{codes}\n',
    )


@pytest.mark.parametrize(
    ("codes", "rows", "cell", "finding"),
    [
        # A subset is no part: the total less the other parts gives the hidden one.
        ('totals.All = ["Industry", "Trade"]\nsubsets.Industry = { codes = ["of which food", "of cars"] }',
         {"All": "900", "Industry": "x", "of which food": "120", "of cars": "x", "Trade": "400"},
         "what=Industry", "exact"),
        # Subsets that are all of a code give the last one.
        ('subsets.A = { codes = ["A1", "A2"], complete = true }', {"A": "50", "A1": "20", "A2": "x"},
         "what=A2", "exact"),
        ('subsets.A = { codes = ["A1", "A2"], complete = false }', {"A": "50", "A1": "20", "A2": "x"},
         "what=A2", None),
        # The same value in another unit, or as a share of a total that is shown.
        ('units.PC = "100 * EUR / Total"\nindependent = ["Total"]',
         {"Total": "1000", "EUR": "x", "PC": "42.90"}, "what=EUR", "exact"),
        ('units.THS = "EUR / 1000"', {"EUR": "x", "THS": "42.917"}, "what=EUR", "exact"),
        # A hidden figure that others give; a number that is also a code is one in quotes.
        ('units.USD = "1.1 * EUR"', {"EUR": "400", "USD": "x"}, "what=USD", "exact"),
        ('units.PC = "100 * A / All"\ntotals.All = ["A", "B"]', {"A": "5", "B": "15", "All": "x", "PC": "x"},
         "what=PC", "exact"),
        ('units.PC = "100 * A / All"\ntotals.All = ["A", "B"]', {"A": "x", "B": "x", "All": "20", "PC": "x"},
         "what=PC", None),
        ("units.change = \"100 * '2022' / '2021' - 100\"", {"2021": "80", "2022": "84", "change": "x"},
         "what=change", "exact"),
        # A sum that only helps to say how others are computed is no secret.
        ('totals.both = ["low", "high"]\nunits.A = "both / 2"', {"A": "31", "low": "30", "high": "32"},
         "what=both", None),
        ('differences."Total excluding F" = ["Total", "F"]',
         {"Total": "80", "Total excluding F": "63", "F": "x"}, "what=F", "exact"),
        ('same.copy = "A"', {"A": "x", "copy": "31"}, "what=A", "exact"),
        ('units.low = "<= A"\nunits.high = ">= A"', {"A": "x", "low": "300.2", "high": "301.9"},
         "what=A", "exact"),
        ('independent = ["2024", "2025"]', {"2024": "31", "2025": "x"}, "what=2025", None),
    ],
)  # fmt: skip
def test_every_role_is_used_by_the_attack(
    tmp_path: Path, codes: str, rows: dict[str, str], cell: str, finding: str | None
) -> None:
    text, layout = _one(codes, rows)
    report = audited(tmp_path, text, layout)
    found = {value.cell: value.finding for value in report.values}
    assert found.get(cell) == finding
    assert report.exit == (3 if finding else 0)


@pytest.mark.parametrize(
    ("codes", "sentence"),
    [
        ('units.change = "2022 / 2021"', "2021 in the unit 'change' is also a code"),
        (
            'units.2022 = "2 * change"\nunits.2021 = "2022 / 2"',
            "from '2022', which is computed itself",
        ),
    ],
)
def test_a_formula_that_can_be_misread_is_refused(
    tmp_path: Path, codes: str, sentence: str
) -> None:
    text, layout = _one(codes, {"2021": "80", "2022": "84", "change": "x"})
    with pytest.raises(InputError, match=sentence):
        audited(tmp_path, text, layout)


def test_subsets_that_may_be_complete_are_a_question(tmp_path: Path) -> None:
    text, layout = _one('subsets.A = { codes = ["A1", "A2"] }', {"A": "50", "A1": "20", "A2": "x"})
    report = audited(tmp_path, text, layout)
    assert report.exit == 4
    assert [value.cell for value in report.if_confirmed] == ["what=A2"]


def test_nested_columns_are_one_variable(tmp_path: Path) -> None:
    text = "region,municipality,value\nUusimaa,,900\nUusimaa,Helsinki,x\nUusimaa,Espoo,300\nLappi,,50\n"
    text += "Lappi,Rovaniemi,50\n"
    layout = """kind = "counts"
    [symbols]
    x = "hidden"
    [[tables]]
    nested = ["region", "municipality"]
    [tables.columns]
    region = { role = "code" }
    municipality = { role = "code" }
    value = { role = "value" }
    [dimensions.municipality]
    totals.Uusimaa = ["Uusimaa / Helsinki", "Uusimaa / Espoo"]
    totals.Lappi = ["Lappi / Rovaniemi"]
    """
    assert exact(audited(tmp_path, text, layout)) == {"municipality=Uusimaa / Helsinki": 600}


def test_what_one_file_hides_another_gives(tmp_path: Path) -> None:
    lines = [line for line in ROLES.splitlines() if not line.startswith(("label", "flag"))]
    by_sex = "\n".join(lines).replace("region", "area").replace('"*"', "x") + '\nall = "T"\n'
    plain = by_sex.replace('sex = { role = "code" }\n', "").partition("[dimensions.sex]")[0]
    texts = (
        (
            "one.csv",
            "area,sex,value\nN,m,x\nN,f,40\nS,m,x\nS,f,30\nTotal,m,80\nTotal,f,70\n",
            by_sex,
        ),
        ("two.csv", "area,value\nN,100\nS,50\nTotal,150\n", plain),
    )
    opened = []
    for name, text, roles in texts:
        (tmp_path / name).write_text(text)
        opened.append(open_file(tmp_path / name, layout_of_text(roles, name)))
    assert judge(opened[:1]).report.exit == 0
    assert judge(opened[1:]).report.exit == 0
    assert exact(judge(opened).report) == {"area=N, sex=m": 60, "area=S, sex=m": 20}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "no line has two fields"),
        (b"\xff\xfeA", "UTF-16"),
        (b"a,b\x00,c\n", "zero bytes"),
        (b"just words\nand more\n", "no line has two fields"),
    ],
)  # fmt: skip
def test_odd_files_get_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "odd.csv").write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        open_file(tmp_path / "odd.csv")


@pytest.mark.parametrize("ending", [".csv", ".json"])
def test_more_combinations_than_can_be_judged_are_said_and_no_time_is_spent(
    tmp_path: Path, ending: str
) -> None:
    names, codes = [f"v{i}" for i in range(8)], [f"k{i}" for i in range(10)]
    rows = [",".join([*([code] * 8), "5"]) for code in codes]
    axes = {name: {"category": {"index": codes}} for name in names}
    dataset = {"id": names, "size": [10] * 8, "dimension": axes, "value": {"7": 5}}
    path = tmp_path / f"t{ending}"
    path.write_text(
        "\n".join([",".join([*names, "value"]), *rows]) if ending == ".csv" else json.dumps(dataset)
    )
    columns = "".join(f'{name} = {{ role = "code" }}\n' for name in names)
    layout = f'[[tables]]\n[tables.columns]\n{columns}value = {{ role = "value" }}\n'
    # Without its layout, the table is taken for one with nested columns.
    for given_layout in (layout_of_text(layout, "l"), *([None] if ending == ".json" else [])):
        with pytest.raises(
            NotJudgedError, match=rf"t\{ending}: all combinations of codes are 100,000,000 cells"
        ):
            judge([open_file(path, given_layout)])


def test_encodings_and_decimal_commas_are_read(tmp_path: Path) -> None:
    text = "Land;Wert\nÖsterreich;1.234,5\nTirol;x\nWien;1.000,0\n"
    (tmp_path / "t.csv").write_bytes(text.encode("cp1252"))
    layout = """decimal = ","
    kind = "sums"
    [symbols]
    x = "hidden"
    [[tables]]
    [tables.columns]
    Land = { role = "code" }
    Wert = { role = "value" }
    [dimensions.Land]
    totals."Österreich" = ["Tirol", "Wien"]
    """
    report = judge([open_file(tmp_path / "t.csv", layout_of_text(layout, "l"))]).report
    assert exact(report) == {"Land=Tirol": 234.5}
    assert "Windows-1252" in report.files[0].notes[0]


def test_every_member_of_the_report_is_documented() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line.md"
    text = page.read_text(encoding="utf-8")
    for part in (FileReport, AuditedValue, PatternReport):
        assert not [name for name in part.model_fields if f"`{name}`" not in text]


@given(
    values=st.lists(st.integers(0, 50), min_size=2, max_size=7),
    hidden=st.sets(st.integers(0, 6), min_size=1),
    shown=st.sets(st.integers(0, 6)),
)
@settings(max_examples=examples(40, 400), deadline=None)
def test_running_sums_say_how_much_is_hidden_between_two_of_them(
    tmp_path_factory: pytest.TempPathFactory, values: list[int], hidden: set[int], shown: set[int]
) -> None:
    size = range(len(values))
    hidden, shown = hidden & {*size}, shown & {*size}
    assume(hidden)
    lines = ["month,value,since"]
    for i in size:
        first = "x" if i in hidden else values[i]
        lines.append(f"m{i},{first},{sum(values[: i + 1]) if i in shown else 'x'}")
    columns = "month = { role = 'code' }\nvalue = { role = 'value' }\nsince = { role = 'value' }\n"
    layout = f"kind = 'counts'\nsymbols.x = 'hidden'\n[[tables]]\n[tables.columns]\n{columns}"
    layout += f"[dimensions.month]\nindependent = {[f'm{i}' for i in size]}\n"
    layout += "[dimensions.measure]\nunits.since = 'value running over month'\n"
    wanted: dict[str, float] = {}
    last = 0
    for end in sorted(shown):
        between = [i for i in hidden if last <= i <= end]
        if len(between) == 1 or not any(values[i] for i in between):
            wanted |= {f"month=m{i}, measure=value": values[i] for i in between}
        last = end + 1
    for i in set(size) - shown:
        before = max((end + 1 for end in shown if end < i), default=0)
        after = min((end for end in shown if end > i), default=None)
        until = [j for j in hidden if before <= j <= i]
        beyond = [j for j in hidden if after is not None and i < j <= after]
        nothing = after is not None and not any(values[j] for j in (*until, *beyond))
        if not until or nothing or (after is not None and not beyond):
            wanted[f"month=m{i}, measure=since"] = sum(values[: i + 1])
    report = audited(tmp_path_factory.mktemp("t"), "\n".join(lines) + "\n", layout)
    assert exact(report) == wanted
    assert report.exit == (3 if wanted else 0)
