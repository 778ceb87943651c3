"""Tables, survival tables and histograms as outputs: what the rules say of them, and what is suggested."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lustrum.checking.folder import SessionOutput
from lustrum.checking.rules import OF_ONE, Verdict, described, statistic_of
from lustrum.checking.tables import OutputPopulation, TableOutput
from lustrum.model import InputError


def judged(kind: str, command: str, table: TableOutput) -> SessionOutput:
    """An output of a table, with what the rules say of it."""
    if kind == "survival":
        return _judged_survival(command, table)
    failing = int((table.sensitive & ~table.hidden).sum())
    verdict: Verdict = "pass"
    summary = described(table.failing) or "every cell passes"
    suggestion = ""
    if table.base:
        verdict = "pass" if table.base >= table.rules.threshold else "review"
        summary = f"{summary}; {table.treated}"
    elif failing:
        verdict, suggestion = "fail", _suggested(table)
    elif table.treated:
        summary = f"{summary}; {int(table.hidden.sum())} cells {table.treated}"
    return SessionOutput(
        "",
        kind,
        command,
        table.frame(),
        table.outcome(),
        verdict,
        summary,
        suggestion,
        table,
        table.population(""),
    )


def _suggested(table: TableOutput) -> str:
    names = [statistic_of(one)[0] for one in table.statistics]
    if any(name in OF_ONE for name in names):
        return "session.remove(name): a smallest or largest value is that of one person; show a quantile"
    share = float(table.sensitive.sum()) / max(1, int((table.counts > 0).sum()))
    try:
        if share > 0.2:
            table.coarsened()
            return "session.coarsen(name)"
    except InputError:
        pass
    return "session.suppress(name)"


def _judged_survival(command: str, table: TableOutput) -> SessionOutput:
    """A life table: rows where people leave, judged by how many leave and how many stay."""
    import pandas as pd

    leave: Any = table.counts
    events = table.computed("sum", table.values)
    risk = leave.sum() - np.concatenate([[0], np.cumsum(leave)[:-1]])
    share = np.cumprod(1 - events / risk)
    least = table.rules.threshold
    after = risk - leave
    texts = [
        "; ".join(
            word
            for word, wrong in (
                ("few leave", 0 < left < least),
                ("few events", 0 < had < least),
                ("few censored", 0 < left - had < least),
                ("few stay", 0 < stay < least),
            )
            if wrong
        )
        or "ok"
        for left, had, stay in zip(leave, events, after, strict=True)
    ]
    index = pd.Index(table.labels["time"], name="time")
    frame = pd.DataFrame(
        {"at risk": risk, "events": events.astype(int), "survival": share}, index=index
    )
    failing = sum(text != "ok" for text in texts)
    return SessionOutput(
        "",
        "survival",
        command,
        frame,
        pd.DataFrame({"outcome": texts}, index=index),
        "fail" if failing else "pass",
        f"{failing} of {len(texts)} rows fail" if failing else "every row passes",
        "session.coarsen(name): fewer times" if failing else "",
        table,
        OutputPopulation(
            "",
            table.people,
            {**table.codes, "event": np.asarray(table.values, dtype=np.int64)},
            {"time": tuple(map(str, table.labels["time"])), "event": ("0", "1")},
            {("time", "event"): np.ones((len(texts), 2), dtype=np.bool_)},
        ),
    )


def coarser_times(table: TableOutput) -> TableOutput:
    """The life table at fewer times: a row ends where enough had the event, were censored, and stay."""
    import pandas as pd

    least = table.rules.threshold
    events = table.computed("sum", table.values)
    ends, left, had, stay = [], 0.0, 0.0, float(table.counts.sum())
    for at, (gone, event) in enumerate(zip(table.counts.tolist(), events.tolist(), strict=True)):
        left, had, stay = left + gone, had + event, stay - gone
        fine = left >= least and (had == 0 or had >= least) and (left == had or left - had >= least)
        if fine and (stay == 0 or stay >= least):
            ends.append(at)
            left = had = 0.0
    if left and ends:
        ends.pop()
    if not ends or ends[-1] != len(events) - 1:
        ends.append(len(events) - 1)
    into: dict[Any, Any] = {}
    labels = table.labels["time"]
    for begin, end in zip([-1, *ends[:-1]], ends, strict=True):
        into |= {labels[at]: labels[end] for at in range(begin + 1, end + 1)}
    kept = [labels[at] for at in ends]
    column = pd.Categorical(
        [into[value] for value in table.columns["time"]], categories=kept, ordered=True
    )
    return replace(table, columns={"time": column})


def round_edges(column: Any, bins: int) -> list[float]:
    """Round numbers that cover the values, about so many intervals of them.

    >>> round_edges([3, 87], 10)
    [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]
    """
    values = np.asarray(column, dtype=float)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    rough = (high - low) / bins or 1.0
    # any last bit: a power of ten too low is made up for by the last of the steps
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * one for one in (1, 2, 2.5, 5, 10) if power * one >= rough * (1 - 1e-9))
    first, last = np.floor(low / step), np.ceil(high / step)
    return [float(round(step * at, 10)) for at in np.arange(first, max(last, first + 1) + 1)]
