"""The design of perturbation matrices by maximum entropy.

For each true count the change gets the distribution of largest entropy that has mean 0, a given variance,
no change beyond a largest one, and no published value that is negative or blocked (Fraser and Wooton 2005;
Marley and Leaver 2011; Giessing 2016). The R package ptable is in wide use for this; the same parameters
give the same rows here wherever its rows have the variance asked for, which it takes as an upper limit.
Zeros always stay: no smaller value can balance a change, so mean 0 requires it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.model.channel import MatrixChannel
from lustrum.model.parameters import DeclaredSpec, parameter
from lustrum.protect.perturbation.entropy import least_and_most, maximum_entropy

Monotone = Literal["no", "below", "both"]

_TOLERANCE = 1e-9


def design(
    largest_change: int,
    variance: float,
    blocked: Sequence[int] = (),
    stay: float | Sequence[float] | None = None,
    monotone: Monotone = "no",
    cap: int | None = None,
) -> MatrixChannel:
    """The matrix of largest entropy; see :class:`PerturbationDesign` for the parameters.

    >>> design(largest_change=2, variance=1.08, blocked=(1,)).matrix[4].round(4).tolist()
    [0.0, 0.0, 0.0739, 0.2442, 0.3637, 0.2442, 0.0739]
    """
    given = tuple(stay) if isinstance(stay, Sequence) else stay
    return PerturbationDesign(
        largest_change, variance, tuple(blocked), given, monotone, cap
    ).channel()


@dataclass(frozen=True)
class PerturbationDesign(DeclaredSpec):
    """What a perturbation matrix has to satisfy.

    - ``largest_change``: no count changes by more.
    - ``variance``: of the change, for every count above 0.
    - ``blocked``: values above 0 that are never published, such as 1 and 2.
    - ``stay``: the probability that a count stays, one for all counts above 0 or one for each from 1 up to
      the last row; without it, maximum entropy determines it. Blocked counts cannot stay.
    - ``monotone``: ``"below"``: among smaller values, a nearer one is at least as likely as a more distant
      one; ``"both"``: among larger values too.
    - ``cap``: the last count with a row of its own; those above change alike. The least possible, from
      which on nothing is blocked or negative, is the default.

    >>> PerturbationDesign(largest_change=1, variance=0.5).channel().matrix.tolist()
    [[1.0, 0.0, 0.0], [0.25, 0.5, 0.25]]
    """

    group: ClassVar[str] = ""
    what: ClassVar[str] = "A designed matrix"

    largest_change: int = parameter(MISSING, "No count changes by more than this.", least=1)
    variance: float = parameter(MISSING, "The variance of the change.", above=0)
    blocked: tuple[int, ...] = parameter((), "Values that are never published.", least=1)
    stay: float | tuple[float, ...] | None = parameter(
        None, "The probability that a count stays.", least=0, most=1, brief=True
    )
    monotone: Monotone = parameter("no", "Whether nearer values are at least as likely.")
    cap: int | None = parameter(None, "The last count with a row of its own.", least=1, brief=True)

    def check_together(self) -> None:
        """The rows reach to where nothing is blocked or negative."""
        if self.cap is not None and self.cap < self.least_cap:
            raise InputError(
                f"The cap must be a whole number of {self.least_cap} or more, from which on nothing is "
                f"blocked or negative, not {self.cap!r}."
            )
        if isinstance(self.stay, tuple) and len(self.stay) != self.last:
            raise InputError(
                f"'stay' needs {self.last} probabilities, for the counts from 1 to {self.last}; there "
                f"are {len(self.stay)}."
            )

    @property
    def least_cap(self) -> int:
        """The first count from which on all changes lead to values that are neither blocked nor negative."""
        return self.largest_change + (max(self.blocked) + 1 if self.blocked else 0)

    @property
    def last(self) -> int:
        """The last count with a row of its own."""
        return self.least_cap if self.cap is None else self.cap

    def channel(self) -> MatrixChannel:
        """Solve for every row; an error names the count for which the conditions cannot be met, and why."""
        return _solved(self)

    def _row(self, count: int) -> tuple[Ints, Floats]:
        reach = np.arange(max(count - self.largest_change, 0), count + self.largest_change + 1)
        values = reach[~np.isin(reach, self.blocked)]
        change = (values - count).astype(np.float64)
        equal = [np.ones(change.size), change]
        to = [1.0, 0.0]
        share = self.stay[count - 1] if isinstance(self.stay, tuple) else self.stay
        if share is not None and count in values:
            equal.append((change == 0).astype(np.float64))
            to.append(float(share))
        below = self._steps(change)
        without = np.array(equal), np.array(to)
        two_sided = (change < 0).any() and (change > 0).any()
        ends = least_and_most(change**2, *without, below) if two_sided else None
        if ends is None:
            raise InputError(self._why(count, change, share))
        if not ends[0] - _TOLERANCE <= self.variance <= ends[1] + _TOLERANCE:
            side, end = ("least", ends[0]) if self.variance < ends[0] else ("largest", ends[1])
            raise InputError(
                f"No distribution for the count {count} has a variance of {self.variance:g}; the {side} "
                f"variance that the other conditions allow is {end:.6g}."
            )
        variance = min(max(float(self.variance), ends[0]), ends[1])
        conditions = np.vstack((without[0], change**2)), np.append(without[1], variance)
        distribution = maximum_entropy(*conditions, below)
        if (
            distribution is None
            or (
                np.abs((conditions[0] * distribution).sum(axis=1) - conditions[1]) > _TOLERANCE
            ).any()
            or ((below * distribution).sum(axis=1) > _TOLERANCE).any()
        ):
            raise InputError(
                f"The conditions for the count {count} can only just be met; a variance a little "
                f"farther from its ends, {ends[0]:.6g} and {ends[1]:.6g}, can be solved for."
            )
        return values, distribution / distribution.sum()

    def _steps(self, change: Floats) -> Floats:
        """One row for each pair of neighbours on one side: the farther one less the nearer one."""
        pairs = []
        for farther, nearer in ((k, k + 1) for k in range(change.size - 1)):
            if self.monotone != "no" and change[nearer] <= 0:
                pairs.append((farther, nearer))
            if self.monotone == "both" and change[farther] >= 0:
                pairs.append((nearer, farther))
        rows = np.zeros((len(pairs), change.size))
        for row, (farther, nearer) in enumerate(pairs):
            rows[row, farther], rows[row, nearer] = 1.0, -1.0
        return rows

    def _why(self, count: int, change: Floats, share: float | None) -> str:
        if not (change < 0).any() or not (change > 0).any():
            return (
                f"The count {count} cannot change without bias: all values it may become lie on one side; "
                f"the largest change must be more than {self.largest_change}."
            )
        ends = least_and_most(
            (change == 0).astype(np.float64),
            np.array([np.ones(change.size), change]),
            np.array([1.0, 0.0]),
            self._steps(change),
        )
        if ends is None or share is None:
            return f"No distribution for the count {count} has mean 0 and is monotone '{self.monotone}'."
        return (
            f"The count {count} cannot stay with probability {share:g}; the other conditions allow "
            f"{ends[0]:.6g} to {ends[1]:.6g}."
        )


@lru_cache(maxsize=32)
def _solved(wanted: PerturbationDesign) -> MatrixChannel:
    matrix = np.zeros((wanted.last + 1, wanted.last + wanted.largest_change + 1))
    matrix[0, 0] = 1.0
    for count in range(1, wanted.last + 1):
        values, probability = wanted._row(count)
        matrix[count, values] = probability
    return MatrixChannel(matrix, residue_base=1)
