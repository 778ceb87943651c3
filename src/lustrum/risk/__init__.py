"""Risk measures, one a file: pure functions on arrays and small frozen specs.

=====================  ==========================================================================
a cell                 :func:`cell_entropy`, :func:`expected_risk`: of what an attacker can believe
a table                :class:`EntropyRisk`, :class:`PaperEntropyRisk`, :func:`r1`, :func:`r2`
parts of a table       :func:`slice_risks`: any table measure, row by row or area by area
a table from a sample  :func:`estimate_risk`, :class:`SampleRisk`, :func:`choose_model`
an attribute           :class:`AttributeInference`: what the row of a person adds to a guess
what agencies quote    :class:`Uniques`, :class:`SmallCells`, :class:`Zeros`, :class:`SparseLines`
=====================  ==========================================================================
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
