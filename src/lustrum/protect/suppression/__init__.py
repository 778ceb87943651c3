"""Secondary suppression: which further cells to suppress so that nobody can work primary ones out.

=====================================  ==================================================================
:class:`Suppression`                   the method for tables
:func:`suppress`                       the same on arrays, for problems that come from no table
:class:`SuppressionProblem`            cells, relations, levels, attackers and costs
:class:`Pattern`                       which cells are suppressed, and what is proven about it
:func:`contributor_views`              attackers that know what they contribute to one or several tables
:func:`singleton_views`                attackers that know their own cell, on arrays
:func:`cell_costs`                     what the suppression of a cell costs
:func:`linked_patterns`                linked tables, protected together
:func:`with_intervals`                 partial suppression: intervals instead of blanks
:func:`level_counts`                   what is suppressed at each level of the hierarchy
:func:`explain_changes`                what changed against the last period, and why
=====================================  ==================================================================
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
