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

from lustrum.model import Category, Dataset, Table, TableAxis, TableQuery
from lustrum.model.variable import Measure
from lustrum.policy import Policy
from lustrum.policy.presets import preset
from lustrum.policy.read import parse_policy
from lustrum.public.bundle.agreement import protection_digest
from lustrum.public.bundle.sums import Kind, Kinds

# Whether a sample is measured at all.
from lustrum.public.bundle.weighted import _are_apart, sample_risk
from lustrum.public.noise import KeyedNoise
from lustrum.public.numbers import Described, KeyedNumbers, keyed_noise
from lustrum.risk import R1, R2, estimate_risk
from small import described, hierarchy

AREAS = ["a", "b", "c", "d"]
LAND = described(
    "land",
    {
        "region": "NS",
        "area": {
            "codes": AREAS,
            "hierarchies": [hierarchy("h", {"coast": {"sea": "ad", "land": "bc"}})],
        },
        "age": "012",
        "land": ["only"],
    },
    structural_zeros=[
        {"reason": "North.", "where": {"region": ["S"], "area": ["a"]}},
        {"reason": "South.", "where": {"region": ["N"], "area": ["b", "c", "d"]}},
    ],
)
# Of each root the codes of every other variable, and the groups that published tables have.
REGION_OF = [0, 1, 1, 1]
ROOT = {"region": "area", "area": "area", "age": "age", "land": "land"}
GROUPS = {"area": [{0}, {1}, {2}, {3}, {0, 3}, {1, 2}, {1, 2, 3}], "age": [{0}, {1}, {2}]}


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
    alone = described("one", {"land": ["only"]})
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


# --- What numbers protected by record keys offer


def test_numbers_protected_by_keys_offer_what_their_policy_says() -> None:
    town = Dataset("town", "Town", (), (Measure("pay", "Pay", decimals=2), Measure("hours", "h")))
    keyed = parse_policy(preset("cell-key", town).encode(), "it")
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


def test_sampling_protects_and_the_worse_model_counts() -> None:
    counts = np.array([[30, 4, 0], [12, 0, 1], [7, 9, 0]])
    found = sample_risk(counts, 2500)
    assert 0 < found.sample < found.everybody < 1
    assert (found.respondents, found.people) == (63, 2500)
    models = estimate_risk(counts, 2500, measure=R2(), draws=40, rng=2015).models
    assert found.sample == max(model.mean for model in models)
    assert len({model.mean for model in models}) > 1
    everybody = estimate_risk(counts, 2500, measure=R1(), draws=40, rng=2015).models
    assert found.everybody == max(model.mean for model in everybody)
    assert sample_risk(counts, 2500) == found
    # What is remembered is of this table alone: counts, shape, size and what cannot exist.
    for other, people in ((counts.T, 2500), (counts, 2501), (counts[::-1], 2500)):
        assert sample_risk(np.ascontiguousarray(other), people) != found
    axes = tuple(TableAxis.plain(name, ["1", "2", "3"]) for name in "ab")
    assert sample_risk(Table(axes, counts, structural=counts == 0), 2500) != found


def test_a_smaller_part_of_the_population_is_less_risky() -> None:
    """R2 is at most R1, and a sample that is nearly everybody comes close to it."""
    counts = np.array([40, 3, 0, 0, 9, 20])
    near, far = sample_risk(counts, 73), sample_risk(counts, 7200)
    assert near.everybody - near.sample < far.everybody - far.sample + 0.2
    assert far.sample < far.everybody


@pytest.mark.parametrize(
    ("counts", "people"),
    [
        (np.array([5]), 100),
        (np.array([0, 0]), 100),
        (np.array([5, 5]), 10),
        (np.ones((40, 40), dtype=np.int64), 10**6),
    ],
)
def test_tables_that_are_not_measured(counts: np.ndarray, people: int) -> None:
    assert sample_risk(counts, people) is None


def test_own_groups_that_overlap_are_not_measured() -> None:
    one, other = Category("a", "A", (0, 1)), Category("b", "B", (1, 2))
    assert not _are_apart(TableAxis("x", "X", (one, other)))
    assert _are_apart(TableAxis("x", "X", (one, Category("c", "C", (2,)))))
