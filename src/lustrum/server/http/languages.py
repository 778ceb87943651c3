"""Languages: one file of translations each, and the language in the address.

English stands in the code; ``locales/de.po`` and ``locales/fr.po`` say the same in German and French, and
another file would add another language. A page in French has ``/fr`` in front of its address, so that a link
keeps its language and nothing has to be remembered about a visitor. Only the start page without a language goes
by what the browser prefers.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from babel import Locale
from babel.dates import format_date
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal, format_percent, get_decimal_symbol, get_group_symbol
from babel.support import NullTranslations, Translations

from lustrum.model.text import translated

LOCALES = Path(__file__).parent.parent / "locales"
ENGLISH = "en"
MOST_QUERY = 8 * 1024
MOST_PATH = 2 * 1024
_current: ContextVar[str] = ContextVar("lustrum_language", default=ENGLISH)
_here: ContextVar[str] = ContextVar("lustrum_here", default="/")


@dataclass(frozen=True, eq=False)
class Language:
    """A language with its translations, which are read when a sentence is first needed in it."""

    code: str
    file: Path | None = None

    @cached_property
    def translations(self) -> NullTranslations:
        """What its file says; English has none."""
        if self.file is None:
            return NullTranslations()
        compiled = io.BytesIO()
        with self.file.open("rb") as file:
            write_mo(compiled, read_po(file, locale=self.code))
        compiled.seek(0)
        return Translations(compiled)

    @property
    def name(self) -> str:
        """Its name in itself: ``English``, ``Deutsch``, ``Français``."""
        display_name = Locale.parse(self.code).get_display_name(self.code) or self.code
        return display_name[:1].upper() + display_name[1:]

    @property
    def prefix(self) -> str:
        return "" if self.code == ENGLISH else f"/{self.code}"

    def gettext(self, message: str) -> str:
        """A template in this language, or in English where it is not translated."""
        return str(self.translations.gettext(message)) if message else ""

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return str(self.translations.ngettext(msgid1, msgid2, n))

    @property
    def signs(self) -> tuple[str, str]:
        """What stands before decimals and between thousands."""
        return get_decimal_symbol(self.code), get_group_symbol(self.code)

    def date(self, day: date) -> str:
        return day.isoformat() if self.code == ENGLISH else format_date(day, "long", self.code)

    def number(self, value: float) -> str:
        return str(format_decimal(value, locale=self.code))

    def formatted(self, value: float, spec: str) -> str:
        """A number as a format of Python says, with the signs of this language: ``0,25``, ``20 %``."""
        if spec == ",":
            return self.number(value)
        if spec.endswith("%"):
            pattern = format_percent(0, locale=self.code).replace("0", "{}")
            return pattern.format(self.formatted(100 * value, f"{spec[:-1]}f"))
        return format(value, spec).replace(".", get_decimal_symbol(self.code))

    def say(self, text: object) -> Any:
        """A message of the other rooms in this language."""
        return translated(text, self)

    def at(self, path: str) -> str:
        # The start page names even English: without a language it goes by the browser.
        start = path.partition("?")[0] == "/" and len(languages()) > 1
        prefix = f"/{self.code}" if start else self.prefix
        return prefix + path if path.startswith("/") else path


@cache
def languages() -> Mapping[str, Language]:
    """All languages there are, English first."""
    others = {path.stem: Language(path.stem, path) for path in sorted(LOCALES.glob("*.po"))}
    return {ENGLISH: Language(ENGLISH), **others}


def current() -> Language:
    """The language of the request under way."""
    return languages()[_current.get()]


@contextmanager
def in_language(code: str, address: str) -> Iterator[None]:
    """While this holds, the request under way is in a language and was sent to an address."""
    tokens = _current.set(code), _here.set(address)
    try:
        yield
    finally:
        _current.reset(tokens[0])
        _here.reset(tokens[1])


def here() -> str:
    """The address of the request under way, without its language."""
    return _here.get()


# --- Headers that list what an asker prefers: ``Accept`` and ``Accept-Language``


def preferred(header: str) -> list[str]:
    """The entries of such a header in small letters, most wanted first; those of weight 0 are left out.

    >>> preferred("text/csv;q=0.5, application/json, text/html;q=0")
    ['application/json', 'text/csv']
    """
    ranked: list[tuple[float, str]] = []
    for entry in header.split(","):
        wanted, *parameters = (part.strip() for part in entry.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = float(parameter[2:])
                except ValueError:
                    weight = 0.0
        if wanted and weight > 0:
            ranked.append((-weight, wanted.lower()))
    return [wanted for _, wanted in sorted(ranked, key=lambda pair: pair[0])]
