"""From what is known to what can be believed: bounds, posteriors, attacks.

=====================================  ============================================================
:class:`Knowledge`                     linear facts and bounds about hidden cells
:class:`PublishedTable`,               published tables, and what they reveal together
:func:`from_tables`
:func:`from_release`                   what one release reveals
:func:`from_suppression`               what a table with suppressed cells reveals
:func:`from_margins`                   what margins reveal about a hidden cube
:func:`from_responses`                 what tables of responses that add up to each other reveal
:func:`best_bounds`                    the least and the greatest value of each cell, by the cheapest way
:func:`bounds`                         the same by linear and integer programming
:mod:`~lustrum.audit.closed`           the same by formula, from margins of a hidden cube
:func:`exactly_disclosed`              which cells follow from the equations alone
:func:`conflict`                       published cells that contradict each other
:mod:`~lustrum.audit.certificate`      bounds with proofs that anybody can check
:mod:`~lustrum.audit.fibre`            how probable each value is, exactly or by sampling
:func:`audit_tables`                   a report on published tables
:class:`Protection`                    how uncertain a reader must stay about true values
:class:`Belief`                        a distribution for each cell
:func:`posterior`, :func:`likelihood`  Bayes with a channel and a prior
:func:`attack`                         the belief of an attacker about each cell
=====================================  ============================================================
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
