"""The words of the domain: variables, queries, tables, releases, decisions. Frozen, no input or output."""

from lustrum.model.channel import SHLOMO_2015, MatrixChannel, swapping_channel
from lustrum.model.dataset import Dataset, StructuralZero
from lustrum.model.decision import Decision, Reason, TraceStep, Verdict
from lustrum.model.described_statistic import describe_statistics
from lustrum.model.errors import (
    DatasetError,
    DescriptionError,
    IngestError,
    InputError,
    InternalError,
    LustrumError,
    PolicyError,
    QueryError,
)
from lustrum.model.hierarchy import Category, Hierarchy, Level
from lustrum.model.query import Axis, Filter, Group, TableQuery
from lustrum.model.records import Records
from lustrum.model.release import Channel, DescribedStatistic, Release, Transitions
from lustrum.model.statistic import Quantity, Statistic
from lustrum.model.status import CellStatus
from lustrum.model.table import Contributions, Table, TableAxis
from lustrum.model.variable import Measure, Variable, Weight

__all__ = [
    "SHLOMO_2015",
    "Axis",
    "Category",
    "CellStatus",
    "Channel",
    "Contributions",
    "Dataset",
    "DatasetError",
    "Decision",
    "DescribedStatistic",
    "DescriptionError",
    "Filter",
    "Group",
    "Hierarchy",
    "IngestError",
    "InputError",
    "InternalError",
    "Level",
    "LustrumError",
    "MatrixChannel",
    "Measure",
    "PolicyError",
    "Quantity",
    "QueryError",
    "Reason",
    "Records",
    "Release",
    "Statistic",
    "StructuralZero",
    "Table",
    "TableAxis",
    "TableQuery",
    "TraceStep",
    "Transitions",
    "Variable",
    "Verdict",
    "Weight",
    "describe_statistics",
    "swapping_channel",
]
