"""Protected tables written to CSV or Parquet, so that :func:`read_table` reads them back, or to XLSX."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lustrum.durable import write_whole
from lustrum.formats.csv import inert, number_text
from lustrum.formats.xlsx import Xlsx
from lustrum.model import CellStatus, InputError, Release
from lustrum.model.release import check_release

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "check_ending",
    "plain_letters",
    "release_as_arrow",
    "release_as_csv",
    "release_as_parquet",
    "write_csv",
    "write_release",
]

_ENDINGS = (".csv", ".parquet", ".pq", ".xlsx")


def check_ending(path: Path) -> None:
    """Refuse a file whose ending is not known, before anything is computed."""
    if path.suffix.lower() not in _ENDINGS:
        raise InputError(f"{path}: a table is written to a file of .csv, .parquet or .xlsx.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}.")


def write_release(release: Release, path: Path | str, *, plain_status: bool = False) -> None:
    """Write a release: codes, value, status, and ``low`` and ``high`` where it states intervals.

    A value that is not shown is empty, in a workbook its letter, and never 0. With ``plain_status`` every
    such cell has the letter N, so that the file does not tell why.
    """
    check_release(release, "A table file")
    path = Path(path)
    check_ending(path)
    if path.suffix.lower() == ".csv":
        write_whole(path, release_as_csv(release, plain_status=plain_status).encode("utf-8"))
    elif path.suffix.lower() == ".xlsx":
        said = plain_letters(release) if plain_status else release
        write_whole(path, Xlsx().write(said, " by ".join(axis.name for axis in release.axes)))
    else:
        write_whole(path, release_as_parquet(release, plain_status))


def release_as_csv(release: Release, *, plain_status: bool = False) -> str:
    """The release as text, one row per cell in the order of its axes."""
    head, rows = _rows(release, plain_status)
    return write_csv(head, rows)


def write_csv(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows as CSV; no field can be taken for a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([inert(name) for name in head])
    writer.writerows(rows)
    return out.getvalue()


def _rows(release: Release, plain_status: bool) -> tuple[list[str], Iterable[list[str]]]:
    labelled = [axis.labels != axis.codes for axis in release.axes]
    head = []
    for axis, labels in zip(release.axes, labelled, strict=True):
        head += [axis.name, f"{axis.name}_label"] if labels else [axis.name]
    stated = release.stated
    head += ["value", "status", *(["low", "high"] if stated.any() else [])]
    shown, decimals = release.shown, release.decimals
    letters = (plain_letters(release) if plain_status else release).status

    def rows() -> Iterable[list[str]]:
        for position in np.ndindex(*release.shape):
            row = []
            for axis, i, labels in zip(release.axes, position, labelled, strict=True):
                category = axis.categories[i]
                row += (
                    [inert(category.code), inert(category.label)]
                    if labels
                    else [inert(category.code)]
                )
            value = (
                number_text(int(release.published[position]), decimals) if shown[position] else ""
            )
            row += [value, str(letters[position])]
            if stated.any():
                row += _interval(release, position) if stated[position] else ["", ""]
            yield row

    return head, rows()


def _interval(release: Release, position: tuple[int, ...]) -> list[str]:
    assert release.low is not None
    assert release.high is not None
    return [number_text(int(a[position]), release.decimals) for a in (release.low, release.high)]


def plain_letters(release: Release) -> Release:
    """The same release without the reason why a cell is not shown: every such cell has the letter N."""
    letters = np.where(release.shown, CellStatus.FREE.value, CellStatus.NOT_FOR_PUBLICATION.value)
    return replace(release, status=letters)


def release_as_parquet(release: Release, plain_status: bool = False) -> bytes:
    """The release as the bytes of a Parquet file, one row per cell."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(release_as_arrow(release, plain_status=plain_status), sink)
    return bytes(sink.getvalue().to_pybytes())


def release_as_arrow(release: Release, *, plain_status: bool = False) -> pa.Table:
    """The release as an Arrow table, one row per cell: codes, value, status, and stated intervals.

    A value that is not shown is null.

    >>> from lustrum.model import Table
    >>> from lustrum.protect.suppression import Suppression
    >>> release = Suppression().apply(Table.from_counts([[1, 8], [9, 7]]))
    >>> release_as_arrow(release).column("value").to_pylist()
    [None, 8, 9, 7]
    """
    check_release(release, "An Arrow table")
    import pyarrow as pa

    head, rows = _rows(release, plain_status)
    columns = list(zip(*rows, strict=True))
    numbers = {"value", "low", "high"}
    made = {}
    for name, column in zip(head, columns, strict=True):
        if name in numbers and release.decimals:
            kind = pa.decimal128(38, release.decimals)
            made[name] = pa.array([Decimal(v) if v else None for v in column], kind)
        elif name in numbers:
            made[name] = pa.array([int(v) if v else None for v in column], pa.int64())
        else:
            made[name] = pa.array(column, pa.string())
    return pa.table(made)
