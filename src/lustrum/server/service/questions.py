"""Questions from pages, the API and the command line: each waits for its turn; a large one becomes a job."""

from __future__ import annotations

import json
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

from lustrum.answer import Precheck, Snapshot, TableService
from lustrum.answer.ledger import ReleaseLedger
from lustrum.answer.ledger_audit import LedgerWatch
from lustrum.answer.question_state import QuestionState
from lustrum.answer.readers import current_reader
from lustrum.model import Decision, Reason, TableQuery
from lustrum.model.text import say
from lustrum.runtime.stop import Stopped, stop_asked, within
from lustrum.server.http.errors import Problem, ProblemError
from lustrum.server.http.middleware import current_asker
from lustrum.server.operation.metrics import Metrics, log_decision, log_repeat
from lustrum.server.service.answers import ServedAnswer, snapshot_of
from lustrum.server.service.jobs import Job, Jobs
from lustrum.server.service.remembered_answers import Key, RememberedAnswers, Written
from lustrum.server.service.served_dataset import ServedDataset
from lustrum.server.service.suggestions import (
    Estimate,
    Suggestion,
    available_memory,
    estimate,
    passing,
    require_memory,
)
from lustrum.server.settings import Settings

# --- How many questions are answered at once, and for how long: the others wait, or are asked to come again
# The queue is fair: askers take turns, so that many questions of one asker do not hold up the single question
# of another. A question whose asker has left, or that takes too long, is stopped.

MOST_WAITING = 200
"""Each waits in a thread of its own; the others are asked to come again at once."""

THREADS = 2 * MOST_WAITING
"""Threads in which questions wait: there are two queues, one for bundles and one for records."""

MOST_OF_ONE = MOST_WAITING // 2
"""So many places in the queue one asker may hold; the rest stays free for others."""


class Gate:
    """Lets a few questions through at a time; askers take turns, and the questions of one keep their order."""

    def __init__(self, settings: Settings, metrics: Metrics | None = None) -> None:
        self._settings = settings
        self._metrics = metrics or Metrics()
        self._lock = threading.Lock()
        self._inside = 0
        self._waiting: OrderedDict[str, deque[threading.Event]] = OrderedDict()

    @property
    def inside(self) -> int:
        return self._inside

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    @contextmanager
    def pass_through(
        self, seconds: float | None = None, patience: float | None = None
    ) -> Iterator[None]:
        """Wait for a turn; then the work inside has limited time, and ends early if its asker leaves."""
        gone = stop_asked()
        with self._metrics.waiting.track_inprogress():
            self._wait(gone, patience or self._settings.patience)
        try:
            try:
                with within(seconds or self._settings.seconds):
                    yield
            except Stopped:
                if gone():
                    raise
                sentence = say(
                    "The table took longer than {seconds:g} seconds; ask for a smaller one.",
                    seconds=self._settings.seconds,
                )
                raise ProblemError(Problem.of_status(503, sentence, reason="seconds")) from None
        finally:
            with self._lock:
                self._leave()

    def _wait(self, gone: Callable[[], bool], patience: float) -> None:
        asker = current_asker()
        with self._lock:
            if self._inside < self._settings.at_once:
                self._inside += 1
                return
            queue = self._waiting.get(asker, ())
            places = sum(map(len, self._waiting.values()))
            if patience < math.inf and (places >= MOST_WAITING or len(queue) >= MOST_OF_ONE):
                raise _busy()
            turn = threading.Event()
            self._waiting.setdefault(asker, deque()).append(turn)
        end = time.monotonic() + patience
        while not turn.wait(0.25):
            left = gone()
            if not left and time.monotonic() <= end:
                continue
            with self._lock:
                # The turn may have come just now; then it goes to the next one.
                if turn.is_set():
                    self._leave()
                else:
                    self._waiting[asker].remove(turn)
                    if not self._waiting[asker]:
                        del self._waiting[asker]
            if left:
                raise Stopped
            raise _busy()

    def _leave(self) -> None:
        """Hand the turn to the asker whose last turn is the longest ago."""
        if not self._waiting:
            self._inside -= 1
            return
        asker, turns = self._waiting.popitem(last=False)
        turns.popleft().set()
        if turns:
            self._waiting[asker] = turns


def _busy() -> ProblemError:
    sentence = say("Too many tables are being made at the moment; please try again soon.")
    return ProblemError(Problem.of_status(503, sentence, retry=5, reason="queue"))


