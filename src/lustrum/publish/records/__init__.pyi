from .local import LocalRecordsService as LocalRecordsService
from .protected_input import ProtectedInput as ProtectedInput
from .protected_input import prepared as prepared
from .views import EngineNumbers as EngineNumbers
from .views import TrueFigures as TrueFigures
from .views import counted_views as counted_views
from .views import true_figures as true_figures
