"""PX, version 2013: the files of PC-Axis and PxWeb, which pyaxis reads.

A suppressed cell is ``".."``, whose meaning stands in ``DATASYMBOL2``, and a number that does not exist is
``"."``; neither is ever 0. Texts of PX hold no quotation mark and no end of a line: the first becomes ``”``,
the second ``#`` in a note and a blank elsewhere. Where two codes would become one, the later one gets a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from lustrum._version import __version__
from lustrum.formats.about import NOTHING, About
from lustrum.formats.cell_text import numbers
from lustrum.model import CellStatus, Release, TableAxis
from lustrum.model.release import check_publishable

HIDDEN, NO_VALUE = '".."', '"."'
_LONGEST = 250  # letters of a text that stand in one line
_EMPTY = "\u00a0"
_TIMES = re.compile(r"(year|time|period|quarter|month|week|jahr|année|tid)s?\b", re.IGNORECASE)
_SCALES = {
    "A1": re.compile(r"\d{4}"),
    "H1": re.compile(r"\d{4}H[12]"),
    "Q1": re.compile(r"\d{4}-?[QK][1-4]"),
    "M1": re.compile(r"\d{4}-?M(0[1-9]|1[0-2])"),
    "W1": re.compile(r"\d{4}-?[WU][0-5]\d"),
}


def time_scale(axis: TableAxis) -> str:
    """The scale of a variable of periods: ``A1`` for years, ``Q1`` quarters and so on; empty where it has none.

    >>> time_scale(TableAxis.plain("year", ["2023", "2024"])), time_scale(TableAxis.plain("area", ["2023"]))
    ('A1', '')
    """
    if not (_TIMES.match(axis.name) or _TIMES.match(axis.label)):
        return ""
    fits = (s for s, form in _SCALES.items() if all(form.fullmatch(c) for c in axis.codes))
    return next(fits, "")


class Px:
    """Writes PX. The last variable, or those named in ``heading``, stand across and the others down."""

    name: ClassVar[str] = "px"
    title: ClassVar[str] = "PX (PxWeb)"
    media_type: ClassVar[str] = "application/x-pc-axis"
    ending: ClassVar[str] = "px"
    tells_about: ClassVar[bool] = True

    def __init__(self, *, heading: Sequence[str] | None = None, language: str = "en") -> None:
        self.heading, self.language = heading, language

    def write(self, release: Release, label: str = "", about: About = NOTHING) -> str:
        """The release as text, in UTF-8 as its ``CODEPAGE`` says."""
        check_publishable(release, "A PX file")
        return "".join(f"{line}\n" for line in self._lines(about.beside(release), label, about))

    def _lines(self, release: Release, label: str, about: About) -> Iterator[str]:
        if not release.axes:
            every = TableAxis.plain("all", ["_T"], ["Total"])
            arrays = release.each_array(lambda array: array.reshape(1))
            release = replace(release, axes=(every,), **arrays)
        heading = [release.axes[-1].name] if self.heading is None else list(self.heading)
        order = [i for i, axis in enumerate(release.axes) if axis.name not in heading]
        across = len(release.axes) - len(order)
        order += [i for i, axis in enumerate(release.axes) if axis.name in heading]
        statistic = release.axes[-1].name if release.statistics else ""
        called = dict(
            zip(
                (axis.name for axis in release.axes),
                _distinct(axis.label for axis in release.axes),
                strict=True,
            )
        )
        turned = [release.axes[i] for i in order]
        stub, head = turned[: len(order) - across], turned[len(order) - across :]
        contents = release.label or release.unit or "Count"
        title = label or " by ".join(axis.label for axis in release.axes)
        yield 'CHARSET="ANSI";'
        yield 'AXIS-VERSION="2013";'
        yield 'CODEPAGE="utf-8";'
        yield f'LANGUAGE="{self.language}";'
        if about.date:
            yield f'CREATION-DATE="{about.date.replace("-", "")} 00:00";'
        if about.updated:
            yield f'LAST-UPDATED="{about.updated.replace("-", "")} 00:00";'
        yield f"DECIMALS={release.decimals};"
        yield f"SHOWDECIMALS={release.decimals};"
        yield _said("MATRIX", re.sub(r"\W", "", about.dataset)[:20] or "table")
        yield 'SUBJECT-CODE="";'.replace('""', '"-"')
        yield _said("SUBJECT-AREA", about.dataset or "-")
        yield _said("DESCRIPTION", title)
        yield _said("TITLE", title)
        yield _said("CONTENTS", contents)
        yield _said("UNITS", release.unit or contents)
        for keyword, axes in (("STUB", stub), ("HEADING", head)):
            if axes:
                yield _listed(keyword, [called[axis.name] for axis in axes])
        if statistic:
            yield _said("CONTVARIABLE", called[statistic])
        for axis in turned:
            yield _listed(f'VALUES("{called[axis.name]}")', _distinct(axis.labels))
        for axis in turned:
            scale = time_scale(axis)
            if scale:
                codes = ",".join(f'"{code}"' for code in axis.codes)
                yield f'TIMEVAL("{called[axis.name]}")=TLIST({scale}),{codes};'
        for axis in turned:
            yield _listed(f'CODES("{called[axis.name]}")', _distinct(axis.codes))
        for axis in turned:
            yield _said(f'VARIABLECODE("{called[axis.name]}")', axis.name)
        if statistic:
            names = _distinct(release.axes[-1].labels)
            for name, one in zip(names, release.statistics, strict=True):
                yield _said(f'UNITS("{name}")', one.unit or one.label)
                yield f'PRECISION("{called[statistic]}","{name}")={one.decimals};'
        yield _said("SOURCE", about.dataset or "-")
        yield _said("DATASYMBOL1", "does not exist, since the number to divide by is 0; not zero")
        reasons = sorted({str(s) for s in np.unique(release.status)} - {CellStatus.FREE.value})
        why = "; ".join(str(CellStatus(letter).meaning) for letter in reasons) or "not shown"
        yield _said("DATASYMBOL2", f"{why}; not zero")
        notes = "\n".join(f"{name}: {value}" for name, value in about.lines(release, label))
        yield _said("NOTE", notes)
        for axis in turned:
            for value, category in zip(_distinct(axis.labels), axis.categories, strict=True):
                if category.note:
                    yield _said(f'VALUENOTE("{called[axis.name]}","{value}")', category.note)
        yield f'INFO="Lustrum {__version__}";'
        yield "DATA="
        cells = _cells(release).transpose(order)
        width = int(np.prod([len(axis) for axis in head], dtype=int))
        for row in cells.reshape(-1, max(width, 1)).tolist() if cells.size else ():
            yield f"{' '.join(row)} "
        yield ";"


def _cells(release: Release) -> np.ndarray[tuple[int, ...], np.dtype[np.object_]]:
    texts = np.array(
        numbers(release, release.numbers, release.known, 0, release.numbers.size), dtype=object
    ).reshape(release.shape)
    texts[~release.shown] = HIDDEN
    texts[release.shown & ~release.known] = NO_VALUE
    return texts


def _distinct(texts: Iterable[str]) -> list[str]:
    """Texts as PX has them, none of them twice."""
    seen: set[str] = set()
    out = []
    for text in map(_plain, texts):
        name, number = text, 2
        while name in seen:
            name, number = f"{text} ({number})", number + 1
        seen.add(name)
        out.append(name)
    return out


def _plain(text: str, line: str = " ") -> str:
    """A text without what would end it; ``DATA=`` inside would be taken for the beginning of the cells."""
    joined = line.join(str(text).splitlines()).replace('"', "\u201d").replace("DATA=", "DATA =")
    return joined.strip(" ") or _EMPTY


def _said(keyword: str, text: str) -> str:
    """A keyword with one text, which a long one continues on further lines."""
    plain = _plain(text, "#")
    parts = [plain[i : i + _LONGEST] for i in range(0, len(plain), _LONGEST)]
    return f"{keyword}=" + "\n".join(f'"{part}"' for part in parts) + ";"


def _listed(keyword: str, texts: Sequence[str]) -> str:
    """A keyword with a list of texts, cut into lines between them."""
    return f"{keyword}=" + ",\n".join(f'"{text}"' for text in texts) + ";"
