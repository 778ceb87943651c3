"""Files with known leaks, written by hand: a suite that misses one of them proves nothing.

Each is a failure that a release could have, whatever the product does today. Beside it stands the same release
without the leak where there is one, so that a suite that cries at everything is found out too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from attacks.suppression.cells import Population, Record, Variable
from attacks.suppression.drive import Ran
from attacks.suppression.judge import Outcome, judge
from attacks.suppression.kinds import plain
from attacks.suppression.problems import Columns, Problem
from attacks.suppression.rules import Rule

Finder = Literal["outsider", "insider", "pair", "untrue", "crashed", "nobody"]


@dataclass(frozen=True)
class Planted:
    """A release with a leak, and who must find it."""

    name: str
    problem: Problem
    files: Mapping[str, str]
    finder: Finder
    code: int | str = 0
    options: tuple[str, ...] = field(default=())

    def attack(self, folder: Path) -> Outcome:
        """What the suite finds in the files."""
        paths = []
        for name, text in self.files.items():
            path = folder / name
            path.write_text(text, encoding="utf-8")
            paths.append(path)
        return judge(self.problem, Ran(self.code, "", self.name, tuple(paths)))


def finders(outcome: Outcome) -> set[Finder]:
    """Who found something."""
    found: set[Finder] = set()
    if outcome.outsider:
        found.add("outsider")
    if outcome.insider:
        found.add("insider")
    if outcome.pair:
        found.add("pair")
    if outcome.untrue:
        found.add("untrue")
    if outcome.code == "crashed":
        found.add("crashed")
    return found or {"nobody"}


def _people(variables: tuple[Variable, ...], counts: Mapping[tuple[int, ...], int]) -> Population:
    records = [Record(codes, f"u{codes}{i}") for codes, n in counts.items() for i in range(n)]
    return Population(variables, tuple(records))


def _firms(
    variables: tuple[Variable, ...], amounts: Mapping[tuple[int, ...], Iterable[int]]
) -> Population:
    records = [
        Record(codes, f"f{codes}{i}", amount)
        for codes, several in amounts.items()
        for i, amount in enumerate(several)
    ]
    return Population(variables, tuple(records))


def _problem(
    people: Population, tables: tuple[tuple[str, ...], ...], rule: Rule, columns: Columns = "none"
) -> Problem:
    return Problem("planted", 0, people, tables, (rule,), columns)


def release(
    problem: Problem,
    table: tuple[str, ...],
    hidden: Mapping[tuple[str, ...], str],
    *,
    status: str = "status",
    free: str = "F",
    bounds: Mapping[tuple[str, ...], tuple[float, float]] | None = None,
    total: str = "Total",
    standing: bool = False,
) -> str:
    """A CSV file of the true table in which some cells carry a letter instead of a value."""
    people = problem.population
    lines = [",".join([*table, "value", status, *(("lower", "upper") if bounds else ())])]
    for where in people.table(table):
        codes = tuple(where.values())
        value = people.content(people.leaves(where)).value
        letter = hidden.get(codes)
        shown = "" if letter and not standing else str(value)
        row = [*(total if c == "Total" else c for c in codes), shown, letter or free]
        if bounds:
            row += [f"{x:g}" for x in bounds[codes]] if codes in bounds else ["", ""]
        lines.append(",".join(row))
    return "\n".join(lines) + "\n"


A, B, C = plain("a", 3), plain("b", 3), plain("c", 2)
SQUARE = {("a1", "b1"), ("a1", "b2"), ("a2", "b1"), ("a2", "b2")}


def _twos(letter: str, status: str = "status", free: str = "F") -> tuple[Problem, dict[str, str]]:
    """A block of twos: with letters that say "fewer than 3, not none" only one table fits."""
    counts = {(i, j): 2 if i < 2 and j < 2 else 9 for i in range(3) for j in range(3)}
    made = _problem(_people((A, B), counts), (("a", "b"),), Rule("threshold", (3,)))
    return made, {
        "t.csv": release(made, ("a", "b"), dict.fromkeys(SQUARE, letter), status=status, free=free)
    }


def _mixed(letters: bool) -> tuple[Problem, dict[str, str]]:
    """Ones beside threes: the secondary letter says "3 or more"."""
    counts = {(i, j): 9 for i in range(3) for j in range(3)}
    counts |= {(0, 0): 1, (0, 1): 3, (1, 0): 3, (1, 1): 5}
    made = _problem(_people((A, B), counts), (("a", "b"),), Rule("threshold", (3,)))
    hidden = {c: ("A" if c == ("a1", "b1") else "D") if letters else "N" for c in SQUARE}
    return made, {"t.csv": release(made, ("a", "b"), hidden)}


def _blank() -> tuple[Problem, dict[str, str]]:
    """One firm, published as it is because its contributions were blank."""
    people = _firms((A,), {(0,): [1000], (1,): [100] * 10, (2,): [90] * 10})
    made = _problem(people, (("a",),), Rule("p", (10,)), "largest")
    return made, {"t.csv": release(made, ("a",), {})}


BIG = {
    (0, 0): [1000000], (0, 1): [2], (0, 2): [500000], (1, 0): [9], (1, 1): [4], (1, 2): [600000],
    (2, 0): [700000], (2, 1): [800000], (2, 2): [900000],
}  # fmt: skip


def _margin(stated: bool) -> tuple[Problem, dict[str, str]]:
    """A firm of a million, hidden by three units."""
    several = {c: x if c == (0, 0) else _nine(x[0]) for c, x in BIG.items()}
    made = _problem(_firms((A, B), several), (("a", "b"),), Rule("threshold", (3,)), "n")
    bounds = {("a1", "b1"): (999996.0, 1000002.0)} if stated else None
    return made, {"t.csv": release(made, ("a", "b"), dict.fromkeys(SQUARE, "N"), bounds=bounds)}


def _nine(value: int) -> list[int]:
    """Nine contributions that add up, some of them 0."""
    return [value // 9 + (1 if i < value % 9 else 0) for i in range(9)]


def _linked() -> tuple[Problem, dict[str, str]]:
    """Only a nonnegative table behind all three files gives the firm away: at least 600, which it has."""
    two = Variable("a", ("a1", "a2")), Variable("b", ("b1", "b2")), C
    amounts = {
        (0, 0, 0): [600], (0, 0, 1): [40] * 10, (0, 1, 0): [10] * 20,
        (1, 1, 0): [20] * 25, (1, 1, 1): [20] * 25,
    }  # fmt: skip
    tables = (("a", "b"), ("a", "c"), ("b", "c"))
    made = _problem(_firms(two, amounts), tables, Rule("p", (10,)), "largest")
    hidden = {(b, c): "N" for b in ("b1", "b2") for c in ("c1", "c2")}
    files = {
        f"{''.join(t)}.csv": release(made, t, hidden if t == ("b", "c") else {}) for t in tables
    }
    return made, files


def _alone(linked: bool) -> tuple[Problem, dict[str, str]]:
    """The row has four blanks, but the file beside it shows the sum of two of them."""
    made, files = _linked()
    return made, {"bc.csv": files["bc.csv"]} if not linked else files


def _subtotal() -> tuple[Problem, dict[str, str]]:
    """A subtotal by prefix less its other part: D1 is 600."""
    nace = Variable("nace", ("D1", "D2", "E1", "E2"), {"D": ("D1", "D2"), "E": ("E1", "E2")})
    amounts = {(0,): [600], (1,): [10] * 10, (2,): [10] * 10, (3,): [5] * 10}
    made = _problem(_firms((nace,), amounts), (("nace",),), Rule("p", (10,)), "largest")
    return made, {"t.csv": release(made, ("nace",), {("D1",): "N"})}


def _standing() -> tuple[Problem, dict[str, str]]:
    """A value that still stands beside the letter that hides it."""
    made, _ = _mixed(False)
    return made, {"t.csv": release(made, ("a", "b"), dict.fromkeys(SQUARE, "N"), standing=True)}


def _bounds() -> tuple[Problem, dict[str, str]]:
    """Columns called lower and upper that are closer than the sums allow."""
    made, _ = _mixed(False)
    bounds = {("a1", "b1"): (1.0, 1.0)}
    return made, {"t.csv": release(made, ("a", "b"), dict.fromkeys(SQUARE, "N"), bounds=bounds)}


def _means() -> tuple[Problem, dict[str, str]]:
    """A mean and a number of firms beside a blank."""
    made, files = _mixed(False)
    lines = files["t.csv"].splitlines()
    lines = [f"{lines[0]},mean,firms", *(f"{line},1,{i}" for i, line in enumerate(lines[1:]))]
    return made, {"t.csv": "\n".join(lines) + "\n"}


def _negative() -> tuple[Problem, dict[str, str]]:
    """A loss in a hierarchy, of which only one part is hidden."""
    nace = Variable("nace", ("D1", "D2", "E1", "E2"), {"D": ("D1", "D2"), "E": ("E1", "E2")})
    amounts = {(0,): [-600], (1,): [10] * 10, (2,): [10] * 10, (3,): [5] * 10}
    made = _problem(_firms((nace,), amounts), (("nace",),), Rule("threshold", (3,)), "n")
    return made, {"t.csv": release(made, ("nace",), {("D1",): "N"})}


def _row(named: bool) -> tuple[Problem, dict[str, str]]:
    """Two firms, each alone in a blank of the same row: each subtracts its own cell."""
    amounts: dict[tuple[int, ...], list[int]] = {
        (i, j): [50] * 10 for i in range(3) for j in range(3)
    }
    amounts |= {(0, 0): [700], (0, 1): [600]}
    made = _problem(
        _firms((A, B), amounts), (("a", "b"),), Rule("p", (10,)), "holdings" if named else "n"
    )
    if not named:
        made = _problem(made.population, made.tables, Rule("threshold", (3,)), "n")
    return made, {"t.csv": release(made, ("a", "b"), dict.fromkeys(SQUARE, "N"))}


def _pair() -> tuple[Problem, dict[str, str]]:
    """Three firms, each alone in a blank of the same line: two of them know the third."""
    four = plain("a", 4)
    people = _firms((four,), {(0,): [700], (1,): [600], (2,): [650], (3,): [50] * 10})
    made = _problem(people, (("a",),), Rule("p", (10,)), "holdings")
    return made, {"t.csv": release(made, ("a",), {("a1",): "N", ("a2",): "N", ("a3",): "N"})}


def _crosstab() -> tuple[Problem, dict[str, str]]:
    """Margins called All taken for a category: one blank that anybody subtracts."""
    counts = {(i, j): 1 if (i, j) == (0, 0) else 9 for i in range(3) for j in range(3)}
    made = _problem(_people((A, B), counts), (("a", "b"),), Rule("threshold", (3,)))
    return made, {"t.csv": release(made, ("a", "b"), {("a1", "b1"): "N"}, total="All")}


def _lie() -> tuple[Problem, dict[str, str]]:
    """A stated range that does not hold the truth."""
    made, _ = _mixed(False)
    text = release(made, ("a", "b"), dict.fromkeys(SQUARE, "N"), bounds={("a1", "b1"): (2.0, 4.0)})
    return made, {"t.csv": text}


def planted() -> list[Planted]:
    """All of them."""
    made: list[tuple[str, tuple[Problem, dict[str, str]], Finder, int | str]] = [
        ("letters: a block of twos", _twos("A"), "outsider", 0),
        ("the same with one letter", _twos("N"), "nobody", 0),
        ("the same with the letter of OBS_STATUS", _twos("Q", "OBS_STATUS", "A"), "nobody", 0),
        ("letters: one beside threes", _mixed(True), "outsider", 0),
        ("the same with one letter", _mixed(False), "nobody", 0),
        ("blank contributions", _blank(), "outsider", 0),
        ("a threshold on sums", _margin(False), "outsider", 0),
        ("a threshold on sums, with its range", _margin(True), "outsider", 0),
        ("linked: the table behind them", _alone(True), "outsider", 0),
        ("the same, one file alone", _alone(False), "nobody", 0),
        ("audit: a subtotal by prefix", _subtotal(), "outsider", 0),
        ("audit: a value beside its letter", _standing(), "outsider", 0),
        ("audit: bounds beside a blank", _bounds(), "outsider", 0),
        ("audit: means and firms beside a blank", _means(), "untrue", 0),
        ("audit: a loss in a hierarchy", _negative(), "outsider", 0),
        ("insiders: two alone in a row", _row(False), "insider", 0),
        ("insiders: two holdings in a row", _row(True), "insider", 0),
        ("insiders: two against a third", _pair(), "pair", 0),
        ("frames: margins of a crosstab", _crosstab(), "outsider", 0),
        ("a range without the truth", _lie(), "untrue", 0),
        ("files in spite of exit code 3", _twos("N"), "untrue", 3),
        ("intake: a traceback", (_twos("N")[0], {}), "crashed", "crashed"),
    ]
    return [
        Planted(name, problem, files, finder, code) for name, (problem, files), finder, code in made
    ]
