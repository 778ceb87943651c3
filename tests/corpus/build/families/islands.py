"""The United Kingdom, Ireland, Australia, New Zealand and Japan: shorthand in brackets, rounding."""

from __future__ import annotations

from corpus.build.attack import Cell, Dim, Fact, flat, leak, secure, tree, true_table
from corpus.build.case import Case, case, peer, reread
from corpus.build.layout import code, const, delimited, flag, half_up, long, number, value, wide

UK = tree("Geography", ["United Kingdom", "England", "Wales", "Scotland", "Northern Ireland"])
SIC = tree("SIC", ["All industries", "05", "06", "07", "08"])
UK_BY = [
    "--by",
    "Geography,SIC",
    "--total",
    "Geography=United Kingdom",
    "--total",
    "SIC=All industries",
]
SHORT = "[c] confidential, [x] not available, [z] not applicable."


@case(
    "ons", "v4-columns", "ONS V4 download; V4_0 holds values, codes and labels in pairs of columns"
)
def _() -> Case:
    book = leak(true_table(301, UK, SIC, low=3, high=200), 1)
    codes = {
        "United Kingdom": "K02000001",
        "England": "E92000001",
        "Wales": "W92000004",
        "Scotland": "S92000003",
    }
    codes["Northern Ireland"] = "N92000002"
    rows = long(
        book,
        value(book, "V4_1", ""),
        flag(book, "Data Marking", "c"),
        const("calendar-years", "2021"),
        const("Time", "2021"),
        code("administrative-geography", 0, codes),
        code("Geography", 0),
        code("SIC", 1),
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        [*UK_BY, "--value", "V4_1"],
        "Data Marking c: confidential.",
    )


@case(
    "ons",
    "bracket-shorthand",
    "GSS spreadsheet rules; [c] for hidden, title and notes above the table",
)
def _() -> Case:
    book = secure(true_table(302, UK, SIC, low=3, high=200), 2)
    rows = wide(book, 1, ["Geography"], "[c]", number(","))
    above = [
        "Table 3: Enterprises by country and industry",
        "This worksheet contains one table.",
        SHORT.replace(",", ";"),
    ]
    columns = [a for s in SIC.codes for a in ("--value", s)]
    relation = ["--relation", "All industries = 05 + 06 + 07 + 08"]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows, above=above)},
        ["--total", "Geography=United Kingdom", "--hidden", "[c]", *columns, *relation],
        SHORT,
        wanted="--skip 3, and names with spaces and digits in --relation",
    )


@case(
    "ons",
    "nested-countries",
    "ONS-like; United Kingdom, Great Britain, England and Wales, nested totals",
)
def _() -> Case:
    area = tree(
        "Area",
        [
            "United Kingdom",
            ["Great Britain", ["England and Wales", "England", "Wales"], "Scotland"],
            "Northern Ireland",
        ],
    )
    book = true_table(303, area, low=30, high=900)
    book.hidden = [("value", "Wales"), ("value", "Northern Ireland")]
    rows = long(book, code("Area", 0), value(book, "Count", "[c]"))
    lines = [
        "Great Britain",
        "@England and Wales",
        "@@England",
        "@@Wales",
        "@Scotland",
        "Northern Ireland",
    ]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows), ".hrc": ("\n".join(lines) + "\n").encode()},
        [
            "--value",
            "Count",
            "--hidden",
            "[c]",
            "--total",
            "United Kingdom",
            "--hierarchy",
            "Area={stem}.hrc",
        ],
        "England and Wales, Great Britain and United Kingdom are totals of the countries named.",
        reason="The nesting of the countries is not in the file.",
        readings=[
            (
                "all rows are areas of their own",
                reread(book, (Dim("Area", {c: frozenset({c}) for c in area.codes}),)),
            ),
        ],
    )


