"""Prepared tables: the public folder of a yearly programme, read and served without any records.

=============================  ===================================================================
:func:`read_prepared`          a public folder, every byte checked
:func:`write_prepared`         put a public folder in place, whole or not at all
:class:`PreparedFolder`        the tables of a folder
:class:`PreparedShelf`         the folders that a service offers
:func:`check_one_population`   refuse prepared tables beside other numbers of the same people
:func:`check_other_folders`    refuse folders of the same people that were not protected together
=============================  ===================================================================
"""

from lustrum.release.prepared.folder import (
    PreparedFolder,
    PreparedTable,
    prepared_name,
    read_prepared,
    write_prepared,
)
from lustrum.release.prepared.one_population import check_one_population, check_other_folders
from lustrum.release.prepared.shelf import PreparedShelf

__all__ = [
    "PreparedFolder",
    "PreparedShelf",
    "PreparedTable",
    "check_one_population",
    "check_other_folders",
    "prepared_name",
    "read_prepared",
    "write_prepared",
]
