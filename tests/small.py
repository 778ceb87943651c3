"""Small datasets, axes and tables that many tests describe alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lustrum.model import Category, Dataset, Table, TableAxis

__all__ = ["described", "hierarchy", "summed", "with_total", "with_totals"]


def described(
    name: str, variables: Mapping[str, Any], /, *, head: Mapping[str, Any] = {}, **more: Any
) -> Dataset:
    """A dataset of variables by their codes, or all their words; ``head`` and ``more`` are further words."""
    words = [own if isinstance(own, Mapping) else {"codes": own} for own in variables.values()]
    listed = [
        {"name": name, **own, "codes": list(own["codes"])}
        for name, own in zip(variables, words, strict=True)
    ]
    return Dataset.from_mapping({"dataset": {"name": name, **head}, "variables": listed, **more})


def hierarchy(name: str, levels: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, Any]:
    """A hierarchy by its levels, each of which has the members of its groups."""
    return {
        "name": name,
        "levels": [
            {
                "name": level,
                "groups": [{"code": code, "members": list(own)} for code, own in groups.items()],
            }
            for level, groups in levels.items()
        ],
    }


def with_total(name: str, size: int) -> TableAxis:
    """An axis of so many codes, and their total at its end."""
    parts = (Category(str(k), str(k), (k,)) for k in range(size))
    return TableAxis(name, name, (*parts, Category("_T", "Total", tuple(range(size)))))


def with_totals(inner: np.ndarray) -> np.ndarray:
    """The same numbers with their totals at the end of every axis."""
    for place in range(inner.ndim):
        total = inner.sum(axis=place, keepdims=True, dtype=inner.dtype)
        inner = np.concatenate([inner, total], axis=place)
    return inner


def summed(
    inner: np.ndarray, keys: np.ndarray | None = None, names: Sequence[str] = "abc"
) -> Table:
    """A table of these inner cells with totals along every axis, as an engine would count it."""
    axes = tuple(with_total(name, size) for name, size in zip(names, inner.shape, strict=False))
    words = None if keys is None else with_totals(keys)
    return Table(axes=axes, values=with_totals(inner), keys=words)
