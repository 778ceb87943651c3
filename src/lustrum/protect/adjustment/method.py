"""Controlled tabular adjustment as a method: a sensitivity rule decides which cells must move.

The method alone reveals little about a cell: it may have moved by any amount, unless a public cap holds for
all cells, sensitive ones included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Ints, Mask
from lustrum.model.chance import Chance
from lustrum.model.keys import cell_words
from lustrum.model.parameters import parameter
from lustrum.model.text import say
from lustrum.numeric.structure import UNBOUNDED, Structure
from lustrum.protect.abilities import Abilities
from lustrum.protect.adjustment.adjust import WeightWord, adjust
from lustrum.protect.adjustment.search import DirectionWord, Norm
from lustrum.protect.adjustment.work import STEPS
from lustrum.protect.method import Kept, MethodSpec, Stage, kept_cells, released
from lustrum.sensitivity import Rule, Sensitivity, Threshold
from lustrum.sensitivity.rules.combine import rule_of


@dataclass(frozen=True)
class ControlledAdjustment(MethodSpec):
    """Sensitive cells are published at least their protection level away, and all numbers add up.

    The norm ``l1`` moves few cells, ``l2`` many a little. ``keep`` and ``max_change`` are public.

    >>> table = Table.from_counts([1, 5, 9])
    >>> release = ControlledAdjustment(rule={"rule": "threshold", "minimum": 3}).apply(table)
    >>> abs(int(release.published[0]) - 1) >= 1
    True
    """

    name: ClassVar[str] = "controlled-adjustment"
    stages: ClassVar[tuple[Stage, ...]] = ("table",)
    abilities: ClassVar[Abilities] = Abilities(repeatable=True)
    rule: Rule | Mapping[str, Any] = parameter(
        Threshold(3), "The rule that says which cells are sensitive, or its mapping.", read=rule_of
    )
    norm: Norm = parameter("l1", "Whether absolute or squared changes are minimised.")
    directions: DirectionWord = parameter("heuristic", "How to find which cells go up.")
    weights: WeightWord = parameter("reciprocal", "What a change of each cell costs.")
    keep: Kept = parameter("nothing", "Which totals do not change.")
    max_change: float | None = parameter(
        None,
        "The largest share by which any cell may change; without it, any.",
        above=0,
        below=1,
        brief=True,
    )
    steps: int = parameter(STEPS, "The most steps of a search.", least=1)

    def check_together(self) -> None:
        """Not every search is for every norm."""
        if self.directions == "exact" and self.norm == "l2":
            raise InputError("Exact directions are for the norm 'l1'; with 'l2' use 'heuristic'.")

    def draw(self, table: Table, rng: Chance) -> Release:
        """Adjust a table; random choices use the generator, or record keys, or a fixed order."""
        assert not isinstance(self.rule, Mapping)
        sensitivity = self.rule.judge(table)
        relations = Structure.of_tables([table.axes]).relations.matrix
        sensitive = sensitivity.mask.ravel()
        lower, upper = _levels(sensitivity)
        frozen = kept_cells(table, self.keep)
        adjusted = adjust(
            table.values.ravel(),
            relations,
            sensitive,
            lower[sensitive],
            upper[sensitive],
            norm=self.norm,
            directions=self.directions,
            frozen=frozen.ravel(),
            weights=self.weights,
            max_change=self.max_change,
            steps=self.steps,
            rng=_chance(table, rng, self.name) if rng is None else rng,
        )
        published = adjusted.values.reshape(table.shape)
        low, high = self.known_range(table, published, frozen)
        return released(table, self, published, low=low, high=high, notes=self.public_notes())

    def known_range(self, table: Table, published: Ints, frozen: Mask) -> tuple[Ints, Ints]:
        """Bounds that hold for any true values; only kept cells, signs and the cap narrow them."""
        if self.max_change is not None:
            low, high = _within(published, self.max_change)
        else:
            floor = 0 if table.kind == "count" else -UNBOUNDED
            low = np.full(table.shape, floor, dtype=np.int64)
            # Only a value below 0 is ever published below 0.
            high = np.where(published < 0, -1, UNBOUNDED)
        return np.where(frozen, published, low), np.where(frozen, published, high)

    def public_notes(self) -> tuple[str, ...]:
        notes = [
            say(
                "Some numbers were changed so that nobody's contribution can be worked out, others so "
                "that all numbers add up; which ones is not published."
            )
        ]
        if self.keep == "grand-total":
            notes.append(say("The grand total is as counted."))
        elif self.keep != "nothing":
            notes.append(say("All totals are as counted."))
        if self.max_change is not None:
            notes.append(
                say(
                    "No number was changed by more than {share:.0%} of its true size.",
                    share=self.max_change,
                )
            )
        return tuple(notes)


def _levels(sensitivity: Sensitivity) -> tuple[Ints, Ints]:
    """Levels for each direction; a cell must move by at least one, and not in a direction without a level."""
    half = (sensitivity.sliding + 1) // 2
    upper = np.where(sensitivity.mask, np.maximum(np.maximum(sensitivity.upper, half), 1), 0)
    lower = np.where(sensitivity.lower > 0, np.maximum(sensitivity.lower, half), 0)
    return lower.ravel(), upper.ravel()


def _chance(
    table: Table, rng: np.random.Generator | None, purpose: str
) -> np.random.Generator | None:
    """A generator from all record keys of the table together, if it has keys."""
    if rng is not None or table.keys is None:
        return rng
    random_words = cell_words(table.keys, purpose)
    return np.random.default_rng(int(random_words.sum(dtype=np.uint64)))


def _within(published: Ints, share: float) -> tuple[Ints, Ints]:
    """All t with ``|published - t| <= share * |t|``: from p / (1 + r) to p / (1 - r), drawn in."""
    part = Fraction(str(share))
    top, bottom = part.numerator, part.denominator
    size = np.abs(published).astype(object)
    nearest = -((-size * bottom) // (bottom + top))
    furthest = size * bottom // (bottom - top)
    nearest, furthest = (
        np.minimum(end, UNBOUNDED).astype(np.int64).reshape(published.shape)
        for end in (nearest, furthest)
    )
    negative = published < 0
    return np.where(negative, -furthest, nearest), np.where(negative, -nearest, furthest)
