"""The releases of a dataset that were made in a data folder, wherever their bundles and memories stand.

A release that is drawn without regard to an earlier one reveals, beside it, more than each of them alone. The
folder of the bundle and that of the memory can be named, moved or removed; the history stays with the
records: ``<data>/releases/<dataset>.json``, the digests of all releases in their order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from lustrum.model import DatasetError
from lustrum.publish.bundles.memory import Memory
from lustrum.runtime.data_folder import RELEASES
from lustrum.runtime.durable import outages, write_whole


@dataclass(frozen=True)
class ReleaseHistory:
    """The digests of all releases of a dataset, the last one at the end."""

    path: Path
    digests: tuple[str, ...] = ()

    @classmethod
    def read(cls, data: Path, name: str) -> ReleaseHistory:
        """The history of a dataset; empty where no release was made."""
        path = data / RELEASES / f"{name}.json"
        with outages(path):
            if not path.is_file():
                return cls(path)
            raw = path.read_bytes()
        try:
            digests = json.loads(raw)["releases"]
            if not isinstance(digests, list) or not all(isinstance(d, str) and d for d in digests):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            raise DatasetError(
                f"{path} is not a list of releases, or is damaged; restore it from a backup."
            ) from None
        return cls(path, tuple(digests))

    def require_continued(self, previous: Memory | None, digest: str) -> None:
        """Refuse a new release that does not go on from the last one; one of the old ones may be made again."""
        if not self.digests or digest in self.digests:
            return
        last = self.digests[-1]
        if previous is not None and last in (*previous.earlier, previous.digest):
            return
        begins = "does not continue any" if previous is None else "continues an earlier one"
        raise DatasetError(
            f"The last release of this dataset has the digest {last[:16]}..., and this one {begins}: readers "
            "of both would know more than of one. Name the memory of the last release "
            f"(memory-{last[:16]}.arrow) with --previous; if no release was ever published, say so with "
            "--never-published."
        )

    def record(self, previous: Memory | None, digest: str, *, begins: bool = False) -> None:
        """Add a release; with ``begins`` those before it were never published."""
        earlier = () if previous is None else (*previous.earlier, previous.digest)
        known = () if begins else (*self.digests, *(d for d in earlier if d not in self.digests))
        if digest in known:
            return
        history = {"releases": [*known, digest]}
        with outages(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(self.path, json.dumps(history, indent=1).encode(), 0o600)
