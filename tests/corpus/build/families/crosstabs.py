"""Crosstabs of pandas, R and spreadsheets: wide tables, margins, merged stubs, two header lines."""

from __future__ import annotations

from corpus.build.attack import Book, Fact, flat, last, leak, secure, tree, true_table
from corpus.build.case import Case, case, peer, reread
from corpus.build.layout import code, delimited, half_up, long, number, value, wide

ALL_ROWS = last(tree("area", ["All", "north", "east", "south", "west"]), "All")
ALL_COLUMNS = last(tree("job", ["All", "clerk", "cook", "nurse"]), "All")
WIDE = ["--value", "clerk", "--value", "cook", "--value", "nurse", "--value", "All"]
SUM = ["--relation", "All = clerk + cook + nurse"]


@case("crosstabs", "pandas-all", "pandas crosstab with margins, to_csv; hidden cells empty")
def _() -> Case:
    book = leak(true_table(701, ALL_ROWS, ALL_COLUMNS, low=3, high=60), 1)
    return Case(
        book,
        "disclosed",
        {".csv": delimited(wide(book, 1, ["area"]))},
        [*WIDE, *SUM],
        "All: margins of the crosstab.",
    )


@case("crosstabs", "pandas-all-safe", "pandas crosstab with margins, to_csv; nothing leaks")
def _() -> Case:
    book = secure(true_table(702, ALL_ROWS, ALL_COLUMNS, low=3, high=60), 2)
    return Case(
        book,
        "safe",
        {".csv": delimited(wide(book, 1, ["area"]))},
        [*WIDE, *SUM],
        "All: margins of the crosstab.",
    )


@case(
    "crosstabs",
    "pandas-floats",
    "pandas crosstab with margins; counts became floats (12.0) because of the gaps",
)
def _() -> Case:
    book = leak(true_table(703, ALL_ROWS, ALL_COLUMNS, low=3, high=60), 3)
    rows = wide(book, 1, ["area"], "", lambda v: f"{v}.0")
    return Case(
        book, "disclosed", {".csv": delimited(rows)}, [*WIDE, *SUM], "All: margins of the crosstab."
    )


@case(
    "crosstabs",
    "pandas-index-column",
    "pandas frame, to_csv with its index 0, 1, 2 in a column without a name",
)
def _() -> Case:
    book = secure(true_table(704, ALL_ROWS, ALL_COLUMNS, low=3, high=60), 4)
    places = {c: i for i, c in enumerate(book.cells)}
    rows = long(
        book, ("", lambda c: str(places[c])), code("area", 0), code("job", 1), value(book, "value")
    )
    options = ["--by", "area,job", "--value", "value"]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        options,
        "The first column numbers the rows.",
        wanted="--ignore ''",
    )


@case(
    "crosstabs",
    "pandas-index-leak",
    "pandas frame with its index, margins named 'All', one cell can be subtracted",
)
def _() -> Case:
    book = leak(true_table(705, ALL_ROWS, ALL_COLUMNS, low=3, high=60), 5)
    places = {c: i for i, c in enumerate(book.cells)}
    rows = long(
        book,
        ("", lambda c: str(places[c])),
        code("area", 0),
        code("job", 1),
        value(book, "count", "nan"),
    )
    options = ["--by", "area,job", "--value", "count", "--hidden", "nan"]
    return Case(
        book, "disclosed", {".csv": delimited(rows)}, options, "nan: hidden.", wanted="--ignore ''"
    )


@case(
    "crosstabs",
    "pandas-two-headers",
    "pandas crosstab of three variables; two header lines, a third with the name of the rows",
)
def _() -> Case:
    sex = flat("sex", "F", "M")
    book = leak(true_table(706, ALL_ROWS, ALL_COLUMNS, sex, low=3, high=60), 6)
    head = [["job"], ["sex"], ["area"]]
    for job in book.dims[1].codes:
        for s in sex.codes:
            head[0].append(job)
            head[1].append(s)
            head[2].append("")
    rows = head
    for area in book.dims[0].codes:
        line = [area]
        for job in book.dims[1].codes:
            for s in sex.codes:
                cell = ("value", area, job, s)
                line.append("" if cell in book.hidden else str(book.values[cell]))
        rows.append(line)
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        [],
        "All: margins; sexes are not added up.",
        wanted="--header-lines 2",
    )


