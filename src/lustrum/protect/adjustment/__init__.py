"""Controlled tabular adjustment: sensitive cells move far enough, the others as little as possible."""

from lustrum.protect.adjustment.adjust import Adjusted, adjust
from lustrum.protect.adjustment.method import ControlledAdjustment

__all__ = ["Adjusted", "ControlledAdjustment", "adjust"]
