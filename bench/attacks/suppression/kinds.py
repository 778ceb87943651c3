"""Random problems, kind by kind, each drawn from its kind and number alone."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from attacks.suppression.cells import Population, Record, Variable
from attacks.suppression.problems import Columns, Problem
from attacks.suppression.rules import Rule

Make = Callable[[str, int, random.Random], Problem]


def plain(name: str, n: int) -> Variable:
    """A variable without groups."""
    return Variable(name, tuple(f"{name}{i}" for i in range(1, n + 1)))


def grouped(rng: random.Random, name: str, *, prefix: bool, deep: bool) -> Variable:
    """A variable with one or two levels of groups, whose codes begin alike if asked for."""
    leaves: list[str] = []
    groups: dict[str, tuple[str, ...]] = {}
    for i in range(rng.randint(2, 3)):
        top = chr(ord("D") + i) if prefix else f"{name}_{rng.choice('klmno')}{i}"
        parts = []
        for j in range(rng.randint(2, 3)):
            code = f"{top}{j + 1}" if prefix else f"{rng.choice('pqrst')}{i}{j}"
            parts.append(code)
            if deep and j == 0:
                finer = [f"{code}{k + 1}" if prefix else f"u{i}{j}{k}" for k in range(2)]
                groups[code] = tuple(finer)
                leaves += finer
            else:
                leaves.append(code)
        groups[top] = tuple(parts)
    return Variable(name, tuple(leaves), groups)


def _counts(rng: random.Random, variables: tuple[Variable, ...], mean: float) -> Population:
    """People spread unevenly: some lines hold many, some cells few or none."""
    weights = [[rng.choice((0.3, 0.6, 1, 1, 2, 4)) for _ in v.leaves] for v in variables]
    records: list[Record] = []

    def fill(codes: tuple[int, ...], weight: float) -> None:
        place = len(codes)
        if place == len(variables):
            expected = mean * weight
            n = (
                0
                if rng.random() < 0.15
                else int(rng.expovariate(1 / max(expected, 0.2)) + rng.random())
            )
            records.extend(Record(codes, f"u{len(records) + i}") for i in range(n))
            return
        for code, w in enumerate(weights[place]):
            fill((*codes, code), weight * w)

    fill((), 1.0)
    return Population(variables, tuple(records))


def _firms(
    rng: random.Random,
    variables: tuple[Variable, ...],
    mean: float,
    *,
    shared: float,
    negative: bool = False,
) -> Population:
    """Firms with skewed sizes; some holdings own firms in several cells."""
    records: list[Record] = []
    owners = [f"g{i}" for i in range(1, 7)]

    def fill(codes: tuple[int, ...]) -> None:
        place = len(codes)
        if place < len(variables):
            for code in range(len(variables[place].leaves)):
                fill((*codes, code))
            return
        if rng.random() < 0.1:
            return
        n = 1 if rng.random() < 0.2 else int(rng.expovariate(1 / mean)) + 1
        size = rng.choice((20, 100, 400))
        for _ in range(n):
            amount = max(1, int(size * rng.lognormvariate(0, 1.2)))
            if negative and rng.random() < 0.25:
                amount = -amount
            owner = rng.choice(owners) if rng.random() < shared else f"f{len(records)}"
            records.append(Record(codes, owner, amount))

    fill(())
    return Population(variables, tuple(records))


SUM_RULES: tuple[tuple[Rule, ...], ...] = (
    (Rule("p", (10,)),),
    (Rule("p", (15,)),),
    (Rule("p", (10, 2)),),
    (Rule("pq", (10, 50)),),
    (Rule("pq", (15, 100)),),
    (Rule("nk", (1, 70)),),
    (Rule("nk", (2, 85)),),
    (Rule("threshold", (3,)),),
    (Rule("threshold", (4,)),),
    (Rule("threshold", (3,)), Rule("p", (10,))),
    (Rule("nk", (2, 80)), Rule("threshold", (3,))),
)


def _sum_rules(rng: random.Random) -> tuple[Rule, ...]:
    return rng.choice(SUM_RULES)


def _threshold(rng: random.Random) -> tuple[Rule, ...]:
    return (Rule("threshold", (rng.choice((3, 3, 4, 5, 10)),)),)


SIZES = {
    1: ((4, 8),),
    2: ((2, 6), (3, 5)),
    3: ((2, 3), (2, 3), (2, 3)),
    4: ((2, 3), (2, 2), (2, 2), (2, 2)),
}


LARGE = {1: 1.0, 2: 0.3, 3: 0.1, 4: 0.05}
MORE = {1: 1.0, 2: 0.8, 3: 0.4, 4: 0.1}
"""The share of sums, and of counts, of as many ways whose variables have more codes than they must have.

