"""The demo survey: blocks of households drawn in each district, with nonresponse and calibrated weights."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lustrum.demo.census import people
from lustrum.demo.draws import Progress, categories, described, generators, silent
from lustrum.demo.geography import area_districts
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.arithmetic import normal_draws
from lustrum.survey import Design, bootstrap

FRAME = 150_000
"""People of all ages in the frame that the survey is drawn from."""

#: The columns of bootstrap weights.
REPLICATES: tuple[str, ...] = tuple(described("survey")["weights"][0]["replicates"]["columns"])

#: The first five-year band of the census in each age group of the survey.
_AGE_FROM = np.array([3, 5, 7, 9, 11, 13, 15])
#: The level of education in the survey for each level of the census, from 'not applicable' on.
_SCHOOLING_OF = np.array([3, 0, 0, 0, 1, 1, 2, 2, 3])
_HOUSEHOLDS = 60
#: Households of a block, and the share of them that is asked.
_ASKED = 0.5
#: How likely people answer, by age group.
_ANSWERS = np.array([0.62, 0.66, 0.72, 0.78, 0.82, 0.86, 0.80])
#: How many of those who work do so part time, by age group.
_PART_TIME = np.array([0.45, 0.22, 0.26, 0.24, 0.28, 0.55, 0.7])
#: Blocks drawn in a district: a share of them, but this many at least.
_SHARE, _FEWEST = 0.12, 4
_CENTS = 100


def frame(persons: int = FRAME, seed: int = 2001) -> pa.Table:
    """Everybody of 15 and over, with the district, the block and the variables of the survey."""
    census = people(persons, seed)
    band = _positions(census, "age")
    adult = np.flatnonzero(band >= _AGE_FROM[0])
    district = area_districts()[_positions(census, "area")[adult]]
    home = census.column("household_id").to_numpy()[adult]
    age = np.searchsorted(_AGE_FROM, band[adult], side="right") - 1
    employment = _positions(census, "employment")[adult]
    return pa.table(
        {
            "household_id": home,
            "block": _blocks(district, home),
            **categories(
                "survey",
                district=district,
                sex=_positions(census, "sex")[adult],
                age=age,
                employment=employment,
                education=_SCHOOLING_OF[_positions(census, "education")[adult]],
            ),
            "hours": _hours(employment, age, seed),
        }
    )


def _hours(employment: Ints, age: Ints, seed: int) -> Ints:
    """Hours worked in the week: none without work, part time more often among the young and the old."""
    (draws,) = generators(seed + 2, 1)
    part_time = draws.random(age.size) < _PART_TIME[age]
    usual = np.where(part_time, 22.0, 40.0) + 5.0 * normal_draws(draws, age.size)
    return np.where(employment == 0, np.clip(np.rint(usual), 1, 80), 0).astype(np.int64)


def survey(persons: int = FRAME, seed: int = 2001, progress: Progress | None = None) -> pa.Table:
    """A sample of the frame with weights that sum to it; the same seed gives the same table.

    >>> survey(persons=3000).column_names[:3]
    ['respondent_id', 'stratum', 'block']
    """
    report = progress or silent
    report(0.0)
    everybody = frame(persons, seed)
    report(0.7)
    draws, homes, answers = generators(seed + 1, 3)
    district = _positions(everybody, "district")
    block = everybody.column("block").to_numpy()
    chosen, weight = _drawn(district, block, draws)
    asked = _asked(everybody.column("household_id").to_numpy(), homes) & chosen
    age = _positions(everybody, "age")
    there = np.flatnonzero(asked & (answers.random(len(age)) < _ANSWERS[age]))
    drawn = weight[there] / _ASKED
    sex = _positions(everybody, "sex")
    margins = (district, sex * len(_ANSWERS) + age)
    weight = _calibrated(drawn, there, margins)
    report(0.8)
    (again,) = generators(seed + 3, 1)
    sampled = Design(drawn, district[there], block[there], lonely="certainty")
    replicates = bootstrap(sampled, len(REPLICATES), again).replicates
    repeated = [_calibrated(column, there, margins) for column in replicates.T]
    report(1.0)
    sample = everybody.take(pa.array(there)).drop_columns(["household_id", "block"])
    return pa.table(
        {
            "respondent_id": np.arange(1, there.size + 1),
            "stratum": district[there] + 1,
            "block": block[there] + 1,
            **dict(zip(sample.column_names, sample.columns, strict=True)),
            "weight": _to_cents(weight, len(age)),
            **{
                name: np.rint(column * _CENTS) / _CENTS
                for name, column in zip(REPLICATES, repeated, strict=True)
            },
        }
    )


def _positions(table: pa.Table, name: str) -> Ints:
    column = table.column(name).combine_chunks()
    return np.asarray(column.indices).astype(np.int64)


def _blocks(district: Ints, home: Ints) -> Ints:
    """Neighbouring households of a district, this many in each block."""
    blocks = np.zeros(home.size, dtype=np.int64)
    first = 0
    for one in np.unique(district):
        here = np.flatnonzero(district == one)
        home_index = np.unique(home[here], return_inverse=True)[1]
        blocks[here] = first + home_index // _HOUSEHOLDS
        first = int(blocks[here].max()) + 1
    return blocks


def _drawn(district: Ints, block: Ints, rng: np.random.Generator) -> tuple[Mask, Floats]:
    """Whether each person's block was drawn, and the inverse of the chance of it."""
    chosen = np.zeros(district.size, dtype=np.bool_)
    weight = np.ones(district.size)
    for one in np.unique(district):
        here = np.flatnonzero(district == one)
        district_blocks = np.unique(block[here])
        count = min(district_blocks.size, max(_FEWEST, round(_SHARE * district_blocks.size)))
        order = np.argsort(rng.random(district_blocks.size), kind="stable")
        chosen[here] = np.isin(block[here], district_blocks[order[:count]])
        weight[here] = district_blocks.size / count
    return chosen, weight


def _asked(home: Ints, rng: np.random.Generator) -> Mask:
    names, home_index = np.unique(home, return_inverse=True)
    return np.asarray((rng.random(names.size) < _ASKED)[home_index])


def _calibrated(weight: Floats, there: Ints, margins: tuple[Ints, ...]) -> Floats:
    """Weights raked to the number of people in the frame, margin by margin."""
    wanted = [np.bincount(margin).astype(np.float64) for margin in margins]
    sample_margins = [margin[there] for margin in margins]
    for _ in range(20):
        for total, codes in zip(wanted, sample_margins, strict=True):
            held = np.bincount(codes, weights=weight, minlength=total.size)
            factor = np.divide(total, held, out=np.ones(total.size), where=held > 0)
            weight = weight * factor[codes]
    return weight


def _to_cents(weight: Floats, total: int) -> Floats:
    """Weights with two decimals that still sum to the frame."""
    cents = np.rint(weight * (total / weight.sum()) * _CENTS).astype(np.int64)
    over = int(cents.sum()) - total * _CENTS
    step = -1 if over > 0 else 1
    cents[np.argsort(-cents, kind="stable")[: abs(over)]] += step
    return np.asarray(cents / _CENTS)
