"""What is said and known about the codes of a dimension: the finest ones, and the groups made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lustrum.model import Category, TableAxis
from lustrum.readers.hierarchy_files import Groups
from lustrum.readers.table_file import TableFile

TOTAL_NAMES = frozenset(
    {
        "_t",
        "tot",
        "tot.",
        "total",
        "totals",
        "grand total",
        "grand_total",
        "all",
        "alle",
        "everybody",
    }
    | {
        "gesamt",
        "insgesamt",
        "zusammen",
        "summe",
        "ensemble",
        "totale",
        "totaal",
        "totalt",
        "i alt",
    }
    | {"suma", "razem", "ukupno", "celkem", "yhteensä", "összesen", "všetko", "все", "всего"}
)
"""Codes that mean a total in official statistics, in small letters."""


@dataclass(frozen=True)
class StatedTotals:
    """What the user says about totals, by dimension; the dimension ``""`` stands for every one.

    ``named`` are codes of totals, ``groups`` the parts of subtotals. ``none`` are dimensions without totals,
    and ``rest`` those whose total holds more than the codes that the files list; ``open_groups`` are
    subtotals that do.
    """

    named: Mapping[str, frozenset[str]] = field(default_factory=dict)
    groups: Mapping[str, Groups] = field(default_factory=dict)
    none: frozenset[str] = frozenset()
    rest: frozenset[str] = frozenset()
    open_groups: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def without_totals(self, dimension: str) -> bool:
        """Whether a dimension has no total, as the user says."""
        return bool({"", dimension} & self.none)


@dataclass(frozen=True)
class Dimension:
    """The codes of one dimension over all files: the finest ones, and the groups made of them.

    ``groups[code]`` are positions among ``finest``; one position more stands for codes that are not listed.
    ``how`` says how each group was recognised.
    """

    name: str
    finest: tuple[str, ...]
    groups: Mapping[str, frozenset[int]]
    how: Mapping[str, str]
    hidden_rest: bool = False

    @property
    def everything(self) -> frozenset[int]:
        """All positions."""
        return frozenset(range(len(self.finest) + self.hidden_rest))

    @property
    def totals(self) -> tuple[str, ...]:
        """The codes that hold everything."""
        return tuple(code for code, parts in self.groups.items() if parts == self.everything)

    def members(self, code: str) -> tuple[int, ...]:
        """The positions that a code stands for."""
        return tuple(sorted(self.groups.get(code) or (self.finest.index(code),)))

    def sentence(self) -> str:
        """What was recognised, in words.

        >>> made = Dimension("sex", ("1", "2"), {"Total": frozenset({0, 1})}, {"Total": "by name"})
        >>> made.sentence()
        'sex: 2 codes; the total is Total (by name); no subtotals.'
        """
        totals = self.totals
        subtotals = [code for code in self.groups if code not in totals]
        clauses = [f"{self.name}: {len(self.finest)} code{'s' * (len(self.finest) != 1)}"]
        if totals:
            clauses.append(f"the total is {self._listed(totals)}")
        else:
            clauses.append("no total")
        if subtotals:
            plural = "subtotal" if len(subtotals) == 1 else f"{len(subtotals)} subtotals"
            clauses.append(f"{plural} {self._listed(subtotals)}")
        else:
            clauses.append("no subtotals")
        return "; ".join(clauses) + "."

    def _listed(self, codes: Sequence[str], most: int = 8) -> str:
        ways = list(dict.fromkeys(self.how[code] for code in codes))
        more = f" and {len(codes) - most} more" if len(codes) > most else ""
        return f"{', '.join(codes[:most])}{more} ({', '.join(ways)})"


@dataclass(frozen=True)
class Recognition:
    """What was recognised in some files that are about one population."""

    dimensions: Mapping[str, Dimension]

    def sentences(self) -> tuple[str, ...]:
        """A sentence for each dimension."""
        return tuple(d.sentence() for d in self.dimensions.values())

    def axes(self, file: TableFile) -> tuple[TableAxis, ...]:
        """The axes of a file, whose categories hold the same people in every file."""
        axes = []
        for name, codes in zip(file.dimensions, file.codes, strict=True):
            dimension = self.dimensions[name]
            places: dict[str, tuple[int, ...]] = {c: (i,) for i, c in enumerate(dimension.finest)}
            places |= {code: tuple(sorted(parts)) for code, parts in dimension.groups.items()}
            axes.append(
                TableAxis(
                    name,
                    name,
                    tuple(
                        Category(code, file.labels.get((name, code), code), places[code])
                        for code in codes
                    ),
                )
            )
        return tuple(axes)


def finest_of(code: str, groups: Groups, positions: Mapping[str, int]) -> frozenset[int]:
    """The places of all finest codes in a group, through groups within it."""
    out: set[int] = set()
    waiting = list(groups[code])
    while waiting:
        part = waiting.pop()
        if part in groups:
            waiting.extend(groups[part])
        else:
            out.add(positions[part])
    return frozenset(out)
