"""A protected table in the agency's hands: what may be published, and why each cell is as it is."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from lustrum.formats.frames import two_way
from lustrum.model import Decision, InputError, Release
from lustrum.model.table import Framed
from lustrum.model.variable import TOTAL_CODE

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class ProtectedTable(Framed):
    """The agency's own result of a cross tabulation; it holds no true count.

    ``frame`` is public: the table as pandas lays it out, hidden cells missing. ``reasons`` is the agency's own,
    a frame of the same layout that says of every cell why it is as it is; whoever reads it knows which cells
    are sensitive. A table that a policy refused has a ``decision`` with reasons and no ``release``.
    """

    release: Release | None
    rows: int
    """How many of the variables stand along the rows."""
    why: Any
    decision: Decision | None = None
    normalize: str = ""
    """Of what the frame shows shares: of ``all``, of rows (``index``) or of ``columns``."""

    def __repr__(self) -> str:
        return (
            "ProtectedTable(refused)"
            if self.release is None
            else f"ProtectedTable({self.release!r})"
        )

    @property
    def refused(self) -> bool:
        """Whether there is nothing to see."""
        return self.release is None

    @property
    def frame(self) -> pandas.DataFrame:
        """The public table as pandas lays it out; an error says why where the table was refused."""
        release = self._cells()
        numbers = two_way(release, self.rows)
        return self._shares(release, numbers) if self.normalize else numbers

    def _shares(self, release: Release, numbers: pandas.DataFrame) -> pandas.DataFrame:
        """Shares from what is shown; none where the whole, or a part of it without margins, is hidden."""
        values = numbers.to_numpy(dtype=float, na_value=np.nan).reshape(release.shape)
        down = tuple(range(self.rows))
        across = tuple(range(self.rows, len(release.axes)))
        over = {"all": (*down, *across), "index": across, "columns": down}[self.normalize]
        totals = {
            at for at, axis in enumerate(release.axes) if axis.categories[-1].code == TOTAL_CODE
        }
        whole = values
        for at in over:
            whole = whole.take([-1], at) if at in totals else whole.sum(axis=at, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = (values / whole).reshape(numbers.shape)
        return type(numbers)(shares, index=numbers.index, columns=numbers.columns)

    @property
    def reasons(self) -> pandas.DataFrame:
        """Why each cell is as it is, for the agency alone: it tells which cells are sensitive."""
        release = self._cells()
        return two_way(release, self.rows, np.asarray(self.why, dtype=object))

    def _cells(self) -> Release:
        if self.release is not None:
            return self.release
        if self.decision is None:
            raise InputError("The table was refused, so there is no frame of it.")
        return self.decision._cells()

    def _repr_html_(self) -> str:
        """The public table, for a notebook."""
        if self.decision is not None:
            return self.decision._repr_html_()
        return self.release._repr_html_() if self.release is not None else escape(repr(self))
