"""Whether a policy asks for the protection that a bundle has.

A bundle is protected once. A policy that is changed afterwards would state a protection that the numbers do not
have, or let out what it no longer names. The two are therefore compared at every opening: all steps under
``[[before]]`` and what ``[weights]`` decides about protection. The bundle states one digest of all of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lustrum.policy import Policy

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
        """What differs, and what mends it."""
        return (
            f"{where}: {self.key} is {self.asked}, and the bundle of {name!r} was made with {self.in_bundle}; "
            f"make it again with 'lustrum protect --dataset {name}', or take the change back."
        )


def protection_digest(policy: Policy, search: int, layout: int) -> str:
    """One digest of all that protected the numbers of a bundle: steps, weights, classes, tables, versions."""
    protection = {"protection": _protection(policy), "search": search, "layout": layout}
    text = json.dumps(protection, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def difference(
    asked: Policy, bundle_policy: Policy, *, sums: bool, respondents: bool
) -> Difference | None:
    """Where a policy asks for another protection than that of a bundle; None where it asks for the same.

    ``bundle_policy`` is the policy that the bundle was made by; ``sums`` and ``respondents`` say what it holds.
    """
    ours, theirs = _protection(asked), _protection(bundle_policy)
    for number in range(max(len(ours["before"]), len(theirs["before"]))):
        one, other = _step(ours, number), _step(theirs, number)
        mismatch = _first(one, other, ("before", number), f"[[before]] {number + 1}")
        if mismatch is not None:
            return mismatch
    mismatch = _first(ours["weights"], theirs["weights"], ("weights",), "[weights]")
    if mismatch is not None:
        return mismatch
    for needed, there, location, key in (
        (asked.magnitudes is not None, sums, ("before", 1), "protected-magnitudes"),
        (asked.weights is not None, respondents, ("weights",), "[weights]"),
    ):
        if needed != there:
            return Difference(
                location, key, "asked for" if needed else "not asked for", "it" if there else "none"
            )
    return None


def _protection(policy: Policy) -> dict[str, Any]:
    weights = policy.weights
    return {
        "before": [_plain(step.spec.to_mapping()) for step in policy.before],
        "weights": {}
        if weights is None
        else {key: _plain(getattr(weights, key)) for key in _WEIGHT_WORDS},
    }


def _step(protection: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    steps = protection["before"]
    return steps[number] if number < len(steps) else {}


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


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value
