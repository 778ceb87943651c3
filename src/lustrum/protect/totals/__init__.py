"""Totals: which cells they are made of, and how they are published without giving a cell away."""
