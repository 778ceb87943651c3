"""Setting up: too old a Python, a shim that fails and a broken lock each end in one sentence."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FAKE = """#!/bin/sh
{body}
"""


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of what setting up reads, with an empty folder for commands."""
    home = tmp_path / "house"
    home.mkdir()
    shutil.copytree(ROOT / "scripts", home / "scripts")
    shutil.copy(ROOT / "Makefile", home)
    (home / "bin").mkdir()
    return home


def command(house: Path, name: str, body: str) -> None:
    path = house / "bin" / name
    path.write_text(FAKE.format(body=body))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def old_python(house: Path, name: str = "python3") -> None:
    """A Python that runs our scripts but says that it is 3.8."""
    probe = 'case "$*" in *lustrum-probe*) echo "lustrum-probe 3.8.18 1"; exit 0;; esac'
    command(house, name, f'{probe}\nexec "{sys.executable}" "$@"')


def make(house: Path, *words: str) -> subprocess.CompletedProcess[str]:
    tools = f"{house / 'bin'}:/usr/bin:/bin"
    hidden = house / "hidden"
    hidden.mkdir(exist_ok=True)
    make_path = shutil.which("make")
    assert make_path is not None
    return subprocess.run(
        [make_path, *words],
        cwd=house,
        env={**os.environ, "PATH": tools, "HOME": str(hidden)},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_too_old_a_python_is_one_sentence(house: Path) -> None:
    old_python(house)
    for newer in ("python3.14", "python3.13", "python3.12", "python3.11"):
        command(house, newer, "exit 127")
    done = make(house, "serve")
    said = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert done.returncode != 0
    assert said == [
        "Lustrum needs Python 3.11 or newer; `python3` here is 3.8.18. Install a newer one or say "
        "which to use: make serve PYTHON=python3.12"
    ]
    assert not (house / ".venv").exists()


def test_a_newer_python_is_found_behind_an_old_one(house: Path) -> None:
    old_python(house)
    command(house, "python3.14", "exit 127")
    command(house, "python3.13", f'echo chosen >> "{house}/log"; exec "{sys.executable}" "$@"')
    (house / "requirements").mkdir()
    done = make(house, "serve")
    assert (house / "log").read_text().startswith("chosen")
    assert "needs Python" not in done.stderr


def test_a_python_that_does_not_run_is_one_sentence(house: Path) -> None:
    done = make(house, "test", "PYTHON=python9")
    said = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert done.returncode != 0
    assert len(said) == 1
    assert "`python9` cannot be run" in said[0]


def test_setting_up_parses_with_words_that_python_2_knows() -> None:
    """No annotations, no f-strings: an old interpreter must get as far as the sentence."""
    source = (ROOT / "scripts" / "bootstrap.py").read_text()
    assert "->" not in source
    assert 'f"' not in source
    assert "from __future__ import print_function" in source


def test_the_lock_files_name_no_host_and_hash_everything() -> None:
    for name in ("run", "dev"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        assert "://" not in text
        assert "index-url" not in text
        pinned = [line for line in text.splitlines() if line and line[0].isalpha()]
        assert pinned
        assert all("==" in line and line.endswith("\\") for line in pinned)


@pytest.mark.parametrize(
    ("pins", "extras"), [("run", ("build", "server")), ("dev", ("all",))], ids=["run", "dev"]
)
def test_the_pins_are_complete_so_that_pip_has_nothing_to_find_out(
    pins: str, extras: tuple[str, ...]
) -> None:
    """pip is told to look for no further package, so every package that another needs is pinned."""
    text = (ROOT / "requirements" / f"{pins}.txt").read_text()
    pinned = dict(re.findall(r"^([a-z0-9.-]+)==([^ ;]+)", text, flags=re.M))
    own = metadata.metadata("lustrum").get_all("Provides-Extra") or []
    wanted = [("lustrum", extra) for extra in ("", *(own if extras == ("all",) else extras))]
    seen = set()
    while wanted:
        name, extra = wanted.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for line in metadata.requires(name) or []:
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                needed = canonicalize_name(need.name)
                if needed != "lustrum":
                    assert needed in pinned, f"{name} needs {line}"
                    assert need.specifier.contains(pinned[needed], prereleases=True), line
                wanted += [(needed, option) for option in ("", *need.extras)]
    assert len(seen) > len(pinned) // 2
    assert '"--require-hashes", "--no-deps"' in (ROOT / "scripts/environment.py").read_text()


def test_a_port_counts_from_the_environment_and_an_address_does_not() -> None:
    def started(*arguments: str, **environment: str) -> str:
        found = subprocess.run(
            ["make", "-n", "serve", *arguments],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        return found.stdout.splitlines()[-1].split("serve --demo", 1)[1].strip()

    assert started() == ""
    assert started("PORT=8123") == "--port '8123'"
    assert started(PORT="8123") == "--port '8123'"
    assert started("PORT=8124", PORT="8123") == "--port '8124'"
    assert started(HOST="0.0.0.0", DATA="/elsewhere") == ""
    assert started("HOST=0.0.0.0") == "--host '0.0.0.0'"
