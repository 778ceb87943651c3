"""Change one line at a time where a wrong line leaks or misstates a bound, and see whether a test fails.

    python scripts/mutants.py                      # every group
    python scripts/mutants.py lines table-entropy  # some groups

Each group names modules and the tests that must hold them. mutmut makes the mutants and runs, for each, the
tests that reach it; ``mutmut_figures.py`` says which kinds of mutants are left out. mutmut skips decorated
functions, so the copy of the package that is mutated has its compiled loops without their decorator: plain
Python, which is what numba runs with its compiler turned off.

The figures go to ``build/mutants/<group>.json``; ``docs/reference/mutants.md`` tells what survived and why.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "mutants"
_PYTEST = ["-m", "not slow and not deep", "-p", "no:cacheprovider", "-W", "ignore"]
# mutmut 3 reads a private attribute that pytest 9.2 no longer has.
_SHIM = """

import pytest as _pytest

_pytest.Item._nodeid = property(lambda self: self.nodeid)
"""


@dataclass(frozen=True)
class Group:
    """Modules that are mutated together and the tests that must notice.

    With ``loops`` the modules hold compiled loops, which are mutated as plain Python, without the compiler.
    ``only`` chooses among the tests, as ``pytest -k`` does.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    loops: bool = False
    only: str = ""


_TOTALS = ("tests/protect/test_reader_of_totals.py", "tests/protect/test_safe_totals.py")
_CELL_KEY = (
    "tests/protect/test_reader_of_totals.py",
    "tests/protect/test_cell_key.py",
    "tests/protect/test_cell_key_additive.py",
    "tests/protect/test_conformance.py",
)
_NETWORK = ("tests/audit/test_network.py",)
_CERTIFICATES = (
    "tests/audit/test_certificate.py",
    "tests/audit/test_certificate_hostile.py",
    "tests/audit/test_certificate_tampering.py",
)
_RELEASE = (
    "tests/release/test_table_service.py",
    "tests/release/test_pipeline.py",
    "tests/release/test_rules.py",
    "tests/release/test_one_number.py",
    "tests/release/test_replay.py",
)
_POPULATION = ("tests/protect/population",)
_SUPPRESSION = ("tests/protect/suppression", "tests/protect/test_partial_suppression.py")


def _in(room: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{room}/{name}.py" for name in names)


GROUPS = {
    "table-entropy": Group(("risk/table_entropy.py",), ("tests/risk/test_table_entropy.py",)),
    "safe-totals": Group(_in("protect/totals", "safe", "summed"), _TOTALS),
    "lines": Group(("protect/totals/lines.py",), _TOTALS, loops=True),
    "cell-key": Group(
        ("protect/cell_key/counts.py",), _CELL_KEY, only="not keeps_the_contracts or cell-key"
    ),
    "network": Group(("audit/bounding/network.py",), _NETWORK),
    "network-loops": Group(("audit/bounding/network_kernels.py",), _NETWORK, loops=True),
    "bounds": Group(
        _in("audit/bounding", "compute", "sweep", "lattice"),
        (
            "tests/audit/test_bounds.py",
            "tests/audit/test_bounds_sweep.py",
            "tests/audit/test_bounds_infeasible.py",
        ),
    ),
    "elimination": Group(
        ("audit/bounding/elimination.py",), ("tests/audit/test_bounds_elimination.py",)
    ),
    "certificates": Group(_in("audit/certificate", "verify", "exact", "linear"), _CERTIFICATES),
    "release": Group(_in("release", "figures", "numbers", "pipeline", "precheck"), _RELEASE),
    "structure": Group(
        _in("structure", "intervals", "relations", "incidence", "build"),
        (
            "tests/structure/test_intervals.py",
            "tests/structure/test_relations.py",
            "tests/structure/test_incidence.py",
        ),
    ),
    "population": Group(
        _in("protect/population", "support", "channel", "start", "candidates"), _POPULATION
    ),
    "suppression": Group(_in("protect/suppression", "check", "attackers"), _SUPPRESSION),
    "sensitivity": Group(
        _in(
            "sensitivity", "threshold", "dominance", "p_percent", "prior_posterior", "k_disclosure"
        ),
        ("tests/sensitivity",),
    ),
    "rounding": Group(
        _in("protect/rounding", "random", "conventional", "small_counts", "semi_controlled"),
        (
            "tests/protect/test_random_rounding.py",
            "tests/protect/test_conventional_rounding.py",
            "tests/protect/test_small_count_rounding.py",
            "tests/protect/test_semi_controlled_rounding.py",
            "tests/protect/test_reader_of_totals.py",
        ),
    ),
    "perturbation": Group(
        _in("protect/perturbation", "spec", "lookup"),
        ("tests/protect/test_perturbation.py", "tests/protect/test_perturbation_design.py"),
    ),
    "risk": Group(
        _in("risk", "r1", "r2", "simple", "entropy", "cell_entropy"),
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
    parser.add_argument(
        "--minutes", type=float, help="stop a group after so long; run again to go on"
    )
    given = parser.parse_args()
    wrong = [name for name in given.groups if name not in GROUPS]
    if wrong:
        parser.error(f"there is no group {wrong[0]!r}; choose from {', '.join(GROUPS)}")
    for name in given.groups or GROUPS:
        if given.again:
            shutil.rmtree(BUILD / name, ignore_errors=True)
        counts = run(name, GROUPS[name], given.children, given.minutes)
        print(name, json.dumps(counts), flush=True)


def run(name: str, group: Group, children: int, minutes: float | None) -> dict[str, int]:
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

    def mutmut(*words: str, seconds: float | None = None) -> str:
        with subprocess.Popen(
            [sys.executable, str(ROOT / "scripts" / "mutmut_figures.py"), *words],
            cwd=copy,
            env={**os.environ, "NUMBA_DISABLE_JIT": "1" if group.loops else "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as running:
            try:
                return running.communicate(timeout=seconds)[0]
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                return running.communicate()[0]

    seconds = None if minutes is None else 60 * minutes
    log = mutmut("run", "--max-children", str(children), seconds=seconds)
    (BUILD / f"{name}.log").write_text(log)
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
    chosen = f"not compiled and ({group.only})" if group.only else "not compiled"
    return "\n".join(
        (
            "[tool.mutmut]",
            'source_paths = ["src"]',
            f"only_mutate = {json.dumps([f'src/lustrum/{m}' for m in group.modules])}",
            f"pytest_add_cli_args_test_selection = {json.dumps(list(group.tests))}",
            f"pytest_add_cli_args = {json.dumps([*_PYTEST, '-k', chosen])}",
            "timeout_multiplier = 5.0",
            "use_git_change_detection = false",
            "track_dependencies = false",
            "[tool.pytest.ini_options]",
            'pythonpath = ["tests"]',
            'addopts = ["--import-mode=importlib"]',
            'markers = ["slow: takes long", "deep: takes minutes", "browser: drives a browser"]',
            "",
        )
    )


if __name__ == "__main__":
    main()
