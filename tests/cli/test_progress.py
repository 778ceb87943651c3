"""Progress of long commands: bars on a terminal, lines in a log."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from lustrum.cli import protect
from lustrum.cli.protect import progress_bars


def lines(steps: list[tuple[float, str, float]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a log holds after steps that come at some seconds of the clock."""
    log = StringIO()
    with progress_bars(Console(file=log, width=80)) as progress:
        for second, step, share in steps:
            monkeypatch.setattr(protect.time, "monotonic", lambda second=second: 100.0 + second)
            progress(step, share)
    return log.getvalue().splitlines()


def test_a_log_has_a_line_where_a_step_begins_and_where_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = [(0.0, "counting", 0.25), (0.1, "counting", 0.5), (0.2, "counting", 1.0)]
    steps += [(0.3, "counting", 1.0), (0.4, "protecting", 0.0)]
    assert lines(steps, monkeypatch) == ["Counting: 25%", "Counting: 100%", "Protecting: 0%"]


def test_a_log_has_a_line_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [(float(second), "protecting", second / 100) for second in range(31)]
    assert lines(steps, monkeypatch) == [f"Protecting: {share}%" for share in (0, 10, 20, 30)]


def test_a_terminal_has_bars() -> None:
    screen = StringIO()
    console = Console(file=screen, width=80, force_terminal=True)
    with progress_bars(console) as progress:
        progress("protecting", 0.4)
    assert "Protecting" in screen.getvalue()
    assert "\x1b[" in screen.getvalue()
