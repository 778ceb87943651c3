"""Why no table fits: a minimal set of published facts that contradict each other.

If the facts contradict each other over real numbers, the solver's Farkas multipliers name facts that do. If
they do so only over whole numbers, all facts are suspects. Then facts are left out, many at a time and
finally one by one, as long as no table fits the rest (Chinneck and Dravnieks 1991). In the end, a table
fits as soon as any one fact is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lustrum.audit.knowledge.facts import ContradictionError, Knowledge
from lustrum.audit.knowledge.reduce import CONTRADICTION, as_floats
from lustrum.model.arrays import Indices
from lustrum.numeric.solve import Highs, LinearProblem, Outcome
from lustrum.numeric.solve.products import sparse_product

_MOST_CELLS = 200_000  # with more cells than this the search would take minutes
_MOST_SUSPECTS = 5_000  # the same where only whole numbers contradict each other
_WORK = 2000  # questions about a thousand facts or fewer, or as many fewer about more
_EACH = 1000  # the facts of a question that counts as one
_LOOKS = 5000  # at the limits of one question: a search among unbounded whole cells may never end
_MOST_TERMS = 6
_LISTED = 6


@dataclass(frozen=True)
class Fact:
    """One fact: the bounds of a cell, or of a sum of cells.

    ``sentence`` states it in full, with the published value; ``about`` only names the cells.
    """

    sentence: str
    about: str
    cell: int | None = None
    row: int | None = None
    low: int | None = None
    high: int | None = None

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Conflict:
    """Facts that no table satisfies together; if ``whole`` is set, no table of whole numbers.

    Where ``irreducible`` is set, a table fits as soon as any one of them is left out.
    """

    facts: tuple[Fact, ...]
    whole: bool
    irreducible: bool

    def __str__(self) -> str:
        return _listed([f.sentence for f in self.facts], len(self.facts))

    @property
    def message(self) -> str:
        """One sentence that names the cells, and no value."""
        shown = [f.about for f in self.facts if f.cell is not None and f.low == f.high]
        ends = [f.about for f in self.facts if f.cell is not None and f.low != f.high]
        sums = [f.about for f in self.facts if f.row is not None]
        given = [f"the sum {s}" if " = " not in s else s for s in sums]
        given += [f"the bounds of {name}" for name in dict.fromkeys(ends)]
        kind = "no table of whole numbers" if self.whole else "no table"
        what = [f"the values of {_listed(shown)}"] if shown else []
        what += [_listed(given)] if given else []
        return f"{CONTRADICTION}{kind} fits {', given '.join(what)}."


class ConflictError(ContradictionError):
    """Facts that no table can satisfy together, with a few of them that already cannot."""

    def __init__(self, contradiction: Conflict) -> None:
        super().__init__(contradiction.message)
        self.conflict = contradiction


def conflict(known: Knowledge, *, work: int = _WORK) -> Conflict | None:
    """A few facts that contradict each other; None if there are none, or too many to search.

    After this much ``work``, or if a search among whole numbers does not end, the result may hold more
    facts than needed. Work is counted and not timed, so that the answer is the same on every machine.

    >>> known = Knowledge.of("xyz").fact({"x": 1, "y": 1}, 5, 5).bound("x", 3, 3).bound("y", 4, 4)
    >>> print(conflict(known))
    x is 3, y is 4 and x + y = 5
    """
    if len(known) > _MOST_CELLS:
        return None
    items = _Items(known, work)
    everything = np.arange(items.count)
    for whole in (False, True) if known.whole else (False,):
        suspects = items.blamed() if not whole else everything
        if suspects is None or (whole and suspects.size > _MOST_SUSPECTS):
            continue

        def is_infeasible(subset: Indices, whole: bool = whole) -> bool:
            return items.is_infeasible(subset, whole)

        if not is_infeasible(suspects):
            suspects = everything
            if not is_infeasible(suspects):
                continue
        subset, done = _shrunk(suspects, is_infeasible, lambda: items.work <= 0)
        facts = tuple(items.fact(int(i)) for i in subset)
        return Conflict(facts, whole, done and not items.undecided)
    return None


def _shrunk(
    suspects: Indices, is_infeasible: Callable[[Indices], bool], is_over: Callable[[], bool]
) -> tuple[Indices, bool]:
    """Leave out halves, quarters, and finally single facts; also returns whether the work was enough."""
    subset, size = suspects, max(suspects.size // 2, 1)
    while True:
        at = 0
        while at < subset.size:
            if is_over():
                return subset, False
            fewer = np.delete(subset, np.s_[at : at + size])
            if is_infeasible(fewer):
                subset = fewer
            else:
                at += size
        if size == 1:
            return subset, True
        size = max(size // 2, 1)


class _Items:
    """Every end of every cell and fact, numbered; an equation is one item, not two."""

    def __init__(self, known: Knowledge, work: int) -> None:
        self.known, self.work = known, work
        self.matrix = known.matrix.tocsr().astype(np.float64)
        low = np.concatenate([as_floats(known.low), as_floats(known.fact_low)])
        high = np.concatenate([as_floats(known.high), as_floats(known.fact_high)])
        equal = low == high
        lower, upper = np.isfinite(low) & ~equal, np.isfinite(high) & ~equal
        self.owner = np.concatenate([np.flatnonzero(m) for m in (equal, lower, upper)])
        kinds = [np.full(int(m.sum()), k) for k, m in enumerate((equal, lower, upper))]
        self.kind = np.concatenate(kinds)
        order = np.lexsort((self.kind, self.owner))
        self.owner, self.kind = self.owner[order], self.kind[order]
        self.low, self.high = low, high
        self.undecided = False

    @property
    def count(self) -> int:
        return int(self.owner.size)

    def problem(self, subset: Indices) -> tuple[LinearProblem, Indices]:
        """The problem that consists of these items, with the items of its columns and rows."""
        low = np.full(self.low.size, -np.inf)
        high = np.full(self.high.size, np.inf)
        below = subset[self.kind[subset] != 2]
        above = subset[self.kind[subset] != 1]
        low[self.owner[below]] = self.low[self.owner[below]]
        high[self.owner[above]] = self.high[self.owner[above]]
        cells = len(self.known)
        rows = np.flatnonzero(np.isfinite(low[cells:]) | np.isfinite(high[cells:]))
        part = self.matrix[rows]
        bounded = np.isfinite(low[:cells]) | np.isfinite(high[:cells])
        bounded[part.indices] = True
        columns = np.flatnonzero(bounded)
        problem = LinearProblem(
            part[:, columns],
            low[cells:][rows],
            high[cells:][rows],
            low[:cells][columns],
            high[:cells][columns],
        )
        return problem, np.concatenate([columns, cells + rows])

    def is_infeasible(self, subset: Indices, whole: bool) -> bool:
        """Whether no table satisfies all of these; no search among whole numbers goes on for ever."""
        if subset.size == 0:
            return False
        problem, _ = self.problem(subset)
        self.work -= 1 + subset.size // _EACH
        zero = np.zeros(problem.low.size)
        steps = _LOOKS if whole else None
        optimum = Highs().load(problem).minimise(zero, whole=whole, steps=steps)
        self.undecided |= optimum.outcome is Outcome.CUT_SHORT
        return optimum.outcome is Outcome.INFEASIBLE

    def blamed(self) -> Indices | None:
        """The items that the solver's multipliers use; all items if it has no multipliers."""
        every = np.arange(self.count)
        problem, places = self.problem(every)
        optimum = Highs().load(problem).minimise(np.zeros(problem.low.size))
        if optimum.outcome is not Outcome.INFEASIBLE:
            return None
        y = optimum.multipliers
        if y is None:
            return every
        use = np.zeros(self.low.size)
        use[places] = np.concatenate([-sparse_product(problem.matrix.T, y), y])
        use[np.abs(use) < 1e-9 * np.abs(use).max()] = 0.0
        sign = use[self.owner]
        return np.flatnonzero(
            ((self.kind == 0) & (sign != 0))
            | ((self.kind == 1) & (sign > 0))
            | ((self.kind == 2) & (sign < 0))
        )

    def fact(self, item: int) -> Fact:
        owner, kind = int(self.owner[item]), int(self.kind[item])
        low = int(self.low[owner]) if kind != 2 else None
        high = int(self.high[owner]) if kind != 1 else None
        if owner < len(self.known):
            name = self.known.names[owner]
            return Fact(self._cell_words(name, low, high), name, owner, None, low, high)
        row = owner - len(self.known)
        return Fact(*self._sum_words(row, low, high), None, row, low, high)

    def _cell_words(self, name: str, low: int | None, high: int | None) -> str:
        if low is not None and low == high:
            return f"{name} is {self._number(low)}"
        if low is not None:
            return (
                f"{name} is not negative" if low == 0 else f"{name} is at least {self._number(low)}"
            )
        assert high is not None
        return f"{name} is at most {self._number(high)}"

    def _sum_words(self, row: int, low: int | None, high: int | None) -> tuple[str, str]:
        part = self.known.matrix.tocsr()[[row]]
        terms = [
            (int(w), self.known.names[int(c)]) for c, w in zip(part.indices, part.data, strict=True)
        ]
        plus, minus = ([(abs(w), n) for w, n in terms if (w > 0) == up] for up in (True, False))
        if low == high == 0 and plus and minus:
            if len(plus) == 1:
                plus, minus = minus, plus
            equation = f"{_added(plus)} = {_added(minus)}"
            return equation, equation
        left = _added(plus) if plus else "0"
        left += (
            f" - ({_added(minus)})" if len(minus) > 1 else f" - {_added(minus)}" if minus else ""
        )
        end = low if low is not None else high
        assert end is not None
        relation = "=" if low == high else ">=" if low is not None else "<="
        return f"{left} {relation} {self._number(end)}", left

    def _number(self, value: int) -> str:
        places = self.known.decimals
        if places == 0:
            return str(value)
        whole, rest = divmod(abs(value), 10**places)
        return f"{'-' * (value < 0)}{whole}.{rest:0{places}d}"


def _added(terms: Sequence[tuple[int, str]]) -> str:
    named = [name if weight == 1 else f"{weight} {name}" for weight, name in terms]
    if len(named) > _MOST_TERMS:
        named = [*named[: _MOST_TERMS - 1], f"{len(named) - _MOST_TERMS + 1} more cells"]
    return " + ".join(named)


def _listed(texts: Sequence[str], most: int = _LISTED) -> str:
    shown = list(texts)
    if len(shown) > most:
        shown = [*shown[: most - 1], f"{len(shown) - most + 1} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
