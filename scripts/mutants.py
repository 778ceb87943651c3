"""Change one thing at a time where a wrong line leaks or misstates a bound, and see whether a test fails.

    python scripts/mutants.py                      # every group
    python scripts/mutants.py cell-key bounds      # some groups
    python scripts/mutants.py --report             # try nothing; count what is known so far

Each group names modules and the tests that must hold them. ``mutation/operators.py`` says what is changed,
``mutation/worker.py`` how it is tried. What was tried is kept in ``build/mutants/<group>.jsonl``: a run that
was stopped goes on where it was, and a survivor is tried again when its tests have changed. Changes that no
test noticed are written to ``build/mutants/survivors.txt``.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from mutation.groups import GROUPS
from mutation.operators import mutants
from mutation.worker import named, read

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "mutants"
_NOTICED = {"killed", "timeout", "crashed"}


def main() -> None:
    """Run the groups that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("groups", nargs="*", metavar="group", help=", ".join(GROUPS))
    parser.add_argument("--again", action="store_true", help="forget the mutants already tried")
    parser.add_argument("--untried", action="store_true", help="leave survivors for another run")
    parser.add_argument("--report", action="store_true", help="try nothing; say what is known")
    parser.add_argument(
        "--budget", type=float, default=20.0, help="seconds of tests for one mutant, unchanged"
    )
    given = parser.parse_args()
    wrong = [name for name in given.groups if name not in GROUPS]
    if wrong:
        parser.error(f"there is no group {wrong[0]!r}; choose from {', '.join(GROUPS)}")
    BUILD.mkdir(parents=True, exist_ok=True)
    survivors: list[str] = []
    for name in given.groups or GROUPS:
        if given.again:
            (BUILD / f"{name}.jsonl").unlink(missing_ok=True)
        if not given.report:
            run(name, given.budget, given.untried)
        survivors += report(name)
    written = BUILD / "survivors.txt"
    written.write_text("".join(f"{line}\n" for line in survivors), encoding="utf-8")
    print(f"{len(survivors)} changes that no test noticed: {written.relative_to(ROOT)}")


def run(name: str, budget: float, untried: bool) -> None:
    """Try the mutants of a group that no test has noticed yet."""
    group = GROUPS[name]
    plan = {
        "root": str(ROOT),
        "modules": group.modules,
        "tests": group.tests,
        "only": group.only,
        "state": str(BUILD / f"{name}.jsonl"),
        "budget": budget,
        "untried": untried,
        "patience": group.patience,
    }
    written = BUILD / f"{name}.plan.json"
    written.write_text(json.dumps(plan))
    loops = {"NUMBA_DISABLE_JIT": "1"} if group.loops else {}
    with (BUILD / f"{name}.log").open("w") as log:
        ended = subprocess.run(
            [sys.executable, "-m", "mutation.worker", str(written)],
            cwd=ROOT,
            # The sources beside the tests, wherever an installed package comes from.
            env={
                **os.environ,
                "PYTHONPATH": f"{ROOT / 'scripts'}{os.pathsep}{ROOT / 'src'}",
                **loops,
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if ended.returncode:
        print(f"the group {name!r} ended early; see {BUILD / f'{name}.log'}", flush=True)


def _names(module: str) -> list[str]:
    tree = ast.parse((ROOT / "src" / "lustrum" / module).read_text())
    return [name for name, _ in named(module, mutants(tree))]


def report(name: str) -> list[str]:
    """Print how many mutants of a group were noticed, by module; the survivors, one line each."""
    known, survivors = read(BUILD / f"{name}.jsonl"), []
    for module in GROUPS[name].modules:
        now = _names(module)
        counts = Counter(known[n]["outcome"] if n in known else "not tried" for n in now)
        survivors += [n for n in now if n in known and known[n]["outcome"] not in _NOTICED]
        print(name, module, len(now), json.dumps(dict(sorted(counts.items()))), flush=True)
    return survivors


if __name__ == "__main__":
    main()
