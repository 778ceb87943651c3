"""Finest cells, on the way in with true counts and on the way out with protected ones."""

from lustrum.model.finest import FinestCells, possible_cells

__all__ = ["FinestCells", "possible_cells"]
