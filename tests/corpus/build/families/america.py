"""Statistics Canada and the United States: identifiers, symbols, disclosure codes beside zeros."""

from __future__ import annotations

from collections.abc import Callable

from corpus.build.attack import Book, Cell, Fact, flat, leak, secure, tree, true_table
from corpus.build.case import Case, case, peer, reread
from corpus.build.layout import (
    Column,
    code,
    const,
    delimited,
    flag,
    half_up,
    long,
    number,
    standing,
    value,
    wide,
)

GEO = tree("GEO", ["Canada", "Newfoundland and Labrador", "Nova Scotia", "Quebec", "Ontario"])
NAICS = "North American Industry Classification System (NAICS)"
INDUSTRY = tree(NAICS, ["All industries", "Mining [21]", "Utilities [22]", "Construction [23]"])
DEEP = tree(
    NAICS,
    [
        "Total, all industries",
        ["Manufacturing [31-33]", "Food [311]", "Beverages [312]", "Textiles [313]"],
        ["Retail trade [44-45]", "Motor vehicles [441]", "Furniture [442]"],
    ],
)
CANADA = ["--by", f"GEO,{NAICS}", "--value", "VALUE", "--total", "GEO=Canada"]
ALL = [*CANADA, "--total", f"{NAICS}=All industries"]
SYMBOLS = "x: suppressed to meet the confidentiality requirements of the Statistics Act. ..: not available."


def cansim(book: Book, values: Column, status: Column, ids: bool = True) -> list[list[str]]:
    places = {cell: i + 1 for i, cell in enumerate(book.values)}
    vectors = [
        ("VECTOR", lambda c: f"v{4100000 + places[c]}"),
        (
            "COORDINATE",
            lambda c: (
                f"{list(book.dims[0].codes).index(c[1]) + 1}.{list(book.dims[1].codes).index(c[2]) + 1}"
            ),
        ),
    ]
    return long(
        book,
        const("REF_DATE", "2021"),
        code("GEO", 0),
        ("DGUID", lambda c: f"2021A000{list(book.dims[0].codes).index(c[1])}"),
        code(NAICS, 1),
        const("UOM", "Number"),
        const("UOM_ID", "223"),
        const("SCALAR_FACTOR", "units"),
        const("SCALAR_ID", "0"),
        *(vectors if ids else []),
        values,
        status,
        const("SYMBOL", ""),
        const("TERMINATED", ""),
        const("DECIMALS", "0"),
    )


IDS = "--ignore DGUID,UOM_ID,SCALAR_ID,VECTOR,COORDINATE,DECIMALS: identifiers, not figures"


@case(
    "statcan",
    "status-x",
    "StatCan table download; VALUE empty and STATUS x, total 'Canada', identifier columns",
)
def _() -> Case:
    book = leak(true_table(201, GEO, INDUSTRY, low=2, high=400), 1)
    rows = cansim(book, value(book, "VALUE"), flag(book, "STATUS", "x"))
    files = {".csv": delimited(rows, quote="all", encoding="utf-8-sig")}
    return Case(book, "disclosed", files, ALL, SYMBOLS, wanted=IDS)


@case(
    "statcan",
    "status-x-safe",
    "StatCan table download; STATUS x and F (too unreliable), nothing leaks",
)
def _() -> Case:
    book = secure(true_table(202, GEO, INDUSTRY, low=2, high=400), 2, primaries=3)
    odd = book.hidden[0]
    letters = "STATUS", lambda c: "F" if c == odd else "x" if c in book.hidden else ""
    rows = cansim(book, value(book, "VALUE"), letters)
    files = {".csv": delimited(rows, quote="all", encoding="utf-8-sig")}
    return Case(
        book, "safe", files, ALL, SYMBOLS + " F: too unreliable to be published.", wanted=IDS
    )


