"""Utility measures, one a file: what a release is still worth beside its table.

Each is a pure function on arrays with a frozen spec beside it, which has a ``name``, a ``range``, the
end of the range that is ``better``, and ``of(table, release)``. Measures look at inner cells; those that
need every value have a rule, :class:`Impute`, for suppressed ones.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
