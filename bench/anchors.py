"""A population with a proof beside Private-PGM, from the same noisy tables: errors, time and memory.

    python bench/anchors.py --python FOLDER/bin/python [--persons 60000] [--rho 2.56] [--steps 1000]

FOLDER is an environment with the package mbi 2 (``python -m venv FOLDER``, ``FOLDER/bin/pip install mbi``); it
pins too much to be a dependency. The census is without its areas, so that the model of the tables fits into
memory. Both are judged by the tables that were measured; people are whole ones.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from attacks.neighbours import census
from lustrum.protect.proven.estimate import LinearEstimate
from lustrum.protect.proven.places import laid_out
from parts.figures import record

from lustrum.protect.proven.domain import Domain
from lustrum.protect.proven.measure import measure_tables
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.noisy import NoisyTables

Tables = Callable[[tuple[int, ...]], np.ndarray]
SETTINGS = {"PYTHONPATH": "", "JAX_ENABLE_X64": "1", "JAX_ENABLE_COMPILATION_CACHE": "0"}
PROGRAM = Path(__file__).parent / "parts" / "private_pgm.py"


def main() -> None:
    """Measure once, fit twice, and compare."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--python", required=True, help="The Python of an environment with mbi.")
    options.add_argument("--persons", type=int, default=60_000)
    options.add_argument("--rho", type=float, default=2.56)
    options.add_argument("--steps", type=int, default=1000)
    given = options.parse_args()
    method = ProvenPopulation(rho=given.rho)
    cells = census(given.persons, ("area",))(1).cells()
    domain = Domain.of(cells.dataset)
    noisy = measure_tables(domain, method.plan(domain), cells)
    truth = laid_out(domain, cells)
    begin = time.process_time()
    made = laid_out(domain, method.population(noisy))
    seconds = time.process_time() - begin
    case = f"{noisy.people:,} people, rho {given.rho:g}"

    def judged(name: str, table: Tables, **more: float) -> None:
        errors = {
            f"{number}-way, mean": np.concatenate(
                [
                    np.abs(table(subset) - domain.table(truth, subset))[
                        domain.possible_table(subset)
                    ]
                    for subset in noisy.tables
                    if len(subset) == number
                ]
            ).mean()
            for number in (1, 2, 3)
        }
        record(f"Fits of the same noisy tables: {case}", {"fit": name, **errors, **more})

    judged("whole people", lambda subset: domain.table(made, subset), **{"CPU s": seconds})
    judged("linear estimate", LinearEstimate(noisy.plan, noisy.tables, noisy.people).table)
    fitted = by_private_pgm(domain, noisy, given.python, given.steps)
    name, pgm = f"Private-PGM, {given.steps} steps", float(fitted["seconds"])
    judged(name, lambda subset: fitted[_key(subset)], **{"CPU s": pgm})
    drawn = pgm + float(fitted["drawn"])
    judged(f"{name}, people", lambda subset: fitted[f"people {_key(subset)}"], **{"CPU s": drawn})


def by_private_pgm(
    domain: Domain, noisy: NoisyTables, python: str, steps: int
) -> dict[str, np.ndarray]:
    """The tables of the model that Private-PGM fits, and of people that it draws."""
    given = {_key(subset): table for subset, table in noisy.tables.items()}
    scales = {f"scale {_key(subset)}": scale for subset, scale in noisy.scales.items()}
    sizes = np.array([len(axis) for axis in domain.axes])
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("noisy.npz", "fitted.npz")]
        np.savez(
            files[0], sizes=sizes, people=noisy.people, measured=list(given), **given, **scales
        )
        command = [python, str(PROGRAM), *files, str(steps)]
        subprocess.run(command, check=True, env={**os.environ, **SETTINGS})
        return dict(np.load(files[1]))


def _key(subset: tuple[int, ...]) -> str:
    return "-".join(map(str, subset))


if __name__ == "__main__":
    main()
