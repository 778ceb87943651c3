"""Record keys: one secret 64-bit number for each record, summed modulo 2**64 into cells.

A key depends on the agency's secret, the dataset and the record's own identity, so that the same
record has the same key after a new ingest, in another order and on another engine. The sum over any
set of records is uniform to anybody without the secret, and the same set always gives the same sum.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from lustrum.model import DatasetError, InputError
from lustrum.model.arrays import Words
from lustrum.model.keys import scramble
from lustrum.runtime.durable import sync

KEY_VERSION = 1
_BYTES = 32


class SecretMissingError(DatasetError):
    """There is no secret where one is needed."""


class SecretExistsError(DatasetError):
    """There is a secret already where a new one was to be written."""


@dataclass(frozen=True, repr=False)
class Secret:
    """The agency's secret; never shown, not even by ``repr``."""

    value: bytes

    def __post_init__(self) -> None:
        if len(self.value) < 16:
            raise InputError("A secret for record keys must have at least 16 bytes; use 32.")

    def __repr__(self) -> str:
        return "Secret(hidden)"

    @classmethod
    def random(cls) -> Secret:
        return cls(secrets.token_bytes(_BYTES))

    @classmethod
    def load(cls, path: Path) -> Secret:
        """Read the secret from a file that only its owner, or a group of its keepers, may read."""
        try:
            with path.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                text = file.read(1 << 12).strip()
        except FileNotFoundError:
            raise SecretMissingError(
                f"The secret file {path} is missing, and without it every table would be perturbed anew; "
                "restore it from a backup."
            ) from None
        except OSError as error:
            raise DatasetError(
                f"The secret file {path} cannot be read: {error.strerror}."
            ) from None
        if mode & 0o027:
            raise DatasetError(
                f"The secret file {path} is open to others, who could undo the protection of every table; "
                f"close it with 'chmod 600 {path}', and think of 'lustrum secret rotate' if others had access."
            )
        if not re.fullmatch(rb"[0-9a-fA-F]{%d}" % (2 * _BYTES), text):
            raise DatasetError(
                f"The secret file {path} is damaged; it must hold 64 hexadecimal digits. Restore it "
                "from a backup: with another secret every table would be perturbed anew."
            )
        return cls(bytes.fromhex(text.decode("ascii")))

    def write(self, path: Path) -> None:
        """Write the secret to a new file, whole and durable, readable by its owner only."""
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(self.value.hex() + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, path)  # fails if another process was faster, whose secret then holds
            sync(path.parent)
        except FileExistsError:
            raise SecretExistsError(f"There is a secret in {path} already.") from None
        except OSError as error:
            raise DatasetError(
                f"The secret for record keys could not be written to {path}: {error.strerror}."
            ) from None
        finally:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)

    @property
    def fingerprint(self) -> str:
        return self.derive("lustrum fingerprint").hex()

    def derive(self, purpose: str) -> bytes:
        """A 16-byte key for one purpose, from which neither the secret nor another key follows."""
        hkdf = HKDF(algorithm=SHA256(), length=16, salt=None, info=purpose.encode())
        return hkdf.derive(self.value)


def dataset_key(secret: Secret, dataset: str) -> bytes:
    """What makes the keys of one dataset's records, from which the secret does not follow."""
    return secret.derive(f"lustrum record key {KEY_VERSION} {dataset}")


def record_keys(secret: Secret, dataset: str, identity: Words) -> Words:
    """The keys of records of these identities: AES as a pseudo-random function of the identity."""
    return scramble(dataset_key(secret, dataset), identity)
