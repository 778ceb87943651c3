"""Estimated risk of samples: populations drawn and measured in batches, beside one table at a time.

    python bench/sample_tables.py [--plain 2000] [--samples 1000] [--draws 1000]

The plain loop draws one population with numpy's generator and computes R2 with plain numpy, which is how
one would write it down from the paper. The batches are those of the study, on all processors at hand. Both are
measured in the same run, and first on the same samples to see that their means agree. The last figure is
the time of the whole study: every line of the paper with 1,000 samples of 1,000 populations each.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from parts.figures import record

from lustrum.risk.batch import risks_of_many
from lustrum.risk.population import LogLinear, PolyaUrn, PopulationModel, simple_random_samples
from lustrum.study.sample_tables import AREAS_BY_RELIGION, sample_tables

TARGET = 50.0
N = int(AREAS_BY_RELIGION.sum())
Draw = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def plain_r2(F: np.ndarray, f: np.ndarray) -> float:
    """Equation 4 with the weights of the paper, straight from numpy."""
    p, q = F / F.sum(), f / f.sum()
    H = -np.sum(p[p > 0] * np.log(p[p > 0]))
    a, b = np.maximum(p - q, 0), np.maximum(q - p, 0)
    s, lost = a.sum(), b > 0
    parts = np.concatenate([a[a > 0], b[lost], p[lost & (p > 0)]])
    left = s * np.log(s) - np.sum(parts * np.log(parts)) + np.sum(q[lost] * np.log(q[lost]))
    D, E = F == 0, f == 0
    both = np.sum(D & E)
    zeros = (D.mean()) ** (np.sum(D | E) / both) if both else 0.0
    root = np.sqrt(F.sum())
    size = (1 + np.log(root)) / root
    return float(0.1 * zeros + 0.8 * (1 - H / np.log(F.size)) * (1 - left / H) + 0.1 * size)


def plain_log_linear(f: np.ndarray) -> Draw:
    """One population: the sample plus a multinomial draw; the probabilities are fitted once."""
    table = f.reshape(AREAS_BY_RELIGION.shape)
    p = np.outer(table.sum(axis=1), table.sum(axis=0)).ravel() / f.sum() ** 2
    return lambda f, rng: f + rng.multinomial(N - f.sum(), p)


def plain_urn(theta: float) -> Draw:
    """One population: a Dirichlet-multinomial draw, new colours one by one."""

    def draw(f: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        seen, unseen = np.flatnonzero(f), rng.permutation(np.flatnonzero(f == 0))
        shares = rng.dirichlet(np.append(f[seen], theta))
        gained = rng.multinomial(N - f.sum(), shares)
        F = f.copy()
        F[seen] += gained[:-1]
        balls: list[int] = []
        colours = 0
        for u in rng.random(int(gained[-1])) * (theta + np.arange(int(gained[-1]))):
            if u < theta:
                balls.append(int(unseen[colours % unseen.size]))
                colours += 1
            else:
                balls.append(balls[int(u - theta)])
        np.add.at(F, balls, 1)
        return F

    return draw


def plain_loop(draw: Draw, f: np.ndarray, tables: int) -> tuple[float, float, float]:
    """Seconds per table, mean risk and its standard error."""
    rng = np.random.default_rng(1)
    start = time.perf_counter()
    risks = np.array([plain_r2(draw(f, rng), f) for _ in range(tables)])
    seconds = time.perf_counter() - start
    return seconds / tables, float(risks.mean()), float(risks.std() / np.sqrt(tables))


def batches(model: PopulationModel, f: np.ndarray, draws: int) -> tuple[float, float, float]:
    """The same in batches of ``draws`` on all processors; the best of three rounds."""
    sample = f.reshape(AREAS_BY_RELIGION.shape)

    def one(seed: int) -> np.ndarray:
        rows = model.draw(sample, N, np.random.default_rng(seed), draws)
        return risks_of_many(rows.reshape(draws, -1), f)[1]

    one(0)
    threads = len(os.sched_getaffinity(0))
    rounds, seconds = 40 * threads, []
    with ThreadPoolExecutor(threads) as pool:
        for start_seed in (1, 1001, 2001):
            start = time.perf_counter()
            risks = np.concatenate(list(pool.map(one, range(start_seed, start_seed + rounds))))
            seconds.append(time.perf_counter() - start)
    error = float(risks.std() / np.sqrt(risks.size))
    return min(seconds) / (rounds * draws), float(risks.mean()), error


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--plain", type=int, default=2000, help="tables for the plain loop")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=1000)
    given = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} threads, 90 cells, {N:,} people")
    slowest = np.inf
    for fraction in (0.1, 0.05):
        f = simple_random_samples(AREAS_BY_RELIGION, fraction, np.random.default_rng(5))[0].ravel()
        theta = PolyaUrn().theta(f.reshape(AREAS_BY_RELIGION.shape), N)
        for name, model, draw in (
            ("log-linear", LogLinear(), plain_log_linear(f)),
            ("Pólya urn", PolyaUrn(), plain_urn(theta)),
        ):
            plain, expected, slack = plain_loop(draw, f, given.plain)
            batch, mean, error = batches(model, f, given.draws)
            if abs(mean - expected) > 5 * np.hypot(slack, error):
                sys.exit(f"The means differ: {mean} in batches, {expected} one at a time.")
            slowest = min(slowest, plain / batch)
            figures = {"populations": name, "fraction": fraction, "one at a time (µs)": plain * 1e6}
            record(
                "One estimated population with its risk",
                figures | {"in batches (µs)": batch * 1e6, "times faster": plain / batch},
            )
    start = time.perf_counter()
    cpu = time.process_time()
    study = sample_tables(given.samples, given.draws)
    seconds, busy = time.perf_counter() - start, time.process_time() - cpu
    lines = 9  # two generated lines of each model, two real ones of both, and fraction 0.01
    tables = lines * given.samples * given.draws
    figures = {"populations (million)": tables / 1e6, "clock (s)": seconds, "CPU (s)": busy}
    reproduced = "yes" if study.reproduced else "no"
    record("The whole study of sample tables", figures | {"figures reproduced": reproduced})
    if slowest < TARGET:
        sys.exit(f"The smallest ratio is {slowest:.0f}; it should be {TARGET:.0f} or more.")


if __name__ == "__main__":
    main()
