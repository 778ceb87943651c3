"""What a process of the server does beside answering: signs of life, free memory, a warm-up, signals."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import product
from types import FrameType

from starlette.concurrency import run_in_threadpool

from lustrum.answer import TableService
from lustrum.answer.readers import Reader, reading_as
from lustrum.model import Axis, Dataset, DatasetError, LustrumError, PolicyError, TableQuery
from lustrum.model.errors import NotAnsweringError
from lustrum.numeric.compiled import compile_beside
from lustrum.runtime.log_lines import where_it_happened
from lustrum.runtime.stop import Stopped, within

log = logging.getLogger("lustrum.server")

# --- What systemd is told of a server: that it is ready, and that it still answers (the protocol of sd_notify)
# A message is a datagram to the socket that ``NOTIFY_SOCKET`` names. With ``WatchdogSec`` in the unit the
# system ends and starts a service that falls silent. The watchdog is fed only while the loop of this process
# turns, its threads take work, and the process that holds the records lives or is being started again.

_FEEDS = 4  # times within the time that the system waits


def notify(message: str) -> bool:
    """Tell the system something; false where nobody listens.

    >>> import os; os.environ.pop("NOTIFY_SOCKET", None) and None
    >>> notify("READY=1")
    False
    """
    socket_path = os.environ.get("NOTIFY_SOCKET", "")
    if not socket_path.startswith(("/", "@")):
        return False
    address = "\0" + socket_path[1:] if socket_path.startswith("@") else socket_path
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.settimeout(1)
            out.sendto(message.encode(), address)
    except OSError as error:
        log.error("systemd cannot be told %s: %s", message, os.strerror(error.errno or 0))
        return False
    return True


def watchdog_seconds() -> float | None:
    """How long the system waits for a sign before it ends the service; None where it does not watch.

    Any process of the service may feed the watchdog, so the process that it names is not asked for.
    """
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    return int(microseconds) / 1e6 if microseconds.isdecimal() and int(microseconds) else None


async def feed_watchdog(lives: Callable[[], bool]) -> None:
    """Feed the watchdog for as long as this server answers; returns at once where there is none."""
    seconds = watchdog_seconds()
    if seconds is None:
        return
    pause = seconds / _FEEDS
    while True:
        try:
            # In a thread, as every question is: without a free one nothing would be answered.
            if await asyncio.wait_for(run_in_threadpool(lives), seconds):
                notify("WATCHDOG=1")
            else:
                log.error("the watchdog is not fed: the records process cannot be started")
        except TimeoutError:
            log.error("the watchdog is not fed: no thread was free for %g seconds", seconds)
        await asyncio.sleep(pause)


# --- Memory of the C library: few arenas, and what is free in them goes back to the system
# With an arena for each thread a server would hold what many threads once needed. What is freed between
# things that are kept, such as remembered answers, is not given back by itself: holes are left, more with
# time.

_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h
_FEW = 2
_PAUSE = (
    30.0  # seconds between two times that memory is given back, which takes some hundredths of one
)


def keep_arenas_few() -> bool:
    """Let all threads of this process share two arenas, where the C library is glibc; whether it does."""
    if sys.platform != "linux":
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    return set_option is not None and set_option(_ARENA_MAX, _FEW) == 1


def give_back() -> bool:
    """Give free memory back to the system, where the C library is glibc; whether any was."""
    if sys.platform != "linux":
        return False
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim is not None and trim(0) == 1


async def keep_memory_small() -> None:
    """Give free memory back now and then, for as long as the server runs."""
    while True:
        await asyncio.sleep(_PAUSE)
        await run_in_threadpool(give_back)


_LOOK = 10.0  # seconds between two looks at what there is, for the figures of the operator


async def keep_figures(look: Callable[[], None]) -> None:
    """Look now and then, for as long as the server runs, also after one look that failed."""
    while True:
        try:
            await run_in_threadpool(look)
        except Exception as error:  # its text may hold data
            log.error("figures: %s", where_it_happened(error))
        await asyncio.sleep(_LOOK)


# --- One small question per dataset before the first visitor comes: opens it and caches what counts
# On a busy machine the process that holds the records takes long to start. The server waits for it before it
# says that it listens, but not for ever: then pages and the API say which datasets are still being opened.

PATIENCE = 120.0
"""Seconds that a start waits for records that do not answer, whatever the number of datasets."""

_MOMENT = 1.0  # seconds for each dataset after that


def warm_up(service: TableService) -> None:
    """Ask every dataset something small. A dataset that fails is left for its visitors to hear about."""
    end = time.monotonic() + PATIENCE
    left = deque(service.names())
    while left:
        name = left.popleft()
        try:
            with within(max(_MOMENT, end - time.monotonic())):
                dataset = service.dataset(name)
            if service.in_parts(name):
                continue  # a question reads every part, which is left to the first visitor
            _ask_small(service, dataset)
        except (NotAnsweringError, Stopped):
            if time.monotonic() < end:
                left.append(name)
            else:
                log.warning("dataset %s is still being opened", name)
        except (DatasetError, PolicyError) as error:
            log.error("dataset %s is not served: %s", name, error)
        except Exception as error:  # its text may hold data
            log.error("warm-up failed: %s", where_it_happened(error))


def load_loops(service: TableService) -> None:
    """Load compiled loops, beside first visitors: small questions do without, and loading takes a second."""

    def ask() -> None:
        for name in service.names():
            with suppress(Exception):  # the warm-up said why
                _ask_small(service, service.dataset(name), sums=True)

    compile_beside(ask)


def _ask_small(service: TableService, dataset: Dataset, *, sums: bool = False) -> None:
    """Ask for counts, and for sums and weighted numbers too: their loops are others."""
    shortest = sorted(dataset.variables, key=lambda variable: len(variable.codes))[:2]
    query = TableQuery(dataset.name, tuple(Axis(v.name, total=True) for v in shortest))
    service.answer(query)
    service.answer(replace(query, by=query.by[:1]))
    measures = [None, *(measure.name for measure in dataset.measures[:1])] if sums else []
    for measure, weight in product(measures, [None, *(w.name for w in dataset.weights)]):
        service.answer(replace(query, measure=measure, weight=weight))


# --- What a hangup means to the server, and what the end of its parent means to a worker

_HANGUP = getattr(signal, "SIGHUP", None)  # there is none on Windows
_LEAVE = 15.0  # seconds that a worker without a parent has to finish what is under way


def read_policies_again(service: TableService) -> None:
    """Read every policy anew and log what became of it; a dataset whose policy is wrong answers nothing."""
    service.forget_policies()
    # Of several policies of a dataset the one for the highest role is compared with all others.
    with reading_as(Reader(role="staff")):
        names = service.names()
    for name in names:
        try:
            with reading_as(Reader(role="staff")):
                service.policy(name)
        except LustrumError as error:
            log.error("policy of %s refused: %s", name, error)
        except OSError as error:
            log.error("policy of %s cannot be read: %s", name, type(error).__name__)
        else:
            log.info("policy of %s read again", name)
    if service.sealed_only:
        return
    for path in service.unsealed():
        log.warning("the policy %s is in force without a seal", path)


@contextmanager
def reloading_at_hangup(service: TableService) -> Iterator[None]:
    """While this holds, SIGHUP reads the policies again; it never ends the process."""
    if _HANGUP is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def reload(number: int, frame: FrameType | None) -> None:
        # Not in the handler itself: it interrupts code that may hold a lock.
        threading.Thread(target=read_policies_again, args=(service,), name="policies").start()

    before = signal.signal(_HANGUP, reload)
    try:
        yield
    finally:
        signal.signal(_HANGUP, before)


def leave_with_parent() -> None:
    """End this process soon after its parent, however that ended: nobody would start it again or stop it."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()  # by a pipe that the system closes when the parent is gone, even by SIGKILL
        log.error("the parent process is gone; this process ends")
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_LEAVE)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()
