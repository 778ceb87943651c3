"""The attack suites of the benches, by the name under which the benches import them.

The folder of the benches itself is not put on the path: its files have the names of folders of tests.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ATTACKS = Path(__file__).parents[2] / "bench" / "attacks"

if "attacks" not in sys.modules:
    spec = importlib.util.spec_from_file_location(
        "attacks", ATTACKS / "__init__.py", submodule_search_locations=[str(ATTACKS)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["attacks"] = package
    spec.loader.exec_module(package)


def bench(name: str) -> ModuleType:
    """A bench as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", ATTACKS.parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"bench_{name}"] = module
    spec.loader.exec_module(module)
    return module
