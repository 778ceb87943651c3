"""Codes that may be totals of others though neither a name nor their code says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lustrum.readers.code_groups import is_years
from lustrum.readers.dimensions import TOTAL_NAMES, Dimension
from lustrum.readers.sums import (
    add_up,
    along,
    may_be_negative,
    shown_at_all,
    shown_whole,
)
from lustrum.readers.table_file import TableFile

SAID, NAMED, ADDED, CODED = "as you say", "by name", "by numbers", "by code"
"""How a total was recognised."""

_MOST_HEADS = 10_000  # sums of neighbours that are tried


@dataclass
class RecognitionLog:
    """Doubts, notes and files whose sums are off, as recognition finds them."""

    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    off: dict[str, None] = field(default_factory=dict)


def unnamed_total(
    dimension: Dimension, files: Sequence[TableFile], log: RecognitionLog
) -> Dimension:
    """A code that may hold all others though its name does not say so: claimed if sums agree, else a doubt."""
    inside = (
        frozenset[int]().union(*dimension.groups.values()) if dimension.groups else frozenset[int]()
    )
    index_of = {code: i for i, code in enumerate(dimension.finest)}
    tops = [
        c
        for c in (*dimension.finest, *dimension.groups)
        if c not in index_of or index_of[c] not in inside
    ]
    nested = [
        c
        for c, codes in dimension.groups.items()
        if any(codes < o for o in dimension.groups.values())
    ]
    tops = [c for c in tops if c not in nested]
    if len(tops) < (2 if dimension.groups else 3) or is_years(tops):
        return dimension
    if any(c.lower() in TOTAL_NAMES and dimension.how.get(c) == SAID for c in tops):
        return dimension  # the total is named as one, and somebody said what it holds
    maybe = []
    for code in tops:
        others = [c for c in tops if c != code]
        agrees, possible = 0, True
        for file in files:
            codes = file.codes[file.dimensions.index(dimension.name)]
            if code not in codes:
                continue
            values, known = along(file, dimension.name)
            at = [codes.index(c) for c in others if c in codes]
            row = codes.index(code)
            sums = np.where(known[at], values[at], 0).sum(axis=0)
            every = known[at].all(axis=0) & known[row] & (len(at) == len(others))
            room = (len(at) + 1) // 2
            wrong = every & (np.abs(sums - values[row]) > room)
            if not may_be_negative(file, values):
                wrong |= known[row] & (sums > values[row] + room)
            possible &= not bool(wrong.any())
            agrees += int((every & (sums == values[row]) & (sums != 0)).sum())
        if possible and agrees and code in index_of:
            others_at = frozenset(i for c in others for i in dimension.members(c))
            finest = tuple(c for c in dimension.finest if c != code)
            moved = {i: finest.index(c) for i, c in enumerate(dimension.finest) if c != code}
            groups = {
                c: frozenset(moved[i] for i in parts) for c, parts in dimension.groups.items()
            }
            groups[code] = frozenset(moved[i] for i in others_at)
            return replace(
                dimension, finest=finest, groups=groups, how={**dimension.how, code: ADDED}
            )
        if possible and dimension.how.get(code) != SAID:
            maybe.append(code)
    shown = {c: any(shown_at_all(f, dimension.name, c) for f in files) for c in maybe}
    maybe.sort(key=lambda c: (c not in index_of, not shown[c]))
    if maybe:
        log.doubts.append(
            f"{files[0].source}: nobody said whether {maybe[0]!r} of {dimension.name!r} is the total of "
            f"the other codes; "
            f"say --total {dimension.name}={maybe[0]} or --no-totals {dimension.name}."
        )
    elif not dimension.groups:
        listed = ", ".join(dimension.finest[:6]) + (", ..." if len(dimension.finest) > 6 else "")
        log.doubts.append(
            f"{files[0].source}: no total is recognised among the codes of {dimension.name!r} ({listed}); "
            f"name it with --total {dimension.name}=CODE or --hierarchy {dimension.name}=FILE, or say "
            f"--no-totals {dimension.name}."
        )
    return dimension


def look_for_heads(
    dimension: Dimension,
    files: Sequence[TableFile],
    slack: int,
    log: RecognitionLog,
) -> None:
    """A doubt where a code may be the sum of others though neither its code nor numbers show it.

    That is possible for codes beside each other where other codes are such sums or where no total is shown,
    and for a name that others begin with. A column in which all is shown and adds up rules it out.
    """
    totals = dimension.totals
    if any(shown_whole(file, dimension, code) for file in files for code in totals):
        return
    inside = {
        dimension.finest[index]
        for code, parts in dimension.groups.items()
        if code not in totals
        for index in parts
    }
    plain = [c for c in dimension.finest if c not in inside]
    heads = [(c, [p for p in plain if p != c and p.startswith(c)]) for c in plain if len(c) > 2]
    nested = any(way == ADDED and code not in totals for code, way in dimension.how.items())
    if nested or (
        totals and not any(shown_at_all(f, dimension.name, c) for f in files for c in totals)
    ):
        heads += _beside(dimension, files, set(plain))
    for head, parts in heads:
        if len(parts) > 1 and add_up(dimension.name, files, head, parts, slack) in (
            "open",
            "agrees",
        ):
            log.doubts.append(
                f"{files[0].source}: no column shows whether {head!r} of {dimension.name!r} is the sum of "
                f"other codes; say --hierarchy {dimension.name}=FILE or --flat {dimension.name}."
            )
            return


def _beside(
    dimension: Dimension, files: Sequence[TableFile], plain: set[str]
) -> list[tuple[str, list[str]]]:
    """Every code with the codes that follow it or stand before it, up to the next group."""
    heads = []
    for file in files:
        run: list[str] = []
        for code in (*file.codes[file.dimensions.index(dimension.name)], ""):
            if code in plain:
                run.append(code)
                continue
            for start in range(len(run)):
                after, before = run[start + 1 :], run[:start][::-1]
                heads += [(run[start], after[:n]) for n in range(2, len(after) + 1)]
                heads += [(run[start], before[:n]) for n in range(2, len(before) + 1)]
            run = []
    return heads[:_MOST_HEADS]
