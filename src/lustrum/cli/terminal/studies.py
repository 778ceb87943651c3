"""A study on the terminal: the paper's figures beside ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from string import ascii_lowercase

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from lustrum.study import Line, Study, run_study

_HEADS = ("figure", "paper", "exact", "ours", "difference", "")


def with_progress(name: str, console: Console) -> Study:
    """Run a study with a bar that shows how far it is."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"Study {name}", total=1.0)
        return run_study(name, lambda done: bar.update(task, completed=done))


def show_study(study: Study, console: Console) -> None:
    console.print(Text(study.title, style="bold"))
    console.print(Text(study.source))
    for panel in study.panels:
        grid = Grid(title=panel.title, title_justify="left", header_style="bold")
        for head in _HEADS:
            grid.add_column(head, justify="left" if head in ("figure", "") else "right")
        for line in panel.lines:
            grid.add_row(*_cells(line))
        console.print(grid)
    console.print(Text(_verdict(study)))


def as_markdown(study: Study, pictures: Mapping[str, str] | None = None) -> str:
    """The printed figures beside ours, for the documentation; ``pictures`` are captions by address.

    Figures that the paper does not print are left to the terminal, unless one is not reproduced.
    """
    out = [f"# {study.title}", "", study.source, ""]
    for address, caption in (pictures or {}).items():
        out += [f"![{caption}]({address})", "", f"*{caption}.*", ""]
    unprinted = 0
    for panel in study.panels:
        lines = [line for line in panel.lines if line.paper is not None or not line.reproduced]
        unprinted += len(panel.lines) - len(lines)
        if lines:
            out += [f"## {panel.title}", "", *_printed(lines), ""]
    out.append(_verdict(study))
    if unprinted:
        out += ["", f"`lustrum study {study.name}` shows {unprinted} more that nobody printed."]
    return "\n".join([*out, ""])


def _printed(lines: list[Line]) -> Iterator[str]:
    """A table of figures; a note that several lines share is a letter, explained below."""
    notes = [line.note.partition("; standard error")[0] for line in lines]
    often = Counter(note for note in notes if note)
    letters = dict(zip((note for note, n in often.items() if n > 1), ascii_lowercase, strict=False))
    yield "| figure | paper | ours | remark |"
    yield "|---|---:|---:|---|"
    for line, note in zip(lines, notes, strict=True):
        slip = f"slip, exact {_number(line.expected)}" if line.slip else ""
        state = slip if line.reproduced else "NOT REPRODUCED"
        said = letters.get(note, note) + line.note.removeprefix(note)
        remark = ": ".join(part for part in (state, said) if part)
        yield f"| {line.what} | {_number(line.paper)} | {_number(line.ours)} | {remark} |"
    for note, letter in letters.items():
        yield ""
        yield f"{letter}: {note}."


def _cells(line: Line) -> tuple[str, ...]:
    remark = "slip in print" if line.slip else "" if line.reproduced else "NOT REPRODUCED"
    note = ". ".join(part for part in (remark, line.note) if part)
    difference = line.difference
    return (
        line.what,
        _number(line.paper),
        _number(line.expected),
        _number(line.ours),
        "" if difference is None else f"{round(difference, 9):+.4g}",
        note,
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def _verdict(study: Study) -> str:
    lines = [line for panel in study.panels for line in panel.lines if line.checked]
    done = sum(line.reproduced for line in lines)
    slips = sum(line.slip for line in lines)
    return f"{done} of {len(lines)} figures are as expected; the paper misprints {slips} of them."
