"""The public report of a protected population: how it was made, what it leaves open, and how large errors are.

Every figure is coarse. It is rounded up to a step, and the secret key draws where steps begin, so that no
reader can tell on which side of a step the measured figure lies, and no share is 0 or 1. Figures are
measured over many cells: the error of the total number of records, a single cell, is never stated. The
report is all that a bundle holds beside protected cells and public descriptions.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Ints
from lustrum.numeric.arithmetic import log2
from lustrum.protect.population.channel import PopulationChannel, Rates
from lustrum.protect.population.readers import KnownTotals
from lustrum.protect.population.support import Support

SEARCH = 10
"""The version of the search: one that makes other numbers of the same records and parameters is another."""
SEARCH_OF_MANY_CODES = 9
"""The version for files with a variable of very many codes, where few sweeps go on until errors are small."""
SEARCH_OF_INVENTED = 12
"""The version for files in which most siblings are around invented people."""
FOLLOWING = 2
"""The version of later releases: their numbers follow the changes of counts."""
FEW_SWEEPS, MANY_CODES = 7, 1 << 11
"""Up to so many sweeps are few, and from so many codes of one variable on there are very many."""
_UNSTATED = 2
"""Reports of earlier searches do not state their version."""

_Figure = TypeVar("_Figure")
_ERROR_STEP = 0.5
GROUP_ERROR_STEP = 1.0
"""Own groups make few large cells, each of which one person changes: their errors are coarser."""
MARGIN_STEP, GROUP_MARGIN_STEP = 2.0, 3.0
"""Margins are whole numbers before they are made coarse, so that a step of 1 would state them."""
_SHARE_STEP = 0.05
LARGEST = 10
"""No controlled table errs by more than so many times the base, as far as the search can reach that."""
MARGIN_ENDS = (10, 100, 1000, 10_000)
"""Where the next size of numbers begins, which has a margin of error of its own."""

Margins = Mapping[int, tuple[int, ...]]
"""For each number of variables the margins of error by size of the number that is shown."""


def coarse_error(measured: float, key: bytes, name: str, step: float = _ERROR_STEP) -> float:
    """A typical error in steps, never below the measured one and never below one step.

    >>> 2.2 <= coarse_error(2.2, b"secret", "x") <= 3.0
    True
    """
    return step * max(1, ceil(measured / step + keyed_shift(key, name)))


def coarse_largest(measured: int, goal: int, key: bytes) -> int | None:
    """The class of the largest error: none where it is at most the goal, otherwise a doubling of it.

    >>> coarse_largest(30, 30, b"secret"), coarse_largest(31, 30, b"secret") in (60, 120)
    (None, True)
    """
    if measured <= goal:
        return None
    doubled = float(log2(measured / goal)) + keyed_shift(key, "largest")
    return int(goal * 2 ** max(1, ceil(doubled)))


def margin_class(numbers: npt.ArrayLike) -> Ints:
    """The class of each number by its size, of which each has a margin of error."""
    return np.searchsorted(MARGIN_ENDS, np.asarray(numbers), side="right").astype(np.int64)


def coarse_share(measured: float, key: bytes, name: str) -> float:
    """A share in steps of five per cent, rounded at random, from 0.05 to 0.95.

    >>> coarse_share(0.0, b"secret", "x"), coarse_share(1.0, b"secret", "x")
    (0.05, 0.95)
    """
    steps = int(measured / _SHARE_STEP + keyed_shift(key, name))
    return round(_SHARE_STEP * min(max(steps, 1), round(1 / _SHARE_STEP) - 1), 2)


def keyed_shift(key: bytes, name: str) -> float:
    """Where the steps of a figure begin, from 0 to 1: drawn by the key."""
    digest = hmac.digest(key, b"lustrum public report " + name.encode(), hashlib.sha256)
    return int.from_bytes(digest[:4], "big") / 2**32


@dataclass(frozen=True)
class PublicReport:
    """What everybody may know; ``errors`` are typical errors by the number of variables crossed.

    ``group_errors`` are those of tables with a reader's own groups, which add up cells that no controlled table
    adds up. ``rates`` and ``free_rates`` say how often counts of a size err by how much, in tables that the
    search controls and in others, see :mod:`lustrum.protect.population.channel`. ``known`` are exact totals
    that the agency publishes elsewhere. ``search`` is the version of the search that made the population: with
    the same parameters another version makes other numbers. ``margins`` and ``group_margins`` are margins of
    error by size of the number, which at least 95 % of the cells of every size keep. ``largest`` is the class
    of the largest error of a controlled table, where the search could not keep all within ten times the base.
    ``proof`` says what a population with a proof promises, see :mod:`lustrum.protect.proven`, and ``noise``
    how far each of its cells is off, see :mod:`lustrum.protect.proven.margins`.
    """

    method: Mapping[str, Any]
    support: Support
    changed: float
    errors: Mapping[int, float]
    group_errors: Mapping[int, float]
    rates: Rates
    free_rates: Rates
    known: tuple[KnownTotals, ...] = ()
    search: int = SEARCH
    margins: Margins = field(default_factory=dict)
    group_margins: Margins = field(default_factory=dict)
    largest: int | None = None
    proof: Mapping[str, Any] | None = None
    noise: Mapping[str, Any] | None = None

    def error(self, variables: int, *, own_groups: bool = False) -> float:
        """The typical error of a count by this many variables and filters, with own groups or without."""
        return of_kind(self.group_errors if own_groups else self.errors, variables)

    def channel(self, variables: int, *, own_groups: bool = False) -> PopulationChannel:
        """How counts of that kind err, for a reader's belief."""
        controlled = variables <= int(self.method["max_variables"]) and not own_groups
        step = 1 if self.support.small_only else self.support.base
        return PopulationChannel(
            self.support.base, step, self.rates if controlled else self.free_rates
        )

    def margin(self, variables: int, *, own_groups: bool = False, shown: int) -> int:
        """A margin of error for counts of that kind that show so much or less.

        Reports of earlier versions state none; it is then twice the typical error.
        """
        margins = self.group_margins if own_groups else self.margins
        if not margins:
            return ceil(2 * self.error(variables, own_groups=own_groups))
        return of_kind(margins, variables)[int(margin_class(shown))]

    def releases(self) -> dict[str, Any]:
        """What readers of several releases know: odds that a cell which differs has other records, and the
        counts that a number leaves in a first release and in a later one."""
        base = self.support.base
        left = {}
        for words, wide in (("first", False), ("later", True)):
            low, high = replace(self.support, wide=wide).bounds([0, base, 2 * base])
            left[words] = {str(base * i): [int(low[i]), int(high[i])] for i in range(3)}
        return {"version": FOLLOWING, "odds": self.method.get("change_odds"), "left": left}

    def to_mapping(self) -> dict[str, Any]:
        """The report as plain values, for a bundle."""
        return {
            "method": dict(self.method),
            "support": {
                "base": self.support.base,
                "small_only": self.support.small_only,
                "empty_shown": self.support.empty_shown,
                # Bundles of first releases, and of earlier versions, say nothing of it.
                **({"wide": True} if self.support.wide else {}),
                **({} if self.support.certain else {"certain": False}),
            },
            "changed": self.changed,
            "errors": {str(k): v for k, v in sorted(self.errors.items())},
            "group_errors": {str(k): v for k, v in sorted(self.group_errors.items())},
            "rates": [list(row) for row in self.rates],
            "free_rates": [list(row) for row in self.free_rates],
            "known": [totals.to_mapping() for totals in self.known],
            "search": self.search,
            "margins": {str(k): list(v) for k, v in sorted(self.margins.items())},
            "group_margins": {str(k): list(v) for k, v in sorted(self.group_margins.items())},
            "largest": self.largest,
            **(
                {"releases": self.releases()} if self.proof is None else {"proof": dict(self.proof)}
            ),
            **({} if self.noise is None else {"noise": dict(self.noise)}),
        }

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> PublicReport:
        """The report that :meth:`to_mapping` wrote."""
        try:
            report = cls(
                method={
                    **mapping["method"],
                    "max_variables": int(mapping["method"]["max_variables"]),
                },
                support=Support(**mapping["support"]),
                changed=float(mapping["changed"]),
                errors={int(k): float(v) for k, v in mapping["errors"].items()},
                group_errors={int(k): float(v) for k, v in mapping["group_errors"].items()},
                rates=tuple(tuple(row) for row in mapping["rates"]),
                free_rates=tuple(tuple(row) for row in mapping["free_rates"]),
                known=tuple(KnownTotals.from_mapping(one) for one in mapping["known"]),
                search=stated_search(mapping),
                margins=_read_margins(mapping.get("margins", {})),
                group_margins=_read_margins(mapping.get("group_margins", {})),
                largest=None if mapping.get("largest") is None else int(mapping["largest"]),
                proof=mapping.get("proof"),
                noise=mapping.get("noise"),
            )
            for rates in (report.rates, report.free_rates):  # checked now, not at the first answer
                PopulationChannel(report.support.base, 1, rates)
            return report
        except (KeyError, TypeError, ValueError):
            raise InputError(
                "The public report of the protected population has other words than this version reads."
            ) from None


def _read_margins(mapping: Mapping[str, Any]) -> Margins:
    margins = {int(k): tuple(map(int, v)) for k, v in mapping.items()}
    if any(len(sizes) != len(MARGIN_ENDS) + 1 for sizes in margins.values()):
        raise ValueError
    return margins


def search_version(sweeps: int, codes: int, siblings: float = 1.0) -> int:
    """The version that searches with so many sweeps, where no variable has more than so many codes.

    ``siblings`` is the parameter ``sparse_siblings``.
    """
    if siblings > 1:
        return SEARCH_OF_INVENTED
    return SEARCH_OF_MANY_CODES if sweeps <= FEW_SWEEPS and codes >= MANY_CODES else SEARCH


def stated_search(mapping: Mapping[str, Any]) -> int:
    """The version of the search that a report states."""
    return int(mapping.get("search", _UNSTATED))


def of_kind(known: Mapping[int, _Figure], variables: int) -> _Figure:
    """The figure of tables by this many variables, or of the next more for which one is stated."""
    return known[min((k for k in known if k >= variables), default=max(known))]
