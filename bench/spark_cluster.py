"""Blocks of a population on a standalone Spark cluster of this machine, beside one process.

    python bench/spark_cluster.py --areas 2000 --people 150000 --blocks 8 --workers 1 2
    python bench/spark_cluster.py --areas 200 --people 20000 --kill executor worker driver --times 5

A master and workers with one core each run as processes of their own, with encrypted traffic and disks. The
people are a table of a catalogue in a folder, and ``lustrum protect`` runs as the page on Spark says. Its
bundle has the bytes of the one that a single process makes of a Parquet file. CPU is that of all processes of
the cluster together, from its start to its end, of which Java's and that of the workers' Python are named;
memory of the driver is the sum of the peaks of its processes.
``--kill`` ends a process of that kind without warning while blocks are protected; after a lost driver the
command is given again.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from parts.figures import record
from protected_areas import POLICY, draw, people_description

from lustrum.tabulate import Secret

LUSTRUM = [sys.executable, "-m", "lustrum"]
SAVE = """
import sys, tomllib
from pyspark.sql import SparkSession
words = tomllib.load(open("spark.toml", "rb"))
builder = SparkSession.builder.master(words["master"])
for name, value in words["settings"].items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
session.sql("CREATE DATABASE IF NOT EXISTS census")
session.read.parquet("people.parquet").write.saveAsTable("census.people")
"""
CLASSES = {"executor": "CoarseGrainedExecutorBackend", "worker": "deploy.worker.Worker"}
SOURCE = Path(__file__).parents[1] / "src"
# Compiling thoroughly pays only in a Java that runs for long.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def toml(words: Mapping[str, Any]) -> str:
    """A description in TOML, nested tables inline."""

    def inline(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{json.dumps(k)} = {inline(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(inline, value)) + "]"
        return json.dumps(value)

    return "".join(f"{name} = {inline(value)}\n" for name, value in words.items())


def people(folder: Path, areas: int, count: int, blocks: int, sweeps: int) -> None:
    """Write the people, their description and their policy."""
    words = people_description(areas)
    codes = [code for code, _ in words["variables"][0]["codes"]]
    groups = [
        {"code": f"B{n}", "members": [str(code) for code in chosen]}
        for n, chosen in enumerate(np.array_split(np.array(codes), blocks))
    ]
    levels = [{"name": "block", "groups": groups}]
    words["variables"][0]["hierarchies"] = [{"name": "blocks", "levels": levels}]
    words["dataset"] |= {"record_id": "id", "blocks": "area:block"}
    (folder / "people.toml").write_text(toml(words))
    (folder / "policy.toml").write_text(POLICY.format(sweeps=sweeps, extra=200))
    drawn = list(draw(areas, count))
    columns = {}
    for variable in words["variables"]:
        own = [c if isinstance(c, str) else c[0] for c in variable["codes"]]
        rows = np.concatenate([chunk.codes[variable["name"]] for chunk in drawn])
        columns[variable["name"]] = pa.array(np.array(own)[rows])
    pq.write_table(pa.table({"id": np.arange(count), **columns}), folder / "people.parquet")


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """A master and so many workers; ends them, and waits for all that they have started."""
    import pyspark

    conf = folder / "conf"
    conf.mkdir(exist_ok=True)
    settings = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secrets.token_hex(16),
        "spark.network.crypto.enabled": "true",
        "spark.io.encryption.enabled": "true",
        "spark.pyspark.python": sys.executable,
        "spark.local.dir": str(folder / "local"),
    }
    (conf / "spark-defaults.conf").write_text("".join(f"{k} {v}\n" for k, v in settings.items()))
    os.environ |= {"SPARK_CONF_DIR": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}
    os.environ |= {"SPARK_HOME": str(Path(pyspark.__file__).parent), "PYTHONPATH": str(SOURCE)}
    os.environ |= {"SPARK_DAEMON_JAVA_OPTS": JAVA}
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    master, home = f"spark://127.0.0.1:{port}", Path(pyspark.__file__).parent
    place = ["--host", "127.0.0.1", "--webui-port", "0"]
    parts = [["master.Master", *place, "--port", str(port)]]
    for number in range(workers):
        size = ["-c", "1", "-m", "2g", "-d", str(folder / f"worker{number}")]
        parts.append(["worker.Worker", *place, *size, master])
    started = []
    try:
        with (folder / "cluster.log").open("ab") as log:
            for name, *words in parts:
                command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
                started.append(subprocess.Popen([*command, *words], stdout=log, stderr=log))
                _listening(port)
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()
        _reaped()


def _listening(port: int) -> None:
    for _ in range(600):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit("The master of the cluster does not listen.")


def _reaped() -> None:
    """Wait for processes whose parents are gone; they became ours."""
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def connection(folder: Path, master: str, workers: int) -> None:
    """The connection that the page on Spark describes, with a catalogue in a folder."""
    words = {
        "backend": "spark",
        "master": master,
        "table": "census.people",
        "keys": "census.people_keys",
        "settings": {
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.driver.extraJavaOptions": f"{JAVA} -Dderby.system.home={folder / 'catalogue'}",
            "spark.executor.extraJavaOptions": JAVA,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.executor.memory": "1g",
            "spark.executor.cores": "1",
            "spark.cores.max": str(workers),
            "spark.sql.shuffle.partitions": "8",
        },
    }
    (folder / "spark.toml").write_text(toml(words))


def run(folder: Path, *words: str) -> None:
    """A command that has to succeed."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{words[:4]}: {done.stderr[-3000:]}")


