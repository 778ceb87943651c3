"""Maps that are being made: each in a thread of its own, with what is there so far."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lustrum.model import InputError, LustrumError
from lustrum.model.errors import choices
from lustrum.rumap import Cases, RUMap, growing_map, sweep_of
from lustrum.rumap.choose import Choice, best_of
from lustrum.runtime.stop import Stopped, stopping

_MOST = 20
"""Maps that are kept; the oldest finished one goes first."""


@dataclass(eq=False)
class MapJob:
    """One map: what was asked for, how far it is, and what is there."""

    number: int
    name: str
    limit: float | None
    ru_map: RUMap | None = None
    done: int = 0
    total: int = 0
    finished: bool = False
    problem: str = ""
    first_point: float | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def choice(self) -> Choice | None:
        """The best method under the limit, of what is there so far."""
        if self.limit is None or self.ru_map is None:
            return None
        return best_of(self.ru_map, self.limit)

    def stop(self) -> None:
        """Ask the map to stop; what is there stays."""
        self._stop.set()

    def wait(self, seconds: float) -> bool:
        """Wait until the map is finished; gives whether it is."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self.finished

    def point(self, index: int) -> str:
        """The label of a method of the map."""
        labels = self.ru_map.labels if self.ru_map is not None else ()
        if not 0 <= index < len(labels):
            raise InputError(f"The map has no method {index}; there are {len(labels)}.")
        return labels[index]


class MapJobs:
    """The maps of one page, by number."""

    def __init__(self) -> None:
        self._jobs: dict[int, MapJob] = {}
        self._lock = threading.Lock()
        self._next = 1

    def get(self, number: int) -> MapJob:
        """A map by its number."""
        job = self._jobs.get(number)
        if job is None:
            raise InputError(
                f"There is no map {number}; {choices(str(number), map(str, self._jobs))}."
            )
        return job

    def all(self) -> list[MapJob]:
        """All maps, the newest first."""
        return sorted(self._jobs.values(), key=lambda job: -job.number)

    def start(
        self,
        cases: Cases,
        methods: Sequence[Any],
        measures: Sequence[Any] | None,
        attackers: Sequence[str] | None,
        *,
        limit: float | None,
        replications: int,
        seed: int,
    ) -> MapJob:
        """Begin a map; mistakes in what is asked for are noticed at once."""
        sweep = sweep_of(cases, methods, measures, attackers, replications=replications, seed=seed)
        with self._lock:
            job = MapJob(self._next, ", ".join(cases.tables), limit)
            self._next += 1
            old = [n for n, j in self._jobs.items() if j.finished]
            for number in old[: max(0, len(self._jobs) - _MOST + 1)]:
                del self._jobs[number]
            self._jobs[job.number] = job
        job.total = len(sweep.methods) * replications
        started = time.perf_counter()

        def progress(done: int, total: int) -> None:
            job.done, job.total = done, total

        def run() -> None:
            try:
                with stopping(job._stop.is_set):
                    for ru_map in growing_map(sweep, progress):
                        job.ru_map = ru_map
                        if job.first_point is None:
                            job.first_point = time.perf_counter() - started
            except Stopped:
                job.problem = "The map was stopped; what is there stays."
            except LustrumError as error:
                job.problem = str(error)
            except Exception:
                # The text of an unforeseen exception may hold counts, and this page can be printed.
                job.problem = "The map failed because of a bug; run 'lustrum map' to see it."
            finally:
                job.finished = True

        job._thread = threading.Thread(target=run, name=f"map {job.number}", daemon=True)
        job._thread.start()
        return job

    def stop(self) -> None:
        """Stop all maps."""
        for job in self._jobs.values():
            job.stop()
