"""Where a build runs (CI), a test that was skipped has failed, unless what it needs is declared here."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

DECLARED = {
    "no systemd here": "systemd-analyze is no package that a build may install",
    "no disk can be mounted here": "mounting needs rights that a container may lack",
    "another account needs the rights of root": "a build need not run as root",
    "numpy found no feature of this processor beyond its baseline": "the processor is what it is",
    "set LUSTRUM_ACRO to the Python": "deep; ACRO holds back other versions of what we pin",
}
"""Words of a skip's reason, and why a build may lack what the test needs."""


class NoSilentSkips:
    """Turns a skip that is not declared into a failure."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        """After each step of a test."""
        report = yield
        return failed_where_undeclared(report)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, Any, Any]:
        """After a module was read, which may skip itself."""
        report = yield
        return failed_where_undeclared(report)


def failed_where_undeclared(report: Any) -> Any:
    """The report, failed if it says of a skip what nobody declared."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(words in reason for words in DECLARED):
            report.outcome = "failed"
            report.longrepr = (
                f"{reason}\nNothing is skipped in a build unless tests/skips.py says why."
            )
    return report


def pytest_configure(config: pytest.Config) -> None:
    """Watch all tests, those in docstrings too."""
    if os.environ.get("CI"):
        config.pluginmanager.register(NoSilentSkips())
