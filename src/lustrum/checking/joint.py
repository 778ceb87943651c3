"""All outputs together: small groups whose number follows from several outputs, though none shows it.

Let a *part* be the people who are in the same populations of outputs. Every count that an output shows is the
sum, over the parts of its population and a set of categories, of hidden counts: one linear structure. A union
of parts within a cell is given away if its count is a combination of the counts that are shown; then so is
every sum over it of a measure that these outputs show. Which unions may follow at all is a question about the
populations alone: the 0/1 vectors in the row space of parts by populations, listed exactly. Each that holds a
few people in some cell is then put to the elimination of :mod:`lustrum.audit`.

Rounded counts are taken as if they were exact, so that rounded tables of nearly the same people are found too;
and few people whose number is known more closely by several tables than by one rounding are found by bounds.

Readers know how populations nest and which category lies in which coarser one, and no more about which
combinations of categories are empty than is shown. The cells of all variables are unknown at once where these
are few enough; otherwise those of the variables of one table, with what other outputs show of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import lcm
from typing import Any

import numpy as np
from scipy import sparse

from lustrum.audit import Knowledge, bounds, exactly_disclosed
from lustrum.checking.tables import Level, OutputPopulation
from lustrum.model.arrays import Ints, Mask
from lustrum.numeric.structure import UNBOUNDED

_MOST_RANK = 10  # of populations whose unions of parts are all listed
_MOST_TOGETHER = (
    20_000  # cells of all variables at once, where every combination is decided exactly
)
_MOST_CELLS = 200_000
_MOST_VARIABLES = 4


_Fact = tuple[Ints, int, int]  # cells, and in which range their sum lies


@dataclass(frozen=True)
class SmallGroup:
    """People whose number follows: how many, and their categories in words; for the agency alone."""

    where: tuple[tuple[str, str], ...]
    people: int


@dataclass(frozen=True)
class OutputDifference:
    """Outputs that together give small groups away."""

    outputs: tuple[str, ...]
    groups: tuple[SmallGroup, ...]

    @property
    def smallest(self) -> int:
        return min(group.people for group in self.groups)


@dataclass(frozen=True)
class JointAudit:
    """What was found, and what was too large to be decided exactly."""

    differences: tuple[OutputDifference, ...]
    undecided: tuple[str, ...] = ()

    def about(self, output: str) -> tuple[OutputDifference, ...]:
        return tuple(one for one in self.differences if output in one.outputs)


def audit_together(outputs: Sequence[OutputPopulation], threshold: int) -> JointAudit:
    """Which groups of fewer than ``threshold`` people the outputs give away together."""
    outputs = [one for one in outputs if one.people.size and one.shown]
    if not outputs:
        return JointAudit(())
    parts = _Parts(outputs)
    unions, complete = parts.unions()
    undecided = (
        [] if complete else ["These populations overlap in so many ways that some were not tried."]
    )
    found: list[tuple[_Target, Level, tuple[str, ...]]] = []
    groups: dict[tuple[str, ...], list[SmallGroup]] = {}
    undecided += [
        f"Margins of more than {_MOST_VARIABLES} of {' × '.join(base)} were not tried."
        for base in dict.fromkeys(parts.bases)
        if len(set(base)) > _MOST_VARIABLES
    ]
    together = _Space.of(parts, tuple(parts.labels_of_bases), _MOST_TOGETHER)
    for level in _levels(parts.bases):
        space = together or _Space.of(parts, level, _MOST_CELLS)
        if space is None:
            undecided.append(f"Cells of {' × '.join(level)} are too many to be tried together.")
            continue
        targets = list(space.targets(level, unions, threshold))
        given_away = space.given_away(range(len(outputs)), targets)
        known = [target for target, follows in zip(targets, given_away, strict=True) if follows]
        for target in known:
            # What a union holds beyond a smaller one that follows, follows too, and is listed by itself.
            if any(one.cell == target.cell and one.union < target.union for one in known):
                continue
            wider = next(
                (names for wide, of, names in found if _within(target, level, wide, of)), None
            )
            names = space.needed(target) if wider is None else wider
            if wider is None:
                found.append((target, level, names))
            group = space.describe(target)
            if group not in (listed := groups.setdefault(names, [])):
                listed.append(group)
    for number in [at for at, one in enumerate(outputs) if one.base]:
        space = together or _Space.of(parts, tuple(sorted(set(parts.bases[number]))), _MOST_CELLS)
        for names, group in () if space is None else space.narrowed(number, threshold):
            if group not in (listed := groups.setdefault(names, [])):
                listed.append(group)
    ordered = [OutputDifference(names, tuple(those)) for names, those in groups.items()]
    return JointAudit(tuple(ordered), tuple(undecided))


def _levels(bases: Sequence[Level]) -> list[Level]:
    """All sets of variables that an output crosses, small ones first."""
    found: set[Level] = set()
    for base in bases:
        names = tuple(sorted(set(base)))
        for size in range(min(len(names), _MOST_VARIABLES) + 1):
            found.update(combinations(names, size))
        found.add(names)
    return sorted(found, key=lambda level: (len(level), level))


@dataclass(frozen=True)
class _Target:
    """A union of parts within a cell: the parts that have anybody there, and how many these are."""

    parts: frozenset[int]
    union: frozenset[int]
    level: Level
    cell: tuple[int, ...]
    people: int


def _within(target: _Target, level: Level, wide: _Target, of: Level) -> bool:
    """Whether a group is a part of one that was found already: of its people in finer categories."""
    if not set(of) <= set(level):
        return False
    place = dict(zip(level, target.cell, strict=True))
    inside = all(place[name] == code for name, code in zip(of, wide.cell, strict=True))
    return inside and target.parts <= wide.parts


class _Parts:
    """The people of all outputs by the populations that they are in, and their categories."""

    def __init__(self, outputs: Sequence[OutputPopulation]) -> None:
        self.outputs = outputs
        self.people = np.unique(np.concatenate([one.people for one in outputs]))
        self._at = [np.searchsorted(self.people, one.people) for one in outputs]
        member = np.zeros((len(outputs), self.people.size), dtype=np.bool_)
        for row, at in zip(member, self._at, strict=True):
            row[at] = True
        kinds, part = np.unique(np.packbits(member, axis=0), axis=1, return_inverse=True)
        self.part_of: Ints = part.ravel().astype(np.int64)
        first = np.unique(self.part_of, return_index=True)[1]
        self.matrix: Mask = member[:, first]
        self.size = kinds.shape[1]
        self._name_variables()

    def parts(self, output: int) -> frozenset[int]:
        return frozenset(np.flatnonzero(self.matrix[output]).tolist())

    # --- Which columns of outputs are one variable, and which is a coarser form of another

    def _name_variables(self) -> None:
        columns: dict[str, Ints] = {}
        self.labels: dict[str, tuple[str, ...]] = {}
        names: dict[tuple[int, str], str] = {}
        for number, one in enumerate(self.outputs):
            for variable in one.variables:
                column, labels = self._column(number, variable, ())
                for attempt in range(1, len(self.outputs) + 2):
                    name = variable if attempt == 1 else f"{variable} ({attempt})"
                    if name not in columns:
                        columns[name], self.labels[name] = column, labels
                        break
                    again, merged = self._column(number, variable, self.labels[name])
                    both = (again >= 0) & (columns[name] >= 0)
                    if bool((again[both] == columns[name][both]).all()):
                        columns[name] = np.maximum(columns[name], again)
                        self.labels[name] = merged
                        break
                names[number, variable] = name
        self.columns = columns
        finer = {name: self._finer(name) for name in columns}
        self.maps: list[dict[str, tuple[str, Ints]]] = [{} for _ in self.outputs]
        for (number, variable), name in names.items():
            base = finer[name]
            own, _ = self._column(number, variable, ())
            category = np.full(len(self.labels[base]), -1, dtype=np.int64)
            inside = own >= 0
            category[columns[base][inside]] = own[inside]
            if base != name:  # categories of the finer variable in which this output has nobody
                whole = _function(columns[base], columns[name], len(self.labels[base]))
                code = {label: at for at, label in enumerate(self.outputs[number].labels[variable])}
                for fine, coarse in enumerate(whole.tolist()):
                    if coarse >= 0:
                        category[fine] = code.get(self.labels[name][coarse], -1)
            else:
                code = {label: at for at, label in enumerate(self.outputs[number].labels[variable])}
                category[:] = [code.get(label, -1) for label in self.labels[name]]
            self.maps[number][variable] = (base, category)
        self.bases = [tuple(base for base, _ in one.values()) for one in self.maps]
        self.labels_of_bases = sorted({base for bases in self.bases for base in bases})

    def _column(
        self, number: int, variable: str, labels: tuple[str, ...]
    ) -> tuple[Ints, tuple[str, ...]]:
        """The codes of all people in a variable of an output, by labels that others began."""
        one = self.outputs[number]
        merged = tuple(dict.fromkeys((*labels, *one.labels[variable])))
        code = {label: at for at, label in enumerate(merged)}
        new = np.array([code[label] for label in one.labels[variable]], dtype=np.int64)
        column = np.full(self.people.size, -1, dtype=np.int64)
        column[self._at[number]] = new[one.codes[variable]]
        return column, merged

    def _finer(self, name: str) -> str:
        """The finest variable of which this one is a coarser form."""
        coarse = self.columns[name]
        best = name
        for other, fine in self.columns.items():
            if len(self.labels[other]) <= len(self.labels[best]) or bool(
                (fine[coarse >= 0] < 0).any()
            ):
                continue
            both = coarse >= 0
            if _is_function(fine[both], coarse[both]):
                best = other
        return best

    # --- Which unions of parts may follow

    def unions(self) -> tuple[list[frozenset[int]], bool]:
        """The unions of parts in the row space of populations; whether these are all."""
        rows = _echelon(np.unique(self.matrix, axis=0))
        found = {self.parts(number) for number in range(len(self.outputs))}
        for one, other in product(tuple(found), repeat=2):
            if other < one:
                found.add(one - other)
        complete = len(rows) <= _MOST_RANK
        chosen = [tuple(range(len(rows)))] if complete else _connected(rows)
        for group in chosen:
            if len(group) > _MOST_RANK:
                group = group[:0]
            whole = lcm(*(value.denominator for at in group for value in rows[at]))
            scaled = [[int(value * whole) for value in rows[at]] for at in group]
            dense = np.array(scaled, dtype=np.int64).reshape(-1, self.size)
            for bits in product((0, 1), repeat=len(group)):
                vector = np.array(bits, dtype=np.int64) @ dense
                if bool(np.isin(vector, (0, whole)).all()) and bool(vector.any()):
                    found.add(frozenset(np.flatnonzero(vector).tolist()))
        return sorted(found, key=lambda union: (len(union), sorted(union))), complete


def _function(fine: Ints, coarse: Ints, categories: int) -> Ints:
    out = np.full(categories, -1, dtype=np.int64)
    both = (fine >= 0) & (coarse >= 0)
    out[fine[both]] = coarse[both]
    return out


def _is_function(fine: Ints, coarse: Ints) -> bool:
    if not fine.size:
        return False
    return bool((_function(fine, coarse, int(fine.max()) + 1)[fine] == coarse).all())


def _echelon(matrix: Mask) -> list[list[Fraction]]:
    """The reduced rows of a 0/1 matrix: each has a 1 in its pivot, where all others have 0."""
    rows: list[list[Fraction]] = []
    for raw in matrix.astype(int).tolist():
        new = [Fraction(value) for value in raw]
        for row in rows:
            pivot = next(at for at, value in enumerate(row) if value)
            if new[pivot]:
                factor = new[pivot]
                new = [a - factor * b for a, b in zip(new, row, strict=True)]
        lead = next((at for at, value in enumerate(new) if value), None)
        if lead is None:
            continue
        new = [value / new[lead] for value in new]
        for at, row in enumerate(rows):
            if row[lead]:
                rows[at] = [a - row[lead] * b for a, b in zip(row, new, strict=True)]
        rows.append(new)
    return sorted(rows, key=lambda row: next(at for at, value in enumerate(row) if value))


def _connected(rows: list[list[Fraction]]) -> list[tuple[int, ...]]:
    """Rows that share parts, together."""
    groups: list[tuple[set[int], set[int]]] = []
    for number, row in enumerate(rows):
        touched, members = {at for at, value in enumerate(row) if value}, {number}
        apart = []
        for columns, those in groups:
            if columns & touched:
                touched |= columns
                members |= those
            else:
                apart.append((columns, those))
        groups = [*apart, (touched, members)]
    return [tuple(sorted(members)) for _, members in groups]


@dataclass(frozen=True, eq=False)
class _Space:
    """The hidden counts of all parts by the categories of some variables; those without one come last."""

    parts: _Parts
    names: Level
    shape: tuple[int, ...]
    counts: Ints

    @classmethod
    def of(cls, parts: _Parts, names: Level, most: int) -> _Space | None:
        """The space, unless it is too large."""
        shape = tuple(len(parts.labels[name]) + 1 for name in names)
        if parts.size * float(np.prod(shape, dtype=float)) > most:
            return None
        counts = np.zeros((parts.size, *shape), dtype=np.int64)
        np.add.at(counts, (parts.part_of, *(parts.columns[name] for name in names)), 1)
        return cls(parts, names, shape, counts)

    @cached_property
    def _impossible(self) -> Mask:
        """Cells that hold nobody by what outputs are: who is in a table has its variables."""
        none: Mask = np.zeros(self.counts.shape, dtype=np.bool_)
        for number, bases in enumerate(self.parts.bases):
            inside = np.flatnonzero(self.parts.matrix[number])
            for at, name in enumerate(self.names):
                if name in bases:
                    ends: list[Any] = [inside, *(np.arange(size) for size in self.shape)]
                    ends[at + 1] = [self.shape[at] - 1]
                    none[np.ix_(*ends)] = True
        return none

    @cached_property
    def rows(self) -> list[list[tuple[Ints, int]]]:
        """Of each output the counts that it shows of these cells: which they add up, and to how many."""
        flat = self.counts.ravel()
        return [
            [(held, int(flat[held].sum())) for held in self._shown_by(number, self.names)]
            for number in range(len(self.parts.outputs))
        ]

    def _shown_by(self, number: int, names: Level) -> Iterator[Ints]:
        """The cells behind each count by some of the variables that follows from one output."""
        maps, output = self.parts.maps[number], self.parts.outputs[number]
        within = [name for name, (base, _) in maps.items() if base in names]
        for level, mask in output.visible(within).items():
            for cell in map(tuple, np.argwhere(mask)):
                yield self._cells(self._categories(number, level, cell))

    def _cells(self, ends: Sequence[Any]) -> Ints:
        """The numbers of cells along given parts and categories."""
        return np.ravel_multi_index(np.ix_(*ends), self.counts.shape).ravel()

    def _categories(self, number: int, level: Level, cell: tuple[int, ...]) -> list[Ints]:
        """The parts of an output, and along each variable the categories that lie in a cell of it."""
        inside = [np.flatnonzero(self.parts.matrix[number])]
        for name, size in zip(self.names, self.shape, strict=True):
            kept = np.ones(size, dtype=np.bool_)
            for variable, code in zip(level, cell, strict=True):
                base, category = self.parts.maps[number][variable]
                if base == name:
                    kept &= np.append(category == code, False)
            inside.append(np.flatnonzero(kept))
        return inside

    def targets(
        self, level: Level, unions: Sequence[frozenset[int]], threshold: int
    ) -> Iterator[_Target]:
        """Unions of parts that hold a few people in a cell, unless one output shows their number by itself."""
        over = tuple(at + 1 for at, name in enumerate(self.names) if name not in level)
        counts = self.counts.sum(axis=over)[
            (slice(None), *(slice(0, len(self.parts.labels[name])) for name in level))
        ]
        if not bool(((counts > 0) & (counts < threshold)).any()):
            return
        alone = {
            held.tobytes()
            for number in range(len(self.parts.outputs))
            for held in self._shown_by(number, level)
        }
        for union in unions:
            listed = sorted(union)
            total = counts[listed].sum(axis=0)
            for cell in map(tuple, np.argwhere((total > 0) & (total < threshold)).tolist()):
                present = frozenset(at for at in listed if counts[(at, *cell)])
                target = _Target(present, union, level, cell, int(total[cell]))
                if self._of(target).tobytes() not in alone:
                    yield target

    def _of(self, target: _Target) -> Ints:
        code = dict(zip(target.level, target.cell, strict=True))
        ends = [
            [code[name]] if name in code else np.arange(size)
            for name, size in zip(self.names, self.shape, strict=True)
        ]
        return self._cells([sorted(target.union), *ends])

    def given_away(self, outputs: Sequence[int], targets: Sequence[_Target]) -> Mask:
        """Which targets follow from the counts that some of the outputs show."""
        if not targets:
            return np.zeros(0, dtype=np.bool_)
        facts = [(held, all_, all_) for number in outputs for held, all_ in self.rows[number]]
        known = self._knowledge(facts, [self._of(target) for target in targets])
        return exactly_disclosed(known)[self.counts.size :]

    def _knowledge(self, facts: Sequence[_Fact], targets: Sequence[Ints]) -> Knowledge:
        """Sums of cells that lie in ranges; behind the cells the sums of the targets are cells, too."""
        atoms = self.counts.size
        width = atoms + len(targets)
        high: Ints = np.full(width, UNBOUNDED, dtype=np.int64)
        high[np.flatnonzero(self._impossible)] = 0
        lines, ranges = [], []
        for held, least, most in facts:
            if most == 0:
                high[held] = 0
            else:
                lines.append((held, np.ones(held.size, dtype=np.int64)))
                ranges.append((least, most))
        for number, held in enumerate(targets):
            values = np.append(np.full(held.size, -1), 1).astype(np.int64)
            lines.append((np.append(held, atoms + number), values))
            ranges.append((0, 0))
        pointers = np.cumsum([0, *(held.size for held, _ in lines)])
        indices, values = (np.concatenate(one) for one in zip(*lines, strict=True))
        fact_low, fact_high = np.array(ranges, dtype=np.int64).T
        return Knowledge(
            names=[""] * width,
            low=np.zeros(width, dtype=np.int64),
            high=high,
            matrix=sparse.csr_array((values, indices, pointers), shape=(len(lines), width)),
            fact_low=fact_low,
            fact_high=fact_high,
        )

    def narrowed(self, number: int, threshold: int) -> Iterator[tuple[tuple[str, ...], SmallGroup]]:
        """Few people of a rounded output of whom all outputs leave at most half as many numbers as it does."""
        small = [
            (level, cell, held, least, most)
            for level, cell, held, least, most in self._rounded(number)
            if 0 < int(self.counts.ravel()[held].sum()) < threshold
        ]

        def left(outputs: Sequence[int], held: Sequence[Ints]) -> Ints:
            facts = [fact for at in outputs for fact in self._ranges(at)]
            atoms = self.counts.size
            found = bounds(self._knowledge(facts, held), range(atoms, atoms + len(held)))
            return np.asarray(found.count, dtype=np.int64)

        every = [at for at in range(len(self.parts.outputs)) if self.rows[at]]
        numbers = left(every, [held for _, _, held, _, _ in small]) if small else ()
        for (level, cell, held, least, most), those in zip(small, numbers, strict=True):
            if 2 * those > most - least + 1:
                continue
            kept = every
            for at in reversed(every):
                fewer = [one for one in kept if one != at]
                if fewer and 2 * left(fewer, [held])[0] <= most - least + 1:
                    kept = fewer
            names = tuple(self.parts.outputs[at].output for at in kept)
            where = tuple(
                (name, self.parts.outputs[number].labels[name][code])
                for name, code in zip(level, cell, strict=True)
            )
            yield names, SmallGroup(where, int(self.counts.ravel()[held].sum()))

    def _ranges(self, number: int) -> list[_Fact]:
        """What the counts of an output say of these cells: exactly, or as far as they are rounded."""
        if self.parts.outputs[number].base:
            return [(held, least, most) for _, _, held, least, most in self._rounded(number)]
        return [(held, whole, whole) for held, whole in self.rows[number]]

    def _rounded(self, number: int) -> Iterator[tuple[Level, tuple[int, ...], Ints, int, int]]:
        """The rounded counts of an output by some of the variables: the cells behind each, and its range."""
        output, flat = self.parts.outputs[number], self.counts.ravel()
        for level, mask in output.shown.items():
            if {self.parts.maps[number][name][0] for name in level} <= set(self.names):
                for cell in map(tuple, np.argwhere(mask).tolist()):
                    held = self._cells(self._categories(number, level, cell))
                    shown = (2 * int(flat[held].sum()) + output.base) // (2 * output.base)
                    least = shown * output.base - output.base // 2
                    yield level, cell, held, max(least, 0), least + output.base - 1

    def needed(self, target: _Target) -> tuple[str, ...]:
        """The names of outputs from which a target follows, and from none fewer of them."""
        kept = [number for number in range(len(self.parts.outputs)) if self.rows[number]]
        for number in reversed(tuple(kept)):
            fewer = [one for one in kept if one != number]
            if bool(self.given_away(fewer, [target])[0]):
                kept = fewer
        return tuple(self.parts.outputs[number].output for number in kept)

    def describe(self, target: _Target) -> SmallGroup:
        named = zip(target.level, target.cell, strict=True)
        where = tuple((name, self.parts.labels[name][code]) for name, code in named)
        return SmallGroup(where, target.people)
