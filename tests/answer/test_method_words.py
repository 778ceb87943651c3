"""Step 2 of an answer says what the parameters of its method mean."""

from __future__ import annotations

from gettext import NullTranslations
from typing import Any

import pytest

from lustrum.answer.method_words import protected_by
from lustrum.model.plugins import load, names
from lustrum.server.http.languages import languages

NEEDED: dict[str, dict[str, Any]] = {
    "post-randomisation": {"variable": "a"},
    "differential-privacy": {"epsilon": 1.0},
    "stratified-sampling": {"by": ("a",)},
}
"""Parameters that have no default."""


def test_the_default_method_is_said_in_sentences_for_readers() -> None:
    method = {"method": "protected-population", "base": 3, "cells": "small", "empty_share": 0.1}
    text = protected_by([method])
    assert text == (
        "All tables are counted from one protected population. Every combination of all variables shows "
        "0, 3 or a multiple of it. Only combinations below that number are moved. In a first release, "
        "at least 10% of the combinations that show the smallest number above 0 hold nobody."
    )
    french = languages()["fr"].say(text)
    assert "au moins 10\u202f% des combinaisons" in french.replace("\u00a0", "\u202f")
    assert "empty_share" not in text + french


def test_steps_before_counting_come_first_and_every_method_once() -> None:
    before = {"method": "record-swapping", "rate": 0.05, "level": None, "profiles": []}
    counts = {"method": "random-rounding", "base": 5, "before": [before]}
    text = protected_by([counts, counts, {**counts, "weights": "means of classes"}])
    assert text == (
        "Some households trade places with others like them. The share of households that move: 0.05. "
        "Every number is rounded at random. Numbers are published as multiples of this: 5."
    )


def test_a_method_from_elsewhere_shows_its_own_words() -> None:
    method = {"method": "theirs", "steps": 4, "clamp": True, "list": [1, 2]}
    assert protected_by([method]) == "Method: theirs. steps: 4. clamp: yes. list: 1, 2."


@pytest.mark.parametrize("name", names("lustrum.methods"))
def test_no_parameter_of_a_built_in_method_shows_its_name(name: str) -> None:
    spec: Any = load("lustrum.methods", name)(**NEEDED.get(name, {}))
    words = spec.to_mapping()
    text = str(protected_by([words]))
    assert text.startswith(f"Method: {name}.") or name not in text
    for key, value in words.items():
        if key not in ("method", "before") and value not in (None, [], ()):
            assert f". {key}: " not in text, key


def test_every_sentence_has_a_translation() -> None:
    class Asked(NullTranslations):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def gettext(self, message: str) -> str:
            self.seen.append(message)
            return message

    asked = Asked()
    text = protected_by([{"method": "protected-magnitudes", "p": 5.0, "existence": "secret"}])
    text.said(asked)
    french = languages()["fr"]
    plain = [m for m in asked.seen if "{" not in m and m != "secret"]
    assert plain
    for message in plain:
        assert french.gettext(message) != message
