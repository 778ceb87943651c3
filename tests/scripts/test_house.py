"""The size of the house is counted from the committed files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_size_is_that_of_the_committed_files_beside_the_last_release() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "house.py"), "--size"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = dict(re.findall(r"^([a-zA-Z ]+?) +([\d,]+)", done.stdout, flags=re.MULTILINE))
    listed = subprocess.run(
        ["git", "ls-files", "src/*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    there = [name for name in listed if (ROOT / name).is_file()]
    assert int(found["files of src"].replace(",", "")) == len(there)
    lines = sum((ROOT / name).read_text("utf-8").count("\n") for name in there)
    assert int(found["lines of src"].replace(",", "")) == lines
    assert "61,631 at the last release" in done.stdout
    assert re.search(r"\d+  lustrum/\S+\.py", done.stdout.split("largest files")[1])
    assert re.search(r"\d+  lustrum/\S+\.py", done.stdout.split("imported by most files")[1])
