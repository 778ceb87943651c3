"""Parameters of methods, measures and rules: declared once, where the spec stores them.

A spec is a frozen dataclass. Each field says what its parameter means and which values it may have; pydantic
checks them by these declarations, in strict mode. The words of a policy file, the JSON schema, the tables of
the documentation and ``lustrum plugins`` follow from the same declarations. Pydantic is imported, and the
checks of a spec are made, with the first object of that spec.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Rounding(DeclaredSpec):
    ...     name, group = "rounding", "method"
    ...     base: int = parameter(3, "Numbers are published as multiples of this.", least=2)
    >>> Rounding(5).to_mapping()
    {'method': 'rounding', 'base': 5}
    >>> Rounding(1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    lustrum.model.parameters.ParameterError: The method 'rounding': 'base' must be a whole number of 2...
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    runtime_checkable,
)

from lustrum.model.errors import InputError, choices
from lustrum.model.plugins import load

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_KEY = "lustrum parameter"
S = TypeVar("S")
Schema = Mapping[str, Any]


@runtime_checkable
class Writable(Protocol):
    """Anything that can be written down in the words of a policy file."""

    def to_mapping(self) -> dict[str, Any]: ...


REACH = 2**31 - 1
"""No number of a spec or a policy is larger: the product of two of them still fits 64 bits."""
_FLOATS = 1e-30, 1e30
"""The sizes of other numbers than whole ones, 0 aside: their squares can still be worked with."""


class ParameterError(InputError):
    """A parameter is wrong; ``parameter`` names it."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(sentence)
        self.parameter = name


@dataclass(frozen=True)
class _Declared:
    text: str
    limits: Mapping[str, Any]
    group: str = ""
    secret: bool = False
    brief: bool = False
    once: bool = False
    before: Mapping[str, Any] = field(default_factory=dict)
    only: tuple[Any, ...] = ()
    read: Callable[[Any], Any] | None = None
    write: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Parameter:
    """One parameter of a spec as its documentation shows it."""

    name: str
    kind: str
    default: str
    text: str
    group: str = ""


def parameter(
    default: Any,
    text: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    group: str = "",
    secret: bool = False,
    brief: bool = False,
    once: bool = False,
    before: Mapping[str, Any] | None = None,
    only: tuple[Any, ...] = (),
    read: Callable[[Any], Any] | None = None,
    write: Callable[[Any], Any] | None = None,
) -> Any:
    """A field of a spec with what it means and, for numbers, their range.

    Parameters of one ``group`` belong together; the documentation shows them so. A ``secret`` is never part
    of a policy: it is not shown, compared or written down. A ``brief`` one is written down only where it
    differs from its default, after all others. With ``once`` a list holds each entry once. ``before`` says
    what words that leave the parameter out meant before a version: the default of that time, or what was done
    before there was such a parameter; the earliest version comes first. ``only`` names another parameter and
    the values that it must have for this one to do anything; words that state it beside others are refused.
    ``read`` turns other ways to say a value into the value before it is checked, and ``write`` turns the value
    into words.
    """
    limits = {"ge": least, "gt": above, "le": most, "lt": below}
    given = {word: limit for word, limit in limits.items() if limit is not None}
    declared = _Declared(text, given, group, secret, brief, once, before or {}, only, read, write)
    return field(default=default, metadata={_KEY: declared}, repr=not secret, compare=not secret)


def check_parameters(spec: Any, what: str) -> None:
    """Check every declared parameter of a spec; the first mistake is one sentence.

    A policy file has lists where a frozen spec has tuples; they are made tuples here.
    """
    from pydantic import ValidationError

    kind: type = type(spec)
    for one, declared, adapter in _declared(kind):
        given = getattr(spec, one.name)
        said = f"{what}: {one.name!r}"
        try:
            value = given if declared.read is None else declared.read(given)
            value = adapter.validate_python(value)
        except (ValidationError, ArithmeticError, AttributeError, TypeError, RecursionError):
            wanted = _kind(adapter.json_schema())
            if isinstance(given, str) and not given:
                said += f" is blank; it must be {wanted}."
            else:
                said += (
                    f" must be {wanted}{'' if declared.secret else f', not {shortened(given)}'}."
                )
            raise ParameterError(one.name, said) from None
        far = out_of_reach(value)
        if far is not None:
            raise ParameterError(one.name, f"{said} {far[1]}.")
        if declared.once and isinstance(value, tuple) and len(set(value)) < len(value):
            raise ParameterError(one.name, f"{said} has an entry twice; name each once.")
        object.__setattr__(spec, one.name, value)


