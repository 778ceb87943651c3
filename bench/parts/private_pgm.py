"""Fits noisy tables by Private-PGM; runs where the package mbi is installed, in a process of its own.

python bench/parts/private_pgm.py NOISY.npz FITTED.npz STEPS
"""

from __future__ import annotations

import resource
import sys
import time

import mbi
import numpy as np


def main(noisy: str, fitted: str, steps: int) -> None:
    """Read tables with their scales, fit a model, and write its tables and those of people drawn from it."""
    given = np.load(noisy)
    names = [f"v{place}" for place in range(given["sizes"].size)]
    domain = mbi.Domain(names, [int(size) for size in given["sizes"]])
    cliques = {key: tuple(names[int(p)] for p in key.split("-")) for key in given["measured"]}
    measured = [
        mbi.LinearMeasurement(given[key].ravel(), clique, float(given[f"scale {key}"]))
        for key, clique in cliques.items()
    ]
    people = int(given["people"])
    start = time.process_time()
    fit = mbi.estimation.MirrorDescent()
    model = fit.estimate(domain, measured, people, iters=steps)
    tables = {key: np.asarray(model.project(clique).values) for key, clique in cliques.items()}
    seconds = time.process_time() - start
    drawn = model.synthetic_data(people)
    tables |= {f"people {key}": _counted(drawn, clique) for key, clique in cliques.items()}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    np.savez(
        fitted, seconds=seconds, drawn=time.process_time() - start - seconds, peak=peak, **tables
    )


def _counted(drawn: mbi.Dataset, clique: tuple[str, ...]) -> np.ndarray:
    return np.asarray(drawn.project(clique).datavector(flatten=False))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
