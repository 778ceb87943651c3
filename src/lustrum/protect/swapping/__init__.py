"""Record swapping: households trade places; everything else about them stays."""

from lustrum.protect.swapping.channel import estimate_channel
from lustrum.protect.swapping.report import Swapped, SwapReport
from lustrum.protect.swapping.spec import RecordSwapping

__all__ = ["RecordSwapping", "SwapReport", "Swapped", "estimate_channel"]
