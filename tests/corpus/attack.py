"""What a reader can work out, by integer programs of the corpus's own.

A table is a set of unknown smallest cells. Every printed cell is a sum of some of them, and this is known
from how the table was built, never from a recogniser. Nothing here imports the package under test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeVar

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

T = TypeVar("T")
Cell = tuple[str, ...]
"""The name of a response, then one code for each dimension."""
Range = tuple[float | None, float | None]
"""The least and the greatest value that fit; None where there is no limit."""


@dataclass(frozen=True)
class Dim:
    """A column of codes: what each printed code adds up, in smallest categories.

    A smallest category whose name begins with '?' is never printed.
    """

    name: str
    codes: Mapping[str, frozenset[str]]

    @property
    def leaves(self) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for parts in self.codes.values():
            found.update(dict.fromkeys(sorted(parts)))
        return tuple(found)

    def is_leaf(self, code: str) -> bool:
        return len(self.codes[code]) == 1


def flat(name: str, *codes: str) -> Dim:
    """A dimension without totals."""
    return Dim(name, {code: frozenset({code}) for code in codes})


def tree(name: str, *nodes: object) -> Dim:
    """A dimension from nodes: a code, or a list of a code and its parts; '?x' is never printed."""
    codes: dict[str, frozenset[str]] = {}

    def add(node: object) -> frozenset[str]:
        if isinstance(node, str):
            if not node.startswith("?"):
                codes[node] = frozenset({node})
            return frozenset({node})
        assert isinstance(node, list)
        head = node[0]
        if not head.startswith("?"):
            codes[head] = frozenset()
        parts = frozenset().union(*(add(part) for part in node[1:]))
        if not head.startswith("?"):
            codes[head] = parts
        return parts

    for node in nodes:
        add(node)
    return Dim(name, codes)


def last(dim: Dim, *codes: str) -> Dim:
    """The same dimension with some codes printed at the end."""
    kept = {code: parts for code, parts in dim.codes.items() if code not in codes}
    return Dim(dim.name, {**kept, **{code: dim.codes[code] for code in codes}})


@dataclass(frozen=True)
class Fact:
    """A weighted sum of cells lies between two numbers."""

    terms: tuple[tuple[Cell, int], ...]
    low: float | None
    high: float | None


@dataclass
class Book:
    """A table as it is, what is printed of it, and what a reader knows besides."""

    dims: tuple[Dim, ...]
    values: dict[Cell, int]
    hidden: list[Cell] = field(default_factory=list)
    responses: dict[str, dict[str, int]] = field(default_factory=lambda: {"value": {"value": 1}})
    """Each printed response as a weighted sum of the ones that are unknown."""
    facts: list[Fact] = field(default_factory=list)
    signed: frozenset[str] = frozenset()
    noise: float = 0
    """How far a printed figure may be from the truth, in the unit of its last digit."""
    unlisted: set[Cell] = field(default_factory=set)
    """Cells without a row: neither printed nor hidden, but unknown all the same."""
    counts: bool = True
    """Whether the values are counts; otherwise they are sums, and closeness counts as disclosure."""

    @property
    def cells(self) -> list[Cell]:
        return [cell for cell in self.values if cell not in self.unlisted]

    def unknowns(self) -> dict[tuple[str, Cell], int]:
        """The place of every unknown: a response that is no sum of others, and smallest categories."""
        bases = list(dict.fromkeys(b for parts in self.responses.values() for b in parts))
        leaves = list(product(*(dim.leaves for dim in self.dims)))
        return {(b, leaf): i for i, (b, leaf) in enumerate(product(bases, leaves))}

    def row(self, cell: Cell, index: Mapping[tuple[str, Cell], int]) -> dict[int, int]:
        """A cell as a weighted sum of the unknowns."""
        response, codes = cell[0], cell[1:]
        parts = [sorted(dim.codes[code]) for dim, code in zip(self.dims, codes, strict=True)]
        return {
            index[base, leaf]: weight
            for base, weight in self.responses[response].items()
            for leaf in product(*parts)
        }

    def ranges(self) -> dict[Cell, Range]:
        """The range of every hidden cell; an error if nothing fits what is printed."""
        solve = self.solver()
        return {cell: solve(cell) for cell in self.hidden}

    def reason(self, cell: Cell) -> str:
        """What an exactly disclosed cell follows from, the least that suffices."""
        for said, facts, sums_only in (
            ("sums alone", [], True),
            ("sums, signs and whole numbers", [], False),
        ):
            low, high = replace(self, facts=facts).solver(sums_only=sums_only)(cell)
            if low is not None and low == high:
                return said
        return "what the file says besides the values"

    def solver(self, *, sums_only: bool = False) -> Callable[[Cell], Range]:
        """A function that gives the range of a cell; an error if nothing fits what is printed."""
        index = self.unknowns()
        hidden = set(self.hidden)
        rows: list[dict[int, int]] = []
        low: list[float] = []
        high: list[float] = []
        for cell in self.cells:
            if cell not in hidden:
                rows.append(self.row(cell, index))
                low.append(self.values[cell] - self.noise)
                high.append(self.values[cell] + self.noise)
        for fact in self.facts:
            row: dict[int, int] = {}
            for cell, weight in fact.terms:
                for i, w in self.row(cell, index).items():
                    row[i] = row.get(i, 0) + w * weight
            rows.append(row)
            low.append(-np.inf if fact.low is None else fact.low)
            high.append(np.inf if fact.high is None else fact.high)
        free = -np.inf
        floor = np.array([free if sums_only or b in self.signed else 0.0 for b, _ in index])
        whole = np.zeros(len(index)) if self.noise or sums_only else np.ones(len(index))
        limits = []
        if rows:
            data = [(r, c, w) for r, row in enumerate(rows) for c, w in row.items()]
            at = np.array(data, dtype=np.int64)
            shape = (len(rows), len(index))
            matrix = csr_matrix((at[:, 2].astype(float), (at[:, 0], at[:, 1])), shape=shape)
            limits = [LinearConstraint(matrix, low, high)]

        def best(target: np.ndarray) -> float | None:
            found = milp(
                target,
                integrality=whole,
                bounds=Bounds(floor, np.inf),
                constraints=limits,
                options={"mip_rel_gap": 0.0},
            )
            if found.status == 0:
                return float(found.fun)
            if found.status in (3, 4):
                return None
            raise ValueError(f"no table fits what is printed: {found.message}")

        nothing = np.zeros(len(index))
        if best(nothing) is None:
            raise ValueError("no table fits what is printed")
        digits = 1 if self.noise else 0

        def solve(cell: Cell) -> Range:
            target = nothing.copy()
            for i, w in self.row(cell, index).items():
                target[i] += w
            least, most = best(target), best(-target)
            return (
                None if least is None else round(least, digits) + 0.0,
                None if most is None else round(-most, digits) + 0.0,
            )

        return solve

    def near(self, cell: Cell) -> int:
        """How far a range of a sum may reach on one side and still be a disclosure: 1 per cent."""
        if self.counts:
            return 0
        return max(abs(self.values[cell]) // 100, 3 if self.noise else 0)

    def verdict_of(self, cell: Cell, found: Range) -> str:
        """'exact', 'close', 'open', or 'between', which no file of the corpus may leave undecided."""
        low, high = found
        true = self.values[cell]
        if (low is not None and low - self.noise > true) or (
            high is not None and high + self.noise < true
        ):
            raise ValueError(f"{cell}: the true value is outside {found}")
        if low is not None and low == high:
            return "exact"
        below = np.inf if low is None else true - low
        above = np.inf if high is None else high - true
        if self.counts:
            return "open" if below + above >= 3 else "between"
        if below <= self.near(cell) and above <= self.near(cell):
            return "close"
        margin = max(abs(true) / 10, 3)
        return (
            "open"
            if below >= min(margin, true if true > 0 else margin) and above >= margin
            else "between"
        )

    def verdict(self, found: Mapping[Cell, Range]) -> str:
        """'disclosed' if a hidden value is known exactly or closely, 'safe' if all are open."""
        kinds = {self.verdict_of(cell, interval) for cell, interval in found.items()}
        if kinds & {"exact", "close"}:
            return "disclosed"
        return "between" if "between" in kinds else "safe"


class Draw:
    """Integers that are the same on any machine: splitmix64."""

    def __init__(self, seed: int) -> None:
        self.state = seed & (2**64 - 1)

    def below(self, n: int) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        return (z ^ (z >> 31)) % n

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def pick(self, items: list[T]) -> T:
        return items[self.below(len(items))]


def true_table(
    seed: int,
    *dims: Dim,
    low: int = 0,
    high: int = 60,
    responses: dict[str, dict[str, int]] | None = None,
    zeros: int = 0,
    spread: bool = False,
    **more: object,
) -> Book:
    """A table with drawn smallest cells; `zeros` per cent of them are 0, `spread` makes them skew."""
    draw = Draw(seed)
    book = Book(tuple(dims), {}, **more)  # type: ignore[arg-type]
    if responses is not None:
        book.responses = responses
    index = book.unknowns()
    leaves = []
    for _ in index:
        value = draw.between(low, high)
        if spread:
            value = value * draw.between(1, 100) // draw.between(1, 30)
        leaves.append(0 if draw.below(100) < zeros else value)
    for response in book.responses:
        for codes in product(*(dim.codes for dim in dims)):
            cell = (response, *codes)
            book.values[cell] = sum(w * leaves[i] for i, w in book.row(cell, index).items())
    return book


def secure(book: Book, seed: int, primaries: int = 2, response: str | None = None) -> Book:
    """Hide the given number of small cells and others, until every hidden value is open."""
    draw = Draw(seed)
    response = response or next(iter(book.responses))
    inner = [
        cell
        for cell in book.cells
        if cell[0] == response
        and all(dim.is_leaf(code) for dim, code in zip(book.dims, cell[1:], strict=True))
    ]
    inner.sort(key=lambda cell: abs(book.values[cell]))
    limit = max(6, len(book.cells) * 45 // 100)
    for _ in range(80):
        pool = inner[: max(3 * primaries, 3)]
        hidden: list[Cell] = []
        while len(hidden) < primaries:
            cell = draw.pick(pool)
            if cell not in hidden:
                hidden.append(cell)
        tries = 0
        while len(hidden) <= limit:
            book.hidden = hidden
            cell = _narrow(book, hidden)
            if cell is None:
                order = {cell: i for i, cell in enumerate(book.cells)}
                book.hidden = sorted(hidden, key=order.__getitem__)
                return book
            more = [c for c in _corners(book, cell, draw) if c not in hidden]
            if not more:
                tries += 1
                if tries > 20:
                    break
            hidden = [*hidden, *more]
    raise ValueError("no safe pattern found; change the seed or the table")


def _narrow(book: Book, hidden: list[Cell]) -> Cell | None:
    """The first hidden cell that is not open, or None."""
    solve = book.solver()
    for cell in hidden:
        if book.verdict_of(cell, solve(cell)) != "open":
            return cell
    return None


def _corners(book: Book, cell: Cell, draw: Draw) -> list[Cell]:
    """The cells of a block around a cell: in each dimension its code and one with the same parent."""
    choices = []
    for dim, code in zip(book.dims, cell[1:], strict=True):
        above = [p for p in dim.codes.values() if p > dim.codes[code]]
        if not above:
            choices.append([code])
            continue
        parent = min(above, key=lambda p: (len(p), sorted(p)))
        others = [
            c for c, p in dim.codes.items() if c != code and p < parent and not p & dim.codes[code]
        ]
        top = [c for c in others if not any(dim.codes[c] < dim.codes[o] for o in others)]
        choices.append([code, draw.pick(top)] if top else [code])
    block = [(cell[0], *codes) for codes in product(*choices)]
    return [c for c in block if c in book.values and c not in book.unlisted]


def leak(book: Book, seed: int, primaries: int = 2, response: str | None = None) -> Book:
    """A safe pattern with as few of its cells published again as disclose another exactly."""
    secure(book, seed, primaries, response)
    draw = Draw(seed + 1)
    hidden = list(book.hidden)
    while len(hidden) > 1:
        order = sorted(hidden, key=lambda _: draw.below(10**9))
        for cell in order:
            book.hidden = [c for c in hidden if c != cell]
            solve = book.solver()
            for other in book.hidden:
                low, high = solve(other)
                if low is not None and (
                    low == high or book.verdict_of(other, (low, high)) == "close"
                ):
                    return book
        hidden = [c for c in hidden if c != order[0]]
    book.hidden = hidden
    return book
