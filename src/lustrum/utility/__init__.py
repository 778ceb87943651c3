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

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
