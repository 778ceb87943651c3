"""A prepared table as JSON and back: only what is published, in plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lustrum.arrays import Ints
from lustrum.model import Category, Release, TableAxis
from lustrum.structure import UNBOUNDED


def release_words(release: Release) -> dict[str, Any]:
    """What is published of a table; a value that is not shown is null, never 0.

    >>> from lustrum.protect.suppression import Suppression
    >>> from lustrum.model import Table
    >>> release_words(Suppression().apply(Table.from_counts([1, 8])))["value"]
    [None, 8]
    """
    shown, stated = release.shown.ravel(), release.stated.ravel()
    words: dict[str, Any] = {
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
        words["interval"] = [
            [int(low), int(high)] if known else None
            for low, high, known in zip(
                release.low.ravel(), release.high.ravel(), stated, strict=True
            )
        ]
    elif shown.all() and release.low is not None and release.high is not None:
        # What rounding or adjustment leaves open of each number.
        words["range"] = [
            [_end(int(low)), _end(int(high))]
            for low, high in zip(release.low.ravel(), release.high.ravel(), strict=True)
        ]
    return words


def release_from_words(words: Mapping[str, Any]) -> Release:
    """The release that was written; a value of the wrong kind is a ValueError."""
    axes = tuple(
        TableAxis(
            str(axis["name"]),
            str(axis["label"]),
            tuple(Category(str(c), str(text), tuple(m)) for c, text, m in axis["categories"]),
        )
        for axis in words["axes"]
    )
    shape = tuple(len(axis) for axis in axes)
    values = [-UNBOUNDED if v is None else int(v) for v in words["value"]]
    status = np.array(words["status"], dtype="<U1").reshape(shape)
    published = np.array(values, dtype=np.int64).reshape(shape)
    hidden = np.array([v is None for v in words["value"]], dtype=np.bool_).reshape(shape)
    if bool((hidden == (status == "F")).any()):
        raise ValueError("a value and its status contradict each other")
    low, high = np.where(hidden, -UNBOUNDED, published), np.where(hidden, UNBOUNDED, published)
    ends = words.get("interval") or words.get("range")
    if ends is not None:
        low, high = _ends(ends, 0, low, shape), _ends(ends, 1, high, shape)
    return Release(
        axes=axes,
        published=published,
        status=status,
        method=dict(words["method"]),
        low=low,
        high=high,
        decimals=int(words["decimals"]),
        unit=str(words["unit"]),
        notes=tuple(str(note) for note in words["notes"]),
    )


def _end(value: int) -> int | None:
    return value if abs(value) < UNBOUNDED else None


def _ends(
    pairs: Sequence[Sequence[int | None] | None], which: int, plain: Ints, shape: tuple[int, ...]
) -> Ints:
    open_end = (-UNBOUNDED, UNBOUNDED)[which]
    flat = plain.ravel().copy()
    for place, pair in enumerate(pairs):
        if pair is not None:
            end = pair[which]
            flat[place] = open_end if end is None else int(end)
    return flat.reshape(shape)
