"""A hint for the builder: what would likely become of the question, and a change that would help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lustrum.answer import Precheck
from lustrum.model import QueryError, Reason, TableQuery
from lustrum.model.text import say
from lustrum.server.http.problems import ProblemError
from lustrum.server.service.served_dataset import ServedDataset
from lustrum.server.service.suggestions import advice
from lustrum.server.urls import forms


@dataclass(frozen=True)
class PageHint:
    """What would likely happen: ``likely``, ``part``, ``refused`` or ``mistake``; and the help there is.

    ``change`` says what would help, ``address`` is the query string of the question so changed.
    """

    state: str
    verdict: str
    reasons: tuple[Reason, ...] = ()
    change: str = ""
    address: str = ""


def hint(
    served: ServedDataset, query: TableQuery, precheck: Callable[[TableQuery], Precheck]
) -> PageHint | None:
    """The hint for a question; none while no variable is chosen, or while the server is too busy to tell."""
    if not query.by:
        return None
    try:
        seen = precheck(query)
        if seen.passes and not seen.reasons:
            return PageHint(
                "likely",
                say("Likely answered. The risk is measured when the table is made."),
            )
        if seen.passes:
            return PageHint("part", say("Likely answered in part."), seen.reasons)
        help_ = advice(query, seen.reasons, served, precheck)
    except QueryError as error:
        return mistaken(error)
    except ProblemError:
        return None
    verdict = say("Likely refused.")
    if help_ is None:
        return PageHint("refused", verdict, seen.reasons)
    return PageHint("refused", verdict, seen.reasons, help_.text, forms.write(help_.query))


def mistaken(error: QueryError) -> PageHint:
    """The hint for a question that cannot be read."""
    return PageHint("mistake", error.args[0])
