"""Change one line at a time where a wrong line leaks or misstates a bound, and see whether a test fails.

    python scripts/mutants.py                      # every group
    python scripts/mutants.py lines table-entropy  # some groups

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
_PYTEST = ["-m", "not slow", "-k", "not compiled", "-p", "no:cacheprovider", "-W", "ignore"]
# mutmut 3 reads a private attribute that pytest 9.2 no longer has.
_SHIM = """

import pytest as _pytest

_pytest.Item._nodeid = property(lambda self: self.nodeid)
"""


@dataclass(frozen=True)
class Group:
    """Modules that are mutated together and the tests that must notice.

    With ``loops`` the modules hold compiled loops, which are mutated as plain Python, without the compiler.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    loops: bool = False


_TOTALS = ("tests/protect/test_reader_of_totals.py", "tests/protect/test_safe_totals.py")
_CELL_KEY = (
    "tests/protect/test_reader_of_totals.py",
    "tests/protect/test_cell_key.py",
    "tests/protect/test_cell_key_additive.py",
    "tests/protect/test_conformance.py",
)
_NETWORK = ("tests/audit/test_network.py",)
GROUPS = {
    "table-entropy": Group(("risk/table_entropy.py",), ("tests/risk/test_table_entropy.py",)),
    "safe-totals": Group(("protect/totals/safe.py", "protect/totals/summed.py"), _TOTALS),
    "lines": Group(("protect/totals/lines.py",), _TOTALS, loops=True),
    "cell-key": Group(("protect/cell_key/counts.py",), _CELL_KEY),
    "network": Group(("audit/bounding/network.py",), _NETWORK),
    "network-loops": Group(("audit/bounding/network_kernels.py",), _NETWORK, loops=True),
    "rounding": Group(
        (
            "protect/rounding/random.py",
            "protect/rounding/conventional.py",
            "protect/rounding/small_counts.py",
            "protect/rounding/semi_controlled.py",
        ),
        (
            "tests/protect/test_random_rounding.py",
            "tests/protect/test_conventional_rounding.py",
            "tests/protect/test_small_count_rounding.py",
            "tests/protect/test_semi_controlled_rounding.py",
            "tests/protect/test_reader_of_totals.py",
        ),
    ),
    "perturbation": Group(
        ("protect/perturbation/spec.py", "protect/perturbation/lookup.py"),
        ("tests/protect/test_perturbation.py", "tests/protect/test_perturbation_design.py"),
    ),
    "certificates": Group(
        (
            "audit/certificate/verify.py",
            "audit/certificate/exact.py",
            "audit/certificate/linear.py",
        ),
        (
            "tests/audit/test_certificate.py",
            "tests/audit/test_certificate_hostile.py",
            "tests/audit/test_certificate_tampering.py",
        ),
    ),
    "risk": Group(
        ("risk/r1.py", "risk/r2.py", "risk/simple.py", "risk/entropy.py", "risk/cell_entropy.py"),
        (
            "tests/risk/test_r1.py",
            "tests/risk/test_r2.py",
            "tests/risk/test_simple.py",
            "tests/risk/test_cell_entropy.py",
        ),
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
    for module in group.modules if group.loops else ():
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
            env={**os.environ, "NUMBA_DISABLE_JIT": "1" if group.loops else "0"},
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
        print(f"mutmut did not run the group {name!r}; see {BUILD / f'{name}.log'}.")
        return {}
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
            f"pytest_add_cli_args = {json.dumps(_PYTEST)}",
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
