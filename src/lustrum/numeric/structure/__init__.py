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

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
