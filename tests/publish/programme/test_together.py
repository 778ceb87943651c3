"""Measures that add up stand in one set with their relation named; anything else is refused."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from lustrum.model import Dataset, InputError
from lustrum.publish.programme.read import bound_to, parse_programme
from publish.programme.conftest import DESCRIPTION, programme_text

RELATION = "turnover = domestic + export"
FAMILY = "turnover = domestic + export + other"
SET = """
[[sets]]
name = "{name}"
relations = [{relations}]

[[sets.rules]]
rule = "p-percent"
p = 10

[[sets.tables]]
name = "table-{name}"
by = ["region"]
measures = [{measures}]
"""


def described(parts: str) -> Dataset:
    """The small register, whose description says which measures add up to turnover."""
    name = 'name = "turnover"\n'
    text = DESCRIPTION.replace(name, f"{name}parts = [{parts}]\n") if parts else DESCRIPTION
    for name in ("other", "wages"):
        text += (
            f'\n[[measures]]\nname = "{name}"\nlabel = "{name}"\nunit = "EUR"\nholding = "group"\n'
        )
    return Dataset.from_mapping(tomllib.loads(text))


def check(parts: str, *sets: tuple[str, str]) -> None:
    """Bind a programme whose sets show these measures under these relations."""
    body = "".join(
        SET.format(name=f"s{number}", measures=measures, relations=relations)
        for number, (measures, relations) in enumerate(sets, start=1)
    )
    text = programme_text(body).encode()
    bound_to(parse_programme(text, "tables.toml", Path("/nowhere")), described(parts))


TWO, THREE = '"domestic", "export"', '"domestic", "export", "other"'


@pytest.mark.parametrize(
    ("parts", "measures"),
    [
        (TWO, '"turnover", "domestic"'),  # the export follows
        (TWO, '"turnover", "export"'),
        (TWO, '"domestic", "export"'),  # the turnover follows
        (TWO, '"turnover", "domestic", "export"'),
        (THREE, '"turnover", "domestic"'),  # the sum of the two others follows
        (THREE, THREE),
    ],
)
def test_measures_from_which_another_follows_need_their_relation(parts: str, measures: str) -> None:
    relation = RELATION if parts == TWO else FAMILY
    with pytest.raises(InputError) as error:
        check(parts, (measures, ""))
    assert str(error.value) == (
        f"Set 's1': the measures add up, so name it: relations = [\"{relation}\"]."
    )
    check(parts, (measures, f'"{relation}"'))


@pytest.mark.parametrize(
    ("parts", "measures"),
    [
        ("", '"turnover", "domestic", "export"'),  # the description says nothing of a sum
        (TWO, '"turnover"'),
        (TWO, '"export"'),
        (TWO, '"turnover", "wages"'),
        (THREE, '"domestic", "export"'),  # without the third part or the sum nothing follows
    ],
)
def test_measures_from_which_nothing_follows_need_no_relation(parts: str, measures: str) -> None:
    check(parts, (measures, ""))


def test_another_relation_does_not_stand_for_the_one_of_the_description() -> None:
    with pytest.raises(InputError, match="the measures add up"):
        check(TWO, ('"turnover", "domestic", "wages"', '"wages = turnover + domestic"'))
    with pytest.raises(InputError, match="the measures add up"):
        check(THREE, ('"turnover", "domestic"', f'"{RELATION}"'))


@pytest.mark.parametrize(
    ("first", "second"),
    [(('"turnover"', ""), ('"domestic"', "")), (('"domestic"', ""), ('"export"', ""))],
)
def test_measures_that_add_up_do_not_stand_in_two_sets(
    first: tuple[str, str], second: tuple[str, str]
) -> None:
    with pytest.raises(InputError) as error:
        check(TWO, first, second)
    assert str(error.value) == (
        f"Sets 's1' and 's2' show measures that add up ({RELATION}): readers see both, so put their tables "
        "into one set with this relation."
    )
    check("", first, second)


def test_a_measure_of_another_family_stands_in_a_set_of_its_own() -> None:
    check(TWO, ('"turnover", "domestic"', f'"{RELATION}"'), ('"wages"', ""))


def test_a_relation_ties_measures_that_no_table_shows() -> None:
    # The first set protects the export because its relation names it; the second would publish it.
    with pytest.raises(InputError, match="so does set 's1'"):
        check(TWO, ('"turnover", "domestic"', f'"{RELATION}"'), ('"export"', ""))
