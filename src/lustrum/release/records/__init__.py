"""The part that holds the records and the secret: it counts, protects, and hands out protected numbers.

Nothing here is imported by the part that answers; a contract in ``pyproject.toml`` holds that. A server runs
it in a process of its own, see :mod:`lustrum.release.separate_process`; the command line of the agency and
notebooks use :func:`local_service`.
"""

from lustrum.release.records.local import LocalRecordsService, local_service
from lustrum.release.records.protected_input import ProtectedInput, prepared
from lustrum.release.records.true_figures import TrueFigures, true_figures
from lustrum.release.records.views import EngineNumbers, counted_views

__all__ = [
    "EngineNumbers",
    "LocalRecordsService",
    "ProtectedInput",
    "TrueFigures",
    "counted_views",
    "local_service",
    "prepared",
    "true_figures",
]
