"""Record swapping: households trade places; everything else about them stays."""

from lustrum.protect.swapping.run import Swapped, SwapReport
from lustrum.protect.swapping.spec import RecordSwapping, estimate_channel

__all__ = ["RecordSwapping", "SwapReport", "Swapped", "estimate_channel"]
