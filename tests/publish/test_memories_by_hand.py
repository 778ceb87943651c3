"""What an agency remembers of releases, and mean weights of classes: by hand, from tiny inputs."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import DatasetError, Release, TableAxis, TableQuery
from lustrum.policy.read import parse_policy
from lustrum.protect.magnitudes.remembered import LastShown, RememberedSums
from lustrum.protect.weighted import classes as limits
from lustrum.protect.weighted.classes import MeanWeights
from lustrum.public.numbers import CannotProtectError
from lustrum.publish.bundles.history import ReleaseHistory
from lustrum.publish.bundles.sum_memory import remembered_sums, sums_bytes
from lustrum.publish.records import views as module
from lustrum.publish.records.protected_input import ProtectedInput
from lustrum.publish.records.views import mean_weights, weighted_release
from lustrum.tabulate.frame import FrameEngine
from lustrum.tabulate.keys import Secret
from small import described

# The history of releases


def memory(digest: str, *earlier: str) -> Any:
    return SimpleNamespace(digest=digest, earlier=earlier)


def history(root: Path, *digests: str) -> ReleaseHistory:
    found = ReleaseHistory.read(root, "town")
    assert found == ReleaseHistory(root / "releases" / "town.json")
    for k, digest in enumerate(digests):
        found.record(memory(digests[k - 1], *digests[: k - 1]) if k else None, digest)
        found = ReleaseHistory.read(root, "town")
    return found


@pytest.mark.parametrize(
    ("before", "previous", "digest", "said"),
    [
        # The first release continues nothing, and needs nothing.
        ((), None, "a", None),
        ((), memory("z"), "a", None),
        (("a",), None, "b", "does not continue any"),
        (("a",), memory("a"), "b", None),
        (("a", "b"), memory("a"), "c", "continues an earlier one"),
        (("a", "b"), memory("b", "a"), "c", None),
        # A memory that is later than the last release that this folder knows goes on from it too.
        (("a", "b"), memory("x", "a", "b"), "c", None),
        (("a", "b"), memory("x", "a"), "c", "continues an earlier one"),
        # An old release may be made again.
        (("a", "b"), None, "a", None),
        (("a", "b"), memory("a"), "b", None),
    ],
)
def test_a_release_goes_on_from_the_last_one(
    tmp_path: Path, before: tuple[str, ...], previous: Any, digest: str, said: str | None
) -> None:
    found = history(tmp_path, *before)
    assert found.digests == before
    if said is None:
        found.require_continued(previous, digest)
        return
    with pytest.raises(DatasetError) as error:
        found.require_continued(previous, digest)
    assert said in str(error.value)
    assert f"memory-{before[-1]}.arrow" in str(error.value)


@pytest.mark.parametrize(
    ("before", "previous", "digest", "begins", "after"),
    [
        ((), None, "a", False, ("a",)),
        (("a",), memory("a"), "b", False, ("a", "b")),
        (("a", "b"), memory("b", "a"), "a", False, ("a", "b")),
        # What was made elsewhere and is continued here is remembered too.
        (("a",), memory("x", "a", "w"), "b", False, ("a", "w", "x", "b")),
        ((), memory("x", "w"), "b", False, ("w", "x", "b")),
        (("a", "b"), None, "c", True, ("c",)),
        (("a", "b"), None, "b", True, ("b",)),
    ],
)
def test_every_release_that_was_continued_is_remembered(
    tmp_path: Path,
    before: tuple[str, ...],
    previous: Any,
    digest: str,
    begins: bool,
    after: tuple[str, ...],
) -> None:
    history(tmp_path, *before).record(previous, digest, begins=begins)
    path = tmp_path / "releases" / "town.json"
    assert ReleaseHistory.read(tmp_path, "town").digests == after
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert json.loads(path.read_text()) == {"releases": list(after)}


@pytest.mark.parametrize(
    "raw",
    ["", "[]", "{}", '{"releases": "a"}', '{"releases": [1]}', '{"releases": ["a", ""]}', "3"],
)
def test_a_damaged_history_is_no_empty_one(tmp_path: Path, raw: str) -> None:
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "town.json").write_text(raw)
    with pytest.raises(DatasetError, match="restore it from a backup"):
        ReleaseHistory.read(tmp_path, "town")
    (tmp_path / "releases" / "town.json").write_text('{"releases": []}')
    assert ReleaseHistory.read(tmp_path, "town").digests == ()


# The memory of sums


def kept(rng: np.random.Generator, records: int, measures: int, reach: bool) -> RememberedSums:
    """Some records, one of which is carried in two pieces."""
    carried = np.concatenate([np.arange(records), rng.integers(0, records, 2)])
    rng.shuffle(carried)
    names = [f"m{k}" for k in range(measures)]
    resting = {
        name: LastShown(
            np.sort(rng.choice(2**62, 3)).astype(np.uint64),
            *rng.integers(-9, 99, (2, 3)),
            rng.integers(-1, 2**62, (4, 3)),
        )
        for name in ("rent", *names)
    }
    return RememberedSums(
        {"method": "noise", "p": 10},
        3,
        np.sort(rng.choice(2**62, records, replace=False)).astype(np.uint64),
        {name: rng.integers(-9, 99, records) for name in names},
        {name: rng.integers(-9, 99, records) for name in names},
        rng.integers(0, 5, (2, records)).astype(np.uint32),
        carried,
        rng.integers(0, 5, (2, carried.size)).astype(np.uint32),
        {name: rng.integers(0, 99, (4, records)) for name in names[:1]} if reach else {},
        resting if rng.random() < 0.5 else {},
    )


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 2), st.booleans())
def test_a_memory_of_sums_says_again_what_it_was_told(
    seed: int, records: int, measures: int, reach: bool
) -> None:
    one = kept(np.random.default_rng(seed), records, measures, reach)
    data = sums_bytes(one)
    two = remembered_sums(data)
    assert (dict(two.method), two.release) == (dict(one.method), one.release)
    assert two.record.tolist() == one.record.tolist()
    for name in one.true:
        assert two.true[name].tolist() == one.true[name].tolist()
        assert two.shown[name].tolist() == one.shown[name].tolist()
    assert list(two.true) == list(one.true)
    assert two.home.tolist() == one.home.tolist()
    assert {name: ends.tolist() for name, ends in two.reach.items()} == {
        name: ends.tolist() for name, ends in one.reach.items()
    }

    assert list(two.resting) == list(one.resting)
    for name, own in one.resting.items():
        for column in ("record", "true", "shown", "reach"):
            found, expected = getattr(two.resting[name], column), getattr(own, column)
            assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())

    def pieces(memory: RememberedSums) -> list[tuple[int, ...]]:
        return sorted(
            (int(who), *map(int, where))
            for who, where in zip(memory.carried, memory.cell.T, strict=True)
        )

    assert pieces(two) == pieces(one)
    # The bytes do not tell in which order the pieces were held, and are the same again.
    assert sums_bytes(two) == data


def test_pieces_of_a_record_stay_in_their_order() -> None:
    """The same pieces are the same bytes on every machine: a sort of equal numbers must not mix them."""
    rng = np.random.default_rng(3)
    one = kept(rng, 3, 1, False)
    carried = rng.integers(0, 3, 400)
    cell = np.stack([np.arange(400) // 20, np.arange(400) % 20]).astype(np.uint32)
    two = remembered_sums(sums_bytes(replace(one, carried=carried, cell=cell)))
    for record in range(3):
        assert two.cell[:, two.carried == record].tolist() == cell[:, carried == record].tolist()


# Mean weights of classes

POLICY = """dataset = "town"
protect = {method = "random-rounding", base = 3}
rules = {max_dimensions = 2, nested_only = false}
risk = {limit = 1.0}
weights = {weight = "w", classes = ["area", "job"], class_size = 4, noise = 0.1, decimals = 2}
end = true
"""
SECRET = Secret(bytes(range(32)))
PEOPLE = [
    {"id": str(k), "area": "ns"[k % 2], "job": "aabc"[k % 4], "w": 1.5 + k % 5} for k in range(40)
]


def source(total: int | None = None, secret: Secret | None = SECRET) -> ProtectedInput:
    dataset = described(
        "town",
        {"area": "ns", "job": "abc"},
        head={"units": "people", "record_id": "id"},
        weights=[{"name": "w", "decimals": 2} | ({"total": total} if total else {})],
    )
    engine = FrameEngine(pa.Table.from_pylist(PEOPLE), dataset, secret, 1)
    return ProtectedInput(engine, secret=secret)


def policy(text: str = POLICY) -> Any:
    return parse_policy(text.encode(), "policy.toml")


@pytest.mark.parametrize("total", [None, 5000])
def test_mean_weights_follow_from_what_a_table_of_the_classes_shows(
    total: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    given_weights = np.array([[200, 300, 0], [400, 100, 250]])

    def spied(codes: Any, numbers: Any, weights: Any, keys: Any, **words: Any) -> Any:
        asked.append((codes, numbers, weights, keys, words))
        return given_weights

    monkeypatch.setattr(module, "class_weights", spied)
    own = source(total)
    made = mean_weights(own, policy())
    ((codes, numbers, weights, keys, words),) = asked
    (chunk,) = own.engine.chunks  # type: ignore[attr-defined]
    assert [c.tolist() for c in codes] == [
        ["ns".index(row["area"]) for row in PEOPLE],
        ["abc".index(row["job"]) for row in PEOPLE],
    ]
    assert weights.tolist() == [row["w"] for row in PEOPLE]
    assert keys.tolist() == chunk.keys.tolist()
    # Numbers are protected ones, as everybody sees them.
    query = TableQuery.from_mapping({"dataset": "town", "by": ["area", "job"]})
    seen = own.protect(own.engine.tabulate(query), policy().protect)
    assert numbers.tolist() == seen.published.tolist()
    assert (numbers % 3 == 0).all()
    assert (words["class_size"], words["noise"], words["decimals"]) == (4, 0.1, 2)
    said = json.dumps(policy().weights.model_dump(), sort_keys=True)
    assert words["secret"] == SECRET.derive(f"lustrum mean weights town {said}")
    assert made.variables == ("area", "job")
    assert made.decimals == 2
    assert made.numbers.tolist() == numbers.tolist()
    if not total:
        assert made.weights.tolist() == given_weights.tolist()
        return
    # Weights sum to the size of the frame, as near as whole numbers come, and none is 0.
    assert abs(int((made.weights * numbers).sum()) - 500000) <= numbers.sum()
    assert made.weights[0, 2] == 1
    stretch = 500000 / int((given_weights * numbers).sum())
    assert made.weights[0, 0] == round(200 * stretch)


def test_numbers_that_are_hidden_or_below_nobody_count_as_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def spied(codes: Any, numbers: Any, *_: Any, **__: Any) -> Any:
        asked.append(numbers)
        return np.ones((2, 3), dtype=np.int64)

    def protect(self: Any, table: Any, method: Any) -> Release:
        status = np.full((2, 3), "F")
        status[0, 0] = "N"
        return Release(table.axes, np.array([[9, -3, 6], [0, 3, 3]]), status, {"method": "m"})

    monkeypatch.setattr(module, "class_weights", spied)
    monkeypatch.setattr(ProtectedInput, "protect", protect)
    mean_weights(source(), policy())
    assert asked[0].tolist() == [[0, 0, 6], [0, 3, 3]]
    # Where nobody is seen, there is nothing to stretch.
    monkeypatch.setattr(
        ProtectedInput,
        "protect",
        lambda self, table, method: Release(
            table.axes, np.zeros((2, 3), dtype=int), np.full((2, 3), "F"), {"method": "m"}
        ),
    )
    assert mean_weights(source(5000), policy()).weights.tolist() == [[1] * 3] * 2


def test_weights_that_cannot_be_protected_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = policy()
    without = plain.model_copy(update={"weights": None})
    for own, rules in (
        (source(), without),
        (source(secret=None), plain),
        (replace(source(), engine=SimpleNamespace()), plain),
    ):
        with pytest.raises(CannotProtectError, match="There are no weights to protect"):
            mean_weights(own, rules)
    good = source()
    (chunk,) = good.engine.chunks  # type: ignore[attr-defined]
    counted = replace(chunk, counts=np.ones(chunk.rows, dtype=np.int64))
    bare = replace(chunk, numbers={})
    keyless = replace(chunk, keys=None)
    for wrong, said in ((counted, "no weights"), (bare, "no weights"), (keyless, "no record keys")):
        told = property(lambda self, wrong=wrong: [chunk, wrong])
        monkeypatch.setattr(FrameEngine, "chunks", told)
        with pytest.raises(CannotProtectError, match=said):
            mean_weights(good, plain)
    # An empty part holds nobody whose weight or key could be missing.
    empty = replace(bare, rows=0, codes={n: c[:0] for n, c in chunk.codes.items()}, keys=None)
    monkeypatch.setattr(FrameEngine, "chunks", property(lambda self: [chunk, empty]))
    assert mean_weights(good, plain).weights.shape == (2, 3)
    monkeypatch.undo()
    monkeypatch.setattr(limits, "_MOST", 5)
    with pytest.raises(CannotProtectError, match="cannot protect such weights"):
        mean_weights(source(), plain)
    monkeypatch.setattr(limits, "_MOST", 6)
    assert mean_weights(source(), plain).weights.shape == (2, 3)


def test_a_weighted_table_is_protected_counts_times_mean_weights() -> None:
    own = source()
    area = TableAxis.plain("area", ["n", "s"])
    counted = Release(
        (area,),
        np.array([6, 9]),
        np.array(["F", "N"]),
        {"method": "m"},
        least=np.array([4, 7]),
        most=np.array([8, 11]),
        notes=("first",),
    )
    mean = MeanWeights(("area",), np.array([150, 200]), np.array([3, 3]), decimals=2)
    query = TableQuery.from_mapping({"dataset": "town", "by": ["area"]})
    made = weighted_release(query, counted, own, mean)
    assert made.numbers.tolist() == [900, 0]
    assert made.decimals == 2
    assert made.unit == "people"
    # Bounds and chances of counts are not those of what they were multiplied with.
    assert (made.low, made.high, made.channel) == (None, None, None)
    assert dict(made.method) == {"method": "m", "weights": "means of classes"}
    assert made.notes[0] == "first"
    assert "mean weights of area" in str(made.notes[1])
    assert made.status.tolist() == ["F", "N"]
    rounded = own.protect(own.engine.tabulate(query), policy().protect)
    assert rounded.channel is not None
    assert weighted_release(query, rounded, own, mean).channel is None
