"""Groups of codes from a file stand beside those of the dataset, nested or not."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lustrum.model import Dataset, InputError, Variable
from lustrum.publish.programme.read import bound_to, parse_programme
from lustrum.publish.programme.run import check_programme
from lustrum.publish.programme.spec import regrouped, tree_codes
from lustrum.readers.hierarchy_files import Groups
from publish.programme.conftest import DESCRIPTION, Workplace, programme_text

BODY = """
[[sets]]
name = "turnover"
method = {{method = "suppression", algorithm = "quick"}}

[[sets.rules]]
rule = "p-percent"
p = 10

[[sets.tables]]
name = "table"
by = [{{variable = "act", {how}, total = true}}, {{variable = "region", total = true}}]
measures = ["turnover"]
"""
TREE = "A\n@a1\n@a2\nB\n@b1\n@b2\n"
# Two classifications of the same codes that do not nest.
PARENTS = "code,parent\na1,X\nb1,X\nX,Z\na2,Z\nb1,Y\nb2,Y\n"


def body(how: str) -> str:
    return BODY.format(how=how)


def cells(path: Path) -> dict[tuple[str, str], tuple[str, str]]:
    with path.open(newline="") as file:
        return {(r["act"], r["region"]): (r["value"], r["status"]) for r in csv.DictReader(file)}


def test_a_tree_of_the_groups_of_the_dataset_gives_the_same_table(workplace: Workplace) -> None:
    (workplace.folder / "act.hrc").write_text(TREE)
    quick = "certificate = false"
    workplace.run(body('levels = ["section", "finest"]'), head=quick, out="by-levels")
    workplace.run(body('hierarchy = "act.hrc"'), head=quick, out="by-file")
    made = [
        cells(workplace.folder / out / "tables" / "table" / "turnover.csv")
        for out in ("by-levels", "by-file")
    ]
    assert made[0] == made[1]
    assert len(made[0]) == 28
    rows = (workplace.folder / "by-file/tables/table/turnover.csv").read_text().splitlines()
    order = list(dict.fromkeys(row.split(",")[0] for row in rows[1:]))
    assert order == ["A", "a1", "a2", "B", "b1", "b2", "_T"]


def test_groups_that_do_not_nest_are_summed_and_protected_together(workplace: Workplace) -> None:
    (workplace.folder / "act.csv").write_text(PARENTS)
    workplace.run(body('hierarchy = "act.csv"'))
    made = cells(workplace.folder / "public" / "tables" / "table" / "turnover.csv")
    assert {act for act, _ in made} == {"Z", "X", "a1", "b1", "a2", "Y", "b2", "_T"}
    members = {"X": "a1 b1", "Y": "b1 b2", "Z": "a1 b1 a2", "_T": "a1 a2 b1 b2"}
    true: dict[tuple[str, str], int] = {}
    with (workplace.folder / "records.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            for act in (
                row["act"],
                *(g for g, own in members.items() if row["act"] in own.split()),
            ):
                for region in (row["region"], "_T"):
                    place = act, region
                    true[place] = true.get(place, 0) + int(row["turnover"])
    shown = {place: int(value) for place, (value, status) in made.items() if status == "F"}
    assert shown
    assert len(shown) < len(made)
    assert shown == {place: true[place] for place in shown}
    # Nothing that is hidden follows from a group less its parts.
    for region in ("n", "s", "w", "_T"):
        for group, own in members.items():
            line = [(group, region), *((code, region) for code in own.split())]
            assert sum(place not in shown for place in line) != 1


def dataset() -> Dataset:
    return Dataset.from_mapping(tomllib.loads(DESCRIPTION))


def bound(text: str, folder: Path) -> object:
    programme = parse_programme(programme_text(text).encode(), "tables.toml", folder)
    return bound_to(programme, dataset()).sets[0].tables[0].query.by[0].codes


def test_codes_that_no_group_holds_stand_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "act.hrc").write_text("New\n@a2\n@b1\n")
    assert bound(body('hierarchy = "act.hrc"'), tmp_path) == ("New", "a2", "b1", "a1", "b2")


def test_a_deep_tree_is_as_many_levels_as_it_is_deep(tmp_path: Path) -> None:
    (tmp_path / "act.hrc").write_text("Top\n@Mid\n@@Low\n@@@a1\n@@@a2\n@@b1\n@b2\n")
    text = programme_text(body('hierarchy = "act.hrc"')).encode()
    programme = parse_programme(text, "tables.toml", tmp_path)
    variable = regrouped(programme.sets, dataset()).variable("act")
    found = {code: variable.category(code).members for code in ("Low", "Mid", "Top")}
    # The tree has a group of its own for the codes of section A.
    assert found == {"Low": (0, 1), "Mid": (0, 1, 2), "Top": (0, 1, 2, 3)}
    assert [len(level.groups) for level in variable.hierarchies[-1].levels] == [1, 1, 1]
    codes = tree_codes(variable, programme.sets[0].tables[0].trees["act"])
    assert codes == ("Top", "Mid", "Low", "a1", "a2", "b1", "b2")
    again = regrouped(programme.sets, regrouped(programme.sets, dataset()))
    assert again.variable("act") == variable


def grouped(groups: Groups, own: Dataset | None = None) -> Variable:
    table: Any = SimpleNamespace(name="table", trees={"act": groups})
    sets: Any = [SimpleNamespace(tables=[table])]
    return regrouped(sets, own or dataset()).variable("act")


def test_a_group_stands_before_its_parts_in_whatever_order_they_are_listed() -> None:
    groups = {"X": ("a1", "b1"), "Z": ("X", "a2")}
    assert tree_codes(grouped(groups), groups) == ("Z", "X", "a1", "b1", "a2", "b2")
    # A part that is a group of the dataset holds its codes, which the file does not name.
    upper = {"New": ("A", "b1")}
    assert tree_codes(grouped(upper), upper) == ("New", "A", "b1", "b2")


@pytest.mark.parametrize(
    ("groups", "hierarchies"),
    [
        ({"P": ("a1", "b1"), "Q": ("a2", "b2")}, 1),
        # R holds P and half of Q, so that they are two classifications.
        ({"P": ("a1", "b1"), "Q": ("a2", "b2"), "R": ("P", "a2")}, 2),
        # One group under two names.
        ({"P": ("a1", "b1"), "Q": ("b1", "a1")}, 2),
        ({"P": ("a1", "b1"), "R": ("P", "a2"), "S": ("R", "b2")}, 1),
    ],
)
def test_groups_that_nest_are_one_classification(groups: Groups, hierarchies: int) -> None:
    variable = grouped(groups)
    assert len(variable.hierarchies) == 1 + hierarchies
    places = {code: {k} for k, code in enumerate(variable.codes)}
    for group, parts in groups.items():
        places[group] = set().union(*(places[part] for part in parts))
        assert set(variable.category(group).members) == places[group]
    assert len({hierarchy.name for hierarchy in variable.hierarchies}) == 1 + hierarchies


def test_a_name_that_the_dataset_has_is_left_to_it() -> None:
    plain = dataset()
    (act, *others) = plain.variables
    (sections,) = act.hierarchies
    named = replace(act, hierarchies=(replace(sections, name="file 2"),))
    found = grouped({"P": ("a1", "b1")}, replace(plain, variables=(named, *others)))
    assert [hierarchy.name for hierarchy in found.hierarchies] == ["file 2", "file 2+"]


def checked(text: str, folder: Path) -> list[str]:
    return check_programme(parse_programme(text.encode(), "tables.toml", folder), folder)


@pytest.mark.parametrize(
    ("tree", "how", "said"),
    [
        ("X\n@a1\n@zz\n", 'hierarchy = "act.hrc"', "names 'zz', which is no code of it"),
        (
            "A\n@a1\n@b1\n",
            'hierarchy = "act.hrc"',
            "has a code 'A' already, which holds other codes",
        ),
        ("A\n@a1\n", 'hierarchy = "none.hrc"', "none.hrc cannot be read"),
        ("A\n@@a1\n", 'hierarchy = "act.hrc"', "skips a level"),
        (
            "A\n@a1\n",
            'level = "section", hierarchy = "act.hrc"',
            "one of 'level', 'levels', 'codes'",
        ),
    ],
)
def test_a_mistake_in_a_tree_is_one_sentence(
    workplace: Workplace, tree: str, how: str, said: str
) -> None:
    (workplace.folder / "act.hrc").write_text(tree)
    with pytest.raises(InputError) as error:
        checked(programme_text(body(how)), workplace.folder)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert "Table 'table'" in str(error.value)
