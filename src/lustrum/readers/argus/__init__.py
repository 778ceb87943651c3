"""Files of tau-ARGUS, read and written so that nothing is lost that they hold.

===============================  ==========================================================
:func:`read_metadata`            ``.rda``: variables of records or of a table
:func:`read_records`             ``.asc`` with its ``.rda``: records as columns of texts
:func:`read_tab`                 ``.tab`` with its ``.rda``: a table with its statuses
:func:`read_apriori`             ``.hst``: statuses, costs and protection levels set by hand
:func:`read_code_list`           ``.cdl``: codes with labels
:func:`read_recoding`            ``.grc``: recodings of one variable
:func:`read_batch`               ``.arb``: the commands of a batch file
:func:`read_jj`                  JJ: cells and equations of a suppression problem
===============================  ==========================================================

What is read has a ``text`` that is the file again. Hierarchies (``.hrc``) are read by
:func:`lustrum.readers.hierarchy_files.read_groups`.
"""

from lustrum.readers.argus.lists import (
    Apriori,
    BatchCommand,
    JJCell,
    JJProblem,
    Recoding,
    read_apriori,
    read_batch,
    read_code_list,
    read_jj,
    read_recoding,
)
from lustrum.readers.argus.metadata import ArgusVariable, Metadata, read_metadata
from lustrum.readers.argus.tables import ArgusTable, read_records, read_tab

__all__ = [
    "Apriori",
    "ArgusTable",
    "ArgusVariable",
    "BatchCommand",
    "JJCell",
    "JJProblem",
    "Metadata",
    "Recoding",
    "read_apriori",
    "read_batch",
    "read_code_list",
    "read_jj",
    "read_metadata",
    "read_recoding",
    "read_records",
    "read_tab",
]
