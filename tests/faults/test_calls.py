"""Every call to the system fails once: the right answer or a clear refusal, and nothing lost."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from faults.injector import ERRORS, Faults
from faults.world import WORK, Work, build, observe, verdict
from lustrum.model import LustrumError


def attempt(work: Work, root: Path, faults: Faults) -> tuple[bool, str]:
    """Whether the work was done, and what it said otherwise; anything but a sentence is a failure."""
    try:
        with faults.active():
            work.run(root)
    except LustrumError as error:
        return False, str(error)
    return True, ""


def swept(name: str, tmp_path: Path, errors: tuple[int, ...], step: int, halves: bool) -> int:
    """Put a fault into every ``step``-th call and hold each outcome to the model; how many there were."""
    work = WORK[name]
    first = work.start(tmp_path / "first")
    before = {} if work.changes == "upgrade" else observe(first)
    whole = Faults()
    good = shutil.copytree(first, tmp_path / "good")
    attempt(work, good, whole)  # warm: nothing is imported or compiled from now on
    good = shutil.copytree(first, tmp_path / "again")
    whole = Faults()
    assert attempt(work, good, whole) == (True, "")
    after = {} if work.changes == "upgrade" else observe(good)
    tried = 0
    for error in errors:
        for at in range(1, len(whole.calls) + 1, step):
            if halves and whole.calls[at - 1] != "write":
                continue  # only a write can be done by half
            root = shutil.copytree(first, tmp_path / "trial")
            faults = Faults(at, error, halves=halves)
            done, sentence = attempt(work, root, faults)
            if not faults.hit and at + step > len(whole.calls):
                # Now and then the work makes a call fewer; without a fault it is done.
                assert (done, sentence) == (True, ""), (
                    f"{name}, {len(faults.calls)} calls: {sentence}"
                )
                shutil.rmtree(root)
                break
            assert faults.hit, f"{name}: {len(faults.calls)} calls, and {len(whole.calls)} before."
            said = f"{name}, call {at} ({faults.calls[at - 1]}), {os.strerror(error)}: {sentence}"
            assert done or (sentence.endswith(".") and "\n" not in sentence), said
            assert verdict(work, root, before, after, done) == [], said
            # Without a fault the same work is done, whatever the fault left behind.
            work.run(root)
            assert verdict(work, root, before, after, True) == [], said
            shutil.rmtree(root)
            tried += 1
    return tried


@pytest.mark.parametrize("name", WORK)
def test_one_failing_call_gives_the_right_answer_or_a_refusal(name: str, tmp_path: Path) -> None:
    # Policies make few calls: many of them, and some of the others; `make deep` lets all of them fail.
    step = {"answer": 5, "policy": 3, "protect": 41}.get(name, 19)
    assert swept(name, tmp_path, (ERRORS[0],), step, False) > 1


@pytest.mark.deep
@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("halves", [False, True])
def test_every_call_fails_once_with_every_error(name: str, halves: bool, tmp_path: Path) -> None:
    assert swept(name, tmp_path, ERRORS, 1, halves) >= (0 if halves else 18)


def test_the_injector_counts_and_fails_where_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with Faults().active() as counted:
        path.write_bytes(b"all")
    assert counted.calls == ["open"]
    with pytest.raises(OSError, match="Input/output error"), Faults(1).active():
        path.read_bytes()
    assert path.read_bytes() == b"all"


def test_the_world_tells_a_wrong_number_and_a_looser_policy(tmp_path: Path) -> None:
    """The model would notice: a table of other records, and rules that were lost."""
    root = build(tmp_path / "data")
    before = observe(root)
    WORK["ingest"].run(root)
    assert verdict(WORK["answer"], root, before, before, True)
    path = root / "policies" / "town.toml"
    path.write_text(path.read_text().replace("disallowed", "at_most_one").replace("trade", "size"))
    assert any("looser" in w for w in verdict(WORK["ingest"], root, before, observe(root), True))


def test_calls_of_threads_that_run_already_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "file"
    begin, ended = threading.Event(), threading.Event()

    def other() -> None:
        begin.wait()
        path.write_bytes(b"other")
        ended.set()

    failed = []

    def failing() -> None:
        with pytest.raises(OSError, match="Input/output"):
            path.read_bytes()
        failed.append(True)

    thread = threading.Thread(target=other)
    thread.start()
    with Faults(1).active() as counted:
        begin.set()
        ended.wait()
        fresh = threading.Thread(target=failing)
        fresh.start()
        fresh.join()
    thread.join()
    assert path.read_bytes() == b"other"
    assert failed == [True]
    assert counted.hit
