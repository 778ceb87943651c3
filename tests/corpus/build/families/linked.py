"""Several files of one release: shared margins, quarters and years, editions, two classifications."""

from __future__ import annotations

from corpus.build.attack import Book, Cell, Fact, flat, secure, tree, true_table
from corpus.build.case import Case, case, reread
from corpus.build.layout import delimited, plain

A = tree("area", ["Total", "north", "east", "south"])
B = tree("job", ["Total", "clerk", "cook", "nurse"])
C = tree("age", ["Total", "young", "old"])


def margin(
    book: Book, *keep: int, total: str = "Total", names: tuple[str, ...] = ()
) -> list[list[str]]:
    """The table of some of the dimensions, as a long file; '' for hidden."""
    heads = names or tuple(book.dims[k].name for k in keep)
    rows = [[*heads, "value"]]
    for cell in book.values:
        if all(code == total for i, code in enumerate(cell[1:]) if i not in keep):
            rows.append(
                [
                    *(cell[k + 1] for k in keep),
                    "x" if cell in book.hidden else plain(book.values[cell]),
                ]
            )
    return rows


def only(book: Book, *tables: tuple[int, ...], total: str = "Total") -> None:
    """Leave out the cells that no table holds."""
    for cell in book.values:
        if not any(
            all(c == total for i, c in enumerate(cell[1:]) if i not in keep) for keep in tables
        ):
            book.unlisted.add(cell)


def hide(book: Book, *cells: tuple[str, ...]) -> None:
    book.hidden = [("value", *c) for c in cells]


AB_AC = ["{stem}-job.csv", "{stem}-age.csv"]


def two_files(book: Book) -> dict[str, bytes]:
    return {"-job.csv": delimited(margin(book, 0, 1)), "-age.csv": delimited(margin(book, 0, 2))}


def seen_elsewhere(book: Book, *cells: tuple[str, ...]) -> None:
    """Cells that one file hides and another shows."""
    for codes in cells:
        cell = ("value", *codes)
        book.hidden.append(cell)
        book.facts.append(Fact(((cell, 1),), book.values[cell], book.values[cell]))


def without(rows: list[list[str]], *stubs: tuple[str, ...]) -> bytes:
    """The file with more cells hidden; the reader finds them in another file."""
    return delimited([[*r[:-1], "x"] if tuple(r[:-1]) in stubs else r for r in rows])


@case(
    "linked",
    "margin-in-the-other-file",
    "area by job and area by age; a margin hidden in one file stands in the other",
)
def _() -> Case:
    book = true_table(901, A, B, C, low=5, high=60)
    only(book, (0, 1), (0, 2))
    hide(book, ("north", "clerk", "Total"), ("east", "clerk", "Total"))
    files = two_files(book)
    files["-job.csv"] = without(margin(book, 0, 1), ("north", "Total"), ("east", "Total"))
    seen_elsewhere(book, ("north", "Total", "Total"), ("east", "Total", "Total"))
    return Case(
        book,
        "disclosed",
        files,
        [],
        "x: hidden. Both files are about the same people.",
        inputs=AB_AC,
    )


@case(
    "linked", "two-files-safe", "area by job and area by age; hidden cells in each, nothing leaks"
)
def _() -> Case:
    book = true_table(902, A, B, C, low=5, high=60)
    only(book, (0, 1), (0, 2))
    hide(book, *JOB_BLOCK)
    return Case(
        book,
        "safe",
        two_files(book),
        [],
        "x: hidden. Both files are about the same people.",
        inputs=AB_AC,
    )


JOB_BLOCK = [
    ("north", "clerk", "Total"),
    ("north", "cook", "Total"),
    ("south", "clerk", "Total"),
    ("south", "cook", "Total"),
]
AGE_BLOCK = [
    ("north", "Total", "young"),
    ("north", "Total", "old"),
    ("east", "Total", "young"),
    ("east", "Total", "old"),
]


@case(
    "linked",
    "two-files-both-hidden",
    "area by job and area by age; blocks hidden in both files, nothing leaks",
)
def _() -> Case:
    book = true_table(903, A, B, C, low=5, high=60)
    only(book, (0, 1), (0, 2))
    hide(book, *JOB_BLOCK, *AGE_BLOCK)
    return Case(
        book,
        "safe",
        two_files(book),
        [],
        "x: hidden. Both files are about the same people.",
        inputs=AB_AC,
    )


def cube(seed: int, *hidden: tuple[str, ...]) -> Book:
    """Three tables of two variables each, of a sparse table of all three."""
    book = true_table(seed, A, B, C, low=0, high=5, zeros=55)
    only(book, (0, 1), (0, 2), (1, 2))
    hide(book, *hidden)
    return book