@case(
    "crosstabs",
    "r-addmargins",
    "R table with addmargins, write.csv; 'Sum' as total, names in quotes",
)
def _() -> Case:
    area = last(tree("area", ["Sum", "north", "east", "south"]), "Sum")
    job = last(tree("job", ["Sum", "clerk", "cook", "nurse"]), "Sum")
    book = leak(true_table(707, area, job, low=3, high=60), 7)
    rows = wide(book, 1, [""], "NA")
    options = [
        "--value",
        "clerk",
        "--value",
        "cook",
        "--value",
        "nurse",
        "--value",
        "Sum",
        "--hidden",
        "NA",
    ]
    options += ["--relation", "Sum = clerk + cook + nurse"]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, quote="text")},
        options,
        "Sum: margins. NA: hidden.",
    )


@case("crosstabs", "r-short-header", "R write.table; the header has no field for the row names")
def _() -> Case:
    area = last(tree("area", ["Sum", "north", "east", "south"]), "Sum")
    job = last(tree("job", ["Sum", "clerk", "cook", "nurse"]), "Sum")
    book = secure(true_table(708, area, job, low=3, high=60), 8)
    rows = wide(book, 1, [""], "NA")
    rows[0] = rows[0][1:]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows, quote="text")},
        [],
        "Sum: margins. NA: hidden.",
        wanted="--row-names",
    )


@case(
    "crosstabs", "r-as-data-frame", "R as.data.frame of a table; Var1, Var2, Freq, 'Sum' as total"
)
def _() -> Case:
    area = last(tree("Var1", ["Sum", "north", "east", "south", "west"]), "Sum")
    job = last(tree("Var2", ["Sum", "clerk", "cook", "nurse"]), "Sum")
    book = secure(true_table(709, area, job, low=3, high=60), 9)
    rows = long(book, code("Var1", 0), code("Var2", 1), value(book, "Freq", "NA"))
    options = ["--value", "Freq", "--hidden", "NA", "--total", "Var1=Sum", "--total", "Var2=Sum"]
    return Case(
        book, "safe", {".csv": delimited(rows, quote="text")}, options, "Sum: margins. NA: hidden."
    )


@case(
    "crosstabs",
    "excel-grand-total",
    "Excel pivot; 'Row Labels', 'Grand Total', thousands separators in quotes",
)
def _() -> Case:
    area = last(tree("Row Labels", ["Grand Total", "north", "east", "south"]), "Grand Total")
    job = last(tree("job", ["Grand Total", "clerk", "cook", "nurse"]), "Grand Total")
    book = leak(true_table(710, area, job, low=300, high=6000), 10)
    rows = wide(book, 1, ["Row Labels"], "*", number(","))
    options = ["--total", "Row Labels=Grand Total", "--hidden", "*"]
    options += [a for c in job.codes for a in ("--value", c)]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, end="\r\n")},
        options,
        "*: hidden. Grand Total: clerk, cook and nurse.",
        wanted="names with blanks in --relation ('Grand Total = clerk + cook + nurse')",
    )


@case(
    "crosstabs",
    "excel-merged-stubs",
    "spreadsheet; the first column is merged, so that a name stands only once",
)
def _() -> Case:
    area = tree("area", ["Total", "north", "east", "south"])
    sex = tree("sex", ["Total", "F", "M"])
    years = flat("year", "2020", "2021")
    book = leak(true_table(711, area, sex, years, low=3, high=60), 11)
    rows = wide(book, 2, ["area", "sex"], "x", fill_down=False)
    options = ["--value", "2020", "--value", "2021"]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        options,
        "An empty area: as in the row above.",
        wanted="--fill-down area",
    )


