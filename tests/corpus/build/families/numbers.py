"""How numbers are written, and what they may be: signs, rounding, floats, separators, ranges."""

from __future__ import annotations

from corpus.build.attack import Book, Cell, Fact, flat, leak, secure, tree, true_table
from corpus.build.case import Case, case, reread, with_rest
from corpus.build.layout import Format, code, delimited, flag, half_up, long, number, value

REGION = tree("region", ["Total", "North", "East", "South", "West"])
BRANCH = tree("branch", ["Total", "Mining", "Metals", "Energy"])
BY = ["--by", "region,branch"]


def two_way(seed: int, leaks: bool, low: int = 300, high: int = 9000) -> Book:
    book = true_table(seed, REGION, BRANCH, low=low, high=high, counts=False)
    return leak(book, seed) if leaks else secure(book, seed)


def plain_rows(book: Book, form: Format, mark: str = "x") -> list[list[str]]:
    return long(book, code("region", 0), code("branch", 1), value(book, "value", mark, form))


@case(
    "numbers",
    "bom-quoted",
    "byte order mark, every field in quotes, thousands separators inside them",
)
def _() -> Case:
    book = two_way(801, True)
    return Case(
        book,
        "disclosed",
        {
            ".csv": delimited(
                plain_rows(book, number(",")), quote="all", encoding="utf-8-sig", end="\r\n"
            )
        },
        BY,
        "x: hidden.",
    )


@case("numbers", "latin-decimal-comma", "Latin-1, semicolons, decimal comma, blanks for thousands")
def _() -> Case:
    book = two_way(802, False, 9000, 90000)
    rows = plain_rows(book, number(" ", ",", 2))
    rows[0] = ["region", "branch", "value"]
    return Case(book, "safe", {".csv": delimited(rows, ";", encoding="latin-1")}, BY, "x: hidden.")


@case("numbers", "swiss-apostrophe", "Swiss; apostrophes for thousands, tabs")
def _() -> Case:
    book = two_way(803, True)
    return Case(
        book,
        "disclosed",
        {".csv": delimited(plain_rows(book, number("'")), "\t")},
        BY,
        "x: hidden.",
    )


@case("numbers", "swiss-typographic", "Swiss; typographic apostrophes for thousands, nothing leaks")
def _() -> Case:
    book = two_way(804, False)
    return Case(
        book, "safe", {".csv": delimited(plain_rows(book, number("\u2019")), ";")}, BY, "x: hidden."
    )


def lakh(v: int) -> str:
    """Indian grouping: 12,34,567."""
    digits = str(v)
    head, tail = digits[:-3], digits[-3:]
    parts = []
    while head:
        parts.insert(0, head[-2:])
        head = head[:-2]
    return ",".join([*parts, tail])


@case("numbers", "indian-grouping", "Indian grouping of digits (12,34,567) in quotes")
def _() -> Case:
    book = two_way(805, True, 90000, 400000)
    return Case(
        book,
        "disclosed",
        {".csv": delimited(plain_rows(book, lakh, "NA"), quote="all")},
        [*BY, "--hidden", "NA"],
        "NA: hidden.",
    )


@case("numbers", "scientific", "figures in scientific notation (1.234E+03), all digits given")
def _() -> Case:
    book = two_way(806, True)

    def form(v: int) -> str:
        digits = str(v)
        return f"{digits[0]}.{digits[1:] or '0'}E+{len(digits) - 1:02d}"

    return Case(
        book,
        "disclosed",
        {".csv": delimited(plain_rows(book, form))},
        BY,
        "x: hidden. All digits are given.",
    )


@case("numbers", "float-tails", "figures printed with tails of binary floats (0.30000000000000004)")
def _() -> Case:
    book = two_way(807, True, 1, 90)

    def form(v: int) -> str:
        return repr(v * 0.1)

    return Case(
        book,
        "disclosed",
        {".csv": delimited(plain_rows(book, form))},
        BY,
        "Figures have one decimal; further digits are noise of the export.",
    )


@case("numbers", "float-tails-safe", "tails of binary floats beside large figures, nothing leaks")
def _() -> Case:
    book = two_way(808, False, 3, 90000)
    return Case(
        book,
        "safe",
        {".csv": delimited(plain_rows(book, lambda v: repr(v * 0.1)))},
        BY,
        "Figures have one decimal.",
    )


