"""Policies to begin with, one for each way to protect tables that people make themselves.

==================  ============================================================================
``strict``          one protected population: unlimited questions tell no more than one file
``proven``          people made up from noisy tables: differential privacy, paid from a budget
``keyed-rounding``  random rounding by record keys; answers are counted together
``cell-key``        noise by record keys; answers are counted together
==================  ============================================================================
"""

from __future__ import annotations

from importlib.resources import files

from lustrum.model import Dataset
from lustrum.model.errors import check_known

__all__ = ["PRESETS", "preset"]

PRESETS = ("strict", "proven", "keyed-rounding", "cell-key")

_MAGNITUDES = """
# Sums: every contribution is multiplied once by a number near one.
# Nobody can be certain of a contribution within p percent.
[[before]]
method = "protected-magnitudes"
p = 5.0
existence = "secret"    # "public" if anybody may know which units exist: sums are then much closer
"""
_SUMS = """
# Sums get noise from the keys of their own records.
# A sensitive sum changes by at least p percent of its largest contribution.
[sums]
method = "cell-key-magnitude"
p_percent = 10.0
extra = 1.0
large = 0.1
"""
_PROVEN_SUMS = """
# Sums: take these lines in, and state for each measure the most that one record counts.
# Fix it without the records, from a law or a pay scale: nothing hides what a bound tells that follows from
# them.
# [[before]]
# method = "proven-sums"
# rho = 0.5
# bounds = { MEASURES }
"""
_WEIGHTS = """
# Weighted counts: respondents of a class share one protected weight.
# Name in 'classes' the variables that weights follow, the most telling one first.
[weights]
weight = "{weight}"
"""


def preset(name: str, dataset: str | Dataset = "*") -> str:
    """The text of a preset, for one dataset or for any.

    Given the description of a dataset, the preset also protects the sums of its measures and, if it is strict,
    its first weight.

    >>> preset("strict", "people").count('dataset = "people"')
    1
    """
    check_known((name,), PRESETS, "There is no preset")
    text = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    if isinstance(dataset, Dataset):
        text = _fitted(text, name, dataset)
        dataset = dataset.name
    return text.replace('dataset = "*"', f'dataset = "{dataset}"', 1)


def _fitted(text: str, name: str, dataset: Dataset) -> str:
    strict = name == "strict"
    if name == "proven":
        return _with_sums(text, dataset) if dataset.measures else text
    if dataset.measures and strict:
        text = text.replace("\n[protect]\n", f"{_MAGNITUDES}\n[protect]\n", 1)
    elif dataset.measures:
        # Sums are not counted together with what was answered.
        text = text[: text.index("# What everybody received")] + f"{_SUMS[1:]}\nend = true\n"
    if dataset.weights and strict:
        weights = _WEIGHTS.format(weight=dataset.weights[0].name)
        text = text.replace("\nend = true\n", f"{weights}\nend = true\n", 1)
    return text


def _with_sums(text: str, dataset: Dataset) -> str:
    """Sums with a proof need bounds that nobody but the agency can state; weights have no proof."""
    asked = ", ".join(f"{measure.name} = 0" for measure in dataset.measures)
    block = _PROVEN_SUMS.replace("MEASURES", asked)
    return text.replace("\n[protect]\n", f"{block}\n[protect]\n", 1)
