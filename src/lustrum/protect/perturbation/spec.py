"""Stochastic perturbation of counts by a transition matrix (Shlomo, Antal and Elliot 2015, section 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Indices, Ints, Mask, Words
from lustrum.model.chance import Chance
from lustrum.model.channel import SHLOMO_2015, MatrixChannel
from lustrum.model.errors import choices
from lustrum.model.keys import cell_words
from lustrum.model.parameters import floats, parameter, shortened, spec_from_words
from lustrum.model.text import say
from lustrum.protect.abilities import Abilities
from lustrum.protect.additive.apportion import apportioned, spread_words
from lustrum.protect.entropy_left import entropy_left
from lustrum.protect.method import TABULAR, MethodSpec, Stage, uniform_words, whole_counts
from lustrum.protect.perturbation.design import PerturbationDesign
from lustrum.protect.perturbation.lookup import (
    calibrated,
    frequencies_of,
    invariant,
    invariant_reach,
    perturb_by_words,
)
from lustrum.protect.totals.safe import safe_totals
from lustrum.protect.totals.summed import PublishedSums, added_totals, released_sums

# Controlled perturbation: the number of cells that take each step is the expected one.
#
# The paper computes the expected numbers and draws the cells without replacement (Shlomo, Antal and Elliot
# 2015, section 3.3). Here the cells of a row of the matrix get words that are spread evenly over their range
# in random order. Every word is uniform, so each cell changes with exactly the probabilities of its row, and
# the number of cells of a row that take each step is the expected one, rounded up or down.


def controlled_words(rows: Ints, random_words: Words, shift_of: Callable[[Indices], int]) -> Words:
    """Evenly spread words in place of independent ones.

    ``rows`` says to which group each cell belongs, ``random_words`` put the cells of a group in order, and
    ``shift_of`` gives one more uniform word for the cells of a group.
    """
    out = np.empty(random_words.shape, dtype=np.uint64)
    order = np.argsort(random_words, kind="stable")
    order = order[np.argsort(rows[order], kind="stable")]
    bounds = np.flatnonzero(np.diff(rows[order])) + 1
    for cells in np.split(order, bounds):
        if cells.size:
            out[cells] = spread_words(np.arange(cells.size), cells.size, shift_of(cells))
    return out


def total_kept(values: Ints, perturbed: Ints, channel: MatrixChannel) -> Ints:
    """Undo the change of the total, by adjusting the cells above the cap in proportion to their size.

    A cell above the cap stays above it. If these cells cannot absorb the whole change, the total is kept as
    nearly as possible.
    """
    out = perturbed.copy()
    large = np.flatnonzero(out > channel.cap)
    excess = int(perturbed.sum() - values.sum())
    if not large.size or not excess:
        return out
    if excess < 0:
        out[large] += apportioned(-excess, out[large])
        return out
    while excess > 0:
        room = out[large] - channel.cap - 1
        giving = large[room > 0]
        if not giving.size:
            break
        cut = np.minimum(apportioned(excess, out[giving]), room[room > 0])
        out[giving] -= cut
        excess -= int(cut.sum())
    return out


Matrix = str | tuple[tuple[float, ...], ...] | PerturbationDesign

PRESETS: dict[str, MatrixChannel] = {"shlomo-2015": SHLOMO_2015}
"""Matrices that are known by name."""


def _matrix(given: object) -> Any:
    """The words of a design in place of the design."""
    if isinstance(given, Mapping):
        return spec_from_words(PerturbationDesign, given, "A designed matrix")
    return floats(given)


@dataclass(frozen=True)
class StochasticPerturbation(MethodSpec):
    """Every inner cell is drawn from the row of a transition matrix that belongs to its true count.

    - ``version``: ``"plain"`` takes the matrix as it is. ``"invariant"`` makes it keep the distribution of
      counts; ``"calibrated"`` does so while it changes no more cells than the given one.
    - ``frequencies``: public frequencies, one per row, for which to make the matrix invariant. Without them
      those of the table are used, and the matrix is secret: the release then has no channel, and bounds
      that hold for any frequencies. The agency gets the matrix from :meth:`channel_for`.
    - ``controlled``: the number of cells that take each step is the expected one, rounded up or down.
    - ``totals``: ``"sums"`` of the published cells, or ``"perturbed"`` on their own like any other cell, as
      long as :mod:`~lustrum.protect.totals.safe` finds no cell that they disclose. Only a generator
      perturbs totals: by keys, a total with the same records as one part shows the same number as that
      part, and where it does not, a reader learns that another part is not empty. With keys such a table
      may have no totals, and then one population has one number in every table.
    - ``keep_total``: cells above the last row are adjusted so that the sum of all cells does not change.

    Random numbers come from the cell keys or from a generator. With keys, and without ``controlled`` and
    ``keep_total`` and with a matrix that does not depend on the table, the same cell is the same in every
    table. Structural zeros are never perturbed.

    >>> table = Table.from_counts([[0, 1], [7, 40]])
    >>> release = StochasticPerturbation().apply(table, rng=np.random.default_rng(5))
    >>> release.published.tolist(), release.low.tolist()
    ([[0, 4], [7, 40]], [[0, 1], [3, 37]])
    """

    name: ClassVar[str] = "stochastic-perturbation"
    stages: ClassVar[tuple[Stage, ...]] = TABULAR
    matrix: Matrix = parameter(
        "shlomo-2015",
        "The name of a known matrix, its rows, or the words of a design.",
        read=_matrix,
    )
    residue_base: int | None = parameter(
        None, "How counts above the last row of a given matrix move.", least=1
    )
    version: Literal["plain", "invariant", "calibrated"] = parameter(
        "plain", "The matrix as it is, or made to leave the distribution of counts as it is."
    )
    frequencies: tuple[float, ...] = parameter(
        (), "Public frequencies for which the matrix is made invariant.", least=0, read=floats
    )
    controlled: bool = parameter(False, "Whether as many cells take each step as expected.")
    totals: Literal["sums", "perturbed"] = parameter(
        "sums", "Totals are sums of the published numbers, or perturbed on their own."
    )
    keep_total: bool = parameter(False, "Whether the sum of all cells is kept.")

    def check_together(self) -> None:
        """The matrix changes something, and can be made what is asked for."""
        if self.frequencies and self.version == "plain":
            raise InputError("Frequencies are for the invariant and the calibrated version only.")
        if self.keep_total and self.totals != "sums":
            raise InputError("A perturbation that keeps the total needs totals that are 'sums'.")
        if (np.diagonal(self.base_channel.matrix) == 1).all():
            raise InputError("The matrix of a perturbation leaves every count as it is.")
        if self.residue_base is not None and not isinstance(self.matrix, tuple):
            raise InputError("A residue base is for a matrix given by its rows.")
        if (
            self.version != "plain"
            and self.base_channel.matrix.shape[1] > self.base_channel.cap + 1
        ):
            raise InputError(
                "Only a square transition matrix can be made invariant, and none from a design is."
            )
        if self.frequencies:
            self._invariant(np.array(self.frequencies))

    @property
    def abilities(self) -> Abilities:
        """A cell's number depends on other cells if the perturbation is controlled or keeps the total."""
        alone = not self.controlled and not self.keep_total and self.totals == "perturbed"
        known = self.public_channel
        alone = alone and known is not None
        # A secret matrix, or an adjustment to the total, leaves it to the table what changes.
        fixed = None if self.keep_total else known
        return Abilities(
            repeatable=True,
            keyed_per_cell=alone,
            one_number=alone,
            changed=0.0 if fixed is None else 1.0 - fixed.stay(1, 2),
            entropy=0.0 if fixed is None else entropy_left(fixed),
            channels=() if fixed is None else (fixed,),
        )

    @property
    def base_channel(self) -> MatrixChannel:
        """The matrix as given, before it is made invariant."""
        if isinstance(self.matrix, PerturbationDesign):
            return self.matrix.channel()
        if isinstance(self.matrix, str):
            if self.matrix not in PRESETS:
                raise InputError(
                    f"There is no perturbation matrix {shortened(self.matrix)}; "
                    f"{choices(self.matrix, list(PRESETS))}."
                )
            return PRESETS[self.matrix]
        return MatrixChannel(self.matrix, self.residue_base)

    @property
    def public_channel(self) -> MatrixChannel | None:
        """The matrix in use, if it does not depend on the table."""
        if self.version == "plain":
            return self.base_channel
        return self._invariant(np.array(self.frequencies)) if self.frequencies else None

    def channel_for(self, table: Table) -> MatrixChannel:
        """The matrix in use for a table; unless it is public, it is as confidential as the table."""
        known = self.public_channel
        if known is not None:
            return known
        cells = table.values[_moving(table)]
        if not cells.size:
            return self.base_channel
        return self._invariant(frequencies_of(self.base_channel, cells))

    def draw(self, table: Table, rng: Chance) -> Release:
        counts = whole_counts(table, "Stochastic perturbation")
        channel = self.channel_for(table)
        if rng is None and channel.matrix[0, 0] < 1:
            raise InputError(
                "The perturbation matrix moves zeros, and cells without records have no key of their "
                "own; give a random generator ('rng')."
            )
        if rng is None and self.totals == "perturbed" and not table.inner.all():
            raise InputError(
                "Totals perturbed by the keys of their records would tell which parts are empty; use "
                "totals that are 'sums', or give a random generator ('rng')."
            )
        # No parameter enters the words: another matrix must not give new information about the same
        # records.
        random_words = uniform_words(table, rng, self.name)
        perturbed = counts.copy()
        moving = _moving(table)
        others = ~table.inner & ~_structural(table)
        perturbed[others] = perturb_by_words(counts[others], channel, random_words[others])
        drawn = random_words[moving]
        if self.controlled:
            drawn = self._even(table, channel, drawn, rng)
        cells = perturb_by_words(counts[moving], channel, drawn)
        adjusted = total_kept(counts[moving], cells, channel) if self.keep_total else cells
        perturbed[moving] = adjusted
        published = self._published(table, perturbed, int(moving.sum()))
        return released_sums(
            table,
            self,
            published,
            channel=None if self.keep_total else self.public_channel,
            notes=self._notes(),
        )

    def to_mapping(self) -> dict[str, Any]:
        """The method in the words of a policy file; what is left out has its default."""
        words = {"method": self.name, "version": self.version} | super().to_mapping()
        return words if self.frequencies else {k: v for k, v in words.items() if k != "frequencies"}

    def _invariant(self, frequency: Floats) -> MatrixChannel:
        base = self.base_channel
        make = invariant if self.version == "invariant" else calibrated
        return MatrixChannel(make(base.matrix, frequency), base.residue_base)

    def _even(
        self,
        table: Table,
        channel: MatrixChannel,
        random_words: Words,
        rng: np.random.Generator | None,
    ) -> Words:
        moving = _moving(table)

        def shift(cells: Indices) -> int:
            if rng is not None:
                return int(rng.integers(0, 2**64, dtype=np.uint64))
            assert table.keys is not None  # the words came from them
            summed = table.keys[moving][cells].sum(keepdims=True, dtype=np.uint64)
            return int(cell_words(summed, f"{self.name} shift")[0])

        return controlled_words(channel.rows_of(table.values[moving]), random_words, shift)

    def _published(self, table: Table, perturbed: Ints, cells: int) -> PublishedSums:
        """Totals and bounds, both from published and public information alone."""
        reach = self.public_channel or invariant_reach(self.base_channel)
        if self.totals == "perturbed":
            return safe_totals(table.axes, perturbed, reach, table.structural)
        low, high = _support(reach, perturbed)
        if self.keep_total:
            # A cell is adjusted by at most the change of the sum of all cells.
            row, column = np.nonzero(reach.matrix)
            spread = (cells + 1) * int(np.abs(column - row).max())
            adjusted = table.inner & (perturbed > reach.cap)
            low = np.where(adjusted, np.maximum(perturbed - spread, 0), low)
            high = np.where(adjusted, perturbed + spread, high)
        fixed = _structural(table)
        low, high = np.where(fixed, 0, low), np.where(fixed, 0, high)
        return added_totals(table.axes, perturbed, low, high)

    def _notes(self) -> tuple[str, ...]:
        how = (
            say("Numbers are changed at random by a fixed matrix of probabilities.")
            if self.version == "plain"
            else say(
                "Numbers are changed at random by a matrix of probabilities that leaves the distribution "
                "of counts as it is."
            )
        )
        totals = (
            say("Totals are the sums of the published numbers.")
            if self.totals == "sums"
            else say(
                "Totals are perturbed on their own, so the numbers may not add up to them; a total that "
                "does add up may be the sum of the published numbers."
            )
        )
        total_note = say("Large numbers were adjusted so that their sum is kept.")
        return (how, total_note, totals) if self.keep_total else (how, totals)


def _support(channel: MatrixChannel, published: Ints) -> tuple[Ints, Ints]:
    """The bounds of each published value, computed once for each distinct value."""
    values, inverse = np.unique(published, return_inverse=True)
    low, high = channel.support(values)
    return low[inverse].reshape(published.shape), high[inverse].reshape(published.shape)


def _structural(table: Table) -> Mask:
    if table.structural is None:
        return np.zeros(table.shape, dtype=np.bool_)
    return table.structural


def _moving(table: Table) -> Mask:
    """The inner cells that can hold anybody."""
    return np.asarray(table.inner & ~_structural(table))