@case(
    "numbers",
    "spreadsheet-formula",
    'figures as a spreadsheet formula (="1234") to keep them as text',
)
def _() -> Case:
    book = two_way(809, False)
    return Case(
        book, "safe", {".csv": delimited(plain_rows(book, lambda v: f'="{v}"'))}, BY, "x: hidden."
    )


@case("numbers", "currency-signs", "figures with a currency sign and blanks around them")
def _() -> Case:
    book = two_way(810, True)
    return Case(
        book,
        "disclosed",
        {".csv": delimited(plain_rows(book, lambda v: f" € {v} ", " x "))},
        BY,
        "x: hidden.",
    )


@case("numbers", "revised-star", "a star behind a figure says revised, a star alone hides")
def _() -> Case:
    book = two_way(811, True)
    places = {c: i for i, c in enumerate(book.cells)}
    rows = long(
        book,
        code("region", 0),
        code("branch", 1),
        (
            "value",
            lambda c: (
                "*" if c in book.hidden else f"{book.values[c]}{'*' if places[c] % 4 == 1 else ''}"
            ),
        ),
    )
    note = "* behind a figure: revised. * alone: confidential."
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        [*BY, "--hidden", "*"],
        note,
        wanted="--flags '*'",
    )


@case(
    "numbers",
    "footnote-marks",
    "footnote numbers in brackets behind figures (1234 [2]), hidden cells '[1]'",
)
def _() -> Case:
    book = two_way(812, False)
    places = {c: i for i, c in enumerate(book.cells)}
    rows = long(
        book,
        code("region", 0),
        code("branch", 1),
        (
            "value",
            lambda c: (
                "[1]"
                if c in book.hidden
                else f"{book.values[c]}{' [2]' if places[c] % 5 == 1 else ''}"
            ),
        ),
    )
    note = "[1] confidential. [2] provisional."
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        [*BY, "--hidden", "[1]"],
        note,
        wanted="--flags '[2]'",
    )


# Signs.


def signed(seed: int, low: int = -900, high: int = 900) -> Book:
    return true_table(
        seed, REGION, BRANCH, low=low, high=high, counts=False, signed=frozenset({"value"})
    )


@case(
    "numbers",
    "brackets-negative",
    "profits; brackets for losses, hidden cells in a block: nothing bounds them",
)
def _() -> Case:
    book = secure(signed(821), 21)
    rows = plain_rows(book, number(brackets=True))
    return Case(book, "safe", {".csv": delimited(rows)}, BY, "Brackets: losses. x: hidden.")


@case(
    "numbers",
    "brackets-negative-leak",
    "profits; brackets for losses, one hidden profit can be subtracted",
)
def _() -> Case:
    book = leak(signed(822), 22)
    rows = plain_rows(book, number(",", brackets=True))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, quote="text")},
        BY,
        "Brackets: losses. x: hidden.",
    )


@case(
    "numbers",
    "unicode-minus",
    "net migration; a typographic minus, hidden cells open on both sides",
)
def _() -> Case:
    book = secure(signed(823), 23)
    return Case(
        book,
        "safe",
        {".csv": delimited(plain_rows(book, number(minus="\u2212")))},
        BY,
        "x: hidden.",
    )


@case(
    "numbers",
    "trailing-minus",
    "a minus behind the figure (SAP), one hidden cell can be subtracted",
)
def _() -> Case:
    book = leak(signed(824), 24)
    return Case(
        book,
        "disclosed",
        {".csv": delimited(plain_rows(book, lambda v: f"{abs(v)}{'-' if v < 0 else ''}"), ";")},
        BY,
        "x: hidden.",
    )


@case(
    "numbers",
    "negative-hierarchy",
    "profits by prefix codes; a reader who forbids losses finds a wrong value",
)
def _() -> Case:
    dim = tree("nace", ["Total", ["D", "D1", "D2", "D3"], ["E", "E1", "E2"]])
    book = true_table(825, dim, signed=frozenset({"value"}))
    for k, v in {
        "Total": 40,
        "D": 0,
        "D1": 30,
        "D2": -30,
        "D3": 0,
        "E": 40,
        "E1": -10,
        "E2": 50,
    }.items():
        book.values["value", k] = v
    book.hidden = [("value", "D1"), ("value", "D2")]
    rows = long(book, code("nace", 0), value(book, "profit", "x"))
    return Case(
        book, "safe", {".csv": delimited(rows)}, ["--value", "profit"], "Losses have a minus."
    )


