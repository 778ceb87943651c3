"""What a method changes is stated by its parameters: none may do nothing, and no statement is too high."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from lustrum.model import InputError, Table
from lustrum.model.parameters import parameters_of, spec_from_words
from lustrum.model.plugins import load, names
from lustrum.protect.abilities import abilities_of
from lustrum.testing import _changes_what_it_states  # one contract alone, on methods that break it

METHODS = [
    name for name in names("lustrum.methods")
    if load("lustrum.methods", name).__module__.startswith("lustrum.")
]  # fmt: skip
IDENTITY = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
NEEDED: dict[str, dict[str, Any]] = {
    "differential-privacy": {"epsilon": 1.0},
    "post-randomisation": {"variable": "a"},
    "stratified-sampling": {"by": "a"},
}
# Every number, share or matrix at which nothing would change; a method that is missing has none.
NOTHING: dict[str, list[dict[str, Any]]] = {
    "additive-noise": [{"sd": 0.0}],
    "cell-key": [
        {"ptable": "matrix", "matrix": IDENTITY},
        {"ptable": "designed", "largest_change": 0},
        {"ptable": "designed", "variance": 0.0},
        {"ptable": "designed", "stay": 1.0},
    ],
    "cell-key-magnitude": [{"variance": 0.0}, {"small": 0.0, "large": 0.0}, {"largest_change": 0}],
    "controlled-rounding": [{"base": 1}],
    "conventional-rounding": [{"base": 1}],
    "markov-perturbation": [{"theta": 0.0}, {"sweeps": 0}],
    "multiplicative-noise": [{"low": 0.0, "high": 0.0}],
    "poisson-sampling": [{"fraction": 1.0}, {"fraction": 1}],
    "post-randomisation": [{"stay": 1.0}, {"stay": 1}, {"matrix": IDENTITY}],
    "protected-magnitudes": [{"p": 0.0}],
    "protected-population": [{"base": 1}],
    "random-rounding": [{"base": 1}],
    "record-swapping": [{"rate": 0.0}, {"rate": 0}, {"rate": 0.0, "rates": {"A": 0.0}}],
    "semi-controlled-rounding": [{"base": 1}],
    "simple-sampling": [{"fraction": 1.0}, {"fraction": 1}],
    "simulated-tables": [{"burn": 0}],
    "small-count-rounding": [{"base": 1}],
    "stochastic-perturbation": [{"matrix": IDENTITY}, {"matrix": IDENTITY, "residue_base": 1}],
    "stratified-sampling": [{"fraction": 1.0}],
    "table-swapping": [{"sweeps": 0}],
}


def made(name: str, words: dict[str, Any]) -> Any:
    return spec_from_words(
        load("lustrum.methods", name), {**NEEDED.get(name, {}), **words}, f"The method {name!r}"
    )


@pytest.mark.parametrize(
    ("name", "words"), [(name, words) for name, each in NOTHING.items() for words in each]
)
def test_parameters_at_which_a_method_does_nothing_are_out_of_range(
    name: str, words: dict[str, Any]
) -> None:
    with pytest.raises(InputError):
        made(name, words)


def edges(kind: str) -> list[float]:
    """The numbers at the ends of a parameter's range, by its documentation, and those just beside them."""
    if "list" in kind or "number" not in kind:
        return []
    whole, ends = "whole number" in kind, [float(n) for n in re.findall(r"\d+(?:\.\d+)?", kind)]
    if whole:
        return [int(end) + step for end in ends for step in (-1, 0, 1)]
    return [end + step for end in ends for step in (-1e-9, 0.0, 1e-9, 1e-3, -1e-3)]


ON_TABLES = [
    name for name in METHODS
    if {"hypercube", "table"} <= set(load("lustrum.methods", name).stages)
]  # fmt: skip


@pytest.mark.parametrize("name", ON_TABLES)
def test_at_the_ends_of_every_range_a_method_is_refused_or_changes_what_it_states(
    name: str,
) -> None:
    """So no parameter that does nothing passes for protection: a policy is measured by the statement."""
    tried = 0
    for one in parameters_of(load("lustrum.methods", name)):
        for value in edges(one.kind):
            tried += 1
            try:
                method = made(name, {one.name: value})
            except InputError:
                continue
            promised = abilities_of(method)
            if promised.changed:
                _changes_what_it_states(method, promised.changed, 7, promised.one_number)
    assert tried or name == "none"


# What a policy file can hold instead of a text, a list or a number by mistake.
ODD = (False, True, 0, 1.5, "", [], {})


