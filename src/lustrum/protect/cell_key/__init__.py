"""The cell key method, for counts and for magnitudes.

=====================================  ============================================================
:class:`CellKey`                       counts, looked up by count and cell key
:class:`CellKeyMagnitude`              sums of a measure, with noise by their largest contributions
:class:`Lookup`, :class:`Additive`,    its groups of parameters
:class:`Versions`
:class:`PTable`, :func:`read_ptable`   lookup tables by key, as agencies keep them in files
:class:`ZeroKeys`                      words for cells that hold nobody
:class:`LookupChannel`                   a lookup table as everybody may know it
:func:`restore`, :class:`Restored`     additivity with the least change
:func:`ratio`, :func:`mean`,           from published numbers only
:func:`percentages`, :class:`Ratios`
=====================================  ============================================================
"""

from lustrum.protect.cell_key.additive import Restored, restore
from lustrum.protect.cell_key.channel import LookupChannel
from lustrum.protect.cell_key.counts import CellKey
from lustrum.protect.cell_key.magnitudes import CellKeyMagnitude
from lustrum.protect.cell_key.ptable import PTable, read_ptable
from lustrum.protect.cell_key.ratios import Ratios, mean, percentages, ratio
from lustrum.protect.cell_key.words import Additive, Lookup, Versions
from lustrum.protect.cell_key.zeros import ZeroKeys

__all__ = [
    "Additive",
    "CellKey",
    "CellKeyMagnitude",
    "Lookup",
    "LookupChannel",
    "PTable",
    "Ratios",
    "Restored",
    "Versions",
    "ZeroKeys",
    "mean",
    "percentages",
    "ratio",
    "read_ptable",
    "restore",
]
