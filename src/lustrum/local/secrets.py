"""Methods whose chance follows from a stored secret, so that the same table gets the same numbers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from lustrum.model import Dataset, InputError, Release, Table
from lustrum.model.errors import kind_of
from lustrum.protect.abilities import KeysEmptyCells, abilities_of
from lustrum.protect.method import keyed_chance
from lustrum.protect.unchanged import Unchanged
from lustrum.tabulate.keys import Secret

SECRET_VARIABLE = "LUSTRUM_SECRET"
"""The environment variable that names the file of the secret, where a call names none."""


def apply_with_secret(
    method: Any, table: Table, described: Dataset, secret: Secret | None
) -> Release:
    """The table protected by a method whose chance, if any, follows from the secret and the table."""
    if isinstance(method, Unchanged):
        raise InputError("The method 'none' shows true numbers; name one that protects.")
    if "table" not in method.stages:
        raise InputError(f"The method {method.name!r} does not work on tables; name one that does.")
    if not abilities_of(method).repeatable:
        raise InputError(
            f"The method {method.name!r} does not promise the same numbers each time, and asking often would "
            "undo fresh draws; apply it once to a Table yourself, and keep the release."
        )
    if secret is None:
        try:
            release: Release = method.apply(table)
        except InputError:
            if _works(method, table, np.random.default_rng(0)):
                raise InputError(needs_secret(f"The method {method.name!r}")) from None
            raise
        return release
    if isinstance(method, KeysEmptyCells):
        method = method.with_zeros(secret.derive("lustrum empty cells"), described)
    try:
        keyed: Release = method.apply(table)
    except InputError:
        rng = keyed_chance(method, table, secret)
        if not _works(method, table, rng):
            raise
        drawn: Release = method.apply(table, rng=keyed_chance(method, table, secret))
        return drawn
    return keyed


def _works(method: Any, table: Table, rng: np.random.Generator) -> bool:
    try:
        method.apply(table, rng=rng)
    except InputError:
        return False
    return True


def needs_secret(what: str) -> str:
    return (
        f"{what} changes numbers at random and needs the agency's secret, so that the same table always shows "
        f"the same numbers; give the path of its file as 'secret', or name it in {SECRET_VARIABLE}. "
        "Secret.random().write(path) makes one."
    )


def secret_of(given: object) -> Secret | None:
    if given is None:
        given = os.environ.get(SECRET_VARIABLE) or None
    if given is None or isinstance(given, Secret):
        return given
    if isinstance(given, (str, Path)):
        return Secret.load(Path(given))
    raise InputError(f"'secret' is a Secret or the path of its file, not {kind_of(given)}.")
