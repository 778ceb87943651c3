"""Drawing categories from tables of weights, the same way on every machine, and their descriptions.

Only ``Generator.random`` is called for categories, and they come from an inverse distribution function.
Weights are made of correctly rounded operations: powers and exponentials by `lustrum.numeric.arithmetic`, and
lines between points by :func:`between`, since numpy's may be fused.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lustrum.model.arrays import Floats, Ints, Mask

Positions = Ints
Flags = Mask

#: Called with the share of the work done, from 0 to 1.
Progress = Callable[[float], None]

_DECIMALS = 12


def silent(_: float) -> None:
    """Report no progress."""


def generators(seed: int, count: int) -> list[np.random.Generator]:
    """Independent generators, so that one stage never shifts the draws of another."""
    children = np.random.SeedSequence(seed).spawn(count)
    return [np.random.Generator(np.random.PCG64(child)) for child in children]


def distribution(weights: npt.ArrayLike) -> Floats:
    """Cumulative shares along the last axis; a zero weight is never drawn.

    >>> distribution([1, 0, 3]).tolist()
    [0.25, 0.25, 1.0]
    """
    array = np.asarray(weights, dtype=np.float64)
    cumulative = np.cumsum(array, axis=-1)
    shares: Floats = np.round(cumulative / cumulative[..., -1:], _DECIMALS)
    return shares


def between(at: npt.ArrayLike, points: npt.ArrayLike, values: npt.ArrayLike) -> Floats:
    """Straight lines through points, and their first and last value outside.

    >>> between([0, 1, 2, 9], [1, 3], [10.0, 20.0]).tolist()
    [10.0, 10.0, 15.0, 20.0]
    """
    x, known = np.asarray(at, dtype=np.float64), np.asarray(points, dtype=np.float64)
    y = np.asarray(values, dtype=np.float64)
    x = np.clip(x, known[0], known[-1])
    left = np.clip(np.searchsorted(known, x, side="right") - 1, 0, known.size - 2)
    slope = (y[left + 1] - y[left]) / (known[left + 1] - known[left])
    interpolated = slope * (x - known[left]) + y[left]
    return np.asarray(np.where(x == known[-1], y[-1], interpolated))


def pick(uniform: Floats, cumulative: Floats) -> Positions:
    """Positions drawn from one distribution by inversion."""
    return np.searchsorted(cumulative, uniform, side="right").astype(np.int64)


def pick_by_row(uniform: Floats, cumulative: Floats, rows: Positions) -> Positions:
    """Positions drawn from the distribution in each record's own row of ``cumulative``."""
    positions = np.zeros(len(rows), dtype=np.int64)
    for column in range(cumulative.shape[1] - 1):
        positions += uniform >= cumulative[:, column][rows]
    return positions


def draw_given(uniform: Floats, *factors: tuple[Floats, Positions]) -> Positions:
    """Positions whose weights are products of factors, each in the row of the record's own trait.

    A factor is a table with one column for each position, and the row in it that holds for each record.

    >>> sunny, windy = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.5]])
    >>> draw_given(np.array([0.4]), (sunny, np.array([0])), (windy, np.array([0]))).tolist()
    [0]
    """
    weights = np.ones((1, factors[0][0].shape[1]))
    rows = np.zeros(len(uniform), dtype=np.int64)
    for table, row in factors:
        weights = (weights[:, None, :] * table).reshape(-1, table.shape[1])
        rows = rows * len(table) + row
    return pick_by_row(uniform, distribution(weights), rows)


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
