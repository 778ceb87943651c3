"""A tiny agency: two datasets, their policies, the work done on them, and what is seen afterwards."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console

import small
from lustrum.answer import TableService
from lustrum.answer.archive import read_decision, write_decision
from lustrum.cli.protect import protect_dataset
from lustrum.local import local_service
from lustrum.model import Axis, Dataset, LustrumError, TableQuery
from lustrum.runtime.durable import write_whole
from lustrum.server.http.errors import ProblemError
from lustrum.server.service import job_store
from lustrum.server.service.job_store import JobStore
from lustrum.tabulate import FrameSource, Secret, Store, ingest
from lustrum.tabulate.keys import record_keys
from lustrum.tabulate.store.renewal import rotate, upgrade

__all__ = [
    "ASKED", "RECORDS", "WORK", "Seen", "Work", "asked", "build", "change", "described",
    "job_wrong", "observe", "released", "verdict",
]  # fmt: skip

OLD, NEW = 120, 150
SECRET = Secret(bytes(range(1, 33)))
POLICY = """dataset = "{name}"
[rules]
min_population = 10
disallowed = [["area", "trade"]]
[risk]
limit = 1.0
[protect]
method = "random-rounding"
base = {base}
end = true
"""
Seen = tuple[str, object]


def described(name: str) -> Dataset:
    return small.described(
        name, {"area": "NSW", "size": "12", "trade": "ab"}, head={"record_id": "id"}
    )


def people(count: int, seed: int) -> pa.Table:
    """Some records."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(count) * 3 + seed,
            "area": np.array(["N", "S", "W"])[rng.integers(0, 3, count)],
            "size": rng.integers(1, 3, count).astype(str),
            "trade": np.array(["a", "b"])[rng.integers(0, 2, count)],
        }
    )


def build(root: Path) -> Path:
    """The folder before any work."""
    for seed, name in enumerate(("shops", "town")):
        ingest(FrameSource(people(OLD, seed)), described(name), Store(root), secret=SECRET)
    (root / "policies").mkdir()
    for name in ("shops", "town"):
        write_whole(root / "policies" / f"{name}.toml", POLICY.format(name=name, base=3).encode())
    return root


RECORDS = {0: (120, 1), 1: (150, 9), 2: (90, 5)}
"""Which records a town may hold: how many, and their seed."""

ASKED = {
    name: TableQuery(name, (Axis("area", total=True), Axis("size", total=True)))
    for name in ("shops", "town")
}
FORBIDDEN = TableQuery("town", (Axis("area"), Axis("trade")))


def asked(root: Path, name: str, service: TableService | None = None) -> Seen:
    """What a reader sees of a dataset: its protected table, or that it is unavailable and why."""
    try:
        service = service or local_service(root, workers=1)
        decision = service.answer(ASKED[name])
    except LustrumError as error:
        return "unavailable", str(error)
    if decision.release is None:
        return "refused", tuple(reason.rule for reason in decision.reasons)
    return "answered", decision.release.published.tobytes()


def observe(root: Path) -> dict[str, Seen]:
    """What readers see of all datasets, and whether the forbidden table stays forbidden."""
    seen: dict[str, Seen] = {name: asked(root, name) for name in ASKED}
    try:
        decision = local_service(root, workers=1).answer(FORBIDDEN)
        seen["forbidden"] = ("refused" if decision.release is None else "answered", "")
    except LustrumError:
        seen["forbidden"] = ("refused", "")
    return seen


@dataclass(frozen=True)
class Work:
    """Something done to the folder, and the folder that it starts from."""

    run: Callable[[Path], object]
    changes: str = ""
    """The dataset whose table is another one afterwards; 'all' where every table may be."""
    start: Callable[[Path], Path] = build


def _ingest(root: Path) -> None:
    ingest(FrameSource(people(NEW, 9)), described("town"), Store(root))


def _policy(root: Path) -> None:
    path = root / "policies" / "town.toml"
    try:
        write_whole(path, POLICY.format(name="town", base=5).encode())
    except OSError as error:
        raise LustrumError(f"{path} could not be written: {error.strerror}.") from None


def _first_version(root: Path) -> Path:
    shutil.copytree(Path(__file__).parents[1] / "tabulate" / "first_version", root)
    (root / "secret.txt").rename(root / "record-keys.secret").chmod(0o600)
    for path in (root / "policies").iterdir():
        path.write_text(path.read_text() + "\nend = true\n")
    return root


def _answer(root: Path) -> bytes:
    decision = local_service(root, workers=1).answer(ASKED["town"])
    return decision.release.published.tobytes()


