"""Servers that are killed at any moment while they answer: whatever left them stands in the book."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest
from tests.server.test_ledger import POLICY

from lustrum.ledger.releases import ReleaseBook
from lustrum.model import TableQuery

QUESTIONS = [
    {"dataset": "demo", "by": [one], "where": {other: [code]}}
    for one in ("sex", "employment", "citizenship", "education", "household_size")
    for other, codes in (("age", range(4, 20)), ("area", ["1-01-001", "1-01-002", "2-01-001"]))
    for code in map(str, codes)
]


def _asked(address: str, asked: list[dict[str, object]], left: list[str]) -> None:
    """Ask one after the other until the server is gone, and note what was answered with numbers."""
    with httpx.Client(base_url=address) as client:
        for one in asked:
            try:
                answer = client.post("/api/v1/tables", json=one).json()
            except (httpx.HTTPError, json.JSONDecodeError):
                return
            if answer["decision"] == "answer":
                left.append(json.dumps(TableQuery.from_mapping(one).to_mapping(), sort_keys=True))


def _killed(root: Path, rounds: int, seed: int) -> None:
    draw, left = random.Random(seed), list[str]()
    for _ in range(rounds):
        command = [sys.executable, "-m", "lustrum", "serve", "--port", "0", "--rate", ""]
        server = subprocess.Popen(
            [*command, "--data", str(root)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert server.stdout is not None
        address = server.stdout.readline().rsplit(" at ", 1)[1].strip()
        clients = [
            threading.Thread(target=_asked, args=(address, draw.sample(QUESTIONS, 90), left))
            for _ in range(3)
        ]
        for client in clients:
            client.start()
        so_many = len(left) + draw.randint(1, 20)
        while len(left) < so_many and clients[0].is_alive():
            clients[0].join(0.02)
        server.send_signal(signal.SIGKILL)
        server.communicate()
        for client in clients:
            client.join()
    book = ReleaseBook(root)
    book.verify()
    entered = {str(entry.said["question"]) for entry in book.entries()}
    assert left
    assert set(left) <= entered


@pytest.fixture
def root(small_root: Path, tmp_path: Path) -> Path:
    own = Path(shutil.copytree(small_root, tmp_path / "data"))
    (own / "policies" / "demo.toml").write_text(POLICY.format(limit=10))
    return own


def test_whatever_left_a_killed_server_stands_in_the_book(root: Path) -> None:
    _killed(root, 1, seed=1)


@pytest.mark.deep
def test_whatever_left_a_hundred_killed_servers_stands_in_the_book(root: Path) -> None:
    _killed(root, 100, seed=2)
