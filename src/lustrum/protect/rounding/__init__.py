"""Rounding: random, conventional, semi-controlled, of small counts only, and controlled."""
