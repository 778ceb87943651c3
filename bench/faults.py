"""How often Lustrum answers wrongly after a fault: never, over thousands of faults put in by hand, as markdown.

Run it from the root of the project: ``python bench/faults.py``; ``--quick`` puts in fewer, ``--part`` does one
part alone. Faults are calls to the system that fail, bits that flip, files that are cut, and processes that are
killed, also while they repair what an earlier kill has left. After each, what readers see is compared with the
old table and the new one. Then it measures how fast a large dataset is checked, as a share of the speed at
which one core reads memory.
"""

from __future__ import annotations

import argparse
import json
import math
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from parts.figures import record

ROOT = Path(__file__).parent.parent
# In the place of this folder, where this file has the name of the package of the tests.
sys.path[0] = str(ROOT / "tests")

from faults.injector import ERRORS, Faults  # noqa: E402
from faults.world import WORK, asked, build, observe, verdict  # noqa: E402
from lustrum.local import local_service  # noqa: E402
from lustrum.model import Axis, Dataset, LustrumError, TableQuery  # noqa: E402
from lustrum.model.errors import NotReadyError  # noqa: E402
from lustrum.tabulate import Secret, Store  # noqa: E402
from lustrum.tabulate.encode import Chunk  # noqa: E402
from lustrum.tabulate.store.files import SEGMENT, segment_tag  # noqa: E402

POLICY = 'dataset = "{name}"\n[rules]\n[risk]\nlimit = 1.0\n[protect]\nmethod = "random-rounding"\nend = true\n'


def failing_calls(where: Path, name: str, step: int) -> Iterator[str]:
    """One outcome for each call that failed: ``done``, ``refused``, or what was wrong."""
    work, place = WORK[name], where / name
    first = work.start(place / "first")
    old = work.changes == "upgrade"
    before = {} if old else observe(first)
    good = shutil.copytree(first, place / "good")
    work.run(good)
    after = {} if old else observe(good)
    # Twice: the first run imports and compiles, and copies are not among the calls that are counted.
    for again in ("warm", "count"):
        counted, root = Faults(), shutil.copytree(first, place / again)
        with counted.active():
            work.run(root)
    for at in range(1, len(counted.calls) + 1, step):
        for error in ERRORS:
            root = shutil.copytree(first, place / "trial")
            done = True
            faults = Faults(at, error, halves=at % 2 == 0)
            try:
                with faults.active():
                    work.run(root)
            except LustrumError:
                done = False
            assert faults.hit
            wrong = verdict(work, root, before, after, done)
            work.run(root)
            wrong += verdict(work, root, before, after, True)
            shutil.rmtree(root)
            yield wrong[0].partition(":")[0] if wrong else "done" if done else "refused"


def damaged_bytes(where: Path, step: int) -> Iterator[str]:
    """One outcome for each flipped bit and each cut: ``same``, ``refused``, or what was wrong."""
    root = build(where / "bytes")
    version = root / "town" / Store(root).version("town")
    right = asked(root, "town")
    for path in (
        version / "records.arrow",
        version / "keys.arrow",
        version / "dataset.json",
        root / "town" / "current",
        root / "record-keys.secret",
    ):
        raw = path.read_bytes()
        for place in range(0, len(raw), step):
            flipped = bytearray(raw)
            flipped[place] ^= 1 << (place % 8)
            for content in (bytes(flipped), raw[:place]):
                path.write_bytes(content)
                seen = asked(root, "town")
                answered = seen[0] == "answered"
                yield "same" if seen == right else "wrong" if answered else "refused"
        path.write_bytes(raw)
    from lustrum.policy.read import sealed

    path = root / "policies" / "town.toml"
    path.write_bytes(sealed(path.read_bytes(), "policy"))
    raw = path.read_bytes()
    for place in range(0, len(raw), step):
        flipped = bytearray(raw)
        flipped[place] ^= 1 << (place % 8)
        for content in (bytes(flipped), raw[:place]):
            path.write_bytes(content)
            yield "looser" if asked(root, "town")[0] == "answered" else "refused"
    path.write_bytes(raw)
    assert asked(root, "town") == right