def _may_be(kind: str, value: object) -> bool:
    """By the words of the documentation, whether a value is of the kind; true where they leave it open."""
    if "Mapping" in kind or any(f" {c}" in f" {kind}" for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
        return True
    if isinstance(value, bool):
        return "true or false" in kind
    if isinstance(value, int):
        return "number" in kind.split("list of")[0]
    if isinstance(value, float):
        return "a number" in kind.split("list of")[0]
    if isinstance(value, str):
        return "a text" in kind.split("list of")[0]
    return isinstance(value, list) and "list" in kind


@pytest.mark.parametrize("name", METHODS)
def test_a_false_a_zero_or_an_empty_list_in_place_of_a_text_is_a_type_error(name: str) -> None:
    for one in parameters_of(load("lustrum.methods", name)):
        for value in ODD:
            if not _may_be(one.kind, value):
                with pytest.raises(InputError):
                    made(name, {one.name: value})


@pytest.mark.parametrize("value", [False, 0, [], {}])
def test_record_swapping_does_not_take_a_false_household_for_none(value: object) -> None:
    with pytest.raises(InputError, match="'household' must be a text or nothing"):
        made("record-swapping", {"household": value})


CELLS = 4_000
SHOWN = [
    ("random-rounding", {}), ("random-rounding", {"base": 2}), ("random-rounding", {"base": 5}),
    ("conventional-rounding", {}), ("conventional-rounding", {"base": 2}),
    ("small-count-rounding", {"totals": "own"}),
    ("small-count-rounding", {"totals": "own", "base": 2, "how": "random"}),
    ("cell-key", {}), ("cell-key", {"ptable": "designed", "variance": 2.0, "blocked": [1, 2]}),
    ("cell-key", {"ptable": "designed", "variance": 0.5, "stay": 0.8}),
    ("cell-key", {"layout": "abs"}),
    ("additive-noise", {"sd": 0.4, "relative": True}),
    ("additive-noise", {"sd": 0.4, "relative": True, "distribution": "laplace"}),
    ("stochastic-perturbation", {}), ("controlled-rounding", {}), ("semi-controlled-rounding", {}),
    ("simple-sampling", {"fraction": 0.4}), ("poisson-sampling", {"fraction": 0.4}),
    ("none", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "words"), SHOWN)
def test_no_method_states_more_change_than_it_makes(name: str, words: dict[str, Any]) -> None:
    method = made(name, words)
    counts = np.tile([1, 2], CELLS // 2)
    rng = np.random.default_rng(20261116)
    keys = rng.integers(1, 2**63, size=CELLS, dtype=np.uint64)
    table = Table.from_counts(counts.tolist(), keys=keys.tolist())
    by_keys = abilities_of(method).one_number
    shown = method.apply(table, None if by_keys else rng).published
    share = float((shown != counts).mean())
    # Five standard errors: a right statement fails less than once in a million runs.
    assert abs(share - abilities_of(method).changed) <= 5 * 0.5 / CELLS**0.5


@pytest.mark.parametrize(
    ("name", "words", "changed"),
    [
        ("record-swapping", {"rate": 0.005}, 0.005),
        ("record-swapping", {"rate": 0.6}, 0.6),
        ("record-swapping", {"rate": 0.6, "rates": {"A": 0.0}}, 0.0),
        ("record-swapping", {"rate": 0.6, "no_swap": ["x"], "no_swap_variable": "v"}, 0.0),
        ("post-randomisation", {"stay": 0.9}, (0.1 + 0.19) / 2),
        ("post-randomisation", {"stay": 0.5, "variable": ["a", "b"]}, (0.75 + 0.9375) / 2),
        ("post-randomisation", {"stay": 0.5, "variable": ["a", "b"], "joint": True}, 0.625),
        ("post-randomisation", {"matrix": [[0.2, 0.8], [0.1, 0.9]]}, (0.1 + 0.19) / 2),
        ("post-randomisation", {"stay": 0.0, "invariant": True}, 0.0),
        ("post-randomisation", {"stay": 0.0, "level": "region"}, 0.0),
        ("simple-sampling", {"fraction": 0.5}, 0.625),
        ("poisson-sampling", {"fraction": 0.5, "size": "turnover"}, 0.0),
        ("stratified-sampling", {"fraction": 0.01}, 0.0),
        ("multiplicative-noise", {}, 0.0),
        ("protected-population", {}, 1.0),
        ("protected-population", {"base": 2}, 0.5),
        ("protected-magnitudes", {}, 0.0),
        ("cell-key", {"additive": True}, 0.0),
        ("none", {}, 0.0),
    ],
)
def test_the_share_that_changes_follows_from_the_parameters(
    name: str, words: dict[str, Any], changed: float
) -> None:
    assert abilities_of(made(name, words)).changed == pytest.approx(changed, abs=1e-12)
