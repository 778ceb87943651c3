"""What only the agency may know of a run: true values, levels, ranges, costs and gaps.

The trace is written to a file of its own, readable by its owner only, and never stands in the public folder.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.formats.csv import number_text
from lustrum.protect.suppression import Pattern
from lustrum.release.records.programme.audit import AuditedSystem
from lustrum.release.records.programme.judge import Judged
from lustrum.release.records.programme.system import System

__all__ = ["system_trace"]


def system_trace(
    system: System, judged: Judged, audited: AuditedSystem, pattern: Pattern | None
) -> dict[str, Any]:
    """One system: how many cells were sensitive and why, what it cost, and every sensitive cell."""
    words: dict[str, Any] = {
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
                "sensitive": int(found.mask.sum()),
                "reasons": {str(f.reason.text): int(f.cells.sum()) for f in found.findings},
            }
            for part, found in zip(system.parts, judged.findings, strict=True)
        ],
        "sensitive_cells": _cells(system, judged, audited),
    }
    if pattern is not None:
        words["suppression"] = {
            "primary": int(pattern.primary.sum()),
            "secondary": int(pattern.secondary.sum()),
            "cost": pattern.cost,
            "lower_bound": pattern.lower_bound,
            "gap": pattern.gap,
            "algorithm": pattern.algorithm,
            "why": pattern.why,
            "steps": pattern.steps,
        }
        if pattern.changes is not None:
            words["suppression"]["against_last_period"] = {
                "kept": int(pattern.changes.kept.size),
                "added": int(pattern.changes.added.size),
                "published_again": int(pattern.changes.dropped.size),
            }
    return words


def _cells(system: System, judged: Judged, audited: AuditedSystem) -> list[dict[str, Any]]:
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
