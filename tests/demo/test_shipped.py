"""The demo's bundles come with the package: what protection makes, served without any record."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from lustrum.demo import description_path
from lustrum.demo.draws import NAMES, SHIPPED
from lustrum.demo.setup import missing, place
from lustrum.local import local_service
from lustrum.model import TableQuery


@pytest.mark.parametrize("name", [pytest.param("demo", marks=pytest.mark.deep), *NAMES[1:]])
def test_protection_makes_exactly_what_is_shipped(name: str, tmp_path: Path) -> None:
    """Where protection changed, ``make demo-bundles`` renews them."""
    program = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "demo_bundles.py"))
    made = program["make"](name, tmp_path)
    assert {file.name for file in made.iterdir()} == {
        file.name for file in (SHIPPED / name).iterdir()
    }
    for file in made.iterdir():
        assert file.read_bytes() == (SHIPPED / name / file.name).read_bytes(), file.name


def test_they_are_small() -> None:
    assert sum(file.stat().st_size for file in SHIPPED.glob("*/*")) < 2 << 20


def test_an_empty_folder_is_served_without_records(tmp_path: Path) -> None:
    assert missing(tmp_path) == list(NAMES)
    assert place(tmp_path) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundles", "policies"]
    assert sorted(path.name for path in (tmp_path / "bundles").iterdir()) == sorted(NAMES)
    service = local_service(tmp_path)
    assert service.unsealed() == []
    assert service.states() == dict.fromkeys(service.names(), "ready")
    for name, variable in (
        ("demo", "sex"),
        ("businesses", "size"),
        ("survey", "sex"),
        ("censuses", "census"),
    ):
        query = TableQuery.from_mapping({"dataset": name, "by": [variable]})
        assert service.answer(query).release is not None
    service.close()


def test_records_and_policies_of_the_folder_come_first(tmp_path: Path) -> None:
    (tmp_path / "survey").mkdir()
    policy = tmp_path / "policies" / "businesses.toml"
    policy.parent.mkdir()
    policy.write_bytes(description_path("demo").with_name("demo-policy.toml").read_bytes())
    written = policy.read_bytes()
    assert place(tmp_path) == ["businesses", "survey"]
    assert sorted(path.name for path in (tmp_path / "bundles").iterdir()) == ["censuses", "demo"]
    assert policy.read_bytes() == written
