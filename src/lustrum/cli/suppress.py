"""`lustrum suppress`: confidential tables in files, protected together, and what may be published of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from lustrum.ledger.acts import record_act
from lustrum.ledger.chain import digest_of
from lustrum.model import InputError, Table
from lustrum.model.keys import text_identity
from lustrum.protect.suppression import (
    Pattern,
    PatternChanges,
    Suppression,
    SuppressionProblem,
    level_counts,
)
from lustrum.protect.suppression.method import attacker_of
from lustrum.publish.suppression.files import (
    SuppressFiles,
    WrittenTable,
    audit_of_files,
    drafts,
    publish_drafts,
    suppression_report,
    write_files,
)
from lustrum.publish.suppression.inputs import cells_of_all, previous_masks, rule_for, same_names
from lustrum.publish.suppression.tables import StoppableSearch, TablesTogether
from lustrum.publish.waivers import read_waivers
from lustrum.readers.confidential import Kind, TrueFile, read_true
from lustrum.readers.hierarchy_files import Groups, read_groups
from lustrum.readers.layout import Layout, SuppressSettings, layouts_of
from lustrum.readers.true_tables import members_of, true_table
from lustrum.sensitivity import AnyOf, Rule, read_rule

_MOST_SHORT = 20
Say = Callable[[str], None]


@dataclass(frozen=True)
class SuppressWords:
    """What is said on the command line: files beside the tables, and settings that a layout may hold too."""

    layouts: Sequence[Path] = ()
    hierarchies: Sequence[str] = ()
    kind: Kind | None = None
    previous: Path | None = None
    waivers: Path | None = None
    settings: Mapping[str, object] | None = None
    data: Path | None = None


def suppress_files(
    paths: Sequence[Path], console: Console, words: SuppressWords, files: SuppressFiles
) -> bool:
    """Suppress cells of tables together, print the report and write the files; gives whether it is safe."""

    def tell(text: str) -> None:
        console.print(Text(text))

    if words.data is not None and (files.out is None or not words.data.is_dir()):
        raise InputError(
            "--data names a data folder in whose book the tables of --out are entered."
        )

    def require_none() -> None:
        if words.data is not None:
            from lustrum.publish.bundles.people import require_unanswered
            from lustrum.tabulate import Store

            require_unanswered(Store(words.data), None)

    require_none()
    files.check(paths, words.previous)
    read = _read(paths, words, tell)
    together = _judge(read, words, tell)

    def enter(written: Sequence[Path]) -> None:
        if words.data is not None:
            digests = {path.name: digest_of(path.read_bytes()) for path in written}
            digest = digest_of(json.dumps(digests, sort_keys=True).encode())
            policy = read.settings.model_dump_json().encode()
            about = " ".join(path.stem for path in written)
            said: dict[str, Any] = {"files": digests, "dataset": ""}  # nobody knows of whose people
            record_act(words.data, "suppress", about, digest, policy=policy, **said)
            require_none()  # from the line on there are no more answers

    with _busy() as show:
        patterns = _solve(together, show, tell)
        changes = _check(together, patterns, paths, console, show)
        protected = together.protected(paths, patterns) if patterns[0].safe else []
        safe = bool(protected) and _write(protected, together, files, enter, show, tell)
        if files.json is not None:
            suppression_report(paths, together.tables, patterns, safe=safe).write(files.json)
        if safe:
            write_files(protected, files, changes, tell, show)
        else:
            for cell in patterns[0].unprotectable:
                tell(str(cell))
            short = "the files would" if protected else "the pattern does"
            tell(f"Nothing was written: {short} not protect every cell.")
    return safe


@dataclass(frozen=True)
class _Read:
    """The files as they were read, the tables in them, and how their cells are to be suppressed."""

    paths: Sequence[Path]
    files: list[TrueFile]
    tables: list[Table]
    settings: SuppressSettings


def _read(paths: Sequence[Path], words: SuppressWords, tell: Say) -> _Read:
    """Read the tables; whatever is recognised or assumed about them is said."""
    layouts = layouts_of(paths, words.layouts)
    files = [read_true(path, layout) for path, layout in zip(paths, layouts, strict=True)]
    groups: dict[str, Groups] = {}
    for word in words.hierarchies:
        name, equals, tree = word.partition("=")
        if not equals:
            raise InputError(f"--hierarchy is DIMENSION=FILE, such as nace=nace.hrc, not {word!r}.")
        groups[name] = {**groups.get(name, {}), **read_groups(Path(tree))}
    codes = members_of(files, groups)
    for one in codes.values():
        tell(one.sentence())
    # A holding has the same number in every file, and in the list of waivers.
    tables = [true_table(f, codes, words.kind, holding_number=text_identity) for f in files]
    for file, table in zip(files, tables, strict=True):
        for note in file.notes:
            tell(f"{file.source}: {note}")
        if "assumed" in table.provenance:
            tell(str(table.provenance["assumed"]))
    return _Read(paths, files, tables, settings_of(layouts, words.settings or {}))


def settings_of(layouts: Sequence[Layout | None], given: Mapping[str, object]) -> SuppressSettings:
    """What layouts and the command line tell about suppression together; nothing is said twice."""
    every = [layout.suppress for layout in layouts if layout is not None]
    stated = [one for one in every if one != SuppressSettings()]
    if any(one != stated[0] for one in stated):
        raise InputError("The layouts differ in [suppress]; tell it in one of them.")
    settings = stated[0] if stated else SuppressSettings()
    twice = next((key for key in given if key in settings.model_fields_set), None)
    if twice is not None:
        raise InputError(f"--{twice} stands in [suppress] of the layout too; tell it once.")
    return settings.model_copy(update=given)


def _judge(read: _Read, words: SuppressWords, tell: Say) -> TablesTogether:
    """Which cells are sensitive, which must be shown or hidden anyway, and which were hidden before."""
    background = read_waivers(words.waivers)
    for file in read.files:
        if words.waivers is not None and not file.holdings:
            raise InputError(
                f"{file.source}: waivers name holdings, and there is no column of holdings; call their columns "
                "'h1', 'h2', ..., or name them in a layout."
            )
    method = read.settings.method()
    rule = rule_of(read.settings.rule) if read.settings.rule else None
    specs = [
        Suppression(rule=rule_for(rule, file, table), **method)
        for file, table in zip(read.files, read.tables, strict=True)
    ]
    named = same_names(read.files, attacker_of(specs[0].attacker, read.tables))
    frozen, never = (
        cells_of_all(read.tables, cells, key)
        for key, cells in (("frozen", read.settings.frozen), ("never", read.settings.never))
    )
    before = None
    if words.previous is not None:
        before = previous_masks(read.paths, read.tables, words.previous)
        for path, mask in zip(read.paths, before, strict=True):
            if mask is None:
                tell(f"{path.name} has no table of the last period.")
    return TablesTogether(specs, read.tables, background, frozen, never, named, before)


@contextmanager
def _busy() -> Iterator[Say]:
    """A line on the terminal that says what goes on."""
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True, markup=False),
        transient=True,
    )
    with bar:
        task = bar.add_task("Suppressing", total=None)
        yield lambda text: bar.update(task, description=text)


def _solve(together: TablesTogether, show: Say, tell: Say) -> tuple[Pattern, ...]:
    """A pattern for each table; Ctrl-C takes the best so far."""
    search = StoppableSearch(show, tell)
    with search.listening():
        patterns = together.patterns(search.tell)
    if search.stopped:
        tell("The search was stopped; this is the best pattern that it had found.")
    return patterns


def _check(
    together: TablesTogether,
    patterns: Sequence[Pattern],
    paths: Sequence[Path],
    console: Console,
    show: Say,
) -> PatternChanges | None:
    """Print what the audit of the pattern found; gives what changed since the last period, if there is one."""
    in_units = together.specs[0].cost == "value"
    show_report(together.tables, patterns, paths, console, in_units)
    console.print(Text(_attackers(patterns, together.specs)))
    if together.before is None:
        return None
    show("comparing with the last period")
    problem = together.problem()
    changes = together.changes(problem, patterns)
    show_changes(problem, patterns[0], changes, together.tables, paths, console)
    return changes


def _write(
    protected: Sequence[WrittenTable],
    together: TablesTogether,
    files: SuppressFiles,
    enter: Callable[[Sequence[Path]], None],
    show: Say,
    tell: Say,
) -> bool:
    """Write drafts, audit what a stranger reads in them, and put them in their places if all is protected."""
    with drafts(protected, files) as written:
        if not written:
            return True
        show("reading the files back")
        attacked = together.attacked()
        audit = audit_of_files(written, protected, attacked)
        if audit is not None and not audit.safe:
            for cell, _ in audit.short[:_MOST_SHORT]:
                tell(
                    f"What would be written leaves {attacked.name(cell)} without enough protection."
                )
            return False
        enter(written)
        for path in publish_drafts(written):
            tell(f"The protected table is in {path}.")
    tell("The files were read back: they show what was audited, and nothing else.")
    return True


def _attackers(patterns: Sequence[Pattern], specs: Sequence[Suppression]) -> str:
    """One line on who was assumed to attack."""
    audited = patterns[0].audited
    number = 0 if audited is None else audited.attackers
    told = (
        "told which cells are sensitive"
        if specs[0].reasons
        else "not told which cells are sensitive"
    )
    if specs[0].attacker == "outsider":
        insiders = "no contributors, as asked for"
    elif number == 0:
        insiders = "no contributors, since the files show none that knows a cell or a part of one"
    elif specs[0].attacker == "pairs":
        insiders = f"{number:,} contributors and pairs of contributors, with what they know"
    elif number > 1:
        insiders = f"each of {number:,} contributors, with what it knows"
    else:
        insiders = "1 contributor, with what it knows"
    return f"Assumed attackers: outsiders who know the method and the rule, {told}; {insiders}."


# Sensitivity rules in the words of the command line.


_SHORT: dict[str, tuple[str, tuple[str, ...]]] = {
    "p": ("p-percent", ("p", "coalition")),
    "pq": ("prior-posterior", ("p", "q")),
    "nk": ("dominance", ("n", "k")),
    "dominance": ("dominance", ("n", "k")),
    "threshold": ("threshold", ("minimum", "margin")),
}


def rule_of(rule_texts: Sequence[str]) -> Rule:
    """A rule from words such as ``p=10``, ``pq=10,50``, ``nk=2,85`` or ``threshold=3``; several mean any.

    The second number of a threshold is the margin of sums, in percent of the cell.

    >>> rule_of(["p=10"]), rule_of(["nk=2,85"]).to_mapping()["k"]
    (PPercent(p=10, coalition=1, weights='expanded'), 85)
    """
    rules = [_one(word) for word in rule_texts]
    return rules[0] if len(rules) == 1 else AnyOf(*rules)


def _one(word: str) -> Rule:
    name, equals, rest = word.partition("=")
    if not equals or name not in _SHORT:
        raise InputError(
            f"--rule is p=10, pq=10,50, nk=2,85 or threshold=3, not {word!r}; give it several times for "
            "several rules."
        )
    kind, fields = _SHORT[name]
    given = rest.split(",")
    if len(given) > len(fields):
        raise InputError(
            f"--rule {name} has at most {len(fields)} numbers, as in {_example(name)}."
        )
    mapping: dict[str, Any] = {"rule": kind}
    for field, text in zip(fields, given, strict=False):
        mapping[field] = _number(text, word)
    return read_rule(mapping)


def _number(text: str, word: str) -> int | float:
    try:
        number = float(text)
    except ValueError:
        raise InputError(f"--rule {word!r} needs numbers after '='.") from None
    return int(number) if number == int(number) else number


def _example(name: str) -> str:
    return {"p": "p=10", "pq": "pq=10,50", "threshold": "threshold=3"}.get(name, "nk=2,85")


if TYPE_CHECKING:
    from lustrum.protect.suppression import PatternChanges

_MOST_NAMED = 5
_MOST_LISTED = 20


def show_report(
    tables: Sequence[Table],
    patterns: Sequence[Pattern],
    paths: Sequence[Path],
    console: Console,
    in_units: bool,
) -> None:
    """Print what is suppressed, what it costs and what is proven, and how much at each level."""
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


def show_changes(
    problem: SuppressionProblem,
    pattern: Pattern,
    changes: PatternChanges,
    tables: Sequence[Table],
    paths: Sequence[Path],
    console: Console,
) -> None:
    """Print what changed against the last period, and why; the cells are those of all tables together."""
    assert pattern.changes is not None
    unchanged, added, dropped = (
        a.size for a in (pattern.changes.kept, pattern.changes.added, pattern.changes.dropped)
    )
    console.print(
        Text(
            f"Against the last period: {unchanged:,} kept, {added:,} added, {dropped:,} published again."
        )
    )
    if not changes.cells:
        return
    if changes.open_before is not None and changes.open_before.size:
        names = [problem.name(int(cell)) for cell in changes.open_before[:_MOST_NAMED]]
        more = changes.open_before.size - len(names)
        said = "; ".join(names) + (f"; and {more:,} more" if more else "")
        console.print(Text(f"The old pattern would leave sensitive cells open: {said}."))
    elif changes.open_before is not None:
        console.print(Text("The old pattern would protect all sensitive cells too."))
    grid = Grid(title="Changed", title_justify="left", header_style="bold")
    several = len(tables) > 1
    for head in (*(("table",) if several else ()), "cell", "change", "why"):
        grid.add_column(head)
    ends = np.cumsum([table.values.size for table in tables])
    for one in changes.cells[:_MOST_LISTED]:
        file_name = paths[int(np.searchsorted(ends, one.cell, side="right"))].name
        row = (*((file_name,) if several else ()), problem.name(one.cell), one.change, one.why)
        grid.add_row(*map(Text, row))
    console.print(grid)
    left = len(changes.cells) - _MOST_LISTED
    if left > 0:
        console.print(Text(f"… and {left:,} more; --changes writes all of them."))


def _cost(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"
