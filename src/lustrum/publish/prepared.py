"""Write the public folder of prepared tables, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from lustrum.model import DatasetError
from lustrum.public.prepared.folder import FORMAT, KIND, overall_digest
from lustrum.runtime.data_folder import ASIDE, MANIFEST, moved_aside
from lustrum.runtime.durable import exchange, sync

# How a folder that is published comes to its place, a bundle or prepared tables: at no moment is there none.
#
# Where the system can exchange two names, the new folder and the earlier one change places at one moment.
# Elsewhere the earlier one is moved aside first; a process that reads between the two steps, also after the
# machine stopped there, takes the one that was moved aside.


def write_folder(
    path: Path,
    files: Mapping[str, bytes],
    kind: str,
    beside: AbstractContextManager[None] | None = None,
) -> None:
    """Write a folder with these files in place of an earlier one of its kind, if there is any.

    ``beside`` is entered when all files are written, and left when the folder is in its place.
    """
    try:
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        try:
            for name, data in files.items():
                file_path = draft / name
                file_path.parent.mkdir(parents=True, exist_ok=True)
                file_path.write_bytes(data)
                sync(file_path)
            for folder in (draft, *sorted(one for one in draft.rglob("*") if one.is_dir())):
                sync(folder)
            _put_in_place(draft, path, kind, beside or nullcontext())
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise DatasetError(f"The {kind} {path} cannot be written: {error.strerror}.") from None


def _put_in_place(draft: Path, path: Path, kind: str, beside: AbstractContextManager[None]) -> None:
    """Let a finished folder take its place, and remove the one that stood there."""
    free = not path.exists() or (path.is_dir() and not any(path.iterdir()))
    if not free and not (path / MANIFEST).is_file():
        raise DatasetError(
            f"{path} is there and is not a {kind}; name another place for the {kind}."
        )
    with beside:
        if not path.exists():
            draft.rename(path)
        elif not exchange(draft, path):
            _replace(draft, path)
    sync(path.parent)
    for aside in moved_aside(path):
        # One that is only half removed must not be taken for a whole one.
        gone = aside.with_name(f"{aside.name}.part")
        aside.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def _replace(draft: Path, path: Path) -> None:
    """In two steps; whatever stood there comes back if the second one fails."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}{ASIDE}")
    path.rename(aside)
    try:
        draft.rename(path)
    except BaseException:
        aside.rename(path)
        raise


def json_bytes(document: object) -> bytes:
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
