"""The form of a policy: it says what the text says, and a field changes one key and nothing else."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.agency.policy_form import FormField, changed_text, form_of_policy, with_value
from lustrum.model import LustrumError
from lustrum.policy.presets import PRESETS, preset
from lustrum.policy.read import finished_text


def said(text: str) -> dict[str, Any]:
    return tomllib.loads(finished_text(text, "it"))


def fields(text: str) -> dict[str, FormField]:
    return {one.key: one for section in form_of_policy(text, None) for one in section.fields}


def after(text: str, key: str, value: str) -> str:
    """The text after somebody changed one field of the page."""
    shown = {one.key: one.value for one in fields(text).values()}
    posted = {f"set.{name}": now for name, now in shown.items()} | {f"set.{key}": value}
    return changed_text(text, {"shown": json.dumps(shown), **posted}, "town")


def without(settings: dict[str, Any], key: str) -> dict[str, Any]:
    """The settings without one key, whatever table it is in; tables that are empty then go too."""
    *places, last = key.split(".")
    copy = json.loads(json.dumps(settings))
    place = copy
    for part in places:
        place = place[int(part) - 1] if part.isdigit() else place.get(part, {})
    place.pop(last, None)
    return {name: one for name, one in copy.items() if one != {}}


def others(field: FormField) -> list[str]:
    """Values that a field does not have now."""
    if field.kind == "choice":
        return [words for words, _ in field.options if words != field.value]
    return {"number": ["7", "0.25", ""], "text": ["Some words, '\"", ""], "value": ["[1, 2]", ""]}[
        field.kind
    ]


@pytest.mark.parametrize("name", PRESETS)
def test_a_field_changes_its_key_alone_and_the_form_then_says_so(name: str) -> None:
    text = preset(name, "town")
    for key, field in fields(text).items():
        for value in others(field):
            if value == field.value:
                continue
            new = after(text, key, value)
            if key.endswith((".method", ".measure")):
                assert fields(new)[key].value == value
                continue
            assert without(said(new), key) == without(said(text), key), (key, value)
            assert fields(new)[key].value in (value, fields(text)[key].usual), (key, value)
            kept = [line for line in text.splitlines() if line.strip()]
            lost = [line for line in kept if line not in new.splitlines()]
            assert all(line.startswith(field.name) for line in lost), (key, value)


@pytest.mark.parametrize("name", PRESETS)
def test_another_method_leaves_no_parameter_of_the_one_before(name: str) -> None:
    text = preset(name, "town")
    for key, field in fields(text).items():
        if key.endswith(".method"):
            for value in others(field):
                place = said(after(text, key, value))
                for part in key.split(".")[:-1]:
                    place = place[int(part) - 1] if part.isdigit() else place[part]
                assert place == {"method": value}


keys = st.sampled_from(["a", "b", "limit", "method"])
scalars = st.one_of(
    st.integers(-999, 999),
    st.booleans(),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=9),
    st.lists(st.sampled_from(["x", "#", "]", '"']), max_size=3),
)
comments = st.sampled_from(["", "  # [rules]", " # a = 1", "# \"'"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A policy file in some of the ways that people write them: comments, blank lines, lists over lines."""
    lines: list[str] = []
    heads = draw(st.lists(st.sampled_from(["[rules]", "[[before]]", "[risk] # why"]), max_size=4))
    heads = [h for i, h in enumerate(heads) if h.startswith("[[") or h not in heads[:i]]
    for head in ["", *heads]:
        lines += [head] * bool(head)
        for key in draw(st.lists(keys, unique=True, max_size=3)):
            value = json.dumps(draw(scalars), ensure_ascii=False)
            if value.startswith("[") and draw(st.booleans()):
                value = value.replace(", ", ",  # more\n  ").replace("[", "[\n  ", 1)
            lines.append(f"{key} = {value}{draw(comments)}")
            lines += draw(st.lists(st.sampled_from(["", "# said", "# a = 2"]), max_size=1))
    return "\n".join([*lines, "end = true", ""])


places = st.sampled_from([(), ("rules",), ("risk",), ("before", 0), ("before", 1)])


@settings(max_examples=examples(150, 3000))
@given(texts(), places, keys, st.one_of(st.none(), scalars))
def test_a_change_of_the_text_is_that_change_and_no_line_beside_it(
    text: str, place: tuple[str | int, ...], key: str, value: Any
) -> None:
    try:
        before = said(text)
    except tomllib.TOMLDecodeError:
        return  # such as a text with a quotation mark that JSON writes in another way
    if place[:1] == ("before",) and place[1] >= len(before.get("before", [])):  # type: ignore[operator]
        return
    new = with_value(text, (*place, key), value)
    table = said(new)
    for part in place:
        table = table[part] if isinstance(part, int) or part in table else {}
    assert table.get(key) == value
    again = with_value(new, (*place, key), None)
    dotted = ".".join(str(part + 1) if isinstance(part, int) else part for part in (*place, key))
    assert without(said(again), dotted) == without(before, dotted)
    lost = [
        line for line in text.split("\n") if line.startswith("#") and line not in new.split("\n")
    ]
    assert lost == []


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("rules.max_cells = 5\nend = true\n", ("rules", "max_cells")),
        ("rules = { max_cells = 5 }\nend = true\n", ("rules", "max_cells")),
    ],
)
def test_a_text_in_another_hand_that_the_form_cannot_change_is_left_alone(
    text: str, key: tuple[str, str]
) -> None:
    with pytest.raises(LustrumError, match=r"change it in the text|not valid TOML"):
        with_value(text, key, 7)


def test_a_key_in_quotation_marks_is_found() -> None:
    text = '"a" = 1\n[risk]\n"limit" = 0.5\nend = true\n'
    assert said(with_value(text, ("risk", "limit"), 7)) == {"a": 1, "risk": {"limit": 7}}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"shown": "nonsense", "set.title": "x"}, "load the page again"),
        ({"shown": '{"risk.limit": "1.0"}', "set.risk.limit": "much"}, "is a number"),
        (
            {"shown": '{"rules.nested_only": "false"}', "set.rules.nested_only": "maybe"},
            "nested_only",
        ),
        ({"shown": '{"rules.none": ""}', "set.rules.none": "1"}, "any more"),
        ({"preset": "loose"}, "There is no preset"),
    ],
)
def test_a_form_with_a_mistake_is_one_sentence(fields: dict[str, str], words: str) -> None:
    with pytest.raises(LustrumError, match=words):
        changed_text(preset("strict", "town"), fields, "town")


def test_fields_that_nobody_changed_say_nothing() -> None:
    text = "# as written  \n" + preset("strict", "town")
    shown = {one.key: one.value for one in fields(text).values()}
    assert changed_text(text, {"shown": json.dumps(shown)}, "town") == text
