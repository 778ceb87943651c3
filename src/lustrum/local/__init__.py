"""Answers and records in one process: for the agency's own machine, for notebooks and for tests.

=======================  =====================================================================
:func:`local_service`    answers about the datasets of a folder
:func:`health`           what is wrong with a data folder, and with its answers
:func:`crosstab`         a protected cross tabulation of columns, as pandas spells it
:func:`pivot_table`      the same of a frame
:class:`ProtectedTable`  what these two give: the public table, and reasons for the agency
=======================  =====================================================================
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
