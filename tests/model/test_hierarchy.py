"""Levels nest within a hierarchy, may end early, and need not nest with those of another."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import Category, Dataset, DescriptionError, Hierarchy


def finest(*codes: str) -> list[Category]:
    return [Category(c, c, (i,)) for i, c in enumerate(codes)]


def build(*levels: tuple[str, dict[str, list[str]]], codes: str = "abcdef") -> Hierarchy:
    raw = [
        (name, name, [{"code": g, "members": m} for g, m in groups.items()])
        for name, groups in levels
    ]
    return Hierarchy.build("h", "H", finest(*codes), raw, "Variable 'v'")


def members(hierarchy: Hierarchy, level: int) -> dict[str, tuple[int, ...]]:
    return {c.code: c.members for c in hierarchy.levels[level].categories}


def test_a_code_that_a_level_leaves_alone_stays_itself() -> None:
    ragged = build(("low", {"ab": ["a", "b"], "de": ["d", "e"]}), ("high", {"a-c": ["ab", "c"]}))
    assert members(ragged, 0) == {"ab": (0, 1), "c": (2,), "de": (3, 4), "f": (5,)}
    assert members(ragged, 1) == {"a-c": (0, 1, 2), "de": (3, 4), "f": (5,)}
    assert [g.code for g in ragged.levels[0].groups] == ["ab", "de"]
    assert [g.code for g in ragged.levels[1].groups] == ["a-c"]


def test_a_group_may_list_finest_codes_at_any_level() -> None:
    hierarchy = build(("low", {"ab": ["a", "b"]}), ("high", {"a-c": ["a", "b", "c"]}))
    assert members(hierarchy, 1)["a-c"] == (0, 1, 2)


def test_categories_stand_in_the_order_of_their_first_code() -> None:
    hierarchy = build(("low", {"ef": ["f", "e"], "ab": ["b", "a"]}))
    assert list(members(hierarchy, 0)) == ["ab", "c", "d", "ef"]
    assert members(hierarchy, 0)["ef"] == (4, 5)


def test_two_hierarchies_of_one_variable_need_not_nest(dataset: Dataset) -> None:
    age = dataset.variable("age")
    assert [c.code for c in age.level("pairs").categories] == ["0-1", "2-3", "4", "5"]
    assert [c.code for c in age.level("halves").categories] == ["0-3", "4", "5"]
    assert [c.code for c in age.level("schooling").categories] == ["pre", "in"]
    pair, pre = age.category("2-3").member_set, age.category("pre").member_set
    assert pair & pre
    assert not pair <= pre
    assert age.category("0-1").label == "babies"
    assert age.category("2-3").label == "2-3"


@pytest.mark.parametrize(
    ("levels", "problem"),
    [
        (
            [("low", {"ab": ["a", "b"]}), ("high", {"bc": ["b", "c"]})],
            "level 'high': a group cuts through a category of the level below",
        ),
        (
            [("low", {"ab": ["a", "b"], "bc": ["b", "c"]})],
            "level 'low': groups 'ab' and 'bc' share a category",
        ),
        (
            [("low", {"ab": ["a", "b"]}), ("high", {"x": ["ab"], "y": ["a", "b"]})],
            "groups 'x' and 'y' share a category",
        ),
        ([("low", {"ab": ["a", "bb"]})], "group 'ab': member 'bb' is neither a category"),
        ([("low", {"ab": []})], "each group needs a text 'code' and a non-empty list 'members'"),
    ],
)
def test_a_level_that_does_not_nest_is_refused(levels: list[Any], problem: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        build(*levels)
    assert problem in str(caught.value)
    assert str(caught.value).startswith("Variable 'v', level")


def test_an_unknown_member_is_answered_with_the_near_one() -> None:
    with pytest.raises(DescriptionError, match=r"member 'abb' .* did you mean 'ab'\?"):
        build(("low", {"ab": ["a", "b"]}), ("high", {"x": ["abb", "c"]}))


@pytest.mark.parametrize("code", ["0", "0-1", "pre"])
def test_a_code_is_used_once_over_all_hierarchies(code: str, description: dict[str, Any]) -> None:
    level = description["variables"][0]["hierarchies"][1]["levels"][0]
    level["groups"][1]["code"] = code
    with pytest.raises(DescriptionError, match=f"uses the code '{code}' twice"):
        Dataset.from_mapping(description)


@given(seed=st.integers(0, 2**32), size=st.integers(1, 9), depth=st.integers(1, 4))
@settings(derandomize=True, database=None, deadline=None)
def test_every_level_is_a_partition_and_each_is_coarser_than_the_one_below(
    seed: int, size: int, depth: int
) -> None:
    dice = random.Random(seed)
    codes = "abcdefghi"[:size]
    below, levels = list(codes), []
    for number in range(depth):
        owner = {c: dice.randrange(3) for c in below}
        groups = {f"{number}{g}": [c for c in below if owner[c] == g] for g in (1, 2)}
        groups = {g: m for g, m in groups.items() if m}
        levels.append((f"level {number}", groups))
        below = [*groups, *(c for c in below if owner[c] == 0)]
    hierarchy = build(*levels, codes=codes)
    finer = [(i,) for i in range(size)]
    for number, level in enumerate(hierarchy.levels):
        held = [c.members for c in level.categories]
        assert sorted(p for m in held for p in m) == list(range(size))
        assert all(any(set(f) <= set(m) for m in held) for f in finer)
        assert {g.code for g in level.groups} == set(levels[number][1])
        finer = held


def plain_levels(codes: str, levels: list[tuple[str, dict[str, list[str]]]]) -> object:
    """The members of all levels and what they leave alone, code by code; or what is wrong with them."""
    below = {code: {place} for place, code in enumerate(codes)}
    base = dict(below)
    found = []
    for _, groups in levels:
        made: dict[str, set[int]] = {}
        for code, members in groups.items():
            made[code] = set()
            for member in members:
                if member not in below and member not in base:
                    return "neither"
                made[code] |= below.get(member) or base[member]
            if any(made[code] & others for other, others in made.items() if other != code):
                return "share a category"
        held = set().union(*made.values())
        for positions in below.values():
            if any(positions & group and not positions <= group for group in made.values()):
                return "cuts through"
        alone = {code: p for code, p in below.items() if not p & held}
        below = dict(sorted({**made, **alone}.items(), key=lambda one: min(one[1])))
        found.append(({code: tuple(sorted(p)) for code, p in below.items()}, set(alone)))
    return found


GROUPS = st.lists(st.sampled_from([*"abcdef", "P0", "P1", "Q0", "x"]), min_size=1, max_size=4)


@settings(max_examples=examples(200, 2000))
@given(st.lists(GROUPS, min_size=1, max_size=3), st.lists(GROUPS, min_size=1, max_size=2))
def test_levels_are_those_that_are_laid_out_code_by_code(
    first: list[list[str]], second: list[list[str]]
) -> None:
    levels = [
        (name, {f"{name}{j}": members for j, members in enumerate(groups)})
        for name, groups in (("P", first), ("Q", second))
    ]
    expected = plain_levels("abcdef", levels)
    if isinstance(expected, str):
        with pytest.raises(DescriptionError, match=expected):
            build(*levels)
        return
    made = build(*levels)
    assert [(members(made, j), set(made.levels[j].kept_codes)) for j in range(2)] == expected
    for level in made.levels:
        assert [c.members[0] for c in level.categories] == sorted(
            c.members[0] for c in level.categories
        )


def test_categories_of_finest_codes_are_made_when_somebody_asks_or_a_level_leaves_one_alone() -> (
    None
):
    def described(groups: list[dict[str, object]]) -> Dataset:
        levels = [{"name": "half", "groups": groups}]
        area = {
            "name": "area",
            "codes": list("abcd"),
            "hierarchies": [{"name": "h", "levels": levels}],
        }
        return Dataset.from_mapping({"dataset": {"name": "town"}, "variables": [area]})

    halves = [{"code": "h", "members": ["a", "b"]}, {"code": "k", "members": ["c", "d"]}]
    whole = described(halves).variables[0]
    assert "finest" not in vars(whole)
    assert whole.finest == tuple(finest(*"abcd"))
    assert whole.finest is whole.finest
    part = described(halves[:1]).variables[0]
    assert vars(part)["finest"] == tuple(finest(*"abcd"))
    assert [c is part.finest[c.members[0]] for c in part.level("half").categories] == [
        False,
        True,
        True,
    ]
