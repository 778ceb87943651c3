"""Utility measures, one a file: what a release is still worth beside its table.

Each is a pure function on arrays with a frozen spec beside it, which has a ``name``, a ``range``, the
end of the range that is ``better``, and ``of(table, release)``. Measures look at inner cells; those that
need every value have a rule, :class:`Impute`, for suppressed ones.

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
    rank_correlation,
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
    average_distance,
    average_relative_distance,
    cell_entropy,
    divergence,
    entropy_change,
    hellinger_counts,
    hellinger_shares,
    hellinger_utility,
    largest_deviation,
    mean_squared_precision,
    share_of_exact_cells,
)
from lustrum.utility.measures.margins import (
    LargestMarginError,
    MarginsKept,
    SuppressedCells,
    SuppressedValue,
    largest_margin_error,
    one_way_margins,
    share_of_margins_kept,
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
    "average_distance",
    "average_relative_distance",
    "between_variance",
    "between_variance_ratio",
    "cell_entropy",
    "chi_square",
    "compare",
    "conditional_errors",
    "cramers_v",
    "divergence",
    "entropy_change",
    "hellinger_counts",
    "hellinger_shares",
    "hellinger_utility",
    "largest_deviation",
    "largest_margin_error",
    "mean_squared_precision",
    "one_way_margins",
    "rank_correlation",
    "share_of_exact_cells",
    "share_of_margins_kept",
]
