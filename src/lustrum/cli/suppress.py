"""Suppress cells of confidential tables and write what may be published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from lustrum.arrays import Mask
from lustrum.audit import Bounds, best_bounds, from_release
from lustrum.audit.certificate import certify
from lustrum.cli.rule_words import rule_of
from lustrum.cli.table_options import FileOptions
from lustrum.durable import write_whole
from lustrum.formats.csv import inert, number_text
from lustrum.formats.pattern_picture import pattern_page, pattern_svg
from lustrum.formats.table_files import TableFile, confidential_table, read_table, recognise
from lustrum.formats.table_files.table_file import Number
from lustrum.formats.table_files.write import check_ending, write_csv, write_release
from lustrum.model import InputError, Release, Table
from lustrum.model.errors import choices
from lustrum.protect.suppression import Pattern, Suppression, level_counts, linked_patterns
from lustrum.release.records.programme.source import read_waivers
from lustrum.sensitivity import GivenCells, Rule, Sensitivity
from lustrum.tabulate.keys import text_identity

__all__ = ["SuppressFiles", "suppress_files"]


@dataclass(frozen=True)
class SuppressFiles:
    """The files that are written, those left out are not."""

    out: Path | None = None
    ranges: Path | None = None
    picture: Path | None = None
    certificate: Path | None = None
    plain_status: bool = False

    def of(self, path: Path) -> SuppressFiles:
        """The files of one of several tables: the folder ``out`` holds one named as the table."""
        return replace(self, out=None if self.out is None else self.out / path.name)

    def check(self, paths: Sequence[Path], previous: Path | None) -> None:
        """Refuse what cannot be written before anything is computed."""
        if len(paths) > 1:
            given = {
                "--ranges": self.ranges,
                "--picture": self.picture,
                "--certificate": self.certificate,
                "--previous": previous,
            }
            for option, value in given.items():
                if value is not None:
                    raise InputError(
                        f"{option} is for one table; for linked ones write them with --out and use "
                        "'lustrum audit' on the files, or make a programme with 'lustrum release'."
                    )
            if len({path.name for path in paths}) < len(paths):
                raise InputError("Linked tables need files of different names.")
            if self.out is not None and not self.out.is_dir():
                raise InputError(f"{self.out}: name a folder with --out for several tables.")
            for path in paths:
                if self.out is not None:
                    check_ending(self.out / path.name)
                    if (self.out / path.name).resolve() == path.resolve():
                        raise InputError(
                            f"{self.out}: the true tables are in this folder; name another."
                        )
        elif self.out is not None:
            check_ending(self.out)
        if self.picture is not None and self.picture.suffix.lower() not in (".svg", ".html"):
            raise InputError(f"{self.picture}: a picture is a file of .svg or .html.")
        if self.ranges is not None and self.ranges.suffix.lower() != ".csv":
            raise InputError(f"{self.ranges}: ranges are written to a file of .csv.")


def suppress_files(
    paths: Sequence[Path],
    console: Console,
    rules: Sequence[str],
    method: dict[str, Any],
    files: SuppressFiles,
    *,
    frozen: Sequence[str] = (),
    never: Sequence[str] = (),
    previous: Path | None = None,
    waivers: Path | None = None,
    options: FileOptions,
    counts: bool = False,
) -> bool:
    """Suppress cells of tables together, print the report and write the files; gives whether it is safe."""
    files.check(paths, previous)
    background = read_waivers(waivers)
    reads = [read_table(path, options.columns(), options.hidden) for path in paths]
    found = recognise(reads, options.said())
    for sentence in (*found.sentences(), *(said for read in reads for said in _ignored(read))):
        console.print(Text(sentence))
    # A holding has the same number in every file, and in the list of waivers.
    tables = [confidential_table(read, found, holding_number=text_identity) for read in reads]
    for read, table in zip(reads, tables, strict=True):
        if rules and read.count is None and not read.largest:
            console.print(Text(_taken_as_counts(read, table, said=counts)))
        if waivers is not None and not read.holdings:
            raise InputError(
                f"{read.source}: waivers name holdings, and there is no column of holdings; name it with "
                "--holdings."
            )
    specs = [
        Suppression(rule=_rule(rules, read, table), **method)
        for read, table in zip(reads, tables, strict=True)
    ]
    masks = [
        _cells_of_all(tables, words, "--" + name)
        for words, name in ((frozen, "frozen"), (never, "never"))
    ]
    before = None if previous is None else _previous(tables[0], previous, options)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("Suppressing", total=None)

        def tell(what: str, cost: float, bound: float) -> None:
            words = f"{what}: cost {cost:,.0f}, at least {bound:,.0f}"
            bar.update(task, description=words)

        if len(tables) == 1:
            one = specs[0].pattern(
                tables[0],
                background=background,
                frozen=masks[0][0],
                never=masks[1][0],
                previous=before,
                progress=tell,
            )
            patterns: tuple[Pattern, ...] = (one,)
        else:
            patterns = linked_patterns(
                specs, tables, background, frozen=masks[0], never=masks[1], progress=tell
            )
        _report(tables, patterns, paths, console, specs[0].cost == "value")
        if not patterns[0].safe:
            for cell in patterns[0].unprotectable:
                console.print(Text(str(cell)))
            console.print(Text("Nothing was written: the pattern does not protect every cell."))
            return False
        for path, table, spec, pattern in zip(paths, tables, specs, patterns, strict=True):
            _write(
                spec.release(table, pattern, background),
                table,
                spec.judge(table, background),
                pattern,
                files.of(path) if len(paths) > 1 else files,
                console,
                lambda words: bar.update(task, description=words),
            )
    return True


def _ignored(file: TableFile) -> list[str]:
    return [f"Columns not used: {', '.join(file.ignored)}."] if file.ignored else []


def _taken_as_counts(file: TableFile, table: Table, *, said: bool) -> str:
    """What a table without contributors is taken for; one that might be of sums must be called counts."""
    name = ", ".join(file.responses)
    if table.kind != "count":
        raise InputError(
            f"{file.source}: {name!r} holds sums, not counts, so a rule needs the contributors of every cell; "
            "name their columns with --contributors and --largest."
        )
    if file.ignored and not said:
        raise InputError(
            f"{file.source}: without contributors {name!r} would be taken for counts, and columns are left "
            f"over ({', '.join(file.ignored)}); name the contributors with --contributors and --largest, or "
            "say --counts."
        )
    return f"There is no column of contributors: {name!r} is taken for counts."


def _rule(words: Sequence[str], file: TableFile, table: Table) -> Rule:
    """The rule that is named, or the cells that the file itself marks as primary."""
    if words:
        return rule_of(words)
    if file.primary is None:
        raise InputError(
            f"Say what is sensitive: --rule p=10, --rule nk=2,85 or --rule threshold=3, or give {file.source} "
            "a column 'primary' (with 'upper' and 'lower' for the protection levels)."
        )
    where = file.positions
    cells = np.zeros(table.shape, dtype=np.bool_)
    cells[where] = file.primary

    def level(column: tuple[Number, ...] | None) -> npt.NDArray[np.int64] | None:
        if column is None:
            return None
        out = np.zeros(table.shape, dtype=np.int64)
        # A level is rounded up to a whole unit, so that protection is never smaller than asked for.
        out[where] = [0 if v is None else ceil(v.scaleb(table.decimals)) for v in column]
        return out

    upper = level(file.upper)
    return GivenCells(
        cells, np.zeros(table.shape, np.int64) if upper is None else upper, level(file.lower)
    )


def _cells_of_all(tables: Sequence[Table], words: Sequence[str], option: str) -> list[Mask | None]:
    """The cells that words name in every table that has their dimensions and codes."""
    out: list[Mask | None] = [None] * len(tables)
    for word in words:
        hit = False
        for at, table in enumerate(tables):
            try:
                mask = _cells(table, [word], option)
            except InputError:
                continue
            before = out[at]
            out[at] = mask if before is None or mask is None else before | mask
            hit = True
        if not hit:
            _cells(tables[0], [word], option)
    return out


def _cells(table: Table, words: Sequence[str], option: str) -> Mask | None:
    """The cells that words such as 'area=n,job=Total' name; a dimension left out means all its codes."""
    if not words:
        return None
    mask = np.zeros(table.shape, dtype=np.bool_)
    names = [axis.name for axis in table.axes]
    for word in words:
        index: list[Any] = [slice(None)] * len(names)
        for part in word.split(","):
            name, equals, code = part.strip().partition("=")
            if not equals or name not in names:
                raise InputError(f"{option} is DIMENSION=CODE,...; {choices(name, names)}.")
            codes = table.axes[names.index(name)].codes
            if code not in codes:
                raise InputError(
                    f"{option}: {name!r} has no code {code!r}; {choices(code, codes)}."
                )
            index[names.index(name)] = codes.index(code)
        mask[tuple(index)] = True
    return mask


def _previous(table: Table, path: Path, options: FileOptions) -> Mask:
    """The cells that the protected table of the last period does not show."""
    file = read_table(path, replace(options.columns(), values=("value",)), options.hidden)
    names = [axis.name for axis in table.axes]
    if sorted(file.dimensions) != sorted(names):
        raise InputError(
            f"{path}: the dimensions are {', '.join(file.dimensions)}; those of the table are "
            f"{', '.join(names)}."
        )
    order = [file.dimensions.index(name) for name in names]
    places = [{code: i for i, code in enumerate(axis.codes)} for axis in table.axes]
    mask = np.zeros(table.shape, dtype=np.bool_)
    for key, value in zip(file.cells, file.values["value"], strict=True):
        at = [place.get(key[i]) for place, i in zip(places, order, strict=True)]
        if value is None and None not in at:
            mask[tuple(at)] = True
    return mask


def _report(
    tables: Sequence[Table],
    patterns: Sequence[Pattern],
    paths: Sequence[Path],
    console: Console,
    in_units: bool,
) -> None:
    pattern = patterns[0]
    scale = 10 ** tables[0].decimals if in_units else 1
    cells = sum(table.values.size for table in tables)
    primary = sum(int(one.primary.sum()) for one in patterns)
    secondary = sum(int(one.secondary.sum()) for one in patterns)
    verdict = "The audit found every level kept." if pattern.safe else "The pattern is not safe."
    proof = (
        "no pattern costs less"
        if pattern.optimal
        else f"no pattern costs less than {_cost(pattern.lower_bound / scale)}, so that {pattern.gap:.1%} "
        "might be saved"
    )
    console.print(
        Text(
            f"{cells:,} cells, {primary:,} primary, {secondary:,} secondary; cost "
            f"{_cost(pattern.cost / scale)}, {proof}. By "
            f"{pattern.algorithm}: {pattern.why} {verdict}"
        )
    )
    for table, one, path in zip(tables, patterns, paths, strict=True):
        title = "By level" if len(tables) == 1 else f"{path.name} by level"
        grid = Grid(title=title, title_justify="left", header_style="bold")
        grid.add_column("cells of")
        for head in ("cells", "primary", "secondary", "value suppressed"):
            grid.add_column(head, justify="right")
        for row in level_counts(table, one):
            counts = [f"{n:,}" for n in (row.cells, row.primary, row.secondary)]
            grid.add_row(" x ".join(row.levels), *counts, f"{row.suppressed_share:.1%}")
        console.print(grid)
    if pattern.changes is not None:
        kept, added, dropped = (
            a.size for a in (pattern.changes.kept, pattern.changes.added, pattern.changes.dropped)
        )
        console.print(
            Text(
                f"Against the last period: {kept:,} kept, {added:,} added, {dropped:,} published again."
            )
        )


def _cost(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"


def _write(
    release: Release,
    table: Table,
    wanted: Sensitivity,
    pattern: Pattern,
    files: SuppressFiles,
    console: Console,
    tell: Any,
) -> None:
    if files.out is not None:
        write_release(release, files.out, plain_status=files.plain_status)
        console.print(Text(f"The protected table is in {files.out}."))
    if files.picture is not None:
        page = files.picture.suffix.lower() == ".html"
        made = (
            pattern_page(release, _title(release))
            if page
            else pattern_svg(release, _title(release))
        )
        write_whole(files.picture, made.encode("utf-8"))
        console.print(Text(f"The picture is in {files.picture}."))
    hidden = np.flatnonzero(~release.shown.ravel())
    if files.ranges is not None:
        tell("working out ranges")
        found = best_bounds(from_release(release), hidden.tolist())
        write_whole(files.ranges, _ranges(release, table, wanted, hidden, found).encode("utf-8"))
        console.print(Text(f"The ranges are in {files.ranges}; they are confidential."))
    if files.certificate is not None:
        tell("proving ranges")
        cells = np.flatnonzero(pattern.primary)
        certify(from_release(release), cells.tolist()).write(files.certificate)
        console.print(Text(f"The proof is in {files.certificate}; check it with 'lustrum verify'."))


def _ranges(
    release: Release,
    table: Table,
    wanted: Sensitivity,
    hidden: npt.NDArray[np.intp],
    found: Bounds,
) -> str:
    """What a reader can work out about each suppressed cell, and whether a primary one has room enough."""
    head = [axis.name for axis in release.axes]
    rows = []
    for k, cell in enumerate(hidden.tolist()):
        place = np.unravel_index(cell, release.shape)
        low, high = float(found.low[k]), float(found.high[k])
        value = int(table.values[place])
        enough = ""
        if wanted.mask[place]:
            least, most = value - int(wanted.lower[place]), value + int(wanted.upper[place])
            enough = "yes" if low <= least and high >= most else "no"
        ends = [
            number_text(int(end), release.decimals) if np.isfinite(end) else ""
            for end in (low, high)
        ]
        codes = [inert(a.codes[int(i)]) for a, i in zip(release.axes, place, strict=True)]
        sharp = "yes" if bool(found.sharp[k]) else "no"
        rows.append([*codes, str(release.status[place]), *ends, sharp, enough])
    return write_csv([*head, "status", "low", "high", "sharp", "enough"], rows)


def _title(release: Release) -> str:
    return " by ".join(axis.name for axis in release.axes)
