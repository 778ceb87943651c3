"""Protected surveys: respondents of a protected population with weights and a design that are nobody's own.

=============================  =====================================================================
:class:`ProtectedSurvey`       the method: parameters, and what they do
:class:`SurveyRecords`         the respondents as the agency has them
:class:`ProtectedRespondents`  the one public file that every weighted table is a sum of
:class:`Part`                  cells of it, to be counted or summed up
:func:`weight_classes`         groups of respondents that share one weight
=============================  =====================================================================
"""

from lustrum.protect.weighted.classes import weight_classes
from lustrum.protect.weighted.method import ProtectedSurvey
from lustrum.protect.weighted.respondents import Part, ProtectedRespondents, SurveyRecords

__all__ = ["Part", "ProtectedRespondents", "ProtectedSurvey", "SurveyRecords", "weight_classes"]
