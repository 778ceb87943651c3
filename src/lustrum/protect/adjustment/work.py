"""The work that is left, counted in steps, so that a busy machine ends at the same point."""

from __future__ import annotations

STEPS = 500_000
"""Steps that a search takes at most, unless the caller says otherwise; a linear program counts by its size."""

SEARCH_STEP = 500
"""A look that a search for whole numbers takes at its limits counts as this many steps of a linear program."""


class Work:
    """A number of steps; steps spent from a part are spent from the whole, too.

    >>> work = Work(100)
    >>> part = work.part(0.5)
    >>> part.spend(60)
    >>> part.late, work.left
    (True, 40)
    """

    def __init__(self, steps: int, whole: Work | None = None) -> None:
        self._left = steps
        self._whole = whole

    @property
    def left(self) -> int:
        """Steps left, never below 0."""
        whole = self._left if self._whole is None else self._whole.left
        return max(0, min(self._left, whole))

    @property
    def late(self) -> bool:
        """Whether no steps are left."""
        return self.left <= 0

    def part(self, share: float) -> Work:
        """A share of what is left."""
        return Work(int(self.left * share), self)

    def spend(self, steps: int) -> None:
        """Subtract steps that were done."""
        self._left -= steps
        if self._whole is not None:
            self._whole.spend(steps)
