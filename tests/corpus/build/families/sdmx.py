"""SDMX-CSV: one row for each observation, letters in OBS_STATUS and CONF_STATUS."""

from __future__ import annotations

from corpus.build.attack import Book, Dim, Fact, flat, last, leak, secure, tree, true_table
from corpus.build.case import Case, case, peer, reread, with_rest
from corpus.build.layout import (
    Column,
    code,
    const,
    delimited,
    flag,
    long,
    number,
    standing,
    value,
)

AREAS = tree("REF_AREA", ["_T", "XA1", "XA2", "XA3", "XA4"])
SECTIONS = tree("ACTIVITY", ["_T", "B", "C", "D", "E"])
NACE = tree("ACTIVITY", ["_T", "B", ["C", "C10", "C11", "C12"], ["D", "D351", "D352", "D353"]])
BY = ["--by", "REF_AREA,ACTIVITY", "--value", "OBS_VALUE"]
FREE_NOTE = "CONF_STATUS F is free, N not for publication; OBS_STATUS A is a normal value."


def observations(
    book: Book, values: Column, *more: Column, flow: str = "XX:SBS_REG(1.0)"
) -> list[list[str]]:
    return long(
        book,
        const("STRUCTURE", "dataflow"),
        const("STRUCTURE_ID", flow),
        const("FREQ", "A"),
        code("REF_AREA", 0),
        code("ACTIVITY", 1),
        const("TIME_PERIOD", "2021"),
        values,
        *more,
    )


@case("sdmx", "conf-status-n", "SDMX-CSV 2.0; hidden values empty, CONF_STATUS N, all others F")
def _() -> Case:
    book = leak(true_table(11, AREAS, SECTIONS), 1)
    rows = observations(book, value(book, "OBS_VALUE"), flag(book, "CONF_STATUS", "N", "F"))
    return Case(book, "disclosed", {".csv": delimited(rows)}, BY, FREE_NOTE)


@case("sdmx", "obs-status-a-q", "SDMX-CSV; OBS_STATUS A for normal values, Q for suppressed ones")
def _() -> Case:
    book = secure(true_table(12, AREAS, SECTIONS), 2)
    rows = observations(book, value(book, "OBS_VALUE"), flag(book, "OBS_STATUS", "Q", "A"))
    return Case(book, "safe", {".csv": delimited(rows)}, BY, "OBS_STATUS: A normal, Q suppressed.")


@case(
    "sdmx",
    "obs-status-a-q-leak",
    "SDMX-CSV; OBS_STATUS A and Q, DECIMALS and UNIT columns, semicolons",
)
def _() -> Case:
    book = leak(true_table(13, AREAS, SECTIONS, low=1, high=40), 3)
    rows = observations(
        book,
        value(book, "OBS_VALUE"),
        flag(book, "OBS_STATUS", "Q", "A"),
        const("UNIT_MEASURE", "PS"),
        const("DECIMALS", "0"),
    )
    return Case(
        book, "disclosed", {".csv": delimited(rows, ";")}, BY, "OBS_STATUS: A normal, Q suppressed."
    )


@case(
    "sdmx",
    "both-status-columns",
    "SDMX-CSV; OBS_STATUS A on every row, CONF_STATUS C on hidden ones",
)
def _() -> Case:
    book = secure(true_table(14, AREAS, NACE, low=2, high=80), 4, primaries=2)
    rows = observations(
        book,
        value(book, "OBS_VALUE"),
        const("OBS_STATUS", "A"),
        flag(book, "CONF_STATUS", "C", "F"),
    )
    note = "OBS_STATUS A: normal value. CONF_STATUS C: confidential."
    return Case(book, "safe", {".csv": delimited(rows)}, BY, note)


