"""Contributors to published tables as the attackers of a pattern of suppressed cells.

A file of contributions lists who contributes how much to which cell. What it says of a cube is put as the
problem that such a pattern must solve, so that files are judged as patterns are when they are chosen. A holding
knows what its contributors know. Contributions are 0 or more, so that they add up to what the files show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, reduce
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from lustrum.audit import Knowledge
from lustrum.model import Contributions, InputError, Table, TableAxis
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.model.errors import NotJudgedError, choices
from lustrum.protect.suppression import SuppressionProblem
from lustrum.protect.suppression.contributors import RankedContributions, views_of
from lustrum.readers.cells import CellCube
from lustrum.readers.contributions import Contribution
from lustrum.readers.layout import CodeRoles, Layout
from lustrum.readers.relations import CodeRelation
from lustrum.sensitivity import Rule

_EXACT = 2**53
_RANKS = 10
"""How many contributions to a cell rules see: more than any of them asks for."""


@dataclass(frozen=True, eq=False)
class ProtectionLevels:
    """The cells that need protection, and how far their ranges must reach below, above, and in all.

    A contributor must not know what others have in a cell to within ``close`` percent, where this is given.
    """

    primary: Mask
    lower: Ints
    upper: Ints
    sliding: Ints
    close: float | None = None

    @classmethod
    def nearly_exact(cls, total: Ints, primary: Mask, close: float | None) -> ProtectionLevels:
        """Levels that ranges miss whose values are known, or sums that are known to within some percent."""
        nothing = np.zeros(total.size, dtype=np.int64)
        return cls(primary, nothing, nothing, _slack(total, close), close)

    @classmethod
    def reaching(cls, total: Ints, wanted: tuple[Floats, Floats]) -> ProtectionLevels:
        """Levels that ranges keep which hold these ones."""
        least, most = (np.nan_to_num(end.ravel(), nan=0.0) for end in wanted)
        primary = ~np.isnan(wanted[0].ravel())
        lower = np.where(primary, np.maximum(total - least, 0), 0).astype(np.int64)
        upper = np.where(primary, np.maximum(most - total, 0), 0).astype(np.int64)
        lower = np.minimum(lower, total)
        return cls(primary, lower, upper, np.where(primary, 1, 0))

    def among(self, cells: Mask) -> ProtectionLevels:
        """The same for some cells only."""
        inside = self.primary & cells
        lower, upper, sliding = (
            np.where(inside, level, 0) for level in (self.lower, self.upper, self.sliding)
        )
        return ProtectionLevels(inside, lower, upper, sliding, self.close)


def _slack(amount: Ints, close: float | None) -> Ints:
    """How wide a range must be at least that does not tell an amount, or a little wider."""
    if close is None:
        return np.ones(amount.size, dtype=np.int64)
    share = 2 * close / (100 - close) if close < 100 else float(_EXACT)
    wide: Ints = np.minimum(np.floor(amount * share), _EXACT).astype(np.int64) + 1
    return wide


@dataclass(frozen=True, eq=False, repr=False)
class Contributors:
    """Those who contribute, each holding as one, with their contributions to all cells of a cube.

    ``parties`` has a row for each name and a column for each cell. ``additive`` cells are those to which
    contributions add up.
    """

    names: tuple[str, ...]
    parties: Any
    additive: Mask

    @classmethod
    def of(
        cls,
        rows: Sequence[Contribution],
        cube: CellCube,
        layout: Layout,
        relations: Sequence[CodeRelation],
        known: Knowledge,
    ) -> Contributors:
        """Contributions to all cells; they must add up to what the files show and state."""
        axes = [
            _AxisSums.of(name, codes, layout.dimensions.get(name, CodeRoles()), relations)
            for name, codes in zip(cube.names, cube.codes, strict=True)
        ]
        if not axes:
            raise InputError("The tables have no variable, so that nobody contributes to a cell.")
        people = {name: i for i, name in enumerate(dict.fromkeys(row.contributor for row in rows))}
        cells, who, amount = [], [], []
        for row in rows:
            at = [axis.place(row, name) for axis, name in zip(axes, cube.names, strict=True)]
            cells.append(int(np.ravel_multi_index(at, [len(axis.base) for axis in axes])))
            who.append(people[row.contributor])
            amount.append(_units(row, cube.decimals))
        if sum(amount) > _EXACT:
            raise InputError(
                "The contributions have more digits than can be computed with exactly."
            )
        shape = (len(people), int(np.prod([len(axis.base) for axis in axes])))
        given = sparse.csr_array((np.array(amount, dtype=np.int64), (who, cells)), shape=shape)
        sums = reduce(lambda a, b: sparse.kron(a, b, format="csr"), (axis.matrix for axis in axes))
        own = sparse.csr_array(given @ sums.T)
        additive = reduce(np.multiply.outer, (axis.additive for axis in axes)).ravel()
        _check_people(own, cube, relations, rows, people)
        _check_sums(np.asarray(own.sum(axis=0)).ravel(), cube, known, additive, rows)
        holding = {row.contributor: row.holding for row in rows}
        keys = [f"holding {holding[n]}" if holding[n] else f"contributor {n}" for n in people]
        names = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        member = sparse.csr_array(
            (np.ones(len(keys), np.int64), ([names[k] for k in keys], np.arange(len(keys))))
        )
        return cls(tuple(names), sparse.csr_array(member @ own), np.asarray(additive, np.bool_))

    @cached_property
    def total(self) -> Ints:
        return np.asarray(self.parties.sum(axis=0)).ravel()

    @cached_property
    def table(self) -> Table:
        """All cells in one row, with their largest contributions, as rules judge them."""
        value = np.zeros((self.total.size, _RANKS), dtype=np.int64)
        who = np.full(value.shape, -1, dtype=np.int64)
        count = np.zeros(self.total.size, dtype=np.int64)
        for cell in np.flatnonzero(self.total).tolist():
            amounts, parties = self.in_order(cell)
            count[cell] = len(amounts)
            value[cell, : len(amounts)] = amounts[:_RANKS]
            who[cell, : len(amounts)] = parties[:_RANKS]
        return Table(
            axes=(TableAxis.plain("cell", [str(i) for i in range(self.total.size)]),),
            values=self.total,
            kind="magnitude",
            contributors=count,
            contributions=Contributions(value, who),
        )

    def in_order(self, *cells: int) -> tuple[list[int], list[int]]:
        """The contributions to the sum of cells, the largest first, and the numbers of those who make them."""
        columns = self._by_cell
        spans = [slice(columns.indptr[cell], columns.indptr[cell + 1]) for cell in cells]
        parties, who = np.unique(
            np.concatenate([columns.indices[span] for span in spans]), return_inverse=True
        )
        amounts = np.zeros(parties.size, dtype=np.int64)
        np.add.at(amounts, who, np.concatenate([columns.data[span] for span in spans]))
        order = np.argsort(-amounts, kind="stable")[: int((amounts > 0).sum())]
        return amounts[order].tolist(), parties[order].tolist()

    @cached_property
    def _by_cell(self) -> Any:
        return sparse.csc_array(self.parties)

    def levels(self, rule: Rule) -> ProtectionLevels:
        asked = rule.judge(self.table)
        primary = asked.mask & self.additive
        upper = np.where(primary, np.maximum(asked.upper, 1), 0)
        return ProtectionLevels(
            primary, np.minimum(asked.lower, self.total), upper, asked.sliding
        ).among(primary)

    def problem(
        self, known: Knowledge, levels: ProtectionLevels, coalition: int, *, whole: bool
    ) -> tuple[SuppressionProblem, Mask]:
        """The problem whose attackers are all contributors, and the cells that a reader does not know.

        A fact that is no equation is one with a cell that no table has.
        """
        matrix, hidden = sparse.csr_array(known.matrix), known.low < known.high
        levels = levels.among(hidden & self.additive & (self.total > 0))
        unclear = (abs(matrix) @ (hidden & ~self.additive)) > 0
        if unclear.any():
            cell = int(np.flatnonzero((abs(matrix).T @ unclear > 0) & hidden & ~self.additive)[0])
            raise NotJudgedError(
                f"Contributors cannot be judged: nobody can say what {known.names[cell]} is from contributions."
            )
        value = np.where(hidden, self.total, known.low)
        slack = np.flatnonzero((known.fact_low != 0) | (known.fact_high != 0))
        sums = matrix @ value
        extra = sparse.csr_array(
            (-np.ones(slack.size, np.int64), (slack, np.arange(slack.size))),
            shape=(matrix.shape[0], slack.size),
        )
        low, high = known.fact_low[slack], known.fact_high[slack]
        more = np.zeros(slack.size, dtype=np.int64)
        values = np.concatenate([value, sums[slack]])
        top = int(np.abs(values).max(initial=0))
        room = max(
            2 * top, top + int(max(levels.upper.max(initial=0), levels.lower.max(initial=0)))
        )
        every = [
            np.concatenate([one, more]) for one in (levels.lower, levels.upper, levels.sliding)
        ]
        primary = np.concatenate([levels.primary, more > 0])
        problem = SuppressionProblem.of(
            values,
            sparse.csr_array(sparse.hstack([matrix, extra], format="csr")),
            primary,
            every[1],
            every[0],
            sliding=every[2],
            low=np.maximum(np.concatenate([known.low, low]), -room),
            high=np.minimum(np.concatenate([known.high, high]), room),
            whole=whole,
        )
        rows = sparse.coo_array(self.parties)
        real = rows.data > 0
        who, cell, amount = rows.row[real], rows.col[real], rows.data[real]
        given = RankedContributions(cell, who, amount, np.asarray(amount == self.total[cell]))
        open_ended = np.full(values.size, _EXACT)
        views = views_of(
            given,
            problem.values,
            problem.relations,
            problem.primary,
            np.stack([problem.lower, problem.upper, problem.sliding]),
            numbers=open_ended if coalition > 1 else None,
            together=coalition,
        )
        if levels.close is not None:
            # Of what others contribute, the same percentage is less.
            views = tuple(
                replace(
                    view,
                    levels=np.stack([*view.levels[:2], np.where(view.levels[2] > 0, slack_of, 0)]),
                )
                for view in views
                if view.levels is not None
                for slack_of in [_slack(values[view.cells] - view.low, levels.close)]
            )
        return replace(problem, views=views), np.concatenate([hidden, more == 0])


@dataclass(frozen=True, eq=False)
class _AxisSums:
    """The codes of one variable as sums of those that contributions are given for."""

    name: str
    codes: tuple[str, ...]
    base: tuple[str, ...]
    matrix: Any
    additive: Mask

    @classmethod
    def of(
        cls, name: str, codes: tuple[str, ...], roles: CodeRoles, relations: Sequence[CodeRelation]
    ) -> _AxisSums:
        made: dict[str, list[tuple[str, int]]] = {}

        def needs(code: str) -> set[str]:
            return {code}.union(*(needs(part) for part, _ in made.get(code, ())))

        for relation in relations:
            (head, sign), *others = relation.terms
            # A code that is a sum already, or a part of what it would be the sum of, is checked afterwards.
            if relation.axis != name or relation.high != 0 or head in made:
                continue
            if not any(head in needs(part) for part, _ in others):
                made[head] = [(part, -weight * sign) for part, weight in others]
        without = {*roles.units, *roles.not_additive}
        base = tuple(code for code in codes if code not in made and code not in without)
        rows = dict(zip(base, np.eye(len(base), dtype=np.int64), strict=True))
        nothing = np.zeros(len(base), dtype=np.int64)

        def row(code: str) -> Ints:
            if code not in rows:
                rows[code] = sum((w * row(part) for part, w in made.get(code, ())), nothing)
            return rows[code]

        matrix = sparse.csr_array(np.stack([row(code) for code in codes]))
        additive = np.array([code not in without for code in codes])
        return cls(name, codes, base, matrix, additive)

    def place(self, row: Contribution, name: str) -> int:
        """The place of a contribution among the codes that are no sums."""
        code = row.codes.get(name)
        if code is None and len(self.base) == 1:
            return 0
        if code is None:
            raise InputError(
                f"{row.place}: there is no column {name!r}, and the tables have {len(self.base)} codes of it."
            )
        if code in self.base:
            return self.base.index(code)
        if code in self.codes:
            raise InputError(
                f"{row.place}: {code!r} of {name!r} is worked out from other codes; give the contribution to "
                "these."
            )
        raise InputError(f"{row.place}: {name!r} has no code {code!r}; {choices(code, self.base)}.")


def _units(row: Contribution, decimals: int) -> int:
    scaled = row.value.scaleb(decimals)
    if scaled != int(scaled):
        raise InputError(
            f"{row.place}: the contribution has more decimals than the published numbers; round it, or say "
            "in the layout how these were rounded."
        )
    if scaled > _EXACT:
        raise InputError(f"{row.place}: the number has more digits than can be computed with.")
    return int(scaled)


def _check_people(
    own: Any,
    cube: CellCube,
    relations: Sequence[CodeRelation],
    rows: Sequence[Contribution],
    people: Mapping[str, int],
) -> None:
    """What one contributes fits the roles of codes: no more to a subset than to what it is a subset of."""
    numbers = np.arange(cube.value.size).reshape(cube.value.shape)
    for relation in relations:
        axis = cube.names.index(relation.axis)
        codes = cube.codes[axis]
        terms = [
            weight * own[:, np.take(numbers, codes.index(code), axis=axis).ravel()]
            for code, weight in relation.terms
        ]
        left = sum(terms[1:], terms[0]).tocoo()
        wrong = (left.data < relation.low) | (left.data > relation.high)
        if wrong.any():
            number = int(left.row[wrong][0])
            row = next(row for row in rows if people[row.contributor] == number)
            words = ", ".join(code for code, _ in relation.terms[:4])
            raise InputError(
                f"{row.place}: what this contributor has in {words} of {relation.axis!r} does not fit their "
                "roles; correct it, or the layout."
            )


def _check_sums(
    total: Ints, cube: CellCube, known: Knowledge, additive: Mask, rows: Sequence[Contribution]
) -> None:
    """All contributions together are what the files show, and fit all that they state."""
    file = rows[0].place.rpartition(", ")[0]

    def wrong(cell: int, what: str) -> NoReturn:
        unit = Decimal(1).scaleb(-cube.decimals)
        place = f" ({cube.source}, {cube.places[cell]})" if cell in cube.places else ""
        raise InputError(
            f"{file}: the contributions to {cube.name_of(cell)}{place} add up to "
            f"{int(total[cell]) * unit:,f}, and {what}; correct one of them."
        )

    outside = additive & ((total < known.low) | (total > known.high))
    for cell in sorted(np.flatnonzero(outside).tolist(), key=lambda c: int(total[c])):
        shown = Decimal(int(cube.value.flat[cell])).scaleb(-cube.decimals)
        wrong(cell, f"{shown:,f} is shown" if cube.known.flat[cell] else "the file rules that out")
    value = known.matrix @ np.where(additive, total, 0)
    inside = (abs(known.matrix) @ ~additive) == 0
    broken = inside & ((value < known.fact_low) | (value > known.fact_high))
    for row in np.flatnonzero(broken)[:1].tolist():
        cell = int(known.matrix.indices[known.matrix.indptr[row]])
        wrong(cell, "that does not fit what the file states of it and others")
