"""Eurostat's flat files: flags beside figures, years across, codes joined in one column."""

from __future__ import annotations

from corpus.build.attack import Book, Cell, Dim, Fact, flat, leak, secure, tree, true_table
from corpus.build.case import Case, case, reread, with_rest
from corpus.build.layout import (
    code,
    const,
    delimited,
    flag,
    long,
    number,
    plain,
    standing,
    value,
    wide,
)

GEO = tree("geo", ["XX", "XX1", "XX2", "XX3", "XX4"])
NACE = tree("nace_r2", ["TOTAL", "B", ["C", "C10-C12", "C13-C15", "C16-C18"], "D", "E"])
YEARS = flat("TIME_PERIOD", "2020", "2021")
JOIN = r"freq,unit,nace_r2,geo\TIME_PERIOD"


def joined(book: Book, mark: str, shown: dict[int, str] | None = None) -> list[list[str]]:
    """Eurostat's TSV: the codes joined by commas, a flag after a space behind each figure."""
    places = {cell: i for i, cell in enumerate(book.values)}

    def form(cell: Cell) -> str:
        return f"{book.values[cell]} {(shown or {}).get(places[cell] % 7, '')}"

    rows = wide(book, 2, ["nace_r2", "geo"], mark, form, by_cell=True)  # type: ignore[arg-type]
    head = [JOIN, *(f"{year} " for year in rows[0][2:])]
    return [head, *([f"A,NR,{row[0]},{row[1]}", *row[2:]] for row in rows[1:])]


@case(
    "eurostat",
    "tsv-flags",
    "Eurostat TSV; codes joined in the first column, ': c' for hidden, 'p' and 'e' flags",
)
def _() -> Case:
    book = leak(true_table(101, NACE, tree("geo", ["XX", "XX1", "XX2"]), YEARS, low=5, high=90), 1)
    return Case(
        book,
        "disclosed",
        {".csv": delimited(joined(book, ": c", {2: "p", 5: "e"}), "\t")},
        [],
        "c confidential, e estimated, p provisional; ':' not available.",
        wanted="--format eurostat-tsv",
    )


@case("eurostat", "tsv-safe", "Eurostat TSV; ': c' for hidden values, no leak")
def _() -> Case:
    book = secure(
        true_table(102, NACE, tree("geo", ["XX", "XX1", "XX2"]), YEARS, low=5, high=90), 2
    )
    return Case(
        book,
        "safe",
        {".csv": delimited(joined(book, ": c", {3: "b"}), "\t")},
        [],
        "b break in series, c confidential.",
        wanted="--format eurostat-tsv",
    )


@case(
    "eurostat",
    "linear-obs-flag",
    "Eurostat linear CSV; OBS_FLAG c beside empty values, CONF_STATUS column empty",
)
def _() -> Case:
    book = secure(true_table(103, NACE, GEO, low=5, high=900), 3)
    rows = long(
        book,
        const("DATAFLOW", "ESTAT:SBS_X(1.0)"),
        const("LAST UPDATE", "01/03/23 23:00:00"),
        const("freq", "A"),
        code("nace_r2", 0),
        code("geo", 1),
        const("TIME_PERIOD", "2021"),
        value(book, "OBS_VALUE"),
        flag(book, "OBS_FLAG", "c"),
    )
    options = ["--by", "nace_r2,geo", "--value", "OBS_VALUE", "--total", "geo=XX"]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        options,
        "XX is the country; XX1 to XX4 its regions.",
    )


@case("eurostat", "linear-standing", "Eurostat linear CSV; the flag c was set, the figure stayed")
def _() -> Case:
    book = secure(true_table(104, NACE, GEO, low=5, high=900), 4)
    rows = long(
        book,
        const("freq", "A"),
        code("nace_r2", 0),
        code("geo", 1),
        const("TIME_PERIOD", "2021"),
        standing(book, "OBS_VALUE"),
        flag(book, "OBS_FLAG", "c"),
    )
    options = ["--by", "nace_r2,geo", "--value", "OBS_VALUE", "--total", "geo=XX"]
    return Case(
        book, "disclosed", {".csv": delimited(rows)}, options, "c confidential. XX is the country."
    )


