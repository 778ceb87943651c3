"""What an own group holds, in words: its categories, those of numbers that follow each other as one range."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lustrum.model.text import Label, listed, say

_NUMBERS = re.compile(r"(\d+)(?: to (\d+)|( and over))?\Z")


def in_words(places: Sequence[int], labels: Sequence[str]) -> str:
    """The categories at some places of a classification, by their labels.

    >>> in_words([0, 1, 2, 5], ["0 to 4", "5 to 9", "10 to 14", "25 and over"])
    '0 to 14, 25 and over'
    >>> in_words([0, 1], ["Spain", "France"])
    'Spain, France'
    """
    said: list[str] = []
    start = 0
    for at in range(1, len(places) + 1):
        if at < len(places) and _follows(places, labels, at):
            continue
        said.append(_range(labels[start], labels[at - 1]))
        start = at
    return listed(said)


def _follows(places: Sequence[int], labels: Sequence[str], at: int) -> bool:
    """Whether the numbers of a category go on where those of the one before it end."""
    before, numbers = _NUMBERS.match(labels[at - 1]), _NUMBERS.match(labels[at])
    if before is None or numbers is None or before[3] or places[at] != places[at - 1] + 1:
        return False
    return int(numbers[1]) == int(before[2] or before[1]) + 1


def _range(first: str, last: str) -> str:
    if first == last:
        return first
    low, high = _NUMBERS.match(first), _NUMBERS.match(last)
    assert low is not None
    assert high is not None
    if not high[3]:
        return say("{low} to {high}", low=low[1], high=high[2] or high[1])

    def opened(text: str) -> str:
        """The open end of the last label behind the first number, in any language."""
        return re.sub(r"^\d+", low[1], text, count=1)

    return last.each(opened) if isinstance(last, Label) else opened(last)
