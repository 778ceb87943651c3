"""A log line says what the operating system said, and never the text of an exception."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from lustrum.runtime.log_lines import where_it_happened


def test_the_reason_of_the_operating_system_is_named_without_paths() -> None:
    said = where_it_happened(OSError(errno.ENOSPC, "secret text", "/secret/path"))
    assert said.startswith("OSError (No space left on device) at ")
    assert "secret" not in said


def test_the_reason_of_the_database_is_named_without_its_text(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "jobs.sqlite")
    base.execute("pragma page_size = 512")
    base.execute("create table secret (value blob)")
    base.execute("pragma max_page_count = 3")
    try:
        base.execute("insert into secret values (zeroblob(100000))")
    except sqlite3.OperationalError as error:
        said = where_it_happened(error)
    finally:
        base.close()
    assert said.startswith("OperationalError (SQLITE_FULL) at ")
    assert "secret" not in said


def test_other_exceptions_are_named_by_their_kind_alone() -> None:
    assert where_it_happened(ValueError("secret")) == "ValueError at an unknown line"