def prepared(folder: Path, data: str, *source: str) -> None:
    """A data folder with the records, the secret and the policy."""
    root = folder / data
    (root / "policies").mkdir(parents=True)
    Secret(bytes(range(32))).write(root / "record-keys.secret")
    (root / "policies" / "areas.toml").write_text((folder / "policy.toml").read_text())
    described = ("--description", "people.toml", "--data", data)
    if "--connection" in source:
        run(folder, *LUSTRUM, "keys", *described, *source)
    run(folder, *LUSTRUM, "ingest", *described, *source)


class Protecting:
    """A running ``lustrum protect``: the memory of its processes, and the CPU of all below this one by kind."""

    def __init__(self, folder: Path, data: str) -> None:
        self._peaks: dict[int, int] = {}
        self._used: dict[int, tuple[str, float]] = {}
        with (folder / f"{data}.log").open("ab") as log:
            command = [*LUSTRUM, "protect", "--dataset", "areas", "--data", data]
            self.process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while self.process.poll() is None:
            for pid in (self.process.pid, *children(self.process.pid)):
                try:
                    status = Path(f"/proc/{pid}/status").read_text()
                    self._peaks[pid] = int(status.split("VmHWM:")[1].split()[0])
                except (OSError, IndexError):
                    continue
            for pid, words in below():
                with suppress(OSError):
                    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
                    # One that has ended, and that nobody has waited for, has no command.
                    words = words or self._used.get(pid, ("",))[0]
                    self._used[pid] = words, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
            time.sleep(0.2)

    def cpu(self, word: str) -> float:
        """CPU seconds of the processes whose command holds a word."""
        return sum(seconds for words, seconds in self._used.values() if word in words)

    @property
    def peak(self) -> float:
        """GiB at most, each process at its own time."""
        return sum(self._peaks.values()) / 2**20


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    try:
        lists = [p.read_text() for p in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [int(child) for one in lists for child in one.split()]


def below() -> Iterator[tuple[int, str]]:
    """All processes below this one, and their commands."""
    left = children(os.getpid())
    while left:
        pid = left.pop()
        left += children(pid)
        with suppress(OSError):
            yield pid, Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def found(kind: str) -> list[int]:
    """The processes of a kind below this one."""
    return [pid for pid, words in below() if CLASSES[kind] in words and "java" in words]


def cpu() -> float:
    """CPU seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def same(folder: Path) -> bool:
    """Whether both bundles have the same bytes."""
    ours, theirs = (
        {file.name: file.read_bytes() for file in (folder / data / "bundles" / "areas").iterdir()}
        for data in ("one", "many")
    )
    return ours == theirs


def alone(folder: Path) -> dict[str, Any]:
    """One process with a Parquet file."""
    prepared(folder, "one", "people.parquet")
    before, clock = cpu(), time.perf_counter()
    work = Protecting(folder, "one")
    if work.process.wait():
        raise SystemExit((folder / "one.log").read_text()[-3000:])
    return {"work": "one process", **figures(work, before, clock)}


def figures(work: Protecting, before: float, clock: float) -> dict[str, float]:
    """What everything since some moment took."""
    # PySpark's daemon waits for no worker, so that no figure of the system holds what they have used.
    return {
        "CPU (s)": cpu() - before + work.cpu("pyspark.daemon"),
        "of Java (CPU s)": work.cpu("java"),
        "of workers (CPU s)": work.cpu("pyspark.daemon"),
        "clock (s)": time.perf_counter() - clock,
        "peak of the driver (GiB)": work.peak,
    }


def on_workers(folder: Path, workers: int, kill: str | None, moment: float) -> dict[str, Any]:
    """The cluster; one process of a kind is killed so many seconds after the first executor came."""
    _forget(folder)
    before, clock = cpu(), time.perf_counter()
    with cluster(folder, workers) as master:
        connection(folder, master, workers)
        # The place of a connection is kept with the records: the new master takes the place of the old one.
        kept = folder / "many" / "connections" / "areas.json"
        words = json.loads(kept.read_text())
        words["connection"]["master"] = master
        words["connection"]["settings"]["spark.cores.max"] = str(workers)
        kept.write_text(json.dumps(words))
        work = Protecting(folder, "many")
        if kill is not None:
            while work.process.poll() is None and not found("executor"):
                time.sleep(0.1)
            time.sleep(moment)
            gone = [work.process.pid] if kill == "driver" else found(kill)[:1]
            if work.process.poll() is not None or not gone:
                raise SystemExit("Everything was over before anything was killed.")
            os.kill(gone[0], signal.SIGKILL)
        if work.process.wait() and kill == "driver":
            work = Protecting(folder, "many")
        if work.process.wait():
            raise SystemExit((folder / "many.log").read_text()[-3000:])
    if "No module named 'lustrum'" in (folder / "many.log").read_text():
        raise SystemExit(
            "The workers have no Lustrum, so that blocks were protected in the driver."
        )
    name = f"{workers} workers" + (f", {kill} killed" if kill else "")
    return {"work": name, **figures(work, before, clock)}


def _forget(folder: Path) -> None:
    """Take back an earlier release, so that the next one is a first one again."""
    shutil.rmtree(folder / "many", ignore_errors=True)
    (folder / "many.log").unlink(missing_ok=True)
    shutil.copytree(folder / "before", folder / "many")


def main() -> None:
    """Protect the same people in one process and on a cluster, and kill some of its processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--areas", type=int, default=2_000)
    parser.add_argument("--people", type=int, default=150_000)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--sweeps", type=int, default=12)
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    parser.add_argument("--kill", nargs="*", choices=("executor", "worker", "driver"), default=[])
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--data", type=Path, help="a folder for people and tables, to use again")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the cluster too
    ctypes.CDLL(None).prctl(36, 1)  # orphans become ours, so that their CPU is counted
    title = f"Spark: {asked.areas:,} areas, {asked.people:,} people, {asked.blocks} blocks"
    with tempfile.TemporaryDirectory() as name:
        folder = (asked.data or Path(name)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "people.parquet").is_file():
            people(folder, asked.areas, asked.people, asked.blocks, asked.sweeps)
        if not (folder / "one.json").is_file():
            shutil.rmtree(folder / "one", ignore_errors=True)
            (folder / "one.json").write_text(json.dumps(alone(folder)))
        one = json.loads((folder / "one.json").read_text())
        record(title, one | {"CPU to one process": 1.0, "same bytes": "yes"})
        if not (folder / "before").is_dir():
            with cluster(folder, 1) as master:
                connection(folder, master, 1)
                run(folder, sys.executable, "-c", SAVE)
                prepared(folder, "begun", "--connection", "spark.toml")
            (folder / "begun").rename(folder / "before")
        # Nothing is killed before executors have work: a second for them to start, then any moment.
        chance = np.random.default_rng(5)
        for workers in asked.workers:
            for kill in (None, *asked.kill):
                for _ in range(asked.times if kill else 1):
                    row = on_workers(folder, workers, kill, float(chance.uniform(1, 12)))
                    ratio = row["CPU (s)"] / one["CPU (s)"]
                    equal = "yes" if same(folder) else "no"
                    record(title, row | {"CPU to one process": ratio, "same bytes": equal})
                    if equal == "no":
                        raise SystemExit("The bundles differ.")


if __name__ == "__main__":
    main()
