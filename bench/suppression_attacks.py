"""Attacks on suppressed tables by programs that share nothing with the code that protects.

    python bench/suppression_attacks.py [--problems 300] [--kinds "3 linked" zeros]
    python bench/suppression_attacks.py --kinds "3 linked" --first 17 --problems 1 --keep FOLDER
    python bench/suppression_attacks.py --list

Each problem is drawn from its kind and number alone, written as files, protected by the command line (or the front
door for frames), read back and attacked: by a reader who knows the rule, by every contributor that the input
shows, and by pairs of them. A run that withholds its files (exit code 3) or does not judge them (4) fails
nobody. Pairs, and readers who take it for certain that no empty cell is hidden, are reported; all else that
is found makes the exit code 1. The suite first attacks files with known leaks, and stops if it misses one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from attacks.suppression.drive import run
from attacks.suppression.judge import Outcome, judge
from attacks.suppression.problems import KINDS, problem

RESULTS = ("released", "withheld", "not judged", "refused", "crashed", "too long")


def attacked(kind: str, number: int, keep: Path | None) -> Outcome:
    """One problem, protected and attacked."""
    drawn = problem(kind, number)
    if keep is not None:
        keep.mkdir(parents=True)
        return judge(drawn, run(drawn, keep))
    with tempfile.TemporaryDirectory() as folder:
        return judge(drawn, run(drawn, Path(folder)))


def row(kind: str, found: list[Outcome], seconds: float) -> str:
    """One line of the table."""
    results = Counter(o.result for o in found)
    numbers = [len(found), *(results[r] for r in RESULTS)]
    numbers.append(sum(o.primary for o in found))
    inside = [{s.leaves for s in o.insider} for o in found]
    close = [{s.leaves for s in o.insider if s.estimates} for o in found]
    numbers += [
        sum(len(o.outsider) for o in found), sum(len(o.letterless) for o in found), sum(map(len, inside)), sum(map(len, close)),
        sum(len({s.leaves for s in o.pair}) for o in found), sum(len(o.zeros_known) for o in found),
        sum(len(o.untrue) for o in found),
    ]  # fmt: skip
    return f"| {kind} | {' | '.join(str(n) for n in numbers)} | {seconds:.0f} |"


def worst(found: list[Outcome], most: int) -> list[str]:
    """The cases to look at first: those known most closely, with the command that repeats them."""
    lines = []
    for o in sorted((o for o in found if o.fails), key=lambda o: -len(o.outsider) - len(o.untrue)):
        again = f'--kinds "{o.problem.kind}" --first {o.problem.seed} --problems 1'
        said = [str(s) for s in (*o.outsider, *o.insider)] + o.untrue
        if o.result == "crashed":
            said.append(o.said.strip().splitlines()[-1])
        rules = " ".join(str(r) for r in o.problem.rules)
        lines.append(f"- {again} ({rules}, exit {o.code}): {said[0]}" + (f" and {len(said) - 1} more" if said[1:] else ""))
    return lines[:most]


def main() -> int:
    """Attack, print a table by kind and the worst cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=300, help="problems of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS), metavar="KIND")
    parser.add_argument("--worst", type=int, default=5, help="cases to list of each kind")
    parser.add_argument("--keep", type=Path, help="keep inputs and files of every problem in this folder")
    parser.add_argument("--list", action="store_true", help="list the kinds")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(KINDS))
        return 0
    print("| kind | problems | " + " | ".join(RESULTS) + " | primary | short to outsider | from values alone | short to an insider "
          "| within the rule | pairs | if zeros are shown | untrue | s |")  # fmt: skip
    print("|---|" + "---:|" * (len(RESULTS) + 10))
    cases: list[str] = []
    failed = False
    for kind in asked.kinds:
        start = time.process_time()
        keep = asked.keep and asked.keep / kind.replace(" ", "-").replace(",", "")
        found = [
            attacked(kind, n, keep and keep / str(n)) for n in range(asked.first, asked.first + asked.problems)
        ]
        print(row(kind, found, time.process_time() - start), flush=True)
        cases += worst(found, asked.worst)
        failed |= any(o.fails for o in found)
    print()
    print("\n".join(cases) if cases else "Nothing was short.")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
