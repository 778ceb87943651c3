"""Folders of prepared tables: whole or refused with a reason, and never another table than was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lustrum.model import Category, DatasetError, QueryError, Release, TableAxis
from lustrum.numeric.structure import UNBOUNDED
from lustrum.public.prepared import PreparedFolder, PreparedTable, prepared_name, read_prepared
from lustrum.public.prepared.folder import overall_digest, release_from_words, release_words
from lustrum.publish.prepared import digest_of, json_bytes, write_prepared

AXIS = TableAxis(
    "area",
    "Area",
    (Category("n", "North", (0,)), Category("s", "South", (1,)), Category("_T", "All", (0, 1))),
)


def release(values: list[int], status: str, **words: Any) -> Release:
    return Release(
        (AXIS,),
        np.array(values),
        np.array(list(status)),
        {"method": "suppression"},
        decimals=1,
        unit="EUR",
        notes=("a note",),
        **words,
    )


HIDDEN = release([7, 30, 9], "AFD")
TABLE = {
    "name": "pay",
    "response": "sum",
    "title": "Pay",
    "set": "one",
    "label": "Pay",
    "unit": "EUR",
    "cells": 3,
    "suppressed": 2,
    "files": {"table": "tables/pay/sum.table.json"},
}
HEAD: dict[str, Any] = {
    "name": "town",
    "title": "Town",
    "period": "2025",
    "notes": ["one", "two"],
    "dataset": "people",
    "source": {"kind": "records"},
    "tables": [TABLE],
}
FILES = {"tables/pay/sum.table.json": json_bytes(release_words(HIDDEN)), "report.json": b"{}"}


def read(path: Path) -> PreparedFolder:
    assert write_prepared(path, HEAD, FILES) == digest_of(HEAD, FILES)
    return read_prepared(path)


def test_what_belongs_to_a_folder_is_put_in_place_with_it(tmp_path: Path) -> None:
    seen = []

    @contextmanager
    def beside() -> Iterator[None]:
        seen.append((tmp_path / "town").exists())
        yield
        seen.append((tmp_path / "town").exists())

    write_prepared(tmp_path / "town", HEAD, FILES, beside())
    assert seen == [False, True]


def test_a_folder_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = read(tmp_path / "town")
    assert prepared_name(tmp_path / "town") == "town"
    assert (folder.name, folder.title, folder.period) == ("town", "Town", "2025")
    assert (folder.notes, folder.dataset) == (("one", "two"), "people")
    assert folder.source == {"kind": "records"}
    assert folder.tables == (PreparedTable(**TABLE),)
    assert dict(folder.files) == FILES
    assert folder.digest == digest_of(HEAD, FILES)
    assert repr(folder) == f"PreparedFolder('town', {folder.digest[:12]})"
    table = folder.table("pay.sum")
    assert table.id == "pay.sum"
    assert folder.release(table).status.tolist() == ["A", "F", "D"]
    with pytest.raises(QueryError, match="no prepared table 'pay'"):
        folder.table("pay")
    manifest = json.loads((tmp_path / "town" / "manifest.json").read_bytes())
    assert manifest["files"]["report.json"] == {
        "sha256": hashlib.sha256(b"{}").hexdigest(),
        "bytes": 2,
    }
    assert digest_of(HEAD | {"title": "x"}, FILES) != folder.digest
    assert digest_of(HEAD, FILES | {"report.json": b"[]"}) != folder.digest


def rewritten(path: Path, **words: Any) -> None:
    """A manifest with other words, and a digest that fits them."""
    place = path / "manifest.json"
    raw = json.loads(place.read_bytes()) | words
    raw["digest"] = overall_digest(raw)
    place.write_bytes(json_bytes(raw))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda p: (p / "manifest.json").unlink(), "is not a folder of prepared tables"),
        (lambda p: (p / "manifest.json").write_bytes(b"{"), "is not valid JSON"),
        (lambda p: (p / "manifest.json").write_bytes(b"[]"), "is not that of prepared tables"),
        (lambda p: rewritten(p, kind="other"), "is not that of prepared tables"),
        (lambda p: rewritten(p, format=99), "another version"),
        (lambda p: rewritten(p, files=[]), "does not have its own digest"),
        (lambda p: (p / "report.json").unlink(), "report.json cannot be read"),
        (lambda p: (p / "report.json").write_bytes(b"{ "), "does not have the digest"),
        (lambda p: rewritten(p, files={"../out": {"sha256": ""}}), "does not stand inside it"),
        (lambda p: rewritten(p, tables=[{"name": "x"}]), "do not fit each other"),
        (lambda p: rewritten(p, tables=[TABLE | {"files": {}}]), "do not fit each other"),
    ],
)
def test_a_damaged_folder_is_refused_with_the_reason(
    tmp_path: Path, damage: Any, sentence: str
) -> None:
    path = tmp_path / "town"
    read(path)
    damage(path)
    with pytest.raises(DatasetError, match=sentence):
        read_prepared(path)


def test_a_hidden_value_is_null_and_stays_hidden() -> None:
    words = release_words(HIDDEN)
    assert words["value"] == [None, 30, None]
    assert words["status"] == ["A", "F", "D"]
    assert "interval" not in words
    assert "range" not in words
    back = release_from_words(words)
    assert back.shown.tolist() == [False, True, False]
    assert str(back.published) == "[nan 30. nan]"
    assert (back.low.tolist(), back.high.tolist()) == ([-np.inf, 30, -np.inf], [np.inf, 30, np.inf])
    assert (back.axes, back.decimals, back.unit) == ((AXIS,), 1, "EUR")
    assert (back.notes, back.method) == (("a note",), {"method": "suppression"})
    assert release_words(back) == words


def test_intervals_and_ranges_are_kept() -> None:
    """An interval that is stated for a hidden cell; what rounding leaves open of cells that all are shown."""
    low, high = np.array([10, 30, -UNBOUNDED]), np.array([20, 30, UNBOUNDED])
    words = release_words(release([7, 30, 9], "AFD", least=low, most=high))
    assert words["interval"] == [[10, 20], None, None]
    back = release_from_words(words)
    assert (back.least.tolist(), back.most.tolist()) == (low.tolist(), high.tolist())

    low, high = np.array([28, -UNBOUNDED, 55]), np.array([32, 32, UNBOUNDED])
    words = release_words(release([30, 30, 60], "FFF", least=low, most=high))
    assert words["range"] == [[28, 32], [None, 32], [55, None]]
    back = release_from_words(words)
    assert (back.least.tolist(), back.most.tolist()) == (low.tolist(), high.tolist())


@pytest.mark.parametrize(("value", "status"), [(None, "F"), (30, "A")])
def test_a_value_that_contradicts_its_status_is_refused(value: int | None, status: str) -> None:
    words = release_words(HIDDEN)
    words["value"][0], words["status"][0] = value, status
    with pytest.raises(ValueError, match="contradict"):
        release_from_words(words)


def test_the_same_words_are_the_same_bytes() -> None:
    assert json_bytes({"é": 1, "a": [2]}) == '{\n "a": [\n  2\n ],\n "é": 1\n}\n'.encode()
