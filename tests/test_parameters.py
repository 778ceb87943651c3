"""Parameters are declared once: checks, words, documentation and the command line follow."""

from __future__ import annotations

import importlib.util
import json
import math
import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from examples import examples
from lustrum.agency.maps.inputs import MAP_METHODS, MapMethod, methods_of
from lustrum.cli import app
from lustrum.cli.maps import methods_of_words
from lustrum.model import InputError
from lustrum.model.parameters import (
    is_left_out,
    method_words,
    parameter_names,
    parameters_of,
    schema_of,
    spec_from_words,
)
from lustrum.model.plugins import load, names
from lustrum.policy.parts import PolicyMethod
from lustrum.protect.suppression import Suppression
from lustrum.readers.layout import SuppressSettings

ROOT = Path(__file__).parent.parent
GROUPS = ("lustrum.methods", "lustrum.rules", "lustrum.risks", "lustrum.utilities")
BUILT_IN = [
    (group, name)
    for group in GROUPS
    for name in names(group)
    if load(group, name).__module__.startswith("lustrum.")
]
METHODS = [name for group, name in BUILT_IN if group == "lustrum.methods"]
# What a spec needs to be made at all.
NEEDED: dict[str, dict[str, Any]] = {
    "between-variance-change": {"area": "a", "variable": "b", "category": "1"},
    "conditional-error": {"variable": "a"},
    "differential-privacy": {"epsilon": 1.0},
    "p-percent": {"p": 10},
    "post-randomisation": {"variable": "a"},
    "prior-posterior": {"p": 10, "q": 50},
    "sample-r2": {"fraction": 0.1},
    "stratified-sampling": {"by": "a"},
}


@pytest.mark.parametrize(("group", "name"), BUILT_IN)
def test_every_parameter_is_declared_with_a_type_and_a_sentence(group: str, name: str) -> None:
    kind = load(group, name)
    declared = {one.name: one for one in parameters_of(kind)}
    assert set(parameter_names(kind)) == set(declared)
    for one in declared.values():
        assert one.kind
        assert one.text.endswith(".")
        assert one.text[0].isupper()


@pytest.mark.parametrize(("group", "name"), BUILT_IN)
def test_a_parameter_of_the_wrong_type_is_one_sentence(group: str, name: str) -> None:
    kind = load(group, name)
    in_python, in_a_policy = [one.name for one in fields(kind)], parameter_names(kind)
    for one in dict.fromkeys(in_python + in_a_policy):
        for wrong in (object(), 1j, "no such word", -(10**9)):
            words = {**NEEDED.get(name, {}), one: wrong}
            said = ""
            try:
                if one in in_python:
                    kind(**words)
                if one in in_a_policy:
                    spec_from_words(kind, words, "It")
            except InputError as error:  # anything else fails the test
                said = str(error)
            assert said == said.strip()
            assert "\n" not in said


def outside(schema: Mapping[str, Any]) -> Iterator[object]:
    """Values that a parameter with this JSON schema must not take: beside its ends, and of other types."""
    kinds = schema.get("anyOf", [schema])
    for kind in kinds:
        if kind.get("type") in ("integer", "number"):
            yield from (True, False, math.nan, math.inf, -math.inf, 1j)
            yield from (
                kind[end] for end in ("exclusiveMinimum", "exclusiveMaximum") if end in kind
            )
            yield from (kind["minimum"] - 1,) if "minimum" in kind else ()
            yield from (kind["maximum"] + 1,) if "maximum" in kind else ()
        if kind.get("type") == "integer" and all(one.get("type") != "number" for one in kinds):
            yield from (2.5, 3.0, "3")
        if kind.get("type") == "string" and "minLength" in kind:
            yield from ("", 3, True)
        if "enum" in kind and len(kinds) == 1:
            yield from ("no such word", 0, True)
        if kind.get("type") == "boolean":
            yield from (0, 1, "true")
        if kind.get("type") == "array" and kind.get("items", {}).get("type") == "string":
            yield from ([""], [3], [None], {"a": "b"})


