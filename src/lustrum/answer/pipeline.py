"""The five steps from a question to an answer, after Shlomo, Antal and Elliot (2015, section 2.3).

1. rules about the question, 2. protected numbers, 3. rules about protected numbers, 4. the risk that is left
to a reader, 5. the answer with its utility. Each is a small function from case to case; a case that was
refused passes through the rest untouched.

Two things differ from the paper. Protection is always applied, however low the risk: a cell that went out
true in one table and rounded in another would undo the rounding. And nothing here looks at a true count:
risk and utility are what a reader can expect from the release, so that neither a figure nor a refusal tells
more than the protected numbers do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from lustrum.answer.figures import expected_figures, sum_figures
from lustrum.answer.method_words import protected_by
from lustrum.answer.preliminary import (
    TOTAL,
    advice,
    coarser,
    failing_areas,
    number_rules,
    question_rules,
)
from lustrum.answer.question_state import QuestionState
from lustrum.answer.statistics import compose, quantities, share_totals
from lustrum.audit import Attacker, Insider, Outsider, attack
from lustrum.audit.bounding.sweep import Progress
from lustrum.model import (
    Decision,
    InputError,
    Quantity,
    QueryError,
    Reason,
    Release,
    Statistic,
    SumFigures,
    TableQuery,
    describe_statistics,
)
from lustrum.model.text import Message, listed, say
from lustrum.policy import Audit, Fallback, Policy
from lustrum.public.numbers import CannotProtectError, ProtectedNumbers
from lustrum.runtime.stop import check_stop, report_progress

log = logging.getLogger("lustrum.answer")

Step = Callable[[QuestionState], QuestionState]

EVERYBODY = say("in the whole population")
SELECTED = say("in the selected population")
SHOWN = say("in the table")

_KEPT = say("The protected numbers keep the rules.")

MENDABLE = frozenset(("areas", "audit", "cells", "mean-cell-size", "risk", "small-cells"))
"""The rules that a coarser table may satisfy."""


def answer(query: TableQuery, numbers: ProtectedNumbers, policy: Policy) -> Decision:
    """Take a question through the five steps, and where it fails through what the policy tries next.

    >>> import pyarrow as pa
    >>> from lustrum.model import Axis
    >>> from lustrum.policy.presets import preset
    >>> from lustrum.policy.read import parse_policy
    >>> from lustrum.publish.records.protected_input import ProtectedInput
    >>> from lustrum.publish.records.views import EngineNumbers
    >>> from lustrum.tabulate.frame import FrameEngine, describe_frame
    >>> from lustrum.tabulate.keys import Secret
    >>> people = pa.table({"area": ["n", "s"] * 9})
    >>> engine = FrameEngine(people, describe_frame(people, ["area"]), Secret(bytes(16)))
    >>> policy = parse_policy(preset("keyed-rounding", engine.dataset).encode(), "a preset")
    >>> numbers = EngineNumbers(engine, policy, ProtectedInput(engine))
    >>> [reason.rule for reason in answer(TableQuery("frame", (Axis("area"),)), numbers, policy).reasons]
    ['population']
    """
    if policy.dataset not in ("*", query.dataset):
        raise QueryError(f"The policy is for {policy.dataset!r}, not for {query.dataset!r}.")
    case = run_steps(QuestionState(query, numbers, policy))
    for step in policy.fallback:
        if case.open or not {reason.rule for reason in case.reasons} <= MENDABLE:
            break
        case = _merged(case, step)
    return case.decision()


def run_steps(case: QuestionState, steps: tuple[Step, ...] | None = None) -> QuestionState:
    """Take a case through some of the steps, by default all of them, until one refuses it."""
    chosen = STEPS if steps is None else steps
    for number, step in enumerate(chosen):
        check_stop()
        if not case.open:
            break
        report_progress(step.__name__, number / len(chosen))
        case = step(case)
    return case


def _merged(case: QuestionState, fallback: Fallback) -> QuestionState:
    """Ask again, one level coarser each time, until something passes or nothing coarser is left."""
    last, merged = case, dict[str, Reason]()
    while True:
        again = next(coarser(last.query, case.numbers.dataset, fallback.variables), None)
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
            again.query, case.numbers, case.policy, remarks=tuple(merged.values()), trace=case.trace
        )
        text = say("{variable} is shown at the level {level!r}.", **names)
        last = run_steps(fresh.noted("fallback", "tried", text))
        if last.open:
            return last
        if not {reason.rule for reason in last.reasons} <= MENDABLE:
            return case


def question(case: QuestionState) -> QuestionState:
    """Step 1: may such a table be asked for? By the question alone."""
    dataset, rules, query = case.numbers.dataset, case.policy.rules, case.query
    unprotected = _unprotected(query, case.numbers)
    if unprotected is not None:
        return case.refused("question", unprotected)
    describe_statistics(query, dataset)
    reasons = tuple(question_rules(query, dataset, rules))
    for quantity in quantities(query):
        # The classes of a quantile are counted as one more variable, and judged as such.
        if quantity.histogram is not None and not reasons:
            reasons = tuple(question_rules(query.part(quantity), dataset, rules))
    if reasons:
        return case.refused("question", *reasons)
    return case.noted("question", "passed", say("The question may be asked."))


def _unprotected(query: TableQuery, numbers: ProtectedNumbers) -> Reason | None:
    """What a question names that there are no protected numbers of."""
    wanted = [q for statistic in query.asked for q in statistic.quantities(query.weight)]
    measures = [q.measure for q in wanted if q.measure is not None]
    there = numbers.measures if query.weight is None else numbers.weighted_measures
    lacking = next((name for name in measures if name not in there), None)
    if lacking is not None and query.weight is None:
        offered = numbers.measures
        text = say("There are no protected sums of {name!r}.", name=lacking)
    elif query.weight is not None and query.weight not in numbers.weights:
        lacking, offered = query.weight, numbers.weights
        text = say("There are no protected numbers weighted by {name!r}.", name=lacking)
    elif lacking is not None:
        return Reason(
            "method",
            say(
                "There are no protected sums of {name!r} weighted by {weight!r}.",
                name=lacking,
                weight=query.weight or "",
            ),
            say("Leave the weight out, or ask for weighted counts."),
        )
    else:
        return None
    way = (
        say("Ask for one of: {names}.", names=listed(offered))
        if offered
        else say("Ask for counts.")
    )
    return Reason("method", text, way)


def numbers(case: QuestionState) -> QuestionState:
    """Step 2: the protected numbers of everybody, of the selected population and of the table."""
    totals = share_totals(case.query)
    try:
        by_quantity = {
            q: case.numbers.views(case.query.part(q, totals)) for q in quantities(case.query)
        }
    except CannotProtectError as error:
        log.warning("cannot protect: %s", type(error).__name__)
        reason = Reason(
            "method",
            say("The method of the policy cannot protect such a table."),
            say("Ask for another one."),
        )
        return case.refused("numbers", reason)
    views = by_quantity[Quantity()]
    text = protected_by(v.shown.method for v in by_quantity.values())
    return case.noted(
        "numbers",
        "protected",
        text,
        views=views,
        others=tuple(v for q, v in by_quantity.items() if q.measure is None and q.weight is None)[
            1:
        ],
        parts={quantity: views.shown for quantity, views in by_quantity.items()},
        release=views.shown,
    )


def judge(case: QuestionState) -> QuestionState:
    """Step 3: the rules that look at protected numbers: of both populations, and of the table itself."""
    assert case.views is not None
    assert case.release is not None
    dataset, rules = case.numbers.dataset, case.policy.rules
    failing: frozenset[str] = frozenset()
    seen: list[tuple[Message, Release | None]] = [
        (EVERYBODY, case.views.everybody),
        (SELECTED, case.views.selected),
        (SHOWN, case.views.shown),
    ]
    for other in case.others:
        seen += [(SELECTED, other.selected), (SHOWN, other.shown)]
    judged: list[Release] = []
    for population, release in seen:
        if release is None or any(release is one for one in judged):
            continue  # these are the people of an earlier view again
        judged.append(release)
        reasons = list(number_rules(release, population, case.query, dataset, rules))
        if reasons:
            return case.refused("rules", *reasons)
        failing |= failing_areas(release, rules)
    open_cells = case.release.inner
    if case.release.structural is not None:
        open_cells = open_cells & ~case.release.structural
    shown = case.release.numbers[open_cells]
    # Counts of a protected population tell no more than its file does, however few they are.
    if case.policy.population is None and (shown.size < 2 or not shown.any()):
        reason = Reason(
            "too-little",
            say("The table is too small for its risk to be measured."),
            say("Choose more categories or a larger population."),
        )
        return case.refused("rules", reason)
    if failing:
        return _without(case, failing, case.release)
    return case.noted("rules", "passed", _KEPT)


def _without(case: QuestionState, failing: frozenset[str], release: Release) -> QuestionState:
    """The case with some areas left out of what was protected, or closed if all of them are.

    Areas outside the selection fail without a word: nobody was counted there.
    """
    name = case.policy.rules.per_area
    position = [axis.name for axis in release.axes].index(name)
    axis = release.axes[position]
    selected = case.query.selected(case.numbers.dataset.variable(name), axis.categories)
    areas = [axis.categories[i] for i in selected if axis.categories[i].code != TOTAL]
    out = [c.label for c in areas if c.code in failing]
    picks = [np.arange(len(a)) for a in release.axes]
    picks[position] = np.array([i for i, c in enumerate(axis.categories) if c.code not in failing])
    way = advice(case.query, case.numbers.dataset) or say("Choose fewer variables.")
    if len(out) == len(areas):
        text = say(
            "{variable}: none of the {areas} categories asked for is large enough.",
            variable=axis.label,
            areas=len(areas),
        )
        return case.refused("rules", Reason("areas", text, way))
    release = release.take(picks)
    if not out and any(item.variable == name for item in case.query.where):
        return case.noted("rules", "passed", _KEPT, release=release)
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
        say("The protected numbers keep the rules, but not for all areas."),
        release=release,
        remarks=(*case.remarks, remark),
    )


def _some(labels: list[str], most: int = 20) -> str:
    first, rest = listed(labels[:most]), len(labels) - most
    return say("{some} and {rest} more", some=first, rest=rest) if rest > 0 else first


def measure(case: QuestionState) -> QuestionState:
    """Step 4: how much risk is left to a reader, by what the reader can expect behind the release.

    A limit on a figure of the true counts would tell of them by every refusal.
    """
    assert case.release is not None
    figures = expected_figures(case.release, case.policy.risk.spec)
    limit = case.policy.risk.limit
    if figures.risk_after is not None and figures.risk_after > limit:
        reason = Reason(
            "risk",
            say(
                "The protected table would still be riskier than the limit of {limit:g}.",
                limit=limit,
            ),
            advice(case.query, case.numbers.dataset) or say("Choose fewer variables."),
        )
        return case.refused("risk", reason)
    if is_disclosive(case.release, case.policy.audit):
        reason = Reason(
            "audit",
            say("From the protected table a reader could work out a small cell, or nearly so."),
            advice(case.query, case.numbers.dataset) or say("Choose fewer variables."),
        )
        return case.refused("risk", reason)
    return case.noted(
        "risk",
        "passed",
        say("The risk that is left to a reader is not above the limit of {limit:g}.", limit=limit),
        risk_before=figures.risk_before,
        risk_after=figures.risk_after,
        utility=figures.utility,
    )


def _sum_figures(case: QuestionState, parts: Mapping[Quantity, Release]) -> tuple[SumFigures, ...]:
    """What a reader can expect of the sums that the answer shows, or is worked out from."""
    dataset, query = case.numbers.dataset, case.query
    variables = {axis.variable for axis in query.by} | {f.variable for f in query.where}
    asked = dict.fromkeys(q for s in query.asked for q in s.quantities(query.weight))
    out: dict[str, SumFigures] = {}
    for quantity in asked:
        name = quantity.measure
        if name is None or name in out or quantity.weight is not None:
            continue
        noise = case.numbers.sum_noise(name)
        if noise is not None:
            counts = parts[replace(quantity, measure=None)]
            out[name] = sum_figures(
                dataset.measure(name), parts[quantity], counts, noise, len(variables)
            )
    return tuple(out.values())


def finish(case: QuestionState) -> QuestionState:
    """Step 5: the answer, with what it is still worth to a reader."""
    parts = {quantity: _kept(case, part) for quantity, part in case.parts.items()}
    dataset = case.numbers.dataset
    edges = {variable.name: variable.edges for variable in dataset.variables if variable.edges}
    release = compose(
        case.query, parts, describe_statistics(case.query, dataset), edges, _errors(case)
    )
    # Left out last of all, so that what is not selected changes neither protection nor bounds of the rest.
    selected = [
        case.query.selected(dataset.variable(axis.variable), release.axes[i].categories)
        for i, axis in enumerate(case.query.by)
    ]
    rest = [range(len(axis)) for axis in release.axes[len(selected) :]]
    release = release.take([*selected, *rest])
    reason = case.policy.reason_for_true_counts
    return case.noted(
        "answer",
        "released",
        say("The table is shown."),
        release=release if reason is None else replace(release, notes=(reason, *release.notes)),
        sums=_sum_figures(case, parts),
    )


def _errors(case: QuestionState) -> dict[Statistic, Release]:
    """Weighted numbers that are worked out, as releases that hold their standard errors and grades."""
    query, totals = case.query, share_totals(case.query)
    out: dict[Statistic, Release] = {}
    for statistic, description in zip(
        query.asked, describe_statistics(query, case.numbers.dataset), strict=True
    ):
        needed = statistic.quantities(query.weight)
        if query.weight is None or not statistic.derived or statistic.variable is not None:
            continue
        share = statistic.kind == "share"
        quotients = case.numbers.quotients(
            query.part(needed[0], totals),
            query.part(needed[0] if share else needed[1], totals),
            statistic.of,
        )
        if quotients is not None:
            part = case.parts[needed[0]]
            scale = 10.0 ** (description.decimals + (2 if description.unit == "%" else 0))
            errors = np.nan_to_num(np.ceil(quotients.estimates.standard_errors * scale), nan=-1.0)
            carrier = replace(
                part,
                errors=np.minimum(errors, 2.0**62).astype(np.int64).reshape(part.shape),
                grades=quotients.grades.reshape(part.shape),
            )
            out[statistic] = _kept(case, carrier)
    return out


def _kept(case: QuestionState, part: Release) -> Release:
    assert case.release is not None
    shown = case.release.axes
    if part.axes[: len(shown)] == shown:
        return part
    return part.take(
        [
            *(
                np.array([axis.codes.index(code) for code in shown_axis.codes], dtype=np.intp)
                for axis, shown_axis in zip(part.axes, case.release.axes, strict=False)
            ),
            # The classes of a histogram come after the variables of the table.
            *(np.arange(len(axis)) for axis in part.axes[len(case.release.axes) :]),
        ]
    )


STEPS: tuple[Step, ...] = (question, numbers, judge, measure, finish)


_ATTACKERS: dict[str, Attacker] = {"outsider": Outsider(), "insider": Insider(contribution=1)}
"""Somebody who knows what is published, and somebody who is also counted in the cell in question."""


def is_disclosive(release: Release, audit: Audit) -> bool:
    """Whether an attacker is left with too few values for a cell that may be small.

    A table that takes more programs than the policy allows counts as disclosive.
    """
    judged = release.inner & release.shown
    if release.structural is not None:
        judged = judged & ~release.structural
    if release.least is not None:
        judged = judged & (release.least <= audit.up_to)
    cells = np.flatnonzero(judged).tolist()
    if not cells:
        return False
    return any(_finds(release, _ATTACKERS[name], cells, audit) for name in audit.attackers)


def _finds(release: Release, attacker: Attacker, cells: list[int], audit: Audit) -> bool:
    work = _WorkCount(audit.programs)
    try:
        belief = attack(
            release,
            attacker,
            cells=cells,
            integer=True,
            workers=1,
            stop=work.is_over,
            progress=work.count,
        )
    except InputError:
        # Nobody can be counted in any of these cells, or too much is open to be weighed value by value.
        return False
    if work.is_over():
        return True
    insider_count = 1 if isinstance(attacker, Insider) else 0
    small = belief.low + insider_count <= max(audit.up_to, insider_count)
    return bool((small & (belief.count < audit.min_values)).any())


class _WorkCount:
    """Counts programs, searches and flows."""

    def __init__(self, most: int) -> None:
        self._most, self._done = most, 0

    def count(self, progress: Progress) -> None:
        self._done = progress.programs

    def is_over(self) -> bool:
        return self._done > self._most
