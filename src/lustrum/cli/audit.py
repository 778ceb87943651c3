"""Audit published files: what can a reader of all of them work out?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from lustrum.audit import Protection, PublishedTable, Relation
from lustrum.audit.bounding.elimination import exactly_disclosed
from lustrum.audit.certificate import certify
from lustrum.audit.knowledge.facts import ContradictionError
from lustrum.audit.report import (
    AuditedCell,
    AuditReport,
    TableFact,
    audit_tables,
    known_and_places,
)
from lustrum.cli.inputs.table_options import FileOptions
from lustrum.cli.terminal.audit_page import number, page
from lustrum.model import InputError, Release
from lustrum.model.errors import choices
from lustrum.numeric.structure import UNBOUNDED
from lustrum.readers import (
    TOTAL_NAMES,
    TableFile,
    read_table,
    recognise,
    releases_of,
)
from lustrum.readers.levels import default_level, protection_of

How = Literal["adjacent", "nearest"]


class AuditOutcome(IntEnum):
    """What an audit found, as the exit code of the command."""

    SAFE = 0
    DISCLOSED = 3
    NOT_JUDGED = 4


_PLAIN = FileOptions()
_MOST_RESPONSES = 10  # columns of values of which all sums are tried


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
    unrelated: bool = False,
    close: float = 1.0,
) -> AuditOutcome:
    """Audit files and print the report; gives whether nothing is disclosed or too narrow, or not judged."""
    opened = _open(files, relations, options)
    sources = [table.file for table in opened]
    distinct = list({id(f): f for f in sources}.values())
    said = options.said()
    recognition = recognise(distinct, said, slack=rounded or 0, published=True)
    for sentence in (*(note for file in distinct for note in file.notes), *recognition.sentences()):
        console.print(Text(sentence))
    for note in recognition.notes:
        console.print(Text(note))
    releases = releases_of(sources, recognition, [table.response for table in opened])
    coarse = _coarse(opened, recognition.off, rounded, console)
    seen = [_seen(release, rounded, how) for release in releases]
    if any(coarse):
        pairs = zip(seen, releases, coarse, strict=True)
        seen = [_half_units(table, release, off) for table, release, off in pairs]
    levels = _levels(releases, truth, protect, options, rounded=rounded is not None)
    several = len({table.name for table in opened}) > 1
    named = bool(relations) or any(table.named for table in opened)
    names = [table.name for table in opened] if named and several else None
    facts = _facts(opened, releases, 1 if any(coarse) else 0)
    doubts = [doubt for file in distinct for doubt in file.doubts]
    doubts += [*recognition.doubts, *_relations_by_numbers(opened, names, relations, unrelated)]
    doubts += _same_variables(distinct, unrelated)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=Console(stderr=True, markup=False), transient=True) as bar:
            bar.add_task("Auditing", total=None)
            report = audit_tables(
                seen,
                responses=names,
                relations=relations,
                protection=levels,
                seconds=seconds,
                equations_only=equations_only,
                facts=facts,
            )
    except ContradictionError as problem:
        doubts.append(
            f"{problem} Totals that are none, or symbols and columns that mean something else, can be "
            f"the reason."
        )
        for doubt in dict.fromkeys(doubts):
            console.print(Text(f"Not judged: {doubt}"))
        return (
            AuditOutcome.DISCLOSED
            if _standing(opened, releases, console)
            else AuditOutcome.NOT_JUDGED
        )
    report = _without_shown(report, opened, releases, coarse)
    if equations_only:
        console.print(
            Text("Only equations were used; an audit without --equations-only may find more.")
        )
    standing = _standing(opened, releases, console)
    near = _but_for_rounding(seen, releases, coarse, names, relations)
    hidden = tuple(
        c
        for c in report.cells
        if not c.disclosed
        and not releases[c.table].shown[c.position]
        and (c.within(close) or near[c.table][c.position])
    )
    _show(report, narrow, hidden, close, console)
    for doubt in dict.fromkeys(doubts):
        console.print(Text(f"Not judged: {doubt}"))
    if html is not None:
        titles = [table.title for table in opened]
        html.write_text(page(report, releases, titles, narrow), encoding="utf-8")
        console.print(Text(f"The picture is in {html}."))
    if certificate is not None:
        known, places = known_and_places(seen, names, relations, facts)
        cells = [places[c.table].start + _offset(seen[c.table], c.position) for c in report.cells]
        certify(known, list(dict.fromkeys(cells))).write(certificate)
        console.print(Text(f"The proof is in {certificate}; check it with 'lustrum verify'."))
    if report.disclosed or report.unprotected or standing or hidden:
        return AuditOutcome.DISCLOSED
    return AuditOutcome.NOT_JUDGED if doubts else AuditOutcome.SAFE


def _coarse(
    opened: Sequence[_Opened], off: frozenset[str], rounded: int | None, console: Console
) -> list[bool]:
    """Which tables hold numbers that were rounded to their last digit, each on its own."""
    coarse = []
    for table in opened:
        named = table.response in table.file.coarse
        coarse.append(rounded is None and (named or table.file.source in off))
        if coarse[-1] and table.file.source not in off:
            console.print(
                Text(f"{table.title}: the name of the column says that its numbers are rounded.")
            )
    return coarse


def _half_units(seen: PublishedTable, release: Release, off: bool) -> PublishedTable:
    """The table in tenths of its last digit; a rounded number is known to half a unit."""
    room = np.where(release.shown & off, 5, 0)
    ends = []
    for values, sign in ((seen.low, -1), (seen.high, 1)):
        bounded = np.abs(values) < UNBOUNDED
        ends.append(np.where(bounded, np.where(bounded, values, 0) * 10 + sign * room, values))
    low = ends[0]
    if int(seen.low.min(initial=0)) >= 0:
        low = np.maximum(low, 0)
    return replace(seen, low=low, high=ends[1], decimals=seen.decimals + 1)


def _but_for_rounding(
    seen: Sequence[PublishedTable],
    releases: Sequence[Release],
    coarse: Sequence[bool],
    names: Sequence[str] | None,
    relations: Sequence[str],
) -> list[npt.NDArray[np.bool_]]:
    """The hidden cells that sums would give exactly, if the numbers in them were not rounded."""
    none = [np.zeros(release.published.shape, dtype=np.bool_) for release in releases]
    if not any(coarse):
        return none
    plain = []
    for table, release in zip(seen, releases, strict=True):
        high = np.where(release.shown, 0, UNBOUNDED)
        plain.append(replace(table, low=np.where(release.shown, 0, -UNBOUNDED), high=high))
    known, places = known_and_places(plain, names, relations)
    follows = exactly_disclosed(known)
    return [
        follows[span].reshape(release.published.shape) & ~release.shown & off
        for span, release, off in zip(places, releases, coarse, strict=True)
    ]


def _without_shown(
    report: AuditReport,
    opened: Sequence[_Opened],
    releases: Sequence[Release],
    coarse: Sequence[bool],
) -> AuditReport:
    """The report without numbers that are shown but for their rounding, and without signs for 0 that are 0."""
    signs = []
    for table in opened:
        rows = set(table.file.maybe_zero.get(table.response, ()))
        signs.append({tuple(int(p[row]) for p in table.file.positions) for row in rows})
    cells = tuple(
        c
        for c in report.cells
        if not (coarse[c.table] and releases[c.table].shown[c.position])
        and not (c.low == c.high == 0 and c.position in signs[c.table])
    )
    return replace(report, cells=cells)


def _facts(
    opened: Sequence[_Opened], releases: Sequence[Release], more: int
) -> tuple[TableFact, ...]:
    """What columns beside the values say, in the units of the tables."""
    facts = []
    table_of = {(id(t.file), t.response): i for i, t in enumerate(opened)}
    for file in {id(t.file): t.file for t in opened}.values():
        codes = [{code: k for k, code in enumerate(axis_codes)} for axis_codes in file.codes]
        for fact in file.facts:
            scale = math.lcm(*(weight.denominator for _, _, weight in fact.terms))
            unit = scale * 10 ** (releases[0].decimals + more)
            terms = tuple(
                (
                    table_of[id(file), response],
                    tuple(codes[axis][code] for axis, code in enumerate(key)),
                    int(weight * scale),
                )
                for response, key, weight in fact.terms
            )
            facts.append(
                TableFact(
                    terms,
                    -UNBOUNDED if fact.low is None else math.ceil(fact.low * unit),
                    UNBOUNDED if fact.high is None else math.floor(fact.high * unit),
                )
            )
    return tuple(facts)


def _relations_by_numbers(
    opened: Sequence[_Opened],
    names: Sequence[str] | None,
    relations: Sequence[str],
    unrelated: bool,
) -> list[str]:
    """A doubt where one column of values is the sum of others in every cell that shows all of them."""
    if names is None or relations or unrelated:
        return []
    cells: dict[str, dict[tuple[tuple[str, str], ...], Decimal]] = {}
    for table in opened:
        table_cells = cells.setdefault(table.name, {})
        for key, value in zip(table.file.cells, table.file.values[table.response], strict=True):
            if value is not None:
                table_cells[tuple(sorted(zip(table.file.dimensions, key, strict=True)))] = value
    responses = list(cells)
    if not 2 <= len(responses) <= _MOST_RESPONSES:
        return []
    for size in range(len(responses), 0, -1):
        for total in responses:
            for parts in itertools.combinations([n for n in responses if n != total], size):
                rows = [k for k in cells[total] if all(k in cells[p] for p in parts)]
                sums = [(cells[total][k], sum(cells[p][k] for p in parts)) for k in rows]
                if sums and any(a for a, _ in sums) and all(a == b for a, b in sums):
                    relation = f"{total} = {' + '.join(parts)}"
                    return [
                        f"{opened[0].file.source}: '{relation}' holds wherever all of them are shown; "
                        f"say --relation "
                        f"'{relation}', or --unrelated if that is a coincidence."
                    ]
    return []


def _same_variables(files: Sequence[TableFile], unrelated: bool) -> list[str]:
    """A doubt where two files have the same codes under different names."""
    if unrelated:
        return []
    for first, second in itertools.combinations(files, 2):
        for name in first.dimensions:
            for other in second.dimensions:
                if name in second.dimensions or other in first.dimensions:
                    continue
                codes = [set(f.codes[f.dimensions.index(d)]) for f, d in
                         ((first, name), (second, other))]  # fmt: skip
                common = {c for c in codes[0] & codes[1] if c.lower() not in TOTAL_NAMES}
                if len(common) > 1:
                    return [
                        f"{second.source}: {other!r} has codes of {name!r} in {first.source}; say --alias "
                        f"{name}={other} if both are one variable, or --unrelated."
                    ]
    return []


def _standing(opened: Sequence[_Opened], releases: Sequence[Release], console: Console) -> int:
    """Say which values still stand in a file though their status says that they are hidden."""
    count = 0
    for table, release in zip(opened, releases, strict=True):
        rows = table.file.standing.get(table.response, ())
        count += len(rows)
        if not rows:
            continue
        first = table.file.places[rows[0]]
        values = "1 value stands" if len(rows) == 1 else f"{len(rows):,} values stand"
        console.print(
            Text(f"{table.title}: {values} in the file beside a status of hidden (first: {first}).")
        )
        cells = []
        for row in rows:
            value = table.file.values[table.response][row]
            assert value is not None
            units = float(value.scaleb(release.decimals))
            pairs = zip(table.file.dimensions, table.file.cells[row], strict=True)
            name = ", ".join(f"{dimension}={code}" for dimension, code in pairs)
            location = (table.file.places[row],)
            cells.append(AuditedCell(0, (), name, units, units, sharp=True, follows=location))
        _list("Standing in the file", cells, release.decimals, console)
    return count


@dataclass(frozen=True, eq=False)
class _Opened:
    """One response of one file: what relations call it, and what the report does."""

    file: TableFile
    response: str
    name: str
    title: str
    named: bool


def _open(files: Sequence[Path], relations: Sequence[str], options: FileOptions) -> list[_Opened]:
    """Read the files. A response has the name before '=', of its column, or of its file."""
    opened = []
    for given in files:
        name, equals, rest = str(given).partition("=")
        named = bool(equals) and not given.exists()
        path = Path(rest) if named else given
        file = read_table(path, options.columns(), reading=options.reading())
        for response in file.responses:
            response_name = response if len(file.responses) > 1 else name if named else path.stem
            title = f"{path}: {response}" if len(file.responses) > 1 else str(path)
            opened.append(
                _Opened(file, response, response_name, title, named or len(file.responses) > 1)
            )
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


def _show(
    report: AuditReport,
    narrow: int,
    close: Sequence[AuditedCell],
    percent: float,
    console: Console,
) -> None:
    console.print(Text(str(report)))
    _list("Exactly disclosed", report.disclosed, report.decimals, console)
    _list(f"Known to within {percent:g} percent or rounding", close, report.decimals, console)
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
    for size, index in zip(seen.layout.shape, position, strict=True):
        flat = flat * size + index
    return flat
