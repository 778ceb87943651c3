"""Confidential tables that are protected together: one problem, a pattern for each, and what changed."""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lustrum.model import Table
from lustrum.model.arrays import Mask
from lustrum.protect.suppression import (
    Pattern,
    PatternChanges,
    Suppression,
    SuppressionProblem,
    explain_changes,
    linked_patterns,
    linked_problem,
)
from lustrum.protect.suppression.choose import Progress
from lustrum.protect.suppression.linked import cube_behind
from lustrum.protect.suppression.method import lower_levels
from lustrum.publish.suppression.files import WrittenTable
from lustrum.runtime.log_lines import tell_person
from lustrum.runtime.stop import taking_best
from lustrum.sensitivity import Background


@dataclass(frozen=True, eq=False, repr=False)
class TablesTogether:
    """Tables that a reader sees together, each with its method; ``named`` says that holdings are the same.

    ``frozen`` cells must be published and ``never`` ones must not; ``before`` are the cells that the
    last period's tables do not show; None where a table has no such cells.
    """

    specs: Sequence[Suppression]
    tables: Sequence[Table]
    background: Background
    frozen: Sequence[Mask | None]
    never: Sequence[Mask | None]
    named: bool
    before: Sequence[Mask | None] | None = None

    def patterns(self, progress: Progress | None = None) -> tuple[Pattern, ...]:
        """A pattern for every table; several are safe together or not at all."""
        if len(self.tables) > 1:
            return linked_patterns(
                self.specs,
                self.tables,
                self.background,
                frozen=self.frozen,
                never=self.never,
                previous=self.before or (),
                named=self.named,
                progress=progress,
            )
        one = self.specs[0].pattern(
            self.tables[0],
            background=self.background,
            frozen=self.frozen[0],
            never=self.never[0],
            previous=None if self.before is None else self.before[0],
            named=self.named,
            progress=progress,
        )
        return (one,)

    def problem(self) -> SuppressionProblem:
        if len(self.tables) > 1:
            return linked_problem(
                self.specs,
                self.tables,
                self.background,
                frozen=self.frozen,
                never=self.never,
                named=self.named,
            )
        spec = self.specs[0]
        return spec.held(
            spec.problem(self.tables[0], self.background, named=self.named),
            self.frozen[0],
            self.never[0],
        )

    def attacked(self) -> SuppressionProblem:
        """The problem with all that an attacker uses: also the cells of the cube behind linked tables."""
        problem = self.problem()
        cube = cube_behind(problem, self.tables)
        return problem if cube is None else cube[0]

    def changes(self, problem: SuppressionProblem, patterns: Sequence[Pattern]) -> PatternChanges:
        """What changed since the last period, and why; the cells are those of all tables one after another."""
        assert self.before is not None
        old = np.concatenate(
            [
                np.zeros(table.values.size, dtype=np.bool_) if mask is None else mask.ravel()
                for table, mask in zip(self.tables, self.before, strict=True)
            ]
        )
        return explain_changes(problem, np.concatenate([one.suppressed for one in patterns]), old)

    def protected(self, paths: Sequence[Path], patterns: Sequence[Pattern]) -> list[WrittenTable]:
        """The protected tables, with all that their files are written from."""
        return [
            WrittenTable(
                path,
                table,
                judged,
                lower_levels(table, judged, zeros=spec.zeros),
                pattern,
                spec.release(table, pattern, self.background),
            )
            for path, table, spec, pattern in zip(
                paths, self.tables, self.specs, patterns, strict=True
            )
            for judged in (spec.judge(table, self.background),)
        ]


# A long search: what goes on, and a way to stop with the best pattern so far.


log = logging.getLogger("lustrum.suppression")

_SOON = 20.0  # processor seconds after which a search says that it goes on


class StoppableSearch:
    """Shows the progress of a search, and says after a while that Ctrl-C ends it with its best pattern.

    Before that, and the second time, Ctrl-C ends everything, as it does elsewhere.
    Without Ctrl-C nothing here changes what a search finds: the clock only decides when a sentence is printed.
    By default sentences go to the log, and to standard error where that is a terminal or a notebook.
    """

    def __init__(
        self,
        show: Callable[[str], None] = lambda text: None,
        line: Callable[[str], None] = lambda text: tell_person(log, text),
    ) -> None:
        self.show, self.line = show, line
        self.stopped = self._told = False
        self._begin = time.process_time()

    def tell(self, what: str, cost: float, bound: float) -> bool:
        """Is told what goes on; gives whether the search shall end."""
        self.show(f"{what}: cost {cost:,.0f}, at least {bound:,.0f}")
        if not self._told and time.process_time() - self._begin > _SOON:
            self._told = True
            self.line(
                "A safe pattern is found. The search goes on to find a cheaper one or to prove that there is "
                "none; Ctrl-C takes the best so far."
            )
        return self.stopped

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Take Ctrl-C for the wish to stop, once that was offered."""

        def stop(number: int, frame: object) -> None:
            if self.stopped or not self._told:
                raise KeyboardInterrupt
            self.stopped = True
            self.show("stopping with the best pattern so far")

        try:
            before = signal.signal(signal.SIGINT, stop)
        except ValueError:  # not the main thread, where nobody presses keys
            yield
            return
        try:
            with taking_best(lambda: self.stopped):
                yield
        finally:
            signal.signal(signal.SIGINT, before)
