"""JSON-stat 2.0: a released table as a ``dataset`` that pyjstat and jsonstat-toolkit read.

A suppressed cell is ``null`` with its status letter, never 0. Several statistics are a dimension with the role
``metric``, whose categories have units and decimals.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

import numpy as np

from lustrum.formats.about import NOTHING, About
from lustrum.formats.px import time_scale
from lustrum.model import CellStatus, Release
from lustrum.model.arrays import Ints, Mask
from lustrum.model.release import check_publishable
from lustrum.model.text import say


class JsonStat:
    """Writes JSON-stat 2.0."""

    name: ClassVar[str] = "json-stat"
    media_type: ClassVar[str] = "application/json"
    ending: ClassVar[str] = "json"
    title: ClassVar[str] = say("JSON-stat")
    cell_bytes: ClassVar[int] = 300
    tells_about: ClassVar[bool] = True

    def write(self, release: Release, label: str = "", about: About = NOTHING) -> str:
        out = dataset(release, label)
        selection = {axis.name: axis.labels[0] for axis in about.selection}
        said = {"selection": selection, "dataset": about.dataset, "version": about.version}
        said |= {"asked_for_on": about.date, "address": about.link}
        out["extension"] |= {name: value for name, value in said.items() if value}
        if about.dataset:
            out["source"] = about.dataset
        if about.updated:
            out["updated"] = f"{about.updated}T00:00:00Z"
        areas = [name for name in out["id"] if name in about.areas]
        if areas:
            out["role"] = out.get("role", {}) | {"geo": areas}
        return json.dumps(out, ensure_ascii=False)


def dataset(release: Release, label: str = "") -> dict[str, Any]:
    """The release as a JSON-stat dataset object."""
    check_publishable(release, "A JSON-stat file")
    shown = release.known.ravel()
    values = _plain(release, release.numbers)
    out: dict[str, Any] = {
        "version": "2.0",
        "class": "dataset",
        "label": label or " by ".join(axis.label for axis in release.axes),
        "note": list(release.notes),
        "id": [axis.name for axis in release.axes],
        "size": list(release.shape),
        "dimension": {
            axis.name: {
                "label": axis.label,
                "category": {
                    "index": list(axis.codes),
                    "label": dict(zip(axis.codes, axis.labels, strict=True)),
                },
            }
            for axis in release.axes
        },
        "value": _where(shown, values),
        "extension": {"protection": dict(release.method), "unit": release.unit},
    }
    for axis in release.axes:
        held = {c.code: [c.note] for c in axis.categories if c.note}
        if held:
            out["dimension"][axis.name]["category"]["note"] = held
    if release.label:
        out["extension"] |= {"statistic": release.label, "decimals": release.decimals}
    if release.statistics:
        name = release.axes[-1].name
        out["role"] = {"metric": [name]}
        out["dimension"][name]["category"]["unit"] = {
            s.code: {"label": s.unit, "decimals": s.decimals} for s in release.statistics
        }
    times = [axis.name for axis in release.axes if time_scale(axis)]
    if times:
        out["role"] = out.get("role", {}) | {"time": times}
    if not np.all(release.shown):
        status = release.status.ravel().tolist()
        out["status"] = status
        letters = sorted(set(status))
        out["extension"]["status"] = {s: CellStatus(s).meaning for s in letters}
    if release.errors is not None and release.grades is not None:
        there = shown & (release.errors.ravel() >= 0)
        out["extension"]["standard_error"] = _where(there, _plain(release, release.errors))
        out["extension"]["reliability"] = _where(there, release.grades.ravel().tolist())
    if release.margin is not None:
        out["extension"]["margin"] = release.margin / 10**release.decimals
    elif release.margins is not None:
        there = shown & (release.margins.ravel() >= 0)
        out["extension"]["margin"] = _where(there, _plain(release, release.margins))
    if release.stated.any() and release.least is not None and release.most is not None:
        ends = [_plain(release, release.least), _plain(release, release.most)]
        stated = release.stated.ravel()
        out["extension"]["interval"] = {
            name: _where(stated, end) for name, end in zip(("low", "high"), ends, strict=True)
        }
    return out


def _where(there: Mask, values: list[Any]) -> list[Any]:
    """The values, and nothing in place of those that are not there."""
    if there.all():
        return values
    return [v if is_there else None for v, is_there in zip(values, there.tolist(), strict=True)]


def _plain(release: Release, values: Ints) -> list[float | None]:
    """The values as numbers, each with the decimals of its statistic; those without decimals are whole."""
    flat = values.ravel()
    many = max(len(release.statistics), 1)
    out: list[float | None] = [None] * flat.size
    for index in range(many):
        decimals = release.decimals_at(index)
        whole = flat[index::many] // 10 ** (release.decimals - decimals)
        out[index::many] = (whole / 10**decimals if decimals else whole).tolist()
    return out
