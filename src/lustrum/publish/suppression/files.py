"""The files that 'suppress' writes: protected tables, ranges, pictures, proofs and changes, read back."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from lustrum.audit import Bounds, bounds
from lustrum.formats.cell_text import HeadNames, free_name, inert, number_text
from lustrum.formats.write import format_of, write_csv, write_release
from lustrum.model import CellStatus, InputError, InternalError, Release, Table
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.protect.suppression import SuppressionProblem
from lustrum.protect.suppression.check import PatternAudit, audit_pattern
from lustrum.readers.grids import Container
from lustrum.readers.judge import OpenedFile, open_file
from lustrum.readers.layout import MEASURE, read_layout
from lustrum.readers.number_text import Style, printed
from lustrum.readers.own import CELLS, form_of, public_layout, sidecar
from lustrum.runtime.durable import outages, replace_together, write_whole

if TYPE_CHECKING:
    from lustrum.audit import Knowledge
    from lustrum.protect.suppression import Pattern, PatternChanges
    from lustrum.sensitivity import Sensitivity
import hashlib

from lustrum.protect.suppression import Pattern
from lustrum.readers.report import AuditedFile, AuditedValue, FileReport, PatternReport

_READ_BACK = ("csv", "parquet", "xlsx")
"""Formats in which a table is written: those whose files are read and audited again."""
_NEAR = 1e-6  # ranges of sums come from floating-point programs


@dataclass(frozen=True)
class SuppressFiles:
    """The files that are written, those left out are not."""

    out: Path | None = None
    ranges: Path | None = None
    picture: Path | None = None
    certificate: Path | None = None
    changes: Path | None = None
    json: Path | None = None

    def check(self, paths: Sequence[Path], previous: Path | None) -> None:
        """Refuse what cannot be written before anything is computed."""
        if len(paths) > 1:
            self._check_several(paths)
        elif self.out is not None:
            format_of(self.out, _READ_BACK)
        if self.picture is not None and self.picture.suffix.lower() not in (".svg", ".html"):
            raise InputError(f"{self.picture}: a picture is a file of .svg or .html.")
        for path, what in ((self.ranges, "ranges are"), (self.changes, "changes are")):
            if path is not None and path.suffix.lower() != ".csv":
                raise InputError(f"{path}: {what} written to a file of .csv.")
        if self.changes is not None and previous is None:
            raise InputError("--changes needs the last period's table; name it with --previous.")
        self._check_places(paths, previous)

    def _check_places(self, read: Sequence[Path], previous: Path | None) -> None:
        """No file is written over a true table, or over another one: one is public, another confidential.

        Only a protected table may take the place of the one of the last period.
        """
        tables: list[Path] = []
        if self.out is not None:
            tables = [self.out] if len(read) == 1 else [self.out / path.name for path in read]
        last: list[Path] = []
        if previous is not None:
            last = [previous / path.name for path in read] if previous.is_dir() else [previous]
        beside = [self.ranges, self.picture, self.certificate, self.changes, self.json]
        taken = {path.resolve() for path in read}
        for written, then in ((tables, last), ([path for path in beside if path is not None], [])):
            for path in written:
                if path.resolve() in taken:
                    raise InputError(
                        f"{path}: this file is read, or written already; name another file."
                    )
                if path.is_dir():
                    raise InputError(f"{path}: this is a folder; name a file.")
                taken.add(path.resolve())
            taken |= {path.resolve() for path in then}

    def _check_several(self, paths: Sequence[Path]) -> None:
        if len({path.name for path in paths}) < len(paths):
            raise InputError("Linked tables need files of different names.")
        if self.out is None:
            return
        if not self.out.is_dir():
            raise InputError(f"{self.out}: name a folder with --out for several tables.")
        for path in paths:
            format_of(self.out / path.name, _READ_BACK)
            if (self.out / path.name).resolve() == path.resolve():
                raise InputError(f"{self.out}: the true tables are in this folder; name another.")


@dataclass(frozen=True, eq=False)
class WrittenTable:
    """One table: the file it came from, its true values, what is sensitive, its pattern and its release."""

    path: Path
    table: Table
    wanted: Sensitivity
    lower: Ints
    pattern: Pattern
    release: Release

    @property
    def kind(self) -> Literal["counts", "sums"]:
        return "counts" if self.table.kind == "count" else "sums"


@contextmanager
def drafts(tables: Sequence[WrittenTable], files: SuppressFiles) -> Iterator[list[Path]]:
    """The protected tables as files beside their places, until they are put there or thrown away."""
    from lustrum.readers.own import (  # not before it is needed
        form_of,
        own_layout,
        public_layout,
        sidecar,
    )

    if files.out is None:
        yield []
        return
    several = len(tables) > 1
    folder = files.out if several else files.out.parent
    names = [one.path.name for one in tables] if several else [files.out.name]
    with tempfile.TemporaryDirectory(dir=folder, prefix=".not-audited-") as held:
        written = [Path(held) / name for name in names]
        for one, draft in zip(tables, written, strict=True):
            write_release(one.release, draft)
            layout = public_layout(one.release, one.kind, form_of(draft))
            write_whole(sidecar(draft), own_layout(layout, draft.read_bytes()).encode())
        yield written


def publish_drafts(written: Sequence[Path]) -> list[Path]:
    """Put drafts and their layouts in their places, all or none of them; gives where the tables are."""
    if not written:
        return []
    folder = written[0].parent.parent
    with outages(folder):
        replace_together(sorted(written[0].parent.iterdir()), folder)
    return [folder / draft.name for draft in written]


def write_files(
    tables: Sequence[WrittenTable],
    files: SuppressFiles,
    changes: PatternChanges | None,
    say: Callable[[str], None],
    tell: Callable[[str], None],
) -> None:
    """Write what was asked for beside tables; ``say`` is told where it is, ``tell`` what is going on."""
    several = len(tables) > 1
    public = [one.release for one in tables]
    titles = [_title(one, several) for one in tables]
    if files.picture is not None:
        from lustrum.formats.pattern_picture import pattern_page, pattern_svg

        page = files.picture.suffix.lower() == ".html"
        drawn = pattern_page(public, titles) if page else pattern_svg(public, titles)
        write_whole(files.picture, drawn.encode("utf-8"))
        say(f"The picture is in {files.picture}.")
    if files.ranges is not None or files.certificate is not None:
        known, places = _known([one.release for one in tables])
        if files.ranges is not None:
            tell("working out ranges")
            text = _ranges(tables, known, places)
            write_whole(files.ranges, text.encode("utf-8"))
            say(f"The ranges are in {files.ranges}; they are confidential.")
        if files.certificate is not None:
            from lustrum.audit.certificate import certify

            tell("proving ranges")
            cells: list[int] = []
            for one, span in zip(tables, places, strict=True):
                # Proofs of some hidden cells alone would tell which are sensitive.
                picks = ~one.release.shown.ravel()
                cells += (np.flatnonzero(picks) + span.start).tolist()
            certify(known, cells).write(files.certificate)
            say(f"The proof is in {files.certificate}; check it with 'lustrum verify'.")
    if files.changes is not None and changes is not None:
        write_whole(files.changes, _changes(tables, changes).encode("utf-8"))
        say(f"What changed is in {files.changes}; it is confidential.")


def _known(releases: Sequence[Release]) -> tuple[Knowledge, list[slice]]:
    """What a reader of all tables knows, and where the cells of each table stand."""
    from lustrum.audit import PublishedTable
    from lustrum.audit.report import known_and_places

    return known_and_places([PublishedTable.of_release(release) for release in releases])


def _dimensions(tables: Sequence[WrittenTable]) -> list[str]:
    return list(dict.fromkeys(axis.name for one in tables for axis in one.release.axes))


def _codes(one: WrittenTable, position: tuple[int, ...], names: Sequence[str]) -> list[str]:
    """The codes of a cell under the dimensions of all tables; empty where its table has none."""
    codes = {
        a.name: inert(a.codes[int(i)]) for a, i in zip(one.release.axes, position, strict=True)
    }
    return [codes.get(name, "") for name in names]


def _head(tables: Sequence[WrittenTable], names: Sequence[str], facts: Sequence[str]) -> list[str]:
    """The names of columns: a variable keeps its own, and what is told of its cells gives way."""
    taken = set(names)
    first = [free_name("table", taken)] if len(tables) > 1 else []
    return [*first, *names, *(free_name(fact, taken) for fact in facts)]


def _ranges(tables: Sequence[WrittenTable], known: Knowledge, places: Sequence[slice]) -> str:
    """What a reader can work out about each suppressed cell, and whether a primary one has room enough."""
    counts = all(one.table.kind == "count" for one in tables)
    # Only counts are known to be whole; of sums a linear bound is reached.
    known = replace(known, whole=counts)
    names, rows = _dimensions(tables), []
    for one, span in zip(tables, places, strict=True):
        hidden = np.flatnonzero(~one.release.shown.ravel())
        ranges = bounds(known, (hidden + span.start).tolist(), integer=counts)
        for k, cell in enumerate(hidden.tolist()):
            position = tuple(int(i) for i in np.unravel_index(cell, one.release.shape))
            name_column = [inert(one.path.name)] if len(tables) > 1 else []
            ends = [_end(ranges.low, k, up=True, one=one), _end(ranges.high, k, up=False, one=one)]
            sharp = "yes" if bool(ranges.sharp[k]) else "no"
            codes = _codes(one, position, names)
            letter = CellStatus.SECONDARY.value
            status = str(one.wanted.status[position]) if one.wanted.mask[position] else letter
            rows.append(
                [*name_column, *codes, status, *ends, sharp, _enough(one, position, ranges, k)]
            )
    facts = ("status", "low", "high", "sharp", "enough")
    return write_csv(_head(tables, names, facts), rows)


def _end(ends: Floats, k: int, *, up: bool, one: WrittenTable) -> str:
    if not np.isfinite(ends[k]):
        return ""
    whole = np.ceil(ends[k] - _NEAR) if up else np.floor(ends[k] + _NEAR)
    return number_text(int(whole), one.release.decimals)


def _enough(one: WrittenTable, position: tuple[int, ...], ranges: Bounds, k: int) -> str:
    """Whether the range of a sensitive cell reaches as far as its levels ask for.

    A range that is not sharp may be narrower than it looks, so it is never called enough.
    """
    wanted = one.wanted
    if not wanted.mask[position]:
        return ""
    value = int(one.table.values[position])
    low, high = float(ranges.low[k]), float(ranges.high[k])
    least = value - int(one.lower[position])
    most = value + int(wanted.upper[position])
    wide = high - low >= int(wanted.sliding[position]) - 2 * _NEAR
    if low > least + _NEAR or high < most - _NEAR or not wide:
        return "no"
    return "yes" if bool(ranges.sharp[k]) else "not proven"


def _changes(tables: Sequence[WrittenTable], changes: PatternChanges) -> str:
    names, rows = _dimensions(tables), []
    ends = np.cumsum([0, *(one.table.values.size for one in tables)])
    for changed in changes.cells:
        number = int(np.searchsorted(ends, changed.cell, side="right")) - 1
        one = tables[number]
        flat = changed.cell - int(ends[number])
        position = tuple(int(i) for i in np.unravel_index(flat, one.table.shape))
        name_column = [inert(one.path.name)] if len(tables) > 1 else []
        rows.append([*name_column, *_codes(one, position, names), changed.change, changed.why])
    return write_csv(_head(tables, names, ("change", "why")), rows)


def _title(one: WrittenTable, several: bool) -> str:
    title = " by ".join(axis.name for axis in one.release.axes)
    return f"{one.path.name}: {title}" if several else title


# The report of a suppression for programs: all suppressed cells with what is proven of them.


_REASONS = {
    0: "Every sensitive cell is protected.",
    3: "Some sensitive cell is not protected, and no table was written.",
}


def suppression_report(
    paths: Sequence[Path], tables: Sequence[Table], patterns: Sequence[Pattern], *, safe: bool
) -> FileReport:
    """What was suppressed, and whether that is safe; ranges are those of outsiders, in the table's unit."""
    pattern, code = patterns[0], 0 if safe else 3
    audited = pattern.audited
    starts = np.cumsum([0, *(table.values.size for table in tables)])
    place = {} if audited is None else {int(cell): i for i, cell in enumerate(audited.cells)}
    unprotected = {cell.cell for cell in pattern.unprotectable}
    values = []
    for path, table, one, start in zip(paths, tables, patterns, starts, strict=False):
        unit = 10.0**-table.decimals
        for cell in np.flatnonzero(one.suppressed).tolist():
            at = np.unravel_index(cell, table.shape)
            i = place.get(cell + int(start))
            ends = (None, None)
            if audited is not None and i is not None:
                ends = tuple(  # type: ignore[assignment]
                    round(float(end[i]) * unit, table.decimals)
                    for end in (audited.low, audited.high)
                )
            codes = zip(table.axes, at, strict=True)
            values.append(
                AuditedValue(
                    cell=", ".join(f"{axis.name}={axis.codes[int(k)]}" for axis, k in codes),
                    place=path.name,
                    low=ends[0],
                    high=ends[1],
                    sharp=audited is not None and i is not None and bool(audited.sharp[i]),
                    reached=audited is not None and i is not None and bool(audited.shown[i]),
                    status="primary" if bool(one.primary[cell]) else "secondary",
                    finding="within protection" if cell + int(start) in unprotected else "open",
                )
            )
    return FileReport(
        command="suppress",
        exit=0 if code == 0 else 3,
        reason=" ".join([_REASONS[code], *map(str, pattern.unprotectable[:1])]),
        confidential=True,
        files=tuple(
            AuditedFile(
                name=str(path), digest=hashlib.sha256(path.read_bytes()).hexdigest(), layout="none"
            )
            for path in paths
        ),
        hidden=len(values),
        open=sum(value.finding == "open" for value in values),
        values=tuple(values),
        pattern=PatternReport(
            cells=int(starts[-1]),
            primary=sum(int(one.primary.sum()) for one in patterns),
            secondary=sum(int(one.secondary.sum()) for one in patterns),
            cost=pattern.cost,
            lower_bound=pattern.lower_bound,
            optimal=pattern.optimal,
            algorithm=pattern.algorithm,
            attackers=0 if audited is None else audited.attackers,
        ),
    )


