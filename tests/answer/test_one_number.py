"""One population has one number, or none, in every table, however it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustrum.model import Axis, Filter, Group, TableQuery
from lustrum.policy import Policy
from lustrum.publish.records import EngineNumbers
from lustrum.tabulate import EmbeddedEngine

KEYED: list[dict[str, Any]] = [
    {"method": "random-rounding", "base": 3},
    {"method": "random-rounding", "base": 5},
    {"method": "conventional-rounding", "base": 5},
    {"method": "small-count-rounding", "how": "random", "totals": "own"},
    {"method": "cell-key"},
    {"method": "cell-key", "ptable": "designed", "largest_change": 3, "variance": 2.0},
]
NAMES = ("age", "sex", "area", "job")


@st.composite
def questions(draw: st.DrawFn, dataset: Any) -> TableQuery:
    """Tables of codes in any order, levels, own groups, totals and filters, some of them of nobody."""
    names = draw(st.permutations(NAMES))
    count = draw(st.integers(1, 3))
    axes = []
    for name in names[:count]:
        variable = dataset.variable(name)
        total = draw(st.booleans())
        some = st.lists(st.sampled_from(variable.codes), min_size=1, max_size=4, unique=True)
        kind = draw(st.sampled_from(["all", "codes", "group", "level"]))
        if kind == "codes":
            axes.append(Axis(name, codes=tuple(draw(some)), total=total))
        elif kind == "group":
            axes.append(Axis(name, groups=(Group("mine", tuple(draw(some))),), total=total))
        elif kind == "level" and variable.levels:
            axes.append(Axis(name, draw(st.sampled_from(variable.levels)).name, total=total))
        else:
            axes.append(Axis(name, total=total))
    where = []
    for name in names[count:]:
        if draw(st.booleans()):
            codes = st.lists(st.sampled_from(dataset.variable(name).codes), min_size=1, unique=True)
            where.append(Filter(name, tuple(draw(codes))))
    return TableQuery("town", tuple(axes), tuple(where))


@pytest.mark.parametrize("method", KEYED, ids=lambda words: "-".join(map(str, words.values())))
def test_the_same_people_show_the_same_number_in_every_table(
    engine: EmbeddedEngine, method: dict[str, Any]
) -> None:
    policy = Policy.model_validate({"protect": method, "rules": {"nested_only": False}})
    numbers = EngineNumbers(engine, policy)
    dataset = engine.dataset
    everybody = {name: dataset.variable(name).everything for name in NAMES}
    seen: dict[tuple[Any, ...], tuple[int, TableQuery]] = {}
    compared = 0

    @settings(max_examples=40)
    @given(questions(dataset))
    def tried(query: TableQuery) -> None:
        nonlocal compared
        release = numbers.views(query).shown
        chosen = dict(everybody)
        for item in query.where:
            chosen[item.variable] = item.members(dataset.variable(item.variable))
        for place in np.argwhere(release.shown):
            box = dict(chosen)
            for axis, i in zip(release.axes, place, strict=True):
                box[axis.name] = axis.categories[int(i)].member_set
            key = tuple(box[name] for name in NAMES)
            number = int(release.published[tuple(place)])
            if key in seen:
                compared += 1
                assert seen[key][0] == number, (seen[key][1], query)
            seen[key] = (number, query)

    tried()
    assert compared > 100
