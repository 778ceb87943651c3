"""`lustrum audit` on files as agencies publish them, against answers that were computed apart from it."""

from __future__ import annotations

import functools
import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from corpus.cases import (
    CLEAR,
    DISCLOSED,
    HERE,
    NOT_JUDGED,
    Case,
    Outcome,
    answered,
    audit,
    bare,
    cases,
    false_values,
    families,
    with_true_layout,
)
from lustrum.readers.container import clean_file

MOST_QUESTIONS = 3
"""The mean number of questions for a case, rounded up; the README states what was measured."""


@functools.cache
def listed() -> list[dict[str, Any]]:
    """Wrong verdicts that are known."""
    found = tomllib.loads((HERE / "exceptions.toml").read_text("utf-8"))
    return list(found.get("exception", ()))


def problem(case: Case, mode: str) -> str:
    """What is wrong with the verdict on a case; '' if nothing is."""
    outcome = {"bare": bare, "answered": lambda c: answered(c)[0], "layout": with_true_layout}[
        mode
    ](case)
    if outcome.code not in (CLEAR, DISCLOSED, NOT_JUDGED):
        return f"refused: {outcome.error}"
    if outcome.code == DISCLOSED and mode != "layout" and case.answer.get("relied_on"):
        return ""  # Sums that hold in every complete line are evidence for whoever has no layout.
    if false := false_values(case, outcome):
        return f"called exact and is not: {false}"
    if outcome.code == (CLEAR if case.disclosed else DISCLOSED):
        return "false all-clear" if case.disclosed else "false alarm"
    if case.asked and mode != "bare" and outcome.code == NOT_JUDGED:
        asked = {role for _, role in outcome.questions}
        return "" if case.asked in asked else f"no question about {case.asked}, but {asked}"
    if mode == "layout" and outcome.code == NOT_JUDGED:
        return f"not judged: {outcome.questions or outcome.error}"
    if mode == "layout" and not case.asked and any_exact(case) and not found(outcome):
        return "an exact value is not reported"
    return ""


def any_exact(case: Case) -> bool:
    return any(hidden["known"] == "exact" for hidden in case.answer["hidden"])


def found(outcome: Outcome) -> bool:
    return bool(outcome.exact or outcome.standing)


@pytest.mark.parametrize("mode", ["bare", "answered", "layout"])
@pytest.mark.parametrize("family", families())
def test_no_verdict_is_wrong_but_those_on_the_list(family: str, mode: str) -> None:
    """No false all-clear, no false alarm, no value called exact that is not, no refusal, no traceback."""
    for case in cases():
        if case.family == family:
            wrong = problem(case, mode)
            known = any(e["case"] == case.name and mode in e["modes"] for e in listed())
            assert bool(wrong) == known, f"{case.name}: {wrong or 'right, but on the list'}"


def test_no_small_file_of_many_manners_is_cleared_by_itself(tmp_path: Path) -> None:
    """Every one discloses something, such as a figure that a mean, an index, a balance or a title gives."""
    for line in (HERE / "manners.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        path = tmp_path / case["name"]
        path.write_text(case["text"], encoding="utf-8")
        outcome = audit([path], [None])
        assert outcome.code in (DISCLOSED, NOT_JUDGED), (case["name"], outcome.error)
        for cell, value in outcome.exact:
            assert value in {true * unit for true in case["true"] for unit in (1, 1000)}, cell


def test_nearly_all_files_are_judged_once_their_questions_are_answered() -> None:
    """Files are left out whose own parts give the secret away: there the question is the finding."""
    judged = [answered(c)[0].code in (CLEAR, DISCLOSED) for c in cases() if not c.asked]
    assert sum(judged) >= 0.95 * len(judged)
    asked = [answered(c)[1] for c in cases()]
    mean = sum(asked) / len(asked)
    print(f"{sum(judged)} of {len(judged)} judged; {mean:.2f} questions for each case")
    assert math.ceil(mean) <= MOST_QUESTIONS


def test_a_cleaned_copy_of_a_file_whose_parts_tell_its_secret_is_judged(tmp_path: Path) -> None:
    """Where a field showed nothing of what stood in it, the copy has a blank, and the layout says so."""
    for case in (case for case in cases() if case.asked):
        copies = [tmp_path / path.name for path in case.inputs]
        left = [clean_file(path, copy) for path, copy in zip(case.inputs, copies, strict=True)]
        assert any(left), case.name
        blank = {"symbols": {**case.layouts[0].symbols, "": "hidden"}}
        outcome = audit(copies, [layout.model_copy(update=blank) for layout in case.layouts])
        assert (outcome.code, outcome.exact) == (CLEAR, []), case.name
        assert audit(copies, [None] * len(copies)).code != CLEAR


def test_at_most_one_per_cent_cannot_be_judged_by_their_true_layouts() -> None:
    names = {case.name for case in cases()}
    assert {e["case"] for e in listed()} <= names
    limits = [e for e in listed() if "layout" in e["modes"] and not e.get("bug")]
    assert len(limits) <= 0.01 * len(names)


def test_the_corpus_holds_leaks_and_harmless_files_of_many_forms() -> None:
    ends = [path.suffix for case in cases() for path in case.inputs]
    assert sum(case.disclosed for case in cases()) >= 300
    assert sum(not case.disclosed for case in cases()) >= 100
    assert ends.count(".xlsx") >= 50
    assert min(ends.count(".json"), ends.count(".parquet")) >= 30
    for case in cases():
        known = {hidden["known"] for hidden in case.answer["hidden"]}
        assert bool(known & {"exact", "close"}) == case.disclosed, case.name
