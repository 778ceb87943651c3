"""Prepared tables as a service offers them, read without any records.

=============================  ===================================================================
:class:`PreparedFolders`         the folders that a service offers
:func:`check_one_population`   refuse prepared tables beside other numbers of the same people
:func:`check_other_folders`    refuse folders of the same people that were not protected together
=============================  ===================================================================
"""

from lustrum.answer.prepared.folders import PreparedFolders
from lustrum.answer.prepared.one_population import check_one_population, check_other_folders

__all__ = ["PreparedFolders", "check_one_population", "check_other_folders"]
