"""What tables, releases and decisions share: they turn into frames of pandas, polars and Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lustrum.model.plugins import load

if TYPE_CHECKING:
    import pandas
    import polars


class Framed:
    """Something that turns into a frame: a row for each cell, or ``wide`` with the last axis as columns.

    A value that is not shown is missing, never a number that stands for it. ``labels`` stand beside the codes,
    or instead of them where the frame is wide. Bounds, standard errors and reliability are kept.
    """

    def to_pandas(self, *, labels: bool = True, wide: bool = False) -> pandas.DataFrame:
        """A pandas frame of the cells, long or ``wide``, with ``labels`` or without."""
        frame: pandas.DataFrame = frames().to_pandas(self._cells(), labels=labels, wide=wide)
        return frame

    def to_polars(self, *, labels: bool = True, wide: bool = False) -> polars.DataFrame:
        """A polars frame of the cells, long or ``wide``, with ``labels`` or without."""
        frame: polars.DataFrame = frames().to_polars(self._cells(), labels=labels, wide=wide)
        return frame

    def to_arrow(self, *, labels: bool = True, wide: bool = False) -> Any:
        """An Arrow table of the cells, long or ``wide``, with ``labels`` or without."""
        return frames().to_arrow(self._cells(), labels=labels, wide=wide)

    def _cells(self) -> Any:
        """The table or release that becomes a frame."""
        return self


def frames() -> Any:
    """What makes the frames: a room above the model has registered it, and it is imported when asked for."""
    return load("lustrum.frames", "frames")
