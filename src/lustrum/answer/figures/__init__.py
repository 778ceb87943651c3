"""Risk and utility as a reader can work them out, from protected numbers and public facts alone.

=========================  ==================================================================
:mod:`.counts`             a table of counts: means over tables that follow a reader's belief
:mod:`.sums`               sums of a measure: what attackers can say, errors by size, growth
:mod:`.words`              the figures of sums in sentences
=========================  ==================================================================
"""

from lustrum.answer.figures.counts import Figures, expected_figures, possible_tables
from lustrum.answer.figures.sums import sum_figures

__all__ = [
    "Figures",
    "expected_figures",
    "possible_tables",
    "sum_figures",
]
