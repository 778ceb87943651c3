"""A prepared table as JSON and back: only what is published, in plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lustrum.model import Category, Release, TableAxis
from lustrum.model.arrays import Ints
from lustrum.numeric.structure import UNBOUNDED


def release_words(release: Release) -> dict[str, Any]:
    """What is published of a table; a value that is not shown is null, never 0.

    >>> from lustrum.protect.suppression import Suppression
    >>> from lustrum.model import Table
    >>> release_words(Suppression().apply(Table.from_counts([1, 8])))["value"]
    [None, 8]
    """
    shown, stated = release.shown.ravel(), release.stated.ravel()
    mapping: dict[str, Any] = {
        "axes": [
            {
                "name": axis.name,
                "label": axis.label,
                "categories": [[c.code, c.label, list(c.members)] for c in axis.categories],
            }
            for axis in release.axes
        ],
        "value": [
            int(v) if s else None for v, s in zip(release.published.ravel(), shown, strict=True)
        ],
        "status": release.status.ravel().tolist(),
        "method": dict(release.method),
        "decimals": release.decimals,
        "unit": release.unit,
        "notes": [str(note) for note in release.notes],
    }
    if stated.any() and release.low is not None and release.high is not None:
        mapping["interval"] = [
            [int(low), int(high)] if known else None
            for low, high, known in zip(
                release.low.ravel(), release.high.ravel(), stated, strict=True
            )
        ]
    elif shown.all() and release.low is not None and release.high is not None:
        # What rounding or adjustment leaves open of each number.
        mapping["range"] = [
            [_end(int(low)), _end(int(high))]
            for low, high in zip(release.low.ravel(), release.high.ravel(), strict=True)
        ]
    return mapping


def release_from_words(mapping: Mapping[str, Any]) -> Release:
    """The release that was written; a value of the wrong kind is a ValueError."""
    axes = tuple(
        TableAxis(
            str(axis["name"]),
            str(axis["label"]),
            tuple(Category(str(c), str(text), tuple(m)) for c, text, m in axis["categories"]),
        )
        for axis in mapping["axes"]
    )
    shape = tuple(len(axis) for axis in axes)
    values = [-UNBOUNDED if v is None else int(v) for v in mapping["value"]]
    status = np.array(mapping["status"], dtype="<U1").reshape(shape)
    published = np.array(values, dtype=np.int64).reshape(shape)
    hidden = np.array([v is None for v in mapping["value"]], dtype=np.bool_).reshape(shape)
    if bool((hidden == (status == "F")).any()):
        raise ValueError("a value and its status contradict each other")
    low, high = np.where(hidden, -UNBOUNDED, published), np.where(hidden, UNBOUNDED, published)
    ends = mapping.get("interval") or mapping.get("range")
    if ends is not None:
        low, high = _ends(ends, 0, low, shape), _ends(ends, 1, high, shape)
    return Release(
        axes=axes,
        published=published,
        status=status,
        method=dict(mapping["method"]),
        low=low,
        high=high,
        decimals=int(mapping["decimals"]),
        unit=str(mapping["unit"]),
        notes=tuple(str(note) for note in mapping["notes"]),
    )


def _end(value: int) -> int | None:
    return value if abs(value) < UNBOUNDED else None


def _ends(
    pairs: Sequence[Sequence[int | None] | None], which: int, plain: Ints, shape: tuple[int, ...]
) -> Ints:
    open_end = (-UNBOUNDED, UNBOUNDED)[which]
    flat = plain.ravel().copy()
    for index, pair in enumerate(pairs):
        if pair is not None:
            end = pair[which]
            flat[index] = open_end if end is None else int(end)
    return flat.reshape(shape)
