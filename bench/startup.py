"""How long the first word takes: ``lustrum --help``, and the first audit with loops compiled at install.

python bench/startup.py [--rounds 9]

Every start is a fresh process. It is compared with ``import pandas``, for which a user would wait instead, and
the audit with the same audit where nothing has been compiled yet.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from parts.figures import record

LUSTRUM = [sys.executable, "-m", "lustrum"]
TABLE = """area,sex,value
A,M,3
A,F,6
A,Total,9
B,M,12
B,F,3
B,Total,15
Total,M,15
Total,F,9
Total,Total,24
"""


def seconds(command: list[str], cache: Path | None = None) -> float:
    """How long a command takes from its start to its end."""
    env = os.environ | ({} if cache is None else {"NUMBA_CACHE_DIR": str(cache)})
    started = time.perf_counter()
    subprocess.run(command, env=env, check=False, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    """Measure in turn, and print medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    starts: dict[str, list[float]] = {"lustrum --help": [], "import pandas": [], "import numpy": []}
    commands = {
        "lustrum --help": [*LUSTRUM, "--help"],
        "import pandas": [sys.executable, "-c", "import pandas"],
        "import numpy": [sys.executable, "-c", "import numpy"],
    }
    for _ in range(rounds):
        for name, command in commands.items():
            starts[name].append(seconds(command))
    medians = {name: statistics.median(times) for name, times in starts.items()}
    for name, median in medians.items():
        ratio = median / medians["import pandas"]
        figures = {"what": name, "took (s)": median, "ratio to import pandas": ratio}
        record("Start of the command line", figures)

    with tempfile.TemporaryDirectory(prefix="lustrum-startup-") as folder:
        table = Path(folder) / "table.csv"
        table.write_text(TABLE)
        audit = [*LUSTRUM, "audit", str(table)]
        warm = Path(folder) / "warm"
        took = seconds([sys.executable, "-m", "lustrum.cli.warm"], warm)
        ready, cold = [], []
        for turn in range(3):
            ready.append(seconds(audit, warm))
            cold.append(seconds(audit, Path(folder) / f"cold{turn}"))
    first, without = statistics.median(ready), statistics.median(cold)
    for name, median in {
        "compiling at install": took,
        "first audit, compiled": first,
        "first audit, not compiled": without,
    }.items():
        ratio = median / first
        record("First audit", {"what": name, "took (s)": median, "ratio to compiled": ratio})


if __name__ == "__main__":
    main()
