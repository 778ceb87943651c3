"""What systemd is told of a server: that it is ready, and that it still answers (the protocol of sd_notify).

A message is a datagram to the socket that ``NOTIFY_SOCKET`` names. With ``WatchdogSec`` in the unit the
system ends and starts a service that falls silent. The watchdog is fed only while the loop of this process
turns, its threads take work, and the process that holds the records lives or is being started again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool

log = logging.getLogger("lustrum.server")

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
