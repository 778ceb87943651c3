"""Work in a process of its own that is stopped after so many CPU seconds, for cases that may not end."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable
from typing import Any

Tell = Callable[[Any], None]


def limited(work: Callable[[Tell], None], seconds: int) -> tuple[list[Any], bool]:
    """What the work told before it ended or was stopped, and whether it was stopped."""
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe(duplex=False)

    def inside() -> None:
        here.close()
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        work(there.send)

    process = fork.Process(target=inside)
    process.start()
    there.close()
    heard = []
    while True:
        try:
            heard.append(here.recv())
        except EOFError:
            break
    process.join()
    if process.exitcode and process.exitcode > 0:
        raise SystemExit(f"a case ended with {process.exitcode}")
    return heard, process.exitcode != 0
