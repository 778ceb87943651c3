"""The attack suites and parts of the benches, by the names under which the benches import them.

The folder of the benches itself is not put on the path: its files have the names of folders of tests.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

BENCH = Path(__file__).parents[2] / "bench"

for folder in ("attacks", "parts"):
    package = sys.modules.setdefault(folder, ModuleType(folder))
    package.__path__ = [str(BENCH / folder)]


def bench(name: str) -> ModuleType:
    """A bench as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"bench_{name}"] = module
    spec.loader.exec_module(module)
    return module