@pytest.mark.parametrize(("group", "name"), BUILT_IN)
def test_what_is_outside_a_declaration_is_refused(group: str, name: str) -> None:
    kind = load(group, name)
    for key, schema in schema_of(kind)["properties"].items():
        if name == "record-swapping" and key == "household":
            continue  # a blank there says that records move one by one
        for wrong in outside(schema):
            with pytest.raises(InputError, match=r"must be|blank"):
                spec_from_words(kind, {**NEEDED.get(name, {}), key: wrong}, "It")


def inside(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a parameter with this JSON schema may take."""
    if "anyOf" in schema:
        return st.one_of(*map(inside, schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")]))
    least, most = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    low = next((end for end in (least, above) if end is not None), 0)
    high = next((end for end in (most, below) if end is not None), low + 12)
    kind = schema.get("type")
    if kind == "integer":
        return st.integers(low, min(high, low + 12))
    if kind == "number":
        numbers = st.floats(low, high, exclude_min=above is not None, exclude_max=below is not None)
        return numbers.map(lambda x: round(x, 3) if low < round(x, 3) < high else (low + high) / 2)
    if kind == "array" and "items" in schema:
        return st.lists(inside(schema["items"]), max_size=3)
    if kind == "array":
        return st.tuples(*map(inside, schema.get("prefixItems", ()))).map(list)
    plain = {
        "boolean": st.booleans(),
        "string": st.sampled_from(["a", "b", "c"]),
        "null": st.none(),
    }
    return plain[kind] if kind in plain else st.nothing()


# Parameters that another one makes idle are not written, and of two rates of one area the last counts: two
# specs then have the same words.
IDLE = {
    "cell-key", "post-randomisation", "record-swapping", "simulated-tables", "stratified-sampling",
}  # fmt: skip


@pytest.mark.parametrize(("group", "name"), BUILT_IN)
@settings(deadline=None, max_examples=examples(5, 100))
@given(data=st.data())
def test_words_make_the_spec_again(group: str, name: str, data: st.DataObject) -> None:
    kind = load(group, name)
    given = dict(NEEDED.get(name, {}))
    for key, schema in schema_of(kind)["properties"].items():
        values = inside(schema)
        if not values.is_empty and data.draw(st.booleans(), label=f"set {key}"):
            given[key] = data.draw(values, label=key)
    try:
        spec = spec_from_words(kind, given, "It")
    except InputError:
        return  # what is right one by one may be wrong together
    own = {"lustrum.methods": "method", "lustrum.rules": "rule"}.get(group, "measure")
    words = json.loads(json.dumps(spec.to_mapping()))
    assert words.pop(own) == name
    again = spec_from_words(kind, words, "It")
    assert again.to_mapping() == {own: name, **words}
    assert again == spec or name in IDLE
    assert hash(again) == hash(spec) or name in IDLE


@pytest.mark.parametrize(("group", "name"), BUILT_IN)
def test_the_ends_of_a_declared_range_are_inside(group: str, name: str) -> None:
    """What is right one by one may be wrong together; no sentence then says that a parameter is."""
    kind = load(group, name)
    for key, schema in schema_of(kind)["properties"].items():
        for end in ("minimum", "maximum"):
            said = ""
            try:
                spec_from_words(kind, {**NEEDED.get(name, {}), key: schema.get(end, 1)}, "It")
            except InputError as error:
                said = str(error)
            assert end not in schema or f"{key!r} must be" not in said


CHANGED = {
    *(("protected-population", key) for key in ("sparse_siblings", "refresh", "change_odds")),
    *(("protected-magnitudes", key) for key in ("search_range", "leader_part")),
    ("protected-population", "known_changes"),
}


def test_words_of_an_earlier_version_are_completed_with_what_they_meant_then() -> None:
    for name in METHODS:
        words = spec_from_words(
            load("lustrum.methods", name), NEEDED.get(name, {}), name
        ).to_mapping()
        assert method_words(words) == words
        fewest = {"method": name, **NEEDED.get(name, {})}
        kind = load("lustrum.methods", name)
        spec = spec_from_words(kind, NEEDED.get(name, {}), name)
        for key, value in method_words(fewest).items():
            assert is_left_out(spec, key, value)
            assert value == words[key] or (name, key) in CHANGED


def test_the_page_of_parameters_shows_every_declared_parameter() -> None:
    spec = importlib.util.spec_from_file_location(
        "parameter_tables", ROOT / "scripts" / "parameter_tables.py"
    )
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = script.page()
    sections = {
        title: text for title, _, text in (part.partition("\n") for part in page.split("### ")[1:])
    }
    assert len(sections) == len({name for _, name in BUILT_IN})
    for group, name in BUILT_IN:
        rows = [line for line in sections[f"`{name}`"].splitlines() if line.startswith("| `")]
        for one, row in zip(parameters_of(load(group, name)), rows, strict=True):
            assert row.startswith(f"| `{one.name}` |")
            assert {one.kind, one.default, one.text} <= {
                cell.strip() for cell in row[2:-2].split(" | ")
            }


@pytest.mark.parametrize("name", METHODS)
def test_a_policy_gives_back_the_method_that_was_written_into_it(name: str) -> None:
    kind = load("lustrum.methods", name)
    spec = spec_from_words(kind, NEEDED.get(name, {}), name)
    words = spec.to_mapping()
    assert set(words) - {"method"} <= set(parameter_names(kind))
    assert PolicyMethod.model_validate(words).spec == spec


@pytest.mark.parametrize("name", METHODS)
def test_a_map_takes_every_declared_parameter_from_the_command_line(name: str) -> None:
    kind = load("lustrum.methods", name)
    plain = spec_from_words(kind, NEEDED.get(name, {}), name)
    words = {key: value for key, value in plain.to_mapping().items() if key != "method"}
    single = {
        key: v for key, v in words.items() if isinstance(v, bool | int | float | str) and v != ""
    }
    given = {**NEEDED.get(name, {}), **single}
    text = ":".join([name, *(f"{key}={json.dumps(value)}" for key, value in given.items())])
    assert methods_of_words([text]) == [plain]
    with pytest.raises(InputError, match="has no parameter 'no_such'"):
        methods_of_words([f"{name}:no_such=1"])


@pytest.mark.parametrize("own", MAP_METHODS, ids=lambda own: own.name)
def test_the_agencys_page_varies_a_declared_parameter(own: MapMethod) -> None:
    declared = parameter_names(load("lustrum.methods", own.name))
    assert {own.parameter, *(own.fixed or {})} - {""} <= set(declared)
    made = methods_of({own.name: own.values})
    values = json.loads(f"[{own.values}]")
    assert [getattr(spec, own.parameter) for spec in made] == values if values else len(made) == 1


def test_a_layout_takes_the_declared_parameters_of_suppression() -> None:
    own = {"frozen", "never", "decimals"}
    assert {*SuppressSettings.model_fields} - own == {*parameter_names(Suppression)}
    plain = {one.name: getattr(Suppression(), one.name) for one in parameters_of(Suppression)}
    given = {name: value for name, value in plain.items() if name != "rule" and value is not None}
    assert Suppression(**SuppressSettings(**given).method()) == Suppression()
    options = typer.main.get_command(app).commands["suppress"].params  # type: ignore[attr-defined]
    (attacker,) = [option for option in options if option.name == "attacker"]
    for word in typing.get_args(typing.get_type_hints(Suppression)["attacker"]):
        assert word in attacker.help


def test_the_command_line_shows_the_parameters_of_a_method() -> None:
    done = CliRunner().invoke(app, ["plugins", "random-rounding"])
    assert done.exit_code == 0
    assert done.output == (
        "base: a whole number of 2 or more; default 3. Numbers are published as multiples of this.\n"
    )
    wrong = CliRunner().invoke(app, ["plugins", "random-roundin"])
    assert isinstance(wrong.exception, InputError)
    assert "did you mean 'random-rounding'" in str(wrong.exception)
