"""``import lustrum`` is light: the heavy libraries come with the rooms that use them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_importing_the_package_brings_in_no_heavy_library() -> None:
    heavy = ("numpy", "numba", "duckdb", "pyarrow", "fastapi", "scipy", "pydantic", "typer")
    code = f"import sys, lustrum; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_line_can_show_its_help_without_heavy_libraries() -> None:
    heavy = ("numpy", "numba", "duckdb", "pyarrow", "fastapi", "scipy", "pydantic")
    code = (
        "import sys\nfrom lustrum.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_array_types_are_named_in_one_place() -> None:
    alias = re.compile(r"^(Ints|Floats|Mask|Words|Indices|Array)\b.* = npt\.NDArray", re.MULTILINE)
    elsewhere = [
        str(file.relative_to(ROOT))
        for folder in ("src", "tests", "bench", "scripts")
        for file in (ROOT / folder).rglob("*.py")
        if file.name != "arrays.py" and alias.search(file.read_text())
    ]
    assert not elsewhere, "import these from lustrum.model.arrays"


def test_no_two_classes_have_one_name() -> None:
    files = defaultdict(list)
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(str(file.relative_to(ROOT)))
    assert len(files) > 500
    assert not {name: where for name, where in files.items() if len(where) > 1}


def test_our_own_modules_are_imported_in_the_open() -> None:
    """A name in a string hides an arrow from the contracts: only the loader of plug-ins may follow one."""
    hidden = [
        str(file.relative_to(ROOT))
        for file in sorted((ROOT / "src").rglob("*.py"))
        if re.search(r"import_module\(\s*(f?[\"']lustrum|f[\"'])|__import__\(", file.read_text())
    ]
    assert not hidden
