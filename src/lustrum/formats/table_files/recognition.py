"""Which codes of a table are totals and subtotals: said by the user, by their names, or by their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lustrum.arrays import Ints, Mask
from lustrum.formats.table_files.hierarchy_files import Groups
from lustrum.formats.table_files.numbers import groups_by_numbers
from lustrum.formats.table_files.table_file import TableFile
from lustrum.model import Category, InputError, TableAxis
from lustrum.model.errors import choices

__all__ = ["TOTAL_NAMES", "Dimension", "Recognition", "SaidTotals", "recognise"]


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

_WEAK_NAMES = frozenset({"t", "*", "sum", "0"})  # totals only where nothing is larger
_SAID, _NAMED, _ADDED = "as you say", "by name", "by numbers"


@dataclass(frozen=True)
class SaidTotals:
    """What the user says about totals, by dimension; the dimension ``""`` stands for every one.

    ``named`` are codes of totals, ``groups`` the parts of subtotals. ``none`` are dimensions without totals,
    and ``rest`` those whose total holds more than the codes that the files list.
    """

    named: Mapping[str, frozenset[str]] = field(default_factory=dict)
    groups: Mapping[str, Groups] = field(default_factory=dict)
    none: frozenset[str] = frozenset()
    rest: frozenset[str] = frozenset()

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
        words = [f"{self.name}: {len(self.finest)} code{'s' * (len(self.finest) != 1)}"]
        if totals:
            words.append(f"the total is {self._listed(totals)}")
        else:
            words.append("no total")
        if subtotals:
            plural = "subtotal" if len(subtotals) == 1 else f"{len(subtotals)} subtotals"
            words.append(f"{plural} {self._listed(subtotals)}")
        else:
            words.append("no subtotals")
        return "; ".join(words) + "."

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
            own = self.dimensions[name]
            places: dict[str, tuple[int, ...]] = {c: (i,) for i, c in enumerate(own.finest)}
            places |= {code: tuple(sorted(parts)) for code, parts in own.groups.items()}
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


def recognise(
    files: Sequence[TableFile], said: SaidTotals | None = None, *, slack: int = 0
) -> Recognition:
    """Find the totals and subtotals of all dimensions, and check that they add up.

    A dimension in which nothing is recognised is an error, unless it has one code only, the user says that
    it has no total, or another file leaves it out and so shows the totals over it. ``slack`` is a rounding
    base: sums may then be off by that much for every number in them.
    """
    stated = said or SaidTotals()
    names = list(dict.fromkeys(name for file in files for name in file.dimensions))
    for name in sorted({*stated.named, *stated.groups, *stated.none, *stated.rest} - {""}):
        if name not in names:
            raise InputError(f"There is no dimension {name!r}; {choices(name, names)}.")
    found = {name: _dimension(name, files, stated, slack) for name in names}
    for name, dimension in found.items():
        with_it = [file for file in files if name in file.dimensions]
        lone = len(dimension.finest) == 1 or len(with_it) < len(files)
        if not dimension.groups and not lone and not stated.without_totals(name):
            listed = ", ".join(dimension.finest[:6]) + (
                ", ..." if len(dimension.finest) > 6 else ""
            )
            raise InputError(
                f"{with_it[0].source}: no total is recognised among the codes of {name!r} ({listed}); name it "
                f"with --total {name}=CODE, or say --no-totals {name} if there is none."
            )
    return Recognition(found)


def _dimension(name: str, files: Sequence[TableFile], stated: SaidTotals, slack: int) -> Dimension:
    own = [file for file in files if name in file.dimensions]
    codes = list(dict.fromkeys(c for file in own for c in file.codes[file.dimensions.index(name)]))
    groups = dict(stated.groups.get(name, {}))
    how = dict.fromkeys(groups, _SAID)
    totals = dict.fromkeys((stated.named.get(name, frozenset())), _SAID)
    totals |= {c: _SAID for c in stated.named.get("", ()) if c in codes}
    for code in totals:
        if code not in codes:
            raise InputError(
                f"The dimension {name!r} has no code {code!r}; {choices(code, codes)}."
            )
    if not stated.without_totals(name):
        for code in codes:
            if code in groups or code in totals:
                continue
            if code.lower() in TOTAL_NAMES or (
                code.lower() in _WEAK_NAMES and all(_is_largest(f, name, code) for f in own)
            ):
                totals[code] = _NAMED
    added: dict[str, frozenset[str]] = {}
    if not stated.without_totals(name) and slack == 0:
        for file in own:
            for code, parts in _added_up(file, name, {*groups, *totals}).items():
                added.setdefault(code, parts)
    finest = [c for c in codes if c not in groups and c not in totals and c not in added]
    finest += [
        part
        for parts in groups.values()
        for part in parts
        if part not in groups and part not in finest and part not in added and part not in totals
    ]
    finest = list(dict.fromkeys(finest))
    if not finest:
        raise InputError(
            f"The dimension {name!r} has totals only; it needs a code that is not one."
        )
    place = {code: i for i, code in enumerate(finest)}
    positions: dict[str, frozenset[int]] = {
        code: frozenset(place[p] for p in parts) for code, parts in added.items()
    }
    how |= dict.fromkeys(added, _ADDED)
    for code in groups:
        positions[code] = _expanded(code, groups, place, positions)
    rest = bool({"", name} & stated.rest)
    everything = frozenset(range(len(finest) + rest))
    for code, way in totals.items():
        positions[code] = everything
        how[code] = way
    shown = {c: positions[c] for c in (*codes, *groups) if c in positions}
    made = Dimension(name, tuple(finest), shown, how, rest)
    for file in own:
        _check(file, made, slack)
    _check_same_cover(own, made)
    return made


def _is_largest(file: TableFile, name: str, code: str) -> bool:
    """Whether no value of another code is larger, in any column."""
    codes = file.codes[file.dimensions.index(name)]
    if code not in codes:
        return True
    values, known = _along(file, name)
    row = codes.index(code)
    return len(codes) > 2 and not bool(((values > values[row]) & known & known[row]).any())


def _expanded(
    code: str, groups: Groups, place: Mapping[str, int], known: Mapping[str, frozenset[int]]
) -> frozenset[int]:
    out: set[int] = set()
    waiting = list(groups[code])
    while waiting:
        part = waiting.pop()
        if part in groups:
            waiting.extend(groups[part])
        elif part in place:
            out.add(place[part])
        elif part in known:
            out |= known[part]
    return frozenset(out)


def _along(file: TableFile, name: str) -> tuple[Ints, Mask]:
    """All values of a file with a row for each code of one dimension, and where they are known."""
    axis = file.dimensions.index(name)
    rows = []
    for pair in file.known_values:
        rows.append([np.moveaxis(a, axis, 0).reshape(a.shape[axis], -1) for a in pair])
    return np.hstack([r[0] for r in rows]), np.hstack([r[1] for r in rows])


def _added_up(file: TableFile, name: str, claimed: set[str]) -> dict[str, frozenset[str]]:
    codes = file.codes[file.dimensions.index(name)]
    values, known = _along(file, name)
    skip = [i for i, code in enumerate(codes) if code in claimed]
    found = groups_by_numbers(values, known, codes, skip)
    return {codes[c]: frozenset(codes[p] for p in parts) for c, parts in found.items()}


def _check(file: TableFile, made: Dimension, slack: int) -> None:
    """Every group of a file must be the sum of its parts where all of them are known."""
    codes = file.codes[file.dimensions.index(made.name)]
    row = {code: i for i, code in enumerate(codes)}
    values, known = _along(file, made.name)
    unit = slack * 10**file.decimals
    for code, parts in made.groups.items():
        if code not in row:
            continue
        inside = [
            row[made.finest[p]] for p in parts if p < len(made.finest) and made.finest[p] in row
        ]
        whole = len(inside) == len(parts)
        sums = np.where(known[inside], values[inside], 0).sum(axis=0)
        every = known[inside].all(axis=0) & known[row[code]]
        room = unit * (len(inside) + 1)
        wrong = every & (np.abs(sums - values[row[code]]) > room) if whole else np.zeros(0, bool)
        if not bool((values < 0).any()):
            over = known[row[code]] & (sums > values[row[code]] + room)
            wrong = over | wrong if whole else over
        if bool(wrong.any()):
            kind = "total" if parts == made.everything else "subtotal"
            raise InputError(
                f"{file.source}: the {kind} {code!r} of {made.name!r} ({made.how[code]}) is not the sum of its "
                f"parts; name subtotals with --hierarchy {made.name}=FILE, say --rest {made.name} if codes are "
                f"missing from the file, or --no-totals {made.name} if {code!r} is not a {kind}."
            )


def _check_same_cover(files: Sequence[TableFile], made: Dimension) -> None:
    """Files with different finest codes must not each add up to the total on their own."""
    total = next(iter(made.totals), None)
    if total is None or made.hidden_rest:
        return
    for file in files:
        codes = file.codes[file.dimensions.index(made.name)]
        inside = [i for i, code in enumerate(codes) if code in made.finest]
        if total not in codes or len(inside) == len(made.finest) or len(inside) < 2:
            continue
        values, known = _along(file, made.name)
        row = codes.index(total)
        every = known[inside].all(axis=0) & known[row]
        sums = values[inside].sum(axis=0)
        filled = every & (values[row] != 0)
        if bool(filled.any()) and bool((sums[filled] == values[row][filled]).all()):
            raise InputError(
                f"{file.source}: the codes of {made.name!r} add up to {total!r} without those of the other "
                f"files; say how the codes relate with --hierarchy {made.name}=FILE."
            )
