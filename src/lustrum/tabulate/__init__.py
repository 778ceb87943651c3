"""Engines that answer a table query: from disk, from memory, from a hypercube, in a database."""

from lustrum.numeric.counting.cube import Cube
from lustrum.numeric.counting.engine import Engine, KernelEngine
from lustrum.tabulate.draft import draft_description
from lustrum.tabulate.finest import finest_cells
from lustrum.tabulate.frame import FrameEngine
from lustrum.tabulate.hypercube import (
    HypercubeEngine,
    RecordsEngine,
    aggregate,
    cells_of,
    records_of,
)
from lustrum.tabulate.keys import Secret
from lustrum.tabulate.parquet import ParquetFiles
from lustrum.tabulate.sources import (
    FileSource,
    FrameSource,
    QuerySource,
    Source,
    ingest,
    read_description,
)
from lustrum.tabulate.store import EmbeddedEngine, Store

__all__ = [
    "Cube", "EmbeddedEngine", "Engine", "FileSource", "FrameEngine", "FrameSource",
    "HypercubeEngine", "KernelEngine", "ParquetFiles", "QuerySource", "RecordsEngine", "Secret",
    "Source", "Store", "aggregate", "cells_of", "draft_description", "finest_cells", "ingest",
    "read_description", "records_of",
]  # fmt: skip
