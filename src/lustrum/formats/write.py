"""Protected tables written to files of any registered format; :func:`read_table` reads CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lustrum.formats.cell_text import HeadNames, csv_lines, inert, names_of, numbers
from lustrum.formats.parquet import after_axis, exact, parquet_pieces, plain_texts, spread
from lustrum.model import CellStatus, InputError, Release, TableAxis
from lustrum.model.arrays import Ints, Mask
from lustrum.model.plugins import load, names
from lustrum.model.release import SeededRelease, check_publishable
from lustrum.runtime.durable import write_whole

if TYPE_CHECKING:
    import pyarrow as pa

_FORMATS = "lustrum.formats"


def format_of(path: Path, among: Sequence[str] = ()) -> Any:
    """The format that a file's ending asks for, of all or of those named; refused where there is none."""
    endings: dict[str, Any] = {}
    wanted = among or names(_FORMATS)
    own = path.suffix[1:].lower()
    # A plain ending that is a format's name needs no other format to be imported.
    for name in [own] if len(path.suffixes) == 1 and own in wanted else wanted:
        kind = load(_FORMATS, name)
        for ending in (kind.ending, *getattr(kind, "other_endings", ())):
            endings.setdefault(f".{ending}", kind)
    fitting = [ending for ending in endings if path.name.lower().endswith(ending)]
    if not fitting:
        *some, last = dict.fromkeys(f".{kind.ending}" for kind in endings.values())
        raise InputError(f"{path}: a table is written to a file of {', '.join(some)} or {last}.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}.")
    return endings[max(fitting, key=len)]


def write_release(release: Release, path: Path | str, *, study: bool = False) -> None:
    """Write a release in the format of the file's ending.

    CSV and Parquet have codes, value, status, and ``low`` and ``high`` where it states intervals. A value that
    is not shown is empty, in a workbook its letter, and never 0; :func:`plain_letters` keeps from telling why.

    >>> from tempfile import TemporaryDirectory
    >>> from lustrum.model import Table
    >>> from lustrum.protect.suppression import Suppression
    >>> with TemporaryDirectory() as folder:
    ...     write_release(Suppression().apply(Table.from_counts([1, 8])), Path(folder, "table.csv"))
    ...     Path(folder, "table.csv").read_text().splitlines()
    ['v1,value,status', '1,,N', '2,8,F']
    """
    release = writable(release, study)
    path = Path(path)
    kind = format_of(path)
    plain = _PLAIN.get(kind.name)
    if plain is None:
        title = " by ".join(axis.name for axis in release.axes)
        write_whole(path, as_bytes(kind().write(release, title)))
    else:
        write_whole(path, map(as_bytes, plain(release)))


def as_bytes(written: str | bytes) -> bytes:
    return written.encode("utf-8") if isinstance(written, str) else written


def writable(release: Release, study: bool) -> Release:
    """The release to write; a study is refused, or marked in every row where somebody says that it is one."""
    if study and isinstance(release, SeededRelease):
        return release.marked()
    check_publishable(release, "A table file")
    return release


def release_as_csv(release: Release, *, study: bool = False) -> str:
    return "".join(_csv_pieces(writable(release, study)))


def write_csv(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows as CSV; no field can be taken for a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([inert(name) for name in head])
    writer.writerows(rows)
    return out.getvalue()


def _csv_pieces(release: Release) -> Iterator[str]:
    letters = release.status.ravel()
    known, ends = release.known, _stated_ends(release)

    def columns(low: int, high: int) -> list[Sequence[str]]:
        return [
            _plain_numbers(release, release.numbers, known, low, high),
            letters[low:high].tolist(),
            *(_plain_numbers(release, end, release.stated, low, high) for end in ends.values()),
        ]

    axes = [names_of(axis, labels=_labelled(axis)) for axis in release.axes]
    called = HeadNames.of(release.axes)
    facts = [called.facts[fact] for fact in ("value", "status", *ends)]
    return csv_lines([*_head(release, called), *facts], axes, columns, "\n")


def _plain_numbers(release: Release, values: Ints, where: Mask, low: int, high: int) -> list[str]:
    """Values with the decimals of the release, whatever its statistics have."""
    return numbers(replace(release, statistics=()), values, where, low, high)


def _labelled(axis: TableAxis) -> bool:
    return axis.labels != axis.codes


def _head(release: Release, called: HeadNames) -> list[str]:
    names = []
    for axis, label in zip(release.axes, called.labels, strict=True):
        names += [axis.name, label] if _labelled(axis) else [axis.name]
    return names


def _stated_ends(release: Release) -> dict[str, Ints]:
    """The ends of the intervals that a release states instead of values, if there is any."""
    if release.least is None or release.most is None or not release.stated.any():
        return {}
    return {"low": release.least, "high": release.most}


def plain_letters(release: Release) -> Release:
    """The same release without the reason why a cell is not shown: every such cell has the letter N."""
    letters = np.where(release.shown, CellStatus.FREE.value, CellStatus.NOT_FOR_PUBLICATION.value)
    return replace(release, status=letters)


def release_as_parquet(release: Release, *, study: bool = False) -> bytes:
    return b"".join(_parquet(writable(release, study)))


def _parquet(release: Release) -> Iterator[bytes]:
    return parquet_pieces(release.numbers.size, _arrow_columns(release))


_PLAIN: dict[str, Callable[[Release], Iterator[str] | Iterator[bytes]]] = {
    "csv": _csv_pieces,
    "parquet": _parquet,
}
"""Formats whose files have codes and numbers alone, which :func:`read_table` reads back."""


def release_as_arrow(release: Release) -> pa.Table:
    """The release as an Arrow table, one row per cell: codes, value, status, and stated intervals.

    A value that is not shown is null.

    >>> from lustrum.model import Table
    >>> from lustrum.protect.suppression import Suppression
    >>> release = Suppression().apply(Table.from_counts([[1, 8], [9, 7]]))
    >>> release_as_arrow(release).column("value").to_pylist()
    [None, 8, 9, 7]
    """
    import pyarrow as pa

    return pa.table(_arrow_columns(release)(0, release.numbers.size))


def _arrow_columns(release: Release) -> Callable[[int, int], dict[str, pa.Array]]:
    check_publishable(release, "An Arrow table")
    import pyarrow as pa

    ends = _stated_ends(release)
    known, stated = release.known, release.stated
    called = HeadNames.of(release.axes)
    named = []
    for index, axis in enumerate(release.axes):
        after = after_axis(release.shape, index)
        named.append((axis.name, plain_texts(axis.codes), after))
        if _labelled(axis):
            named.append((called.labels[index], plain_texts(axis.labels), after))

    def columns(low: int, high: int) -> dict[str, pa.Array]:
        arrays: dict[str, pa.Array] = {}
        for name, texts, after in named:
            arrays[name] = spread(texts, after, low, high)
        cells = slice(low, high)
        arrays[called.facts["value"]] = exact(release.numbers, known, release.decimals, cells)
        arrays[called.facts["status"]] = pa.array(
            release.status.ravel()[low:high].tolist(), pa.string()
        )
        for name, end in ends.items():
            arrays[called.facts[name]] = exact(end, stated, release.decimals, cells)
        return arrays

    return columns
