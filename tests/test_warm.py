"""A quick start: what the first command and the first audit do not wait for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lustrum.cli import warm as warming
from lustrum.cli.warm import WAYS, warm

HEAVY = ("duckdb", "fastapi", "highspy", "numba", "pandas", "polars", "pyarrow", "scipy", "uvicorn")


@pytest.mark.parametrize(
    "words", [["--help"], ["audit", "--help"], ["serve", "--help"], ["--version"]]
)
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    program = (
        "import sys\n"
        "from lustrum.cli import main\n"
        f"sys.argv = ['lustrum', *{words!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
    assert done.stdout


TABLE = "area,sex,value\nA,M,3\nA,F,6\nA,T,9\nB,M,12\nB,F,3\nB,T,15\nT,M,15\nT,F,9\nT,T,24\n"
NOT_FOR_A_FILE = {
    *HEAVY,
    *("altair", "cryptography", "openpyxl", "pydantic_settings", "xlsxwriter"),
    *("scipy.linalg", "scipy.optimize", "scipy.sparse.csgraph", "scipy.sparse.linalg"),
    "lustrum.tabulate",
} - {"scipy", "highspy"}  # sparse matrices, and the solver


CONTRIBUTIONS = (
    "area,sex,value,n,x1,x2\n"
    "A,M,94,2,90,4\nA,F,91,3,36,30\nA,T,185,5,90,36\n"
    "B,M,91,3,33,30\nB,F,101,3,41,38\nB,T,192,6,41,38\n"
    "T,M,185,5,90,33\nT,F,192,6,41,38\nT,T,377,11,90,41\n"
)
NOT_FOR_SUPPRESSION = NOT_FOR_A_FILE | {
    *("lustrum.audit.belief", "lustrum.audit.certificate"),
    *("lustrum.formats.pattern_picture", "lustrum.formats.xlsx"),
    "lustrum.sensitivity.rules.disclosure",
}


@pytest.mark.parametrize(
    ("words", "table", "heavy"),
    [
        (["--rule", "threshold=4", "--kind", "counts"], TABLE, NOT_FOR_SUPPRESSION),
        (["--rule", "p=10"], CONTRIBUTIONS, NOT_FOR_SUPPRESSION),
    ],
)
def test_a_small_file_needs_neither_the_compiler_nor_other_heavy_modules(
    words: list[str], table: str, heavy: set[str], tmp_path: Path
) -> None:
    (tmp_path / "table.csv").write_text(table)
    program = (
        "import sys\n"
        "from lustrum.cli import main\n"
        f"sys.argv = ['lustrum', *{['suppress', 'table.csv', '--out', 'out.csv', *words]!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print(sorted(set(sys.modules) & set({heavy!r})), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stderr.strip().endswith("[]")
    assert "area" in done.stdout


BUNDLES = """
import sys
from lustrum.answer import TableService
from lustrum.demo.draws import SHIPPED
from lustrum.model import TableQuery
from lustrum.server.app import create_app
service = TableService(bundles=sorted(SHIPPED.iterdir()))
create_app(service)
for name, more in (("demo", {}), ("businesses", {"measure": "turnover"}), ("survey", {"weight": "weight"})):
    by = {"demo": "sex", "businesses": "size", "survey": "sex"}[name]
    assert service.answer(TableQuery.from_mapping({"dataset": name, "by": [by], **more})).release
service.close()
print(sorted(set(sys.modules) & set(sys.argv[1:])))
"""
NOT_FOR_A_BUNDLE = (
    *(
        "altair", "clarabel", "cryptography", "duckdb", "ibis", "openpyxl", "polars", "rich",
        "typer",
    ),
    *("scipy.optimize", "scipy.sparse.linalg", "lustrum.publish", "lustrum.tabulate"),
)  # fmt: skip


def test_a_server_of_bundles_loads_what_answers_need_alone() -> None:
    command = [sys.executable, "-c", BUNDLES, *NOT_FOR_A_BUNDLE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


AUDIT = """
import sys

import numpy as np

from lustrum.numeric.compiled import Loop, always_compile
from lustrum.cli.warm import WAYS

always_compile()

def kernels():
    for module in [m for n, m in sys.modules.items() if n.startswith("lustrum")]:
        for name, kernel in vars(module).items():
            if isinstance(kernel, Loop) and "kernel" in vars(kernel):
                yield module.__name__ + "." + name, kernel

def compiled():
    return {(name, signature) for name, kernel in kernels() for signature in kernel.signatures}

WAYS["audits"]()
warm = compiled()
assert warm
from lustrum.audit import bounds, from_release
from lustrum.model import Category, Table, TableAxis
from lustrum.protect import RandomRounding

def axis(name):
    cats = (Category("a", "a", (0,)), Category("b", "b", (1,)), Category("_T", "all", (0, 1)))
    return TableAxis(name, name, cats)

values = np.array([[3, 5, 8], [7, 2, 9], [10, 7, 17]])
table = Table((axis("x"), axis("y")), values)
bounds(from_release(RandomRounding(base=3).apply(table, rng=np.random.default_rng(1))), integer=True)
assert compiled() == warm, compiled() - warm
assert all(kernel.stats.cache_path for _, kernel in kernels())  # kept on disk
"""


@pytest.mark.slow
def test_the_first_audit_needs_no_loop_that_the_warm_up_did_not_compile() -> None:
    subprocess.run([sys.executable, "-c", AUDIT], check=True)


def test_one_way_that_fails_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def broken() -> None:
        raise OSError("secret text")

    monkeypatch.setattr(warming, "WAYS", {"first": broken, "second": lambda: done.append("second")})
    said: list[str] = []
    assert not warm(said.append)
    assert done == ["second"]
    assert said[0] == "first: OSError"
    assert set(WAYS) == {"answers", "sums", "audits", "rounding"}


def test_ways_run_side_by_side_in_processes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        warming, "WAYS", {"unknown": WAYS["rounding"], "rounding": WAYS["rounding"]}
    )
    said: list[str] = []
    assert not warm(said.append, lanes=2)
    assert [line for line in said if line == "unknown: KeyError"]
    assert [line for line in said if line.startswith("rounding: ") and line.endswith(" s")]


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_every_way_runs(name: str) -> None:
    WAYS[name]()
