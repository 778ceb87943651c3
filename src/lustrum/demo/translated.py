"""The texts of the demo datasets in French and German, from ``files/french.toml`` and ``files/german.toml``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from lustrum.demo.vocabulary import Description
from lustrum.model.translations import people_texts

_RANGE = re.compile(r"(\d+) to (\d+)( employees)?\Z")

POLICIES = {
    "demo": ("Demo census, public tables", "Synthetic people: any likeness is chance."),
    "businesses": (
        "Demo business register, public tables",
        "Synthetic businesses: any likeness is chance.",
    ),
    "survey": (
        "Demo labour force survey, public tables",
        "Synthetic respondents: any likeness is chance.",
    ),
}
"""Titles and notes of the demo policies."""


_FILES = {"fr": "french.toml", "de": "german.toml"}
_RANGES = {"fr": ("{} à {}", " salariés"), "de": ("{} bis {}", " Beschäftigte")}


def translations(dataset: Description) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """For each language, what is translated of a description and of its policy, in the order of the texts."""
    texts = people_texts(tomllib.loads(dataset.to_toml())) | set(POLICIES[dataset.name])
    return tuple((code, _translated(code, texts)) for code in _FILES)


def _translated(code: str, texts: set[str]) -> tuple[tuple[str, str], ...]:
    path = Path(__file__).parent / "files" / _FILES[code]
    known: dict[str, str] = tomllib.loads(path.read_text(encoding="utf-8"))
    pairs = ((text, known.get(text) or _range(text, code)) for text in sorted(texts))
    return tuple((text, said) for text, said in pairs if said)


def _range(text: str, code: str) -> str:
    """``15 to 19`` is ``15 à 19`` in French."""
    numbers = _RANGE.match(text)
    if numbers is None:
        return ""
    template, employees = _RANGES[code]
    return template.format(numbers[1], numbers[2]) + (employees if numbers[3] else "")