@case(
    "numbers",
    "negative-hierarchy-leak",
    "profits by prefix codes; a hidden loss follows from its subtotal",
)
def _() -> Case:
    dim = tree("nace", ["Total", ["D", "D1", "D2", "D3"], ["E", "E1", "E2"]])
    book = true_table(826, dim, low=-90, high=90, signed=frozenset({"value"}))
    book.hidden = [("value", "D2"), ("value", "E1")]
    rows = long(book, code("nace", 0), value(book, "profit", "x"))
    return Case(
        book, "disclosed", {".csv": delimited(rows)}, ["--value", "profit"], "Losses have a minus."
    )


@case(
    "numbers",
    "change-without-minus",
    "changes since last year; all printed ones happen to be increases",
)
def _() -> Case:
    book = true_table(827, REGION, low=3, high=60, signed=frozenset({"value"}))
    book.values.update(
        {
            ("value", "North"): -4,
            ("value", "East"): 4,
            ("value", "South"): 30,
            ("value", "West"): 20,
        }
    )
    book.values["value", "Total"] = 50
    book.hidden = [("value", "North"), ("value", "East")]
    rows = long(book, code("region", 0), value(book, "change", "x"))
    never = reread(book, signed=frozenset(), values={("value", "North"): 0, ("value", "East"): 0})
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        ["--value", "change"],
        "change: employees now less employees a year ago.",
        wanted="--signed change",
        reason="No minus shows whether values may be negative; if not, both hidden values are 0.",
        readings=[("values cannot be negative", never)],
        usual=True,
    )


# Rounding.


@case(
    "numbers",
    "off-by-one-note",
    "thousands; totals off by one, as the note says; a part can be subtracted closely",
)
def _() -> Case:
    book = true_table(831, REGION, low=3000, high=9000, noise=0.5, counts=False)
    book.hidden = [("value", "East")]
    book.values["value", "Total"] += 1
    rows = long(book, code("region", 0), value(book, "thousand_euro", "x"))
    note = "Rounded figures; sums may differ."
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--value", "thousand_euro"],
        note,
        wanted="--rounding-noise 0.5",
    )


@case(
    "numbers",
    "off-by-one-two-way",
    "thousands; many sums off by one, hidden cells in a block stay open",
)
def _() -> Case:
    book = true_table(832, REGION, BRANCH, low=3000, high=9000, noise=0.5, counts=False)
    secure(book, 32)
    for i, c in enumerate(book.values):
        if "Total" in c and c not in book.hidden:
            book.values[c] += (i * 5 + 2) % 3 - 1
    note = "Rounded figures; sums may differ by one or two."
    return Case(
        book,
        "safe",
        {".csv": delimited(plain_rows(book, number()))},
        BY,
        note,
        wanted="--rounding-noise 0.5",
    )


@case(
    "numbers",
    "small-counts-in-thousands",
    "thousands with one decimal; the noise is as large as the hidden values",
)
def _() -> Case:
    book = true_table(833, REGION, low=1, high=4, noise=0.5, counts=False)
    book.values.update(
        {("value", "North"): 2, ("value", "East"): 3, ("value", "South"): 41, ("value", "West"): 52}
    )
    book.values["value", "Total"] = 98
    book.hidden = [("value", "North"), ("value", "East")]
    rows = long(book, code("region", 0), value(book, "thousand", "x", number(places=1)))
    note = "Thousands, rounded to 100 persons."
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        ["--value", "thousand"],
        note,
        wanted="--rounding-noise 0.05",
    )


