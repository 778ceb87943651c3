"""Answers and records in one process: for the agency's own machine, for notebooks and for tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lustrum.answer.readers import Reader, reading_as
from lustrum.answer.table_service import TableService
from lustrum.policy.policy import Role
from lustrum.publish.doctor import HealthFinding, examine
from lustrum.publish.records.local import LocalRecordsService
from lustrum.runtime.data_folder import folder_at


def local_service(root: Path | str, workers: int | None = None) -> TableService:
    """A service with the records in the same process: for the agency's own machine and for tests."""
    root = folder_at(root, "root")
    return TableService(root, records=LocalRecordsService(root, workers))


def health(root: Path) -> Iterator[HealthFinding]:
    """What the doctor finds in a data folder, by the same judgement that a server has of every dataset."""
    service = local_service(root, workers=1)

    def judge(name: str, role: Role) -> object:
        with reading_as(Reader(role=role)):
            return service.snapshot(name)

    try:
        yield from examine(root, judge)
    finally:
        service.close()
