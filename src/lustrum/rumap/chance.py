"""The chance behind one draw, and whether a method made use of it."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


class Watched(np.random.Generator):
    """A generator that tells whether anything was drawn from it, or from those that come from it.

    A method that draws nothing publishes the same numbers every time, so one draw of it is enough.

    >>> chance = Watched(np.random.PCG64(1))
    >>> child = chance.spawn(2)[1]
    >>> chance.used
    False
    >>> _ = child.integers(3)
    >>> chance.used
    True
    """

    def __init__(self, source: np.random.BitGenerator) -> None:
        super().__init__(source)
        self._children: list[Watched] = []
        self._seeds = source.seed_seq
        self._start = _state(source)

    @classmethod
    def of_words(cls, text: str) -> Watched:
        """The same words give the same chance."""
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
        return cls(np.random.PCG64(seed))

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Generators of their own, which are watched too."""
        seeds = self._seeds.spawn(n_children)  # type: ignore[attr-defined]
        children = [Watched(type(self.bit_generator)(seed)) for seed in seeds]
        self._children += children
        return list(children)

    @property
    def used(self) -> bool:
        """Whether anything was drawn; seeds that were taken from it in another way count too."""
        if _state(self.bit_generator) != self._start:
            return True
        taken = getattr(self._seeds, "n_children_spawned", 0)
        return taken != len(self._children) or any(child.used for child in self._children)


def _state(source: np.random.BitGenerator) -> Any:
    return repr(source.state)
