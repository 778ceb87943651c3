"""What the demo census asks: its variables, their codes, and what cannot be."""

from __future__ import annotations

from collections.abc import Sequence

from lustrum.demo.geography import area_variable, nesting_zeros, region_variable
from lustrum.demo.vocabulary import (
    DemoGroup,
    DemoHierarchy,
    DemoLevel,
    DemoStructuralZero,
    DemoVariable,
    Description,
)


def _groups(*groups: tuple[str, str, str]) -> tuple[DemoGroup, ...]:
    """Groups from (code, label, members separated by spaces)."""
    return tuple(DemoGroup(code, label, tuple(members.split())) for code, label, members in groups)


def _single(name: str, label: str, *groups: tuple[str, str, str]) -> DemoHierarchy:
    """A hierarchy of one level that carries the hierarchy's own name."""
    return DemoHierarchy(name, label, (DemoLevel(name, label, _groups(*groups)),))


def _numbers(first: int, last: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(first, last + 1))


REGION = region_variable("Region of usual residence (NUTS 2).")
AREA = area_variable("Area of usual residence, within district and region.")

HOUSEHOLD_SIZE = DemoVariable(
    "household_size",
    "Household size",
    "Number of people living in the household.",
    (
        ("1", "1 person"),
        ("2", "2 people"),
        ("3", "3 people"),
        ("4", "4 people"),
        ("5", "5 people"),
        ("6", "6 people or more"),
    ),
    (
        _single(
            "broad",
            "Small and large households",
            ("H1", "Living alone", "1"),
            ("H2", "Two people", "2"),
            ("H3", "Three or four people", "3 4"),
            ("H4", "Five people or more", "5 6"),
        ),
    ),
)

SEX = DemoVariable("sex", "Sex", "Sex as recorded in the census.", (("1", "Male"), ("2", "Female")))

OLDEST_BAND = 20

_TEN_YEARS = (
    *(
        DemoGroup(f"T{n + 1}", f"{10 * n} to {10 * n + 9}", _numbers(2 * n + 1, 2 * n + 2))
        for n in range(10)
    ),
    DemoGroup("T11", "100 and over", ("21",)),
)

AGE = DemoVariable(
    "age",
    "Age",
    "Age in completed years on census day, in five-year bands.",
    (
        *((str(band + 1), f"{5 * band} to {5 * band + 4}") for band in range(OLDEST_BAND)),
        ("21", "100 and over"),
    ),
    (
        DemoHierarchy(
            "broad",
            "Broad age groups",
            (
                DemoLevel("ten-year", "Ten-year bands", _TEN_YEARS),
                DemoLevel(
                    "life-stage",
                    "Life stage",
                    _groups(
                        ("L1", "Children (0 to 9)", "T1"),
                        ("L2", "Adolescents (10 to 19)", "T2"),
                        ("L3", "Young adults (20 to 29)", "T3"),
                        ("L4", "Adults in mid-life (30 to 59)", "T4 T5 T6"),
                        ("L5", "Older people (60 to 79)", "T7 T8"),
                        ("L6", "The oldest (80 and over)", "T9 T10 T11"),
                    ),
                ),
            ),
        ),
        DemoHierarchy(
            "school-and-work",
            "School and working ages",
            (
                DemoLevel(
                    "school-and-work",
                    "School and working ages",
                    (
                        DemoGroup("S1", "Before school (0 to 4)", _numbers(1, 1)),
                        DemoGroup("S2", "School age (5 to 19)", _numbers(2, 4)),
                        DemoGroup("S3", "Working age (20 to 64)", _numbers(5, 13)),
                        DemoGroup("S4", "Pension age (65 and over)", _numbers(14, 21)),
                    ),
                ),
            ),
        ),
        DemoHierarchy(
            "labour-market",
            "Labour market ages",
            (
                DemoLevel(
                    "labour-market",
                    "Labour market ages",
                    (
                        DemoGroup("M1", "Under 15", _numbers(1, 3)),
                        DemoGroup("M2", "15 to 64", _numbers(4, 13)),
                        DemoGroup("M3", "65 and over", _numbers(14, 21)),
                    ),
                ),
            ),
        ),
    ),
    edges=tuple(range(0, 5 * OLDEST_BAND + 1, 5)),
    unit="years",
)

EMPLOYED, UNEMPLOYED, STUDENT, RETIRED, OTHER_INACTIVE = range(5)

EMPLOYMENT = DemoVariable(
    "employment",
    "Current activity status",
    "What the person did in the week before census day; work takes precedence over everything else.",
    (
        ("1", "Employed"),
        ("2", "Unemployed"),
        ("3", "Pupil or student, not working"),
        ("4", "Retired, or living on a pension or capital income"),
        ("5", "Other, not in the labour force"),
    ),
    (
        _single(
            "labour-force",
            "Labour force",
            ("A", "In the labour force", "1 2"),
            ("I", "Not in the labour force", "3 4 5"),
        ),
    ),
)

