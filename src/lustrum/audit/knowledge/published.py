"""Published tables, and the knowledge that several of them give together.

Every protection method leaves an interval for each cell: one value where it is published, a rounding
interval, no limit where it is suppressed or was never shown. Tables over one population are
tied by the relations of their :class:`~lustrum.numeric.structure.Structure`; so suppression, rounding, merged
categories, margins of a hidden cube and earlier releases are all the same kind of knowledge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from lustrum.audit.knowledge.facts import Knowledge
from lustrum.model import Category, InputError, Release, Table, TableAxis, Variable
from lustrum.model.arrays import Ints
from lustrum.model.release import check_letters, check_release
from lustrum.numeric.structure import UNBOUNDED, Structure, TableLayout, complete_relations


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A published table: for each cell, the least and the greatest value that it can have.

    >>> axis = TableAxis.plain("sex", ["m", "f"])
    >>> PublishedTable.rounded([axis], [6, 0], base=3).high.tolist()
    [7, 1]
    """

    layout: TableLayout
    low: Ints
    high: Ints
    decimals: int = 0

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            array = np.array(getattr(self, name), dtype=np.int64)
            if array.shape != self.layout.shape:
                raise InputError(
                    f"A table of shape {self.layout.shape} got bounds of shape {array.shape}; the "
                    "shapes must be equal."
                )
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        return f"PublishedTable({' x '.join(a.name for a in self.layout.axes) or 'everybody'})"

    @classmethod
    def hidden(
        cls, axes: Sequence[TableAxis] | TableLayout, *, low: int = 0, decimals: int = 0
    ) -> PublishedTable:
        """A table that is not published, but asked about; its cells are not below ``low``."""
        layout = TableLayout.of(axes)
        lows = np.full(layout.shape, low, dtype=np.int64)
        return cls(layout, lows, np.full(layout.shape, UNBOUNDED, dtype=np.int64), decimals)

    @classmethod
    def exact(
        cls,
        axes: Sequence[TableAxis] | TableLayout,
        values: npt.ArrayLike,
        suppressed: npt.ArrayLike | None = None,
        *,
        low: int = 0,
        decimals: int = 0,
    ) -> PublishedTable:
        """A table published with exact values, except for suppressed cells, which are not below ``low``."""
        hidden = cls.hidden(axes, low=low, decimals=decimals)
        shown = np.asarray(values, dtype=np.int64)
        if shown.shape != hidden.low.shape:
            raise InputError(
                f"A table of shape {hidden.low.shape} got values of shape {shown.shape}; the shapes "
                "must be equal."
            )
        mask = np.zeros(shown.shape, dtype=np.bool_)
        if suppressed is not None:
            mask = np.asarray(suppressed, dtype=np.bool_)
            if mask.shape != shown.shape:
                raise InputError("The mask of suppressed cells must have the shape of its table.")
        return replace(
            hidden, low=np.where(mask, hidden.low, shown), high=np.where(mask, hidden.high, shown)
        )

    @classmethod
    def rounded(
        cls,
        axes: Sequence[TableAxis] | TableLayout,
        published: npt.ArrayLike,
        base: int,
        how: Literal["nearest", "adjacent"] = "nearest",
        *,
        low: int | None = 0,
        decimals: int = 0,
    ) -> PublishedTable:
        """A table in which every cell, including totals, was rounded independently to a multiple of a base.

        To the ``nearest`` multiple: the value lies in ``[(n - 1/2) b, (n + 1/2) b)`` (Domingo-Ferrer,
        Oganian and Torra 2002, section 4.2). To an ``adjacent`` one, as random and controlled rounding do:
        less than b away. All numbers are in units of ``10**-decimals``, the base too. Values are never
        below ``low``, unless it is None.
        """
        if isinstance(base, bool) or base != int(base) or base < 1:
            raise InputError(f"A rounding base must be a whole number of 1 or more, not {base!r}.")
        values = np.asarray(published, dtype=np.int64)
        if bool((values % base != 0).any()):
            raise InputError(f"A rounded value is not a multiple of the base {base}.")
        if how == "nearest":
            lows, highs = values - base // 2, values + (base + 1) // 2 - 1
        elif how == "adjacent":
            lows, highs = values - base + 1, values + base - 1
        else:
            raise InputError(
                f"Rounding goes to the 'nearest' or an 'adjacent' multiple, not {how!r}."
            )
        if low is not None:
            lows = np.maximum(lows, low)
        return cls(TableLayout.of(axes), lows, highs, decimals)

    @classmethod
    def of_release(cls, release: Release, *, low: int | None = None) -> PublishedTable:
        """What a release shows of each cell alone; a suppressed cell is not below ``low``.

        Unless ``low`` is given it is 0, or nothing where exact values or bounds of hidden cells are negative.
        Where a release states intervals, they hold for suppressed cells too: that is partial suppression.
        Cells that cannot hold anybody are known to be 0, whatever is shown of them.
        """
        check_letters(release)
        shown = release.shown
        published = np.where(shown, release.numbers, 0)
        if low is None:
            ends = published if release.channel is None else np.zeros(0)
            if release.least is not None:
                ends = release.least[~shown]
            low = 0 if bool((ends >= 0).all()) else -UNBOUNDED
        seen = cls.hidden(release.axes, low=low, decimals=release.decimals)
        least, most = seen.low, seen.high
        if release.least is not None and release.most is not None:
            lows, highs = release.least, release.most
            least, most = np.maximum(least, lows), np.minimum(most, highs)
        elif release.channel is not None:
            lows, highs = release.channel.support(published.ravel())
            lows, highs = lows.reshape(published.shape), highs.reshape(published.shape)
        else:
            lows = highs = published
        lows, highs = np.where(shown, lows, least), np.where(shown, highs, most)
        if release.structural is not None:
            lows, highs = (np.where(release.structural, 0, ends) for ends in (lows, highs))
        return replace(seen, low=lows, high=highs)


