"""Step 4, second half: what the attackers of the policy could work out from the protected table alone.

The judgement looks at nothing but what would be published, so that a refusal tells nothing more.
"""

from __future__ import annotations

import numpy as np

from lustrum.audit import bounds, from_release
from lustrum.model import Release, Table
from lustrum.policy import Audit

__all__ = ["is_disclosive"]


def is_disclosive(release: Release, table: Table, audit: Audit) -> bool:
    """Whether an attacker is left with too few values for a cell that may be small.

    Bounds that could not be proven sharp in time count as too narrow.
    """
    judged = release.inner & release.shown
    if table.structural is not None:
        judged = judged & ~table.structural
    if release.low is not None:
        judged = judged & (release.low <= audit.up_to)
    cells = np.flatnonzero(judged)
    if not audit.attackers or not cells.size:
        return False
    found = bounds(from_release(release), cells.tolist(), integer=True, seconds=audit.seconds)
    small = found.low <= audit.up_to
    if bool((small & ~found.sharp).any()):
        return True
    values = found.count
    if "insider" in audit.attackers:
        # Who is counted in a cell knows that it is not empty.
        values = np.minimum(values, found.high - np.maximum(found.low, 1) + 1)
        small = small & (found.high >= 1)
        if "outsider" in audit.attackers:
            small, values = found.low <= audit.up_to, np.where(small, values, found.count)
    return bool((small & (values < audit.min_values)).any())
