"""Margins of a hidden cube, for formulas, searches and samplers alike, and the trees they form."""

from lustrum.audit.margins.junction import Edge, junction_tree
from lustrum.audit.margins.margins import Axes, Margins

__all__ = ["Axes", "Edge", "Margins", "junction_tree"]