def three_files(book: Book) -> dict[str, bytes]:
    pairs = {"-area-job.csv": (0, 1), "-area-age.csv": (0, 2), "-job-age.csv": (1, 2)}
    return {end: delimited(margin(book, *keep)) for end, keep in pairs.items()}


THREE = ["{stem}-area-job.csv", "{stem}-area-age.csv", "{stem}-job-age.csv"]
BLOCK = [
    ("north", "clerk", "Total"),
    ("north", "cook", "Total"),
    ("east", "clerk", "Total"),
    ("east", "cook", "Total"),
]


def apart(book: Book) -> Book:
    """The first table alone, as one reads it who does not use the others."""
    values = {(c[0], c[1], c[2]): v for c, v in book.values.items() if c[3] == "Total"}
    return Book(book.dims[:2], values, [c[:3] for c in book.hidden if c[3] == "Total"])


def find_cube(want: str) -> Book:
    """The first seed at which the first table alone is open and the cube behind all three says `want`."""
    for seed in range(9100, 9400):
        book = cube(seed, *BLOCK)
        alone = apart(book)
        if alone.verdict(alone.ranges()) == "safe" and book.verdict(book.ranges()) == want:
            return book
    raise ValueError("no such cube")


@case(
    "linked",
    "cube-behind-three",
    "three tables of two variables each; only the table of all three behind them discloses",
)
def _() -> Case:
    book = find_cube("disclosed")
    return Case(
        book,
        "disclosed",
        three_files(book),
        [],
        "x: hidden. All files are about the same people.",
        inputs=THREE,
    )


@case(
    "linked",
    "cube-behind-three-safe",
    "three tables of two variables each; also the table behind them leaves all open",
)
def _() -> Case:
    book = find_cube("safe")
    return Case(
        book,
        "safe",
        three_files(book),
        [],
        "x: hidden. All files are about the same people.",
        inputs=THREE,
    )


QUARTERS = ["Q1", "Q2", "Q3", "Q4"]


def response_files(book: Book) -> dict[str, bytes]:
    files = {}
    for response in book.responses:
        rows = [[d.name for d in book.dims] + ["value"]]
        for c in book.cells:
            if c[0] == response:
                rows.append([*c[1:], "c" if c in book.hidden else plain(book.values[c])])
        files[f"-{response}.csv"] = delimited(rows)
    return files


@case(
    "linked",
    "quarters-and-year",
    "a file for each quarter and one for the year; the year is hidden, quarters are not",
)
def _() -> Case:
    parts = {**{q: {q: 1} for q in QUARTERS}, "year": dict.fromkeys(QUARTERS, 1)}
    book = true_table(904, A, low=5, high=90, responses=parts)
    book.hidden = [("year", "north"), ("year", "east")]
    alone = reread(book, responses={r: {r: 1} for r in parts})
    return Case(
        book,
        "disclosed",
        response_files(book),
        ["--relation", "year = Q1 + Q2 + Q3 + Q4"],
        "The year is the sum of its quarters. c: confidential.",
        inputs=[f"{r}={{stem}}-{r}.csv" for r in parts],
        reason="The files do not say that the year is the sum of the quarters.",
        readings=[("the figures of the year are compiled apart", alone)],
    )


@case(
    "linked",
    "domestic-export-safe",
    "turnover, domestic and export turnover in files of their own, nothing leaks",
)
def _() -> Case:
    parts = {
        "turnover": {"domestic": 1, "export": 1},
        "domestic": {"domestic": 1},
        "export": {"export": 1},
    }
    book = true_table(905, A, low=50, high=900, responses=parts, counts=False)
    book.hidden = [(r, a) for r in ("domestic", "export") for a in ("north", "east")]
    return Case(
        book,
        "safe",
        response_files(book),
        ["--relation", "turnover = domestic + export"],
        "Turnover is domestic and export turnover. c: confidential.",
        inputs=[f"{r}={{stem}}-{r}.csv" for r in parts],
    )


@case(
    "linked",
    "domestic-export-leak",
    "turnover, domestic and export turnover in files of their own; one file gives it away",
)
def _() -> Case:
    parts = {
        "turnover": {"domestic": 1, "export": 1},
        "domestic": {"domestic": 1},
        "export": {"export": 1},
    }
    book = true_table(906, A, low=50, high=900, responses=parts, counts=False)
    book.hidden = [
        ("turnover", "north"),
        ("turnover", "east"),
        ("export", "north"),
        ("export", "south"),
    ]
    return Case(
        book,
        "disclosed",
        response_files(book),
        ["--relation", "turnover = domestic + export"],
        "Turnover is domestic and export turnover. c: confidential.",
        inputs=[f"{r}={{stem}}-{r}.csv" for r in parts],
    )


