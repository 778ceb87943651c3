"""Markov perturbation of whole tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from lustrum.audit import MarkovSquare
from lustrum.audit.fibre.margins import FibreMargins, junction_tree
from lustrum.audit.fibre.moves import free_sets
from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Array, Floats, Ints, Mask
from lustrum.model.chance import Chance
from lustrum.model.channel import ObservedChannel
from lustrum.model.parameters import parameter
from lustrum.model.text import say
from lustrum.numeric.arithmetic_loops import exp, log, log1p, log_gamma
from lustrum.numeric.compiled import compiled
from lustrum.numeric.distributions import binomial, convolved
from lustrum.numeric.stream import below_of, own_next_word, unit_of
from lustrum.protect.abilities import Abilities
from lustrum.protect.method import TABULAR, MethodSpec, Stage, released, whole_counts
from lustrum.protect.totals.inner_table import InnerTable, Keep, margins_parameter

# Which boxes of cells can be changed without changing any kept margin.
#
# A box is spanned by groups of axes: two configurations of each group, all other axes fixed. Its corners go
# up and down in turn, so the changes cancel when summed over any one of its groups. With two groups it is the
# elementary data square of Duncan and Fienberg (1999); with all three axes of a cube one by one it keeps all
# two-way margins.


Axes = tuple[int, ...]

_MOST = 8  # groups of a box, so at most 256 corners


@dataclass(frozen=True, eq=False)
class Moves:
    """Families of boxes, as lists of offsets into the flat table; see the kernels for the layout.

    Decomposable margins have a family for each edge of their junction tree: the axes on its two sides span
    the squares, and these connect all tables with the same margins (Dobra 2003). Other margins have a
    family for each smallest set of axes that is in no margin.
    """

    families: Ints
    groups: Ints
    offsets: Ints
    shape: tuple[int, ...]

    @classmethod
    def of(cls, shape: tuple[int, ...], cliques: Sequence[Axes]) -> Moves:
        """All families of boxes that keep these margins."""
        spans: list[tuple[Axes, tuple[Axes, ...]]] = []
        tree = junction_tree(cliques, len(shape))
        if tree is not None:
            spans = [(edge.separator, (edge.left, edge.right)) for edge in tree]
        else:
            margins = FibreMargins.of(np.zeros(shape, dtype=np.int64), cliques)
            for free in free_sets(margins):
                rest = tuple(a for a in range(len(shape)) if a not in free)
                spans.append((rest, tuple((a,) for a in free)))
        families: list[tuple[int, int]] = []
        groups: list[tuple[int, int, int]] = []
        offsets, begin = [], 0
        for fixed, pairs in spans:
            if any(int(np.prod([shape[a] for a in axes], dtype=np.int64)) < 2 for axes in pairs):
                continue
            if len(pairs) > _MOST:
                raise InputError(f"Markov perturbation has boxes over at most {_MOST} variables.")
            families.append((len(groups), len(groups) + len(pairs) + 1))
            for axes, paired in ((fixed, 0), *((p, 1) for p in pairs)):
                places = _offsets(shape, axes)
                groups.append((begin, places.size, paired))
                offsets.append(places)
                begin += places.size
        if not families:
            raise InputError(
                "The margins to keep fix every cell of this table; keep fewer of them."
            )
        return cls(
            np.array(families, dtype=np.int64),
            np.array(groups, dtype=np.int64),
            np.concatenate(offsets),
            shape,
        )

    @property
    def odd(self) -> Mask:
        """Which corners of the largest box go down when the first goes up."""
        largest = max(int(self.groups[slice(*f), 2].sum()) for f in self.families)
        return np.array([bin(k).count("1") % 2 == 1 for k in range(2**largest)])

    def disjoint(self, rng: np.random.Generator) -> Ints:
        """Boxes of one family, drawn at random, of which no two share a cell; one a row.

        The configurations of every group are shuffled and paired; an odd one is left out.
        """
        family = self.families[int(rng.integers(len(self.families)))]
        boxes = np.zeros((1, 1), dtype=np.int64)
        for begin, count, paired in self.groups[slice(*family)].tolist():
            offsets = self.offsets[begin : begin + count]
            if paired:
                mixed = rng.permutation(offsets)[: count - count % 2]
                # The first half of the corners takes one of the pair, the second half the other.
                ends = mixed.reshape(-1, 1, 2).repeat(boxes.shape[1], axis=1)
                corners = boxes[:, None, :, None] + ends[None]
                boxes = corners.transpose(0, 1, 3, 2).reshape(-1, 2 * boxes.shape[1])
            else:
                boxes = (boxes[:, None, :] + offsets[None, :, None]).reshape(-1, boxes.shape[1])
        return np.ascontiguousarray(boxes)


def _offsets(shape: tuple[int, ...], axes: Axes) -> Ints:
    """The places in the flat table of the configurations of some axes, with all other axes at 0."""
    out = np.zeros(1, dtype=np.int64)
    for axis in axes:
        stride = int(np.prod(shape[axis + 1 :], dtype=np.int64))
        out = (out[:, None] + stride * np.arange(shape[axis], dtype=np.int64)).ravel()
    return out


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
    keep: Keep = margins_parameter(
        "Margins that stay as they are, each a list of variables; by default those shown."
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

    def draw(self, table: Table, rng: Chance) -> Release:
        """Perturb the inner cells of a table of counts, and add its totals up."""
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


# The loops of Markov perturbation, compiled at first use.
#
# Tests compare each with plain Python that makes the same moves from the same stream.

LIGHT = 12.0  # up to this expected number a binomial is counted up from 0


@compiled
def _few(n: int, p: float, u: float) -> int:  # pragma: no cover
    """The binomial quantile of ``u``, counted up from 0."""
    odds = p / (1.0 - p)
    mass = exp(n * log1p(-p))
    k = 0
    while u >= mass and k < n:
        u -= mass
        mass *= odds * (n - k) / (k + 1)
        k += 1
    return k


@compiled
def _many(n: int, p: float, u: float) -> int:  # pragma: no cover
    """A binomial from ``u``, by its probabilities from the mode outwards, above and below in turn."""
    mode = int((n + 1) * p)
    odds = p / (1.0 - p)
    mass = exp(
        log_gamma(n + 1.0)
        - log_gamma(mode + 1.0)
        - log_gamma(n - mode + 1.0)
        + mode * log(p)
        + (n - mode) * log1p(-p)
    )
    u -= mass
    above, below, up, down = mode, mode, mass, mass
    while u >= 0.0 and (up > 1e-300 or down > 1e-300):
        up *= odds * (n - above) / (above + 1)
        above += 1
        u -= up
        if u < 0.0:
            return above
        down *= below / (odds * (n - below + 1))
        below -= 1
        u -= down
        if u < 0.0:
            return below
    return mode


@compiled
def draw_binomial(n: int, p: float, state: Array) -> int:  # pragma: no cover
    """How many of ``n`` move when each does with probability ``p``."""
    if n == 0 or p <= 0.0:
        return 0
    if p >= 1.0:
        return n
    u = unit_of(own_next_word(state))
    if n == 1:
        return 1 if u < p else 0
    small = min(p, 1.0 - p)
    k = _few(n, small, u) if n * small < LIGHT else _many(n, small, u)
    return k if small == p else n - k


@compiled
def _step(down: int, up: int, theta: float, unit: bool, state: Array) -> int:  # pragma: no cover
    """A change of mean 0 that takes at most ``down`` away and adds at most ``up``."""
    movers = min(down, up)
    if movers == 0:
        return 0
    if unit:
        u = unit_of(own_next_word(state))
        return 1 if u < theta else (-1 if u < 2.0 * theta else 0)
    stay = theta * movers
    return draw_binomial(up, stay / up, state) - draw_binomial(down, stay / down, state)


@compiled
def _moved(  # pragma: no cover
    x: Array, cells: Array, size: int, odd: Array, theta: float, unit: bool, state: Array
) -> int:
    """One step of the box whose corners are the first ``size`` cells; 1 if it changed the table."""
    down, up = x[cells[0]], x[cells[1]]
    for k in range(2, size):
        value = x[cells[k]]
        if odd[k]:
            up = min(up, value)
        else:
            down = min(down, value)
    t = _step(down, up, theta, unit, state)
    if t == 0:
        return 0
    for k in range(size):
        x[cells[k]] += -t if odd[k] else t
    return 1


@compiled
def run_random(  # pragma: no cover
    x: Array,
    families: Array,
    groups: Array,
    offsets: Array,
    odd: Array,
    theta: float,
    unit: bool,
    steps: int,
    state: Array,
) -> int:
    """Apply this many random boxes; returns how many changed the table.

    Family ``f`` has the groups ``families[f, 0]`` to ``families[f, 1]``; group ``g`` is a list of
    ``groups[g, 1]`` offsets from ``groups[g, 0]`` on, of which a box takes two if ``groups[g, 2]`` and
    one otherwise. ``odd`` says which corners of a box go down when the others go up.
    """
    mask = np.uint64(0xFFFFFFFF)
    cells = np.empty(odd.size, dtype=np.int64)
    changed = 0
    for _ in range(steps):
        f = below_of(own_next_word(state) & mask, families.shape[0]) if families.shape[0] > 1 else 0
        cells[0] = 0
        size = 1
        for g in range(families[f, 0], families[f, 1]):
            begin, count = groups[g, 0], groups[g, 1]
            if count == 1:
                cells[0] += offsets[begin]
                continue
            bits = own_next_word(state)
            first = below_of(bits & mask, count)
            here = offsets[begin + first]
            if groups[g, 2] == 0:
                for k in range(size):
                    cells[k] += here
                continue
            second = below_of(bits >> np.uint64(32), count - 1)
            second += second >= first
            there = offsets[begin + second]
            for k in range(size):
                cells[size + k] = cells[k] + there
                cells[k] += here
            size *= 2
        changed += _moved(x, cells, size, odd, theta, unit, state)
    return changed


@compiled
def run_boxes(  # pragma: no cover
    x: Array, boxes: Array, odd: Array, theta: float, unit: bool, state: Array
) -> int:
    """Apply the listed boxes, one a row; returns how many changed the table."""
    changed = 0
    for row in range(boxes.shape[0]):
        changed += _moved(x, boxes[row], boxes.shape[1], odd, theta, unit, state)
    return changed
