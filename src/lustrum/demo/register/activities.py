"""Economic activities of the demo register, in the manner of NACE Rev. 2.

Nineteen sections with eighty-odd divisions, and what the businesses of each section are like. The
order of the divisions is the order of their codes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A section of the activity classification with what its businesses are like.

    ``share`` is its weight among all businesses, ``turnover`` the typical turnover per person
    engaged in thousand euro, ``spread`` how unequal businesses are, ``large`` how much more often
    they have many employees, ``export`` the typical share sold abroad.
    """

    code: str
    label: str
    share: float
    turnover: float
    spread: float
    large: float
    export: float
    divisions: tuple[tuple[str, str], ...]


def _divisions(first: int, labels: str) -> tuple[tuple[str, str], ...]:
    """Consecutive two-digit codes for labels separated by semicolons."""
    return tuple((f"{code:02d}", label) for code, label in enumerate(labels.split("; "), first))


SECTIONS = (
    Section(
        "A",
        "Agriculture, forestry and fishing",
        share=9.0,
        turnover=70,
        spread=0.9,
        large=0.3,
        export=0.1,
        divisions=_divisions(
            1,
            "Crop and animal production; Forestry and logging; Fishing and aquaculture",
        ),
    ),
    Section(
        "B",
        "Mining and quarrying",
        share=0.15,
        turnover=260,
        spread=1.3,
        large=2.5,
        export=0.25,
        divisions=_divisions(
            5,
            "Coal mining; Oil and gas extraction; Mining of metal ores; Other mining and "
            "quarrying; Mining support services",
        ),
    ),
    Section(
        "C",
        "Manufacturing",
        share=7.5,
        turnover=170,
        spread=1.1,
        large=3.0,
        export=0.35,
        divisions=_divisions(
            10,
            "Food products; Beverages; Tobacco products; Textiles; Clothing; Leather and "
            "footwear; Wood and cork products; Paper products; Printing; Refined petroleum; "
            "Chemicals; Pharmaceuticals; Rubber and plastics; Glass, ceramics and cement; Basic "
            "metals; Metal products; Computers and electronics; Electrical equipment; Machinery; "
            "Motor vehicles; Ships, trains and aircraft; Furniture; Other manufacturing; Repair "
            "of machinery",
        ),
    ),
    Section(
        "D",
        "Electricity and gas supply",
        share=0.3,
        turnover=900,
        spread=1.5,
        large=2.0,
        export=0.08,
        divisions=_divisions(
            35,
            "Electricity, gas and steam supply",
        ),
    ),
    Section(
        "E",
        "Water supply and waste",
        share=0.5,
        turnover=220,
        spread=1.0,
        large=2.2,
        export=0.05,
        divisions=_divisions(
            36,
            "Water supply; Sewerage; Waste collection and recycling; Clean-up of polluted sites",
        ),
    ),
    Section(
        "F",
        "Construction",
        share=12.0,
        turnover=120,
        spread=0.9,
        large=1.0,
        export=0.03,
        divisions=_divisions(
            41,
            "Construction of buildings; Civil engineering; Specialised building trades",
        ),
    ),
    Section(
        "G",
        "Trade and repair of vehicles",
        share=20.0,
        turnover=300,
        spread=1.1,
        large=1.0,
        export=0.1,
        divisions=_divisions(
            45,
            "Trade and repair of vehicles; Wholesale trade; Retail trade",
        ),
    ),
    Section(
        "H",
        "Transport and storage",
        share=4.5,
        turnover=140,
        spread=1.0,
        large=1.6,
        export=0.2,
        divisions=_divisions(
            49,
            "Land transport and pipelines; Water transport; Air transport; Warehousing and "
            "transport support; Postal and courier services",
        ),
    ),
    Section(
        "I",
        "Hotels and restaurants",
        share=6.5,
        turnover=50,
        spread=0.7,
        large=1.3,
        export=0.02,
        divisions=_divisions(
            55,
            "Hotels and other lodging; Restaurants and bars",
        ),
    ),
    Section(
        "J",
        "Information and communication",
        share=4.0,
        turnover=140,
        spread=1.1,
        large=1.4,
        export=0.25,
        divisions=_divisions(
            58,
            "Publishing; Film, video and music; Broadcasting; Telecommunications; Computer "
            "programming and consultancy; Information services",
        ),
    ),
    Section(
        "K",
        "Finance and insurance",
        share=1.8,
        turnover=350,
        spread=1.5,
        large=1.3,
        export=0.15,
        divisions=_divisions(
            64,
            "Banking and financial services; Insurance and pension funding; Brokers and fund "
            "managers",
        ),
    ),
    Section(
        "L",
        "Real estate",
        share=4.5,
        turnover=260,
        spread=1.2,
        large=0.3,
        export=0.01,
        divisions=_divisions(
            68,
            "Real estate",
        ),
    ),
    Section(
        "M",
        "Professional and technical services",
        share=11.5,
        turnover=95,
        spread=1.0,
        large=0.6,
        export=0.12,
        divisions=_divisions(
            69,
            "Law and accounting; Head offices and management consultancy; Architecture and "
            "engineering; Scientific research; Advertising and market research; Design, "
            "photography and translation; Veterinary services",
        ),
    ),
    Section(
        "N",
        "Administrative and support services",
        share=4.2,
        turnover=80,
        spread=1.0,
        large=2.0,
        export=0.06,
        divisions=_divisions(
            77,
            "Rental and leasing; Employment agencies; Travel agencies; Security services; "
            "Cleaning and landscaping; Office support",
        ),
    ),
    Section(
        "O",
        "Public administration",
        share=0.3,
        turnover=60,
        spread=0.5,
        large=5.0,
        export=0.0,
        divisions=_divisions(
            84,
            "Public administration and defence",
        ),
    ),
    Section(
        "P",
        "Education",
        share=1.9,
        turnover=45,
        spread=0.7,
        large=2.0,
        export=0.02,
        divisions=_divisions(
            85,
            "Education",
        ),
    ),
    Section(
        "Q",
        "Health and social work",
        share=5.0,
        turnover=60,
        spread=0.8,
        large=1.6,
        export=0.01,
        divisions=_divisions(
            86,
            "Health care; Residential care; Social work",
        ),
    ),
    Section(
        "R",
        "Arts and recreation",
        share=2.4,
        turnover=60,
        spread=1.1,
        large=0.7,
        export=0.05,
        divisions=_divisions(
            90,
            "Creative arts; Libraries and museums; Gambling and betting; Sports and amusement",
        ),
    ),
    Section(
        "S",
        "Other services",
        share=4.0,
        turnover=45,
        spread=0.7,
        large=0.5,
        export=0.01,
        divisions=_divisions(
            94,
            "Membership organisations; Repair of household goods; Personal services",
        ),
    ),
)

#: Sectors as code, label and the letters of their sections.
SECTORS = (
    ("agriculture", "Agriculture", "A"),
    ("industry", "Industry and utilities", "BCDE"),
    ("construction", "Building", "F"),
    ("trade", "Trade, transport and hospitality", "GHI"),
    ("business", "Information, finance and business services", "JKLMN"),
    ("community", "Public and personal services", "OPQRS"),
)
