"""Without the packages of a web server everything works but the server, which says how to install them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from lustrum.cli.inputs import SERVER

BLOCKED = """
import os, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import lustrum.cli.application, numpy  # once, before the processes part
for words in {commands!r}:
    child = os.fork()
    if not child:
        sys.argv = ["lustrum", *words]
        lustrum.cli.application.main()
        sys.exit()
    print("ended", os.waitstatus_to_exitcode(os.wait()[1]), file=sys.stderr, flush=True)
"""
TABLE = "area,value\nA,3\nB,6\nTotal,9\n"


def run(folder: Path, *commands: list[str]) -> list[tuple[str, int]]:
    """What each command says on standard error, and how it ends."""
    program = BLOCKED.format(names=(*SERVER, "starlette"), commands=commands)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    parts = re.split(r"^ended (\d+)\n", done.stderr, flags=re.MULTILINE)
    return list(zip(parts[:-1:2], map(int, parts[1::2]), strict=True))


def test_serving_without_the_extra_is_one_sentence(tmp_path: Path) -> None:
    found = run(tmp_path, ["serve"], ["serve", "--demo"], ["map", "--page"])
    assert len(found) == 3
    for said, code in found:
        assert code == 1
        assert said.count("\n") == 1
        assert said.startswith("lustrum: ")
        assert said.endswith("install them with: pip install 'lustrum[server]'.\n")
    assert not list(tmp_path.iterdir())


def test_other_commands_and_the_library_need_no_web_server(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(TABLE)
    own = ["audit", "table.csv"], ["describe", "table.csv"]
    audited, described, drawn = run(tmp_path, *own, ["map", "table.csv", "--method", "none"])
    for said, _ in (audited, described, drawn):
        assert "ModuleNotFoundError" not in said
    assert audited[1] in (3, 4), audited
    assert described[1] == drawn[1] == 0, (described, drawn)


def test_the_extra_is_what_the_command_looks_for() -> None:
    words = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    listed = {
        name.split(">")[0].replace("-", "_") for name in words["optional-dependencies"]["server"]
    }
    assert listed == set(SERVER)
    assert not listed & {name.split(">")[0].replace("-", "_") for name in words["dependencies"]}
