"""What the files of an audit say beside the published values: responses, and what must stay hidden."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from math import ceil
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lustrum.audit import Protection, Relation
from lustrum.formats.sheet import read_sheet
from lustrum.model import CellStatus, InputError, Release
from lustrum.model.errors import choices

__all__ = ["levels_of", "responses_of", "text_of"]

Key = tuple[str, ...]

_LEVELS = ("lower", "upper")


def text_of(file: Path) -> str:
    """What a file holds."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{file} is not UTF-8; save it in that encoding.") from None


def responses_of(
    files: Sequence[Path], relations: Sequence[str]
) -> tuple[list[str] | None, list[Path]]:
    """The response of each file where there are relations, and the files themselves.

    A file is of the response that stands before it and a '=', or has the response as its name.
    """
    if not relations:
        return None, list(files)
    names, paths = [], []
    for file in files:
        name, equals, rest = str(file).partition("=")
        if equals and not file.exists():
            names.append(name)
            paths.append(Path(rest))
        else:
            names.append(file.stem)
            paths.append(file)
    for relation in relations:
        for name in Relation.of(relation).weights:
            if name not in names:
                raise InputError(
                    f"The relation {relation!r} names {name!r}, of which there is no file; "
                    f"{choices(name, names)}."
                )
    return names, paths


def levels_of(
    texts: Sequence[str],
    releases: Sequence[Release],
    truth: Sequence[Path],
    protect: str | None,
    *,
    rounded: bool = False,
) -> list[Protection] | None:
    """The protection that each table needs, from its true values.

    The levels are the columns 'lower' and 'upper' of the true table; where they are empty or missing,
    ``protect`` says them for all cells that are hidden for their own sake, or were rounded.
    """
    if not truth:
        if protect is not None:
            raise InputError("--protect is measured from true values; give them by --truth FILE.")
        return None
    if len(truth) != len(releases):
        raise InputError(
            f"There are {len(releases)} published tables but {len(truth)} true ones; give one for each."
        )
    share = _share(protect)
    made = zip(texts, releases, truth, strict=True)
    return [_protection(text, release, file, share, rounded) for text, release, file in made]


def _share(protect: str | None) -> tuple[Decimal, bool] | None:
    """A level in words: a number, and whether it is percent."""
    if protect is None:
        return None
    try:
        number = Decimal(protect.strip().removesuffix("%"))
    except InvalidOperation:
        number = Decimal(-1)
    if not number.is_finite() or number < 0:
        raise InputError(f"--protect is a percentage such as 10% or a number, not {protect!r}.")
    return number, protect.strip().endswith("%")


def _protection(
    text: str, release: Release, file: Path, share: tuple[Decimal, bool] | None, rounded: bool
) -> Protection:
    plain, extra = _without(text_of(file), _LEVELS)
    true = read_sheet(plain, str(file))
    names = [axis.name for axis in release.axes]
    if sorted(true.variables) != sorted(names):
        raise InputError(
            f"{file}: the variables are {', '.join(true.variables)}; those of the published table are "
            f"{', '.join(names)}."
        )
    order = [true.variables.index(name) for name in names]
    values = {tuple(key[i] for i in order): value for key, value in true.values.items()}
    levels = {
        tuple(key[i] for i in order): own for key, own in _keyed(plain, true.variables, extra)
    }
    statuses = _statuses(text, names)
    shape = release.published.shape
    arrays: list[npt.NDArray[np.int64]] = [np.zeros(shape, dtype=np.int64) for _ in range(3)]
    needed = np.zeros(shape, dtype=np.bool_)
    scale = 10**release.decimals
    for position in np.ndindex(*shape):
        if release.shown[position] and not rounded:
            continue
        key = tuple(a.codes[i] for a, i in zip(release.axes, position, strict=True))
        own = levels.get(key, {})
        given = [_level(own.get(name, ""), f"{file}: '{name}'") for name in _LEVELS]
        secondary = statuses.get(key) == CellStatus.SECONDARY.value
        if given == [None, None] and (share is None or secondary):
            continue
        if key not in values:
            raise InputError(f"{file}: a cell that needs protection has no true value; give it.")
        value = values[key]
        needed[position] = True
        arrays[0][position] = round(value * scale)
        for array, level in zip(arrays[1:], given, strict=True):
            array[position] = ceil((_default(value, share) if level is None else level) * scale)
    return Protection.of(arrays[0], arrays[1], arrays[2], needed)


def _default(value: Decimal, share: tuple[Decimal, bool] | None) -> Decimal:
    if share is None:
        return Decimal(0)
    number, percent = share
    return abs(value) * number / 100 if percent else number


def _level(text: str, where: str) -> Decimal | None:
    if not text:
        return None
    try:
        level = Decimal(text)
    except InvalidOperation:
        level = Decimal(-1)
    if not level.is_finite() or level < 0:
        raise InputError(f"{where} holds a level that is not a number of 0 or more.")
    return level


def _without(text: str, columns: Sequence[str]) -> tuple[str, list[dict[str, str]]]:
    """A file without some of its columns, and what stood in them, row by row."""
    rows = [row for row in csv.reader(io.StringIO(text.removeprefix("\ufeff"))) if row]
    head = rows[0] if rows else []
    places = {name: head.index(name) for name in columns if name in head}
    out = io.StringIO()
    writer = csv.writer(out)
    for row in rows:
        writer.writerow([field for i, field in enumerate(row) if i not in places.values()])
    extra = [
        {name: row[place].strip() for name, place in places.items() if place < len(row)}
        for row in rows[1:]
    ]
    return out.getvalue(), extra


def _keyed(
    plain: str, variables: Sequence[str], extra: Sequence[dict[str, str]]
) -> list[tuple[Key, dict[str, str]]]:
    return list(zip(_keys(plain, variables), extra, strict=True))


def _keys(text: str, variables: Sequence[str]) -> list[Key]:
    rows = [row for row in csv.reader(io.StringIO(text.removeprefix("\ufeff"))) if row]
    places = [rows[0].index(name) for name in variables]
    return [tuple(row[place].removeprefix("'") for place in places) for row in rows[1:]]


def _statuses(text: str, variables: Sequence[str]) -> dict[Key, str]:
    _, found = _without(text, ["status"])
    return {
        key: own.get("status", "") for key, own in zip(_keys(text, variables), found, strict=True)
    }
