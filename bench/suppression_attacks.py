"""Attacks on suppressed tables by programs that share nothing with the code that protects.

    python bench/suppression_attacks.py [--problems 300] [--kinds "3 linked" zeros]
    python bench/suppression_attacks.py --kinds "3 linked" --first 17 --problems 1 --keep FOLDER
    python bench/suppression_attacks.py --list

Each problem is drawn from its kind and number alone, written as files, protected by the command line (or the
front door for frames), read back and attacked: by a reader who knows the rule, by every contributor that the
input shows, and by pairs of them. A run that withholds its files (exit code 3) or does not judge them (4) fails
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

from attacks.suppression.audits import Audited, audited, cases
from attacks.suppression.drive import run
from attacks.suppression.intake import odd
from attacks.suppression.judge import Outcome, judge
from attacks.suppression.planted import finders, planted
from attacks.suppression.problems import KINDS, problem

AUDITS = {"audit": False, "audit, negative": True}
INTAKE = "intake"
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
        sum(len(o.outsider) for o in found), sum(len(o.letterless) for o in found),
        sum(map(len, inside)), sum(map(len, close)),
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
        lines.append(
            f"- {again} ({rules}, exit {o.code}): {said[0]}"
            + (f" and {len(said) - 1} more" if said[1:] else "")
        )
    return lines[:most]


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


def audit_files(kind: str, first: int, number: int, worst: int) -> tuple[str, list[str], bool]:
    """What ``lustrum audit`` says about drawn files: a line, the cases to look at, and whether it failed."""
    found: list[Audited] = []
    for one in cases(first, number, negative=AUDITS[kind]):
        with tempfile.TemporaryDirectory() as folder:
            found.append(audited(one, Path(folder)))
    codes = Counter(a.code for a in found)
    bad = [a for a in found if a.false_clear or a.code == "crashed"]
    alarms = sum(a.false_alarm for a in found)
    line = (
        f"{kind}: {number} files, {sum(bool(a.case.disclosed) for a in found)} with a disclosed cell; "
        f"exit 0: {codes[0]}, 3: {codes[3]}, 4: {codes[4]}, 1: {codes[1]}, crashed: {codes['crashed']}; "
        f"false all-clears: {sum(a.false_clear for a in found)}, false alarms: {alarms}"
    )
    listed = [
        f'- --kinds "{kind}" --first {a.case.number} --problems 1 (exit {a.code}, '
        f"columns beside: {a.case.companion}): "
        f"{', '.join(a.case.disclosed)}" for a in bad[:worst]
    ]  # fmt: skip
    return line, listed, bool(bad)


def take_in() -> list[str]:
    """Odd files that were not taken as they should be."""
    wrong = []
    for one in odd():
        with tempfile.TemporaryDirectory() as folder:
            if text := one.taken(Path(folder)):
                wrong.append(f"- {text}")
    return wrong


def main() -> int:
    """Attack, print a table by kind and the worst cases."""
    every = [*KINDS, *AUDITS, INTAKE]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=10, help="problems of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--kinds", nargs="+", choices=every, default=every, metavar="KIND")
    parser.add_argument("--worst", type=int, default=5, help="cases to list of each kind")
    parser.add_argument(
        "--keep", type=Path, help="keep inputs and files of every problem in this folder"
    )
    parser.add_argument("--list", action="store_true", help="list the kinds")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(every))
        return 0
    if lost := missed():
        print("The suite misses leaks that were planted:", *lost, sep="\n")
        return 1
    print(f"All {len(planted())} planted files were judged rightly.\n")
    print("| kind | problems | " + " | ".join(RESULTS) + " | primary | short to outsider "
          "| counts, without letters | short to an insider | within the rule | pairs "
          "| if zeros are shown | untrue | s |")  # fmt: skip
    print("|---|" + "---:|" * (len(RESULTS) + 10))
    cases_found: list[str] = []
    failed = False
    for kind in (k for k in asked.kinds if k in KINDS):
        start = time.process_time()
        keep = asked.keep and asked.keep / kind.replace(" ", "-").replace(",", "")
        found = [
            attacked(kind, n, keep and keep / str(n))
            for n in range(asked.first, asked.first + asked.problems)
        ]
        print(row(kind, found, time.process_time() - start), flush=True)
        cases_found += worst(found, asked.worst)
        failed |= any(o.fails for o in found)
    print()
    for kind in (k for k in asked.kinds if k in AUDITS):
        line, listed, bad = audit_files(kind, asked.first, asked.problems, asked.worst)
        print(line, flush=True)
        cases_found += listed
        failed |= bad
    if INTAKE in asked.kinds:
        wrong = take_in()
        print(f"intake: {len(odd())} odd files, {len(wrong)} not taken as they should be")
        cases_found += wrong
        failed |= bool(wrong)
    print()
    print("\n".join(cases_found) if cases_found else "Nothing was short.")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
