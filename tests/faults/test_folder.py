"""A full disk, a folder that may only be read, two servers on one folder: one sentence, and nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from faults.world import WORK, build, observe, released
from lustrum.local import local_service
from lustrum.model import LustrumError
from lustrum.public.bundle import read_bundle
from lustrum.server import create_app
from waiting import until

TABLE = "/api/v1/tables?dataset=town&by=area&by=size"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one MiB, where this user may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(path: Path, left: int) -> None:
    """Leave so many bytes on the disk, or a few more."""
    free = os.statvfs(path.parent).f_bavail * os.statvfs(path.parent).f_bsize
    path.write_bytes(b"x" * (free - left))


@pytest.mark.parametrize("first", [True, False], ids=["first release", "later release"])
def test_protect_on_a_full_disk_is_one_sentence_and_leaves_nothing_half(
    disk: Path, tmp_path: Path, first: bool
) -> None:
    start = released(tmp_path / "start", out=not first)
    good = shutil.copytree(start, tmp_path / "good")
    WORK["protect"].run(good)
    right = read_bundle(good / "bundles" / "town").digest
    refused = 0
    for left in range(0, 64 << 10, 16 << 10):
        root = shutil.copytree(start, disk / "data")
        before = {str(path) for path in root.rglob("*")}
        fill(disk / "other", left)
        said = ""
        try:
            WORK["protect"].run(root)
        except LustrumError as error:
            said = str(error)
        if said:
            refused += 1
            assert said.endswith("cannot be written: No space left on device.")
            assert "\n" not in said
            if first and not (root / "bundles" / "town").exists():
                new = {str(path) for path in root.rglob("*") if path.is_file()} - before
                # What was entered before the bundle was written counts as released.
                own = {name for name in new if "ledger" not in Path(name).parts}
                assert {Path(name).name for name in own} <= {
                    "search.state",
                    "acts.jsonl",
                    ".acts.lock",
                }
        assert not list(root.rglob("*.part"))
        (disk / "other").unlink()
        WORK["protect"].run(root)  # no hand is needed
        assert read_bundle(root / "bundles" / "town").digest == right
        shutil.rmtree(root)
    assert refused > 1


@pytest.mark.parametrize("name", ["ingest", "policy", "protect", "rotate"])
def test_a_folder_that_may_only_be_read_is_said_so_and_still_answers(name: str, disk: Path) -> None:
    root = released(disk / "data")
    before = observe(root)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(LustrumError, match=r"Read-only file system\.$"):
        WORK[name].run(root)
    assert observe(root) == before
    if name == "protect":
        with TestClient(create_app(local_service(root, workers=1))) as client:
            assert client.get("/health/ready").json()["status"] == "ready"
            assert client.get(TABLE).status_code == 200
            job = client.post("/api/v1/jobs", json={"dataset": "town", "by": ["size"]})
            assert (job.status_code, job.json()["status"]) == (503, 503)


def test_two_servers_on_one_folder_answer_alike_and_share_jobs(tmp_path: Path) -> None:
    root = build(tmp_path / "data")
    apps = [create_app(local_service(root, workers=1)) for _ in range(2)]
    with TestClient(apps[0]) as one, TestClient(apps[1]) as two:
        asked = {"dataset": "town", "by": ["area", "size"]}
        jobs = [c.post("/api/v1/jobs", json=asked).headers["location"] for c in (one, two)]
        assert jobs[0] == jobs[1]
        until(lambda: all(c.get(jobs[0]).json()["state"] == "done" for c in (one, two)))
        answers = [client.get(f"{jobs[0]}/result").content for client in (one, two)]
        assert answers[0] == answers[1]
        WORK["policy"].run(root)
        assert [c.get(f"{jobs[0]}/result").status_code for c in (one, two)] == [409, 409]
