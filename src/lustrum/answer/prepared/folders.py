"""The folders of prepared tables that a service offers; each is read again when its manifest changed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from lustrum.model import DatasetError, QueryError
from lustrum.model.errors import choices
from lustrum.model.text import say
from lustrum.public.bundle.place import MANIFEST, bundles_in, standing
from lustrum.public.prepared.folder import PreparedFolder, prepared_name, read_prepared
from lustrum.runtime.data_folder import PREPARED
from lustrum.runtime.durable import outages

Stamp = tuple[int, int, int]


class PreparedFolders:
    """Folders that are named, and those under ``prepared`` of a data folder; safe to share between threads."""

    def __init__(self, root: Path | None, named: Sequence[Path] = ()) -> None:
        self.named = tuple(named)
        self._root = None if root is None else root / PREPARED
        self._lock = threading.Lock()
        self._read: dict[Path, tuple[Stamp, PreparedFolder]] = {}
        self._places: dict[str, Path] = {}
        for path in self.named:
            name = prepared_name(path)
            if name in self._places:
                raise DatasetError(
                    f"Two folders hold the prepared tables {name!r}; name one of them."
                )
            self._places[name] = path

    def names(self) -> list[str]:
        """The programmes that are there."""
        return sorted(self._found())

    def folder(self, name: str) -> PreparedFolder:
        """The tables of a programme; a clear error where there are none or their folder is damaged."""
        places = self._found()
        if name not in places:
            raise QueryError(
                say(
                    "There are no prepared tables {name!r}; {choices}.",
                    name=name,
                    choices=choices(name, sorted(places)),
                )
            )
        path = places[name]
        with outages(path):
            status = (standing(path) / MANIFEST).stat()
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        with self._lock:
            cached = self._read.get(path)
            if cached is None or cached[0] != stamp:
                folder = read_prepared(path)
                if folder.name != name:
                    raise DatasetError(
                        f"The folder {path} holds the prepared tables {folder.name!r}; rename it to that."
                    )
                cached = self._read[path] = (stamp, folder)
            return cached[1]

    def others(self, name: str) -> list[PreparedFolder]:
        """All folders that can be read but one."""
        out = []
        for other in self.names():
            if other != name:
                with suppress(DatasetError):
                    out.append(self.folder(other))
        return out

    def _found(self) -> dict[str, Path]:
        paths = dict(self._places)
        if self._root is not None:
            with outages(self._root):
                for name in bundles_in(self._root):
                    paths.setdefault(name, self._root / name)
        return paths
