"""Sums of suppressed cells that published cells fix together, and whether one of them breaks the rule.

A set of suppressed cells has a public sum exactly if its indicator s is a combination of the relations among
suppressed cells: ``s = R' y``. One relation alone shows a line; several show sums that no line holds. A rule of
concentration fails in the sum if, for some contributors with a gain each,

    sum over cells of s * (value - gains times contributions) < 0.

So the unions that break a rule are the whole points of a program, one for each contributor that may be the
largest. For most contributors the program without whole numbers proves that there is none, because what others
contribute to secondary cells outweighs them. What a program finds counts only if the rule fails in the sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from scipy import sparse

from lustrum.model import Contributions, InputError, Table
from lustrum.model.arrays import Floats, Ints, Mask, Sparse
from lustrum.model.errors import NotJudgedError
from lustrum.numeric.solve.highs import Program
from lustrum.numeric.structure.ragged import connected_parts
from lustrum.sensitivity import (
    AllOf,
    AnyOf,
    Background,
    Dominance,
    PPercent,
    PriorPosterior,
    Request,
    Rule,
    Threshold,
    Unless,
)
from lustrum.sensitivity.rule import NOTHING, exact

_NEAR = 1e-7
_MOST = 100  # unions that one program looks at
MOST_NAMED = 50  # unions from which on no others are searched for: the pattern is not safe


def _gains(rule: Rule) -> Iterator[tuple[Fraction, ...]]:
    """The concentrations without which a rule fails in no sum: the gains of the largest contributors each."""
    one = Fraction(1)
    match rule:
        case PPercent(p=p, coalition=number):
            yield one + exact(p) / 100, *repeat(one, number)
        case PriorPosterior(p=p, q=q, coalition=number):
            yield one + exact(p) / exact(q), *repeat(one, number)
        case Dominance(n=n, k=k):
            yield (100 / exact(k),) * n
        case Request(shares=shares):
            for n, share in enumerate(shares, 1):
                yield (100 / exact(share),) * n
        case AnyOf(rules=rules) | AllOf(rules=rules):
            for part in rules:
                yield from _gains(part)
        case Unless(rule=part):
            yield from _gains(part)


def _thresholds(rule: Rule) -> Iterator[Threshold]:
    """The parts of a rule that fail where few contribute, also in cells without any."""
    match rule:
        case Threshold():
            yield replace(rule, empty="sensitive")
        case Request(minimum=number) if number:
            yield Threshold(number, empty="sensitive")
        case AnyOf(rules=rules) | AllOf(rules=rules):
            for part in rules:
                yield from _thresholds(part)
        case Unless(rule=part):
            yield from _thresholds(part)


class RuleOnUnions:
    """A sensitivity rule for sums of cells, from the largest contributions of each.

    The contributions of a holding to several cells are added up. Only ranks that the table has are seen, as
    for any cell. ``background`` names who waived protection, and who asked for it.
    """

    def __init__(self, table: Table, rule: Rule, background: Background = NOTHING) -> None:
        if table.contributions is None:
            raise InputError(
                "Attackers that are holdings need the largest contributions of every cell."
            )
        contributions = table.contributions
        self.table, self.rule, self.background = table, rule, background
        self._ranks = contributions.value.shape[-1]
        self._value = contributions.value.reshape(-1, self._ranks)
        self._holding = contributions.holding.reshape(-1, self._ranks)
        self._known: dict[bytes, bool] = {}
        self.gains = tuple(dict.fromkeys(_gains(rule)))
        """What the largest contributions count in each concentration."""

    def reveals(self, cells: Ints) -> bool:
        """Whether publishing the sum of these cells would break the rule."""
        key = np.sort(cells).tobytes()
        if key not in self._known:
            self._known[key] = self._judge(cells)
        return self._known[key]

    def _judge(self, cells: Ints) -> bool:
        holding, value = self._holding[cells].ravel(), self._value[cells].ravel()
        held = holding >= 0
        names, holding_index = np.unique(holding[held], return_inverse=True)
        sums = np.zeros(names.size, dtype=np.int64)
        np.add.at(sums, holding_index, value[held])
        order = np.argsort(-np.abs(sums), kind="stable")[: self._ranks]
        ranked = np.zeros(self._ranks, dtype=np.int64)
        who = np.full(self._ranks, -1, dtype=np.int64)
        ranked[: order.size], who[: order.size] = sums[order], names[order]
        total = int(self.table.values.ravel()[cells].sum())
        count = self.table.contributors
        number = names.size
        if count is not None:
            # A holding that is seen in several cells is one contributor.
            number += int(count.ravel()[cells].sum()) - int(held.sum())
        one = Table(
            axes=(),
            values=np.array(total, dtype=np.int64),
            kind=self.table.kind,
            decimals=self.table.decimals,
            contributors=np.array(max(number, names.size), dtype=np.int64),
            contributions=Contributions(ranked, who),
        )
        return bool(self.rule.judge(one, self.background).mask.any())

    @cached_property
    def few(self) -> Mask:
        """The cells to which so few contribute that the rule may fail in a sum of such cells alone."""
        out = np.zeros(self.table.values.size, dtype=np.bool_)
        for part in _thresholds(self.rule):
            out |= part.judge(self.table).mask.ravel()
        return out

    def amounts(self, cells: Ints) -> Floats:
        """The size of the contributions to cells, a row for each contributor that is seen in one."""
        holding = self._holding[cells]
        names, row = np.unique(holding, return_inverse=True)
        out = np.zeros((names.size, cells.size))
        column = np.broadcast_to(np.arange(cells.size)[:, None], holding.shape)
        np.add.at(out, (row.ravel(), column.ravel()), np.abs(self._value[cells]).ravel())
        return out[names >= 0]


@dataclass(frozen=True)
class PublishedUnion:
    """Suppressed cells whose sum breaks the rule, and the relations that fix it together."""

    cells: tuple[int, ...]
    rows: tuple[int, ...]


def revealing_unions(
    relations: Sparse, suppressed: Mask, rule: RuleOnUnions | None
) -> tuple[PublishedUnion, ...]:
    """Sums of suppressed cells that anybody can work out and that break the rule; of very many, the first."""
    if rule is None:
        return ()
    # A cell without contributions, such as what a share leaves open, is in no sum that is known.
    real = np.arange(suppressed.size) < rule.table.values.size
    found = {union.cells: union for union in _lines(relations, suppressed, real, rule)}
    for cells, rows in _parts(relations, suppressed):
        part = _Piece(relations, cells, rows, rule, real[cells])
        for union in part.unions(list(found)):
            found.setdefault(union.cells, union)
            if len(found) >= MOST_NAMED:
                return tuple(found.values())
    return tuple(found.values())


def _lines(
    relations: Sparse, suppressed: Mask, real: Mask, rule: RuleOnUnions
) -> Iterator[PublishedUnion]:
    for row in range(relations.shape[0]):
        span = slice(relations.indptr[row], relations.indptr[row + 1])
        inside = suppressed[relations.indices[span]]
        cells, signs = relations.indices[span][inside], relations.data[span][inside]
        if cells.size < 2 or not real[cells].all() or bool((signs != signs[0]).any()):
            continue
        if rule.reveals(cells.astype(np.int64)):
            yield PublishedUnion(tuple(sorted(cells.tolist())), (row,))


def _parts(relations: Sparse, suppressed: Mask) -> Iterator[tuple[Ints, Ints]]:
    """The suppressed cells that relations tie together, with these relations; each part by itself."""
    cells = np.flatnonzero(suppressed)
    links = sparse.coo_array(relations[:, cells])
    count = relations.shape[0]
    label = connected_parts(count + cells.size, links.row, count + links.col)
    for number in np.unique(label[count:]).tolist():
        rows = np.flatnonzero(label[:count] == number)
        if rows.size > 1:
            yield cells[label[count:] == number], rows


class _Piece:
    """The programs whose whole points are the public sums of some suppressed cells.

    Columns are cells (0 or 1), multipliers of relations, and in a concentration what other contributors add.
    """

    def __init__(
        self, relations: Sparse, cells: Ints, rows: Ints, rule: RuleOnUnions, real: Mask
    ) -> None:
        self._cells, self._rows, self._rule, self._real = cells, rows, rule, real
        inside = sparse.csr_array(relations[rows][:, cells])
        self._ties: Any = sparse.hstack([sparse.eye_array(cells.size), -inside.T], format="csr")
        self._value = np.zeros(cells.size)
        self._value[real] = rule.table.values.ravel()[cells[real]]
        self._amounts = np.zeros((0, cells.size))
        if rule.gains:
            seen = rule.amounts(cells[real])
            self._amounts = np.zeros((seen.shape[0], cells.size))
            self._amounts[:, real] = seen

    def unions(self, found: Sequence[tuple[int, ...]]) -> Iterator[PublishedUnion]:
        """All smallest sums in which the rule fails."""
        inside = [np.isin(self._cells, union) for union in found]
        known = [one for one, union in zip(inside, found, strict=True) if one.sum() == len(union)]
        few = np.zeros(self._cells.size, dtype=np.bool_)
        few[self._real] = self._rule.few[self._cells[self._real]]
        if few.sum() > 1:
            yield from self._search(known, few)
        for gains in self._rule.gains:
            for first in range(self._amounts.shape[0]):
                if self._may_be_largest(first, gains):
                    yield from self._search(known, self._real, (first, gains))

    def _may_be_largest(self, first: int, gains: tuple[Fraction, ...]) -> bool:
        """Whether some weighted sum is outweighed by a contributor and the next largest of each cell."""
        own, others = self._amounts[first], np.delete(self._amounts, first, axis=0)
        others = -np.sort(-others, axis=0)[: len(gains) - 1]
        weight = np.array([float(gain) for gain in gains[1 : 1 + len(others)]])
        left = self._value - float(gains[0]) * own - (weight[:, None] * others).sum(axis=0)
        if not (left[self._real & (own > 0)] <= 0).any():
            return False
        most = max(float(np.abs(left).max()), 1.0)
        cost = np.concatenate([left / most, np.zeros(self._rows.size)])
        count = np.concatenate([np.ones(self._cells.size), np.zeros(self._rows.size)])
        program = self._program(cost, self._real, sparse.csr_array(count[None]), [1.0])
        return program.finds() and program.value <= _NEAR

    def _search(
        self, known: list[Mask], allowed: Mask, by: tuple[int, tuple[Fraction, ...]] | None = None
    ) -> Iterator[PublishedUnion]:
        """The smallest sums of allowed cells in which the rule fails and that hold none that is known."""
        size = self._cells.size
        more, low, helpers = self._weighed(*by) if by else (sparse.csr_array((0, 0)), [], 0)
        width = size + self._rows.size + helpers
        # One of several smallest sums is chosen alike everywhere.
        cost = np.zeros(width)
        cost[:size] = 1 + np.random.default_rng(size).random(size) / (2 * size)
        two = sparse.csr_array((np.ones(size), (np.zeros(size, int), np.arange(size))), (1, width))
        rows = [two] if not by else [two, more]
        program = self._program(
            cost, allowed, sparse.vstack(rows, format="csr"), [2.0, *low], whole=True
        )
        for inside in known:
            self._cut(program, inside, width)
        for _ in range(_MOST):
            if program.run() != "optimal":
                if program.ended == "infeasible":
                    return
                break
            inside = program.point[:size] > 0.5
            cells = self._cells[inside]
            if self._rule.reveals(cells):
                used = np.abs(program.point[size : size + self._rows.size]) > _NEAR
                yield PublishedUnion(tuple(cells.tolist()), tuple(self._rows[used].tolist()))
                known.append(inside)
                self._cut(program, inside, width)
            else:
                self._cut(program, inside, width, only=True)
        raise NotJudgedError(
            "Too many sums of hidden cells are public to judge all of them; leave 'unions' out."
        )

    def _weighed(self, first: int, gains: tuple[Fraction, ...]) -> tuple[Any, list[float], int]:
        """Rows by which the gains of the first and of the best others exceed the value, and their columns.

        Another contributor has a column for whether it counts and one for what it adds.
        """
        own, others = self._amounts[first], np.delete(self._amounts, first, axis=0)
        most = max(float(self._value.max()), 1.0)
        base = self._cells.size + self._rows.size
        helpers = min(len(gains) - 1, len(others)) and len(others)
        gain = float(gains[1]) if helpers else 0.0
        width, rows, low = base + 2 * helpers, [], []

        def row(least: float, *entries: tuple[int, Floats]) -> None:
            one = np.zeros(width)
            for start, weights in entries:
                one[start : start + weights.size] = weights
            rows.append(one)
            low.append(least)

        row(
            -_NEAR,
            (0, (float(gains[0]) * own - self._value) / most),
            (base + helpers, np.ones(helpers)),
        )
        if helpers:
            row(1.0 - len(gains), (base, -np.ones(helpers)))
        for number in range(helpers):
            adds, counts = (base + helpers + number, -np.ones(1)), base + number
            row(0.0, (0, gain * others[number] / most), adds)
            row(0.0, (counts, np.array([gain * others[number].sum() / most])), adds)
        return sparse.csr_array(np.array(rows)), low, 2 * helpers

    def _program(
        self, cost: Floats, allowed: Mask, more: Any, low: Sequence[float], *, whole: bool = False
    ) -> Program:
        size, width = self._cells.size, cost.size
        helpers = (width - size - self._rows.size) // 2
        ties = sparse.hstack([self._ties, sparse.csr_array((size, 2 * helpers))])
        least = np.concatenate(
            [np.zeros(size), np.full(self._rows.size, -np.inf), np.zeros(2 * helpers)]
        )
        high = np.full(width, np.inf)
        high[:size] = allowed
        high[size + self._rows.size : width - helpers] = 1.0
        ints = np.flatnonzero(np.isfinite(least) & np.isfinite(high)) if whole else None
        ends = (
            np.concatenate([np.zeros(size), low]),
            np.concatenate([np.zeros(size), np.full(len(low), np.inf)]),
        )
        matrix = sparse.vstack([ties, more], format="csr")
        return Program(matrix, ends, (least, high), cost, ints, mip_rel_gap=0.0, mip_abs_gap=0.0)

    def _cut(self, program: Program, inside: Mask, width: int, *, only: bool = False) -> None:
        """Leave out a set of cells, and all that hold it unless it is the only one."""
        one = np.zeros((1, width))
        one[0, : inside.size] = np.where(inside, -1.0, 1.0 if only else 0.0)
        program.add_rows(sparse.csr_array(one), np.array([1.0 - inside.sum()]))
