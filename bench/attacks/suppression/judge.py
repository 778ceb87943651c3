"""Attacks on one run, and what they found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from attacks.suppression.attackers import Insider, Known, insiders, pairs, reader_facts
from attacks.suppression.cells import Content, Leaves
from attacks.suppression.drive import Ran
from attacks.suppression.files import Claims, Written, read, read_certificate
from attacks.suppression.problems import Problem
from attacks.suppression.programs import INFINITY, Facts, Program

MOST_PAIRS = 40
WHOLE = 150
"""Cells of the unseen table up to which counts are attacked with whole numbers."""


@dataclass(frozen=True)
class Short:
    """A primary cell that somebody knows more closely than its protection allows."""

    who: str
    cell: str
    value: int
    demanded: tuple[float, float]
    left: tuple[float, float]
    leaves: Leaves = frozenset()
    estimates: bool = True

    def __str__(self) -> str:
        left = " to ".join(f"{x:g}" for x in self.left)
        need = " to ".join(f"{x:g}" for x in self.demanded)
        return f"{self.who}: {self.cell} = {self.value}, left {left}, demanded {need}"


@dataclass
class Outcome:
    """What the attacks on one problem found."""

    problem: Problem
    code: int | str
    command: str
    said: str = ""
    primary: int = 0
    hidden: int = 0
    outsider: list[Short] = field(default_factory=list)
    letterless: list[Short] = field(default_factory=list)
    zeros_known: list[Short] = field(default_factory=list)
    insider: list[Short] = field(default_factory=list)
    pair: list[Short] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)

    @property
    def result(self) -> str:
        """How the run ended, in a word."""
        if self.code in ("crashed", "too long"):
            return str(self.code)
        return {0: "released", 3: "withheld", 4: "not judged"}.get(int(self.code), "refused")

    @property
    def fails(self) -> bool:
        """Whether the run broke its promise."""
        short = self.outsider or self.insider or self.untrue
        asked = self.pair and self.problem.withstands_pairs
        return bool(short or asked) or self.code == "crashed"


def judge(problem: Problem, ran: Ran) -> Outcome:
    """Attack what a run wrote."""
    outcome = Outcome(problem, ran.code, ran.command, ran.said)
    if not ran.files:
        return outcome
    if outcome.result not in ("released", "not judged"):
        outcome.untrue.append(f"files were written though the run ended with {ran.code}")
    names = [v.name for v in problem.population.variables]
    written = [read(path, names) for path in ran.files]
    claims = [read_certificate(path, names) for path in ran.certificates]
    attack(outcome, written, claims)
    return outcome


def attack(outcome: Outcome, written: Sequence[Written], claims: Sequence[Claims] = ()) -> None:
    """Hold what anybody can work out from files against the protection that is demanded."""
    problem = outcome.problem
    people = problem.population
    cells = problem.cells()
    primary = problem.primary()
    outcome.primary = len(primary)
    for file in written:
        outcome.untrue += [
            f"{file.path.name}: unexplained numbers in {x}" for x in file.unexplained
        ]
    facts = reader_facts(problem, written, claims)
    outcome.hidden = sum(1 for file in written[:1] for c in file.cells if c.value is None)
    for leaves in facts.broken(people.values):
        outcome.untrue.append(f"what is said about {_name(problem, leaves)} is not true")
    if outcome.untrue:
        return
    whole = problem.counts and people.size <= WHOLE
    program = Program(people.size, facts, whole=whole, free=problem.free, also=cells)
    outcome.outsider = _asked(problem, program, cells, primary, "outsider")
    if problem.counts:
        less = reader_facts(problem, written, claims, letters=False)
        outcome.letterless = _other(problem, "values alone", less, cells, outcome.outsider)
    if problem.counts and not problem.zeros:
        told = reader_facts(problem, written, claims, zeros_shown=True, letters=False)
        outcome.zeros_known = _other(problem, "zeros are shown", told, cells, None)
    everybody = insiders(problem, cells)
    fixed = {leaves for leaves, (low, high) in facts.bounds.items() if high - low < 0.5}
    useful = [i for i in everybody if any(leaves not in fixed for leaves, _ in i.own)]
    # A cell that is short to anybody is counted there; insiders are asked about the others.
    rest = {
        leaves: level for leaves, level in primary.items() if leaves not in _cells(outcome.outsider)
    }
    for who in useful:
        outcome.insider += _inside(problem, program, cells, rest, who)
    rest = {
        leaves: level for leaves, level in rest.items() if leaves not in _cells(outcome.insider)
    }
    most = None if problem.withstands_pairs else MOST_PAIRS
    for both in pairs(useful, cells, most=most):
        outcome.pair += _inside(problem, program, cells, rest, both)


def _other(
    problem: Problem,
    name: str,
    facts: Facts,
    cells: dict[Leaves, Content],
    among: Sequence[Short] | None,
) -> list[Short]:
    """What a reader with other facts finds, of all primary cells or among those that are short already."""
    people = problem.population
    if facts.broken(people.values):
        return []
    whole = problem.counts and people.size <= WHOLE
    program = Program(people.size, facts, whole=whole, free=problem.free, also=cells)
    primary = problem.primary()
    if among is not None:
        primary = {leaves: primary[leaves] for leaves in primary if leaves in _cells(among)}
    return _asked(problem, program, cells, primary, name)


def _cells(found: Sequence[Short]) -> set[Leaves]:
    return {short.leaves for short in found}


def _inside(
    problem: Problem,
    program: Program,
    cells: dict[Leaves, Content],
    primary: dict[Leaves, Fraction],
    who: Insider,
) -> list[Short]:
    """The primary cells that are short to insiders; cells that are wholly theirs are their own secret."""
    known = {k: v for k, v in who.bounds(cells, free=problem.free).items() if program.knows_row(k)}
    others = {leaves: level for leaves, level in primary.items() if leaves not in who.knows}
    return _asked(problem, program, cells, others, who.name, who, known)


def _asked(
    problem: Problem,
    program: Program,
    cells: dict[Leaves, Content],
    primary: dict[Leaves, Fraction],
    name: str,
    who: Insider | None = None,
    known: Known | None = None,
) -> list[Short]:
    """The cells that are short to somebody; one that reaches far enough in a known table needs no program."""
    found = []
    tables = program.witnesses(problem.population.values, known)
    for leaves, level in primary.items():
        cell = cells[leaves]
        own: float = 0 if who is None else who.part(leaves)
        if _short(problem, name, leaves, cell, level, tables.seen(leaves), own, who) is None:
            continue
        left = program.range(leaves, known)
        short = _short(problem, name, leaves, cell, level, left, own, who)
        if short and who is not None and not problem.free:
            own = max(own, who.least(leaves, cells, problem.population.size))
            if own >= cell.value - _slack(cell):
                continue  # all of it is their own
            short = _short(problem, name, leaves, cell, level, left, own, who)
        if short:
            found.append(short)
    return found


def _short(
    problem: Problem,
    name: str,
    leaves: Leaves,
    cell: Content,
    level: Fraction,
    left: tuple[float, float],
    own: float,
    who: Insider | None,
) -> Short | None:
    """Whether a range is narrower than demanded; nothing can reach below 0 or below one's own part."""
    low, high = left
    slack = _slack(cell)
    if problem.counts:
        if high - low > 0.5:
            return None
        return Short(name, _name(problem, leaves), cell.value, (low, high + 1), left, leaves)
    floor = -INFINITY if problem.free else float(max(own, 0))
    wanted = max(float(cell.value - level), floor), float(cell.value + level)
    if low <= wanted[0] + slack and high >= wanted[1] - slack:
        return None
    estimates = True
    if who is not None and not problem.by_hand:
        need = max(rule.against(cell, who.part(leaves)) for rule in problem.rules)
        estimates = high < float(cell.value + need) - slack or low > wanted[0] + slack
    return Short(name, _name(problem, leaves), cell.value, wanted, left, leaves, estimates)


def _slack(cell: Content) -> float:
    """By how much solvers may miss the end of a range."""
    return 1e-6 * max(1.0, abs(cell.value))


def _name(problem: Problem, leaves: Leaves) -> str:
    people = problem.population
    for names in problem.tables:
        for where in people.table(names):
            if people.leaves(where) == leaves:
                return ", ".join(f"{k}={v}" for k, v in where.items())
    return str(sorted(leaves))
