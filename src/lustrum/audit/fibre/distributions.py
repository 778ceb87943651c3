"""The probability of each value of each cell, given all that is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from lustrum.audit.belief.belief import Belief
from lustrum.audit.bounding.compute import bounds
from lustrum.audit.fibre.enumerate import NODES, tally
from lustrum.audit.fibre.margins import FibreMargins, check_limit
from lustrum.audit.fibre.sampler import ChainPlan, Chains, check_target, sample_blocks
from lustrum.audit.fibre.system import FibreBlock, FibreSystem
from lustrum.audit.fibre.two_way import TwoWay
from lustrum.audit.knowledge.facts import CellRef, ContradictionError, Knowledge
from lustrum.audit.knowledge.reduce import CONTRADICTION
from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.model.chance import Seed, any_generator
from lustrum.model.errors import check_known
from lustrum.numeric.arithmetic import log

# Convergence diagnostics of sampled chains: split R-hat and effective sample size.
#
# Gelman, Carlin, Stern, Dunson, Vehtari and Rubin (2013), *Bayesian Data Analysis*.


def split_rhat(chains: npt.ArrayLike) -> Floats:
    """R-hat of each quantity in an array of (chains, draws, quantities), each chain cut in halves.

    Near 1 where all halves agree; infinite where each half is constant at a different value; not a number
    where nothing ever moved, which proves nothing.

    >>> same = np.random.default_rng(1).random(size=(4, 500, 1))
    >>> bool(abs(split_rhat(same)[0] - 1) < 0.01), split_rhat(np.zeros((2, 8, 1))).tolist()
    (True, [nan])
    """
    halves = _halves(chains)
    draws = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = draws * halves.mean(axis=1).var(axis=0, ddof=1)
    pooled = (draws - 1) / draws * within + between / draws
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(pooled / within))


def effective_size(chains: npt.ArrayLike) -> Floats:
    """How many independent draws the chains are worth, for the mean of each quantity.

    Autocorrelations of the halves are pooled and summed in pairs until a pair is negative (Geyer 1992,
    initial positive and monotone sequence). Not a number where nothing ever moved.

    >>> free = np.random.default_rng(1).random(size=(4, 1000, 1))
    >>> bool(3000 < effective_size(free)[0] < 5000)
    True
    """
    halves = _halves(chains)
    count, draws, _ = halves.shape
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    pooled = (draws - 1) / draws * within + between
    centred = halves - halves.mean(axis=1, keepdims=True)
    shortest = log(10.0) / log(max(count * draws, 10))
    time = np.maximum(2.0 * _summed_pairs(centred, within, pooled) - 1.0, shortest)
    return np.where(pooled > 0, count * draws / time, np.nan)


def _summed_pairs(centred: Floats, within: Floats, pooled: Floats) -> Floats:
    """The sum of the pairs of autocorrelations before the first that is not positive, none above the last.

    Lag by lag, by plain sums, for the quantities that still go on: few lags are needed where chains mix.
    """
    draws = centred.shape[1]
    total = np.zeros(pooled.size)
    least = np.full(pooled.size, np.inf)
    on = np.flatnonzero(pooled > 0)
    for lag in range(0, draws - draws % 2, 2):
        if on.size == 0:
            break
        values = np.ascontiguousarray(centred[:, :, on])
        pair = np.zeros(on.size)
        for k in (lag, lag + 1):
            products = values[:, : draws - k] * values[:, k:]
            shared = products.sum(axis=1).mean(axis=0) / (draws - 1)
            pair += 1.0 if k == 0 else 1.0 - (within[on] - shared) / pooled[on]
        going = pair > 0
        on = on[going]
        least[on] = np.minimum(least[on], pair[going])
        total[on] += least[on]
    return total


def _halves(chains: npt.ArrayLike) -> Floats:
    values = np.asarray(chains, dtype=np.float64)
    if values.ndim != 3 or values.shape[1] < 4:
        raise InputError("Chains come as (chains, draws, quantities), with four draws at least.")
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]], axis=0)


Pairs = tuple[Ints, Floats]

METHODS = ("auto", "exact", "sample")

_TRY = 3_000_000  # values tried before sampling is expected to be quicker
_WIDE = 3000  # enumeration is not tried for blocks with more columns
_GOOD = 1.05  # chains agree up to this R-hat


@dataclass(frozen=True, eq=False)
class CellDistributions:
    """For each cell the values it can have and how probable each is.

    ``exact`` cells were computed, not sampled: their R-hat is 1 and their effective size infinite. A
    sampled cell lists the values that occurred; its R-hat and size are NaN where it never moved. ``tables``
    is the number of tables in the fibre, where all of them were counted. Where ``stopped`` is set, fewer
    draws were made than requested.
    """

    known: Knowledge
    belief: Belief
    exact: Mask
    effective: Floats
    rhat: Floats
    target: str
    tables: int | None
    draws: int
    chains: int
    stopped: bool

    def __post_init__(self) -> None:
        for name in ("exact", "effective", "rhat"):
            array = getattr(self, name).view()
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        how = "exact"
        if not bool(self.exact.all()):
            how = f"{int((~self.exact).sum())} sampled, R-hat up to {self.worst_rhat:.3f}"
        return f"CellDistributions({len(self)} cells, {self.target}, {how})"

    def __len__(self) -> int:
        return int(self.exact.size)

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat of any cell that moved, or 1."""
        moved = self.rhat[~np.isnan(self.rhat)]
        return float(moved.max(initial=1.0))

    @property
    def agreed(self) -> bool:
        """Whether the chains agree on every cell: no R-hat above 1.05."""
        return not self.stopped and self.worst_rhat <= _GOOD

    def of(self, ref: CellRef) -> Pairs:
        """The values of one cell and their probabilities."""
        return self.belief.distribution(self.known.cell(ref))


