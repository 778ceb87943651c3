"""Groups of codes recognised by their numbers: a code whose values are the sums of those of others.

Three ways are tried for each code: codes that begin with it, codes that stand together in the file, and the
smallest solution of the equations over all columns, if its weights are 0 and 1. A set counts as found where
every column in which all is known adds up and no other column speaks against it. Numbers can add up by
chance, so the values must also be large enough: a set that is one of 2**m possible ones needs m bits of
evidence and some more, where a column with value v has log2(1 + v) bits.

A set claimed wrongly is one relation too many, which an audit takes as something that an attacker knows; a set
that is missed would be an attack that nobody looked for. So the thresholds lean towards claiming, and the
command says what it recognised.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Ints, Mask
from lustrum.numeric.arithmetic import log2

_BITS = 20.0  # evidence for a set that is one of few; chance alone gives it once in a million
_BITS_BY_CODE = 6.0  # the code itself is most of the evidence
_BITS_MORE = 10.0  # evidence beyond the bits that choose one of 2**m sets
_SCREENED = 64  # columns that runs are searched in, and ends tried for each start
_SEARCHED = 12_800  # sums that runs are searched among where every column has gaps
_MOST_UNKNOWNS = 400


def groups_by_numbers(
    values: Ints,
    known: Mask,
    codes: Sequence[str],
    skip: Collection[int] = (),
    groups: Mapping[int, Collection[int]] = MappingProxyType({}),
    *,
    signed: bool = False,
) -> dict[int, frozenset[int]]:
    """The codes that are sums of others, with the codes that make them up: finest ones, or ``groups``.

    ``values`` has a row for each code and a column for each combination of the other dimensions; ``known`` says
    which of them are published. Codes in ``skip`` are part of nothing, ``groups`` are known already. Hidden
    values can be negative where others are, or where somebody says that values are ``signed``.

    >>> rows = np.array([[812, 95], [377, 1204], [1189, 1299], [640, 11], [1829, 1310]])
    >>> groups_by_numbers(rows, rows >= 0, ["a", "b", "ab", "c", "z"])
    {2: frozenset({0, 1}), 4: frozenset({0, 1, 3})}
    """
    search = _NumberSearch(values, known, codes, signed or bool((values < 0).any()))
    places = [c for c in range(len(codes)) if c not in set(skip)]
    # Subtotals come before what holds them, so that few passes are needed.
    order = sorted(places, key=lambda c: (int(np.abs(values[c][known[c]]).sum()), c))
    parts_of: dict[int, frozenset[int]] = {}
    more = True
    while more:
        before = dict(parts_of)
        for c in (c for c in order if c not in groups):
            every = {**groups, **parts_of}
            group = search.group(c, [s for s in places if s != c and s not in every])
            inside = frozenset[int]().union(*every.values())
            if group is None and every and c not in parts_of and c not in inside:
                # A finest code may be hidden where the subtotal that holds it is shown.
                tops = search.group(c, [s for s in places if s != c and s not in inside])
                group = tops if tops and _apart(tops, every) else None
            if group is not None:
                parts_of[c] = group
        more = parts_of != before
    return {c: _finest(c, parts_of) for c in parts_of}


def _finest(c: int, groups: Mapping[int, Collection[int]]) -> frozenset[int]:
    """The finest codes of a code, of which parts may be groups themselves."""
    if c not in groups:
        return frozenset({c})
    return frozenset[int]().union(*(_finest(part, groups) for part in groups[c]))


def _apart(parts: Collection[int], groups: Mapping[int, Collection[int]]) -> bool:
    """Whether no finest code is in two of the parts."""
    finest = [code for part in parts for code in _finest(part, groups)]
    return len(finest) == len(set(finest))


@dataclass(frozen=True, eq=False)
class _NumberSearch:
    values: Ints
    known: Mask
    codes: Sequence[str]
    signed: bool

    @cached_property
    def bits(self) -> npt.NDArray[np.float64]:
        """What each value fixes if a sum is equal to it."""
        return log2(1.0 + np.abs(self.values).astype(np.float64))

    def group(self, c: int, others: Sequence[int]) -> frozenset[int] | None:
        """The codes that make up code ``c``, or None."""
        parts = self._possible(c, np.array(others, dtype=np.intp))
        return self._by_code(c, parts) or self._by_run(c, parts) or self._by_equations(c, parts)

    def _possible(self, c: int, others: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """The codes that are nowhere larger than ``c``."""
        if self.signed:
            return others
        both = self.known[others] & self.known[c]
        larger = ((self.values[others] > self.values[c]) & both).any(axis=1)
        return np.asarray(others[~larger])

    def _evidence(self, c: int, parts: npt.NDArray[np.intp]) -> float:
        """The bits of the columns in which codes add up to ``c``; none if a column speaks against it."""
        sums = np.where(self.known[parts], self.values[parts], 0).sum(axis=0)
        every = self.known[parts].all(axis=0) & self.known[c]
        if bool((every & (sums != self.values[c])).any()):
            return 0.0
        if not self.signed and bool((self.known[c] & (sums > self.values[c])).any()):
            return 0.0
        return float(self.bits[c][every].sum())

    def _filled(self, parts: npt.NDArray[np.intp]) -> Mask:
        """Where codes are not known to be 0."""
        return np.asarray((self.values[parts] != 0) | ~self.known[parts])

    def _by_code(self, c: int, parts: npt.NDArray[np.intp]) -> frozenset[int] | None:
        code = self.codes[c]
        inside = np.array([s for s in parts if self.codes[s].startswith(code)], dtype=np.intp)
        bits = _BITS if inside.size == 1 else _BITS_BY_CODE
        return _set(inside) if self._evidence(c, inside) >= bits else None

    def _by_run(self, c: int, parts: npt.NDArray[np.intp]) -> frozenset[int] | None:
        """Codes that stand together in the file, those that cannot be parts left out.

        The run with the most evidence is taken, of these the shortest, of these the first.
        """
        runs = [parts[first:stop] for first, stop in sorted(set(self._runs(c, parts)))]
        judged = [(self._evidence(c, run), run) for run in runs]
        enough = [(evidence, -run.size, run) for evidence, run in judged if evidence >= _BITS]
        return _set(max(enough, key=lambda scored: scored[:2])[2]) if enough else None

    def _runs(self, c: int, parts: npt.NDArray[np.intp]) -> Iterator[tuple[int, int]]:
        """Where runs begin and end that add up in the columns that show all of them, as far as is searched.

        A run counts only if a column shows all of it, and there its sum is the value of ``c``. So the ends
        that belong to a start are looked up among the sums up to each code, in the columns in which ``c`` is
        largest; a column without any gap has all of them. A run has at least two codes that are not known to
        be 0.
        """
        seen = self.known[c]
        filled = _from_zero(np.asarray(self._filled(parts)[:, seen].any(axis=1)))
        columns = np.flatnonzero(seen & (self.values[c] != 0))
        columns = columns[np.argsort(-np.abs(self.values[c, columns]), kind="stable")][:_SCREENED]
        target = self.values[c, columns]
        shown = self.known[np.ix_(parts, columns)]
        values = np.where(shown, self.values[np.ix_(parts, columns)], 0)
        sums, gaps = _from_zero(values), _from_zero(~shown)
        whole = np.flatnonzero(gaps[-1] == 0)[:1].tolist()
        for k in whole or range(min(columns.size, 1 + _SEARCHED // len(sums))):
            order = np.argsort(sums[:, k], kind="stable")
            ends = [
                np.searchsorted(sums[order, k], sums[:-1, k] + target[k], side=side)
                for side in ("left", "right")
            ]
            for i in np.flatnonzero(ends[0] < ends[1]).tolist():
                stops = order[ends[0][i] : ends[1][i]]
                stops = stops[filled[stops] - filled[i] > 1][:_SCREENED]
                wrong = (gaps[stops] == gaps[i]) & (sums[stops] - sums[i] != target)
                yield from ((i, int(stop)) for stop in stops[~wrong.any(axis=1)])

    def _by_equations(self, c: int, parts: npt.NDArray[np.intp]) -> frozenset[int] | None:
        """The smallest solution of the equations over the columns that show everything, if it is 0/1."""
        filled = parts[self._filled(parts).any(axis=1)]
        every = np.flatnonzero(self.known[filled].all(axis=0) & self.known[c])
        if not 2 <= filled.size <= min(every.size, _MOST_UNKNOWNS):
            return None
        order = np.argsort(-np.abs(self.values[c, every]), kind="stable")
        picked = every[order][: 4 * filled.size]
        system = self.values[np.ix_(filled, picked)].T.astype(np.float64)
        # Small codes and columns count as much as large ones.
        rows = np.maximum(np.abs(system).max(axis=1), 1.0)
        sizes = np.abs(system / rows[:, None]).max(axis=0)
        sizes[sizes == 0] = 1.0
        # A library's last bits differ between processors. What they change stays a hundred times below what
        # is rounded here; whether the numbers add up is checked in whole numbers at the end.
        least = max(1e-9, 1e-11 / float(sizes.min()))
        solution = np.linalg.lstsq(
            system / rows[:, None] / sizes, self.values[c, picked] / rows, rcond=least
        )[0]
        weights = solution / sizes
        if bool((np.abs(weights - np.rint(weights)) > 1e-3).any()):
            return None
        inside = filled[np.rint(weights) == 1]
        enough = self._evidence(c, inside) >= filled.size + _BITS_MORE
        return _set(inside) if enough and inside.size > 1 else None


def _from_zero(rows: npt.NDArray[np.int64] | Mask) -> npt.NDArray[np.int64]:
    """Sums up to each row, from that of none on."""
    return np.cumsum(np.concatenate([np.zeros((1, *rows.shape[1:]), np.int64), rows]), axis=0)


def _set(places: npt.NDArray[np.intp]) -> frozenset[int]:
    return frozenset(int(p) for p in places)
