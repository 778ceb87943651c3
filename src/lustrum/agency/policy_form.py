"""A policy's text and the form beside it: fields from the declarations of keys, each a change of one key.

The text is what is checked, kept and sealed. The form says what stands in it; a field that differs from what
the page showed is a change that somebody made, and is written into the text where its key stands. Comments,
order and every other line stay as they are.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations
from typing import Any

from lustrum.agency.maps.inputs import toml_value
from lustrum.model import Dataset, InputError, LustrumError, PolicyError
from lustrum.model.errors import choices
from lustrum.model.parameters import schema_of
from lustrum.model.plugins import load, names
from lustrum.numeric.arithmetic import power_of_ten
from lustrum.policy import Policy
from lustrum.policy.parts import Before, PolicyMethod
from lustrum.policy.presets import preset
from lustrum.policy.read import finished_text
from lustrum.protect.abilities import abilities_of
from lustrum.risk.measure import RiskSpec

Path = tuple[str | int, ...]

_TITLES = {
    "": "The policy",
    "rules": "What may be asked",
    "risk": "How much risk may be left",
    "before": "Protection of the input",
    "protect": "Protection of tables",
    "sums": "Protection of sums",
    "weights": "Weights of a survey",
    "fallback": "Where a table fails",
    "audit": "Audit",
}
_REACH = {
    "rules.max_cells": 200_000,
    "rules.min_population": 10_000,
    "rules.min_mean_cell_size": 20,
    "rules.small_up_to": 20,
    "rules.min_area_population": 10_000,
    "audit.min_values": 10,
    "audit.up_to": 20,
}
"""Where sliders end whose keys have no upper limit; a larger number can be typed."""


@dataclass(frozen=True)
class FormField:
    """A key of the policy: what it decides, what stands there, and what may.

    ``kind`` is ``number``, ``choice``, ``text``, or ``value`` for anything else, as TOML has it.
    ``options`` are choices in words and as values; ``least``, ``most`` and ``step`` are those of a slider.
    """

    key: str
    text: str
    kind: str
    value: str
    usual: str
    options: tuple[tuple[str, Any], ...] = ()
    least: float | None = None
    most: float | None = None
    step: float = 1

    @property
    def name(self) -> str:
        """The last word of the key, as the text writes it."""
        return self.key.rpartition(".")[2]


@dataclass(frozen=True)
class Section:
    """A table of the policy with its fields."""

    key: str
    title: str
    fields: tuple[FormField, ...]


def form_of_policy(text: str, dataset: Dataset | None) -> tuple[Section, ...]:
    """The form of a text that can be read; a policy with a mistake in what it says has one too."""
    settings = _read(text)
    sections = [_section("", settings, _schema(), dataset)]
    schema = _schema()["$defs"]
    for name, model in {"rules": "Rules", "risk": "Risk", "audit": "Audit"}.items():
        words = settings.get(name, {})
        sections.append(_section(name, words, schema[model], dataset))
    steps = settings.get("before", [])
    places = [(f"before.{number}", step) for number, step in enumerate(steps, start=1)]
    places += [(name, settings[name]) for name in ("protect", "sums") if name in settings]
    methods = [_section(name, words, {"properties": {}}, dataset) for name, words in places]
    if "weights" in settings:
        sections.append(_section("weights", settings["weights"], schema["Weights"], dataset))
    return (*sections[1:3], *methods, *sections[3:], sections[0])


@cache
def _schema() -> dict[str, Any]:
    return Policy.model_json_schema()


def changed_text(text: str, form: Mapping[str, str], dataset: Dataset | str) -> str:
    """The text with every field in it that differs from what the page showed; a preset if one is named."""
    if form.get("preset"):
        return preset(form["preset"], dataset)
    try:
        shown = json.loads(form.get("shown") or "{}")
        before = {str(key): str(value) for key, value in shown.items()}
    except (ValueError, AttributeError):
        raise InputError("The form cannot be read; load the page again.") from None
    changed = {
        key: form[f"set.{key}"].strip()
        for key in before
        if form.get(f"set.{key}", before[key]).strip() != before[key]
    }
    if not changed:
        return text
    known = {
        one.key: one
        for section in form_of_policy(text, dataset if isinstance(dataset, Dataset) else None)
        for one in section.fields
    }
    for key, value in changed.items():
        if key not in known:
            raise InputError(f"The text does not say {key!r} any more; load the page again.")
        path = tuple(int(part) - 1 if part.isdigit() else part for part in key.split("."))
        if path[-1] in ("method", "measure"):
            text = _with_other(text, path, value)
        else:
            text = with_value(text, path, _parsed(known[key], value))
    return text


# --- Fields from declarations


def _section(
    place: str, words: Mapping[str, Any], schema: Mapping[str, Any], dataset: Dataset | None
) -> Section:
    head = place.partition(".")[0]
    properties: dict[str, Any] = {
        name: one
        for name, one in schema["properties"].items()
        if place or not isinstance(words.get(name, one.get("default")), dict)
    }
    if not place:
        for name in ("dataset", *_TITLES):
            properties.pop(name, None)
    group = "lustrum.risks" if place == "risk" else "lustrum.methods"
    chosen = "measure" if place == "risk" else "method"
    if head in _KINDS:
        options = _choices(head)
        name = words.get(chosen, "")
        limit = properties.pop("limit", None)
        properties = {chosen: {"enum": options, "description": f"Name of the {_KINDS[head]}."}}
        properties |= {} if limit is None else {"limit": limit}
        if isinstance(name, str) and name in names(group):
            properties |= schema_of(load(group, name))["properties"]
    if place == "rules" and dataset is not None:
        areas = ["", *(one.name for one in dataset.variables)]
        properties["per_area"] = {**properties["per_area"], "enum": areas}
    fields = [
        _field(f"{place}.{name}".lstrip("."), one, words.get(name), dataset)
        for name, one in properties.items()
    ]
    return Section(place, _TITLES[head], tuple(fields))


_KINDS = {
    "risk": "risk measure",
    "before": "method that changes the input once",
    "protect": "method that changes every table",
    "sums": "method for sums",
}


@cache
def _choices(head: str) -> list[str]:
    """The methods or measures that can stand at a place, by what they declare."""
    if head == "risk":
        kinds = {name: load("lustrum.risks", name) for name in names("lustrum.risks")}
        return [
            name
            for name, kind in kinds.items()
            if isinstance(kind, type) and issubclass(kind, RiskSpec) and kind.measures_releases
        ]
    found = []
    for name in names("lustrum.methods"):
        needed = schema_of(load("lustrum.methods", name))["required"]
        words = {"method": name, **dict.fromkeys(needed, 10.0)}
        try:
            if head == "before":
                Before.model_validate(words)
            else:
                spec = PolicyMethod.model_validate(words).spec
                does, once = abilities_of(spec), {"population", "magnitudes"} & set(spec.stages)
                fits = does.one_number and not once and does.sums_only == (head == "sums")
                if not fits and not (name == "none" and head == "protect"):
                    continue
        except (ValueError, LustrumError):
            continue
        found.append(name)
    return found


def _field(key: str, schema: Mapping[str, Any], value: Any, dataset: Dataset | None) -> FormField:
    """A field by the JSON schema of its key; what is no number and no choice is written as in the text."""
    text = str(schema.get("description", ""))
    default = schema.get("default")
    usual, written = _written(default), _written(value)
    options = _options(schema)
    if options:
        now = written or usual or next((said for said, one in options if one in ([], None)), "")
        if now not in dict(options):
            options = ((now, value), *options)
        return FormField(key, text, "choice", now, usual, options)
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
    number = kinds[0] if len(kinds) == 1 and kinds[0].get("type") in ("integer", "number") else None
    if number is None:
        plain = [kind.get("type") for kind in kinds] == ["string"]
        return FormField(key, text, "text" if plain else "value", written, usual)
    least = number.get("minimum", number.get("exclusiveMinimum"))
    most = _most(key, number, default, dataset)
    if least is None or most is None:
        return FormField(key, text, "number", written, usual)
    if isinstance(value, (int, float)) and math.isfinite(value):
        most = max(most, value)
    step: float = max(1, 10 ** (len(str(int(most))) - 3))
    if number["type"] == "number":
        step = power_of_ten(most - least) / 100 if most > least else 0.01
    return FormField(key, text, "number", written, usual, (), least, most, step)


def _options(schema: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """All values of a key that has few, in words and as they are."""
    kinds = schema.get("anyOf", [schema])
    found: list[Any] = []
    for kind in kinds:
        entries = kind.get("items", {})
        if kind.get("type") == "boolean":
            found += [True, False]
        elif kind.get("type") == "null":
            found.append(None)
        elif kind.get("type") == "array" and "enum" in entries:
            numbers = range(len(entries["enum"]) + 1)
            several = (combinations(entries["enum"], number) for number in numbers)
            found += [list(words) for words in chain.from_iterable(several)]
        elif "enum" in kind or "const" in kind:
            found += kind.get("enum", [kind.get("const")])
        else:
            return ()
    return tuple((_written(value), value) for value in found)


def _most(
    key: str, schema: Mapping[str, Any], default: Any, dataset: Dataset | None
) -> float | None:
    """Where a slider ends: at the limit, at a usual reach, or at four times the default."""
    if key in ("rules.max_dimensions", "rules.max_filters") and dataset is not None:
        return len(dataset.variables)
    declared = schema.get("maximum", schema.get("exclusiveMaximum"))
    if declared is not None or key in _REACH:
        return float(declared) if declared is not None else _REACH[key]
    return 4 * default if isinstance(default, (int, float)) and default > 0 else None


def _written(value: object) -> str:
    """A value as a field shows it: a text as it is, anything else as the text of the policy has it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else toml_value(value)


