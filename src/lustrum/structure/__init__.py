"""Linear structure: from the cells that nobody sees to the cells that are published.

======================================  ===========================================================
:class:`Structure`                      which inner cells make up each published cell
:class:`TableLayout`                    the axes and filters of one published table
:class:`Relations`,                     which published cells are sums of which others
:class:`AdditiveRelations`
:func:`complete_relations`              the same for groups that overlap in odd ways
:func:`propagate`, :class:`Intervals`   bounds of cells, narrowed through the relations
:class:`Atoms`                          the coarsest pieces from which all categories are made
======================================  ===========================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lustrum.lazy import offer

if TYPE_CHECKING:
    from lustrum.structure.atoms import Atoms
    from lustrum.structure.complete import complete_relations
    from lustrum.structure.incidence import Structure
    from lustrum.structure.intervals import UNBOUNDED, Intervals, propagate
    from lustrum.structure.layout import TableLayout
    from lustrum.structure.relations import AdditiveRelations, Relations

__all__ = [
    "UNBOUNDED",
    "AdditiveRelations",
    "Atoms",
    "Intervals",
    "Relations",
    "Structure",
    "TableLayout",
    "complete_relations",
    "propagate",
]

_PLACES = {
    "atoms": "Atoms",
    "complete": "complete_relations",
    "incidence": "Structure",
    "intervals": "Intervals UNBOUNDED propagate",
    "layout": "TableLayout",
    "relations": "AdditiveRelations Relations",
}

__getattr__, __dir__ = offer(__name__, _PLACES)
