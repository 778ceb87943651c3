"""A decision as pages and API show it: with its notes, and links to the same question."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from starlette.requests import Request

from lustrum.answer import Snapshot, TableService
from lustrum.formats.jsonstat import dataset as jsonstat
from lustrum.model import Decision, QueryError, Release, TableQuery
from lustrum.model.errors import check_known, choices
from lustrum.model.plugins import names
from lustrum.model.text import say
from lustrum.numeric.structure import UNBOUNDED
from lustrum.server.table_view import titles
from lustrum.server.urls import forms

INCLUDABLE = ("bounds", "risk", "sums", "trace", "utility")
DEFAULT = ("risk", "sums", "trace", "utility")
"""The parts of an answer that can be asked for, and those that come unasked."""

INCLUDE = (
    "Parts beside the table, with commas: risk, sums, utility, trace (all unasked) and bounds."
)

MOST_NAMES = 100
"""Far more variables than any table has. Checking names takes the square of their number."""


@dataclass(frozen=True)
class ServedAnswer:
    """A decision with the snapshot that it was made from."""

    decision: Decision
    snapshot: Snapshot

    @property
    def query(self) -> TableQuery:
        return self.decision.query

    @property
    def title(self) -> str:
        return titles.title(self.query, self.snapshot.dataset)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the table should know: own groups, notes of the method and of the agency."""
        release_notes = self.decision.release.notes if self.decision.release else ()
        return (*self.definitions, *release_notes, *self.snapshot.policy.notes)

    @property
    def definitions(self) -> tuple[str, ...]:
        return titles.definitions(self.query, self.snapshot.dataset)

    @property
    def release(self) -> Release | None:
        """The published table, with the agency's notes beside the method's own."""
        release = self.decision.release
        return None if release is None else replace(release, notes=self.notes)

    @property
    def mapped(self) -> str | None:
        """The variable of the table that can be drawn as a map: the first one with shapes."""
        there = {geography.variable for geography in self.snapshot.dataset.maps}
        return next((axis.variable for axis in self.query.by if axis.variable in there), None)

    @property
    def page(self) -> str:
        return f"/datasets/{self.query.dataset}/table?{self._words}"

    @property
    def builder(self) -> str:
        return f"/datasets/{self.query.dataset}?{self._words}"

    def api(self, format_: str | None = None) -> str:
        wanted = f"&format={format_}" if format_ else ""
        return f"/api/v1/tables?dataset={self.query.dataset}&{self._words}{wanted}"

    @cached_property
    def _words(self) -> str:
        return forms.write(self.query)

    @property
    def id(self) -> str:
        """A name for the question that never changes: the same question has it on every server."""
        return titles.question_id(self.query)

    @property
    def publisher(self) -> str:
        dataset, policy = self.snapshot.dataset, self.snapshot.policy
        return dataset.label(policy.title) if policy.title else dataset.title

    @property
    def version(self) -> str:
        """A few letters that name the numbers: those of the bundle, or of the records in force.

        Of records only the random end of their version is used: its beginning follows from what they hold.
        """
        mark = self.snapshot.numbers.mark
        if not self.snapshot.from_bundle:
            mark = hashlib.sha256(mark.rpartition("-")[2].encode()).hexdigest()
        return mark[:12]

    def body(self, host: str, include: Collection[str] = DEFAULT) -> dict[str, object]:
        """The JSON form; the same for every asker, and for a refusal the same for any data."""
        decision, release = self.decision, self.release
        whole = {
            "id": self.id,
            "decision": decision.verdict.value,
            "reasons": [vars(reason) for reason in decision.reasons],
            "table": None if release is None else jsonstat(release, self.title),
            "risk": {"before": decision.risk_before, "after": decision.risk_after},
            "utility": decision.utility,
            "sums": [
                vars(figures)
                | {
                    name: [vars(one) for one in getattr(figures, name)]
                    for name in ("attackers", "errors")
                }
                for figures in decision.sums
            ],
            "bounds": None if release is None or "bounds" not in include else _bounds(release),
            "trace": [vars(step) for step in decision.trace],
            "query": self.query.to_mapping(),
            "notes": list(self.notes),
            "links": {"page": host + self.page, "self": host + self.api()}
            | (
                {}
                if release is None
                else {name: host + self.api(name) for name in names("lustrum.formats")}
            ),
        }
        return {k: v for k, v in whole.items() if k not in INCLUDABLE or k in include}


def _bounds(release: Release) -> dict[str, list[float | None]] | None:
    """What anybody can know of each true value from its cell alone, in the order of the table's values."""
    if release.least is None or release.most is None:
        return None
    scale = 10**release.decimals

    def plain(values: npt.NDArray[np.int64]) -> list[float | None]:
        shown = zip(values.ravel().tolist(), release.known.ravel().tolist(), strict=True)
        return [
            None if not seen or abs(v) >= UNBOUNDED else v if scale == 1 else v / scale
            for v, seen in shown
        ]

    return {"low": plain(release.least), "high": plain(release.most)}


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


def included(request: Request) -> tuple[str, ...]:
    """The parts of an answer that are wanted beside the table."""
    said = [part for text in request.query_params.getlist("include") for part in text.split(",")]
    wanted = [part.strip() for part in said if part.strip()]
    check_known(wanted, INCLUDABLE, "There is no part", QueryError)
    return tuple(wanted) if "include" in request.query_params else DEFAULT


def only(request: Request, *known: str) -> None:
    """No other parameters than these: to ignore one would answer another question."""
    there = f"there are: {', '.join(known)}" if known else "this address takes none"
    for name in request.query_params:
        if name not in known:
            raise QueryError(f"There is no parameter {name!r} here; {there}.")


def snapshot_of(service: TableService, name: str) -> Snapshot:
    """What answers about the dataset that a question names; a name that is not there is a mistake in it.

    A dataset without a policy looks like one that does not exist.
    """
    snapshot = service.published(name)
    if snapshot is None:
        said = choices(name, service.names())
        raise QueryError(say("There is no dataset {name!r}; {choices}.", name=name, choices=said))
    return snapshot
