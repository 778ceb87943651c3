"""Which combinations of decisions a policy allows: every refusal, and its neighbour that is allowed."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lustrum.model import Dataset, PolicyError
from lustrum.policy import Policy
from lustrum.policy.parts import Before, Weights
from lustrum.policy.read import check_names, parse_policy, sealed
from lustrum.protect.weighted.method import ProtectedSurvey
from lustrum.survey import Reliability
from small import described

POPULATION = {"before": [{"method": "protected-population"}], "protect": {"method": "none"}}
SUMS = {"method": "cell-key-magnitude", "p_percent": 5.0, "extra": 1.0, "large": 0.05, "small": 0.2}
MERGED = {"method": "merge"}


def made(**parts: Any) -> Policy:
    return Policy.model_validate(parts)


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"protect": {"method": "record-swapping", "geography": "a"}},
        "works on records, not on tables",
    ),
    (
        {"protect": {"method": "differential-privacy", "epsilon": 1.0}},
        "does not promise the same numbers each time",
    ),
    ({"protect": {"method": "none"}}, "'none' shows true counts"),
    ({"protect": {"method": "none"}, "before": [{"method": "none"}]}, "'none' protects nothing"),
    ({"protect": {"method": "controlled-rounding"}}, "may show two numbers for the same"),
    (
        {"protect": {"method": "controlled-rounding"}, "before": [{"method": "random-rounding"}]},
        "may show two numbers for the same",
    ),
    ({"protect": SUMS}, "protects sums, not counts"),
    ({"before": [{"method": "suppression"}]}, "works on tables only"),
    (
        {"before": [{"method": "differential-privacy", "epsilon": 1.0}]},
        "does not promise the same numbers after every start",
    ),
    ({"fallback": [{"method": "round"}]}, "the method is 'merge', not 'round'"),
    ({"weights": {"weight": "w"}}, "[weights] without a protected population: name the variables"),
    (
        {
            "weights": {"weight": "w", "classes": ["a"]},
            "protect": {"method": "none"},
            "before": [{"method": "random-rounding"}],
        },
        "[weights] goes with a protected population or a method for tables",
    ),
    (
        {"weights": {"weight": "w", "classes": ["a", "b", "c"]}, "rules": {"max_dimensions": 2}},
        "'classes' names more variables than a table may have",
    ),
    ({"sums": {"method": "random-rounding"}}, "does not protect sums by record keys"),
    ({"sums": {"method": "suppression"}}, "does not protect sums by record keys"),
    ({"sums": {"method": "record-swapping", "geography": "a"}}, "works on records, not on tables"),
    ({"sums": SUMS, "before": [{"method": "random-rounding"}]}, "leave it or [[before]] out"),
    ({"sums": {"method": "cell-key-magnitude"}}, "too closely"),
    ({"sums": {**SUMS, "p_percent": 5.01}}, "too closely"),
    ({"sums": {**SUMS, "large": 0.0499}}, "too closely"),
    ({"sums": {**SUMS, "scale": "mean"}}, "too closely"),
    ({**POPULATION, "protect": {"method": "random-rounding"}}, "stands alone under"),
    ({"rules": {"max_small_share": -0.01}}, "greater than or equal to 0"),
    ({"rules": {"max_small_share": 1.01}}, "less than or equal to 1"),
    ({"risk": {"limit": -0.01}}, "greater than or equal to 0"),
    ({"risk": {"limit": 1.01}}, "less than or equal to 1"),
]
ALLOWED: list[dict[str, Any]] = [
    {"protect": {"method": "cell-key"}},
    {"protect": {"method": "cell-key"}, "before": [{"method": "simple-sampling", "fraction": 0.5}]},
    {"protect": {"method": "none"}, "before": [{"method": "random-rounding"}]},
    POPULATION,
    {**POPULATION, "weights": {"weight": "w"}},
    {"weights": {"weight": "w", "classes": ["a", "b"]}, "rules": {"max_dimensions": 2}},
    {**POPULATION, "weights": {"weight": "w", "classes": ["a", "b", "c", "d"]}},
    {"sums": SUMS},
    {"sums": {**SUMS, "scale": "largest"}},
    {"sums": {**SUMS, "p_percent": 4.0}},
    {"fallback": [MERGED]},
    {"rules": {"max_small_share": 0.0}, "risk": {"limit": 0.0}},
    {"rules": {"max_small_share": 1.0}, "risk": {"limit": 1.0}},
]


@pytest.mark.parametrize(("parts", "sentence"), REFUSED)
def test_a_combination_that_would_leak_is_refused(parts: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        made(**parts)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("parts", ALLOWED)
def test_its_neighbours_are_allowed(parts: dict[str, Any]) -> None:
    made(**parts)


def test_a_policy_names_the_method_that_a_reader_should_know_of() -> None:
    assert made(**POPULATION).method.name == "protected-population"
    assert made(protect={"method": "cell-key"}).method.name == "cell-key"
    assert made(**POPULATION, sums=None).sums is None


def test_a_method_before_works_on_records_or_on_a_hypercube() -> None:
    swapping = Before.model_validate({"method": "record-swapping", "geography": "area"})
    assert swapping.on_records
    assert not Before.model_validate({"method": "random-rounding"}).on_records


def test_every_word_about_weights_reaches_the_method() -> None:
    weights = Weights.model_validate(
        {
            "weight": "w",
            "classes": ["a"],
            "measure_classes": ["b"],
            "class_size": 7,
            "noise": 0.11,
            "decimals": 2,
            "respondents": 33,
            "caution": 0.2,
            "unreliable": 0.4,
        }
    )
    assert weights.spec == ProtectedSurvey(
        class_size=7, noise=0.11, classes=("a",), measure_classes=("b",), decimals=2
    )
    assert weights.reliability() == Reliability(33, 0.4, 0.2)


def dataset(unit: str) -> Dataset:
    return described(
        "d", {"a": "12"}, measures=[{"name": "m", "unit": unit}], weights=[{"name": "w"}]
    )


def test_sums_without_a_unit_and_weights_that_are_not_there_are_refused() -> None:
    magnitudes = [{"method": "protected-population"}, {"method": "protected-magnitudes", "p": 8.0}]
    with_sums = [made(sums=SUMS), made(before=magnitudes, protect={"method": "none"})]
    for policy in with_sums:
        check_names(policy, dataset("euro"), "it")
        with pytest.raises(PolicyError, match="sums of the measure 'm' would be published without"):
            check_names(policy, dataset(""), "it")
    check_names(made(), dataset(""), "it")
    check_names(made(**POPULATION, weights={"weight": "w"}), dataset(""), "it")
    with pytest.raises(PolicyError, match=r"weights\.weight names 'v', which is no weight"):
        check_names(made(**POPULATION, weights={"weight": "v"}), dataset(""), "it")
    with pytest.raises(PolicyError, match=r"weights\.classes names the variable 'b'"):
        check_names(
            made(**POPULATION, weights={"weight": "w", "classes": ["b"]}), dataset(""), "it"
        )


def test_a_mistake_in_a_list_is_named_by_its_place_from_one_on() -> None:
    swapping = [{"method": "record-swapping", "geography": g} for g in ("a", "b")]
    merging = [{**MERGED, "variables": [v]} for v in ("a", "b")]
    for parts, place in (({"before": swapping}, "before.2"), ({"fallback": merging}, "fallback.2")):
        with pytest.raises(PolicyError, match=place):
            check_names(made(**parts), dataset(""), "it")
    text = '[[fallback]]\nmethod = "merge"\n[[fallback]]\nmethods = "merge"\nend = true\n'
    with pytest.raises(PolicyError, match=r"no key 'fallback\.2\.methods'; did you mean 'method'"):
        parse_policy(text.encode(), "it")
    round_ = '[[fallback]]\nmethod = "merge"\n[[fallback]]\nmethod = "round"\nend = true\n'
    with pytest.raises(PolicyError) as caught:
        parse_policy(round_.encode(), "it")
    assert str(caught.value).startswith(
        "it: line 3: fallback.2: the method is 'merge', not 'round': another"
    )


def test_no_seal_is_given_to_a_file_that_is_no_policy() -> None:
    whole = b'dataset = "d"\n[rules]\n[risk]\nlimit = 0.1\n[protect]\nmethod = "cell-key"\n'
    assert parse_policy(sealed(whole + b"end = true\n", "it"), "it").dataset == "d"
    for wrong in (b"[rules]\nend = true\n", whole + b"[rule]\nend = true\n"):
        with pytest.raises(PolicyError):
            sealed(wrong, "it")
