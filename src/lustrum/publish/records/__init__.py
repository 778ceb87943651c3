"""The part that holds the records and the secret: it counts, protects, and hands out protected numbers.

Nothing here is imported by the part that answers; a contract in ``pyproject.toml`` holds that. A server runs
it in a process of its own, see :mod:`lustrum.answer.separate_process`; the command line of the agency and
notebooks use :func:`lustrum.local.local_service`.
"""

from lustrum.publish.records.local import LocalRecordsService
from lustrum.publish.records.protected_input import ProtectedInput, prepared
from lustrum.publish.records.views import EngineNumbers, TrueFigures, counted_views, true_figures

__all__ = [
    "EngineNumbers",
    "LocalRecordsService",
    "ProtectedInput",
    "TrueFigures",
    "counted_views",
    "prepared",
    "true_figures",
]
