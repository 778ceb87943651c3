from .pipeline import STEPS as STEPS
from .pipeline import answer as answer
from .question_state import QuestionState as QuestionState
from .snapshot import Precheck as Precheck
from .snapshot import Snapshot as Snapshot
from .snapshot import precheck as precheck
from .table_service import TableService as TableService
