"""Change one thing at a time where a wrong line leaks or misstates a bound, and see whether a test fails.

    python scripts/mutants.py                      # every group
    python scripts/mutants.py cell-key bounds      # some groups
    python scripts/mutants.py --report             # what is known so far, and every survivor not explained

Each group names modules and the tests that must hold them. ``mutation/operators.py`` says what is changed,
``mutation/worker.py`` how it is tried. What was tried is kept in ``build/mutants/<group>.jsonl``: a run that
was stopped goes on where it was, and a survivor is tried again when its tests have changed.
``mutation/explained/<group>.txt`` tells why survivors are harmless; ``docs/reference/mutants.md`` sums it up.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from mutation.explained import explained
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
    parser.add_argument("--table", action="store_true", help="try nothing; print one row a module")
    parser.add_argument(
        "--budget", type=float, default=20.0, help="seconds of tests for one mutant, unchanged"
    )
    given = parser.parse_args()
    wrong = [name for name in given.groups if name not in GROUPS]
    if wrong:
        parser.error(f"there is no group {wrong[0]!r}; choose from {', '.join(GROUPS)}")
    BUILD.mkdir(parents=True, exist_ok=True)
    if given.table:
        table(given.groups or GROUPS)
        return
    for name in given.groups or GROUPS:
        if given.again:
            (BUILD / f"{name}.jsonl").unlink(missing_ok=True)
        if not given.report:
            run(name, given.budget, given.untried)
        report(name, every_survivor=given.report)


def run(name: str, budget: float, untried: bool) -> None:
    """Try the mutants of a group that no test has noticed yet."""
    group, why = GROUPS[name], explained(name)
    known = read(BUILD / f"{name}.jsonl")
    plan = {
        "root": str(ROOT),
        "modules": group.modules,
        "tests": group.tests,
        "only": group.only,
        "state": str(BUILD / f"{name}.jsonl"),
        "budget": budget,
        "untried": untried,
        "patience": group.patience,
        "explained": [n for n in known if n in why],
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


def table(groups: Iterable[str]) -> None:
    """Print a row for each module: mutants, tried, noticed by a test of any group, explained, left."""
    of_module: dict[str, list[str]] = {}
    for name in groups:
        for module in GROUPS[name].modules:
            of_module.setdefault(module, []).append(name)
    for module, names in of_module.items():
        now = _names(module)
        states = [read(BUILD / f"{name}.jsonl") for name in names]
        outcomes = [{s[n]["outcome"] for s in states if n in s} for n in now]
        sentences = [explained(name) for name in names]
        tried = sum(bool(found) for found in outcomes)
        noticed = sum(bool(found & _NOTICED) for found in outcomes)
        known = sum(
            bool(found) and not found & _NOTICED and any(n in why for why in sentences)
            for n, found in zip(now, outcomes, strict=True)
        )
        said = [f"`{module}`", len(now), tried, noticed, known, tried - noticed - known]
        of_groups = ", ".join(f"`{name}`" for name in names)
        print("|", " | ".join([of_groups, *map(str, said)]), "|", flush=True)


def report(name: str, every_survivor: bool) -> None:
    """Print how many mutants of a group were noticed, by module, and survivors that nothing explains."""
    known, why = read(BUILD / f"{name}.jsonl"), explained(name)
    for module in GROUPS[name].modules:
        now = _names(module)
        counts = Counter(known[n]["outcome"] if n in known else "not tried" for n in now)
        left = [n for n in now if n in known and known[n]["outcome"] not in _NOTICED]
        counts["explained"] = sum(n in why for n in left)
        print("#", name, module, len(now), json.dumps(dict(sorted(counts.items()))), flush=True)
        if not every_survivor:
            continue
        alike = {*left, *(n.partition(" -> ")[0] + " -> *" for n in left)}
        for n in sorted(why.keys() - alike):
            if n.startswith(f"{module}:"):
                print(f"# not needed: {n}")
        place, before = "?", ""
        for n in left:
            if n in why:
                continue
            record = known[n]
            where = n.removeprefix(f"{module}:").partition(": ")[0]
            if where != place:
                place = where
                print(f"@ {module} {where}")
            if record["before"] != before:
                before = record["before"]
                print(f"- {before}")
            print(f"+ {n.partition(f'{before} -> ')[2]}")


if __name__ == "__main__":
    main()
