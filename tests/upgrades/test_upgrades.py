"""Data folders of earlier versions give the answers that they gave, or say in a sentence what to do.

``scripts/folder_fixture.py`` makes the archive of a version. A new version adds its own, and removes none.
"""

from __future__ import annotations

import json
import tarfile
from csv import DictReader
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lustrum.cli import app
from lustrum.local import local_service
from lustrum.local.service import health
from lustrum.model import LustrumError
from lustrum.public.bundle import read_bundle
from lustrum.public.bundle.agreement import difference, is_made_by

HERE = Path(__file__).parent
UNSAFE = {"6d29d46b": {"profits"}, "22b4fc2a": {"profits"}}
"""What may not be served any more: gains and losses of one owner by one factor."""
PROTECTED = ("people", "firms", "survey")
POPULATION = 'method = "protected-population"\n'
VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz"))


@pytest.fixture
def version(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    with tarfile.open(HERE / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return str(request.param)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "1000"})


def check_answers(root: Path, without: set[str]) -> None:
    """Every column that a version wrote has the values that it had; later ones may stand beside them."""
    asked = json.loads((root / "answers.json").read_text())
    for words, answer in asked:
        if words[1] not in without:
            now = run("table", *words, "--data", str(root / "data")).stdout
            then = list(DictReader(answer.splitlines()))
            kept = [{key: row[key] for key in then[0]} for row in DictReader(now.splitlines())]
            assert kept == then, words


@pytest.mark.parametrize("version", VERSIONS, indirect=True)
def test_every_version_gives_the_answers_that_it_gave(version: str, tmp_path: Path) -> None:
    data, unsafe = tmp_path / "data", UNSAFE.get(version, set())
    states = local_service(data).states()
    assert {name for name, state in states.items() if state != "ready"} == unsafe
    assert {*PROTECTED, "profits", "keyed", "rounded"} <= set(states)
    check_answers(tmp_path, unsafe)
    upgraded = run("upgrade", "--data", str(data))
    assert upgraded.exit_code == (3 if unsafe else 0)
    assert f"{len(states) - len(unsafe)} of {len(states)} datasets can be served" in upgraded.stdout
    assert ("profits cannot be served" in upgraded.stdout) == bool(unsafe)
    bad = {finding.about for finding in health(data) if finding.grade == "bad"}
    assert bad == {at for name in unsafe for at in (f"bundles/{name}", f"policies/{name}.toml")}


@pytest.mark.parametrize("version", VERSIONS, indirect=True)
def test_every_memory_is_continued(version: str, tmp_path: Path) -> None:
    """Where no record changed, the next release shows the numbers of the last one."""
    data = tmp_path / "data"
    for name in PROTECTED:
        done = run("protect", "--dataset", name, "--data", str(data))
        assert done.exit_code == 0, done.output
    check_answers(tmp_path, UNSAFE.get(version, set()))


@pytest.mark.parametrize("version", VERSIONS, indirect=True)
@pytest.mark.parametrize(
    "stated", ["refresh = 0.5", "sparse_siblings = 0.7", "known_changes = 9.0", "base = 5"]
)
def test_what_a_policy_states_is_compared_exactly(
    version: str, stated: str, tmp_path: Path
) -> None:
    policy = tmp_path / "data" / "policies" / "people.toml"
    lines = policy.read_text().replace(POPULATION, f"{POPULATION}{stated}\n")
    policy.write_text(lines)
    with pytest.raises(
        LustrumError, match=rf"line \d+: '{stated.split()[0]}' under \[\[before\]\]"
    ):
        local_service(tmp_path / "data").snapshot("people")


@pytest.mark.parametrize("version", ["6d29d46b", "22b4fc2a"], indirect=True)
def test_the_doctor_names_defaults_that_changed(version: str, tmp_path: Path) -> None:
    """A policy may state what they were; a bundle that has them is then what it asks for."""
    data = tmp_path / "data"
    notes = [f.sentence for f in health(data) if f.about == "bundles/people" and f.grade == "note"]
    assert any("protected-population, refresh = 0.05, today 0.2" in note for note in notes)
    policy = data / "policies" / "people.toml"
    policy.write_text(policy.read_text().replace(POPULATION, f"{POPULATION}refresh = 0.05\n"))
    local_service(data).snapshot("people")


@pytest.mark.parametrize("version", VERSIONS, indirect=True)
def test_a_report_of_another_bundle_is_noticed(version: str, tmp_path: Path) -> None:
    """What nobody states may be a default of some version, and nothing else."""
    data = tmp_path / "data"
    bundle = read_bundle(data / "bundles" / "people")
    words = {**bundle.report.method, "extra_tables": 7}
    assert is_made_by(bundle.report.method, bundle.policy)
    assert not is_made_by(words, bundle.policy)
    found = difference(
        bundle.policy, bundle.policy, {words["method"]: words}, sums=False, respondents=False
    )
    assert found is not None
    assert found.path[-1] == "extra_tables"
