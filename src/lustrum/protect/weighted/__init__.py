"""Protected surveys: protected respondents with shared weights and a shared design.

==============================  =====================================================================
:class:`ProtectedSurvey`        the method: parameters, and what they do
:class:`SurveyRecords`          the respondents as the agency has them
:class:`ProtectedRespondents`   the public file from which every weighted table is summed
:class:`RespondentSums`         cells of that file, to be counted or summed
:class:`RespondentMoments`      what estimates of cells and their errors follow from
:func:`weight_classes`          groups of respondents that share one weight
==============================  =====================================================================
"""

from lustrum.protect.weighted.classes import weight_classes
from lustrum.protect.weighted.method import ProtectedSurvey
from lustrum.protect.weighted.respondents import (
    ProtectedRespondents,
    RespondentMoments,
    RespondentSums,
    SurveyRecords,
)

__all__ = [
    "ProtectedRespondents",
    "ProtectedSurvey",
    "RespondentMoments",
    "RespondentSums",
    "SurveyRecords",
    "weight_classes",
]