@case(
    "ons", "nomis-star", "NOMIS download; title block of eight lines, '*' for hidden, '-' for zero"
)
def _() -> Case:
    area = tree("Area", ["Total", "Ashby", "Barton", "Corby", "Denby"])
    jobs = flat("item", "Full-time", "Part-time")
    book = secure(true_table(304, area, jobs, low=4, high=80), 4)
    for_zero = [c for c in book.cells if book.values[c] == 0 and c not in book.hidden]
    assert not for_zero
    rows = wide(book, 1, ["Area"], "*")
    above = [
        "business register",
        "ONS Crown Copyright Reserved",
        "",
        "date:,2021",
        "measure:,count",
        "",
    ]
    below = ["", "* These figures are suppressed as statistically unreliable."]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows, above=above, below=below)},
        ["--value", "Full-time", "--value", "Part-time", "--hidden", "*"],
        "*: suppressed.",
        wanted="--skip 6, and an end of the table before the note",
    )


@case(
    "ons", "low-shorthand", "GSS spreadsheet rules; [low] says that a value is above 0 and below 5"
)
def _() -> Case:
    book = true_table(305, UK, flat("item", "Claims"), low=20, high=200)
    low = {("value", "Wales", "Claims"): 4, ("value", "Scotland", "Claims"): 4}
    total = ("value", "United Kingdom", "Claims")
    for cell, v in low.items():
        book.values[total] += v - book.values[cell]
        book.values[cell] = v
        book.facts.append(Fact(((cell, 1),), 1, 4))
    book.hidden = list(low)
    rows = long(book, code("Geography", 0), code("item", 1), value(book, "value", "[low]"))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--total", "Geography=United Kingdom", "--no-totals", "item", "--hidden", "[low]"],
        "[low]: a count from 1 to 4.",
        wanted="--hidden '[low]=1..4'",
        reason="Nobody knows from the file alone what [low] says about a value.",
        readings=[("[low] hides any value", reread(book, facts=[]))],
    )


@case(
    "ons", "low-shorthand-safe", "GSS spreadsheet rules; [low] means 1 to 9, three of them in a row"
)
def _() -> Case:
    book = true_table(306, UK, flat("item", "Claims"), low=20, high=200)
    low = {
        ("value", "Wales", "Claims"): 3,
        ("value", "Scotland", "Claims"): 6,
        ("value", "Northern Ireland", "Claims"): 5,
    }
    total = ("value", "United Kingdom", "Claims")
    for cell, v in low.items():
        book.values[total] += v - book.values[cell]
        book.values[cell] = v
        book.facts.append(Fact(((cell, 1),), 1, 9))
    book.hidden = list(low)
    rows = long(book, code("Geography", 0), code("item", 1), value(book, "value", "[low]"))
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        ["--total", "Geography=United Kingdom", "--no-totals", "item", "--hidden", "[low]"],
        "[low]: a count from 1 to 9.",
        wanted="--hidden '[low]=1..9'",
    )


@case("ons", "rounded-to-five", "ONS-like; every count rounded to the nearest 5, no cell hidden")
def _() -> Case:
    book = secure(true_table(307, UK, SIC, low=6, high=400), 7)
    book.noise, book.counts = 2.0, False
    for i, cell in enumerate(book.values):
        book.values[cell] = 5 * half_up(book.values[cell] + i % 2, 5)
    book.counts = True
    rows = long(book, code("Geography", 0), code("SIC", 1), value(book, "value", "[c]"))
    options = [
        "--total",
        "Geography=United Kingdom",
        "--total",
        "SIC=All industries",
        "--hidden",
        "[c]",
    ]
    options += ["--rounded", "5", "--how", "nearest"]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        options,
        "Counts are rounded to the nearest 5; [c] confidential.",
    )


