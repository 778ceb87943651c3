"""Files of tau-ARGUS come in and go out with nothing lost, and broken ones are one sentence with the line."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lustrum.model import Category, InputError, Release, Table, TableAxis
from lustrum.model.release import SeededRelease
from lustrum.model.table import Contributions
from lustrum.protect.cell_key import (
    PTable,
    key_words,
    read_ptable,
    read_transitions,
    transitions_text,
)
from lustrum.protect.cell_key.words import InverseCdf
from lustrum.readers.argus import (
    Apriori,
    ArgusTable,
    ArgusVariable,
    JJCell,
    JJProblem,
    Metadata,
    Recoding,
    read_records,
    read_tab,
)
from lustrum.readers.argus.lists import (
    parse_apriori,
    parse_batch,
    parse_code_list,
    parse_jj,
    parse_recoding,
)
from lustrum.readers.argus.metadata import parse_metadata
from lustrum.readers.argus.tables import parse_tab
from lustrum.readers.container import read_container
from lustrum.readers.hierarchy_files import groups_of_text

NAMES = st.text("abcXYZ_09", min_size=1, max_size=8)
WORDS = st.text("abc 019@.-", min_size=1, max_size=6)
CODES = st.text("ab 01éÅ-\"';", max_size=5)
NUMBERS = st.decimals(-9999, 9999, places=2).map(str)
TAGS = st.sampled_from(
    [
        ("RECODEABLE", ()), ("HIERARCHICAL", ()), ("HIERCODELIST", ("region2.hrc",)),
        ("HIERLEVELS", ("3", "1", "1")), ("TOTCODE", ("All of it",)), ("REQUEST", ("1", "2")),
        ("DECIMALS", ("2",)), ("NUMERIC", ()),
    ]
)  # fmt: skip
FIXED = st.builds(
    ArgusVariable,
    NAMES,
    st.integers(1, 200),
    st.integers(1, 12),
    st.lists(WORDS, max_size=2).map(tuple),
    st.lists(TAGS, max_size=4, unique=True).map(tuple),
)
FREE = st.builds(
    ArgusVariable,
    NAMES,
    missing=st.lists(WORDS, max_size=2).map(tuple),
    tags=st.lists(TAGS, max_size=4, unique=True).map(tuple),
)


def named(variables: list[ArgusVariable]) -> bool:
    return len({v.name for v in variables}) == len(variables)


METADATA = st.one_of(
    st.lists(FIXED, min_size=1, max_size=4).filter(named).map(lambda v: Metadata(tuple(v))),
    st.lists(FREE, min_size=1, max_size=4)
    .filter(named)
    .map(lambda v: Metadata(tuple(v), (("SEPARATOR", (";",)),))),
)


@given(METADATA)
def test_metadata_lose_nothing(metadata: Metadata) -> None:
    assert parse_metadata(metadata.text, "a.rda") == metadata


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.data())
def test_records_of_fixed_columns_lose_nothing(widths: list[int], data: st.DataObject) -> None:
    """Each field stands where its metadata say, whatever stands between the columns."""
    gap, start, variables = data.draw(st.integers(0, 3)), 1, []
    for number, width in enumerate(widths):
        variables.append(ArgusVariable(f"v{number}", start, width))
        start += width + gap
    text = st.text("abcäß 01@", max_size=9).map(str.strip)
    rows = data.draw(
        st.lists(
            st.tuples(*(text.map(lambda t, w=width: t[:w].strip()) for width in widths)),
            min_size=1,
            max_size=5,
        ).filter(lambda all_rows: all(any(row) for row in all_rows))
    )
    lines = [
        (" " * gap).join(field.rjust(width) for field, width in zip(row, widths, strict=True))
        for row in rows
    ]
    with TemporaryDirectory() as folder:
        (Path(folder, "a.rda")).write_text(Metadata(tuple(variables)).text, encoding="utf-8")
        (Path(folder, "a.asc")).write_text("\n".join(lines) + "\n", encoding="utf-8")
        read = read_records(Path(folder, "a.asc"))
    assert list(read) == [variable.name for variable in variables]
    assert list(zip(*read.values(), strict=True)) == rows


TREES = st.recursive(
    st.just(()), lambda inside: st.lists(inside, min_size=1, max_size=3).map(tuple), max_leaves=12
)


@given(st.lists(TREES, min_size=1, max_size=3).filter(any))
def test_a_tree_of_codes_loses_nothing(trees: list[Any]) -> None:
    lines: list[str] = []
    groups: dict[str, tuple[str, ...]] = {}

    def written(tree: Any, depth: int) -> str:
        code = f"c{len(lines)}"
        lines.append("@" * depth + code)
        parts = tuple(written(part, depth + 1) for part in tree)
        if parts:
            groups[code] = parts
        return code

    for tree in trees:
        written(tree, 0)
    assert groups_of_text("\n".join(lines), "a.hrc", ".hrc") == groups


@given(
    st.dictionaries(
        st.text("ab01", min_size=1, max_size=4), WORDS.map(str.strip).filter(bool), min_size=1
    )
)
def test_a_list_of_codes_loses_nothing(labels: dict[str, str]) -> None:
    text = "".join(f"{code},{label}\n" for code, label in labels.items())
    assert parse_code_list(text, "a.cdl") == labels


TABLE = Metadata(
    (
        ArgusVariable("Size", tags=(("RECODEABLE", ()),)),
        ArgusVariable("Region", tags=(("RECODEABLE", ()), ("HIERARCHICAL", ()))),
        ArgusVariable("Var2", tags=(("NUMERIC", ()), ("DECIMALS", ("2",)))),
        ArgusVariable("Freq", tags=(("FREQUENCY", ()),)),
        ArgusVariable("Top1", tags=(("MAXSCORE", ()),)),
        ArgusVariable("Top2", tags=(("MAXSCORE", ()),)),
        ArgusVariable("St", tags=(("STATUS", ()),)),
        ArgusVariable("Low", tags=(("NUMERIC", ()), ("LOWERPL", ()))),
    ),
    (("SEPARATOR", (";",)),),
)
ROW = st.tuples(
    CODES,
    CODES,
    NUMBERS,
    st.integers(0, 99).map(str),
    NUMBERS,
    NUMBERS,
    st.sampled_from("SUPM"),
    NUMBERS,
)


@given(st.lists(ROW, min_size=1, max_size=6))
def test_a_table_loses_nothing(rows: list[tuple[str, ...]]) -> None:
    table = ArgusTable(TABLE, tuple(rows))
    back = parse_tab(table.text, TABLE, "a.tab")
    assert back.rows == table.rows
    assert back.numbers("Var2") == [Decimal(row[2]) for row in rows]


@given(
    st.lists(CODES, min_size=1, max_size=3, unique=True),
    st.sampled_from(["value", "n", "age:ten-year", "area"]),
    st.integers(0, 3),
    st.booleans(),
    st.data(),
)
def test_a_table_of_ours_goes_out_with_all_its_numbers(
    codes: list[str], name: str, decimals: int, released: bool, data: st.DataObject
) -> None:
    axes = (TableAxis.plain(name, codes), TableAxis.plain("value", ["a", "_T"]))
    shape = (len(codes), 2)
    hidden, primary = data.draw(arrays(np.bool_, shape)), data.draw(arrays(np.bool_, shape))
    values = data.draw(arrays(np.int64, shape, elements=st.integers(-(2**61), 2**61)))
    ranked = data.draw(arrays(np.int64, (*shape, 2), elements=st.integers(-1, 99)))
    levels = data.draw(arrays(np.int64, shape, elements=st.integers(0, 2**60))).ravel().tolist()
    table = Table(
        axes, values, "magnitude", decimals, "", ranked[..., 0] + 1,
        contributions=Contributions(ranked, ranked),
    )  # fmt: skip
    release = Release(axes, values, np.where(hidden, "N", "F"), {}, decimals=decimals)
    told = ArgusTable.of_table(release if released else table, primary, levels, levels)
    metadata = parse_metadata(told.metadata.text, "a.rda")
    back = parse_tab(told.text, metadata, "a.tab")
    assert (back.metadata, back.rows) == (told.metadata, told.rows)
    assert metadata.variables[1].said("TOTCODE") == ("_T",)
    first, second, *rest = zip(*back.rows, strict=True)
    cells = [(code, other) for code in codes for other in ("a", "_T")]
    assert list(zip(first, second, strict=True)) == cells
    exact = [None if h and released else Decimal(v).scaleb(-decimals) for v, h in
             zip(values.ravel().tolist(), hidden.ravel().tolist(), strict=True)]  # fmt: skip
    assert [Decimal(text) if text else None for text in rest[0]] == exact
    assert list(rest[-3]) == np.where(primary, "U", "S").ravel().tolist()
    assert [Decimal(text) for text in rest[-1]] == [Decimal(n).scaleb(-decimals) for n in levels]
    if not released:
        assert [int(text) for text in rest[1]] == (ranked[..., 0] + 1).ravel().tolist()
        top = [
            Decimal(n).scaleb(-decimals) if n >= 0 else None
            for n in ranked[..., 1].ravel().tolist()
        ]
        assert [Decimal(text) if text else None for text in rest[3]] == top
    try:
        apriori = Apriori.of_table(table, primary, levels, levels)
    except InputError:
        assert any(
            code.strip('" ') != code or not code or {*code} & {*'";'} or "//" in code
            for code in codes
        )
        return
    assert parse_apriori(apriori.text, 2, "a.hst") == apriori
    marked = [codes for codes, kind, _ in apriori.changes if kind == "U"]
    assert marked == [cell for cell, p in zip(cells, primary.ravel().tolist(), strict=True) if p]
    given = [tuple(map(Decimal, said)) for _, kind, said in apriori.changes if kind == "PL"]
    wanted = [
        Decimal(n).scaleb(-decimals) for n, p in zip(levels, primary.ravel(), strict=True) if p
    ]
    assert given == [(level, level) for level in wanted]


def test_a_study_is_no_table_file() -> None:
    study = SeededRelease.of(
        Release((TableAxis.plain("a", ["x"]),), np.array([1]), np.array(["F"]), {})
    )
    with pytest.raises(InputError, match="made with a seed"):
        ArgusTable.of_table(study, ~study.shown)


CHANGE = st.one_of(
    st.tuples(
        st.lists(st.text("ab01", min_size=1, max_size=3), min_size=2, max_size=2).map(tuple),
        kind,
        said,
    )
    for kind, said in (
        (st.sampled_from(["S", "U", "P", "M", "ML"]), st.just(())),
        (st.sampled_from(["C", "W"]), st.tuples(NUMBERS)),
        (st.sampled_from(["PL", "AB"]), st.tuples(NUMBERS, NUMBERS)),
    )
)


@given(st.lists(CHANGE, min_size=1, max_size=5), st.sampled_from(";,"))
def test_changes_lose_nothing(
    changes: list[tuple[tuple[str, ...], str, tuple[str, ...]]], separator: str
) -> None:
    apriori = Apriori(tuple(changes), separator)
    assert parse_apriori(apriori.text, 2, "a.hst") == apriori


@given(
    st.lists(
        st.builds(
            JJCell,
            NUMBERS,
            NUMBERS,
            st.sampled_from("sumz"),
            NUMBERS,
            NUMBERS,
            NUMBERS,
            NUMBERS,
            NUMBERS,
        ),
        min_size=1,
        max_size=5,
    ),
    st.data(),
)
def test_jj_loses_nothing(cells: list[JJCell], data: st.DataObject) -> None:
    term = st.tuples(st.integers(0, len(cells) - 1), st.integers(-2, 2))
    equations = data.draw(
        st.lists(st.tuples(NUMBERS, st.lists(term, min_size=1, max_size=4).map(tuple)), max_size=3)
    )
    problem = JJProblem(tuple(cells), tuple(equations))
    assert parse_jj(problem.text, "a.jj") == problem


def test_the_equations_of_a_table_hold_and_are_all_its_sums() -> None:
    inner = np.array([[3, 4, 8], [5, 6, 1]])
    values = np.zeros((3, 4), dtype=np.int64)
    values[:2, :3] = inner
    values[2], values[:, 3] = values.sum(axis=0), values.sum(axis=1)
    values[2, 3] = inner.sum()
    axes = []
    for name, size in (("a", 2), ("b", 3)):
        single = tuple(Category(f"{name}{i}", f"{name}{i}", (i,)) for i in range(size))
        axes.append(TableAxis(name, name, (*single, Category("_T", "Total", tuple(range(size))))))
    table = Table(tuple(axes), values)
    problem = JJProblem.of_table(table, values < 4, [1] * 12, [2] * 12)
    for total, terms in problem.equations:
        assert sum(factor * float(problem.cells[cell].value) for cell, factor in terms) == float(
            total
        )
    matrix = np.zeros((len(problem.equations), 12))
    for row, (_, terms) in enumerate(problem.equations):
        for cell, factor in terms:
            matrix[row, cell] = factor
    # Twelve cells of which six are free: the others follow.
    assert np.linalg.matrix_rank(matrix) == 6
    assert [c.status for c in problem.cells].count("u") == (values < 4).sum()
    assert parse_jj(problem.text, "a.jj") == problem


def test_recodings_and_lists() -> None:
    for recoding in (
        Recoding((("1", ("1-5", "8")), ("2", ("6-7",))), missing=("99",)),
        Recoding(closed=("142", "15")),
    ):
        assert parse_recoding(recoding.text, "a.grc") == recoding
    assert [c.name for c in parse_batch('<OPENMICRODATA> "a.asc"\n<READMICRODATA>\n', "a.arb")] == [
        "OPENMICRODATA",
        "READMICRODATA",
    ]


def test_records_and_tables_stand_beside_their_metadata(tmp_path: Path) -> None:
    (tmp_path / "a.rda").write_text(
        "Size 1 2 99\n <RECODEABLE>\nVar 3 5\n <NUMERIC> <DECIMALS> 1\n"
    )
    (tmp_path / "a.asc").write_text(" 1 12.5\n10  300\n")
    assert read_records(tmp_path / "a.asc") == {"Size": ["1", "10"], "Var": ["12.5", "300"]}
    (tmp_path / "t.rda").write_text(TABLE.text)
    (tmp_path / "t.tab").write_text(
        '"Total";" 1";12,50;4;6,00;3,00;S;0\n"2";"x";3,00;2;2,00;1,00;U;1\n'
    )
    table = read_tab(tmp_path / "t.tab")
    assert table.column("Region") == [" 1", "x"]
    grid = read_container(tmp_path / "t.tab").grids[0]
    assert grid.lines[0] == ("Size", "Region", "value", "n", "x1", "x2", "status", "lower")
    assert grid.lines[1] == ("Total", "1", "12.50", "4", "6.00", "3.00", "S", "0")


@pytest.mark.parametrize(
    ("parse", "text", "line"),
    [
        (lambda t: parse_metadata(t, "f"), "Size 9 2\n<DECIMALS> x\n", 2),
        (lambda t: parse_metadata(t, "f"), "<RECODEABLE>\nSize 9 2\n", 1),
        (lambda t: parse_metadata(t, "f"), "A 1 1\nSize 0 2\n", 2),
        (lambda t: parse_tab(t, TABLE, "f"), '"a";"b";1;1;1;1;S;0\n"a";"b";1\n', 2),
        (lambda t: parse_tab(t, TABLE, "f"), '"a";"b";1;1;1;1;S;0\n"a";"b";x;1;1;1;S;0\n', 2),
        (lambda t: parse_apriori(t, 2, "f"), "a;b;u\na;b;x\n", 2),
        (lambda t: parse_apriori(t, 2, "f"), "a;b;c\n", 1),
        (lambda t: parse_code_list(t, "f"), "1,a\n1,b\n", 2),
        (lambda t: parse_recoding(t, "f"), "1:2\nnothing\n", 2),
        (lambda t: parse_batch(t, "f"), "<READTABLE>\nnothing\n", 2),
        (lambda t: parse_jj(t, "f"), "1\n", 1),
        (lambda t: parse_jj(t, "f"), "0\n1\n0 1 1 q 0 1 0 0 0\n0\n", 3),
        (lambda t: parse_jj(t, "f"), "0\n1\n0 1 1 s 0 1 0 0 0\n1\n0 1 : 7 (1)\n", 5),
    ],
)
def test_a_broken_file_is_one_sentence_with_the_line(parse: object, text: str, line: int) -> None:
    with pytest.raises(InputError, match=rf"line {line}\b") as caught:
        parse(text)  # type: ignore[operator]
    assert str(caught.value).endswith(".")


PTABLE = """i;j;p;v;p_int_lb;p_int_ub;type
0;0;1;0;0;1;all
1;0;0.6;-1;0;0.6;all
1;2;0.3;1;0.6;0.9;all
1;3;0.1;2;0.9;1;all
"""


def test_cell_keys_are_those_of_cell_key(tmp_path: Path) -> None:
    # The record keys that the introduction of R's cellKey shows, and its rule: the sum modulo 1 is compared
    # with the upper ends of the intervals of the count's row.
    keys = ["0.6705526", "0.0357946", "0.1339016", "0.9849310", "0.2941448", "0.7070011"]
    (tmp_path / "r.csv").write_text(PTABLE.replace("1;0;0.6;-1;0;0.6", "1;0;0.6;-1;0;0.6"))
    channel = read_transitions(tmp_path / "r.csv")
    for some in (keys[:1], keys[1:2], keys[:3], keys):
        cell_key = sum(map(Decimal, some)) % 1
        words = key_words(some)
        assert abs(int(words.sum()) / 2**64 - float(cell_key)) < 1e-12
        ends = [(Decimal("0.6"), 0), (Decimal("0.9"), 2), (Decimal(1), 3)]
        wanted = next(becomes for end, becomes in ends if cell_key < end)
        got = InverseCdf(channel).perturb(np.array([1]), np.array([words.sum()]))
        assert got.tolist() == [wanted]


@given(st.integers(1, 5), st.integers(0, 4), st.data())
def test_a_table_of_the_ons_loses_nothing(last: int, bits: int, data: st.DataObject) -> None:
    step = st.lists(st.integers(0, 9), min_size=1 << bits, max_size=1 << bits)
    rows = data.draw(st.lists(step, min_size=last + 1, max_size=last + 1))
    table = PTable("t", np.array(rows) - np.arange(last + 1)[:, None], 1)
    with TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_text(table.text)
        again = read_ptable(path)
    assert again.steps.tolist() == table.steps.tolist()
    assert again.digest == table.digest


def test_perturbation_tables_of_r_and_tau_argus(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(PTABLE)
    channel = read_transitions(tmp_path / "r.csv")
    assert np.allclose(channel.matrix, [[1, 0, 0, 0], [0.6, 0, 0.3, 0.1]])
    (tmp_path / "again.csv").write_text(transitions_text(channel))
    assert np.allclose(read_transitions(tmp_path / "again.csv").matrix, channel.matrix, rtol=1e-12)
    (tmp_path / "out.txt").write_text(transitions_text(channel, argus=True))
    assert (tmp_path / "out.txt").read_text().splitlines()[:2] == [
        '"i";"j";"p";"v";"p_int_ub"',
        "0;0;1.0;0;1.0",
    ]
    assert np.allclose(read_transitions(tmp_path / "out.txt").matrix, channel.matrix, rtol=1e-12)
    argus = '"i";"j";"p";"v";"p_ij_ub"\n' + "".join(
        ";".join(line.split(";")[:4] + line.split(";")[5:6]) + "\n"
        for line in PTABLE.splitlines()[1:]
    )
    (tmp_path / "argus.txt").write_text(argus)
    assert np.allclose(read_transitions(tmp_path / "argus.txt").matrix, channel.matrix, rtol=1e-12)
    for wrong in (
        PTABLE.replace("0.6;-1", "0.5;-1"),
        PTABLE.replace("1;2;0.3;1", "1;2;0.3;2"),
        PTABLE.replace("0;0;1;0", "4;4;1;0"),
        PTABLE.replace(";all", ";odd"),
        "a;b\n1;2\n",
    ):
        (tmp_path / "wrong.csv").write_text(wrong)
        with pytest.raises(InputError, match="ptable"):
            read_transitions(tmp_path / "wrong.csv")
