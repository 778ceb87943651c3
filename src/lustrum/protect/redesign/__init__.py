"""Redesign of tables: merge categories so that no cell is sensitive, alone or together with suppression.

=====================================  ==================================================================
:func:`redesign`                       the recoding without sensitive cells that loses least
:func:`redesign_and_suppress`          a recoding, and suppression of what is still sensitive
:class:`Redesign`                      a recoding with its loss, in words, to apply to the table
:class:`Loss`                          what a recoding loses, in bits
=====================================  ==================================================================
"""

from lustrum.protect.redesign.recode import recoded
from lustrum.protect.redesign.search import Loss, Mixed, Redesign, redesign, redesign_and_suppress

__all__ = ["Loss", "Mixed", "Redesign", "recoded", "redesign", "redesign_and_suppress"]
