"""Estimates with their standard errors, and which of them are too uncertain to rely on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints, Mask


@dataclass(frozen=True)
class Reliability:
    """When an estimate is flagged: too few respondents, or too large a relative standard error.

    From ``caution`` on an estimate is graded ``caution``, from ``unreliable`` on ``unreliable``.
    """

    respondents: int = 20
    unreliable: float = 0.3
    caution: float = 0.15

    def __post_init__(self) -> None:
        if type(self.respondents) is not int or self.respondents < 0:
            raise InputError("'respondents' must be a whole number of 0 or more.")
        if not self.unreliable > 0:
            raise InputError("'unreliable' must be a relative standard error above 0.")
        if not self.caution > 0:
            raise InputError("'caution' must be a relative standard error above 0.")


@dataclass(frozen=True, eq=False)
class Estimates:
    """One estimate a cell; NaN where nothing can be estimated."""

    values: Floats
    variances: Floats
    respondents: Ints

    @property
    def standard_errors(self) -> Floats:
        """The square roots of the variances."""
        return np.sqrt(self.variances)

    @property
    def relative_errors(self) -> Floats:
        """Standard errors in proportion to the estimates; infinite where an estimate is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.standard_errors / np.abs(self.values)

    def flagged(self, reliability: Reliability) -> Mask:
        """Which estimates are unreliable, by the unweighted number of respondents or by their error."""
        few = self.respondents < reliability.respondents
        errors = self.relative_errors
        return np.asarray(few | ~(errors <= reliability.unreliable))

    def grades(self, reliability: Reliability) -> npt.NDArray[np.str_]:
        """``reliable``, ``caution`` or ``unreliable`` for each estimate."""
        careful = self.relative_errors > reliability.caution
        grade = np.where(careful, "caution", "reliable")
        return np.asarray(np.where(self.flagged(reliability), "unreliable", grade))

    def with_noise(self, variance: npt.ArrayLike) -> Estimates:
        """The same estimates where protection has added noise of this variance, drawn independently."""
        added = np.asarray(variance, dtype=np.float64)
        if bool((added < 0).any()):
            raise InputError("A variance is 0 or more.")
        return replace(self, variances=self.variances + added)
