"""Counts in a labelled frame, such as ``pandas.crosstab`` makes: names, labels and margins are kept.

Margins are recognised by their name or because they are the sums of the others. A margin taken for a category
would let anybody subtract a suppressed cell, so what is not certain is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Ints, Mask
from lustrum.model.errors import InputError, choices
from lustrum.model.hierarchy import Category
from lustrum.model.variable import RESERVED, TOTAL_CODE

MarginsName = str | Literal[False] | None

_TOTAL_NAMES = frozenset({"all", "total", "totals", "grand total", "sum", "_t"})
_MOST_CELLS = 50_000_000
AxisParts = tuple[str, tuple[Category, ...]]


def is_labelled(counts: object) -> bool:
    """Whether counts come with labels of their own: a pandas frame or series."""
    return type(counts).__module__.partition(".")[0] == "pandas" and hasattr(counts, "index")


def whole_numbers(counts: npt.ArrayLike) -> Ints:
    """Counts as 64-bit integers; fractions, gaps and other values are refused."""
    try:
        raw = np.asarray(counts)
    except ValueError:  # numpy's own sentence is about shapes and sequences
        raise InputError("Counts must be an array whose rows are equally long.") from None
    if raw.dtype.kind == "f" and not np.all(np.isfinite(raw) & (raw == np.floor(raw))):
        raise InputError("Counts must be whole numbers; a fraction, infinity or NaN is among them.")
    if raw.dtype.kind not in "iuf":
        raise InputError("Counts must be an array of whole numbers.")
    if raw.size and raw.max() >= 2**62:
        raise InputError("Counts must be below 2**62; a larger number is among them.")
    return raw.astype(np.int64)


def read_labelled(
    counts: Any, names: Sequence[str] | None, margins_name: MarginsName
) -> tuple[list[AxisParts], Ints]:
    """The axes and the values of labelled counts, the totals last along their axes.

    Every level of the index and of the columns is an axis. A combination without a row or column holds nobody.
    """
    if margins_name is not None and margins_name is not False and not isinstance(margins_name, str):
        raise InputError("'margins_name' is the name of the totals, False without totals, or None.")
    indices = [counts.index, *([counts.columns] if hasattr(counts, "columns") else [])]
    values = whole_numbers(_numbers(counts)).ravel()
    keys = [_keys(index) for index in indices]
    for index, axis_labels in zip(indices, keys, strict=True):
        if len(set(axis_labels)) < len(axis_labels):
            line = "row" if index is indices[0] else "column"
            raise InputError(
                f"Two {line}s of the counts have the same label; labels must be different."
            )
    own_names = _names([level for index in indices for level in index.names], names)
    cells = [tuple(label for part in key for label in part) for key in product(*keys)]
    labels = [_ordered(at, keys_) for keys_ in keys for at in range(len(keys_[0]) if keys_ else 0)]
    if len(labels) != len(own_names):
        raise InputError("The counts have no rows or no columns; a table needs at least one cell.")
    totals = [
        _named_total(name, axis_labels, margins_name)
        for name, axis_labels in zip(own_names, labels, strict=True)
    ]
    if isinstance(margins_name, str) and all(total is None for total in totals):
        known = [str(label) for axis_labels in labels for label in axis_labels]
        raise InputError(
            f"No row or column is called {margins_name!r}; {choices(margins_name, known)}."
        )
    blank = _blanks(indices, keys, totals)
    axes = [
        _axis(name, [v for v in axis_labels if v is not total and v not in blank[at]], total)
        for at, (name, axis_labels, total) in enumerate(zip(own_names, labels, totals, strict=True))
    ]
    array, given = _placed(cells, values, axes, labels, totals, blank)
    _check_sums(array, given, axes)
    if margins_name is not False:
        _check_unnamed(array, axes)
    return axes, array


def _numbers(counts: Any) -> npt.NDArray[Any]:
    """The numbers of a frame; a nullable column gives NaN where it has a gap."""
    kinds = counts.dtypes if hasattr(counts, "columns") else [counts.dtype]
    if any(getattr(kind, "kind", "O") not in "iuf" for kind in kinds):
        raise InputError(
            "Counts must be whole numbers, with the categories as index and columns, as pandas.crosstab makes "
            "them; records are counted by Table.from_frame."
        )
    if bool(np.asarray(counts.isna()).any()):
        raise InputError(
            "Counts must be whole numbers; a value is missing. If it stands for nobody, use fillna(0)."
        )
    return np.asarray(counts.to_numpy())


def _keys(index: Any) -> list[tuple[Any, ...]]:
    return [tuple(map(_label, key if index.nlevels > 1 else (key,))) for key in index]


def _label(label: Any) -> Any:
    """The label; all missing ones are the same."""
    missing = type(label).__name__ in ("NAType", "NaTType") or (
        isinstance(label, float) and label != label
    )
    return "nan" if missing else label


def _names(level_names: Sequence[Any], names: Sequence[str] | None) -> list[str]:
    if names is not None:
        given = list(names)
        if len(given) != len(level_names):
            raise InputError(
                f"The counts have {len(level_names)} dimensions but there are {len(given)} names."
            )
    else:
        given = [f"v{at + 1}" if name is None else str(name) for at, name in enumerate(level_names)]
    for name in given:
        if given.count(name) > 1:
            raise InputError(
                f"Two dimensions of the counts are called {name!r}; name all of them with 'names'."
            )
    return given


def _ordered(at: int, keys: Sequence[tuple[Any, ...]]) -> list[Any]:
    return list(dict.fromkeys(key[at] for key in keys))


def _named_total(name: str, labels: Sequence[Any], margins_name: MarginsName) -> Any:
    """The label of the margin along an axis, or None."""
    if margins_name is False:
        return None
    if margins_name is not None:
        return next((v for v in labels if str(v) == margins_name), None)
    named = [v for v in labels if isinstance(v, str) and v.strip().casefold() in _TOTAL_NAMES]
    if len(named) > 1:
        raise InputError(
            f"{name!r} has several categories that look like totals ({', '.join(named)}); say which one "
            "is with 'margins_name'."
        )
    return named[0] if named else None


def _blanks(
    indices: Sequence[Any], keys: Sequence[Sequence[tuple[Any, ...]]], totals: Sequence[Any]
) -> list[frozenset[Any]]:
    """Where pandas writes '' for the further levels of a margin: '' is then a total too.

    It is one only if it occurs beside a margin alone; otherwise it is a category.
    """
    out: list[frozenset[Any]] = []
    for index, index_keys in zip(indices, keys, strict=True):
        start = len(out)
        for at in range(index.nlevels):
            beside = [
                any(
                    totals[start + j] is not None and key[j] == totals[start + j] for j in range(at)
                )
                for key in index_keys
                if key[at] == ""
            ]
            out.append(frozenset([""]) if beside and all(beside) else frozenset())
    return out


def _axis(name: str, labels: Sequence[Any], total: Any) -> AxisParts:
    codes = [str(label) for label in labels]
    seen: set[str] = set()
    for code in codes:
        if code in RESERVED:
            raise InputError(f"{name!r} has a category {code!r}, a code that Lustrum uses itself.")
        if code in seen:
            raise InputError(
                f"{name!r} has two categories that are written {code!r}; they must be different."
            )
        seen.add(code)
    if not codes:
        raise InputError(f"{name!r} has totals but no category that they are the total of.")
    inner = tuple(Category(code, code, (at,)) for at, code in enumerate(codes))
    if total is None:
        return name, inner
    return name, (*inner, Category(TOTAL_CODE, str(total), tuple(range(len(codes)))))


def _placed(
    cells: Sequence[tuple[Any, ...]],
    values: Ints,
    axes: list[AxisParts],
    labels: Sequence[Sequence[Any]],
    totals: Sequence[Any],
    blank: Sequence[frozenset[Any]],
) -> tuple[Ints, Mask]:
    """The values at their places, and which of them were given. A margin by '' makes the axis have a total."""
    called = next((str(total) for total in totals if total is not None), "All")
    for at, (name, categories) in enumerate(axes):
        if blank[at] and totals[at] is None:
            whole = Category(TOTAL_CODE, called, tuple(range(len(categories))))
            axes[at] = (name, (*categories, whole))
    shape = tuple(len(categories) for _, categories in axes)
    if prod(shape) > _MOST_CELLS:
        raise InputError(f"The counts span more than {_MOST_CELLS:,} cells; count fewer variables.")
    places: list[dict[Any, int]] = []
    for at, axis_labels in enumerate(labels):
        inner = [v for v in axis_labels if v is not totals[at] and v not in blank[at]]
        index_of = {label: i for i, label in enumerate(inner)}
        if totals[at] is not None:
            index_of[totals[at]] = len(inner)
        index_of |= dict.fromkeys(blank[at], len(inner))
        places.append(index_of)
    array = np.zeros(shape, dtype=np.int64)
    given = np.zeros(shape, dtype=np.bool_)
    for key, value in zip(cells, values.tolist(), strict=True):
        at_cell = tuple(index_of[label] for index_of, label in zip(places, key, strict=True))
        array[at_cell], given[at_cell] = value, True
    return array, given


def _check_sums(array: Ints, given: Mask, axes: Sequence[AxisParts]) -> None:
    """Fill the totals in, and refuse one that was given and is not the sum of its parts."""
    said = array.copy()
    for at, (_, categories) in enumerate(axes):
        if categories[-1].code != TOTAL_CODE:
            continue
        line = np.moveaxis(array, at, 0)
        line[-1] = line[:-1].sum(axis=0)
    wrong = given & (said != array)
    if wrong.any():
        cell = np.argwhere(wrong)[0].tolist()
        where = ", ".join(
            f"{name} {categories[i].label!r}"
            for (name, categories), i in zip(axes, cell, strict=True)
        )
        label = next(
            categories[i].label
            for (_, categories), i in zip(axes, cell, strict=True)
            if categories[i].code == TOTAL_CODE
        )
        by = abs(int(said[tuple(cell)]) - int(array[tuple(cell)]))
        raise InputError(
            f"{label!r} looks like a total but is not the sum of the others ({where}, by {by:,}); correct it, "
            "or say margins_name=False if it is a category."
        )


def _check_unnamed(array: Ints, axes: Sequence[AxisParts]) -> None:
    """Refuse a category that is the sum of all others: nobody can tell whether it is a total."""
    for at, (name, categories) in enumerate(axes):
        if categories[-1].code == TOTAL_CODE or len(categories) < 2:
            continue
        line = np.moveaxis(array, at, 0)
        twice = 2 * line == line.sum(axis=0)
        both = twice.reshape(len(line), -1).all(axis=1) & line.reshape(len(line), -1).any(axis=1)
        if both.any():
            label = categories[int(np.flatnonzero(both)[-1])].label
            raise InputError(
                f"In every line the category {label!r} of {name!r} is the sum of all others; say "
                f"margins_name={label!r} if it is the total, or margins_name=False if it is not."
            )
