"""Where the doors bring their questions: each takes its turn, and a large one goes to the background."""

from __future__ import annotations

import math
import time

from lustrum.model import Decision, TableQuery
from lustrum.release import Desk, Foresight
from lustrum.server.answers import Answer, find_or_mistake
from lustrum.server.gate import Gate
from lustrum.server.jobs import Job, Jobs
from lustrum.server.logs import log_decision
from lustrum.server.metrics import Metrics
from lustrum.server.settings import Settings

__all__ = ["Questions"]


class Questions:
    """Asks the desk, within the limits of the settings."""

    def __init__(self, desk: Desk, settings: Settings, metrics: Metrics) -> None:
        self.desk = desk
        self.settings = settings
        self.metrics = metrics
        self._gate = Gate(settings)
        self.jobs = Jobs(
            desk.store.root,
            self._in_background,
            settings,
            metrics,
            mark=lambda query: desk.mark(query.dataset),
        )

    def ask(self, query: TableQuery) -> Answer:
        """The answer to a question, while its asker waits."""
        offer = find_or_mistake(self.desk, query.dataset)
        return Answer(self._decided(query, self.settings.seconds), offer)

    def ask_or_job(self, query: TableQuery) -> Answer | Job:
        """The answer, or the job that makes it where the table is large."""
        offer = find_or_mistake(self.desk, query.dataset)
        if not self.is_large(query):
            return Answer(self._decided(query, self.settings.seconds), offer)
        job = self.submit(query)
        return self.answer_of(job) or job

    def submit(self, query: TableQuery) -> Job:
        """The job that makes a table."""
        find_or_mistake(self.desk, query.dataset)
        # A mistake in the question is better heard of now than later.
        self.desk.foresee(query, count=False)
        return self.jobs.submit(query, self.desk.mark(query.dataset))

    def foresee(self, query: TableQuery) -> Foresight:
        """What the preliminary rules would say."""
        with self._gate.pass_through():
            return self.desk.foresee(query)

    def answer_of(self, job: Job) -> Answer | None:
        """What a job has found, if that still holds under the data and the policy of today."""
        if job.state != "done":
            return None
        decision = self.jobs.result(job.id, self.desk.mark(job.query.dataset))
        if decision is None:
            return None
        return Answer(decision, find_or_mistake(self.desk, decision.query.dataset))

    def is_large(self, query: TableQuery) -> bool:
        """Whether a table has too many cells to wait for; one that the rules refuse is not worth a job."""
        seen = self.desk.foresee(query, count=False)
        return seen.passes and seen.cells > self.settings.background_cells

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
                decision = self.desk.answer(query)
            finally:
                self.metrics.busy.dec()
        self.metrics.decisions.labels(query.dataset, decision.verdict.value).inc()
        log_decision(decision, time.perf_counter() - started)
        return decision
