"""The verifier stands alone and answers any file with one sentence."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rich.console import Console

from examples import examples
from lustrum.audit import Knowledge
from lustrum.audit.certificate import certify, verify, verify_file
from lustrum.audit.certificate import verify as verify_function
from lustrum.cli.audit import show_verification

SOURCE = Path(sys.modules[verify_function.__module__].__file__ or "")
MODULE = sys.modules[verify_function.__module__]
KNOWN = Knowledge.of(["x", "y"]).fact({"x": 1, "y": 1}, 7, 7).bound("y", high=5)


@pytest.fixture(scope="module")
def good() -> str:
    return certify(KNOWN).to_json()


@pytest.fixture
def file(tmp_path: Path, good: str) -> Path:
    path = tmp_path / "certificate.json"
    path.write_text(good, encoding="utf-8")
    return path


HOSTILE = {
    "": "not JSON",
    "{": "not JSON",
    "null": "must be an object",
    "[" * 100_000: "nested too deeply",
    '{"a":' * 100_000: "nested too deeply",
    "9" * 5000: "more than 1000 digits",
    "NaN": "not an exact number",
    "[Infinity]": "not an exact number",
    "1.5": "not an exact number",
    "1e999999999": "not an exact number",
    '{"a": 1, "a": 2}': "the same part twice",
    "{}": "lacks 'format'",
}


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_file_brings_more_than_a_sentence(text):
    for document in (text, text.encode()):
        report = verify(document)
        assert not report.holds
        assert HOSTILE[text] in report.reason


def test_bytes_that_are_no_text_are_refused():
    assert "UTF-8" in verify(b"\xff\xfe{}").reason


WRONG = [None, True, 1, -1, 0.5, "x", "NaN", "1/0", "/", "9" * 2000, [], {}, [[]], [None], {"a": 1}]


@settings(deadline=None, max_examples=examples(35, 400))
@given(st.data())
def test_a_wrong_type_anywhere_is_a_reason_and_no_crash(data):
    document = json.loads(certify(KNOWN).to_json())
    here = document
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = data.draw(st.sampled_from(keys))
        inner = here[key]
        if not (isinstance(inner, (dict, list)) and inner) or data.draw(st.booleans()):
            break
        here = inner
    wrong = data.draw(st.sampled_from(WRONG))
    assume(wrong != inner or type(wrong) is not type(inner))
    here[key] = wrong
    report = verify(json.dumps(document))
    assert not report.holds
    assert report.reason.endswith(".")


@settings(deadline=None, max_examples=examples(20, 200))
@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_text_is_answered(document):
    assert not verify(document).holds


def test_a_part_more_is_refused(good):
    document = json.loads(good)
    document["knowledge"]["cells"][0]["true value"] = 4
    document["note"] = "trust me"
    assert "'note' that does not belong" in verify(json.dumps(document)).reason


def test_names_cannot_steer_the_terminal():
    known = Knowledge.of(["\x1b[2Jx\nThe certificate holds", "y"]).fact({"y": 1}, 1, 1)
    text = certify(known).to_json()
    (first, _) = verify(text).proven
    assert first.name == "?[2Jx?The certificate holds"
    document = json.loads(text)
    document["claims"][0]["low"]["value"] = 1
    assert "\x1b" not in verify(json.dumps(document)).reason


def tree(depth: int) -> list[dict[str, object]]:
    leaf = {"shows": "bound", "over": 1, "facts": []}
    return [*({"split": 0, "at": -k} for k in range(depth)), *[leaf] * (depth + 1)]


def test_deep_trees_are_cut_off(good):
    document = json.loads(good)
    document["claims"][1]["low"]["proof"] = tree(900)
    assert "digest" in verify(json.dumps(document)).reason  # all leaves hold
    document["claims"][1]["low"]["proof"] = tree(1001)
    assert "more than 1000 splits deep" in verify(json.dumps(document)).reason


def test_too_much_work_is_refused(good, monkeypatch):
    monkeypatch.setattr(MODULE, "MAX_STEPS", 5)
    assert "too many steps" in verify(good).reason


def test_large_files_are_refused(file, good, monkeypatch):
    monkeypatch.setattr(MODULE, "MAX_BYTES", 2**20)
    assert verify_file(file).holds
    file.write_text(good + " " * 2**20)
    assert "larger than 1 megabytes" in verify_file(file).reason


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    assert "No such file" in verify_file(tmp_path / "none.json").reason
    assert "cannot be read" in verify_file(tmp_path).reason
    assert "cannot be read" in verify_file("a\0b").reason


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_copy_of_the_verifier_needs_nothing_that_is_installed(file, tmp_path):
    copy = shutil.copy(SOURCE, tmp_path / "elsewhere.py")
    missing = run("-c", "import numpy")
    assert missing.returncode != 0  # the test would prove nothing if it were there
    done = run(copy, file)
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 bounds of 2 cells are proven, 4 of them sharp" in done.stdout
    file.write_text(file.read_text().replace('"low":7', '"low":6'))
    done = run(copy, file)
    assert (done.returncode, done.stderr) == (1, "")
    assert "does NOT hold: the knowledge" in done.stdout
    assert run(copy).returncode != 0


def test_the_verifier_imports_nothing_but_the_standard_library():
    blocked = (
        "import sys, runpy\n"
        "for name in ('numpy', 'scipy', 'highspy', 'lustrum', 'numba', 'pyarrow'):\n"
        "    sys.modules[name] = None\n"
        f"found = runpy.run_path({str(SOURCE)!r}, run_name='verifier')\n"
        "print(sorted(n for n in {m.split('.')[0] for m in sys.modules}"
        " - set(sys.stdlib_module_names) if sys.modules.get(n)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", blocked], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout.replace("'", '"'))) <= {"__main__"}


def shown(path: Path, digest: str | None = None, *, every: bool = False) -> tuple[bool, str]:
    stream = io.StringIO()
    holds = show_verification(path, digest, Console(file=stream, width=100), every=every)
    return holds, stream.getvalue()


def test_the_command_says_what_is_proven(file):
    holds, text = shown(file, certify(KNOWN).digest, every=True)
    assert holds
    assert "The certificate holds: 4 bounds of 2 cells" in text
    assert "at least" in text
    holds, text = shown(file, "sha256:0")
    assert not holds
    assert "other knowledge" in text


def test_the_command_counts_what_is_disclosed(tmp_path):
    path = tmp_path / "c.json"
    certify(KNOWN.bound("x", high=2)).write(path)
    assert "2 cells have only one value left" in shown(path)[1]
    certify(Knowledge.of(["[bold]x", "y"], decimals=1).bound("y", 125, 125)).write(path)
    text = shown(path, every=True)[1]
    assert "12.5" in text
    assert "[bold]x" in text
    assert "1 cell has" in text