# What was written, read back: a pattern counts as safe only for files that show what was audited.
#
# The audit of a pattern is about facts: which cells are shown, with which values, and what else a reader is
# told. The files are read as any reader would, and their facts compared with those, cell by cell. Intervals
# that stand in a file are facts of their own, so the pattern is audited again with them.

_HIDDEN = CellStatus.NOT_FOR_PUBLICATION.value
_OPEN = 2**60


def audit_of_files(
    paths: Sequence[Path], tables: Sequence[WrittenTable], problem: SuppressionProblem
) -> PatternAudit | None:
    """Check that files show what was audited, and audit the pattern again if they tell more.

    ``problem`` has the cells of the tables one after another, and then those that no table shows. None if the
    files tell nothing but the values of published cells.
    """
    low, high = problem.low.copy(), problem.high.copy()
    suppressed = problem.fixed.copy()
    start, more = 0, False
    for path, one in zip(paths, tables, strict=True):
        hidden, least, most = (a.ravel() for a in _facts(_opened(path, one), one))
        span = slice(start, start + hidden.size)
        suppressed[span] = hidden
        start = span.stop
        more |= bool((((least > -_OPEN) | (most < _OPEN)) & hidden).any())
        low[span] = np.where(hidden, np.maximum(low[span], least), low[span])
        high[span] = np.where(hidden, np.minimum(high[span], most), high[span])
    if not more:
        return None
    return audit_pattern(replace(problem, low=low, high=high), suppressed)