def out_of_reach(value: object) -> tuple[tuple[str | int, ...], str] | None:
    """The place of the first number in lists and tables that is not finite or too large, and what is said."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int) and abs(value) > REACH:
        return (), f"is {shortened(value)}; the largest whole number is {REACH:,}"
    if isinstance(value, float) and not (value == 0 or _FLOATS[0] <= abs(value) <= _FLOATS[1]):
        return (), f"is {value!r}; a number must be finite, and not as large or as small as that"
    listed = dict(enumerate(value)) if isinstance(value, (list, tuple)) else value
    for key, part in listed.items() if isinstance(listed, Mapping) else ():
        far = out_of_reach(part)
        if far is not None:
            return (key, *far[0]), far[1]
    return None


def shortened(value: object) -> str:
    """A value as a sentence shows it."""
    shown = repr(value) if not isinstance(value, int) or abs(value) < 10**40 else "very large"
    return shown if len(shown) <= 80 else f"{shown[:60]} ..."


def words_of(spec: Any, group: str) -> dict[str, Any]:
    """A spec in the words of a policy file: its name, and its parameters as far as they are set."""
    mapping: dict[str, Any] = {group: spec.name} if group else {}
    brief: dict[str, Any] = {}
    for one in fields(spec):
        value, declared = getattr(spec, one.name), one.metadata.get(_KEY, _Declared("", {}))
        unset = value is None and declared.write is None
        if unset or declared.secret or (declared.brief and value == one.default):
            continue
        (brief if declared.brief else mapping)[one.name] = _written(value, declared)
    return mapping | brief


class DeclaredSpec:
    """A spec whose check and words follow from its declared parameters.

    ``group`` says what it is in a policy file. The sentences of its check begin with group and name, or with
    ``what`` of a spec that has no name of its own.
    """

    name: ClassVar[str]
    group: ClassVar[str]
    what: ClassVar[str] = ""

    def __post_init__(self) -> None:
        what = self.what or f"The {self.group} {self.name!r}"
        check_parameters(self, what)
        try:
            self.check_together()
        except InputError:
            raise
        except Exception:  # such as numbers that no array can hold
            raise InputError(f"{what}: its parameters do not fit together.") from None

    def check_together(self) -> None:
        """Refuse parameters that are right one by one and wrong together; each is checked already."""

    def to_mapping(self) -> dict[str, Any]:
        return words_of(self, self.group)


def parameters_of(kind: type) -> tuple[Parameter, ...]:
    """What the documentation says of the parameters of a spec, in their order, as a policy file names them."""
    return tuple(
        Parameter(
            one.name,
            _kind(adapter.json_schema()),
            _shown(one, declared),
            declared.text,
            declared.group,
        )
        for one, declared, adapter in _declared(_written_form(kind))
        if not declared.secret
    )


def schema_of(kind: type) -> dict[str, Any]:
    """The JSON schema of the words that a policy file may use for a spec."""
    written = _declared(_written_form(kind))
    shown = [entry for entry in written if not entry[1].secret]
    defaults = {one.name: one.default for one, _, _ in shown if one.default is not MISSING}
    return {
        "type": "object",
        "properties": {
            one.name: {**adapter.json_schema(), "description": declared.text}
            | ({"default": _written(one.default, declared)} if one.name in defaults else {})
            for one, declared, adapter in shown
        },
        "required": [one.name for one, _, _ in shown if one.name not in defaults],
        "additionalProperties": False,
    }


def parameter_names(kind: Any) -> list[str]:
    """The words that a policy file may use for a spec."""
    return [one.name for one in fields(_written_form(kind)) if not _is_secret(one)]


def spec_from_words(kind: Any, mapping: Mapping[str, Any], what: str) -> Any:
    """A spec from the words of a policy file; a parameter that they leave out has its default.

    Parameters that had another name in earlier versions are listed in ``renamed``; an error names the new one.
    A spec that holds its parameters in groups names the flat class of its words, ``written_as``, and makes
    itself from an object of that class (``from_words``).
    """
    known = parameter_names(kind)
    for key in mapping:
        if key not in known:
            now = getattr(kind, "renamed", {}).get(key)
            if now is not None:
                raise ParameterError(key, f"{what}: the parameter {key!r} is now called {now!r}.")
            raise ParameterError(key, f"{what} has no parameter {key!r}; {choices(key, known)}.")
    written = _written_form(kind)
    missing = [one.name for one in fields(written) if _is_missing(one, mapping)]
    if missing:
        raise InputError(f"{what} needs the parameter {missing[0]!r}, which has no default.")
    words = written(**mapping)
    _refuse_idle(written, mapping, what)
    return words if written is kind else kind.from_words(words)


def _refuse_idle(written: Any, mapping: Mapping[str, Any], what: str) -> None:
    """Refuse words that do nothing beside the others."""
    every = {one.name: one for one in fields(written)}
    for key in mapping:
        other, *values = getattr(every[key].metadata.get(_KEY), "only", ()) or ("",)
        if other and mapping.get(other, every[other].default) not in values:
            wanted = _listed(_shown_value(value) for value in values)
            raise ParameterError(
                key, f"{what}: {key!r} does nothing without {other} = {wanted}; leave it out."
            )


def method_words(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """The words that this version writes for a method that an earlier one wrote down.

    A parameter that did not exist then has the value that stands for what was done before there was one.
    """
    name, given = mapping.get("method"), {k: v for k, v in mapping.items() if k != "method"}
    kind = load("lustrum.methods", str(name))
    earlier = {key: next(iter(meant)) for key, meant in _meant_before(kind).items()}
    spec = spec_from_words(kind, {**earlier, **given}, f"The method {name!r}")
    words: dict[str, Any] = spec.to_mapping()
    return words


def is_left_out(spec: Any, key: str, value: object) -> bool:
    """Whether some version meant this value where words left a parameter out; ``spec`` is made without it."""
    usual = spec.to_mapping().get(key)
    return bool(value == usual or value in _meant_before(type(spec)).get(key, ()))


def _meant_before(kind: Any) -> dict[str, list[Any]]:
    """What words of earlier versions meant that leave a parameter out, the earliest version first."""
    declared = {one.name: one.metadata.get(_KEY) for one in fields(_written_form(kind))}
    return {key: list(one.before.values()) for key, one in declared.items() if one and one.before}


def one_or_more(value: object) -> Any:
    """One text in place of a list of it, as ``read`` of a parameter."""
    return (value,) if isinstance(value, str) else value


def pairs(value: object) -> Any:
    """A table of keys and values in place of a list of pairs, as ``read`` of a parameter."""
    return tuple(value.items()) if isinstance(value, Mapping) else value


def floats(value: object) -> Any:
    """Whole numbers as floats at every depth of a list, as ``read`` of a parameter."""
    if isinstance(value, (list, tuple)):
        return tuple(map(floats, value))
    return float(value) if type(value) is int else value


def _written_form(kind: Any) -> Any:
    return getattr(kind, "written_as", kind)


def _is_secret(one: Field[Any]) -> bool:
    return _KEY in one.metadata and bool(one.metadata[_KEY].secret)


def _is_missing(one: Field[Any], mapping: Mapping[str, Any]) -> bool:
    without_default = one.default is MISSING and one.default_factory is MISSING
    return one.init and without_default and one.name not in mapping


def _written(value: object, declared: _Declared) -> Any:
    return _plain(value if declared.write is None else declared.write(value))


def _plain(value: object) -> Any:
    if isinstance(value, Writable):
        return value.to_mapping()
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value


@cache
def _declared(kind: type) -> tuple[tuple[Field[Any], _Declared, TypeAdapter[Any]], ...]:
    """The declared fields of a spec, each with pydantic's check of it."""
    from pydantic import ConfigDict, TypeAdapter

    declared = [one for one in fields(kind) if _KEY in one.metadata]
    hints = _hints(kind) if declared else {}
    config = ConfigDict(strict=True, allow_inf_nan=False)
    checked = []
    for one in declared:
        words: _Declared = one.metadata[_KEY]
        allowed = _checked_type(hints[one.name], words.limits, blank=one.default == "")
        checked.append((one, words, TypeAdapter(allowed, config=config)))
    return tuple(checked)


