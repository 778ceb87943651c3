"""``import lustrum`` is light: the heavy libraries come with the rooms that use them."""

from __future__ import annotations

import re
import subprocess
import sys
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
    assert not elsewhere, "import these from lustrum.arrays"
