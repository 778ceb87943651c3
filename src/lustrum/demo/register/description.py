"""What the demo business register holds: activities, size classes, turnover and weights."""

from __future__ import annotations

from lustrum.demo.geography import area_variable, nesting_zeros, region_variable
from lustrum.demo.register.activities import SECTIONS, SECTORS
from lustrum.demo.vocabulary import (
    DemoGroup,
    DemoHierarchy,
    DemoLevel,
    DemoMeasure,
    DemoVariable,
    DemoWeight,
    Description,
)

ACTIVITY = DemoVariable(
    "activity",
    "Economic activity",
    "Main activity of the business (divisions in the manner of NACE Rev. 2).",
    tuple(division for section in SECTIONS for division in section.divisions),
    (
        DemoHierarchy(
            "sections",
            "Sections and sectors",
            (
                DemoLevel(
                    "section",
                    "Section",
                    tuple(
                        DemoGroup(s.code, s.label, tuple(code for code, _ in s.divisions))
                        for s in SECTIONS
                    ),
                ),
                DemoLevel(
                    "sector",
                    "Sector",
                    tuple(
                        DemoGroup(code, label, tuple(letters)) for code, label, letters in SECTORS
                    ),
                ),
            ),
        ),
    ),
)

#: Fewest employees of each size class.
SIZE_FROM = (0, 2, 10, 20, 50, 250)

SIZE = DemoVariable(
    "size",
    "Size class",
    "Size of the business by the number of people it employs.",
    (
        ("1", "0 or 1 employee"),
        ("2", "2 to 9 employees"),
        ("3", "10 to 19 employees"),
        ("4", "20 to 49 employees"),
        ("5", "50 to 249 employees"),
        ("6", "250 employees or more"),
    ),
    (
        DemoHierarchy(
            "enterprise-size",
            "Small, medium and large",
            (
                DemoLevel(
                    "enterprise-size",
                    "Small, medium and large",
                    (
                        DemoGroup("micro", "Micro (0 to 9)", ("1", "2")),
                        DemoGroup("small", "Small (10 to 49)", ("3", "4")),
                        DemoGroup("medium", "Medium (50 to 249)", ("5",)),
                        DemoGroup("large", "Large (250 and more)", ("6",)),
                    ),
                ),
            ),
        ),
    ),
    edges=SIZE_FROM,
    unit="employees",
)

REGION = region_variable("Region where the business has its seat (NUTS 2).")
AREA = area_variable("Area where the business has its seat, within district and region.")

_OWNER = "holding_id"
_MONEY = "thousand euro"

BUSINESSES = Description(
    name="businesses",
    title="Demo business register",
    unit="business",
    units="businesses",
    description=(
        "A synthetic business register of an invented country: none of these businesses exists. "
        "A few large businesses dominate many cells. Small businesses are a sample, so each of them "
        "has a weight."
    ),
    record_id="business_id",
    identifiers=("holding_id",),
    variables=(ACTIVITY, SIZE, REGION, AREA),
    measures=(
        DemoMeasure("employees", "Employees", "people", 0, _OWNER, earlier="employees_before"),
        DemoMeasure(
            "turnover",
            "Turnover",
            _MONEY,
            0,
            _OWNER,
            parts=("turnover_domestic", "turnover_export"),
            earlier="turnover_before",
        ),
        DemoMeasure("turnover_domestic", "Turnover at home", _MONEY, 0, _OWNER),
        DemoMeasure("turnover_export", "Turnover abroad", _MONEY, 0, _OWNER),
        DemoMeasure("wages", "Wages", _MONEY, 0, _OWNER, earlier="wages_before"),
        DemoMeasure("investment", "Investment", _MONEY, 0, _OWNER),
        DemoMeasure("employees_before", "Employees a year before", "people", 0, _OWNER),
        DemoMeasure("turnover_before", "Turnover a year before", _MONEY, 0, _OWNER),
        DemoMeasure("wages_before", "Wages a year before", _MONEY, 0, _OWNER),
    ),
    weights=(DemoWeight("weight", "Sampling weight", 2),),
    structural_zeros=nesting_zeros(),
)
