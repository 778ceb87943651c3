"""Code lists: prefixes, dots, indents, levels, parents, groups, totals with odd codes."""

from __future__ import annotations

from corpus.build.attack import Dim, flat, last, leak, secure, tree, true_table
from corpus.build.case import Case, case, peer, reread
from corpus.build.layout import code, const, delimited, flag, long, value

SEX = tree("sex", ["Total", "F", "M"])


def alone(dim: Dim) -> Dim:
    """The dimension as one reads it who sees no groups at all."""
    return Dim(dim.name, {c: frozenset({c}) for c in dim.codes})


@case(
    "codes",
    "prefix-hidden-part",
    "prefix codes; the group with the hidden part cannot be seen to add up",
)
def _() -> Case:
    dim = last(tree("nace", ["Canada", ["D", "D1", "D2"], ["E", "E1", "E2"]]), "Canada")
    values = {"D": 700, "D1": 600, "D2": 100, "E": 150, "E1": 100, "E2": 50, "Canada": 850}
    book = true_table(501, dim)
    book.values = {("value", k): v for k, v in values.items()}
    book.hidden = [("value", "D1")]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(long(book, code("nace", 0), value(book)))},
        ["--total", "Canada"],
        "Canada: total.",
    )


@case(
    "codes",
    "prefix-all-hidden-groups",
    "prefix codes; every group has a hidden part, none can be confirmed",
)
def _() -> Case:
    dim = tree("nace", ["Total", ["C", "C1", "C2", "C3"], ["F", "F1", "F2"]])
    book = true_table(502, dim, low=20, high=90)
    book.hidden = [("value", "C2"), ("value", "F1")]
    more = {"C": {"?c"}, "F": {"?f"}, "Total": {"?c", "?f"}}
    loose = reread(book, (Dim("nace", {c: p | more.get(c, set()) for c, p in dim.codes.items()}),))
    loose.values = {**loose.values, ("value", "C2"): 1, ("value", "F1"): 1}
    lines = "C\n@C1\n@C2\n@C3\nF\n@F1\n@F2\n"
    return Case(
        book,
        "disclosed",
        {
            ".csv": delimited(long(book, code("nace", 0), value(book, "value", "c"))),
            ".hrc": lines.encode(),
        },
        ["--hierarchy", "nace={stem}.hrc"],
        "C1 to C3 make up C; F1 and F2 make up F.",
        reason="No complete group confirms that codes with a common beginning add up.",
        readings=[("C and F hold more classes than those listed", loose)],
    )


@case("codes", "prefix-safe", "prefix codes over two dimensions, four hidden cells in a block")
def _() -> Case:
    dim = tree("nace", ["Total", ["C", "C10", "C11", "C12"], ["G", "G45", "G46", "G47"]])
    book = secure(true_table(503, dim, SEX, low=5, high=90), 3)
    return Case(
        book,
        "safe",
        {".csv": delimited(long(book, code("nace", 0), code("sex", 1), value(book, "value", "c")))},
        [],
        "c: hidden.",
    )


@case(
    "codes",
    "prefix-incomplete",
    "prefix codes; a group lists only its large classes, as the notes say",
)
def _() -> Case:
    listed = tree("nace", ["Total", ["C", "C10", "C11"], "D", "F"])
    codes = {c: p | {"?c"} if c in ("C", "Total") else p for c, p in listed.codes.items()}
    dim = Dim("nace", codes)
    book = true_table(504, dim, low=20, high=90)
    book.hidden = [("value", "C10")]
    plain = book.values["value", "C"] - book.values["value", "C11"]
    return Case(
        book,
        "safe",
        {
            ".csv": delimited(long(book, code("nace", 0), value(book, "value", "c"))),
            ".hierarchy.toml": b'Total = ["C", "D", "F"]\n',
        },
        ["--hierarchy", "nace={stem}.hierarchy.toml"],
        "Classes with fewer than 20 units are not listed.",
        wanted="--of-which 'C: C10, C11'",
        reason="The codes suggest that C is C10 + C11; the notes say that it holds more.",
        readings=[("C is C10 + C11", reread(book, (listed,), values={("value", "C10"): plain}))],
        usual=True,
    )


