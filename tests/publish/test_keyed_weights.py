"""Weighted counts under keyed methods: a function of public numbers, and nobody's weight."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from lustrum.answer import answer
from lustrum.demo import description_path, survey
from lustrum.local import local_service
from lustrum.model import PolicyError, Release, TableQuery
from lustrum.policy import Policy
from lustrum.policy.read import parse_policy
from lustrum.publish.records import EngineNumbers
from lustrum.publish.records.protected_input import ProtectedInput
from lustrum.server import Settings, create_app
from lustrum.tabulate import FrameEngine, FrameSource, Secret, Store, ingest, read_description

SECRET = Secret(bytes(range(32)))
POLICY = """dataset = "survey"
protect = {method = "METHOD"}
rules = {max_dimensions = 3, nested_only = false}
risk = {limit = 1.0}
weights = {weight = "weight", classes = ["district", "sex"], class_size = 20}
end = true
"""
METHODS = ["random-rounding", "cell-key"]


def policy(method: str) -> Policy:
    return parse_policy(POLICY.replace("METHOD", method).encode(), "policy.toml")


class World:
    """The demo survey under a keyed method."""

    def __init__(self, table: pa.Table, method: str) -> None:
        engine = FrameEngine(table, read_description(description_path("survey")), SECRET)
        self.policy = policy(method)
        self.numbers = EngineNumbers(engine, self.policy, ProtectedInput(engine, secret=SECRET))

    def asked(self, weight: str | None = "weight", **words: object) -> Release:
        query = {"dataset": "survey", **words} | ({"weight": weight} if weight else {})
        decision = answer(TableQuery.from_mapping(query), self.numbers, self.policy)
        assert decision.release is not None, decision.reasons
        return decision.release

    @cached_property
    def by_class(self) -> tuple[np.ndarray, np.ndarray]:
        by = ["district", "sex"]
        return self.asked(by=by).published, self.asked(None, by=by).published


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return survey()


@pytest.fixture(scope="module", params=METHODS)
def world(table: pa.Table, request: pytest.FixtureRequest) -> World:
    return World(table, request.param)


QUESTIONS = {
    "no class": {"by": ["employment", "age"]},
    "one class": {"by": ["employment", {"variable": "sex", "total": True}]},
    "both, turned": {"by": ["sex", "district"]},
    "a coarser level": {"by": [{"variable": "district", "level": "region"}, "age"]},
    "a filter on a class": {"by": ["employment"], "where": {"sex": ["2"]}},
    "a filter beside": {"by": ["district"], "where": {"age": ["1", "2"]}},
    "own groups": {
        "by": [
            "age",
            {"variable": "district", "groups": [{"label": "a", "members": ["1-01", "2-06"]}]},
        ]
    },
}


def mean_weight(world: World, districts: set[int], sexes: set[int]) -> float:
    """From two public tables: weighted and plain numbers of respondents by the class variables."""
    weighted, plain = world.by_class
    pick = np.ix_(sorted(districts), sorted(sexes))
    return float(weighted[pick].sum() / plain[pick].sum())


@pytest.mark.parametrize("question", QUESTIONS)
def test_weighted_counts_follow_from_public_tables(world: World, question: str) -> None:
    words = dict(QUESTIONS[question])
    dataset = world.numbers.dataset
    shown, plain = world.asked(**words), world.asked(None, **words)
    assert shown.axes == plain.axes
    filtered = {
        f.variable: set(f.members(dataset.variable(f.variable)))
        for f in TableQuery.from_mapping({"dataset": "survey", **words}).where
    }
    for cell in np.ndindex(shown.shape):
        about = {
            name: filtered.get(name, set(range(len(dataset.variable(name).codes))))
            for name in ("district", "sex")
        }
        for axis, place in zip(shown.axes, cell, strict=True):
            if axis.name in about:
                about[axis.name] = set(axis.categories[place].members)
        expected = plain.numbers[cell] * mean_weight(world, about["district"], about["sex"])
        assert abs(int(shown.numbers[cell]) - expected) <= 0.51 + 0.001 * expected


def test_weighted_counts_come_near_the_estimates(world: World, table: pa.Table) -> None:
    shown = world.asked(by=["employment"])
    weight = table.column("weight").to_numpy()
    code = np.asarray(table.column("employment").combine_chunks().indices)
    estimate = np.bincount(code, weights=weight)
    assert np.median(np.abs(shown.published / estimate - 1)) < 0.1
    total = world.asked(by=["sex"]).published.sum()
    assert abs(int(total) / weight.sum() - 1) < 0.02
    assert shown.errors is None
    assert shown.least is None
    assert any("nobody's own weight" in note for note in shown.notes)


@pytest.mark.parametrize("method", METHODS)
def test_other_weights_with_the_same_sums_show_the_same(table: pa.Table, method: str) -> None:
    """Two samples whose weights differ within classes: all weighted tables are the same."""
    weight = table.column("weight").to_numpy()
    place = [np.asarray(table.column(n).combine_chunks().indices) for n in ("district", "sex")]
    key = place[0].astype(np.int64) * 2 + place[1]
    other = weight.copy()
    order = np.argsort(key, kind="stable")
    pairs = order[: 2 * (order.size // 2)].reshape(-1, 2)
    pairs = pairs[key[pairs[:, 0]] == key[pairs[:, 1]]]
    change = np.round(0.3 * np.minimum(weight[pairs[:, 0]], weight[pairs[:, 1]]), 2)
    other[pairs[:, 0]] += change
    other[pairs[:, 1]] -= change
    changed = table.set_column(table.column_names.index("weight"), "weight", pa.array(other))
    one, two = World(table, method), World(changed, method)
    for words in ({"by": ["district", "age"]}, {"by": ["education"]}):
        assert np.array_equal(one.asked(**words).published, two.asked(**words).published)


def test_mean_weights_are_nobodys_own(world: World, table: pa.Table) -> None:
    shown, plain = world.by_class
    own = table.column("weight").to_numpy()
    means = shown[plain > 0] / plain[plain > 0]
    # Whole numbers by class, none of them the weight of a respondent, which has cents.
    assert np.allclose(means, np.rint(means))
    assert not np.isin(np.rint(means), own[own != np.rint(own)]).any()


def test_what_is_not_protected_is_refused(world: World) -> None:
    for words in (
        {"by": ["sex"], "weight": "weight", "statistics": ["mean:hours"]},
        {"by": ["sex"], "weight": "hours"},
    ):
        query = TableQuery.from_mapping({"dataset": "survey", **words})
        decision = answer(query, world.numbers, world.policy)
        assert decision.release is None
        assert decision.reasons[0].rule == "method"


def test_a_keyed_policy_names_classes_and_a_method() -> None:
    for old, new, said in (
        ('classes = ["district", "sex"], ', "", "name the variables that weights follow"),
        ("max_dimensions = 3", "max_dimensions = 1", "more variables than a table may have"),
        ('{method = "METHOD"}', '{method = "none"}', "goes with a protected population"),
    ):
        text = POLICY.replace(old, new).replace("METHOD", "random-rounding")
        with pytest.raises(PolicyError, match=said):
            parse_policy(text.encode(), "policy.toml")


def test_a_service_over_records_weights_counts_too(tmp_path: Path, table: pa.Table) -> None:
    described = read_description(description_path("survey"))
    ingest(FrameSource(table), described, Store(tmp_path), secret=SECRET)
    (tmp_path / "policies").mkdir()
    text = POLICY.replace("METHOD", "random-rounding")
    (tmp_path / "policies" / "survey.toml").write_text(text)
    service = local_service(tmp_path, workers=1)
    numbers = service.snapshot("survey").numbers
    assert (numbers.measures, numbers.weights) == ((), ("weight",))
    assert numbers.weighted_measures == ()
    words = {"dataset": "survey", "by": ["employment"], "weight": "weight"}
    query = TableQuery.from_mapping(words)
    first, again = service.answer(query), service.answer(query)
    assert np.array_equal(first.release.published, again.release.published)
    other = World(table, "random-rounding").asked(by=["employment"])
    assert np.array_equal(first.release.published, other.published)
    client = TestClient(create_app(service, Settings(rate="")), base_url="http://lustrum.test")
    page = client.get("/datasets/survey/table?by=employment&weight=weight").text
    assert "They have no standard errors" in page
    assert "±" not in page
    service.close()
