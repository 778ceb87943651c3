from .spec import MarkovPerturbation as MarkovPerturbation
from .spec import Moves as Moves
from .spec import StationarySquare as StationarySquare
from .spec import perturb_boxes as perturb_boxes
from .spec import simulated_channel as simulated_channel
