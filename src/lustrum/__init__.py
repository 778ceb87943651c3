"""Lustrum: let people build their own tables without giving away anybody's secret.

A map by task:

=========  ================================================================================
describe   :class:`Dataset`, :class:`TableQuery`, :class:`Axis`, :class:`Filter`
count      :class:`Table` (``Table.from_frame``, ``Table.from_counts``), :mod:`lustrum.tabulate`
relate     :mod:`lustrum.numeric.structure`: which cells add up to which
judge      :mod:`lustrum.sensitivity`: which cells tell too much before anything is protected
protect    :mod:`lustrum.protect`: a table becomes a :class:`Release`; :func:`suppress` from records
attack     :mod:`lustrum.audit`: what a reader can work out from a release
measure    :mod:`lustrum.risk` and :mod:`lustrum.utility`
compare    :func:`rumap` and :func:`best`: methods on one map; :func:`compare`: releases side by side
write      :mod:`lustrum.formats`: files that other programs read
decide     :mod:`lustrum.policy`, and :class:`~lustrum.answer.TableService` which answers or refuses
check      :class:`Session`: a researcher's outputs in a safe room, judged one by one and together
tabulate   :func:`crosstab` and :func:`pivot_table`: as pandas spells them, protected
publish    :mod:`lustrum.publish`: bundles, yearly programmes and reports from records
=========  ================================================================================
"""

import lazy_loader

# Imported when first used, so that ``import lustrum`` and ``lustrum --help`` are fast. Every lazy room lists
# its names once, in the stub beside its ``__init__``, which type checkers read too.
_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_room, _, _ = lazy_loader.attach(__name__, ["rumap"])


def __getattr__(name: str) -> object:
    """A room or a name of the stub; ``rumap`` is a room that can be called, so it stays a module."""
    return (_room if name == "rumap" else _name)(name)
