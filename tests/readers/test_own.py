"""A file that this project writes is accounted for by the layout beside it, while its bytes are the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustrum.formats.write import plain_letters, write_release
from lustrum.model import Category, Table, TableAxis
from lustrum.protect.suppression import Suppression
from lustrum.readers.judge import judge, open_file
from lustrum.readers.own import own_layout, sidecar


def _table(seed: int) -> Table:
    rng = np.random.default_rng(seed)
    inner = rng.integers(0, 40, size=(4, 3))
    rows = [(0,), (1,), (2,), (3,), (0, 1), (0, 1, 2, 3)]
    columns = [(0,), (1,), (2,), (0, 1, 2)]
    axes = tuple(
        TableAxis(n, n, tuple(Category(f"{n}{i}", f"{n} {i}", m) for i, m in enumerate(sets)))
        for n, sets in (("area", rows), ("job", columns))
    )
    values = np.array([[inner[np.ix_(r, c)].sum() for c in columns] for r in rows])
    return Table(axes=axes, values=values, kind="count", contributors=values)


@given(seed=st.integers(0, 10**6), ending=st.sampled_from(["csv", "parquet"]))
@settings(max_examples=12, deadline=None)
def test_a_suppressed_table_is_cleared_by_its_own_layout(
    tmp_path_factory: pytest.TempPathFactory, seed: int, ending: str
) -> None:
    path = tmp_path_factory.mktemp("own") / f"t.{ending}"
    release = Suppression().apply(_table(seed))
    write_release(plain_letters(release), path)
    sidecar(path).write_text(own_layout(release, path.read_bytes(), "counts"), encoding="utf-8")
    report = judge([open_file(path)]).report
    assert report.files[0].layout == "beside the file"
    assert (report.exit, report.values) == (0, ())
    assert report.hidden == int((~release.shown).sum())


def test_one_shown_value_more_is_found_through_a_layout_of_the_new_bytes(tmp_path: Path) -> None:
    table = _table(3)
    release = Suppression().apply(table)
    path = tmp_path / "t.csv"
    write_release(plain_letters(release), path)
    layout = own_layout(release, path.read_bytes(), "counts")
    hidden = np.argwhere(~release.shown)[0]
    codes = [axis.codes[i] for axis, i in zip(release.axes, hidden, strict=True)]
    lines = path.read_text().splitlines()
    row = next(
        i for i, line in enumerate(lines) if line.split(",")[0] == codes[0] and codes[1] in line
    )
    lines[row] = lines[row].replace(",,", f",{int(table.values[tuple(hidden)])},")
    path.write_text("\n".join(lines) + "\n")
    sidecar(path).write_text(layout, encoding="utf-8")
    assert judge([open_file(path)]).report.exit != 0