@case(
    "sdmx",
    "values-still-standing",
    "SDMX-CSV from an internal system; CONF_STATUS C, values not removed",
)
def _() -> Case:
    book = secure(true_table(15, AREAS, SECTIONS), 5)
    rows = observations(book, standing(book, "OBS_VALUE"), flag(book, "CONF_STATUS", "C", "F"))
    note = "CONF_STATUS C: confidential."
    return Case(book, "disclosed", {".csv": delimited(rows)}, BY, note)


@case(
    "sdmx",
    "one-value-still-standing",
    "SDMX-CSV; hidden values empty but for one that was forgotten",
)
def _() -> Case:
    book = secure(true_table(16, AREAS, SECTIONS), 6)
    left = book.hidden[1]
    book.facts.append(Fact(((left, 1),), book.values[left], book.values[left]))
    head, write = value(book, "OBS_VALUE")
    column = head, lambda cell: str(book.values[cell]) if cell == left else write(cell)
    rows = observations(book, column, flag(book, "CONF_STATUS", "N", "F"))
    return Case(book, "disclosed", {".csv": delimited(rows)}, BY, FREE_NOTE)


def block_of_twos() -> Book:
    areas, jobs = (
        tree("REF_AREA", ["_T", "X1", "X2", "X3"]),
        tree("ACTIVITY", ["_T", "B", "C", "D"]),
    )
    book = true_table(17, areas, jobs, low=9, high=30)
    block = {("X1", "B"): 2, ("X1", "C"): 2, ("X2", "B"): 2, ("X2", "C"): 2}
    leaves = {c: block.get(c[1:], v) for c, v in book.values.items() if "_T" not in c}
    for cell in book.values:
        book.values[cell] = sum(
            v
            for c, v in leaves.items()
            if all(p in d.codes[q] for d, p, q in zip(book.dims, c[1:], cell[1:], strict=True))
        )
    book.hidden = [("value", *c) for c in block]
    return book


@case(
    "sdmx",
    "letters-and-stated-rule",
    "SDMX-CSV; CONF_STATUS A and D, and a comment that states the rule",
)
def _() -> Case:
    book = block_of_twos()
    for cell in book.hidden:
        book.facts.append(Fact(((cell, 1),), 1, 2))
    rows = observations(
        book,
        value(book, "OBS_VALUE"),
        flag(book, "CONF_STATUS", "A", "F"),
        const("COMMENT_DSET", "Cells with 1 or 2 persons are confidential (CONF_STATUS A)"),
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        BY,
        "The comment states the rule: A means 1 or 2 persons.",
        wanted="--rule threshold=3: a reader knows that a cell marked A holds 1 or 2",
    )


@case(
    "sdmx", "letters-without-rule", "SDMX-CSV; the same cells with one letter N and no rule stated"
)
def _() -> Case:
    book = block_of_twos()
    rows = observations(book, value(book, "OBS_VALUE"), flag(book, "CONF_STATUS", "N", "F"))
    return Case(book, "safe", {".csv": delimited(rows)}, BY, FREE_NOTE)


@case(
    "sdmx",
    "secondary-letter-discloses",
    "SDMX-CSV; A holds 1 to 4, D holds 5 or more, stated in a comment",
)
def _() -> Case:
    areas, jobs = tree("REF_AREA", ["_T", "X1", "X2"]), tree("ACTIVITY", ["_T", "B", "C"])
    book = true_table(18, areas, jobs, low=9, high=30)
    leaves = {("X1", "B"): 1, ("X1", "C"): 5, ("X2", "B"): 5, ("X2", "C"): 21}
    for cell in book.values:
        book.values[cell] = sum(
            v
            for c, v in leaves.items()
            if all(p in d.codes[q] for d, p, q in zip(book.dims, c, cell[1:], strict=True))
        )
    book.hidden = [("value", *c) for c in leaves]
    primary = book.hidden[0]
    for cell in book.hidden:
        book.facts.append(
            Fact(((cell, 1),), 1 if cell == primary else 5, 4 if cell == primary else None)
        )
    letters = "CONF_STATUS", lambda c: "A" if c == primary else "D" if c in book.hidden else "F"
    rows = observations(
        book,
        value(book, "OBS_VALUE"),
        letters,
        const("COMMENT_TS", "A: fewer than 5 units; D: 5 units or more, hidden to protect others"),
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        BY,
        "A: 1 to 4 units. D: 5 units or more.",
        wanted="--rule threshold=5: a reader knows what A and D say about the size of a cell",
    )


