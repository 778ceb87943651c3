"""Simulated tables: the table replaced by a draw from all tables with the same kept margins.

Fienberg, Makov and Steele (1998) replace a table by a draw from its exact distribution given the margins
that are sufficient for a log-linear model. Anybody who knows the margins can repeat the draw, so the
release reveals no more about an inner cell than the margins do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from lustrum.audit.fibre import FibreMargins, enumerate_fibre, sample_fibre
from lustrum.audit.fibre.margins import junction_tree
from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Ints
from lustrum.model.chance import Chance
from lustrum.model.parameters import parameter
from lustrum.model.text import say
from lustrum.numeric.arithmetic import exp, log_gamma
from lustrum.numeric.distributions import chi_square_above
from lustrum.numeric.loglinear import LogLinearFit, fit_generators
from lustrum.protect.abilities import Abilities
from lustrum.protect.method import TABULAR, MethodSpec, Stage, released, whole_counts
from lustrum.protect.totals.inner_table import InnerTable, Keep, margins_parameter

_LISTED = 50_000  # the most tables of a fibre that are listed
_TRIED = 2_000_000  # values tried before a chain is expected to be quicker
_WIDE = 200  # tables with more cells are not listed
_PEOPLE = 10**9  # the largest number for numpy's hypergeometric draws


@dataclass(frozen=True)
class SimulatedTables(MethodSpec):
    """The inner cells are drawn at random, given margins that are kept.

    ``hypergeometric`` weighs a table by one over the product of the factorials of its cells, which is its
    distribution under the log-linear model of the kept margins; ``uniform`` weighs all tables alike.
    Decomposable margins, including independence, are drawn from exactly, and so are fibres with few enough
    tables to list. Otherwise the last state of a Markov chain is taken after ``burn`` rounds of ten moves a
    cell; the chain starts from a table made from the margins alone, never from the true one.

    With ``consistent`` a draw is retained only if a likelihood-ratio test at that ``level`` does not reject
    the richer log-linear model of these margins, fitted to the true table; up to ``tries`` draws are made.

    >>> table = Table.from_counts([[5, 1], [0, 4]])
    >>> release = SimulatedTables().apply(table, rng=np.random.default_rng(1))
    >>> release.published.sum(axis=0).tolist(), release.published.sum(axis=1).tolist()
    ([5, 5], [6, 4])
    """

    name: ClassVar[str] = "simulated-tables"
    stages: ClassVar[tuple[Stage, ...]] = TABULAR
    abilities: ClassVar[Abilities] = Abilities(repeatable=True)
    target: Literal["hypergeometric", "uniform"] = parameter(
        "hypergeometric", "How tables with the same margins are weighed."
    )
    keep: Keep = margins_parameter(
        "Margins that stay as they are, each a list of variables; by default those shown."
    )
    burn: int = parameter(1000, "Rounds of a Markov chain before its state is taken.", least=1)
    consistent: Keep = margins_parameter(
        "Margins of a richer model that a draw must not contradict."
    )
    level: float = parameter(
        0.05, "The level of the test against the richer model.", above=0, below=1
    )
    tries: int = parameter(1000, "How many draws are tested.", least=1)

    def draw(self, table: Table, rng: Chance) -> Release:
        """Replace the inner cells of a table of counts, and add its totals up."""
        whole_counts(table, "A simulated table")
        inner = InnerTable.of(table.axes, "A simulated table")
        cliques = inner.cliques(self.keep)
        if set().union(*cliques) != set(range(len(inner.shape))):
            raise InputError("A simulated table needs each variable in a margin that is kept.")
        clique_text = ";".join(",".join(map(str, c)) for c in cliques)
        purpose = f"{self.name} {self.target} {self.burn} {clique_text}"
        margins = FibreMargins.of(inner.counts(table), cliques, inner.possible(table))
        chance = inner.generator(table, rng, purpose)
        drawn = self._retained(inner, table, margins, chance)
        low, high = inner.ends(drawn, cliques)
        names = "; ".join(" x ".join(inner.names[a] for a in c) for c in cliques)
        return released(
            table,
            self,
            inner.added_up(drawn),
            low=low,
            high=high,
            notes=(
                say(
                    "The inner numbers are a random draw ({target}) from all tables with the same kept "
                    "totals; of the true ones they tell no more than these totals do.",
                    target=self.target,
                ),
                say("These totals are true: {names}.", names=names),
                *self._richer_note(),
            ),
        )

    def _retained(
        self, inner: InnerTable, table: Table, margins: FibreMargins, rng: np.random.Generator
    ) -> Ints:
        """The first draw that is consistent with the richer model, if there is one."""
        if not self.consistent:
            return draw_table(margins, self.target, rng, self.burn)
        counts, possible = inner.counts(table), inner.possible(table)
        everywhere = np.ones(counts.shape, dtype=np.bool_)
        model = fit_generators(
            counts, everywhere if possible is None else possible, inner.cliques(self.consistent)
        )
        for _ in range(self.tries):
            drawn = draw_table(margins, self.target, rng, self.burn)
            if fits(drawn, model, self.level):
                return drawn
        raise InputError(
            f"No simulated table out of {self.tries} was consistent with the richer model; keep more "
            "margins, or take a smaller level."
        )

    def _richer_note(self) -> tuple[str, ...]:
        if not self.consistent:
            return ()
        names = "; ".join(" x ".join(margin) for margin in self.consistent)
        return (
            say(
                "The draw is one that fits the model of {names} made from the true table.",
                names=names,
            ),
        )

    def to_mapping(self) -> dict[str, Any]:
        """The method in the words of a policy file; those of the test only where there is a richer model."""
        words = super().to_mapping()
        test = {key: words.pop(key) for key in ("level", "tries")}
        return words | test if self.consistent else words


def fits(counts: Ints, model: LogLinearFit, level: float) -> bool:
    """Whether a likelihood-ratio test at that level does not reject the model for these counts."""
    deviance = model.deviance_of(counts)
    return (
        deviance < 1e-9 if model.degrees < 1 else chi_square_above(deviance, model.degrees) >= level
    )


def draw_table(
    margins: FibreMargins, target: str, rng: np.random.Generator, burn: int = 1000
) -> Ints:
    """One table with these margins: exactly where that can be done, otherwise the end of a Markov chain."""
    tree = junction_tree(margins.cliques, len(margins.shape))
    if target == "hypergeometric" and margins.possible is None and tree is not None:
        return draw_decomposable(margins, rng)
    if margins.size <= _WIDE:
        fibre = enumerate_fibre(margins, most=_LISTED, nodes=_TRIED)
        if fibre.complete:
            weights = np.full(len(fibre), 1.0 / len(fibre))
            if target == "hypergeometric":
                logs = -log_gamma(fibre.tables + 1.0).sum(axis=1)
                weights = exp(logs - logs.max())
                weights /= weights.sum()
            return np.array(fibre.tables[rng.choice(len(fibre), p=weights)].reshape(margins.shape))
    tables = sample_fibre(margins, target=target, rng=rng, draws=4, chains=1, burn=burn)
    return np.array(tables[0, -1].reshape(margins.shape))


def draw_decomposable(margins: FibreMargins, rng: np.random.Generator) -> Ints:
    """An exact draw given decomposable margins, weighted by one over the factorials.

    Clique after clique: given the table so far and the next clique, the tables of the new axes
    against the old ones are independent two-way tables, one for each value of the shared axes.
    """
    cliques = margins.cliques
    tree = junction_tree(cliques, len(margins.shape))
    if tree is None:
        raise InputError("Only decomposable margins can be drawn from directly.")
    axes, table = cliques[0], margins.sums[cliques[0]]
    for edge in tree:
        child = margins.sums[edge.child]
        shared = edge.separator
        old = tuple(a for a in axes if a not in shared)
        new = tuple(a for a in edge.child if a not in shared)
        left = table.transpose([axes.index(a) for a in (*shared, *old)])
        right = child.transpose([edge.child.index(a) for a in (*shared, *new)])
        held = int(np.prod(left.shape[: len(shared)], dtype=np.int64))
        rows, columns = left.reshape(held, -1), right.reshape(held, -1)
        draws = np.stack([draw_two_way(r, c, rng) for r, c in zip(rows, columns, strict=True)])
        shape = (*left.shape, *right.shape[len(shared) :])
        axes = (*shared, *old, *new)
        table = draws.reshape(shape)
    return np.ascontiguousarray(table.transpose(np.argsort(axes, kind="stable")))


def draw_two_way(rows: Sequence[int] | Ints, columns: Ints, rng: np.random.Generator) -> Ints:
    """A two-way table with these sums under independence: row after row, people without replacement.

    This is Fisher's exact distribution; Patefield (1981) draws it cell by cell.

    >>> draw_two_way([2, 1], np.array([3, 0]), np.random.default_rng(1)).tolist()
    [[2, 0], [1, 0]]
    """
    left = np.asarray(columns, dtype=np.int64).copy()
    if int(left.sum()) >= _PEOPLE:
        raise InputError("A simulated table can be drawn for fewer than one billion people.")
    sums = np.asarray(rows, dtype=np.int64)
    out = np.zeros((sums.size, left.size), dtype=np.int64)
    for row in np.flatnonzero(sums).tolist():
        out[row] = rng.multivariate_hypergeometric(left, int(sums[row]), method="marginals")
        left -= out[row]
    return out