@case(
    "crosstabs",
    "excel-merged-stubs-safe",
    "spreadsheet; merged first column, blank line before the total, nothing leaks",
)
def _() -> Case:
    area = last(tree("area", ["Total", "north", "east", "south"]), "Total")
    sex = tree("sex", ["Total", "F", "M"])
    years = flat("year", "2020", "2021")
    book = secure(true_table(712, area, sex, years, low=3, high=60), 12)
    rows = wide(book, 2, ["area", "sex"], "x", fill_down=False)
    at = next(i for i, r in enumerate(rows) if r[0] == "Total")
    rows.insert(at, ["", "", "", ""])
    options = ["--value", "2020", "--value", "2021"]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows, ";")},
        options,
        "An empty area: as in the row above.",
        wanted="--fill-down area",
    )


@case(
    "crosstabs",
    "years-as-columns",
    "years as columns, each year a table of its own; one year leaks",
)
def _() -> Case:
    area = tree("area", ["Total", "north", "east", "south", "west"])
    years = flat("year", "2018", "2019", "2020", "2021")
    book = leak(true_table(713, area, years, low=3, high=60), 13)
    options = [a for y in years.codes for a in ("--value", y)]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(wide(book, 1, ["area"], ".."))},
        options,
        "..: hidden.",
    )


@case(
    "crosstabs",
    "years-as-columns-safe",
    "years as columns with an X before them (R), nothing leaks",
)
def _() -> Case:
    area = tree("area", ["Total", "north", "east", "south", "west"])
    years = flat("year", "X2019", "X2020", "X2021")
    book = secure(true_table(714, area, years, low=3, high=60), 14, primaries=3)
    options = [a for y in years.codes for a in ("--value", y)] + ["--hidden", "NA"]
    return Case(
        book, "safe", {".csv": delimited(wide(book, 1, ["area"], "NA"))}, options, "NA: hidden."
    )


def shares(book: Book, per: int) -> dict[tuple[str, ...], int]:
    return {c: half_up(per * v, book.values["value", c[1], "All"]) for c, v in book.values.items()}


@case(
    "crosstabs",
    "normalised-with-n",
    "crosstab of row percentages with one decimal and the number of cases beside it",
)
def _() -> Case:
    area = flat("area", "north", "east", "south")
    job = last(tree("job", ["All", "clerk", "cook", "nurse"]), "All")
    book = true_table(715, area, job, low=2, high=30)
    per = shares(book, 1000)
    book.hidden = [c for c in book.cells if c[2] != "All"]
    for c in book.hidden:
        n = book.values["value", c[1], "All"]
        book.facts.append(Fact(((c, 2000),), (2 * per[c] - 1) * n, (2 * per[c] + 1) * n))
    rows = [["area", "clerk %", "cook %", "nurse %", "n"]]
    for a in area.codes:
        line = [a, *(number(places=1)(per["value", a, j]) for j in ("clerk", "cook", "nurse"))]
        rows.append([*line, str(book.values["value", a, "All"])])
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--value", "n", "--no-totals", "area"],
        "Per cent of n in each row. Counts are not published.",
        wanted="--percent 'clerk %,cook %,nurse % of n'",
        reason="Columns of per cent beside a number of cases give the counts back, if they are what they seem.",
        readings=[
            ("the percentages are of another survey", reread(book, facts=[], hidden=book.hidden))
        ],
    )


