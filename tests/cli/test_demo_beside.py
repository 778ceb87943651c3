"""The first start with demo data serves what is there, while the rest is still made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lustrum.answer import TableService
from lustrum.cli import work
from lustrum.demo import setup
from lustrum.model import Dataset, DatasetError, InputError
from lustrum.server.operation.lifecycle import warm_up
from lustrum.server.service.catalogue import catalogue

LONG = "import sys, time, pathlib; pathlib.Path(sys.argv[1], 'survey').touch(); time.sleep(600)"


@pytest.fixture(autouse=True)
def _by_files(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("demo", "survey")
    monkeypatch.setattr(
        setup, "missing", lambda root: [n for n in names if not (root / n).exists()]
    )


def test_nothing_is_made_where_everything_is_there(tmp_path: Path) -> None:
    (tmp_path / "demo").touch()
    (tmp_path / "survey").touch()
    with work.demo_beside(tmp_path, ["no such program"]) as coming:
        assert coming == []


def test_the_first_dataset_is_served_before_the_last_is_made(tmp_path: Path) -> None:
    started: list[int] = []
    process = work.subprocess.Popen

    def noted(*words: object, **options: object) -> object:
        made = process(*words, **options)  # type: ignore[call-overload]
        started.append(made)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work.subprocess, "Popen", noted)
        with work.demo_beside(tmp_path, [sys.executable, "-c", LONG, str(tmp_path)]) as coming:
            assert coming == ["demo"]
            assert started[0].poll() is None  # type: ignore[attr-defined]
    assert started[0].poll() is not None  # type: ignore[attr-defined]


def test_a_demo_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="could not be made"),
        work.demo_beside(tmp_path, [sys.executable, "-c", "raise SystemExit(2)"]),
    ):
        pass


def test_a_demo_that_was_made_at_once_leaves_nothing_to_come(tmp_path: Path) -> None:
    both = "import sys, pathlib; [pathlib.Path(sys.argv[1], n).touch() for n in ('demo', 'survey')]"
    with work.demo_beside(tmp_path, [sys.executable, "-c", both, str(tmp_path)]) as coming:
        assert coming == []


def test_the_log_says_nothing_about_a_dataset_that_is_still_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = TableService(tmp_path, coming=["demo"])
    service.names = lambda: ["demo", "survey"]  # type: ignore[method-assign]

    def missing(name: str) -> Dataset:
        raise DatasetError(f"{name} is not a bundle.")

    service.dataset = service.snapshot = missing  # type: ignore[method-assign, assignment]
    warm_up(service)
    there = catalogue(service)
    assert (there.datasets, there.unavailable) == ((), 1)
    assert [dataset.name for dataset in there.opening] == ["demo"]
    assert service.states() == {"demo": "starting", "survey": "unavailable"}
    assert caplog.messages == [
        "dataset survey is not served: survey is not a bundle.",
        "dataset left out: survey is not a bundle.",
    ]
