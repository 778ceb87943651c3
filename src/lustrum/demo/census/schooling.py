"""Education: each generation had its own schools, and partners resemble each other."""

from __future__ import annotations

import numpy as np

from lustrum.demo.census.households import Members
from lustrum.demo.draws import Positions, distribution, pick_by_row
from lustrum.model.arrays import Floats

_BANDS, _SEXES, _CITIZENSHIPS, _KINDS, _LEVELS = 21, 2, 5, 4, 9

# Levels: not applicable, none, primary, lower and upper secondary, post-secondary, bachelor,
# master, not stated. One row for each generation, with the first band it holds for.
_GENERATIONS: tuple[tuple[int, tuple[float, ...]], ...] = (
    (0, (1, 0, 0, 0, 0, 0, 0, 0, 0)),
    (3, (0, 0.8, 5, 65, 26, 2.0, 0.8, 0, 1.2)),
    (4, (0, 0.6, 2, 12, 58, 9, 17, 1.5, 1.1)),
    (5, (0, 0.6, 2, 11, 40, 8, 26, 12, 1.1)),
    (7, (0, 0.7, 2.5, 14, 41, 8, 24, 10, 1.0)),
    (9, (0, 0.9, 4, 19, 44, 7, 19, 7, 0.9)),
    (11, (0, 1.3, 7, 25, 42, 6, 15, 5, 0.8)),
    (13, (0, 2.2, 16, 31, 36, 4.5, 10, 3, 1.0)),
    (15, (0, 4, 29, 34, 25, 3, 6, 1.5, 1.0)),
    (17, (0, 6, 38, 31, 19, 1.5, 4, 0.8, 1.6)),
)

_BY_SEX = np.array(
    [
        [1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        [1, 1.1, 1.1, 1.0, 0.9, 1.1, 1.1, 0.95, 1.0],
    ]
)
_BY_CITIZENSHIP = np.array(
    [
        [1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        [1, 1.0, 0.85, 0.85, 1.0, 0.85, 1.2, 1.4, 1.6],
        [1, 2.2, 1.6, 1.3, 0.9, 0.6, 0.85, 0.8, 1.6],
        [1, 3.5, 2.2, 1.2, 0.7, 0.5, 1.0, 1.1, 2.6],
        [1, 4.5, 2.2, 1.2, 0.6, 0.3, 0.5, 0.4, 6.0],
    ]
)
_BY_KIND = np.array(
    [
        [1, 1.1, 0.9, 0.85, 0.9, 1.0, 1.4, 1.8, 1.2],
        [1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 1.0],
        [1, 1.0, 1.2, 1.2, 1.1, 1.0, 0.7, 0.5, 0.8],
        [1, 0.9, 1.0, 1.1, 1.1, 1.1, 0.8, 0.6, 1.0],
    ]
)

_LIKE_TO_LIKE = 0.35


def _by_band() -> Floats:
    rows = np.zeros((_BANDS, _LEVELS))
    for first, shares in _GENERATIONS:
        rows[first:] = shares
    return rows


def _education_table() -> Floats:
    """Distribution by band, sex, citizenship and kind of area, one row each."""
    weights = (
        _by_band()[:, None, None, None, :]
        * _BY_SEX[None, :, None, None, :]
        * _BY_CITIZENSHIP[None, None, :, None, :]
        * _BY_KIND[None, None, None, :, :]
    )
    return distribution(weights.reshape(-1, _LEVELS))


def education(
    members: Members,
    kind: Positions,
    band: Positions,
    citizenship: Positions,
    rng: np.random.Generator,
) -> Positions:
    """Education of every person as a position in the code list.

    Some partners share the draw of the first member: people who find a partner at school do.
    """
    uniform = rng.random(len(band))
    alike = members.partner & (rng.random(len(band)) < _LIKE_TO_LIKE)
    uniform = np.where(alike, uniform[members.first][members.household], uniform)
    rows = ((band * _SEXES + members.sex) * _CITIZENSHIPS + citizenship) * _KINDS + kind
    return pick_by_row(uniform, _education_table(), rows)
