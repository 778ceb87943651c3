"""What a pandas user tries first either works or ends in one sentence."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lustrum as lu
from lustrum.model import InputError, Table
from lustrum.runtime.log_lines import where_it_happened
from lustrum.sensitivity import AllOf, AnyOf, PPercent, Threshold

TABLE = Table.from_counts([[1, 14, 3], [17, 83, 5]])


@pytest.mark.parametrize("kind", [AnyOf, AllOf])
def test_rules_are_put_together_one_by_one_or_as_a_list(kind: Any) -> None:
    parts = [Threshold(3), Threshold(10)]
    one, other = kind(*parts), kind(parts)
    assert one.rules == other.rules == tuple(parts)
    assert np.array_equal(one.judge(TABLE).mask, other.judge(TABLE).mask)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (("threshold",), "not a str"),
        (([{"rule": "threshold"}],), "not a dict"),
        ((Threshold,), "are rules, such as"),
        (([],), "has no parts"),
        ((), "has no parts"),
        ((PPercent(p=10), [Threshold(3)]), "not a list"),
    ],
)
def test_a_part_that_is_no_rule_is_one_sentence(parts: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        AnyOf(*parts)


def margins() -> Any:
    import pandas as pd

    area = ["n"] * 18 + ["s"] * 26 + ["w"] * 31
    job = ["a"] * 2 + ["b"] * 16 + ["a"] * 12 + ["b"] * 14 + ["a"] * 13 + ["b"] * 18
    return Table.from_counts(
        pd.crosstab(pd.Series(area, name="area"), pd.Series(job, name="job"), margins=True)
    )


def test_a_release_can_be_audited_as_it_is() -> None:
    release = lu.protect.Suppression(rule=Threshold(5)).apply(margins())
    hidden = int((~release.shown).sum())
    assert hidden
    report = lu.audit.audit_tables(release)
    assert len(report.cells) == hidden
    assert not report.disclosed
    seen = lu.audit.PublishedTable.of_release(release)
    assert str(lu.audit.audit_tables([release])) == str(report) == str(lu.audit.audit_tables(seen))
    # A pattern that hides one cell alone is seen through.
    alone = np.zeros(release.shape, dtype=np.bool_)
    alone[0, 0] = True
    table = margins()
    short = lu.audit.PublishedTable.exact(table.axes, table.values, alone)
    assert len(lu.audit.audit_tables(short).disclosed) == 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (TABLE, "not of a Table"), ([TABLE], "not of a Table"), ("file.csv", "not of a str"),
        ({}, "not of a dict"), ([], "no table to audit"), (None, "not of None"),
    ],
)  # fmt: skip
def test_an_audit_of_something_else_is_one_sentence(given: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        lu.audit.audit_tables(given)


def test_progress_is_a_line_or_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    methods = [lu.protect.RandomRounding(base=3)]
    told: list[tuple[int, int]] = []
    lu.rumap(
        TABLE, methods, replications=2, progress=lambda done, total: told.append((done, total))
    )
    assert told[-1][0] == told[-1][1]
    lu.rumap(TABLE, methods, replications=2, progress=True)
    assert f"{told[-1][1]} of {told[-1][1]} draws\n" in capsys.readouterr().err
    lu.best(TABLE, 1.0, methods, replications=2, progress=True)
    assert "draws" in capsys.readouterr().err
    lu.rumap(TABLE, methods, replications=2, progress=False)
    assert capsys.readouterr().err == ""
    for wrong in (5, "yes"):
        with pytest.raises(InputError, match="'progress' is True, False or a function"):
            lu.rumap(TABLE, methods, progress=wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="'progress' is True, False or a function"):
            lu.best(TABLE, 1.0, methods, progress=wrong)  # type: ignore[arg-type]


def test_two_dimensions_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="have the same name"):
        Table.from_counts([[1, 2], [3, 4]], names=["a", "a"])


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
