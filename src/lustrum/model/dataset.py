"""A dataset as its keeper describes it: what a record is, its variables, what cannot exist.

The description is a plain mapping (usually a TOML file), checked here once and frozen; see
``docs/reference/dataset-description.md`` for every key.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from lustrum.model.errors import DescriptionError, QueryError, check_known, choices
from lustrum.model.geography import Geography
from lustrum.model.hierarchy import Category, Hierarchy
from lustrum.model.text import say
from lustrum.model.translations import labelled, language_code, read_translations, with_translations
from lustrum.model.variable import (
    RESERVED,
    Measure,
    Replicates,
    Variable,
    Weight,
    check_codes,
    finest_of,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
DATASET_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*\Z")


@dataclass(frozen=True)
class StructuralZero:
    """A combination that cannot exist: every variable named has one of the finest codes listed."""

    reason: str
    where: Mapping[str, frozenset[int]]


@dataclass(frozen=True)
class Dataset:
    """The frozen description of a dataset.

    >>> variables = [{"name": "sex", "codes": ["1", "2"]}]
    >>> words = {"dataset": {"name": "town", "title": "Town"}, "variables": variables}
    >>> Dataset.from_mapping(words).variable("sex").codes
    ('1', '2')
    """

    name: str
    title: str
    variables: tuple[Variable, ...]
    measures: tuple[Measure, ...] = ()
    weights: tuple[Weight, ...] = ()
    structural_zeros: tuple[StructuralZero, ...] = ()
    unit: str = "record"
    units: str = "records"
    description: str = ""
    record_id: str | None = None
    population: str | None = None
    blocks: str | None = None
    identifiers: tuple[str, ...] = ()
    maps: tuple[Geography, ...] = field(default=(), repr=False, compare=False)
    language: str = "en"
    translations: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict, repr=False, compare=False
    )
    source: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    study: bool = field(default=False, repr=False, compare=False)
    """Whether a seed changed the records, so that nothing counted from them may be published."""

    def __post_init__(self) -> None:
        columns = [
            *(v.name for v in self.variables),
            *(m.name for m in self.measures),
            *(c.name for w in self.weights for c in w.columns),
            *self.id_columns,
        ]
        seen: set[str] = set()
        for column in columns:
            if column in seen:
                raise DescriptionError(
                    f"The column {column!r} is described twice; describe it once."
                )
            seen.add(column)
        for weight in self.weights:
            for name in (weight.strata, weight.clusters):
                if name is not None and name not in self.id_columns:
                    raise DescriptionError(
                        f"Weight {weight.name!r}: {name!r} is not an identifier; list it in 'identifiers'."
                    )
        for measure in self.measures:
            if measure.holding is not None and measure.holding not in self.id_columns:
                raise DescriptionError(
                    f"Measure {measure.name!r}: its holding {measure.holding!r} is not an identifier; "
                    "list it in 'identifiers'."
                )
        _check_related(self.measures)
        if self.blocks is not None:
            _check_blocks(self.blocks, self._variables)

    @property
    def id_columns(self) -> tuple[str, ...]:
        """Every column that identifies: the record id first, if there is one, then the rest."""
        record_ids = () if self.record_id is None else (self.record_id,)
        return record_ids + tuple(i for i in self.identifiers if i != self.record_id)

    def label(self, text: str) -> str:
        """A text about the dataset with its translations, if there are any."""
        return with_translations(text, self.translations)

    @cached_property
    def _variables(self) -> dict[str, Variable]:
        return {v.name: v for v in self.variables}

    def variable(self, name: str) -> Variable:
        """The variable of that name; a clear error where there is none."""
        try:
            return self._variables[name]
        except KeyError:
            raise QueryError(
                say(
                    "Dataset {dataset!r} has no variable {name!r}; {choices}.",
                    dataset=self.name,
                    name=name,
                    choices=choices(name, self._variables),
                )
            ) from None

    def measure(self, name: str) -> Measure:
        """The measure of that name; a clear error where there is none."""
        for measure in self.measures:
            if measure.name == name:
                return measure
        if any(weight.name == name for weight in self.weights):
            raise QueryError(
                say(
                    "{name!r} is a weight, not a measure; name it as 'weight'; {choices}.",
                    name=name,
                    choices=choices(name, [m.name for m in self.measures]),
                )
            )
        raise QueryError(
            say(
                "Dataset {dataset!r} has no measure {name!r}; {choices}.",
                dataset=self.name,
                name=name,
                choices=choices(name, [m.name for m in self.measures]),
            )
        )

    def weight(self, name: str) -> Weight:
        """The weight of that name; a clear error where there is none."""
        for weight in self.weights:
            if weight.name == name:
                return weight
        raise QueryError(
            say(
                "Dataset {dataset!r} has no weight {name!r}; {choices}.",
                dataset=self.name,
                name=name,
                choices=choices(name, [w.name for w in self.weights]),
            )
        )

    @classmethod
    def from_mapping(cls, description: Mapping[str, Any]) -> Dataset:
        """Check a description as read from TOML or JSON and freeze it."""
        with not_collecting():
            return cls._from_mapping(description)

    @classmethod
    def _from_mapping(cls, description: Mapping[str, Any]) -> Dataset:
        known = (
            "dataset", "maps", "measures", "structural_zeros", "translations", "variables",
            "weights",
        )  # fmt: skip
        check_known(description, known, "Unknown table", DescriptionError)
        source, translations = description, read_translations(description.get("translations", {}))
        if translations:
            description = labelled(description, translations)
        head = _mapping(description.get("dataset"), "[dataset]")
        name = _text(head, "name", "[dataset]")
        if not DATASET_NAME.match(name):
            raise DescriptionError(
                f"[dataset]: the name {name!r} must be lower-case letters, digits, '-' and '_' only."
            )
        _only(head, _HEAD_KEYS, "[dataset]")
        population = _optional_text(head, "population", "[dataset]")
        if population is not None and not DATASET_NAME.match(population):
            raise DescriptionError(
                f"[dataset]: the population {population!r} must be one word of lower-case letters, digits, '-' "
                "and '_'."
            )
        variables = tuple(_variable(v) for v in _tables(description, "variables"))
        if not variables:
            raise DescriptionError("There is no [[variables]] table; a dataset needs at least one.")
        by_name = {v.name: v for v in variables}
        return cls(
            name=name,
            title=_text(head, "title", "[dataset]", name),
            unit=_text(head, "unit", "[dataset]", "record"),
            units=_text(head, "units", "[dataset]", "records"),
            description=_text(head, "description", "[dataset]", ""),
            record_id=_optional_text(head, "record_id", "[dataset]"),
            population=population,
            blocks=_optional_text(head, "blocks", "[dataset]"),
            identifiers=tuple(_texts(head.get("identifiers", ()), "[dataset], identifiers")),
            variables=variables,
            measures=tuple(_measure(m) for m in _tables(description, "measures")),
            weights=tuple(_weight(w) for w in _tables(description, "weights")),
            structural_zeros=tuple(
                _structural(z, by_name) for z in _tables(description, "structural_zeros")
            ),
            maps=tuple(Geography.from_mapping(m, variables) for m in _tables(description, "maps")),
            language=language_code(_text(head, "language", "[dataset]", "en")),
            translations=translations,
            source=dict(source),
        )


@contextmanager
def not_collecting() -> Iterator[None]:
    """Let the collector rest: a long description is made of very many parts, and none of them is garbage."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


