"""Markov perturbation of whole tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from lustrum.audit import MarkovSquare
from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Ints
from lustrum.model.chance import Seed
from lustrum.model.channel import ObservedChannel
from lustrum.model.parameters import parameter
from lustrum.model.text import say
from lustrum.numeric.distributions import binomial, convolved
from lustrum.protect.abilities import Abilities
from lustrum.protect.markov.moves import Moves
from lustrum.protect.method import TABULAR, MethodSpec, Stage, checked_input, released, whole_counts
from lustrum.protect.totals.inner_table import InnerTable, Keep, margin_names, margin_words


@dataclass(frozen=True)
class MarkovPerturbation(MethodSpec):
    """People move within squares; kept margins do not change, and every cell is right on average.

    An elementary step takes a square: the four cells at the crossings of two rows and two columns. With
    ``down`` the smaller cell of one diagonal, ``up`` the smaller of the other and s the smaller of both,
    each of ``up`` people moves in with probability ``theta s / up`` and each of ``down`` out with
    ``theta s / down`` (rule ``people``); or one person moves either way with probability theta where both
    ways are open (rule ``unit``). What leaves a cell enters its neighbours, so margins stay.

    A sweep is as many squares, drawn independently, as there are inner cells; in the order
    ``disjoint`` it is a random pairing of rows and of columns, so that each cell is in one square at most.
    ``keep`` lists the margins to keep; without it all totals that the table shows are kept, or the sums
    over each variable if it shows none.

    A step of mean 0 cannot raise a cell of 0 without lowering it elsewhere. So zeros stay zeros, and cells
    that become 0 remain so: many sweeps empty small cells.

    >>> table = Table.from_counts([[1, 14], [17, 83]])
    >>> release = MarkovPerturbation(theta=0.2).apply(table, rng=np.random.default_rng(6))
    >>> release.published.tolist(), release.published.sum(axis=0).tolist()
    ([[2, 13], [16, 84]], [18, 97])
    """

    name: ClassVar[str] = "markov-perturbation"
    stages: ClassVar[tuple[Stage, ...]] = TABULAR
    abilities: ClassVar[Abilities] = Abilities(repeatable=True)
    theta: float = parameter(0.1, "How many people move in one step, as a share.", above=0, most=1)
    sweeps: int = parameter(1, "How often all cells are visited.", least=1)
    keep: Keep = parameter(
        (),
        "Margins that stay as they are, each a list of variables; by default those shown.",
        brief=True,
        read=margin_names,
        write=margin_words,
    )
    order: Literal["random", "disjoint"] = parameter(
        "disjoint", "Squares of cells at random, or disjoint ones."
    )
    rule: Literal["people", "unit"] = parameter(
        "people", "Whether every person may move, or one unit at a time."
    )

    def check_together(self) -> None:
        """One unit at a time moves with a probability of at most a half."""
        if self.rule == "unit" and self.theta > 0.5:
            raise InputError(
                f"Markov perturbation by unit needs a theta above 0 and up to 0.5, not {self.theta!r}."
            )

    def apply(self, table: Table, rng: Seed = None) -> Release:
        """Perturb the inner cells of a table of counts, and add its totals up."""
        rng = checked_input(table, rng)
        whole_counts(table, "Markov perturbation")
        inner = InnerTable.of(table.axes, "Markov perturbation")
        cliques = inner.cliques(self.keep)
        chance = inner.generator(table, rng, self._purpose(inner, cliques))
        perturbed = self.perturbations(inner, inner.counts(table), 1, chance)[0]
        published = inner.added_up(perturbed)
        low, high = inner.ends(perturbed, cliques)
        # A published count above 0 was above 0 before: nobody ever enters an empty cell.
        low = np.maximum(low, np.minimum(published, 1))
        if self.rule == "unit":
            per_cell = self.sweeps * (1 if self.order == "disjoint" else perturbed.size)
            reach = per_cell * inner.added_up(np.ones(inner.shape, dtype=np.int64))
            low, high = np.maximum(low, published - reach), np.minimum(high, published + reach)
        margins = "; ".join(" x ".join(inner.names[a] for a in c) or "all" for c in cliques)
        return released(
            table,
            self,
            published,
            low=low,
            high=high,
            notes=(
                say(
                    "People were moved between cells at random (theta {theta:g}, sweeps: {sweeps}); every "
                    "number is right on average.",
                    theta=self.theta,
                    sweeps=self.sweeps,
                ),
                say("These totals are true: {names}.", names=margins),
                say("A number above 0 was above 0."),
            ),
        )

    def perturbations(
        self, inner: InnerTable, counts: Ints, draws: int, rng: np.random.Generator
    ) -> Ints:
        """The same inner cells, perturbed this many times."""
        moves = Moves.of(inner.shape, inner.cliques(self.keep))
        settings = (moves, self.theta, self.sweeps, self.order, self.rule, rng)
        return np.stack([perturb_boxes(counts, *settings) for _ in range(draws)])

    def _purpose(self, inner: InnerTable, cliques: tuple[tuple[int, ...], ...]) -> str:
        margins = ";".join(",".join(map(str, c)) for c in cliques)
        return f"{self.name} {self.theta!r} {self.sweeps} {self.order} {self.rule} {margins}"


def perturb_boxes(
    counts: Ints,
    moves: Moves,
    theta: float,
    sweeps: int,
    order: str,
    rule: str,
    rng: np.random.Generator,
) -> Ints:
    """Counts after this many sweeps over boxes that keep the margins."""
    from lustrum.protect.markov.kernels import run_boxes, run_random  # loads the compiler

    x = counts.astype(np.int64).ravel().copy()
    state = rng.integers(2**64, size=2, dtype=np.uint64) | np.array([0, 1], dtype=np.uint64)
    odd, unit = moves.odd, rule == "unit"
    if order == "random":
        arrays = (moves.families, moves.groups, moves.offsets, odd)
        run_random(x, *arrays, float(theta), unit, sweeps * x.size, state)
    else:
        for _ in range(sweeps):
            run_boxes(x, moves.disjoint(rng), odd, float(theta), unit, state)
    return x.reshape(counts.shape)


# The channel of Markov perturbation: exact for one cell of one square, simulated for any cell.


@dataclass(frozen=True)
class StationarySquare(MarkovSquare):
    """The first cell of a 2 x 2 square after one elementary step that leaves its mean as it is.

    If the margins bound a cell w by c and d, then ``w - c`` people can move out and ``d - w`` can move in.
    With s the smaller of the two numbers,

        ``M = c + Binom(w - c, 1 - theta s / (w - c)) + Binom(d - w, theta s / (d - w))``,

    so that as many move in as out on average and ``E M = w``. Where all of one column can move this is
    the formula of Duncan, Fienberg, Krishnan, Padman and Roehrig (2001); elsewhere theirs, which
    compares with all of the column, has a small bias. With the rule ``unit`` the cell goes one up
    or one down, each with probability theta, and stays if one of them is closed.

    >>> square = StationarySquare(row=15, column=18, total=115, theta=0.05)
    >>> bool(np.allclose(square.matrix @ np.arange(16), np.arange(16)))
    True
    """

    rule: str = "people"

    @cached_property
    def matrix(self) -> Floats:
        """``P(published | true)`` over ``least .. most``."""
        size = self.most - self.least + 1
        out = np.zeros((size, size))
        for leave in range(size):
            enter = size - 1 - leave
            movers = min(leave, enter)
            if movers == 0:
                out[leave, leave] = 1.0
            elif self.rule == "unit":
                out[leave, leave - 1 : leave + 2] = self.theta, 1 - 2 * self.theta, self.theta
            else:
                share = self.theta * movers
                stayers = binomial(np.arange(leave + 1), leave, 1 - share / leave)
                comers = binomial(np.arange(enter + 1), enter, share / enter)
                out[leave] = convolved(stayers, comers)
        return out

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """A cell at a bound stays; others can take any value, or a neighbouring one by the rule ``unit``."""
        shown = np.asarray(published, dtype=np.int64)
        reach = 1 if self.rule == "unit" else self.most - self.least
        low, high = np.maximum(shown - reach, self.least), np.minimum(shown + reach, self.most)
        low = np.where((shown > self.least) & (low == self.least), self.least + 1, low)
        high = np.where((shown < self.most) & (high == self.most), self.most - 1, high)
        return np.minimum(low, shown), np.maximum(high, shown)


def simulated_channel(
    table: Table, spec: MarkovPerturbation, draws: int, rng: np.random.Generator
) -> ObservedChannel:
    """The channel of a table's inner cells, from this many perturbations of it.

    It is made from confidential counts and is for the agency only.
    """
    if type(draws) is not int or draws < 1:
        raise InputError(f"A simulated channel needs one draw or more, not {draws!r}.")
    inner = InnerTable.of(table.axes, "Markov perturbation")
    counts = inner.counts(table)
    perturbed = spec.perturbations(inner, counts, draws, rng)
    return ObservedChannel(np.broadcast_to(counts, (draws, *counts.shape)), perturbed)