@case(
    "eurostat",
    "range-codes",
    "Eurostat-like; codes such as C10-C12 and an aggregate B-E that repeats the total",
)
def _() -> Case:
    base = tree("nace_r2", "B", ["C", "C10-C12", "C13-C15", "C16-C18"], "D", "E")
    nace = Dim("nace_r2", {"B-E": frozenset(base.leaves), **base.codes})
    book = leak(true_table(105, nace, GEO, low=3, high=300), 5)
    rows = long(book, code("nace_r2", 0), code("geo", 1), value(book, "value", ":c"))
    options = ["--total", "geo=XX", "--total", "nace_r2=B-E", "--hidden", ":c"]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        options,
        "B-E: industry as a whole. :c confidential.",
    )


@case(
    "eurostat",
    "overlapping-aggregates",
    "Eurostat-like; aggregates that overlap (C-D, D-E) beside sections",
)
def _() -> Case:
    codes = ["B", "C", "D", "E"]
    nace = Dim(
        "nace_r2",
        {
            "TOTAL": frozenset(codes),
            **{c: frozenset({c}) for c in codes},
            "C-D": frozenset({"C", "D"}),
            "D-E": frozenset({"D", "E"}),
        },
    )
    book = true_table(106, nace, low=30, high=300, counts=False)
    book.hidden = [("value", "C"), ("value", "B"), ("value", "E")]
    rows = long(book, code("nace_r2", 0), value(book, "value", ":"))
    tree_file = '"C-D" = ["C", "D"]\n"D-E" = ["D", "E"]\nTOTAL = ["B", "C", "D", "E"]\n'
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows), "-groups.hierarchy.toml": tree_file.encode()},
        ["--hierarchy", "nace_r2={stem}-groups.hierarchy.toml"],
        "C-D and D-E add up the sections that they name.",
    )


@case(
    "eurostat",
    "nuts-levels",
    "Eurostat-like; NUTS codes at three levels, each a prefix of the next",
)
def _() -> Case:
    geo = tree(
        "geo",
        ["XY", ["XY1", "XY11", "XY12", "XY13"], ["XY2", "XY21", "XY22"], ["XY3", "XY31", "XY32"]],
    )
    book = leak(true_table(107, geo, tree("sex", ["T", "F", "M"]), low=1, high=30), 7)
    rows = long(
        book,
        code("geo", 0),
        code("sex", 1),
        value(book, "OBS_VALUE", ":"),
        flag(book, "OBS_FLAG", "c"),
    )
    options = ["--by", "geo,sex", "--value", "OBS_VALUE", "--total", "geo=XY", "--total", "sex=T"]
    return Case(
        book, "disclosed", {".csv": delimited(rows)}, options, "NUTS regions add up level by level."
    )


@case(
    "eurostat",
    "nuts-missing-level",
    "Eurostat-like; NUTS 3 regions under the country, the level between not printed",
)
def _() -> Case:
    geo = tree("geo", ["XY", ["?XY1", "XY11", "XY12", "XY13"], ["?XY2", "XY21", "XY22"]])
    book = secure(true_table(108, geo, tree("sex", ["T", "F", "M"]), low=4, high=30), 8)
    rows = long(
        book,
        code("geo", 0),
        code("sex", 1),
        value(book, "OBS_VALUE", ":"),
        flag(book, "OBS_FLAG", "c"),
    )
    options = ["--by", "geo,sex", "--value", "OBS_VALUE", "--total", "geo=XY", "--total", "sex=T"]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        options,
        "The regions listed add up to the country.",
    )


@case(
    "eurostat",
    "colon-not-available",
    "Eurostat-like; ':' alone for values that nobody collected, ':c' for hidden",
)
def _() -> Case:
    geo = tree("geo", ["XX", "XX1", "XX2", "XX3"])
    book = true_table(109, geo, YEARS, low=30, high=300)
    book.hidden = [("value", "XX2", "2021")]
    book.values["value", "XX3", "2021"] = 0
    book.values["value", "XX", "2021"] = sum(book.values["value", f"XX{i}", "2021"] for i in (1, 2))
    gone = ("value", "XX3", "2021")
    rows = long(
        book,
        code("geo", 0),
        code("TIME_PERIOD", 1),
        (
            "OBS_VALUE",
            lambda c: ":" if c == gone else "" if c in book.hidden else str(book.values[c]),
        ),
        ("OBS_FLAG", lambda c: "z" if c == gone else "c" if c in book.hidden else ""),
    )
    book.facts.append(Fact(((gone, 1),), 0, 0))
    return Case(
        reread(book, hidden=[("value", "XX2", "2021"), gone]),
        "disclosed",
        {".csv": delimited(rows)},
        [
            "--by",
            "geo,TIME_PERIOD",
            "--value",
            "OBS_VALUE",
            "--total",
            "geo=XX",
            "--no-totals",
            "TIME_PERIOD",
        ],
        "z: not applicable, the region has no such activity. c: confidential.",
        wanted="--zero-status z",
        reason="The flag z may mean 0 or a value that is missing; the total then holds more.",
        readings=[
            ("':' with z hides a value like c", reread(book, hidden=[*book.hidden, gone], facts=[]))
        ],
    )


