"""What readers and contributors can work out about hidden cells, and when that counts as a finding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from lustrum.audit import Knowledge, best_bounds
from lustrum.audit.bounding.elimination import exactly_disclosed
from lustrum.audit.report import explained
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.structure import UNBOUNDED
from lustrum.readers.cells import CellCube
from lustrum.readers.insiders import Contributors, SecretRules
from lustrum.readers.layout import Layout
from lustrum.readers.relations import CodeRelation, knowledge_of
from lustrum.readers.report import AuditedValue, OpenQuestion

_EXPLAINED = 20


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

    def questions(self, cube: CellCube) -> Iterable[OpenQuestion]:
        """What stands in the way of an all-clear, though every role may be settled."""
        if self.unproven:
            name = cube.name_of(min(self.unproven))
            text = f"The bounds of {len(self.unproven):,} cells, as of {name}, are not sharp; allow more time."
            yield OpenQuestion(file=cube.source, role="bounds", text=text)
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
        nobody = np.zeros(len(known), dtype=np.bool_)
        for cell, *ends, sharp, follows in zip(
            picks.tolist(), *self.ranges(cube, known, known.low, nobody, picks), strict=True
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
        return known, tuple(out), len(picks) - len(out), closest and closest[1]

    def ranges(
        self, cube: CellCube, known: Knowledge, own: Ints, alone: Mask, picks: Ints
    ) -> tuple[Floats, Floats, Mask, Mask]:
        """Bounds of cells for somebody who knows that they are at least ``own``, and some no more."""
        low = np.maximum(known.low, own)
        high = np.where(alone, low, known.high)
        known = replace(known, low=low, high=high)
        follows = (
            exactly_disclosed(_by_sums(cube, known, alone))[picks] & ~cube.known.ravel()[picks]
        )
        bounds = best_bounds(known, picks.tolist(), seconds=self.seconds)
        return bounds.low, bounds.high, bounds.sharp, follows

    def finding(self, cube: CellCube, cell: int, low: float, high: float, follows: bool) -> str:
        """What a range of a cell means."""
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
        coalition: int,
        protect: tuple[Decimal, bool] | None,
        found: Sequence[AuditedValue],
    ) -> tuple[AuditedValue, ...]:
        """What contributors learn about each other that no reader knows already."""

        def level(amount: int) -> int:
            assert protect is not None
            return int(room_of(np.array([amount]), cube, protect)[0])

        def ranges(own: Ints, alone: Mask, picks: Ints) -> tuple[Floats, Floats, Mask, Mask]:
            return self.ranges(cube, known, own, alone, picks)

        sums = self.kind == "sums"
        rules = SecretRules(
            self.close, not sums, level if sums and protect is not None else None, self.wanted
        )
        disclosed = {value.cell for value in found if value.finding != "few values"}
        picks = np.flatnonzero((cube.asked & cube.listed).ravel())
        picks = picks[[cube.name_of(cell) not in disclosed for cell in picks.tolist()]]
        secrets = list(people.hidden_values(known, picks, coalition, ranges, rules))
        self.unproven.update(secret.cell for secret in secrets if secret.finding == "open")
        secrets = [secret for secret in secrets if secret.finding != "open"]
        if sums:
            shown = (cube.known & cube.listed & ~cube.asked).ravel()
            secrets += people.shown_contributions(shown, coalition, rules)
        return tuple(
            _value(
                cube,
                secret.cell,
                secret.low,
                secret.high,
                sharp=secret.sharp,
                finding=secret.finding,
                known_to=secret.attackers,
                about="one contribution" if secret.one else "contributions of others",
            )
            for secret in secrets
        )


def _value(cube: CellCube, cell: int, low: float, high: float, **more: Any) -> AuditedValue:
    """A cell with the range in which its value, or what others contribute to it, is known to be."""
    unit = 10.0**-cube.decimals
    ends = [None if abs(e) >= UNBOUNDED else round(e * unit, cube.decimals) for e in (low, high)]
    return AuditedValue(
        cell=cube.name_of(cell), place=cube.places[cell], low=ends[0], high=ends[1], **more
    )


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
