"""The demo census: a synthetic population with the sparsity of a real one.

People are drawn household by household, each trait given the earlier ones: home, age and sex,
citizenship, education, activity, occupation. The conditional distributions are set so that the
hypercube of region, sex, age, activity, occupation, education and citizenship (245,700 cells) has
the distribution of cell counts of Shlomo, Antal, Elliot (2015), Table 1, at 1.5 million people.
No cell is ever looked at or changed after the draw.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lustrum.demo.census.description import (
    AGE,
    AREA,
    CITIZENSHIP,
    EDUCATION,
    EMPLOYMENT,
    HOUSEHOLD_SIZE,
    OCCUPATION,
    OLDEST_BAND,
    REGION,
    SEX,
)
from lustrum.demo.census.households import members
from lustrum.demo.census.origins import citizenship
from lustrum.demo.census.schooling import education
from lustrum.demo.census.work import activity, occupation, profile_rows
from lustrum.demo.columns import categorical
from lustrum.demo.draws import generators
from lustrum.demo.geography import area_kinds, area_regions
from lustrum.demo.progress import Progress, silent


def people(
    persons: int = 1_500_000, seed: int = 2001, progress: Progress | None = None
) -> pa.Table:
    """A synthetic census of exactly ``persons`` people; the same seed gives the same table.

    ``progress`` is called with the share of the work done, from 0 to 1.

    >>> people(persons=1000).num_rows
    1000
    """
    if persons < 1:
        raise ValueError(f"a population needs at least one person, not {persons}")
    tell = progress or silent
    tell(0.0)
    homes, origins, schools, jobs, posts = generators(seed, 5)
    home = members(persons, homes)
    tell(0.35)
    kind = area_kinds()[home.area]
    band = np.minimum(home.age // 5, OLDEST_BAND)
    citizen = citizenship(home, kind, band, origins)
    tell(0.5)
    level = education(home, kind, band, citizen, schools)
    tell(0.65)
    rows = profile_rows(band, home.sex, level, citizen, kind)
    status = activity(rows, jobs)
    tell(0.75)
    job = occupation(rows, status, posts)
    tell(0.9)
    size = np.minimum(home.size, len(HOUSEHOLD_SIZE)) - 1
    table = pa.table(
        {
            "person_id": pa.array(np.arange(1, persons + 1, dtype=np.int64)),
            "household_id": pa.array(home.household + 1),
            "region": categorical(area_regions()[home.area], REGION),
            "area": categorical(home.area, AREA),
            "household_size": categorical(size, HOUSEHOLD_SIZE),
            "sex": categorical(home.sex, SEX),
            "age": categorical(band, AGE),
            "employment": categorical(status, EMPLOYMENT),
            "occupation": categorical(job, OCCUPATION),
            "education": categorical(level, EDUCATION),
            "citizenship": categorical(citizen, CITIZENSHIP),
        }
    )
    tell(1.0)
    return table
