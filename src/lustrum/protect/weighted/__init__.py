"""Protected surveys: protected respondents with shared weights and a shared design."""

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
