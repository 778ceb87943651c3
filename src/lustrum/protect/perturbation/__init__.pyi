from .design import PerturbationDesign as PerturbationDesign
from .differencing import DifferencingReport as DifferencingReport
from .differencing import RevealingPattern as RevealingPattern
from .differencing import differencing_risk as differencing_risk
from .lookup import calibrated as calibrated
from .lookup import perturb_by_words as perturb_by_words
from .spec import PRESETS as PRESETS
from .spec import StochasticPerturbation as StochasticPerturbation
