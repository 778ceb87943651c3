"""The process that holds the records: answers over a pipe with protected numbers, and with nothing else.

Run as ``python -m lustrum.publish.records.process FD ROOT [--workers N] [--logs LEVEL]`` by
:mod:`lustrum.answer.separate_process`. It ends when the pipe is closed. A failure goes back as one of a few
fixed kinds: no text of an exception leaves. A thread of its own sends a sign of life each second, so that the
other side can tell long work from a hang. Its log lines are those of the server, and go to the same place.
"""

from __future__ import annotations

import argparse
import logging
import os
import pickle
import signal
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from lustrum.model import DatasetError, PolicyError, QueryError, TableQuery
from lustrum.model.errors import NotReadyError
from lustrum.policy import Policy
from lustrum.public.numbers import CannotProtectError, Described, Views
from lustrum.publish.records.local import LocalRecordsService
from lustrum.runtime.log_lines import log_strays, set_up, where_it_happened
from lustrum.runtime.stop import Stopped, stopping

log = logging.getLogger("lustrum.publish")

_AT_ONCE = 8  # questions that are counted at the same time; a server lets fewer through
_BEAT = 1.0  # seconds between two signs of life
_SIGN = pickle.dumps((0, "alive", None))


class RequestHandler:
    """Takes questions as words, and gives a kind and a value for each."""

    def __init__(self, records: LocalRecordsService) -> None:
        self._records = records

    def reply(self, request: tuple[Any, ...]) -> tuple[str, Any]:
        """The answer, or a fixed kind of failure."""
        try:
            return "answer", self._answer(*request)
        except Stopped:
            return "stopped", None
        except CannotProtectError:
            return "protect", None
        except QueryError:
            return "size", None
        except PolicyError:
            # The reason may tell how many records there are of a kind, so it stays out of the log.
            log.error("unavailable: the policy cannot protect the input; 'lustrum table' says why")
            return "policy", None
        except NotReadyError:
            return "checking", None
        except DatasetError as error:
            # Such a sentence names files, never anything of the data.
            log.error("unavailable: %s", error)
            return "data", None
        except Exception as error:  # its text may hold data
            log.error("cannot answer: %s", where_it_happened(error))
            return "broken", None

    def _answer(self, what: str, *arguments: Any) -> Described | Views | None:
        if what == "describe":
            name, version = arguments
            if name not in self._records.names():
                return None
            described = self._records.describe(name)
            return None if described.version == version else described
        query, policy = arguments
        return self._views(query, policy)

    def _views(self, query: Mapping[str, Any], policy: str) -> Views:
        return self._records.views(TableQuery.from_mapping(query), _policy(policy))


@lru_cache(maxsize=64)
def _policy(text: str) -> Policy:
    return Policy.model_validate_json(text)


def main(handle: int, root: Path, workers: int | None = None) -> None:
    """Serve until the other side closes the pipe."""
    pipe = Connection(handle)
    records = LocalRecordsService(root, workers)
    records.check_in_background()
    handler = RequestHandler(records)
    sending = threading.Lock()
    left: dict[int, threading.Event] = {}

    def live() -> None:
        try:
            while True:
                with sending:
                    pipe.send_bytes(_SIGN)
                time.sleep(_BEAT)
        except OSError:
            return  # nobody listens any more

    threading.Thread(target=live, name="signs of life", daemon=True).start()

    def work(number: int, request: tuple[Any, ...], gone: threading.Event) -> None:
        with stopping(gone.is_set):
            kind, value = handler.reply(request)
        left.pop(number, None)
        with sending:
            pipe.send_bytes(pickle.dumps((number, kind, value)))

    # Descriptions have threads of their own: they never wait for a table.
    with ThreadPoolExecutor(_AT_ONCE) as pool, ThreadPoolExecutor(2) as describing:
        try:
            while True:
                number, *request = pickle.loads(pipe.recv_bytes())
                if request == ["stop"]:
                    if number in left:
                        left[number].set()
                    continue
                left[number] = threading.Event()
                room = describing if request[0] == "describe" else pool
                room.submit(work, number, tuple(request), left[number])
        except (OSError, EOFError):
            for gone in list(left.values()):
                gone.set()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parser = argparse.ArgumentParser()
    parser.add_argument("handle", type=int)
    parser.add_argument("root", type=Path)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--logs")
    arguments = parser.parse_args()
    log_strays()
    if arguments.logs is not None:
        set_up(arguments.logs)
    main(arguments.handle, arguments.root, arguments.workers)
    os._exit(0)  # nothing is kept here that would have to be written down
