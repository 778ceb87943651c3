"""A case of the corpus: files, what they imitate, what their notes justify, and the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace

from corpus.build.attack import Book, Cell, Dim, Fact, Range


@dataclass
class Case:
    """What a function of a family returns.

    `files` maps the end of a file's name to its bytes; `inputs` are the arguments of the command in
    their order, in which `{stem}` stands for folder and beginning of the name.
    """

    book: Book
    want: str
    files: dict[str, bytes]
    options: list[str] = field(default_factory=list)
    notes: str = ""
    wanted: str = ""
    reason: str = ""
    """Why nobody can judge the file without the options; empty where somebody can."""
    readings: list[tuple[str, Book]] = field(default_factory=list)
    """Other readings of the same bytes, one of which must end otherwise."""
    usual: bool = False
    """Whether the first of those readings is what names in the file suggest, so that a reader may follow it."""
    inputs: list[str] = field(default_factory=lambda: ["{stem}.csv"])
    family: str = ""
    name: str = ""
    imitates: str = ""
    ranges: dict[Cell, Range] = field(default_factory=dict)

    @property
    def bare(self) -> str:
        return "not judged" if self.reason else self.want

    def solve(self) -> Case:
        """Compute the truth, and check that the case is what it says."""
        self.ranges = self.book.ranges()
        found = self.book.verdict(self.ranges)
        if found != self.want:
            raise ValueError(f"{self.family}/{self.name}: {found}, not {self.want}: {self.ranges}")
        if bool(self.reason) != bool(self.readings):
            raise ValueError(f"{self.family}/{self.name}: a reason needs another reading")
        if self.readings:
            others = {self.want} | {book.verdict(book.ranges()) for _, book in self.readings}
            if others != {"disclosed", "safe"}:
                raise ValueError(f"{self.family}/{self.name}: readings agree: {others}")
        return self


REGISTRY: dict[tuple[str, str], tuple[str, Callable[[], Case]]] = {}
"""What each case imitates and how it is made, by family and name, in the order of their numbers."""


def case(
    family: str, name: str, imitates: str
) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Enter a function that makes a case."""

    def enter(make: Callable[[], Case]) -> Callable[[], Case]:
        REGISTRY[family, name] = imitates, make
        return make

    return enter


def reread(
    book: Book,
    dims: tuple[Dim, ...] | None = None,
    hidden: list[Cell] | None = None,
    facts: list[Fact] | None = None,
    values: Mapping[Cell, int] | None = None,
    **more: object,
) -> Book:
    """The same printed cells under another reading."""
    other = replace(deepcopy(book), **more)  # type: ignore[arg-type]
    if dims is not None:
        other.dims = dims
    if hidden is not None:
        other.hidden = list(hidden)
    if facts is not None:
        other.facts = list(facts)
    if values is not None:
        other.values = {**other.values, **values}
    return other


def peer(dim: Dim, *codes: str) -> Dim:
    """The dimension as one reads it who takes the given totals for categories like the others."""
    return Dim(
        dim.name, {c: frozenset({c}) if c in codes else parts for c, parts in dim.codes.items()}
    )


def with_rest(dim: Dim, *codes: str) -> Dim:
    """The dimension as one reads it who thinks that the given totals hold unlisted categories."""
    return Dim(
        dim.name,
        {c: parts | {f"?{dim.name}"} if c in codes else parts for c, parts in dim.codes.items()},
    )