@case("codes", "dotted", "dotted codes 1, 1.1, 1.1.1 at three levels")
def _() -> Case:
    dim = tree("code", ["0", ["1", ["1.1", "1.1.1", "1.1.2", "1.1.3"], "1.2"], ["2", "2.1", "2.2"]])
    book = leak(true_table(505, dim, SEX, low=4, high=50), 5)
    rows = long(book, code("code", 0), code("sex", 1), value(book, "value", "x"))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--total", "code=0"],
        "0: all. 1.1 belongs to 1.",
    )


@case("codes", "dotted-safe", "dotted codes with a final dot (1., 1.1., 1.2.), nothing leaks")
def _() -> Case:
    dim = tree("code", ["Total", ["1.", "1.1.", "1.2.", "1.3."], ["2.", "2.1.", "2.2.", "2.3."]])
    book = secure(true_table(506, dim, SEX, low=4, high=50), 6)
    rows = long(book, code("code", 0), code("sex", 1), value(book, "value", "x"))
    return Case(book, "safe", {".csv": delimited(rows)}, [], "1.1. belongs to 1.")


@case(
    "codes",
    "numeric-digits",
    "numeric codes by digits (ISCO): 1, 11, 12, 2, 21, 22; 0 is the total",
)
def _() -> Case:
    dim = tree("isco", ["0", ["1", "11", "12", "13"], ["2", "21", "22"], ["3", "31", "32"]])
    book = leak(true_table(507, dim, SEX, low=4, high=50), 7)
    rows = long(book, code("isco", 0), code("sex", 1), value(book, "value", "x"))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--by", "isco,sex", "--total", "isco=0"],
        "0: all occupations.",
    )


@case(
    "codes", "numeric-no-hierarchy", "numeric codes 1, 2, 11, 12 that are flat: 11 is no part of 1"
)
def _() -> Case:
    dim = tree("district", ["99", "1", "2", "11", "12", "21"])
    book = secure(true_table(508, dim, SEX, low=4, high=50), 8)
    rows = long(book, code("district", 0), code("sex", 1), value(book, "value", "x"))
    options = ["--by", "district,sex", "--total", "district=99"]
    return Case(
        book, "safe", {".csv": delimited(rows)}, options, "Districts 1 to 21, 99 all districts."
    )


@case("codes", "total-99", "numeric codes; 99 is the total, one district hidden")
def _() -> Case:
    dim = last(tree("district", ["99", "1", "2", "3", "4"]), "99")
    book = true_table(509, dim, low=4, high=50)
    book.hidden = [("value", "3")]
    rows = long(book, code("district", 0), value(book, "value", "x"))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--by", "district", "--total", "district=99"],
        "99: all districts.",
        reason="99 may be the total, or the code for 'not stated'.",
        readings=[("99 is 'not stated'", reread(book, (peer(dim, "99"),)))],
    )


@case("codes", "not-stated-99", "numeric codes; 99 is 'not stated' and there is no total")
def _() -> Case:
    dim = last(tree("district", ["99", "1", "2", "3", "4"]), "99")
    book = true_table(510, dim, low=4, high=50)
    book.hidden = [("value", "3")]
    rows = long(book, code("district", 0), value(book, "value", "x"))
    return Case(
        reread(book, (peer(dim, "99"),)),
        "safe",
        {".csv": delimited(rows)},
        ["--by", "district", "--no-totals", "district"],
        "99: district not stated. No total is published.",
        reason="99 may be the total, or the code for 'not stated'.",
        readings=[("99 is the total", book)],
    )


@case("codes", "indented-blanks", "hierarchy by leading blanks, three levels, quoted names")
def _() -> Case:
    dim = tree(
        "branch",
        [
            "Total",
            ["Industry", ["  Food", "    Bread", "    Milk", "    Meat"], "  Metal"],
            ["Trade", "  Retail", "  Wholesale"],
        ],
    )
    book = leak(true_table(511, dim, SEX, low=4, high=50), 11)
    rows = long(book, code("branch", 0), code("sex", 1), value(book, "value", "x"))
    lines = "Industry\n@Food\n@@Bread\n@@Milk\n@@Meat\n@Metal\nTrade\n@Retail\n@Wholesale\n"
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, quote="text"), ".hrc": lines.encode()},
        ["--hierarchy", "branch={stem}.hrc"],
        "Indented rows are parts of the row above.",
    )


