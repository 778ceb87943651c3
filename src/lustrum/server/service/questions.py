"""Questions from pages, the API and the command line: each waits for its turn; a large one becomes a job."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from lustrum.answer import Precheck, Snapshot, TableService
from lustrum.model import Decision, TableQuery
from lustrum.server.operation.gate import Gate
from lustrum.server.operation.logs import log_decision, log_repeat
from lustrum.server.operation.metrics import Metrics
from lustrum.server.service.answers import ServedAnswer, snapshot_of
from lustrum.server.service.estimate import (
    Estimate,
    available_memory,
    estimate,
    require_memory,
)
from lustrum.server.service.jobs import Job, Jobs
from lustrum.server.service.remembered_answers import Key, RememberedAnswers, Written
from lustrum.server.service.served_dataset import ServedDataset
from lustrum.server.service.suggestions import Suggestion, passing
from lustrum.server.settings import Settings


class Questions:
    """Asks the service, within the limits of the settings."""

    def __init__(self, service: TableService, settings: Settings, metrics: Metrics) -> None:
        self.service = service
        self.settings = settings
        self.metrics = metrics
        # Two queues: a process of records that hangs must not hold up questions to bundles.
        self._gate, self._bundle_gate = Gate(settings), Gate(settings)
        self._memory = settings.memory * 2**20 or available_memory() // (2 * settings.at_once)
        self.answers = RememberedAnswers(service.folder, settings)
        self.jobs = Jobs(
            service.folder,
            self._in_background,
            settings,
            metrics,
            mark=lambda query: service.mark(query.dataset),
        )

    def written(
        self,
        query: TableQuery,
        form: Sequence[str],
        write: Callable[[ServedAnswer], Written],
        note: Callable[[Snapshot, Key], object],
    ) -> Written | Job:
        """The answer in one form, made or remembered, or the job that makes the table where it is large.

        ``form`` names all that the writing depends on beside the answer, and ``note`` hears where it is kept.
        """
        started = time.perf_counter()
        snapshot = snapshot_of(self.service, query.dataset)
        key = Key.of(snapshot, query, form) if self.answers.on and snapshot.from_bundle else None
        written = None if key is None else self.answers.find(key)
        if written is not None:
            self.count(written, time.perf_counter() - started)
        else:
            answer = self._answer_or_job(query, snapshot, form[0])
            if isinstance(answer, Job):
                return answer
            rules = tuple(reason.rule for reason in answer.decision.reasons)
            written = replace(write(answer), question=json.dumps(query.to_mapping()), rules=rules)
            if key is not None:
                self.answers.keep(key, written)
        if key is not None:
            note(snapshot, key)
        return written

    def count(self, written: Written, seconds: float) -> None:
        """Count and log an answer that was remembered."""
        self.metrics.decided(written.dataset, written.verdict, written.rules)
        self.metrics.remembered.inc()
        log_repeat(written.question, written.verdict, written.rules, seconds)

    def ask(self, query: TableQuery) -> ServedAnswer:
        """The answer to a question, while its asker waits."""
        snapshot = snapshot_of(self.service, query.dataset)
        self._sized(query, snapshot, "page")
        return self._answer(query, snapshot)

    def ask_or_job(self, query: TableQuery) -> ServedAnswer | Job:
        """The answer, or the job that makes it where the table is large."""
        return self._answer_or_job(query, snapshot_of(self.service, query.dataset), "page")

    def _answer_or_job(
        self, query: TableQuery, snapshot: Snapshot, form: str
    ) -> ServedAnswer | Job:
        needed = self._sized(query, snapshot, form)
        if needed is None or needed.cells <= self.settings.background_cells:
            return self._answer(query, snapshot)
        job = self.jobs.submit(query, snapshot.mark)
        return self.answer_of(job) or job

    def submit(self, query: TableQuery) -> Job:
        """The job that makes a table."""
        snapshot = snapshot_of(self.service, query.dataset)
        # A mistake in the question is better heard of now than later.
        self._sized(query, snapshot, "job")
        return self.jobs.submit(query, snapshot.mark)

    def precheck(self, query: TableQuery, snapshot: Snapshot | None = None) -> Precheck:
        """What the preliminary rules would say."""
        snapshot = snapshot or snapshot_of(self.service, query.dataset)
        self._sized(query, snapshot, "job")
        with self._gate_of(snapshot).pass_through():
            return snapshot.precheck(query)

    def alternatives(self, answer: ServedAnswer) -> tuple[Suggestion, ...]:
        """Other questions that are answered, where this one was refused."""
        with self._gate_of(answer.snapshot).pass_through():
            return passing(answer.decision, ServedDataset.of(answer.snapshot))

    def answer_of(self, job: Job, form: str = "job") -> ServedAnswer | None:
        """What a job has found, if that still holds under the data and the policy of today."""
        if job.state != "done":
            return None
        snapshot = snapshot_of(self.service, job.query.dataset)
        self._sized(job.query, snapshot, form)
        decision = self.jobs.result(job.id, snapshot.mark)
        return None if decision is None else ServedAnswer(decision, snapshot)

    def _sized(self, query: TableQuery, snapshot: Snapshot, form: str) -> Estimate | None:
        """What a question will need in a form; nothing if the rules refuse it before anything is counted.

        Of a small table nobody needs to know here what the rules say: they come first among the five steps.
        """
        needed = estimate(query, snapshot.dataset, from_bundle=snapshot.from_bundle)
        if needed.cells > self.settings.background_cells or needed.memory(form) > self._memory:
            if not snapshot.precheck(query, count=False).passes:
                return None
            require_memory(needed, self._memory, form)
        return needed

    def _gate_of(self, snapshot: Snapshot) -> Gate:
        """The queue of those who are answered from the same place."""
        return self._bundle_gate if snapshot.from_bundle else self._gate

    def _in_background(self, query: TableQuery) -> Decision:
        # Nobody holds a line open for it: it waits for its turn as long as it takes.
        snapshot = self.service.snapshot(query.dataset)
        return self._decided(query, snapshot, self.settings.background_seconds, math.inf)

    def _answer(self, query: TableQuery, snapshot: Snapshot) -> ServedAnswer:
        return ServedAnswer(self._decided(query, snapshot, self.settings.seconds), snapshot)

    def _decided(
        self, query: TableQuery, snapshot: Snapshot, seconds: float, patience: float | None = None
    ) -> Decision:
        started = time.perf_counter()
        with self._gate_of(snapshot).pass_through(seconds, patience):
            self.metrics.busy.inc()
            try:
                decision = snapshot.answer(query)
            finally:
                self.metrics.busy.dec()
        rules = (reason.rule for reason in decision.reasons)
        self.metrics.decided(query.dataset, decision.verdict.value, rules)
        log_decision(decision, time.perf_counter() - started)
        return decision
