"""What contributors to published tables can work out about each other, alone and in coalitions.

A file of contributions lists who contributes how much to which cell. A contributor knows their own
contributions: a cell holds at least these, and exactly these where nobody else contributes to it. A holding
knows what its contributors know. Contributions are 0 or more, so that they add up to what the files show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, reduce
from itertools import combinations
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from lustrum.audit import Knowledge
from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.model.errors import NotJudgedError, choices
from lustrum.numeric.structure import UNBOUNDED
from lustrum.readers.cells import CellCube
from lustrum.readers.contribution_rows import Contribution
from lustrum.readers.layout import CodeRoles, Layout
from lustrum.readers.relations import CodeRelation

MOST_ATTACKERS = 20_000
"""Contributors and coalitions beyond which a table is not judged."""
_EXACT = 2**53


@dataclass(frozen=True)
class LearnedSecret:
    """What contributors learn about others in a cell: the range of it, in units of the cube."""

    cell: int
    attackers: tuple[str, ...]
    low: float
    high: float
    sharp: bool
    finding: str
    one: bool = False
    """Whether it is one contribution to a shown cell, not what all others contribute to a hidden one."""


Ranges = Callable[[Ints, Mask, Ints], tuple[Floats, Floats, Mask, Mask]]
"""Bounds of some cells for a reader who knows that cells hold at least so much, and some of them exactly:
the two ends, whether these are sharp, and which cells follow but for rounding."""


@dataclass(frozen=True)
class SecretRules:
    """When somebody learns too much from the range of a cell.

    What others contribute together counts if it is known exactly, or a sum to within ``close`` percent. With a
    ``level`` single contributions count instead: the largest is at most the end of the range, and must seem
    possible up to its level; a single other one must also seem smaller. ``wanted`` is the range that must seem
    possible for every cell, as far as it lies above one's own contribution.
    """

    close: float
    counts: bool
    level: Callable[[int], int] | None = None
    wanted: tuple[Floats, Floats] | None = None

    def finding(
        self, cell: int, low: float, high: float, follows: bool, own: int, largest: int, sole: bool
    ) -> str:
        """What a range means for somebody, and for the largest contribution of others, maybe the only one."""
        if self.level is None or sole:
            if low == high:
                return "exact"
            near = follows or 100 * (high - low) <= self.close * (high + low - 2 * own)
            if near and not self.counts and high < UNBOUNDED:
                return "close"
        if self.level is not None:
            room = self.level(largest)
            smaller = sole and low - own > max(largest - room, 0)
            if smaller or high - own < largest + room:
                return "within protection"
        if self.wanted is not None:
            least, most = (float(ends.flat[cell]) for ends in self.wanted)
            if low > max(least, own) or high < most:
                return "within protection"
        return "open"

    def possible(
        self, cell: int, low: float, high: float, follows: bool, total: int, largest: int
    ) -> bool:
        """Whether the range could mean anything for anybody; ``largest`` is the largest contribution."""
        room = 0 if self.level is None else self.level(largest)
        if self.level is not None and (low > total - room or high < total + room):
            return True
        together = replace(self, level=None)
        return together.finding(cell, low, high, follows, 0, largest, sole=False) != "open"


@dataclass(frozen=True, eq=False, repr=False)
class Contributors:
    """Contributors and holdings, one a row, with their contributions to all cells of a cube.

    ``party`` is the number of the holding behind a row, of a contributor without one its own. Members of one
    holding have no secrets before each other. ``parties`` are the sums of each. ``additive`` cells are those
    to which contributions add up.
    """

    names: tuple[str, ...]
    party: Ints
    own: Any
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
        return cls._with_holdings(rows, people, own, np.asarray(additive, dtype=np.bool_))

    @classmethod
    def _with_holdings(
        cls, rows: Sequence[Contribution], people: Mapping[str, int], own: Any, additive: Mask
    ) -> Contributors:
        parties: dict[tuple[str, str], int] = {}
        party = np.zeros(len(people), dtype=np.int64)
        for row in rows:
            key = ("holding", row.holding) if row.holding else ("contributor", row.contributor)
            party[people[row.contributor]] = parties.setdefault(key, len(parties))
        size = np.bincount(party, minlength=len(parties))
        member = sparse.csr_array(
            (np.ones(party.size, dtype=np.int64), (party, np.arange(party.size))),
            shape=(len(parties), party.size),
        )
        held = sparse.csr_array(member @ own)
        groups = np.flatnonzero(size > 1)
        names = [f"contributor {name}" for name in people]
        keys = list(parties)
        names += [f"holding {keys[int(i)][1]}" for i in groups]
        return cls(
            tuple(names),
            np.concatenate([party, groups]),
            sparse.csr_array(sparse.vstack([own, held[groups]], format="csr")),
            held,
            additive,
        )

    @property
    def total(self) -> Ints:
        """The sum of all contributions to each cell."""
        return np.asarray(self.parties.sum(axis=0)).ravel()

    def shown_contributions(
        self, shown: Mask, coalition: int, rules: SecretRules
    ) -> Iterator[LearnedSecret]:
        """Contributions to shown cells that others learn; the largest ones learn most, about the largest."""
        names = self._party_names()
        for cell in np.flatnonzero(shown & self.additive).tolist():
            amounts, who = self._in_order(cell)
            for size in range(min(coalition, len(who) - 1) + 1):
                rest = sum(amounts[size + 1 :])
                if rest and (rules.level is None or rest >= rules.level(amounts[0])):
                    continue
                attackers = tuple(names[party] for party in who[1 : size + 1])
                low = float(0 if rest else amounts[0])
                word = "within protection" if rest else "exact"
                high = float(amounts[0] + rest)
                yield LearnedSecret(cell, attackers, low, high, True, word, one=True)
                break

    def _in_order(self, cell: int) -> tuple[list[int], list[int]]:
        """The contributions of all parties to a cell, the largest first, and the parties."""
        columns = self.by_cell
        span = slice(columns.indptr[cell], columns.indptr[cell + 1])
        pairs = zip(columns.data[span].tolist(), columns.indices[span].tolist(), strict=True)
        ordered = sorted(((-amount, party) for amount, party in pairs if amount > 0))
        return [-amount for amount, _ in ordered], [party for _, party in ordered]

    @cached_property
    def by_cell(self) -> Any:
        """The contributions of all parties, cell by cell."""
        return sparse.csc_array(self.parties)

    def _party_names(self) -> dict[int, str]:
        # A holding stands behind its contributors, so that the last row of a party is the party itself.
        return {int(party): name for party, name in zip(self.party, self.names, strict=True)}

    def hidden_values(
        self, known: Knowledge, picks: Ints, coalition: int, ranges: Ranges, rules: SecretRules
    ) -> Iterator[LearnedSecret]:
        """What each contributor, holding and coalition learns about what others contribute to hidden cells.

        What somebody does not learn who knows as much as each of a group in every cell, nobody in the group
        learns. So a group is asked as one, and halved where that tells too much. What some members of a
        coalition learn without the others is not counted again.
        """
        total = self.total
        picks = picks[self.additive[picks] & (total[picks] > 0)]
        attackers = self._attackers(known, coalition)
        sizes = [[one for one in attackers if len(one) == n] for n in range(coalition, -1, -1)]
        waiting = [one for one in sizes if one and picks.size]
        learned: dict[int, list[set[int]]] = {}
        while waiting:
            group = waiting.pop()
            own = self._pooled(group, self.own)
            entries = own.tocoo()
            alone = np.zeros(total.size, dtype=np.bool_)
            alone[entries.col[(entries.data == total[entries.col]) & (entries.data > 0)]] = True
            hits: dict[int, list[LearnedSecret]] = {}
            for cell, low, high, sharp, follows in zip(
                picks.tolist(),
                *(
                    part.tolist()
                    for part in ranges(own.max(axis=0).toarray().ravel(), alone, picks)
                ),
                strict=True,
            ):
                amounts, who = self._in_order(cell)
                ends = low, high, follows
                if sharp and not rules.possible(cell, *ends, int(total[cell]), amounts[0]):
                    continue
                shares = own[:, [cell]].toarray().ravel().tolist()
                for i, (members, share) in enumerate(zip(group, shares, strict=True)):
                    inside = {int(self.party[j]) for j in members}
                    others = [
                        x for x, party in zip(amounts, who, strict=True) if party not in inside
                    ]
                    if not others or any(one <= members for one in learned.get(cell, ())):
                        continue
                    sole = share + others[0] == total[cell]
                    word = rules.finding(cell, *ends, share, others[0], bool(sole))
                    if word != "open" or not sharp:
                        names = tuple(self.names[j] for j in sorted(members))
                        span = max(low - share, 0.0), high - share
                        hits.setdefault(i, []).append(
                            LearnedSecret(cell, names, *span, sharp, word)
                        )
            if len(group) > 1:
                suspects = [group[i] for i in sorted(hits)]
                half = (len(suspects) + 1) // 2
                waiting += [part for part in (suspects[half:], suspects[:half]) if part]
                continue
            for secret in hits.get(0, ()):
                learned.setdefault(secret.cell, []).append(group[0])
                yield secret

    def _attackers(self, known: Knowledge, coalition: int) -> list[set[int]]:
        """Readers, everybody who contributes to a cell that readers do not know, and coalitions of these."""
        unknown = np.flatnonzero(known.low < known.high)
        rows = np.flatnonzero(self.own[:, unknown].sum(axis=1)).tolist()
        out: list[set[int]] = [set()]
        for size in range(1, coalition + 1):
            for members in combinations(rows, size):
                if len({int(self.party[i]) for i in members}) == size:
                    out.append(set(members))
                if len(out) > MOST_ATTACKERS:
                    raise NotJudgedError(
                        f"More than {MOST_ATTACKERS:,} contributors and coalitions know something of hidden "
                        "cells; judge smaller coalitions, or fewer tables together."
                    )
        return out

    @staticmethod
    def _pooled(groups: Sequence[set[int]], rows: Any) -> Any:
        """The sums of some rows for each group."""
        ends = np.cumsum([0, *map(len, groups)])
        members = np.array([j for one in groups for j in sorted(one)], dtype=np.int64)
        shape = (len(groups), rows.shape[0])
        picks = sparse.csr_array((np.ones(members.size, np.int64), members, ends), shape=shape)
        return sparse.csr_array(picks @ rows)


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
        cls,
        name: str,
        codes: tuple[str, ...],
        roles: CodeRoles,
        relations: Sequence[CodeRelation],
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
