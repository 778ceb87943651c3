"""Differential privacy for a table of counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import fsum
from typing import Any, ClassVar, Literal

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.model.chance import Seed
from lustrum.model.parameters import floats, parameter
from lustrum.model.release import SeededRelease
from lustrum.model.text import say
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.abilities import NOTHING_PROMISED, Abilities
from lustrum.protect.method import (
    TABULAR,
    Deriving,
    MethodSpec,
    Stage,
    checked_input,
    released,
    whole_counts,
)
from lustrum.protect.privacy.budget import Budget, Cost, rho_of
from lustrum.protect.privacy.mechanism import (
    DiscreteNoiseChannel,
    Measured,
    least_scale,
    measure,
    opendp,
)
from lustrum.protect.rehearsal import rehearsed_noise
from lustrum.protect.totals.inner_table import InnerTable, Keep, margins_parameter

# Post-process noisy numbers into counts that are whole, not negative, and add up, without randomness.
#
# Computing from noisy numbers alone costs no privacy. It does cost accuracy: counts that cannot be negative
# are no longer right on average.

_GRID = 2.0**22
_DENSE = 400  # inner cells up to which the fit is exact rather than iterated


def fitted(inner: InnerTable, noisy: Ints, seen: Mask, scale: Floats) -> Floats:
    """Inner cells of 0 or more with the least weighted squares from all measured cells.

    Each measured cell weighs by one over the variance of its noise, so a total that was measured well
    corrects its parts.
    """
    from scipy import optimize, sparse

    matrix: Any = sparse.csr_array(np.ones((1, 1)))
    for holds in inner.below:
        matrix = sparse.kron(matrix, holds.astype(np.float64), format="csr")
    rows = np.flatnonzero(seen.transpose(inner.order).ravel())
    weight = 1.0 / scale.transpose(inner.order).ravel()[rows]
    goal = noisy.transpose(inner.order).ravel()[rows].astype(np.float64) * weight
    system = sparse.diags_array(weight) @ matrix[rows]
    if matrix.shape[1] <= _DENSE:
        solution = optimize.nnls(system.toarray(), goal)[0]
    else:
        back = system.T.tocsr()

        def loss(x: Floats) -> tuple[float, Floats]:
            off = system @ x - goal
            return float(off @ off) / 2, np.asarray(back @ off)

        start = np.maximum(inner.take(noisy).astype(np.float64).ravel(), 0.0)
        options = {"maxiter": 20_000, "maxfun": 40_000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-9}
        every = [(0.0, None)] * start.size
        solution = optimize.minimize(
            loss, start, jac=True, method="L-BFGS-B", bounds=every, options=options
        ).x
    # Solvers differ in last digits; on a grid, equal remainders stay equal.
    counts: Floats = np.maximum(np.rint(np.asarray(solution) * _GRID) / _GRID, 0.0)
    return counts.reshape(inner.shape)


def rounded_down_the_tree(values: Floats) -> Ints:
    """Whole numbers next to given ones, from the grand total down, axis after axis.

    A total is split over its parts by largest remainders: each part is its value rounded down, or one more.
    So every cell, and every total over the last axes, changes by less than one.

    >>> rounded_down_the_tree(np.array([[0.4, 0.4], [1.4, 2.0]])).tolist()
    [[1, 0], [1, 2]]
    """
    # Values that differ from whole numbers only by rounding error count as whole.
    near = np.rint(values)
    values = np.where(np.abs(values - near) < 1e-7, near, values)
    whole = np.array(math.floor(float(values.sum()) + 0.5), dtype=np.int64)
    for axis in range(values.ndim):
        parts = values.sum(axis=tuple(range(axis + 1, values.ndim)))
        down = np.floor(parts + 1e-9).astype(np.int64)
        missing = whole - down.sum(axis=-1)
        order = np.argsort(-(parts - down), axis=-1, kind="stable")
        rank = np.argsort(order, axis=-1, kind="stable")
        whole = down + (rank < missing[..., None])
    return whole


@dataclass(frozen=True)
class DifferentialPrivacy(MethodSpec):
    """Whole-number noise from OpenDP, scaled so that no person changes what is published by much.

    Neighbours are datasets that differ by up to ``records`` records, added or taken away. ``laplace``
    noise costs ``epsilon``; ``gaussian`` noise costs ``rho`` of zero-concentrated differential privacy,
    or as much as gives ``epsilon`` with ``delta``. Without ``margins`` all cells of the table have the
    same noise, for a record that is counted in as many cells as hold it; with them the cost is split by
    ``shares`` between the inner cells, which come by the names of all variables, and totals of each kind.

    ``post``: numbers are published as drawn (``none``), negative ones as 0 (``nonnegative-integers``), or
    fitted to whole counts of 0 or more that add up (``consistent``).

    OpenDP takes no seed: two releases of one table differ, and each costs its epsilon or rho again. Publish
    once, keep what was published, and enter its cost in a :class:`Budget`.
    """

    name: ClassVar[str] = "differential-privacy"
    stages: ClassVar[tuple[Stage, ...]] = TABULAR
    abilities: ClassVar[Abilities] = NOTHING_PROMISED  # every answer is a fresh draw
    mechanism: Literal["laplace", "gaussian"] = parameter(
        "laplace", "The distribution of the noise."
    )
    epsilon: float | None = parameter(None, "The privacy loss.", above=0)
    rho: float | None = parameter(None, "The privacy loss, in zero-concentrated terms.", above=0)
    delta: float | None = parameter(
        None, "The probability with which the promise may fail.", above=0, below=1
    )
    post: Literal["none", "nonnegative-integers", "consistent"] = parameter(
        "nonnegative-integers", "What becomes of noisy counts."
    )
    margins: Keep = margins_parameter(
        "Margins that get noise of their own, each a list of variables."
    )
    shares: tuple[float, ...] = parameter(
        (),
        "The share of the privacy loss that each margin costs.",
        above=0,
        brief=True,
        read=floats,
    )
    records: int = parameter(1, "How many records one person can have.", least=1)

    def check_together(self) -> None:
        """Each mechanism has its own terms of loss, and margins divide all of it."""
        if len(self.shares) != len(self.margins):
            raise InputError("Differential privacy needs a share of its cost for each margin.")
        if self.shares and abs(fsum(self.shares) - 1) >= 1e-9:
            raise InputError("The shares of the margins must be above 0 and add up to 1.")
        parts = tuple(n for n in ("epsilon", "rho", "delta") if getattr(self, n) is not None)
        ways = {"laplace": (("epsilon",),), "gaussian": (("rho",), ("epsilon", "delta"))}
        if parts not in ways[self.mechanism]:
            right = " or ".join(" and ".join(w) for w in ways[self.mechanism])
            raise InputError(f"The mechanism {self.mechanism!r} needs {right}, and nothing else.")

    @property
    def cost(self) -> Cost:
        if self.mechanism == "laplace":
            return Cost(epsilon=self.epsilon)
        if self.rho is not None:
            return Cost(rho=self.rho)
        return Cost(rho=rho_of(self.epsilon or 0.0, self.delta or 0.0))

    def apply(
        self,
        table: Table,
        rng: Seed = None,
        *,
        secret: Deriving | None = None,
        budget: Budget | None = None,
    ) -> Release:
        """Add noise to a table of counts; a budget is charged before anything is drawn."""
        rng = checked_input(table, rng)
        whole_counts(table, "Differential privacy")
        if rng is not None or secret is not None:
            raise InputError(
                "Differential privacy takes no random generator and no secret: its noise comes from OpenDP, "
                "which has no seed."
            )
        self._groups(InnerTable.of(table.axes, "Differential privacy"))
        opendp()
        if budget is not None:
            budget.spend(self.cost, " x ".join(a.name for a in table.axes) or "everybody")
        return self._drawn(table, measure)

    def rehearse(self, table: Table, rng: np.random.Generator) -> Release:
        """The same release with noise from a generator that can be repeated: for studies, never to publish."""

        def draw(values: Ints, mechanism: str, cells: int, records: int, cost: float) -> Measured:
            change = records * (cells if mechanism == "laplace" else math.sqrt(cells))
            scale = least_scale(mechanism, change, cost)
            channel = DiscreteNoiseChannel(mechanism, scale)
            return Measured(values + rehearsed_noise(channel, values.shape, rng), scale)

        notes = ("A rehearsal: its noise can be repeated, so these numbers must not be published.",)
        return SeededRelease.of(replace(self._drawn(table, draw), notes=notes))

    def split(self, questions: int) -> DifferentialPrivacy:
        """The same method with its cost shared evenly by this many questions."""
        if self.rho is None and self.mechanism == "gaussian":
            # Costs add up in rho, not in epsilon and delta.
            rho = self.cost.rho or 0.0
            return replace(self, epsilon=None, delta=None, rho=rho / questions)
        if self.rho is not None:
            return replace(self, rho=self.rho / questions)
        return replace(self, epsilon=(self.epsilon or 0.0) / questions)

    def _drawn(self, table: Table, draw: Callable[..., Measured]) -> Release:
        counts = whole_counts(table, "Differential privacy")
        inner = InnerTable.of(table.axes, "Differential privacy")
        cost = self.cost
        total = cost.epsilon if cost.epsilon is not None else cost.rho
        noisy, scale = np.zeros(table.shape, dtype=np.int64), np.ones(table.shape)
        seen, scales = np.zeros(table.shape, dtype=np.bool_), []
        for cells, share in self._groups(inner):
            most = int(inner.holders(cells).max(initial=1))
            measured = draw(counts[cells], self.mechanism, most, self.records, share * (total or 0))
            noisy[cells], scale[cells] = measured.values, measured.scale
            seen |= cells
            scales.append(measured.scale)
        channel = None
        if self.post == "consistent":
            noisy = inner.added_up(rounded_down_the_tree(fitted(inner, noisy, seen, scale)))
        else:
            clamp = self.post == "nonnegative-integers"
            noisy = np.maximum(noisy, 0) if clamp else noisy
            if len(scales) == 1:
                channel = DiscreteNoiseChannel(self.mechanism, scales[0], clamp)
        return released(
            table,
            self,
            noisy,
            channel=channel,
            low=np.zeros(table.shape, dtype=np.int64),
            high=np.full(table.shape, UNBOUNDED, dtype=np.int64),
            notes=self._notes(cost, scales),
        )

    def _groups(self, inner: InnerTable) -> tuple[tuple[Mask, float], ...]:
        """Cells that are measured together, each group with its share of the cost."""
        classes = dict(inner.classes())
        if not self.margins:
            return ((np.logical_or.reduce(list(classes.values())), 1.0),)
        groups = {}
        whole = max(1.0, fsum(self.shares))
        for margin, share in zip(self.margins, self.shares, strict=True):
            axes = inner.cliques((margin,))[0]
            if axes not in classes or axes in groups:
                raise InputError(
                    f"The table shows no totals by {', '.join(margin) or 'nothing'}, or they are "
                    "named twice; name each kind of total that the table shows once."
                )
            groups[axes] = (classes[axes], share / whole)
        missing = [a for a in classes if a not in groups]
        if self.post == "consistent":
            missing = [a for a in missing if len(a) == len(inner.names)]
        if missing:
            names = ", ".join(inner.names[a] for a in missing[0]) or "nothing (the grand total)"
            raise InputError(f"The table shows cells by {names}; give that margin a share too.")
        return tuple(groups.values())

    def _notes(self, cost: Cost, scales: list[float]) -> tuple[str, ...]:
        price: str = (
            say("epsilon {epsilon:g}", epsilon=cost.epsilon)
            if cost.epsilon is not None
            else say("rho {rho:g}", rho=cost.rho)
        )
        if self.delta is not None:
            price = say(
                "epsilon {epsilon:g} with delta {delta:g} ({price})",
                epsilon=self.epsilon,
                delta=self.delta,
                price=price,
            )
        person = (
            say("record that is added or taken away")
            if self.records == 1
            else say("group of {number} records that are added or taken away", number=self.records)
        )
        listed = ", ".join(f"{s:.6g}" for s in scales)
        after = {
            "none": say("Numbers are published as drawn, so some may be below 0."),
            "nonnegative-integers": say("Numbers below 0 are shown as 0."),
            "consistent": say("Numbers were fitted to whole counts of 0 or more that add up."),
        }
        return (
            say(
                "Differentially private: {price} for each {person}, by {mechanism} noise of scale "
                "{scales} on whole numbers.",
                price=price,
                person=person,
                mechanism=self.mechanism,
                scales=listed,
            ),
            after[self.post],
            say(
                "A second release of the same table would have other noise and cost as much again."
            ),
        )
