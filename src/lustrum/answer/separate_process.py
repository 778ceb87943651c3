"""The process that holds the records, as the part that answers sees it: started when needed, and again.

The other process holds the records and the secret. Questions go one way as words; protected numbers come
back, or one of a few fixed kinds of failure without a word about the data. This side has no way to the records:
it imports nothing that reads them. Which datasets there are it sees by the names of folders. While the process
is silent it says what it knows of a dataset, and waits for nothing.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from lustrum.answer.records_line import FAILURES, START, RecordsLine
from lustrum.model import DatasetError, PolicyError, QueryError, TableQuery
from lustrum.model.errors import NotReadyError, choices
from lustrum.policy import Policy
from lustrum.public.numbers import Described, Views
from lustrum.runtime.data_folder import datasets_in
from lustrum.runtime.stop import Stopped, stop_asked, within

SILENCE = 15.0
"""Seconds without a sign of life after which the process is ended and started again."""

LEAST_SILENCE = 3.0
"""A process that works may miss a sign or two."""

_GLANCE = 2.0  # seconds to ask whether a description that is known still holds


class SeparateRecordsService:
    """Starts the process when it is first needed, and again where it has died or fallen silent."""

    def __init__(self, root: Path, workers: int | None = None, silence: float = SILENCE) -> None:
        self._root, self._workers, self._silence = root, workers, silence
        self._lock = threading.Lock()
        self._line: RecordsLine | None = None
        self._described: dict[str, Described] = {}

    @property
    def answering(self) -> bool:
        """Whether the process gives signs of life; one that was never needed does not hold anybody up."""
        line = self._line
        return line is None or line.is_lively

    def revive(self) -> bool:
        """Start the process again where it has died; whether it lives or is being started."""
        try:
            return self._line is None or not self._current().is_broken
        except OSError:  # the system has no place for another process
            return False

    def names(self) -> list[str]:
        return datasets_in(self._root)

    def describe(self, name: str) -> Described:
        """A dataset and its version in force; the description comes over once for each version.

        What is known already is said without waiting for a process that is silent or is being started.
        """
        line, known = self._current(), self._described.get(name)
        if known is not None and not line.is_lively:
            return known
        gone = stop_asked()
        try:
            with within(START if known is None else _GLANCE):
                fresh: Described | None = line.ask(("describe", name, known and known.version))
        except Stopped:
            line.doubt()
            if known is not None:
                return known
            if gone():
                raise
            raise FAILURES["silent"] from None
        except NotReadyError:
            raise
        except (DatasetError, PolicyError):
            self._described.pop(name, None)  # it is known no longer
            raise
        if fresh is None:
            if known is None:
                raise QueryError(f"There is no dataset {name!r}; {choices(name, self.names())}.")
            return known
        self._described[name] = fresh
        return fresh

    def views(self, query: TableQuery, policy: Policy) -> Views:
        """The protected numbers of a question."""
        views: Views = self._ask("views", query.to_mapping(), policy.model_dump_json())
        return views

    def check_in_background(self) -> None:
        """Nothing to say: the other process always does, since it serves."""

    def close(self) -> None:
        with self._lock:
            line, self._line = self._line, None
        if line is not None:
            line.end()

    def _ask(self, *request: Any) -> Any:
        return self._current().ask(request)

    def _current(self) -> RecordsLine:
        """The line to a process that lives, as far as is known."""
        with self._lock:
            broken = self._line if self._line is not None and self._line.is_broken else None
            if self._line is None or broken is not None:
                self._line = RecordsLine(self._root, self._workers, self._silence)
            line = self._line
        if broken is not None:
            # Elsewhere, for what is left of it may take seconds to end.
            threading.Thread(target=broken.end, name="records end", daemon=True).start()
        return line
