"""A decision as the doors show it: notes that travel along, and links that ask again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lustrum.formats.jsonstat import dataset as jsonstat
from lustrum.model import Decision, QueryError, Release, TableQuery
from lustrum.model.errors import choices
from lustrum.release import Desk
from lustrum.server import forms, words
from lustrum.server.offer import Offer, find

__all__ = ["MOST_NAMES", "Answer", "ask", "question"]

MOST_NAMES = 100
"""Far more variables than any table has. Checking names takes the square of their number."""


@dataclass(frozen=True)
class Answer:
    """A decision with the dataset and the policy it was made under."""

    decision: Decision
    offer: Offer

    @property
    def query(self) -> TableQuery:
        """The question."""
        return self.decision.query

    @property
    def title(self) -> str:
        """The question in words."""
        return words.title(self.query, self.offer.dataset)

    @property
    def notes(self) -> tuple[str, ...]:
        """Whatever a reader of the table should know: of the method and of the agency."""
        own = self.decision.release.notes if self.decision.release else ()
        return (*own, *self.offer.policy.notes)

    @property
    def release(self) -> Release | None:
        """The published table, with the agency's notes beside the method's own."""
        release = self.decision.release
        return None if release is None else replace(release, notes=self.notes)

    @property
    def page(self) -> str:
        """The address of the answer for people."""
        return f"/datasets/{self.query.dataset}/table?{forms.write(self.query)}"

    @property
    def builder(self) -> str:
        """The address of the form with these choices filled in."""
        return f"/datasets/{self.query.dataset}?{forms.write(self.query)}"

    def api(self, format_: str | None = None) -> str:
        """The address of the answer for programs."""
        wanted = f"&format={format_}" if format_ else ""
        return f"/api/v1/tables?dataset={self.query.dataset}&{forms.write(self.query)}{wanted}"

    def body(self, host: str) -> dict[str, Any]:
        """The JSON form; the same for whoever asks, and for a refusal the same for any data."""
        decision, release = self.decision, self.release
        return {
            "decision": decision.verdict.value,
            "reasons": [
                {"rule": r.rule, "text": r.text, "way_forward": r.way_forward}
                for r in decision.reasons
            ],
            "table": None if release is None else jsonstat(release, self.title),
            "risk": {"before": decision.risk_before, "after": decision.risk_after},
            "utility": decision.utility,
            "trace": [
                {"step": s.step, "outcome": s.outcome, "text": s.text} for s in decision.trace
            ],
            "query": self.query.to_mapping(),
            "notes": list(self.notes),
            "links": {"page": host + self.page, "self": host + self.api()}
            | ({} if release is None else {"csv": host + self.api("csv")}),
        }


def question(raw: object) -> TableQuery:
    """The question in a JSON body; every mistake is one clear sentence."""
    if not isinstance(raw, dict):
        raise QueryError(
            'A table query is a JSON object, such as {"dataset": "demo", "by": ["sex"]}.'
        )
    for key in ("by", "where"):
        named = raw.get(key)
        if isinstance(named, (list, dict)) and len(named) > MOST_NAMES:
            raise QueryError(f"{key!r} names more than {MOST_NAMES} variables; name fewer.")
    return TableQuery.from_mapping(raw)


def ask(desk: Desk, query: TableQuery) -> Answer:
    """Put a question to the desk."""
    names = desk.names()
    if query.dataset not in names:
        # Said here so that a dataset without a policy looks like one that does not exist.
        there = choices(query.dataset, names)
        raise QueryError(f"There is no dataset {query.dataset!r}; {there}.")
    return Answer(desk.answer(query), find(desk, query.dataset))
