"""The five steps from a question to an answer (Shlomo, Antal, Elliot 2015, section 2.3).

1. preliminary rules, 2. risk, 3. protection, 4. risk again, 5. the answer with its utility. Each is a
small function from case to case; a case that was refused passes through the rest untouched.

One thing differs from the paper: protection is always applied, however low the risk. A cell that went
out true in one table and rounded in another would undo the rounding.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from lustrum.model import Decision, InputError, QueryError, Reason, Release, Table, TableQuery
from lustrum.model.plugins import load
from lustrum.model.stop import check_stop, report_progress
from lustrum.model.text import Message, say
from lustrum.policy import Fallback, Policy
from lustrum.release.coarsen import advice, coarser
from lustrum.release.door_audit import is_disclosive
from lustrum.release.preliminary import TOTAL, failing_areas, number_rules, question_rules
from lustrum.release.protected_input import ProtectedInput
from lustrum.release.public_figure import public_figure
from lustrum.release.question_state import QuestionState
from lustrum.tabulate import Cube, Engine
from lustrum.tabulate.cube import View

log = logging.getLogger("lustrum.release")

__all__ = ["MENDABLE", "STEPS", "answer"]

Step = Callable[[QuestionState], QuestionState]

_VIEWS: dict[Message, View] = {
    say("in the whole population"): "unfiltered",
    say("in the selected population"): "widened",
    say("in the table"): "shown",
}

MENDABLE = frozenset(("areas", "audit", "cells", "mean-cell-size", "risk", "small-cells"))
"""The rules that a coarser table or another method may satisfy."""


def answer(
    query: TableQuery, engine: Engine, policy: Policy, source: ProtectedInput | None = None
) -> Decision:
    """Take a question through the five steps, and where it fails through what the policy tries next.

    ``engine`` holds the truth, against which risk and utility are measured; tables are counted from the
    ``source``, which differs where the policy protects the input.
    """
    if policy.dataset not in ("*", query.dataset):
        raise QueryError(f"The policy is for {policy.dataset!r}, not for {query.dataset!r}.")
    case = run_steps(QuestionState(query, engine, policy, source or ProtectedInput(engine)))
    for step in policy.fallback:
        if case.open or not {reason.rule for reason in case.reasons} <= MENDABLE:
            break
        case = _merged(case, step) if step.method == "merge" else _otherwise(case, step)
    return case.decision()


def run_steps(case: QuestionState) -> QuestionState:
    for number, step in enumerate(STEPS):
        check_stop()
        if not case.open:
            break
        report_progress(step.__name__, number / len(STEPS))
        case = step(case)
    return case


def _merged(case: QuestionState, fallback: Fallback) -> QuestionState:
    """Ask again, one level coarser each time, until something passes or nothing coarser is left."""
    last, merged = case, dict[str, Reason]()
    while True:
        again = next(coarser(last.query, case.engine.dataset, fallback.variables), None)
        if again is None:
            return case
        names = {"variable": again.variable.label, "level": again.level.label}
        merged[again.variable.name] = Reason(
            "merged",
            say(
                "{variable} is shown at the level {level!r}, since the finer table would not be safe.",
                **names,
            ),
            say("Ask for less detail."),
        )
        fresh = QuestionState(
            again.query,
            case.engine,
            case.policy,
            case.source,
            remarks=tuple(merged.values()),
            trace=case.trace,
        )
        text = say("{variable} is shown at the level {level!r}.", **names)
        last = run_steps(fresh.noted("fallback", "tried", text))
        if last.open:
            return last
        if not {reason.rule for reason in last.reasons} <= MENDABLE:
            return case


def _otherwise(case: QuestionState, fallback: Fallback) -> QuestionState:
    """The same question under another method."""
    policy = case.policy.model_copy(update={"protect": fallback.protection()})
    fresh = QuestionState(case.query, case.engine, policy, case.source, trace=case.trace)
    again = run_steps(
        fresh.noted(
            "fallback", "tried", say("Protected by {method} instead.", method=fallback.method)
        )
    )
    return replace(again, policy=case.policy) if again.open else case


def preliminary(case: QuestionState) -> QuestionState:
    """Step 1: may such a table be asked for?"""
    dataset, rules, query = case.engine.dataset, case.policy.rules, case.query
    if query.measure is not None or query.weight is not None:
        name = case.policy.protect.method
        reason = Reason(
            "method",
            say(
                "The policy protects by {method}, which is for counts of {units}, not for sums or "
                "weighted numbers.",
                method=name,
                units=dataset.units,
            ),
            say("Ask for counts."),
        )
        return case.refused("rules", reason)
    reasons = list(question_rules(query, dataset, rules))
    if reasons:
        return case.refused("rules", *reasons)
    cube = case.source.engine.cube(query, unfiltered=True)
    try:
        return _judged(case, cube)
    except InputError as error:
        log.warning("cannot protect: %s", type(error).__name__)
        reason = Reason(
            "method",
            say("The method of the policy cannot protect such a table."),
            say("Ask for another one."),
        )
        return case.refused("rules", reason)


def _judged(case: QuestionState, cube: Cube) -> QuestionState:
    """The rules that look at protected numbers: of both populations, and of the table itself."""
    dataset, rules, query = case.engine.dataset, case.policy.rules, case.query
    failing: frozenset[str] = frozenset()
    for population, view in _VIEWS.items():
        if view == "widened" and not query.where:
            continue  # without a filter these are the people of the first view again
        # All parts of a total are protected with it, also those that were not asked for.
        completed, asked = cube.completed(view)
        release = case.source.protect(completed, case.policy.protect).take(asked)
        reasons = list(number_rules(release, population, query, dataset, rules))
        if reasons:
            return case.refused("rules", *reasons)
        failing |= failing_areas(release, rules)
    table = case.engine.tabulate(query) if case.source.before else completed.take(asked)
    if not failing:
        text = say("The table may be asked for.")
        return case.noted("rules", "passed", text, table=table, draft=release)
    return _without(case, failing, table, release)


def _without(
    case: QuestionState, failing: frozenset[str], table: Table, release: Release
) -> QuestionState:
    """The case with some areas left out of what was protected, or closed if all of them are."""
    name = case.policy.rules.per_area
    position = [axis.name for axis in table.axes].index(name)
    axis = table.axes[position]
    areas = [c for c in axis.categories if c.code != TOTAL]
    out = [c.label for c in areas if c.code in failing]
    picks = [np.arange(len(a)) for a in table.axes]
    picks[position] = np.array([i for i, c in enumerate(axis.categories) if c.code not in failing])
    way = advice(case.query, case.engine.dataset) or say("Choose fewer variables.")
    if len(out) == len(areas):
        text = say(
            "{variable}: none of the {areas} categories asked for is large enough.",
            variable=axis.label,
            areas=len(areas),
        )
        return case.refused("rules", Reason("areas", text, way))
    remark = Reason(
        "areas",
        say(
            "{shown} of {areas} categories of {variable} can be shown; too small for such a table: "
            "{names}.",
            shown=len(areas) - len(out),
            areas=len(areas),
            variable=axis.label,
            names=_some(out),
        ),
        way,
    )
    return case.noted(
        "rules",
        "passed",
        say("The table may be asked for, but not for all areas."),
        table=table.take(picks),
        draft=release.take(picks),
        remarks=(*case.remarks, remark),
    )


def _some(labels: list[str], most: int = 20) -> str:
    first, rest = ", ".join(labels[:most]), len(labels) - most
    return say("{some} and {rest} more", some=first, rest=rest) if rest > 0 else first


def measure_before(case: QuestionState) -> QuestionState:
    """Step 2: how risky would the table be as it is?

    Whether there is anything to measure is judged by the protected table: a refusal because the true one is
    empty would tell apart a 0 that is true from one that stands for 1 or 2.
    """
    assert case.table is not None
    assert case.draft is not None
    open_cells = case.table.inner
    if case.table.structural is not None:
        open_cells = open_cells & ~case.table.structural
    shown = case.draft.published[open_cells]
    if shown.size < 2 or not shown.any():
        reason = Reason(
            "too-little",
            say("The table is too small for its risk to be measured."),
            say("Choose more categories or a larger population."),
        )
        return case.refused("risk", reason)
    risk = case.policy.risk.spec().before(case.table)
    figure = public_figure(risk, case.policy.report.risk_step, case.table, "risk before")
    text = say("The risk of the unprotected table was measured.")
    return case.noted("risk", "measured", text, risk_before=figure)


def protect(case: QuestionState) -> QuestionState:
    """Step 3: protect."""
    assert case.draft is not None
    method = case.policy.protect.spec()
    words = ", ".join(f"{k} {v}" for k, v in method.to_mapping().items() if k != "method")
    text = say("Protected by {method} ({words}).", method=method.name, words=words)
    return case.noted("protection", "applied", text, release=case.draft)


def measure_after(case: QuestionState) -> QuestionState:
    """Step 4: is the protected table safe enough?

    Neither its risk nor the figure that is told may be above the limit. The first keeps the agency's word; the
    second blurs what a refusal tells about the true counts.
    """
    assert case.table is not None
    assert case.release is not None
    risk = case.policy.risk.spec().after(case.table, case.release)
    shown = public_figure(risk, case.policy.report.risk_step, case.table, "risk after")
    limit = case.policy.risk.limit
    if max(risk, shown) > limit:
        reason = Reason(
            "risk",
            say(
                "The protected table would still be riskier than the limit of {limit:g}.",
                limit=limit,
            ),
            advice(case.query, case.engine.dataset) or say("Choose fewer variables."),
        )
        return case.refused("risk again", reason)
    if is_disclosive(case.release, case.table, case.policy.audit):
        reason = Reason(
            "audit",
            say("From the protected table a reader could work out a small cell, or nearly so."),
            advice(case.query, case.engine.dataset) or say("Choose fewer variables."),
        )
        return case.refused("risk again", reason)
    return case.noted(
        "risk again",
        "passed",
        say("The risk of the protected table is not above the limit of {limit:g}.", limit=limit),
        risk_after=shown,
    )


def finish(case: QuestionState) -> QuestionState:
    """Step 5: the answer, with what it is still worth."""
    assert case.table is not None
    assert case.release is not None
    utility = load("lustrum.utilities", "hellinger")().of(case.table, case.release)
    shown = public_figure(utility, case.policy.report.utility_step, case.table, "utility")
    return case.noted("answer", "released", say("Released with its utility."), utility=shown)


STEPS: tuple[Step, ...] = (preliminary, measure_before, protect, measure_after, finish)
