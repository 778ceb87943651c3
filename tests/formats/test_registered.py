"""A format of an installed package is written and offered like the built-in ones, wherever tables are."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from lustrum.formats.write import write_release
from lustrum.model import InputError, Release, Table, plugins
from lustrum.protect.suppression import Suppression
from lustrum.server.pages.prepared import media_type
from lustrum.server.service.suggestions import Estimate
from lustrum.server.table_view.titles import file_kinds


class Tally:
    """A format that nobody else has: the number of cells."""

    name = "tally"
    media_type = "text/x-tally"
    ending = "cells.csv"
    title = "Tally"
    cell_bytes = 1

    def write(self, release: Release, label: str = "") -> str:
        """The number of cells and what the table is."""
        return f"{release.published.size} cells of {label}"


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The format as an entry point of an installed package."""
    there = plugins._registered("lustrum.formats")  # installing a package is slow
    entry = EntryPoint("tally", f"{__name__}:Tally", "lustrum.formats")
    real = plugins._registered

    def with_tally(group: str) -> dict[str, EntryPoint]:
        return {**there, "tally": entry} if group == "lustrum.formats" else real(group)

    monkeypatch.setattr(plugins, "_registered", with_tally)
    plugins.load.cache_clear()
    yield
    plugins.load.cache_clear()


@pytest.mark.usefixtures("registered")
def test_a_registered_format_is_written_and_offered(tmp_path: Path) -> None:
    release = Suppression().apply(Table.from_counts(np.array([[9, 8], [7, 6]])))
    write_release(release, tmp_path / "t.cells.csv")
    title = " by ".join(axis.name for axis in release.axes)
    assert (tmp_path / "t.cells.csv").read_text() == f"4 cells of {title}"
    write_release(release, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().startswith(f"{release.axes[0].name},")
    assert list(file_kinds())[:4] == ["csv", "xlsx", "json-stat", "parquet"]
    assert set(file_kinds()) == {*plugins.names("lustrum.formats"), "tally"}
    assert file_kinds()["tally"] == "Tally"
    assert media_type("a/t.cells.csv").startswith("text/csv")
    small = Estimate(9, 9, from_bundle=True)
    assert small.memory("tally") < small.memory("parquet") < small.memory("csv")


def test_every_registered_format_writes_a_file_of_its_ending(tmp_path: Path) -> None:
    release = Suppression().apply(Table.from_counts(np.array([[9, 8], [7, 6]])))
    for name in plugins.names("lustrum.formats"):
        kind = plugins.load("lustrum.formats", name)
        path = tmp_path / f"{name}.{kind.ending}"
        write_release(release, path)
        assert path.stat().st_size > 0
        assert media_type(path.name).split(";")[0]
    with pytest.raises(InputError, match=r"\.csv.*\.json.* or \.xlsx"):
        write_release(release, tmp_path / "t.docx")
