"""Log lines for machines: one JSON object a line, without the text of any exception that may hold data.

The server and the process that holds the records write the same lines.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections import Counter
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TextIO

FIELDS = "lustrum_fields"
"""Where a log record carries fields of its own."""

REQUEST: ContextVar[dict[str, str]] = ContextVar("lustrum_request")
"""The ids of the request under way, which stand in every line that is logged for it."""

MOST_A_MINUTE = 30
"""Warnings and errors from one place of the code that are written within a minute."""

_MINUTE = 60.0


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, event, and the fields that came with it; an exception's text stays out."""
        timestamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{timestamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line.update(REQUEST.get({}) | getattr(record, FIELDS, {}))
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=False)


class LimitedLines(logging.StreamHandler[TextIO]):
    """Writes so many warnings of a kind a minute, and then how many were left out: nobody fills the disk.

    A kind is the place in the code. What is less than a warning is written whenever it was asked for.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self._seen: Counter[tuple[str, int]] = Counter()
        self._left_out: dict[tuple[str, int], logging.LogRecord] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, or count it; the caller holds the lock."""
        place = record.pathname, record.lineno
        if record.levelno >= logging.WARNING:
            if not self._seen:
                clock = threading.Timer(_MINUTE, self.next_minute)
                clock.daemon = True
                clock.start()
            self._seen[place] += 1
            if self._seen[place] > MOST_A_MINUTE:
                self._left_out.setdefault(place, record)
                return
        super().emit(record)

    def next_minute(self) -> None:
        """Say what was left out, and begin to count anew."""
        self.acquire()
        try:
            for place, record in self._left_out.items():
                count = self._seen[place] - MOST_A_MINUTE
                said = f"{count} more within a minute like: {record.getMessage()}"
                super().emit(logging.makeLogRecord(record.__dict__ | {"msg": said, "args": ()}))
            self._seen.clear()
            self._left_out.clear()
        finally:
            self.release()

    def close(self) -> None:
        """Say it at the end too."""
        self.next_minute()
        super().close()


def tell_person(log: logging.Logger, sentence: str) -> None:
    """Log a sentence, and print it to standard error where that is a terminal or a notebook."""
    log.info(sentence)
    if sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules):
        print(sentence, file=sys.stderr, flush=True)


def set_up(level: str = "info") -> None:
    """Write what Lustrum and its web server log to standard error as lines of JSON."""
    handler = LimitedLines()
    handler.setFormatter(JsonLines())
    for name in ("lustrum", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper())


def level_in_force() -> str | None:
    """The level from which on this process writes lines of JSON; None where it does not."""
    logger = logging.getLogger("lustrum")
    if any(isinstance(handler.formatter, JsonLines) for handler in logger.handlers):
        return logging.getLevelName(logger.getEffectiveLevel()).lower()
    return None


def log_strays() -> None:
    """Let an exception that nobody caught leave its kind and its place in the log, and never its text."""
    log = logging.getLogger("lustrum")

    def of_the_process(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        log.error("not caught: %s", where_it_happened(error))

    def of_a_thread(stray: threading.ExceptHookArgs) -> None:
        if stray.exc_value is not None:
            log.error("not caught: %s", where_it_happened(stray.exc_value))

    sys.excepthook = of_the_process
    threading.excepthook = of_a_thread


def where_it_happened(error: BaseException) -> str:
    """The kind of an exception and the lines it came through, without its text or any value.

    Where the operating system or the database gave a reason, such as a full disk, it is named.
    """
    parts = []
    seen: BaseException | None = error
    while seen is not None:
        lines = []
        trace = seen.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            lines.append(f"{code.co_filename}:{trace.tb_lineno}")
            trace = trace.tb_next
        kind = f"{type(seen).__name__}{_reason(seen)}"
        parts.append(f"{kind} at {' > '.join(lines) or 'an unknown line'}")
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return "; after ".join(parts)


def _reason(error: BaseException) -> str:
    """The reason by its number or name: texts of exceptions may hold values, these cannot."""
    if isinstance(error, OSError) and error.errno is not None:
        return f" ({os.strerror(error.errno)})"
    name = getattr(error, "sqlite_errorname", None)
    return f" ({name})" if isinstance(name, str) and name.startswith("SQLITE_") else ""
