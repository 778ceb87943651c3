"""A small data folder with the demo policies, a client on it, and a real server for browsers."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient

from lustrum.answer import TableService
from lustrum.demo import businesses, description_path, people
from lustrum.model.errors import NotReadyError
from lustrum.policy.presets import preset
from lustrum.publish.bundles.make import make_bundle
from lustrum.server import create_app
from lustrum.server.settings import Settings
from lustrum.tabulate import FrameSource, Secret, Store, ingest, read_description
from waiting import until

POLICIES = description_path("demo").parent
NAMES = (
    'dataset = "demo"\ntitle = "Demo census, public tables"\n'
    'notes = ["Synthetic people: any likeness is chance."]\n'
)
LEDGER = re.compile(r"# What everybody received.*\n(?=end = true)", re.DOTALL)
"""The part of a preset by which answers of one test would refuse those of another."""

KEYED = LEDGER.sub("", preset("keyed-rounding", "demo")).replace('dataset = "demo"\n', NAMES)
"""The demo census under keyed rounding, with its many refusals; see ``bundle`` for the strict default."""

KEYED_BUSINESSES = (
    LEDGER.sub("", preset("keyed-rounding", "businesses"))
    .replace(
        'dataset = "businesses"\n',
        'dataset = "businesses"\ntitle = "Demo business register, public tables"\n'
        'notes = ["Synthetic businesses: any likeness is chance."]\n',
    )
    .replace("min_population = 1000", "min_population = 500")
)
"""The demo business register under keyed rounding."""

STRICT = (
    (POLICIES / "demo-policy.toml")
    .read_text()
    .replace("sweeps = 4", "sweeps = 1\nmax_variables = 1\nempty_share = 0.05")
    .replace("[rules]", 'embed = ["https://news.example"]\n\n[rules]')
)
"""The policy of the demo, with less of a search."""


HURRIED = ("patience", "seconds")
"""Settings by which a question that takes long is turned away."""


def never_hurry() -> None:
    """Let a question take as long as it takes: how busy a machine is decides nothing.

    Tests of these limits state them; loops that are compiled at the first question would pass the usual ones.
    """
    own: Any = Settings.__init__
    names = [field.name for field in fields(Settings)]
    own.__defaults__ = tuple(
        3600.0 if name in HURRIED else value
        for name, value in zip(names, own.__defaults__, strict=True)
    )


never_hurry()


def fill(root: Path, persons: int = 20_000, seed: int = 2001) -> Path:
    """Put both demo datasets and their policies into a folder."""
    root.mkdir()
    store = Store(root)
    secret = Secret(bytes(range(32)))
    for name, frame in {"demo": people(persons, seed), "businesses": businesses(3000)}.items():
        ingest(FrameSource(frame), read_description(description_path(name)), store, secret=secret)
    (root / "policies").mkdir()
    (root / "policies" / "demo.toml").write_text(KEYED)
    (root / "policies" / "businesses.toml").write_text(KEYED_BUSINESSES)
    return root


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that no test changes."""
    return fill(tmp_path_factory.mktemp("server") / "data")


@pytest.fixture(scope="session")
def small_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A smaller data folder that no test changes."""
    return fill(tmp_path_factory.mktemp("small") / "data", 6000)


@pytest.fixture
def own_root(small_root: Path, tmp_path: Path) -> Path:
    """The same, for a test that changes it or serves it from a process of its own."""
    return Path(shutil.copytree(small_root, tmp_path / "data"))


@pytest.fixture(scope="session")
def service(root: Path) -> Iterator[TableService]:
    """The service over it, with the records in a process of their own."""
    service = TableService(root, workers=1)
    started(service)
    yield service
    service.close()


def started(service: TableService) -> TableService:
    """A service whose records answer: pages and the catalogue wait no longer than a second for them."""

    def answers(name: str) -> bool:
        with suppress(NotReadyError):  # the process may take more than a minute to start
            return service.published(name) is not None
        return False

    for name in service.names():
        until(lambda name=name: answers(name))  # type: ignore[misc]
    return service


@pytest.fixture(scope="session")
def bundle(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A public bundle of the demo census, in a folder without records; no test changes it."""
    folder = tmp_path_factory.mktemp("bundles")
    policy = folder / "strict.toml"
    policy.write_text(STRICT)
    make_bundle(Store(root), "demo", policy, folder / "demo", workers=1)
    policy.unlink()
    return folder / "demo"


@pytest.fixture(scope="session")
def bundled(bundle: Path) -> Iterator[TestClient]:
    """A client of a server that has the bundle and nothing else."""
    service = TableService(bundles=[bundle], workers=1)
    yield TestClient(create_app(service, Settings(rate="")), base_url="http://lustrum.test")
    service.close()


@pytest.fixture(scope="session")
def client(service: TableService) -> TestClient:
    """A client of the application, without a network, that may ask as often as it likes."""
    return TestClient(create_app(service, Settings(rate="")), base_url="http://lustrum.test")


@pytest.fixture(scope="session")
def live(bundle: Path) -> Iterator[str]:
    """The address of a real server that has the bundle and nothing else."""
    service = TableService(bundles=[bundle], workers=1)
    with served(create_app(service, Settings(rate=""))) as found:
        yield found
    service.close()


def run_alone(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a thread of its own: a browser of other tests may have a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


@contextmanager
def served(app: FastAPI, **options: Any) -> Iterator[str]:
    """The address of a real server on a free port."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_level="warning", server_header=False, **options)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            until(lambda: server.started or not thread.is_alive())
            assert server.started, "the server did not start"
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            # A page that a browser has left may still wait for an answer; nobody waits for it here.
            server.should_exit = True
            thread.join(timeout=5)
            server.force_exit = True
            thread.join(timeout=5)


@pytest.fixture(scope="session")
def address(service: TableService) -> Iterator[str]:
    """The address of a real server on the data folder."""
    with served(create_app(service, Settings(rate=""))) as found:
        yield found