def from_tables(
    tables: Iterable[PublishedTable], *, variables: Iterable[Variable] = ()
) -> Knowledge:
    """What tables over one population reveal together; the cells come table after table.

    The inner cells of the hidden cube are included: they are not published, but not negative. If no table
    holds all of them, the cube is added as the last table. ``variables`` give the number of codes, which
    matters where a filter leaves out people that another table counts.

    >>> act, size = TableAxis.plain("act", ["a", "b"]), TableAxis.plain("size", ["s", "l"])
    >>> known = from_tables([PublishedTable.hidden([act, size]), PublishedTable.exact([act], [3, 5])])
    >>> known, known.names[4]
    (Knowledge(6 cells, 2 facts, whole numbers), 'act=a')
    """
    seen = list(tables)
    if not seen:
        raise InputError("Knowledge needs at least one table.")
    if len({s.decimals for s in seen}) > 1:
        raise InputError("The tables have different decimals; give all of them in the same unit.")
    described = tuple(variables)
    cube = hidden_cube([s.layout for s in seen], described)
    if cube is not None:
        low = 0 if all(int(s.low.min(initial=0)) >= 0 for s in seen) else -UNBOUNDED
        seen.append(PublishedTable.hidden(cube, low=low, decimals=seen[0].decimals))
    structure = Structure.of_tables([s.layout for s in seen], variables=described)
    relations = complete_relations(structure)
    zeros = np.zeros(relations.count, dtype=np.int64)
    return Knowledge(
        names=_PublishedNames(structure),
        low=np.concatenate([s.low.ravel() for s in seen]),
        high=np.concatenate([s.high.ravel() for s in seen]),
        matrix=relations.matrix,
        fact_low=zeros,
        fact_high=zeros,
        decimals=seen[0].decimals,
        structure=structure,
    )


def hidden_cube(
    layouts: Sequence[TableLayout], variables: Iterable[Variable] = ()
) -> TableLayout | None:
    """The layout of the cube behind some tables, or None if one of them holds all of its cells."""
    structure = Structure.of_tables(layouts, variables=variables)
    return None if _holds_all_inner(structure) else TableLayout.of(_cube(structure))


def from_release(release: Release, *, low: int = 0) -> Knowledge:
    """What a release reveals: status letters, intervals and additive relations together.

    >>> from lustrum.audit import bounds
    >>> from lustrum.protect import ConventionalRounding
    >>> release = ConventionalRounding(base=5).apply(Table.from_counts([1, 9]))
    >>> bounds(from_release(release)).high.tolist()
    [2.0, 12.0]
    """
    check_release(release, "Knowledge")
    return from_tables([PublishedTable.of_release(release, low=low)])


