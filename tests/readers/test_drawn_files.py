"""Of files in many manners, none that discloses something is cleared, and true layouts judge nearly all."""

from __future__ import annotations

from pathlib import Path

import pytest

from lustrum.readers.report import FileReport
from readers.drawn_files import draw_file
from readers.test_judge import audited, exact


def _checked(folder: Path, seed: int, *, disclosing: bool) -> tuple[FileReport, FileReport]:
    """The reports without and with the layout; nothing in them may be false."""
    file = draw_file(seed, disclosing=disclosing)
    bare, told = audited(folder, file.text), audited(folder, file.text, file.layout)
    assert bare.exit != 0, (seed, file.text)
    for report in (bare, told):
        for cell, value in exact(report).items():
            if cell in file.ranges:
                assert file.ranges[cell] == (value, value), (seed, cell)
    if disclosing:
        assert told.exit != 0, (seed, file.text, file.layout)
    return bare, told


def _share(folder: Path, seeds: range, *, disclosing: bool) -> float:
    good = 0
    for seed in seeds:
        _, told = _checked(folder, seed, disclosing=disclosing)
        if disclosing:
            good += draw_file(seed, disclosing=True).planted in exact(told)
        else:
            good += told.exit == 0
    return good / len(seeds)


def test_drawn_files_are_judged_truly(tmp_path: Path) -> None:
    assert _share(tmp_path, range(40), disclosing=True) >= 0.99
    assert _share(tmp_path, range(20), disclosing=False) >= 0.95


def test_a_sum_by_chance_in_two_units_is_shown_once(tmp_path: Path) -> None:
    # One place of this file is the sum of two others in its only full line, in units and in thousands.
    _, told = _checked(tmp_path, 4699, disclosing=True)
    assert draw_file(4699, disclosing=True).planted in exact(told)


@pytest.mark.deep
def test_thousands_of_drawn_files_are_judged_truly(tmp_path: Path) -> None:
    assert _share(tmp_path, range(1000, 6000), disclosing=True) >= 0.99
    assert _share(tmp_path, range(1000, 2000), disclosing=False) >= 0.95
