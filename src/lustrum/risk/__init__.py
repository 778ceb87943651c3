"""Risk measures, one a file: pure functions on arrays and small frozen specs.

=====================  ==========================================================================
a cell                 :func:`cell_entropy`, :func:`expected_risk`: of what an attacker can believe
a table                :class:`EntropyRisk`, :class:`PaperEntropyRisk`, :func:`r1`, :func:`r2`
parts of a table       :func:`slice_risks`: any table measure, row by row or area by area
a table from a sample  :func:`estimate_risk`, :class:`SampleRisk`, :func:`choose_model`
an attribute           :class:`AttributeInference`: what the row of a person adds to a guess
what agencies quote    :class:`Uniques`, :class:`SmallCells`, :class:`Zeros`, :class:`SparseLines`
=====================  ==========================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lustrum.lazy import offer
from lustrum.risk.cell_entropy import cell_entropy, expected_risk
from lustrum.risk.counts import NotMeasurableError
from lustrum.risk.entropy import conditional_entropy, entropy
from lustrum.risk.measure import RiskMeasure
from lustrum.risk.r1 import R1, r1
from lustrum.risk.r2 import R2, r2
from lustrum.risk.simple import (
    SmallCells,
    SparseLines,
    Uniques,
    Zeros,
    share_of_small_cells,
    share_of_sparse_lines,
    share_of_uniques,
    share_of_zeros,
)
from lustrum.risk.slices import SliceRisk, SliceRisks, slice_risks
from lustrum.risk.table_entropy import (
    EntropyRisk,
    PaperEntropyRisk,
    RiskTerms,
    entropy_term,
    expected_behind,
    size_term,
    zeros_term,
)

if TYPE_CHECKING:
    from lustrum.risk.attribute_inference import AttributeInference
    from lustrum.risk.cell_certainty import CellCertainty
    from lustrum.risk.choose import ModelChoice, choose_model
    from lustrum.risk.close_estimates import CloseEstimates
    from lustrum.risk.estimate import ModelRisk, RiskEstimate, SampleRisk, estimate_risk
    from lustrum.risk.population import (
        KnownPopulation,
        KnownProbabilities,
        LogLinear,
        LogLinearFit,
        PolyaUrn,
        PopulationModel,
        simple_random_samples,
    )

__all__ = [
    "R1",
    "R2",
    "AttributeInference",
    "CellCertainty",
    "CloseEstimates",
    "EntropyRisk",
    "KnownPopulation",
    "KnownProbabilities",
    "LogLinear",
    "LogLinearFit",
    "ModelChoice",
    "ModelRisk",
    "NotMeasurableError",
    "PaperEntropyRisk",
    "PolyaUrn",
    "PopulationModel",
    "RiskEstimate",
    "RiskMeasure",
    "RiskTerms",
    "SampleRisk",
    "SliceRisk",
    "SliceRisks",
    "SmallCells",
    "SparseLines",
    "Uniques",
    "Zeros",
    "cell_entropy",
    "choose_model",
    "conditional_entropy",
    "entropy",
    "entropy_term",
    "estimate_risk",
    "expected_behind",
    "expected_risk",
    "r1",
    "r2",
    "share_of_small_cells",
    "share_of_sparse_lines",
    "share_of_uniques",
    "share_of_zeros",
    "simple_random_samples",
    "size_term",
    "slice_risks",
    "zeros_term",
]

# Models of a population bring compiled kernels along; they are imported when first asked for.
_LATER = {
    "attribute_inference": "AttributeInference",
    "cell_certainty": "CellCertainty",
    "choose": "ModelChoice choose_model",
    "close_estimates": "CloseEstimates",
    "estimate": "ModelRisk RiskEstimate SampleRisk estimate_risk",
    "population": (
        "KnownPopulation KnownProbabilities LogLinear LogLinearFit PolyaUrn "
        "PopulationModel simple_random_samples"
    ),
}

__getattr__, __dir__ = offer(__name__, _LATER, __all__)
