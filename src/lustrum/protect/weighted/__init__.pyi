from .classes import weight_classes as weight_classes
from .method import ProtectedSurvey as ProtectedSurvey
from .respondents import ProtectedRespondents as ProtectedRespondents
from .respondents import RespondentMoments as RespondentMoments
from .respondents import RespondentSums as RespondentSums
from .respondents import SurveyRecords as SurveyRecords
