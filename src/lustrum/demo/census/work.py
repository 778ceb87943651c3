"""Activity and occupation: age decides who works, education decides at what."""

from __future__ import annotations

import numpy as np

from lustrum.demo.census.description import EMPLOYED
from lustrum.demo.draws import Positions, between, distribution, pick_by_row
from lustrum.model.arrays import Floats

_BANDS, _SEXES, _CITIZENSHIPS, _KINDS, _LEVELS = 21, 2, 5, 4, 9
_ACTIVITIES, _OCCUPATIONS = 5, 13
_NO_WORK = 12

# Employed, unemployed, student, retired, other; one row for each five-year band.
_MEN = np.array(
    [
        [0, 0, 0, 0, 1],
        [0, 0, 97, 0, 3],
        [0, 0, 99.5, 0, 0.5],
        [20, 4, 73, 0, 3],
        [62, 8, 25, 0, 5],
        [83, 7, 6, 0, 4],
        [88, 6, 2.5, 0, 4.5],
        [89, 5.5, 1.5, 0, 5],
        [89, 5, 1.0, 0, 5.7],
        [88, 5, 0.6, 0, 6.8],
        [85, 5, 0.4, 2, 8],
        [76, 5, 0.3, 9, 10],
        [45, 3, 0.2, 43, 9],
        [18, 1.0, 0.3, 80, 2.7],
        [13, 0.4, 0.25, 87, 2],
        [8, 0.15, 0.2, 92, 1.5],
        [4.5, 0.05, 0.1, 96, 1.6],
        [2, 0.02, 0.06, 97, 1.7],
        [0.7, 0.01, 0.02, 98, 2],
        [0.1, 0, 0, 98, 2],
        [0, 0, 0, 98, 2],
    ]
)

# Women against men, by band: care for children and old conventions move them out of work.
_WOMEN_EMPLOYED = between(
    np.arange(_BANDS), [3, 5, 7, 10, 12, 20], [1.0, 0.55, 0.45, 0.5, 0.4, 0.35]
)
_WOMEN_OTHER = between(np.arange(_BANDS), [3, 5, 7, 10, 12, 20], [1.2, 2.0, 2.2, 1.8, 2.0, 4.0])

_BY_LEVEL = np.array(
    [
        [1, 1.0, 1.0, 1, 1.0],
        [0.25, 1.5, 0.3, 1, 2.5],
        [0.5, 1.8, 0.3, 1, 1.8],
        [0.7, 1.6, 1.5, 1, 1.4],
        [1, 1.0, 1.2, 1, 0.9],
        [1.1, 0.8, 0.8, 1, 0.7],
        [1.3, 0.6, 0.9, 1, 0.6],
        [1.8, 0.5, 0.6, 1, 0.5],
        [0.8, 1.0, 1.0, 1, 1.2],
    ]
)
_BY_CITIZENSHIP = np.array(
    [
        [1.0, 1.0, 1.0, 1.0, 1.0],
        [1.0, 1.2, 1.1, 0.8, 1.1],
        [0.85, 1.5, 1.1, 0.8, 1.3],
        [0.7, 1.6, 1.6, 0.6, 1.5],
        [0.5, 1.7, 1.0, 0.6, 2.0],
    ]
)
_BY_KIND = np.array(
    [
        [1.0, 1.25, 1.5, 0.9, 1.1],
        [1.0, 1.0, 0.9, 1.0, 1.0],
        [1.05, 0.75, 0.7, 1.0, 1.0],
        [0.9, 1.1, 0.7, 1.3, 1.0],
    ]
)