class Questions:
    """Asks the service, within the limits of the settings."""

    def __init__(self, service: TableService, settings: Settings, metrics: Metrics) -> None:
        self.service = service
        self.settings = settings
        self.metrics = metrics
        # Two queues: a process of records that hangs must not hold up questions to bundles.
        self._gate, self._bundle_gate = Gate(settings, metrics), Gate(settings, metrics)
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
        query, snapshot = self._read(query)
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
        query, snapshot = self._read(query)
        self._sized(query, snapshot, "page")
        return self._answer(query, snapshot)

    def ask_or_job(self, query: TableQuery) -> ServedAnswer | Job:
        """The answer, or the job that makes it where the table is large."""
        return self._answer_or_job(*self._read(query), "page")

    def _read(self, query: TableQuery) -> tuple[TableQuery, Snapshot]:
        """The question in codes, and what answers it."""
        snapshot = snapshot_of(self.service, query.dataset)
        return query.in_codes(snapshot.dataset), snapshot

    def _answer_or_job(
        self, query: TableQuery, snapshot: Snapshot, form: str
    ) -> ServedAnswer | Job:
        needed = self._sized(query, snapshot, form)
        small = needed is None or needed.cells <= self.settings.background_cells
        if small or snapshot.counted_together:
            return self._answer(query, snapshot)
        job = self.jobs.submit(query, snapshot.mark, snapshot.policy.role)
        return self.answer_of(job) or job

    def submit(self, query: TableQuery) -> Job:
        query, snapshot = self._read(query)
        # A mistake in the question is better heard of now than later.
        self._sized(query, snapshot, "job")
        return self.jobs.submit(query, snapshot.mark, snapshot.policy.role)

    def find_job(self, name: str) -> Job | None:
        """A job by its id, for those who are served by the policy under which it is made."""
        job = self.jobs.store.find(name)
        served = job is not None and job.role == self.service.role_for(job.query.dataset)
        return job if served else None

    def precheck(self, query: TableQuery, snapshot: Snapshot | None = None) -> Precheck:
        """What the preliminary rules would say."""
        snapshot = snapshot or snapshot_of(self.service, query.dataset)
        query = query.in_codes(snapshot.dataset)
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
        if decision is not None and snapshot.counted_together:
            return self._answer(job.query, snapshot)
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
        if snapshot.counted_together:
            # Its steps and its time would tell of numbers that stand in no book: it is made when it is fetched.
            later = Reason("ledger", say("The table is made when it is fetched."))
            state = QuestionState(query, snapshot.numbers, snapshot.policy)
            return state.refused("ledger", later).decision()
        return self._decided(
            query,
            lambda: snapshot.answer(query),
            snapshot,
            self.settings.background_seconds,
            math.inf,
        )

    def _answer(self, query: TableQuery, snapshot: Snapshot) -> ServedAnswer:
        def recorded() -> Decision:
            return self._recorded(query, snapshot, lambda: snapshot.answer(query))

        return ServedAnswer(
            self._decided(query, recorded, snapshot, self.settings.seconds), snapshot
        )

    def _recorded(
        self, query: TableQuery, snapshot: Snapshot, make: Callable[[], Decision]
    ) -> Decision:
        """What is made for the reader of the request under way, in the book before anybody sees it."""
        if not snapshot.counted_together:
            return make()
        reader = current_reader()
        audience, group = self.ledger.audience_of(reader), self.ledger.group_of(reader, snapshot)
        decision = self.ledger.decided(query, snapshot, audience, make, group=group)
        self.watch.look(snapshot)
        return decision

    @cached_property
    def watch(self) -> LedgerWatch:
        """Audits in the background what readers hold."""
        return LedgerWatch(self.ledger)

    @cached_property
    def ledger(self) -> ReleaseLedger:
        """The book of the data folder, opened when an answer first needs it."""
        assert self.service.root is not None
        return ReleaseLedger(self.service.root)

    def _decided(
        self,
        query: TableQuery,
        make: Callable[[], Decision],
        snapshot: Snapshot,
        seconds: float,
        patience: float | None = None,
    ) -> Decision:
        started = time.perf_counter()
        gate, busy = self._gate_of(snapshot), self.metrics.busy
        with gate.pass_through(seconds, patience), busy.track_inprogress():
            decision = make()
        rules = (reason.rule for reason in decision.reasons)
        self.metrics.decided(query.dataset, decision.verdict.value, rules)
        log_decision(decision, time.perf_counter() - started)
        return decision