@case(
    "statcan",
    "quality-letters",
    "StatCan-like; STATUS A to E is the quality of a shown figure, x hides",
)
def _() -> Case:
    book = secure(true_table(203, GEO, INDUSTRY, low=2, high=400), 3)
    places = {cell: i for i, cell in enumerate(book.values)}
    letters = "STATUS", lambda c: "x" if c in book.hidden else "ABCDE"[places[c] % 5]
    rows = long(book, code("GEO", 0), code(NAICS, 1), value(book, "VALUE"), letters)
    shown = [c for c in book.cells if c not in book.hidden and letters[1](c) in "AD"]
    stands = [Fact(((c, 1),), book.values[c], book.values[c]) for c in shown]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        ALL,
        SYMBOLS + " A excellent, B very good, C good, D acceptable, E use with caution.",
        wanted="--shown-status A,B,C,D,E",
        reason="A and D beside values may be the quality of a figure, or reasons for hiding it.",
        readings=[
            (
                "A and D mark confidential cells that still stand",
                reread(book, hidden=[*book.hidden, *shown], facts=stands),
            )
        ],
    )


@case(
    "statcan",
    "canada-by-prefix",
    "StatCan-like; one column, NAICS-like prefix codes, total 'Canada' at the end",
)
def _() -> Case:
    dim = tree("industry", ["Canada", ["D", "D1", "D2"], ["E", "E1", "E2"]])
    dim = type(dim)(
        dim.name,
        {**{c: p for c, p in dim.codes.items() if c != "Canada"}, "Canada": dim.codes["Canada"]},
    )
    book = true_table(204, dim, low=50, high=600)
    book.hidden = [("value", "D1")]
    rows = long(book, code("industry", 0), value(book))
    return Case(
        book, "disclosed", {".csv": delimited(rows)}, ["--total", "Canada"], "Canada is the total."
    )


@case(
    "statcan",
    "canada-unlisted-name",
    "StatCan-like; provinces and 'Canada' in one column, one province hidden",
)
def _() -> Case:
    dim = tree("GEO", ["Canada", "Quebec", "Ontario", "Manitoba", "Alberta"])
    book = true_table(205, dim, low=50, high=600)
    book.hidden = [("value", "Manitoba")]
    rows = long(book, code("GEO", 0), value(book, "VALUE", "x"))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--value", "VALUE", "--total", "Canada"],
        "Canada is the sum of the provinces and territories listed.",
        reason="A machine cannot know that Canada is the sum of the four names below it.",
        readings=[("Canada is one of five areas", reread(book, (peer(dim, "Canada"),)))],
    )


@case(
    "statcan",
    "brackets-in-labels",
    "StatCan-like; NAICS codes in square brackets behind labels, two levels",
)
def _() -> Case:
    book = leak(true_table(206, DEEP, GEO, low=2, high=90), 6)
    rows = long(
        book, code(NAICS, 0), code("GEO", 1), value(book, "VALUE", ".."), flag(book, "STATUS", "x")
    )
    lines = ["Manufacturing [31-33]", "@Food [311]", "@Beverages [312]", "@Textiles [313]"]
    lines += ["Retail trade [44-45]", "@Motor vehicles [441]", "@Furniture [442]"]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, quote="text"), ".hrc": ("\n".join(lines) + "\n").encode()},
        [*CANADA, "--hierarchy", NAICS + "={stem}.hrc"],
        SYMBOLS + " The classification lists 311 to 313 below 31-33.",
    )


@case(
    "statcan",
    "years-across",
    "StatCan web view; provinces down, years across, title above and symbols below",
)
def _() -> Case:
    years = flat("year", "2019", "2020", "2021")
    geo = tree("Geography", ["Canada", "Quebec", "Ontario", "Manitoba", "Alberta", "Yukon"])
    book = secure(true_table(207, geo, years, low=5, high=900), 7)
    rows = wide(book, 1, ["Geography"], "x", number(","))
    above = ['"Farms reporting, by province"', '"Table: 32-10-9999-01"', ""]
    below = ["", '"Symbol legend:"', '"x","suppressed to meet the confidentiality requirements"']
    options = ["--total", "Canada"] + [a for y in years.codes for a in ("--value", y)]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows, quote="text", above=above, below=below)},
        options,
        "x: suppressed.",
        wanted="--skip 3 --until 'Symbol legend:' (title and legend)",
    )


