"""Linear structure: from the cells that nobody sees to the cells that are published.

======================================  ===========================================================
:class:`Structure`                      which inner cells make up each published cell
:class:`TableLayout`                    the axes and filters of one published table
:class:`Relations`, :class:`Additive`   which published cells are sums of which others
:func:`complete_relations`              the same for groups that overlap in odd ways
:func:`propagate`, :class:`Intervals`   bounds of cells, narrowed through the relations
:class:`Atoms`                          the coarsest pieces from which all categories are made
======================================  ===========================================================
"""

from lustrum.structure.atoms import Atoms
from lustrum.structure.complete import complete_relations
from lustrum.structure.incidence import Structure
from lustrum.structure.intervals import UNBOUNDED, Intervals, propagate
from lustrum.structure.layout import TableLayout
from lustrum.structure.relations import Additive, Relations

__all__ = [
    "UNBOUNDED",
    "Additive",
    "Atoms",
    "Intervals",
    "Relations",
    "Structure",
    "TableLayout",
    "complete_relations",
    "propagate",
]