@case(
    "sdmx",
    "unit-mult-3",
    "SDMX-CSV in thousands (UNIT_MULT 3), each figure rounded, totals off by one",
)
def _() -> Case:
    book = true_table(19, AREAS, SECTIONS, low=200, high=9000, noise=0.5, counts=False)
    leak(book, 7)
    for i, cell in enumerate(book.values):
        if "_T" in cell and cell not in book.hidden:
            book.values[cell] += (i * 7 + 3) % 3 - 1
    rows = observations(
        book,
        value(book, "OBS_VALUE"),
        const("UNIT_MULT", "3"),
        flag(book, "OBS_STATUS", "Q", "A"),
    )
    note = "Thousand euros. Figures are rounded each on its own; sums may differ in the last digit."
    return Case(
        book, "disclosed", {".csv": delimited(rows)}, BY, note, wanted="--rounding-noise 0.5"
    )


@case("sdmx", "three-periods", "SDMX-CSV; three years below each other, hidden cells in each")
def _() -> Case:
    years = flat("TIME_PERIOD", "2019", "2020", "2021")
    areas = tree("REF_AREA", ["_T", "XA1", "XA2", "XA3"])
    jobs = tree("ACTIVITY", ["_T", "B", "C", "D"])
    book = secure(true_table(20, areas, jobs, years, low=1, high=40), 8, primaries=3)
    rows = long(
        book,
        const("DATAFLOW", "XX:JOBS(2.1)"),
        code("REF_AREA", 0),
        code("ACTIVITY", 1),
        code("TIME_PERIOD", 2),
        value(book, "OBS_VALUE"),
        flag(book, "OBS_STATUS", "Q", "A"),
    )
    options = [
        "--by",
        "REF_AREA,ACTIVITY,TIME_PERIOD",
        "--value",
        "OBS_VALUE",
        "--no-totals",
        "TIME_PERIOD",
    ]
    return Case(book, "safe", {".csv": delimited(rows)}, options, "One table for each year.")


@case("sdmx", "two-periods-leak", "SDMX-CSV; two years, one of them leaks")
def _() -> Case:
    years = flat("TIME_PERIOD", "2020", "2021")
    areas = tree("REF_AREA", ["_T", "XA1", "XA2", "XA3"])
    jobs = tree("ACTIVITY", ["_T", "B", "C", "D"])
    book = leak(true_table(21, areas, jobs, years, low=1, high=40), 9, primaries=3)
    rows = long(
        book,
        const("DATAFLOW", "XX:JOBS(2.1)"),
        code("REF_AREA", 0),
        code("ACTIVITY", 1),
        code("TIME_PERIOD", 2),
        value(book, "OBS_VALUE", "NaN"),
        flag(book, "OBS_STATUS", "Q", "A"),
    )
    options = [
        "--by",
        "REF_AREA,ACTIVITY,TIME_PERIOD",
        "--value",
        "OBS_VALUE",
        "--no-totals",
        "TIME_PERIOD",
    ]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        options,
        "One table for each year. NaN: suppressed.",
    )


@case(
    "sdmx",
    "nace-prefix",
    "SDMX-CSV; NACE sections and divisions in one column, a part of a section hidden",
)
def _() -> Case:
    book = leak(true_table(22, NACE, AREAS, low=1, high=60), 10)
    rows = long(
        book,
        const("FREQ", "A"),
        code("ACTIVITY", 0),
        code("REF_AREA", 1),
        value(book, "OBS_VALUE"),
        flag(book, "CONF_STATUS", "N", "F"),
    )
    note = FREE_NOTE + " Divisions add up to their section."
    return Case(book, "disclosed", {".csv": delimited(rows, "\t")}, BY, note)