@case(
    "statcan",
    "thousands-off-by-one",
    "StatCan-like; thousands of dollars, figures may not add to totals",
)
def _() -> Case:
    book = true_table(208, GEO, INDUSTRY, low=500, high=9000, noise=0.5, counts=False)
    secure(book, 8)
    for i, cell in enumerate(book.values):
        if ("Canada" in cell or "All industries" in cell) and cell not in book.hidden:
            book.values[cell] += (i * 5 + 1) % 3 - 1
    rows = long(book, code("GEO", 0), code(NAICS, 1), value(book, "VALUE", "x"))
    note = "Thousand dollars. Figures may not add to totals due to rounding."
    return Case(book, "safe", {".csv": delimited(rows)}, ALL, note, wanted="--rounding-noise 0.5")


@case(
    "statcan",
    "canada-and-regions",
    "StatCan-like; provinces, two regions that group them, and Canada",
)
def _() -> Case:
    geo = tree(
        "GEO",
        [
            "Canada",
            ["Atlantic", "New Brunswick", "Nova Scotia"],
            ["Prairies", "Manitoba", "Alberta"],
        ],
    )
    book = leak(true_table(209, geo, INDUSTRY, low=2, high=90), 9)
    rows = long(book, code("GEO", 0), code(NAICS, 1), value(book, "VALUE", "x"))
    pairs = "code,parent\nNew Brunswick,Atlantic\nNova Scotia,Atlantic\nManitoba,Prairies\nAlberta,Prairies\n"
    pairs += "Atlantic,Canada\nPrairies,Canada\n"
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows), "-regions.csv": pairs.encode()},
        [*ALL, "--hierarchy", "GEO={stem}-regions.csv"],
        "Atlantic and Prairies are groups of provinces.",
    )


# United States.

STATES = tree("NAME", ["United States", "Alabama", "Delaware", "Vermont", "Wyoming"])
SECTOR = tree("NAICS2017", ["00", "21", "22", "23", "42"])
US_BY = ["--by", "NAME,NAICS2017", "--total", "NAME=United States", "--total", "NAICS2017=00"]


@case(
    "us",
    "economic-census-d",
    "US Economic Census; EMP with (D), labels beside codes, all text quoted",
)
def _() -> Case:
    book = leak(true_table(211, STATES, SECTOR, low=5, high=900), 11)
    labels = {
        "00": "Total for all sectors",
        "21": "Mining",
        "22": "Utilities",
        "23": "Construction",
        "42": "Wholesale",
    }
    rows = long(
        book,
        ("GEO_ID", lambda c: f"0400000US{list(book.dims[0].codes).index(c[1]):02d}"),
        code("NAME", 0),
        code("NAICS2017", 1),
        code("NAICS2017_LABEL", 1, labels),
        const("YEAR", "2017"),
        value(book, "EMP", "(D)"),
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, quote="all")},
        [*US_BY, "--value", "EMP", "--hidden", "(D)"],
        "(D) withheld to avoid disclosing data of individual companies. NAICS 00 is the total.",
        wanted="--ignore GEO_ID,YEAR",
    )


def qcew(book: Book, disclosure: str, figure: Callable[[Cell], str]) -> list[list[str]]:
    return long(
        book,
        code("area_title", 0),
        code("industry_code", 1),
        const("year", "2021"),
        ("annual_avg_emplvl", figure),
        flag(book, disclosure, "N"),
    )


QCEW = tree(
    "area_title", ["State total", "Ash County", "Birch County", "Cedar County", "Dogwood County"]
)
OWN = tree("industry_code", ["10", "1011", "1012", "1013"])


