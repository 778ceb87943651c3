"""Which codes are sums of others, as the numbers of files show it.

A proposal for a published file rests on sums that would hold by chance less often than is stated. In a true
table every number is there, so that more is certain: a code with a usual name that is the sum of all others in
every line is their total, since a code that belongs to another group would have to be 0 throughout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lustrum.model.arrays import Ints, Mask
from lustrum.readers.hierarchy_files import Groups
from lustrum.readers.relations import CHANCE, evidence

TOTAL_NAMES = frozenset(
    {"_t", "tot", "tot.", "total", "totals", "grand total", "grand_total", "all", "alle", "everybody"}
    | {"gesamt", "insgesamt", "zusammen", "summe", "ensemble", "totale", "totaal", "totalt", "i alt"}
    | {"suma", "razem", "ukupno", "celkem", "yhteensä", "összesen", "všetko", "все", "всего"}
)  # fmt: skip
"""Codes that mean a total in official statistics, in small letters."""

_WEAK_NAMES = frozenset({"t", "*", "sum", "0"})  # totals only where the numbers add up
_SCREENED = 64  # lines in which sums are searched first


@dataclass
class SumSearch:
    """Looks for totals among the codes of one variable by their numbers: runs of codes, prefixes, all
    others.

    ``value`` and ``known`` have a row for each code. ``found`` says of each total in how many lines it is the
    sum, and by what chance; ``weak`` are sums that too few lines show.
    """

    codes: Sequence[str]
    value: Ints
    known: Mask
    found: dict[str, tuple[int, float]] = field(default_factory=dict)
    weak: dict[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)
    _tries: int = 0

    def totals(self) -> dict[str, tuple[str, ...]]:
        """The totals that the numbers show, with their parts."""
        groups: dict[int, tuple[int, ...]] = {}
        inside: set[int] = set()
        size = np.abs(self.value).sum(axis=1)
        # Where runs can stand anywhere, subtotals come before what holds them.
        by_size = np.argsort(size, kind="stable").tolist() if self.known.all() else []
        passes: list[tuple[Sequence[int], int]] = [
            (range(len(self.codes) - 1, -1, -1), -1),
            (range(len(self.codes)), 1),
            (by_size, 0),
        ]
        for order, step in passes:
            for total in order:
                if total in groups:
                    continue
                others = [i for i in range(len(self.codes)) if i != total and i not in inside]
                near = self._candidates(total, others, step)
                for parts in near if step else self._runs(total, others):
                    shown = evidence(self.value, self.known, total, parts)
                    if shown is not None and shown[0] and shown[1] * self._tries < CHANCE:
                        groups[total] = parts
                        inside |= set(parts)
                        self.found[self.codes[total]] = shown
                        break
                    if shown is not None and shown[0] and shown[1] < 1:
                        names = tuple(self.codes[p] for p in parts)
                        self.weak.setdefault(self.codes[total], (names, shown[0]))
        return {self.codes[t]: tuple(self.codes[p] for p in parts) for t, parts in groups.items()}

    def _runs(self, total: int, others: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Codes that stand together anywhere and add up to one in every line."""
        self._tries += len(others) ** 2 // 2
        lines = np.argsort(-np.abs(self.value[total]), kind="stable")[:_SCREENED]
        sums = np.zeros((len(others) + 1, lines.size), dtype=np.int64)
        np.cumsum(self.value[list(others)][:, lines], axis=0, out=sums[1:])
        wanted = sums + self.value[total, lines]
        order = np.argsort(sums[:, 0], kind="stable")
        first, last = (np.searchsorted(sums[order, 0], wanted[:, 0], s) for s in ("left", "right"))
        for start in np.flatnonzero(first < last).tolist():
            for stop in order[first[start] : last[start]][:_SCREENED].tolist():
                if stop > start + 1 and bool((sums[stop] == wanted[start]).all()):
                    yield tuple(others[start:stop])

    def _candidates(
        self, total: int, others: Sequence[int], step: int
    ) -> Iterator[tuple[int, ...]]:
        """Sets of codes that could be the parts of one: those behind or before it, of its prefix, all
        others.
        """
        behind = [i for i in others if i > total]
        free = behind if step < 0 else [i for i in reversed(others) if i < total]
        before = self._tries
        for size in self._sizes(total, free):
            self._tries = before + size - 1
            yield tuple(free[:size])
        self._tries = before + max(len(free) - 1, 0)
        if len(others) > 1:
            self._tries += 1
            yield tuple(others)
        code = self.codes[total].strip()
        prefixed = [
            i for i in others if code and self.codes[i].startswith(code) and self.codes[i] != code
        ]
        if len(prefixed) > 1:
            self._tries += 1
            yield tuple(prefixed)

    def _sizes(self, total: int, free: Sequence[int]) -> list[int]:
        """How many of some codes, from the first on and two at least, no line contradicts as the parts."""
        if len(free) < 2:
            return []
        whole = bool(self.known.all())
        lines = slice(_SCREENED) if whole else slice(None)
        known, value = self.known[free, lines], self.value[free, lines]
        sums = np.cumsum(np.where(known, value, 0), axis=0)
        full = (np.cumsum(~known, axis=0) == 0) & self.known[total, lines]
        wrong = (full & (sums != self.value[total, lines])).any(axis=1)
        return [k + 1 for k in np.flatnonzero(~wrong & full.any(axis=1)).tolist() if k]


