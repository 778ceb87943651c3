"""What holds for all tests: the same examples in every run, no stopwatch, and one browser for all pages."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

from lustrum.numeric.compiled import always_compile
from skips import pytest_configure  # noqa: F401  (a hook)

if sys.dont_write_bytecode:
    # Otherwise every command and server that a test starts would compile the whole package for itself.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / "build" / "pycache")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def keep_folders_in_memory() -> None:
    """Put the folders of tests into memory where there is room: writing them to a disk takes minutes."""
    memory, known = Path("/dev/shm"), Path("/proc/meminfo")
    if "TMPDIR" in os.environ or not (memory.is_dir() and known.is_file()):
        return
    free = dict(line.split(":") for line in known.read_text(encoding="utf-8").splitlines())
    available = int(free.get("MemAvailable", "0 kB").split()[0]) * 1024
    if min(shutil.disk_usage(memory).free, available // 2) >= 4 * 2**30 and os.access(
        memory, os.W_OK
    ):
        os.environ["TMPDIR"] = str(memory)
        tempfile.tempdir = None


keep_folders_in_memory()

if "PYTEST_XDIST_WORKER" in os.environ:
    gc.disable()  # while tests are collected; what stays need not be searched for garbage


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[Any], list[Any]]:
    """Examples stand in docstrings of the package and of what tests share: tests themselves hold none."""
    found = yield
    if file_path.name.startswith("test_"):
        return [one for one in found if not isinstance(one, DoctestModule)]
    return found


def pytest_collection_finish() -> None:
    """Leave all tests and modules out of later searches for garbage, each of which would take seconds."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Set apart what the tests of a file leave: to look through all of it takes a second at the end."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


# At the end all is searched again, once: compiled modules complain of objects that they still hold.
atexit.register(gc.unfreeze)
# To put all commands together takes a tenth of a second, and they are the same in every test.
typer.main.get_command = cache(typer.main.get_command)
always_compile()  # loops are compared with plain twins, however small the examples are
# Nor does it matter how long a busy machine takes to draw examples.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
patient = settings.get_profile("patient")
settings.register_profile("steady", patient, derandomize=True, max_examples=30)
# More examples of every property, the same in every run: `make deep`.
settings.register_profile("deep", patient, derandomize=True, max_examples=400)
# To look for new counterexamples: HYPOTHESIS_PROFILE=explore make test
settings.register_profile("explore", patient, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(scope="session")
def turnover(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workplace of a programme of tables of turnover that was run once; no test changes it."""
    from publish.programme.conftest import TURNOVER, make_workplace

    workplace = make_workplace(tmp_path_factory.mktemp("programme"))
    workplace.run(TURNOVER)
    return workplace.folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium without a window. A build that should test pages may not skip them."""
    from lustrum.rumap.report import find_chromium

    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium found; install one or name it in LUSTRUM_CHROMIUM")
    from playwright.sync_api import sync_playwright

    quiet = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=path, args=[*quiet, "--no-first-run", "--disable-component-update"]
        )
        yield running
        running.close()
