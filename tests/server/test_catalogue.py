"""The list of datasets waits a moment for records, and names those that did not answer in it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lustrum.answer import Snapshot, TableService
from lustrum.model import DatasetError
from lustrum.model.errors import NotReadyError
from lustrum.runtime.stop import check_stop
from lustrum.server.service import catalogue as module
from lustrum.server.service.catalogue import Opening, catalogue
from waiting import LONG


class Service(TableService):
    """Records that never answer, records that are being checked, a bundle that is broken."""

    def __init__(self) -> None:
        super().__init__(folder=Path())

    def names(self) -> list[str]:
        return ["silent", "checking", "broken"]

    def policy_title(self, name: str) -> str:
        return "" if name == "checking" else f"Title of {name}"

    def snapshot(self, name: str) -> Snapshot:
        if name == "checking":
            raise NotReadyError("It is being checked.")
        if name != "silent":
            raise DatasetError("It is damaged.")
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            check_stop()
            time.sleep(0.005)
        raise AssertionError("somebody waited for records that do not answer")


def test_a_dataset_that_does_not_answer_at_once_is_named_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 0.05)
    there = catalogue(Service())
    assert there.datasets == ()
    assert there.opening == (Opening("silent", "Title of silent"), Opening("checking", "checking"))
    assert there.unavailable == 1
