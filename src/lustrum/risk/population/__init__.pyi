from .loglinear import LogLinear as LogLinear
from .model import KnownPopulation as KnownPopulation
from .model import KnownProbabilities as KnownProbabilities
from .model import PopulationModel as PopulationModel
from .model import simple_random_samples as simple_random_samples
from .polya import PolyaUrn as PolyaUrn
