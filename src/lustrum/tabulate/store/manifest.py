"""The manifest of a version: what its files hold, and digests that prove it.

The folder of a version is named after the digest of its manifest, and the manifest holds the digests of the
files. The file ``current``, which names the folder, therefore vouches for every byte.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lustrum.model import Dataset, DatasetError
from lustrum.model.errors import LustrumError
from lustrum.tabulate.keys import KEY_VERSION

FORMAT = 2
RECORDS = "records.arrow"
KEYS = "keys.arrow"
MANIFEST = "dataset.json"
VERSION = re.compile(r"v([0-9a-f]{16})-[0-9a-f]{8}|v[0-9a-f]{16}")
"""How folders of versions are called; the second form is that of the first format."""


@dataclass(frozen=True)
class FileMark:
    """What a file must be: its size, and the digest of its bytes."""

    bytes: int
    digest: str


@dataclass(frozen=True)
class Manifest:
    """What a version holds. ``secret`` is the fingerprint of the secret behind its record keys."""

    rows: int
    files: dict[str, FileMark]
    secret: str
    description: Any

    @cached_property
    def dataset(self) -> Dataset:
        return Dataset.from_mapping(self.description)

    def to_bytes(self) -> bytes:
        return json.dumps(
            {
                "format": FORMAT,
                "key_version": KEY_VERSION,
                "rows": self.rows,
                "files": {name: asdict(mark) for name, mark in self.files.items()},
                "secret": self.secret,
                "description": self.description,
            },
            ensure_ascii=False,
        ).encode()


def version_of(manifest: bytes) -> str:
    """A name for the version with this manifest; the end sets apart versions that hold the same."""
    return f"v{_short(manifest)}-{secrets.token_hex(4)}"


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a version and hold it to the name of its folder."""
    damaged = DatasetError(
        f"The dataset in {folder} is damaged: {MANIFEST} cannot be read; ingest it again."
    )
    if folder.is_symlink():
        raise DatasetError(f"{folder} is a link; a version must be a folder of its own.")
    try:
        raw = (folder / MANIFEST).read_bytes()
        document = json.loads(raw)
        written = document["format"]
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        raise damaged from None
    except OSError as error:
        raise DatasetError(f"{folder / MANIFEST} cannot be read: {error.strerror}.") from None
    if written == 1:
        raise DatasetError(
            f"The dataset in {folder} was written by an earlier version of Lustrum; run 'lustrum upgrade'."
        )
    if written != FORMAT or document.get("key_version") != KEY_VERSION:
        raise DatasetError(
            f"The dataset in {folder} was written by another version of Lustrum; ingest it again."
        )
    named = VERSION.fullmatch(folder.name)
    if named is None or named.group(1) != _short(raw):
        raise DatasetError(
            f"The dataset in {folder} is damaged: {MANIFEST} is not the one that was written; ingest it "
            "again."
        )
    try:
        manifest = Manifest(
            int(document["rows"]),
            {name: FileMark(**mark) for name, mark in document["files"].items()},
            str(document["secret"]),
            document["description"],
        )
        if sorted(manifest.files) != sorted((RECORDS, KEYS)):
            raise damaged
        assert manifest.dataset.name
    except (LustrumError, ValueError, KeyError, TypeError, AttributeError):
        raise damaged from None
    return manifest


def _short(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:16]
