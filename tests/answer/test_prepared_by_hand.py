"""Folders of prepared tables: read again when they change, refused beside the same people."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from lustrum.answer import TableService
from lustrum.answer.prepared import PreparedFolders, check_one_population, check_other_folders
from lustrum.local import local_service
from lustrum.model import DatasetError, InputError, QueryError
from lustrum.public.prepared import PreparedFolder
from lustrum.publish.prepared import write_prepared


def folder(name: str = "town", **words: Any) -> PreparedFolder:
    given: dict[str, Any] = {"title": "T", "period": "2025", "dataset": "people", "source": {}}
    return PreparedFolder(
        name, notes=(), tables=(), files={}, digest="d" * 64, **{**given, **words}
    )


def written(path: Path, name: str, **words: Any) -> Path:
    head = {"name": name, "title": "T", "period": "2025", "notes": [], "dataset": "people"}
    write_prepared(path, {**head, "source": {}, "tables": [], **words}, {"report.json": b"{}"})
    return path


# --- One population is served one way


@pytest.mark.parametrize(
    ("source", "served", "sentence"),
    [
        ({}, {}, None),
        ({}, {"others": None}, None),
        ({"bundle": "one"}, {"others": "two"}, None),
        ({}, {"people": None}, "keyed policy cannot be checked"),
        ({"bundle": "one"}, {"people": None}, "keyed policy cannot be checked"),
        ({"beside": "one"}, {"people": None}, "keyed policy cannot be checked"),
        ({"bundle": "one"}, {"people": "one"}, None),
        ({"bundle": "one"}, {"people": "two"}, "two different bundles"),
        ({"bundle": "one", "beside": "two"}, {"people": "two"}, "two different bundles"),
        ({"bundle": "one", "beside": "two"}, {"people": "one"}, None),
        ({}, {"people": "one"}, "were not checked together"),
        ({"beside": "one"}, {"people": "one"}, None),
        ({"beside": "two"}, {"people": "one"}, "with another bundle"),
    ],
)
def test_prepared_tables_stand_beside_the_bundle_they_were_checked_with_only(
    source: dict[str, str], served: dict[str, str | None], sentence: str | None
) -> None:
    if sentence is None:
        check_one_population(folder(source=source), served)
        return
    with pytest.raises(DatasetError, match=sentence) as caught:
        check_one_population(folder(source=source), served)
    said = "The prepared tables 'town' and the flexible tables of 'people'"
    assert str(caught.value).startswith(said)


ONE = {"bundle": "one"}


@pytest.mark.parametrize(
    ("source", "other", "agree"),
    [
        ({}, {}, False),
        (ONE, {"source": ONE}, True),
        (ONE, {"source": {"bundle": "two"}}, False),
        (ONE, {"source": {}}, False),
        ({}, {"source": ONE}, False),
        ({"beside": "one"}, {"source": {"beside": "one"}}, False),
        ({}, {"period": "2024"}, True),
        ({}, {"dataset": "firms"}, True),
        ({}, {"period": "2024", "dataset": "firms"}, True),
    ],
)
def test_the_same_people_of_one_period_are_served_in_one_pattern(
    source: dict[str, str], other: dict[str, Any], agree: bool
) -> None:
    mine, theirs = folder(source=source), folder("again", **other)
    apart = folder("elsewhere", dataset="elsewhere")
    if agree:
        check_other_folders(mine, [theirs, apart])
        return
    # Whatever stands before it in the list.
    for others in ([theirs], [apart, theirs], [folder("same", source=source), theirs]):
        with pytest.raises(DatasetError, match="were not protected together"):
            check_other_folders(mine, others)
    check_other_folders(mine, [])


# --- The folders


def test_folders_are_found_by_their_names_and_those_named_come_first(tmp_path: Path) -> None:
    root = tmp_path / "data"
    written(root / "prepared" / "town", "town", title="In the folder")
    written(root / "prepared" / "county", "county")
    named = written(tmp_path / "elsewhere", "town", title="Named")
    folders = PreparedFolders(root, [named])
    assert folders.names() == ["county", "town"]
    assert folders.folder("town").title == "Named"
    assert folders.folder("county").name == "county"
    assert PreparedFolders(root).folder("town").title == "In the folder"
    alone = PreparedFolders(None, [named])
    assert alone.names() == ["town"]
    assert alone.named == (named,)
    assert PreparedFolders(tmp_path / "nothing").names() == []
    with pytest.raises(QueryError, match="no prepared tables 'twon'; did you mean 'town'"):
        folders.folder("twon")
    with pytest.raises(DatasetError, match="Two folders hold the prepared tables 'town'"):
        PreparedFolders(None, [named, root / "prepared" / "town"])


def test_a_folder_is_kept_while_it_looks_the_same_and_read_again_otherwise(tmp_path: Path) -> None:
    path = written(tmp_path / "town", "town", title="First")
    folders = PreparedFolders(None, [path])
    first = folders.folder("town")
    assert folders.folder("town") is first
    manifest = path / "manifest.json"
    before = manifest.stat()
    # Each of the three alone: when it was written, how long it is, which file it is.
    os.utime(manifest, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    second = folders.folder("town")
    assert second is not first
    assert folders.folder("town") is second
    text = manifest.read_bytes()
    manifest.write_bytes(text + b" ")
    os.utime(manifest, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    third = folders.folder("town")
    assert third is not second
    beside = tmp_path / "beside"
    beside.write_bytes(text + b" ")
    os.utime(beside, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    beside.replace(manifest)
    assert folders.folder("town") is not third
    written(path, "town", title="Second")
    assert folders.folder("town").title == "Second"


def test_a_folder_that_is_damaged_gone_or_another_one_is_one_sentence(tmp_path: Path) -> None:
    root = tmp_path / "data"
    for name in ("town", "county", "land"):
        written(root / "prepared" / name, name)
    folders = PreparedFolders(root)
    assert [one.name for one in folders.others("town")] == ["county", "land"]
    assert [one.name for one in folders.others("nobody")] == ["county", "land", "town"]
    (root / "prepared" / "county" / "report.json").write_bytes(b"{ }")
    folders = PreparedFolders(root)
    with pytest.raises(DatasetError, match="digest"):
        folders.folder("county")
    assert [one.name for one in folders.others("town")] == ["land"]
    (root / "prepared" / "land").rename(root / "prepared" / "lande")
    with pytest.raises(DatasetError, match="holds the prepared tables 'land'; rename it to that"):
        folders.folder("lande")
    with pytest.raises(QueryError, match="There are no prepared tables 'land'"):
        folders.folder("land")
    named = PreparedFolders(None, [root / "prepared" / "town"])
    shutil.rmtree(root / "prepared" / "town")
    with pytest.raises(DatasetError, match="cannot be reached"):
        named.folder("town")


# --- Folders by their paths, or by texts


def test_folders_are_named_by_paths_or_texts(tmp_path: Path) -> None:
    path = written(tmp_path / "town", "town")
    service = TableService(str(tmp_path), prepared=[str(path)], folder=str(tmp_path))
    assert service.root == service.folder == tmp_path
    assert service.prepared("town").name == "town"
    service.close()
    with pytest.raises(DatasetError, match="text is not a bundle"):
        TableService(bundles=["text"])
    with pytest.raises(DatasetError, match="text is not a folder of prepared tables"):
        TableService(prepared=("text",))
    local = local_service(str(tmp_path))
    assert local.root == tmp_path
    assert local.names() == []
    local.close()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"bundles": "text"}, r"^'bundles' is a list of folders, such as \['town'\], not a str\.$"),
        ({"prepared": "text"}, r"^'prepared' is a list of folders, such as \['town'\], not a str\.$"),
        ({"bundles": Path("x")}, "'bundles' is a list of folders"),
        ({"bundles": [5]}, r"^'bundles' names a folder by its path, not by an int\.$"),
        ({"prepared": [None]}, r"^'prepared' names a folder by its path, not by None\.$"),
        ({"bundles": [""]}, r"^'bundles' names a folder by its path, not by an empty text\.$"),
        ({"root": 5}, r"^'root' names a folder by its path, not by an int\.$"),
        ({"folder": 5}, r"^'folder' names a folder by its path, not by an int\.$"),
    ],
)  # fmt: skip
def test_what_names_no_folder_is_one_sentence(words: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        TableService(**words)
    with pytest.raises(InputError, match="'root' names a folder"):
        local_service(3)  # type: ignore[arg-type]
