"""The report of 'suppress' on the terminal; it is made from true values and confidential."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from lustrum.model import Table
from lustrum.protect.suppression import Pattern, SuppressionProblem, level_counts

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
