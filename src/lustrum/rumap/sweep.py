"""The sweep: every method on every table, drawn several times, one draw after the other or side by side.

The chance behind a draw follows from the seed, the method's own words and the number of the draw. So the
figures are the same for any number of workers, in any order, and after a stop.
"""

from __future__ import annotations

import contextvars
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lustrum.model import InputError, Release
from lustrum.model.stop import Stopped, check_stop
from lustrum.model.workers import workers as processors
from lustrum.rumap.cache import Cache, cache_key
from lustrum.rumap.cases import Cases
from lustrum.rumap.grids import MapMethod
from lustrum.rumap.measures import Measures
from lustrum.rumap.points import Draw

__all__ = ["Progress", "Sweep", "method_rng"]

Progress = Callable[[int, int], None]
"""Called with the draws that are measured and with those that are expected in all."""

_CHECKED = 2
"""Draws after which a method that always gives the same numbers counts as one without chance."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """What is to be measured: tables, methods, measures, how often and by which seed."""

    cases: Cases
    methods: tuple[MapMethod, ...]
    measures: Measures
    replications: int = 10
    seed: int = 0
    workers: int | None = None
    cache: Cache = field(default_factory=Cache)

    def __post_init__(self) -> None:
        if type(self.replications) is not int or self.replications < 1:
            raise InputError(f"A map needs one replication or more, not {self.replications!r}.")
        if not self.methods:
            raise InputError("A map needs one method or more.")

    def run(self, progress: Progress | None = None) -> Iterator[list[Draw]]:
        """Draws as they are measured, all tables of a draw together.

        The first two draws of every method come first, so that the map is whole early and methods
        without chance are noticed: a method that gives the same numbers twice is not drawn again.
        """
        told = progress or (lambda done, total: None)
        first = min(self.replications, _CHECKED)
        jobs = [(m, r) for r in range(first) for m in range(len(self.methods))]
        total = len(self.methods) * self.replications
        done = 0
        shown: dict[int, set[str]] = {}
        failed: set[int] = set()
        for draws, figure in self._all(jobs):
            done += 1
            shown.setdefault(draws[0].method, set()).add(figure)
            if not figure:
                failed.add(draws[0].method)
            told(done, total)
            yield draws
        fixed = {m for m, figures in shown.items() if len(figures) == 1 and first > 1} | failed
        total -= len(fixed) * (self.replications - first)
        told(done, total)
        rest = range(first, self.replications)
        jobs = [(m, r) for r in rest for m in range(len(self.methods)) if m not in fixed]
        for draws, _ in self._all(jobs):
            done += 1
            told(done, total)
            yield draws

    def release(self, method: int, replication: int = 0) -> dict[str, Release]:
        """What one draw of a method publishes, table by table."""
        rng = method_rng(self.methods[method], self.seed, replication)
        return self.cases.protect(self.methods[method], rng)

    def draw(self, job: tuple[int, int]) -> tuple[list[Draw], str]:
        """One draw of one method, measured on all tables, and a digest of what it published."""
        method, replication = job
        key = self._key(method, replication)
        kept = self.cache.get(key)
        if kept is None:
            kept = self._measured(method, replication)
            self.cache.put(key, kept)
        draws = [
            Draw(table, method, replication, _floats(figures), note)
            for table, figures, note in kept["draws"]
        ]
        return draws, kept["published"]

    def _measured(self, method: int, replication: int) -> dict[str, Any]:
        nothing = dict.fromkeys(self.measures.columns)
        try:
            releases = self.release(method, replication)
        except InputError as error:
            rows = [(name, nothing, str(error)) for name in self.cases.tables]
            return {"draws": rows, "published": ""}
        h = hashlib.sha256()
        rows = []
        for name, table in self.cases.tables.items():
            release = releases[name]
            figures, note = self.measures.of(table, release)
            rows.append((name, {c: _json(v) for c, v in figures.items()}, note))
            h.update(np.where(release.shown, release.published, -1).tobytes())
            h.update(release.shown.tobytes())
        return {"draws": rows, "published": h.hexdigest()}

    def _key(self, method: int, replication: int) -> str:
        return cache_key(
            self.cases.identity,
            _words(self.methods[method]),
            self.measures.identity,
            f"{self.seed} {replication}",
        )

    def _all(self, jobs: Sequence[tuple[int, int]]) -> Iterator[tuple[list[Draw], str]]:
        count = min(self.workers or processors(), max(len(jobs), 1))
        if count <= 1:
            for job in jobs:
                check_stop()
                yield self.draw(job)
            return
        queue = iter(jobs)
        with ThreadPoolExecutor(max_workers=count) as pool:
            running: set[Future[tuple[list[Draw], str]]] = set()

            def start() -> None:
                for job in queue:
                    context = contextvars.copy_context()
                    running.add(pool.submit(context.run, self.draw, job))
                    if len(running) >= 2 * count:
                        return

            try:
                start()
                while running:
                    ready, running = wait(running, return_when=FIRST_COMPLETED)
                    check_stop()
                    yield from (future.result() for future in ready)
                    start()
            except (Stopped, GeneratorExit):
                for future in running:
                    future.cancel()
                raise


def method_rng(method: MapMethod, seed: int, replication: int) -> np.random.Generator:
    """The chance behind one draw of a method."""
    words = hashlib.sha256(f"{seed} {replication} {_words(method)}".encode()).digest()
    return np.random.default_rng(int.from_bytes(words, "big"))


def _words(method: MapMethod) -> str:
    return json.dumps(method.to_mapping(), sort_keys=True, default=str)


def _json(value: float) -> float | str | None:
    if np.isnan(value):
        return None
    return value if np.isfinite(value) else ("inf" if value > 0 else "-inf")


def _floats(figures: dict[str, float | str | None]) -> dict[str, float]:
    return {k: float("nan") if v is None else float(v) for k, v in figures.items()}
