"""The five steps from a question to an answer (Shlomo, Antal, Elliot 2015, section 2.3).

1. preliminary rules, 2. risk, 3. protection, 4. risk again, 5. the answer with its utility. Each is a
small function from case to case; a case that was refused passes through the rest untouched.

One thing differs from the paper: protection is always applied, however low the risk. A cell that went
out true in one table and rounded in another would undo the rounding.
"""

from __future__ import annotations

from collections.abc import Callable

from lustrum.model import Decision, QueryError, Reason, TableQuery
from lustrum.model.plugins import load
from lustrum.policy import Policy
from lustrum.release.case import Case
from lustrum.release.preliminary import coarser, number_rules, question_rules
from lustrum.release.report import told
from lustrum.tabulate import Engine

__all__ = ["STEPS", "answer"]

Step = Callable[[Case], Case]


def answer(query: TableQuery, engine: Engine, policy: Policy) -> Decision:
    """Take a question through the five steps."""
    if policy.dataset not in ("*", query.dataset):
        raise QueryError(f"The policy is for {policy.dataset!r}, not for {query.dataset!r}.")
    case = Case(query, engine, policy)
    for step in STEPS:
        if not case.open:
            break
        case = step(case)
    return case.decision()


def preliminary(case: Case) -> Case:
    """Step 1: may such a table be asked for?"""
    dataset, rules, query = case.engine.dataset, case.policy.rules, case.query
    if query.measure is not None or query.weight is not None:
        name = case.policy.protect.method
        reason = Reason(
            "method",
            f"The policy protects by {name}, which is for counts of {dataset.units}, not for sums "
            "or weighted numbers.",
            "Ask for counts.",
        )
        return case.refused("rules", reason)
    reasons = list(question_rules(query, dataset, rules))
    if reasons:
        return case.refused("rules", *reasons)
    cube = case.engine.cube(query, unfiltered=True)
    method = case.policy.protect.spec()
    views = {
        "in the whole population": cube.unfiltered(structural=False),
        "in the selected population": cube.widened(structural=False),
    }
    for population, table in views.items():
        reasons = list(number_rules(method.apply(table), population, query, dataset, rules))
        if reasons:
            return case.refused("rules", *reasons)
    table = cube.shown()
    # The rules have to see the protected table; step 3 then need not make it again.
    release = method.apply(table)
    reasons = list(number_rules(release, "in the table", query, dataset, rules))
    if reasons:
        return case.refused("rules", *reasons)
    return case.noted("rules", "passed", "The table may be asked for.", table=table, draft=release)


def measure_before(case: Case) -> Case:
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
            "The table is too small for its risk to be measured.",
            "Choose more categories or a larger population.",
        )
        return case.refused("risk", reason)
    risk = case.policy.risk.spec().before(case.table)
    told_risk = told(risk, case.policy.report.risk_step, case.table, "risk before")
    return case.noted(
        "risk", "measured", "The risk of the unprotected table was measured.", risk_before=told_risk
    )


def protect(case: Case) -> Case:
    """Step 3: protect."""
    assert case.draft is not None
    method = case.policy.protect.spec()
    words = ", ".join(f"{k} {v}" for k, v in method.to_mapping().items() if k != "method")
    return case.noted(
        "protection", "applied", f"Protected by {method.name} ({words}).", release=case.draft
    )


def measure_after(case: Case) -> Case:
    """Step 4: is the protected table safe enough?

    Neither its risk nor the figure that is told may be above the limit. The first keeps the agency's word; the
    second blurs what a refusal tells about the true counts.
    """
    assert case.table is not None
    assert case.release is not None
    risk = case.policy.risk.spec().after(case.table, case.release)
    shown = told(risk, case.policy.report.risk_step, case.table, "risk after")
    limit = case.policy.risk.limit
    if max(risk, shown) > limit:
        reason = Reason(
            "risk",
            f"The protected table would still be riskier than the limit of {limit:g}.",
            coarser(case.query, case.engine.dataset) or "Choose fewer variables.",
        )
        return case.refused("risk again", reason)
    return case.noted(
        "risk again",
        "passed",
        f"The risk of the protected table is not above the limit of {limit:g}.",
        risk_after=shown,
    )


def finish(case: Case) -> Case:
    """Step 5: the answer, with what it is still worth."""
    assert case.table is not None
    assert case.release is not None
    utility = load("lustrum.utilities", "hellinger")().of(case.table, case.release)
    shown = told(utility, case.policy.report.utility_step, case.table, "utility")
    return case.noted("answer", "released", "Released with its utility.", utility=shown)


STEPS: tuple[Step, ...] = (preliminary, measure_before, protect, measure_after, finish)