def from_suppression(table: Table, suppressed: npt.ArrayLike, *, low: int = 0) -> Knowledge:
    """What a table with suppressed cells reveals; structural zeros stay known.

    The true values of suppressed cells are not used.

    >>> from lustrum.audit import bounds
    >>> table = Table.from_counts([[1, 9], [8, 7]])
    >>> bounds(from_suppression(table, table.values == 1)).low.tolist()
    [0.0, 9.0, 8.0, 7.0]
    """
    mask = np.asarray(suppressed, dtype=np.bool_)
    seen = PublishedTable.exact(table.axes, table.values, mask, low=low, decimals=table.decimals)
    if table.structural is not None:
        low_high = [np.where(table.structural, 0, a) for a in (seen.low, seen.high)]
        seen = replace(seen, low=low_high[0], high=low_high[1])
    return from_tables([seen])


def from_margins(
    cube: Mapping[str, int] | Sequence[TableAxis],
    margins: Mapping[str | tuple[str, ...], npt.ArrayLike],
    hidden: Iterable[str | tuple[str, ...]] = (),
    *,
    decimals: int = 0,
) -> Knowledge:
    """What published margins reveal about a hidden cube and about further hidden margins.

    The cells of the cube come first, then those of the hidden margins, then of the published ones.
    This is the case of linked tables (Domingo-Ferrer, Oganian and Torra 2002, equations 5 to 7).

    >>> from_margins({"A": 2, "S": 2}, {"A": [3, 4], "S": [2, 5]})
    Knowledge(8 cells, 5 facts, whole numbers)
    """
    if isinstance(cube, Mapping):
        plain = {n: [str(i + 1) for i in range(size)] for n, size in cube.items()}
        axes = {name: TableAxis.plain(name, codes) for name, codes in plain.items()}
    else:
        axes = {axis.name: axis for axis in cube}
    tables = [PublishedTable.hidden(tuple(axes.values()), decimals=decimals)]
    tables += [PublishedTable.hidden(_pick(axes, m), decimals=decimals) for m in hidden]
    tables += [
        PublishedTable.exact(_pick(axes, m), v, decimals=decimals) for m, v in margins.items()
    ]
    return from_tables(tables)


def _pick(axes: Mapping[str, TableAxis], margin: str | tuple[str, ...]) -> tuple[TableAxis, ...]:
    unknown = [name for name in margin if name not in axes]
    if unknown:
        raise InputError(f"The cube has no variable {unknown[0]!r}; it has {', '.join(axes)}.")
    return tuple(axes[name] for name in margin)


def _holds_all_inner(structure: Structure) -> bool:
    """Whether every inner cell of the hidden cube is a cell of some table."""
    for table in range(len(structure.tables)):
        lists = structure.memberships(table)
        singles = [set(m.items[m.indptr[:-1][m.lengths == 1]].tolist()) for m in lists]
        if all(len(s) == size for s, size in zip(singles, structure.shape, strict=True)):
            return True
    return False


def _cube(structure: Structure) -> list[TableAxis]:
    """The hidden cube as a table: one category for each atom of each variable."""
    axes = []
    for variable in structure.variables:
        codes = [np.flatnonzero(variable.atom_of == atom) for atom in range(variable.count)]
        axes.append(
            TableAxis(
                variable.name,
                variable.label,
                tuple(
                    Category(f"atom {i + 1}", f"atom {i + 1}", tuple(members.tolist()))
                    for i, members in enumerate(codes)
                ),
            )
        )
    return axes


@dataclass(frozen=True, eq=False)
class _PublishedNames(Sequence[str]):
    """The names of published cells, made on demand because there may be millions."""

    structure: Structure

    def __len__(self) -> int:
        return self.structure.rows

    def __getitem__(self, index: int) -> str:  # type: ignore[override]
        return self.structure.describe(index)

    def __iter__(self) -> Iterator[str]:
        return (self.structure.describe(i) for i in range(len(self)))
