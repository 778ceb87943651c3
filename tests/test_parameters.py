"""Parameters are declared once: checks, words, documentation and the command line follow."""

from __future__ import annotations

import importlib.util
import json
import typing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from lustrum.agency.maps.inputs import MAP_METHODS, MapMethod, methods_of
from lustrum.cli import app
from lustrum.cli.maps import methods_of_words
from lustrum.model import InputError
from lustrum.model.parameters import parameter_names, parameters_of, spec_from_words
from lustrum.model.plugins import load, names
from lustrum.policy.parts import PolicyMethod
from lustrum.protect.suppression import Suppression

ROOT = Path(__file__).parent.parent
GROUPS = ("lustrum.methods", "lustrum.rules", "lustrum.risks", "lustrum.utilities")
BUILT_IN = [
    (group, name)
    for group in GROUPS
    for name in names(group)
    if load(group, name).__module__.startswith("lustrum.")
]
# What a spec needs to be made at all.
NEEDED: dict[str, dict[str, Any]] = {
    "between-variance-change": {"area": "a", "variable": "b", "category": "1"},
    "conditional-error": {"variable": "a"},
    "differential-privacy": {"epsilon": 1.0},
    "p-percent": {"p": 10},
    "post-randomisation": {"variable": "a"},
    "prior-posterior": {"p": 10, "q": 50},
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


def test_the_page_of_parameters_is_what_the_code_declares() -> None:
    spec = importlib.util.spec_from_file_location(
        "parameter_tables", ROOT / "scripts" / "parameter_tables.py"
    )
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert (ROOT / "docs" / "reference" / "parameters.md").read_text() == script.page(), (
        "run scripts/parameter_tables.py"
    )


METHODS = [name for group, name in BUILT_IN if group == "lustrum.methods"]


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


def test_the_options_of_suppress_are_the_declared_parameters_of_the_method() -> None:
    command = typer.main.get_command(app).commands["suppress"]  # type: ignore[attr-defined]
    options = {option.name: option for option in command.params}
    declared = {field.name: field for field in fields(Suppression)}
    for one in parameters_of(Suppression):
        if one.name == "rule":  # the words of rules are shorter on the command line
            continue
        option = options[one.name]
        assert option.default == declared[one.name].default
        allowed = typing.get_args(typing.get_type_hints(Suppression)[one.name])
        for word in allowed:
            if isinstance(word, str):
                assert word in option.help


def test_the_command_line_shows_the_parameters_of_a_method() -> None:
    done = CliRunner().invoke(app, ["plugins", "random-rounding"])
    assert done.exit_code == 0
    assert done.output == (
        "base: a whole number of 2 or more; default 3. Numbers are published as multiples of this.\n"
    )
    wrong = CliRunner().invoke(app, ["plugins", "random-roundin"])
    assert isinstance(wrong.exception, InputError)
    assert "did you mean 'random-rounding'" in str(wrong.exception)
