"""A package that nobody could be asked about is no clean package."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "audit_pins.py"
CLEAN = {"name": "numpy", "version": "2.3.0", "vulns": []}
FLAWED = {"name": "jinja2", "version": "3.0", "vulns": [{"id": "PYSEC-1"}, {"id": "PYSEC-2"}]}
SKIPPED = {"name": "scipy", "skip_reason": "Dependency not found and could not be audited"}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit_pins", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(*entries: object) -> dict[str, object]:
    return {"dependencies": list(entries)}


def test_the_code_tells_clean_found_and_unknown_apart(script: ModuleType) -> None:
    clean, words = script.verdict([answer(CLEAN)])
    assert (clean, words) == (
        0, ["1 packages were looked up; none has a known vulnerability."],
    )  # fmt: skip
    code, words = script.verdict([answer(CLEAN, FLAWED, SKIPPED)])
    assert code == script.FOUND
    assert words[0] == "jinja2 3.0: PYSEC-1, PYSEC-2"
    code, words = script.verdict([answer(CLEAN, SKIPPED)])
    assert code == script.UNKNOWN
    assert words == ["1 packages could not be looked up: scipy."]
    assert script.verdict([None, None])[0] == script.UNKNOWN
    assert script.verdict([answer(SKIPPED), None])[0] == script.UNKNOWN


def test_a_second_database_fills_what_the_first_does_not_know(script: ModuleType) -> None:
    known = {"name": "scipy", "version": "1.15", "vulns": []}
    assert script.verdict([answer(CLEAN, SKIPPED), answer(CLEAN, known)])[0] == 0


@pytest.mark.parametrize(("options", "code"), [([], 3), (["--offline-ok"], 0)])
def test_without_a_database_it_says_that_nothing_is_known(
    options: list[str], code: int, tmp_path: Path
) -> None:
    broken = tmp_path / "pip-audit"
    broken.write_text("#!/bin/sh\necho 'no route to host' >&2\nexit 1\n")
    broken.chmod(0o755)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--pip-audit", str(broken), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert done.stdout == "No database of vulnerabilities could be reached; nothing is known.\n"
