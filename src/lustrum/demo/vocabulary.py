"""The words a dataset description is made of, and how they are written as TOML.

A description is data: variables with their codes, hierarchies that group those codes, measures,
weights, and the combinations that cannot exist. The generators read their codes from these same
objects, so a description and the data it describes cannot drift apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class DemoGroup:
    """One category of a level, made of categories of the level below."""

    code: str
    label: str
    members: tuple[str, ...]


@dataclass(frozen=True)
class DemoLevel:
    """One step of coarsening; its groups partition the level below."""

    name: str
    label: str
    groups: tuple[DemoGroup, ...]


@dataclass(frozen=True)
class DemoHierarchy:
    """Levels from fine to coarse. The finest codes are implied, not listed."""

    name: str
    label: str
    levels: tuple[DemoLevel, ...]


@dataclass(frozen=True)
class DemoVariable:
    """A categorical column: its finest codes with labels, and the ways to group them."""

    name: str
    label: str
    description: str
    codes: tuple[tuple[str, str], ...]
    hierarchies: tuple[DemoHierarchy, ...] = ()
    edges: tuple[int, ...] = ()
    unit: str = ""

    @property
    def code_list(self) -> tuple[str, ...]:
        return tuple(code for code, _ in self.codes)

    def __len__(self) -> int:
        return len(self.codes)

    def position(self, code: str) -> int:
        """Where a code stands in the list; the generators work with positions throughout."""
        return self.code_list.index(code)


@dataclass(frozen=True)
class DemoMeasure:
    """A numeric column with a fixed number of decimals."""

    name: str
    label: str
    unit: str
    decimals: int
    holding: str | None = None
    parts: tuple[str, ...] = ()
    earlier: str | None = None


@dataclass(frozen=True)
class DemoWeight:
    """A sampling weight column with a fixed number of decimals, and the design of the sample."""

    name: str
    label: str
    decimals: int
    strata: str | None = None
    clusters: str | None = None
    total: int | None = None
    bootstrap: tuple[str, ...] = ()


@dataclass(frozen=True)
class DemoStructuralZero:
    """A combination of codes that cannot exist, and why."""

    reason: str
    where: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Description:
    """Everything a reader must know about a dataset before tabulating it."""

    name: str
    title: str
    unit: str
    units: str
    description: str
    record_id: str
    identifiers: tuple[str, ...]
    variables: tuple[DemoVariable, ...]
    measures: tuple[DemoMeasure, ...] = ()
    weights: tuple[DemoWeight, ...] = ()
    structural_zeros: tuple[DemoStructuralZero, ...] = ()
    translations: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    maps: tuple[tuple[str, str], ...] = ()

    def to_toml(self) -> str:
        """The description as TOML text, one category a line."""
        return "\n".join(_lines(self)) + "\n"


def _text(value: str) -> str:
    # JSON strings are TOML basic strings as long as no raw control character is inside.
    return json.dumps(value, ensure_ascii=False)


def _list(values: Iterable[str]) -> str:
    return "[" + ", ".join(_text(value) for value in values) + "]"


def _lines(dataset: Description) -> Iterator[str]:
    yield "[dataset]"
    for key in ("name", "title", "unit", "units", "description", "record_id"):
        yield f"{key} = {_text(getattr(dataset, key))}"
    yield f"identifiers = {_list(dataset.identifiers)}"
    for variable in dataset.variables:
        yield from _variable_lines(variable)
    for measure in dataset.measures:
        yield from ("", "[[measures]]", f"name = {_text(measure.name)}")
        yield from (f"label = {_text(measure.label)}", f"unit = {_text(measure.unit)}")
        yield f"decimals = {measure.decimals}"
        if measure.holding is not None:
            yield f"holding = {_text(measure.holding)}"
        if measure.parts:
            yield f"parts = {_list(measure.parts)}"
        if measure.earlier is not None:
            yield f"earlier = {_text(measure.earlier)}"
    for weight in dataset.weights:
        yield from ("", "[[weights]]", f"name = {_text(weight.name)}")
        yield from (f"label = {_text(weight.label)}", f"decimals = {weight.decimals}")
        if weight.strata is not None:
            yield f"strata = {_text(weight.strata)}"
        if weight.clusters is not None:
            yield f"clusters = {_text(weight.clusters)}"
        if weight.total is not None:
            yield f"total = {weight.total}"
        if weight.bootstrap:
            yield from ("", "[weights.replicates]", 'method = "bootstrap"')
            yield f"columns = {_list(weight.bootstrap)}"
    for zero in dataset.structural_zeros:
        where = ", ".join(f"{name} = {_list(codes)}" for name, codes in zero.where)
        yield from ("", "[[structural_zeros]]", f"reason = {_text(zero.reason)}")
        yield f"where = {{ {where} }}"
    for name, file in dataset.maps:
        yield from ("", "[[maps]]", f"variable = {_text(name)}", f"file = {_text(file)}")
    for language, pairs in dataset.translations:
        yield from ("", f"[translations.{language}]")
        yield from (f"{_text(text)} = {_text(said)}" for text, said in pairs)


def _variable_lines(variable: DemoVariable) -> Iterator[str]:
    yield from ("", "[[variables]]", f"name = {_text(variable.name)}")
    yield f"label = {_text(variable.label)}"
    yield f"description = {_text(variable.description)}"
    yield "codes = ["
    for pair in variable.codes:
        yield f"  {_list(pair)},"
    yield "]"
    if variable.edges:
        yield f"edges = [{', '.join(map(str, variable.edges))}]"
        yield f"unit = {_text(variable.unit)}"
    for hierarchy in variable.hierarchies:
        yield from ("", "[[variables.hierarchies]]", f"name = {_text(hierarchy.name)}")
        yield f"label = {_text(hierarchy.label)}"
        for level in hierarchy.levels:
            yield from ("", "[[variables.hierarchies.levels]]", f"name = {_text(level.name)}")
            yield from (f"label = {_text(level.label)}", "groups = [")
            for group in level.groups:
                members = _list(group.members)
                code, label = _text(group.code), _text(group.label)
                yield f"  {{ code = {code}, label = {label}, members = {members} }},"
            yield "]"
