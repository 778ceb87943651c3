"""The report of a suppression for programs: all suppressed cells with what is proven of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lustrum.model import Table
from lustrum.protect.suppression import Pattern
from lustrum.readers.report import AuditedFile, AuditedValue, FileReport, PatternReport

_REASONS = {
    0: "Every sensitive cell is protected.",
    3: "Some sensitive cell is not protected, and no table was written.",
}


def suppression_report(
    paths: Sequence[Path], tables: Sequence[Table], patterns: Sequence[Pattern], *, safe: bool
) -> FileReport:
    """What was suppressed, and whether that is safe; ranges are those of outsiders, in the table's unit."""
    pattern, code = patterns[0], 0 if safe else 3
    audited = pattern.audited
    starts = np.cumsum([0, *(table.values.size for table in tables)])
    place = {} if audited is None else {int(cell): i for i, cell in enumerate(audited.cells)}
    unprotected = {cell.cell for cell in pattern.unprotectable}
    values = []
    for path, table, one, start in zip(paths, tables, patterns, starts, strict=False):
        unit = 10.0**-table.decimals
        for cell in np.flatnonzero(one.suppressed).tolist():
            at = np.unravel_index(cell, table.shape)
            i = place.get(cell + int(start))
            ends = (None, None)
            if audited is not None and i is not None:
                ends = tuple(  # type: ignore[assignment]
                    round(float(end[i]) * unit, table.decimals)
                    for end in (audited.low, audited.high)
                )
            codes = zip(table.axes, at, strict=True)
            values.append(
                AuditedValue(
                    cell=", ".join(f"{axis.name}={axis.codes[int(k)]}" for axis, k in codes),
                    place=path.name,
                    low=ends[0],
                    high=ends[1],
                    sharp=audited is not None and i is not None and bool(audited.sharp[i]),
                    reached=audited is not None and i is not None and bool(audited.shown[i]),
                    status="primary" if bool(one.primary[cell]) else "secondary",
                    finding="within protection" if cell + int(start) in unprotected else "open",
                )
            )
    return FileReport(
        command="suppress",
        exit=0 if code == 0 else 3,
        reason=" ".join([_REASONS[code], *map(str, pattern.unprotectable[:1])]),
        confidential=True,
        files=tuple(
            AuditedFile(
                name=str(path), digest=hashlib.sha256(path.read_bytes()).hexdigest(), layout="none"
            )
            for path in paths
        ),
        hidden=len(values),
        open=sum(value.finding == "open" for value in values),
        values=tuple(values),
        pattern=PatternReport(
            cells=int(starts[-1]),
            primary=sum(int(one.primary.sum()) for one in patterns),
            secondary=sum(int(one.secondary.sum()) for one in patterns),
            cost=pattern.cost,
            lower_bound=pattern.lower_bound,
            optimal=pattern.optimal,
            algorithm=pattern.algorithm,
            attackers=0 if audited is None else audited.attackers,
        ),
    )
