"""The methods that can be ticked on the page, each with parameters to vary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lustrum.model import InputError
from lustrum.model.plugins import names
from lustrum.rumap import grid


@dataclass(frozen=True)
class MapMethod:
    """A method on the page: a name, a sentence, the parameter that is varied, and whether it is ticked."""

    name: str
    summary: str
    parameter: str = ""
    values: str = ""
    ticked: bool = True
    fixed: Mapping[str, Any] | None = None


MAP_METHODS = (
    MapMethod("random-rounding", "random rounding to a base", "base", "3, 5, 10"),
    MapMethod("conventional-rounding", "rounding to the nearest multiple", "base", "3, 5, 10"),
    MapMethod("small-count-rounding", "only small counts are rounded", "base", "3, 5"),
    MapMethod("cell-key", "perturbation by record keys"),
    MapMethod(
        "stochastic-perturbation",
        "perturbation by a matrix",
        "version",
        '"plain", "invariant"',
        False,
    ),
    MapMethod("markov-perturbation", "people move, totals stay", "theta", "0.05, 0.1, 0.2"),
    MapMethod("controlled-rounding", "additive rounding", "base", "3, 5, 10"),
    MapMethod("table-swapping", "swaps that keep totals", "sweeps", "1, 5", True, {"order": 1}),
    MapMethod("differential-privacy", "noise with a budget", "epsilon", "0.5, 1.0, 2.0"),
    # Its points need a risk of cells: the table-level measure, which is the default, needs all cells.
    MapMethod(
        "suppression",
        "small cells and others are hidden; choose cell-certainty as risk",
        ticked=False,
        fixed={"algorithm": "quick"},
    ),
    MapMethod(
        "protected-population", "finest cells changed once", "base", "3, 5", False, {"sweeps": 10}
    ),
    MapMethod("multiplicative-noise", "noise on magnitudes", ticked=False, fixed={"level": "cell"}),
    MapMethod("cell-key-magnitude", "cell key for magnitudes", ticked=False),
)
"""In the order in which their points come in: the quick ones first."""


def offered() -> tuple[MapMethod, ...]:
    """Those that are installed."""
    known = names("lustrum.methods")
    return tuple(method for method in MAP_METHODS if method.name in known)


def methods_of(chosen: Mapping[str, str]) -> list[Any]:
    """Methods from the names that are ticked, with the values of their parameter as written on the page.

    >>> [m.base for m in methods_of({"random-rounding": "3, 5"})]
    [3, 5]
    """
    by = {method.name: method for method in offered()}
    methods: list[Any] = []
    for name in by:
        if name not in chosen:
            continue
        method, written = by[name], str(chosen[name]).strip()
        fixed = dict(method.fixed or {})
        if not method.parameter or not written:
            methods += grid(name, **fixed)
            continue
        try:
            values = json.loads(f"[{written}]")
        except json.JSONDecodeError:
            raise InputError(
                f"The values of {method.parameter!r} of {name!r} must be written with commas between, as "
                f"{method.values}."
            ) from None
        methods += grid(name, **fixed, **{method.parameter: values})
    unknown = [name for name in chosen if name not in by]
    if unknown:
        raise InputError(f"There is no method {unknown[0]!r} on this page.")
    if not methods:
        raise InputError("No method is ticked; tick one or more.")
    return methods