def _opened(path: Path, one: WrittenTable) -> OpenedFile:
    """A file, read by the layout that its table has and that stands beside it."""
    workbook = path.suffix.lower() == ".xlsx"
    layout = public_layout(one.release, one.kind, form_of(path))
    try:
        beside = sidecar(path)
        if beside.exists() and read_layout(beside).model_copy(update={"digest": ""}) != layout:
            raise _differs(path, "has another layout")
        file = open_file(path, layout.model_copy(update={"parts": None}))
    except InputError:
        raise _differs(path, "has other variables") from None
    if workbook and not _only_repeats(file.container):
        raise _differs(path, "tells more")
    return file


def _only_repeats(container: Container) -> bool:
    """Whether every number of another sheet stands among the cells too, and as often."""
    counted = {
        grid.name: Counter(
            text for line in grid.lines for text in line if printed(text.strip(), Style())
        )
        for grid in container.grids
    }
    own = counted.pop(CELLS)
    return all(numbers <= own for numbers in counted.values())


def _facts(file: OpenedFile, one: WrittenTable) -> tuple[Mask, Ints, Ints]:
    """The cells that a file hides and the ends that it states, if it is what was audited.

    Otherwise there is a bug, and nothing is published.
    """
    path = Path(file.container.source)
    axes, shape = one.table.axes, one.table.shape
    places = [{code: i for i, code in enumerate(axis.codes)} for axis in axes]
    called = HeadNames.of(axes).facts
    least, most = (np.full(shape, end, dtype=np.int64) for end in (-_OPEN, _OPEN))
    ends = {called["low"]: least, called["high"]: most}
    hidden = np.ones(shape, dtype=np.bool_)
    plain = one.release.method.keys() <= {"method"}
    across = next(iter(file.layout.tables[0].across), MEASURE)
    for cell in file.reading.cells:
        at = tuple(index.get(cell.key[a.name], -1) for index, a in zip(places, axes, strict=True))
        if -1 in at:
            raise _differs(path, "has other codes")
        measure = cell.key.get(across, called["value"])
        if measure != called["value"]:
            if cell.value is not None:
                ends[measure][at] = int(cell.value.scaleb(one.table.decimals))
        elif cell.value is None:
            if plain and cell.letter != _HIDDEN:
                raise _differs(path, "tells hidden cells apart")
        else:
            hidden[at] = False
            if cell.value.scaleb(one.table.decimals) != int(one.table.values[at]):
                raise _differs(path, "shows another value")
    if not np.array_equal(hidden, one.pattern.suppressed.reshape(shape)):
        raise _differs(path, "hides other cells")
    if file.questions or file.reading.standing:
        raise _differs(path, "tells more")
    return hidden, least, most


def _differs(path: Path, how: str) -> InternalError:
    return InternalError(f"{path.name} {how} than what was audited, so it is not published.")