@case(
    "us", "qcew-zero-beside-n", "QCEW-like; disclosure_code N and a 0 in place of the hidden value"
)
def _() -> Case:
    book = secure(true_table(212, QCEW, OWN, low=9, high=400), 12)
    rows = qcew(book, "disclosure_code", lambda c: "0" if c in book.hidden else str(book.values[c]))
    return Case(
        book,
        "safe",
        {".csv": delimited(rows, quote="text")},
        [
            "--by",
            "area_title,industry_code",
            "--value",
            "annual_avg_emplvl",
            "--total",
            "area_title=State total",
        ],
        "disclosure_code N: not disclosed, shown as 0. Industry 10 is the total of 1011 to 1013.",
        wanted="--hidden-status N: the 0 beside it is no value",
    )


@case("us", "qcew-zero-leak", "QCEW-like; disclosure_code N and 0, one county can be subtracted")
def _() -> Case:
    book = leak(true_table(213, QCEW, OWN, low=9, high=400), 13)
    rows = qcew(book, "disclosure_code", lambda c: "0" if c in book.hidden else str(book.values[c]))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, quote="text")},
        [
            "--by",
            "area_title,industry_code",
            "--value",
            "annual_avg_emplvl",
            "--total",
            "area_title=State total",
        ],
        "disclosure_code N: not disclosed, shown as 0. Industry 10 is the total of 1011 to 1013.",
        wanted="--hidden-status N: the 0 beside it is no value",
    )


@case(
    "us", "employment-size-classes", "CBP-like; hidden values replaced by a letter of a size class"
)
def _() -> Case:
    classes = {"a": (0, 19), "b": (20, 99), "c": (100, 249), "e": (250, 499)}
    book = secure(true_table(214, STATES, SECTOR, low=1, high=450), 14, primaries=3)
    letter = {}
    for cell in book.hidden:
        v = book.values[cell]
        letter[cell] = next((k for k, (a, b) in classes.items() if a <= v <= b), "e")
        low, high = classes[letter[cell]]
        book.facts.append(Fact(((cell, 1),), low, high))
    rows = long(
        book,
        code("NAME", 0),
        code("NAICS2017", 1),
        value(book, "EMP", "0"),
        ("EMP_F", lambda c: letter.get(c, "")),
    )
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        [*US_BY, "--value", "EMP"],
        "EMP_F: a 0-19, b 20-99, c 100-249, e 250-499 employees; EMP is then 0.",
        wanted="--hidden-status EMP_F=a:0-19,b:20-99,c:100-249,e:250-499",
    )


@case(
    "us",
    "s-and-x-and-n",
    "ACS-like; (S) unreliable, (X) not applicable, N too few cases, as text in the value",
)
def _() -> Case:
    book = secure(true_table(215, STATES, SECTOR, low=5, high=300), 15, primaries=3)
    marks = {c: ("(S)", "N", "(D)")[i % 3] for i, c in enumerate(book.hidden)}
    rows = long(
        book,
        code("NAME", 0),
        code("NAICS2017", 1),
        ("ESTAB", lambda c: marks.get(c, number(",")(book.values[c]))),
    )
    options = [*US_BY, "--value", "ESTAB", "--hidden", "(S)", "--hidden", "(D)", "--hidden", "N"]
    return Case(book, "safe", {".csv": delimited(rows)}, options, "(S), (D) and N: not shown.")


@case(
    "us",
    "state-not-the-total",
    "US-like; a state name heads its counties, and one county is hidden",
)
def _() -> Case:
    dim = tree("area", ["Delaware", "Kent", "New Castle", "Sussex"])
    book = true_table(216, dim, low=100, high=900)
    book.hidden = [("value", "Kent")]
    rows = long(book, code("area", 0), value(book, "EMP", "(D)"))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--value", "EMP", "--hidden", "(D)", "--total", "Delaware"],
        "The first row is the state.",
        reason="Only geography tells that Delaware is the sum of the three names below it.",
        readings=[("Delaware is one of four areas", reread(book, (peer(dim, "Delaware"),)))],
    )


