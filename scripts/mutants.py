"""Change one line at a time where a wrong line leaks or misstates a bound, and see whether a test fails.

    python scripts/mutants.py                      # every group
    python scripts/mutants.py totals table-entropy # some groups

Each group names modules and the tests that must hold them. mutmut makes the mutants and runs, for each, the
tests that reach it. It leaves decorated functions alone, so the copy of the package that is mutated has its
compiled loops without their decorator: plain Python, which is what numba runs with its compiler turned off.

The figures go to ``build/mutants/<group>.json``; ``docs/reference/mutants.md`` tells what survived and why.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "mutants"
# mutmut 3 reads a private attribute that pytest 9.2 no longer has.
_SHIM = """

import pytest as _pytest

_pytest.Item._nodeid = property(lambda self: self.nodeid)
"""


@dataclass(frozen=True)
class Group:
    """Modules that are mutated together and the tests that must notice."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


GROUPS = {
    "totals": Group(
        ("protect/totals/safe.py", "protect/totals/lines.py", "protect/totals/summed.py"),
        ("tests/protect/test_reader_of_totals.py", "tests/protect/test_safe_totals.py"),
    ),
    "cell-key": Group(
        ("protect/cell_key/counts.py",),
        (
            "tests/protect/test_reader_of_totals.py",
            "tests/protect/test_cell_key.py",
            "tests/protect/test_cell_key_additive.py",
            "tests/protect/test_conformance.py",
        ),
    ),
    "table-entropy": Group(("risk/table_entropy.py",), ("tests/risk/test_table_entropy.py",)),
    "network": Group(
        ("audit/bounding/network.py", "audit/bounding/network_kernels.py"),
        ("tests/audit/test_network.py",),
    ),
}


def main() -> None:
    """Run the groups that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("groups", nargs="*", metavar="group", help=", ".join(GROUPS))
    parser.add_argument("--again", action="store_true", help="forget the mutants already tried")
    parser.add_argument("--children", type=int, default=2, help="processes at a time")
    given = parser.parse_args()
    wrong = [name for name in given.groups if name not in GROUPS]
    if wrong:
        parser.error(f"there is no group {wrong[0]!r}; choose from {', '.join(GROUPS)}")
    for name in given.groups or GROUPS:
        if given.again:
            shutil.rmtree(BUILD / name, ignore_errors=True)
        counts = run(name, GROUPS[name], given.children)
        print(name, json.dumps(counts), flush=True)


def run(name: str, group: Group, children: int) -> dict[str, int]:
    """Mutate the modules of a group in a copy of the project, and count what became of the mutants.

    A run that was stopped goes on where it was: mutmut keeps what it has tried beside the copy.
    """
    copy = BUILD / name
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored, dirs_exist_ok=True)
    for module in group.modules:
        path = copy / "src" / "lustrum" / module
        path.write_text(re.sub(r"^@compiled\n", "", path.read_text(), flags=re.MULTILINE))
    (copy / "pyproject.toml").write_text(_configuration(group))
    with (copy / "tests" / "conftest.py").open("a") as conftest:
        conftest.write(_SHIM)

    def mutmut(*words: str) -> str:
        command = [sys.executable, "-m", "mutmut", *words]
        done = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.stdout

    (BUILD / f"{name}.log").write_text(mutmut("run", "--max-children", str(children)))
    outcome = {}
    for line in mutmut("results", "--all", "true").splitlines():
        mutant, _, said = line.strip().rpartition(": ")
        if mutant.startswith("lustrum."):
            outcome[mutant] = said
    if not set(outcome.values()) - {"not checked"}:
        sys.exit(f"mutmut did not run the group {name!r}; see {BUILD / f'{name}.log'}.")
    alive = sorted(m for m, said in outcome.items() if said in ("survived", "suspicious"))
    record = {
        "modules": group.modules,
        "tests": group.tests,
        "counts": dict(sorted(Counter(outcome.values()).items())),
        "without tests": sorted(m for m, said in outcome.items() if said == "no tests"),
        "survived": {mutant: mutmut("show", mutant) for mutant in alive},
    }
    (BUILD / f"{name}.json").write_text(json.dumps(record, indent=1))
    return dict(record["counts"])


def _configuration(group: Group) -> str:
    """The project's settings for tests, with those of mutmut in place of all others."""
    return "\n".join(
        (
            "[tool.mutmut]",
            'source_paths = ["src"]',
            f"only_mutate = {json.dumps([f'src/lustrum/{m}' for m in group.modules])}",
            f"pytest_add_cli_args_test_selection = {json.dumps(list(group.tests))}",
            'pytest_add_cli_args = ["-m", "not slow", "-p", "no:cacheprovider", "-W", "ignore"]',
            "use_git_change_detection = false",
            "track_dependencies = false",
            "[tool.pytest.ini_options]",
            'pythonpath = ["tests"]',
            'addopts = ["--import-mode=importlib"]',
            'markers = ["slow: takes long", "browser: drives a browser"]',
            "",
        )
    )


if __name__ == "__main__":
    main()
