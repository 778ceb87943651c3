"""The words of the domain: variables, queries, tables, releases, decisions. Frozen, no input or output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lustrum.lazy import offer

if TYPE_CHECKING:
    from lustrum.model.channel import SHLOMO_2015, MatrixChannel, swapping_channel
    from lustrum.model.dataset import Dataset, StructuralZero
    from lustrum.model.decision import (
        AttackerFigures,
        Decision,
        Reason,
        SizeFigures,
        SumFigures,
        TraceStep,
        Verdict,
    )
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
    "AttackerFigures",
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
    "SizeFigures",
    "Statistic",
    "StructuralZero",
    "SumFigures",
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

# Imported when first used: the errors alone should not bring in numpy.
_PLACES = {
    "channel": "MatrixChannel SHLOMO_2015 swapping_channel",
    "dataset": "Dataset StructuralZero",
    "decision": "AttackerFigures Decision Reason SizeFigures SumFigures TraceStep Verdict",
    "described_statistic": "describe_statistics",
    "errors": (
        "DatasetError DescriptionError IngestError InputError InternalError LustrumError "
        "PolicyError QueryError"
    ),
    "hierarchy": "Category Hierarchy Level",
    "query": "Axis Filter Group TableQuery",
    "records": "Records",
    "release": "Channel DescribedStatistic Release Transitions",
    "statistic": "Quantity Statistic",
    "status": "CellStatus",
    "table": "Contributions Table TableAxis",
    "variable": "Measure Variable Weight",
}

__getattr__, __dir__ = offer(__name__, _PLACES)
