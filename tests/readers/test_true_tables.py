"""Confidential files: read by a layout, or by what is certain; anything else is one sentence."""

from __future__ import annotations

import contextlib
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from examples import examples
from lustrum.model import InputError
from lustrum.model.errors import NotJudgedError
from lustrum.readers.confidential import TrueFile, read_true
from lustrum.readers.hierarchy_files import groups_of_text, read_groups
from lustrum.readers.judge import open_file
from lustrum.readers.layout import CodeRoles, ColumnRole, Layout, SuppressSettings, layout_of_text
from lustrum.readers.true_tables import CodeMembers, members_of, true_table


def read(folder: Path, text: str, layout: str = "", name: str = "t.csv") -> TrueFile:
    (folder / name).write_text(text, encoding="utf-8")
    return read_true(folder / name, layout_of_text(layout, "layout.toml") if layout else None)


def held(codes: CodeMembers) -> dict[str, frozenset[str]]:
    """The finest codes behind each code that is a sum."""
    return {
        code: frozenset(codes.finest[i] for i in codes.members[code])
        for code in codes.members
        if code not in codes.finest
    }


Drawn = tuple[str, dict[str, tuple[str, ...]], bool]


@st.composite
def grouped(draw: st.DrawFn) -> Drawn:
    """A table of two variables with a total and nested groups in the first, and whether codes tell of them."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    begun = draw(st.booleans())
    groups = {
        f"G{i}": tuple(f"G{i}{j}" if begun else f"k{i}{j}" for j in range(n))
        for i, n in enumerate(sizes)
        if n > 1 or begun
    }
    leaves = [leaf for parts in groups.values() for leaf in parts]
    leaves += [f"s{i}" for i in range(draw(st.integers(0 if leaves else 1, 3)))]
    tops = [*groups, *(leaf for leaf in leaves if leaf[0] == "s")]
    total = draw(st.sampled_from(["Total", "Insgesamt", "w"]))
    every = {**groups, total: tuple(tops)} if len(tops) > 1 else groups
    most = draw(st.sampled_from([3, 90, 100_000]))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    columns = draw(st.integers(1, 4))
    values = {leaf: rng.integers(0, most, columns) for leaf in leaves}
    for code, parts in every.items():
        values[code] = sum(values[part] for part in parts)
    assume(len(values) > 1)  # one code in all rows is asked about
    codes = draw(st.permutations(sorted(values))) if draw(st.booleans()) else list(values)
    lines = ["a,b,value"]
    for code in codes:
        row = [*values[code].tolist(), int(values[code].sum())]
        names = [*"qrst"[:columns], "Total"]
        lines += [f"{code},{b},{v}" for b, v in zip(names, row, strict=True)]
    return "\n".join(lines) + "\n", every, begun or not groups


def finest(code: str, groups: dict[str, tuple[str, ...]]) -> frozenset[str]:
    if code not in groups:
        return frozenset({code})
    return frozenset().union(*(finest(part, groups) for part in groups[code]))


@given(drawn=grouped())
@settings(max_examples=examples(60, 600), deadline=None)
def test_totals_are_the_true_ones_or_asked_for(
    tmp_path_factory: pytest.TempPathFactory, drawn: Drawn
) -> None:
    text, groups, told = drawn
    folder = tmp_path_factory.mktemp("t")
    truth = {code: finest(code, groups) for code in groups}
    file = read(folder, text)
    # A hierarchy and a layout say it all.
    if groups:
        assert held(members_of([file], {"a": dict(groups)})["a"]) == truth
        lines = [f'totals."{t}" = {list(parts)}'.replace("'", '"') for t, parts in groups.items()]
        stated = read(folder, text, "[dimensions.a]\n" + "\n".join(lines))
        assert held(members_of([stated])["a"]) == truth
    asked = True
    with contextlib.suppress(InputError):
        codes = members_of([file])
        true_table(file, codes, "counts")
        asked = False
    if asked:
        # A total with a usual name above codes that tell what they hold leaves nothing to ask.
        assert not (told and any(code in groups for code in ("Total", "Insgesamt")))
        return
    for code, parts in held(codes["a"]).items():
        zero = [c for c in parts ^ truth[code] if not _filled(text, c)]
        assert len(zero) == len(parts ^ truth[code]), (
            "only codes that are 0 throughout can be misplaced"
        )


def _filled(text: str, code: str) -> bool:
    return any(
        line.startswith(f"{code},") and not line.endswith(",0") for line in text.splitlines()
    )


@given(
    seed=st.integers(0, 2**31),
    sign=st.sampled_from([".", ","]),
    delimiter=st.sampled_from([";", "\t", "|"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16"]),
    ending=st.sampled_from(["csv", "parquet", "xlsx"]),
)
@settings(max_examples=examples(40, 300), deadline=None)
def test_a_table_is_the_same_in_every_kind_of_file(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    sign: str,
    delimiter: str,
    encoding: str,
    ending: str,
) -> None:
    rng = np.random.default_rng(seed)
    inner = rng.integers(1, 10**6, (2, 3)) * 25 + 1
    cells = np.vstack([inner, inner.sum(axis=0)])
    cells = np.hstack([cells, cells.sum(axis=1, keepdims=True)])
    rows: list[list[Any]] = [["area", "jöb", "value", "n", "x1", "h1"]]
    for a, area in enumerate(["n", "s", "Total"]):
        for j, job in enumerate(["a", "b", "c", "Total"]):
            value = Decimal(int(cells[a, j])).scaleb(-2)
            rows.append([area, job, value, 1, value, f"f{a}{j}"])
    path = tmp_path_factory.mktemp("t") / f"t.{ending}"
    if ending == "csv":
        lines = [delimiter.join(str(v) for v in row) for row in rows]
        path.write_bytes("\n".join(lines).replace(".", sign).encode(encoding))
    elif ending == "xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append([float(v) if isinstance(v, Decimal) else v for v in row])  # type: ignore[union-attr]
        book.save(path)
    else:
        columns = {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}
        parquet.write_table(pa.table(columns), path)
    file = read_true(path)
    table = true_table(file, {**members_of([file])}, holding_number=lambda name: int(name[1:], 36))
    assert table.decimals == 2
    assert table.values.tolist() == cells.tolist()
    assert table.contributions.value[..., 0].tolist() == cells.tolist()
    assert table.contributions.holding[1, 2, 0] == int("12", 36)


@given(data=st.data())
@settings(max_examples=examples(150, 2000), deadline=None)
def test_a_broken_file_is_one_sentence_with_its_name(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Bytes or fields of a right file are changed: it is read, or refused in words."""
    lines = ["area,value,n,x1,x2,h1,h2,primary,upper", "n,100,2,60,40,f,g,1,10", "s,50,1,50,,f,,0,"]
    lines += ["Total,150,2,110,40,f,g,0,"]
    text = "\n".join(lines) + "\n"
    odd = st.sampled_from(["", "x", "-3", "1e99", "nan", "1.5", "9" * 30, "½", '"', ";", "Total"])
    if data.draw(st.booleans()):
        fields = [line.split(",") for line in lines]
        for _ in range(data.draw(st.integers(1, 3))):
            row = data.draw(st.integers(0, 3))
            fields[row][data.draw(st.integers(0, 8))] = data.draw(odd)
        content = "\n".join(map(",".join, fields)).encode()
    else:
        at = data.draw(st.integers(0, len(text) - 1))
        noise = data.draw(st.binary(max_size=4))
        content = text.encode()[:at] + noise + text.encode()[at + data.draw(st.integers(0, 6)) :]
    path = tmp_path_factory.mktemp("t") / f"t.{data.draw(st.sampled_from(['csv', 'json', 'xlsx']))}"
    path.write_bytes(content)
    said = ""
    try:
        file = read_true(path)
        read = true_table(file, members_of([file]), assumed="counts").values.size > 0
    except InputError as error:
        read, said = False, str(error)
    assert read or (said.startswith(str(path)) and "\n" not in said.partition(":\n")[0])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,2\n", "Is 'a', 'b' the value"),
        ("value\n1\n", "a table needs codes and values"),
        ("n,value\n1,1\n", "no column of codes"),
        ("a,a,value\n1,1,1\n", r"What is the column 'a \(2\)'"),
        ("a,value\n1,2\n2,3\n3,4,5\n", r"lines outside the table \(line 4\) cells"),
        ("a,value\n1,2\n3\n2,3\n", "line 3: there are 1 fields"),
        ("a,value\n1,2\n1,3\n", "line 3: the cell stands in line 2 already"),
        ("a,value\n1,two\n", "line 2: 'two' is not a number"),
        ("a,value\n1,2p\n", "line 2: 'p' is not a number"),
        ("a,value\n1,inf\n", "line 2: 'inf' is not a number"),
        ("a,value\n1,\n2,3\n", "line 2: the value is missing"),
        ("a,value\n", "0 tables were recognised"),
        (
            "area,firm,value\nn,x y,5\ns,z,6\nTotal,,11\n",
            "What is the column 'area'. What is the column 'firm'",
        ),
        ("a,value,h1\n1,2,f\n", "1 columns of holdings but 0 of largest"),
        ("a,value,x1,x3\n1,2,2,\n", "there is a column 'x3' but no column x2"),
        ("a,value,lower\n1,2,-1\n", "line 2: 'lower' is below 0"),
        ("a,value,primary\n1,2,maybe\n", "'primary' must be 0 or 1"),
        ("a,value,n,x1\n1,2,1,x\n", "line 2: 'x1' is not a number"),
        ("a;value\n1;1.234\n2;5.678\n", "do points separate thousands or decimals"),
        ("", "a table needs codes and values"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        read(tmp_path, text)
    assert "t.csv" in str(caught.value)


OF_R = {
    "GaussSuppression": """"age","geo","freq","primary","suppressed"
"Total","Total",12,FALSE,FALSE
"Total","n",5,FALSE,FALSE
"Total","s",7,FALSE,FALSE
"old","Total",7,FALSE,FALSE
"old","n",3,FALSE,TRUE
"old","s",4,FALSE,TRUE
"young","Total",5,FALSE,FALSE
"young","n",2,TRUE,TRUE
"young","s",3,FALSE,TRUE
""",
    "sdcTable": """"strID","freq","sdcStatus","age","geo"
"0000",12,"z","Total","Total"
"0001",5,"s","Total","n"
"0002",7,"s","Total","s"
"0100",7,"s","old","Total"
"0101",3,"x","old","n"
"0102",4,"x","old","s"
"0200",5,"s","young","Total"
"0201",2,"u","young","n"
"0202",3,"x","young","s"
""",
}


@pytest.mark.parametrize("package", OF_R)
def test_tables_of_packages_in_r_are_read_with_their_primary_cells(
    tmp_path: Path, package: str
) -> None:
    file = read(tmp_path, OF_R[package])
    assert file.names == ("age", "geo")
    assert [int(value) for value in file.values] == [12, 5, 7, 7, 3, 4, 5, 2, 3]
    assert file.primary is not None
    assert [key for key, marked in zip(file.keys, file.primary, strict=True) if marked] == [
        ("young", "n")
    ]
    with pytest.raises(NotJudgedError, match="What is the column 'turnover'"):
        read(tmp_path, _with_sums(OF_R[package]))


def _with_sums(text: str) -> str:
    """The same with a further column of numbers, which could be the value as well."""
    head, *rows = text.splitlines()
    return "".join(
        f"{line}\n" for line in (f"{head},turnover", *(f"{r},9{i}" for i, r in enumerate(rows)))
    )


FULL = """area,job,value,n,x1,x2,h1,h2,primary,upper,lower,status
n,a,9,3,5,2,f,g,1,2,1,ok
n,Total,9,3,5,2,f,g,0,,,ok
s,a,7,1,7,,f,,0,,,ok
s,Total,7,1,7,,f,,0,,,ok
Total,a,16,3,12,2,f,g,0,,,ok
Total,Total,16,3,12,2,f,g,0,,,ok
"""


@given(
    renamed=st.sets(st.sampled_from(FULL.splitlines()[0].split(",")), max_size=3),
    order=st.permutations(range(12)),
)
@settings(max_examples=examples(80, 800), deadline=None)
def test_no_column_is_lost_or_published_for_its_name(
    tmp_path_factory: pytest.TempPathFactory, renamed: set[str], order: list[int]
) -> None:
    """Columns may stand in any order; one of an unknown name is a code that rows need, or asked about."""
    folder = tmp_path_factory.mktemp("t")
    lines = [[line.split(",")[i] for i in order] for line in FULL.splitlines()]
    lines[0] = [f"c {name}" if name in renamed else name for name in lines[0]]
    try:
        file = read(folder, "\n".join(map(",".join, lines)) + "\n")
    except InputError:
        assert renamed - {"area", "job"}
        return
    assert renamed <= {"area", "job"}
    assert {name.removeprefix("c ") for name in file.names} == {"area", "job"}
    plain = read(folder, FULL)
    for fact in ("values", "count", "largest", "holdings", "lower", "upper", "primary"):
        assert getattr(file, fact) == getattr(plain, fact)


def test_what_nobody_needs_to_tell_rows_apart_is_asked_about(tmp_path: Path) -> None:
    text = "a,b,year,value,mean\np,q,y25,5,2\np,r,y25,6,3\ns,q,y25,7,9\ns,r,y25,7,8\n"
    with pytest.raises(InputError, match=r"the column 'year'\? What is the column 'mean'") as asked:
        read(tmp_path, text)
    lines = str(asked.value).partition(":\n")[2]
    assert read(tmp_path, text, lines).names == ("a", "b")
    labelled = "age,age_label,value\n1,one,5\n2,two,6\n"
    file = read(tmp_path, labelled)
    assert (file.names, file.labels["age", "1"]) == (("age",), "one")


def test_a_total_that_is_off_is_refused_with_its_line_and_what_would_help(tmp_path: Path) -> None:
    rows = ["x,p,10", "x,q,20", "x,Total,31", "y,p,30", "y,q,40", "y,Total,70"]
    rows += ["Total,p,40", "Total,q,60", "Total,Total,100"]
    file = read(tmp_path, "\n".join(["a,b,value", *rows]))
    with pytest.raises(
        InputError, match=r"by 1; a=x, b=Total \(line 4\) is in every sum that is off"
    ):
        true_table(file, members_of([file]))
    noisy = read(tmp_path, "a,value\nx,10.1\ny,5.2\nTotal,15.30001\n")
    with pytest.raises(
        InputError, match=r"by 0\.00001; 'decimals = 4' under .suppress. of a layout"
    ):
        true_table(noisy, members_of([noisy]))
    rounded = read(
        tmp_path, "a,value\nx,10.1\ny,5.2\nTotal,15.30001\n", "[suppress]\ndecimals = 4\n"
    )
    assert true_table(rounded, members_of([rounded])).values.tolist() == [101, 52, 153]
    binary = read(tmp_path, "a,value\nx,0.1\ny,0.2\nTotal,0.30000000000000004\n")
    assert true_table(binary, members_of([binary])).values.tolist() == [1, 2, 3]


def test_rows_that_are_missing_are_0_where_totals_agree(tmp_path: Path) -> None:
    text = "a,b,value\n1,q,5\n2,q,6\n2,r,7\n1,Total,5\n2,Total,13\nTotal,q,11\nTotal,r,7\nTotal,Total,18\n"
    file = read(tmp_path, text)
    assert true_table(file, members_of([file]), "counts").values.tolist() == [
        [5, 0, 5],
        [6, 7, 13],
        [11, 7, 18],
    ]
    gone = read(tmp_path, text.replace("1,q,5\n", ""))
    with pytest.raises(InputError, match="rows are missing"):
        true_table(gone, members_of([gone]), "counts")


def test_subtotals_of_many_codes_are_shown_by_numbers_wherever_their_parts_stand(
    tmp_path: Path,
) -> None:
    values = np.random.default_rng(6).integers(1, 5000, (120, 8))
    rows = {f"c{i}": row for i, row in enumerate(values)}
    rows |= {f"g{k}": values[30 * k : 30 * k + 30].sum(axis=0) for k in range(4)}
    rows["w"] = values.sum(axis=0)
    lines = [
        f"{c},{b},{v}" for c, row in rows.items() for b, v in zip("qrstuvxy", row, strict=True)
    ]
    file = read(tmp_path, "\n".join(["a,b,value", *lines]) + "\n")
    found = members_of([file], without_totals=["b"])["a"]
    assert held(found)["w"] == {f"c{i}" for i in range(120)}
    assert held(found)["g3"] == {f"c{i}" for i in range(90, 120)}
    assert found.how == dict.fromkeys(["g0", "g1", "g2", "g3", "w"], "by numbers")


def test_no_total_is_asked_for_with_the_lines_that_answer_it(tmp_path: Path) -> None:
    file = read(tmp_path, "a,value\np,2\nq,3\nr,9\n")
    with pytest.raises(InputError, match="no total is recognised among the codes of 'a'") as asked:
        members_of([file])
    assert '[dimensions.a]\ntotals.r = ["p", "q"]' in str(asked.value)
    stated = read(
        tmp_path, "a,value\np,2\nq,3\nr,9\n", '[dimensions.a]\nindependent = ["p", "q", "r"]\n'
    )
    assert held(members_of([stated])["a"]) == {}
    assert held(members_of([file], without_totals=[""])["a"]) == {}
    assert members_of([stated])["a"].sentence() == "a: 3 codes; no total; no subtotals."
    # Letters such as T are a total only where the numbers add up.
    sections = read(tmp_path, "a,value\nS,411\nT,17\nTotal,428\n")
    assert held(members_of([sections])["a"]) == {"Total": {"S", "T"}}


@pytest.mark.parametrize(
    ("roles", "rows", "wanted"),
    [
        # A part that is not listed is a rest.
        ('totals.All = ["A", "B", "others"]', {"A": 3, "B": 4, "All": 9}, {"All": "A B others"}),
        ('totals.All = ["A", "B"]\nsubsets.A = { codes = ["of A"] }', {"All": 9, "A": 5, "of A": 2, "B": 4},
         {"All": "A, rest B of A", "A": "A, rest of A"}),
        ('subsets.A = { codes = ["p", "q"] }', {"A": 5, "p": 2, "q": 3}, {"A": "p q"}),
        ('totals.T = ["A", "F"]\ndifferences."T less F" = ["T", "F"]', {"T": 5, "A": 2, "F": 3, "T less F": 2},
         {"T": "A F", "T less F": "A"}),
        ('totals.T = ["A", "F"]\nsame.again = "A"', {"T": 5, "A": 2, "F": 3, "again": 2},
         {"T": "A F", "again": "A"}),
    ],
)  # fmt: skip
def test_every_role_of_a_layout_is_a_set_of_finest_codes(
    tmp_path: Path, roles: str, rows: dict[str, int], wanted: dict[str, str]
) -> None:
    text = "what,value\n" + "".join(f'"{c}",{v}\n' for c, v in rows.items())
    file = read(tmp_path, text, f"[dimensions.what]\n{roles}\n")
    codes = members_of([file])["what"]
    found = {code: " ".join(sorted(parts)) for code, parts in held(codes).items() if code in rows}
    assert found == wanted
    assert true_table(file, {"what": codes}, "sums").values.tolist() == list(rows.values())


@pytest.mark.parametrize(
    ("roles", "sentence"),
    [
        ('totals.T = ["A"]', "no total is recognised"),
        ('totals.T = ["A", "B"]\nnot_additive = ["B"]', "does not add up, so no cell"),
        ('subsets.T = { codes = ["A", "B"], disjoint = false }', "overlap with each other"),
        ('totals.T = ["A", "B"]\ntotals.A = ["T"]', "holds itself"),
        ('independent = ["A", "B"]\ndifferences.T = ["A", "B"]', "takes away what is not in"),
    ],
)
def test_roles_that_say_nothing_certain_are_refused(
    tmp_path: Path, roles: str, sentence: str
) -> None:
    file = read(tmp_path, "a,value\nA,1\nB,2\nT,3\n", f"[dimensions.a]\n{roles}\n")
    with pytest.raises(InputError, match=sentence):
        members_of([file])


def test_codes_mean_the_same_in_every_file_and_a_sum_of_fewer_is_asked_about(
    tmp_path: Path,
) -> None:
    coarse = read(tmp_path, "a,value\nn,40\ns,2\n_T,42\n", name="coarse.csv")
    fine = read(tmp_path, "a,value\nn1,13\nn2,27\ns,2\n_T,42\n", name="fine.csv")
    with pytest.raises(InputError, match="add up to '_T' without those of the other files"):
        members_of([coarse, fine])
    found = members_of([coarse, fine], {"a": {"n": ("n1", "n2")}})["a"]
    assert found.finest == ("s", "n1", "n2")
    assert found.members["n"] == {1, 2}
    long = read(tmp_path, "a,b,value\n1,q,5\n1,r,6\n2,q,7\n2,r,8\n", name="long.csv")
    short = read(tmp_path, "b,value\nq,12\nr,14\n", name="short.csv")
    with pytest.raises(InputError, match="no total is recognised among the codes of 'b'"):
        members_of([long, short])
    assert held(members_of([long, short], without_totals=["b"])["a"]) == {}


def test_a_layout_finds_a_table_in_a_workbook_and_must_speak_of_every_column(
    tmp_path: Path,
) -> None:
    book = openpyxl.Workbook()
    book.active.title = "notes"  # type: ignore[union-attr]
    book.active["A1"] = "Turnover of 2025"  # type: ignore[union-attr]
    sheet = book.create_sheet("data")
    for row in (
        ["Table 1"],
        ["region", "turnover", "firms"],
        ["n", 5, 4],
        ["s", 7, 9],
        ["Total", 12, 13],
    ):
        sheet.append(row)
    path = tmp_path / "t.xlsx"
    book.save(path)
    with pytest.raises(NotJudgedError, match="Is 'turnover', 'firms' the value"):
        read_true(path)
    lines = '[[tables]]\nsheet = "data"\nhead = [2]\n[tables.columns]\nregion = { role = "code" }\n'
    lines += 'turnover = { role = "value" }\n'
    with pytest.raises(InputError, match="does not say what the column 'firms' is"):
        read_true(path, layout_of_text(lines, "l.toml"))
    layout = layout_of_text(lines + 'firms = { role = "contributors" }\n', "l.toml")
    file = read_true(path, layout)
    table = true_table(file, members_of([file]))
    assert (table.kind, table.contributors.tolist()) == ("magnitude", [4, 9, 13])
    stale = layout.model_copy(update={"digest": "0" * 64})
    with pytest.raises(InputError, match="other bytes"):
        read_true(path, stale)
    with pytest.raises(InputError, match="leaves 'symbols' open"):
        read_true(path, Layout(open=("symbols",)))


def test_a_wide_table_and_a_dataset_of_json_stat_are_true_tables_too(tmp_path: Path) -> None:
    wide = 'kind = "counts"\n[[tables]]\nacross = ["sex"]\n[tables.columns]\narea = { role = "code" }\n'
    wide += "".join(f'{code} = {{ role = "value" }}\n' for code in ("m", "f", "Total"))
    file = read(tmp_path, "area,m,f,Total\nn,1,4,5\ns,2,6,8\nTotal,3,10,13\n", wide)
    table = true_table(file, members_of([file]))
    assert table.values.tolist() == [[1, 4, 5], [2, 6, 8], [3, 10, 13]]
    with pytest.raises(InputError, match="all have the role 'value'"):
        read(tmp_path, "area,m,f,n\nn,1,4,5\n", wide.replace("Total = ", "n = ").replace(
            'n = { role = "value" }', 'n = { role = "contributors" }'))  # fmt: skip
    category = {"index": ["n", "s", "Total"], "label": {"n": "North", "s": "South", "Total": "All"}}
    dataset = {"version": "2.0", "class": "dataset", "id": ["area"], "size": [3],
               "dimension": {"area": {"category": category}}, "value": [1.5, 2, 3.5]}  # fmt: skip
    stated = read(tmp_path, json.dumps(dataset), name="t.json")
    table = true_table(stated, members_of([stated]))
    assert (table.values.tolist(), table.kind) == ([15, 20, 35], "magnitude")
    assert table.axes[0].labels == ("North", "South", "All")


def test_hierarchies_come_from_three_kinds_of_files(tmp_path: Path) -> None:
    tree = "A\n@A1\n@A2\n@@A2x\n@@A2y\nB\n"
    wanted = {"A": ("A1", "A2"), "A2": ("A2x", "A2y")}
    assert groups_of_text(tree, "x", ".hrc") == wanted
    parents = "code,parent\nA1,A\nA2,A\nA2x,A2\nA2y,A2\nA,\n"
    assert groups_of_text(parents, "x", ".csv") == wanted
    (tmp_path / "g.toml").write_text('A = ["A1", "A2"]\nA2 = ["A2x", "A2y"]\n')
    assert read_groups(tmp_path / "g.toml") == wanted


@pytest.mark.parametrize(
    ("text", "ending", "sentence"),
    [
        ("A\n@@A1\n", ".hrc", "line 2: there are 2 '@', which skips a level"),
        ("code,up\n1,2\n", ".csv", "needs the columns 'code' and 'parent'"),
        ("code,parent\n1,2\n2,1\n", ".csv", "holds itself"),
        ("A = 1\n", ".toml", "needs a list of codes"),
        ("A = [\n", ".toml", "is not TOML"),
        ("A\nB\n", ".hrc", "there is no group"),
        ("A\n", ".txt", "a file of .hrc, .csv or .toml"),
    ],
)
def test_a_mistake_in_a_hierarchy_is_one_sentence(text: str, ending: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        groups_of_text(text, "g", ending)


PAGES = Path(__file__).parents[2] / "docs"


def test_the_pages_about_layouts_are_right_and_say_everything() -> None:
    guide, reference = (
        (PAGES / folder / name).read_text(encoding="utf-8")
        for folder, name in (("how-to", "suppress-a-table.md"), ("reference", "layout.md"))
    )
    blocks = [
        text for page in (guide, reference) for text in re.findall(r"```toml\n(.*?)```", page, re.S)
    ]
    assert len(blocks) == 3
    for block in blocks:
        layout = layout_of_text(block, "layout.toml")
        assert layout.tables or layout.contributions
    assert len(guide.split()) <= 1000
    roles = get_args(ColumnRole.model_fields["role"].annotation)
    words = {word for one in roles for word in (get_args(one) or [one])}
    for word in (
        *words,
        *SuppressSettings.model_fields,
        *Layout.model_fields,
        *CodeRoles.model_fields,
    ):
        assert word in ("format", "file") or f"`{word}" in reference or f"[{word}" in reference, (
            word
        )
    for line in re.findall(r"\| `(\w+ = [^`]+)` \|", guide):
        layout_of_text(f"[suppress]\n{line}\n", "layout.toml")


def test_two_equal_codes_of_which_one_is_a_letter_are_no_total(tmp_path: Path) -> None:
    file = read(tmp_path, "nace,b,value\nS,q,17\nT,q,17\nS,r,2\nT,r,2\nS,Total,19\nT,Total,19\n")
    with pytest.raises(InputError, match="no total is recognised among the codes of 'nace'"):
        members_of([file])


def test_an_audit_takes_no_confidential_column_for_one_without_values(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("a,value,x1\nn,5,3\ns,x,7\nTotal,12,7\n")
    lines = '[symbols]\nx = "hidden"\n[[tables]]\n[tables.columns]\na = { role = "code" }\n'
    lines += 'value = { role = "value" }\nx1 = { role = "contribution" }\n'
    with pytest.raises(InputError, match="'x1' is 'contribution', which only a confidential file"):
        open_file(tmp_path / "p.csv", layout_of_text(lines, "l.toml"))
    with pytest.raises(InputError, match=r"the layout has no \[\[tables\]\]"):
        open_file(tmp_path / "p.csv", layout_of_text('kind = "sums"\n', "l.toml"))
