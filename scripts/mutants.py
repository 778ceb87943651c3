"""Change one thing at a time where a wrong line leaks or misstates a bound, and see whether a test fails.

    python scripts/mutants.py audit/bounding                     # a room or a part of one
    python scripts/mutants.py protect/cell_key --tests tests/protect/test_cell_key.py
    python scripts/mutants.py numeric/structure/kernels.py --loops
    python scripts/mutants.py audit --report                     # try nothing; count what is known so far

The tests of a module are those of its room unless they are named; only those that reach a line are run.
``mutation/operators.py`` says what is changed, ``mutation/worker.py`` how it is tried. What was tried is
kept in ``build/mutants``: a run that was stopped goes on where it was, and a survivor is tried again when its
tests have changed. Changes that no test noticed are written to ``build/mutants/survivors.txt``.
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

from mutation.operators import mutants
from mutation.worker import named, read

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "lustrum"
BUILD = ROOT / "build" / "mutants"
_NOTICED = {"killed", "timeout", "crashed"}
_FOLDERS = {"public": "public_room"}  # of tests, where they are not called like the room


def main() -> None:
    """Try the mutants of the modules that were named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="+", help="rooms, folders or files below src/lustrum")
    parser.add_argument("--tests", nargs="+", help="the tests that must notice")
    parser.add_argument("--only", default="", help="choose among the tests, as pytest -k does")
    parser.add_argument("--loops", action="store_true", help="run compiled loops as plain Python")
    parser.add_argument("--again", action="store_true", help="forget the mutants already tried")
    parser.add_argument("--untried", action="store_true", help="leave survivors for another run")
    parser.add_argument("--report", action="store_true", help="try nothing; say what is known")
    parser.add_argument("--patience", type=int, default=0, help="seconds that a test may take")
    parser.add_argument(
        "--budget", type=float, default=20.0, help="seconds of tests for one mutant, unchanged"
    )
    given = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    survivors: list[str] = []
    for part in given.parts:
        found = modules(part)
        if not found:
            parser.error(f"there is no module {part!r} below src/lustrum")
        name = part.removesuffix(".py").replace("/", "-")
        if given.again:
            (BUILD / f"{name}.jsonl").unlink(missing_ok=True)
        if not given.report:
            run(name, found, given)
        survivors += report(name, found)
    written = BUILD / "survivors.txt"
    written.write_text("".join(f"{line}\n" for line in survivors), encoding="utf-8")
    print(f"{len(survivors)} changes that no test noticed: {written.relative_to(ROOT)}")


def modules(part: str) -> list[str]:
    """The files of a room, a folder or a module, below the package."""
    path = SOURCE / part
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.is_file() else []
    return [str(file.relative_to(SOURCE)) for file in files if file.name != "__init__.py"]


def tests_of(found: list[str]) -> list[str]:
    """The folders of tests of the rooms of some modules."""
    folders = [f"tests/{_FOLDERS.get(room, room)}" for room in {m.split("/")[0] for m in found}]
    return sorted(folder for folder in folders if (ROOT / folder).is_dir())


def run(name: str, found: list[str], given: argparse.Namespace) -> None:
    """Try the mutants that no test has noticed yet."""
    plan = {
        "root": str(ROOT),
        "modules": found,
        "tests": given.tests or tests_of(found),
        "only": given.only,
        "state": str(BUILD / f"{name}.jsonl"),
        "budget": given.budget,
        "untried": given.untried,
        "patience": given.patience,
    }
    written = BUILD / f"{name}.plan.json"
    written.write_text(json.dumps(plan))
    loops = {"NUMBA_DISABLE_JIT": "1"} if given.loops else {}
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
        print(f"{name!r} ended early; see {BUILD / f'{name}.log'}", flush=True)


def _names(module: str) -> list[str]:
    tree = ast.parse((SOURCE / module).read_text())
    return [name for name, _ in named(module, mutants(tree))]


def report(name: str, found: list[str]) -> list[str]:
    """Print how many mutants were noticed, by module; the survivors, one line each."""
    known, survivors = read(BUILD / f"{name}.jsonl"), []
    for module in found:
        now = _names(module)
        counts = Counter(known[n]["outcome"] if n in known else "not tried" for n in now)
        survivors += [n for n in now if n in known and known[n]["outcome"] not in _NOTICED]
        print(name, module, len(now), json.dumps(dict(sorted(counts.items()))), flush=True)
    return survivors


if __name__ == "__main__":
    main()
