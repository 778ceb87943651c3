"""What a question will need, worked out from the question and the classifications alone, before it is taken.

The estimate must not look at the data: that a table is refused or made in the background would then tell
something of them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lustrum.model import Dataset, TableQuery
from lustrum.model.text import say
from lustrum.server.http.problems import Problem, ProblemError

_PER_CELL = 1024
"""Bytes for a cell that is shown. Measured: 140 to 200 for rounding and its JSON or page, up to 900 in a
workbook."""

_MADE = 250
"""Bytes for a cell of a bundle that is made and kept. Measured: 145 to 156 where cells are many."""

_AS = {"job": 0, "parquet": 50, "csv": 200, "json-stat": 300, "json": 300, "page": 400}
"""Bytes for each such cell while it is written in a form; a workbook and others take all of ``_PER_CELL``.
Measured: 1 for Parquet, 57 for CSV, 51 for JSON-stat, 534 to 900 for a workbook."""

_PER_CATEGORY = 2048
"""Bytes for a category of a table of a bundle, with its label. Measured: 800."""

_PER_OTHER_CELL = 140
"""Bytes for a cell of a bundle that only the rules look at. Measured: 45."""

_CGROUPS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


@dataclass(frozen=True)
class Estimate:
    """The cells that are worked on, those among them that are written, and the memory for them in bytes."""

    cells: int
    written: int
    categories: int = 0
    from_bundle: bool = False

    def memory(self, form: str = "xlsx") -> int:
        """Bytes that the answer may need at its peak in a form: of a file, ``page``, ``json``, or ``job``."""
        each = _PER_CELL
        if self.from_bundle and form in _AS:
            each = min(_MADE + _AS[form], _PER_CELL)
        names = self.categories * _PER_CATEGORY if self.from_bundle else 0
        return self.written * each + names + (self.cells - self.written) * _PER_OTHER_CELL


def estimate(query: TableQuery, dataset: Dataset, *, from_bundle: bool = False) -> Estimate:
    """What a question will need: a total is protected beside all its parts, also those not asked for.

    In a bundle everything is protected already: the rules look at parts that are not asked for, and no more.

    Every statistic takes the cells of the numbers it is worked out from; a quantile takes one for each class.
    """
    layers = 0
    for statistic in query.asked:
        for quantity in statistic.quantities(query.weight):
            classes = quantity.histogram
            layers += 1 if classes is None else len(dataset.variable(classes).codes)
    sizes, shown = [layers], [layers]
    for axis in query.by:
        variable = dataset.variable(axis.variable)
        asked = len(axis.categories(variable))
        whole = len(replace(axis, codes=None, groups=(), total=True).categories(variable))
        sizes.append(max(asked, whole))
        shown.append(asked)
    cells = math.prod(sizes)
    if not from_bundle:
        return Estimate(cells, cells)
    return Estimate(cells, math.prod(shown), sum(shown[1:]), from_bundle=True)


def require_memory(needed: Estimate, most: int, form: str) -> None:
    """End a request for a table that needs more memory than there is for one question, in words."""
    if needed.memory(form) > most >= needed.memory("parquet"):
        sentence = say(
            "The table has about {cells:,} cells, more than this server has memory for in this form; ask for "
            "it as Parquet (format=parquet), or for a smaller one: fewer variables, coarser levels or fewer "
            "categories.",
            cells=needed.written,
        )
        raise ProblemError(Problem.of_status(422, sentence))
    if needed.memory(form) > most:
        sentence = say(
            "The table has about {cells:,} cells with its totals, more than this server has memory for; ask "
            "for a smaller one: fewer variables, coarser levels or fewer categories.",
            cells=needed.cells,
        )
        raise ProblemError(Problem.of_status(422, sentence))


def available_memory() -> int:
    """The memory of the machine in bytes, or as much of it as this process is allowed."""
    return min(_limits())


def _limits() -> Iterator[int]:
    yield 8 * 2**30  # enough for any table that somebody can read, and where nothing is known
    try:
        import resource
    except ImportError:  # pragma: no cover - a system without such limits
        return
    if "SC_PHYS_PAGES" in os.sysconf_names:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            yield soft
    for path in _CGROUPS:
        try:
            text = path.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdigit():
            yield int(text)