def _job(root: Path) -> None:
    """Hand in a job, and work until none is left, as a server does; a dead process is waited for no longer."""
    service = local_service(root, workers=1)
    lease, job_store.LEASE = job_store.LEASE, 0.0
    store = JobStore(root, keep_hours=24)
    try:
        store.submit(ASKED["town"], service.mark("town"))
        while (job := store.claim()) is not None:
            decision = service.answer(job.query)
            answer = write_decision(decision)
            store.end(job.id, "done", answer=answer, mark=service.mark("town"))
    except ProblemError as error:
        raise LustrumError(str(error.problem.detail)) from None
    finally:
        job_store.LEASE = lease


def job_wrong(root: Path, right: Seen, done: bool) -> list[str]:
    """A job that was handed in is there once, and its answer, if it has one, is the right one."""
    base = sqlite3.connect(root / "jobs.sqlite")
    try:
        rows = base.execute("select state, answer from job").fetchall()
    except sqlite3.OperationalError:
        rows = []  # the file was not begun
    finally:
        base.close()
    if len(rows) > 1:
        return ["doubled: a job is there twice"]
    if done and [state for state, _ in rows] != ["done"]:
        return [f"lost: the job is {rows and rows[0][0]}"]
    for _, answer in rows:
        release = read_decision(answer).release if answer else None
        if release is not None and release.published.tobytes() != right[1]:
            return ["wrong: the job has another answer"]
    return []


def released(root: Path, out: bool = True) -> Path:
    """A town whose first release is out, and whose records have changed since."""
    path = build(root) / "policies" / "town.toml"
    population = '[[before]]\nmethod = "protected-population"\nbase = 3\nsweeps = 1\n[protect]'
    rounded = 'method = "random-rounding"\nbase = 3'
    text = path.read_text().replace("[protect]", population).replace(rounded, 'method = "none"')
    path.write_text(text)
    if out:
        _protect(root)
    _ingest(root)
    return root


def _protect(root: Path) -> None:
    protect_dataset("town", root, Console(quiet=True), workers=1)


WORK = {
    "answer": Work(_answer),
    "job": Work(_job),
    "ingest": Work(_ingest, "town"),
    "policy": Work(_policy, "town"),
    "protect": Work(_protect, "town", released),
    "rotate": Work(lambda root: rotate(Store(root)), "all"),
    "upgrade": Work(lambda root: upgrade(Store(root)), "upgrade", _first_version),
}


def change(work: str, root: str, value: int) -> None:
    """Replace the records of the town, put another policy in place, or give all datasets a new secret."""
    if work == "ingest":
        source = FrameSource(people(*RECORDS[value]))
        ingest(source, described("town"), Store(Path(root)))
    elif work == "rotate":
        rotate(Store(Path(root)))
    else:
        try:
            raw = POLICY.format(name="town", base=value).encode()
            write_whole(Path(root) / "policies" / "town.toml", raw)
        except OSError as error:
            raise LustrumError(f"The policy could not be written: {error.strerror}.") from None


def rotated_right(root: Path, name: str) -> bool:
    """Whether the keys of a dataset are those of one secret that the folder holds, and no mixture."""
    store = Store(root)
    engine = store.open(name)
    secret = store.secret_of(engine.secret)
    for chunk in engine.chunks:
        wanted = record_keys(secret, name, chunk.ids["id"].astype(np.uint64))
        if chunk.keys is None or not np.array_equal(chunk.keys, wanted):
            return False
    return True


def verdict(
    work: Work, root: Path, before: dict[str, Seen], after: dict[str, Seen], done: bool
) -> list[str]:
    """What is wrong after a fault: nothing, if every reader sees the old table or the new one."""
    if work.changes == "upgrade":
        return _upgrade_verdict(root, done)
    seen = observe(root)
    wrong = job_wrong(root, before["town"], done) if work.run is _job else []
    if seen["forbidden"][0] != "refused":
        wrong.append("looser: the forbidden table was answered")
    for name in ASKED:
        if work.changes == "all":
            if seen[name][0] != "answered" or not rotated_right(root, name):
                wrong.append(f"lost: {name} is {seen[name]}")
            continue
        good = [after[name]] if done else [before[name], after[name]]
        if seen[name] not in good:
            kind = "wrong" if seen[name][0] == "answered" else "lost"
            wrong.append(f"{kind}: {name} is {seen[name]}")
    return wrong


def _upgrade_verdict(root: Path, done: bool) -> list[str]:
    store, wrong = Store(root), []
    for name in store.names():
        try:
            store.open(name)
        except LustrumError as error:
            if done or "run 'lustrum upgrade'" not in str(error):
                wrong.append(f"lost: {name}: {error}")
    if len(store.names()) != 2:
        wrong.append("lost: a dataset is gone")
    return wrong
