"""Parameters are declared once: checks, words, documentation and the command line follow."""

from __future__ import annotations

import importlib.util
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lustrum.cli import app
from lustrum.model import InputError
from lustrum.model.parameters import parameter_names, parameters_of, spec_from_words
from lustrum.model.plugins import load, names

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


def test_the_command_line_shows_the_parameters_of_a_method() -> None:
    done = CliRunner().invoke(app, ["plugins", "random-rounding"])
    assert done.exit_code == 0
    assert done.output == (
        "base: a whole number of 2 or more; default 3. Numbers are published as multiples of this.\n"
    )
    wrong = CliRunner().invoke(app, ["plugins", "random-roundin"])
    assert isinstance(wrong.exception, InputError)
    assert "did you mean 'random-rounding'" in str(wrong.exception)
