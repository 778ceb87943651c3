"""Ctrl-C in the middle of a programme: nothing is written, what was there stays, and the command says so."""

from __future__ import annotations

import signal
import sys
from importlib import import_module
from pathlib import Path

import pytest

from lustrum.cli.application import main
from publish.programme.conftest import COUNTS, Workplace, programme_text


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    "place",
    [
        "lustrum.publish.programme.suppress.suppress"  # the search for a pattern
    ],
)
def test_ctrl_c_in_the_middle_of_a_programme_leaves_everything_as_it_was(
    workplace: Workplace,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: str,
) -> None:
    folder = workplace.folder
    file = folder / "tables.toml"
    file.write_text(programme_text(COUNTS.format(method='"suppression"')))
    earlier = folder / "prepared" / "biz-2025"
    earlier.mkdir(parents=True)
    (earlier / "mine.txt").write_text("of last year")
    before = files(folder)
    module, _, name = place.rpartition(".")
    real = getattr(import_module(module), name)
    asked: list[str] = []

    def interrupted(*words: object, **more: object) -> object:
        asked.append(name)
        signal.raise_signal(signal.SIGINT)
        return real(*words, **more)

    monkeypatch.setattr(place, interrupted)
    words = ["lustrum", "release", str(file), "--data", str(folder), "--workers", "1"]
    monkeypatch.setattr(sys, "argv", words)
    # A shell that runs tests in the background has them ignore interrupts.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        signal.signal(signal.SIGINT, handler)
    said = capsys.readouterr()
    assert asked == [name]
    assert ended.value.code == 130
    assert "stopped; nothing half-done was kept" in said.err
    assert "may be published" not in said.out
    assert files(folder) == before
