"""A certificate as a document: knowledge, claims and proofs, all in whole numbers.

It holds only public facts: a certificate is made from :class:`~lustrum.audit.Knowledge`, which holds no
true value of an unpublished cell. The tables in it follow from those facts, so anybody could compute them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from lustrum.audit.certificate.exact import FactSystem, Leaf, Split, WitnessTable
from lustrum.audit.knowledge.facts import Knowledge

FORMAT, VERSION = "lustrum-certificate", 1
_EXACT = 2**53  # many readers of JSON round larger whole numbers


@dataclass(frozen=True)
class End:
    """One end of a cell's range and its proof.

    ``value`` is None where no bound is claimed. The table with number ``table`` reaches a sharp end. A
    sharp end without a value is infinite: ``ray`` leads beyond any number. ``proof`` is a branch tree, node
    after node, each split followed by its lower and then its upper side.
    """

    value: Fraction | None
    sharp: bool
    table: int | None = None
    ray: int | None = None
    proof: tuple[Leaf | Split, ...] = ()


@dataclass(frozen=True)
class Claim:
    """The range that is claimed for a cell, in units of ``10**-decimals``."""

    cell: int
    low: End
    high: End

    @property
    def sharp(self) -> bool:
        return self.low.sharp and self.high.sharp


@dataclass(frozen=True, eq=False)
class Certificate:
    """Claims about cells, with everything that is needed to check them."""

    system: FactSystem
    claims: tuple[Claim, ...]
    tables: tuple[WitnessTable, ...]
    rays: tuple[tuple[int, ...], ...] = ()

    def __repr__(self) -> str:
        sharp = sum(claim.sharp for claim in self.claims)
        return f"Certificate({len(self.claims)} cells, {sharp} sharp, {len(self.tables)} tables)"

    @cached_property
    def digest(self) -> str:
        """The digest of the knowledge that the claims follow from."""
        return _digest(_knowledge(self.system))

    def claim(self, name: str) -> Claim:
        return next(c for c in self.claims if self.system.names[c.cell] == name)

    def allows(self, values: Sequence[int]) -> bool:
        """Whether a table, such as the true one, satisfies all facts; only then do the bounds apply to it.

        The values are not stored: nothing of them enters the document.
        """
        return len(values) == len(self.system.names) and self.system.fits(
            WitnessTable(1, tuple(int(v) for v in values))
        )

    def to_mapping(self) -> dict[str, Any]:
        # Fixed cells are left out of the tables.
        shown = self.system.open
        tables = [
            {"over": _number(t.over), "values": _numbers(t.values[c] for c in shown)}
            for t in self.tables
        ]
        rays = [_numbers(ray[c] for c in shown) for ray in self.rays]
        claims = [{"cell": c.cell, "low": _end(c.low), "high": _end(c.high)} for c in self.claims]
        return {
            "format": FORMAT,
            "version": VERSION,
            "knowledge": _knowledge(self.system),
            "digests": {"knowledge": self.digest, "proofs": _digest([tables, rays, claims])},
            "tables": tables,
            "rays": rays,
            "claims": claims,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_mapping(), ensure_ascii=False, separators=(",", ":")) + "\n"

    def write(self, path: str | Path) -> None:
        Path(path).write_text(self.to_json(), encoding="utf-8")


def knowledge_digest(known: Knowledge) -> str:
    """The digest that a certificate about this knowledge must have.

    A reader who builds the knowledge from the published tables can check in this way that a certificate is
    about exactly these tables.

    >>> knowledge_digest(Knowledge.of(["x"]))[:14]
    'sha256:14dcc17'
    """
    return _digest(_knowledge(FactSystem.of(known)))


def _knowledge(system: FactSystem) -> dict[str, Any]:
    return {
        "whole": system.whole,
        "decimals": system.decimals,
        "cells": [
            {"name": name, "low": _optional_number(low), "high": _optional_number(high)}
            for name, (low, high) in zip(system.names, system.boxes, strict=True)
        ],
        "facts": [
            {"low": _optional_number(low), "high": _optional_number(high), "weights": _pairs(fact)}
            for fact, (low, high) in zip(system.facts, system.ends, strict=True)
        ],
    }


def _end(end: End) -> dict[str, Any]:
    value = None
    if end.value is not None:
        value = _number(end.value.numerator) if end.value.denominator == 1 else str(end.value)
    return {
        "value": value,
        "sharp": end.sharp,
        "table": end.table,
        "ray": end.ray,
        "proof": [_node(node) for node in end.proof],
    }


def _node(node: Leaf | Split) -> dict[str, Any]:
    if isinstance(node, Split):
        return {"split": node.cell, "at": _number(node.at)}
    shows = "empty" if node.empty else "bound"
    return {"shows": shows, "over": _number(node.over), "facts": _pairs(node.facts)}


def _pairs(pairs: Iterable[tuple[int, int]]) -> list[list[int | str]]:
    return [[index, _number(factor)] for index, factor in pairs]


def _number(value: int) -> int | str:
    return value if abs(value) < _EXACT else str(value)


def _numbers(values: Iterable[int]) -> list[int | str]:
    return [_number(v) for v in values]


def _optional_number(value: int | None) -> int | str | None:
    return None if value is None else _number(value)


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()