@case("codes", "indented-dots-marks", "hierarchy by '. ' and '.. ' before the names, nothing leaks")
def _() -> Case:
    dim = tree(
        "branch",
        [
            "Total",
            [". Industry", ".. Food", ".. Metal", ".. Wood"],
            [". Trade", ".. Retail", ".. Wholesale", ".. Cars"],
        ],
    )
    book = secure(true_table(512, dim, SEX, low=4, high=50), 12)
    rows = long(book, code("branch", 0), code("sex", 1), value(book, "value", "x"))
    lines = (
        ". Industry\n@.. Food\n@.. Metal\n@.. Wood\n. Trade\n@.. Retail\n@.. Wholesale\n@.. Cars\n"
    )
    return Case(
        book,
        "safe",
        {".csv": delimited(rows), ".hrc": lines.encode()},
        ["--hierarchy", "branch={stem}.hrc"],
        "Dots show the level.",
    )


@case("codes", "level-column", "a column of levels beside names without codes")
def _() -> Case:
    dim = tree(
        "unit",
        ["Country", ["Region A", "Town 1", "Town 2", "Town 3"], ["Region B", "Town 4", "Town 5"]],
    )
    level = {"Country": "0", "Region A": "1", "Region B": "1"}
    book = true_table(513, dim, low=20, high=90)
    book.hidden = [("value", "Town 2"), ("value", "Town 4")]
    rows = long(
        book, code("unit", 0), ("level", lambda c: level.get(c[1], "2")), value(book, "value", "x")
    )
    lines = "Region A\n@Town 1\n@Town 2\n@Town 3\nRegion B\n@Town 4\n@Town 5\n"
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows), ".hrc": lines.encode()},
        ["--by", "unit", "--total", "Country", "--hierarchy", "unit={stem}.hrc"],
        "Level 0 country, 1 region, 2 town.",
        reason="The column of levels is a number that nobody explained, and no group is complete.",
        readings=[
            ("towns, regions and the country are rows of their own", reread(book, (alone(dim),)))
        ],
    )


@case("codes", "parent-column", "a column that names the parent of each row")
def _() -> Case:
    dim = tree("unit", ["ALL", ["R1", "T1", "T2", "T3"], ["R2", "T4", "T5"]])
    parent = {"R1": "ALL", "R2": "ALL", "T1": "R1", "T2": "R1", "T3": "R1", "T4": "R2", "T5": "R2"}
    book = leak(true_table(514, dim, SEX, low=4, high=60), 14)
    rows = long(
        book,
        code("unit", 0),
        ("parent", lambda c: parent.get(c[1], "")),
        code("sex", 1),
        value(book, "value", "x"),
    )
    pairs = "code,parent\n" + "".join(f"{a},{b}\n" for a, b in parent.items())
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows), "-parents.csv": pairs.encode()},
        ["--by", "unit,sex", "--hierarchy", "unit={stem}-parents.csv"],
        "parent: the unit that a unit belongs to.",
    )


@case("codes", "parent-column-safe", "a column that names the parent of each row, nothing leaks")
def _() -> Case:
    dim = tree("unit", ["ALL", ["R1", "T1", "T2", "T3"], ["R2", "T4", "T5", "T6"]])
    parent = {"R1": "ALL", "R2": "ALL", **{f"T{i}": "R1" if i < 4 else "R2" for i in range(1, 7)}}
    book = secure(true_table(515, dim, SEX, low=4, high=60), 15)
    rows = long(
        book,
        code("unit", 0),
        ("parent", lambda c: parent.get(c[1], "")),
        code("sex", 1),
        value(book, "value", "x"),
    )
    pairs = "code,parent\n" + "".join(f"{a},{b}\n" for a, b in parent.items())
    return Case(
        book,
        "safe",
        {".csv": delimited(rows, "|"), "-parents.csv": pairs.encode()},
        ["--by", "unit,sex", "--hierarchy", "unit={stem}-parents.csv"],
        "parent: the unit that a unit belongs to.",
    )


@case(
    "codes",
    "missing-subtotal",
    "two levels of which the middle one has no rows; sums over it still bind",
)
def _() -> Case:
    dim = tree("unit", ["Total", ["?A", "A1", "A2", "A3"], ["B", "B1", "B2"]])
    book = leak(true_table(516, dim, SEX, low=4, high=60), 16)
    rows = long(book, code("unit", 0), code("sex", 1), value(book, "value", "x"))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        [],
        "The subtotal A is not published; all units are listed.",
    )


