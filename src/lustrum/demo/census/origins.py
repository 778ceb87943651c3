"""Citizenship: a matter of the household first, of age and of place.

Everybody in a household takes its citizenship, except that partners and sharers may differ and
children born in the country are often citizens of it.
"""

from __future__ import annotations

import numpy as np

from lustrum.demo.census.households import Members
from lustrum.demo.draws import Positions, between, distribution, pick_by_row
from lustrum.model.arrays import Floats

_BANDS = 21

_STATELESS = 4

#: Weight of each citizenship: country, other EU, other Europe, outside Europe, stateless.
_BASE = np.array([1.0, 0.050, 0.028, 0.040, 0.0065])

#: How much more common foreign citizens are by kind of area: city, town, country, coast.
_BY_KIND = np.array([1.8, 0.75, 0.40, 0.55])

# How much more common each is by five-year band of age: people move to find work, and few of
# those who came in the last generation are old yet.
_AT_BANDS = [0, 3, 5, 8, 11, 13, 15, 17, 20]
_BY_AGE = (
    [0.7, 0.9, 1.3, 1.2, 0.8, 0.45, 0.15, 0.04, 0.003],
    [0.8, 0.9, 1.2, 1.3, 0.9, 0.35, 0.10, 0.02, 0.001],
    [0.8, 1.0, 1.5, 1.2, 0.6, 0.25, 0.06, 0.01, 0.0005],
    [0.01, 0.3, 1.3, 1.2, 0.8, 0.25, 0.02, 0.0, 0.0],
)

_CITIZENS_BY_BIRTH = 0.2
_PARTNER_DIFFERS = 0.16


def _citizenship_table() -> Floats:
    """Distribution by kind of area and band, one row each."""
    by_age = np.array([between(np.arange(_BANDS), _AT_BANDS, row) for row in _BY_AGE]).T
    weights = np.broadcast_to(_BASE, (len(_BY_KIND), _BANDS, len(_BASE))).copy()
    weights[..., 1:] *= _BY_KIND[:, None, None] * by_age[None, :, :]
    return distribution(weights.reshape(-1, len(_BASE)))


def citizenship(
    members: Members, kind: Positions, band: Positions, rng: np.random.Generator
) -> Positions:
    """Citizenship of every person as a position in the code list.

    Being stateless is not handed on: the others of such a household draw their own.
    """
    rows = kind * _BANDS + band
    drawn = pick_by_row(rng.random(len(rows)), _citizenship_table(), rows)
    of_household = drawn[members.first][members.household]
    uniform = rng.random(len(rows))
    differs = (
        members.sharer
        | (members.partner & (uniform < _PARTNER_DIFFERS))
        | (of_household == _STATELESS)
    )
    citizenships = np.where(differs, drawn, of_household)
    citizenships[members.child & (uniform < _CITIZENS_BY_BIRTH)] = 0
    return citizenships
