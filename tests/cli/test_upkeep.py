"""Care for a data folder from the terminal."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from faults.world import build
from lustrum.cli import app
from lustrum.model import LustrumError
from lustrum.tabulate import Secret


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})


def test_a_drill_backup_loss_restore_doctor(tmp_path: Path) -> None:
    data, backup = build(tmp_path / "data"), tmp_path / "backup"
    assert run("backup", str(backup), "--data", str(data)).exit_code == 0
    shutil.rmtree(data)
    sick = run("doctor", "--data", str(data))
    assert sick.exit_code == 3
    assert "There is no such folder" in sick.stdout
    assert run("restore", str(backup), "--data", str(data)).exit_code == 0
    well = run("doctor", "--data", str(data))
    assert well.exit_code == 0
    assert "0 faults that stop answers" in well.stdout


def test_a_rotation_says_what_it_risks_and_asks(tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    before = Secret.load(data / "record-keys.secret")
    asked = CliRunner().invoke(app, ["secret", "rotate", "--data", str(data)], input="n\n")
    assert "perturbed a second time" in " ".join(asked.stdout.split())
    assert isinstance(asked.exception, LustrumError)
    assert Secret.load(data / "record-keys.secret") == before
    assert run("secret", "rotate", "--yes", "--data", str(data)).exit_code == 0
    assert Secret.load(data / "record-keys.secret") != before


def test_an_upgrade_names_the_policies_that_need_a_hand(tmp_path: Path) -> None:
    first = Path(__file__).parents[1] / "tabulate" / "first_version"
    data = shutil.copytree(first, tmp_path / "data")
    (data / "secret.txt").rename(data / "record-keys.secret").chmod(0o600)
    done = run("upgrade", "--data", str(data))
    assert done.exit_code == 3
    assert "town was brought to the present format" in done.stdout
    assert "does not end with the line 'end = true'" in " ".join(done.stdout.split())
    assert "All records are of the present format" in run("upgrade", "--data", str(data)).stdout


@pytest.mark.parametrize("words", [["backup", "x"], ["secret", "rotate", "--yes"]])
def test_an_empty_folder_is_one_sentence(words: list[str], tmp_path: Path) -> None:
    done = run(*words, "--data", str(tmp_path))
    assert isinstance(done.exception, LustrumError)
    assert "There is no dataset in" in str(done.exception)
