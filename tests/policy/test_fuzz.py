"""Whatever stands behind a parameter of a policy: a table under it, or one sentence with the line."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import InputError, LustrumError, PolicyError
from lustrum.model.parameters import parameter_names, spec_from_words
from lustrum.model.plugins import load
from lustrum.policy import Policy
from lustrum.policy.parts import Audit, Risk, Rules, Weights
from lustrum.policy.read import parse_policy
from lustrum.runtime.stop import Stopped, within
from outcomes import NEEDED, outcomes
from test_parameters import BUILT_IN

SECONDS = 0.5
"""For one outcome: a number that asks for very much is no mistake, and whoever asks may stop it."""
ODD: list[Any] = [
    10**40, 2**63, 2**31, 2**31 - 1, 10_000, 0, -1, -(2**63), -(10**40),
    1e308, -1e308, 1e30, 1e-30, 1e-300, 5e-324, -0.0, math.nan, math.inf, -math.inf,
    True, "", "x" * 5000, "\u0000\u202e", "nan", "1", [], [[]], [1] * 5000, ["area"] * 5000, [0.1, "a"],
    [10**40], [math.nan], {}, {"a": 10**40},
]  # fmt: skip
SPECS = [
    (group.removeprefix("lustrum."), name, key)
    for group, name in BUILT_IN
    for key in parameter_names(load(group, name))
]
PARTS = [
    (part, "", key)
    for part, model in (("rules", Rules), ("risk", Risk), ("audit", Audit), ("weights", Weights))
    for key in model.model_fields
]
Part = tuple[str, dict[str, Any]]
POPULATION: list[Part] = [
    ("[before]", {"method": "protected-population"}),
    ("protect", {"method": "none"}),
]
ROUNDED: list[Part] = [("protect", {"method": "random-rounding"})]
KEYED: list[Part] = [("protect", {"method": "cell-key"})]
SUMS = {
    "method": "cell-key-magnitude",
    "p_percent": 10.0,
    "extra": 3.0,
    "small": 0.01,
    "large": 0.05,
}


def toml(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else f"{'-' if value < 0 else ''}inf"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {toml(part)}' for key, part in value.items())}}}"
    return json.dumps(value)


def policy(group: str, name: str, words: dict[str, Any]) -> str:
    """A policy in which everything else is right."""
    rules, risk = {} if group != "rules" else words, {"limit": 1.0}
    parts = ROUNDED
    if group == "risks":
        risk |= {"measure": name, **words}
    elif group == "risk":
        risk |= words
    elif group == "audit":
        parts = [*ROUNDED, ("audit", {"attackers": ["outsider"], **words})]
    elif group == "weights":
        parts = [*POPULATION, ("weights", {"weight": "w", **words})]
    elif name == "protected-population":
        parts = [("[before]", {"method": name, **words}), POPULATION[1]]
    elif name == "cell-key-magnitude":
        parts = [*KEYED, ("sums", SUMS | words)]
    elif group == "methods":
        spec = load("lustrum.methods", name)
        own = {"method": name, **words}
        stage = "protect" if "table" in spec.stages else "[before]"
        parts = (
            [(stage, own)]
            if stage == "protect"
            else [POPULATION[0], ("[before]", own), POPULATION[1]]
        )
        if "microdata" in spec.stages:
            parts = [("[before]", own), POPULATION[1]]
    lines = ['dataset = "town"']
    for part, said in [("rules", rules), ("risk", risk), *parts]:
        lines += [f"[{part}]", *(f"{word} = {toml(value)}" for word, value in said.items())]
    return "\n".join([*lines, "end = true", ""])


def judged(group: str, name: str, key: str, value: Any) -> Any:
    """The spec or the policy, or None where one sentence refused it, with a line that stands in the file."""
    words = {**NEEDED.get(name, {}), key: value}
    if group in ("rules", "utilities") and name:
        try:
            return spec_from_words(load(f"lustrum.{group}", name), words, "It")
        except InputError as error:
            said = str(error)
    else:
        text = policy(group, name, words)
        try:
            decided = parse_policy(text.encode(), "it.toml")
            return spec_in(decided, group, name)
        except PolicyError as error:
            said = str(error)
            line = re.search(r"line (\d+)", said)
            assert line, said
            assert int(line[1]) <= text.count("\n")
    assert "\n" not in said
    assert len(said) < 1000
    assert "not foreseen" not in said
    return None


def spec_in(decided: Policy, group: str, name: str) -> Any:
    """What the words made; nothing for the parts that are no specs."""
    if group == "risks":
        return decided.risk.spec
    every = [*decided.before, decided.protect, *([decided.sums] if decided.sums else [])]
    return next((one.spec for one in every if name and one.method == name), None)


@settings(deadline=None, max_examples=examples(150, 5000))
@given(at=st.sampled_from(SPECS + PARTS), value=st.sampled_from(ODD))
def test_an_odd_value_ends_in_a_table_or_in_a_sentence_with_its_line(
    at: tuple[str, str, str], value: Any
) -> None:
    spec = judged(*at, value)
    if spec is not None:
        try:
            with within(SECONDS):
                assert not any("\n" in outcome for outcome in outcomes(at[0], spec))
        except (LustrumError, Stopped):
            pass