_MEASURE_KEYS = (
    "name", "label", "unit", "decimals", "holding", "missing", "parts", "earlier",
)  # fmt: skip
_HEAD_KEYS = (
    "name", "title", "unit", "units", "description", "record_id", "population", "blocks",
    "identifiers", "language",
)  # fmt: skip


def _variable(raw: Mapping[str, Any]) -> Variable:
    name = _text(raw, "name", "[[variables]]")
    where = f"Variable {name!r}"
    if not _NAME.match(name):
        raise DescriptionError(
            f"{where}: a name is letters, digits and '_', not starting with a digit."
        )
    keys = ("name", "label", "description", "codes", "missing", "hierarchies", "edges", "unit")
    _only(raw, (*keys, "period"), where)
    if not isinstance(raw.get("period", False), bool):
        raise DescriptionError(f"{where}: 'period' is true or false.")
    pairs = raw.get("codes")
    if not isinstance(pairs, Sequence) or isinstance(pairs, str) or not pairs:
        raise DescriptionError(f"{where}: 'codes' must be a non-empty list of [code, label] pairs.")
    if not _are(pairs, (list, tuple)):
        pairs = [(pair, pair) if isinstance(pair, str) else pair for pair in pairs]
    codes, labels = _columns(pairs, where)
    places = dict(zip(codes, range(len(codes)), strict=True))
    if len(places) < len(codes) or not RESERVED.isdisjoint(places):
        check_codes(name, codes)
    # Made once and only where somebody asks: there may be very many.
    finest = cache(lambda: finest_of(codes, labels))
    hierarchies = tuple(_hierarchy(h, places, finest, where) for h in _tables(raw, "hierarchies"))
    variable = Variable(
        name=name,
        label=_text(raw, "label", where, name),
        codes=tuple(codes),
        labels=tuple(labels),
        description=_text(raw, "description", where, ""),
        hierarchies=hierarchies,
        missing=_optional_text(raw, "missing", where),
        edges=_edges(raw.get("edges", ()), where),
        unit=_text(raw, "unit", where, ""),
        period=raw.get("period", False),
    )
    if finest.cache_info().currsize:
        vars(variable)["finest"] = finest()
    return variable


