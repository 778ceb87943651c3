"""Remembered answers give way on a full disk: jobs and policies need the room more."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from lustrum.server import Settings
from lustrum.server.service import remembered_answers
from lustrum.server.service.remembered_answers import FOLDER, Key, RememberedAnswers, Written


def keep(answers: RememberedAnswers, number: int) -> Key:
    key = Key("d" * 40, "m" * 40, f"{number:040}")
    answers.keep(key, Written("town", "answer", "application/json", b"%d" % number))
    answers.stop()  # waits for what is being written
    return key


@pytest.mark.parametrize(
    ("number", "left"),
    [(errno.ENOSPC, range(5, 10)), (errno.EDQUOT, range(5, 10)), (errno.EACCES, range(10))],
)
def test_half_of_the_answers_on_a_full_disk_are_removed_the_oldest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, left: range
) -> None:
    answers = RememberedAnswers(tmp_path, Settings())
    keys = [keep(answers, n) for n in range(10)]
    for n, key in enumerate(keys):  # written within one tick of the clock, perhaps
        os.utime(answers._place(key), ns=(10**18 + n, 10**18 + n))

    def full(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(remembered_answers, "write_whole", full)
    last = keep(answers, 10)
    assert answers.at_hand(last) is not None
    found = sorted(int(path.name) for path in (tmp_path / FOLDER).glob("*/*/*/*"))
    assert found == list(left)
    # All of them are still answered from memory.
    assert all(answers.at_hand(key) is not None for key in keys)
