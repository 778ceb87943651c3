"""Where the doors bring their questions: each takes its turn, and a large one goes to the background."""

from __future__ import annotations

import math
import time

from lustrum.answer import Precheck, TableService
from lustrum.model import Decision, TableQuery
from lustrum.server.operation.gate import Gate
from lustrum.server.operation.logs import log_decision
from lustrum.server.operation.metrics import Metrics
from lustrum.server.service.answers import Answer, require_dataset
from lustrum.server.service.estimate import (
    Estimate,
    available_memory,
    estimate,
    require_memory,
)
from lustrum.server.service.jobs import Job, Jobs
from lustrum.server.service.suggestions import Suggestion, passing
from lustrum.server.settings import Settings

__all__ = ["Questions"]


class Questions:
    """Asks the service, within the limits of the settings."""

    def __init__(self, service: TableService, settings: Settings, metrics: Metrics) -> None:
        self.service = service
        self.settings = settings
        self.metrics = metrics
        self._gate = Gate(settings)
        self._memory = settings.memory * 2**20 or available_memory() // (2 * settings.at_once)
        self.jobs = Jobs(
            service.folder,
            self._in_background,
            settings,
            metrics,
            mark=lambda query: service.mark(query.dataset),
        )

    def ask(self, query: TableQuery) -> Answer:
        """The answer to a question, while its asker waits."""
        offer = require_dataset(self.service, query.dataset)
        self._sized(query)
        return Answer(self._decided(query, self.settings.seconds), offer)

    def ask_or_job(self, query: TableQuery) -> Answer | Job:
        """The answer, or the job that makes it where the table is large."""
        offer = require_dataset(self.service, query.dataset)
        if not self.is_large(query):
            return Answer(self._decided(query, self.settings.seconds), offer)
        job = self.submit(query)
        return self.answer_of(job) or job

    def submit(self, query: TableQuery) -> Job:
        """The job that makes a table."""
        require_dataset(self.service, query.dataset)
        # A mistake in the question is better heard of now than later.
        self._sized(query)
        return self.jobs.submit(query, self.service.mark(query.dataset))

    def precheck(self, query: TableQuery) -> Precheck:
        """What the preliminary rules would say."""
        self._sized(query)
        with self._gate.pass_through():
            return self.service.precheck(query)

    def alternatives(self, answer: Answer) -> tuple[Suggestion, ...]:
        """Other questions that are answered, where this one was refused."""
        with self._gate.pass_through():
            return passing(answer.decision, answer.offer)

    def answer_of(self, job: Job) -> Answer | None:
        """What a job has found, if that still holds under the data and the policy of today."""
        if job.state != "done":
            return None
        decision = self.jobs.result(job.id, self.service.mark(job.query.dataset))
        if decision is None:
            return None
        return Answer(decision, require_dataset(self.service, decision.query.dataset))

    def is_large(self, query: TableQuery) -> bool:
        """Whether a table has too many cells to wait for; one that the rules refuse is not worth a job."""
        needed = self._sized(query)
        return needed is not None and needed.cells > self.settings.background_cells

    def _sized(self, query: TableQuery) -> Estimate | None:
        """What a question will need; nothing if the rules refuse it before anything is counted."""
        if not self.service.precheck(query, count=False).passes:
            return None
        needed = estimate(query, self.service.dataset(query.dataset))
        require_memory(needed, self._memory)
        return needed

    def _in_background(self, query: TableQuery) -> Decision:
        # Nobody holds a line open for it: it waits for its turn as long as it takes.
        return self._decided(query, self.settings.background_seconds, math.inf)

    def _decided(
        self, query: TableQuery, seconds: float, patience: float | None = None
    ) -> Decision:
        started = time.perf_counter()
        with self._gate.pass_through(seconds, patience):
            self.metrics.busy.inc()
            try:
                decision = self.service.answer(query)
            finally:
                self.metrics.busy.dec()
        self.metrics.decisions.labels(query.dataset, decision.verdict.value).inc()
        log_decision(decision, time.perf_counter() - started)
        return decision
