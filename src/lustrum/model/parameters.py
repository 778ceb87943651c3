"""Parameters of methods, measures and rules: declared once, where the spec stores them.

A declaration says what a parameter means and which values it may have. The check, the words of a policy file,
the tables of the documentation and ``lustrum plugins`` follow from it.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Rounding(DeclaredSpec):
    ...     name, group, what = "rounding", "method", "Rounding"
    ...     base: int = parameter(3, "Numbers are published as multiples of this.", least=2)
    >>> Rounding(5).to_mapping()
    {'method': 'rounding', 'base': 5}
    >>> Rounding(1)
    Traceback (most recent call last):
    ...
    lustrum.model.errors.InputError: Rounding: 'base' must be a whole number of 2 or more, not 1.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache, wraps
from math import isfinite
from typing import (
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

_KEY = "lustrum parameter"
S = TypeVar("S")


@runtime_checkable
class Writable(Protocol):
    """Anything that can be written down in the words of a policy file."""

    def to_mapping(self) -> dict[str, Any]:
        """The words."""
        ...


@dataclass(frozen=True)
class _Declared:
    text: str
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    group: str = ""
    secret: bool = False
    brief: bool = False


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
) -> Any:
    """A field of a spec with what it means and, for a number, its range.

    Parameters of one ``group`` belong together; the documentation shows them so. A ``secret`` is never part
    of a policy: it is not shown, compared or written down. A ``brief`` one is written down only where it
    differs from its default.
    """
    declared = _Declared(text, least, above, most, below, group, secret, brief)
    return field(default=default, metadata={_KEY: declared}, repr=not secret, compare=not secret)


def check_parameters(spec: Any, what: str) -> None:
    """Check every declared parameter of a spec; the first mistake is one sentence.

    A policy file has lists where a frozen spec has tuples; they are made tuples here.
    """
    kind: type = type(spec)
    for one, declared, hint in _declared(kind):
        value = _tuples(getattr(spec, one.name))
        object.__setattr__(spec, one.name, value)
        if not _fits(value, hint) or not _inside(value, declared):
            raise InputError(
                f"{what}: {one.name!r} must be {_kind(hint, declared)}, not {value!r}."
            )


def checks_parameters(what: str) -> Callable[[Callable[[S], None]], Callable[[S], None]]:
    """For a ``__post_init__`` with checks of its own: the declared ones come after, and explain what fails.

    A check that stumbles over a type it did not expect becomes the sentence about that parameter.
    """

    def around(check: Callable[[S], None]) -> Callable[[S], None]:
        @wraps(check)
        def checked(spec: S) -> None:
            _check_given(spec, what)
            try:
                check(spec)
            except InputError:
                raise
            except (AttributeError, TypeError, ValueError, OverflowError):
                check_parameters(spec, what)
                raise InputError(f"{what}: its parameters do not fit together.") from None
            check_parameters(spec, what)

        return checked

    return around


def _check_given(spec: Any, what: str) -> None:
    """Refuse what a check of its own might take for a parameter that is left out, such as false or 0."""
    kind: type = type(spec)
    for one, declared, hint in _declared(kind):
        value = _tuples(getattr(spec, one.name))
        plain = isinstance(value, (bool, int, float, str, tuple, Mapping))
        if plain and not value and not _fits(value, hint):
            raise InputError(
                f"{what}: {one.name!r} must be {_kind(hint, declared)}, not {value!r}."
            )


def words_of(spec: Any, group: str) -> dict[str, Any]:
    """A spec in the words of a policy file: its name, and its parameters as far as they are set."""
    mapping: dict[str, Any] = {group: spec.name}
    for one in fields(spec):
        value, declared = getattr(spec, one.name), one.metadata.get(_KEY, _Declared(""))
        if (
            value is not None
            and not declared.secret
            and not (declared.brief and value == one.default)
        ):
            mapping[one.name] = _plain(value)
    return mapping


class DeclaredSpec:
    """A spec whose check and words follow from its declared parameters, as far as it has none of its own.

    ``group`` says what it is in a policy file; ``what`` begins the sentences of its check.
    """

    name: ClassVar[str]
    group: ClassVar[str]
    what: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_parameters(self, self.what or self.name)

    def to_mapping(self) -> dict[str, Any]:
        """The spec in the words of a policy file."""
        return words_of(self, self.group)


def parameters_of(kind: type) -> tuple[Parameter, ...]:
    """What the documentation says of the parameters of a spec, in their order, as a policy file names them."""
    return tuple(
        Parameter(one.name, _kind(hint, declared), _shown(one), declared.text, declared.group)
        for one, declared, hint in _declared(_written_form(kind))
        if not declared.secret
    )


def parameter_names(kind: Any) -> list[str]:
    """The words that a policy file may use for a spec."""
    return [one.name for one in fields(_written_form(kind)) if not _is_secret(one)]


def spec_from_words(kind: Any, mapping: Mapping[str, Any], what: str) -> Any:
    """A spec from the words of a policy file, where lists stand for tuples.

    Parameters that had another name in earlier versions are listed in ``renamed``; an error names the new one.
    A spec that holds its parameters in groups names the flat class of its words, ``written_as``, and makes
    itself from an object of that class (``from_words``).
    """
    known = parameter_names(kind)
    for key in mapping:
        if key not in known:
            now = getattr(kind, "renamed", {}).get(key)
            if now is not None:
                raise InputError(f"{what}: the parameter {key!r} is now called {now!r}.")
            raise InputError(f"{what} has no parameter {key!r}; {choices(key, known)}.")
    given = {key: _tuples(value) for key, value in mapping.items()}
    written = _written_form(kind)
    return kind(**given) if written is kind else kind.from_words(written(**given))


def _written_form(kind: Any) -> Any:
    return getattr(kind, "written_as", kind)


@cache
def _declared(kind: type) -> tuple[tuple[Field[Any], _Declared, Any], ...]:
    declared = [one for one in fields(kind) if _KEY in one.metadata]
    hints = _hints(kind) if declared else {}
    return tuple((one, one.metadata[_KEY], hints[one.name]) for one in declared)


def _hints(kind: type) -> dict[str, Any]:
    """The types of the fields; a name that is imported for type checkers only stands for anything."""
    known: dict[str, Any] = {}
    while True:
        try:
            return typing.get_type_hints(kind, localns=known)
        except NameError as error:
            known[str(error.name)] = type(str(error.name), (Protocol,), {"_is_protocol": True})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if type(value) in (list, tuple) else value


def _is_secret(one: Field[Any]) -> bool:
    return _KEY in one.metadata and bool(one.metadata[_KEY].secret)


def _plain(value: Any) -> Any:
    if isinstance(value, Writable):
        return value.to_mapping()
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value


def _shown(one: Field[Any]) -> str:
    if one.default is MISSING:
        return "required"
    value = one.default
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value.to_mapping()) if isinstance(value, Writable) else str(value)


def _fits(value: object, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return any(value == part and type(value) is type(part) for part in parts)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(parts) == 2 and parts[1] is ...:
            return all(_fits(part, parts[0]) for part in value)
        return len(parts) == len(value) and all(map(_fits, value, parts))
    if origin is not None:
        return isinstance(value, origin)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if not isinstance(hint, type) or getattr(hint, "_is_protocol", False):
        return True  # what it must be able to do is checked where it is used
    return isinstance(value, hint)


def _inside(value: object, declared: _Declared) -> bool:
    if isinstance(value, tuple):
        return all(_inside(part, declared) for part in value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return True
    return (
        (declared.least is None or value >= declared.least)
        and (declared.above is None or value > declared.above)
        and (declared.most is None or value <= declared.most)
        and (declared.below is None or value < declared.below)
    )


def _kind(hint: Any, declared: _Declared) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        alternatives = [part for part in parts if not (part is int and float in parts)]
        return _listed(_kind(part, declared) for part in alternatives)
    if hint is None or hint is type(None):
        return "nothing"
    if origin is Literal:
        return _listed(repr(part) for part in parts)
    if origin is tuple:
        return f"a list of {_several(parts, declared)}" if parts else "a list"
    plain = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    if hint in (int, float):
        return plain[hint] + _range(declared)
    if hint in plain:
        return plain[hint]
    name = getattr(origin or hint, "__name__", str(hint))
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"


def _several(parts: tuple[Any, ...], declared: _Declared) -> str:
    """What a list holds; entries of different kinds are named one by one."""
    kinds = list(dict.fromkeys(_kind(part, declared) for part in parts if part is not ...))
    if len(kinds) > 1:
        return " and ".join(kinds)
    entry = get_args(parts[0])
    if get_origin(parts[0]) is tuple:
        return f"lists of {_several(entry, declared)}" if entry else "lists"
    plain = {int: "whole numbers", float: "numbers", str: "texts"}
    if get_origin(parts[0]) in (Union, types.UnionType) and set(entry) == {int, float}:
        return plain[float] + _range(declared)
    if parts[0] in (int, float):
        return plain[parts[0]] + _range(declared)
    return plain.get(parts[0], f"entries, each {kinds[0]}")


def _range(declared: _Declared) -> str:
    least, above, most, below = declared.least, declared.above, declared.most, declared.below
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
