"""The dataset descriptions shipped with the demo, and where they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lustrum.demo.census.description import PEOPLE
from lustrum.demo.labour_force.description import LABOUR_FORCE
from lustrum.demo.register.description import BUSINESSES
from lustrum.demo.translated import translations
from lustrum.demo.vocabulary import Description

MAP = "areas.topojson"
"""The file of the invented map."""

DESCRIPTIONS: dict[str, Description] = {
    dataset.name: replace(
        dataset,
        translations=translations(dataset),
        maps=tuple(("area", MAP) for v in dataset.variables if v.name == "area"),
    )
    for dataset in (PEOPLE, BUSINESSES, LABOUR_FORCE)
}


def description_path(name: str) -> Path:
    """The TOML file that describes a demo dataset, ``demo``, ``businesses`` or ``survey``.

    >>> description_path("demo").name
    'demo.toml'
    """
    if name not in DESCRIPTIONS:
        raise ValueError(f"no demo dataset {name!r}; there are {', '.join(DESCRIPTIONS)}")
    return Path(__file__).parent / "files" / f"{name}.toml"
