"""The dataset descriptions shipped with the demo: the generators take their codes from these same files."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.demo.draws import Positions

NAMES = ("demo", "businesses", "survey", "censuses")
"""The demo datasets."""
SHIPPED = Path(__file__).parent / "bundles"
"""Their public bundles, made ahead by ``make demo-bundles``."""


def description_path(name: str) -> Path:
    """The TOML file that describes a demo dataset, ``demo``, ``businesses``, ``survey`` or ``censuses``.

    >>> description_path("demo").name
    'demo.toml'
    """
    if name not in NAMES:
        raise ValueError(f"no demo dataset {name!r}; there are {', '.join(NAMES)}")
    return Path(__file__).parent / "files" / f"{name}.toml"


@cache
def described(name: str) -> dict[str, Any]:
    return tomllib.loads(description_path(name).read_text(encoding="utf-8"))


def codes(dataset: str, variable: str) -> list[str]:
    """The finest codes of a variable; the generators work with positions in this list."""
    (found,) = (v for v in described(dataset)["variables"] if v["name"] == variable)
    return [code for code, _ in found["codes"]]


def categories(dataset: str, **positions: Positions) -> dict[str, pa.DictionaryArray]:
    """A dictionary column for each variable, with every code in the order of its description."""
    columns = {}
    for name, position in positions.items():
        listed = codes(dataset, name)
        index = np.uint8 if len(listed) <= np.iinfo(np.uint8).max else np.uint16
        columns[name] = pa.DictionaryArray.from_arrays(
            pa.array(position.astype(index)), pa.array(listed, type=pa.string())
        )
    return columns
