"""A server holds the memory of its busiest moment once, not once for every thread."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Each thread takes a little memory from the C library and stays; an arena is a range of 64 MiB of addresses.
PROGRAM = """
import ctypes, sys, threading
if sys.argv[1] == "few":
    from lustrum.server.operation.arenas import keep_arenas_few
    assert keep_arenas_few()
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.malloc.argtypes = [ctypes.c_size_t]
found, together = [], threading.Barrier(12)
def take():
    together.wait()
    found.extend(library.malloc(1000) for _ in range(1000))
    together.wait()
threads = [threading.Thread(target=take) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len({address >> 26 for address in found}))
"""


def arenas(how: str) -> int:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True
    )
    return int(ran.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="arenas of glibc")
def test_threads_of_a_server_share_two_arenas() -> None:
    # The first arena grows with the heap, which may begin near a border.
    assert arenas("few") <= 3 < arenas("many")