# Occupations by education: armed forces, managers, professionals, technicians, clerks, service,
# farming, craft, machines, elementary, unclassifiable, not stated, no work.
_BY_EDUCATION = np.array(
    [
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [0, 3.2, 0.35, 1.1, 2, 15, 7, 16, 15, 34, 3.2, 4.4, 0],
        [0.2, 4.2, 0.5, 2.4, 4.2, 17, 7.2, 18, 16, 25, 2.4, 3, 0],
        [1.2, 6, 1.3, 6, 9, 20, 5, 17, 14, 16, 1.7, 2, 0],
        [1.6, 7.6, 3.3, 13, 15, 19, 4.9, 15, 10, 7.6, 1.3, 1.6, 0],
        [1.4, 9.5, 7.8, 21, 16, 16, 2.9, 13, 6, 4, 1.4, 1.5, 0],
        [1.1, 15, 28, 22, 12, 8, 1.5, 3.5, 2.1, 2.4, 1.3, 1.4, 0],
        [0.9, 20, 53, 12.5, 4.8, 2.9, 0.75, 1.1, 0.75, 1.1, 1.1, 1.3, 0],
        [0.6, 5.7, 7.5, 7.5, 8.3, 14, 3.8, 10, 8.3, 12.5, 4.8, 17.5, 0],
    ]
)
_WOMEN_IN = np.array([0.25, 0.65, 1.1, 1.0, 1.8, 1.6, 0.5, 0.25, 0.4, 1.1, 1.0, 1.0, 1.0])
_OCCUPATION_BY_KIND = np.array(
    [
        [0.7, 1.1, 1.4, 1.15, 1.1, 1.0, 0.12, 0.75, 0.7, 0.95, 1.2, 1.2, 1],
        [1.2, 1.0, 0.95, 1.0, 1.0, 1.0, 0.5, 1.1, 1.2, 1.05, 1.0, 1.0, 1],
        [1.0, 0.95, 0.7, 0.85, 0.85, 0.9, 5.0, 1.2, 1.2, 1.0, 0.8, 0.8, 1],
        [1.0, 1.1, 0.8, 0.9, 0.9, 1.5, 0.8, 0.9, 0.6, 1.1, 1.0, 1.0, 1],
    ]
)
_OCCUPATION_BY_CITIZENSHIP = np.array(
    [
        [1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1],
        [0, 0.9, 1.0, 0.9, 0.8, 1.1, 0.9, 1.1, 1.1, 1.3, 1.1, 1.2, 1],
        [0, 0.7, 0.85, 0.8, 0.6, 1.1, 0.85, 1.3, 1.2, 1.6, 1.2, 1.3, 1],
        [0, 0.8, 0.9, 0.8, 0.7, 1.3, 0.45, 0.85, 1.1, 1.6, 1.4, 1.6, 1],
        [0, 0.5, 0.5, 0.5, 0.5, 1.2, 0.55, 1.0, 1.2, 2.0, 1.7, 2.4, 1],
    ]
)
_FIRST_BAND_WITHOUT_SOLDIERS = 13


def _occupation_by_band() -> Floats:
    """How careers move with age: into management, out of the army and of simple jobs."""
    bands = np.arange(_BANDS)
    tilt = np.ones((_BANDS, _OCCUPATIONS))
    tilt[:, 0] = between(bands, [3, 4, 6, 10, 12], [1.5, 2.2, 1.5, 0.5, 0.08])
    tilt[_FIRST_BAND_WITHOUT_SOLDIERS:, 0] = 0.0
    tilt[:, 1] = between(bands, [3, 5, 9, 12, 18], [0.12, 0.5, 1.2, 1.4, 1.8])
    tilt[:, 2] = between(bands, [3, 5, 9], [0.25, 0.9, 1.0])
    tilt[:, 3] = between(bands, [3, 5, 9], [0.3, 1.0, 1.0])
    tilt[:, 5] = between(bands, [3, 5, 9], [2.2, 1.3, 0.9])
    tilt[:, 6] = between(bands, [3, 8, 13, 16], [0.6, 0.8, 2.0, 4.0])
    tilt[:, 9] = between(bands, [3, 5, 9, 13], [2.5, 1.1, 0.9, 1.2])
    return tilt


def _activity_table() -> Floats:
    """Distribution by band, sex, education, citizenship and kind of area, one row each."""
    by_band = np.stack([_MEN, _MEN], axis=1)
    by_band[3:, 1, 0] *= _WOMEN_EMPLOYED[3:]
    by_band[3:, 1, 4] *= _WOMEN_OTHER[3:]
    weights = (
        by_band[:, :, None, None, None, :]
        * _BY_LEVEL[None, None, :, None, None, :]
        * _BY_CITIZENSHIP[None, None, None, :, None, :]
        * _BY_KIND[None, None, None, None, :, :]
    )
    return distribution(weights.reshape(-1, _ACTIVITIES))


def _occupation_table() -> Floats:
    """Distribution over the occupations of the employed, rows as for the activities."""
    by_sex = np.stack([np.ones(_OCCUPATIONS), _WOMEN_IN])
    by_education = _BY_EDUCATION.copy()
    by_education[0, _NO_WORK] = 1.0  # children are never asked; the row must only be valid
    weights = (
        _occupation_by_band()[:, None, None, None, None, :]
        * by_sex[None, :, None, None, None, :]
        * by_education[None, None, :, None, None, :]
        * _OCCUPATION_BY_CITIZENSHIP[None, None, None, :, None, :]
        * _OCCUPATION_BY_KIND[None, None, None, None, :, :]
    )
    return distribution(weights.reshape(-1, _OCCUPATIONS))


def profile_rows(
    band: Positions, sex: Positions, education: Positions, citizenship: Positions, kind: Positions
) -> Positions:
    """The row of each person in the two tables of this module."""
    rows: Positions = band * _SEXES + sex
    for position, size in ((education, _LEVELS), (citizenship, _CITIZENSHIPS), (kind, _KINDS)):
        rows = rows * size + position
    return rows


def activity(rows: Positions, rng: np.random.Generator) -> Positions:
    """Current activity of every person as a position in the code list."""
    return pick_by_row(rng.random(len(rows)), _activity_table(), rows)


def occupation(rows: Positions, activity: Positions, rng: np.random.Generator) -> Positions:
    """Occupation of every person as a position in the code list; none outside work."""
    drawn = pick_by_row(rng.random(len(rows)), _occupation_table(), rows)
    return np.where(activity == EMPLOYED, drawn, _NO_WORK).astype(np.int64)
