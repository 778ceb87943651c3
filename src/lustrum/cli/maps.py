"""Maps of risk against utility on the terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from lustrum.agency.maps.inputs import cases_of_files
from lustrum.model import InputError
from lustrum.rumap import RUMap, Space, Span, best, find_frontier, grid, space
from lustrum.rumap.choose import Choice, best_of
from lustrum.rumap.grids import usual_parameters
from lustrum.rumap.map import rumap


def draw_map(
    files: Sequence[Path],
    console: Console,
    *,
    methods: Sequence[str],
    measures: Sequence[str],
    attackers: Sequence[str],
    limit: float | None,
    draws: int,
    trials: int,
    seed: int,
    no_totals: Sequence[str],
    chart: Path | None,
    report: Path | None,
    table: Path | None,
    cache: Path | None,
    data: Path | None,
) -> bool:
    """Measure, print and write a map; gives whether a method is under the limit, if there is one."""
    cases = cases_of_files(files, data, no_totals)
    specs = methods_of_words(methods) or None
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True, markup=False), transient=True) as bar:
        task = bar.add_task("Draws", total=None)
        given: dict[str, Any] = {
            "measures": measures or None,
            "attackers": attackers or None,
            "replications": draws,
            "seed": seed,
            "cache": cache,
            "progress": lambda done, total: bar.update(task, completed=done, total=total),
        }
        if specs is None or not any(isinstance(spec, Space) for spec in specs):
            ru_map = rumap(cases, specs, **given)
        elif limit is None:
            ru_map = find_frontier(cases, specs, trials=trials, **given)
        else:
            ru_map = best(cases, limit, specs, search="bayes", trials=trials, **given).map
    choice = None if limit is None else best_of(ru_map, limit)
    _show(ru_map, console)
    if choice is not None:
        console.print(Text(choice.reason, style="bold"))
    _write(ru_map, choice, limit, files, console, chart=chart, report=report, table=table)
    return choice is None or choice.point is not None


def methods_of_words(texts: Sequence[str]) -> list[Any]:
    """Methods from words such as ``random-rounding:base=3,5`` and ``markov-perturbation:theta=0.1,0.2``.

    Two numbers with dots between them, as in ``random-rounding:base=2..20``, are a span to search.
    Suppression is quick unless its ``algorithm`` is named.

    >>> [m.base for m in methods_of_words(["random-rounding:base=3,5"])]
    [3, 5]
    >>> methods_of_words(["random-rounding:base=2..20"])[0].parameters["base"]
    Span(low=2, high=20, log=False)
    """
    specs: list[Any] = []
    for word in texts:
        name, _, rest = word.partition(":")
        parameters = usual_parameters(name)
        for part in filter(None, rest.split(":")):
            key, equals, values = part.partition("=")
            if not equals:
                raise InputError(
                    f"{word!r} is not a method with values; write it as 'random-rounding:base=3,5'."
                )
            parameters[key] = _span(word, values) or [_value(text) for text in values.split(",")]
        if any(isinstance(value, Span) for value in parameters.values()):
            specs.append(space(name, **parameters))
        else:
            specs += grid(name, **parameters)
    return specs


def open_page(
    files: Sequence[Path],
    data: Path | None,
    policy: Path,
    port: int,
    no_totals: Sequence[str],
    console: Console,
) -> None:
    """Serve the agency's page until stopped."""
    from lustrum.cli.inputs import need_server

    need_server("The page of a map")
    from lustrum.agency import serve_agency

    cases = cases_of_files(files, data, no_totals) if files else None
    serve_agency(
        port=port,
        data=data,
        policy=policy,
        cases=cases,
        ready=partial(say_address, console, "Maps are drawn", data),
    )


def say_address(console: Console, what: str, data: Path | None, place: str, address: str) -> None:
    """Say where pages are; the address that lets somebody in goes to a terminal, and into no log."""
    said = f"{what} at {place}, on this machine only."
    if place == address:
        said = f"{what} at {place}, for who may open that file."
    elif data is not None and not console.is_terminal:
        said += f" 'lustrum agency --address --data {data}' prints the address that lets you in."
    else:
        said += f" This address lets one browser in, once:\n{address}"
    console.print(said, highlight=False, soft_wrap=True)


def _span(word: str, values: str) -> Span | None:
    low, dots, high = values.partition("..")
    if not dots:
        return None
    ends = [_value(low), _value(high)]
    if not all(isinstance(end, int | float) for end in ends):
        raise InputError(f"{word!r} does not give a span by two numbers, as in 'base=2..20'.")
    return Span(*ends)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _show(ru_map: RUMap, console: Console) -> None:
    for name in ru_map.tables:
        grid_ = Grid(
            title=f"{name}: {ru_map.risk} against {ru_map.utility}",
            title_justify="left",
            header_style="bold",
        )
        for head in ("method", "risk", "utility", "draws", "state"):
            grid_.add_column(head, justify="left" if head in ("method", "state") else "right")
        points = ru_map.of(name)
        for point, by in zip(points, ru_map.dominators(name), strict=True):
            state = "corner" if point.is_corner else "frontier" if by == -1 else ""
            state = f"dominated by {points[by].label}" if by >= 0 else state
            missing = not (np.isfinite(point.risk) and np.isfinite(point.utility))
            grid_.add_row(
                point.label,
                "" if missing else f"{point.risk:.4f}",
                "" if missing else f"{point.utility:.4f}",
                str(point.draws),
                point.note if missing else state,
                style="bold" if by == -1 else None,
            )
        console.print(grid_)


def _write(
    ru_map: RUMap,
    choice: Choice | None,
    limit: float | None,
    files: Sequence[Path],
    console: Console,
    *,
    chart: Path | None,
    report: Path | None,
    table: Path | None,
) -> None:
    if chart is not None:
        ru_map.save(chart, limit=limit)
        console.print(Text(f"The map is in {chart}."))
    if report is not None:
        from lustrum.rumap.report import MapReport, write_report

        source = f"Read from {', '.join(path.name for path in files)}."
        write_report(MapReport(ru_map, choice, limit, source=source), report)
        console.print(Text(f"The report is in {report}."))
    if table is not None:
        import pyarrow.csv

        pyarrow.csv.write_csv(ru_map.to_arrow(), table)
        console.print(Text(f"The points are in {table}."))