@case(
    "ons",
    "england-is-a-region",
    "ONS-like; regions of England listed below England, one hidden, no codes",
)
def _() -> Case:
    area = tree("Area", ["England", "North", "Midlands", "South"], "Wales")
    book = true_table(308, area, low=30, high=900)
    book.hidden = [("value", "Midlands")]
    rows = long(book, code("Area", 0), value(book, "Count", "c"))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows), ".hrc": b"England\n@North\n@Midlands\n@South\nWales\n"},
        ["--value", "Count", "--hierarchy", "Area={stem}.hrc", "--no-totals", "Area"],
        "North, Midlands and South make up England; Wales stands alone.",
        reason="The nesting of the regions is not in the file.",
        readings=[
            (
                "all rows are areas of their own",
                reread(book, (Dim("Area", {c: frozenset({c}) for c in area.codes}),)),
            ),
        ],
    )


@case(
    "ons", "ireland-state", "CSO-like (Ireland); 'State' as total, counties, values hidden by '..'"
)
def _() -> Case:
    county = tree("County", ["State", "Clare", "Cork", "Kerry", "Mayo"])
    sex = tree("Sex", ["Both sexes", "Male", "Female"])
    book = secure(true_table(309, county, sex, low=4, high=90), 9)
    rows = long(
        book,
        const("STATISTIC", "XYZ01"),
        const("TLIST(A1)", "2022"),
        code("County", 0),
        code("Sex", 1),
        const("UNIT", "Number"),
        value(book, "VALUE", ".."),
    )
    options = [
        "--by",
        "County,Sex",
        "--value",
        "VALUE",
        "--total",
        "County=State",
        "--total",
        "Sex=Both sexes",
    ]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows, quote="all", encoding="utf-8-sig")},
        options,
        "..: confidential.",
    )


# Australia, New Zealand, Japan.


@case("pacific", "abs-np", "ABS-like; 'np' not for publication, states down, 'Australia' last")
def _() -> Case:
    states = tree("State", ["Australia", "NSW", "Vic.", "Qld", "WA", "Tas."])
    states = Dim(
        "State",
        {
            **{c: p for c, p in states.codes.items() if c != "Australia"},
            "Australia": states.codes["Australia"],
        },
    )
    kinds = tree("Status", ["Total", "Employed", "Unemployed"])
    book = leak(true_table(311, states, kinds, low=3, high=90), 11)
    rows = long(book, code("State", 0), code("Status", 1), value(book, "value", "np"))
    options = ["--total", "State=Australia", "--hidden", "np"]
    return Case(
        book, "disclosed", {".csv": delimited(rows)}, options, "np: not available for publication."
    )


@case("pacific", "abs-one-column", "ABS-like; one column with Australia last, one state 'np'")
def _() -> Case:
    states = tree("State", ["Australia", "NSW", "Vic.", "Qld", "WA"])
    states = Dim(
        "State",
        {
            **{c: p for c, p in states.codes.items() if c != "Australia"},
            "Australia": states.codes["Australia"],
        },
    )
    book = true_table(312, states, low=30, high=900)
    book.hidden = [("value", "Qld")]
    rows = long(book, code("State", 0), value(book, "value", "np"))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, "\t")},
        ["--total", "State=Australia", "--hidden", "np"],
        "Australia is the sum of the states listed.",
        reason="The file does not say that Australia is a total.",
        readings=[("Australia is one more row", reread(book, (peer(states, "Australia"),)))],
    )


@case(
    "pacific",
    "abs-other-territories",
    "ABS-like; Australia includes other territories that are not listed",
)
def _() -> Case:
    listed = tree("State", ["Australia", "NSW", "Vic.", "Qld"])
    states = Dim("State", {**listed.codes, "Australia": listed.codes["Australia"] | {"?other"}})
    book = true_table(313, states, low=30, high=900)
    book.hidden = [("value", "Vic.")]
    rows = long(book, code("State", 0), value(book, "value", "np"))
    rest = (
        book.values["value", "Australia"]
        - book.values["value", "NSW"]
        - book.values["value", "Qld"]
    )
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        ["--total", "State=Australia", "--hidden", "np", "--rest", "State"],
        "Australia includes Other Territories, which are not shown.",
        reason="The file does not show whether Australia is the sum of the states listed.",
        readings=[
            (
                "Australia is the sum of the states",
                reread(book, (listed,), values={("value", "Vic."): rest}),
            )
        ],
    )


