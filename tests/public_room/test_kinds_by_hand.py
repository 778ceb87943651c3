"""What a question is, what a bundle was protected by, and what numbers are offered: worked out by hand."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lustrum.model import Category, Dataset, InputError, Table, TableAxis, TableQuery
from lustrum.model.variable import Measure
from lustrum.policy import Policy
from lustrum.policy.presets import preset
from lustrum.policy.read import parse_policy
from lustrum.public.bundle import sample_risk as sampled
from lustrum.public.bundle.agreement import Difference, difference, protection_digest
from lustrum.public.bundle.kinds import Kind, Kinds
from lustrum.public.bundle.sample_risk import sample_risk
from lustrum.public.noise import KeyedNoise
from lustrum.public.numbers import Described, KeyedNumbers, keyed_noise
from lustrum.risk.population import LogLinear, PolyaUrn
from lustrum.runtime.remembered import Remembered

AREAS = ["a", "b", "c", "d"]
LAND = Dataset.from_mapping(
    {
        "dataset": {"name": "land"},
        "variables": [
            {"name": "region", "codes": ["N", "S"]},
            {
                "name": "area",
                "codes": AREAS,
                "hierarchies": [
                    {
                        "name": "h",
                        "levels": [
                            {
                                "name": "coast",
                                "groups": [
                                    {"code": "sea", "members": ["a", "d"]},
                                    {"code": "land", "members": ["b", "c"]},
                                ],
                            }
                        ],
                    }
                ],
            },
            {"name": "age", "codes": ["0", "1", "2"]},
            {"name": "land", "codes": ["only"]},
        ],
        "structural_zeros": [
            {"reason": "North.", "where": {"region": ["S"], "area": ["a"]}},
            {"reason": "South.", "where": {"region": ["N"], "area": ["b", "c", "d"]}},
        ],
    }
)
# Of each root the codes of every other variable, and the groups that published tables have.
REGION_OF = [0, 1, 1, 1]
ROOT = {"region": "area", "area": "area", "age": "age", "land": "land"}
GROUPS = {
    "area": [{0}, {1}, {2}, {3}, {0, 3}, {1, 2}, {1, 2, 3}],
    "age": [{0}, {1}, {2}],
}


def wanted(axes: list[tuple[str, list[set[int]]]], passing: dict[str, set[int]]) -> Kind:
    """The kind of a question by looking at every cell of it."""
    variables, own = 0, False
    for root, size in (("area", 4), ("age", 3)):
        mine = [(n, cats) for n, cats in axes if ROOT[n] == root]
        found = set()
        for cell in product(*(cats for _, cats in mine)):
            left = set()
            for code in range(size):
                of = {"area": code, "age": code, "region": REGION_OF[code] if size == 4 else -1}
                inside = all(of[n] in cats for (n, _), cats in zip(mine, cell, strict=True))
                through = all(of[n] in s for n, s in passing.items() if ROOT[n] == root)
                if inside and through:
                    left.add(code)
            if 0 < len(left) < size:
                found.add(frozenset(left))
        variables += bool(found)
        own |= any(set(codes) not in GROUPS[root] for codes in found)
    return Kind(max(variables, 1), own)


def _choices(size: int) -> list[set[int]]:
    return [set(c) for n in range(1, size + 1) for c in combinations(range(size), n)]


def questions() -> list[Any]:
    """Questions of every kind: axes at a level or by groups, and filters, drawn from all."""
    rng = np.random.default_rng(7)
    codes = {"region": 2, "area": 4, "age": 3, "land": 1}
    made: list[Any] = [([], {})]
    for _ in range(300):
        axes, passing = [], {}
        for name, size in codes.items():
            some = _choices(size)
            if rng.random() < 0.45:
                if rng.random() < 0.5:
                    axes.append((name, [{i} for i in range(size)]))
                else:
                    picked = rng.choice(len(some), size=min(len(some), 2), replace=False)
                    axes.append((name, [some[int(i)] for i in picked]))
            if rng.random() < 0.35:
                passing[name] = some[int(rng.integers(len(some)))]
        made.append((axes, passing))
    return made


def test_the_kind_of_a_question_is_that_of_its_cells() -> None:
    kinds = Kinds.of(LAND)
    seen = set()
    for axes, passing in questions():
        given = [
            (name, [Category(str(i), "", tuple(sorted(c))) for i, c in enumerate(cats)])
            for name, cats in axes
        ]
        found = kinds.kind(given, {n: frozenset(c) for n, c in passing.items()})
        assert found == wanted(axes, passing), (axes, passing)
        seen.add(found)
    assert seen == {Kind(n, own) for n in (1, 2) for own in (True, False)}


def test_the_groups_of_published_tables_are_those_of_levels() -> None:
    kinds = Kinds.of(LAND)
    assert set(kinds.controlled) == {"area", "age"}
    for root, groups in GROUPS.items():
        assert kinds.controlled[root] == {frozenset(g) for g in groups}


def test_a_variable_of_a_single_code_fixes_nothing() -> None:
    alone = Dataset.from_mapping(
        {"dataset": {"name": "one"}, "variables": [{"name": "land", "codes": ["only"]}]}
    )
    kinds = Kinds.of(alone)
    only = [("land", alone.variables[0].finest)]
    assert kinds.kind(only, {"land": frozenset({0})}) == Kind(1, False)


# --- The policy and the bundle

STEPS = """[[before]]
method = "protected-population"
base = 3
"""
MAGNITUDES = """[[before]]
method = "protected-magnitudes"
"""
WEIGHTS = """[weights]
weight = "w"
"""
END = """[protect]
method = "none"
end = true
"""


def policy(text: str = STEPS, head: str = "") -> Policy:
    top = 'dataset = "town"\n[rules]\n[risk]\nlimit = 1.0\n'
    return parse_policy((head + top + text + END).encode(), "it")


def test_the_first_difference_is_named_with_what_each_side_says() -> None:
    def found(asked: str, made: str, **words: bool) -> Difference | None:
        there = {"sums": False, "respondents": False, **words}
        return difference(policy(asked), policy(made), **there)

    assert found(STEPS, STEPS) is None
    assert found(STEPS.replace("3", "5"), STEPS) == Difference(
        ("before", 0, "base"), "'base' under [[before]] 1", "5", "3"
    )
    both = STEPS + MAGNITUDES
    assert found(both, both, sums=True) is None
    assert found(both, STEPS) == Difference(
        ("before", 1), "[[before]] 2", "protected-magnitudes", "nothing"
    )
    assert found(STEPS, both, sums=True) == Difference(
        ("before", 1), "[[before]] 2", "left out", "protected-magnitudes"
    )
    assert found(both, both) == Difference(
        ("before", 1), "protected-magnitudes", "asked for", "none"
    )
    assert found(STEPS, STEPS, sums=True) == Difference(
        ("before", 1), "protected-magnitudes", "not asked for", "it"
    )
    weighted = STEPS + WEIGHTS
    assert found(weighted, weighted, respondents=True) is None
    assert found(weighted, weighted) == Difference(("weights",), "[weights]", "asked for", "none")
    assert found(STEPS, STEPS, respondents=True) == Difference(
        ("weights",), "[weights]", "not asked for", "it"
    )
    assert found(weighted, STEPS) == Difference(("weights",), "[weights]", "there", "nothing")
    assert found(STEPS, weighted, respondents=True) == Difference(
        ("weights",), "[weights]", "left out", "it"
    )
    other = WEIGHTS + 'classes = ["área"]\n'
    assert found(STEPS + other, weighted, respondents=True) == Difference(
        ("weights", "classes"), "'classes' under [weights]", '["área"]', "[]"
    )
    said = Difference(("before", 0, "base"), "'base' under [[before]] 1", "5", "3")
    assert said.sentence("town", "p.toml, line 7") == (
        "p.toml, line 7: 'base' under [[before]] 1 is 5, and the bundle of 'town' was made with 3; make it "
        "again with 'lustrum protect --dataset town', or take the change back."
    )


def test_the_digest_is_one_of_all_that_protected_the_numbers() -> None:
    usual = protection_digest(policy(), 4, 2)
    assert len(usual) == 64
    assert protection_digest(policy(), 4, 2) == usual
    assert protection_digest(policy(head='title = "Another title"\n'), 4, 2) == usual
    others = {
        protection_digest(policy(STEPS.replace("3", "5")), 4, 2),
        protection_digest(policy(STEPS + MAGNITUDES), 4, 2),
        protection_digest(policy(STEPS + WEIGHTS), 4, 2),
        protection_digest(policy(STEPS + WEIGHTS.replace('"w"', '"v"')), 4, 2),
        protection_digest(policy(), 5, 2),
        protection_digest(policy(), 4, 3),
    }
    assert len(others | {usual}) == 7
    # Its words are those of the policy in their order of letters, as any reader can write them down.
    step = policy().before[0].spec.to_mapping()
    weights = {"class_size": 10, "classes": ["área"], "decimals": 0, "measure_classes": []}
    weights |= {"noise": 0.05, "weight": "w"}
    of_classes = protection_digest(policy(STEPS + WEIGHTS + 'classes = ["área"]\n'), 4, 2)
    for digest, said in ((usual, {}), (of_classes, weights)):
        words = {"layout": 2, "protection": {"before": [step], "weights": said}, "search": 4}
        text = json.dumps(words, sort_keys=True, ensure_ascii=False)
        assert digest == hashlib.sha256(text.encode()).hexdigest()


# --- What a sample protects


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled, "_known", Remembered(1 << 14))


def test_which_tables_are_measured() -> None:
    counts = np.array([[2, 1], [0, 4]])
    axes = (TableAxis.plain("a", ["1", "2"]), TableAxis.plain("b", ["1", "2"]))
    assert sample_risk(Table(axes, counts), 80) == sample_risk(counts, 80) is not None
    for table, people in (
        (counts, 7),
        (counts, 6),
        (np.zeros(4, dtype=int), 5),
        (np.array([3]), 5),
        (np.ones(1001, dtype=int), 10**6),
    ):
        assert sample_risk(table, people) is None
    for table in (np.array([3, 1]), np.ones(1000, dtype=int), np.array([1, 0])):
        assert sample_risk(table, 10**6) is not None


@pytest.mark.parametrize("which", [LogLinear, PolyaUrn])
def test_a_table_that_no_model_fits_is_not_measured(
    which: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise InputError("No model fits.")

    monkeypatch.setattr(which, "draw", fails)
    assert sample_risk(np.array([3, 1]), 9) is None


# --- What numbers protected by record keys offer


def test_numbers_protected_by_keys_offer_what_their_policy_says() -> None:
    town = Dataset("town", "Town", (), (Measure("pay", "Pay", decimals=2), Measure("hours", "h")))
    keyed = parse_policy(preset("cell-key", town).encode(), "it")
    assert keyed.sums is not None
    asked: list[Any] = []

    class Records:
        def views(self, query: TableQuery, policy: Policy) -> str:
            asked.append((query, policy))
            return "views"

    numbers = KeyedNumbers(Records(), keyed, Described("v7", town))  # type: ignore[arg-type]
    assert numbers.dataset is town
    assert numbers.mark == "v7"
    assert numbers.measures == ("pay", "hours")
    assert numbers.weights == ()
    assert numbers.weighted_measures == ()
    query = TableQuery("town", ())
    assert numbers.quotients(query, query, None) is None
    assert numbers.views(query) == "views"
    assert asked == [(query, keyed)]
    noise = numbers.sum_noise("pay")
    assert isinstance(noise, KeyedNoise)
    assert noise == keyed_noise(keyed, town, "pay") == KeyedNoise(keyed.sums.spec, 2)
    assert numbers.sum_noise("hours") == KeyedNoise(keyed.sums.spec, 0)
    plain = replace(numbers, policy=keyed.model_copy(update={"sums": None}))
    assert plain.measures == ()
    assert plain.sum_noise("pay") is None
    weighted = keyed.model_copy(update={"weights": policy(STEPS + WEIGHTS).weights})
    assert replace(numbers, policy=weighted).weights == ("w",)
    other = SimpleNamespace(sums=SimpleNamespace(spec=object()))
    assert keyed_noise(other, town, "pay") is None  # type: ignore[arg-type]
