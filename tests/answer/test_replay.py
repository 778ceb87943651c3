"""Replaying questions under another policy shows what would change, and only that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from answer.conftest import SECRET, people, town
from lustrum.answer import TableService
from lustrum.answer.replay import read_questions, replay
from lustrum.local import local_service
from lustrum.model import InputError
from lustrum.policy import Policy
from lustrum.policy.explain import explain, warnings
from lustrum.tabulate import FrameSource, Store, ingest

QUESTIONS = [
    {"dataset": "town", "by": ["age", "sex"]},
    {"dataset": "town", "by": ["age", "job", "area"]},
    {"dataset": "town", "by": ["age", "nowhere"]},
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> TableService:
    root = tmp_path_factory.mktemp("service")
    ingest(FrameSource(people()), town(), Store(root), secret=SECRET)
    (root / "policies").mkdir()
    (root / "policies" / "town.toml").write_text(
        'dataset = "town"\n[rules]\n[risk]\nlimit = 1.0\n[protect]\nmethod = "random-rounding"\n'
        "base = 3\nend = true\n"
    )
    return local_service(root)


def kinds(service: TableService, **words: Any) -> list[str]:
    questions = [read_one(q) for q in QUESTIONS]
    return [c.kind for c in replay(service, Policy.model_validate(words), questions)]


def read_one(raw: dict[str, Any]) -> Any:
    from lustrum.model import TableQuery

    return TableQuery.from_mapping(raw)


def test_the_same_policy_changes_nothing(service: TableService) -> None:
    assert kinds(service) == ["same", "same", "same"]


def test_a_stricter_policy_refuses_some(service: TableService) -> None:
    found = kinds(service, rules={"max_dimensions": 2})
    assert found == ["same", "answer becomes refusal", "same"]


def test_another_base_gives_other_numbers(service: TableService) -> None:
    assert kinds(service, protect={"base": 5}) == ["other numbers", "other numbers", "same"]


def test_areas_left_out_make_an_answer_partial(service: TableService) -> None:
    found = kinds(service, rules={"per_area": "area", "min_mean_cell_size": 3.0})
    assert found[1] == "answer becomes partial"


def test_questions_come_as_lines_as_a_list_or_out_of_a_log(tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text("\n".join(json.dumps(q) for q in QUESTIONS))
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps(QUESTIONS))
    log = tmp_path / "log.jsonl"
    entries: list[dict[str, Any]] = [{"event": "started"}]
    entries += [{"event": "answered", "query": q} for q in QUESTIONS]
    log.write_text("\n".join(json.dumps(e) for e in entries))
    assert read_questions(lines) == read_questions(listed) == read_questions(log)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not valid JSON"),
        ('{"dataset": "town", "buy": ["age"]}', "line 1"),
        ("[3]", "question 1: a question is a JSON object"),
        ('{"event": "started"}', "holds no question"),
    ],
)
def test_a_file_without_good_questions_is_one_sentence(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_questions(path)


def test_a_policy_in_sentences_names_everything_it_decides() -> None:
    policy = Policy.model_validate(
        {
            "dataset": "town",
            "rules": {
                "disallowed": [["age", "job"]],
                "at_most_one": [["sex", "area"]],
                "per_area": "area",
                "min_area_population": 500,
                "min_mean_cell_size": 4.0,
                "max_small_share": 0.2,
                "min_population": 1000,
            },
            "before": [{"method": "random-rounding", "base": 2}],
            "audit": {"attackers": ["insider"]},
            "fallback": [{"method": "merge", "variables": ["age"]}],
        }
    )
    text = " ".join(explain(policy))
    for word in (
        "'town'", "Never together: age, job", "At most one of: sex, area", "'area' are judged",
        "at least 500", "hold 4 on average", "20%", "at least 1,000", "(base 2)", "insider",
        "coarser levels (age)", "left to a reader",
    ):  # fmt: skip
        assert word in text
    said = " ".join(warnings(policy))
    assert "limit of risk is 1" in said
    assert "perturbed twice" in said


def test_only_what_deserves_it_is_warned_of() -> None:
    calm = Policy.model_validate({"risk": {"limit": 0.3}})
    assert len(list(warnings(calm))) == 1
    assert "question by question" in next(iter(warnings(calm)))
    loose = Policy.model_validate({"rules": {"nested_only": False}})
    assert len(list(warnings(loose))) == 3
    strict = {"before": [{"method": "protected-population"}], "protect": {"method": "none"}}
    assert list(warnings(Policy.model_validate(strict))) == []
