"""What all methods share: their protocols, their source of randomness, and how a release is made.

A method is a frozen spec that stores its parameters only. ``stages`` says where it can work: on the
``microdata`` before anything is counted, on a ``hypercube`` of counts from which all tables are then
made, on each ``table`` by itself, or on the ``population``: all finest cells, changed once for all tables.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from lustrum.model import Channel, InputError, Release, Table
from lustrum.model.arrays import Ints, Mask, Words
from lustrum.model.chance import (
    Chance,
    KeyedChance,
    Seed,
    WatchedChance,
    generator_of,
    required_generator,
)
from lustrum.model.keys import cell_words
from lustrum.model.parameters import DeclaredSpec
from lustrum.model.records import Records
from lustrum.model.release import STUDIED, SeededRelease
from lustrum.model.status import CellStatus
from lustrum.model.table import check_table, whole_cells

Stage = Literal["microdata", "hypercube", "table", "population", "magnitudes"]

TABULAR: tuple[Stage, ...] = ("hypercube", "table")
MICRODATA: tuple[Stage, ...] = ("microdata",)


class Method(Protocol):
    """A method for tables; on a hypercube it is applied to the cells before they are added up."""

    name: ClassVar[str]
    stages: ClassVar[tuple[Stage, ...]]

    def apply(self, table: Table, rng: Seed = None) -> Release:
        """Protect a table; without a generator, random numbers come from the table's record keys."""
        ...

    def to_mapping(self) -> dict[str, Any]: ...


class RecordMethod(Protocol):
    """A method for records; every table counted from them afterwards is protected already."""

    name: ClassVar[str]
    stages: ClassVar[tuple[Stage, ...]]

    def apply_records(self, records: Records, rng: Seed) -> Records:
        """Protect records; the same generator gives the same bytes, and makes a study of them."""
        ...

    def publish(self, table: Table) -> Release: ...

    def to_mapping(self) -> dict[str, Any]: ...


class Deriving(Protocol):
    """A secret from which keys are derived."""

    def derive(self, purpose: str) -> bytes:
        """A key for one purpose, from which the secret does not follow."""
        ...


class MethodSpec(DeclaredSpec):
    """What methods share whose words are their declared parameters."""

    group: ClassVar[str] = "method"

    def apply(self, table: Table, rng: Seed = None, *, secret: Deriving | None = None) -> Release:
        """Protect a table by its record keys or a secret; with a seed, nothing that may be published."""
        generator = checked_input(table, rng)
        if secret is not None:
            if rng is not None:
                raise InputError("Give 'secret' to publish or 'rng' to study a method, not both.")
            generator = None if table.keys is not None else keyed_chance(self, table, secret)
        if generator is None or isinstance(generator, KeyedChance):
            return standing(self.draw(table, generator), table)
        watched = WatchedChance(generator.bit_generator)
        release = self.draw(table, watched)
        return SeededRelease.of(release) if watched.used else standing(release, table)

    def draw(self, table: Table, rng: Chance) -> Release:
        """Protect a table by its record keys, or by a generator."""
        raise TypeError(f"The method {self.name!r} does not work on tables.")


class RecordMethodSpec(MethodSpec):
    """What methods on records share: chance from a secret, or records that are marked as a study."""

    def apply_records(
        self, records: Records, rng: Seed = None, *, secret: Deriving | None = None
    ) -> Records:
        """Change the records by a secret, the same for the same dataset; a seed makes a study of them."""
        if secret is not None:
            if rng is not None:
                raise InputError("Give 'secret' to publish or 'rng' to study a method, not both.")
            words = json.dumps(self.to_mapping(), sort_keys=True)
            key = secret.derive(f"lustrum records {records.dataset.name} {words}")
            rng = KeyedChance(np.random.Philox(key=int.from_bytes(key, "big")))
        chance = required_generator(rng)
        return marked_records(self.change(records, chance), chance)

    def change(self, records: Records, rng: np.random.Generator) -> Records:
        """Draw the changes from a generator."""
        raise TypeError(f"The method {self.name!r} does not work on records.")


def marked_records(records: Records, chance: np.random.Generator) -> Records:
    """Changed records, marked as a study where no secret fixed the chance."""
    if isinstance(chance, KeyedChance):
        return records
    return replace(records, dataset=replace(records.dataset, study=True))


def standing(release: Release, table: Table) -> Release:
    """The release, or a study where the table was counted from records that a seed changed."""
    return SeededRelease.of(release) if table.provenance.get(STUDIED) else release


def keyed_chance(method: Any, table: Table, secret: Deriving) -> KeyedChance:
    digest = hashlib.sha256(table.values.tobytes())
    digest.update(b"" if table.keys is None else table.keys.tobytes())
    description = json.dumps(
        [method.to_mapping(), [[axis.name, *axis.codes] for axis in table.axes]], sort_keys=True
    )
    key = secret.derive(f"lustrum crosstab {description} {digest.hexdigest()}")
    return KeyedChance(np.random.Philox(key=int.from_bytes(key, "big")))


def checked_input(table: object, rng: object) -> np.random.Generator | None:
    """The generator for a seed; raises an error for a table or a seed of the wrong type."""
    check_table(table, "A protection method")
    return generator_of(rng)


def whole_counts(table: Table, method: str) -> Ints:
    """The counts of a table; raises an error if the table holds other values."""
    if table.kind != "count" or table.decimals:
        raise InputError(f"{method} protects whole counts; this table holds other values.")
    return table.values


def uniform_words(table: Table, rng: np.random.Generator | None, purpose: str) -> Words:
    """A uniform 64-bit word for every cell: from the generator, or from the cell's record keys.

    With keys, the same records give the same word in every table; different purposes give independent
    words.
    """
    if rng is not None:
        return rng.integers(0, 2**64, size=table.shape, dtype=np.uint64)
    if table.keys is None:
        raise InputError("The table has no record keys; give a random generator ('rng').")
    return cell_words(table.keys, purpose)


Kept = Literal["nothing", "grand-total", "totals"]


def kept_cells(table: Table, keep: Kept) -> Mask:
    """The cells that are published as they are: cells that cannot hold anybody, and totals as asked for.

    The grand total is the total of everybody. A table that has no such cell keeps none: totals of parts are
    not taken for it.
    """
    unchanged = np.zeros(table.shape, dtype=np.bool_)
    if table.structural is not None:
        unchanged |= table.structural
    if keep == "totals":
        unchanged |= ~table.inner
    elif keep == "grand-total":
        unchanged |= whole_cells(table.axes)
    return unchanged


def released(
    table: Table,
    method: Method | RecordMethod,
    published: Ints,
    *,
    channel: Channel | None = None,
    low: Ints | None = None,
    high: Ints | None = None,
    status: npt.NDArray[np.str_] | None = None,
    notes: tuple[str, ...] = (),
) -> Release:
    release = Release(
        axes=table.axes,
        numbers=np.asarray(published, dtype=np.int64),
        status=np.full(table.shape, CellStatus.FREE.value) if status is None else status,
        method=method.to_mapping(),
        channel=channel,
        least=low,
        most=high,
        decimals=table.decimals,
        unit=table.unit,
        notes=notes,
        structural=table.structural,
        provenance=table.provenance,
    )
    return standing(release, table)
