"""Coarser levels that the codes of a variable suggest: tens of whole numbers, and the beginnings of codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

FEWEST = 21
"""A variable with fewer codes than this needs no coarser level."""

_SEPARATORS = ("-", ".", "/")


@dataclass(frozen=True)
class DraftLevel:
    """A level with its groups: a code, and the finest codes behind it. The label of a group is ``label_of``."""

    name: str
    label: str
    groups: dict[str, list[str]]
    label_of: Callable[[str], str] = str


def suggested_levels(codes: Sequence[str]) -> list[DraftLevel]:
    """Levels from fine to coarse; none where the codes say nothing about them.

    >>> [list(level.groups)[:2] for level in suggested_levels([str(age) for age in range(100)])]
    [['0-9', '10-19']]
    >>> places = [f"{a}-{b}-{c}" for a in "12" for b in "1234" for c in "123456"]
    >>> [list(level.groups)[:3] for level in suggested_levels(places)]
    [['1-1', '1-2', '1-3'], ['1', '2']]
    """
    if len(codes) < FEWEST:
        return []
    if all(code.isascii() and code.isdecimal() and str(int(code)) == code for code in codes):
        return _tens(codes)
    return _separated(codes) or _widths(codes)


def _tens(codes: Sequence[str]) -> list[DraftLevel]:
    groups: dict[str, list[str]] = {}
    for number in sorted(int(code) for code in codes):
        low = number - number % 10
        groups.setdefault(f"{low}-{low + 9}", []).append(str(number))
    if not _helps(groups, len(codes)):
        return []
    return [DraftLevel("tens", "In tens", groups, lambda code: code.replace("-", " to "))]


def _separated(codes: Sequence[str]) -> list[DraftLevel]:
    """Codes such as 1-01-001: what stands before the last separator, and so on."""
    for sign in _SEPARATORS:
        depth = {code.count(sign) for code in codes}
        if len(depth) != 1 or 0 in depth:
            continue
        parts = depth.pop()
        cuts = [
            sign.join(code.split(sign)[:keep]) for keep in range(parts, 0, -1) for code in codes
        ]
        rows = [cuts[i : i + len(codes)] for i in range(0, len(cuts), len(codes))]
        return _nested(codes, rows)
    return []


def _widths(codes: Sequence[str]) -> list[DraftLevel]:
    """Codes of one length: their first characters."""
    widths = {len(code) for code in codes}
    if len(widths) != 1 or max(widths) < 2 or not all(code.isalnum() for code in codes):
        return []
    return _nested(
        codes, [[code[:keep] for code in codes] for keep in range(max(widths) - 1, 0, -1)]
    )


def _nested(codes: Sequence[str], rows: Sequence[Sequence[str]]) -> list[DraftLevel]:
    levels: list[DraftLevel] = []
    taken, before = set(codes), len(codes)
    for row in rows:
        groups: dict[str, list[str]] = {}
        for code, beginning in zip(codes, row, strict=True):
            groups.setdefault(beginning, []).append(code)
        if not _helps(groups, before) or "" in groups or taken & set(groups):
            continue
        number = len(levels) + 1
        levels.append(DraftLevel(f"level-{number}", f"Coarser level {number}", groups))
        taken |= set(groups)
        before = len(groups)
    return levels


def _helps(groups: dict[str, list[str]], before: int) -> bool:
    """Whether a level has at least two groups and at most half as many as there are below it."""
    return 2 <= len(groups) <= before / 2