def editions(book: Book, first: list[Cell], second: list[Cell]) -> dict[str, bytes]:
    files = {}
    for end, hidden in (("-march.csv", first), ("-june.csv", second)):
        rows = [["area", "job", "value"]]
        rows += [[c[1], c[2], "x" if c in hidden else plain(book.values[c])] for c in book.cells]
        files[end] = delimited(rows)
    return files


@case(
    "linked",
    "two-editions",
    "two editions of one table; the second hides other cells than the first",
)
def _() -> Case:
    book = true_table(907, A, B, low=5, high=60)
    secure(book, 7)
    first = list(book.hidden)
    secure(book, 8)
    second = list(book.hidden)
    assert first != second
    for c in set(first) ^ set(second):
        book.facts.append(Fact(((c, 1),), book.values[c], book.values[c]))
    book.hidden = [c for c in book.cells if c in first or c in second]
    book.facts.sort(key=lambda f: f.terms)
    return Case(
        book,
        "disclosed",
        editions(book, first, second),
        [],
        "Both editions are about the same figures. x: hidden.",
        inputs=["{stem}-march.csv", "{stem}-june.csv"],
    )


@case("linked", "two-editions-safe", "two editions of one table that hide the same cells")
def _() -> Case:
    book = secure(true_table(908, A, B, low=5, high=60), 9)
    return Case(
        book,
        "safe",
        editions(book, book.hidden, book.hidden),
        [],
        "Both editions are about the same figures. x: hidden.",
        inputs=["{stem}-march.csv", "{stem}-june.csv"],
    )


@case(
    "linked",
    "names-differ",
    "two files over the same regions under different column names (area, geo)",
)
def _() -> Case:
    book = true_table(909, A, B, C, low=5, high=60)
    only(book, (0, 1), (0, 2))
    hide(book, ("north", "clerk", "Total"), ("east", "clerk", "Total"))
    first = without(margin(book, 0, 1), ("north", "Total"), ("east", "Total"))
    second = delimited(margin(book, 0, 2, names=("geo", "age")))
    seen_elsewhere(book, ("north", "Total", "Total"), ("east", "Total", "Total"))
    values = {(c[0], c[1], c[2]): v for c, v in book.values.items() if c[3] == "Total"}
    alone = Book((A, B), values, [("value", "north", "clerk"), ("value", "east", "clerk")])
    alone.hidden += [("value", a, "Total") for a in ("north", "east")]
    return Case(
        book,
        "disclosed",
        {"-job.csv": first, "-age.csv": second},
        [],
        "area and geo are the same regions. x: hidden.",
        wanted="--same area=geo",
        inputs=AB_AC,
        reason="Nothing in the files says that 'area' and 'geo' are one variable.",
        readings=[
            (
                "area and geo are different variables, so the second file is about something else",
                alone,
            )
        ],
    )


@case(
    "linked",
    "coarse-and-fine",
    "a file by sections and one by divisions; a section hidden in one is the sum of its divisions",
)
def _() -> Case:
    nace = tree("nace", ["Total", ["C", "C10", "C11"], ["D", "D35", "D36"], ["E", "E37", "E38"]])
    book = true_table(910, nace, low=20, high=90)
    coarse = ["Total", "C", "D", "E"]
    fine = ["C10", "C11", "D35", "D36", "E37", "E38"]
    book.hidden = [("value", "C"), ("value", "D")]
    files = {}
    for end, codes in (("-sections.csv", coarse), ("-divisions.csv", fine)):
        rows = [
            ["nace", "value"],
            *(
                [c, "x" if ("value", c) in book.hidden else plain(book.values["value", c])]
                for c in codes
            ),
        ]
        files[end] = delimited(rows)
    files[".hrc"] = b"C\n@C10\n@C11\nD\n@D35\n@D36\nE\n@E37\n@E38\n"
    return Case(
        book,
        "disclosed",
        files,
        ["--hierarchy", "nace={stem}.hrc"],
        "Divisions C10 and C11 make up section C, and so on. x: hidden.",
        inputs=["{stem}-sections.csv", "{stem}-divisions.csv"],
    )


@case(
    "linked",
    "two-years-apart",
    "the same table of two years in two files; they are different populations",
)
def _() -> Case:
    years = flat("year", "2020", "2021")
    book = secure(true_table(911, A, B, years, low=5, high=60), 11)
    files = {}
    for year in years.codes:
        rows = [["area", "job", "year", "value"]]
        rows += [
            [*c[1:], "x" if c in book.hidden else plain(book.values[c])]
            for c in book.cells
            if c[3] == year
        ]
        files[f"-{year}.csv"] = delimited(rows)
    return Case(
        book,
        "safe",
        files,
        ["--by", "area,job,year", "--no-totals", "year"],
        "One file a year. x: hidden.",
        inputs=["{stem}-2020.csv", "{stem}-2021.csv"],
    )
