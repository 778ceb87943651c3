"""Policies: validated, frozen, and documented key by key."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

import lustrum
from lustrum.model import PolicyError
from lustrum.policy import Policy, read_policy
from lustrum.risk import EntropyRisk

DEMO = Path(lustrum.__file__).parent / "demo" / "files"


def written(folder: Path, text: str) -> Path:
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["demo", "businesses"])
def test_the_policies_of_the_demo_are_valid(name: str) -> None:
    policy = read_policy(DEMO / f"{name}-policy.toml")
    assert policy.dataset == name
    assert policy.population.base == 3
    assert policy.risk.spec == EntropyRisk(parts="true", shared="expected")


def test_a_policy_from_python_has_the_documented_defaults() -> None:
    assert Policy.model_validate({}).rules.nested_only


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[rules]\nmax_dimension = 3",
            "no key 'rules.max_dimension'; did you mean 'max_dimensions'",
        ),
        ("[rule]\nmax_dimensions = 3", "no key 'rule'; did you mean 'rules'"),
        ('[rules]\nmax_dimensions = "3"', "rules.max_dimensions: input should be a valid integer"),
        ("[rules]\nmax_dimensions = 0", "greater than or equal to 1, not 0"),
        ("[rules]\nmax_small_share = 20", "less than or equal to 1"),
        ("[risk]\nweights = [0.5, 0.5]", "a list of 4 numbers of 0 or more"),
        ('[risk]\nmeasure = "entropi"', "no risk measure 'entropi'"),
        ('[protect]\nmethod = "rounding"', "no protection method 'rounding'"),
        ("[protect]\nbase = 1", "whole number of 2 or more"),
        ("[protect]\nbasis = 3", "has no parameter 'basis'; did you mean 'base'"),
        (
            '[[before]]\nmethod = "protected-population"\nways = 2',
            "the parameter 'ways' is now called 'max_variables'",
        ),
        ("[risk]\nsplit_at = 3", "has no parameter 'split_at'; did you mean 'split'"),
        ('[risk]\nmeasure = "uniques"', "is for unprotected tables only"),
        ("[report]\nrisk_step = 0.05", "no key 'report'"),
        ("[rules\n", "is not valid TOML"),
        ("[rules]\nmin_area_population = 9", "'min_area_population' needs 'per_area'"),
        ("[rules]\ndisallowed = [[]]", "a list of 'disallowed' is empty"),
        ('[rules]\nat_most_one = [["age"]]', "needs two variables or more"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_the_key(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        read_policy(written(tmp_path, f"{text}\nend = true\n"))
    assert sentence in str(caught.value)
    assert str(tmp_path / "policy.toml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read: No such file"):
        read_policy(tmp_path / "none.toml")


def test_a_policy_is_frozen() -> None:
    policy = Policy.model_validate({})
    with pytest.raises(ValidationError):
        policy.rules.max_dimensions = 9


def test_every_key_says_what_it_decides() -> None:
    def keys(model: type[BaseModel]) -> list[str]:
        silent = []
        for name, field in model.model_fields.items():
            kind = field.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                silent += keys(kind)
            elif not field.description:
                silent.append(name)
        return silent

    assert keys(Policy) == []


def test_protected_sums_stand_beside_a_protected_population_only() -> None:
    population, sums = (
        {"method": "protected-population"},
        {"method": "protected-magnitudes", "p": 8.0},
    )
    both = Policy.model_validate({"before": [population, sums], "protect": {"method": "none"}})
    assert both.population.name == "protected-population"
    assert both.magnitudes.p == 8.0
    with pytest.raises(ValidationError, match="makes sums to a protected population"):
        Policy.model_validate({"before": [sums], "protect": {"method": "none"}})
    third = {"method": "record-swapping", "geography": "area"}
    with pytest.raises(ValidationError, match="stands alone under"):
        Policy.model_validate({"before": [population, sums, third], "protect": {"method": "none"}})
