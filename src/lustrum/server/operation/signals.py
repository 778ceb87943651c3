"""What a hangup means to the server, and what the end of its parent means to a worker."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from lustrum.answer import TableService
from lustrum.model import LustrumError

log = logging.getLogger("lustrum.server")

_HANGUP = getattr(signal, "SIGHUP", None)  # there is none on Windows
_LEAVE = 15.0  # seconds that a worker without a parent has to finish what is under way


def read_policies_again(service: TableService) -> None:
    """Read every policy anew and log what became of it; a dataset whose policy is wrong answers nothing."""
    service.forget_policies()
    for name in service.names():
        try:
            service.policy(name)
        except LustrumError as error:
            log.error("policy of %s refused: %s", name, error)
        except OSError as error:
            log.error("policy of %s cannot be read: %s", name, type(error).__name__)
        else:
            log.info("policy of %s read again", name)
    if service.sealed_only:
        return
    with suppress(LustrumError):  # of which the log has heard
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
