"""A programme file is refused with one sentence that names what is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from lustrum.model import InputError
from lustrum.publish.programme.read import parse_programme
from lustrum.publish.programme.run import check_programme
from publish.programme.conftest import COUNTS, TURNOVER, Workplace, programme_text


def parsed(text: str) -> object:
    return parse_programme(text.encode(), "tables.toml", Path("/nowhere"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[programme]", "[program]", "the file has no key 'program'; did you mean 'programme'?"),
        ("period =", "perod =", "[programme] has no key 'perod'; did you mean 'period'?"),
        ("file =", "files =", "[data] has no key 'files'; did you mean 'file'?"),
        (
            "relations =",
            "relation =",
            "Set 'turnover' has no key 'relation'; did you mean 'relations'?",
        ),
        (
            '"suppression"',
            '"supression"',
            "there is no method 'supression'; did you mean 'suppression'?",
        ),
        ('"p-percent"', '"p-precent"', "There is no sensitivity rule 'p-precent'"),
        ("p = 10", "q = 10", "The rule 'p-percent' has no parameter 'q'"),
        ('measures = ["turnover"]', 'measure = ["turnover"]', "did you mean 'measures'?"),
        ("+ export", ">= export", "needs one"),
        ("= domestic + export", ">= domestic", "must be an equation"),
        ('name = "not-large"', 'name = "activity-size"', "two tables named 'activity-size'"),
        ('name = "not-large"', 'name = "Not large"', "lower-case letters, digits and '-'"),
        ("end = true", "", "does not end with the line 'end = true'"),
        ('description = "description.toml"', "", "'file' and 'description' go together"),
        ("margin = 10\n", 'margin = 10\nmeasures = ["wages"]\n', "which no table of the set shows"),
        ("levels = [", 'level = "section", levels = [', "one of 'level', 'levels', 'codes'"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_what_is_right(old: str, new: str, said: str) -> None:
    text = programme_text(TURNOVER)
    assert old in text
    with pytest.raises(InputError) as error:
        parsed(text.replace(old, new))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_set_without_rules_is_refused() -> None:
    text = programme_text(COUNTS.format(method='"suppression"')).replace(
        '[[sets.rules]]\nrule = "threshold"\nminimum = 3\n', ""
    )
    with pytest.raises(InputError, match=r"Set 'counts' has no \[\[sets.rules\]\]"):
        parsed(text)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"region", total', '"reigon", total', "did you mean 'region'?"),
        ('level = "section"', 'level = "sektion"', "did you mean 'section'?"),
        ('measures = ["turnover"]', 'measures = ["turnovr"]', "did you mean 'turnover'?"),
        ('{size = ["s", "m"]}', '{size = ["x"]}', "'x'"),
        ("+ export", "+ exports", "did you mean 'export'?"),
        ('"suppression"', '{method = "suppression", csot = "value"}', "did you mean 'cost'?"),
    ],
)
def test_names_are_checked_against_the_data_before_anything_is_counted(
    made: Workplace, old: str, new: str, said: str
) -> None:
    text = programme_text(TURNOVER)
    assert old in text
    programme = parse_programme(text.replace(old, new).encode(), "tables.toml", made.folder)
    with pytest.raises(InputError) as error:
        check_programme(programme, made.folder)
    assert said in str(error.value)


def test_a_rule_about_contributions_does_not_judge_counts(made: Workplace) -> None:
    text = programme_text(COUNTS.format(method='"suppression"')).replace(
        'rule = "threshold"\nminimum = 3', 'rule = "p-percent"\np = 10'
    )
    programme = parse_programme(text.encode(), "tables.toml", made.folder)
    with pytest.raises(InputError, match="no rule judges 'count'"):
        check_programme(programme, made.folder)


def test_a_check_says_what_would_be_made_and_writes_nothing(made: Workplace) -> None:
    before = sorted(made.folder.iterdir())
    programme = parse_programme(programme_text(TURNOVER).encode(), "tables.toml", made.folder)
    assert check_programme(programme, made.folder) == [
        "Set turnover: 3 tables, 72 cells, by suppression."
    ]
    assert sorted(made.folder.iterdir()) == before
