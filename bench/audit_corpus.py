"""How `lustrum audit` judges the corpus of published files, and files that are drawn by a generator.

    python bench/audit_corpus.py
    python bench/audit_corpus.py --cases 0 --drawn 5000 --harmless 1000

The corpus lies in ``tests/corpus``, with answers that were computed apart from the reader. Each case is audited
bare, after a script answered the questions that were asked and no others, and with its true layout. Drawn files
have one disclosure each, or none; integer programs that share nothing with the reader give their ranges.
The exit code is 1 after a false all-clear or a false exact value.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from parts.figures import record

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from corpus.cases import (
    CLEAR,
    DISCLOSED,
    Case,
    Outcome,
    answered,
    bare,
    cases,
    false_values,
    with_true_layout,
)
from readers.drawn_files import draw_file
from readers.test_judge import audited, exact


def corpus(every: Iterable[Case]) -> int:
    """Record how cases are judged in three modes; gives how many verdicts are false."""
    chosen, false = list(every), 0
    modes = {
        "as it is": lambda case: (bare(case), len(bare(case).questions)),
        "questions answered": answered,
        "true layout": lambda case: (with_true_layout(case), 0),
    }
    for mode, audit in modes.items():
        start, results = time.process_time(), [(case, *audit(case)) for case in chosen]
        seconds = time.process_time() - start
        open_cases = [result for result in results if not result[0].asked]
        clear = sum(case.disclosed and outcome.code == CLEAR for case, outcome, _ in results)
        # Notes of some cases deny a sum that every line shows; whoever lacks them relies on it.
        denied = [
            (c, o) for c, o, _ in results if c.answer.get("relied_on") and mode != "true layout"
        ]
        wrong = sum(
            bool(false_values(case, outcome))
            for case, outcome, _ in results
            if (case, outcome) not in denied
        )
        codes = Counter(outcome.code for _, outcome, _ in open_cases)
        record(
            "The corpus",
            {
                "audited": mode,
                "cases": len(open_cases),
                "judged": codes[CLEAR] + codes[DISCLOSED],
                "rightly": sum(is_right(case, outcome) for case, outcome, _ in open_cases),
                "questions a case": sum(n for *_, n in results) / len(results),
                "false all-clears": clear,
                "false exact values": wrong,
                "misled by shown sums": sum(bool(false_values(*one)) for one in denied),
                "only asked about": sum(
                    case.asked in {role for _, role in outcome.questions}
                    for case, outcome, _ in results
                    if case.asked
                ),
                "CPU (s)": seconds,
            },
        )
        false += clear + wrong
    return false


def is_right(case: Case, outcome: Outcome) -> bool:
    """Whether a case was judged as the answer says."""
    return outcome.code == (DISCLOSED if case.disclosed else CLEAR)


def drawn(count: int, *, disclosing: bool, first: int) -> int:
    """Record how drawn files are judged; gives how many verdicts are false."""
    bare_codes, told_codes = Counter[int](), Counter[int]()
    named = false = 0
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            file = draw_file(seed, disclosing=disclosing)
            plain = audited(Path(folder), file.text)
            told = audited(Path(folder), file.text, file.layout)
            bare_codes[plain.exit] += 1
            told_codes[told.exit] += 1
            named += file.planted in exact(told)
            for report in (plain, told):
                values = [(file.ranges.get(cell), v) for cell, v in exact(report).items()]
                false += any(ends not in (None, (value, value)) for ends, value in values)
    record(
        "Drawn files",
        {
            "drawn": f"{'one disclosure' if disclosing else 'harmless'}, seeds {first} to {first + count - 1}",
            "files": count,
            "cleared by itself": bare_codes[CLEAR],
            "judged by itself (exit 3)": bare_codes[DISCLOSED],
            "true layout: exit 3": told_codes[DISCLOSED],
            "names the planted cell": named if disclosing else None,
            "true layout: exit 0": told_codes[CLEAR],
            "false exact values": false,
            "CPU (s)": time.process_time() - start,
        },
    )
    cleared = bare_codes[CLEAR] + told_codes[CLEAR] if disclosing else told_codes[DISCLOSED]
    return false + cleared


def main() -> None:
    """The corpus, and files of the generator."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, help="so many cases only; all by default")
    parser.add_argument("--drawn", type=int, default=200, help="drawn files with a disclosure")
    parser.add_argument("--harmless", type=int, default=50, help="drawn files without one")
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    given = parser.parse_args()
    false = 0
    if given.cases != 0:
        false += corpus(cases()[: given.cases])
    for count, disclosing in ((given.drawn, True), (given.harmless, False)):
        if count:
            false += drawn(count, disclosing=disclosing, first=given.first)
    sys.exit(int(false > 0))


if __name__ == "__main__":
    main()
