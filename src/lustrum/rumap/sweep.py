"""The sweep: every method on every table, drawn several times, one draw after the other or side by side.

The chance behind a draw follows from the seed, the method's own words and the number of the draw. So the
figures are the same for any number of workers, in any order, and after a stop.
"""

from __future__ import annotations

import contextvars
import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lustrum._version import __version__
from lustrum.model import InputError, Release
from lustrum.model.workers import workers as processors
from lustrum.rumap.cases import Cases
from lustrum.rumap.grids import MapMethod
from lustrum.rumap.measures import Measures
from lustrum.rumap.points import Draw
from lustrum.runtime.stop import Stopped, check_stop

# The chance behind one draw, and whether a method made use of it.


class Watched(np.random.Generator):
    """A generator that tells whether anything was drawn from it, or from those that come from it.

    A method that draws nothing publishes the same numbers every time, so one draw of it is enough.

    >>> chance = Watched(np.random.PCG64(1))
    >>> child = chance.spawn(2)[1]
    >>> chance.used
    False
    >>> _ = child.integers(3)
    >>> chance.used
    True
    """

    def __init__(self, source: np.random.BitGenerator) -> None:
        super().__init__(source)
        self._children: list[Watched] = []
        self._seeds = source.seed_seq
        self._start = _state(source)

    @classmethod
    def of_words(cls, text: str) -> Watched:
        """The same words give the same chance."""
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
        return cls(np.random.PCG64(seed))

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Generators of their own, which are watched too."""
        seeds = self._seeds.spawn(n_children)  # type: ignore[attr-defined]
        children = [Watched(type(self.bit_generator)(seed)) for seed in seeds]
        self._children += children
        return list(children)

    @property
    def used(self) -> bool:
        """Whether anything was drawn; seeds that were taken from it in another way count too."""
        if _state(self.bit_generator) != self._start:
            return True
        taken = getattr(self._seeds, "n_children_spawned", 0)
        return taken != len(self._children) or any(child.used for child in self._children)


def _state(source: np.random.BitGenerator) -> Any:
    return repr(source.state)


# Measured draws on disk, so that a map that was stopped goes on where it was.
#
# One line of JSON for each draw of a method, appended as soon as it is measured. A line that was cut off by a
# crash is left out. The figures follow from true counts: the file belongs to the agency alone, and only its
# owner can read it.


class Cache:
    """Figures by key, in memory or in a file."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = threading.Lock()
        self._found: dict[str, Any] = {}
        if self.path is not None and self.path.exists():
            try:
                lines = self.path.read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError):
                raise InputError(f"{self.path} cannot be read as a cache of a map.") from None
            for line in lines:
                try:
                    entry = json.loads(line)
                    self._found[entry["key"]] = entry["figures"]
                except (json.JSONDecodeError, KeyError, TypeError):
                    continue

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: str) -> Any | None:
        return self._found.get(key)

    def put(self, key: str, figures: Any) -> None:
        with self._lock:
            self._found[key] = figures
            if self.path is not None:
                line = json.dumps({"key": key, "figures": figures})
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                descriptor = os.open(self.path, flags, 0o600)
                with os.fdopen(descriptor, "a", encoding="utf-8") as file:
                    # After a line that was cut off, an empty one keeps the next apart.
                    file.write(f"{line}\n")


def cache_key(*parts: str) -> str:
    """A key for figures: everything that they depend on, and the version that computed them."""
    return hashlib.sha256("\n".join((__version__, *parts)).encode()).hexdigest()


Progress = Callable[[int, int], None]


def reporter(progress: Progress | bool | None) -> Progress | None:
    """Who is told how far the work is: a function, or with True a line of the terminal or notebook."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return _told
    if not callable(progress):
        raise InputError(
            f"'progress' is True, False or a function of how much is done and of how much, not {progress!r}."
        )
    return progress


def _told(done: int, total: int) -> None:
    end = "\n" if done >= total else ""
    sys.stderr.write(f"\r{done} of {total} draws{end}")
    sys.stderr.flush()


"""Called with the draws that are measured and with those that are expected in all."""


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

        The first draw of every method comes first, so that the map is whole early. A method that made no
        use of chance then, or that is not for the tables, is not drawn again.
        """
        report = progress or (lambda done, total: None)
        every = range(len(self.methods))
        total, done = len(self.methods) * self.replications, 0
        fixed: set[int] = set()
        for draws, again in self.all_of([(m, 0) for m in every]):
            done += 1
            if not again:
                fixed.add(draws[0].method)
                total -= self.replications - 1
            report(done, total)
            yield draws
        jobs = [(m, r) for r in range(1, self.replications) for m in every if m not in fixed]
        for draws, _ in self.all_of(jobs):
            done += 1
            report(done, total)
            yield draws

    def release(self, method: int, replication: int = 0) -> dict[str, Release]:
        """What one draw of a method publishes, table by table."""
        rng = method_rng(self.methods[method], self.seed, replication)
        return self.cases.protect(self.methods[method], rng)

    def draw(self, job: tuple[int, int]) -> tuple[list[Draw], bool]:
        """One draw of one method, measured on all tables, and whether another one may differ."""
        method, replication = job
        key = self._key(method, replication)
        measurement = self.cache.get(key)
        if measurement is None:
            measurement = self._measured(method, replication)
            self.cache.put(key, measurement)
        draws = [
            Draw(table, method, replication, _floats(figures), note)
            for table, figures, note in measurement["draws"]
        ]
        return draws, bool(measurement["chance"])

    def _measured(self, method: int, replication: int) -> dict[str, Any]:
        nothing = dict.fromkeys(self.measures.columns)
        rng = method_rng(self.methods[method], self.seed, replication)
        try:
            releases = self.cases.protect(self.methods[method], rng)
        except InputError as error:
            rows = [(name, nothing, str(error)) for name in self.cases.tables]
            return {"draws": rows, "chance": False}
        rows = []
        for name, table in self.cases.tables.items():
            figures, note = self.measures.of(table, releases[name])
            rows.append((name, {c: _json(v) for c, v in figures.items()}, note))
        return {"draws": rows, "chance": rng.used}

    def _key(self, method: int, replication: int) -> str:
        return cache_key(
            self.cases.identity,
            _words(self.methods[method]),
            self.measures.identity,
            f"{self.seed} {replication}",
        )

    def all_of(self, jobs: Sequence[tuple[int, int]]) -> Iterator[tuple[list[Draw], bool]]:
        """Draws by the numbers of their methods and replications, as they are measured."""
        count = min(self.workers or processors(), max(len(jobs), 1))
        if count <= 1:
            for job in jobs:
                check_stop()
                yield self.draw(job)
            return
        queue = iter(jobs)
        with ThreadPoolExecutor(max_workers=count) as pool:
            running: set[Future[tuple[list[Draw], bool]]] = set()

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


def method_rng(method: MapMethod, seed: int, replication: int) -> Watched:
    """The chance behind one draw of a method."""
    return Watched.of_words(f"{seed} {replication} {_words(method)}")


def _words(method: MapMethod) -> str:
    return json.dumps(method.to_mapping(), sort_keys=True, default=str)


def _json(value: float) -> float | str | None:
    if np.isnan(value):
        return None
    return value if np.isfinite(value) else ("inf" if value > 0 else "-inf")


def _floats(figures: dict[str, float | str | None]) -> dict[str, float]:
    return {k: float("nan") if v is None else float(v) for k, v in figures.items()}
