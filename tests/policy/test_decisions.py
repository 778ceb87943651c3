"""Which combinations of decisions a policy allows: every refusal, and its neighbour that is allowed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lustrum.answer.preliminary import question_rules
from lustrum.model import Axis, Dataset, Filter, PolicyError, TableQuery
from lustrum.policy import Policy
from lustrum.policy.explain import changes
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


# --- What a draft changes

TOWN = described("town", {"a": "xyz", "b": "mf", "c": "no"})
NAMES = [variable.name for variable in TOWN.variables]
sets = st.lists(st.lists(st.sampled_from(NAMES), min_size=2, max_size=3, unique=True), max_size=2)
KEYS: dict[str, st.SearchStrategy[Any]] = {
    "max_dimensions": st.integers(1, 3),
    "max_filters": st.integers(0, 2),
    "max_cells": st.sampled_from([2, 4, 6, 12]),
    "nested_only": st.booleans(),
    "disallowed": sets,
    "at_most_one": sets,
}
LOOSE = {"max_dimensions": 3, "max_filters": 2, "nested_only": False}
questions = st.builds(
    lambda by, where: TableQuery(
        TOWN.name,
        tuple(Axis(name) for name in by),
        tuple(Filter(name, (TOWN.variable(name).codes[0],)) for name in where),
    ),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
)


@pytest.mark.parametrize("key", KEYS)
@given(data=st.data(), query=questions)
def test_a_draft_that_allows_a_question_more_is_said_to_loosen(
    key: str, data: st.DataObject, query: TableQuery
) -> None:
    now, then = (made(rules={**LOOSE, key: data.draw(KEYS[key])}, **POPULATION) for _ in range(2))
    refused = list(question_rules(query, TOWN, now.rules))
    if refused and not list(question_rules(query, TOWN, then.rules)):
        assert any(change.looser for change in changes(now, then))
    assert list(changes(now, now)) == []
    assert {c.key for c in changes(now, then)} == {c.key for c in changes(then, now)}


NUMBERS = {
    "rules.max_dimensions": "larger", "rules.max_filters": "larger", "rules.max_cells": "larger",
    "rules.min_population": "smaller", "rules.min_mean_cell_size": "smaller",
    "rules.max_small_share": "larger", "rules.small_up_to": "smaller",
    "rules.min_area_population": "smaller", "risk.limit": "larger", "audit.min_values": "smaller",
    "audit.up_to": "smaller", "audit.programs": "larger", "min_changed": "smaller",
    "min_entropy": "smaller",
}  # fmt: skip


@pytest.mark.parametrize(("key", "way"), NUMBERS.items())
def test_each_number_says_which_way_loosens_it(key: str, way: str) -> None:
    *place, name = key.split(".")
    low, high = (
        (0.6, 0.7) if name.startswith(("min_c", "min_e", "max_s")) or name == "limit" else (3, 4)
    )

    def policy(value: float) -> Policy:
        words: dict[str, Any] = {"rules": {"per_area": "a"}, **POPULATION}
        for part in place:
            words[part] = {**words.get(part, {}), name: value}
        return made(**words, **({} if place else {name: value}))

    up, down = (list(changes(policy(a), policy(b))) for a, b in ((low, high), (high, low)))
    assert [(c.key, c.looser) for c in up] == [(key, way == "larger")]
    assert [(c.key, c.looser) for c in down] == [(key, way == "smaller")]


@pytest.mark.parametrize(
    "words",
    [
        {"before": [{"method": "protected-population", "base": 5}]},
        {"before": [{"method": "protected-population", "sweeps": 1}]},
        {"before": [], "protect": {"method": "random-rounding"}},
        {"fallback": [MERGED]},
        {"risk": {"measure": "r2"}},
        {"rules": {"per_area": "a"}},
        {"embed": ["https://news.example"]},
        {"same_people_because": "Both are counted from one register."},
    ],
)
def test_what_is_not_known_to_be_stricter_counts_as_looser(words: dict[str, Any]) -> None:
    plain, draft = made(**POPULATION), made(**{**POPULATION, **words})
    for one, other in ((plain, draft), (draft, plain)):
        assert any(change.looser for change in changes(one, other))


def test_words_for_people_loosen_nothing() -> None:
    draft = made(**POPULATION, title="Ours", notes=["Provisional."], dataset="town")
    assert [c.looser for c in changes(made(**POPULATION), draft)] == [False, False, False]
