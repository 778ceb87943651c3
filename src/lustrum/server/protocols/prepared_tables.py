"""Prepared tables as tables of PxWebApi, each response of each table by itself: ``programme.table.response``.

What is selected is a part of what is published; a variable that is not selected stands for its total.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lustrum.answer import TableService
from lustrum.model import Axis, DescribedStatistic, QueryError, Release, TableAxis
from lustrum.model.arrays import Array
from lustrum.model.errors import choices
from lustrum.model.variable import TOTAL_CODE
from lustrum.public.prepared import PreparedFolder
from lustrum.public.prepared.folder import PreparedTable
from lustrum.server.http.errors import not_found
from lustrum.server.pages.prepared import find_programme, programmes
from lustrum.server.protocols.selections import Offer, selected
from lustrum.server.service.served_dataset import find


class PreparedOffer:
    """A prepared table as other protocols see it, with what :class:`Offer` has for a dataset."""

    def __init__(self, folder: PreparedFolder, table: PreparedTable) -> None:
        self.folder, self.table = folder, table
        self.name = f"{folder.name}.{table.id}"
        self.release = folder.release(table)
        unit = self.release.unit or table.unit
        label = table.label.removeprefix(f"{table.title}: ")
        what = DescribedStatistic(table.response, label, unit, self.release.decimals)
        self.contents = (what,)
        self.variables = self.release.axes

    @property
    def title(self) -> str:
        """What the table is called."""
        return self.table.label

    def levels(self, name: str) -> tuple[str, ...]:
        """None: subtotals stand among the categories."""
        return ()

    def codes(self, name: str, level: str | None) -> list[str]:
        """The codes of a variable."""
        return list(self.variable(name).codes)

    def variable(self, name: str) -> TableAxis:
        """The variable of that name; a clear error where there is none."""
        names = [variable.name for variable in self.variables]
        if name not in names:
            raise QueryError(
                f"The table {self.name!r} has no variable {name[:80]!r}; {choices(name, names)}."
            )
        return self.variables[names.index(name)]

    def axis(self, name: str, expressions: Sequence[str], level: str | None = None) -> Axis:
        """A variable with the codes that some expressions select."""
        return Axis(name, level, tuple(selected(expressions, self.variable(name).codes, name)))

    def part(self, axes: Sequence[Axis]) -> Release:
        """The table by these variables, in this order; all of it where none is named."""
        asked = {axis.variable: axis.codes or () for axis in axes}
        if len(asked) < len(axes):
            raise QueryError("The selection names a variable twice; name it once.")
        picks, kept = [], []
        for place, axis in enumerate(self.release.axes):
            codes = asked.get(axis.name, axis.codes if not axes else (TOTAL_CODE,))
            if axis.name in asked or not axes:
                kept.append(place)
            elif TOTAL_CODE not in axis.codes:
                raise QueryError(
                    f"The variable {axis.name!r} has no total, so that it cannot be left out; select it."
                )
            picks.append([axis.codes.index(code) for code in codes])
        part = self.release.take(picks)
        names = [*asked] or [axis.name for axis in part.axes]
        order = sorted(range(len(kept)), key=lambda at: names.index(part.axes[kept[at]].name))

        def turned(array: Array) -> Array:
            return array.reshape([part.shape[place] for place in kept]).transpose(order)

        return replace(
            part, axes=tuple(part.axes[kept[at]] for at in order), **part.each_array(turned)
        )


def offered(service: TableService, name: str) -> Offer | PreparedOffer:
    """The dataset or the prepared table of an address; a clear problem where there is none."""
    programme, dot, table = name.partition(".")
    if not dot:
        return Offer(find(service, name))
    folder = find_programme(service, programme)
    if table not in [one.id for one in folder.tables]:
        raise not_found(f"There is no prepared table {name[:80]!r}.")
    return PreparedOffer(folder, folder.table(table))


def prepared_offers(service: TableService) -> list[PreparedOffer]:
    """All prepared tables that may be served."""
    return [
        PreparedOffer(folder, table) for folder in programmes(service) for table in folder.tables
    ]
