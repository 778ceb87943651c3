"""The book of sessions on the same data: what went to the checker before, so that later ones know.

The folder stays in the safe room, for its owner alone. ``book.jsonl`` is chained; ``people/*.npz`` hold of each
finalised output, keyed digests of its people beside the codes of their categories, and ``key.secret`` the key.
Without the data nobody learns from them who somebody is; with it and the key, everything: so the checker's
folder holds none of them.
"""

from __future__ import annotations

import io
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from lustrum.checking.populations import OutputPopulation
from lustrum.ledger.chain import Chain, digest_of
from lustrum.model import DatasetError
from lustrum.runtime.durable import outages, write_whole

_BYTES = 32


class SessionBook:
    """The book in a folder, which is made where there is none."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._chain = folder, Chain(folder / "book.jsonl")
        with outages(folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def key(self) -> bytes:
        """The key of digests: made once, since others would make the same people different ones."""
        path = self._folder / "key.secret"
        with self._chain.alone(wait=True), outages(path):
            if not path.exists():
                if self._chain.entries():
                    raise DatasetError(
                        f"{path} is missing, without which earlier sessions cannot be compared."
                    )
                write_whole(path, secrets.token_bytes(_BYTES), 0o600)
            key = path.read_bytes()
        if len(key) != _BYTES:
            raise DatasetError(f"{path} is not what was written; bring back the file as it was.")
        return key

    def populations(self) -> list[OutputPopulation]:
        """Whom the outputs of all finalised sessions are about; an error if a file was changed."""
        found = []
        for number, entry in enumerate(self._chain.entries(), start=1):
            for name, digest in entry.said["outputs"].items():
                path = self._path(digest)
                with outages(path):
                    data = path.read_bytes()
                if digest_of(data) != digest:
                    raise DatasetError(
                        f"{path} is not what was written; bring back the file as it was."
                    )
                with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                    found.append(OutputPopulation.from_arrays(f"session {number}: {name}", arrays))
        return found

    def enter(self, folder: str, title: str, outputs: Mapping[str, OutputPopulation]) -> str:
        """Enter a session that was finalised; ``folder`` is the digest of what the checker gets."""
        digests = {}
        for name, population in outputs.items():
            buffer = io.BytesIO()
            np.savez(buffer, **population.to_arrays())
            digests[name] = digest_of(buffer.getvalue())
            path = self._path(digests[name])
            with outages(path):
                path.parent.mkdir(exist_ok=True, mode=0o700)
                write_whole(path, buffer.getvalue(), 0o600)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return self._chain.append({"at": now, "title": title, "folder": folder, "outputs": digests})

    def _path(self, digest: str) -> Path:
        return self._folder / "people" / f"{Path(digest).name}.npz"
