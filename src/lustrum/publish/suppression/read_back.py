"""What was written, read back: a pattern counts as safe only for files that show what was audited.

The audit of a pattern is about facts: which cells are shown, with which values, and what else a reader is told.
The files are read as any reader would and their facts compared with those, cell by cell. Intervals that stand
in a file are facts of their own, so the pattern is audited again with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lustrum.model import CellStatus, InternalError
from lustrum.model.arrays import Ints, Mask
from lustrum.protect.suppression import SuppressionProblem
from lustrum.protect.suppression.check import PatternAudit, audit_pattern
from lustrum.publish.suppression.files import WrittenTable
from lustrum.readers import TableFile, read_table

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
        file = read_table(path)
        hidden = _facts(file, one)
        span = slice(start, start + hidden.size)
        suppressed[span] = hidden.ravel()
        start = span.stop
        if file.interval is not None:
            least, most = _interval(file, one)
            stated = (least > -_OPEN) | (most < _OPEN)
            more |= bool((stated & hidden.ravel()).any())
            low[span] = np.where(hidden.ravel(), np.maximum(low[span], least), low[span])
            high[span] = np.where(hidden.ravel(), np.minimum(high[span], most), high[span])
    if not more:
        return None
    return audit_pattern(replace(problem, low=low, high=high), suppressed)


def _facts(file: TableFile, one: WrittenTable) -> Mask:
    """The cells that a file hides, if it is what was audited; otherwise a bug, and nothing is published."""
    axes, shape = one.table.axes, one.table.shape
    if sorted(file.dimensions) != sorted(axis.name for axis in axes):
        raise _differs(file, "has other variables")
    order = [file.dimensions.index(axis.name) for axis in axes]
    places = [{code: i for i, code in enumerate(axis.codes)} for axis in axes]
    hidden = np.ones(shape, dtype=np.bool_)
    letters = np.full(shape, "?", dtype="<U8")
    scale = one.table.decimals
    for row, key in enumerate(file.cells):
        at = tuple(code_index.get(key[i], -1) for code_index, i in zip(places, order, strict=True))
        if -1 in at:
            raise _differs(file, "has other codes")
        value = file.values["value"][row]
        letters[at] = file.status["value"][row]
        if value is None:
            continue
        hidden[at] = False
        if value.scaleb(scale) != int(one.table.values[at]):
            raise _differs(file, "shows another value")
    if not np.array_equal(hidden, one.pattern.suppressed.reshape(shape)):
        raise _differs(file, "hides other cells")
    if file.ignored or file.doubts or any(file.standing.values()):
        raise _differs(file, "tells more")
    if one.release.method.keys() <= {"method"} and bool((letters[hidden] != _HIDDEN).any()):
        raise _differs(file, "tells hidden cells apart")
    return np.asarray(hidden)


def _interval(file: TableFile, one: WrittenTable) -> tuple[Ints, Ints]:
    """The intervals of a file's cells in the order of the table, as far as they are stated."""
    assert file.interval is not None
    order = [file.dimensions.index(axis.name) for axis in one.table.axes]
    ends = []
    for column, none in zip(file.interval, (-_OPEN, _OPEN), strict=True):
        values, known = file.dense(column, one.table.decimals)
        # The codes of a file come in the order of its rows, which is that of the table.
        ends.append(np.where(known, values, none).transpose(order).ravel())
    return ends[0], ends[1]


def _differs(file: TableFile, how: str) -> InternalError:
    return InternalError(
        f"{Path(file.source).name} {how} than what was audited, so it is not published."
    )
