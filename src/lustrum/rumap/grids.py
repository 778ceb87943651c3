"""The methods of a map: parameter grids, and a sensible set to begin with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

from lustrum.model import InputError, Table
from lustrum.model.parameters import spec_from_words
from lustrum.model.plugins import load, names

MapMethod: TypeAlias = Any
"""A method for tables or for records, or :class:`BeforeCounting`."""


@dataclass(frozen=True)
class BeforeCounting:
    """A method for tables applied to the hypercube, from which all tables are then added up.

    ``within`` names a variable of the hypercube: each of its categories is then protected by itself, so
    that a method that keeps the total keeps that of every category.
    """

    method: Any
    within: str = ""

    @property
    def name(self) -> str:
        """The name of the method, and when it is applied."""
        return f"{self.method.name} before counting"

    def to_mapping(self) -> dict[str, Any]:
        """The method in the words of a policy file, with where it is applied."""
        mapping = {**self.method.to_mapping(), "stage": "hypercube"}
        return {**mapping, "within": self.within} if self.within else mapping


def grid(method: str, **parameters: Any) -> list[Any]:
    """All combinations of a method's parameters; a list stands for several values.

    >>> [spec.base for spec in grid("random-rounding", base=[3, 5, 10])]
    [3, 5, 10]
    """
    kind = load("lustrum.methods", method)
    lists = [v if isinstance(v, list) else [v] for v in parameters.values()]
    return [
        spec_from_words(kind, dict(zip(parameters, values, strict=True)), f"The method {method!r}")
        for values in product(*lists)
    ]


def usual_parameters(method: str) -> dict[str, Any]:
    """Parameters that a map sets where nobody chose others.

    A map compares methods; a proof that no pattern of suppression is cheaper would take minutes.

    >>> usual_parameters("suppression"), usual_parameters("cell-key")
    ({'algorithm': 'quick'}, {})
    """
    return {"algorithm": "quick"} if method == "suppression" else {}


def default_methods(table: Table) -> list[Any]:
    """A set of methods that fits the kind of a table, each with a few parameters.

    The method ``none`` is not among them, so that no choice from this set leaves a table unprotected.

    >>> len({spec.name for spec in default_methods(Table.from_counts([[1, 2], [3, 4]]))}) >= 7
    True
    """
    installed = names("lustrum.methods")
    if table.kind == "magnitude":
        # Where contributions are known, the rule is that of the risk which judges the map.
        close: dict[str, Any] = (
            {"rule": [{"rule": "p-percent", "p": 10}]} if table.contributions is not None else {}
        )
        wanted: tuple[tuple[str, dict[str, Any]], ...] = (
            ("multiplicative-noise", {}),
            ("cell-key-magnitude", {}),
            ("suppression", close),
            ("controlled-adjustment", close),
        )
    else:
        wanted = (
            ("random-rounding", {"base": [3, 5, 10]}),
            ("conventional-rounding", {"base": [3, 5, 10]}),
            ("controlled-rounding", {"base": [3, 5, 10]}),
            ("small-count-rounding", {}),
            ("cell-key", {}),
            ("stochastic-perturbation", {}),
            ("markov-perturbation", {"theta": [0.05, 0.1, 0.2]}),
            ("table-swapping", {"order": 1, "sweeps": [1, 5]}),
            ("protected-population", {}),
            ("proven-population", {"rho": [0.5, 2.56]}),
            ("suppression", {}),
        )
    return [spec for name, values in wanted if name in installed for spec in _made(name, values)]


def parameters_of(method: MapMethod) -> dict[str, Any]:
    return {k: v for k, v in method.to_mapping().items() if k != "method"}


def labels(methods: Sequence[MapMethod]) -> list[str]:
    """A short name for each method: what differs among those of one name is said, the rest is not.

    >>> labels([*grid("random-rounding", base=[3, 5]), *grid("none")])
    ['random-rounding base 3', 'random-rounding base 5', 'none']
    """
    by_name: dict[str, list[dict[str, Any]]] = {}
    for method in methods:
        by_name.setdefault(method.name, []).append(parameters_of(method))
    method_labels = []
    for method in methods:
        settings, peers = parameters_of(method), by_name[method.name]
        said = [
            f"{key.replace('_', ' ')} {_short(value)}"
            for key, value in settings.items()
            if any(_text(peer.get(key)) != _text(value) for peer in peers)
        ]
        method_labels.append(" ".join([method.name, ", ".join(said)]).strip())
    return _distinct(method_labels)


def _made(name: str, values: Mapping[str, Any]) -> list[Any]:
    try:
        return grid(name, **(usual_parameters(name) | dict(values)))
    except (InputError, TypeError):
        return []  # a method that cannot do without parameters of its own


def _short(value: object) -> str:
    if isinstance(value, float):
        value = float(f"{value:.4g}")  # a search tries numbers of any length
    text = value if isinstance(value, str) else _text(value)
    return text if len(text) <= 24 else f"{text[:21]}..."


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _distinct(method_labels: Iterable[str]) -> list[str]:
    """Two methods with the same words are numbered."""
    seen: dict[str, int] = {}
    out = []
    for label in method_labels:
        seen[label] = seen.get(label, 0) + 1
        out.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return out
