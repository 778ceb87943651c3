"""What the demo survey holds: people of 15 and over, their work and schooling, weights and the design."""

from __future__ import annotations

from lustrum.demo.census.description import EMPLOYMENT, SEX
from lustrum.demo.geography import districts
from lustrum.demo.names import REGIONS
from lustrum.demo.vocabulary import (
    DemoGroup,
    DemoHierarchy,
    DemoLevel,
    DemoMeasure,
    DemoStructuralZero,
    DemoVariable,
    DemoWeight,
    Description,
)

DISTRICT = DemoVariable(
    "district",
    "District",
    "District of usual residence; the survey was drawn in each of them separately.",
    tuple(districts()),
    (
        DemoHierarchy(
            "geography",
            "Regions",
            (
                DemoLevel(
                    "region",
                    "Region",
                    tuple(
                        DemoGroup(
                            code, name, tuple(d for d, _ in districts() if d.startswith(f"{code}-"))
                        )
                        for code, name in REGIONS
                    ),
                ),
            ),
        ),
    ),
)

#: The first five-year band of the census in each age group of the survey.
AGE_FROM = (3, 5, 7, 9, 11, 13, 15)

AGE_GROUP = DemoVariable(
    "age",
    "Age",
    "Age in completed years at the interview.",
    (
        ("1", "15 to 24"),
        ("2", "25 to 34"),
        ("3", "35 to 44"),
        ("4", "45 to 54"),
        ("5", "55 to 64"),
        ("6", "65 to 74"),
        ("7", "75 and over"),
    ),
    (
        DemoHierarchy(
            "working-age",
            "Working age",
            (
                DemoLevel(
                    "working-age",
                    "Working age",
                    (
                        DemoGroup("W", "15 to 64", ("1", "2", "3", "4", "5")),
                        DemoGroup("P", "65 and over", ("6", "7")),
                    ),
                ),
            ),
        ),
    ),
)

SCHOOLING = DemoVariable(
    "education",
    "Education",
    "Highest level of education completed.",
    (("1", "Low"), ("2", "Medium"), ("3", "High"), ("4", "Not stated")),
)

#: The level of the survey for each level of the census, from 'not applicable' on.
SCHOOLING_OF = (3, 0, 0, 0, 1, 1, 2, 2, 3)

#: People of 15 and over in the frame.
ADULTS = 123_878

#: The columns of bootstrap weights.
REPLICATES = tuple(f"replicate_{number}" for number in range(1, 61))

LABOUR_FORCE = Description(
    name="survey",
    title="Demo labour force survey",
    unit="person",
    units="people",
    description=(
        "A synthetic sample of people of 15 and over in an invented country: none of them exists. Blocks of "
        "households were drawn in every district; weights make up for the draw and for missing answers. "
        "Bootstrap weights show how much chance there is in the draw."
    ),
    record_id="respondent_id",
    identifiers=("stratum", "block"),
    variables=(DISTRICT, SEX, AGE_GROUP, EMPLOYMENT, SCHOOLING),
    measures=(DemoMeasure("hours", "Hours worked in the week", "hours", 0),),
    weights=(DemoWeight("weight", "Survey weight", 2, "stratum", "block", ADULTS, REPLICATES),),
    structural_zeros=(
        DemoStructuralZero(
            "Nobody retires before 45.", (("age", ("1", "2", "3")), ("employment", ("4",)))
        ),
    ),
)