@case(
    "sdmx",
    "union-with-unlisted-members",
    "SDMX-CSV; a union of countries of which only some are listed",
)
def _() -> Case:
    listed = tree("REF_AREA", ["EU27_2020", "AT", "BE", "BG", "CZ"])
    areas = with_rest(listed, "EU27_2020")
    book = true_table(23, areas, flat("ACTIVITY", "C10"), low=200, high=900, counts=False)
    book.hidden = [("value", "BG", "C10")]
    rows = observations(book, value(book, "OBS_VALUE"), flag(book, "CONF_STATUS", "C", "F"))
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        [*BY, "--total", "REF_AREA=EU27_2020", "--rest", "REF_AREA", "--no-totals", "ACTIVITY"],
        "EU27_2020 holds Member States that this extract does not list.",
        reason="The file does not say whether EU27_2020 is the sum of the four countries listed.",
        readings=[
            (
                "EU27_2020 is the sum of the countries listed",
                reread(_summed(book, listed), (listed, book.dims[1])),
            ),
        ],
    )


def _summed(book: Book, dim: Dim) -> Book:
    """The book with the hidden value that the reading of a plain sum gives."""
    (hidden,) = book.hidden
    total = book.values["value", "EU27_2020", "C10"]
    others = sum(book.values["value", c, "C10"] for c in ("AT", "BE", "CZ"))
    return reread(book, values={hidden: total - others})


@case(
    "sdmx",
    "included-elsewhere",
    "SDMX-CSV; OBS_STATUS K (included in another category) and W (includes it)",
)
def _() -> Case:
    book = true_table(24, tree("ACTIVITY", ["_T", "B", "C", "D", "E"]), low=40, high=300)
    parts = [("value", "B"), ("value", "C")]
    joint = sum(book.values[c] for c in parts)
    book.facts.append(Fact(tuple((c, 1) for c in parts), joint, joint))
    book.hidden = parts
    letters = {"B": "K", "C": "W"}
    rows = long(
        book,
        const("FREQ", "A"),
        code("ACTIVITY", 0),
        const("TIME_PERIOD", "2021"),
        ("OBS_VALUE", lambda c: {"B": "", "C": str(joint)}.get(c[1], str(book.values[c]))),
        ("OBS_STATUS", lambda c: letters.get(c[1], "A")),
    )
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        ["--by", "ACTIVITY", "--value", "OBS_VALUE"],
        "K: included in another category. W: includes another category. B is reported with C.",
        wanted="--merged ACTIVITY=B+C: the value printed for C is that of B and C together",
    )


@case(
    "sdmx",
    "series-key",
    "ECB-like CSV; a column KEY that repeats the codes, numbers with a decimal",
)
def _() -> Case:
    book = leak(true_table(25, AREAS, SECTIONS, low=300, high=9000, counts=False), 11)
    rows = long(
        book,
        ("KEY", lambda c: f"SBS.A.{c[1]}.{c[2]}.EUR"),
        const("FREQ", "A"),
        code("REF_AREA", 0),
        code("ACTIVITY", 1),
        const("TIME_PERIOD", "2021"),
        value(book, "OBS_VALUE", form=number(places=1)),
        flag(book, "OBS_STATUS", "Q", "A"),
        const("TITLE_COMPL", "Turnover, exact to 100 euro, in thousands"),
    )
    note = "Thousand euros; the underlying figures are whole multiples of 0.1."
    return Case(book, "disclosed", {".csv": delimited(rows)}, BY, note)


