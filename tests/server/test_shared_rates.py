"""A limit holds for an address, whichever process of a server it reaches."""

from __future__ import annotations

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from limits import parse
from limits.strategies import MovingWindowRateLimiter

from lustrum.local import local_service
from lustrum.server import Settings, create_app
from lustrum.server.http import rates as shared_rates
from lustrum.server.http.rates import FILE, SharedHits
from waiting import LONG

KEY = "ab" * 32


def limiters(folder: Path, number: int) -> list[MovingWindowRateLimiter]:
    return [MovingWindowRateLimiter(SharedHits(folder, KEY, number)) for _ in range(number)]


def test_processes_count_the_hits_of_each_other(tmp_path: Path) -> None:
    one, two = limiters(tmp_path, 2)
    limit = parse("3/day")
    assert [process.hit(limit, "a") for process in (one, two, one, two, one)] == [
        True, True, True, False, False,
    ]  # fmt: skip
    assert two.hit(limit, "b")
    assert one.get_window_stats(limit, "a").remaining == 0
    assert one.get_window_stats(limit, "b").remaining == 2
    assert one.get_window_stats(limit, "c").remaining == 3


def test_at_the_same_time_no_more_pass_than_the_limit_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine a turn may take long; whoever waits in vain is refused, and would not be counted.
    monkeypatch.setattr(shared_rates, "_SECONDS", LONG)
    limit = parse("50/day")
    with ThreadPoolExecutor(8) as pool:
        passed = list(
            pool.map(lambda p: sum(p.hit(limit, "a") for _ in range(40)), limiters(tmp_path, 8))
        )
    assert sum(passed) == 50


def test_hits_are_forgotten_when_their_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("lustrum.server.http.rates.time.time", lambda: now[0])
    (one,) = limiters(tmp_path, 1)
    limit = parse("2/minute")
    assert one.hit(limit, "a")
    now[0] += 30
    assert one.hit(limit, "a")
    assert not one.hit(limit, "a")
    assert one.get_window_stats(limit, "a") == (1060.0, 0)
    now[0] += 30.5
    assert one.hit(limit, "a")
    assert not one.hit(limit, "a")
    now[0] += 1000
    assert one.hit(limit, "b")
    with sqlite3.connect(tmp_path / FILE) as file:
        assert file.execute("SELECT count(*) FROM hits").fetchone() == (1,)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_clock_that_is_set_back_by_a_day_locks_nobody_out_for_a_day(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    hits = SharedHits(tmp_path, KEY, processes) if processes > 1 else None
    app = create_app(local_service(root, workers=1), Settings(rate="1/minute"), hits=hits)
    client = TestClient(app, base_url="http://lustrum.test")
    link, now = "/api/v1/tables?dataset=demo&by=sex", [time.time()]
    monkeypatch.setattr(time, "time", lambda: now[0])
    assert [client.get(link).status_code for _ in range(2)] == [200, 429]
    now[0] -= 86_400
    answers = [client.get(link) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert int(answers[1].headers["retry-after"]) <= 60


def test_the_file_holds_no_address(tmp_path: Path) -> None:
    (one,) = limiters(tmp_path, 1)
    one.hit(parse("2/minute"), "192.0.2.77")
    assert all(b"192.0.2.77" not in path.read_bytes() for path in tmp_path.iterdir())


def test_while_another_process_holds_the_file_nothing_is_allowed_and_afterwards_it_is_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_rates, "_SECONDS", 0.05)
    one, two = limiters(tmp_path, 2)
    limit = parse("5/day")
    assert [one.hit(limit, "a"), two.hit(limit, "a")] == [True, True]
    holder = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with caplog.at_level("WARNING", logger="lustrum.server"):
        assert not any(process.hit(limit, "a") for process in (one, two) * 20)
    # One wait and one line for each process, however often it is asked.
    assert caplog.text.count("while another process holds the rates") == 2
    assert "allows its part" not in caplog.text
    holder.execute("ROLLBACK")
    holder.close()
    assert [process.hit(limit, "a") for process in (one, two, one, two)] == [True] * 3 + [False]


def test_processes_whose_file_fails_allow_no_more_than_the_limit_together_and_try_it_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("lustrum.server.http.rates.time.monotonic", lambda: now[0])
    both = limiters(tmp_path, 2)
    limit = parse("5/day")
    for process in both:
        hits = process.storage
        assert isinstance(hits, SharedHits)
        assert hits._file is not None
        hits._file.close()
    with caplog.at_level("WARNING", logger="lustrum.server"):
        assert sum(process.hit(limit, "a") for process in both for _ in range(9)) == 4
    assert [process.get_window_stats(limit, "a").remaining for process in both] == [0, 0]
    assert caplog.text.count("each process allows its part of the rates") == 2
    now[0] += shared_rates._AGAIN
    assert [process.hit(limit, "b") for process in both * 3] == [True] * 5 + [False]


def test_two_applications_share_one_limit(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    service = local_service(tmp_path / "data", workers=1)
    clients = [
        TestClient(
            create_app(service, Settings(rate="3/day"), None, SharedHits(tmp_path / "shared", KEY)),
            base_url="http://localhost",
        )
        for _ in range(2)
    ]
    ask = "/api/v1/tables?dataset=none&by=sex"
    found = [client.get(ask).status_code for client in (*clients, *clients)]
    assert found == [400, 400, 400, 429]
