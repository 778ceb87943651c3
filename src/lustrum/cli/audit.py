"""Audit published files: what can a reader of all of them work out?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Literal

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from lustrum.audit import Protection, PublishedTable, Relation
from lustrum.audit.certificate import certify
from lustrum.audit.report import AuditedCell, AuditReport, audit_tables, known_and_places
from lustrum.cli.inputs.table_options import FileOptions
from lustrum.cli.terminal.audit_page import number, page
from lustrum.formats.table_files import TableFile, read_table, recognise, releases_of
from lustrum.formats.table_files.levels import default_level, protection_of
from lustrum.model import InputError, Release
from lustrum.model.errors import choices

__all__ = ["audit_files"]

How = Literal["adjacent", "nearest"]


class Outcome(IntEnum):
    """What an audit found, as the exit code of the command."""

    SAFE = 0
    DISCLOSED = 3
    NOT_JUDGED = 4


_PLAIN = FileOptions()


def audit_files(
    files: Sequence[Path],
    console: Console,
    *,
    rounded: int | None,
    how: How,
    narrow: int,
    seconds: float | None,
    html: Path | None,
    certificate: Path | None,
    relations: Sequence[str] = (),
    truth: Sequence[Path] = (),
    protect: str | None = None,
    equations_only: bool = False,
    options: FileOptions = _PLAIN,
) -> Outcome:
    """Audit files and print the report; gives whether nothing is disclosed or too narrow, or not judged."""
    opened = _open(files, relations, options)
    sources = [table.file for table in opened]
    distinct = list({id(f): f for f in sources}.values())
    found = recognise(distinct, options.said(), slack=rounded or 0)
    for sentence in found.sentences():
        console.print(Text(sentence))
    releases = releases_of(sources, found, [table.response for table in opened])
    seen = [_seen(release, rounded, how) for release in releases]
    levels = _levels(releases, truth, protect, options, rounded=rounded is not None)
    names = [table.name for table in opened] if relations else None
    titles = [table.title for table in opened]
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task("Auditing", total=None)
        report = audit_tables(
            seen,
            responses=names,
            relations=relations,
            protection=levels,
            seconds=seconds,
            equations_only=equations_only,
        )
    if equations_only:
        console.print(
            Text("Only equations were used; an audit without --equations-only may find more.")
        )
    standing = _standing(opened, console)
    _show(report, narrow, console)
    doubts = tuple(dict.fromkeys(doubt for file in distinct for doubt in file.doubts))
    for doubt in doubts:
        console.print(Text(f"Not judged: {doubt}"))
    if html is not None:
        html.write_text(page(report, releases, titles, narrow), encoding="utf-8")
        console.print(Text(f"The picture is in {html}."))
    if certificate is not None:
        known, places = known_and_places(seen, names, relations)
        cells = [places[c.table].start + _offset(seen[c.table], c.position) for c in report.cells]
        certify(known, list(dict.fromkeys(cells))).write(certificate)
        console.print(Text(f"The proof is in {certificate}; check it with 'lustrum verify'."))
    if report.disclosed or report.unprotected or standing:
        return Outcome.DISCLOSED
    return Outcome.NOT_JUDGED if doubts else Outcome.SAFE


def _standing(opened: Sequence[_Opened], console: Console) -> int:
    """Say which values still stand in a file though their status says that they are hidden."""
    number = 0
    for table in opened:
        rows = table.file.standing.get(table.response, ())
        number += len(rows)
        if rows:
            first = table.file.places[rows[0]]
            values = "1 value stands" if len(rows) == 1 else f"{len(rows):,} values stand"
            console.print(
                Text(
                    f"{table.title}: {values} in the file beside a status of hidden (first: {first})."
                )
            )
    return number


@dataclass(frozen=True, eq=False)
class _Opened:
    """One response of one file: what relations call it, and what the report does."""

    file: TableFile
    response: str
    name: str
    title: str


def _open(files: Sequence[Path], relations: Sequence[str], options: FileOptions) -> list[_Opened]:
    """Read the files. A response has the name before '=', of its column, or of its file."""
    opened = []
    for given in files:
        name, equals, rest = str(given).partition("=")
        named = bool(equals) and not given.exists()
        path = Path(rest) if named else given
        file = read_table(path, options.columns(), options.hidden)
        for response in file.responses:
            own = response if len(file.responses) > 1 else name if named else path.stem
            title = f"{path}: {response}" if len(file.responses) > 1 else str(path)
            opened.append(_Opened(file, response, own, title))
    names = [table.name for table in opened]
    for relation in relations:
        for name in Relation.of(relation).weights:
            if name not in names:
                raise InputError(
                    f"The relation {relation!r} names {name!r}, of which there is no file; "
                    f"{choices(name, names)}."
                )
    return opened


def _levels(
    releases: Sequence[Release],
    truth: Sequence[Path],
    protect: str | None,
    options: FileOptions,
    *,
    rounded: bool,
) -> list[Protection] | None:
    if not truth:
        if protect is not None:
            raise InputError("--protect is measured from true values; give them by --truth FILE.")
        return None
    if len(truth) != len(releases):
        raise InputError(
            f"There are {len(releases)} published tables but {len(truth)} true ones; give one for each."
        )
    default = None if protect is None else default_level(protect)
    return [
        protection_of(read_table(file, options.columns()), release, default, rounded=rounded)
        for file, release in zip(truth, releases, strict=True)
    ]


def _seen(release: Release, rounded: int | None, how: How) -> PublishedTable:
    if rounded is None:
        return PublishedTable.of_release(release)
    base = rounded * 10**release.decimals
    shown = np.where(release.shown, release.published, 0)
    seen = PublishedTable.rounded(release.axes, shown, base, how, decimals=release.decimals)
    blank = PublishedTable.hidden(release.axes, decimals=release.decimals)
    return replace(
        seen,
        low=np.where(release.shown, seen.low, blank.low),
        high=np.where(release.shown, seen.high, blank.high),
    )


def _show(report: AuditReport, narrow: int, console: Console) -> None:
    console.print(Text(str(report)))
    _list("Exactly disclosed", report.disclosed, report.decimals, console)
    _list("Within the protection interval", report.unprotected, report.decimals, console)
    _list(f"At most {narrow} values left", report.narrow(narrow), report.decimals, console)


def _list(title: str, cells: Sequence[AuditedCell], decimals: int, console: Console) -> None:
    if not cells:
        return
    grid = Grid(title=title, title_justify="left", header_style="bold")
    for head in ("cell", "at least", "at most", "risk", "follows from"):
        grid.add_column(
            head, justify="right" if head in ("at least", "at most", "risk") else "left"
        )
    for cell in cells[:50]:
        ends = (number(cell.low, decimals), number(cell.high, decimals))
        risk = "exact" if cell.disclosed else f"{cell.risk:.3f}"
        grid.add_row(*map(Text, (cell.name, *ends, risk, "; ".join(cell.follows))))
    console.print(grid)
    if len(cells) > 50:
        console.print(Text(f"… and {len(cells) - 50} more."))


def _offset(seen: PublishedTable, position: tuple[int, ...]) -> int:
    flat = 0
    for size, place in zip(seen.layout.shape, position, strict=True):
        flat = flat * size + place
    return flat
