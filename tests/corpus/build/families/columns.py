"""Columns beside the values: means, shares, bounds, rates, second measures, ranks, weights."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from corpus.build.attack import Book, Cell, Fact, flat, leak, secure, tree, true_table
from corpus.build.case import Case, case, reread
from corpus.build.layout import (
    code,
    delimited,
    flag,
    half_up,
    long,
    mean_fact,
    number,
    share_fact,
    value,
)

BRANCH = tree("branch", ["Total", "Mining", "Metals", "Energy", "Water"])
REGION = tree("region", ["Total", "N", "E", "S"])
UNKNOWN = "A column of numbers that nobody explained may be computed from the hidden values."


def firms(book: Book, low: int = 3) -> dict[Cell, int]:
    """A number of units for every cell, additive by the tree: 3 to 9 in each smallest cell."""
    inner = {c: low + (i * 5) % 7 for i, c in enumerate(book.values)}
    result = {}
    for cell in book.values:
        parts = [
            c
            for c in book.values
            if all(
                d.codes[a] <= d.codes[b] and d.is_leaf(a)
                for d, a, b in zip(book.dims, c[1:], cell[1:], strict=True)
            )
        ]
        result[cell] = sum(inner[c] for c in parts)
    return result


def one_way(
    seed: int, hidden: tuple[str, ...] = ("Mining", "Energy"), low: int = 300, high: int = 9000
) -> Book:
    book = true_table(seed, BRANCH, low=low, high=high, counts=False)
    book.hidden = [("value", h) for h in hidden]
    return book


def unexplained(
    book: Book,
    rows: list[list[str]],
    options: list[str],
    notes: str,
    wanted: str,
    want: str = "disclosed",
) -> Case:
    """A case of a companion column: with it the hidden values follow, without it they do not."""
    return Case(
        book,
        want,
        {".csv": delimited(rows)},
        options,
        notes,
        wanted=wanted,
        reason=UNKNOWN,
        readings=[("the column has nothing to do with the values", reread(book, facts=[]))],
    )


@case(
    "columns", "mean-times-firms", "turnover hidden, but number of firms and turnover per firm stay"
)
def _() -> Case:
    book = one_way(601)
    n = firms(book)
    tenths = {c: half_up(10 * book.values[c], n[c]) for c in book.values}
    book.facts = [mean_fact(book, c, n[c], tenths[c]) for c in book.hidden]
    rows = long(
        book,
        code("branch", 0),
        ("firms", lambda c: str(n[c])),
        value(book, "turnover", "x"),
        ("turnover_per_firm", lambda c: number(places=1)(tenths[c])),
    )
    note = "turnover_per_firm: turnover divided by firms, one decimal."
    return unexplained(
        book, rows, ["--value", "turnover"], note, "--mean turnover_per_firm=turnover/firms"
    )


@case(
    "columns",
    "mean-hidden-too",
    "turnover and turnover per firm hidden in the same rows, number of firms stays",
)
def _() -> Case:
    book = one_way(602)
    n = firms(book)
    rows = long(
        book,
        code("branch", 0),
        ("firms", lambda c: str(n[c])),
        value(book, "turnover", "x"),
        (
            "turnover_per_firm",
            lambda c: (
                "x" if c in book.hidden else number(places=1)(half_up(10 * book.values[c], n[c]))
            ),
        ),
    )
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        ["--value", "turnover", "--by", "branch"],
        "turnover_per_firm: turnover divided by firms. The two are hidden together.",
        wanted="--mean turnover_per_firm=turnover/firms",
    )


@case(
    "columns", "percent-of-total", "share in per cent with two decimals stays beside a hidden count"
)
def _() -> Case:
    book = one_way(603)
    total = ("value", "Total")
    per = {c: half_up(10000 * v, book.values[total]) for c, v in book.values.items()}
    book.facts = [f for c in book.hidden for f in share_fact(c, total, 10000, per[c])]
    rows = long(
        book,
        code("branch", 0),
        value(book, "value", "x"),
        ("share", lambda c: number(places=2)(per[c])),
    )
    note = "share: per cent of the total, two decimals."
    return unexplained(book, rows, [], note, "--percent share=value/Total")


@case(
    "columns",
    "percent-coarse",
    "share in whole per cent stays; it leaves hidden values open by a tenth",
)
def _() -> Case:
    book = true_table(604, BRANCH, low=30, high=60, counts=True)
    book.values.update(
        {
            ("value", "Mining"): 3,
            ("value", "Energy"): 4,
            ("value", "Metals"): 410,
            ("value", "Water"): 300,
        }
    )
    book.values["value", "Total"] = 717
    book.hidden = [("value", "Mining"), ("value", "Energy")]
    total = ("value", "Total")
    per = {c: half_up(100 * v, 717) for c, v in book.values.items()}
    book.facts = [f for c in book.hidden for f in share_fact(c, total, 100, per[c])]
    rows = long(
        book, code("branch", 0), value(book, "value", "x"), ("percent", lambda c: str(per[c]))
    )
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        [],
        "percent: whole per cent of the total.",
        wanted="--percent percent=value/Total",
    )


@case(
    "columns",
    "percent-of-hidden-total",
    "row percentages stay; the row total and one part are hidden, another part stays",
)
def _() -> Case:
    book = true_table(605, REGION, BRANCH, low=300, high=900, counts=False)
    row = "E"
    book.hidden = [
        ("value", row, "Total"),
        ("value", row, "Mining"),
        ("value", "N", "Total"),
        ("value", "N", "Mining"),
    ]
    per = {
        c: half_up(1000 * v, book.values["value", c[1], "Total"]) for c, v in book.values.items()
    }
    book.facts = [
        f
        for r in ("E", "N")
        for b in ("Metals", "Energy", "Water")
        for f in share_fact(("value", r, b), ("value", r, "Total"), 1000, per["value", r, b])
    ]
    rows = long(
        book,
        code("region", 0),
        code("branch", 1),
        value(book, "value", "x"),
        ("row_pct", lambda c: number(places=1)(per[c])),
    )
    note = "row_pct: per cent of the row total."
    return unexplained(book, rows, [], note, "--percent row_pct=value/branch:Total")


@case("columns", "bounds-columns", "lower and upper beside a hidden value: the two meet")
def _() -> Case:
    book = one_way(606)
    n = book.values
    book.facts = [Fact(((c, 1),), n[c] - 2, n[c] + 2) for c in book.hidden]
    rows = long(
        book,
        code("branch", 0),
        value(book, "value", "x"),
        ("lower", lambda c: str(n[c] - 2) if c in book.hidden else ""),
        ("upper", lambda c: str(n[c] + 2) if c in book.hidden else ""),
    )
    note = "lower and upper: the range in which a hidden value lies."
    return unexplained(book, rows, [], note, "--bounds lower,upper")


@case(
    "columns",
    "bounds-columns-wide",
    "lower and upper beside a hidden value: a wide range, published on purpose",
)
def _() -> Case:
    book = one_way(607)
    n = book.values
    low = {c: n[c] * 7 // 10 for c in book.hidden}
    high = {c: n[c] * 14 // 10 for c in book.hidden}
    book.facts = [Fact(((c, 1),), low[c], high[c]) for c in book.hidden]
    rows = long(
        book,
        code("branch", 0),
        value(book, "value", "x"),
        ("lower", lambda c: str(low.get(c, ""))),
        ("upper", lambda c: str(high.get(c, ""))),
    )
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        [],
        "lower and upper: the range of a hidden value.",
        wanted="--bounds lower,upper",
    )


@case("columns", "bounds-meet-totals", "ranges that are wide alone and meet through the total")
def _() -> Case:
    book = true_table(608, BRANCH, low=30, high=90)
    hidden = {"Mining": (10, 15), "Energy": (20, 27)}
    book.values.update({("value", "Mining"): 15, ("value", "Energy"): 27})
    book.values["value", "Total"] = sum(
        book.values["value", c] for c in ("Mining", "Metals", "Energy", "Water")
    )
    book.hidden = [("value", h) for h in hidden]
    book.facts = [Fact(((("value", h), 1),), a, b) for h, (a, b) in hidden.items()]
    rows = long(
        book,
        code("branch", 0),
        value(book, "value", "x"),
        ("range", lambda c: "{}-{}".format(*hidden[c[1]]) if c[1] in hidden else ""),
    )
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        [],
        "range: the class in which a hidden count lies.",
        wanted="--bounds range",
        reason="The column 'range' says something about the hidden values that nobody explained to a machine.",
        readings=[("the classes are those of another year", reread(book, facts=[]))],
    )


@case("columns", "rate-per-1000", "births hidden, population and rate per 1000 stay")
def _() -> Case:
    book = true_table(609, REGION, low=40, high=400, counts=False)
    people = {c: 1000 * (7 + 5 * i) + 321 for i, c in enumerate(book.values)}
    people["value", "Total"] = sum(people[c] for c in book.values if c[1] != "Total")
    rate = {c: half_up(100 * 1000 * book.values[c], people[c]) for c in book.values}
    book.hidden = [("value", "N"), ("value", "E")]
    for c in book.hidden:
        book.facts.append(
            Fact(((c, 200000),), (2 * rate[c] - 1) * people[c], (2 * rate[c] + 1) * people[c])
        )
    rows = long(
        book,
        code("region", 0),
        ("population", lambda c: str(people[c])),
        value(book, "births", "x"),
        ("births_per_1000", lambda c: number(places=2)(rate[c])),
    )
    note = "births_per_1000: births per 1000 inhabitants, two decimals."
    return unexplained(
        book, rows, ["--value", "births"], note, "--rate births_per_1000=1000*births/population"
    )


@case(
    "columns",
    "population-beside",
    "a population column that has nothing to do with the hidden counts",
)
def _() -> Case:
    book = secure(true_table(610, REGION, BRANCH, low=4, high=60), 10)
    people = {"Total": 61234, "N": 30111, "E": 20022, "S": 11101}
    rows = long(
        book,
        code("region", 0),
        ("population", lambda c: str(people[c[1]])),
        code("branch", 1),
        value(book, "cases", "x"),
    )
    options = ["--by", "region,branch", "--value", "cases"]
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        options,
        "population: inhabitants of the region.",
        wanted="--ignore population",
    )


@case(
    "columns",
    "turnover-domestic-export",
    "turnover = domestic + export; one of three hidden in a row",
)
def _() -> Case:
    parts = {
        "turnover": {"domestic": 1, "export": 1},
        "domestic": {"domestic": 1},
        "export": {"export": 1},
    }
    book = true_table(611, BRANCH, low=30, high=900, responses=parts)
    book.hidden = [
        ("turnover", "Mining"),
        ("turnover", "Metals"),
        ("export", "Mining"),
        ("export", "Energy"),
        ("domestic", "Energy"),
        ("domestic", "Water"),
    ]
    rows = measures(book)
    apart = reread(book, responses={r: {r: 1} for r in parts})
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        [
            "--value",
            "turnover",
            "--value",
            "domestic",
            "--value",
            "export",
            "--relation",
            "turnover = domestic + export",
        ],
        "Turnover is domestic and export turnover together.",
        reason="The file does not say that one column is the sum of the two others.",
        readings=[("the columns are unrelated", apart)],
    )


def measures(book: Book, mark: str = "x", form: Callable[[int], str] = str) -> list[list[str]]:
    """One column for each response."""
    names = list(book.responses)
    head = [d.name for d in book.dims]
    rows = [[*head, *names]]
    for cell in book.cells:
        if cell[0] == names[0]:
            line = list(cell[1:])
            for n in names:
                c = (n, *cell[1:])
                line.append(mark if c in book.hidden else form(book.values[c]))
            rows.append(line)
    return rows


@case(
    "columns",
    "turnover-parts-safe",
    "turnover = domestic + export; hidden cells stay open in spite of the relation",
)
def _() -> Case:
    parts = {
        "turnover": {"domestic": 1, "export": 1},
        "domestic": {"domestic": 1},
        "export": {"export": 1},
    }
    book = true_table(612, BRANCH, low=300, high=900, responses=parts, counts=False)
    book.hidden = [(r, b) for b in ("Mining", "Energy") for r in ("domestic", "export")]
    return Case(
        book,
        "safe",
        {".csv": delimited(measures(book))},
        [
            "--value",
            "turnover",
            "--value",
            "domestic",
            "--value",
            "export",
            "--relation",
            "turnover = domestic + export",
        ],
        "Turnover is domestic and export turnover together.",
    )


@case("columns", "employees-sex", "employees, men, women as columns: men hidden, women not")
def _() -> Case:
    parts = {"employees": {"men": 1, "women": 1}, "men": {"men": 1}, "women": {"women": 1}}
    book = true_table(613, BRANCH, low=3, high=90, responses=parts)
    book.hidden = [("men", "Mining"), ("men", "Water")]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(measures(book, "*"))},
        [
            "--value",
            "employees",
            "--value",
            "men",
            "--value",
            "women",
            "--relation",
            "employees = men + women",
            "--hidden",
            "*",
        ],
        "Employees: men and women.",
        reason="The file does not say that one column is the sum of the two others.",
        readings=[
            ("the columns are unrelated", reread(book, responses={r: {r: 1} for r in parts}))
        ],
    )


@case(
    "columns",
    "trade-balance",
    "exports, imports and a balance that may be negative; imports hidden",
)
def _() -> Case:
    parts = {
        "exports": {"exports": 1},
        "imports": {"imports": 1},
        "balance": {"exports": 1, "imports": -1},
    }
    book = true_table(614, BRANCH, low=300, high=900, responses=parts, counts=False)
    book.hidden = [("imports", "Mining"), ("imports", "Water")]
    alone = reread(book, responses={r: {r: 1} for r in parts}, signed=frozenset({"balance"}))
    return Case(
        book,
        "disclosed",
        {".csv": delimited(measures(book, "c"))},
        [
            "--value",
            "exports",
            "--value",
            "imports",
            "--value",
            "balance",
            "--relation",
            "exports = imports + balance",
        ],
        "Balance: exports less imports.",
        reason="The file does not say that the balance is the difference of the two other columns.",
        readings=[("the columns are unrelated", alone)],
    )


@case("columns", "cumulative", "a cumulative column runs on over hidden months")
def _() -> Case:
    months = ["Jan", "Feb", "Mar", "Apr", "May"]
    dim = flat("month", *months)
    book = true_table(615, dim, low=30, high=900)
    book.hidden = [("value", "Mar"), ("value", "Apr")]
    running = {
        m: sum(book.values["value", k] for k in months[: i + 1]) for i, m in enumerate(months)
    }
    for i, m in enumerate(months):
        book.facts.append(
            Fact(tuple((("value", k), 1) for k in months[: i + 1]), running[m], running[m])
        )
    rows = long(
        book,
        code("month", 0),
        value(book, "value", "x"),
        ("cumulative", lambda c: str(running[c[1]])),
    )
    note = "cumulative: sum since January."
    return unexplained(
        book, rows, ["--no-totals", "month"], note, "--cumulative cumulative=value over month"
    )


@case(
    "columns",
    "growth",
    "last year's value and the growth in per cent stay beside this year's hidden value",
)
def _() -> Case:
    book = one_way(616)
    before = {c: v * 9 // 10 + 37 for c, v in book.values.items()}
    growth = {c: half_up(1000 * (v - before[c]), before[c]) for c, v in book.values.items()}
    for c in book.hidden:
        low, high = (2 * growth[c] - 1 + 2000) * before[c], (2 * growth[c] + 1 + 2000) * before[c]
        book.facts.append(Fact(((c, 2000),), low, high))
    rows = long(
        book,
        code("branch", 0),
        ("2020", lambda c: str(before[c])),
        value(book, "2021", "x"),
        ("change_pct", lambda c: number(places=1)(growth[c])),
    )
    note = "change_pct: change from 2020 to 2021 in per cent."
    return unexplained(book, rows, ["--value", "2021"], note, "--growth change_pct=2021/2020")


@case("columns", "index-column", "an index (2015 = 100) stays and the base values are in the notes")
def _() -> Case:
    book = one_way(617)
    base = {c: v * 8 // 10 + 11 for c, v in book.values.items()}
    index = {c: half_up(1000 * v, base[c]) for c, v in book.values.items()}
    for c in book.hidden:
        book.facts.append(
            Fact(((c, 2000),), (2 * index[c] - 1) * base[c], (2 * index[c] + 1) * base[c])
        )
    rows = long(
        book,
        code("branch", 0),
        ("base_2015", lambda c: str(base[c])),
        value(book, "value", "x"),
        ("index_2015_100", lambda c: number(places=1)(index[c])),
    )
    note = "index_2015_100: value in per cent of base_2015."
    return unexplained(book, rows, [], note, "--percent index_2015_100=value/base_2015")


@case(
    "columns",
    "rank",
    "a rank by value stays beside hidden values; it orders them, ranges stay wide",
)
def _() -> Case:
    book = one_way(618, ("Mining", "Energy"), low=3000, high=9000)
    book.values.update(
        {
            ("value", "Mining"): 2000,
            ("value", "Energy"): 4000,
            ("value", "Metals"): 9000,
            ("value", "Water"): 900,
        }
    )
    book.values["value", "Total"] = 15900
    order = ["Metals", "Energy", "Mining", "Water"]
    for first, second in pairwise(order):
        book.facts.append(Fact(((("value", first), 1), (("value", second), -1)), 0, None))
    rows = long(
        book,
        code("branch", 0),
        value(book, "value", "x"),
        ("rank", lambda c: str(order.index(c[1]) + 1) if c[1] in order else ""),
    )
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        [],
        "rank: by value, the largest first.",
        wanted="--rank rank=value",
    )


@case("columns", "cv-column", "a coefficient of variation beside each value, hidden ones included")
def _() -> Case:
    book = secure(true_table(619, REGION, BRANCH, low=40, high=600), 19)
    spread = {c: (i * 13) % 23 + 1 for i, c in enumerate(book.values)}
    rows = long(
        book,
        code("region", 0),
        code("branch", 1),
        value(book, "value", "x"),
        ("cv_pct", lambda c: number(places=1)(spread[c])),
    )
    note = "cv_pct: coefficient of variation of the estimate."
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        ["--by", "region,branch"],
        note,
        wanted="--ignore cv_pct",
    )


@case(
    "columns",
    "copy-of-value",
    "a second column repeats the values with one decimal, hidden ones too",
)
def _() -> Case:
    book = one_way(630)
    book.facts = [Fact(((c, 1),), book.values[c], book.values[c]) for c in book.hidden]
    rows = long(
        book,
        code("branch", 0),
        value(book, "value", "x"),
        ("value_unrounded", lambda c: f"{book.values[c]}.0"),
    )
    note = "value_unrounded: the value before it was prepared for publication."
    return unexplained(book, rows, [], note, "--same value_unrounded=value")


@case("columns", "two-units", "the same figures in euro and in thousands; hidden in euro only")
def _() -> Case:
    book = one_way(621, low=300000, high=900000)
    thousand = {c: half_up(v, 1000) for c, v in book.values.items()}
    for c in book.hidden:
        book.facts.append(
            Fact(((c, 2),), (2 * thousand[c] - 1) * 1000, (2 * thousand[c] + 1) * 1000)
        )
    rows = long(
        book,
        code("branch", 0),
        value(book, "euro", "x"),
        ("thousand_euro", lambda c: str(thousand[c])),
    )
    note = "thousand_euro: the same figures in thousands."
    return unexplained(book, rows, ["--value", "euro"], note, "--same euro=1000*thousand_euro")


@case(
    "columns",
    "two-independent-values",
    "two unrelated measures, each with its own hidden cells, both safe",
)
def _() -> Case:
    book = true_table(
        622, BRANCH, low=30, high=900, responses={"births": {"births": 1}, "deaths": {"deaths": 1}}
    )
    book.hidden = [
        ("births", "Mining"),
        ("births", "Water"),
        ("deaths", "Metals"),
        ("deaths", "Energy"),
    ]
    return Case(
        book,
        "safe",
        {".csv": delimited(measures(book))},
        ["--value", "births", "--value", "deaths"],
        "Two unrelated measures.",
    )


@case("columns", "two-values-one-leaks", "two unrelated measures; the second column leaks")
def _() -> Case:
    book = true_table(
        623, BRANCH, low=30, high=900, responses={"births": {"births": 1}, "deaths": {"deaths": 1}}
    )
    book.hidden = [("births", "Mining"), ("births", "Water"), ("deaths", "Metals")]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(measures(book))},
        ["--value", "births", "--value", "deaths"],
        "Two unrelated measures.",
    )


@case(
    "columns",
    "number-of-firms",
    "the number of firms stays beside hidden sums, with a status letter C",
)
def _() -> Case:
    book = one_way(624)
    n = firms(book)
    rows = long(
        book,
        code("branch", 0),
        ("n", lambda c: str(n[c])),
        value(book, "value", "x"),
        flag(book, "status", "C"),
    )
    note = "n: number of firms. C: confidential."
    return Case(
        book,
        "safe",
        {".csv": delimited(rows)},
        ["--by", "branch"],
        note,
        wanted="--ignore n, or --contributors n",
    )


@case(
    "columns",
    "number-of-firms-leak",
    "the number of firms beside turnover in two dimensions; a sum can be subtracted",
)
def _() -> Case:
    book = leak(true_table(625, REGION, BRANCH, low=300, high=9000, counts=False), 25)
    n = firms(book)
    rows = long(
        book,
        code("region", 0),
        code("branch", 1),
        ("firms", lambda c: str(n[c])),
        value(book, "turnover", "x"),
    )
    options = ["--by", "region,branch", "--value", "turnover"]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(rows)},
        options,
        "firms: number of firms.",
        wanted="--ignore firms",
    )


@case("columns", "quarters-and-year", "four quarters and the year as columns; one quarter hidden")
def _() -> Case:
    q = {f"Q{i}": {f"Q{i}": 1} for i in range(1, 5)}
    parts = {**q, "Year": dict.fromkeys(q, 1)}
    book = true_table(626, BRANCH, low=30, high=900, responses=parts)
    book.hidden = [("Q2", "Mining"), ("Q2", "Metals")]
    options = [a for r in parts for a in ("--value", r)] + [
        "--relation",
        "Year = Q1 + Q2 + Q3 + Q4",
    ]
    return Case(
        book,
        "disclosed",
        {".csv": delimited(measures(book))},
        options,
        "Year: sum of the four quarters.",
        reason="The file does not say that the year is the sum of the quarters; it might be the average.",
        readings=[
            (
                "the year is not a sum of the quarters",
                reread(book, responses={r: {r: 1} for r in parts}),
            )
        ],
    )


@case(
    "columns",
    "stock-at-year-end",
    "four quarters and the year of a stock: the year is not the sum of the quarters",
)
def _() -> Case:
    q = {f"Q{i}": {f"Q{i}": 1} for i in range(1, 5)}
    parts = {**q, "Year": {"Year": 1}}
    book = true_table(627, BRANCH, low=30, high=900, responses=parts)
    book.hidden = [("Q2", "Mining"), ("Q2", "Metals")]
    for b in BRANCH.codes:
        book.values["Year", b] = sum(book.values[f"Q{i}", b] for i in range(1, 5))
    summed = {**q, "Year": dict.fromkeys(q, 1)}
    for b in ("Mining", "Metals"):
        delta = 5 if b == "Mining" else -5
        book.values["Year", b] += delta
    options = [a for r in parts for a in ("--value", r)]
    near = reread(book, responses=summed)
    for b, delta in (("Mining", 5), ("Metals", -5)):
        near.values["Q2", b] += delta
    return Case(
        book,
        "safe",
        {".csv": delimited(measures(book))},
        options,
        "Year: accounts of the whole year, compiled apart from the quarters.",
        wanted="--unrelated Year",
        reason="In every complete row the year is the sum of the quarters; a reader would rely on it.",
        readings=[("the year is the sum of the quarters", near)],
    )
