"""No test is skipped in a build unless somebody declared why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MARKED = """
import pytest
@pytest.mark.skipif(True, reason="no systemd here")
def test_declared(): pass
@pytest.mark.skipif(True, reason="nothing in particular")
def test_marked(): pass
def test_inside(): pytest.importorskip("no_such_module_at_all")
@pytest.fixture
def missing(): pytest.skip("not today")
def test_by_a_fixture(missing): pass
@pytest.mark.xfail(reason="known")
def test_expected(): assert False
def test_good(): pass
"""
WHOLE = 'import pytest; pytest.importorskip("no_such_module_at_all")\ndef test_never(): pass\n'
EXAMPLE = '"""An example.\n\n>>> 1 + 1  # doctest: +SKIP\n3\n"""\n'


def test_a_build_fails_for_every_skip_that_is_not_declared(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from skips import pytest_configure\n")
    (tmp_path / "test_marked.py").write_text(MARKED)
    (tmp_path / "test_whole.py").write_text(WHOLE)
    (tmp_path / "example.py").write_text(EXAMPLE)
    outside = {name: value for name, value in os.environ.items() if name != "CI"}
    counted = []
    for build in ({"CI": "true"}, {}):
        done = subprocess.run(
            [
                sys.executable, "-m", "pytest", "-q", "--doctest-modules", "-p", "no:cacheprovider",
                "--continue-on-collection-errors",
            ],
            env={**outside, **build, "PYTHONPATH": str(HERE)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        counted.append((done.returncode, done.stdout.splitlines()[-1].partition(" in ")[0]))
    assert counted == [
        (1, "2 failed, 1 passed, 1 skipped, 1 xfailed, 4 errors"),
        (0, "1 passed, 7 skipped, 1 xfailed"),
    ]