def distribution(
    given: Knowledge | FibreMargins,
    target: Literal["uniform", "hypergeometric"] = "uniform",
    method: Literal["auto", "exact", "sample"] = "auto",
    *,
    rng: Seed = None,
    draws: int = 1000,
    chains: int = 4,
    burn: int | None = None,
    thin: int | None = None,
    start: npt.ArrayLike | None = None,
    counted: npt.ArrayLike | None = None,
    nodes: int | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> CellDistributions:
    """How probable each value of each cell is, if tables of the fibre have the target distribution.

    Uniform: every table is equally probable. Hypergeometric: the weight of a table is one over the product
    of the factorials of its inner cells; ``counted`` marks these cells where the knowledge does not come
    from tables. Two-way tables and small blocks are computed exactly; the rest is sampled, unless
    ``method`` says otherwise. An exact computation tries at most this many ``nodes``.

    >>> found = distribution(FibreMargins.two_way([3, 2], [2, 3]))
    >>> found, found.tables
    (CellDistributions(4 cells, uniform, exact), 3)
    >>> values, chances = found.of(0)
    >>> values.tolist(), chances.round(6).tolist()
    ([0, 1, 2], [0.333333, 0.333333, 0.333333])
    >>> distribution(FibreMargins.two_way([3, 2], [2, 3]), "hypergeometric").of(0)[1].round(6).tolist()
    [0.1, 0.6, 0.3]
    """
    check_known((method,), METHODS, "There is no method")
    if nodes is not None:
        check_limit("nodes", nodes)
    plan = ChainPlan(target, draws, chains, burn, thin, workers, progress, stop)
    system = FibreSystem.of(given, counted)
    check_target(system, plan)
    rows = [_Row.settled(v) for v in system.settled.tolist()]
    left, tables = _solved(system, plan, method, nodes, rows)
    effective, rhat = np.full(len(rows), np.inf), np.ones(len(rows))
    met: Chains | None = None
    if left:
        tables = None
        met = sample_blocks(system, left, plan, any_generator(rng), start)
        if met.tables.shape[1] < 4:
            raise InputError("The sampling was stopped before it had four draws to show.")
        cells = np.sort(np.concatenate([b.cells for b in left]))
        effective[cells] = effective_size(met.tables[:, :, cells])
        rhat[cells] = split_rhat(met.tables[:, :, cells])
        for cell in cells.tolist():
            values, counts = np.unique(met.tables[:, :, cell], return_counts=True)
            rows[cell] = _Row(values, counts / counts.sum())
    exact = np.ones(len(rows), dtype=np.bool_)
    for block in left:
        exact[block.cells] = False
    return CellDistributions(
        known=system.known,
        belief=_belief(rows, system.known.decimals),
        exact=exact,
        effective=effective,
        rhat=rhat,
        target=target,
        tables=tables,
        draws=0 if met is None else met.tables.shape[1],
        chains=0 if met is None else plan.chains,
        stopped=met is not None and met.stopped,
    )


@dataclass(frozen=True, eq=False)
class _Row:
    values: Ints
    chances: Floats

    @classmethod
    def settled(cls, value: int) -> _Row:
        return cls(np.array([value], dtype=np.int64), np.ones(1))


def _solved(
    system: FibreSystem, plan: ChainPlan, method: str, nodes: int | None, rows: list[_Row]
) -> tuple[list[FibreBlock], int | None]:
    """Fill in the rows of all blocks that can be computed; returns the others and the number of tables."""
    if method == "sample":
        return list(system.blocks), None
    left: list[FibreBlock] = []
    tables: int | None = 1
    for block in system.blocks:
        solution = _exact(
            block, plan.hypergeometric, nodes or (_TRY if method == "auto" else NODES)
        )
        if solution is None and method == "exact":
            raise InputError(
                "There are too many tables to list them all; allow more 'nodes', or sample them."
            )
        if solution is None:
            left.append(block)
            continue
        cell_rows, count = solution
        if count == 0:
            raise ContradictionError(CONTRADICTION + "no table of whole numbers fits.")
        tables = None if tables is None or count is None else tables * count
        for cell, row in zip(block.cells.tolist(), cell_rows, strict=True):
            rows[cell] = row
    return left, tables


def _exact(
    block: FibreBlock, hypergeometric: bool, nodes: int
) -> tuple[Sequence[_Row], int | None] | None:
    """By formula, dynamic programming or enumeration, whichever works first; None if none does."""
    table = None if hypergeometric and not block.counted.all() else TwoWay.of(block)
    if table is not None:
        # A step of dynamic programming costs as much as ten values of an enumeration.
        by_formula = hypergeometric and table.free
        solution = (
            table.hypergeometric()
            if by_formula
            else table.exact(hypergeometric=hypergeometric, steps=max(1, nodes // 10))
        )
        if solution is not None:
            starts = zip(
                solution.low.tolist(), solution.probabilities, strict=bool(solution.probabilities)
            )
            return [_Row(low + np.arange(p.size), p) for low, p in starts], solution.total
    if len(block) > _WIDE:
        return None
    weighed = tally(block, hypergeometric=hypergeometric, nodes=nodes)
    if not weighed.complete:
        return None
    if weighed.count == 0:
        return [], 0
    rows = []
    for low, sums in zip(block.low[: block.cells.size].tolist(), weighed.sums, strict=False):
        rows.append(_Row(low + np.arange(sums.size), sums / sums.sum()))
    return rows, weighed.count


def _belief(rows: Sequence[_Row], decimals: int) -> Belief:
    sizes = [r.values.size for r in rows]
    return Belief.of_lists(
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        np.concatenate([r.values for r in rows]) if rows else np.zeros(0, dtype=np.int64),
        np.concatenate([r.chances for r in rows]) if rows else np.zeros(0),
        decimals=decimals,
    )


_MOST = 10**7


@dataclass(frozen=True)
class Unimodal:
    """A prior that peaks in the centre of the feasible range and falls evenly to both ends.

    The paper (Duncan, Fienberg, Krishnan, Padman and Roehrig 2001, section 4) asks for a peak at the
    centre and falling tails, as more tables share a middle value than an end; it gives no formula. This
    is the triangle ``w(x) = min(x - low + 1, high - x + 1)``, positive at both ends.

    >>> Unimodal().weights(np.arange(5), np.zeros(5, int), np.full(5, 4)).tolist()
    [1.0, 2.0, 3.0, 2.0, 1.0]
    """

    def weights(self, values: Ints, low: Ints, high: Ints) -> Floats:
        """The height of the triangle."""
        inside = np.minimum(values - low + 1, high - values + 1)
        return np.asarray(np.maximum(inside, 0), dtype=np.float64)


def unimodal(
    given: Knowledge | FibreMargins, mode: npt.ArrayLike | None = None, *, integer: bool = False
) -> Belief:
    """A triangle over the feasible range of each cell, from bounds alone.

    Its peak is at the centre of the range, or at a ``mode`` for each cell, such as its expected value
    under a log-linear model; it falls in a straight line to just beyond both ends.

    >>> belief = unimodal(FibreMargins.two_way([3, 2], [2, 3]))
    >>> belief.distribution(0)[0].tolist(), belief.distribution(0)[1].tolist()
    ([0, 1, 2], [0.25, 0.5, 0.25])
    """
    if not isinstance(given, (Knowledge, FibreMargins)):
        raise InputError("A belief needs Knowledge or Margins to be given.")
    known = given.knowledge() if isinstance(given, FibreMargins) else given
    if not known.whole:
        raise InputError("A belief runs over whole numbers; this knowledge is about real ones.")
    cell_bounds = bounds(known, integer=integer)
    low, high = cell_bounds.low, cell_bounds.high
    if not bool((np.isfinite(low) & np.isfinite(high)).all()):
        raise InputError("A cell has no upper bound, so no centre; bound it.")
    if float(cell_bounds.count.sum()) > _MOST:
        raise InputError("There are too many possible values to write out; bound the cells more.")
    peak = (low + high) / 2
    if mode is not None:
        try:
            given_mode = np.asarray(mode, dtype=np.float64).ravel()
        except (TypeError, ValueError):
            given_mode = np.zeros(0)
        if given_mode.shape != low.shape or np.isnan(given_mode).any():
            raise InputError(f"'mode' must hold a number for each of the {low.size} cells.")
        peak = np.clip(given_mode, low, high)
    sizes = cell_bounds.count.astype(np.int64)
    row = np.repeat(np.arange(sizes.size), sizes)
    pointer = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    values = np.arange(pointer[-1]) - pointer[row] + low[row].astype(np.int64)
    rising = (values - low[row] + 1) / (peak[row] - low[row] + 1)
    falling = (high[row] + 1 - values) / (high[row] + 1 - peak[row])
    weights = np.minimum(rising, falling)
    weights /= np.add.reduceat(weights, pointer[:-1])[row]
    return Belief.of_lists(pointer, values, weights, decimals=known.decimals)
