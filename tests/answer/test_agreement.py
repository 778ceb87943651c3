"""A policy that asks for another protection than its bundle has is refused, with the line that differs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from faults.world import ASKED, build
from lustrum.local import local_service
from lustrum.local.service import health
from lustrum.model import Dataset, LustrumError, PolicyError
from lustrum.policy import check_names
from lustrum.policy.read import line_of, parse_policy
from lustrum.public.bundle import read_bundle
from lustrum.public.bundle.agreement import difference
from lustrum.publish.bundles.make import make_bundle
from lustrum.tabulate import Store

POLICY = """dataset = "town"
[rules]
[risk]
limit = 1.0
[[before]]
method = "protected-population"
base = 3
sweeps = 1
[protect]
method = "none"
end = true
"""
# Every parameter on a line of its own.
WHOLE = """dataset = "town"
[rules]
[risk]
limit = 1.0
[[before]]
method = "protected-population"
base = 3
cells = "all"
empty_share = 0.1
max_variables = 3
tables = [["area", "size"]]
own_weight = 4
known_totals = [["area"]]
coalition = 1
min_left = 2
if_fewer = "report"
extra_tables = 1100
sweeps = 12
refresh = 0.05
change_odds = 0.5
known_changes = 2.0
sparse_siblings = 1.0
[[before]]
method = "protected-magnitudes"
p = 5.0
directions = "known"
search_range = 0.0
max_variables = 3
tables = []
measures = ["pay"]
existence = "public"
sweeps = 10
leader_part = 0.2
public_classes = []
[weights]
weight = "w"
classes = ["area"]
measure_classes = ["size"]
class_size = 10
noise = 0.05
decimals = 0
[protect]
method = "none"
end = true
"""
OTHER = {
    "base": "5", "cells": '"small"', "empty_share": "0.2", "max_variables": "2",
    "tables": '[["trade"]]', "own_weight": "5", "known_totals": "[]", "coalition": "2",
    "min_left": "3", "if_fewer": '"refuse"', "extra_tables": "9", "sweeps": "3", "p": "20.0",
    "directions": '"secret"', "search_range": "0.5", "measures": "[]", "existence": '"secret"',
    "weight": '"v"', "classes": '["trade"]', "measure_classes": '["trade"]', "class_size": "100",
    "noise": "0.4", "decimals": "1", "leader_part": "0.5", "public_classes": '["trade"]',
    "refresh": "0.1", "change_odds": "0.3", "known_changes": "3.0", "sparse_siblings": "0.5",
}  # fmt: skip
LINES = [
    number
    for number, line in enumerate(WHOLE.splitlines())
    if line.split(" = ")[0] in OTHER
]  # fmt: skip


@pytest.mark.parametrize("number", LINES)
def test_every_line_that_protects_is_compared_and_named(number: int) -> None:
    made = parse_policy(WHOLE.encode(), "it")
    lines = WHOLE.splitlines()
    key = lines[number].split(" = ")[0]
    lines[number] = f"{key} = {OTHER[key]}"
    text = "\n".join(lines) + "\n"
    asked = parse_policy(text.encode(), "it")
    found = difference(asked, made, sums=True, respondents=True)
    assert line_of(text, found.path) == number + 1
    assert "'lustrum protect --dataset town'" in found.sentence("town", "it")
    assert difference(made, made, sums=True, respondents=True) is None


def test_the_lines_above_are_all_that_protect() -> None:
    """A parameter that is added later must be compared too."""
    made = parse_policy(WHOLE.encode(), "it")
    before, magnitudes, weights = re.split(r"\[\[before\]\]|\[weights\]", WHOLE)[1:]
    written = [
        {line.split(" = ")[0] for line in part.splitlines()}
        for part in (before, magnitudes, weights.partition("[protect]")[0])
    ]
    for step, lines in zip(made.before, written[:2], strict=True):
        assert set(step.spec.to_mapping()) == lines & {*OTHER, "method"}
    flags = {"respondents", "caution", "unreliable"}
    assert set(type(made.weights).model_fields) - flags == written[2] & {*OTHER}


@pytest.mark.parametrize("number", LINES)
def test_a_line_that_is_deleted_is_its_default_or_is_named(number: int) -> None:
    """Of policy and bundle, either may be the one with the line."""
    made = parse_policy(WHOLE.encode(), "it")
    lines = WHOLE.splitlines()
    key = lines.pop(number).split(" = ")[0]
    try:
        less = parse_policy(("\n".join(lines) + "\n").encode(), "it")
    except PolicyError:
        assert key == "weight"  # the one key that has no default
        return
    same = (less.before, less.weights) == (made.before, made.weights) or [
        step.spec for step in less.before
    ] + [less.weights] == [step.spec for step in made.before] + [made.weights]
    for asked, bundle in ((less, made), (made, less)):
        found = difference(asked, bundle, sums=True, respondents=True)
        assert (found is None) == same
        assert found is None or found.key.startswith(f"{key!r} under ")


@pytest.mark.parametrize(
    ("first", "last"),
    [('[[before]]\nmethod = "protected-magnitudes"', "[weights]"), ("[weights]", "[protect]")],
    ids=["magnitudes", "weights"],
)
def test_what_the_policy_no_longer_names_is_refused_and_not_answered(first: str, last: str) -> None:
    made = parse_policy(WHOLE.encode(), "it")
    text = WHOLE[: WHOLE.index(first)] + WHOLE[WHOLE.index(last) :]
    without = parse_policy(text.encode(), "it")
    less = difference(without, made, sums=True, respondents=True)
    more = difference(made, without, sums=False, respondents=False)
    assert less.asked == "left out"
    assert more.in_bundle == "nothing"


@pytest.mark.parametrize(("sums", "respondents"), [(False, True), (True, False), (False, False)])
def test_a_bundle_without_what_its_policy_asks_for_is_refused(
    sums: bool, respondents: bool
) -> None:
    made = parse_policy(WHOLE.encode(), "it")
    assert difference(made, made, sums=sums, respondents=respondents) is not None


def test_when_estimates_are_flagged_is_no_protection() -> None:
    made = parse_policy(WHOLE.encode(), "it")
    text = WHOLE.replace("decimals = 0\n", "decimals = 0\nrespondents = 30\n")
    assert difference(parse_policy(text.encode(), "it"), made, sums=True, respondents=True) is None


def test_a_misspelt_class_of_measures_is_refused() -> None:
    words = {
        "dataset": {"name": "town"},
        "variables": [{"name": n, "codes": ["1", "2"]} for n in ("area", "size")],
        "measures": [{"name": "pay", "unit": "EUR"}],
        "weights": [{"name": "w"}],
    }
    dataset = Dataset.from_mapping(words)
    check_names(parse_policy(WHOLE.encode(), "it"), dataset, "it")
    wrong = WHOLE.replace('measure_classes = ["size"]', 'measure_classes = ["sise"]')
    with pytest.raises(PolicyError, match=r"weights\.measure_classes names the variable 'sise'"):
        check_names(parse_policy(wrong.encode(), "it"), dataset, "it")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = build(tmp_path_factory.mktemp("agreement") / "data")
    path = root / "policies" / "town.toml"
    path.write_text(POLICY)
    make_bundle(
        Store(root), "town", path, root / "bundles" / "town", folder=root / "reports" / "town"
    )
    return root


@pytest.fixture
def own(house: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(house, tmp_path / "data"))


def faults(root: Path) -> list[str]:
    return [f.about for f in health(root) if f.grade == "bad"]


def refused(root: Path) -> str:
    with pytest.raises(LustrumError) as caught:
        local_service(root).answer(ASKED["town"])
    return str(caught.value)


def test_a_bundle_and_its_policy_are_served(own: Path) -> None:
    assert local_service(own).answer(ASKED["town"]).release is not None
    assert faults(own) == []
    assert read_bundle(own / "bundles" / "town").protection is not None


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("base = 3", "base = 5", 7),
        ("sweeps = 1", "sweeps = 2", 8),
        ("sweeps = 1\n", 'sweeps = 1\n[[before]]\nmethod = "protected-magnitudes"\n', 9),
        ("sweeps = 1\n", 'sweeps = 1\n[weights]\nweight = "w"\n', 9),
    ],
)
def test_a_changed_policy_is_refused_with_line_and_command_by_server_and_doctor(
    own: Path, old: str, new: str, line: int
) -> None:
    path = own / "policies" / "town.toml"
    path.write_text(POLICY.replace(old, new))
    said = refused(own)
    assert said.startswith(f"{path}, line {line}: ")
    assert "'lustrum protect --dataset town'" in said
    assert "policies/town.toml" in faults(own)
    assert local_service(own).states()["shops"] == "ready"


def test_a_policy_that_changes_while_it_is_served_is_compared_again(own: Path) -> None:
    service = local_service(own)
    assert service.answer(ASKED["town"]).release is not None
    path = own / "policies" / "town.toml"
    path.write_text(POLICY.replace("base = 3", "base = 4"))
    with pytest.raises(PolicyError, match="'base' under"):
        service.answer(ASKED["town"])
    path.write_text(POLICY)
    assert service.answer(ASKED["town"]).release is not None


def test_no_bundle_is_a_fault_to_the_doctor_too(own: Path) -> None:
    shutil.rmtree(own / "bundles" / "town")
    assert "lustrum protect" in refused(own)
    assert faults(own) == ["policies/town.toml"]


def test_the_bundle_of_another_dataset_under_the_name_is_refused(own: Path) -> None:
    policy = own / "policies" / "shops.toml"
    policy.write_text(POLICY.replace('"town"', '"shops"'))
    make_bundle(Store(own), "shops", policy, own / "bundles" / "shops")
    shutil.rmtree(own / "bundles" / "town")
    shutil.copytree(own / "bundles" / "shops", own / "bundles" / "town")
    assert "is one of the dataset 'shops'" in refused(own)
    assert faults(own) == ["policies/town.toml"]


def _without_digest(bundle: Path) -> None:
    """The bundle as an earlier version wrote it."""
    from hashlib import sha256

    from lustrum.public.bundle.files import FORMAT, overall_digest

    report = json.loads((bundle / "report.json").read_bytes())
    report.pop("protection")
    raw = json.dumps(report).encode()
    (bundle / "report.json").write_bytes(raw)
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    manifest["files"]["report.json"] = {"sha256": sha256(raw).hexdigest(), "bytes": len(raw)}
    manifest["digest"] = overall_digest(FORMAT, "town", manifest["files"])
    (bundle / "manifest.json").write_text(json.dumps(manifest))


def test_an_earlier_bundle_is_compared_as_far_as_it_can_be(own: Path) -> None:
    _without_digest(own / "bundles" / "town")
    assert read_bundle(own / "bundles" / "town").protection is None
    assert local_service(own).answer(ASKED["town"]).release is not None
    said = [f.sentence for f in health(own) if f.about == "bundles/town" and f.grade == "note"]
    assert any(re.search("versions that made it cannot be compared", one) for one in said)
    path = own / "policies" / "town.toml"
    path.write_text(POLICY.replace("base = 3", "base = 5"))
    assert refused(own).startswith(f"{path}, line 7: 'base' under [[before]] 1 is 5")
