"""What a study gives: the printed figures of a paper beside our own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Progress = Callable[[float], None]
"""Called with how far a study is, from 0 to 1."""


@dataclass(frozen=True)
class Line:
    """One figure: what the paper prints, what the formula gives, and what is known about the gap.

    ``tolerance`` is how far ours may be from ``expected``, the figure that the formula is known to
    give where that differs from print (a slip), otherwise the printed one. A figure that depends on chance
    says its standard error and the tolerance covers it.
    """

    what: str
    paper: float | None
    ours: float
    tolerance: float
    expected: float | None = None
    note: str = ""

    @property
    def difference(self) -> float | None:
        return None if self.paper is None else self.ours - self.paper

    @property
    def checked(self) -> bool:
        """Whether there is a figure that ours is held against."""
        return (self.paper is not None or self.expected is not None) and self.tolerance < float(
            "inf"
        )

    @property
    def slip(self) -> bool:
        """Whether the paper prints something else than its own formula gives."""
        if self.paper is None or self.expected is None:
            return False
        return abs(self.paper - self.expected) > self.tolerance

    @property
    def reproduced(self) -> bool:
        """Whether ours is what the formula gives."""
        target = self.paper if self.expected is None else self.expected
        return target is None or abs(self.ours - target) <= self.tolerance


@dataclass(frozen=True)
class Panel:
    """Lines that belong together: a table or a paragraph of the paper."""

    title: str
    lines: tuple[Line, ...]


def panels_of(
    steps: Sequence[Callable[[], Panel]], progress: Progress | None = None
) -> tuple[Panel, ...]:
    """One panel after the other, telling how far the study is after each."""
    panels = []
    for number, step in enumerate(steps, start=1):
        panels.append(step())
        if progress is not None:
            progress(number / len(steps))
    return tuple(panels)


@dataclass(frozen=True)
class Study:
    """A paper's computations, run again."""

    name: str
    title: str
    source: str
    panels: tuple[Panel, ...]
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def reproduced(self) -> bool:
        return all(line.reproduced for panel in self.panels for line in panel.lines)
