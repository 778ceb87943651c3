"""How fast tables are perturbed by Markov perturbation, as markdown tables.

Run it from the root of the project: ``python bench/parts/markov.py``. A sweep is as many elementary squares as
there are cells. Times are of one core in processor seconds, the best of several runs; the plain loop
beside it does fewer squares, and its time is scaled up.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from figures import record

from lustrum.protect.markov import Moves, perturb_boxes


def plain_loop(table: np.ndarray, theta: float, squares: int, rng: np.random.Generator) -> float:
    """Seconds for so many squares as one would write them first."""
    x = table.copy()
    rows, columns = x.shape
    begin = time.process_time()
    for _ in range(squares):
        i, j = rng.choice(rows, 2, replace=False)
        k, m = rng.choice(columns, 2, replace=False)
        down, up = min(x[i, k], x[j, m]), min(x[i, m], x[j, k])
        movers = min(down, up)
        if movers == 0:
            continue
        t = rng.binomial(up, theta * movers / up) - rng.binomial(down, theta * movers / down)
        x[i, k] += t
        x[j, m] += t
        x[i, m] -= t
        x[j, k] -= t
    return time.process_time() - begin


def best(table: np.ndarray, sweeps: int, order: str, rule: str, repeat: int) -> float:
    """The shortest of several runs."""
    moves = Moves.of(table.shape, [(0,), (1,)] if table.ndim == 2 else [(0, 1), (0, 2), (1, 2)])
    times = []
    for seed in range(repeat + 1):
        rng = np.random.default_rng(seed)
        begin = time.process_time()
        perturb_boxes(table, moves, 0.1, sweeps, order, rule, rng)
        times.append(time.process_time() - begin)
    return min(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=100)
    parser.add_argument("--plain", type=int, default=20_000, help="squares of the plain loop")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    table = rng.poisson(6, (200, 200))
    squares = table.size * given.sweeps
    plain = plain_loop(table, 0.1, given.plain, rng) * squares / given.plain

    print(f"200 x 200 cells of mean 6, {given.sweeps} sweeps, theta 0.1")
    for order in ("random", "disjoint"):
        for rule in ("people", "unit"):
            seconds = best(table, given.sweeps, order, rule, given.repeat)
            made = squares if order == "random" else squares // 4
            ratio = plain * made / squares / seconds
            figures = {"order": order, "rule": rule, "squares": made, "took (s)": seconds}
            record("Markov perturbation", figures | {"times faster than a loop": ratio}, "perturb")
    print(f"\nThe plain loop would take {plain:.0f} s for {squares:,} squares.")
    cases = [((100, 100), 6), ((200, 200), 6), ((400, 400), 6), ((1000, 1000), 6)]
    cases += [((200, 200), 1), ((200, 200), 100), ((200, 200), 10_000)]
    for shape, mean in [*cases, ((34, 34, 34), 6)]:
        counts = rng.poisson(mean, shape)
        seconds = best(counts, 10, "random", "people", 2)
        name = " x ".join(map(str, shape))
        each = seconds / (10 * counts.size) * 1e9
        figures = {"table": name, "mean count": mean, "squares": 10 * counts.size}
        more = {"took (s)": seconds, "a square (ns)": each}
        record("Markov perturbation: growth, ten sweeps", figures | more, "perturb")


if __name__ == "__main__":
    main()
