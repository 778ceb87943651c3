"""Backups: a data folder copied whole while it is served, and put back only if every byte is right.

::

    <backup>/backup.json     what there is, with the digest of each file
    <backup>/...             the folder as it was: all that ``lustrum.runtime.data_folder`` lists

The manifest is written last: a backup without it was not finished, and is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from lustrum.model import DatasetError, InputError
from lustrum.runtime.data_folder import (
    BUNDLES,
    CONNECTIONS,
    POLICIES,
    PREPARED,
    PRIVATE,
    kept_files,
)
from lustrum.runtime.durable import outages, read_at, sync, write_whole
from lustrum.tabulate.store.folder import Store
from lustrum.tabulate.store.manifest import KEYS, MANIFEST, RECORDS, read_manifest
from lustrum.tabulate.store.secret_files import NEXT, SECRET

BACKUP = "backup.json"
FORMAT = 1
_PUBLIC_MANIFEST = "manifest.json"
_BLOCK = 1 << 20
Report = Callable[[str], None]


def back_up(root: Path, target: Path, report: Report | None = None) -> int:
    """Copy all that answers and later releases need, checked while it is copied; gives the number of files.

    Datasets may be served and replaced meanwhile: each is copied in the version in force when its turn came.
    Tables made in the background are not part of a backup; they can be made again.
    """
    store = Store(root)
    if not store.names() and not any(kept_files(root, CONNECTIONS)):
        raise InputError(f"There is no dataset in {root} to back up.")
    with outages(target):
        if target.exists() and any(target.iterdir()):
            raise InputError(f"{target} is not empty; name a new folder for each backup.")
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.chmod(0o700)
        with store.shared():  # a rotation of the secret would change all datasets at once
            if (root / NEXT).exists():
                raise DatasetError(
                    f"A rotation of the secret in {root} is not finished; run 'lustrum secret rotate' first."
                )
            digests = dict(_copied(store, target, report or (lambda _: None)))
        manifest = {"format": FORMAT, "files": digests}
        write_whole(target / BACKUP, json.dumps(manifest, indent=1).encode(), 0o600)
    return len(digests)


def _copied(store: Store, target: Path, report: Report) -> Iterator[tuple[str, str]]:
    for name in store.names():
        report(name)
        files = store.look(name)
        try:
            files.check()
            folder = Path(name) / files.version
            (target / folder).mkdir(parents=True, mode=0o700)
            # From the open files: the folder may be replaced and removed meanwhile.
            for file, handle in zip((RECORDS, KEYS), files.handles, strict=True):
                yield _write(target, folder / file, _blocks(handle))
            files.require_unchanged()
            raw = files.manifest.to_bytes()
            yield _write(target, folder / MANIFEST, [raw])
            read_manifest(target / folder)
            yield _write(target, Path(name) / "current", [f"{files.version}\n".encode()])
        finally:
            files.close()
    for part in (CONNECTIONS, POLICIES):
        yield from _part(store.root, part, target, report)
    for public in (BUNDLES, PREPARED):
        before = _manifests(store.root / public)
        yield from _part(store.root, public, target, report)
        after = _manifests(store.root / public)
        for public_folder, manifest in before.items():
            if after.get(public_folder) != manifest:
                raise DatasetError(
                    f"{public_folder} was replaced while it was copied; back up again."
                )
    # A memory is written before its bundle, so every bundle that was copied has its own.
    for private_part in PRIVATE:
        yield from _part(store.root, private_part, target, report)
    yield _write(target, Path(SECRET), [(store.root / SECRET).read_bytes()])


def _part(root: Path, part: str, target: Path, report: Report) -> Iterator[tuple[str, str]]:
    """The files of one part, each group reported once."""
    said = ""
    for path in kept_files(root, part):
        relative = path.relative_to(root)
        group = "/".join(relative.parts[:2])
        if group != said:
            report(group)
            said = group
        if path.suffix == ".sqlite":
            # Lines may be added meanwhile: what is copied is the book as it stands at one moment.
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as book:
                yield _write(target, relative, [book.serialize()])
            continue
        with path.open("rb") as file:
            yield _write(target, relative, _blocks(file.fileno()))


def _manifests(folder: Path) -> dict[Path, bytes]:
    """What stands in the public folders of a kind: each is replaced as a whole, with its manifest."""
    return {
        public_folder: (public_folder / _PUBLIC_MANIFEST).read_bytes()
        for public_folder in sorted(folder.glob("[!.]*"))
        if public_folder.is_dir()
    }


def _blocks(handle: int) -> Iterator[bytes]:
    offset, block = 0, memoryview(bytearray(_BLOCK))
    while count := read_at(handle, block, offset):
        yield bytes(block[:count])
        offset += count


def _write(target: Path, relative: Path, blocks: Iterable[bytes]) -> tuple[str, str]:
    path, digest = target / relative, hashlib.sha256()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        for block in blocks:
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    sync(path.parent)
    return relative.as_posix(), digest.hexdigest()


def check_backup(backup: Path) -> dict[str, str]:
    """Compare every file of a backup with its digest; gives the files."""
    broken = f"{backup} is not a whole backup"
    with outages(backup):
        try:
            manifest = json.loads((backup / BACKUP).read_bytes())
            files: dict[str, str] = dict(manifest["files"])
            written = manifest["format"]
        except FileNotFoundError:
            raise InputError(
                f"{broken}: {BACKUP} is missing, so it was not finished; use another."
            ) from None
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{broken}: {BACKUP} is damaged; use another.") from None
        if written != FORMAT:
            raise InputError(f"{backup} was written by another version of Lustrum.")
        for name, wanted in files.items():
            relative = Path(name)
            if relative.is_absolute() or ".." in relative.parts:
                raise InputError(f"{broken}: it names a file outside of itself.")
            digest = hashlib.sha256()
            try:
                with (backup / relative).open("rb") as file:
                    for block in _blocks(file.fileno()):
                        digest.update(block)
            except FileNotFoundError:
                raise InputError(f"{broken}: {name} is missing; use another.") from None
            if digest.hexdigest() != wanted:
                raise InputError(f"{broken}: {name} is damaged; use another.")
    return files


def restore(backup: Path, root: Path) -> int:
    """Put a backup into an empty or new folder, whole or not at all; gives the number of files.

    A folder that holds something is never written to: move it away first. So nothing can be lost by a
    restore, and two secrets never meet.
    """
    files = check_backup(backup)
    with outages(root):
        if root.exists() and any(root.iterdir()):
            raise InputError(
                f"{root} is not empty; move it away, or restore into a new folder with --data."
            )
        draft = root.with_name(f".{root.name}.restoring")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True, mode=0o700)
        try:
            for name, wanted in files.items():
                with (backup / name).open("rb") as file:
                    _, digest = _write(draft, Path(name), _blocks(file.fileno()))
                if digest != wanted:
                    raise InputError(f"{backup} changed while it was restored; use another.")
            store = Store(draft)
            for name in store.names():
                files_of = store.look(name)
                try:
                    files_of.check()
                finally:
                    files_of.close()
            if root.exists():
                root.rmdir()
            draft.rename(root)
            sync(root.parent)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return len(files)