def rounded_three(values: dict[Cell, int]) -> dict[Cell, int]:
    """Each value to an adjacent multiple of 3, by its place in the table."""
    return {
        c: v - v % 3 + (3 if v % 3 and i % 3 < v % 3 else 0)
        for i, (c, v) in enumerate(values.items())
    }


@case(
    "pacific",
    "nz-random-rounding",
    "Stats NZ-like; counts rounded at random to base 3, '..C' for hidden",
)
def _() -> Case:
    area = tree("Area", ["Total", "North", "East", "South", "West"])
    sex = tree("Sex", ["Total", "Female", "Male"])
    book = secure(true_table(314, area, sex, low=6, high=90), 14)
    book.noise = 2.0
    book.values = {**rounded_three(book.values), **{c: book.values[c] for c in book.hidden}}
    rows = long(book, code("Area", 0), code("Sex", 1), value(book, "value", "..C"))
    options = ["--rounded", "3", "--hidden", "..C"]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        options,
        "Counts are randomly rounded to base 3. ..C: confidential.",
    )


@case(
    "pacific",
    "nz-letter-c",
    "Stats NZ-like; 'C' in the value column, districts below regions by dotted codes",
)
def _() -> Case:
    area = tree("code", ["0", ["1", "1.1", "1.2", "1.3"], ["2", "2.1", "2.2"]])
    book = leak(true_table(315, area, tree("sex", ["Total", "F", "M"]), low=3, high=60), 15)
    rows = long(book, code("code", 0), code("sex", 1), value(book, "value", "C"))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--total", "code=0"],
        "0: New Zealand; 1.1 belongs to 1. C: confidential.",
    )


@case(
    "pacific",
    "japan-x-and-dash",
    "e-Stat-like; X for hidden, '-' for none, thousands separators in quotes",
)
def _() -> Case:
    pref = tree("Prefecture", ["Japan", "Aomori", "Iwate", "Akita", "Fukui"])
    size = tree("Size", ["Total", "1-4", "5-9", "10 or more"])
    book = secure(true_table(316, pref, size, low=4, high=2000, zeros=20), 16)
    rows = long(
        book,
        code("Prefecture", 0),
        code("Size", 1),
        (
            "value",
            lambda c: (
                "X" if c in book.hidden else number(",")(book.values[c]) if book.values[c] else "-"
            ),
        ),
    )
    note = "X: kept secret. -: none."
    options = ["--total", "Prefecture=Japan"]
    return Case(book, "safe", {".csv": delimited(rows)}, options, note, wanted="--zero '-'")


@case(
    "pacific",
    "japan-leak",
    "e-Stat-like; X for hidden, '-' for none, one X follows because '-' is 0",
)
def _() -> Case:
    pref = tree("Prefecture", ["Japan", "Aomori", "Iwate", "Akita"])
    book = true_table(317, pref, flat("item", "Farms"), low=30, high=90)
    zero, cell, total = (
        ("value", "Iwate", "Farms"),
        ("value", "Akita", "Farms"),
        ("value", "Japan", "Farms"),
    )
    book.values[total] -= book.values[zero]
    book.values[zero] = 0
    book.hidden = [cell]
    rows = long(
        book,
        code("Prefecture", 0),
        code("item", 1),
        ("value", lambda c: "X" if c == cell else str(book.values[c]) if book.values[c] else "-"),
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--total", "Prefecture=Japan", "--no-totals", "item"],
        "X: kept secret. -: none (0).",
        wanted="--zero '-'",
        reason="'-' is 0 in one office and a hidden value in another.",
        readings=[("'-' hides a value too", reread(book, hidden=[zero, cell]))],
    )
