"""A PostgreSQL server and a Spark cluster for one test run: on free ports of loopback, gone afterwards."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
import ensure_services

OWNER = "agency"
READER = "lustrum"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _end_with_us() -> None:
    """A test run that is killed takes its servers along."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGINT)


@dataclass
class Postgres:
    """A running server; ``passwords`` are those of the owner of the records and of Lustrum's reader."""

    programs: Path
    folder: Path
    port: int = 0
    process: Any = None
    passwords: dict[str, str] = field(
        default_factory=lambda: {r: secrets.token_hex(12) for r in (OWNER, READER)}
    )

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def _as_user(self) -> dict[str, Any]:
        """PostgreSQL does not run as root; Debian's package made a user for it."""
        if os.geteuid() != 0:
            return {}
        names = {entry.pw_name for entry in pwd.getpwall()}
        user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def create(self) -> None:
        own = self._as_user()
        (self.folder / "pw").write_text(self.passwords[OWNER])
        if own:
            for path in (self.folder, self.folder / "pw"):
                os.chown(path, own["user"], own["group"])
        words = [f"--username={OWNER}", f"--pwfile={self.folder / 'pw'}", "--auth=scram-sha-256"]
        plain = ["--no-sync", "--encoding=UTF8", "--locale=C"]
        subprocess.run(
            [self.programs / "initdb", "-D", self.folder / "data", *words, *plain],
            check=True,
            capture_output=True,
            cwd="/",
            **own,
        )
        self.start()
        role = f"CREATE ROLE {READER} LOGIN PASSWORD '{self.passwords[READER]}'"
        self.execute(role, "CREATE DATABASE census")

    def start(self) -> None:
        for _ in range(5):  # somebody else may take a port that was free
            self.port = self.port or free_port()
            settings = {
                "listen_addresses": "127.0.0.1",
                "port": str(self.port),
                "unix_socket_directories": "",
                "fsync": "off",
                "log_statement": "all",
                "log_line_prefix": "%u|",
                "max_connections": "20",
                "shared_buffers": "16MB",
            }
            given = [word for k, v in settings.items() for word in ("-c", f"{k}={v}")]
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(
                    [self.programs / "postgres", "-D", self.folder / "data", *given],
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    cwd="/",
                    preexec_fn=_end_with_us,
                    **self._as_user(),
                )
            if self._answers():
                return
            self.stop()
            self.port = 0
        raise RuntimeError(f"PostgreSQL did not start: {self.log.read_text()[-2000:]}")

    def _answers(self) -> bool:
        import psycopg

        for _ in range(300):
            if self.process.poll() is not None:
                return False
            with contextlib.suppress(psycopg.OperationalError):
                self.connect("postgres").close()
                return True
            time.sleep(0.1)
        return False

    def connect(self, database: str = "census", role: str = OWNER) -> Any:
        import psycopg

        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=role,
            password=self.passwords[role],
            dbname=database,
            autocommit=True,
        )

    def execute(self, *statements: str) -> None:
        """Run statements as the owner; a database is made from another one."""
        for statement in statements:
            database = (
                "postgres" if " DATABASE " in statement or " ROLE " in statement else "census"
            )
            with self.connect(database) as connection:
                connection.execute(statement)

    def stop(self, how: int = signal.SIGINT) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    programs = ensure_services.postgres()
    if programs is None:
        raise FileNotFoundError("PostgreSQL")
    folder = Path(tempfile.mkdtemp(prefix="lustrum-pg-"))
    folder.chmod(0o755)
    server = Postgres(programs, folder)
    try:
        server.create()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java for less than a minute: what its best compiler costs would not come back."""


@dataclass
class Spark:
    """A standalone cluster of two workers."""

    folder: Path
    master: str
    workers: list[Any]

    @property
    def settings(self) -> dict[str, str]:
        """Settings of a session for small tables on this machine."""
        return {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": SHORT_LIVED,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": SHORT_LIVED,
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            "spark.ui.showConsoleProgress": "false",
        }

    def lose_a_worker(self) -> None:
        """Kill a worker and its executor, as a machine that goes out does."""
        pid = self.workers[0].pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        self.workers[0].kill()
        self.workers[0].wait()


@contextlib.contextmanager
def spark() -> Iterator[Spark]:
    if ensure_services.java() is None:
        raise FileNotFoundError("Java")
    import pyspark

    home = Path(pyspark.__file__).parent
    folder = Path(tempfile.mkdtemp(prefix="lustrum-spark-"))
    port = free_port()
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(home),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
        "SPARK_LOCAL_DIRS": str(folder),
    }
    started: list[Any] = []

    def start(kind: str, *words: str) -> Any:
        name = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
        log = (folder / f"{kind}{len(started)}.log").open("wb")
        with log:
            process = subprocess.Popen(
                [
                    home / "bin" / "spark-class", name, "--host", "127.0.0.1", "--webui-port", "0",
                    *words,
                ],
                env=environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=folder,
                preexec_fn=_end_with_us,
            )  # fmt: skip
        started.append(process)
        return process

    try:
        master = f"spark://127.0.0.1:{port}"
        start("Master", "--port", str(port))
        _wait_for(port)
        words = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work"))
        workers = [start("Worker", *words, master) for _ in range(2)]
        yield Spark(folder, master, workers)
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(port: int) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError("The master of the cluster did not start.")