@case(
    "numbers",
    "off-by-two-unexplained",
    "a total that is 2 more than its parts, no note: rounding, or a part not listed?",
)
def _() -> Case:
    dim = with_rest(tree("region", ["Total", "North", "East", "South", "West"]), "Total")
    book = true_table(834, dim, flat("year", "2020", "2021"), low=200, high=900)
    for y in ("2020", "2021"):
        book.values["value", "Total", y] = 2 + sum(
            book.values["value", c, y] for c in ("North", "East", "South", "West")
        )
    book.values["value", "Total", "2021"] += 160
    book.hidden = [("value", "East", "2021")]
    rows = long(book, code("region", 0), code("year", 1), value(book, "value", "x"))
    near = reread(book, (tree("region", ["Total", "North", "East", "South", "West"]), book.dims[1]))
    near.noise, near.counts = 0.5, False
    near.values["value", "East", "2021"] += 162
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        ["--rest", "region", "--no-totals", "year"],
        "The total includes persons without a fixed address, who are not listed.",
        reason="The total of 2020 is 2 more than its parts: rounding, or a part that the file does not list.",
        readings=[("figures are rounded, and all parts are listed", near)],
    )


# Symbols that say how large a hidden value is.


@case("numbers", "less-than-five", "'<5' for hidden counts: two of them in a total that leaves 8")
def _() -> Case:
    book = bounded({"North": 4, "East": 4, "South": 41, "West": 52}, ("North", "East"), 1, 4, 841)
    rows = long(book, code("region", 0), value(book, "count", "<5"))
    note = "<5: a count from 1 to 4."
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--value", "count", "--hidden", "<5"],
        note,
        wanted="--hidden '<5=1..4'",
    )


def bounded(
    values: dict[str, int], hidden: tuple[str, ...], low: int, high: int, seed: int
) -> Book:
    book = true_table(seed, tree("region", ["Total", *values]))
    book.values = {
        ("value", "Total"): sum(values.values()),
        **{("value", k): v for k, v in values.items()},
    }
    book.hidden = [("value", h) for h in hidden]
    book.facts = [Fact(((c, 1),), low, high) for c in book.hidden]
    return book


@case(
    "numbers",
    "less-than-ten-safe",
    "'<10' for hidden counts: three of them, the total leaves all open",
)
def _() -> Case:
    book = bounded(
        {"North": 4, "East": 7, "South": 3, "West": 52}, ("North", "East", "South"), 0, 9, 842
    )
    rows = long(book, code("region", 0), value(book, "count", "<10"))
    note = "<10: a count from 0 to 9."
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        ["--value", "count", "--hidden", "<10"],
        note,
        wanted="--hidden '<10=0..9'",
    )


@case(
    "numbers",
    "ranges-as-values",
    "classes ('10-19') in place of hidden counts; the total pins them",
)
def _() -> Case:
    book = bounded(
        {"North": 19, "East": 19, "South": 41, "West": 52}, ("North", "East"), 10, 19, 843
    )
    rows = long(book, code("region", 0), value(book, "count", "10-19"))
    note = "Small counts are shown as classes."
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        ["--value", "count", "--hidden", "10-19"],
        note,
        wanted="--hidden '10-19=10..19'",
    )


@case(
    "numbers",
    "ranges-as-values-safe",
    "classes ('10-19') in place of hidden counts; nothing is pinned",
)
def _() -> Case:
    book = bounded(
        {"North": 12, "East": 16, "South": 41, "West": 52}, ("North", "East"), 10, 19, 844
    )
    rows = long(book, code("region", 0), value(book, "count", "10-19"))
    note = "Small counts are shown as classes."
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        ["--value", "count", "--hidden", "10-19"],
        note,
        wanted="--hidden '10-19=10..19'",
    )


@case(
    "numbers",
    "zero-shown-small-hidden",
    "a note below the table says that zeros are shown: hidden counts are at least 1",
)
def _() -> Case:
    book = bounded(
        {"North": 1, "East": 1, "South": 1, "West": 52}, ("North", "East", "South"), 1, 999, 845
    )
    rows = long(book, code("region", 0), value(book, "count", "x"))
    note = "x: fewer than 5 cases. Zeros are shown."
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows, below=["", note])},
        ["--value", "count"],
        note,
        wanted="--rule threshold=5: hidden counts are at least 1",
        reason="Whether a hidden count may be 0 stands only in a sentence below the table.",
        readings=[("hidden counts may be 0", reread(book, facts=[]))],
    )


