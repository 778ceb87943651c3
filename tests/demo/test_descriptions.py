"""The shipped descriptions and the data they describe are one."""

from __future__ import annotations

import tomllib
from typing import Any

import pyarrow as pa
import pytest

import lustrum.demo
from lustrum.demo import description_path
from lustrum.demo.descriptions import DESCRIPTIONS

NAMES = ("demo", "businesses", "survey")


def load(name: str) -> dict[str, Any]:
    return tomllib.loads(description_path(name).read_text("utf-8"))


def test_the_package_exports_what_it_says() -> None:
    assert lustrum.demo.__all__ == ["businesses", "description_path", "people", "survey"]
    assert all(hasattr(lustrum.demo, name) for name in lustrum.demo.__all__)


def test_an_unknown_description_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="demo, businesses, survey"):
        description_path("moon")


@pytest.mark.parametrize("name", NAMES)
def test_the_shipped_description_is_the_one_the_generators_use(name: str) -> None:
    assert description_path(name).read_bytes() == DESCRIPTIONS[name].to_toml().encode("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_every_level_partitions_the_level_below(name: str) -> None:
    for variable in load(name)["variables"]:
        finest = [code for code, _ in variable["codes"]]
        assert len(set(finest)) == len(finest)
        for hierarchy in variable.get("hierarchies", []):
            below = finest
            for level in hierarchy["levels"]:
                members = [code for group in level["groups"] for code in group["members"]]
                assert sorted(members) == sorted(below), (variable["name"], level["name"])
                below = [group["code"] for group in level["groups"]]


@pytest.mark.parametrize("name", NAMES)
def test_codes_are_unique_within_a_variable(name: str) -> None:
    for variable in load(name)["variables"]:
        codes = [code for code, _ in variable["codes"]]
        for hierarchy in variable.get("hierarchies", []):
            codes += [group["code"] for level in hierarchy["levels"] for group in level["groups"]]
        assert len(set(codes)) == len(codes), variable["name"]


@pytest.mark.parametrize("name", NAMES)
def test_labels_of_a_variable_tell_its_categories_apart(name: str) -> None:
    for variable in load(name)["variables"]:
        labels = [label for _, label in variable["codes"]]
        assert len(set(labels)) == len(labels), variable["name"]
        assert all(label.strip() == label and label for label in labels)


@pytest.mark.parametrize("name", NAMES)
def test_structural_zeros_speak_of_known_codes(name: str) -> None:
    dataset = load(name)
    codes = {v["name"]: {code for code, _ in v["codes"]} for v in dataset["variables"]}
    for zero in dataset["structural_zeros"]:
        assert zero["reason"]
        assert len(zero["where"]) >= 2
        for variable, listed in zero["where"].items():
            assert set(listed) <= codes[variable]


@pytest.mark.parametrize("name", NAMES)
def test_every_column_is_described_and_every_code_listed(
    name: str, census: pa.Table, register: pa.Table, sample: pa.Table
) -> None:
    table = {"demo": census, "businesses": register, "survey": sample}[name]
    dataset = load(name)
    described = [dataset["dataset"]["record_id"], *dataset["dataset"]["identifiers"]]
    for part in ("variables", "measures", "weights"):
        described += [entry["name"] for entry in dataset.get(part, [])]
    for weight in dataset.get("weights", []):
        described += weight.get("replicates", {}).get("columns", [])
    assert sorted(described) == sorted(table.column_names)
    for variable in dataset["variables"]:
        column = table.column(variable["name"]).combine_chunks()
        assert column.dictionary.to_pylist() == [code for code, _ in variable["codes"]]
        assert set(column.unique().to_pylist()) <= {code for code, _ in variable["codes"]}
