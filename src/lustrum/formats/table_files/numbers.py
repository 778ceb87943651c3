"""Groups of codes recognised by their numbers: a code whose values are the sums of those of others.

Three ways are tried for each code: codes that begin with it, codes that stand together in the file, and the
only 0/1 solution of the equations over all columns. A set counts as found where every column in which all is
known adds up and no other column speaks against it. Numbers can add up by chance, so the values must also be
large enough: a set that is one of 2**m possible ones needs m bits of evidence and some more, where a column
with value v has log2(1 + v) bits.

A set claimed wrongly is one relation too many, which an audit takes as something that an attacker knows; a set
that is missed would be an attack that nobody looked for. So the thresholds lean towards claiming, and the
command says what it recognised.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lustrum.arithmetic import log2
from lustrum.arrays import Ints, Mask

_BITS = 20.0  # evidence for a set that is one of few; chance alone gives it once in a million
_BITS_BY_CODE = 6.0  # the code itself is most of the evidence
_BITS_MORE = 10.0  # evidence beyond the bits that choose one of 2**m sets
_SCREENED = 64  # columns that runs are first compared on
_PASSES = 4
_MOST_RUNS = 200  # codes whose runs are all tried where gaps leave no column to search in
_MOST_UNKNOWNS = 400


def groups_by_numbers(
    values: Ints,
    known: Mask,
    codes: Sequence[str],
    skip: Collection[int] = (),
    *,
    signed: bool = False,
) -> dict[int, frozenset[int]]:
    """The codes that are sums of others, with the finest codes that make them up.

    ``values`` has a row for each code and a column for each combination of the other dimensions; ``known`` says
    which of them are published. Codes in ``skip`` are groups already and part of nothing. Hidden values can be
    negative where others are, or where somebody says that values are ``signed``.

    >>> rows = np.array([[812, 95], [377, 1204], [1189, 1299], [640, 11], [1829, 1310]])
    >>> groups_by_numbers(rows, rows >= 0, ["a", "b", "ab", "c", "z"])
    {2: frozenset({0, 1}), 4: frozenset({0, 1, 3})}
    """
    search = _NumberSearch(values, known, codes, signed or bool((values < 0).any()))
    places = [c for c in range(len(codes)) if c not in set(skip)]
    order = sorted(places, key=lambda c: (search.size[c], c))
    found: dict[int, frozenset[int]] = {}
    for _ in range(_PASSES):
        before = dict(found)
        for c in order:
            parts = [s for s in places if s != c and s not in found]
            group = search.group(c, np.array(parts, dtype=np.intp))
            if group is not None:
                found[c] = group
        if found == before:
            break
    return _flattened(found)


def _flattened(found: dict[int, frozenset[int]]) -> dict[int, frozenset[int]]:
    """Groups in terms of the finest codes, where a part was found to be a group later."""
    out = dict(found)
    for _ in range(len(found)):
        mixed = [c for c, parts in out.items() if parts & out.keys()]
        if not mixed:
            break
        for c in mixed:
            inner = out[c] & (out.keys() - {c})
            out[c] = (out[c] - inner).union(*(out[g] for g in inner))
    return out


@dataclass(frozen=True, eq=False)
class _NumberSearch:
    values: Ints
    known: Mask
    codes: Sequence[str]
    signed: bool

    @cached_property
    def size(self) -> npt.NDArray[np.float64]:
        """How large each code is, by its share of the columns in which it is known."""
        shown = np.where(self.known, np.abs(self.values), 0).astype(np.float64)
        column = shown.sum(axis=0)
        reach = np.where(self.known, column, 0.0).sum(axis=1)
        return np.asarray(shown.sum(axis=1) / np.maximum(reach, 1.0))

    @cached_property
    def bits(self) -> npt.NDArray[np.float64]:
        """What each value fixes if a sum is equal to it."""
        return log2(1.0 + np.abs(self.values).astype(np.float64))

    def group(self, c: int, others: npt.NDArray[np.intp]) -> frozenset[int] | None:
        """The codes that make up code ``c``, or None."""
        parts = self._possible(c, others)
        if parts.size == 0:
            return None
        return self._by_code(c, parts) or self._by_run(c, parts) or self._by_equations(c, parts)

    def _possible(self, c: int, others: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """The codes that are nowhere larger than ``c``."""
        if self.signed:
            return others
        both = self.known[others] & self.known[c]
        larger = ((self.values[others] > self.values[c]) & both).any(axis=1)
        return np.asarray(others[~larger])

    def _fits(self, c: int, parts: npt.NDArray[np.intp], bits: float) -> bool:
        """Whether some codes add up to ``c`` wherever that can be checked, with so much evidence."""
        sums = np.where(self.known[parts], self.values[parts], 0).sum(axis=0)
        every = self.known[parts].all(axis=0) & self.known[c]
        if bool((every & (sums != self.values[c])).any()):
            return False
        if not self.signed and bool((self.known[c] & (sums > self.values[c])).any()):
            return False
        return float(self.bits[c][every].sum()) >= bits

    def _by_code(self, c: int, parts: npt.NDArray[np.intp]) -> frozenset[int] | None:
        own = self.codes[c]
        inside = np.array([s for s in parts if self.codes[s].startswith(own)], dtype=np.intp)
        if inside.size == 0:
            return None
        bits = _BITS if inside.size == 1 else _BITS_BY_CODE
        return _set(inside) if self._fits(c, inside, bits) else None

    def _by_run(self, c: int, parts: npt.NDArray[np.intp]) -> frozenset[int] | None:
        """Codes that stand together in the file, those that cannot be parts left out."""
        target, seen = self.values[c], self.known[c]
        columns = np.flatnonzero(seen)
        columns = columns[np.argsort(-np.abs(target[columns]), kind="stable")][:_SCREENED]
        fixed = self.bits[c][columns]
        shown = self.known[np.ix_(parts, columns)]
        values = np.where(shown, self.values[np.ix_(parts, columns)], 0)
        sums = np.vstack([np.zeros((1, columns.size), np.int64), np.cumsum(values, axis=0)])
        gaps = np.vstack([np.zeros((1, columns.size), np.int64), np.cumsum(~shown, axis=0)])
        filled = np.concatenate([[0], np.cumsum((values != 0).any(axis=1) | (~shown).any(axis=1))])
        best: tuple[float, int, npt.NDArray[np.intp]] | None = None
        for i, stops in self._run_ends(sums, gaps, target[columns]):
            run = sums[stops] - sums[i]
            every = gaps[stops] == gaps[i]
            wrong = every & (run != target[columns])
            if not self.signed:
                wrong |= run > target[columns]
            for k in np.flatnonzero(~wrong.any(axis=1)).tolist():
                stop = int(stops[k])
                if filled[stop] - filled[i] < 2 or filled[i + 1] == filled[i]:
                    continue
                evidence = float(fixed[every[k]].sum())
                better = best is None or (evidence, -(stop - i)) > best[:2]
                if evidence >= _BITS and better and self._fits(c, parts[i:stop], _BITS):
                    best = (evidence, -(stop - i), parts[i:stop])
        return None if best is None else _set(best[2])

    def _run_ends(
        self, sums: Ints, gaps: Ints, target: Ints
    ) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
        """For each start of a run, where it may end: two codes on at least.

        Where one column is known throughout and nothing is negative, its sums rise, and a search finds the
        few ends that fit. Otherwise every end is tried, as long as there are not too many.
        """
        count = sums.shape[0] - 1
        whole = (
            np.flatnonzero((gaps[-1] == 0) & (target > 0)) if not self.signed else np.zeros(0, int)
        )
        if whole.size:
            column = sums[:, whole[0]]
            wanted = column[: count - 1] + target[whole[0]]
            first = np.searchsorted(column, wanted, side="left")
            last = np.searchsorted(column, wanted, side="right")
            for i in np.flatnonzero(last > first).tolist():
                ends = np.arange(max(first[i], i + 2), min(last[i], first[i] + _SCREENED))
                if ends.size:
                    yield i, ends
        elif count <= _MOST_RUNS:
            for i in range(count - 1):
                yield i, np.arange(i + 2, count + 1)

    def _by_equations(self, c: int, parts: npt.NDArray[np.intp]) -> frozenset[int] | None:
        """The only 0/1 solution of the equations over the columns in which everything is known."""
        filled = parts[(self.values[parts] != 0).any(axis=1) | ~self.known[parts].all(axis=1)]
        every = np.flatnonzero(self.known[filled].all(axis=0) & self.known[c])
        if not 2 <= filled.size <= min(every.size, _MOST_UNKNOWNS):
            return None
        order = np.argsort(-np.abs(self.values[c, every]), kind="stable")
        picked = every[order][: 4 * filled.size]
        system = self.values[np.ix_(filled, picked)].T.astype(np.float64)
        scale = np.maximum(np.abs(system).max(axis=1), 1.0)
        # A library's last bits differ between processors, a million times below what is rounded here;
        # whether the numbers add up is checked in whole numbers at the end.
        weights, _, rank, _ = np.linalg.lstsq(
            system / scale[:, None], self.values[c, picked] / scale, rcond=1e-9
        )
        if rank < filled.size or bool((np.abs(weights - np.rint(weights)) > 1e-3).any()):
            return None
        chosen = np.rint(weights).astype(np.int64)
        inside = filled[chosen == 1]
        if bool(((chosen != 0) & (chosen != 1)).any()) or inside.size < 2:
            return None
        return _set(inside) if self._fits(c, inside, filled.size + _BITS_MORE) else None


def _set(places: npt.NDArray[np.intp]) -> frozenset[int]:
    return frozenset(int(p) for p in places)
