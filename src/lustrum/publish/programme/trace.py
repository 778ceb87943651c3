"""What only the agency may know of a run: true values, levels, ranges, costs and gaps.

The trace is written to a file of its own, readable by its owner only, and never stands in the public folder.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.formats.cell_text import number_text
from lustrum.protect.suppression import Pattern, PatternChanges
from lustrum.publish.programme.audit import AuditedSystem
from lustrum.publish.programme.judge import Judged
from lustrum.publish.programme.system import ProgrammeSystem


def system_trace(
    system: ProgrammeSystem,
    judged: Judged,
    audited: AuditedSystem,
    pattern: Pattern | None,
    changes: PatternChanges | None = None,
) -> dict[str, Any]:
    """One system: how many cells were sensitive and why, what it cost, and every sensitive cell."""
    trace: dict[str, Any] = {
        "responses": list(system.responses),
        "relations": list(system.relations),
        "cells": int(system.values.size),
        "sensitive": int(judged.sensitive.sum()),
        "safe": audited.safe,
        "tables": [
            {
                "table": part.name,
                "shown": part.shown,
                "cells": int(part.true.values.size),
                "sensitive": int(sensitivity.mask.sum()),
                "reasons": {str(f.reason.text): int(f.cells.sum()) for f in sensitivity.findings},
            }
            for part, sensitivity in zip(system.parts, judged.findings, strict=True)
        ],
        "sensitive_cells": _cells(system, judged, audited),
    }
    if pattern is not None:
        trace["suppression"] = {
            "primary": int(pattern.primary.sum()),
            "secondary": int(pattern.secondary.sum()),
            "cost": pattern.cost,
            "lower_bound": pattern.lower_bound,
            "gap": pattern.gap,
            "algorithm": pattern.algorithm,
            "why": pattern.why,
            "steps": pattern.steps,
        }
        if pattern.changes is not None and changes is not None:
            trace["suppression"]["against_last_period"] = _changes(system, pattern, changes)
    return trace


def _changes(system: ProgrammeSystem, pattern: Pattern, changes: PatternChanges) -> dict[str, Any]:
    assert pattern.changes is not None
    names = system.known.known.names
    kinds = [one.change for one in changes.cells]
    old = changes.open_before
    return {
        "kept": int(pattern.changes.kept.size),
        "added": kinds.count("added"),
        "published_again": kinds.count("published again"),
        "cells": [
            {"cell": names[one.cell], "change": one.change, "why": one.why} for one in changes.cells
        ],
        "open_under_the_old_pattern": None if old is None else [names[c] for c in old.tolist()],
    }


def _cells(system: ProgrammeSystem, judged: Judged, audited: AuditedSystem) -> list[dict[str, Any]]:
    names = system.known.known.names
    out = []
    for i, cell in enumerate(audited.cells.tolist()):
        row: dict[str, Any] = {
            "cell": names[cell],
            "value": number_text(int(system.values[cell]), system.decimals),
            "lower_level": number_text(int(judged.lower[cell]), system.decimals),
            "upper_level": number_text(int(judged.upper[cell]), system.decimals),
            "enough": bool(audited.enough[i]),
        }
        for key, end in (("low", audited.low[i]), ("high", audited.high[i])):
            row[key] = number_text(round(float(end)), system.decimals) if np.isfinite(end) else None
        out.append(row)
    return out
