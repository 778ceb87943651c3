"""The process that holds the records logs as the server does, and never a number from the data."""

from __future__ import annotations

import json
import logging
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from answer.conftest import SECRET, people, town
from lustrum.answer import TableService
from lustrum.model import DatasetError, PolicyError, TableQuery
from lustrum.publish.records.process import RequestHandler
from lustrum.runtime import log_lines
from lustrum.tabulate import FrameSource, Store, ingest

POLICY = 'dataset = "town"\n[rules]\n[risk]\nlimit = 1.0\n[protect]\nmethod = "random-rounding"\nend = true\n'
QUERY = TableQuery.from_mapping({"dataset": "town", "by": ["age", "job"]})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    ingest(FrameSource(people()), town(), Store(root), secret=SECRET)
    (root / "policies").mkdir()
    (root / "policies" / "town.toml").write_text(POLICY)
    return root


@pytest.fixture
def lines() -> Iterator[None]:
    """Lines of JSON in this process, and the loggers as they were afterwards."""
    loggers = [logging.getLogger(name) for name in ("lustrum", "uvicorn", "uvicorn.error")]
    before = [(log, log.handlers, log.propagate, log.level) for log in loggers]
    assert log_lines.level_in_force() is None
    log_lines.set_up("info")
    yield
    for log, handlers, propagate, level in before:
        log.handlers, log.propagate = handlers, propagate
        log.setLevel(level)


@pytest.mark.usefixtures("lines")
def test_the_process_writes_the_lines_of_the_server(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert log_lines.level_in_force() == "info"
    service = TableService(root, workers=1)
    try:
        assert service.answer(QUERY).released
        keys = next(root.glob("town/*/keys.arrow"))
        raw = bytearray(keys.read_bytes())
        raw[len(raw) // 2] ^= 1
        keys.write_bytes(raw)
        with pytest.raises(DatasetError):
            service.answer(QUERY)
    finally:
        service.close()
    written = capfd.readouterr().err.splitlines()
    found = [json.loads(line) for line in written]
    assert any("keys.arrow does not hold what was written" in line["event"] for line in found)
    for line in found:
        assert {"time", "level", "event"} <= set(line)
        if line["event"].startswith("Still compiling: "):
            continue  # on a slow machine, with the number of loops
        # Apart from the name of the folder, which is a digest, no digit is said.
        assert not re.search(r"\d", line["event"].replace(str(keys.parent), "")), line


def test_a_server_and_its_records_write_nothing_but_lines_of_json(root: Path) -> None:
    """By the command itself: the process of the records is started before the server listens."""
    command = [sys.executable, "-m", "lustrum", "serve", "--data", str(root), "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, "--logs", "info"], text=True, **pipes) as process:  # type: ignore[call-overload]
        address = process.stdout.readline().split()[-1]
        (root / "record-keys.secret").chmod(0o644)
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(f"{address}/api/v1/tables?dataset=town&by=age", timeout=300)
        process.terminate()
        written = process.stderr.read()
    events = [json.loads(line)["event"] for line in written.splitlines()]
    assert any("record-keys.secret is open to others" in event for event in events)


def test_a_process_without_lines_is_told_nothing(root: Path) -> None:
    service = TableService(root, workers=1)
    try:
        assert service.answer(QUERY).released
        assert "--logs" not in service._records._line._process.args  # type: ignore[union-attr]
    finally:
        service.close()


def test_a_reason_of_a_method_stays_out_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class RecordsService:
        def views(self, *_: object) -> None:
            raise PolicyError("There are only 17 records in a stratum.")

        def names(self) -> list[str]:
            raise ZeroDivisionError("17 over 0")

    handler = RequestHandler(RecordsService())  # type: ignore[arg-type]
    policy = '{"dataset": "town"}'
    assert handler.reply(("views", QUERY.to_mapping(), policy)) == ("policy", None)
    assert handler.reply(("describe", "town", None)) == ("broken", None)
    assert len(caplog.messages) == 2
    assert "cannot protect the input" in caplog.messages[0]
    assert caplog.messages[1].startswith("cannot answer: ZeroDivisionError at ")
    assert not any("17" in text.partition(" at ")[0] for text in caplog.messages)


@pytest.mark.parametrize("where", ["process", "thread"])
def test_an_exception_that_nobody_caught_leaves_no_text(where: str, tmp_path: Path) -> None:
    program = tmp_path / "stray.py"
    program.write_text(
        "import sys, threading\nfrom lustrum.runtime import log_lines\n"
        "log_lines.set_up('info')\nlog_lines.log_strays()\n"
        "def fail():\n    raise ValueError('a count of 4711')\n"
        "if sys.argv[1] == 'thread':\n"
        "    thread = threading.Thread(target=fail)\n    thread.start()\n    thread.join()\n"
        "else:\n    fail()\n"
    )
    done = subprocess.run(
        [sys.executable, str(program), where], capture_output=True, text=True, check=False
    )
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["event"].startswith("not caught: ValueError at ")
    assert "4711" not in done.stderr
    shutil.rmtree(tmp_path)
