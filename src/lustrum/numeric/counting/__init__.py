"""From coded columns to tables: the engine that counts, adds up and ranks, wherever the columns come from."""

from lustrum.numeric.counting.cube import Cube
from lustrum.numeric.counting.engine import Engine, KernelEngine, SumEngine
from lustrum.numeric.counting.plan import Chunk

__all__ = ["Chunk", "Cube", "Engine", "KernelEngine", "SumEngine"]
