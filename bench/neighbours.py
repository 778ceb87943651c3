"""What neighbours learn of people in a file and not of people left out of it: an attribute, and who is in it.

    python bench/neighbours.py [--persons 6000] [--file "by area"] [--cases default "no siblings"]
    python bench/neighbours.py --cases --rho 2.56 0.5 --file "by region"
    python bench/neighbours.py --cases --insertions 2.56 0.5

Files of eight variables, three of them, each with people and a key of its own, after two from which the reader
learns. Gains are those of the variable and rows with the largest simultaneous 95 % lower bound. The cases draw
the curve of gain against error for the preset ``strict``; with a proof, no reader may do better than rho
allows, or the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from attacks.neighbours_report import FILES, attack_insertions, attack_proven, attack_strict

from lustrum.protect.population.method import ProtectedPopulation

QUICK = {"sweeps": 3, "extra_tables": 100}
CASES: dict[str, dict[str, Any]] = {
    "strict": {},
    "default": QUICK,
    "all around small cells": {**QUICK, "sparse_siblings": 1.0},
    "no siblings": {**QUICK, "sparse_siblings": 0.0},
    "half the siblings": {**QUICK, "sparse_siblings": 0.5},
    **{f"one in {n}": {**QUICK, "sparse_siblings": float(n)} for n in (3, 9, 16, 24, 32)},
    "half empty": {**QUICK, "empty_share": 0.5},
    "no siblings, half empty": {**QUICK, "sparse_siblings": 0.0, "empty_share": 0.5},
    "base 5": {**QUICK, "base": 5},
    "two-way tables": {**QUICK, "max_variables": 2, "extra_tables": 0},
}


def main() -> int:
    """Attack the chosen files; 1 if a reader does better than a proof allows."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--persons", type=int, default=6000)
    options.add_argument("--file", choices=FILES, default="by area")
    options.add_argument("--cases", nargs="*", choices=CASES, default=list(CASES))
    options.add_argument("--rho", nargs="*", type=float, default=[])
    options.add_argument("--insertions", nargs="*", type=float, default=[])
    options.add_argument("--targets", type=int, default=3, help="Files with a proof.")
    given = options.parse_args()
    for case in given.cases:
        method, by_row = ProtectedPopulation(**CASES[case]), case == "strict"
        attack_strict(given.persons, given.file, method, case, by_row=by_row)
    right = [
        attack_proven(given.persons, given.file, rho, by_row=True, targets=given.targets)
        for rho in given.rho
    ]
    right += [attack_insertions(rho) for rho in given.insertions]
    return int(not all(right))


if __name__ == "__main__":
    sys.exit(main())
