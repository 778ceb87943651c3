"""From what is known to what can be believed: bounds, posteriors, attacks.

=====================================  ============================================================
:class:`Knowledge`                     linear facts and bounds about cells nobody shows
:class:`Seen`, :func:`from_tables`     tables as their readers see them, and what they tell together
:func:`from_release`                   what one release tells
:func:`from_suppression`               what a table with suppressed cells tells
:func:`from_margins`                   what margins tell of a hidden cube
:func:`bounds`                         the least and the most that each cell can be
:class:`Belief`                        a distribution for each cell
:func:`posterior`, :func:`likelihood`  Bayes with a channel and a prior
:func:`attack`                         what an attacker can believe about each cell
=====================================  ============================================================
"""

from lustrum.audit.attack import attack, others
from lustrum.audit.attackers import Attacker, Coalition, Insider, Outsider, Own
from lustrum.audit.belief import Belief
from lustrum.audit.bounds import Bounds, bounds
from lustrum.audit.channels import MarkovSquare
from lustrum.audit.knowledge import CellRef, ContradictionError, Knowledge
from lustrum.audit.posterior import likelihood, posterior
from lustrum.audit.priors import BetaBinomial, Prior, ReferenceFrequencies, TablePrior, Uniform
from lustrum.audit.seen import Seen, from_margins, from_release, from_suppression, from_tables

__all__ = [
    "Attacker",
    "Belief",
    "BetaBinomial",
    "Bounds",
    "CellRef",
    "Coalition",
    "ContradictionError",
    "Insider",
    "Knowledge",
    "MarkovSquare",
    "Outsider",
    "Own",
    "Prior",
    "ReferenceFrequencies",
    "Seen",
    "TablePrior",
    "Uniform",
    "attack",
    "bounds",
    "from_margins",
    "from_release",
    "from_suppression",
    "from_tables",
    "likelihood",
    "others",
    "posterior",
]
