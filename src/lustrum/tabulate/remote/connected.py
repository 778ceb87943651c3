"""Datasets whose records stay in a database, as a data folder knows them.

``connections/<dataset>.json`` holds the description, the connection without credentials, and what the records
were when they were checked: how many, and the sum of their keys. ``connections/<dataset>.keys.json`` is the
receipt of the keys that were made for them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lustrum.model import Dataset, DatasetError
from lustrum.model.errors import LustrumError
from lustrum.runtime.data_folder import CONNECTIONS
from lustrum.runtime.durable import outages, write_whole
from lustrum.tabulate.keys import Secret
from lustrum.tabulate.remote.connection import Connection, Database
from lustrum.tabulate.remote.engine import IbisEngine
from lustrum.tabulate.remote.keys import Progress, make_keys
from lustrum.tabulate.store.folder import Store

FORMAT = 1


def connected_names(root: Path) -> list[str]:
    """The datasets of a folder whose records are in a database."""
    with outages(root):
        files = (root / CONNECTIONS).glob("*.json")
        return sorted(p.stem for p in files if not p.name.endswith(".keys.json"))


def write_keys(
    store: Store,
    dataset: Dataset,
    connection: Connection,
    reader: str | None = None,
    progress: Progress | None = None,
    file: Path | None = None,
) -> tuple[int, str]:
    """Make the keys of records in a database, there or in a file; gives how many, and who may read them."""
    with outages(store.root):
        store.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    with store.shared():
        secret: Secret = store.secret
        rows, summed, readers = make_keys(connection, dataset, secret, reader, progress, file)
        _write(
            _receipt(store.root, dataset.name),
            {"secret": secret.fingerprint, "rows": rows, "sum": summed},
        )
    return rows, readers


def connect(store: Store, dataset: Dataset, connection: Connection) -> int:
    """Check records in a database and remember how to reach them; gives how many there are.

    Nothing is copied. The keys must be those of the receipt, or nobody knows by which secret they were made.
    """
    if dataset.name in store.names():
        raise DatasetError(
            f"The records of {dataset.name!r} are in {store.root} already; remove that copy, or choose a name."
        )
    receipt = _read(_receipt(store.root, dataset.name))
    if receipt is None:
        raise DatasetError(
            f"There is no receipt of keys for {dataset.name!r} in {store.root}; make them with 'lustrum keys'."
        )
    store.secret_of(str(receipt["secret"]))
    engine = IbisEngine(connection, dataset)
    try:
        if not engine.columns.keyed:
            raise DatasetError(
                f"{engine.columns.source} has no record keys; name their table in the connection ('keys')."
            )
        rows = engine.check()
        if engine.totals() != (receipt["rows"], receipt["sum"]):
            raise DatasetError(
                f"The keys of {dataset.name!r} are not those that 'lustrum keys' made for these records; drop "
                "their table and make keys again."
            )
    finally:
        engine.database.close()
    _write(
        _place(store.root, dataset.name),
        {
            "format": FORMAT,
            "description": dataset.source,
            "connection": connection.to_mapping(),
            **receipt,
        },
    )
    return rows


def open_connected(store: Store, name: str) -> ConnectedEngine:
    """The engine over records in a database, which must be those that were checked."""
    document = _read(_place(store.root, name))
    if document is None or document.get("format") != FORMAT:
        raise DatasetError(f"There is no dataset {name!r} in {store.root} that is in a database.")
    store.secret_of(str(document["secret"]))
    try:
        dataset = Dataset.from_mapping(document["description"])
        connection = Connection.from_mapping(document["connection"])
    except (LustrumError, KeyError, TypeError):
        raise _damaged(_place(store.root, name)) from None
    engine = ConnectedEngine(
        connection, dataset, (int(document["rows"]), int(document["sum"])), str(document["secret"])
    )
    engine.require_unchanged()
    return engine


class ConnectedEngine(IbisEngine):
    """The engine over records that were checked when they were connected."""

    def __init__(
        self,
        connection: Connection | Database,
        dataset: Dataset,
        known: tuple[int, int],
        secret: str,
    ) -> None:
        super().__init__(connection, dataset, checked=True)
        self._known = known
        self.secret = secret
        """The fingerprint of the secret behind the record keys."""

    def require_unchanged(self) -> None:
        """Refuse where there are other records, or other keys, than were checked."""
        if self.totals() != self._known:
            raise DatasetError(
                f"{self.columns.source} changed since it was checked; make keys for the records that it holds "
                "now with 'lustrum keys', and run 'lustrum ingest' again."
            )


def _place(root: Path, name: str) -> Path:
    return root / CONNECTIONS / f"{name}.json"


def _receipt(root: Path, name: str) -> Path:
    return root / CONNECTIONS / f"{name}.keys.json"


def _write(path: Path, document: dict[str, Any]) -> None:
    with outages(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, json.dumps(document, ensure_ascii=False, indent=1).encode(), 0o600)


def _read(path: Path) -> dict[str, Any] | None:
    with outages(path):
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return None
    try:
        document = json.loads(raw)
        if not isinstance(document, dict) or not {"secret", "rows", "sum"} <= set(document):
            raise ValueError
    except ValueError:
        raise _damaged(path) from None
    return document


def _damaged(path: Path) -> DatasetError:
    return DatasetError(
        f"{path} is damaged; restore it from a backup, or connect the dataset again."
    )
