"""Utility measures, one a file: what a release is still worth beside its table.

Each is a frozen spec with a ``name``, a ``range``, the end of the range that is ``better``, and
``of(table, release)``; those of cells alone also take arrays (``of_cells``). Measures look at inner cells;
those that need every value have a rule, :class:`Impute`, for suppressed ones.

======================================================  ==================================================
:class:`HellingerUtility`, :class:`HellingerDistance`,  Hellinger distance, as a utility, of counts,
:class:`HellingerShares`                                of shares
:class:`MeanSquaredPrecision`                           one over the mean squared error
:class:`AverageDistance`,                               average error of a cell
:class:`AverageRelativeDistance`
:class:`LargestDeviation`, :class:`ExactCells`          the worst cell; how many are right
:class:`MarginsKept`, :class:`LargestMarginError`       one-way margins
:class:`ChiSquareChange`, :class:`CramersVChange`       association of two variables
:class:`RankCorrelation`                                whether large cells stay large
:class:`BetweenVarianceChange`                          differences between areas
:class:`EntropyChange`, :class:`Divergence`             information
:class:`ConditionalError`                               probabilities of one variable given others
:class:`SuppressedCells`, :class:`SuppressedValue`      what is not shown
======================================================  ==================================================
"""

from lustrum.utility.compare import Comparison, UtilityMeasure, compare
from lustrum.utility.impute import Impute
from lustrum.utility.measures.association import (
    BetweenVarianceChange,
    ChiSquareChange,
    ConditionalError,
    CramersVChange,
    RankCorrelation,
    between_variance,
    between_variance_ratio,
    chi_square,
    conditional_errors,
    cramers_v,
)
from lustrum.utility.measures.distances import (
    AverageDistance,
    AverageRelativeDistance,
    Divergence,
    EntropyChange,
    ExactCells,
    HellingerDistance,
    HellingerShares,
    HellingerUtility,
    LargestDeviation,
    MeanSquaredPrecision,
    cell_entropy,
)
from lustrum.utility.measures.margins import (
    LargestMarginError,
    MarginsKept,
    SuppressedCells,
    SuppressedValue,
    one_way_margins,
)

__all__ = [
    "AverageDistance",
    "AverageRelativeDistance",
    "BetweenVarianceChange",
    "ChiSquareChange",
    "Comparison",
    "ConditionalError",
    "CramersVChange",
    "Divergence",
    "EntropyChange",
    "ExactCells",
    "HellingerDistance",
    "HellingerShares",
    "HellingerUtility",
    "Impute",
    "LargestDeviation",
    "LargestMarginError",
    "MarginsKept",
    "MeanSquaredPrecision",
    "RankCorrelation",
    "SuppressedCells",
    "SuppressedValue",
    "UtilityMeasure",
    "between_variance",
    "between_variance_ratio",
    "cell_entropy",
    "chi_square",
    "compare",
    "conditional_errors",
    "cramers_v",
    "one_way_margins",
]
