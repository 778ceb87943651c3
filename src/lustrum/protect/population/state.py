"""A search that can resume after an interruption: its state in a file, tied to its input by a keyed digest."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Array, Words
from lustrum.model.finest import FinestCells
from lustrum.protect.population.later import RememberedCells
from lustrum.protect.population.public import SEARCH
from lustrum.protect.population.search.run import SearchState
from lustrum.runtime.durable import write_whole


class StateFile:
    """The state of a search, kept after every sweep; readable by its owner only.

    The digest is keyed, so the file cannot confirm a guess about the records. The file is still confidential:
    it says which numbers were raised.
    """

    def __init__(
        self,
        path: Path,
        key: bytes,
        method: Mapping[str, Any],
        cells: FinestCells,
        previous: FinestCells | None,
        held: Words | None = None,
        shared_errors: Array | None = None,
    ) -> None:
        self._path = path
        digest = hmac.new(key, f"lustrum population state {SEARCH}".encode(), hashlib.sha256)
        digest.update(json.dumps(dict(method), sort_keys=True).encode())
        for part in (cells, previous):
            if part is None:
                continue
            digest.update(repr([(v.name, v.codes) for v in part.dataset.variables]).encode())
            arrays = [part.codes, part.counts, part.keys]
            if isinstance(part, RememberedCells):
                digest.update(repr((part.wide, part.share)).encode())
                arrays += [part.offset, part.shift, part.odds]
            for array in arrays:
                if array is not None:
                    digest.update(str(array.dtype).encode())
                    digest.update(np.ascontiguousarray(array).tobytes())
        if held is not None:
            digest.update(b"held" + np.sort(held).tobytes())
        if shared_errors is not None:
            digest.update(b"shared" + shared_errors.tobytes())
        self._digest = digest.digest()

    def load(self) -> SearchState | None:
        """The state to resume from; None if there is no file."""
        try:
            with np.load(self._path, allow_pickle=False) as stored:
                digest = stored["digest"].tobytes()
                state = SearchState(
                    int(stored["sweeps"]), int(stored["word"]), stored["up"], stored["fields"]
                )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError):
            raise InputError(
                f"The state file {self._path.name} cannot be read; delete it to begin anew."
            ) from None
        if not hmac.compare_digest(digest, self._digest):
            raise InputError(
                f"The state file {self._path.name} belongs to other records, another key or another method; "
                "delete it to begin anew."
            )
        return state

    def keep(self, state: SearchState) -> None:
        """Write the state; an interruption while writing leaves the earlier one."""
        file = io.BytesIO()
        np.savez(
            file,
            digest=np.frombuffer(self._digest, dtype=np.uint8),
            sweeps=np.int64(state.sweeps),
            word=np.uint64(state.word),
            up=state.up,
            fields=state.fields,
        )
        write_whole(self._path, file.getvalue(), 0o600)

    def remove(self) -> None:
        """Delete the state, once the work is done."""
        self._path.unlink(missing_ok=True)
