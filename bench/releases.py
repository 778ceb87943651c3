"""What readers of 2, 5 and 12 releases of the same people know: attacks, controls and the price in errors.

    python bench/releases.py [--persons 20000] [--changes 30] [--trials 30]

The attacks must find changes where only changed cells move ("changed only"), and people where every release is
drawn anew ("anew"): as it was once done. On the method they must not. The exit code is 1 if one of these
fails. The part "known" is on readers who know changes of cells, and states errors of 12 releases.
"""

from __future__ import annotations

import argparse
import sys

from attacks.releases.report import report


def main() -> int:
    """Run all attacks."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--persons", type=int, default=20_000)
    options.add_argument("--changes", type=int, default=30, help="People added, and removed.")
    options.add_argument("--trials", type=int, default=30, help="Of each kind, with one person.")
    options.add_argument("--sweeps", type=int, default=3)
    options.add_argument("--parts", nargs="+", default=["many", "single", "known"])
    given = options.parse_args()
    return 0 if report(given.persons, given.changes, given.trials, given.sweeps, given.parts) else 1


if __name__ == "__main__":
    sys.exit(main())
