"""Risk and utility as a reader can work them out, from protected numbers and public facts alone."""

from lustrum.answer.figures.counts import Figures, expected_figures, possible_tables, sum_figures

__all__ = ["Figures", "expected_figures", "possible_tables", "sum_figures"]
