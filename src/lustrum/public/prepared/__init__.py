"""Prepared tables: the public folder of a yearly programme.

=============================  ===================================================================
:func:`read_prepared`          a public folder, every byte checked
:func:`write_prepared`         put a public folder in place, whole or not at all
:class:`PreparedFolder`        the tables of a folder
=============================  ===================================================================
"""

from lustrum.public.prepared.folder import (
    PreparedFolder,
    PreparedTable,
    prepared_name,
    read_prepared,
    write_prepared,
)

__all__ = [
    "PreparedFolder",
    "PreparedTable",
    "prepared_name",
    "read_prepared",
    "write_prepared",
]
