"""HTML: one page without scripts that a browser, a word processor and a reader of screens can take in."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import product
from typing import ClassVar, Literal

import numpy as np

from lustrum.formats.about import NOTHING, About
from lustrum.formats.cell_text import NO_NUMBER, numbers
from lustrum.model import Release, TableAxis
from lustrum.model.hierarchy import Category
from lustrum.model.release import check_publishable

Shown = Literal["labels", "codes", "both"]


class Html:
    """Writes a page: the last variable across, the others down, with a caption, headings and notes.

    A suppressed cell is its status letter, a number that does not exist a dash; a list below explains both.
    ``show`` has labels, codes or both beside the numbers.
    """

    name: ClassVar[str] = "html"
    title: ClassVar[str] = "HTML"
    media_type: ClassVar[str] = "text/html"
    ending: ClassVar[str] = "html"
    tells_about: ClassVar[bool] = True

    def __init__(self, *, show: Shown = "labels") -> None:
        self.show = show

    def write(self, release: Release, label: str = "", about: About = NOTHING) -> str:
        check_publishable(release, "An HTML page")
        return "".join(self._parts(about.beside(release), label, about))

    def _parts(self, release: Release, label: str, about: About) -> Iterator[str]:
        title = escape(label or " by ".join(axis.label for axis in release.axes) or "Table")
        style = "th,td{padding:.1em .6em;text-align:right}thead th,tbody th{text-align:left}"
        yield '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        yield f"<title>{title}</title><style>{style}</style></head>\n<body><table>"
        yield f"<caption>{title}</caption>\n"
        *down, across = release.axes or (TableAxis.plain("all", ["_T"], ["Total"]),)
        names = "".join(f'<th scope="col">{escape(axis.label)}</th>' for axis in down)
        heads = "".join(f'<th scope="col">{self._name(c)}</th>' for c in across.categories)
        yield f"<thead><tr>{names}{heads}</tr></thead>\n<tbody>\n"
        width = max(len(across), 1)
        known, shown, status = release.known.ravel(), release.shown.ravel(), release.status.ravel()
        for row, categories in enumerate(product(*(axis.categories for axis in down))):
            low, high = row * width, row * width + len(across)
            texts = np.array(numbers(release, release.numbers, release.known, low, high), object)
            texts[~shown[low:high]] = status[low:high][~shown[low:high]]
            texts[shown[low:high] & ~known[low:high]] = NO_NUMBER
            stubs = "".join(f'<th scope="row">{self._name(c)}</th>' for c in categories)
            yield f"<tr>{stubs}{''.join(f'<td>{text}</td>' for text in texts)}</tr>\n"
        yield "</tbody></table>\n<dl>\n"
        for name, value in about.lines(release, label):
            yield f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>\n"
        yield "</dl></body></html>\n"

    def _name(self, category: Category) -> str:
        words = {"labels": category.label, "codes": category.code}
        return escape(words.get(self.show, f"{category.code} {category.label}"))
