"""Variables, codes and records: which sums of the unseen table a cell shows."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

TOTALS = ("Total", "_T", "All")
"""Codes that stand for all codes of a variable."""

Where = Mapping[str, str]
"""A cell as a reader sees it: a code for each variable of its file."""

Leaves = frozenset[int]
"""A cell as a set of cells of the unseen table; the same cell in two files is the same set."""


@dataclass(frozen=True)
class Variable:
    """The finest codes, and groups of them; a group names the codes directly below it."""

    name: str
    leaves: tuple[str, ...]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def codes(self) -> tuple[str, ...]:
        """Every group before its parts, and the total last, as files list them."""
        inner = {c for parts in self.groups.values() for c in parts}
        ordered: list[str] = []

        def branch(code: str) -> None:
            ordered.append(code)
            for part in self.groups.get(code, ()):
                branch(part)

        for code in (*self.groups, *self.leaves):
            if code not in inner:
                branch(code)
        return (*ordered, TOTALS[0])

    def below(self, code: str) -> frozenset[int]:
        """The finest codes that a code covers, by number."""
        if code in self.leaves:
            return frozenset({self.leaves.index(code)})
        if code in self.groups:
            return frozenset().union(*(self.below(c) for c in self.groups[code]))
        if code in TOTALS:
            return frozenset(range(len(self.leaves)))
        raise KeyError(f"{self.name} has no code {code!r}")


@dataclass(frozen=True)
class Record:
    """One unit: its finest codes, who owns it, and what it contributes."""

    codes: tuple[int, ...]
    holding: str
    amount: int = 1


@dataclass(frozen=True)
class Content:
    """The truth about a cell: its value and contributions, the largest first."""

    value: int
    parts: tuple[tuple[int, str], ...]

    @property
    def n(self) -> int:
        """How many contribute."""
        return len(self.parts)

    def largest(self, rank: int) -> int:
        """The contribution of a rank, from 0 on; 0 where there is none."""
        return self.parts[rank][0] if rank < len(self.parts) else 0


@dataclass(frozen=True)
class Population:
    """All variables and records behind the tables of one run."""

    variables: tuple[Variable, ...]
    records: tuple[Record, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Finest codes of each variable."""
        return tuple(len(v.leaves) for v in self.variables)

    @cached_property
    def size(self) -> int:
        """Cells of the unseen table."""
        size = 1
        for n in self.shape:
            size *= n
        return size

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The unseen table."""
        cube = [0] * self.size
        for r in self.records:
            cube[self._place(r.codes)] += r.amount
        return tuple(cube)

    @cached_property
    def _in_place(self) -> dict[int, list[Record]]:
        found: dict[int, list[Record]] = defaultdict(list)
        for r in self.records:
            found[self._place(r.codes)].append(r)
        return found

    @cached_property
    def _known_leaves(self) -> dict[tuple[str | None, ...], Leaves]:
        return {}

    @cached_property
    def _known_contents(self) -> dict[Leaves, Content]:
        return {}

    def variable(self, name: str) -> Variable:
        """The variable of a name."""
        return next(v for v in self.variables if v.name == name)

    def leaves(self, where: Where) -> Leaves:
        """The part of the unseen table that a cell sums."""
        key = tuple(where.get(v.name) for v in self.variables)
        if (found := self._known_leaves.get(key)) is None:
            ranges = [
                range(n) if code is None else sorted(v.below(code))
                for v, code, n in zip(self.variables, key, self.shape, strict=True)
            ]
            found = frozenset(self._place(codes) for codes in itertools.product(*ranges))
            self._known_leaves[key] = found
        return found

    def content(self, leaves: Leaves) -> Content:
        """The truth about a cell, where contributions of one holding are added up."""
        if (found := self._known_contents.get(leaves)) is None:
            own: dict[str, int] = defaultdict(int)
            for place in leaves:
                for r in self._in_place.get(place, ()):
                    own[r.holding] += r.amount
            parts = sorted(((x, who) for who, x in own.items()), key=lambda p: (-p[0], p[1]))
            found = Content(sum(x for x, _ in parts), tuple(parts))
            self._known_contents[leaves] = found
        return found

    def table(self, names: Iterable[str]) -> list[dict[str, str]]:
        """All cells of a table with its totals and subtotals."""
        spanned = [self.variable(n) for n in names]
        every = itertools.product(*(v.codes for v in spanned))
        return [dict(zip((v.name for v in spanned), codes, strict=True)) for codes in every]

    def _place(self, codes: tuple[int, ...]) -> int:
        place = 0
        for code, n in zip(codes, self.shape, strict=True):
            place = place * n + code
        return place
