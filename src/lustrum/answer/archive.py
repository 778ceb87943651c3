"""A decision as text, and back: what was let out, with all that a page or a file needs to show it again.

Nothing confidential is in it: a decision holds protected values, public bounds and sentences. The channel is
left out, since the method's words say it. A digest goes with it: a damaged answer is never shown.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from lustrum.audit.grids import EMPTY, HIDDEN
from lustrum.model import (
    AttackerFigures,
    Category,
    CellStatus,
    Decision,
    DescribedStatistic,
    InputError,
    Reason,
    Release,
    SizeFigures,
    SumFigures,
    TableAxis,
    TableQuery,
    TraceStep,
    Verdict,
)
from lustrum.model.arrays import Ints
from lustrum.model.text import Label, Message

FORMAT = 7


def write_decision(decision: Decision) -> str:
    """The decision as JSON, with the digest of its text."""
    release = decision.release
    inner = json.dumps(
        {
            "query": decision.query.to_mapping(),
            "verdict": decision.verdict.value,
            "reasons": [_texts(reason) for reason in decision.reasons],
            "trace": [_texts(step) for step in decision.trace],
            "risk_before": decision.risk_before,
            "risk_after": decision.risk_after,
            "utility": decision.utility,
            "sums": [asdict(figures) for figures in decision.sums],
            "release": None if release is None else _release(release),
        },
        ensure_ascii=False,
    )
    return json.dumps(
        {"format": FORMAT, "digest": _digest(inner), "decision": inner}, ensure_ascii=False
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read_decision(text: str) -> Decision:
    """The decision that was written; a clear error where another version wrote it, or it is damaged."""
    damaged = InputError("The answer that was kept is damaged; ask again.")
    try:
        archived = json.loads(text)
        written, inner, digest = (
            archived["format"],
            archived.get("decision"),
            archived.get("digest"),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise damaged from None
    if written != FORMAT:
        raise InputError("The answer was kept by another version of Lustrum; ask again.")
    if not isinstance(inner, str) or digest != _digest(inner):
        raise damaged
    raw = json.loads(inner)
    return Decision(
        query=TableQuery.from_mapping(raw["query"]),
        verdict=Verdict(raw["verdict"]),
        reasons=tuple(Reason(*map(_said, texts)) for texts in raw["reasons"]),
        trace=tuple(TraceStep(*map(_said, texts)) for texts in raw["trace"]),
        risk_before=raw["risk_before"],
        risk_after=raw["risk_after"],
        utility=raw["utility"],
        sums=tuple(_sum_figures(figures) for figures in raw["sums"]),
        release=None if raw["release"] is None else _read_release(raw["release"]),
    )


class ShownCounts(NamedTuple):
    """The counts that a table shows, without its words."""

    names: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]
    numbers: Ints
    """``HIDDEN`` where none is shown, ``EMPTY`` where nobody can be."""


def shown_counts(text: bytes) -> ShownCounts | None:
    """The counts of a decision that was written, of which the digest was checked; None if it shows others."""
    archived = json.loads(text)
    raw = json.loads(archived["decision"])["release"] if archived["format"] == FORMAT else None
    if raw is None or raw["statistics"] or raw["decimals"]:
        return None
    codes = tuple(tuple(category[0] for category in axis[2]) for axis in raw["axes"])
    shape = tuple(map(len, codes))
    numbers = _unpacked(raw["published"], shape)
    if raw["status"] is not None:
        shown = np.array(raw["status"]).reshape(shape) == CellStatus.FREE.value
        numbers = np.where(shown, numbers, HIDDEN)
    if raw["structural"] is not None:
        numbers = np.where(_unpacked(raw["structural"], shape) > 0, EMPTY, numbers)
    return ShownCounts(tuple(axis[0] for axis in raw["axes"]), codes, numbers)


def _texts(record: Reason | TraceStep) -> list[Any]:
    return [_text(value) for value in vars(record).values()]


def _sum_figures(figures: Mapping[str, Any]) -> SumFigures:
    parts = {
        "attackers": tuple(AttackerFigures(**fields) for fields in figures["attackers"]),
        "errors": tuple(SizeFigures(**fields) for fields in figures["errors"]),
    }
    return SumFigures(**{**figures, **parts})


def _release(release: Release) -> dict[str, Any]:
    return {
        "axes": [
            [
                axis.name,
                _text(axis.label),
                [[c.code, _text(c.label), list(c.members), _text(c.note)] for c in axis.categories],
            ]
            for axis in release.axes
        ],
        "published": _packed(release.numbers),
        "low": None if release.least is None else _packed(release.least),
        "high": None if release.most is None else _packed(release.most),
        "status": release.status.ravel().tolist() if not release.shown.all() else None,
        "method": dict(release.method),
        "errors": None if release.errors is None else _packed(release.errors),
        "grades": None if release.grades is None else release.grades.ravel().tolist(),
        "decimals": release.decimals,
        "unit": _text(release.unit),
        "notes": [_text(note) for note in release.notes],
        "label": _text(release.label),
        "additive": release.additive,
        "margin": release.margin,
        "margins": None if release.margins is None else _packed(release.margins),
        "undefined": None
        if release.undefined is None or not release.undefined.any()
        else _packed(release.undefined.astype(np.int64)),
        "structural": None
        if release.structural is None
        else _packed(release.structural.astype(np.int64)),
        "statistics": [
            [s.code, _text(s.label), _text(s.unit), s.decimals] for s in release.statistics
        ],
    }


def _read_release(raw: Mapping[str, Any]) -> Release:
    axes = tuple(
        TableAxis(
            name,
            _said(label),
            tuple(
                Category(c, _said(text), tuple(m), _said(note)) for c, text, m, note in categories
            ),
        )
        for name, label, categories in raw["axes"]
    )
    shape = tuple(len(axis) for axis in axes)
    letters = raw["status"]
    return Release(
        axes=axes,
        numbers=_unpacked(raw["published"], shape),
        least=None if raw["low"] is None else _unpacked(raw["low"], shape),
        most=None if raw["high"] is None else _unpacked(raw["high"], shape),
        status=np.full(shape, "F") if letters is None else np.array(letters).reshape(shape),
        errors=None if raw.get("errors") is None else _unpacked(raw["errors"], shape),
        grades=None if raw.get("grades") is None else np.array(raw["grades"]).reshape(shape),
        method=raw["method"],
        decimals=raw["decimals"],
        unit=_said(raw["unit"]),
        notes=tuple(_said(note) for note in raw["notes"]),
        label=_said(raw["label"]),
        additive=raw["additive"],
        margin=raw["margin"],
        margins=None if raw["margins"] is None else _unpacked(raw["margins"], shape),
        undefined=None
        if raw["undefined"] is None
        else _unpacked(raw["undefined"], shape).astype(np.bool_),
        structural=None
        if raw["structural"] is None
        else _unpacked(raw["structural"], shape).astype(np.bool_),
        statistics=tuple(
            DescribedStatistic(code, _said(label), _said(unit), decimals)
            for code, label, unit, decimals in raw["statistics"]
        ),
    )


def _packed(values: Ints) -> str:
    return base64.b64encode(zlib.compress(values.astype("<i8").tobytes(), 1)).decode("ascii")


def _unpacked(text: str, shape: Sequence[int]) -> Ints:
    raw = zlib.decompress(base64.b64decode(text))
    return np.frombuffer(raw, dtype="<i8").astype(np.int64).reshape(tuple(shape))


def _text(text: Any) -> Any:
    """A message keeps its template and a label its translations, so that they can still be translated."""
    if isinstance(text, Label):
        return {"label": str(text), "others": dict(text.others)}
    if not isinstance(text, Message):
        return text
    values = {name: _text(value) for name, value in text.values.items()}
    fields = {"say": text.template, "values": values, "many": text.plural, "number": text.number}
    return {**fields, "inside": True} if text.inside else fields


def _said(raw: Any) -> Any:
    if not isinstance(raw, dict):
        return raw
    if "label" in raw:
        return Label(raw["label"], raw["others"])
    values = {name: _said(value) for name, value in raw["values"].items()}
    return Message(raw["say"], values, raw["many"], raw["number"], raw.get("inside", False))
