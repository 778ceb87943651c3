"""From coded columns to tables: the engine that counts, adds up and ranks, wherever the columns come from."""

from lustrum.counting.chunk import Chunk
from lustrum.counting.cube import Cube
from lustrum.counting.engine import Engine, KernelEngine, SumEngine

__all__ = ["Chunk", "Cube", "Engine", "KernelEngine", "SumEngine"]
