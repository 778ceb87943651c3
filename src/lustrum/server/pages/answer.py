"""The answer for people: a table, or a refusal with a way forward. Both work without a line of JavaScript."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from lustrum.model import Release
from lustrum.model.plugins import names
from lustrum.model.text import say, say_many
from lustrum.server.http.languages import current
from lustrum.server.http.templating import Pages
from lustrum.server.service.answers import Answer
from lustrum.server.service.jobs import Job
from lustrum.server.service.offer import find
from lustrum.server.service.questions import Questions
from lustrum.server.service.suggestions import Suggestion
from lustrum.server.table_view import titles as words
from lustrum.server.table_view.arrange import Arrangement, arrange
from lustrum.server.table_view.chart import draw
from lustrum.server.table_view.cite import calls, citation
from lustrum.server.table_view.controls import controls
from lustrum.server.table_view.gauge import gauge, steps
from lustrum.server.table_view.layout import grid
from lustrum.server.table_view.sum_figures import sum_views
from lustrum.server.table_view.sums import sums
from lustrum.server.urls import display, forms
from lustrum.structure import UNBOUNDED

__all__ = ["router"]


def router(questions: Questions, pages: Pages) -> APIRouter:
    """The routes of answers."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/datasets/{name}/table")
    def table(name: str, request: Request) -> Response:
        find(questions.service, name)
        view, asked = display.read(request.query_params.multi_items())
        answer = questions.ask_or_job(forms.read(asked, name))
        if isinstance(answer, Job):
            # In the address, as there are no cookies; a person who gets the address without it cannot cancel.
            waiting = view.address(f"/jobs/{answer.id}?token={answer.token}")
            return RedirectResponse(current().at(waiting), status_code=303)
        if answer.release is None:
            return _refusal(answer, questions.alternatives(answer), pages)
        host = str(request.base_url).rstrip("/")
        return _answer(answer, arrange(answer.release, view), host, pages)

    return routes


def _answer(answer: Answer, table: Arrangement, host: str, pages: Pages) -> Response:
    view, language = table.view, current()
    # Figures have a decimal point or comma as the language of the page has it.
    point = language.number(0.5)[1]
    shown = grid(table, point)
    here = view.address(answer.page)
    permanent = host + language.at(here)
    publisher = answer.offer.policy.title or answer.offer.dataset.title
    key = f"{answer.query.dataset}-{answer.id[:8]}"
    today = datetime.now(UTC).date()
    return pages.render(
        "answer.html",
        **_common(answer),
        grid=shown,
        chart=draw(table, point) if view.form == "chart" else None,
        controls=controls(table, shown, answer.page),
        captions=_captions(table),
        cut_by=_listed([language.say(name) for name in shown.cut_by]),
        remarks=_remarks(table),
        reading=_reading(table),
        gauge=gauge(answer.decision, answer.offer.policy.risk.limit),
        sums=sum_views(answer.decision),
        done=() if answer.decision.release is None else answer.decision.release.notes,
        reach=_reach(table.release),
        bounds=view.but(bounds="off" if view.bounds == "on" else "on").address(answer.page),
        bounded=view.bounds == "on",
        notes=answer.offer.policy.notes,
        partial=answer.decision.reasons,
        downloads=[(name, *entry) for name, entry in _downloads(answer).items()],
        here=here,
        permanent=permanent,
        citation=citation(answer.title, publisher, key, today, permanent),
        calls=calls(answer.query, host, answer.api()),
    )


def _captions(table: Arrangement) -> list[str]:
    """What the figures are, where they are not plain numbers."""
    said: list[str] = []
    if table.view.percent:
        texts = {
            "row-percent": say("Percentages of each row"),
            "column-percent": say("Percentages of each column"),
            "whole-percent": say("Percentages of the whole table"),
        }
        said.append(texts[table.view.show])
    release = table.release
    if release.label and not release.statistics and release.unit and not table.view.percent:
        said.append(say("Unit: {unit}", unit=release.unit))
    if table.release.errors is not None and not table.view.percent:
        said.append(say("Beside each estimate: its standard error"))
    if table.view.bounds == "on" and table.figures.low is not None:
        said.append(say("Beside each figure: what the true value can be"))
    return said