@case(
    "us",
    "agriculture-footers",
    "USDA-like; title lines, (D) and (NA), footnotes below, all in one CSV",
)
def _() -> Case:
    county = tree("County", ["State Total", "Adams", "Boone", "Clark", "Dodge", "Elk"])
    items = flat("item", "Cattle", "Hogs", "Sheep")
    book = leak(true_table(217, county, items, low=20, high=5000), 17)
    rows = wide(book, 1, ["County"], "(D)", number(","))
    above = ["Census of Agriculture - County Data", "Livestock: Inventory by County: 2022", ""]
    below = [
        "",
        "(D) Withheld to avoid disclosing data for individual operations.",
        "(NA) Not available.",
    ]
    options = ["--total", "State Total", "--hidden", "(D)"] + [
        a for i in items.codes for a in ("--value", i)
    ]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, above=above, below=below)},
        options,
        "(D): withheld. The items are separate inventories.",
        wanted="--skip 3 (title), and an end of the table before the notes",
    )


@case(
    "us",
    "three-measures",
    "Economic Census; ESTAB, EMP and PAYANN beside each other, each with its flag column",
)
def _() -> Case:
    bases = {"ESTAB": {"ESTAB": 1}, "EMP": {"EMP": 1}, "PAYANN": {"PAYANN": 1}}
    dim = tree("NAME", ["United States", "Alabama", "Delaware", "Vermont", "Wyoming"])
    book = true_table(218, dim, low=20, high=900, responses=bases)
    for response in ("EMP", "PAYANN"):
        book.hidden += [(response, "Delaware"), (response, "Wyoming")]
    rows = [["NAME", "ESTAB", "EMP", "EMP_F", "PAYANN", "PAYANN_F"]]
    for name in dim.codes:
        line = [name, str(book.values["ESTAB", name])]
        for response in ("EMP", "PAYANN"):
            secret = (response, name) in book.hidden
            line += ["" if secret else str(book.values[response, name]), "D" if secret else ""]
        rows.append(line)
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        [
            "--by",
            "NAME",
            "--total",
            "United States",
            "--value",
            "ESTAB",
            "--value",
            "EMP",
            "--value",
            "PAYANN",
        ],
        "Flags D: withheld. The three measures are unrelated but for their units.",
    )


@case(
    "us",
    "standing-behind-flag",
    "Economic Census; flag D but the figure left in the file for one measure",
)
def _() -> Case:
    book = secure(true_table(219, STATES, SECTOR, low=5, high=900), 19)
    rows = long(
        book,
        code("NAME", 0),
        code("NAICS2017", 1),
        standing(book, "RCPTOT", number(",")),
        flag(book, "RCPTOT_F", "D"),
    )
    options = [*US_BY, "--value", "RCPTOT"]
    return Case(book, "disclosed", {".csv": delimited(rows)}, options, "RCPTOT_F D: withheld.")


@case("us", "percent-of-total", "US-like; a percent column stays where the count is (D)")
def _() -> Case:
    dim = tree("Industry", ["Total", "Mining", "Utilities", "Construction", "Wholesale"])
    book = true_table(220, dim, low=100, high=900)
    book.hidden = [("value", "Mining"), ("value", "Utilities")]
    total = ("value", "Total")
    per = {c: half_up(1000 * v, book.values[total]) for c, v in book.values.items()}
    for cell in book.hidden:
        whole = book.values[total]
        book.facts.append(
            Fact(((cell, 2000),), (2 * per[cell] - 1) * whole, (2 * per[cell] + 1) * whole)
        )
    book.counts = False
    rows = long(
        book,
        code("Industry", 0),
        value(book, "Employees", "(D)"),
        ("Percent of total", lambda c: number(places=1)(per[c])),
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--value", "Employees", "--hidden", "(D)"],
        "Percent of total: employees in per cent of all industries, rounded to one decimal.",
        wanted="--percent 'Percent of total=Employees/Total'",
        reason="A column of numbers that nobody explained may or may not be computed from the hidden values.",
        readings=[("the percent column is about something else", reread(book, facts=[]))],
    )