def _columns(pairs: Sequence[Any], where: str) -> tuple[list[str], list[str]]:
    """The codes and the labels of pairs; types of all are looked at in one go, as there may be very many."""
    if _are(pairs, (list, tuple)) and set(map(len, pairs)) == {2}:
        codes, labels = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        if _are(codes, str) and _are(labels, str):
            return codes, labels
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not _are(pair, str):
            raise DescriptionError(
                f"{where}: each entry of 'codes' must be a pair of texts [code, label], not {pair!r}."
            )
    raise AssertionError("a pair is no pair of texts")


def _are(values: Sequence[Any], kind: type | tuple[type, ...]) -> bool:
    return all(issubclass(value_type, kind) for value_type in set(map(type, values)))


def _edges(value: object, where: str) -> tuple[float, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise DescriptionError(f"{where}: 'edges' must be a list of numbers.")
    if not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in value):
        raise DescriptionError(f"{where}: 'edges' must hold numbers only.")
    return tuple(value)


def _hierarchy(
    raw: Mapping[str, Any],
    places: Mapping[str, int],
    finest: Callable[[], Sequence[Category]],
    where: str,
) -> Hierarchy:
    name = _text(raw, "name", f"{where}, a hierarchy")
    context = f"{where}, hierarchy {name!r}"
    _only(raw, ("name", "label", "levels"), context)
    levels = []
    for level in _tables(raw, "levels"):
        level_name = _text(level, "name", f"{context}, a level")
        _only(level, ("name", "label", "groups"), f"{context}, level {level_name!r}")
        groups = list(_tables(level, "groups"))
        levels.append((level_name, _text(level, "label", context, level_name), groups))
    if not levels:
        raise DescriptionError(f"{context} has no levels; it needs at least one.")
    label = _text(raw, "label", context, name)
    return Hierarchy.of_codes(name, label, places, levels, context, finest)


def _measure(raw: Mapping[str, Any]) -> Measure:
    name = _text(raw, "name", "[[measures]]")
    where = f"Measure {name!r}"
    _only(raw, _MEASURE_KEYS, where)
    return Measure(
        name=name,
        label=_text(raw, "label", where, name),
        unit=_text(raw, "unit", where, ""),
        decimals=_whole(raw, "decimals", where),
        holding=_optional_text(raw, "holding", where),
        missing=_optional_text(raw, "missing", where),
        parts=tuple(_texts(raw.get("parts", ()), f"{where}, parts")),
        earlier=_optional_text(raw, "earlier", where),
    )


def _check_blocks(blocks: str, variables: Mapping[str, Variable]) -> None:
    """Blocks are the categories of a variable or of one of its levels."""
    name, colon, level = blocks.partition(":")
    if name not in variables:
        raise DescriptionError(
            f"[dataset]: blocks = {blocks!r} names no variable; {choices(name, variables)}."
        )
    levels = [known.name for known in variables[name].levels]
    if colon and level not in levels:
        raise DescriptionError(
            f"[dataset]: blocks = {blocks!r} names no level of {name!r}; {choices(level, levels)}."
        )


