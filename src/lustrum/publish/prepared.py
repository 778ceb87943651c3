"""Write the public folder of prepared tables, whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lustrum.durable import sync
from lustrum.model import DatasetError
from lustrum.public.prepared.folder import FORMAT, KIND, MANIFEST, overall_digest

__all__ = ["digest_of", "json_bytes", "write_prepared"]


def json_bytes(words: Any) -> bytes:
    """JSON in one spelling: the same words give the same bytes."""
    return json.dumps(words, ensure_ascii=False, sort_keys=True, indent=1).encode() + b"\n"


def write_prepared(path: Path, head: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    """Put a folder in place of an earlier one, if there is any; gives its digest."""
    manifest = _manifest_words(head, files)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        draft.mkdir()
        try:
            for name, data in (*sorted(files.items()), (MANIFEST, json_bytes(manifest))):
                place = draft / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
                sync(place)
            for folder in sorted({(draft / name).parent for name in files}):
                sync(folder)
            with _moved_aside(path):
                draft.rename(path)
            sync(path.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise DatasetError(f"The folder {path} cannot be written: {error.strerror}.") from None
    return str(manifest["digest"])


def digest_of(head: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    """The digest that a folder with these files will have."""
    return str(_manifest_words(head, files)["digest"])


def _manifest_words(head: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
    words = {
        "format": FORMAT,
        "kind": KIND,
        **head,
        "files": {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
            for name, data in files.items()
        },
    }
    return words | {"digest": overall_digest(words)}


@contextlib.contextmanager
def _moved_aside(path: Path) -> Iterator[None]:
    """Whatever stands at the place is put back if nothing else comes there."""
    if not path.exists():
        yield
        return
    if not path.is_dir() or (not (path / MANIFEST).is_file() and any(path.iterdir())):
        raise DatasetError(
            f"{path} is there and does not hold prepared tables; name another folder with --out."
        )
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.old")
    path.rename(aside)
    try:
        yield
    except BaseException:
        aside.rename(path)
        raise
    shutil.rmtree(aside, ignore_errors=True)
