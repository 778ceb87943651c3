"""Moves, chains and enumerations of a fibre beside their definitions."""
