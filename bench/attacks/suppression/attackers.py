"""What a reader, an insider and two insiders know."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from attacks.suppression.cells import Content, Leaves
from attacks.suppression.files import Claims, Written
from attacks.suppression.problems import Problem
from attacks.suppression.programs import INFINITY, Fact, Facts, Program

Known = dict[Leaves, tuple[float, float]]


def reader_facts(
    problem: Problem, written: Sequence[Written], claims: Sequence[Claims] = (), *,
    zeros_shown: bool = False, letters: bool = True,
) -> Facts:  # fmt: skip
    """What anybody knows who reads all files of a run and knows the rule with its parameters.

    Letters that tell primary from secondary bound a hidden count by the threshold. A file that says that empty
    cells are never hidden bounds every hidden count by 1; with ``zeros_shown`` the attacker knows that anyway.
    Without ``letters`` the attacker takes values and bounds alone.
    """
    facts = Facts()
    people = problem.population
    hidden: set[Leaves] = set()
    for file in written:
        stated = "zeros False" in file.notes or '"zeros": false' in file.notes
        for cell in file.cells:
            leaves = people.leaves(cell.where)
            if cell.value is not None:
                facts.add(Fact(leaves, cell.value, cell.value))
                continue
            hidden.add(leaves)
            if cell.low is not None or cell.high is not None:
                low = -INFINITY if cell.low is None else cell.low
                facts.add(Fact(leaves, low, INFINITY if cell.high is None else cell.high))
            if problem.counts and (zeros_shown or (letters and stated)):
                facts.add(Fact(leaves, 1, INFINITY))
            if problem.counts and letters:
                for fact in _letter(problem, leaves, cell.reason):
                    facts.add(fact)
    for proof in claims:
        for cell in proof.bounds:
            if (leaves := _place(problem, cell.where)) is not None:
                low = -INFINITY if cell.low is None else cell.low
                facts.add(Fact(leaves, low, INFINITY if cell.high is None else cell.high))
        claimed = {_place(problem, where) for where in proof.claimed} & hidden
        if problem.counts and letters and claimed and claimed < hidden:
            # A proof for some of the hidden cells suggests that these are the primary ones.
            guess = Facts()
            for leaves in hidden:
                for fact in _letter(
                    problem, leaves, "primary" if leaves in claimed else "secondary"
                ):
                    guess.add(fact)
            if not guess.broken(people.values):
                for fact in guess:
                    facts.add(fact)
    return facts


def _place(problem: Problem, where: dict[str, str]) -> Leaves | None:
    """The cell of a proof; proofs also have cells that no file shows, under names of their own."""
    try:
        return problem.population.leaves(where)
    except KeyError:
        return None


def _letter(problem: Problem, leaves: Leaves, reason: str) -> Iterator[Fact]:
    minimum = problem.minimum
    if minimum is None:
        return
    if reason == "primary":
        yield Fact(leaves, 1, minimum - 1)
    elif reason == "secondary":
        yield Fact(
            leaves, 0 if problem.zeros else minimum, INFINITY, minimum if problem.zeros else 0
        )


@dataclass(frozen=True)
class Insider:
    """One or two contributors: cells that they know, and what they contribute to others."""

    name: str
    knows: frozenset[Leaves]
    own: tuple[tuple[Leaves, int], ...]

    def bounds(self, cells: dict[Leaves, Content], *, free: bool) -> Known:
        """The bounds that they add to what anybody knows; a negative part bounds nothing."""
        known: Known = {}
        if not free:
            known = {leaves: (float(amount), INFINITY) for leaves, amount in self.own}
        for leaves in self.knows:
            known[leaves] = (float(cells[leaves].value), float(cells[leaves].value))
        return known

    def part(self, leaves: Leaves) -> int:
        """What they contribute to a cell and its parts: a sum that the input shows, not always the largest."""
        own = dict(self.own)
        inside = [other for other in own if other < leaves]
        whole = [other for other in inside if not any(other < more for more in inside)]
        parts = {other: self.part(other) for other in whole}
        apart: list[Leaves] = []
        for other in sorted(whole, key=lambda o: -parts[o]):
            if not any(other & taken for taken in apart):
                apart.append(other)
        return max(sum(parts[other] for other in apart), own.get(leaves, 0))

    def least(self, leaves: Leaves, cells: dict[Leaves, Content], size: int) -> float:
        """The least value of a cell that their own contributions allow, if every cell of every table is hidden.

        No pattern leaves them with less. Parts overlap, so adding up parts that lie apart can miss some of it.
        """
        facts = Facts()
        for cell, (low, high) in self.bounds(cells, free=False).items():
            facts.add(Fact(cell, low, high))
        program = Program(size, facts, whole=False, free=False, also=[leaves])
        return program.range(leaves)[0]


def insiders(problem: Problem, cells: dict[Leaves, Content]) -> list[Insider]:
    """Every contributor that the columns of the input show: alone in a cell, or among its three largest.

    With names, a holding pools all its cells. Without, a contributor is known by its cell, and somebody who is
    alone in a cell is the same who is alone in a part of it.
    """
    if problem.counts or problem.by_hand or problem.columns == "none":
        return []
    ranks = {"n": 1, "largest": 3, "holdings": 3}[problem.columns]
    knows: dict[str, set[Leaves]] = {}
    own: dict[str, dict[Leaves, int]] = {}
    alone = _same([leaves for leaves, cell in cells.items() if cell.n == 1])
    for leaves, cell in cells.items():
        for rank in range(min(ranks, cell.n)):
            if problem.columns == "n" and cell.n > 1:
                continue
            if problem.columns == "holdings":
                name = cell.parts[rank][1]
            elif cell.n == 1:
                name = f"alone in {sorted(alone[leaves])}"
            else:
                name = f"number {rank + 1} in {sorted(leaves)}"
            own.setdefault(name, {})[leaves] = cell.parts[rank][0]
            if cell.n == 1:
                knows.setdefault(name, set()).add(leaves)
    return [
        Insider(name, frozenset(knows.get(name, ())), tuple(parts.items()))
        for name, parts in own.items()
    ]


def _same(alone: Sequence[Leaves]) -> dict[Leaves, Leaves]:
    """The first cell of the same contributor, where cells have one: alone in a cell is alone in its parts."""
    first = {leaves: leaves for leaves in alone}
    changed = True
    while changed:
        changed = False
        for one, other in itertools.permutations(alone, 2):
            if one <= other:
                least = min(first[one], first[other], key=lambda x: (len(x), sorted(x)))
                changed |= first[one] != least or first[other] != least
                first[one] = first[other] = least
    return first


def pairs(
    everybody: Sequence[Insider], cells: dict[Leaves, Content], *, most: int | None
) -> Iterator[Insider]:
    """Two contributors who pool what they know; those who know cells exactly come first."""
    ordered = sorted(everybody, key=lambda i: (-len(i.knows), i.name))
    for one, other in itertools.islice(itertools.combinations(ordered, 2), most):
        parts = dict(one.own)
        knows = set(one.knows | other.knows)
        for leaves, amount in other.own:
            both = leaves in parts
            parts[leaves] = parts.get(leaves, 0) + amount
            if both and cells[leaves].n == 2:
                knows.add(leaves)
        two = Insider(f"{one.name} and {other.name}", frozenset(knows), tuple(parts.items()))
        # A total of nothing but their own contributions is their own secret too.
        theirs = {leaves for leaves, cell in cells.items() if 0 < cell.value == two.part(leaves)}
        yield replace(two, knows=two.knows | theirs)
