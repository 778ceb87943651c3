"""Markov chains on a fibre, and the tables that they visit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.audit.fibre.enumerate import log_factorials
from lustrum.audit.fibre.margins import FibreMargins, check_limit, junction_tree
from lustrum.audit.fibre.moves import FibreMoves, Lines, Squares
from lustrum.audit.fibre.system import FibreBlock, FibreSystem
from lustrum.audit.knowledge.facts import ContradictionError, Knowledge
from lustrum.audit.knowledge.reduce import CONTRADICTION
from lustrum.model import InputError, InternalError
from lustrum.model.arrays import Floats, Indices, Ints, Words
from lustrum.model.chance import Seed, any_generator
from lustrum.model.errors import check_known
from lustrum.model.workers import workers as processors
from lustrum.numeric.solve.highs import FINE, Program, single_optimum, solved

# The tables from which chains start, all far from the middle of the fibre.


_COST = 1000


def joined_table(margins: FibreMargins, rng: np.random.Generator) -> Ints:
    """A table with the given decomposable margins, which are joined one after the other along their tree.

    Each edge of the tree is a two-way table for every configuration of the separator. It is filled from a
    corner with rows and columns in random order, so that it is extreme.

    >>> joined_table(FibreMargins.two_way([3, 2], [1, 4]), np.random.default_rng(1)).sum(axis=1).tolist()
    [3, 2]
    """
    tree = junction_tree(margins.cliques, len(margins.shape))
    if tree is None:
        raise InternalError("these margins have no junction tree")
    axes = list(margins.cliques[0])
    table = margins.sums[margins.cliques[0]]
    for edge in tree:
        shared = list(edge.separator)
        mine = [a for a in axes if a not in shared]
        theirs = [a for a in edge.child if a not in shared]
        sizes = [[margins.shape[a] for a in part] for part in (shared, mine, theirs)]
        flat = [int(np.prod(s, dtype=np.int64)) for s in sizes]
        left = table.transpose([axes.index(a) for a in shared + mine]).reshape(flat[0], flat[1])
        child = margins.sums[edge.child]
        right = child.transpose([edge.child.index(a) for a in shared + theirs])
        right = right.reshape(flat[0], flat[2])
        joined = np.stack([_corner(r, c, rng) for r, c in zip(left, right, strict=True)])
        axes = shared + mine + theirs
        table = joined.reshape([size for part in sizes for size in part])
    return np.ascontiguousarray(table.transpose(np.argsort(axes, kind="stable")))


def _corner(rows: Ints, columns: Ints, rng: np.random.Generator) -> Ints:
    """The north-west corner rule, with rows and columns shuffled."""
    out = np.zeros((rows.size, columns.size), dtype=np.int64)
    r, c = rows.copy(), columns.copy()
    down, across = iter(rng.permutation(r.size).tolist()), iter(rng.permutation(c.size).tolist())
    i, j = next(down, None), next(across, None)
    while i is not None and j is not None:
        step = min(r[i], c[j])
        out[i, j] += step
        r[i] -= step
        c[j] -= step
        if r[i] == 0:
            i = next(down, None)
        else:
            j = next(across, None)
    return out


_STEPS, _NODES = 2_000_000, 20_000  # far more than any first table has taken


def any_table(block: FibreBlock, rng: np.random.Generator) -> Ints:
    """A table of a block that is extreme in a random direction, by integer programming."""
    # Whole costs, and limits that count steps, not seconds: the same start however busy the machine.
    cost = rng.integers(-_COST, _COST, size=len(block), endpoint=True)
    program = block.matrix, (block.totals, block.totals), (block.low, block.high)
    # The corner with the least cost is the same everywhere, and nearly always whole.
    irregular = single_optimum(cost.astype(np.float64))
    fine = Program(
        *program, irregular, simplex_iteration_limit=_STEPS, dual_feasibility_tolerance=FINE
    )
    corner = solved(fine)
    if corner is not None and block.holds(np.rint(corner).astype(np.int64)):
        return np.rint(corner).astype(np.int64)
    # Any table will do; no proof of optimality is needed.
    every = np.arange(len(block))
    model = Program(*program, cost, every, mip_max_nodes=_NODES, mip_rel_gap=0.5)
    point = solved(model)
    if model.ended == "infeasible":
        raise ContradictionError(CONTRADICTION + "no table of whole numbers fits.")
    if point is not None:
        table: Ints = np.rint(point).astype(np.int64)
        if block.holds(table):
            return table
    raise InputError(
        f"No first table was found within {_NODES:,} programs; give one that fits as 'start'."
    )


TARGETS = ("uniform", "hypergeometric")

_ROOM = 2**31  # the most bytes of all kept tables
_ROUNDS = 20  # how often progress is reported


@dataclass(frozen=True)
class ChainPlan:
    """How long the chains run: ``burn`` draws are thrown away, and ``thin`` moves lie between two draws.

    Without ``burn`` half as many draws are thrown away as are kept; without ``thin`` there are ten
    moves for each open cell between two draws. The result depends on the seed, never on ``workers``.
    """

    target: str = "uniform"
    draws: int = 1000
    chains: int = 4
    burn: int | None = None
    thin: int | None = None
    workers: int | None = None
    progress: Callable[[int, int], None] | None = None
    stop: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        check_known((self.target,), TARGETS, "There is no target")
        least = {"draws": 4, "chains": 1, "burn": 0, "thin": 1, "workers": 1}
        for name, smallest in least.items():
            value = getattr(self, name)
            if value is not None or name in ("draws", "chains"):
                check_limit(name, value, smallest)

    @property
    def hypergeometric(self) -> bool:
        return self.target == "hypergeometric"


@dataclass(frozen=True, eq=False)
class Chains:
    """Tables visited by several chains: ``tables[c, d]`` is draw ``d`` of chain ``c``, all cells.

    ``moved`` is the share of moves that changed a table. Where ``stopped`` is set, the chains are shorter
    than requested.
    """

    tables: Ints
    moved: float
    stopped: bool


@dataclass(frozen=True, eq=False)
class _Job:
    """Moves, one table for each chain to start from, and the cells that are recorded."""

    moves: FibreMoves
    starts: tuple[Ints, ...]
    states: tuple[Words, ...]
    cells: Indices
    logs: Floats
    thin: int


def sample_fibre(
    given: Knowledge | FibreMargins,
    *,
    target: str = "uniform",
    rng: Seed = None,
    draws: int = 1000,
    chains: int = 4,
    burn: int | None = None,
    thin: int | None = None,
    start: npt.ArrayLike | None = None,
    counted: npt.ArrayLike | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Ints:
    """Tables that fit the knowledge, as an array of (chains, draws, cells).

    Uniform, or proportional to one over the product of the factorials of all inner cells, which is the
    distribution under the log-linear model of the margins (Diaconis and Sturmfels 1998).

    >>> tables = sample_fibre(FibreMargins.two_way([3, 2], [1, 4]), rng=1, draws=10)
    >>> tables.shape, tables.reshape(-1, 2, 2).sum(axis=1).max(axis=0).tolist()
    ((4, 10, 4), [1, 4])
    """
    plan = ChainPlan(target, draws, chains, burn, thin, workers, progress, stop)
    system = FibreSystem.of(given, counted)
    return sample_blocks(system, system.blocks, plan, any_generator(rng), start).tables


def sample_blocks(
    system: FibreSystem,
    blocks: Sequence[FibreBlock],
    plan: ChainPlan,
    rng: np.random.Generator,
    start: npt.ArrayLike | None = None,
) -> Chains:
    """Sample some blocks of a system; all other cells keep their lower bounds."""
    check_target(system, plan)
    cells = len(system.known)
    if plan.chains * plan.draws * cells * 8 > _ROOM:
        raise InputError(
            "This many draws of this many cells take too much memory; ask for fewer draws."
        )
    first = None if start is None else _checked(start, system)
    jobs = _jobs(system, blocks, plan, rng, first)
    burn = plan.draws // 2 if plan.burn is None else plan.burn
    out = np.empty((plan.chains, plan.draws, cells), dtype=np.int64)
    out[:] = system.settled
    total = burn + plan.draws
    step = max(1, -(-total // _ROUNDS))
    done, changed = 0, 0
    pool = ThreadPoolExecutor(min(plan.workers or processors(), max(1, plan.chains * len(jobs))))
    with pool:
        while done < total and jobs:
            if plan.stop is not None and plan.stop():
                break
            end = min(total, done + step, burn if done < burn else total)
            tasks = [
                pool.submit(_advance, job, chain, end - done, plan.hypergeometric)
                for job in jobs
                for chain in range(plan.chains)
            ]
            for k, task in enumerate(tasks):
                met, moves = task.result()
                changed += moves
                if done >= burn:
                    out[k % plan.chains, done - burn : end - burn, jobs[k // plan.chains].cells] = (
                        met.T
                    )
            done = end
            if plan.progress is not None:
                plan.progress(done, total)
    _follow(system, blocks, out)
    proposals = sum(job.thin for job in jobs) * plan.chains * done
    stopped = bool(jobs) and done < total
    draws = max(0, done - burn) if jobs else plan.draws
    return Chains(out[:, :draws], changed / proposals if proposals else 0.0, stopped)


def check_target(system: FibreSystem, plan: ChainPlan) -> None:
    """The hypergeometric target needs counts."""
    if plan.hypergeometric and any(bool((b.low[b.counted] < 0).any()) for b in system.blocks):
        raise InputError("The hypergeometric target needs counts; a cell here may be below 0.")


def _advance(job: _Job, chain: int, draws: int, hypergeometric: bool) -> tuple[Ints, int]:
    met = np.empty((draws, job.cells.size), dtype=np.int64)
    changed = job.moves.run(
        job.starts[chain],
        job.states[chain],
        hypergeometric=hypergeometric,
        logs=job.logs,
        thin=job.thin,
        out=met,
    )
    return met, changed


def _follow(system: FibreSystem, blocks: Sequence[FibreBlock], out: Ints) -> None:
    """Compute the hidden margins of a cube from its cells: squares move only these."""
    structure, margins = system.known.structure, system.margins
    if structure is None or margins is None or not blocks:
        return
    cells = np.concatenate([b.cells for b in blocks])
    sums = np.sort(cells[cells >= margins.size])
    if sums.size:
        rows = structure.matrix[sums].astype(np.int64)
        for chain in out:
            chain[:, sums] = (rows @ chain[:, : margins.size].T).T


def _by_squares(system: FibreSystem, blocks: Sequence[FibreBlock], plan: ChainPlan) -> bool:
    """Whether squares connect the tables, and the target weighs inner cells as squares do: each once."""
    margins = system.margins
    if not blocks or margins is None or margins.possible is not None or not margins.decomposable:
        return False
    return not plan.hypergeometric or all(
        np.array_equal(b.counted[: b.cells.size], b.cells < margins.size) for b in blocks
    )


def _jobs(
    system: FibreSystem,
    blocks: Sequence[FibreBlock],
    plan: ChainPlan,
    rng: np.random.Generator,
    first: Ints | None,
) -> list[_Job]:
    """One job for all blocks where squares connect the tables, otherwise one for each block."""
    margins = system.margins
    job_parts: list[tuple[FibreMoves, tuple[Ints, ...], Indices, Floats, int]] = []
    if margins is not None and _by_squares(system, blocks, plan):
        cells = np.concatenate([b.cells for b in blocks])
        inner = np.sort(cells[cells < margins.size])
        squares = Squares.of(margins, inner)
        starts = tuple(
            (joined_table(margins, rng).ravel() if first is None else first[: margins.size].copy())
            for _ in range(plan.chains)
        )
        biggest = max(blocks, key=lambda b: int(b.high.max()))
        job_parts.append((squares, starts, inner, log_factorials(biggest), 10 * inner.size))
        return _with_streams(job_parts, plan, rng)
    for block in blocks:
        starts = tuple(
            any_table(block, rng) if first is None else block.extended(first[block.cells])
            for _ in range(plan.chains)
        )
        lines, logs = Lines.of(block, margins), log_factorials(block)
        job_parts.append((lines, starts, block.cells, logs, 10 * len(block)))
    return _with_streams(job_parts, plan, rng)


def _with_streams(
    job_parts: Sequence[tuple[FibreMoves, tuple[Ints, ...], Indices, Floats, int]],
    plan: ChainPlan,
    rng: np.random.Generator,
) -> list[_Job]:
    """Every chain of every job gets its own random stream, drawn before any thread starts."""
    jobs = []
    for moves, starts, cells, logs, thin in job_parts:
        states = tuple(
            rng.integers(2**64, size=2, dtype=np.uint64) | np.array([0, 1], dtype=np.uint64)
            for _ in range(plan.chains)
        )
        jobs.append(_Job(moves, starts, states, cells, logs, plan.thin or thin))
    return jobs


def _checked(start: npt.ArrayLike, system: FibreSystem) -> Ints:
    values = np.asarray(start)
    if values.size != len(system.known) or values.dtype.kind not in "iu":
        raise InputError(
            f"A table to start from has {len(system.known)} whole numbers, one a cell."
        )
    table = values.astype(np.int64).ravel()
    known = system.known
    sums = known.matrix @ table
    fits = ((known.low <= table) & (table <= known.high)).all() and (
        (known.fact_low <= sums) & (sums <= known.fact_high)
    ).all()
    if not fits:
        raise InputError("The table to start from does not fit what is known.")
    return table