def _check_related(measures: Sequence[Measure]) -> None:
    """Parts and earlier measures must exist, be of the same kind, and not run in circles."""
    known = {m.name: m for m in measures}
    for measure in measures:
        earlier = () if measure.earlier is None else (measure.earlier,)
        for name in (*measure.parts, *earlier):
            other = known.get(name)
            if other is None or other is measure:
                raise DescriptionError(
                    f"Measure {measure.name!r}: it names {name!r}, which is not another measure; "
                    f"{choices(name, [m for m in known if m != measure.name])}."
                )
            if (other.decimals, other.holding) != (measure.decimals, measure.holding):
                raise DescriptionError(
                    f"Measure {measure.name!r}: its part or earlier measure {name!r} needs the same "
                    "decimals and the same holding."
                )
        if any(known[name].parts for name in measure.parts):
            raise DescriptionError(
                f"Measure {measure.name!r}: a part of it has parts itself; list those instead."
            )


def _weight(raw: Mapping[str, Any]) -> Weight:
    name = _text(raw, "name", "[[weights]]")
    where = f"Weight {name!r}"
    _only(raw, ("name", "label", "decimals", "strata", "clusters", "total", "replicates"), where)
    total = _whole(raw, "total", where) if "total" in raw else None
    if total is not None and total < 1:
        raise DescriptionError(f"{where}: 'total' is the size of the frame, a number above 0.")
    return Weight(
        name,
        _text(raw, "label", where, name),
        _whole(raw, "decimals", where),
        _optional_text(raw, "strata", where),
        _optional_text(raw, "clusters", where),
        total,
        _replicates(raw["replicates"], where) if "replicates" in raw else None,
    )


def _replicates(raw: Any, where: str) -> Replicates:
    where = f"{where}, replicates"
    if not isinstance(raw, Mapping):
        raise DescriptionError(f"{where}: write a table with 'method' and 'columns'.")
    _only(raw, ("method", "columns", "fay"), where)
    columns, fay = raw.get("columns"), raw.get("fay")
    if not isinstance(columns, list) or not all(isinstance(c, str) for c in columns):
        raise DescriptionError(f"{where}: 'columns' is a list of names of columns.")
    if fay is not None and (isinstance(fay, bool) or not isinstance(fay, int | float)):
        raise DescriptionError(f"{where}: 'fay' is a number, not {fay!r}.")
    try:
        return Replicates(
            _text(raw, "method", where),  # type: ignore[arg-type]
            tuple(columns),
            None if fay is None else float(fay),
        )
    except DescriptionError as error:
        raise DescriptionError(f"{where}: {error}") from None


def _structural(raw: Mapping[str, Any], variables: Mapping[str, Variable]) -> StructuralZero:
    reason = _text(raw, "reason", "[[structural_zeros]]")
    where = f"Structural zero {reason!r}"
    _only(raw, ("reason", "where"), where)
    combination: dict[str, frozenset[int]] = {}
    for name, codes in _mapping(raw.get("where"), f"{where}, where").items():
        variable = variables.get(name)
        if variable is None:
            raise DescriptionError(
                f"{where}: there is no variable {name!r}; {choices(name, variables)}."
            )
        try:
            categories = [variable.category(code) for code in _texts(codes, f"{where}, {name}")]
        except QueryError as error:
            raise DescriptionError(f"{where}: {error}") from None
        combination[name] = frozenset(p for c in categories for p in c.members)
    if not combination:
        raise DescriptionError(f"{where}: 'where' names no variable; it needs at least one.")
    return StructuralZero(reason, combination)


def _tables(raw: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    value = raw.get(key, ())
    if not isinstance(value, Sequence) or not all(isinstance(v, Mapping) for v in value):
        raise DescriptionError(f"{key!r} must be a list of tables, written [[{key}]].")
    return value


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DescriptionError(f"{where} is missing or is not a table.")
    return value


def _text(raw: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    value = raw.get(key, default)
    if not isinstance(value, str):
        problem = "is missing" if value is None else "must be a text in quotes"
        raise DescriptionError(f"{where}: {key!r} {problem}.")
    return value


def _optional_text(raw: Mapping[str, Any], key: str, where: str) -> str | None:
    return _text(raw, key, where) if key in raw else None


def _texts(value: object, where: str) -> Sequence[str]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise DescriptionError(f"{where} must be a list of texts.")
    if not all(isinstance(v, str) for v in value):
        raise DescriptionError(f"{where} must hold texts in quotes only.")
    return value


def _whole(raw: Mapping[str, Any], key: str, where: str) -> int:
    value = raw.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DescriptionError(f"{where}: {key!r} must be a whole number.")
    return value


def _only(raw: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    check_known(raw, known, f"{where}: unknown key", DescriptionError)
