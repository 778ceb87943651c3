"""The geography of a swap: levels from coarse to fine, and the larger areas in which partners are sought."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Ints
from lustrum.model.variable import Variable


def groups_of(variable: Variable, level: str | None) -> Ints:
    """For each finest code the position of its category at a level; without a level, all in one."""
    out = np.zeros(len(variable.codes), dtype=np.int64)
    if level is not None:
        for position, category in enumerate(variable.level(level).categories):
            out[list(category.members)] = position
    return out


@dataclass(frozen=True, eq=False)
class Places:
    """Levels at which households may be unsafe, from coarse to fine; the finest codes come last.

    ``levels[i]`` gives each finest code its place at that level; ``scopes[i]`` its places in the areas within
    which a household that is unsafe at that level looks for a partner, from narrow to wide.
    """

    levels: tuple[Ints, ...]
    scopes: tuple[tuple[Ints, ...], ...]

    @classmethod
    def of(cls, variable: Variable, levels: tuple[str, ...], within: str | None) -> Places:
        """Check that every level divides the one before it, and that all of them divide the outer area."""
        ladder = [groups_of(variable, within), *(groups_of(variable, name) for name in levels)]
        named = [within, *levels]
        for i in range(1, len(ladder)):
            if not _parts(ladder[i], ladder[i - 1]) or _parts(ladder[i - 1], ladder[i]):
                above = "the whole" if named[i - 1] is None else repr(named[i - 1])
                raise InputError(
                    f"The levels of {variable.name!r} must go from coarse to fine; {named[i]!r} does "
                    f"not part {above} into smaller ones."
                )
        finest = np.arange(len(variable.codes), dtype=np.int64)
        scopes = [(ladder[0],)] + [(above, ladder[0]) for above in ladder[1:]]
        return cls((*ladder[1:], finest), tuple(scopes))


def _parts(fine: Ints, coarse: Ints) -> bool:
    """Whether every category of the first lies within one of the second."""
    pairs = np.unique(np.stack((fine, coarse)), axis=1)
    return bool(pairs.shape[1] == np.unique(fine).size)
