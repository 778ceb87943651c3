"""How the numbers were protected, in sentences: each parameter by what its declaration says about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from lustrum.model.parameters import parameters_of
from lustrum.model.plugins import load, names
from lustrum.model.text import Message, say

_METHODS = "lustrum.methods"
_CHOICES = {
    str(text): text
    for text in (
        say("all"),
        say("small"),
        say("public"),
        say("secret"),
        say("known"),
        say("guarded"),
        say("own"),
    )
}
"""Choices of methods that answer questions, for translation; others are shown as they are."""


_POPULATION = "protected-population"
_SENTENCES: dict[tuple[Any, ...], str] = {
    (_POPULATION, "base"): say(
        "Every combination of all variables shows 0, {value} or a multiple of it.", value=3
    ).template,
    (_POPULATION, "cells", "all"): say("All combinations are moved.").template,
    (_POPULATION, "cells", "small"): say("Only combinations below that number are moved.").template,
    (_POPULATION, "empty_share"): say(
        "In a first release, at least {value:.0%} of the combinations that show the smallest number above 0 "
        "hold nobody.",
        value=0.1,
    ).template,
}
"""What readers of the default method are told, in place of what its declarations say to the agency."""


_NAMES = {
    "protected-population": say("All tables are counted from one protected population.").template,
    "protected-magnitudes": say("Every contribution to a sum was changed once.").template,
    "protected-survey": say("Respondents share the weights and values of their classes.").template,
    "proven-population": say(
        "All tables are counted from people who were made up from noisy tables."
    ).template,
    "proven-sums": say("Sums were measured with noise.").template,
    "random-rounding": say("Every number is rounded at random.").template,
    "cell-key": say("Every number is changed by the keys of those it counts.").template,
    "cell-key-magnitude": say("Every sum is changed by the keys of its contributors.").template,
    "record-swapping": say("Some households trade places with others like them.").template,
}
"""What the usual methods are, in place of their names."""


def protected_by(methods: Iterable[Mapping[str, Any]]) -> Message:
    """The methods in the order given, each once: those before counting first, then their parameters."""
    said: list[Message] = []
    for method in methods:
        parameters = dict(method)
        # A note of the table explains mean weights.
        parameters.pop("weights", None)
        for one in (*parameters.pop("before", ()), parameters):
            text = _described(one)
            if text not in said:
                said.append(text)
    return _joined(said)


def _described(method: Mapping[str, Any]) -> Message:
    parameters = dict(method)
    name = str(parameters.pop("method"))
    meanings = _meanings(name)
    known = _NAMES.get(name)
    said = [say("Method: {method}.", method=name) if known is None else Message(known, {})]
    for key, value in parameters.items():
        shown = _shown(value)
        sentence = _SENTENCES.get((name, key)) or _SENTENCES.get((name, key, str(value)))
        if sentence is not None:
            said.append(Message(sentence, {"value": value}))
        elif shown is not None:
            # The sentence of a declaration ends with a full stop, and goes on with the value here.
            meaning = Message(meanings[key].rstrip("."), {}) if key in meanings else key
            said.append(say("{meaning}: {value}.", meaning=meaning, value=shown))
    return _joined(said)


@cache
def _meanings(name: str) -> dict[str, str]:
    """What each parameter of a method means; nothing for a method that is not installed here."""
    if name not in names(_METHODS):
        return {}
    kind = load(_METHODS, name)
    return {one.name: one.text for one in _parameters(kind)}


def _parameters(kind: type) -> Iterator[Any]:
    yield from parameters_of(kind) if hasattr(kind, "to_mapping") else ()


def _shown(value: object) -> Any:
    """A value as a person writes it; None where nothing was set."""
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    if isinstance(value, float):
        return say("{value:g}", value=value)
    if isinstance(value, (list, tuple)):
        return ", ".join(str(one) for one in value) or None
    return _CHOICES.get(value, value) if isinstance(value, str) else value


def _joined(said: list[Message]) -> Message:
    whole = said[0]
    for text in said[1:]:
        whole = say("{some} {next}", some=whole, next=text)
    return whole
