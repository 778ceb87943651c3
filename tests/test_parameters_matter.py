"""Every parameter does something: changing it changes what comes out of some small input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import zip_longest
from typing import Any

import pytest

from lustrum.audit.belief.posterior import Uniform
from lustrum.model import InputError
from lustrum.model.parameters import schema_of, spec_from_words
from lustrum.model.plugins import load
from outcomes import NEEDED, outcomes
from test_parameters import BUILT_IN

Words = Mapping[str, Any]
STAYS = [[0.9, 0.1, 0.0], [0.2, 0.6, 0.2], [0.0, 0.3, 0.7]]
ALL = [["v0", "v1"], ["v0"], ["v1"], []]
DESIGNED = {"ptable": "designed"}
GIVEN = {"ptable": "matrix", "matrix": STAYS}
TESTED = {
    "burn": 5,
    "tries": 20,
    "keep": [["v0"], ["v1"], ["v2"]],
    "consistent": [["v0", "v1"], ["v2"]],
}
BY_AREA = {"geography": "area", "household": "household"}
AT_RISK = {**BY_AREA, "target": "risk", "risk_on": [["age", "job"]]}
CHANGES: dict[tuple[str, str], tuple[Words, Any]] = {
    ("cell-key", "ptable"): ({}, "designed"),
    ("cell-key", "layout"): (GIVEN, "abs"),
    ("cell-key", "bits"): ({**GIVEN, "layout": "abs"}, 4),
    ("cell-key", "residue_base"): (GIVEN, 2),
    ("cell-key", "largest_change"): (DESIGNED, 5),
    ("cell-key", "variance"): (DESIGNED, 2.5),
    ("cell-key", "stay"): (DESIGNED, 0.2),
    ("cell-key", "monotone"): (DESIGNED, "both"),
    ("cell-key", "max_shift"): ({"additive": True}, 0),
    ("cell-key-magnitude", "shares"): ({"ranks": 3}, [1.0, 0.2, 0.1]),
    ("cell-key-magnitude", "scale"): ({"ranks": 3}, "mean"),
    ("cell-key-magnitude", "extra"): ({"p_percent": 50.0, "extra": 0.1}, 0.3),
    ("cell-key-magnitude", "p_percent"): ({"p_percent": 1.0, "extra": 0.3}, 90.0),
    ("controlled-adjustment", "rule"): ({}, {"rule": {"rule": "threshold", "minimum": 6}}),
    ("controlled-adjustment", "steps"): ({"directions": "exact"}, 1),
    ("differential-privacy", "mechanism"): ({}, {"mechanism": "gaussian", "delta": 1e-6}),
    ("differential-privacy", "epsilon"): ({}, 0.1),
    ("differential-privacy", "rho"): ({"mechanism": "gaussian", "epsilon": None, "rho": 1.0}, 0.01),
    ("differential-privacy", "delta"): ({"mechanism": "gaussian", "delta": 1e-6}, 1e-12),
    ("differential-privacy", "margins"): ({}, {"margins": ALL, "shares": [0.25] * 4}),
    ("differential-privacy", "shares"): (
        {"margins": ALL, "shares": [0.25] * 4},
        [0.7, 0.1, 0.1, 0.1],
    ),
    ("markov-perturbation", "keep"): ({}, [["v0"]]),
    ("multiplicative-noise", "measure"): ({"measure": ""}, "income"),
    ("multiplicative-noise", "balance"): ({}, ["area"]),
    ("poisson-sampling", "size"): ({}, "income"),
    ("poisson-sampling", "weight"): ({}, "w"),
    ("post-randomisation", "variable"): ({}, "sex"),
    ("post-randomisation", "matrix"): ({"variable": "sex"}, [[0.5, 0.5], [0.5, 0.5]]),
    ("post-randomisation", "level"): ({"variable": "age"}, "broad"),
    ("post-randomisation", "strata"): ({"invariant": True}, ["age"]),
    ("post-randomisation", "joint"): ({"variable": ["job", "sex"]}, True),
    ("protected-magnitudes", "tables"): ({"max_variables": 1}, [["activity", "region", "form"]]),
    ("protected-magnitudes", "measures"): ({}, ["wages"]),
    ("protected-magnitudes", "sweeps"): ({"search_range": 0.3}, 1),
    ("protected-population", "tables"): ({"max_variables": 1, "extra_tables": 0}, [["v0", "v1"]]),
    ("protected-population", "max_variables"): ({"extra_tables": 0}, 1),
    ("protected-population", "sparse_siblings"): ({}, 9.0),
    ("protected-population", "own_weight"): (
        {"max_variables": 1, "tables": [["v0", "v1"]], "extra_tables": 0},
        90,
    ),
    ("protected-population", "known_totals"): ({}, [["v0"]]),
    ("protected-population", "coalition"): ({"if_fewer": "refuse"}, 50),
    ("protected-population", "min_left"): ({"if_fewer": "refuse"}, 40),
    ("protected-population", "if_fewer"): ({"min_left": 40}, "refuse"),
    ("protected-population", "extra_tables"): ({"max_variables": 1}, 0),
    ("record-swapping", "geography"): (BY_AREA, "sex"),
    ("record-swapping", "household"): (BY_AREA, None),
    ("record-swapping", "similar"): (BY_AREA, [["age", "sex"]]),
    ("record-swapping", "target"): (BY_AREA, {"target": "risk", "risk_on": [["age", "job"]]}),
    ("record-swapping", "risk_on"): (AT_RISK, [["sex", "job"]]),
    ("record-swapping", "all_unsafe"): ({**AT_RISK, "k": 40, "rate": 0.01}, True),
    ("record-swapping", "weight"): ({**AT_RISK, "k": 40}, "grossing"),
    ("record-swapping", "rates"): (BY_AREA, {"n": 0.6}),
    ("record-swapping", "no_swap"): (
        {**BY_AREA, "no_swap_variable": "job", "no_swap": ["a"]},
        ["a", "b", "c"],
    ),
    ("record-swapping", "no_swap_variable"): (
        BY_AREA,
        {"no_swap_variable": "job", "no_swap": ["a"]},
    ),
    ("request", "shares"): ({}, [10]),
    ("prior-posterior", "q"): ({}, 99),
    ("semi-controlled-rounding", "over"): ({}, ["v0"]),
    ("simple-sampling", "population"): ({}, 5000),
    ("simple-sampling", "weight"): ({}, "w"),
    ("simulated-tables", "burn"): ({"burn": 5}, 6),
    ("simulated-tables", "target"): ({"burn": 5}, "uniform"),
    ("simulated-tables", "keep"): ({"burn": 5}, [["v0"]]),
    ("simulated-tables", "consistent"): (
        {"burn": 5, "tries": 20, "keep": [["v0"], ["v1"]]},
        [["v0", "v1"]],
    ),
    ("simulated-tables", "tries"): ({**TESTED, "level": 0.99}, 1),
    ("stochastic-perturbation", "matrix"): ({}, STAYS),
    ("stochastic-perturbation", "residue_base"): ({"matrix": STAYS}, 1),
    ("stochastic-perturbation", "frequencies"): (
        {
            "matrix": STAYS,
            "residue_base": 1,
            "version": "invariant",
            "frequencies": [9.0, 5.0, 3.0],
        },
        [1.0, 9.0, 1.0],
    ),
    ("stratified-sampling", "by"): ({}, "sex"),
    ("stratified-sampling", "sizes"): ({}, {"n": 3}),
    ("stratified-sampling", "weight"): ({}, "w"),
    ("suppression", "rule"): ({}, {"rule": {"rule": "threshold", "minimum": 6}}),
    ("suppression", "power"): ({"cost": "box-cox"}, 0.1),
    ("attribute-inference", "up_to"): ({"fewest": 1}, 50),
    ("attribute-inference", "fewest"): ({}, 1),
    ("r1", "weights"): ({}, "l2"),
    ("r2", "weights"): ({}, [0.5, 0.4, 0.1]),
    ("sample-r2", "weights"): ({}, [0.5, 0.4, 0.1]),
    ("sample-r2", "fraction"): ({"draws": 20}, 0.5),
    ("sample-r2", "draws"): ({"draws": 20}, 21),
    ("sample-r2", "seed"): ({"draws": 20}, 1),
    ("sample-r2", "model"): ({"draws": 20}, "log-linear"),
    ("sparse-lines", "axis"): ({}, "v0"),
    ("table-entropy", "weights"): ({}, "l2"),
    ("table-entropy-2015", "weights"): ({}, "l2"),
    ("between-variance-change", "area"): ({}, "v2"),
    ("between-variance-change", "variable"): ({}, {"variable": "v2", "category": "v20"}),
    ("between-variance-change", "category"): ({}, "v11"),
    ("chi-square-change", "axes"): ({}, ["v0", "v1"]),
    ("cramers-v-change", "axes"): ({}, ["v0", "v1"]),
    ("conditional-error", "variable"): ({}, "v1"),
    ("conditional-error", "given"): ({}, ["v1"]),
    ("additive-noise", "sd"): ({"clamp": True}, 3.0),
    ("additive-noise", "distribution"): ({"clamp": True}, "laplace"),
    ("cell-key", "version"): ({}, "2"),
    ("cell-key", "matrix"): (GIVEN, [STAYS[0], [0.1, 0.1, 0.8], STAYS[2]]),
    ("cell-key", "blocked"): ({**DESIGNED, "variance": 2.5}, [1]),
    ("cell-key-magnitude", "version"): ({}, "2"),
    ("controlled-rounding", "distance"): ({}, "l2"),
    ("controlled-rounding", "steps"): ({}, 1),
    ("markov-perturbation", "order"): ({"theta": 0.9, "sweeps": 3}, "random"),
    ("protected-population", "change_odds"): ({}, 0.01),
    ("proven-population", "tables"): ({}, [["v0"]]),
    ("proven-population", "own_weight"): ({"tables": [["v0"]]}, 1.0),
    ("record-swapping", "control"): ({"geography": "area", "household": None}, ["job"]),
    ("record-swapping", "k"): (
        {"geography": "area", "household": None, "target": "risk", "risk_on": [["age"]], "k": 2},
        40,
    ),
    ("record-swapping", "within"): ({"geography": "age", "household": None}, "broad"),
    ("record-swapping", "levels"): (
        {
            "geography": "age",
            "household": None,
            "target": "risk",
            "risk_on": [["sex", "job"]],
            "k": 9,
        },
        ["broad"],
    ),
    ("record-swapping", "values"): ({"geography": "v0", "household": None, "rate": 0.5}, 3),
    ("stratified-sampling", "allocation"): ({"by": "age"}, "equal"),
    ("stratified-sampling", "minimum"): ({}, 40),
    ("cell-certainty", "prior"): ({}, Uniform(4)),
    ("close-estimates", "rule"): ({}, load("lustrum.rules", "p-percent")(40)),
    ("table-entropy", "parts"): ({"split": 2}, "published"),
    ("table-entropy-2015", "parts"): ({"split": 2}, "true"),
    ("suppression", "algorithm"): ({"work": 100}, "boxes"),
}
"""Where the default and another value of the declaration do not show it: beside which words, and what."""

ELSEWHERE: dict[tuple[str, str], str] = {
    ("cell-key", "steps"): (
        "It cuts a branch and bound short, and tables of this size are solved in one step."
    ),
    ("protected-magnitudes", "public_classes"): (
        "It needs classes of a measure; test_classes.py in protect/magnitudes has some."
    ),
    ("protected-population", "known_changes"): (
        "It needs many cells that changed; test_later.py in protect/population has them."
    ),
    **dict.fromkeys(
        (("proven-sums", key) for key in ("rho", "bounds", "max_variables", "one_way")),
        "It is paid from a budget; test_proven_sums.py in publish measures with each of them.",
    ),
    ("simulated-tables", "level"): (
        "No draw of these tables fits the richer model at any level; test_simulated.py has some that do."
    ),
    ("suppression", "work"): (
        "It cuts a search short that tables of tests end before; test_decomposition.py cuts one."
    ),
}
"""Parameters that change nothing on these inputs, with the reason and where their effect is tested."""


def others(schema: Words) -> Iterator[Any]:
    """Values that a declaration allows in place of its default."""
    default = schema.get("default")
    for kind in schema.get("anyOf", [schema]):
        if kind.get("title") == "Impute":
            yield "zero"
        elif "enum" in kind:
            yield from (word for word in kind["enum"] if word != default)
        elif kind.get("type") == "boolean":
            yield not default
        elif kind.get("type") in ("integer", "number"):
            whole = kind["type"] == "integer"
            least = kind.get("minimum", kind.get("exclusiveMinimum", 0))
            near = (default + 1, default - 1, default * 3) if default else (least + 1, least + 4)
            yield from near if whole else (default * 0.5, default * 2.0) if default else (0.3, 1.5)


@cache
def usual(group: str, name: str, words: str) -> list[str]:
    return list(outcomes(group, spec_from_words(load(f"lustrum.{group}", name), eval(words), name)))


def differs(group: str, name: str, words: Words, more: Words) -> bool:
    kind = load(f"lustrum.{group}", name)
    changed = spec_from_words(kind, {**words, **more}, name)
    before = usual(group, name, repr(dict(words)))
    return any(a != b for a, b in zip_longest(before, outcomes(group, changed)))


EVERY = [
    (group.removeprefix("lustrum."), name, key)
    for group, name in BUILT_IN
    for key in schema_of(load(group, name))["properties"]
]


@pytest.mark.parametrize(
    ("group", "name", "key"), [one for one in EVERY if one[1:] not in ELSEWHERE]
)
def test_changing_a_parameter_changes_the_outcome(group: str, name: str, key: str) -> None:
    needed = NEEDED.get(name, {})
    if (name, key) in CHANGES:
        words, value = CHANGES[name, key]
        more = value if isinstance(value, dict) and key in value else {key: value}
        assert differs(group, name, {**needed, **words}, more)
        return
    schema = schema_of(load(f"lustrum.{group}", name))["properties"][key]
    found = False
    for value in others(schema):
        try:
            found = found or differs(group, name, needed, {key: value})
        except InputError:
            continue  # outside its range, or wrong beside the others
    assert found


def test_no_reason_outlives_its_parameter() -> None:
    assert {*CHANGES, *ELSEWHERE} <= {(name, key) for _, name, key in EVERY}
