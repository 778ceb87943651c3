"""The answer for people: a table, or a refusal with a way forward. Both work without a line of JavaScript."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from math import isfinite
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from lustrum.model import Axis, Release, Statistic, TableQuery
from lustrum.model.described_statistic import PERCENT
from lustrum.model.text import listed, say, say_many
from lustrum.numeric.structure import UNBOUNDED
from lustrum.server.http.languages import current
from lustrum.server.http.middleware import CONTENT_POLICY, framed_by
from lustrum.server.http.templating import Pages
from lustrum.server.pages import cut_points
from lustrum.server.pages.framing import frame, framing, may_be_framed
from lustrum.server.service.answers import ServedAnswer
from lustrum.server.service.jobs import Job
from lustrum.server.service.questions import Questions
from lustrum.server.service.served_dataset import find
from lustrum.server.table_view import titles
from lustrum.server.table_view.arrange import Arrangement, arrange
from lustrum.server.table_view.chart import draw
from lustrum.server.table_view.controls import WITHIN, controls
from lustrum.server.table_view.figures import Signs
from lustrum.server.table_view.gauge import gauge, steps, sum_views
from lustrum.server.table_view.layout import grid
from lustrum.server.table_view.map import Map, draw_map
from lustrum.server.table_view.percentages import SHARES, sums
from lustrum.server.urls import display, forms
from lustrum.server.urls.display import TableView


def router(questions: Questions, pages: Pages) -> APIRouter:
    routes = APIRouter(include_in_schema=False)

    @routes.get("/datasets/{name}/table")
    def table(name: str, request: Request) -> Response:
        served = find(questions.service, name)
        cuts, ends, pairs = cut_points.split(request.query_params.multi_items())
        view, asked = display.read(pairs)
        query = forms.read(asked, name)
        if cuts:
            # The groups stand in the address, as those of any question.
            groups = forms.write(cut_points.cut_all(query, served.dataset, cuts, ends))
            there = view.address(f"/datasets/{name}/table?{groups}")
            return RedirectResponse(current().at(there), 303)
        if query == replace(TableQuery(name, ()), where=query.where):
            # Nothing was asked for yet: there is something to choose, and nothing to refuse.
            return RedirectResponse(current().at(f"/datasets/{name}?{forms.write(query)}"), 303)
        answer = questions.ask_or_job(query)
        if isinstance(answer, Job):
            # In the address, as there are no cookies; a person who gets the address without it cannot cancel.
            waiting = view.address(f"/jobs/{answer.id}?token={answer.token}")
            return RedirectResponse(current().at(waiting), status_code=303)
        if answer.release is None:
            return pages.render("refusal.html", **refusal_values(answer, questions))
        host = str(request.base_url).rstrip("/")
        table = arrange(answer.release, view, answer.mapped)
        framed = bool(framing(answer.snapshot, questions.settings))
        values = answer_values(answer, table, host, answer.page, framed=framed)
        return pages.render("answer.html", **values)

    @routes.get("/datasets/{name}/embed")
    def embed(name: str, request: Request) -> Response:
        sites = may_be_framed(questions, name)
        view, asked = display.read(request.query_params.multi_items())
        answer = questions.ask(forms.read(asked, name))
        if answer.release is None:
            return pages.render("refusal.html", **refusal_values(answer, questions))
        host = str(request.base_url).rstrip("/")
        table = arrange(answer.release, view, answer.mapped)
        embed_path = f"/datasets/{name}/embed?{forms.write(answer.query)}"
        page = pages.render("embed.html", **answer_values(answer, table, host, embed_path))
        page.headers[CONTENT_POLICY] = framed_by(sites)
        return page

    return routes


MOST_BESIDE = 8
MOST_LINES = 60
"""A table of so many columns and rows has room for a chart beside it."""


def answer_values(
    answer: ServedAnswer,
    table: Arrangement,
    host: str,
    page: str,
    *,
    beside: bool = False,
    framed: bool = False,
) -> dict[str, Any]:
    """What the page of an answer shows; ``page`` is the address that other views of it begin with.

    With ``beside`` a chart stands beside the table where a screen has room for both.
    """
    view, language = table.view, current()
    signs = Signs(*language.signs)
    down = None if table.inner is None else table.axes[table.inner].name
    named = {variable.name: variable for variable in answer.snapshot.dataset.variables}
    shown = grid(table, signs, named.get(down or ""))
    here = view.address(page)
    drawn = table if view.form == "chart" else None
    fits = shown.width <= MOST_BESIDE and 1 < len(table.lines) <= MOST_LINES
    if beside and view.form == "table" and fits and not view.compared:
        drawn = arrange(table.release, replace(view, form="chart", page=1), answer.mapped)
    linked = view.address(answer.page)
    permanent = host + language.at(linked)
    dataset, policy = answer.snapshot.dataset, answer.snapshot.policy
    key = f"{answer.query.dataset}-{answer.id[:8]}"
    today = datetime.now(UTC).date()
    shown_alone = f"/datasets/{answer.query.dataset}/embed?{forms.write(answer.query)}"
    embed = view.address(shown_alone)
    card = view.but(form="chart") if view.form == "table" else view
    return dict(
        **_common(answer),
        grid=shown,
        chart=draw(drawn, signs) if drawn is not None else None,
        narrow=shown.width <= MOST_BESIDE,
        controls=controls(table, shown, page, answer.mapped),
        maps=_maps(answer, table, signs) if view.form == "map" else [],
        shapes=_shapes(answer) if view.form == "map" else "",
        captions=_captions(table),
        picture_name=titles.file_name(answer.query, view.form, view.show).replace(".", "-"),
        off=_off(table, signs),
        source=say(
            "{publisher}, version {version}, asked for on {date}.",
            publisher=answer.publisher,
            version=answer.version,
            date=language.date(today),
        ),
        cut_by=_listed([language.say(name) for name in shown.cut_by]),
        remarks=_remarks(table),
        reading=[*answer.definitions, *_reading(table), *_about_totals(answer, table.release)],
        gauge=gauge(answer.decision, answer.snapshot.policy.risk.limit),
        sums=sum_views(answer.decision),
        done=() if answer.decision.release is None else answer.decision.release.notes,
        reach=_reach(table),
        bounds=view.but(bounds="off" if view.bounds == "on" else "on").address(page),
        bounded=view.bounds == "on",
        notes=[dataset.label(note) for note in policy.notes],
        partial=answer.decision.reasons,
        downloads=[(name, *entry) for name, entry in _downloads(answer, view).items()],
        growing=any(statistic.text.startswith("growth") for statistic in answer.query.asked),
        here=here,
        embed=embed,
        frame=frame(host + language.at(embed), language.say(answer.title)) if framed else "",
        card_link=host + language.at(card.address(answer.page)),
        card_frame=frame(host + language.at(card.address(shown_alone)), language.say(answer.title))
        if framed
        else "",
        host=host,
        linked=linked,
        permanent=permanent,
        citation=citation(
            language.say(answer.title),
            language.say(answer.publisher),
            key,
            today,
            permanent,
            language.date(today),
        ),
        calls=calls(answer.query, host, answer.api()),
    )


def _maps(answer: ServedAnswer, table: Arrangement, signs: Signs) -> list[Map]:
    """The map of a table, and the second one that was asked for, in the same classes."""
    view, dataset = table.view, answer.snapshot.dataset
    layer = dict(view.layer) | {v: code for v, code in view.against if v in dict(view.layer)}
    other = arrange(table.release, view.but(layer=tuple(layer.items())), answer.mapped)
    if other.view.layer == view.layer:
        return [draw_map(table, dataset, signs)]
    return [draw_map(table, dataset, signs, other), draw_map(other, dataset, signs, table)]


def _shapes(answer: ServedAnswer) -> str:
    """Where the shapes of a map are; nothing where they belong to own groups."""
    axis = next(a for a in answer.query.by if a.variable == answer.mapped)
    place = f"/api/v1/datasets/{answer.query.dataset}/variables/{axis.variable}/shapes"
    return "" if axis.groups else f"{place}?level={axis.level}" if axis.level else place


def _captions(table: Arrangement) -> list[str]:
    """What the figures are, where they are not plain numbers."""
    said: list[str] = []
    if table.view.derived:
        of_places = {} if table.view.form != "map" else WITHIN
        said.append(of_places.get(table.view.show, SHARES[table.view.show]))
    release = table.release
    if release.label and not release.statistics and release.unit and not table.view.relative:
        said.append(say("Unit: {unit}", unit=release.unit))
    if table.release.errors is not None and not table.view.derived:
        said.append(say("Beside each estimate: its standard error"))
    if table.view.bounds == "on" and table.figures.low is not None:
        said.append(say("Beside each figure: bounds that hold with certainty"))
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
    if table.figures.blurred is not None:
        said.append(
            say(
                "A difference marked ≈ is no larger than protection or the sample may have made it."
            )
        )
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
    return said


def _off(table: Arrangement, signs: Signs) -> str:
    """How far figures rarely are off, in their own unit; several statistics have several."""
    known = table.turned(table.figures.known)
    if table.margins is None or table.release.statistics or not known.any():
        return say("Protected. How far numbers can be off")
    margins = np.nan_to_num(table.margins[known], nan=np.inf)
    largest, most = float(margins.max()), float(np.quantile(margins, 0.9, method="higher"))
    few = (
        largest > 4 * most
    )  # small groups have percentages that are off by far more than all others
    if not isfinite(most if few else largest):
        return say("Protected. How far numbers can be off")
    margin: str = table.text(round((most if few else largest) * 10**table.figures.decimals), signs)
    if table.view.percent or (table.release.unit == PERCENT and not table.view.relative):
        margin = say("{margin} percentage points", margin=margin)
    elif table.view.share:
        margin = say("{margin} per 1,000", margin=margin)
    elif table.view.relative:
        margin = say("{margin} points", margin=margin)
    if few:
        return say(
            "Protected. Nine in ten numbers are rarely more than {margin} off, those of few people more.",
            margin=margin,
        )
    return say("Protected. Numbers are rarely more than {margin} off.", margin=margin)


def _reach(table: Arrangement) -> str:
    """How far true numbers can be from those shown, by the bounds that everybody may know."""
    release = table.release
    known = release.known
    if release.least is None or release.most is None or not known.any():
        return ""
    low, high = release.least[known], release.most[known]
    shown, scale = release.numbers[known], 10**release.decimals
    open_below, open_above = bool((low <= -UNBOUNDED).any()), bool((high >= UNBOUNDED).any())
    if open_below and open_above:
        return ""
    if release.label:
        return say("What each true number can be follows from the method.")
    if open_below or open_above:
        if table.view.bounds == "on":
            return say(
                "The bounds hold even if every single change went the same way, which does not happen; the "
                "margin of error says how far numbers really are off."
            )
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


def _about_totals(answer: ServedAnswer, release: Release) -> list[str]:
    dataset = answer.snapshot.dataset
    counted = {f.variable: f.members(dataset.variable(f.variable)) for f in answer.query.where}
    comparison = sums(release, counted)
    said: list[str] = []
    if comparison.differing:
        said.append(
            say_many(
                "{number} total differs from the sum of its parts, since every figure, totals too, is "
                "protected by itself. This is intended.",
                "{number} of {all} totals differ from the sum of their parts, since every figure, totals "
                "too, is protected by itself. This is intended.",
                comparison.differing,
                all=comparison.compared,
            )
        )
    said += [
        say("{variable}: the total also holds what is not shown in the table.", variable=label)
        for label in comparison.wider
    ]
    return said


def _downloads(answer: ServedAnswer, view: TableView) -> dict[str, tuple[str, str]]:
    """The files of a table, those first that most people want; they hold percentages where those are shown."""
    pivot = view.pivot
    if view.form == "map":
        pivot = tuple(
            (axis.variable, "rows" if axis.variable == answer.mapped else "columns")
            for axis in answer.query.by
        )
    shown = TableView(show=view.show, pivot=pivot, decimals=view.decimals)
    kinds = titles.file_kinds().items()
    return {name: (called, shown.address(answer.api(name))) for name, called in kinds}


def _listed(labels: list[str]) -> str:
    if len(labels) < 2:
        return "".join(labels)
    return str(current().say(say("{some} and {last}", some=listed(labels[:-1]), last=labels[-1])))


def refusal_values(
    answer: ServedAnswer, questions: Questions, page: str = "/table"
) -> dict[str, Any]:
    """What is said where a question is refused; ``page`` is what an address has after the dataset."""
    alternatives = questions.alternatives(answer)
    return dict(
        **_common(answer),
        here=answer.page,
        reasons=answer.decision.reasons,
        suggestions=[
            (s.text, f"/datasets/{s.query.dataset}{page}?{forms.write(s.query)}")
            for s in alternatives
        ],
    )


def _common(answer: ServedAnswer) -> dict[str, Any]:
    dataset = answer.snapshot.dataset
    return {
        "dataset": dataset,
        "heading": titles.heading(answer.query, dataset),
        "population": titles.population(answer.query, dataset),
        "title": answer.title,
        "builder": answer.builder,
        "steps": steps(answer.decision.trace),
    }


# --- How to cite a table, and how to ask for it from a program

_BIBTEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)


@dataclass(frozen=True)
class Citation:
    """A citation as a line of text and as an entry for BibTeX."""

    text: str
    bibtex: str


@dataclass(frozen=True)
class Calls:
    """The question of a table in three languages of programs."""

    curl: str
    python: str
    r: str


def citation(
    title: str, publisher: str, key: str, asked: date, address: str, day: str = ""
) -> Citation:
    """Cite a table: what it is, whose it is, when it was asked for and where it can be asked for again.

    ``day`` is the date as the language of the page writes it.

    >>> citation("Age", "Census", "census-1a", date(2026, 4, 1), "https://stats.example/t").text
    'Census: Age. Table asked for on 2026-04-01, https://stats.example/t'
    """
    text = say(
        "{publisher}: {title}. Table asked for on {date}, {address}",
        publisher=publisher,
        title=title,
        date=day or asked.isoformat(),
        address=address,
    )
    entry = {
        "author": "{" + publisher.translate(_BIBTEX) + "}",
        "title": title.translate(_BIBTEX),
        "year": str(asked.year),
        "url": address,
        "urldate": asked.isoformat(),
    }
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in entry.items())
    return Citation(text, f"@misc{{{key},\n{lines}}}")


def calls(query: TableQuery, host: str, api: str) -> Calls:
    """The calls that ask the server at ``host`` for a table; ``api`` is the address of the answer there."""
    return Calls(f"curl {shlex.quote(host + api)}", _python(query, host), _r(host + api))


def _python(query: TableQuery, host: str) -> str:
    totals = {axis.total for axis in query.by}
    together = len(totals) == 1
    arguments = [_quoted(query.dataset), f"by={_literal([_by(a, together) for a in query.by])}"]
    if query.where:
        arguments.append(f"where={_literal({f.variable: list(f.codes) for f in query.where})}")
    if totals == {True}:
        arguments.append("totals=True")
    if query.measure is not None:
        arguments.append(f"measure={_quoted(query.measure)}")
    if query.statistics:
        arguments.append(f"statistics={_literal([_statistic(s) for s in query.statistics])}")
    if query.weight is not None:
        arguments.append(f"weight={_quoted(query.weight)}")
    inside = "".join(f"    {argument},\n" for argument in arguments)
    return (
        "from lustrum.client import Client\n\n"
        f"client = Client({_quoted(host)})\n"
        f"answer = client.table(\n{inside})\n"
        "for cell in answer.cells():\n"
        "    print(*cell.labels.values(), cell.value)"
    )


def _statistic(statistic: Statistic) -> object:
    return statistic.text if statistic.decimals is None else statistic.to_mapping()


def _by(axis: Axis, together: bool) -> object:
    said: dict[str, object] = {"variable": axis.variable}
    if axis.level is not None:
        said["level"] = axis.level
    if axis.codes is not None:
        said["codes"] = list(axis.codes)
    if axis.groups:
        said["groups"] = [
            {"label": g.label, "members": list(g.members)} | ({"code": g.code} if g.code else {})
            for g in axis.groups
        ]
    if axis.total and not together:
        said["total"] = True
    if len(said) == 1:
        return axis.variable
    return f"{axis.variable}:{axis.level}" if set(said) == {"variable", "level"} else said


def _r(address: str) -> str:
    return (
        "library(httr2)\n\n"
        f"answer <- request({_quoted(address)}) |>\n"
        "  req_perform() |>\n"
        "  resp_body_json(simplifyVector = TRUE)\n"
        "answer$table$value"
    )


def _literal(value: Any) -> str:
    """A value as Python writes it, with the quotation marks that people write."""
    if isinstance(value, (bool, int)):
        return repr(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(k)}: {_literal(v)}" for k, v in value.items()) + "}"
    return "[" + ", ".join(_literal(v) for v in value) + "]"


def _quoted(text: str) -> str:
    # Python and R both read the strings of JSON.
    return json.dumps(text, ensure_ascii=False)
