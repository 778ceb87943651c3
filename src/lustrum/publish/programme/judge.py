"""Which cells of a system are sensitive: those that are shown, and those that could be worked out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask
from lustrum.numeric.structure import UNBOUNDED
from lustrum.publish.programme.spec import COUNT, PreparedSet, RuleFor
from lustrum.publish.programme.system import ProgrammeSystem, SystemPart
from lustrum.sensitivity import AnyOf, Background, Rule, Sensitivity
from lustrum.sensitivity.rule import NOTHING, judges_contributions


@dataclass(frozen=True, eq=False, repr=False)
class Judged:
    """The sensitive cells of a system with their levels, in the units of the system.

    ``least`` is what everybody knows a hidden cell to hold at least.
    """

    findings: tuple[Sensitivity, ...]
    sensitive: Mask
    lower: Ints
    upper: Ints
    sliding: Ints
    background: Background = NOTHING
    least: Ints | None = None

    def __repr__(self) -> str:
        return f"Judged({len(self.findings)} tables)"


def rules_for(table_set: PreparedSet, response: str) -> Rule:
    """The rules of a set that judge a response, as one; a response that none judges is refused."""
    rules = [one.rule for one in table_set.rules if _is_for(one, response)]
    if not rules:
        raise InputError(
            f"Set {table_set.name!r}: no rule judges {response!r}; add one, such as a threshold of "
            "contributors."
        )
    return rules[0] if len(rules) == 1 else AnyOf(*rules)


def judge(
    table_set: PreparedSet,
    system: ProgrammeSystem,
    background: Background,
    *,
    zeros_shown: bool = False,
) -> Judged:
    """Judge every table of a system, shown or not.

    Where empty cells are shown, everybody knows that a hidden count is 1 at least.
    """
    size = system.values.size
    lower, upper, sliding = (np.zeros(size, dtype=np.int64) for _ in range(3))
    sensitive = np.zeros(size, dtype=np.bool_)
    findings = []
    for part, span in zip(system.parts, system.spans, strict=True):
        sensitivity = rules_for(table_set, part.response).judge(part.true, background)
        findings.append(sensitivity)
        scale = system.scale(part)
        mask = _needed(part, sensitivity)
        sensitive[span] |= mask
        # A cell that may not be given away at all has a level of 1 at least.
        above = np.where(mask, np.maximum(sensitivity.upper.ravel() * scale, 1), 0)
        upper[span] = np.maximum(upper[span], above)
        below = np.where(mask, sensitivity.lower.ravel() * scale, 0)
        lower[span] = np.maximum(lower[span], below)
        sliding[span] = np.maximum(
            sliding[span], np.where(mask, sensitivity.sliding.ravel() * scale, 0)
        )
    least = np.full(size, -UNBOUNDED)
    if bool((system.values >= 0).all()):
        least = np.zeros(size, dtype=np.int64)
        for part, span in zip(system.parts, system.spans, strict=True):
            empty = bool((sensitive[span] & (system.values[span] == 0)).any())
            count = part.response == COUNT
            least[span] = int(zeros_shown and count and part.shown and not empty)
        # A small count is protected by seeming large enough to be published; see `lower_levels`.
        lower = np.where(least > 0, 0, np.minimum(lower, system.values))
    return Judged(tuple(findings), sensitive, lower, upper, sliding, background, least)


def _needed(part: SystemPart, sensitivity: Sensitivity) -> Mask:
    """The sensitive cells; where nobody contributes to a cell that is not shown, there is nobody to protect."""
    mask: Mask = sensitivity.mask.ravel()
    if part.shown or part.true.contributors is None:
        return mask
    return mask & (part.true.contributors.ravel() > 0)


def _is_for(one: RuleFor, response: str) -> bool:
    if one.responses:
        if response in one.responses and response == COUNT and judges_contributions(one.rule):
            raise InputError(
                f"The rule {one.rule.name!r} judges contributions, which a count has none of; use "
                "'threshold' for counts."
            )
        return response in one.responses
    return response != COUNT or not judges_contributions(one.rule)
