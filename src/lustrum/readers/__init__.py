"""Tables in files: read from CSV, Parquet, XLSX and JSON-stat, published or confidential, with totals and
subtotals recognised.

=========================================  =========================================================
:func:`read_table`, :func:`table_of_csv`   the cells of a file; what is hidden is never 0
:class:`Reading`                           what a reader of a published file knows beside it
:class:`ColumnNames`                       which column is what, where names are not the usual ones
:func:`read_groups`                        a hierarchy from ``.hrc``, ``.csv`` or ``.toml``
:func:`recognise`, :class:`StatedTotals`     totals and subtotals: said, by name, or by their numbers
:func:`releases_of`                        published tables as releases over one population
:func:`confidential_table`                 a true table with its contributors
=========================================  =========================================================
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