def _remarks(table: Arrangement) -> list[str]:
    """What the view could not show."""
    said: list[str] = []
    if table.view.bounds == "on" and table.figures.low is None:
        said.append(say("What the true values can be is not known for these figures."))
    if table.view.empty == "hide" and not table.empty_rows:
        said.append(say("No row is empty, so none is hidden."))
    return said


def _reading(table: Arrangement) -> list[str]:
    """What a reader may stumble over, found out from the published figures alone."""
    said: list[str] = []
    bases = table.figures.based_on
    if bases == {"total"}:
        said.append(say("Percentages are of the published totals."))
    elif bases == {"sum"}:
        said.append(
            say(
                "Percentages are of the sum of the published figures, since the table has no totals."
            )
        )
    elif bases:
        said.append(
            say("Percentages are of the published totals, or of sums where there is no total.")
        )
    return said + _about_totals(table.release)


def _reach(release: Release) -> str:
    """How far true numbers can be from those shown, by the bounds that everybody may know."""
    known = release.known
    if release.low is None or release.high is None or not known.any():
        return ""
    low, high = release.low[known], release.high[known]
    shown, scale = release.published[known], 10**release.decimals
    open_below, open_above = bool((low <= -UNBOUNDED).any()), bool((high >= UNBOUNDED).any())
    if open_below and open_above:
        return ""
    if release.label:
        return say("What each true number can be follows from the method.")
    if open_below or open_above:
        return say("Bounds that hold with certainty are much wider than typical errors.")
    below = _units(int((shown - low).max(initial=0)), scale)
    above = _units(int((high - shown).max(initial=0)), scale)
    return say(
        "Each true number is at most {below:,} lower and at most {above:,} higher than the one shown.",
        below=below,
        above=above,
    )


def _units(value: int, scale: int) -> int | float:
    return value // scale if value % scale == 0 else value / scale


def _about_totals(release: Release) -> list[str]:
    found = sums(release)
    said: list[str] = []
    if found.differing:
        said.append(
            say_many(
                "{number} total differs from the sum of its parts, since every figure, totals too, is "
                "protected by itself. This is intended.",
                "{number} of {all} totals differ from the sum of their parts, since every figure, totals "
                "too, is protected by itself. This is intended.",
                found.differing,
                all=found.compared,
            )
        )
    said += [
        say(
            "{variable}: the total also holds what is not shown in the table.",
            variable=label,
        )
        for label in found.wider
    ]
    return said


def _downloads(answer: Answer) -> dict[str, tuple[str, str]]:
    """The files of a table, those first that most people want."""
    texts: dict[str, str] = {
        "csv": say("CSV"),
        "xlsx": say("Excel (XLSX)"),
        "json-stat": say("JSON-stat"),
    }
    there = names("lustrum.formats")
    order = [*(name for name in texts if name in there), *(n for n in there if n not in texts)]
    return {name: (texts.get(name, name), answer.api(name)) for name in order}


def _listed(labels: list[str]) -> str:
    """Labels in a sentence."""
    some, last = ", ".join(labels[:-1]), labels[-1] if labels else ""
    return str(current().say(say("{some} and {last}", some=some, last=last))) if some else last


def _refusal(answer: Answer, found: tuple[Suggestion, ...], pages: Pages) -> Response:
    return pages.render(
        "refusal.html",
        **_common(answer),
        here=answer.page,
        reasons=answer.decision.reasons,
        suggestions=[
            (s.text, f"/datasets/{s.query.dataset}/table?{forms.write(s.query)}") for s in found
        ],
    )


def _common(answer: Answer) -> dict[str, Any]:
    dataset = answer.offer.dataset
    return {
        "dataset": dataset,
        "heading": words.heading(answer.query, dataset),
        "population": words.population(answer.query, dataset),
        "title": answer.title,
        "builder": answer.builder,
        "steps": steps(answer.decision.trace),
    }