@case(
    "eurostat",
    "country-code-total",
    "Eurostat-like; the total row is a bare country code, one region hidden",
)
def _() -> Case:
    geo = tree("geo", ["MT", "MT001", "MT002", "MT003"])
    dims = (geo, flat("TIME_PERIOD", "2021"))
    book = true_table(110, *dims, low=30, high=300)
    book.hidden = [("value", "MT002", "2021")]
    rows = long(book, code("geo", 0), code("TIME_PERIOD", 1), value(book, "OBS_VALUE", ":c"))
    outside = reread(
        book,
        (with_rest(geo, "MT"), dims[1]),
        values={("value", "MT002", "2021"): book.values["value", "MT002", "2021"] // 2},
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--by", "geo", "--value", "OBS_VALUE", "--hidden", ":c", "--total", "geo=MT"],
        "MT is the sum of its regions.",
        reason="The codes look like a tree, but no complete column shows that all parts are listed.",
        readings=[("MT holds more than the regions listed", outside)],
    )


@case(
    "eurostat",
    "extra-regio",
    "Eurostat-like; the country holds an extra-regio part that the file does not list",
)
def _() -> Case:
    geo = with_rest(tree("geo", ["XZ", "XZ11", "XZ12", "XZ13"]), "XZ")
    dims = (geo, flat("TIME_PERIOD", "2021"))
    book = true_table(111, *dims, low=30, high=300)
    book.hidden = [("value", "XZ12", "2021")]
    rows = long(book, code("geo", 0), code("TIME_PERIOD", 1), value(book, "OBS_VALUE", ":c"))
    plain_sum = book.values["value", "XZ", "2021"] - sum(
        book.values["value", f"XZ1{i}", "2021"] for i in (1, 3)
    )
    outside = reread(
        book,
        (tree("geo", ["XZ", "XZ11", "XZ12", "XZ13"]), dims[1]),
        values={("value", "XZ12", "2021"): plain_sum},
    )
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        [
            "--by",
            "geo",
            "--value",
            "OBS_VALUE",
            "--hidden",
            ":c",
            "--total",
            "geo=XZ",
            "--rest",
            "geo",
        ],
        "XZ includes Extra-Regio, which is not listed.",
        reason="The codes look like a tree, but no complete column shows that all parts are listed.",
        readings=[("XZ is the sum of the regions listed", outside)],
        usual=True,
    )


@case(
    "eurostat",
    "flags-in-values",
    "Eurostat-like; figure and flag in one field ('123p', ':c'), pipe separators",
)
def _() -> Case:
    book = leak(true_table(112, NACE, GEO, low=3, high=200), 12)
    places = {cell: i for i, cell in enumerate(book.values)}

    def write(cell: Cell) -> str:
        if cell in book.hidden:
            return ":c"
        return plain(book.values[cell]) + ("p" if places[cell] % 6 == 1 else "")

    rows = long(book, code("nace_r2", 0), code("geo", 1), ("value", write))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, "|")},
        ["--total", "geo=XX", "--hidden", ":c"],
        "p provisional, c confidential.",
        wanted="--flags p: letters behind a figure that leave it as it is",
    )


@case(
    "eurostat",
    "decimals-in-millions",
    "Eurostat-like; million euros with one decimal, each rounded, a part hidden",
)
def _() -> Case:
    book = true_table(113, NACE, flat("geo", "XX"), low=300, high=9000, noise=0.5, counts=False)
    book.hidden = [("value", "C13-C15", "XX")]
    book.values["value", "TOTAL", "XX"] += 1
    book.values["value", "C", "XX"] -= 1
    rows = long(
        book, code("nace_r2", 0), code("geo", 1), value(book, "OBS_VALUE", ":", number(places=1))
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--by", "nace_r2,geo", "--value", "OBS_VALUE", "--no-totals", "geo"],
        "Million euros, rounded; sums may not agree in the last digit.",
        wanted="--rounding-noise 0.05",
    )
