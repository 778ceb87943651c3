"""A question and its decision on the terminal."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from lustrum.answer.figures.words import attacker_words, error_words, growth_words, summary
from lustrum.model import (
    Axis,
    Dataset,
    Decision,
    Filter,
    QueryError,
    Release,
    Statistic,
    SumFigures,
    TableAxis,
    TableQuery,
)
from lustrum.policy import Policy
from lustrum.publish.records import LocalRecordsService, true_figures


def show_decision(
    decision: Decision, dataset: Dataset, policy: Policy, console: Console, *, explain: bool = False
) -> None:
    """Print the table or the refusal, then what the steps decided if that is wanted."""
    if decision.release is None:
        console.print(Text("Refused.", style="bold"))
        for reason in decision.reasons:
            console.print(Text(f"  {reason.text}"))
            if reason.way_forward:
                console.print(Text(f"  -> {reason.way_forward}"))
    else:
        for reason in decision.reasons:
            console.print(Text(f"{reason.text} {reason.way_forward}".strip()))
        _grid(decision, decision.release, dataset, console)
        if decision.release.errors is not None:
            console.print(Text("In brackets: standard errors. * use with caution, ** unreliable."))
        for figures in decision.sums:
            _show_sums(figures, console)
        before, after = decision.risk_before, decision.risk_after
        if before is not None and after is not None and decision.counted:
            worth = "" if decision.utility is None else f"; utility {decision.utility:.3f}"
            console.print(
                f"A reader can expect: risk before {before:.2f}, after {after:.2f} "
                f"(limit {policy.risk.limit:g}){worth}.",
                highlight=False,
            )
        for note in (*decision.release.notes, *policy.notes):
            console.print(Text(f"Note: {note}"))
    if explain:
        for number, step in enumerate(decision.trace, start=1):
            console.print(Text(f"{number}. {step.step}: {step.outcome}. {step.text}"))


def _show_sums(figures: SumFigures, console: Console) -> None:
    """What a reader can expect of the sums of one measure."""
    said = summary(figures)
    if said:
        console.print(Text(said))
    for one in attacker_words(figures):
        risk, usual = ("known" if r is None else f"{r:.3g}" for r in (one.risk, one.typical))
        console.print(Text(f"  {one.who}: {one.says} Risk at most {risk}, typically {usual}."))
    if figures.errors:
        console.print(Text(f"  Expected errors of {figures.label}:"))
    for size in figures.errors:
        console.print(Text(f"    {error_words(size, figures.unit)}"))
    if figures.growth is not None:
        console.print(Text(f"  {growth_words(figures)}"))


def show_true_figures(
    decision: Decision, records: LocalRecordsService, policy: Policy, console: Console
) -> None:
    """Print what only the agency may know of a released table, and say so."""
    assert decision.release is not None
    engine = records.engine(decision.query.dataset)
    true = true_figures(decision.query, engine, decision.release, policy)
    console.print(Text("CONFIDENTIAL: measured on the true counts. Do not pass it on.", "bold red"))
    console.print(
        f"  True risk before {true.risk_before:.4f}, after {true.risk_after:.4f}; "
        f"true utility {true.utility:.4f}.\n"
        f"  Error of a shown number: {true.mean_error:.2f} on average, {true.largest_error} at most.",
        highlight=False,
    )


def _grid(decision: Decision, release: Release, dataset: Dataset, console: Console) -> None:
    """The first variables go down, the last goes across."""
    *down, across = release.axes
    title = " by ".join(axis.label for axis in release.axes)
    if release.label and not release.statistics:
        title = f"{release.label} ({release.unit}): {title}"
    for item in decision.query.where:
        variable = dataset.variable(item.variable)
        chosen = ", ".join(variable.category(code).label for code in item.codes)
        title += f"; {variable.label}: {chosen}"
    grid = Grid(title=title, title_justify="left", header_style="bold")
    for axis in down:
        grid.add_column(axis.label)
    for label in across.labels:
        grid.add_column(label, justify="right")
    before: tuple[int, ...] = ()
    for position in itertools.product(*(range(len(axis)) for axis in down)):
        row = [
            "" if before[: i + 1] == position[: i + 1] and i < len(down) - 1 else label
            for i, label in enumerate(_labels(down, position))
        ]
        values = release.numbers[position]
        cells = [
            _text(release, value, position, column) for column, value in enumerate(values.tolist())
        ]
        grid.add_row(*row, *cells)
        before = position
    console.print(grid)


def _text(release: Release, value: int, position: tuple[int, ...], column: int) -> str:
    """A number with its decimals and standard error; ".." where it is hidden, "-" where there is none."""
    at = (*position, column)
    if not release.shown[at]:
        return ".."
    if not release.known[at]:
        return "-"
    text = _written(*release.written(value, column))
    if release.errors is None or release.errors[at] < 0:
        return text
    # A standard error is rounded up, as it is everywhere.
    decimals = release.decimals_at(column)
    error = -(-int(release.errors[at]) // 10 ** (release.decimals - decimals))
    doubt = _DOUBT.get(str(release.grades[at]), "") if release.grades is not None else ""
    return f"{text} ({_written(error, decimals)}){doubt}"


_DOUBT = {"caution": " *", "unreliable": " **"}


def _written(units: int, decimals: int) -> str:
    sign, whole = "-" if units < 0 else "", abs(units)
    if not decimals:
        return f"{sign}{whole:,}"
    return f"{sign}{whole // 10**decimals:,}.{whole % 10**decimals:0{decimals}d}"


def _labels(axes: list[TableAxis], position: tuple[int, ...]) -> list[str]:
    return [axis.labels[i] for axis, i in zip(axes, position, strict=True)]


# A question in the words of the command line: ``--by age:ten-year,sex --where region=1``.


def read_question(
    dataset: str,
    by: str,
    where: Sequence[str],
    totals: bool = False,
    *,
    measure: str | None = None,
    statistics: Sequence[str] = (),
    weight: str | None = None,
) -> TableQuery:
    """The query that these words stand for; ``measure`` is that of each statistic which names none.

    >>> read_question("demo", "age:ten-year,sex", ["region=1"]).to_mapping()["by"]
    [{'variable': 'age', 'level': 'ten-year'}, 'sex']
    """
    axes = []
    for word in (part.strip() for part in by.split(",")):
        name, _, level = word.partition(":")
        if not name:
            raise QueryError(f"--by {by!r}: a variable's name is missing; write --by age,sex.")
        axes.append(Axis(name, level or None, total=totals))
    filters = []
    for word in where:
        name, equals, codes = word.partition("=")
        if not equals or not name or not codes:
            raise QueryError(f"--where {word!r}: write --where variable=code, such as region=1.")
        filters.append(Filter(name.strip(), tuple(code.strip() for code in codes.split(","))))
    return TableQuery(
        dataset,
        tuple(axes),
        tuple(filters),
        None if statistics else measure,
        weight,
        tuple(Statistic.parse(text, measure) for text in statistics),
    )
