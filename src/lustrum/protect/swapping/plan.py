"""The plan of a swap: what the spec decides and the run carries out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SwapPlan:
    """Checked parameters of a swap, as :class:`~lustrum.protect.swapping.RecordSwapping` explains them.

    ``traded`` are the variables that partners trade, the finest areas first. ``rate`` holds for areas that
    ``area_rates`` does not name.
    """

    traded: tuple[str, ...]
    household: str | None
    rate: float
    area_rates: Mapping[str, float]
    control: tuple[str, ...]
    similar: tuple[tuple[str, ...], ...]
    same_size: bool
    within: str | None
    target: Literal["random", "risk"]
    risk_on: tuple[tuple[str, ...], ...]
    k: int
    levels: tuple[str, ...]
    all_unsafe: bool
    weight: str | None
    no_swap: tuple[str, ...]
    no_swap_variable: str | None
