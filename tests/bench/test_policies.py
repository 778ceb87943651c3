"""No variant of a policy file loosens silently, and the bench that says so would find one that does."""

from __future__ import annotations

from typing import Any

import pytest

from bench.conftest import bench as load_bench
from lustrum.policy import Policy
from lustrum.policy.read import parse_policy, sealed

bench = load_bench("policies")
FILES = bench.policies()
STEPS = pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.deep)])


@STEPS
@pytest.mark.parametrize("name", FILES)
def test_no_variant_of_a_policy_loosens_silently(name: str, step: int) -> None:
    for raw in (bench.unsealed(FILES[name]), sealed(FILES[name], name)):
        found = bench.tried(raw, step)
        assert set(found) == {"cut", "line deleted", "digit changed"}
        for kind, outcomes in found.items():
            assert outcomes["looser, silent"] == 0, kind
            assert outcomes["refused"] > 0, kind
    # Of a sealed file nothing but the whole is taken.
    assert all(set(outcomes) == {"refused"} for outcomes in found.values())


def test_a_file_without_a_seal_does_loosen_and_is_said_to() -> None:
    """Without such variants the claim above would say nothing."""
    outcomes = bench.tried(bench.unsealed(FILES["preset keyed-rounding"]), 7)["line deleted"]
    assert outcomes["looser, said"] > 0
    assert outcomes["equal"] > 0


def test_a_seal_that_is_not_checked_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = sealed(FILES["preset keyed-rounding"], "it")
    parse = bench.parse_policy
    monkeypatch.setattr(bench, "parse_policy", lambda text, it: parse(bench.unsealed(text), it))
    assert bench.tried(raw, 7)["line deleted"]["looser, silent"] > 0


BASE: dict[str, Any] = {
    "dataset": "d",
    "rules": {
        "min_population": 100,
        "max_cells": 50,
        "disallowed": [["a", "b"]],
        "at_most_one": [["a", "c"]],
    },
    "risk": {"limit": 0.2},
    "protect": {"method": "random-rounding", "base": 5},
    "audit": {"attackers": ["outsider"], "up_to": 3},
    "fallback": [{"method": "merge"}],
}


def changed(**parts: Any) -> Policy:
    words = {key: dict(value) if isinstance(value, dict) else value for key, value in BASE.items()}
    for key, value in parts.items():
        whole = not isinstance(value, dict) or "method" in value
        words[key] = value if whole else {**words[key], **value}
    return Policy.model_validate(words)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, "equal"),
        ({"title": "Another", "notes": ["A note."]}, "equal"),
        ({"rules": {"nested_only": True}}, "equal"),  # the default, written out
        ({"rules": {"min_population": 101}}, "tighter"),
        ({"rules": {"min_population": 99}}, "looser"),
        ({"rules": {"max_cells": 49}}, "tighter"),
        ({"rules": {"max_cells": 51}}, "looser"),
        ({"rules": {"min_population": 500, "max_cells": 51}}, "looser"),
        ({"rules": {"nested_only": False}}, "looser"),
        ({"rules": {"max_small_share": 0.5}}, "tighter"),
        ({"rules": {"disallowed": []}}, "looser"),
        ({"rules": {"disallowed": [["a"]]}}, "tighter"),
        ({"rules": {"disallowed": [["a", "b", "c"]]}}, "looser"),
        ({"rules": {"at_most_one": [["a", "b", "c"]]}}, "tighter"),
        ({"rules": {"at_most_one": [["a", "b"]]}}, "looser"),
        ({"risk": {"limit": 0.1}}, "tighter"),
        ({"risk": {"limit": 0.3}}, "looser"),
        ({"protect": {"base": 7}}, "looser"),  # not known to be tighter
        ({"protect": {"method": "cell-key"}}, "looser"),
        ({"audit": {"attackers": []}}, "looser"),
        ({"audit": {"attackers": ["outsider", "insider"]}}, "tighter"),
        ({"audit": {"up_to": 2}}, "looser"),
        ({"fallback": []}, "tighter"),
        ({"dataset": "*"}, "looser"),
        ({"min_changed": 0.9}, "tighter"),
        ({"min_entropy": 0.6}, "tighter"),
    ],
)
def test_what_is_looser_is_decided_key_by_key(parts: dict[str, Any], expected: str) -> None:
    assert bench.effect(changed(), changed(**parts)) == expected


def test_every_number_of_a_policy_has_a_direction() -> None:
    whole = parse_policy(FILES["survey-policy"], "it")
    numbers = {
        key
        for key, value in bench._settings(whole).items()
        if isinstance(value, (int, float)) and key.split(".")[0] in ("rules", "audit", "weights")
    }
    known = {*bench.DIRECTION, "weights.decimals"}
    assert numbers <= known