def certain_totals(
    codes: Sequence[str], value: Ints, known: Mask, given: Groups
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """The totals of codes of true tables with their parts, and how each is known.

    ``given`` are the groups of a hierarchy. Without it there are none, those that numbers show, or those that
    codes begin with, whichever makes a total of all codes hold in every line. Where none does, a code that
    is called a total still counts as one, so that its sums are found wrong.

    >>> rows = np.array([[8, 9], [3, 4], [11, 13], [1, 2], [12, 15]])
    >>> certain_totals(["A1", "A2", "A", "B", "Total"], rows, rows > 0, {})[0]
    {'A': ('A1', 'A2'), 'Total': ('A', 'B')}
    """
    tries: list[tuple[Mapping[str, tuple[str, ...]], Mapping[str, str]]] = [
        (given, dict.fromkeys(given, "as you say"))
    ]
    if not given:
        if whole := _whole(codes, value, known, {}):
            return {whole[0]: whole[1]}, {whole[0]: whole[2]}
        shown = SumSearch(codes, value, known).totals()
        begun = _by_beginning(codes, value, known)
        by_code, by_numbers = dict.fromkeys(begun, "by code"), dict.fromkeys(shown, "by numbers")
        tries = [(shown, by_numbers), ({**begun, **shown}, {**by_code, **by_numbers})]
        tries += [(begun, by_code)]
    for groups, how in tries:
        if whole := _whole(codes, value, known, groups):
            return {**groups, whole[0]: whole[1]}, {**how, whole[0]: whole[2]}
    groups, how = tries[0]
    tops = _tops(codes, groups)
    named = [c for c in tops if _is_total_name(c) and c not in groups]
    if len(named) == 1 and len(tops) > 1:
        total = named[0]
        parts = tuple(c for c in tops if c != total)
        return {**groups, total: parts}, {**how, total: "by name"}
    return dict(groups), dict(how)


def _is_total_name(code: str) -> bool:
    return code.casefold().strip() in TOTAL_NAMES


def _tops(codes: Sequence[str], groups: Mapping[str, Sequence[str]]) -> list[str]:
    """The codes that are part of no group."""
    inside = {part for parts in groups.values() for part in parts}
    return [code for code in codes if code not in inside]


def _whole(
    codes: Sequence[str], value: Ints, known: Mask, groups: Mapping[str, tuple[str, ...]]
) -> tuple[str, tuple[str, ...], str] | None:
    """The code that is the sum of all others outside of groups, by its name or by its numbers."""
    tops = _tops(codes, groups)
    row = {code: i for i, code in enumerate(codes)}
    for code in tops:
        parts = tuple(c for c in tops if c != code)
        if code in groups or not parts:
            continue
        shown = evidence(value, known, row[code], [row[c] for c in parts])
        if shown is None or not shown[0]:
            continue
        if _is_total_name(code) or (len(parts) > 1 and code.casefold().strip() in _WEAK_NAMES):
            return code, parts, "by name"
        if len(parts) > 1 and shown[1] * len(tops) < CHANCE:
            return code, parts, "by numbers"
    return None


def _by_beginning(codes: Sequence[str], value: Ints, known: Mask) -> dict[str, tuple[str, ...]]:
    """Codes that others go on from, if they are the sum of these in every line that shows all of them."""
    row = {code: i for i, code in enumerate(codes)}
    children: dict[str, list[str]] = {}
    for code in codes:
        starts = (code[:size] for size in range(len(code) - 1, 0, -1))
        parent = next((start for start in starts if start in row), None)
        if parent is not None:
            children.setdefault(parent, []).append(code)
    groups = {}
    for parent, parts in children.items():
        shown = evidence(value, known, row[parent], [row[c] for c in parts])
        if shown is not None and shown[0]:
            groups[parent] = tuple(parts)
    return groups
