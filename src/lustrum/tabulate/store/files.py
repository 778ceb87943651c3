"""The files of a version: opened, compared with their digests, and watched while they answer."""

from __future__ import annotations

import os
from pathlib import Path

from lustrum.model import DatasetError
from lustrum.tabulate.store.digest import digest_of
from lustrum.tabulate.store.manifest import KEYS, RECORDS, FileMark, read_manifest


class DamagedError(DatasetError):
    """The files are not what was written; reading them again does not help."""


class VersionFiles:
    """The files of a version, open until they are closed, also where the folder is removed meanwhile.

    Opening looks at the manifest and at sizes. :meth:`check` reads every byte, and must come before the first
    answer.
    """

    def __init__(self, folder: Path) -> None:
        manifest = read_manifest(folder)
        self.version = folder.name
        self.manifest = manifest
        self.checked = False
        self.folder = folder
        self._wanted = manifest.files
        self._handles: list[int] = []
        self.size = 0
        try:
            for name in (RECORDS, KEYS):
                self._open(name, manifest.files[name])
            self._opened = self.marks()
        except BaseException:
            self.close()
            raise

    def _open(self, name: str, wanted: FileMark) -> None:
        try:
            handle = os.open(self.folder / name, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise self.damaged(f"{name} is missing") from None
        except OSError as error:
            raise DatasetError(f"{self.folder / name} cannot be read: {error.strerror}.") from None
        self._handles.append(handle)
        size = os.fstat(handle).st_size
        if size != wanted.bytes:  # a shorter file under a memory map would end the process
            how = "shorter" if size < wanted.bytes else "longer"
            raise self.damaged(f"{name} is {how} than what was written")
        self.size += size

    @property
    def handles(self) -> tuple[int, ...]:
        """The open records and keys."""
        return tuple(self._handles)

    def check(self) -> None:
        """Hold every byte to the manifest."""
        for handle, name in zip(self._handles, (RECORDS, KEYS), strict=True):
            try:
                digest = digest_of(handle)
            except OSError as error:
                raise DatasetError(
                    f"{self.folder / name} cannot be read: {error.strerror}."
                ) from None
            if digest != self._wanted[name].digest:
                raise self.damaged(f"{name} does not hold what was written")
        self.require_unchanged()
        self.checked = True

    def marks(self) -> tuple[tuple[int, int], ...]:
        """Size and last change of each file: the same marks, the same bytes."""
        return tuple((status.st_size, status.st_mtime_ns) for status in self._statuses())

    @property
    def identity(self) -> tuple[object, ...]:
        """Names the files on disk: another one after any repair, also one that keeps the times of change."""
        statuses = [(s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in self._statuses()]
        return (self.version, *statuses)

    def _statuses(self) -> list[os.stat_result]:
        try:
            return [os.fstat(handle) for handle in self._handles]
        except OSError as error:
            raise DatasetError(f"{self.folder} cannot be read: {error.strerror}.") from None

    def require_unchanged(self) -> None:
        """Refuse where a file is not as it was when it was opened."""
        if self.marks() != self._opened:
            raise self.damaged("its files changed while it was in use")

    def damaged(self, how: str) -> DamagedError:
        """What to say, and what to do."""
        return DamagedError(f"The dataset in {self.folder} is damaged: {how}; ingest it again.")

    def close(self) -> None:
        """Let go of the files."""
        while self._handles:
            os.close(self._handles.pop())
