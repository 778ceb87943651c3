"""The folders of prepared tables that a service offers; each is read again when its manifest changed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lustrum.model import DatasetError, QueryError
from lustrum.model.errors import choices
from lustrum.model.text import say
from lustrum.public.prepared.folder import PreparedFolder, prepared_name, read_prepared
from lustrum.runtime.data_folder import MANIFEST, PREPARED, bundles_in, standing
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


# One population is served one way: prepared tables beside other numbers of the same people.
#
# A reader sees everything that a server offers. Suppressed cells of a prepared table could be worked out from
# flexible tables of the same people, and exact totals of prepared tables narrow what protected counts leave
# open. So prepared tables stand beside flexible ones of the same dataset only in two cases: they were counted
# from the very bundle that answers the flexible questions, or they show nothing but sums, which the bundle
# does not hold, and named that bundle when they were made.


def check_one_population(folder: PreparedFolder, bundles: Mapping[str, str | None]) -> None:
    """Refuse a folder whose people are also served in another way.

    ``bundles`` names the datasets that answer flexible questions: with the digest of their bundle, or None
    where a policy protects each question by keys.
    """
    if folder.dataset not in bundles:
        return
    served = bundles[folder.dataset]
    said = f"The prepared tables {folder.name!r} and the flexible tables of {folder.dataset!r}"
    if served is None:
        raise DatasetError(
            f"{said} are of the same people, and flexible tables under a keyed policy cannot be checked "
            "against prepared ones: serve one of the two, or protect the dataset with 'lustrum protect' and "
            "make the prepared tables from its bundle."
        )
    counted = folder.source.get("bundle")
    if counted is not None:
        if counted != served:
            raise DatasetError(
                f"{said} come from two different bundles, which together tell more than either; make the "
                "prepared tables again from the bundle that is served."
            )
        return
    beside = folder.source.get("beside")
    if beside is None:
        raise DatasetError(
            f"{said} are of the same people and were not checked together: name the bundle under [data] as "
            "'beside' and run 'lustrum release' again, or make the prepared tables from the bundle."
        )
    if beside != served:
        raise DatasetError(
            f"{said} were checked together with another bundle; run 'lustrum release' again with the bundle "
            "that is served as 'beside'."
        )


def check_other_folders(folder: PreparedFolder, others: Iterable[PreparedFolder]) -> None:
    """Refuse a folder whose people and period are in another one that was not protected together with it.

    Folders that were counted from the same bundle agree.
    """
    for other in others:
        if (other.dataset, other.period) != (folder.dataset, folder.period):
            continue
        counted = folder.source.get("bundle")
        if counted is not None and counted == other.source.get("bundle"):
            continue
        raise DatasetError(
            f"The prepared tables {folder.name!r} and {other.name!r} are of the same people and the same "
            "period and were not protected together: put their tables into one programme and run "
            "'lustrum release' again, or serve one of the two."
        )