def _hints(kind: type) -> dict[str, Any]:
    """The types of the fields; a name that is imported for type checkers only stands for anything."""
    known: dict[str, Any] = {}
    while True:
        try:
            return typing.get_type_hints(kind, localns=known)
        except NameError as error:
            known[str(error.name)] = type(str(error.name), (Protocol,), {"_is_protocol": True})


def _checked_type(hint: Any, limits: Mapping[str, Any], *, blank: bool) -> Any:
    """A type as pydantic is to check it: numbers in their range, lists for tuples, no blank text."""
    from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, WrapValidator

    origin, parts = get_origin(hint), get_args(hint)
    if hint in (bool, type(None)) or origin is Literal:
        return hint
    if hint is str:
        return str if blank else Annotated[str, Field(min_length=1)]
    if hint is int:
        return Annotated[int, Field(**limits)]
    if hint is float:
        return Annotated[float, Field(**limits), WrapValidator(_as_given)]
    if origin in (Union, types.UnionType):
        kinds = [part for part in parts if not (part is int and float in parts)]
        return Union[tuple(_checked_type(part, limits, blank=blank) for part in kinds)]  # noqa: UP007
    if origin is tuple:
        entries = tuple(
            part if part is ... else _checked_type(part, limits, blank=False) for part in parts
        )
        return Annotated[tuple[entries], BeforeValidator(_tuple_of_list)]  # type: ignore[valid-type]
    if hint is Any:
        return Any
    asked = origin or hint
    schema = WithJsonSchema({"title": getattr(asked, "__name__", str(hint))})
    return Annotated[Any, AfterValidator(_of(asked)), schema]


