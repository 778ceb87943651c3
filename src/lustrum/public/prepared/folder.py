"""The public folder of prepared tables.

::

    <folder>/manifest.json                  name, source, tables, the digest of every file and of these digests
    <folder>/tables/<table>/<measure>.*     each table in the formats of the programme
    <folder>/tables/<table>/<measure>.table.json   the same as the server reads it
    <folder>/certificates/<set>.json        proofs of what a reader can work out at most
    <folder>/report.html, report.json       what was made, how, and how it was checked

Every digest is one of public bytes. A folder is written beside its place and put there as a whole; one whose
bytes do not fit its digests is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lustrum.model import Category, DatasetError, Release, TableAxis
from lustrum.model.arrays import Ints
from lustrum.model.errors import QueryError, choices
from lustrum.model.text import say
from lustrum.numeric.structure import UNBOUNDED
from lustrum.runtime.data_folder import MANIFEST, standing

# A prepared table as JSON and back: only what is published, in plain numbers.


def release_words(release: Release) -> dict[str, Any]:
    """What is published of a table; a value that is not shown is null, never 0.

    >>> from lustrum.protect.suppression import Suppression
    >>> from lustrum.model import Table
    >>> release_words(Suppression().apply(Table.from_counts([1, 8])))["value"]
    [None, 8]
    """
    shown, stated = release.shown.ravel(), release.stated.ravel()
    mapping: dict[str, Any] = {
        "axes": [
            {
                "name": axis.name,
                "label": axis.label,
                "categories": [[c.code, c.label, list(c.members)] for c in axis.categories],
            }
            for axis in release.axes
        ],
        "value": [
            int(v) if s else None for v, s in zip(release.numbers.ravel(), shown, strict=True)
        ],
        "status": release.status.ravel().tolist(),
        "method": dict(release.method),
        "decimals": release.decimals,
        "unit": release.unit,
        "notes": [str(note) for note in release.notes],
    }
    if stated.any() and release.least is not None and release.most is not None:
        mapping["interval"] = [
            [int(low), int(high)] if known else None
            for low, high, known in zip(
                release.least.ravel(), release.most.ravel(), stated, strict=True
            )
        ]
    elif shown.all() and release.least is not None and release.most is not None:
        # What rounding or adjustment leaves open of each number.
        mapping["range"] = [
            [_end(int(low)), _end(int(high))]
            for low, high in zip(release.least.ravel(), release.most.ravel(), strict=True)
        ]
    return mapping


def release_from_words(mapping: Mapping[str, Any]) -> Release:
    """The release that was written; a value of the wrong kind is a ValueError."""
    axes = tuple(
        TableAxis(
            str(axis["name"]),
            str(axis["label"]),
            tuple(Category(str(c), str(text), tuple(m)) for c, text, m in axis["categories"]),
        )
        for axis in mapping["axes"]
    )
    shape = tuple(len(axis) for axis in axes)
    values = [0 if v is None else int(v) for v in mapping["value"]]
    status = np.array(mapping["status"], dtype="<U1").reshape(shape)
    published = np.array(values, dtype=np.int64).reshape(shape)
    hidden = np.array([v is None for v in mapping["value"]], dtype=np.bool_).reshape(shape)
    if bool((hidden == (status == "F")).any()):
        raise ValueError("a value and its status contradict each other")
    low, high = np.where(hidden, -UNBOUNDED, published), np.where(hidden, UNBOUNDED, published)
    ends = mapping.get("interval") or mapping.get("range")
    if ends is not None:
        low, high = _ends(ends, 0, low, shape), _ends(ends, 1, high, shape)
    return Release(
        axes=axes,
        numbers=published,
        status=status,
        method=dict(mapping["method"]),
        least=low,
        most=high,
        decimals=int(mapping["decimals"]),
        unit=str(mapping["unit"]),
        notes=tuple(str(note) for note in mapping["notes"]),
    )


def _end(value: int) -> int | None:
    return value if abs(value) < UNBOUNDED else None


def _ends(
    pairs: Sequence[Sequence[int | None] | None], which: int, plain: Ints, shape: tuple[int, ...]
) -> Ints:
    open_end = (-UNBOUNDED, UNBOUNDED)[which]
    flat = plain.ravel().copy()
    for index, pair in enumerate(pairs):
        if pair is not None:
            end = pair[which]
            flat[index] = open_end if end is None else int(end)
    return flat.reshape(shape)


FORMAT = 1
KIND = "lustrum prepared tables"
_HEAD = ("name", "title", "period", "notes", "dataset", "source")


@dataclass(frozen=True)
class PreparedTable:
    """One response of one table: where its files stand, and what a list says of it."""

    name: str
    response: str
    title: str
    set: str
    label: str
    unit: str
    cells: int
    suppressed: int
    files: Mapping[str, str]

    @property
    def id(self) -> str:
        """Names the table within its folder."""
        return f"{self.name}.{self.response}"


@dataclass(frozen=True, eq=False, repr=False)
class PreparedFolder:
    """A folder that was read and found whole; the bytes of its files are kept in memory."""

    name: str
    title: str
    period: str
    notes: tuple[str, ...]
    dataset: str
    source: Mapping[str, Any]
    tables: tuple[PreparedTable, ...]
    files: Mapping[str, bytes]
    digest: str

    def __repr__(self) -> str:
        return f"PreparedFolder({self.name!r}, {self.digest[:12]})"

    def table(self, name: str) -> PreparedTable:
        """The table of that name; a clear error where there is none."""
        for one in self.tables:
            if one.id == name:
                return one
        raise QueryError(
            say(
                "There is no prepared table {name!r}; {choices}.",
                name=name,
                choices=choices(name, [one.id for one in self.tables]),
            )
        )

    def release(self, table: PreparedTable) -> Release:
        return release_from_words(json.loads(self.files[table.files["table"]]))


def prepared_name(path: Path) -> str:
    return str(_read_manifest(standing(path))["name"])


def read_prepared(path: Path) -> PreparedFolder:
    """Read a folder and check every byte of it; one clear sentence where it is not whole."""
    path = standing(path)
    manifest = _read_manifest(path)
    files: dict[str, bytes] = {}
    for name, mark in manifest["files"].items():
        file_path = path / name
        if path.resolve() not in file_path.resolve().parents:
            raise _damaged(path, f"{name} does not stand inside it")
        try:
            data = file_path.read_bytes()
        except OSError:
            raise _damaged(path, f"{name} cannot be read") from None
        if hashlib.sha256(data).hexdigest() != mark["sha256"]:
            raise _damaged(path, f"{name} does not have the digest that the manifest states")
        files[name] = data
    try:
        folder = PreparedFolder(
            **{key: manifest[key] for key in _HEAD if key != "notes"},
            notes=tuple(manifest["notes"]),
            tables=tuple(PreparedTable(**entry) for entry in manifest["tables"]),
            files=files,
            digest=manifest["digest"],
        )
        for table in folder.tables:
            folder.release(table)
    except (KeyError, TypeError, ValueError):
        raise _damaged(path, "its files do not fit each other") from None
    return folder


def overall_digest(manifest: Mapping[str, Any]) -> str:
    said = json.dumps({k: v for k, v in manifest.items() if k != "digest"}, sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


def _read_manifest(path: Path) -> Mapping[str, Any]:
    try:
        raw = json.loads((path / MANIFEST).read_bytes())
    except OSError:
        raise DatasetError(
            f"{path} is not a folder of prepared tables: there is no {MANIFEST} to be read; "
            "'lustrum release' makes one."
        ) from None
    except ValueError:
        raise _damaged(path, f"{MANIFEST} is not valid JSON") from None
    if not isinstance(raw, dict) or raw.get("kind") != KIND:
        raise _damaged(path, f"{MANIFEST} is not that of prepared tables")
    if raw.get("format") != FORMAT:
        raise DatasetError(
            f"The folder {path} was written by another version of Lustrum; make it again."
        )
    if not isinstance(raw.get("files"), dict) or raw.get("digest") != overall_digest(raw):
        raise _damaged(path, f"{MANIFEST} does not have its own digest")
    return raw


def _damaged(path: Path, why: str) -> DatasetError:
    return DatasetError(f"The folder {path} is damaged: {why}; copy it again, or make it again.")
