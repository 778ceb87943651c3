"""Contributors as attackers on linked tables: what a holding knows of all cells that it contributes to."""

from __future__ import annotations

import numpy as np

from lustrum.protect.suppression import ContributorView
from lustrum.protect.suppression.contributors import ranked_contributions, views_of
from lustrum.release.records.programme.judge import Judged
from lustrum.release.records.programme.system import System

__all__ = ["joint_views"]


def joint_views(system: System, judged: Judged, *, alone_only: bool) -> tuple[ContributorView, ...]:
    """One attacker for each holding among the largest contributors of some cell.

    A holding knows its contributions to all tables of the system. With ``alone_only`` there are only those
    that are alone somewhere.
    """
    relations = system.known.known.matrix
    found = ranked_contributions(
        [part.true for part in system.parts],
        [span.start for span in system.spans],
        relations,
        alone_only=alone_only,
        scales=[system.scale(part) for part in system.parts],
    )
    levels = np.stack([judged.lower, judged.upper, judged.sliding])
    return views_of(found, system.values, relations, judged.sensitive, levels)
