"""What was written, read back: a pattern counts as safe only for files that show what was audited.

The audit of a pattern is about facts: which cells are shown, with which values, and what else a reader is told.
The files are read as any reader would, and their facts compared with those, cell by cell. Intervals that stand
in a file are facts of their own, so the pattern is audited again with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lustrum.formats.cell_text import HeadNames
from lustrum.model import CellStatus, InputError, InternalError
from lustrum.model.arrays import Ints, Mask
from lustrum.protect.suppression import SuppressionProblem
from lustrum.protect.suppression.check import PatternAudit, audit_pattern
from lustrum.publish.suppression.files import WrittenTable
from lustrum.readers.grids import Container
from lustrum.readers.judge import OpenedFile, open_file
from lustrum.readers.layout import MEASURE, read_layout
from lustrum.readers.number_text import Style, printed
from lustrum.readers.own import CELLS, form_of, public_layout, sidecar

_HIDDEN = CellStatus.NOT_FOR_PUBLICATION.value
_OPEN = 2**60


def audit_of_files(
    paths: Sequence[Path], tables: Sequence[WrittenTable], problem: SuppressionProblem
) -> PatternAudit | None:
    """Check that files show what was audited, and audit the pattern again if they tell more.

    ``problem`` has the cells of the tables one after another, and then those that no table shows. None if the
    files tell nothing but the values of published cells.
    """
    low, high = problem.low.copy(), problem.high.copy()
    suppressed = problem.fixed.copy()
    start, more = 0, False
    for path, one in zip(paths, tables, strict=True):
        hidden, least, most = (a.ravel() for a in _facts(_opened(path, one), one))
        span = slice(start, start + hidden.size)
        suppressed[span] = hidden
        start = span.stop
        more |= bool((((least > -_OPEN) | (most < _OPEN)) & hidden).any())
        low[span] = np.where(hidden, np.maximum(low[span], least), low[span])
        high[span] = np.where(hidden, np.minimum(high[span], most), high[span])
    if not more:
        return None
    return audit_pattern(replace(problem, low=low, high=high), suppressed)


def _opened(path: Path, one: WrittenTable) -> OpenedFile:
    """A file, read by the layout that its table has and that stands beside it."""
    workbook = path.suffix.lower() == ".xlsx"
    layout = public_layout(one.release, one.kind, form_of(path))
    try:
        beside = sidecar(path)
        if beside.exists() and read_layout(beside).model_copy(update={"digest": ""}) != layout:
            raise _differs(path, "has another layout")
        file = open_file(path, layout.model_copy(update={"parts": None}))
    except InputError:
        raise _differs(path, "has other variables") from None
    if workbook and not _only_repeats(file.container):
        raise _differs(path, "tells more")
    return file


def _only_repeats(container: Container) -> bool:
    """Whether every number of another sheet stands among the cells too, and as often."""
    counted = {
        grid.name: Counter(
            text for line in grid.lines for text in line if printed(text.strip(), Style())
        )
        for grid in container.grids
    }
    own = counted.pop(CELLS)
    return all(numbers <= own for numbers in counted.values())


def _facts(file: OpenedFile, one: WrittenTable) -> tuple[Mask, Ints, Ints]:
    """The cells that a file hides and the ends that it states, if it is what was audited.

    Otherwise there is a bug, and nothing is published.
    """
    path = Path(file.container.source)
    axes, shape = one.table.axes, one.table.shape
    places = [{code: i for i, code in enumerate(axis.codes)} for axis in axes]
    called = HeadNames.of(axes).facts
    least, most = (np.full(shape, end, dtype=np.int64) for end in (-_OPEN, _OPEN))
    ends = {called["low"]: least, called["high"]: most}
    hidden = np.ones(shape, dtype=np.bool_)
    plain = one.release.method.keys() <= {"method"}
    across = next(iter(file.layout.tables[0].across), MEASURE)
    for cell in file.reading.cells:
        at = tuple(index.get(cell.key[a.name], -1) for index, a in zip(places, axes, strict=True))
        if -1 in at:
            raise _differs(path, "has other codes")
        measure = cell.key.get(across, called["value"])
        if measure != called["value"]:
            if cell.value is not None:
                ends[measure][at] = int(cell.value.scaleb(one.table.decimals))
        elif cell.value is None:
            if plain and cell.letter != _HIDDEN:
                raise _differs(path, "tells hidden cells apart")
        else:
            hidden[at] = False
            if cell.value.scaleb(one.table.decimals) != int(one.table.values[at]):
                raise _differs(path, "shows another value")
    if not np.array_equal(hidden, one.pattern.suppressed.reshape(shape)):
        raise _differs(path, "hides other cells")
    if file.questions or file.reading.standing:
        raise _differs(path, "tells more")
    return hidden, least, most


def _differs(path: Path, how: str) -> InternalError:
    return InternalError(f"{path.name} {how} than what was audited, so it is not published.")