@case(
    "crosstabs",
    "normalised-without-n",
    "crosstab of row percentages alone, in whole per cent; no counts at all",
)
def _() -> Case:
    area = flat("area", "north", "east", "south")
    job = last(tree("job", ["All", "clerk", "cook", "nurse"]), "All")
    book = true_table(716, area, job, low=20, high=300)
    per = shares(book, 100)
    book.hidden = list(book.cells)
    for c in book.cells:
        whole = ("value", c[1], "All")
        if c[2] != "All":
            book.facts.append(Fact(((c, 200), (whole, -(2 * per[c] - 1))), 0, None))
            book.facts.append(Fact(((c, 200), (whole, -(2 * per[c] + 1))), None, 0))
    rows = [["area", "clerk", "cook", "nurse", "All"]]
    for a in area.codes:
        rows.append([a, *(f"{per['value', a, j]}%" for j in ("clerk", "cook", "nurse")), "100%"])
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        ["--no-totals", "area"],
        "Per cent of each row.",
        wanted="--percent all: the file holds no counts",
    )


@case(
    "crosstabs", "all-is-a-category", "long table; 'All' is a town, and there is no total of towns"
)
def _() -> Case:
    town = tree("town", ["All", "Au", "Egg", "Rust"])
    book = true_table(717, town, low=20, high=90)
    book.hidden = [("value", "Egg")]
    rows = long(book, code("town", 0), value(book, "value", "x"))
    apart = reread(book, (peer(town, "All"),))
    return Case(
        apart,
        "safe",
        {".csv": delimited(rows)},
        ["--no-totals", "town"],
        "All is a town in the Alps. Towns are not added up.",
        reason="'All' is a total's name in most files; no complete column shows whether it is one here.",
        readings=[("All is the sum of the towns", book)],
        usual=True,
    )


@case("crosstabs", "no-row-total", "crosstab with a total of each column but none of the rows")
def _() -> Case:
    area = tree("area", ["Total", "north", "east", "south", "west"])
    job = flat("job", "clerk", "cook", "nurse")
    book = secure(true_table(718, area, job, low=3, high=60), 18)
    options = ["--value", "clerk", "--value", "cook", "--value", "nurse"]
    return Case(
        book, "safe", {".csv": delimited(wide(book, 1, ["area"], "c"))}, options, "c: confidential."
    )


@case(
    "crosstabs",
    "overlapping-columns",
    "columns that overlap: 'with children', 'single parents', 'All'",
)
def _() -> Case:
    parts = {
        "All": {"a": 1, "b": 1, "c": 1},
        "with children": {"a": 1, "b": 1},
        "single parents": {"b": 1},
        "without children": {"c": 1},
    }
    area = tree("area", ["Total", "north", "east", "south"])
    book = true_table(719, area, low=3, high=60, responses=parts)
    book.hidden = [("without children", "north"), ("without children", "east")]
    rows = [["area", *parts]]
    for a in area.codes:
        rows.append([a, *("x" if (r, a) in book.hidden else str(book.values[r, a]) for r in parts)])
    apart = reread(book, responses={r: {r: 1} for r in parts})
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        [a for r in parts for a in ("--value", r)],
        "All: with and without children. Single parents are part of 'with children'.",
        wanted="names with blanks in --relation ('All = with children + without children')",
        reason="Which columns add up to 'All' is not in the file.",
        readings=[("the columns are unrelated", apart)],
    )


@case(
    "crosstabs",
    "overlapping-columns-safe",
    "columns 'All', 'foreign', 'German'; hidden in both, and in two rows",
)
def _() -> Case:
    parts = {"All": {"foreign": 1, "German": 1}, "foreign": {"foreign": 1}, "German": {"German": 1}}
    area = tree("area", ["Total", "north", "east", "south"])
    book = true_table(720, area, low=5, high=60, responses=parts)
    book.hidden = [(r, a) for r in ("foreign", "German") for a in ("north", "east")]
    rows = [["area", *parts]]
    for a in area.codes:
        rows.append([a, *("x" if (r, a) in book.hidden else str(book.values[r, a]) for r in parts)])
    options = [a for r in parts for a in ("--value", r)] + ["--relation", "All = foreign + German"]
    return Case(book, "safe", {".csv": delimited(rows)}, options, "All: foreign and German.")
