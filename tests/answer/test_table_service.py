"""The service refuses rather than answers under a policy that does not fit its dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from answer.conftest import SECRET, people, town
from lustrum.answer import TableService
from lustrum.local import local_service
from lustrum.model import Axis, PolicyError, TableQuery
from lustrum.tabulate import FrameSource, Store, ingest

POLICY = (
    'dataset = "town"\n[rules]\ndisallowed = [["age", "sex"]]\n[risk]\nlimit = 1.0\n'
    '[protect]\nmethod = "random-rounding"\nend = true\n'
)
ASKED = TableQuery("town", (Axis("age"), Axis("sex")))


def placed(root: Path, text: str) -> TableService:
    ingest(FrameSource(people()), town(), Store(root), secret=SECRET)
    (root / "policies").mkdir()
    (root / "policies" / "town.toml").write_text(text)
    return local_service(root, workers=1)


def test_a_misspelt_rule_stops_answers_instead_of_forbidding_nothing(tmp_path: Path) -> None:
    service = placed(tmp_path, POLICY)
    assert service.answer(ASKED).release is None
    path = tmp_path / "policies" / "town.toml"
    path.write_text(POLICY.replace('"sex"', '"sexx"'))
    for ask in (service.answer, service.precheck):
        with pytest.raises(PolicyError, match=r"rules.disallowed names the variable 'sexx'"):
            ask(ASKED)


def test_a_policy_that_was_cut_stops_answers_until_it_is_whole(tmp_path: Path) -> None:
    service = placed(tmp_path, POLICY)
    path = tmp_path / "policies" / "town.toml"
    for length in (0, 20, len(POLICY) - 1):
        path.write_text(POLICY[:length])
        with pytest.raises(PolicyError):
            service.answer(ASKED)
    path.write_text(POLICY)
    assert service.answer(ASKED).release is None


def test_a_policy_is_checked_again_when_the_dataset_is_replaced(tmp_path: Path) -> None:
    service = placed(tmp_path, POLICY.replace('[["age", "sex"]]', '[["job"]]'))
    assert service.answer(ASKED).release is not None
    fewer = dict(town().source)
    fewer["variables"] = [v for v in fewer["variables"] if v["name"] != "job"]
    del fewer["structural_zeros"]
    described = type(town()).from_mapping(fewer)
    with pytest.raises(PolicyError, match="names the variable 'job'"):
        service.check_replacement(described)
    ingest(FrameSource(people()), described, Store(tmp_path), secret=SECRET)
    with pytest.raises(PolicyError, match="names the variable 'job'"):
        service.answer(ASKED)


def test_a_mistake_in_the_protection_of_the_input_is_the_agencys(tmp_path: Path) -> None:
    before = (
        '[[before]]\nmethod = "post-randomisation"\nvariable = "age"\nlevel = "none"\nend = true\n'
    )
    service = placed(tmp_path, POLICY.replace("end = true\n", before))
    with pytest.raises(PolicyError, match="cannot protect the input"):
        service.answer(TableQuery("town", (Axis("age"),)))
