"""The clock jumps between any two steps of a job, or at any look at it: nothing is lost, doubled or stolen."""

from __future__ import annotations

import itertools
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from faults.world import ASKED, WORK, job_wrong, observe, verdict
from lustrum.server.service import job_store
from lustrum.server.service.job_store import JobStore

YEARS = 10 * 365 * 86400.0
JUMPS = {"none": 0.0, "forward": YEARS, "backward": -YEARS}


class Clock:
    """The calendar of a machine, which jumps when told, and the clock that runs while the machine does."""

    def __init__(self, at: int = 0, jump: float = 0.0) -> None:
        self.shift = 0.0
        self.passed = 0.0
        self.looks = 0
        self._at, self._jump = at, jump

    def _look(self) -> None:
        self.looks += 1
        if self.looks == self._at:
            self.shift += self._jump

    def time(self) -> float:
        self._look()
        return time.time() + self.shift

    def monotonic(self) -> float:
        self._look()
        return time.monotonic() + self.passed

    def used(self, patch: pytest.MonkeyPatch) -> Clock:
        """Let jobs look at this clock."""
        hands = SimpleNamespace(**vars(time))
        hands.time, hands.monotonic = self.time, self.monotonic
        patch.setattr(job_store, "time", hands)
        return self


@pytest.mark.parametrize("jump", [YEARS, -YEARS])
def test_a_jump_at_any_look_at_the_clock_changes_nothing(
    jump: float, house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, work = observe(house), WORK["job"]
    counted = Clock().used(monkeypatch)
    work.run(shutil.copytree(house, tmp_path / "count"))
    assert counted.looks >= 5
    for at in range(1, counted.looks + 1):
        root = shutil.copytree(house, tmp_path / "trial")
        Clock(at, jump).used(monkeypatch)
        work.run(root)
        assert job_wrong(root, before["town"], True) == [], at
        work.run(root)  # asked again, the answer is the one that was kept
        assert verdict(work, root, before, before, True) == [], at
        shutil.rmtree(root)


@pytest.mark.parametrize("jumps", list(itertools.product(JUMPS, repeat=3)), ids="-".join)
def test_a_jump_between_any_two_steps_lets_nobody_take_or_lose_a_job(
    jumps: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock().used(monkeypatch)
    ours, theirs = JobStore(tmp_path, keep_hours=24), JobStore(tmp_path, keep_hours=24)
    job = ours.submit(ASKED["town"], "mark")
    clock.shift += JUMPS[jumps[0]]
    claimed = ours.claim()
    assert claimed.id == job.id
    clock.shift += JUMPS[jumps[1]]
    # The lease goes by the clock that never jumps: it is neither over nor renewed by the calendar.
    assert theirs.claim() is None
    assert ours.renew(job.id, "count", 0.5)
    clock.passed += job_store.LEASE + 1
    taken = theirs.claim()
    assert taken is not None, "a job whose process died was not taken up"
    assert taken.id == job.id
    assert not ours.renew(job.id, "count", 0.9)
    assert not ours.end(job.id, "done", answer="second")
    clock.shift += JUMPS[jumps[2]]
    assert theirs.end(job.id, "done", answer="first")
    # Another question cleans up, and what has just ended is kept, whatever the calendar says.
    theirs.submit(ASKED["shops"], "mark")
    found = ours.answer(job.id)
    assert found[0] == "first"


def test_a_claim_of_a_machine_that_was_started_again_is_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock().used(monkeypatch)
    store = JobStore(tmp_path, keep_hours=24)
    job = store.submit(ASKED["town"], "mark")
    assert store.claim() is not None
    clock.passed -= 86400.0  # the clock of the new start is behind the claim
    taken = JobStore(tmp_path, keep_hours=24).claim()
    assert taken.id == job.id
