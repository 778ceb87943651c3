"""Answers and records in one process: for the agency's own machine, for notebooks and for tests."""

from __future__ import annotations

from pathlib import Path

from lustrum.answer.table_service import TableService
from lustrum.publish.records.local import LocalRecordsService

__all__ = ["local_service"]


def local_service(root: Path, workers: int | None = None) -> TableService:
    """A service with the records in the same process: for the agency's own machine and for tests."""
    return TableService(root, records=LocalRecordsService(root, workers))
