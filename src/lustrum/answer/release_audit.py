"""Step 4, second half: what the attackers of the policy could work out from the protected table alone.

The judgement looks at nothing but what would be published, so that a refusal reveals nothing more. Its work
is bounded by the number of programs that are solved, never by the clock: the same table is judged alike on a
busy machine.
"""

from __future__ import annotations

import numpy as np

from lustrum.audit import Attacker, Insider, Outsider, attack
from lustrum.audit.bounding.sweep import Progress
from lustrum.model import InputError, Release
from lustrum.policy import Audit

_ATTACKERS: dict[str, Attacker] = {"outsider": Outsider(), "insider": Insider(contribution=1)}
"""Somebody who knows what is published, and somebody who is also counted in the cell in question."""


def is_disclosive(release: Release, audit: Audit) -> bool:
    """Whether an attacker is left with too few values for a cell that may be small.

    A table that takes more programs than the policy allows counts as disclosive.
    """
    judged = release.inner & release.shown
    if release.structural is not None:
        judged = judged & ~release.structural
    if release.low is not None:
        judged = judged & (release.low <= audit.up_to)
    cells = np.flatnonzero(judged).tolist()
    if not cells:
        return False
    return any(_finds(release, _ATTACKERS[name], cells, audit) for name in audit.attackers)


def _finds(release: Release, attacker: Attacker, cells: list[int], audit: Audit) -> bool:
    work = _WorkCount(audit.programs)
    try:
        belief = attack(
            release,
            attacker,
            cells=cells,
            integer=True,
            workers=1,
            stop=work.is_over,
            progress=work.count,
        )
    except InputError:
        # Nobody can be counted in any of these cells, or too much is open to be weighed value by value.
        return False
    if work.is_over():
        return True
    insider_count = 1 if isinstance(attacker, Insider) else 0
    small = belief.low + insider_count <= max(audit.up_to, insider_count)
    return bool((small & (belief.count < audit.min_values)).any())


class _WorkCount:
    """Counts programs, searches and flows."""

    def __init__(self, most: int) -> None:
        self._most, self._done = most, 0

    def count(self, progress: Progress) -> None:
        self._done = progress.programs

    def is_over(self) -> bool:
        return self._done > self._most