@case("codes", "two-totals", "'Total' and 'Total excluding construction' in one column")
def _() -> Case:
    names = ["Industry", "Construction", "Trade", "Transport"]
    dim = Dim(
        "branch",
        {
            "Total": frozenset(names),
            "Total excluding construction": frozenset(n for n in names if n != "Construction"),
            **{n: frozenset({n}) for n in names},
        },
    )
    book = true_table(517, dim, low=20, high=90)
    book.hidden = [("value", "Construction"), ("value", "Trade")]
    rows = long(book, code("branch", 0), value(book, "value", "x"))
    groups = (
        b'Total = ["Industry", "Construction", "Trade", "Transport"]\n'
        b'"Total excluding construction" = ["Industry", "Trade", "Transport"]\n'
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows), ".hierarchy.toml": groups},
        ["--hierarchy", "branch={stem}.hierarchy.toml"],
        "Total excluding construction: all branches but construction.",
    )


@case("codes", "groups-not-nested", "special aggregates (ICT, high-tech) that cut across sections")
def _() -> Case:
    leaves = ["C26", "C28", "J61", "J62", "M72"]
    dim = Dim(
        "nace",
        {
            "TOTAL": frozenset(leaves),
            **{n: frozenset({n}) for n in leaves},
            "ICT": frozenset({"C26", "J61", "J62"}),
            "HITEC": frozenset({"C26", "M72"}),
        },
    )
    book = true_table(518, dim, flat("year", "2021"), low=20, high=90)
    book.hidden = [("value", c, "2021") for c in ("C26", "C28", "M72")]
    rows = long(book, code("nace", 0), code("year", 1), value(book, "value", "c"))
    groups = b'TOTAL = ["C26", "C28", "J61", "J62", "M72"]\nICT = ["C26", "J61", "J62"]\n'
    groups += b'HITEC = ["C26", "M72"]\n'
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows), ".hierarchy.toml": groups},
        ["--by", "nace,year", "--no-totals", "year", "--hierarchy", "nace={stem}.hierarchy.toml"],
        "ICT: C26, J61 and J62. HITEC: C26 and M72.",
        reason="What ICT and HITEC add up stands only in the notes.",
        readings=[
            ("ICT and HITEC are rows of their own", reread(book, (alone(dim), book.dims[1])))
        ],
    )


@case(
    "codes",
    "groups-not-nested-safe",
    "special aggregates that cut across sections; hidden cells stay open",
)
def _() -> Case:
    leaves = ["C26", "C28", "J61", "J62", "M72"]
    dim = Dim(
        "nace",
        {
            "TOTAL": frozenset(leaves),
            **{n: frozenset({n}) for n in leaves},
            "ICT": frozenset({"C26", "J61", "J62"}),
        },
    )
    book = true_table(519, dim, low=20, high=90)
    book.hidden = [("value", c) for c in ("J61", "J62")]
    rows = long(book, code("nace", 0), value(book, "value", "c"))
    groups = b'TOTAL = ["C26", "C28", "J61", "J62", "M72"]\nICT = ["C26", "J61", "J62"]\n'
    return Case(
        book,
        "safe",
        {".csv": delimited(rows), ".hierarchy.toml": groups},
        ["--hierarchy", "nace={stem}.hierarchy.toml"],
        "ICT: C26, J61 and J62.",
    )


@case("codes", "total-without-name", "a total whose code is an empty field")
def _() -> Case:
    dim = tree("sector", ["", "A", "B", "C", "D"])
    book = leak(true_table(520, dim, SEX, low=4, high=60), 20)
    rows = long(book, code("sector", 0), code("sex", 1), value(book, "value", "x"))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--total", "sector="],
        "An empty sector: all sectors.",
    )


@case("codes", "labels-and-codes", "a code column and a label column for each dimension")
def _() -> Case:
    dim = tree("naics", ["00", "11", "21", "22", "23"])
    labels = {
        "00": "All sectors",
        "11": "Agriculture",
        "21": "Mining",
        "22": "Utilities",
        "23": "Construction",
    }
    sex = {"Total": "Both sexes", "F": "Women", "M": "Men"}
    book = secure(true_table(521, dim, SEX, low=4, high=60), 21)
    rows = long(
        book,
        code("naics", 0),
        code("naics_label", 0, labels),
        code("sex", 1),
        code("sex_label", 1, sex),
        value(book, "value", "x"),
    )
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        ["--by", "naics,sex", "--total", "naics=00"],
        "00: all sectors.",
    )


