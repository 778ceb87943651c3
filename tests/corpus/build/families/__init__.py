"""after SDMX, Eurostat, national offices, code lists, companion columns, crosstabs, linked files"""

from corpus.build.families import (
    america,
    codes,
    columns,
    continent,
    crosstabs,
    europe,
    islands,
    linked,
    numbers,
    sdmx,
)

__all__ = [
    "america",
    "codes",
    "columns",
    "continent",
    "crosstabs",
    "europe",
    "islands",
    "linked",
    "numbers",
    "sdmx",
]
