"""Where the agency's secret stands, and which secret belongs to which dataset.

Every dataset keeps the fingerprint of the secret behind its record keys, and is never opened without that
very secret: with another one, the same table would be perturbed a second time, and two perturbations of one
number tell more of it than one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lustrum.model import DatasetError
from lustrum.tabulate.keys import Secret, SecretExistsError, SecretMissingError

SECRET = "record-keys.secret"
NEXT = "record-keys.secret.next"
"""The new secret while datasets are rotated to it, one by one."""


def find(root: Path, fingerprint: str) -> Secret:
    """The secret that a dataset was made with."""
    there = False
    # Twice: a rotation may end between the two looks, and put the new secret in place of the old one.
    for name in (SECRET, NEXT, SECRET):
        try:
            secret = Secret.load(root / name)
        except SecretMissingError:
            continue
        there = True
        if secret.fingerprint == fingerprint:
            return secret
    if there:
        raise DatasetError(
            f"The secret in {root / SECRET} is not the one that the dataset was made with, and would perturb "
            "every table anew; restore the right one from a backup."
        )
    raise SecretMissingError(
        f"The secret file {root / SECRET} is missing, and without it every table would be perturbed anew; "
        "restore it from a backup."
    )


def for_writing(root: Path, used: Iterable[str]) -> Secret:
    """The secret for new records; made on first use, where ``used`` names no secret of a dataset."""
    if (root / NEXT).exists():
        raise DatasetError(
            f"A rotation of the secret in {root} is not finished; run 'lustrum secret rotate' again."
        )
    try:
        secret = Secret.load(root / SECRET)
    except SecretMissingError:
        if list(used):
            raise
        secret = _new(root)
    _check_one(root, secret, used)
    return secret


def adopt(root: Path, secret: Secret, used: Iterable[str]) -> None:
    """Take a given secret as that of the folder; refused where the folder has another one."""
    _check_one(root, secret, used)
    try:
        there = Secret.load(root / SECRET)
    except SecretMissingError:
        secret.write(root / SECRET)
        there = Secret.load(root / SECRET)
    _check_one(root, there, [secret.fingerprint])


def _new(root: Path) -> Secret:
    try:
        secret = Secret.random()
        secret.write(root / SECRET)
        return secret
    except SecretExistsError:
        return Secret.load(root / SECRET)


def _check_one(root: Path, secret: Secret, used: Iterable[str]) -> None:
    if any(fingerprint != secret.fingerprint for fingerprint in used):
        raise DatasetError(
            f"The secret in {root / SECRET} is not the one that the datasets there were made with; restore "
            "the right one from a backup, or run 'lustrum secret rotate' to give all datasets a new one."
        )
