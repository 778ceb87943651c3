"""Whether a policy asks for the protection that a bundle has.

A bundle is protected once. A policy that is changed afterwards would state a protection that the numbers do not
have, or let out what it no longer names. The two are therefore compared at every opening: all steps under
``[[before]]`` and what ``[weights]`` decides about protection. The bundle states one digest of all of it.

A bundle states all words of the methods that made it, by the defaults of its own version. What a policy states
is compared with them exactly. What neither the policy nor that of the bundle states is what the version meant
that made the bundle: a later default is no other protection of numbers that are out already.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lustrum.model import InputError
from lustrum.model.parameters import is_left_out, method_words
from lustrum.policy import Policy
from lustrum.policy.parts import Before

Made = Mapping[str, Mapping[str, Any]]
"""The words of the methods that made a bundle, as it states them, by the name of the method."""

_WEIGHT_WORDS = ("weight", "classes", "measure_classes", "class_size", "noise", "decimals")
"""The keys of [weights] that protect; the others say when an estimate is flagged."""
_MISSING = "nothing"


@dataclass(frozen=True)
class Difference:
    """The first place at which a policy and a bundle differ: what each of them says."""

    path: tuple[str | int, ...]
    key: str
    asked: str
    in_bundle: str

    def sentence(self, name: str, where: str) -> str:
        return (
            f"{where}: {self.key} is {self.asked}, and the bundle of {name!r} was made with {self.in_bundle}; "
            f"make it again with 'lustrum protect --dataset {name}', or take the change back."
        )


def protection_digest(policy: Policy, search: int, layout: int, made: Made | None = None) -> str:
    """One digest of all that protected the numbers of a bundle: steps, weights, classes, tables, versions.

    With ``made`` it is that of the version that made the bundle, with the parameters and defaults of that time.
    """
    steps = [_words_then(step, (made or {}).get(step.method)) for step in policy.before]
    protection = {"before": steps, "weights": _weights(policy)}
    text = json.dumps(
        {"protection": protection, "search": search, "layout": layout},
        sort_keys=True,
        ensure_ascii=False,
    )
    return hashlib.sha256(text.encode()).hexdigest()


def difference(
    asked: Policy, bundle_policy: Policy, made: Made | None = None, *, sums: bool, respondents: bool
) -> Difference | None:
    """Where a policy asks for another protection than that of a bundle; None where it asks for the same.

    ``bundle_policy`` is the policy that the bundle was made by, and ``made`` the words that it states of its
    methods; ``sums`` and ``respondents`` say what it holds.
    """
    ours, theirs = asked.before, bundle_policy.before
    for number in range(max(len(ours), len(theirs))):
        one, other = (steps[number] if number < len(steps) else None for steps in (ours, theirs))
        words = None if other is None else (made or {}).get(other.method, _words(other))
        mismatch = _of_step(one, other, words, number)
        if mismatch is not None:
            return mismatch
    mismatch = _first(_weights(asked), _weights(bundle_policy), ("weights",), "[weights]")
    if mismatch is not None:
        return mismatch
    for needed, there, location, key in (
        (asked.magnitudes is not None, sums, ("before", 1), "the method for sums"),
        (asked.weights is not None, respondents, ("weights",), "[weights]"),
    ):
        if needed != there:
            return Difference(
                location, key, "asked for" if needed else "not asked for", "it" if there else "none"
            )
    return None


def is_made_by(method: Mapping[str, Any] | None, policy: Policy) -> bool:
    """Whether the population that a bundle states, by the words of its method, is the one a policy asks for."""
    step = next((step for step in policy.before if "population" in step.spec.stages), None)
    return step is not None and _of_step(step, None, method or {}, 0) is None


def earlier_defaults(policy: Policy, made: Made) -> dict[str, tuple[Any, Any]]:
    """What the policy of a bundle left to defaults that are others by now: the value then, and today's."""
    changed = {}
    for step in policy.before:
        then, now = method_words(made.get(step.method, _words(step))), _words(step)
        for key in now.keys() - (step.model_extra or {}).keys():
            if then.get(key) != now[key] and not (key == _BASE and _may_mend(now)):
                changed[f"{step.method}, {key}"] = (then.get(key), now[key])
    return dict(sorted(changed.items()))


_BASE = "base"


def _may_mend(words: Mapping[str, Any]) -> bool:
    """Whether a method may take a larger base than it was told."""
    return words.get("if_fewer") == "larger-base"


def _of_step(
    one: Before | None, other: Before | None, made: Mapping[str, Any] | None, number: int
) -> Difference | None:
    """How a step of a policy differs from what made a bundle; ``other`` is the step of the bundle's policy."""
    location, said = ("before", number), f"[[before]] {number + 1}"
    ours = {} if one is None else _words(one)
    if one is None or not made or made.get("method") != one.method:
        return _first(ours, made or {}, location, said) or Difference(
            location, said, f"{ours.get('method')!r}", "other words than this version reads"
        )
    try:
        theirs = _plain(method_words(made))
    except InputError as error:
        return Difference(location, said, f"{one.method!r}", f"other words ({error})")
    if _may_mend(ours) and theirs.get(_BASE, 0) > ours[_BASE]:
        theirs[_BASE] = ours[_BASE]
    stated = {**(one.model_extra or {}), **((other and other.model_extra) or {})}
    for key in ours.keys() - stated.keys():
        if is_left_out(one.spec, key, theirs.get(key)):
            theirs[key] = ours[key]
    return _first(ours, theirs, location, said)


def _words(step: Before) -> dict[str, Any]:
    words: dict[str, Any] = _plain(step.spec.to_mapping())
    return words


def _words_then(step: Before, made: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The words of a step, with parameters and defaults as a bundle states them."""
    words = _words(step)
    if made is None:
        return words
    stated = {"method", *(step.model_extra or {}), *((_BASE,) if _may_mend(words) else ())}
    return {key: words.get(key) if key in stated else _plain(value) for key, value in made.items()}


def _weights(policy: Policy) -> dict[str, Any]:
    weights = policy.weights
    if weights is None:
        return {}
    return {key: _plain(getattr(weights, key)) for key in _WEIGHT_WORDS}


def _first(
    one: Mapping[str, Any], other: Mapping[str, Any], location: tuple[str | int, ...], said: str
) -> Difference | None:
    if not one and not other:
        return None
    if not one or not other:
        method = (one or other).get("method")
        asked, bundle_method = (
            (method or "there", _MISSING) if one else ("left out", method or "it")
        )
        return Difference(location, said, str(asked), str(bundle_method))
    for key in dict.fromkeys((*one, *other)):
        if one.get(key) != other.get(key):
            return Difference(
                (*location, key),
                f"{key!r} under {said}",
                _shown(one.get(key)),
                _shown(other.get(key)),
            )
    return None


def _shown(value: object) -> str:
    return _MISSING if value is None else json.dumps(value, ensure_ascii=False)


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value