@case("numbers", "unknown-letter-f", "a status letter f beside figures that nobody explains")
def _() -> Case:
    book = two_way(851, False)
    marked: list[Cell] = [
        c for i, c in enumerate(book.cells) if c not in book.hidden and i % 3 == 0
    ]
    rows = long(
        book,
        code("region", 0),
        code("branch", 1),
        value(book, "value"),
        ("status", lambda c: "c" if c in book.hidden else "f" if c in marked else ""),
    )
    stands = [Fact(((c, 1),), book.values[c], book.values[c]) for c in marked]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        BY,
        "c: confidential. f: forecast.",
        wanted="--shown-status f",
        reason="The letter f may be a forecast, or a reason to hide the figure beside it.",
        readings=[
            (
                "f marks figures that should be hidden",
                reread(book, hidden=[*book.hidden, *marked], facts=stands),
            )
        ],
    )


@case("numbers", "status-numbers", "a status column of digits: 0 shown, 1 primary, 2 secondary")
def _() -> Case:
    book = two_way(852, True)
    rows = long(
        book,
        code("region", 0),
        code("branch", 1),
        value(book, "value"),
        flag(book, "status", "2", "0"),
    )
    note = "status: 0 shown, 1 or 2 hidden."
    return Case(book, "disclosed", {".csv": delimited(rows)}, BY, note, wanted="--shown-status 0")


@case(
    "numbers",
    "suppressed-true-false",
    "a column 'suppressed' with TRUE and FALSE, figures of hidden cells set to 0",
)
def _() -> Case:
    book = two_way(853, False)
    rows = long(
        book,
        code("region", 0),
        code("branch", 1),
        ("value", lambda c: "0" if c in book.hidden else str(book.values[c])),
        flag(book, "suppressed", "TRUE", "FALSE"),
    )
    note = "suppressed TRUE: the figure is withheld and set to 0."
    return Case(
        book, "safe", {".csv": delimited(rows)}, BY, note, wanted="--hidden-status suppressed=TRUE"
    )


@case("numbers", "sentinel-minus-9", "-9 stands for a hidden value, as in a statistical package")
def _() -> Case:
    book = two_way(854, True)
    return Case(
        book,
        "disclosed",
        {".csv": delimited(plain_rows(book, number(), "-9"))},
        [*BY, "--hidden", "-9"],
        "-9: suppressed.",
    )


@case("numbers", "sentinel-99999", "99999 stands for a hidden value")
def _() -> Case:
    book = two_way(855, False, 30, 900)
    rows = plain_rows(book, number(), "99999")
    return Case(
        book, "safe", {".csv": delimited(rows)}, [*BY, "--hidden", "99999"], "99999: suppressed."
    )


@case("numbers", "repeated-rows", "the same cell stands twice, hidden once and shown once")
def _() -> Case:
    book = secure(true_table(856, REGION, BRANCH, low=4, high=60), 56)
    rows = plain_rows(book, number())
    cell = book.hidden[0]
    book.facts.append(Fact(((cell, 1),), book.values[cell], book.values[cell]))
    rows.append([cell[1], cell[2], str(book.values[cell])])
    return Case(
        book, "disclosed", {".csv": delimited(rows)}, BY, "x: hidden. The last row was added later."
    )


@case(
    "numbers",
    "percent-signs",
    "shares of a published total with a per cent sign in the value column itself",
)
def _() -> Case:
    book = true_table(857, REGION, low=200, high=900, counts=False)
    total = ("value", "Total")
    whole = book.values[total]
    book.hidden = [("value", "North"), ("value", "East")]
    per = {c: half_up(10000 * book.values[c], whole) for c in book.hidden}
    for c in book.hidden:
        book.facts.append(Fact(((c, 20000),), (2 * per[c] - 1) * whole, (2 * per[c] + 1) * whole))
    rows = long(
        book,
        code("region", 0),
        ("value", lambda c: f"{number(places=2)(per[c])}%" if c in per else str(book.values[c])),
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        [],
        "Where the count is confidential, its share of the total is given.",
        wanted="--percent value=value/Total",
        reason="A figure with a per cent sign is no count; what it is a share of stands only in the notes.",
        readings=[("the shares are of something else", reread(book, facts=[]))],
    )
