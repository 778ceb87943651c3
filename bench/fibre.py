"""How fast fibres are sampled, as markdown tables.

Run it from the root of the project: ``python bench/fibre.py``. Moves are counted on one core, in
processor seconds so that a busy machine does not matter, beside the same moves in a plain numpy loop;
effective samples in seconds of the clock, with all that comes before them.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations

import numpy as np
from parts.figures import record

from lustrum.audit import Knowledge
from lustrum.audit.fibre import FibreMargins, distribution
from lustrum.audit.fibre.enumerate import log_factorials
from lustrum.audit.fibre.moves import FibreMoves, Lines, Squares
from lustrum.audit.fibre.system import FibreSystem


def plain_loop(table: np.ndarray, moves: int, rng: np.random.Generator, hyper: bool) -> float:
    """Moves a second of basic moves as one would write them first."""
    x = table.copy()
    rows, columns = x.shape
    begin = time.process_time()
    for _ in range(moves):
        i, j = rng.choice(rows, 2, replace=False)
        k, m = rng.choice(columns, 2, replace=False)
        low, high = -min(x[i, k], x[j, m]), min(x[i, m], x[j, k])
        if hyper:
            t = rng.choice((-1, 1))
            if not low <= t <= high:
                continue
            up, down = ((i, k), (j, m)), ((i, m), (j, k))
            if t < 0:
                up, down = down, up
            ratio = x[down[0]] * x[down[1]] / ((x[up[0]] + 1) * (x[up[1]] + 1))
            if rng.random() >= ratio:
                continue
        else:
            t = rng.integers(low, high + 1)
        x[i, k] += t
        x[j, m] += t
        x[i, m] -= t
        x[j, k] -= t
    return moves / (time.process_time() - begin)


def rate(moves: FibreMoves, x: np.ndarray, logs: np.ndarray, hyper: bool, count: int) -> float:
    """Moves a second of a compiled kernel, the best of three runs."""
    best = 0.0
    out = np.empty((1, x.size), dtype=np.int64)
    words = np.array([1, 0x9E3779B97F4A7C15], dtype=np.uint64)
    for thin in (1000, count, count, count):
        begin = time.process_time()
        moves.run(x, words, hypergeometric=hyper, logs=logs, thin=thin, out=out)
        if thin == count:
            best = max(best, thin / (time.process_time() - begin))
    return best


def moves_table(count: int) -> None:
    """Moves a second on one core."""
    for mean in (3, 50):
        rng = np.random.default_rng(mean)
        table = rng.poisson(mean, (20, 20))
        margins = FibreMargins.of(table, [(0,), (1,)])
        logs = log_factorials(FibreSystem.of(margins).blocks[0])
        squares = Squares.of(margins, np.arange(table.size))
        for hyper in (False, True):
            own = rate(squares, table.ravel().astype(np.int64), logs, hyper, count)
            slow = plain_loop(table, 20_000, rng, hyper)
            name = "hypergeometric" if hyper else "uniform"
            record(
                "Moves through fibres, one core",
                {
                    "table": f"20 x 20, mean count {mean}",
                    "target": name,
                    "moves (a second)": own,
                    "plain numpy loop (a second)": slow,
                    "times faster": own / slow,
                },
            )
    table = np.random.default_rng(5).poisson(3, (5, 4, 3))
    block = FibreSystem.of(FibreMargins.of(table, list(combinations(range(3), 2)))).blocks[0]
    lines, x = Lines.of(block), block.extended(table.ravel()[block.cells])
    for hyper in (False, True):
        own = rate(lines, x.copy(), log_factorials(block), hyper, count // 10)
        name = "hypergeometric" if hyper else "uniform"
        figures = {"table": "5 x 4 x 3, mean count 3", "target": name, "moves (a second)": own}
        record("Moves along lattice lines, one core", figures)


def suppressed(side: int, share: float) -> Knowledge:
    """A square table with margins of which a share of the cells is suppressed."""
    rng = np.random.default_rng(side)
    table = rng.poisson(8, (side, side))
    mask = rng.random((side, side)) < share
    low = np.where(mask, 0, table).ravel()
    high = np.where(mask, table.sum(), table).ravel()
    return FibreMargins.of(table, [(0,), (1,)]).knowledge().within(low, high)


def samples_table() -> None:
    """Effective samples a second, all included."""
    pairs = list(combinations(range(3), 2))
    rng = np.random.default_rng(1)
    cases: list[tuple[str, Knowledge | FibreMargins]] = [
        ("5 x 4 x 3, all pairs", FibreMargins.of(rng.poisson(3, (5, 4, 3)), pairs)),
        ("10 x 10 x 10, all pairs", FibreMargins.of(rng.poisson(3, (10, 10, 10)), pairs)),
        (
            "6 x 6 x 6 x 6, chain of pairs",
            FibreMargins.of(rng.poisson(2, (6,) * 4), [(0, 1), (1, 2), (2, 3)]),
        ),
        ("20 x 20, rows and columns", FibreMargins.of(rng.poisson(3, (20, 20)), [(0,), (1,)])),
        ("40 x 40, a fifth suppressed", suppressed(40, 0.2)),
    ]
    distribution(cases[0][1], "hypergeometric", "sample", rng=1, draws=10)  # compiles
    distribution(cases[3][1], "hypergeometric", "sample", rng=1, draws=10)
    for name, given in cases:
        for target in ("uniform", "hypergeometric"):
            begin = time.perf_counter()
            found = distribution(given, target, "sample", rng=1)
            seconds = time.perf_counter() - begin
            moving = found.effective[~found.exact & np.isfinite(found.effective)]
            least = float(moving.min())
            record(
                "Effective samples",
                {
                    "fibre": name,
                    "target": target,
                    "took (s)": seconds,
                    "least effective size": least,
                    "effective (a second)": least / seconds,
                    "R-hat": found.worst_rhat,
                },
            )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=10_000_000, help="moves of each run")
    arguments = parser.parse_args()
    moves_table(arguments.moves)
    samples_table()


if __name__ == "__main__":
    main()
