"""Without the packages of a web server everything works but the server, which says how to install them."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lustrum.cli.inputs import SERVER

BLOCKED = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from lustrum.cli import main
sys.argv = ["lustrum", *{words!r}]
main()
"""
TABLE = "area,value\nA,3\nB,6\nTotal,9\n"


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    program = BLOCKED.format(names=(*SERVER, "starlette"), words=words)
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [["serve"], ["serve", "--demo"], ["map", "--page"]])
def test_serving_without_the_extra_is_one_sentence(words: list[str], tmp_path: Path) -> None:
    done = run(words, tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("lustrum: ")
    assert done.stderr.endswith("install them with: pip install 'lustrum[server]'.\n")
    assert not list(tmp_path.iterdir())


def test_other_commands_and_the_library_need_no_web_server(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(TABLE)
    done = run(["audit", "table.csv"], tmp_path)
    assert done.returncode in (3, 4), done.stderr
    assert "ModuleNotFoundError" not in done.stderr
    for words in (["describe", "table.csv"], ["map", "table.csv", "--method", "none"]):
        done = run(words, tmp_path)
        assert "ModuleNotFoundError" not in done.stderr
        assert done.returncode == 0, done.stderr


def test_the_extra_is_what_the_command_looks_for() -> None:
    words = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    listed = {
        name.split(">")[0].replace("-", "_") for name in words["optional-dependencies"]["server"]
    }
    assert listed == set(SERVER)
    assert not listed & {name.split(">")[0].replace("-", "_") for name in words["dependencies"]}
