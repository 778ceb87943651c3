"""Languages: one file of translations each, and the language in the address.

English stands in the code; ``locales/de.po`` and ``locales/fr.po`` say the same in German and French, and
another file would add another language. A page in French has ``/fr`` in front of its address, so that a link
keeps its language and nothing has to be remembered about a visitor. Only the start page without a language goes
by what the browser prefers.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from babel import Locale
from babel.dates import format_date
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal, format_percent, get_decimal_symbol, get_group_symbol
from babel.support import NullTranslations, Translations
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from lustrum.model.text import translated
from lustrum.server.http.accept import preferred

LOCALES = Path(__file__).parent.parent / "locales"
ENGLISH = "en"
MOST_QUERY = 8 * 1024
MOST_PATH = 2 * 1024
_current: ContextVar[str] = ContextVar("lustrum_language", default=ENGLISH)
_here: ContextVar[str] = ContextVar("lustrum_here", default="/")


@dataclass(frozen=True, eq=False)
class Language:
    """A language with its translations."""

    code: str
    translations: Any

    @property
    def name(self) -> str:
        """Its name in itself: ``English``, ``Deutsch``, ``Français``."""
        display_name = Locale.parse(self.code).get_display_name(self.code) or self.code
        return display_name[:1].upper() + display_name[1:]

    @property
    def prefix(self) -> str:
        """What stands in front of its addresses."""
        return "" if self.code == ENGLISH else f"/{self.code}"

    def gettext(self, message: str) -> str:
        """A template in this language, or in English where it is not translated."""
        return str(self.translations.gettext(message)) if message else ""

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        """A template for a number."""
        return str(self.translations.ngettext(msgid1, msgid2, n))

    @property
    def signs(self) -> tuple[str, str]:
        """What stands before decimals and between thousands."""
        return get_decimal_symbol(self.code), get_group_symbol(self.code)

    def date(self, day: date) -> str:
        """A day: ``17. November 2026`` in German; ``2026-11-17`` in English, which means one day everywhere."""
        return day.isoformat() if self.code == ENGLISH else format_date(day, "long", self.code)

    def number(self, value: float) -> str:
        """A number with its digits grouped."""
        return str(format_decimal(value, locale=self.code))

    def formatted(self, value: Any, spec: str) -> str:
        """A number as a format of Python says, with the signs of this language: ``0,25``, ``20 %``."""
        if spec == ",":
            return self.number(value)
        if spec.endswith("%"):
            pattern = format_percent(0, locale=self.code).replace("0", "{}")
            return pattern.format(self.formatted(100 * value, f"{spec[:-1]}f"))
        return format(value, spec).replace(".", get_decimal_symbol(self.code))

    def say(self, text: Any) -> Any:
        """A message of the other rooms in this language."""
        return translated(text, self)

    def at(self, path: str) -> str:
        """An address of this server in this language."""
        # The start page names even English: without a language it goes by the browser.
        start = path.partition("?")[0] == "/" and len(languages()) > 1
        prefix = f"/{self.code}" if start else self.prefix
        return prefix + path if path.startswith("/") else path


@cache
def languages() -> Mapping[str, Language]:
    """All languages there are, English first."""
    by_code = {ENGLISH: Language(ENGLISH, NullTranslations())}
    for path in sorted(LOCALES.glob("*.po")):
        with path.open("rb") as file:
            catalogue = read_po(file, locale=path.stem)
        compiled = io.BytesIO()
        write_mo(compiled, catalogue)
        compiled.seek(0)
        by_code[path.stem] = Language(path.stem, Translations(compiled))
    return by_code


def current() -> Language:
    """The language of the request under way."""
    return languages()[_current.get()]


def here() -> str:
    """The address of the request under way, without its language."""
    return _here.get()


class LanguagePrefix:
    """Takes the language out of the address; the start page goes by what the browser prefers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on in its language."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path: str = scope["path"]
        code, rest = _split(path)
        if path == "/" and not scope["query_string"]:
            wanted = _preferred(Headers(scope=scope).get("accept-language", ""))
            if wanted != ENGLISH:
                other = RedirectResponse(
                    f"/{wanted}/", status_code=307, headers={"Vary": "Accept-Language"}
                )
                await other(scope, receive, send)
                return
        tokens = _current.set(code), _here.set(_address(rest, scope["query_string"]))
        try:
            if rest != path:
                scope = {**scope, "path": rest, "raw_path": quote(rest).encode()}
            await self.app(scope, receive, send)
        finally:
            _current.reset(tokens[0])
            _here.reset(tokens[1])


def _address(path: str, query: bytes) -> str:
    """An address on this server: two slashes at its beginning would name another one."""
    local_path = "/" + quote(path.lstrip("/")) if len(path) <= MOST_PATH else "/"
    return (
        f"{local_path}?{query.decode('latin-1')}"
        if query and len(query) <= MOST_QUERY
        else local_path
    )


def _split(path: str) -> tuple[str, str]:
    head, _, rest = path[1:].partition("/")
    if head in languages():
        return head, f"/{rest}"
    return ENGLISH, path


def _preferred(header: str) -> str:
    """The first language of an ``Accept-Language`` header that there is."""
    tags = (tag.partition("-")[0] for tag in preferred(header))
    return next((tag for tag in tags if tag in languages()), ENGLISH)
