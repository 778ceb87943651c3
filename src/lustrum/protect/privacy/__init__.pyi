from .budget import Budget as Budget
from .budget import BudgetSpentError as BudgetSpentError
from .budget import Cost as Cost
from .budget import epsilon_of_rho as epsilon_of_rho
from .budget import power_of_rho as power_of_rho
from .budget import rho_of as rho_of
from .mechanism import DiscreteNoiseChannel as DiscreteNoiseChannel
from .spec import DifferentialPrivacy as DifferentialPrivacy
