"""Rounding and adjustment: two-way tables by network flow, large linked ones by search, and CTA.

Run it from the root of the project: ``python bench/rounding.py``; with ``--data FOLDER`` on the tables and
CSPLIB problems of a folder instead of generated ones. Each part is a script of its own under ``bench/parts``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

PARTS = ("rounding_two_way", "rounding_linked", "adjustment")


def main() -> None:
    """Run the parts one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder of tables and CSPLIB problems")
    given = parser.parse_args()
    for part in PARTS:
        print(f"\n### {part}\n", flush=True)
        command = [sys.executable, str(Path(__file__).parent / "parts" / f"{part}.py")]
        if given.data:
            command += ["--data", str(given.data)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