def _parsed(field: FormField, given: str) -> Any:
    """What a field holds as a value of the policy; None where it is empty, which leaves the key out."""
    if field.kind == "choice":
        if given not in dict(field.options):
            raise InputError(f"{field.key!r}: {choices(given, list(dict(field.options)))}.")
        return dict(field.options)[given] or (None if given == "" else dict(field.options)[given])
    if not given:
        return None
    try:
        value = tomllib.loads(f"value = {given}\n")["value"]
    except tomllib.TOMLDecodeError:
        value = None
    if field.kind == "number":
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"{field.key!r} is a number, not {given!r}.")
        return value
    return given if value is None or field.kind == "text" else value


# --- One change of the text


@dataclass(frozen=True)
class _Statement:
    """Lines of a text that say one thing: the header of a table, or a key of it."""

    first: int
    end: int
    table: Path
    key: str
    comment: str


def with_value(text: str, path: Path, value: Any) -> str:
    """The text with one key set, or without it where the value is None; every other line stays.

    >>> print(with_value('a = 1  # why\\n[risk]\\nlimit = 1.0\\nend = true\\n', ("risk", "limit"), 0.3))
    a = 1  # why
    [risk]
    limit = 0.3
    end = true
    <BLANKLINE>
    """
    before = _read(text)
    body = finished_text(text, "The draft")
    last = text[len(body) :]
    lines = body.removesuffix("\n").split("\n")
    table, key = path[:-1], str(path[-1])
    statements = list(_statements(lines))
    here = [one for one in statements if one.table == table]
    found = next((one for one in here if one.key == key), None)
    if value is None and found is None:
        return text
    new = [] if value is None else [f"{key} = {toml_value(value)}"]
    if found is not None:
        lines[found.first : found.end] = [f"{line}{found.comment}" for line in new]
    elif new and (here or not table):
        at = here[-1].end if here else 0
        lines[at:at] = new
    elif new:
        while lines and not lines[-1].strip():
            lines.pop()
        lines += ["", f"[{table[0]}]", *new, ""]
    changed = "\n".join(lines) + "\n" + last
    if _read(changed) != _set(before, path, value):
        raise PolicyError(
            f"The text writes {'.'.join(map(str, path))!r} in a way that the form cannot change; change it in "
            "the text."
        )
    return changed


