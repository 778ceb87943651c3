"""Attacks on suppressed tables by programs that share nothing with the code that protects.

    python bench/suppression_attacks.py [--problems 300] [--kinds "3 linked" zeros]
    python bench/suppression_attacks.py --kinds "3 linked" --first 17 --problems 1 --keep FOLDER
    python bench/suppression_attacks.py --problems 300 --log FILE --minutes 60   # again: goes on
    python bench/suppression_attacks.py --faults
    python bench/suppression_attacks.py --list

Each problem is drawn from its kind and number alone, written as files, protected by the command line (or the
front door for frames), read back and attacked: by a reader who knows the rule, by every contributor that the
input shows, and by pairs of them. A run that withholds its files (exit code 3) or does not judge them (4) fails
nobody. Pairs, and readers who take it for certain that no empty cell is hidden, are reported; all else that
is found makes the exit code 1. The suite first attacks files with known leaks, and stops if it misses one.

With ``--log`` every result is appended to a file at once, and problems that stand there are not run again.
With ``--faults`` the product gets one fault after the other, and the suite must find each.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from attacks.suppression.drive import run
from attacks.suppression.faults import FAULTS, found_by
from attacks.suppression.intake import odd
from attacks.suppression.judge import Outcome, judge
from attacks.suppression.kinds import KINDS, problem
from attacks.suppression.log import Line, append, of_outcome, read_log, table
from attacks.suppression.planted import finders, planted
from parts.figures import record

INTAKE = "intake"
ROUNDS = (10, 40, 100, 300)
"""Numbers of problems after which the next kind has its turn, so that every kind has results early."""

APART = 75
"""Every so many problems of a kind the command line runs in a process of its own, as users start it."""


def attacked(kind: str, number: int, keep: Path | None) -> Outcome:
    """One problem, protected and attacked."""
    drawn = problem(kind, number)
    apart = number % APART == 0
    if keep is not None:
        keep.mkdir(parents=True)
        return judge(drawn, run(drawn, keep, apart=apart))
    with tempfile.TemporaryDirectory() as folder:
        return judge(drawn, run(drawn, Path(folder), apart=apart))


def result(kind: str, number: int, keep: Path | None) -> Line:
    """What came of a problem."""
    start = cpu()
    outcome = attacked(kind, number, keep)
    return of_outcome(outcome, cpu() - start)


def cpu() -> float:
    """CPU seconds of this process and of those that it started."""
    return sum(os.times()[:4])


def turns(kinds: list[str], first: int, problems: int) -> Iterator[tuple[str, int]]:
    """All problems, in rounds over the kinds."""
    done = 0
    for end in sorted({*(r for r in ROUNDS if r < problems), problems}):
        for kind in kinds:
            yield from ((kind, first + n) for n in range(done, end))
        done = end


def missed() -> list[str]:
    """The planted leaks that the suite does not find, and harmless files that it blames."""
    lines = []
    for leak in planted():
        with tempfile.TemporaryDirectory() as folder:
            found = finders(leak.attack(Path(folder)))
        if leak.finder not in found or (leak.finder == "nobody" and found != {"nobody"}):
            lines.append(
                f"- {leak.name}: {leak.finder} must find it; found by {', '.join(sorted(found))}"
            )
    return lines


def take_in() -> list[str]:
    """Odd files that were not taken as they should be."""
    wrong = []
    for one in odd():
        with tempfile.TemporaryDirectory() as folder:
            if text := one.taken(Path(folder)):
                wrong.append(f"- {text}")
    return wrong


def faults() -> int:
    """Put faults into the product one by one; the suite must report each."""
    lost = 0
    for fault in FAULTS:
        start = time.process_time()
        found = found_by(fault)
        lost += not found
        seconds = time.process_time() - start
        figures = {"fault": fault.name, "found by": found or "nobody", "CPU (s)": seconds}
        record("Faults put into the product", figures)
    print(f"\n{len(FAULTS) - lost} of {len(FAULTS)} faults were found.")
    return int(lost > 0)


def main() -> int:
    """Attack, print a table by kind and the worst cases."""
    every = [*KINDS, INTAKE]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=10, help="problems of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--kinds", nargs="+", choices=every, default=every, metavar="KIND")
    parser.add_argument("--worst", type=int, default=5, help="cases to list of each kind")
    parser.add_argument("--log", type=Path, help="append results to this file, and go on from it")
    parser.add_argument("--minutes", type=float, help="begin no problem after this time")
    parser.add_argument(
        "--keep", type=Path, help="keep inputs and files of every problem in this folder"
    )
    parser.add_argument("--list", action="store_true", help="list the kinds")
    parser.add_argument("--faults", action="store_true", help="put faults into the product")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(every))
        return 0
    if lost := missed():
        print("The suite misses leaks that were planted:", *lost, sep="\n")
        return 1
    print(f"All {len(planted())} planted files were judged rightly.\n")
    if asked.faults:
        return faults()
    drawn = [kind for kind in asked.kinds if kind != INTAKE]
    wanted = list(turns(drawn, asked.first, asked.problems))
    known = read_log(asked.log) if asked.log else {}
    end = time.monotonic() + 60 * (asked.minutes or float("inf"))
    for kind, number in wanted:
        if (kind, number) in known or time.monotonic() > end:
            continue
        place = kind.replace(" ", "-").replace(",", "")
        line = result(kind, number, asked.keep and asked.keep / place / str(number))
        known[kind, number] = line
        if asked.log:
            append(asked.log, line)
    found = [known[key] for key in wanted if key in known]
    for figures in table(found, drawn):
        record("Attacks from outside", figures)
    worst: list[str] = []
    for kind in drawn:
        own = [line for line in found if line.kind == kind]
        bad = sorted((o for o in own if o.fails), key=lambda o: -o.outsider - o.untrue)
        worst += [str(line) for line in bad[: asked.worst]]
    if INTAKE in asked.kinds:
        wrong = take_in()
        print(f"intake: {len(odd())} odd files, {len(wrong)} not taken as they should be")
        worst += wrong
    print("", *(worst or ["Nothing was short."]), sep="\n")
    return int(bool(worst))


if __name__ == "__main__":
    sys.exit(main())
