"""The demo is made with the same bytes on one core and on two, and stops as a whole."""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Event, current_thread
from threading import enumerate as threads

import pytest

from lustrum.demo import businesses, setup
from lustrum.model import DatasetError
from lustrum.protect.population import public
from lustrum.public.bundle.files import bundle_digest
from lustrum.runtime.stop import (
    Stopped,
    check_stop,
    report_progress,
    reporting_progress,
    side_by_side,
    stopping,
)

NAMES = ("businesses", "censuses", "demo", "survey")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[str, float]]]:
    root, heard = tmp_path_factory.mktemp("demo"), []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(setup, "businesses", lambda progress: businesses(1500, progress=progress))
        names = setup.prepare(root, 2000, lambda task, done: heard.append((task, done)))
    assert sorted(names) == list(NAMES)
    return root, heard


def files(folder: Path) -> dict[str, bytes]:
    """The files of a bundle; the link to the one in force has a name drawn at random."""
    return {
        str(name): (folder / name).read_bytes()
        for name in ("manifest.json", "cells.arrow", "report.json", "dataset.json")
    }


def test_bundles_have_the_same_bytes_one_after_the_other_and_side_by_side(
    made: tuple[Path, list[tuple[str, float]]], tmp_path: Path
) -> None:
    root, _ = made
    again = tmp_path / "again"
    shutil.copytree(root, again, ignore=shutil.ignore_patterns("bundles", "reports"))
    assert setup.prepare(again, 2000, parallel=False) == []
    for name in NAMES:
        assert files(again / "bundles" / name) == files(root / "bundles" / name)


def test_progress_of_all_datasets_is_told(made: tuple[Path, list[tuple[str, float]]]) -> None:
    last = dict(made[1])
    for what in ("people", "businesses", "respondents"):
        assert last[f"Protecting {what}"] > 0.5


def test_a_bundle_of_an_earlier_search_is_made_again(
    made: tuple[Path, list[tuple[str, float]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = made
    asked: list[str] = []
    monkeypatch.setattr(setup, "make_bundle", lambda _store, name, *_, **__: asked.append(name))
    setup.prepare(root, 2000)
    assert asked == []
    for word in ("SEARCH", "SEARCH_OF_INVENTED"):
        monkeypatch.setattr(public, word, 99)
    setup.prepare(root, 2000)
    assert sorted(asked) == list(NAMES)


def test_where_one_dataset_fails_the_others_stop_and_leave_nothing(
    made: tuple[Path, list[tuple[str, float]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = made
    again = tmp_path / "again"
    shutil.copytree(root, again, ignore=shutil.ignore_patterns("bundles", "reports"))
    real, waits = setup.make_bundle, Event()

    def fails(store, name, *rest, **options):  # type: ignore[no-untyped-def]
        if name == "businesses":
            assert waits.wait(60)
            raise DatasetError("The disk is full.")
        # The census begins, and goes on only when the other has failed.
        waits.set()
        while True:
            check_stop()
        real(store, name, *rest, **options)

    monkeypatch.setattr(setup, "make_bundle", fails)
    with pytest.raises(DatasetError, match="The disk is full"):
        setup.prepare(again, 2000)
    assert all(bundle_digest(again / "bundles" / name) is None for name in NAMES)
    assert [t for t in threads() if t.name == "lustrum work"] == []


def test_an_interrupt_stops_the_work_beside_it() -> None:
    begun, stopped = Event(), Event()

    def other() -> None:
        begun.set()
        try:
            while True:
                check_stop()
        except Stopped:
            stopped.set()
            raise

    def first() -> None:
        assert begun.wait(60)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side(first, other)
    assert stopped.is_set()


def test_work_beside_sees_the_listener_and_the_caller_who_stops_it() -> None:
    heard: list[tuple[str, float]] = []
    asked = Event()
    names: list[str] = []

    def other() -> None:
        names.append(current_thread().name)
        report_progress("other", 0.5)
        asked.set()
        while True:
            check_stop()

    with (
        pytest.raises(Stopped),
        reporting_progress(lambda task, done: heard.append((task, done))),
        stopping(asked.is_set),
    ):
        side_by_side(lambda: None, other)
    assert heard == [("other", 0.5)]
    assert names == ["lustrum work"]