@case("codes", "of-which", "'of which' rows beside a complete list, one of them hidden")
def _() -> Case:
    dim = Dim(
        "who",
        {
            "Total": frozenset({"m1", "m2", "w1", "w2"}),
            "Men": frozenset({"m1", "m2"}),
            "of which men under 25": frozenset({"m1"}),
            "Women": frozenset({"w1", "w2"}),
            "of which women under 25": frozenset({"w1"}),
        },
    )
    book = true_table(522, dim, low=20, high=90)
    book.hidden = [("value", "of which men under 25")]
    rows = long(book, code("who", 0), value(book, "value", "x"))
    groups = b'Total = ["Men", "Women"]\n'
    return Case(
        book,
        "safe",
        {".csv": delimited(rows), ".hierarchy.toml": groups},
        ["--hierarchy", "who={stem}.hierarchy.toml"],
        "of which: a part of the row above, the rest is not listed.",
        wanted="--of-which 'Men: of which men under 25'",
    )


@case("codes", "age-groups-overlap", "age groups 15-64 and 15-24, 25-64 beside each other")
def _() -> Case:
    dim = Dim(
        "age",
        {
            "TOTAL": frozenset({"0-14", "15-24", "25-64", "65+"}),
            **{a: frozenset({a}) for a in ("0-14", "15-24", "25-64", "65+")},
            "15-64": frozenset({"15-24", "25-64"}),
        },
    )
    book = true_table(523, dim, low=20, high=90)
    book.hidden = [("value", "15-24"), ("value", "65+")]
    rows = long(book, code("age", 0), value(book, "value", ":"))
    groups = b'TOTAL = ["0-14", "15-64", "65+"]\n"15-64" = ["15-24", "25-64"]\n'
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows), ".hierarchy.toml": groups},
        ["--hierarchy", "age={stem}.hierarchy.toml"],
        "15-64 is 15-24 and 25-64.",
    )


@case(
    "codes",
    "merged-codes",
    "codes merged for secrecy ('D+E') beside divisions, nothing hidden but their parts",
)
def _() -> Case:
    dim = Dim(
        "nace",
        {
            "Total": frozenset("BCDE"),
            "B": frozenset("B"),
            "C": frozenset("C"),
            "D+E": frozenset("DE"),
            "D": frozenset("D"),
            "E": frozenset("E"),
        },
    )
    book = true_table(524, dim, low=20, high=90)
    book.hidden = [("value", "D"), ("value", "E")]
    rows = long(book, code("nace", 0), value(book, "value", "c"))
    groups = b'Total = ["B", "C", "D+E"]\n"D+E" = ["D", "E"]\n'
    return Case(
        book,
        "safe",
        {".csv": delimited(rows), ".hierarchy.toml": groups},
        ["--hierarchy", "nace={stem}.hierarchy.toml"],
        "D+E: D and E together.",
    )


@case(
    "codes",
    "country-and-parts-flagged",
    "a total by a flag column (is_total 1) with an invented name",
)
def _() -> Case:
    dim = tree("place", ["Freeland", "Ams", "Bel", "Cor"])
    book = true_table(525, dim, low=20, high=90)
    book.hidden = [("value", "Bel")]
    rows = long(
        book,
        code("place", 0),
        ("is_total", lambda c: "1" if c[1] == "Freeland" else "0"),
        value(book, "value", "c"),
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--by", "place", "--total", "Freeland"],
        "is_total 1: the row adds up the others.",
        reason="The name is no total's name, and the column is_total is for people.",
        readings=[("Freeland is one of four places", reread(book, (peer(dim, "Freeland"),)))],
    )


@case("codes", "constant-columns", "columns with one value each, and a hidden cell in each row")
def _() -> Case:
    dim = tree("region", ["Total", "N", "E", "S", "W"])
    kind = tree("kind", ["Total", "a", "b", "c"])
    book = secure(true_table(526, dim, kind, low=4, high=60), 26, primaries=3)
    rows = long(
        book,
        const("survey", "LFS"),
        const("edition", "3"),
        code("region", 0),
        code("kind", 1),
        value(book, "value", ""),
        flag(book, "status", "S"),
        const("unit", "persons"),
    )
    return Case(book, "safe", {".csv": delimited(rows)}, ["--by", "region,kind"], "S: suppressed.")