OCCUPATION = DemoVariable(
    "occupation",
    "Occupation",
    "Occupation of the main job of those in work (ISCO-08 major groups).",
    (
        ("0", "Armed forces"),
        ("1", "Managers"),
        ("2", "Professionals"),
        ("3", "Technicians and associate professionals"),
        ("4", "Clerical support workers"),
        ("5", "Service and sales workers"),
        ("6", "Skilled agricultural, forestry and fishery workers"),
        ("7", "Craft and related trades workers"),
        ("8", "Plant and machine operators, and assemblers"),
        ("9", "Elementary occupations"),
        ("X", "Stated, but not classifiable"),
        ("U", "Not stated"),
        ("Z", "Not applicable: not in work"),
    ),
    (
        DemoHierarchy(
            "broad",
            "Broad occupations",
            (
                DemoLevel(
                    "broad",
                    "Broad occupations",
                    _groups(
                        ("B1", "Managers, professionals and technicians", "1 2 3"),
                        ("B2", "Clerical, service and sales work", "4 5"),
                        ("B3", "Skilled manual work", "6 7 8"),
                        ("B4", "Elementary work", "9"),
                        ("B5", "Armed forces and unknown", "0 X U"),
                        ("B6", "Not in work", "Z"),
                    ),
                ),
                DemoLevel(
                    "in-work",
                    "In work or not",
                    _groups(
                        ("W1", "In work", "B1 B2 B3 B4 B5"),
                        ("W2", "Without work", "B6"),
                    ),
                ),
            ),
        ),
    ),
)

EDUCATION = DemoVariable(
    "education",
    "Educational attainment",
    "Highest level of education completed (ISCED 2011), of people aged 15 and over.",
    (
        ("Z", "Not applicable: under 15"),
        ("0", "No formal education"),
        ("1", "Primary (ISCED 1)"),
        ("2", "Lower secondary (ISCED 2)"),
        ("3", "Upper secondary (ISCED 3)"),
        ("4", "Post-secondary, not tertiary (ISCED 4)"),
        ("5", "Short-cycle tertiary or bachelor (ISCED 5 and 6)"),
        ("7", "Master or doctorate (ISCED 7 and 8)"),
        ("U", "Not stated"),
    ),
    (
        _single(
            "broad",
            "Broad levels of education",
            ("E1", "Low: lower secondary at most", "0 1 2"),
            ("E2", "Medium: upper or post-secondary", "3 4"),
            ("E3", "High: tertiary", "5 7"),
            ("E4", "Not stated", "U"),
            ("E5", "Under 15", "Z"),
        ),
    ),
)

CITIZENSHIP = DemoVariable(
    "citizenship",
    "Citizenship",
    "Country of citizenship; of several, the one nearest to home counts.",
    (
        ("1", "Merrow"),
        ("2", "Another country of the European Union"),
        ("3", "Another European country"),
        ("4", "A country outside Europe"),
        ("5", "Stateless or not stated"),
    ),
    (
        _single(
            "broad",
            "Citizens and others",
            ("C", "Citizens of the country", "1"),
            ("F", "Foreign citizens, stateless or not stated", "2 3 4 5"),
        ),
    ),
)

UNDER_5 = _numbers(1, 1)
UNDER_15 = _numbers(1, 3)
UNDER_50 = _numbers(1, 10)
FROM_15 = _numbers(4, 21)


def _except(variable: DemoVariable, codes: Sequence[str]) -> tuple[str, ...]:
    return tuple(code for code in variable.code_list if code not in codes)


STRUCTURAL_ZEROS = (
    DemoStructuralZero(
        "Nobody under 15 works, looks for work or is retired.",
        (("age", UNDER_15), ("employment", ("1", "2", "4"))),
    ),
    DemoStructuralZero(
        "Nobody under 5 goes to school.", (("age", UNDER_5), ("employment", ("3",)))
    ),
    DemoStructuralZero("Nobody retires before 50.", (("age", UNDER_50), ("employment", ("4",)))),
    DemoStructuralZero(
        "Nobody under 15 has an occupation.",
        (("age", UNDER_15), ("occupation", _except(OCCUPATION, ("Z",)))),
    ),
    DemoStructuralZero(
        "Education is asked from 15 on.",
        (("age", UNDER_15), ("education", _except(EDUCATION, ("Z",)))),
    ),
    DemoStructuralZero(
        "Everybody of 15 and over has a level of education.",
        (("age", FROM_15), ("education", ("Z",))),
    ),
    DemoStructuralZero(
        "Nobody has a master's degree before 20.", (("age", ("4",)), ("education", ("7",)))
    ),
    DemoStructuralZero(
        "Every employed person has an occupation.", (("employment", ("1",)), ("occupation", ("Z",)))
    ),
    DemoStructuralZero(
        "Only the employed have an occupation.",
        (("employment", ("2", "3", "4", "5")), ("occupation", _except(OCCUPATION, ("Z",)))),
    ),
    DemoStructuralZero(
        "Only citizens serve in the armed forces.",
        (("citizenship", ("2", "3", "4", "5")), ("occupation", ("0",))),
    ),
    DemoStructuralZero(
        "Nobody serves in the armed forces from 65 on.",
        (("age", _numbers(14, 21)), ("occupation", ("0",))),
    ),
    DemoStructuralZero(
        "No child under 15 lives alone.", (("age", UNDER_15), ("household_size", ("1",)))
    ),
    *nesting_zeros(),
)

PEOPLE = Description(
    name="demo",
    title="Demo census",
    unit="person",
    units="people",
    description=(
        "A synthetic census of an invented country: nobody in it exists. Its hypercube of region, "
        "sex, age, activity, occupation, education and citizenship is as sparse and as skewed as "
        "the one of Shlomo, Antal and Elliot (2015), Table 1."
    ),
    record_id="person_id",
    identifiers=("household_id",),
    variables=(
        REGION,
        AREA,
        HOUSEHOLD_SIZE,
        SEX,
        AGE,
        EMPLOYMENT,
        OCCUPATION,
        EDUCATION,
        CITIZENSHIP,
    ),
    structural_zeros=STRUCTURAL_ZEROS,
)
