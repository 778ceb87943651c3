"""Tables in files: what is hidden is never 0, totals are recognised or asked for, mistakes are one sentence."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from examples import examples
from lustrum.formats import Csv
from lustrum.model import InputError, Release, Table
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect import RandomRounding
from lustrum.readers import (
    ColumnNames,
    StatedTotals,
    confidential_table,
    groups_of_text,
    read_groups,
    read_table,
    recognise,
    table_of_csv,
)
from released import releases_of

TEXT = (
    "area,area_label,job,value,status\nn,North,a,3,F\nn,North,b,,A\nn,North,_T,9,F\ns,South,a,4,D\n"
)
OPEN = StatedTotals(none=frozenset({""}))


def released(text: str, said: StatedTotals = OPEN) -> Release:
    file = table_of_csv(text, "x.csv")
    return releases_of([file], recognise([file], said))[0]


def test_what_is_not_published_is_not_known() -> None:
    release = released(TEXT)
    assert release.shape == (2, 3)
    assert release.axes[0].labels == ("North", "South")
    # Empty and no row at all: neither is a zero. A number that stands in the file is published.
    assert release.shown.tolist() == [[True, False, True], [True, False, False]]
    assert release.published[0].tolist() == [3, 0, 9]
    assert release.status.tolist() == [["F", "A", "F"], ["F", "N", "N"]]
    assert release.method == {"method": "unknown"}


@pytest.mark.parametrize("symbol", ["x", "X", "c", "..", ":", "(x)", "n.a.", "", "secret"])
def test_symbols_for_hidden_values_are_read_as_hidden(symbol: str) -> None:
    file = table_of_csv(f"a,value\n1,{symbol}\n2,0\n", "x.csv", hidden=["Secret"])
    assert file.values["value"] == (None, Decimal(0))


def test_decimals_are_exact() -> None:
    release = released("a,value\n1,0.1\n2,12.25\n3,100\n")
    assert release.decimals == 2
    assert release.published.tolist() == [10, 1225, 10000]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_are_recognised(delimiter: str) -> None:
    text = "\ufeff" + TEXT.replace(",", delimiter).replace("\n", "\r\n")
    assert released(text).published.tolist() == released(TEXT).published.tolist()


def test_a_code_means_the_same_in_every_table() -> None:
    files = [
        table_of_csv("a,value\n1,1\n2,2\n", "x"),
        table_of_csv("a,value\n2,2\n3,3\n_T,6\n", "y"),
    ]
    first, second = releases_of(files)
    assert first.axes[0].categories[1].members == second.axes[0].categories[0].members == (1,)
    assert second.axes[0].categories[2].members == (0, 1, 2)


def test_finer_codes_in_another_file_need_a_hierarchy() -> None:
    coarse = table_of_csv("a,value\nn,40\ns,2\n_T,42\n", "coarse.csv")
    fine = table_of_csv("a,value\nn1,13\nn2,27\ns,2\n_T,42\n", "fine.csv")
    with pytest.raises(InputError, match="add up to '_T' without those of the other files"):
        recognise([coarse, fine])
    found = recognise([coarse, fine], StatedTotals(groups={"a": {"n": ("n1", "n2")}}))
    assert found.dimensions["a"].finest == ("s", "n1", "n2")
    assert found.dimensions["a"].members("n") == (1, 2)


@st.composite
def counts(draw: st.DrawFn) -> Table:
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    size = int(np.prod(shape))
    cells = draw(st.lists(st.integers(0, 10**9), min_size=size, max_size=size))
    return Table.from_counts(np.array(cells).reshape(shape))


@given(counts(), st.integers(0, 2**31))
@settings(max_examples=examples(25, 400), deadline=None)
def test_a_written_table_reads_back(
    tmp_path_factory: pytest.TempPathFactory, table: Table, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    release = RandomRounding().apply(table, rng)
    status = np.where(rng.random(table.shape) < 0.3, rng.choice(["A", "D", "N"], table.shape), "F")
    hidden = Release(release.axes, release.published, status, {"method": "x"})
    # Codes such as 1, 2 and 3 may add up by chance in so small a table, so totals are ruled out.
    names = ColumnNames(by=tuple(axis.name for axis in table.axes))
    file = table_of_csv(Csv().write(hidden), "x.csv", names)
    (back,) = releases_of([file], recognise([file], OPEN))
    assert np.array_equal(back.status, status)
    assert np.array_equal(back.published[back.shown], release.published[back.shown])
    assert [a.codes for a in back.axes] == [a.codes for a in release.axes]
    path = tmp_path_factory.mktemp("p") / "x.parquet"
    columns: dict[str, list[object]] = {
        name: [key[i] for key in file.cells] for i, name in enumerate(file.dimensions)
    }
    columns["value"] = [None if v is None else int(v) for v in file.values["value"]]
    columns["status"] = list(file.status["value"])
    parquet.write_table(pa.table(columns), path)
    assert read_table(path, ColumnNames(by=file.dimensions)).values == file.values


Drawn = tuple[str, dict[str, frozenset[str]], bool]


@st.composite
def grouped(draw: st.DrawFn) -> Drawn:
    """A table of two dimensions with a total and groups in the first, in any order, as CSV."""
    leaves = [f"k{i}" for i in draw(st.permutations(range(draw(st.integers(3, 7)))))]
    sets = st.sets(st.sampled_from(leaves), min_size=2, max_size=len(leaves) - 1)
    drawn = draw(st.lists(sets.map(frozenset), max_size=3, unique=True))
    groups = {f"g{i}": group for i, group in enumerate(drawn)}
    named = draw(st.booleans())
    groups["TOTAL" if named else "w"] = frozenset(leaves)
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    values = {code: rng.integers(100, 100_000, 9) for code in leaves}
    for code, group in groups.items():
        values[code] = sum(values[leaf] for leaf in sorted(group))
    codes = draw(st.permutations(sorted(values)))
    lines = ["a,b,value"]
    for code in codes:
        row = [*values[code].tolist(), int(values[code].sum())]
        lines += [f"{code},{b},{v}" for b, v in zip([*"qrstuvxyz", "Total"], row, strict=True)]
    return "\n".join(lines) + "\n", groups, named


@given(grouped())
@settings(max_examples=examples(30, 400), deadline=None)
def test_recognised_totals_and_subtotals_are_the_true_ones(
    drawn: Drawn,
) -> None:
    text, groups, named = drawn
    own = recognise([table_of_csv(text, "x.csv")]).dimensions["a"]
    found = {code: frozenset(own.finest[p] for p in parts) for code, parts in own.groups.items()}
    assert found == groups
    assert own.totals == (("TOTAL",) if named else ("w",))
    assert own.how[own.totals[0]] == ("by name" if named else "by numbers")


@given(grouped(), st.integers(0, 2**31))
@settings(max_examples=examples(15, 200), deadline=None)
def test_hidden_cells_make_no_wrong_totals(drawn: Drawn, seed: int) -> None:
    text, groups, _ = drawn
    rng = np.random.default_rng(seed)
    head, *lines = text.splitlines()
    gaps = [line.rpartition(",")[0] + ",x" if rng.random() < 0.15 else line for line in lines]
    total = "TOTAL" if "TOTAL" in groups else "w"
    said = StatedTotals(
        named={"a": frozenset({total})},
        groups={"a": {c: tuple(sorted(g)) for c, g in groups.items() if c != total}},
    )
    full = recognise([table_of_csv("\n".join([head, *gaps]), "x.csv")], said).dimensions["a"]
    assert {
        c: frozenset(full.finest[p] for p in parts) for c, parts in full.groups.items()
    } == groups
    # Without being told it may recognise less or ask, but never another set than the true one.
    try:
        own = recognise([table_of_csv("\n".join([head, *gaps]), "x.csv")]).dimensions["a"]
    except InputError:
        return
    for code, parts in own.groups.items():
        assert frozenset(own.finest[p] for p in parts) <= groups[code] | groups.keys()


def test_groups_among_many_codes_are_found() -> None:
    rng = np.random.default_rng(6)
    values = rng.integers(0, 5000, (400, 2))
    lines = ["a,b,value"]
    for i, (q, r) in enumerate(values.tolist()):
        lines += [f"c{i},q,{q}", f"c{i},r,{r}"]
    for g in range(4):
        q, r = values[100 * g : 100 * g + 100].sum(axis=0).tolist()
        lines += [f"g{g},q,{q}", f"g{g},r,{r}"]
    lines += [f"w,q,{values[:, 0].sum()}", f"w,r,{values[:, 1].sum()}"]
    said = StatedTotals(none=frozenset({"b"}))
    own = recognise([table_of_csv("\n".join(lines), "x.csv")], said).dimensions["a"]
    assert own.totals == ("w",)
    assert own.members("g3") == tuple(range(300, 400))
    assert sum(code.startswith("g") for code in own.groups) == 4


def test_groups_of_one_code_and_codes_that_begin_alike_are_recognised() -> None:
    rows = ["C,q,1900", "C10,q,1900", "C,r,1100", "C10,r,1100", "D,q,17", "D,r,23"]
    text = "\n".join(["nace,b,value", *rows, "Total,q,1917", "Total,r,1123"])
    own = recognise([table_of_csv(text, "x.csv")], StatedTotals(none=frozenset({"b"}))).dimensions[
        "nace"
    ]
    assert own.members("C") == (own.finest.index("C10"),)
    assert own.sentence() == "nace: 2 codes; the total is Total (by name); subtotal C (by numbers)."


def test_a_letter_that_is_a_code_of_its_own_is_no_total() -> None:
    # T is a section of NACE; it is a total only where nothing is larger.
    text = "nace,b,value\nS,q,411\nT,q,17\nTotal,q,428\nS,Total,411\nT,Total,17\nTotal,Total,428\n"
    assert recognise([table_of_csv(text, "x.csv")]).dimensions["nace"].totals == ("Total",)
    text = "sex,value\nF,411\nM,17\nT,428\n"
    assert recognise([table_of_csv(text, "x.csv")]).dimensions["sex"].totals == ("T",)


def test_a_total_off_by_one_is_refused_with_its_row_and_by_how_much() -> None:
    rows = ["x,p,10", "x,q,20", "x,Total,31", "y,p,30", "y,q,40", "y,Total,70"]
    rows += ["Total,p,40", "Total,q,60", "Total,Total,100"]
    with pytest.raises(InputError) as refused:
        recognise([table_of_csv("\n".join(["a,b,value", *rows]), "x.csv")])
    said = str(refused.value)
    assert (
        "in value, b=Total it is 1 less than they are, as if each number had been rounded" in said
    )
    assert said.endswith("The number in line 4 (a=x, b=Total) is in every sum that is off.")


def test_decimals_that_would_round_a_difference_away_are_named() -> None:
    made = table_of_csv("a,value\nx,10.1\ny,5.2\nTotal,15.30001\n", "x.csv")
    with pytest.raises(
        InputError, match=r"it is 0\.00001 more than they are, which --decimals 4 would"
    ):
        recognise([made])
    assert recognise([made.rounded(4)]).dimensions["a"].totals == ("Total",)


def test_a_total_that_is_not_the_sum_asks_for_the_subtotals_or_the_rest() -> None:
    small = "a,value\na1,1\na2,2\nxx,3\nTotal,3\n"
    with pytest.raises(
        InputError,
        match="is not the sum of its parts: in value it is 3 less than they are; name subtotals",
    ):
        recognise([table_of_csv(small, "x.csv")])
    said = StatedTotals(groups={"a": {"xx": ("a1", "a2")}})
    assert recognise([table_of_csv(small, "x.csv")], said).dimensions["a"].members("Total") == (
        0,
        1,
    )
    part = "a,value\na1,1\na2,2\nTotal,9\n"
    with pytest.raises(InputError, match="say --rest a if codes are missing"):
        recognise([table_of_csv(part, "x.csv")])
    open_ended = recognise([table_of_csv(part, "x.csv")], StatedTotals(rest=frozenset({"a"})))
    assert open_ended.dimensions["a"].members("Total") == (0, 1, 2)


def test_a_dimension_that_another_file_leaves_out_needs_no_total() -> None:
    files = [
        table_of_csv("a,b,value\n1,q,5\n1,r,6\n2,q,7\n2,r,8\n", "x"),
        table_of_csv("b,value\nq,12\nr,14\n", "y"),
    ]
    with pytest.raises(InputError, match="no total is recognised among the codes of 'b'"):
        recognise(files)
    found = recognise(files, StatedTotals(none=frozenset({"b"})))
    assert found.dimensions["a"].groups == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,2\n", "no column 'value'"),
        ("value\n1\n", "no column of codes"),
        ("a,a,value\n1,1,1\n", "the column 'a' occurs twice"),
        ("a,value\n1,2,3\n", "line 2: there are 3 fields"),
        ("a,value\n1,2\n1,3\n", "line 3: the cell stands in line 2 already"),
        ("a,value\n1,two\n", "line 2: the value of 'value' is not a number"),
        ("a,value\n1,inf\n", "line 2: the value of 'value' is not a number"),
        ("a,value\n", "there is no cell"),
        ("a,value,h1\n1,2,f\n", "1 columns of holdings but 0 of largest"),
        ("a,value,lower\n1,2,-1\n", "not a number of 0 or more"),
        ("a,value,primary\n1,2,maybe\n", "'primary' must be 0 or 1"),
        ("", "no column 'value'"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        table_of_csv(text, "x.csv")
    assert "x.csv" in str(caught.value)


def test_figures_about_cells_are_no_dimensions() -> None:
    file = table_of_csv("a,b,value,mean\n1,1,5,2\n1,2,6,2\n2,1,7,9\n2,2,7,9\n", "x.csv")
    assert (file.dimensions, file.ignored) == (("a", "b"), ("mean",))
    assert table_of_csv("age,value\n1,5\n2,5\n", "x.csv").dimensions == ("age",)


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


CONFIDENTIAL = """a,value,n,x1,x2,h1,h2
1,100,2,60,40,f1,f2
2,50,1,50,,f1,
3,0,0,,,,
Total,150,2,110,40,f1,f2
"""


def test_a_confidential_table_has_its_contributors_and_their_holdings() -> None:
    file = table_of_csv(CONFIDENTIAL, "x.csv")
    table = confidential_table(file, recognise([file]))
    assert (table.kind, table.values.tolist()) == ("magnitude", [100, 50, 0, 150])
    assert table.contributors is not None
    assert table.contributors.tolist() == [2, 1, 0, 2]
    own = table.contributions
    assert own is not None
    assert own.value.tolist() == [[60, 40], [50, 0], [0, 0], [110, 40]]
    assert own.holding.tolist() == [[0, 1], [0, -1], [-1, -1], [0, 1]]
    unnamed = table_of_csv(
        CONFIDENTIAL.replace("h1", "k1").replace("h2", "k2"), "x.csv", ColumnNames(by=("a",))
    )
    other = confidential_table(unnamed, recognise([unnamed])).contributions
    assert other is not None
    assert other.present.tolist() == own.present.tolist()
    assert len(set(other.holding[other.present].tolist())) == 5


def test_rows_that_are_missing_from_a_confidential_table_are_0_where_totals_agree() -> None:
    text = "a,b,value\n1,q,5\n2,q,6\n2,r,7\n1,Total,5\n2,Total,13\nTotal,q,11\nTotal,r,7\nTotal,Total,18\n"
    file = table_of_csv(text, "x.csv")
    table = confidential_table(file, recognise([file]))
    assert table.kind == "count"
    assert table.values.tolist() == [[5, 0, 5], [6, 7, 13], [11, 7, 18]]
    gone = table_of_csv(text.replace("1,q,5\n", ""), "x.csv")
    with pytest.raises(InputError, match="rows are missing"):
        confidential_table(gone, recognise([gone]))
    hidden = table_of_csv(text.replace("1,q,5\n", "1,q,x\n"), "x.csv")
    with pytest.raises(InputError, match="line 2: the value is missing"):
        confidential_table(hidden, recognise([hidden]))


def test_a_stated_interval_is_part_of_the_release() -> None:
    release = released("a,value,status,low,high\n1,,A,2,4.5\n2,5,F,,\n3,,N,,\n")
    assert release.low is not None
    assert release.high is not None
    assert release.low.tolist() == [20, 50, 0]
    assert release.high.tolist() == [45, 50, UNBOUNDED]
