"""Policies to begin with, one for each way to protect tables that people make themselves.

==================  ============================================================================
``strict``          one protected population: unlimited questions tell no more than one file
``keyed-rounding``  random rounding by record keys: nested tables can pin small counts
``cell-key``        noise by record keys: sums of many parts average it out
==================  ============================================================================
"""

from __future__ import annotations

from importlib.resources import files

from lustrum.model import InputError
from lustrum.model.errors import choices

__all__ = ["PRESETS", "preset"]

PRESETS = ("strict", "keyed-rounding", "cell-key")


def preset(name: str, dataset: str = "*") -> str:
    """The text of a preset, for one dataset or for any.

    >>> preset("strict", "people").count('dataset = "people"')
    1
    """
    if name not in PRESETS:
        raise InputError(f"There is no preset {name!r}; {choices(name, PRESETS)}.")
    text = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return text.replace('dataset = "*"', f'dataset = "{dataset}"', 1)
