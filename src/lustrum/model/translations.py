"""Texts of a dataset description in other languages, as the table ``translations`` gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lustrum.model.errors import DescriptionError
from lustrum.model.text import Label

TEXTS = frozenset({"label", "title", "description", "unit", "units", "reason"})
"""The keys whose texts are for people."""

_LEFT = ("translations", "shapes")
"""What holds no texts to translate."""

_LANGUAGE = re.compile(r"[a-z]{2,3}\Z")


def read_translations(raw: object) -> Mapping[str, Mapping[str, str]]:
    """For each language, what texts of the description are in it."""
    translations: dict[str, dict[str, str]] = {}
    for code, texts in _table(raw, "[translations]").items():
        where = f"[translations.{language_code(code)}]"
        language_texts = translations.setdefault(code, {})
        for text, said in _table(texts, where).items():
            if not isinstance(said, str) or not said.strip():
                raise DescriptionError(f"{where}: {text!r} needs a text in quotes.")
            language_texts[text] = said
    return translations


def language_code(code: str) -> str:
    if not _LANGUAGE.match(code):
        raise DescriptionError(f"{code!r} is no language; write a code such as 'en' or 'fr'.")
    return code


def labelled(raw: Any, translations: Mapping[str, Mapping[str, str]], key: str = "") -> Any:
    """A description whose texts for people know their translations; codes and names stay as they are."""
    if isinstance(raw, str):
        return with_translations(raw, translations) if key in TEXTS else raw
    if isinstance(raw, Mapping):
        return {
            name: value if name in _LEFT else labelled(value, translations, name)
            for name, value in raw.items()
        }
    if not isinstance(raw, Sequence):
        return raw
    if key == "codes":
        return [
            [pair[0], labelled(pair[1], translations, "label")]
            if isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2
            else pair
            for pair in raw
        ]
    return [labelled(value, translations) for value in raw]


def with_translations(text: str, translations: Mapping[str, Mapping[str, str]]) -> str:
    """The text as a label of all languages that it has been translated into."""
    others = {code: texts[text] for code, texts in translations.items() if text in texts}
    return Label(text, others) if others else text


def _table(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DescriptionError(f"{where} is missing or is not a table.")
    return value


def people_texts(raw: Any, key: str = "") -> set[str]:
    """All texts of a description that people read."""
    if isinstance(raw, str):
        return {raw} if key in TEXTS else set()
    if isinstance(raw, Mapping):
        parts = [people_texts(v, name) for name, v in raw.items() if name not in _LEFT]
    elif key == "codes":
        parts = [{pair[1]} for pair in raw if not isinstance(pair, str)]
    else:
        parts = [people_texts(v) for v in raw] if isinstance(raw, Sequence) else []
    return set().union(*parts)
