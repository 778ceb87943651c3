"""Prepared tables as a service offers them, read without any records.

=============================  ===================================================================
:class:`PreparedShelf`         the folders that a service offers
:func:`check_one_population`   refuse prepared tables beside other numbers of the same people
:func:`check_other_folders`    refuse folders of the same people that were not protected together
=============================  ===================================================================
"""

from lustrum.answer.prepared.one_population import check_one_population, check_other_folders
from lustrum.answer.prepared.shelf import PreparedShelf

__all__ = ["PreparedShelf", "check_one_population", "check_other_folders"]
