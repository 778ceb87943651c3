"""The random methods: cell key on the demo hypercube, record swapping, Markov perturbation.

Run it from the root of the project: ``python bench/perturb.py``; with ``--data FOLDER`` on a demo dataset that
``lustrum demo`` has made there before. Each part is a script of its own under ``bench/parts``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from lustrum.demo.setup import prepare


def run(part: str, *words: str) -> None:
    """Run one part."""
    print(f"\n### {part}\n", flush=True)
    script = Path(__file__).parent / "parts" / f"{part}.py"
    subprocess.run([sys.executable, str(script), *words], check=True)


def main() -> None:
    """Run the parts one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with the demo dataset")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.data or Path(scratch)
        if given.data is None:
            prepare(folder, 1_500_000, lambda task, done: None)
        run("cell_key", str(folder))
    run("swapping")
    run("markov")


if __name__ == "__main__":
    main()
