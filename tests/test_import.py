"""``import lustrum`` is light: the heavy libraries come with the rooms that use them."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_package_brings_in_no_heavy_library() -> None:
    heavy = ("numba", "duckdb", "pyarrow", "fastapi", "scipy", "pydantic", "typer")
    code = f"import sys, lustrum; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
