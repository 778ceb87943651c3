"""What readers and contributors can work out about hidden cells, and when that counts as a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, inf
from time import monotonic
from typing import Any

import numpy as np

from lustrum.audit import Knowledge, best_bounds
from lustrum.audit.bounding.elimination import exactly_disclosed
from lustrum.audit.report import explained
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.suppression import RuleOnUnions
from lustrum.protect.suppression.check import audit_pattern
from lustrum.protect.suppression.unions import MOST_NAMED
from lustrum.readers.cells import CellCube
from lustrum.readers.insiders import Contributors, ProtectionLevels
from lustrum.readers.layout import Layout
from lustrum.readers.relations import CodeRelation, computed_figures, knowledge_of, with_sums
from lustrum.readers.report import AuditedValue, OpenQuestion
from lustrum.sensitivity import Rule

_EXPLAINED = 20
_DIGITS = (
    10  # of a figure that follows from others, where no other figure shows how many it would have
)


@dataclass(frozen=True)
class InsiderAttack:
    """How many contributors work together, the rule that must hold, and whether in sums of hidden cells too."""

    coalition: int = 1
    rule: Rule | None = None
    unions: bool = False


@dataclass(frozen=True)
class ValueFindings:
    """What counts as a finding, and the work of finding it."""

    close: float
    narrow: int
    wanted: tuple[Floats, Floats] | None
    seconds: float | None
    equations_only: bool
    kind: str | None
    unproven: set[int] = field(default_factory=set)
    """Cells with a range that may be narrower than the bounds that were found."""
    unnamed: list[str] = field(default_factory=list)
    """Why further findings may have no name."""

    def questions(self, cube: CellCube) -> Iterable[OpenQuestion]:
        """What stands in the way of an all-clear, though every role may be settled."""
        if self.unproven:
            name = cube.name_of(min(self.unproven))
            text = f"The bounds of {len(self.unproven):,} cells, as of {name}, are not sharp; allow more time."
            yield OpenQuestion(file=cube.source, role="bounds", text=text)
        for text in self.unnamed:
            yield OpenQuestion(file=cube.source, role="unions", text=text)
        if self.equations_only and (cube.asked & cube.listed).any():
            text = "Only equations were used; an audit without --equations-only may find more."
            yield OpenQuestion(file=cube.source, role="bounds", text=text)

    def values(
        self, cube: CellCube, layout: Layout, relations: Sequence[CodeRelation]
    ) -> tuple[Knowledge, tuple[AuditedValue, ...], int, AuditedValue | None]:
        """Every value that is disclosed or nearly so, how many are open, and the closest of these."""
        known = knowledge_of(cube, layout, relations)
        picks = np.flatnonzero((cube.asked & cube.listed).ravel())
        if self.equations_only:
            picks = picks[exactly_disclosed(_by_sums(cube, known))[picks]]
        out: list[AuditedValue] = []
        closest: tuple[float, AuditedValue] | None = None
        follow = exactly_disclosed(_by_sums(cube, known))[picks] & ~cube.known.ravel()[picks]
        bounds = best_bounds(known, picks.tolist(), stop=self._late())
        for cell, *ends, sharp, follows in zip(
            picks.tolist(), bounds.low, bounds.high, bounds.sharp, follow.tolist(), strict=True
        ):
            low, high = map(float, ends)
            finding = self.finding(cube, cell, low, high, bool(follows))
            reasons = explained(known, cell) if finding == "exact" and len(out) < _EXPLAINED else ()
            value = _value(
                cube, cell, low, high, sharp=bool(sharp), finding=finding, follows=reasons
            )
            if finding in ("open", "few values") and not sharp:
                self.unproven.add(cell)
            if finding != "open":
                out.append(value)
            elif np.isfinite(high - low) and (closest is None or high - low < closest[0]):
                closest = (high - low, value)
        figures = self._figures(cube, layout, known)
        return known, (*out, *figures), len(picks) - len(out), closest and closest[1]

    def _late(self) -> Callable[[], bool]:
        """Whether the seconds are over that the command allows; its report says what they cut short."""
        end = inf if self.seconds is None else monotonic() + self.seconds
        return lambda: monotonic() >= end

    def _figures(self, cube: CellCube, layout: Layout, known: Knowledge) -> Iterable[AuditedValue]:
        """Hidden figures that follow from the cells that they are computed from."""
        hidden = [f for f in computed_figures(cube, layout) if f.figure is None and not f.end]
        if not hidden:
            return
        size, unit = len(known), 10**cube.decimals
        wholes = [size if one.whole is None else one.whole for one in hidden]
        bounds = best_bounds(
            with_sums(known, [one.cells for one in hidden]),
            [*range(size, size + len(hidden)), *wholes],
            stop=self._late(),
        )
        ends = np.array([bounds.low, bounds.high], dtype=np.float64).T
        for number, one in enumerate(hidden):
            part, whole = ends[number], ends[len(hidden) + number]
            cell = int(np.ravel_multi_index(one.at, cube.value.shape))
            if not (bounds.sharp[number] and bounds.sharp[len(hidden) + number]):
                self.unproven.add(cell)
            if one.whole is None:
                whole = np.array([unit, unit])
            if not np.isfinite([part, whole]).all() or whole[0] <= 0 or part[1] >= UNBOUNDED:
                continue
            corners = [one.factor * Fraction(a) / Fraction(b) for a in part for b in whole]
            exact = [end(corners) + one.constant for end in (min, max)]
            step = 2 * one.half or Fraction(1, 10**_DIGITS)
            low, high = (float(round(end / step) * step) for end in exact)
            near = self.kind != "counts" and 100 * (high - low) <= self.close * abs(high + low)
            if exact[0] == exact[1] or near:
                yield AuditedValue(
                    cell=cube.name_of(cell),
                    place=cube.places[cell],
                    low=low,
                    high=high,
                    sharp=True,
                    finding="exact" if exact[0] == exact[1] else "close",
                )

    def finding(self, cube: CellCube, cell: int, low: float, high: float, follows: bool) -> str:
        if low == high:
            return "exact"
        bounded = np.isfinite(high - low) and high < UNBOUNDED
        near = follows or 100 * (high - low) <= self.close * abs(high + low)
        if self.kind != "counts" and bounded and near:
            return "close"
        if self.wanted is not None:
            least, most = (float(ends.flat[cell]) for ends in self.wanted)
            least = least if cube.signed else max(least, 0.0)
            if low > least or high < most:
                return "within protection"
        return "few values" if high - low < self.narrow else "open"

    def insiders(
        self,
        cube: CellCube,
        known: Knowledge,
        people: Contributors,
        attack: InsiderAttack,
        found: Sequence[AuditedValue],
    ) -> tuple[AuditedValue, ...]:
        """What contributors learn about each other, and readers about cells in which the rule fails.

        It is what an audit of the same pattern finds that was chosen by :mod:`lustrum.protect.suppression`.
        """
        rule, total = attack.rule, people.total
        told = {value.cell for value in found if value.finding != "few values"}
        asked = (cube.asked & cube.listed).ravel()
        asked[[c for c in np.flatnonzero(asked).tolist() if cube.name_of(c) in told]] = False
        close = self.close if self.kind == "sums" else None
        rounded = bool((known.low < known.high)[cube.known.ravel()].any())
        if rule is not None:
            levels = people.levels(rule)
        elif self.wanted is not None:
            levels = ProtectionLevels.reaching(total, self.wanted)
        else:
            # A sum that is known but for rounding is found by equations, however wide its range.
            levels = ProtectionLevels.nearly_exact(
                total, total > 0, 100 if rounded and close else close
            )
        problem, hidden = people.problem(
            known, levels.among(asked), attack.coalition, whole=self.kind == "counts"
        )
        if attack.unions and rule is not None:
            problem = replace(problem, unions=RuleOnUnions(people.table, rule))
        audit = audit_pattern(problem, hidden)
        if len(audit.unions) >= MOST_NAMED:
            self.unnamed.append(
                f"The rule fails in {len(audit.unions)} public sums of hidden cells; further ones were not "
                "looked for."
            )
        out = []
        learned: dict[int, list[set[int]]] = {}
        for (cell, attacker), (*reach, sharp) in zip(audit.short, audit.reach, strict=True):
            members = set() if attacker < 0 else {*problem.views[attacker].members}
            reader = attacker < 0 and rule is None
            if reader or any(part <= members for part in learned.get(cell, ())):
                continue
            own = int(people.parties[sorted(members)][:, [cell]].sum())
            low, high = (round(end, 6) for end in reach)
            word = "exact" if low == high else "within protection"
            if low < high and rule is None and self.wanted is None:
                near = 100 * (high - low) <= self.close * (high + low - 2 * own)
                if not near and rounded:
                    view = problem.views[attacker]
                    alone = np.zeros(len(known), dtype=np.bool_)
                    alone[view.cells[(view.low == view.high) & (view.cells < alone.size)]] = True
                    near = bool(exactly_disclosed(_by_sums(cube, known, alone))[cell])
                word = "close" if near and close is not None else "open"
            if not sharp and word != "exact":
                self.unproven.add(cell)
                continue
            if word == "open":
                continue
            learned.setdefault(cell, []).append(members)
            names = tuple(people.names[i] for i in sorted(members))
            about = "contributions of others" if members else "value"
            high = np.inf if high >= problem.high[cell] else high
            ends = max(low - own, 0.0), high - own
            out.append(
                _value(cube, cell, *ends, sharp=True, finding=word, known_to=names, about=about)
            )
        return (
            *out,
            *self._published(cube, people, attack, levels, [union.cells for union in audit.unions]),
        )

    def _published(
        self,
        cube: CellCube,
        people: Contributors,
        attack: InsiderAttack,
        levels: ProtectionLevels,
        unions: Iterable[tuple[int, ...]],
    ) -> Iterable[AuditedValue]:
        """The contributions that shown cells give away, and public sums of hidden cells."""
        if self.kind != "sums":
            return
        shown = (cube.known & cube.listed & ~cube.asked).ravel() & people.additive
        sums = [[cell] for cell in np.flatnonzero(shown).tolist()]
        sums += map(list, unions)
        for cells in sums:
            amounts, who = people.in_order(*cells)
            size = min(attack.coalition, len(who) - 1)
            rest = sum(amounts[size + 1 :])
            fails = rest == 0 if attack.rule is None else len(cells) > 1 or levels.primary[cells[0]]
            if not amounts or not fails:
                continue
            yield _value(
                cube,
                cells[0],
                float(0 if rest else amounts[0]),
                float(amounts[0] + rest),
                sharp=True,
                finding="within protection" if rest else "exact",
                known_to=tuple(people.names[party] for party in who[1 : size + 1]),
                about="one contribution",
                together=cells,
            )


def _value(
    cube: CellCube, cell: int, low: float, high: float, together: Sequence[int] = (), **more: Any
) -> AuditedValue:
    """A cell with the range in which its value, or what others contribute to it, is known to be."""
    unit = 10.0**-cube.decimals
    ends = [None if abs(e) >= UNBOUNDED else round(e * unit, cube.decimals) for e in (low, high)]
    name = " + ".join(map(cube.name_of, together or [cell]))
    return AuditedValue(cell=name, place=cube.places[cell], low=ends[0], high=ends[1], **more)


def _by_sums(cube: CellCube, known: Knowledge, alone: Mask | None = None) -> Knowledge:
    """The same facts as if every shown number were exact: what follows then follows but for rounding."""
    shown: Mask = (
        cube.known | ~cube.listed & (known.low == known.high).reshape(cube.known.shape)
    ).ravel()
    if alone is not None:
        shown = shown | alone
    low = np.where(shown, 0, -UNBOUNDED)
    high = np.where(shown, 0, UNBOUNDED)
    equations = known.fact_low == known.fact_high
    return Knowledge(
        names=known.names, low=low, high=high, matrix=known.matrix[np.flatnonzero(equations)],
        fact_low=np.zeros(int(equations.sum()), dtype=np.int64),
        fact_high=np.zeros(int(equations.sum()), dtype=np.int64),
    )  # fmt: skip


def room_of(amount: Ints, cube: CellCube, protect: tuple[Decimal, bool]) -> Ints:
    """How far ranges must reach, in whole units of the cube and never less than asked for."""
    number, percent = Fraction(protect[0]), protect[1]
    share = number / 100 if percent else number * 10**cube.decimals
    exact = amount.astype(object) * share if percent else np.full(amount.shape, share, dtype=object)
    return np.array([ceil(x) for x in exact.flat], dtype=np.int64).reshape(amount.shape)
