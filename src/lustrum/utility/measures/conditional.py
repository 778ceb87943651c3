"""The error of conditional probabilities: what a reader would say of one variable, given others."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats
from lustrum.model.parameters import parameter
from lustrum.utility.blocks import axis_position
from lustrum.utility.compare import Better, UtilitySpec, as_pair, compare
from lustrum.utility.impute import Impute, suppressed_cells

Summary = Literal["mean", "largest"]


@dataclass(frozen=True)
class ConditionalError(UtilitySpec):
    """The mean or largest ``|P(v | g) - Q(v | g)|`` of a variable given others; lower is better, 0 to 1.

    ``given`` names the axes that are known, by default all but the variable; the rest is summed over.
    """

    name: ClassVar[str] = "conditional-error"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    better: ClassVar[Better] = "lower"
    variable: str = parameter(MISSING, "The variable whose probabilities are compared.")
    given: tuple[str, ...] | None = parameter(
        None, "The variables that are given; by default all others of the table."
    )
    summary: Summary = parameter("mean", "The mean or the largest error.")
    impute: Impute = suppressed_cells()

    def check_together(self) -> None:
        """No variable is given and asked for at once."""
        if self.given is not None and self.variable in self.given:
            raise InputError("A variable cannot be given and asked for at once.")

    def of(self, table: Table, release: Release) -> float:
        """The error that a release makes in place of its table."""
        pair = compare(table, release, self.impute)
        asked = axis_position(table.axes, self.variable)
        names = [a.name for a in table.axes if a.name != self.variable]
        given_axes = {
            axis_position(table.axes, n) for n in (names if self.given is None else self.given)
        }
        others = tuple(a for a in range(len(table.axes)) if a != asked and a not in given_axes)
        along = asked - sum(a < asked for a in others)
        errors = conditional_errors(
            pair.original.sum(axis=others), pair.published.sum(axis=others), along
        )
        return float(errors.mean() if self.summary == "mean" else errors.max())


def conditional_errors(original: npt.ArrayLike, published: npt.ArrayLike, axis: int) -> Floats:
    """``|P - Q|`` along an axis, for every combination of the others that has anybody in it.

    Where nobody is published although there is somebody, the published probabilities count as 0.

    >>> conditional_errors([[1, 1], [0, 0]], [[3, 1], [0, 2]], axis=1).tolist()
    [0.25, 0.25]
    """
    F, G = as_pair(original, published, signed=False)
    lines = np.moveaxis(F, axis, -1).reshape(-1, F.shape[axis])
    shown = np.moveaxis(G, axis, -1).reshape(-1, F.shape[axis])
    populated = lines.sum(axis=1) > 0
    if not populated.any():
        raise InputError("A table without anybody in it has no conditional probabilities.")
    lines, shown = lines[populated], shown[populated]
    total = shown.sum(axis=1, keepdims=True)
    share = np.where(total > 0, shown / np.where(total > 0, total, 1.0), 0.0)
    return np.asarray(np.abs(lines / lines.sum(axis=1, keepdims=True) - share).ravel())
