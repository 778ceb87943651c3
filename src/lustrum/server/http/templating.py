"""Pages from templates: everything is escaped, and a name that is missing is an error.

In a template ``_("...")`` is a sentence to translate, ``text | said`` a message of another room in the language
of the request, ``text | named`` one made of labels, in the language that these have on the page,
``at("/...")`` an address in that language, ``value | number`` a number with grouped digits and
``value | figure(".2f")`` one in a format of Python with the decimal sign of the language. Every page knows its
own address, ``here``, so that it can link to itself in the other languages.
"""

from __future__ import annotations

import hashlib
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lustrum._version import __version__
from lustrum.model import Dataset
from lustrum.server.http.languages import ENGLISH, Language, current, here, languages

_labels: ContextVar[Language] = ContextVar("lustrum_labels", default=languages()[ENGLISH])
_HERE = Path(__file__).parent.parent
STATIC = _HERE / "static"
DESIGN = _HERE.parent / "design"
"""Files that pages load: those of the server, and those that it shares with the agency's own pages."""


class Pages:
    """Renders the templates of this package."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.i18n"],
        )
        # The language belongs to the request, so these ask for it each time they are called.
        self._environment.install_gettext_callables(  # type: ignore[attr-defined]
            lambda message: current().gettext(message),
            lambda one, many, n: current().ngettext(one, many, n),
            newstyle=True,
        )
        self._environment.filters["said"] = lambda text: current().say(text)
        self._environment.filters["number"] = lambda value: current().number(value)
        self._environment.filters["figure"] = lambda value, spec: current().formatted(value, spec)
        # Labels are in the language of the dataset where they have no translation into that of the page.
        self._environment.filters["named"] = lambda text: _labels.get().say(text)
        self._environment.globals["own_words"] = lambda: (
            ""
            if _labels.get().code == current().code
            else Markup(' lang="{}"').format(_labels.get().code)
        )
        self._environment.globals["at"] = lambda path: current().at(path)
        # An address that changes with the file lets a browser keep the file for long.
        self._environment.globals["asset"] = {
            path.name: f"/static/{path.name}?v={hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
            for folder in (STATIC, DESIGN)
            for path in sorted(folder.iterdir())
        }

    def render(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        known = {"language": current(), "languages": languages(), "version": __version__}
        before = _labels.set(labels_language(values.get("dataset")))
        try:
            text = self._environment.get_template(template).render(
                {**known, "here": here(), **values}
            )
        finally:
            _labels.reset(before)
        return HTMLResponse(text, status_code=status)


def labels_language(dataset: Dataset | None) -> Language:
    """The language in which the labels of a dataset stand on a page: that of the page, or their own.

    A title is made of labels, so it is wholly in that language.
    """
    page = current()
    if dataset is None or page.code in (dataset.language, *dataset.translations):
        return page
    return languages().get(dataset.language) or Language(dataset.language)
