"""Questions of other protocols: the same five steps as ours, and a refusal as a problem with its reasons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from lustrum.formats.about import About
from lustrum.formats.cell_text import free_name
from lustrum.model import Category, DescribedStatistic, Release, TableAxis, TableQuery
from lustrum.server.api.tables import about_answer, response, today
from lustrum.server.http.errors import Problem, ProblemError
from lustrum.server.http.languages import current
from lustrum.server.service.answers import ServedAnswer, snapshot_of
from lustrum.server.service.jobs import Job
from lustrum.server.service.questions import Questions
from lustrum.server.service.remembered_answers import Written
from lustrum.server.service.suggestions import estimate
from lustrum.server.table_view import titles
from lustrum.server.urls.display import TableView


@dataclass(frozen=True)
class Told:
    """A release on its way into a file, with the words around it."""

    release: Release
    title: str
    about: About
    answer: ServedAnswer


Writer = Callable[[Told], str | bytes]


def answered(
    questions: Questions,
    query: TableQuery,
    request: Request,
    form: Sequence[str],
    write: Writer,
    media_type: str,
    ending: str,
) -> Response:
    """The table in some form; ``form`` names all that its writing depends on beside the answer."""
    _check_size(questions, query)
    host, day = str(request.base_url).rstrip("/"), today()

    def written(answer: ServedAnswer) -> Written:
        if answer.release is None:
            raise refusal(answer)
        about = about_answer(answer, host, day, TableView(), titles.file_name(query, "csv"))
        content = write(Told(answer.release, answer.title, about, answer))
        return Written(
            query.dataset,
            answer.decision.verdict.value,
            media_type,
            content.encode() if isinstance(content, str) else content,
            f'attachment; filename="{titles.file_name(query, ending)}"',
        )

    whole = (*form, host, day, current().code)
    found = questions.written(query, whole, written, lambda *_: None)
    if isinstance(found, Job):
        raise _too_large(questions)
    return response(found)


def refusal(answer: ServedAnswer) -> ProblemError:
    """A refusal with its reasons, as a problem: what asks by a protocol has no other words for it."""
    reasons = answer.decision.reasons
    return ProblemError(
        Problem(
            "refusal",
            "The table is not released",
            403,
            " ".join(reason.text for reason in reasons),
            {"reasons": [vars(reason) for reason in reasons]},
        )
    )


def _check_size(questions: Questions, query: TableQuery) -> None:
    """Refuse what would be made in the background: these protocols have no word for a job."""
    snapshot = snapshot_of(questions.service, query.dataset)
    needed = estimate(query, snapshot.dataset, from_bundle=snapshot.from_bundle)
    large = needed.cells > questions.settings.background_cells
    # What the rules refuse ends as a refusal, with its reasons.
    if large and snapshot.precheck(query, count=False).passes:
        raise _too_large(questions)


def _too_large(questions: Questions) -> ProblemError:
    most = questions.settings.background_cells
    sentence = f"The table has more than {most:,} cells; select fewer categories or variables."
    return ProblemError(Problem.of_status(403, sentence))


def with_contents(
    release: Release, contents: Sequence[DescribedStatistic], name: str, label: str
) -> Release:
    """The release with a last variable for what its cells show, also where that is one thing."""
    taken = {axis.name for axis in release.axes[: -1 if release.statistics else None]}
    name = free_name(name, taken)
    if release.statistics:
        *others, last = release.axes
        return replace(release, axes=(*others, replace(last, name=name, label=label)))
    [one] = contents
    axis = TableAxis(name, label, (Category(one.code, one.label, (0,)),))
    one = replace(one, unit=release.unit or one.unit, decimals=release.decimals)
    return replace(
        release,
        axes=(*release.axes, axis),
        statistics=(one,),
        label=release.label or label,
        **release.each_array(lambda array: array[..., None]),
    )


def parameter(request: Request, name: str) -> str:
    """A parameter that may stand once, in any case; empty where it is not there."""
    return next((v for k, v in request.query_params.items() if k.lower() == name.lower()), "")


Json = dict[str, Any]
