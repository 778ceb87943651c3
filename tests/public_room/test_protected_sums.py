"""Protected sums in a bundle: described without contributors, additive, bounded for certain, and checked."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.demo import businesses, description_path
from lustrum.model import Axis, DatasetError, Filter, Group, InputError, TableQuery
from lustrum.model.finest import FinestCells
from lustrum.protect.magnitudes.factors import needed_factors
from lustrum.public.bundle import BundleNumbers, read_bundle
from lustrum.public.bundle.sums import sum_bounds
from lustrum.public.numbers import CannotProtectError
from lustrum.publish.bundles.make import MadeBundle, earlier_memory, make_bundle
from lustrum.publish.bundles.write import pack_bundle, write_bundle
from lustrum.tabulate import EmbeddedEngine, FrameSource, Secret, Store, ingest, read_description

POLICY = """dataset = "businesses"
[rules]
nested_only = false
[risk]
limit = 1.0
[[before]]
method = "protected-population"
base = 3
sweeps = 1
max_variables = 2
[[before]]
method = "protected-magnitudes"
p = 10.0
max_variables = 2
sweeps = 2
public_classes = ["size"]
[protect]
method = "none"
end = true
"""


class World:
    """A bundle with sums, and the records that it was made of."""

    def __init__(self, root: Path, policy: str = POLICY) -> None:
        self.store, self.place = Store(root), root / "bundle"
        dataset = read_description(description_path("businesses"))
        secret = Secret(bytes(range(32)))
        ingest(FrameSource(businesses(1500)), dataset, self.store, secret=secret)
        (root / "policy.toml").write_text(policy)
        self.policy = root / "policy.toml"
        self.made: MadeBundle = make_bundle(self.store, "businesses", self.policy, self.place)
        self.engine: EmbeddedEngine = self.store.open("businesses")
        self.numbers = BundleNumbers(read_bundle(self.place))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("sums"))


PUBLIC = POLICY.replace("p = 10.0", 'p = 10.0\nexistence = "public"')


@pytest.fixture(scope="module")
def register(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("public"), PUBLIC)


def asked(measure: str | None = "turnover", **words: Any) -> TableQuery:
    axes = (Axis("activity", level="section", total=True), Axis("region", total=True))
    return TableQuery("businesses", words.pop("by", axes), measure=measure, **words)


QUESTIONS = {
    "plain": {},
    "everything": {"by": ()},
    "filtered": {"where": (Filter("size", ("1", "2")),)},
    "own groups": {
        "by": (
            Axis("activity", groups=(Group("light", ("10", "13", "14")), Group("rest", ("45",)))),
            Axis("size"),
        )
    },
}


def test_measures_are_described_without_contributors(world: World) -> None:
    words = json.loads((world.place.resolve() / "dataset.json").read_bytes())
    assert {m["name"] for m in words["measures"]} == set(world.numbers.measures)
    text = json.dumps(words)
    assert "holding" not in text
    assert "weights" not in words
    assert "business_id" not in text


FINE = (Axis("activity"), Axis("area"))


@pytest.mark.parametrize("question", [*QUESTIONS, "fine"])
def test_where_existence_is_secret_a_sum_tells_no_more_than_the_count(
    world: World, question: str
) -> None:
    words = {"by": FINE} if question == "fine" else QUESTIONS[question]
    count = world.numbers.views(asked(None, **words)).shown
    total = world.numbers.views(asked("turnover", **words)).shown
    assert np.array_equal(count.published > 0, total.published > 0)
    # A new firm had no turnover a year before.
    before = world.numbers.views(asked("turnover_before", **words)).shown
    assert not ((count.published == 0) & (before.published != 0)).any()
    true = world.engine.tabulate(asked(None, **words)).values
    assert (count.low <= true).all()
    assert (true <= count.high).all()
    if question == "fine":
        # Tables in which plain sums would tell: occupied cells that show 0, and the reverse.
        assert ((true > 0) & (count.published == 0)).sum() > 50
        assert ((true == 0) & (count.published > 0)).any()


@pytest.mark.parametrize("question", [*QUESTIONS, "fine"])
def test_where_existence_is_public_bounds_of_counts_use_what_sums_tell(
    register: World, question: str
) -> None:
    words = {"by": FINE} if question == "fine" else QUESTIONS[question]
    count = register.numbers.views(asked(None, **words)).shown
    total = register.numbers.views(asked("turnover", **words)).shown.published
    true = register.engine.tabulate(asked(None, **words)).values
    assert (count.low <= true).all()
    assert (true <= count.high).all()
    assert np.array_equal(count.low > 0, total > 0)
    assert np.array_equal(count.high > 0, total > 0)
    if question == "fine":
        hidden = (count.published == 0) & (true > 0)
        assert hidden.sum() > 50
        assert (count.low[hidden] >= 1).all()


def test_a_bundle_with_a_sum_beside_a_count_of_0_is_refused(world: World, tmp_path: Path) -> None:
    bundle = world.numbers.bundle
    fewer = FinestCells(bundle.dataset, bundle.cells.codes[:, 1:], bundle.cells.counts[1:])
    packed = pack_bundle(
        fewer, world.policy.read_bytes(), bundle.report, None, world.numbers.bundle.sums
    )
    write_bundle(tmp_path / "untied", packed)
    with pytest.raises(DatasetError, match="written by another version"):
        read_bundle(tmp_path / "untied")


def test_the_same_records_give_the_same_sums(world: World, tmp_path: Path) -> None:
    again = make_bundle(world.store, "businesses", world.policy, tmp_path / "again")
    assert again.digest == world.made.digest


def test_other_sums_of_the_same_contributors_are_refused(world: World, tmp_path: Path) -> None:
    place, folder = tmp_path / "place", tmp_path / "own"
    first = make_bundle(world.store, "businesses", world.policy, place, folder=folder)
    memory = earlier_memory(folder, place)
    again = make_bundle(
        world.store, "businesses", world.policy, place, folder=folder, previous=memory
    )
    assert again.digest == first.digest
    other = tmp_path / "policy.toml"
    other.write_text(POLICY.replace("p = 10.0", "p = 8.0"))
    with pytest.raises(InputError, match="made with p = 10"):
        make_bundle(world.store, "businesses", other, place, folder=folder, previous=memory)
    assert memory is not None
    lost = replace(memory, sums=None)
    with pytest.raises(DatasetError, match="holds protected sums already"):
        make_bundle(world.store, "businesses", other, place, folder=folder, previous=lost)


def test_what_the_bundle_does_not_hold_is_not_answered(world: World) -> None:
    bundle = replace(world.numbers.bundle, sums=None)
    with pytest.raises(CannotProtectError):
        BundleNumbers(bundle).views(asked())


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8), st.data())
def test_bounds_of_sums_hold_for_every_outcome(values: list[int], data: st.DataObject) -> None:
    factors = needed_factors(Fraction(data.draw(st.sampled_from([2, 5, 10])), 100), "known")
    low, high = factors.amounts(np.array(values))
    noise = [
        data.draw(st.sampled_from([1, -1])) * data.draw(st.integers(int(a), int(b)))
        for a, b in zip(low, high, strict=True)
    ]
    published = np.array([sum(values) + sum(noise)])
    least, most = sum_bounds(published, np.array([len(values)]), factors.most)
    assert least[0] <= sum(values) <= most[0]
