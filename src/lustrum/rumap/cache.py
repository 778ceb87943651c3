"""Measured draws on disk, so that a map that was stopped goes on where it was.

One line of JSON for each draw of a method, appended as soon as it is measured. A line that was cut off
by a crash is left out. The figures follow from true counts: the file belongs to the agency alone, and only
its owner can read it.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from pathlib import Path
from typing import Any

from lustrum._version import __version__
from lustrum.model import InputError


class Cache:
    """Figures by key, in memory or in a file."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = threading.Lock()
        self._found: dict[str, Any] = {}
        if self.path is not None and self.path.exists():
            try:
                lines = self.path.read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError):
                raise InputError(f"{self.path} cannot be read as a cache of a map.") from None
            for line in lines:
                try:
                    entry = json.loads(line)
                    self._found[entry["key"]] = entry["figures"]
                except (json.JSONDecodeError, KeyError, TypeError):
                    continue

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: str) -> Any | None:
        """What was kept under a key."""
        return self._found.get(key)

    def put(self, key: str, figures: Any) -> None:
        """Keep figures under a key."""
        with self._lock:
            self._found[key] = figures
            if self.path is not None:
                line = json.dumps({"key": key, "figures": figures})
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                descriptor = os.open(self.path, flags, 0o600)
                with os.fdopen(descriptor, "a", encoding="utf-8") as file:
                    # After a line that was cut off, an empty one keeps the next apart.
                    file.write(f"{line}\n")


def cache_key(*parts: str) -> str:
    """A key for figures: everything that they depend on, and the version that computed them."""
    return hashlib.sha256("\n".join((__version__, *parts)).encode()).hexdigest()