@case(
    "sdmx",
    "status-letter-a-beside-values",
    "SDMX-like; a column called only 'status' with A beside values",
)
def _() -> Case:
    book = secure(true_table(26, AREAS, SECTIONS), 12)
    rows = long(
        book,
        code("area", 0),
        code("activity", 1),
        value(book, "value"),
        flag(book, "status", "C", "A"),
    )
    shown = [c for c in book.cells if c not in book.hidden]
    stands = [Fact(((c, 1),), book.values[c], book.values[c]) for c in shown]
    return Case(
        _named(book, "area", "activity"),
        "safe",
        {".csv": delimited(rows)},
        ["--by", "area,activity"],
        "A: actual value. C: confidential.",
        wanted="--shown-status A",
        reason="A is a normal value in OBS_STATUS and primary confidential in CONF_STATUS; this is neither.",
        readings=[
            (
                "A is primary confidential, and the values still stand",
                reread(book, hidden=book.cells, facts=stands),
            ),
        ],
    )


def _named(book: Book, *names: str) -> Book:
    return reread(book, dims=tuple(Dim(n, d.codes) for n, d in zip(names, book.dims, strict=True)))


@case(
    "sdmx",
    "lower-case-flags",
    "SDMX-like; obs_flag with p (provisional), e (estimated) and c (hidden)",
)
def _() -> Case:
    book = leak(true_table(27, AREAS, SECTIONS), 13)
    places = {cell: i for i, cell in enumerate(book.values)}
    rows = long(
        book,
        code("REF_AREA", 0),
        code("ACTIVITY", 1),
        value(book, "OBS_VALUE"),
        (
            "obs_flag",
            lambda c: (
                "c"
                if c in book.hidden
                else ("p" if places[c] % 5 == 2 else "e" if places[c] % 9 == 4 else "")
            ),
        ),
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        BY,
        "c confidential, e estimated, p provisional.",
    )


@case("sdmx", "zero-total", "SDMX-CSV; a total of 0 above hidden parts")
def _() -> Case:
    book = secure(true_table(28, AREAS, SECTIONS, low=2, high=40), 14)
    row = [("value", "XA3", s) for s in ("B", "C", "D", "E")]
    drop = {c: book.values[c] for c in row}
    for (_, _, section), v in drop.items():
        book.values["value", "XA3", section] = 0
        book.values["value", "_T", section] -= v
        book.values["value", "XA3", "_T"] -= v
        book.values["value", "_T", "_T"] -= v
    book.hidden = [c for c in book.cells if c in book.hidden or c in row]
    rows = observations(book, value(book, "OBS_VALUE"), flag(book, "CONF_STATUS", "N", "F"))
    return Case(book, "disclosed", {".csv": delimited(rows)}, BY, FREE_NOTE)


@case("sdmx", "missing-rows", "SDMX-CSV; hidden observations are left out, no row tells of them")
def _() -> Case:
    book = leak(true_table(29, AREAS, last(SECTIONS, "_T"), low=1, high=50), 15)
    rows = long(
        book,
        code("REF_AREA", 0),
        code("ACTIVITY", 1),
        const("TIME_PERIOD", "2021"),
        value(book, "OBS_VALUE"),
        drop_hidden=True,
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        BY,
        "Confidential observations are not transmitted.",
    )


@case(
    "sdmx",
    "area-total-like-a-country",
    "SDMX-CSV; the total is one more country code, and each column hides one",
)
def _() -> Case:
    areas = tree("REF_AREA", ["XK0", "XA1", "XA2", "XA3", "XA4"])
    book = true_table(30, areas, flat("ACTIVITY", "C13"), low=20, high=200)
    book.hidden = [("value", "XA3", "C13")]
    rows = observations(book, value(book, "OBS_VALUE"), flag(book, "CONF_STATUS", "N", "F"))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        [*BY, "--total", "REF_AREA=XK0", "--no-totals", "ACTIVITY"],
        FREE_NOTE + " XK0: the whole country.",
        reason="Nothing in the file tells whether XK0 is the sum of the other areas.",
        readings=[
            ("XK0 is an area like the others", reread(book, (peer(areas, "XK0"), book.dims[1])))
        ],
    )
