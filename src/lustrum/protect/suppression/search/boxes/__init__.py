"""Boxes of cells that move together: patterns for very large tables."""
