"""How long a search may go on."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from lustrum.model import InputError
from lustrum.numeric.solve import Highs, Solver


@dataclass(frozen=True)
class Effort:
    """How long to search for sharp bounds; bounds always hold, however short the search.

    ``nodes`` is the number of cells that all dives together may fix, ``dive`` the number for one dive,
    ``seconds`` the time. Without a ``solver``, only the shuttle's own search runs, with longer and longer
    dives: it is quick for three variables with all pairs, and slow where few margins tie many cells.

    >>> Effort(seconds=2.0, solver=None).nodes
    1000000
    """

    nodes: int = 1_000_000
    dive: int = 100
    seconds: float | None = None
    solver: Solver | None = field(default_factory=Highs)

    def __post_init__(self) -> None:
        if self.nodes < 0 or self.dive < 1 or (self.seconds is not None and self.seconds < 0):
            raise InputError("An effort needs nodes of 0 or more, dives of 1 or more, and time.")


@dataclass
class Clock:
    """What is left of the effort, shared by all parts."""

    end: float | None
    nodes: int

    @classmethod
    def start(cls, effort: Effort) -> Clock:
        limit = effort.seconds
        return cls(None if limit is None else time.monotonic() + limit, effort.nodes)

    @property
    def seconds(self) -> float | None:
        return None if self.end is None else self.end - time.monotonic()

    @property
    def over(self) -> bool:
        left = self.seconds
        return self.nodes <= 0 or (left is not None and left <= 0)
