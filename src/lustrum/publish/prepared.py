"""Write the public folder of prepared tables, whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from lustrum.public.bundle.place import MANIFEST
from lustrum.public.prepared.folder import FORMAT, KIND, overall_digest
from lustrum.publish.folders import write_folder


def json_bytes(document: Any) -> bytes:
    """JSON in one spelling: the same words give the same bytes."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1).encode() + b"\n"


def write_prepared(
    path: Path,
    head: Mapping[str, Any],
    files: Mapping[str, bytes],
    beside: AbstractContextManager[None] | None = None,
) -> str:
    """Put a folder in place of an earlier one, if there is any; gives its digest.

    ``beside`` puts in place what belongs to the folder, and undoes it if the folder does not get there.
    """
    manifest = _manifest_words(head, files)
    every = dict(sorted(files.items())) | {MANIFEST: json_bytes(manifest)}
    write_folder(path, every, "folder of prepared tables", beside)
    return str(manifest["digest"])


def digest_of(head: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    """The digest that a folder with these files will have."""
    return str(_manifest_words(head, files)["digest"])


def _manifest_words(head: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
    manifest = {
        "format": FORMAT,
        "kind": KIND,
        **head,
        "files": {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
            for name, data in files.items()
        },
    }
    return manifest | {"digest": overall_digest(manifest)}