def kills(where: Path, most: int, name: str) -> list[dict[str, int]]:
    """Kill at every step, and again while the kill is repaired."""
    done = subprocess.run(
        [sys.executable, "-m", "faults.kills", str(where / "kills"), str(most), name],
        cwd=ROOT / "tests",
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    sys.stderr.write(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def large_store(root: Path, records: int) -> None:
    """A dataset of so many records of ten variables, beside a small one, both with a policy."""
    rng = np.random.default_rng(1)
    rows = 1 << 20
    codes = [str(i) for i in range(50)]
    names = [f"v{i}" for i in range(10)]
    for name, count in (("large", records), ("small", rows // 64)):
        dataset = Dataset.from_mapping(
            {"dataset": {"name": name}, "variables": [{"name": n, "codes": codes} for n in names]}
        )
        drawn = {n: rng.integers(0, 50, rows, dtype=np.uint8) for n in names}
        keys = rng.integers(0, 2**63, rows, dtype=np.uint64)
        with Store(root).replace(dataset, Secret(bytes(range(32)))) as writer:
            for start in range(0, count, rows):
                size = min(rows, count - start)
                part = {n: column[:size] for n, column in drawn.items()}
                writer.write(Chunk(size, part, keys=keys[:size]))
        (root / "policies").mkdir(exist_ok=True)
        (root / "policies" / f"{name}.toml").write_text(POLICY.format(name=name))


def rates(path: Path) -> tuple[float, float, float]:
    """GB of a second of one processor's time: memory summed, the file mapped and summed, its digest made."""
    handle = os.open(path, os.O_RDONLY)
    size = os.fstat(handle).st_size // 8 * 8
    memory = np.zeros(size // 8, dtype=np.uint64)
    memory[:] = 3

    def summed() -> None:
        memory.sum()

    def mapped() -> None:
        with mmap.mmap(handle, size, prot=mmap.PROT_READ) as view:
            np.frombuffer(view, dtype=np.uint64).sum()

    def digest() -> None:
        for start in range(0, size, SEGMENT):
            segment_tag(handle, start)

    tasks = (summed, mapped, digest)
    best = dict.fromkeys(tasks, math.inf)
    for _ in range(9):  # in turn, so that a busy machine slows all alike
        for task in tasks:
            start = time.thread_time()
            task()
            best[task] = min(best[task], time.thread_time() - start)
    os.close(handle)
    read, again, check = (size / best[task] / 1e9 for task in tasks)
    return read, again, check


def opening(where: Path, records: int) -> None:
    """How fast a large dataset is checked, and how soon another one answers."""
    root = where / "large"
    root.mkdir()
    large_store(root, records)
    version = root / "large" / Store(root).version("large")
    size = sum(path.stat().st_size for path in version.glob("*.arrow"))
    read, mapped, check = rates(version / "records.arrow")
    service = local_service(root)
    service.check_in_background()
    query = {n: TableQuery(n, (Axis("v0"), Axis("v1"))) for n in ("large", "small")}
    service.answer(query["small"])  # compiled
    service = local_service(root)
    service.check_in_background()
    start = time.perf_counter()
    try:
        service.answer(query["large"])
        held_back = False
    except NotReadyError:
        held_back = True
    service.answer(query["small"])
    other = time.perf_counter() - start
    while True:
        try:
            service.answer(query["large"])
            break
        except NotReadyError:
            time.sleep(0.005)
    ready = time.perf_counter() - start
    print(f"\n{records:,} records of ten variables, {size / 1e9:.2f} GB, in the page cache:")
    for what, figure, unit in (
        ("one core sums 64-bit numbers in memory", read, "GB/s"),
        ("one core maps the file anew and sums it", mapped, "GB/s"),
        ("one thread reads the file and makes its digest", check, "GB/s"),
        ("digest against memory", check / read, "ratio"),
        ("digest against the mapped file", check / mapped, "ratio"),
        ("another dataset answers after", other, "s"),
        ("the large one is checked and answers after", ready, "s"),
        ("asked before it was checked, it was held back", "yes" if held_back else "no", ""),
    ):
        record("Checking a large dataset", {"what": what, "measured": figure, "unit": unit})


PARTS = ("calls", "bytes", "kills", "opening")


def main() -> None:
    """Print both tables; exit code 1 where anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="put in fewer faults")
    parser.add_argument("--part", action="append", choices=PARTS, help="this part; may be repeated")
    parser.add_argument("--records", type=int, default=0, help="records of the large dataset")
    parser.add_argument(
        "--folder", type=Path, help="where the large dataset is written for a while"
    )
    options = parser.parse_args()
    parts = options.part or PARTS
    step = 12 if options.quick else 1
    records = options.records or (4_000_000 if options.quick else 60_000_000)
    shared = Path("/dev/shm")
    bad = 0
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        where = Path(folder)
        recovered = 0
        if "calls" in parts:
            for name in WORK:
                found = Counter(failing_calls(where, name, step))
                bad += line(f"a call to the system fails: {name}", found)
                recovered += sum(found.values()) - found["wrong"]
        if "bytes" in parts:
            bad += line("bytes flipped or cut", Counter(damaged_bytes(where, step)))
        if "kills" in parts:
            for name in WORK:
                for entry in kills(where, 10 if options.quick else 100_000, name):
                    good = Counter(done=entry["kills"] - entry["wrong"], wrong=entry["wrong"])
                    bad += line(f"killed: {name}", good)
                    recovered += good["done"]
        if recovered:
            print(f"\nRecoveries without a hand: {recovered:,}.")
    if "opening" in parts:
        # On a disk, where data folders are; what was just written is still in the page cache.
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            opening(Path(folder), records)
    sys.exit(bool(bad))


def line(name: str, found: Counter[str]) -> int:
    """Print one line of the table; how many outcomes were bad."""
    worst = [found[kind] for kind in ("wrong", "looser", "lost")]
    other = (
        sum(found.values()) - sum(found[kind] for kind in ("done", "same", "refused")) - sum(worst)
    )
    worst[0] += other
    figures = {"faults": name, "injected": sum(found.values())}
    figures |= {"right answer or done": found["done"] + found["same"], "refused": found["refused"]}
    bad = dict(zip(("wrong", "looser", "lost or doubled"), worst, strict=True))
    record("Faults put in by hand", figures | bad)
    return sum(worst)


if __name__ == "__main__":
    main()
