"""Words found in codes and labels of categories, also among hundreds of thousands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lustrum.model.arrays import Ints

Words = Sequence[Sequence[str]]
"""Words that must all be there; each is a choice of spellings, of which one is enough."""


_FEW = 2000


class SearchText:
    """Many short texts as one, a line each, which is searched as a whole.

    >>> text = SearchText(["1 Upper Merrow", "2 Lower Merrow"])
    >>> text.find([["merrow"], ["low", "deep"]]).tolist()
    [1]
    """

    def __init__(self, texts: Iterable[str]) -> None:
        lines = [text.casefold().replace("\n", " ") for text in texts]
        self._text = "\n".join(lines)
        sizes = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines))
        self._ends = np.cumsum(sizes + 1)
        """Where the next line begins."""

    def find(self, words: Words) -> Ints:
        """The numbers of the texts that hold all of the words, in order; the words are in lower case."""
        numbers: Ints | None = None
        # A long word is rare: what it leaves is looked at text by text.
        for spellings in sorted(words, key=lambda matches: -min(map(len, matches))):
            if numbers is not None and numbers.size <= _FEW:
                held = [any(w in self._line(i) for w in spellings) for i in numbers.tolist()]
                numbers = numbers[np.array(held, dtype=np.bool_)]
                continue
            there = np.zeros(self._ends.size, dtype=np.bool_)
            there[[] if numbers is None else numbers] = True
            matches = np.zeros_like(there)
            for word in spellings:
                matches[self._lines(word)] = True
            numbers = np.flatnonzero(matches if numbers is None else matches & there)
        return np.arange(self._ends.size) if numbers is None else numbers

    def _line(self, number: int) -> str:
        start = 0 if number == 0 else int(self._ends[number - 1])
        return self._text[start : int(self._ends[number])]

    def _lines(self, word: str) -> Ints:
        """The lines in which a word stands, by splitting the text: no step for each line."""
        pieces = self._text.split(word)
        sizes = np.fromiter(map(len, pieces[:-1]), dtype=np.int64, count=len(pieces) - 1)
        places = np.cumsum(sizes + len(word)) - len(word)
        return np.searchsorted(self._ends, places, side="right")


def words_of(wanted: str) -> Words:
    return [[word] for word in wanted.casefold().split()]