def _with_other(text: str, path: Path, name: str) -> str:
    """The text with another method or measure, without the parameters of the one before."""
    words = _read(text)
    for part in path[:-1]:
        words = words[part] if isinstance(part, int) else words.get(part, {})
    for key in words:
        if key not in ("limit", path[-1]):
            text = with_value(text, (*path[:-1], key), None)
    return with_value(text, path, name)


def _read(text: str) -> Any:
    body = finished_text(text, "The draft")
    try:
        return tomllib.loads(body)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"The draft is not valid TOML: {error}.") from None


def _set(settings: Any, path: Path, value: Any) -> Any:
    """The settings with one value set; tables that this makes are made."""
    changed = deepcopy(settings)
    place = changed
    for part in path[:-1]:
        place = place.setdefault(part, {}) if isinstance(place, dict) else place[part]
    if value is None:
        place.pop(path[-1], None)
    else:
        place[path[-1]] = value
    return changed


def _statements(lines: list[str]) -> Iterator[_Statement]:
    """The statements of a text that can be read; one that goes over several lines is one."""
    table: Path = ()
    counts: dict[str, int] = {}
    first = 0
    while first < len(lines):
        stripped = lines[first].strip()
        end = first + 1
        if stripped and not stripped.startswith("#"):
            while True:
                try:
                    said = tomllib.loads("\n".join(lines[first:end]))
                    break
                except tomllib.TOMLDecodeError:
                    end += 1
                    if end > len(lines):
                        return
            name = next(iter(said))
            if stripped.startswith("[["):
                counts[name] = counts.get(name, -1) + 1
                table = (name, counts[name])
            elif stripped.startswith("["):
                table = (name,)
            key = "" if stripped.startswith("[") else name
            yield _Statement(first, end, table, key, _comment("\n".join(lines[first:end]), said))
        first = end


def _comment(statement: str, said: Mapping[str, Any]) -> str:
    """What follows a value on its line, with the blanks before it."""
    at = statement.find("#")
    while at >= 0:
        with suppress(tomllib.TOMLDecodeError):
            if tomllib.loads(statement[:at]) == said:
                return statement[len(statement[:at].rstrip()) :]
        at = statement.find("#", at + 1)
    return ""
