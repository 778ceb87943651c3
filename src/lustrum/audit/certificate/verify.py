"""Check a certificate: whole-number arithmetic from the standard library, no solver, no other file.

This file imports nothing of Lustrum and shares no code with what makes certificates. It is one file
on purpose: any Python from 3.11 on can run a copy of it, ``python verify.py certificate.json``.

It relies on weak duality. For whole multipliers ``n_i`` of the facts over ``D > 0`` and ``d = D c - A' n``

    ``D c x  =  sum_i n_i (A x)_i + sum_j d_j x_j  >=  sum_i n_i b_i + sum_j d_j e_j``

where ``b_i`` is the end of fact i and ``e_j`` the bound of cell j that makes its term least. So any
multipliers give a true bound, and checking them takes additions and multiplications only.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

FORMAT, VERSION = "lustrum-certificate", 1
MAX_BYTES = 256 * 2**20
MAX_DIGITS = 1000  # of one number in a file
MAX_NAME = 2000
MAX_DEPTH = 1000  # of a branch tree
MAX_STEPS = 300_000_000  # multiplications: some minutes; a hostile file could otherwise take days

Pairs = tuple[tuple[int, int], ...]
Ends = tuple[int | None, int | None]


@dataclass(frozen=True)
class ProvenCell:
    """What is proven of one cell, in units of ``10**-decimals``; None where no bound is claimed."""

    name: str
    low: Fraction | None
    high: Fraction | None
    low_sharp: bool
    high_sharp: bool


@dataclass(frozen=True)
class Report:
    """Whether a certificate holds; if not, ``reason`` is the first thing that is wrong."""

    holds: bool
    reason: str = ""
    digest: str = ""
    cells: int = 0
    facts: int = 0
    tables: int = 0
    decimals: int = 0
    proven: tuple[ProvenCell, ...] = ()

    def __str__(self) -> str:
        if not self.holds:
            return f"The certificate does NOT hold: {self.reason}"
        ends = [s for p in self.proven for s in (p.low_sharp, p.high_sharp)]
        unit = f" Values are in units of 10^-{self.decimals}." if self.decimals else ""
        doubt = "" if self.tables else " No table shows that all facts can be true together."
        return (
            f"The certificate holds: {len(ends)} bounds of {_many(len(self.proven), 'cell')} are proven, "
            f"{sum(ends)} of them sharp, from {_many(self.facts, 'fact')} about "
            f"{_many(self.cells, 'cell')}."
            f"{unit}{doubt}\nThe digest of the knowledge is {self.digest}."
        )


def verify(document: str | bytes, digest: str | None = None) -> Report:
    """Check every table, proof and claim of a certificate; any input gives a report.

    With ``digest`` the certificate must be about the knowledge that has it.

    >>> print(verify("[]"))
    The certificate does NOT hold: the certificate must be an object of named parts.
    """
    try:
        return _checked(_parsed(document), digest)
    except _FlawError as flaw:
        return Report(False, f"{flaw}.")


def verify_file(path: str | Path, digest: str | None = None) -> Report:
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is none"
        return Report(False, f"the file cannot be read: {reason}.")
    return verify(content, digest)


class _FlawError(Exception):
    """The first thing found wrong."""


class _Knowledge:
    """The facts as read, the tables and rays that fit them, and how many steps were taken so far."""

    def __init__(self, value: Any, tables: Any, rays: Any) -> None:
        self.raw_tables, self.raw_rays = _list(tables, "the tables"), _list(rays, "the rays")
        self.tables: dict[int, tuple[int, list[int]]] = {}
        self.rays: dict[int, list[int]] = {}
        top = _object(value, "the knowledge", "whole", "decimals", "cells", "facts")
        self.whole = _truth(top["whole"], "'whole'")
        self.decimals = _whole(top["decimals"], "'decimals'", 0, 30)
        self.names: list[str] = []
        self.boxes: list[Ends] = []
        self.given: list[tuple[Ends, Pairs]] = []
        self.steps = 0
        for number, item in enumerate(_list(top["cells"], "the cells")):
            what = f"cell number {number}"
            cell = _object(item, what, "name", "low", "high")
            if not isinstance(cell["name"], str) or len(cell["name"]) > MAX_NAME:
                raise _FlawError(f"{what} must have a name of at most {MAX_NAME} characters")
            self.names.append(_plain(cell["name"]))
            self.boxes.append(_ends(cell, what))
        for number, item in enumerate(_list(top["facts"], "the facts")):
            what = f"fact number {number}"
            fact = _object(item, what, "low", "high", "weights")
            self.given.append((_ends(fact, what), _pairs(fact["weights"], what, len(self.names))))
        # A cell with a single value is a constant: it is subtracted from the facts that it is in.
        fixed = {
            c: low for c, (low, high) in enumerate(self.boxes) if low is not None and low == high
        }
        self.fixed = [fixed.get(c) for c in range(len(self.names))]
        self.facts: list[tuple[Ends, Pairs]] = []
        for (low, high), weights in self.given:
            sure = sum(w * fixed[c] for c, w in weights if c in fixed)
            ends = None if low is None else low - sure, None if high is None else high - sure
            self.facts.append((ends, tuple((c, w) for c, w in weights if c not in fixed)))

    def table(self, number: int) -> tuple[int, list[int]]:
        """A table, checked when the first claim uses it, so that the claim is named if the table is wrong."""
        if number not in self.tables:
            what = f"table {number}"
            item = _object(self.raw_tables[number], what, "over", "values")
            over = _whole(item["over"], f"'over' of {what}", 1, 1 if self.whole else None)
            self.tables[number] = over, _fitting(self, item["values"], over, what)
        return self.tables[number]

    def ray(self, number: int) -> list[int]:
        """A direction in which tables are unbounded; it must fit the facts with all ends set to zero."""
        if number not in self.rays:
            self.rays[number] = _fitting(self, self.raw_rays[number], 0, f"ray {number}")
        return self.rays[number]

    def count(self, steps: int) -> None:
        self.steps += steps + 1
        if self.steps > MAX_STEPS:
            raise _FlawError("it would take too many steps to check")

    def sentence(self, index: int, most: int = 8) -> str:
        (low, high), weights = self.given[index]
        text = ""
        for cell, weight in weights[:most]:
            factor = f"{abs(weight)} " if abs(weight) != 1 else ""
            text += f"{' - ' if weight < 0 else ' + '}{factor}{self.names[cell]}"
        text = text.removeprefix(" + ").strip() + (" + ..." if len(weights) > most else "")
        if low == high:
            return f"{text} = {low}"
        low_part = "" if low is None else f"{low} <= "
        return low_part + text + ("" if high is None else f" <= {high}")


# ---- reading: every value is checked before it is used


def _parsed(document: str | bytes) -> Any:
    if len(document) > MAX_BYTES:
        raise _FlawError(f"the file is larger than {MAX_BYTES // 2**20} megabytes")
    try:
        text = document.decode("utf-8") if isinstance(document, bytes) else document
        return json.loads(
            text, parse_int=_int, parse_float=_no, parse_constant=_no, object_pairs_hook=_once
        )
    except RecursionError:
        raise _FlawError("the file is nested too deeply") from None
    except ValueError:
        raise _FlawError("the file is not JSON in UTF-8") from None


def _int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise _FlawError(f"a number has more than {MAX_DIGITS} digits")
    return int(text)


def _no(text: str) -> None:
    raise _FlawError(f"{text[:20]!r} is not an exact number; write whole numbers or fractions")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _FlawError("an object has the same part twice")
    return fields


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _plain(text: str) -> str:
    """Text without control characters for a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _object(value: object, what: str, *parts: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _FlawError(f"{what} must be an object of named parts")
    for name in parts:
        if name not in value:
            raise _FlawError(f"{what} lacks '{name}'")
    if len(value) > len(parts):
        extra = _plain(min(set(value) - set(parts))[:40])
        raise _FlawError(f"{what} has a part '{extra}' that does not belong there")
    return value


def _list(value: object, what: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise _FlawError(f"{what} must be a list")
    return value


def _truth(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise _FlawError(f"{what} must be true or false")
    return value


def _whole(value: object, what: str, low: int | None = None, high: int | None = None) -> int:
    # Large numbers come as text, since many readers of JSON would round them.
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value):
        value = _int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _FlawError(f"{what} must be a whole number")
    if (low is not None and value < low) or (high is not None and value > high):
        raise _FlawError(f"{what} is out of range")
    return value


def _ratio(value: object, what: str) -> Fraction:
    top, bar, under = value.partition("/") if isinstance(value, str) else (value, "", "")
    return Fraction(_whole(top, what), _whole(under, what, 1) if bar else 1)


def _ends(item: Mapping[str, Any], what: str) -> Ends:
    low, high = (None if item[k] is None else _whole(item[k], f"an end of {what}") for k in _SIDES)
    return low, high


def _pairs(value: object, what: str, count: int) -> Pairs:
    """Pairs of a place and a factor, the places rising, so that none counts twice."""
    pairs: list[tuple[int, int]] = []
    for item in _list(value, f"the content of {what}"):
        if not isinstance(item, list) or len(item) != 2:
            raise _FlawError(f"{what} must list pairs of a place and a factor")
        first = pairs[-1][0] + 1 if pairs else 0
        index = _whole(item[0], f"a place in {what}", first, count - 1)
        pairs.append((index, _whole(item[1], f"a factor in {what}")))
    return tuple(pairs)


_SIDES = ("low", "high")
_PARTS = ("format", "version", "knowledge", "digests", "tables", "rays", "claims")


# ---- checking


def _checked(document: object, wanted: str | None) -> Report:
    top = _object(document, "the certificate", *_PARTS)
    if top["format"] != FORMAT or top["version"] is True or top["version"] != VERSION:
        raise _FlawError(f"the file does not say that it is a {FORMAT} of version {VERSION}")
    digests = _object(top["digests"], "the digests", "knowledge", "proofs")
    digest = _digest(top["knowledge"])
    if digests["knowledge"] != digest:
        raise _FlawError("the knowledge does not match its digest")
    if wanted is not None and wanted.strip().lower() != digest:
        raise _FlawError("the certificate is about other knowledge than the given digest")
    known = _Knowledge(top["knowledge"], top["tables"], top["rays"])
    proven: dict[int, ProvenCell] = {}
    for item in _list(top["claims"], "the claims"):
        claim = _object(item, "a claim", "cell", *_SIDES)
        cell = _whole(claim["cell"], "the cell of a claim", 0, len(known.names) - 1)
        if cell in proven:
            raise _FlawError(f"cell {known.names[cell]}: there are two claims about it")
        ends = []
        for side, sign in zip(_SIDES, (1, -1), strict=True):
            try:
                ends.append(_claimed(known, cell, sign, claim[side]))
            except _FlawError as flaw:
                raise _FlawError(f"cell {known.names[cell]}, {side}: {flaw}") from None
        (low, low_sharp), (high, high_sharp) = ends
        proven[cell] = ProvenCell(known.names[cell], low, high, low_sharp, high_sharp)
    for number in range(len(known.raw_tables)):
        known.table(number)
    for number in range(len(known.raw_rays)):
        known.ray(number)
    # Last, so that a broken proof is reported first.
    if digests["proofs"] != _digest([top["tables"], top["rays"], top["claims"]]):
        raise _FlawError("the proofs do not match their digest")
    sizes = (len(known.names), len(known.facts), len(known.tables), known.decimals)
    return Report(True, "", digest, *sizes, tuple(proven.values()))


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def _fitting(known: _Knowledge, value: object, over: int, what: str) -> list[int]:
    """Values over a common denominator that satisfy all facts; one for each open cell."""
    listed, count = _list(value, what), known.fixed.count(None)
    if len(listed) != count:
        raise _FlawError(f"{what} has {_many(len(listed), 'value')} for {_many(count, 'cell')}")
    rest = iter(listed)
    label = f"a value of {what}"
    values = [_whole(next(rest), label) if x is None else x * over for x in known.fixed]
    for name, ends, x in zip(known.names, known.boxes, values, strict=True):
        if _outside(x, ends, over):
            raise _FlawError(f"{what} is outside the bounds of {name}")
    for index, (ends, weights) in enumerate(known.facts):
        known.count(len(weights))
        if _outside(sum(w * values[c] for c, w in weights), ends, over):
            raise _FlawError(f"{what} breaks '{known.sentence(index)}'")
    return values


def _outside(x: int, ends: Ends, over: int) -> bool:
    low, high = ends
    return (low is not None and x < low * over) or (high is not None and x > high * over)


def _claimed(known: _Knowledge, cell: int, sign: int, item: object) -> tuple[Fraction | None, bool]:
    """Check the proof of an end (sign -1 for the upper one); returns the end and whether it is sharp."""
    claim = _object(item, "the claim", "value", "sharp", "table", "ray", "proof")
    sharp = _truth(claim["sharp"], "'sharp'")
    proof = _list(claim["proof"], "the proof")
    value = None if claim["value"] is None else _ratio(claim["value"], "the value")
    if sharp:
        over, table = known.table(_whole(claim["table"], "'table'", 0, len(known.raw_tables) - 1))
        if value is not None and table[cell] != value * over:
            raise _FlawError(f"its table holds {Fraction(table[cell], over)}, the claim is {value}")
    elif claim["table"] is not None:
        raise _FlawError("it names a table but is not sharp")
    if value is None and sharp:
        ray = known.ray(_whole(claim["ray"], "'ray'", 0, len(known.raw_rays) - 1))
        if sign * ray[cell] >= 0:
            raise _FlawError("its ray does not lead beyond every bound")
    elif claim["ray"] is not None:
        raise _FlawError("it names a ray but does not claim an infinite range")
    if value is None:
        if proof:
            raise _FlawError("it has a proof but claims no bound")
        return None, sharp
    shown = sign * _least(known, cell, sign, proof)
    if shown != value:
        raise _FlawError(f"the proof shows {shown}, the claim is {value}")
    return value, sharp


def _least(known: _Knowledge, cell: int, sign: int, proof: Sequence[Any]) -> Fraction:
    """The bound that ``sign`` times the cell is never below: the least over all leaves of the tree.

    A tree is a list of nodes. After a split comes the proof of its lower side (the split cell is at most
    ``at``), then that of its upper side (at least ``at + 1``); together they hold every whole number.
    """
    waiting: list[tuple[int, dict[int, Ends]]] = [(0, {})]
    least: Fraction | None = None
    for item in proof:
        if not waiting:
            raise _FlawError("the proof goes on after its last branch")
        depth, boxes = waiting.pop()
        if isinstance(item, dict) and "split" in item:
            node = _object(item, "a split", "split", "at")
            if not known.whole:
                raise _FlawError("the proof splits a cell that need not be a whole number")
            if depth >= MAX_DEPTH:
                raise _FlawError(f"the proof is more than {MAX_DEPTH} splits deep")
            known.count(len(boxes))
            at = _whole(node["at"], "'at' of a split")
            split = _whole(node["split"], "the cell of a split", 0, len(known.names) - 1)
            low, high = boxes.get(split, known.boxes[split])
            up, down = (at + 1, high), (low, at)
            waiting += [(depth + 1, {**boxes, split: up}), (depth + 1, {**boxes, split: down})]
            continue
        node = _object(item, "a leaf", "shows", "over", "facts")
        if node["shows"] not in ("bound", "empty"):
            raise _FlawError("a leaf shows neither a bound nor that its branch is empty")
        empty = node["shows"] == "empty"
        over = _whole(node["over"], "'over' of a leaf", 1)
        bound = Fraction(_weighed(known, boxes, {} if empty else {cell: sign * over}, node), over)
        if empty and bound <= 0:
            raise _FlawError("a leaf does not show that its branch is empty")
        if not empty:
            bound = Fraction(ceil(bound)) if known.whole else bound
            least = bound if least is None or bound < least else least
    if waiting:
        raise _FlawError("the proof leaves a branch open")
    if least is None:
        raise _FlawError("the proof shows that no table fits")
    return least


def _weighed(
    known: _Knowledge, boxes: dict[int, Ends], reduced: dict[int, int], node: Mapping[str, Any]
) -> int:
    """The right side of weak duality, times the denominator; ``reduced`` begins as ``D c``."""
    total = 0
    for index, times in _pairs(node["facts"], "a leaf", len(known.facts)):
        ends, weights = known.facts[index]
        end = ends[0] if times > 0 else ends[1]
        if end is None:
            raise _FlawError(f"the proof uses an end that '{known.sentence(index)}' does not have")
        total += times * end
        known.count(len(weights))
        for cell, weight in weights:
            reduced[cell] = reduced.get(cell, 0) - times * weight
    for cell, factor in reduced.items():
        low, high = boxes.get(cell, known.boxes[cell])
        end = 0 if factor == 0 else low if factor > 0 else high
        if end is None:
            raise _FlawError(f"the proof uses a bound that {known.names[cell]} does not have")
        total += factor * end
    return total


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python verify.py CERTIFICATE [DIGEST]")
    outcome = verify_file(*sys.argv[1:])
    print(outcome)
    sys.exit(0 if outcome.holds else 1)