def _as_given(value: object, check: Callable[[Any], float]) -> float:
    """A whole number stays one where any number may stand: words are written as they were read."""
    number = check(value)
    return value if type(value) is int else number


def _tuple_of_list(value: object) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _of(kind: Any) -> Callable[[Any], Any]:
    """A check that a value is of a kind.

    Most protocols cannot be asked. What such an object must be able to do is checked where it is used; here it
    must not be a plain value.
    """
    protocol = getattr(kind, "_is_protocol", False) and not getattr(
        kind, "_is_runtime_protocol", False
    )
    asked = isinstance(kind, type) and not protocol

    def check(value: Any) -> Any:
        if not (isinstance(value, kind) if asked else not isinstance(value, _PLAIN)):
            raise ValueError  # the sentence is made from the declaration
        return value

    return check


_PLAIN = (str, bytes, bool, int, float, complex, list, tuple, Mapping, type, type(None))


def _shown(one: Field[Any], declared: _Declared) -> str:
    if one.default is MISSING:
        return "required"
    value = _written(one.default, declared)
    if value is None or value in ([], {}):
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else _shown_value(value, str)


def _shown_value(value: object, write: Callable[[Any], str] = repr) -> str:
    return write(value) if not isinstance(value, bool) else "true" if value else "false"


def _kind(schema: Schema) -> str:
    """What a value must be, in words: from the JSON schema of its declaration."""
    plain = {"boolean": "true or false", "string": "a text", "null": "nothing", "object": "a table"}
    if "anyOf" in schema:
        return _listed(map(_kind, schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return _listed(map(repr, schema.get("enum", [schema.get("const")])))
    if schema.get("type") == "array":
        return f"a list of {_entries(schema)}" if _parts(schema) else "a list"
    if "type" in schema:
        number = _NUMBERS.get(schema["type"])
        return plain[schema["type"]] if number is None else f"a {number}{_range(schema)}"
    name = schema["title"]
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"


_NUMBERS = {"integer": "whole number", "number": "number"}


def _parts(schema: Schema) -> list[Schema]:
    """What the entries of a list may be."""
    return [*schema.get("prefixItems", ()), *([schema["items"]] if "items" in schema else [])]


def _entries(schema: Schema) -> str:
    """What a list holds; entries of different kinds are named one by one."""
    parts = _parts(schema)
    kinds = list(dict.fromkeys(map(_kind, parts)))
    if len(kinds) > 1:
        return " and ".join(kinds)
    entry, number = parts[0], f"{len(parts)} " if "prefixItems" in schema else ""
    if entry.get("type") == "array":
        return f"{number}lists of {_entries(entry)}" if _parts(entry) else f"{number}lists"
    if entry.get("type") in _NUMBERS:
        return f"{number}{_NUMBERS[entry['type']]}s{_range(entry)}"
    return number + ("texts" if entry.get("type") == "string" else f"entries, each {kinds[0]}")


def _range(schema: Schema) -> str:
    least, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    most, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}"
    if least is not None and below is not None:
        return f" from {least:g} to below {below:g}"
    phrases = []
    if least is not None:
        phrases.append(f" of {least:g} or more")
    if above is not None:
        phrases.append(f" above {above:g}")
    if most is not None:
        phrases.append(f"{' and' if phrases else ' of'} {most:g} or less")
    if below is not None:
        phrases.append(f"{' and' if phrases else ''} below {below:g}")
    return "".join(phrases)


def _listed(phrases: Iterable[str]) -> str:
    *first, last = dict.fromkeys(phrases)
    return f"{', '.join(first)} or {last}" if first else last
