"""A-priori rules: which cells of a table tell too much, before anything is protected.

=====================================  =============================================================
few contributors                       :class:`Threshold`
few contributors have most             :class:`Dominance`, :class:`Request` (only who asked)
one contributor can work out another   :class:`PPercent`, :class:`PriorPosterior`, :func:`insider_bounds`
a group is all in one place            :class:`KDisclosure`, :class:`GroupDisclosure`, :class:`Sparsity`
cells named by their owner             :class:`GivenCells`
several rules                          :class:`AnyOf`, :class:`AllOf`, :class:`Unless`
=====================================  =============================================================

Each is a frozen spec; ``rule.judge(table)`` gives a :class:`Sensitivity`: the cells, status letters,
reasons in words, and the interval that must hide each cell. Waivers and requests
come in a :class:`Background`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