What more ways add is their shape, and 300 small tables meet more of it than a few large ones in the same time.
"""


def _variables(
    rng: random.Random, ways: int, share: Mapping[int, float] = LARGE
) -> tuple[Variable, ...]:
    """Plain variables, many of them with the fewest codes that a size allows."""
    large = rng.random() < share[ways]
    spans = [(low, high if large else low) for low, high in SIZES[ways]]
    return tuple(plain("abcd"[i], rng.randint(*span)) for i, span in enumerate(spans))


_SOON = (("--work", "500"), ("--algorithm", "quick"))
"""Options for three and four ways: a pattern must be safe however short the search for it was."""


def _count_problem(ways: int) -> Make:
    def make(kind: str, seed: int, rng: random.Random) -> Problem:
        variables = _variables(rng, ways, MORE)
        people = _counts(rng, variables, rng.choice((1.5, 3, 6, 12)))
        names = tuple(v.name for v in variables)
        made = Problem(kind, seed, people, (names,), _threshold(rng), gaps=rng.random() < 0.3)
        return replace(made, options=_SOON[1]) if ways == 4 else made

    return make


FIRMS = {1: (2, 4, 6), 2: (2, 4, 6), 3: (4, 8, 12), 4: (12, 20)}
"""Mean numbers of firms in a cell."""


def _sum_problem(ways: int) -> Make:
    def make(kind: str, seed: int, rng: random.Random) -> Problem:
        variables = _variables(rng, ways)
        rules = _sum_rules(rng)
        people = _firms(rng, variables, rng.choice(FIRMS[ways]), shared=0.0)
        names = tuple(v.name for v in variables)
        only_n = all(r.name == "threshold" for r in rules) and rng.random() < 0.6
        made = Problem(
            kind, seed, people, (names,), rules, columns="n" if only_n else "largest",
            blanks=rng.choice(("zero", "empty")), gaps=rng.random() < 0.2,
        )  # fmt: skip
        if ways < 3:
            return made
        # Where empty cells must be shown, few tables of three ways can be protected from everybody inside.
        zeros = ("--zeros",) if rng.random() < 0.6 else ()
        return replace(made, options=(*zeros, *_SOON[ways - 3]))

    return make


def _hierarchy(prefix: bool) -> Make:
    def make(kind: str, seed: int, rng: random.Random) -> Problem:
        tree = grouped(rng, "nace", prefix=prefix, deep=rng.random() < 0.4)
        variables = (tree, plain("b", rng.randint(2, 3))) if rng.random() < 0.7 else (tree,)
        names = tuple(v.name for v in variables)
        word: Literal["prefix", "file"] = "prefix" if prefix else "file"
        if rng.random() < 0.5:
            people = _counts(rng, variables, rng.choice((2, 5, 10)))
            return Problem(kind, seed, people, (names,), _threshold(rng), hierarchy=word)
        people = _firms(rng, variables, 4, shared=0.0)
        return Problem(
            kind, seed, people, (names,), _sum_rules(rng), columns="largest", hierarchy=word
        )

    return make


LINKS: dict[int, tuple[tuple[tuple[str, ...], ...], ...]] = {
    2: ((("a", "b"), ("a", "c")), (("a", "b"), ("b", "c")), (("a", "b", "c"), ("a", "d"))),
    3: ((("a", "b"), ("a", "c"), ("b", "c")), (("a", "b"), ("b", "c"), ("c", "d"))),
    4: (
        (("a", "b"), ("a", "c"), ("b", "c"), ("a", "d")),
        (("a", "b"), ("c", "d"), ("a", "c"), ("b", "d")),
        (("a", "b", "c"), ("a", "d"), ("b", "d"), ("c", "d")),
    ),
}


def _sparse(
    rng: random.Random,
    variables: tuple[Variable, ...],
    share: float,
    *,
    counts: bool,
    shared: float = 0.0,
) -> Population:
    """Most cells of the unseen table are empty: then it says much about the tables that are shown."""
    population = Population(variables, ())
    records: list[Record] = []
    owners = [f"g{i}" for i in range(1, 7)]
    for codes in itertools.product(*(range(n) for n in population.shape)):
        if rng.random() > share:
            continue
        size = rng.choice((20, 100, 400, 2000))
        for _ in range(rng.randint(1, rng.choice((2, 8)))):
            amount = 1 if counts else max(1, int(size * rng.lognormvariate(0, 0.8)))
            owner = rng.choice(owners) if rng.random() < shared else f"f{len(records)}"
            records.append(Record(codes, owner, amount))
    return replace(population, records=tuple(records) or (Record((0,) * len(variables), "f0", 9),))


SMALL = {2: 0.6, 3: 0.7, 4: 0.9}
"""The share of sets of as many tables whose variables have two codes each."""


def _linked(number: int, shared: float = 0.0) -> Make:
    def make(kind: str, seed: int, rng: random.Random) -> Problem:
        tables = rng.choice(LINKS[number])
        used = sorted({name for names in tables for name in names})
        most = 2 if rng.random() < SMALL[number] else 4 if len(used) == 3 else 3
        variables = tuple(plain(name, rng.randint(2, most)) for name in used)
        counts = rng.random() < 0.4 and not shared
        people = _sparse(rng, variables, rng.choice((0.25, 0.4, 0.8)), counts=counts, shared=shared)
        if counts:
            return Problem(kind, seed, people, tables, _threshold(rng))
        columns: Columns = "holdings" if shared else "largest"
        return Problem(kind, seed, people, tables, _sum_rules(rng), columns=columns)

    return make


def _negative(kind: str, seed: int, rng: random.Random) -> Problem:
    variables = _variables(rng, rng.randint(1, 3))
    people = _firms(rng, variables, 4, shared=0.0, negative=True)
    names = tuple(v.name for v in variables)
    return Problem(kind, seed, people, (names,), (Rule("threshold", (3,)),), columns="n")


def _zeros(kind: str, seed: int, rng: random.Random) -> Problem:
    variables = _variables(rng, rng.randint(2, 3), MORE)
    people = _counts(rng, variables, rng.choice((0.5, 1, 2)))
    names = tuple(v.name for v in variables)
    options = ("--zeros",) if rng.random() < 0.6 else ()
    return Problem(
        kind, seed, people, (names,), _threshold(rng), options=options, gaps=rng.random() < 0.5
    )


def _holdings(kind: str, seed: int, rng: random.Random) -> Problem:
    variables = _variables(rng, rng.choice((1, 2, 2, 2, 2, 3)))
    people = _firms(rng, variables, rng.choice((1, 2, 4)), shared=rng.choice((0.2, 0.5)))
    names = tuple(v.name for v in variables)
    return Problem(kind, seed, people, (names,), _sum_rules(rng), columns="holdings")


def _linked_holdings(kind: str, seed: int, rng: random.Random) -> Problem:
    return _linked(rng.choice((2, 3)), shared=0.4)(kind, seed, rng)


def _asked_holdings(kind: str, seed: int, rng: random.Random) -> Problem:
    return replace(_holdings(kind, seed, rng), options=("--attacker", "holdings"))


def _pairs(kind: str, seed: int, rng: random.Random) -> Problem:
    """Small tables whose run is asked to withstand every two contributors together."""
    inner = (_sum_problem(1), _sum_problem(2), _holdings, _hierarchy(True), _linked(2))
    return _asked_pairs(inner, kind, seed, rng)


def _asked_pairs(inner: tuple[Make, ...], kind: str, seed: int, rng: random.Random) -> Problem:
    draw = rng.choice(inner)
    most = 12 if rng.random() < 0.1 else 8
    made = draw(kind, seed, rng)
    while made.counts or made.population.size > most:
        made = draw(kind, seed, rng)
    zeros = ("--zeros",) if rng.random() < 0.6 else ()
    return replace(made, options=(*made.options, *zeros, "--attacker", "pairs"))


def _programme_pairs(kind: str, seed: int, rng: random.Random) -> Problem:
    inner = (_sum_problem(1), _sum_problem(2), _linked(2), _linked(3), _holdings)
    return _in_programme(_asked_pairs(inner, kind, seed, rng))


def _frame_pairs(kind: str, seed: int, rng: random.Random) -> Problem:
    inner = (_sum_problem(1), _sum_problem(2), _holdings)
    return _in_frame(_asked_pairs(inner, kind, seed, rng))


def _hand(kind: str, seed: int, rng: random.Random) -> Problem:
    variables = _variables(rng, rng.randint(1, 3))
    people = _firms(rng, variables, 4, shared=0.0)
    return Problem(
        kind, seed, people, (tuple(v.name for v in variables),), (), columns="n", by_hand=True
    )


def _spoiled(kind: str, seed: int, rng: random.Random) -> Problem:
    made = _sum_problem(rng.randint(1, 2))(kind, seed, rng)
    rules = rng.choice([r for r in SUM_RULES if all(x.name != "threshold" for x in r)])
    return replace(made, rules=rules, columns="largest", blanks="empty", spoiled=True)


def _written(format: str) -> Make:
    def make(kind: str, seed: int, rng: random.Random) -> Problem:
        inner = rng.choice(
            (_count_problem(2), _count_problem(3), _sum_problem(2), _zeros, _linked(2))
        )
        made = inner(kind, seed, rng)
        options = list(made.options)
        if rng.random() < 0.4:
            options.append("--partial")
        if rng.random() < 0.3 and len(made.tables) == 1:
            options.append("--certificate")
        return replace(made, format=format, options=tuple(options))

    return make


def _programme(kind: str, seed: int, rng: random.Random) -> Problem:
    inner = rng.choice((_count_problem(2), _sum_problem(2), _linked(2), _linked(3), _holdings))
    return _in_programme(inner(kind, seed, rng))


def _in_programme(made: Problem) -> Problem:
    return _of_records(replace(made, door="programme", format="all", gaps=False, blanks="zero"))


def _in_frame(made: Problem) -> Problem:
    return _of_records(replace(made, rules=made.rules[:1], door="frame", gaps=False, blanks="zero"))


def _of_records(made: Problem) -> Problem:
    """Records name their holdings, so every contributor is known by name in all cells."""
    return made if made.counts else replace(made, columns="holdings")


def _frame(kind: str, seed: int, rng: random.Random) -> Problem:
    inner = rng.choice((_count_problem(2), _sum_problem(2), _holdings))
    return _in_frame(inner(kind, seed, rng))


def _crosstab(kind: str, seed: int, rng: random.Random) -> Problem:
    made = _count_problem(2)(kind, seed, rng)
    used = [sorted({r.codes[i] for r in made.population.records}) for i in range(2)]
    # A crosstab has no line for a code that nobody has.
    variables = tuple(
        replace(v, leaves=tuple(v.leaves[c] for c in codes))
        for v, codes in zip(made.population.variables, used, strict=True)
    )
    records = tuple(
        replace(r, codes=tuple(codes.index(c) for c, codes in zip(r.codes, used, strict=True)))
        for r in made.population.records
    )
    return replace(made, population=Population(variables, records), door="crosstab", gaps=False)


KINDS: dict[str, Make] = {
    "counts, 1 way": _count_problem(1),
    "counts, 2 ways": _count_problem(2),
    "counts, 3 ways": _count_problem(3),
    "counts, 4 ways": _count_problem(4),
    "sums, 1 way": _sum_problem(1),
    "sums, 2 ways": _sum_problem(2),
    "sums, 3 ways": _sum_problem(3),
    "sums, 4 ways": _sum_problem(4),
    "prefix codes": _hierarchy(True),
    "hierarchy file": _hierarchy(False),
    "2 linked": _linked(2),
    "3 linked": _linked(3),
    "4 linked": _linked(4),
    "negative": _negative,
    "zeros": _zeros,
    "holdings": _holdings,
    "linked holdings": _linked_holdings,
    "asked for holdings": _asked_holdings,
    "asked for pairs": _pairs,
    "marked by hand": _hand,
    "blank contributions": _spoiled,
    "csv": _written("csv"),
    "xlsx": _written("xlsx"),
    "parquet": _written("parquet"),
    "programme": _programme,
    "programme, pairs": _programme_pairs,
    "frame": _frame,
    "frame, pairs": _frame_pairs,
    "crosstab": _crosstab,
}


def problem(kind: str, seed: int) -> Problem:
    """The problem of a kind and a seed; the same everywhere."""
    return KINDS[kind](kind, seed, random.Random(f"{kind} {seed}"))
