"""The texts of the demo datasets in French, from ``files/french.toml``."""

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


def french(dataset: Description) -> tuple[tuple[str, str], ...]:
    """What is translated of a description and of its policy, in the order of the texts."""
    path = Path(__file__).parent / "files" / "french.toml"
    known: dict[str, str] = tomllib.loads(path.read_text(encoding="utf-8"))
    texts = people_texts(tomllib.loads(dataset.to_toml())) | set(POLICIES[dataset.name])
    found = ((text, known.get(text) or _range(text)) for text in sorted(texts))
    return tuple((text, said) for text, said in found if said)


def _range(text: str) -> str:
    """``15 to 19`` is ``15 à 19``."""
    numbers = _RANGE.match(text)
    if numbers is None:
        return ""
    return f"{numbers[1]} à {numbers[2]}" + (" salariés" if numbers[3] else "")
