"""`lustrum release`: the tables of a yearly programme, protected together, in one run."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from lustrum.cli.protect import progress_bars
from lustrum.publish.programme.read import read_programme
from lustrum.publish.programme.run import check_programme, run_programme
from lustrum.runtime.data_folder import PREPARED, REPORTS, record_act


def release_tables(
    file: Path,
    data: Path,
    console: Console,
    *,
    out: Path | None = None,
    trace: Path | None = None,
    check: bool = False,
    workers: int | None = None,
) -> None:
    """Check a programme, or make it; by default into the data folder, with the trace beside the records."""
    programme = read_programme(file)
    if check:
        for sentence in check_programme(programme, data):
            console.print(Text(sentence))
        console.print(Text(f"{file} is ready: run it without --check."))
        return
    out_folder = out or data / PREPARED / programme.name
    trace_path = trace or data / REPORTS / f"{programme.name}.json"
    with progress_bars(Console(stderr=True, markup=False)) as progress:
        release = run_programme(
            programme, data, out_folder, trace_path, workers=workers, progress=progress
        )
    record_act(data, "release", programme.name, release.digest)
    grid = Grid(header_style="bold")
    grid.add_column("table")
    for head in ("cells", "not shown"):
        grid.add_column(head, justify="right")
    for label, cells, hidden in release.tables:
        grid.add_row(Text(label), f"{cells:,}", f"{hidden:,}")
    console.print(grid)
    console.print(f"{out_folder} may be published: digest {release.digest}.", highlight=False)
    console.print(f"{trace_path} is confidential: it holds true values.", highlight=False)
