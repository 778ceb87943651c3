"""A server holds the memory of its busiest moment once, not once for every thread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from lustrum.answer import TableService
from lustrum.server import create_app
from lustrum.server.operation import lifecycle as arenas_module
from waiting import until

# Each thread takes a little memory from the C library and stays; an arena is a range of 64 MiB of addresses.
PROGRAM = """
import ctypes, sys, threading
if sys.argv[1] == "few":
    from lustrum.server.operation.lifecycle import keep_arenas_few
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
if sys.argv[1] == "many":
    sys.exit()
# Of 64 MiB in small pieces every sixteenth is kept: pages between them are free, and nobody can use them.
from lustrum.server.operation.lifecycle import give_back
library.free.argtypes = [ctypes.c_void_p]
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20
pieces = [library.malloc(2000) for _ in range(1 << 15)]
for piece in pieces:
    ctypes.memset(piece, 1, 2000)
for place, piece in enumerate(pieces):
    if place % 16:
        library.free(piece)
before = resident()
assert give_back()
print(before - resident())
"""


def printed(how: str) -> list[int]:
    command = [sys.executable, "-c", PROGRAM, how]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return [int(line) for line in ran.stdout.split()]


@pytest.mark.skipif(sys.platform != "linux", reason="arenas of glibc")
def test_threads_share_two_arenas_and_what_is_free_between_others_goes_back_to_the_system() -> None:
    (many,) = printed("many")
    few, given_back = printed("few")
    # The first arena grows with the heap, which may begin near a border.
    assert few <= 3 < many
    assert given_back >= 30


def test_a_server_gives_memory_back_for_as_long_as_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []
    monkeypatch.setattr(arenas_module, "_PAUSE", 0.01)
    monkeypatch.setattr(arenas_module, "give_back", lambda: given.append(1))
    with TestClient(create_app(TableService(folder=tmp_path))):
        until(lambda: len(given) >= 3)
