"""Redesign of tables: merge categories so that no cell is sensitive, alone or together with suppression."""

from lustrum.protect.redesign.recode import recoded
from lustrum.protect.redesign.search import Loss, Mixed, Redesign, redesign, redesign_and_suppress

__all__ = ["Loss", "Mixed", "Redesign", "recoded", "redesign", "redesign_and_suppress"]
